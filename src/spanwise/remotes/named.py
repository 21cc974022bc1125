"""The objects that dvc.lock and the .dvc files name, as DVC itself reads them."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

_OID = re.compile(r"[0-9a-f]{32}")


@dataclass(frozen=True, slots=True)
class Output:
    """What a stage or a .dvc file names.

    oid:   MD5 of its content; with `.dir` at the end, of the list of a folder's files.
    size:  bytes of the file, or of all files of the folder; None where that is not recorded.
    stage: as `dvc repro` takes it, e.g. `induce@handbook`; a .dvc file where nothing makes it.
    """

    oid: str
    place: str
    stage: str
    size: int | None

    @property
    def made(self) -> bool:
        """Whether a command makes it again."""
        return not self.stage.endswith(".dvc")

    @property
    def folder(self) -> bool:
        return self.oid.endswith(".dir")


@dataclass(slots=True)
class Named:
    """An object that must be in the remote.

    place: the first file or folder that has it.
    lists: the `.dir` objects that name it.
    """

    oid: str
    place: str
    output: Output
    lists: tuple[str, ...] = ()


MISSING, DAMAGED, FOREIGN = "missing", "damaged", "foreign"


@dataclass(frozen=True, slots=True)
class Fault:
    """What is wrong with one object of a remote.

    state: `missing`; `damaged`: it is there with another content; `foreign`: it lies in a remote
           that git tracks, and is not of the bundled corpus.
    said:  what was found.
    named: what must be there; None for what nothing names now.
    file:  the file itself where it is no object of DVC 3's; `oid` is then its path in the remote.
    """

    oid: str
    state: str
    said: str
    named: Named | None
    file: Path | None = None

    @property
    def place(self) -> str:
        return self.named.place if self.named else "no output of now"


Lists = Mapping[str, Mapping[str, str]]
"""`.dir` object -> relative path -> object."""


def outputs(repo: Any, remote: str) -> tuple[list[Output], int]:
    """The outputs that a push to a remote takes, sorted by place.

    repo:    dvc.repo.Repo.
    returns: also how many outputs are of DVC 2's form, which this room does not look at.
    """
    root, found, old = Path(repo.root_dir), [], 0
    for out in repo.index.outs:
        if not out.hash_info or not out.use_cache or not out.can_push:
            continue
        if out.remote not in (None, remote):
            continue
        if out.hash_info.name != "md5":
            old += 1
            continue
        place = Path(out.fs_path).relative_to(root).as_posix()
        found.append(Output(out.hash_info.value, place, out.stage.addressing,
                            out.meta.size if out.meta else None))
    return sorted(found, key=lambda its: its.place), old


def members(content: bytes, oid: str) -> dict[str, str]:
    """Relative path -> object of a `.dir` object.

    raises: ValueError if it is not the list that its name says.
    """
    if f"{hashlib.md5(content).hexdigest()}.dir" != oid:
        raise ValueError(f"its content has the MD5 {hashlib.md5(content).hexdigest()}")
    entries = json.loads(content)
    try:
        found = {str(entry["relpath"]): str(entry["md5"]) for entry in entries}
    except (KeyError, TypeError) as error:
        raise ValueError(f"an entry without `relpath` and `md5`: {error}") from None
    if wrong := next((oid for oid in found.values() if not _OID.fullmatch(oid)), None):
        raise ValueError(f"{wrong!r} is no MD5")
    return found


def objects(
    outs: Iterable[Output], lists: Lists, wanted: Callable[[str, str], bool] | None = None,
) -> dict[str, Named]:
    """Every object of the outputs, those in folders too.

    lists:  of those folders whose list could be read.
    wanted: by object and place, which of them [all].
    """
    found: dict[str, Named] = {}

    def add(oid: str, place: str, out: Output, of: str | None) -> None:
        if wanted is not None and not wanted(oid, place):
            return
        its = found.setdefault(oid, Named(oid, place, out))
        if of is not None and of not in its.lists:
            its.lists += (of,)

    for out in outs:
        add(out.oid, out.place, out, None)
        for relative, oid in lists.get(out.oid, {}).items():
            add(oid, f"{out.place}/{relative}", out, out.oid)
    return found
