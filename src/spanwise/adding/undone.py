"""What makes `spanwise add` whole: one at a time, and when it fails everything as it was before.

A process that is killed outright cannot tidy up. It leaves a note of the corpus in its scratch
folder, by which the next one knows it.
"""

from __future__ import annotations

import errno
import fcntl
import hashlib
import json
import shutil
import signal
import tempfile
from collections.abc import Container, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from types import FrameType

from spanwise.adding import tracked
from spanwise.errors import CorpusError, InputError

_SCRATCH = Path(".dvc/tmp")
_PREFIX = "adding-"
_NOTE = "corpus"
_FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
_SIGNALS = (signal.SIGTERM, signal.SIGHUP)


def require_none_left(root: Path, entered: Container[str]) -> None:
    """Raise CorpusError where an add was killed after it had copied its corpus to data/.

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
    with (place / "adding.lock").open("w", encoding="utf-8") as lock, _stopped_by_signals():
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise InputError(
                "another `spanwise add` runs in this project; wait until it has ended"
            ) from None
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


@contextmanager
def _stopped_by_signals() -> Iterator[None]:
    """Let what asks a process to end unwind it as an interruption from the keyboard does."""
    def stop(number: int, _: FrameType | None) -> None:
        raise SystemExit(128 + number)

    before = {}
    with suppress(ValueError):  # a thread other than the first may set no handler
        before = {number: signal.signal(number, stop) for number in _SIGNALS}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


@contextmanager
def restored(root: Path, paths: Sequence[Path], target: Path, staged: Path) -> Iterator[None]:
    """If the block fails, for whatever reason: all as it was before.

    paths:  files that have their content again, or are gone again.
    target: a folder that is gone again.
    staged: what the target will hold; DVC's cache loses what it gained by it.
    """
    before = {path: path.read_bytes() if path.is_file() else None for path in paths}
    made_parent = not target.parent.exists()
    cache = tracked.cache(root)
    objects = _objects(cache, staged)
    there = {place for place in objects if place.exists()} | _others(cache, objects)
    try:
        yield
    except BaseException:
        shutil.rmtree(target, ignore_errors=True)
        if made_parent:
            with suppress(OSError):  # it came with files of another
                target.parent.rmdir()
        # On a full disk what was copied goes first: the rest has to be written.
        for place in {*objects, *_others(cache, objects)} - there:
            if place.suffix != ".dir" or _lists(place, target.name):
                with suppress(OSError):  # it never was, or others lie beside it
                    place.unlink(missing_ok=True)
                    place.parent.rmdir()
        for path, content in before.items():
            if content is None:
                path.unlink(missing_ok=True)
            elif path.read_bytes() != content:
                path.write_bytes(content)
        raise


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
