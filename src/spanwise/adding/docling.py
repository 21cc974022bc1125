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
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from spanwise.adding import stopping
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
_BEGUN = re.compile(r"docling\.[\w.]+: Processing document (.+)$", re.MULTILINE)
_DONE = re.compile(r"docling\.[\w.]+: Finished converting document (.+) in [\d.]+ sec")
"""Said before the Markdown is written: it is whole once docling says what it does next."""
_NEXT = re.compile(
    r"docling\.[\w.]+: (?:Going to convert|Processing|Finished converting|Processed) ")
_LACKING = re.compile(r"ocument (.+) (?:failed to convert|was only partially converted)\b")
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
    """How a call ended.

    late: it was stopped for being so.
    at:   the file that took so long, if that can be told.
    said: its last words.
    """

    done: frozenset[str]
    late: bool
    at: str | None
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
    while True:  # one call for all of them: to start it takes longer than most files do
        tried = len(waiting)
        call = _call(its, folder, waiting, out)
        waiting = [name for name in waiting if name not in call.done]
        if call.at is None:
            break
        failed[call.at] = _late(its)
        waiting.remove(call.at)
        if not waiting:
            break
    if len(waiting) == tried == 1:  # it was alone already
        return failed | {waiting[0]: call.said}
    alike: list[str] = []
    for name in waiting:  # what one file ended may have cost others their turn
        call = _call(its, folder, [name], out)
        if name in call.done:
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
    """One run of docling; of what it wrote, only what is whole stays."""
    log = out / "log"
    command = [its.program, *OPTIONS, "--num-threads", str(workers()), "--output", str(out), *names]
    with log.open("wb") as said, _running(command, folder, said) as process:
        late = _wait(process, out, names, its.limit_s)
    told = log.read_text(encoding="utf-8", errors="replace")
    written = [name for name in names if _made(out, name)]
    done = _whole(told, names, ended_well=not late and process.returncode == 0) & set(written)
    for name in set(written) - done:
        (out / name).with_suffix(".md").unlink()
    words = last_words(told) or (
        f"it wrote Markdown that may be cut, and did not end well (exit code {process.returncode})"
        if written else
        f"it wrote no Markdown and said nothing (exit code {process.returncode})"
    )
    return _Call(done, late, _slow(told, names, done, written) if late else None, words)


def _whole(told: str, names: Sequence[str], ended_well: bool) -> frozenset[str]:
    """The files whose Markdown, if there is one, holds all of them.

    After a run that did not end well these are the ones that docling reported and then went on:
    what it wrote last may be cut.
    """
    lacking = {Path(found[1]).name for found in _LACKING.finditer(told)}
    if ended_well:
        return frozenset(set(names) - lacking)
    done = {found[1] for found in _DONE.finditer(told) if _NEXT.search(told, found.end())}
    return frozenset(done - lacking)


def _slow(
    told: str, names: Sequence[str], done: frozenset[str], written: Sequence[str]
) -> str | None:
    """The file that a late run was at; None where each has to be tried alone to know."""
    left = [name for name in names if name not in done]
    begun = [name for name in _BEGUN.findall(told) if name in names]
    if begun:
        return begun[-1] if begun[-1] in left else None
    # It takes them in their order, and says nothing where it logs no more than warnings.
    return left[0] if left and (len(names) == 1 or not set(written) & set(left)) else None


@contextmanager
def _running(
    command: Sequence[str], folder: Path, said: IO[bytes]
) -> Iterator[subprocess.Popen[bytes]]:
    """A process that ends with the block, and all that it started, whatever ends the block."""
    started: list[subprocess.Popen[bytes]] = []
    try:
        with stopping.held():  # between its start and our knowing of it
            started.append(subprocess.Popen(
                command, cwd=folder, stdin=subprocess.DEVNULL, stdout=said, stderr=said,
                env=_environment(), start_new_session=True,
            ))
        yield started[0]
    finally:
        with stopping.held("docling is being ended"):
            for process in started:
                _stop(process)


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
