"""What makes `spanwise add` whole: one at a time, and when it fails everything as it was before.

What others wrote meanwhile is theirs and stays: an edit of a file, objects of a cache that several
projects share. A process that is killed outright cannot tidy up. It leaves a note of the corpus in
its scratch folder, by which the next one knows it.
"""

from __future__ import annotations

import errno
import fcntl
import hashlib
import json
import shutil
import sys
import tempfile
import time
from collections.abc import Container, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import IO

from spanwise.adding import stopping, tracked
from spanwise.errors import CorpusError, InputError

_SCRATCH = Path(".dvc/tmp")
_PREFIX = "adding-"
_NOTE = "corpus"
_FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
_LOCK = "adding.lock"
_RUNNING = "another `spanwise add` runs in this project; wait until it has ended"
_LOOK_S = 2.0
"""Longer than a plan holds the lock while it looks around."""


@contextmanager
def none_running(root: Path) -> Iterator[None]:
    """Look around in the block while no corpus is being added; nothing is written.

    raises: InputError while another `spanwise add` copies and tracks.
    """
    try:
        lock = (root / _SCRATCH / _LOCK).open("rb")
    except FileNotFoundError:  # there was never one
        yield
        return
    with lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except BlockingIOError:
            raise InputError(_RUNNING) from None
        yield


def require_none_left(root: Path, entered: Container[str]) -> None:
    """Raise CorpusError where an add was killed after it had copied its corpus to data/.

    It is to be called while none is running.

    entered: the corpora of params.yaml, which is written last.
    """
    for note in sorted((root / _SCRATCH).glob(f"{_PREFIX}*/{_NOTE}")):
        name = note.read_text(encoding="utf-8")
        if name and name not in entered and (root / tracked.DATA / name).exists():
            place = f"{tracked.DATA}/{name}"
            raise CorpusError(
                f"{place}: an earlier `spanwise add {name}` was killed when it had copied this "
                "and not entered it; take the copy out, then add it anew:\n"
                f"    rm -r {place} && dvc add {tracked.DATA}"
            )


@contextmanager
def scratch(root: Path, name: str) -> Iterator[Path]:
    """A folder on the disk of data/ that goes when the block ends; one process at a time.

    name:   the corpus that is added.
    raises: InputError while another `spanwise add` runs; OSError for a full disk, with the mend.
    """
    place = root / _SCRATCH
    place.mkdir(parents=True, exist_ok=True)
    with (place / _LOCK).open("w", encoding="utf-8") as lock, stopping.unwinding():
        _lock(lock)
        for dead in place.glob(f"{_PREFIX}*/"):
            shutil.rmtree(dead, ignore_errors=True)
        with tempfile.TemporaryDirectory(dir=place, prefix=_PREFIX) as folder:
            try:
                (Path(folder) / _NOTE).write_text(name, encoding="utf-8")
                yield Path(folder)
            except OSError as error:
                if error.errno not in _FULL:
                    raise
                # Most of these name no file, and the others the one that was read.
                said = f"{error.strerror}; make room and run it again, nothing was added"
                raise OSError(error.errno, said, str(root)) from None


def _lock(lock: IO[str]) -> None:
    """Have the lock alone; who only looks around gives it back soon."""
    until = time.monotonic() + _LOOK_S
    while True:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return
        except BlockingIOError:
            if time.monotonic() > until:
                raise InputError(_RUNNING) from None
        time.sleep(0.05)


@contextmanager
def restored(
    root: Path, written: Mapping[Path, bytes], target: Path, staged: Path
) -> Iterator[None]:
    """If the block fails, for whatever reason: all as it was before.

    Signals wait until that is done. What was changed by others meanwhile is left, and named on
    stderr.

    written: files of which the block writes the content that is given. They have the one from
             before again, as have those of `tracked.WRITES`, or are gone again.
    target:  a folder that is gone again.
    staged:  what the target will hold. DVC's cache loses what it gained by it, unless it lies
             outside the project: then others may need that.
    """
    paths = (*(root / path for path in tracked.WRITES), *written)
    before = {path: path.read_bytes() if path.is_file() else None for path in paths}
    made_parent = not target.parent.exists()
    cache = tracked.cache(root)
    objects = _objects(cache, staged)
    there = {place for place in objects if place.exists()} | _others(cache, objects)
    try:
        yield
    except BaseException:
        corpus = target.name
        # One that fails keeps no other from being taken, the last one first: on a full disk what
        # was copied goes before the rest is written.
        with stopping.held(f"what was done of {corpus} is being undone"), ExitStack() as steps:
            for path, content in before.items():
                steps.callback(_write_back, root, path, content, written.get(path), corpus)
            steps.callback(_take_out, root, cache, objects, there, corpus)
            if made_parent:
                steps.callback(_remove_empty, target.parent)
            steps.callback(shutil.rmtree, target, ignore_errors=True)
            steps.callback(_say, f"undoing what was done of {corpus}")
        raise


def _remove_empty(folder: Path) -> None:
    with suppress(OSError):  # it came with files of another
        folder.rmdir()


def _take_out(
    root: Path, cache: Path, objects: Sequence[Path], there: Container[Path], corpus: str
) -> None:
    """Take out of a cache of this project what it gained by a corpus, and was not there before."""
    gained = {place for place in {*objects, *_others(cache, objects)} if place not in there}
    if not cache.resolve().is_relative_to(root.resolve()):
        if any(place.exists() for place in gained):
            _say(f"{cache} lies outside the project and others may use what it holds, so what came "
                 f"into it of {corpus} stays there until `dvc gc` takes it out")
        return
    for place in gained:
        if place.suffix != ".dir" or _lists(place, corpus):
            with suppress(OSError):  # it never was, or others lie beside it
                place.unlink(missing_ok=True)
                place.parent.rmdir()


def _write_back(
    root: Path, path: Path, before: bytes | None, written: bytes | None, corpus: str
) -> None:
    """Give a file its content from before, unless it holds what the add did not write."""
    now = path.read_bytes() if path.is_file() else None
    if now == before:
        return
    name = path.relative_to(root)
    its_own = tracked.wrote(name, before, now) if written is None else now == written
    if not its_own:
        _say(f"{name} was changed meanwhile, not by this command, and stays as it is now; see that "
             f"nothing of {corpus} is left in it")
    elif before is None:
        path.unlink(missing_ok=True)
    else:
        path.write_bytes(before)


def _say(what: str) -> None:
    with suppress(OSError):  # a terminal that is gone keeps nothing from being undone
        print(f"note: {what}", file=sys.stderr, flush=True)


def _others(cache: Path, objects: Sequence[Path]) -> set[Path]:
    """Lists of folders' files that the cache holds, and what DVC began to write beside objects."""
    begun = {place for folder in {one.parent for one in objects} for place in folder.glob(".*.tmp")}
    return begun | set(cache.glob("*/*.dir"))


def _objects(cache: Path, folder: Path) -> list[Path]:
    """Where DVC keeps the files of a folder."""
    places = set()
    for path in folder.rglob("*"):
        if path.is_file():
            with path.open("rb") as file:
                name = hashlib.file_digest(file, "md5").hexdigest()
            places.add(cache / name[:2] / name[2:])
    return sorted(places)


def _lists(place: Path, corpus: str) -> bool:
    """Whether a list of a folder's files, as DVC keeps them, names files of a corpus."""
    try:
        listed = json.loads(place.read_bytes())
    except ValueError:
        return True  # written in part
    return any(str(one.get("relpath", "")).startswith(f"{corpus}/") for one in listed)
