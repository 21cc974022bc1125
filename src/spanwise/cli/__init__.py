"""The command line. A command is a thin function: it imports its room when it runs, calls it and
prints. Every SpanwiseError becomes one line on stderr and an exit code in `main`, nowhere else.
"""

from __future__ import annotations

import io
import os
import sys
from collections.abc import Sequence

# Each of these puts its commands on the app.
from spanwise.cli import corpora, looking, protocol, remotes, retrievers, weights
from spanwise.cli.shared import app
from spanwise.errors import SpanwiseError

__all__ = ["app", "corpora", "looking", "main", "protocol", "remotes", "retrievers", "weights"]


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line.

    returns: 0, 2 for a user's mistake, 3 for something that cannot be reached, else 1.
    """
    for stream in (sys.stdout, sys.stderr):
        # Ids are UTF-8 whatever the terminal says; a name that is no text is shown escaped.
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(encoding="utf-8", errors="backslashreplace")
    code = _run(arguments)
    try:
        sys.stdout.flush()
    except OSError as error:
        # A reader that has enough is no error; a failure that was said is not said again.
        if not code and not isinstance(error, BrokenPipeError):
            print(f"error: {error.strerror or error}", file=sys.stderr)
            code = 1
        # What is still in the buffer would fail once more when Python ends.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    return code


def _run(arguments: Sequence[str] | None) -> int:
    try:
        app(None if arguments is None else list(arguments), prog_name="spanwise")
    except SpanwiseError as error:
        print(f"error: {error}", file=sys.stderr)
        return error.exit_code
    except OSError as error:  # a full disk, a folder that may not be written
        what = f"{error.filename}: " if error.filename else ""
        print(f"error: {what}{error.strerror or error}", file=sys.stderr)
        return 1
    except SystemExit as stop:
        return stop.code if isinstance(stop.code, int) else int(stop.code is not None)
    return 0
