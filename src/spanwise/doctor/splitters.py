"""Whether the packages that `external` of params.yaml names are here, in the versions it names, and
take what it gives them.

Each splitter is made as stage `chunk` makes it and gets no text. That is done in a process of its
own, which may open no connection and is given up after a while: a package may do anything.
"""

from __future__ import annotations

import contextlib
import importlib
import importlib.util
import inspect
import json
import os
import subprocess
import sys
from collections.abc import Mapping
from operator import attrgetter
from pathlib import Path
from typing import Any

from spanwise.chunking.external import cutter, how_to_install, installed
from spanwise.doctor.findings import NOTE, OK, PROBLEM, Finding
from spanwise.errors import ParamsError, SpanwiseError
from spanwise.params import ExternalSettings, Params

TRIAL_S = 20
"""Seconds that all splitters together may take to be made; a stage would wait longer."""

_OFFLINE = "it could not be made without a connection, and `doctor` opens none"
_CHILD = (  # as `python stages/chunk.py` finds packages
    "import sys; sys.path[0] = 'stages'; from spanwise.doctor import splitters; splitters.child()"
)


class _Refused(BaseException):
    """A connection was wanted. No error, or packages would try again for minutes."""


def look(params: Params) -> list[Finding]:
    """A line for each entry."""
    early = {name: _absent(name, its) for name, its in params.external.items()}
    made = _tried({name: its for name, its in params.external.items() if early[name] is None})
    found = []
    for name, its in params.external.items():
        place, here = f"external {name}", installed(its.package)
        status, said = made.get(name, (OK, ""))
        version = f"{its.package} {here}" if here else (
            f"{its.package} comes from no distribution: its __version__ is held against "
            f"{its.version}"
        )
        if (absent := early[name]) is not None:
            found.append(absent)
        elif status == PROBLEM:
            found.append(Finding(place, PROBLEM, f"{said}: stage `chunk` would stop",
                                 f"correct external.{name} in params.yaml"))
        elif status == NOTE:
            found.append(Finding(place, NOTE, f"{version}; {said}: whether {its.callable} takes "
                                 "`args` is known when it cuts"))
        else:
            found.append(Finding(place, OK if here else NOTE, f"{version}; {its.callable} takes "
                                 "`args`"))
    return found


def _absent(name: str, its: ExternalSettings) -> Finding | None:
    """What is wrong with the package itself."""
    here = installed(its.package)
    if here == its.version or (here is None and _findable(its.package)):
        return None
    return Finding(
        f"external {name}", PROBLEM,
        f"{its.package} {its.version} is named, "
        + (f"{here} is installed" if here else "no package of that name is installed")
        + ": stage `chunk` would stop",
        how_to_install(its) + (f', or say `version: "{here}"`' if here else ""),
    )


def _findable(package: str) -> bool:
    return importlib.util.find_spec(package.partition(".")[0]) is not None


def _tried(external: Mapping[str, ExternalSettings]) -> dict[str, tuple[str, str]]:
    """name -> status and what is wrong, "" if nothing."""
    if not external:
        return {}
    asked = json.dumps({name: its.model_dump() for name, its in external.items()})
    # The root is on this command's path where it was started by `python -m`, and on no stage's.
    seen = [path for path in sys.path if path not in ("", str(Path.cwd()))]
    given = os.pathsep.join([*filter(None, [os.environ.get("PYTHONPATH")]), *seen])
    try:
        done = subprocess.run([sys.executable, "-c", _CHILD], input=asked, capture_output=True,
                              text=True, check=False, timeout=TRIAL_S,
                              env={**os.environ, "PYTHONPATH": given})
        out, why = done.stdout, f"the process that tried it ended with {done.returncode}"
    except subprocess.TimeoutExpired as error:
        got = error.stdout or b""
        out = got.decode() if isinstance(got, bytes) else got
        why = f"it took longer than {TRIAL_S} s to be made"
    told = {name: (status, said) for name, status, said in map(json.loads, out.splitlines())}
    return {name: told.get(name, (NOTE, why)) for name in external}


def child() -> None:
    """Make each splitter of standard input, and print a line of JSON for each: name, status, said.
    """
    def refuse(event: str, _: tuple[Any, ...]) -> None:
        if event in ("socket.connect", "socket.getaddrinfo"):
            raise _Refused

    sys.addaudithook(refuse)
    for name, its in json.load(sys.stdin).items():
        status, said = OK, ""
        try:
            with contextlib.redirect_stdout(sys.stderr):  # packages may print
                make(name, ExternalSettings(**its))
        except _Refused:
            status, said = NOTE, _OFFLINE
        except SpanwiseError as error:
            status, said = PROBLEM, str(error)
        except Exception as error:  # of a package when it is imported
            status = PROBLEM
            said = f"external.{name}: {its['package']} fails: {type(error).__name__}: {error}"
        print(json.dumps([name, status, said]), flush=True)


def make(name: str, its: ExternalSettings) -> None:
    """Make a splitter and give it no text.

    raises: what stage `chunk` would raise before the first document: Unavailable, ParamsError.
    """
    cutter(name, its)
    found: Any = attrgetter(its.callable)(importlib.import_module(its.package))
    if isinstance(found, type) or its.method is not None or "." in its.callable:
        return  # it was made with `args` just now
    try:
        taken = inspect.signature(found)
    except ValueError:
        return  # one that is written in C may not tell
    try:
        taken.bind("", **its.args)
    except TypeError as error:
        raise ParamsError(
            f"external.{name}.args: {its.callable} does not take them: TypeError: {error}"
        ) from None
