"""What belongs into the remote that git tracks, and what lies in it that does not."""

from __future__ import annotations

import re
from collections.abc import Collection
from collections.abc import Set as AbstractSet
from pathlib import Path

from spanwise.remotes import bundled, settings
from spanwise.remotes.named import FOREIGN, Fault, Lists, Named, Output, members, objects
from spanwise.remotes.store import Store

_OBJECT = re.compile(r"files/md5/[0-9a-f]{2}/[0-9a-f]{30}(\.dir)?")
_DVC = re.compile(r"[0-9a-f]{2}/[0-9a-f]{30}(\.dir)?|runs/[0-9a-f]{2}/.+")
"""What else DVC puts into a remote: DVC 2's objects, and what stages ran with (`--run-cache`)."""
_ONCE = Output("", "the bundled corpus of an earlier commit", "", None)


def expected(folder: Path, outs: Collection[Output], lists: Lists) -> dict[str, Named]:
    """What must be there: what the remote's list names, else all objects of bundled corpora."""
    ours, listed = of_bundled(outs, lists), bundled.listed(folder)
    if listed is None:
        return ours
    return {oid: ours.get(oid, Named(oid, _ONCE.place, _ONCE)) for oid in sorted(listed)}


def of_bundled(outs: Collection[Output], lists: Lists) -> dict[str, Named]:
    """The objects of bundled corpora alone; what is about all corpora only if there is no other."""
    corpora = {bundled.corpus_of(its.place) for its in objects(outs, lists).values()} - {None}
    alone = corpora <= bundled.BUNDLED
    mixed = {
        out.oid for out in outs for relative in lists.get(out.oid, {})
        if bundled.corpus_of(f"{out.place}/{relative}") not in bundled.BUNDLED
    }

    def wanted(oid: str, place: str) -> bool:
        corpus = bundled.corpus_of(place)
        if corpus is not None:
            return corpus in bundled.BUNDLED
        return alone or (place == "data" and oid not in mixed)

    return objects(outs, lists, wanted)


def foreign(
    store: Store, folder: Path, outs: Collection[Output], lists: Lists
) -> list[Fault]:
    """Files that are there and are not of a bundled corpus.

    An object that no output names and git ignores is left out: an older run's, which nobody else
    gets; so is a file that git ignores and DVC did not put there.
    """
    everything = objects(outs, lists)
    ours = of_bundled(outs, lists).keys() | (bundled.listed(folder) or frozenset())
    taken = settings.exposed(folder, Path(store.repo.root_dir))
    found = []
    for oid in sorted(set(store.odb.all()) - ours):
        if _earlier(store, oid, ours):
            continue
        public = taken is None or Path(store.odb.oid_to_path(oid)).resolve() in taken
        if public or oid in everything:
            found.append(Fault(oid, FOREIGN, f"it is not of the bundled corpus; {_git(public)}",
                               everything.get(oid)))
    return found + _strays(folder, taken)


def _git(public: bool) -> str:
    return f"git {'has it or would take it' if public else 'ignores it, if nobody forces it in'}"


def of_dvc(relative: str) -> bool:
    """Whether a path inside a remote is one that DVC puts there, beside DVC 3's objects."""
    return _DVC.fullmatch(relative) is not None


def _strays(folder: Path, taken: AbstractSet[Path] | None) -> list[Fault]:
    """Files that are no objects of DVC 3's: all that git takes, and all that DVC put there."""
    top = folder.resolve()
    files = set(top.rglob("*")) if taken is None else {
        *(path for path in taken if path.is_relative_to(top)),
        *top.glob("[0-9a-f][0-9a-f]/*"), *top.glob("runs/**/*"),
    }
    found = []
    for path in sorted(path for path in files if path.is_file()):
        relative = path.relative_to(top).as_posix()
        dvcs, public = of_dvc(relative), taken is None or path in taken
        if relative == bundled.LIST or _OBJECT.fullmatch(relative) or not (dvcs or public):
            continue
        kind = "DVC 2 or a run cache put it there" if dvcs else "DVC did not put it there"
        found.append(Fault(relative, FOREIGN, f"it is not of the bundled corpus ({kind}); "
                           f"{_git(public)}", None, path))
    return found


def _earlier(store: Store, oid: str, ours: AbstractSet[str]) -> bool:
    """Whether an object is a list that names nothing but what belongs there."""
    if not oid.endswith(".dir"):
        return False
    try:
        return set(members(Path(store.odb.oid_to_path(oid)).read_bytes(), oid).values()) <= ours
    except (OSError, ValueError):
        return False

