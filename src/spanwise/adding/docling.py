"""docling as a person installed it: a program of its own, asked for Markdown and nothing else.

It cannot share our environment, so no module of it is ever imported. `SPANWISE_DOCLING` names the
program, or a script that calls it with further options; else it is `docling` on the PATH.
"""

from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from spanwise.embedding import workers
from spanwise.errors import InputError, Unavailable

PROGRAM, SECONDS = "SPANWISE_DOCLING", "SPANWISE_DOCLING_SECONDS"
OPTIONS = ("--to", "md", "--image-export-mode", "placeholder")
_SECONDS = 1800.0
_VERSION_S = 300.0
_STOP_S = 10.0
_POLL_S = 0.2
_ALIKE = 3
"""Files that fail in the same words, after which no other is tried: it is not the files."""
_LINES = 4  # last words in a message
_SHOWN = 600  # code points of them
_VERSION = re.compile(r"^(Docling[\w ]*?) version: (\S+)\s*$", re.MULTILINE)
_INFO = re.compile(r"^\S+ \S+\s+(?:INFO|DEBUG)\b")
_TRACE = re.compile(r"^(?:Traceback \(most|The above exception|During handling)")
_LOGGED = re.compile(r"^\d{4}-\S+ \S+\s+[A-Z]+\s+[\w.]+:\s*")
_OWN = ("PYTHONPATH", "PYTHONHOME", "VIRTUAL_ENV", "__PYVENV_LAUNCHER__")
"""What says where our Python finds its modules, and would mislead that of docling."""
MEND = (
    "make it an environment of its own and say where it is:\n"
    "    python -m venv ~/docling && ~/docling/bin/pip install docling\n"
    f"    export {PROGRAM}=~/docling/bin/docling"
)


@dataclass(frozen=True, slots=True)
class Docling:
    """A docling that said its version.

    versions: of its parts, by their names; that of `Docling` is the program's.
    limit_s:  seconds in which it must be done with one file.
    """

    program: str
    versions: Mapping[str, str]
    limit_s: float

    @property
    def version(self) -> str:
        return self.versions["Docling"]


@dataclass(frozen=True, slots=True)
class _Call:
    """How a call ended: whether it was stopped for being late, and what it said at last."""

    late: bool
    said: str


def found() -> Docling:
    """The person's docling.

    raises: Unavailable where there is none or it does not start; InputError for another program,
            and for a time limit that is no number.
    """
    limit = os.environ.get(SECONDS, "")
    if limit and not re.fullmatch(r"\d*\.?\d+", limit):
        raise InputError(f"{SECONDS} is {limit!r}: expected seconds, e.g. {_SECONDS:g}")
    named = os.environ.get(PROGRAM, "")
    program = shutil.which(Path(named).expanduser() if named else "docling")
    if program is None:
        where = f"{PROGRAM} names {named}, which is no program" if named else (
            "no program `docling` on the PATH")
        raise Unavailable(f"{where}; {MEND}")
    program = str(Path(program).absolute())  # it is started in another folder
    try:
        ended = subprocess.run(
            [program, "--version"], stdin=subprocess.DEVNULL, capture_output=True, text=True,
            errors="replace", check=False, timeout=_VERSION_S, env=_environment(),
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise Unavailable(f"{program}: it does not start ({error}); {MEND}") from None
    versions = dict(_VERSION.findall(ended.stdout))
    if "Docling" not in versions:
        said = last_words(ended.stdout + ended.stderr) or "nothing"
        raise InputError(
            f"{program}: no docling: to --version it says {said}; let {PROGRAM} name docling"
        )
    return Docling(program, versions, float(limit or _SECONDS))


def convert(its: Docling, folder: Path, names: Sequence[str], out: Path) -> dict[str, str]:
    """Let docling write the Markdown of each file, `out/STEM.md`.

    folder:  holds the files.
    names:   of the files, each with a stem of its own.
    returns: why files have no Markdown, by name; the others have.
    raises:  Unavailable where it fails with one file after the other in the same words.
    """
    failed: dict[str, str] = {}
    waiting = list(names)
    alone = _Call(False, "")
    while waiting:  # one call for all of them: to start it takes longer than most files do
        tried = len(waiting)
        alone = _call(its, folder, waiting, out)
        waiting = [name for name in waiting if not _made(out, name)]
        if not (alone.late and waiting):
            break
        failed[waiting.pop(0)] = _late(its)  # it takes them in their order
    if len(waiting) == tried == 1:  # it was alone already
        return failed | {waiting[0]: alone.said}
    alike: list[str] = []
    for name in waiting:  # what one file ended may have cost others their turn
        call = _call(its, folder, [name], out)
        if _made(out, name):
            continue
        failed[name] = _late(its) if call.late else call.said
        alike = [one for one in alike if one == failed[name]] + [failed[name]]
        if len(alike) == _ALIKE and not call.late:
            raise Unavailable(
                f"{its.program}: it ends in the same way with one file after the other: {alike[0]}"
                f"\nMend it until `{its.program} --to md FILE` works"
            )
    return failed


def last_words(log: str) -> str:
    """The last lines of a log, without those that only say what goes on and where code stood."""
    lines = [_LOGGED.sub("", line).strip() for line in log.splitlines()
             if line.strip() and not line.startswith((" ", "\t"))
             and not _INFO.match(line) and not _TRACE.match(line)]
    return " / ".join(lines[-_LINES:])[-_SHOWN:]


def _late(its: Docling) -> str:
    return (f"not done within {its.limit_s:g} s; give it longer ({SECONDS}), or convert it by hand "
            "and add its Markdown")


def _made(out: Path, name: str) -> bool:
    return (out / name).with_suffix(".md").is_file()


def _call(its: Docling, folder: Path, names: Sequence[str], out: Path) -> _Call:
    log = out / "log"
    with log.open("wb") as said:
        process = subprocess.Popen(
            [its.program, *OPTIONS, "--num-threads", str(workers()), "--output", str(out), *names],
            cwd=folder, stdin=subprocess.DEVNULL, stdout=said, stderr=said, env=_environment(),
            start_new_session=True,
        )
        try:
            late = _wait(process, out, names, its.limit_s)
        finally:
            _stop(process)
    words = last_words(log.read_text(encoding="utf-8", errors="replace"))
    return _Call(late, words or f"it wrote no Markdown and said nothing (exit code "
                                f"{process.returncode})")


def _wait(
    process: subprocess.Popen[bytes], out: Path, names: Sequence[str], limit_s: float
) -> bool:
    """Wait for the end, or for longer than one file may take; returns whether it was that."""
    from tqdm import tqdm

    done, since = 0, time.monotonic()
    with tqdm(total=len(names), desc="docling", unit="file", disable=None) as bar:
        while True:
            with suppress(subprocess.TimeoutExpired):
                process.wait(_POLL_S)
            now = sum(_made(out, name) for name in names)
            if now != done:
                bar.update(now - done)
                done, since = now, time.monotonic()
            if process.returncode is not None:
                return False
            if time.monotonic() - since > limit_s:
                return True


def _stop(process: subprocess.Popen[bytes]) -> None:
    """End a call that has not ended, and every process that it started."""
    if process.returncode is not None:
        return
    os.killpg(process.pid, signal.SIGTERM)
    with suppress(subprocess.TimeoutExpired):
        process.wait(_STOP_S)
    with suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()


def _environment() -> dict[str, str]:
    kept = {name: value for name, value in os.environ.items() if name not in _OWN}
    return kept | {"OMP_NUM_THREADS": str(workers()), "NO_COLOR": "1", "COLUMNS": "1000",
                   "PYTHONIOENCODING": "utf-8"}
