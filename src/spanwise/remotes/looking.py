"""What is missing in a remote, or damaged there: by size, and by content where size cannot tell."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

from spanwise.remotes import belonging, settings
from spanwise.remotes.named import (
    DAMAGED,
    MISSING,
    Fault,
    Lists,
    Named,
    Output,
    members,
    objects,
    outputs,
)
from spanwise.remotes.store import GONE, Store, holds


@dataclass(slots=True)
class Seen:
    """What a look at a remote found.

    named:   every object that must be there.
    hashed:  how many were fetched whole and hashed.
    unsized: how many were found to be there and no more: no size of them is known here.
    notes:   what a person should know beside it.
    """

    store: Store
    named: dict[str, Named]
    faults: list[Fault] = field(default_factory=list)
    hashed: int = 0
    unsized: int = 0
    notes: list[str] = field(default_factory=list)


def look(store: Store, deep: bool) -> Seen:
    """Compare a remote with what dvc.lock and the .dvc files name.

    deep:   fetch and hash every object; else those alone whose size is not what it must be.
    raises: Unavailable where the remote does not answer.
    """
    outs, old = outputs(store.repo, store.name)
    lists, broken = _lists(store, outs)
    seen = _wanted(store, outs, lists)
    if old:
        seen.notes.append(f"{old} outputs are in DVC 2's form and were not looked at: `dvc commit` "
                          "writes them anew")
    there = store.sizes(seen.named)
    gone = dict.fromkeys(seen.named.keys() - there.keys(), "it is not there")
    suspects = there.keys() if deep else _suspects(seen, lists, there) | (
        broken.keys() & there.keys())
    digests = store.digests(sorted(suspects))
    gone |= {oid: "it is not there any more" for oid, digest in digests.items() if digest == GONE}
    seen.faults += [Fault(oid, MISSING, why, seen.named[oid]) for oid, why in gone.items()]
    seen.faults += [
        Fault(oid, DAMAGED, f"its {there[oid]} bytes have the MD5 {digest}", seen.named[oid])
        for oid, digest in digests.items()
        if oid not in gone and digest != oid.removesuffix(".dir")
    ]
    seen.hashed, seen.unsized = len(digests), 0 if deep else seen.unsized
    if unread := sorted(seen.named[oid].place for oid in broken.keys() & seen.named.keys()):
        seen.notes.append("the lists of these folders can be read neither here nor in the remote, "
                          f"so what is in them was not looked for: {', '.join(unread)}")
    seen.faults.sort(key=lambda fault: (fault.state, fault.place, fault.oid))
    return seen


def _wanted(store: Store, outs: Collection[Output], lists: Lists) -> Seen:
    """What must be there, and, where git tracks the remote, what must not."""
    folder = store.folder
    if folder is None or not settings.in_git(folder, Path(store.repo.root_dir)):
        return Seen(store, objects(outs, lists))
    seen = Seen(store, belonging.expected(folder, outs, lists))
    seen.faults = belonging.foreign(store, folder, outs, lists)
    seen.notes.append(f"git tracks {folder}: what the bundled corpus brings belongs there, and "
                      "nothing else")
    return seen


def _lists(
    store: Store, outs: Collection[Output]
) -> tuple[dict[str, dict[str, str]], dict[str, str]]:
    """The members of each folder, from the cache or else the remote; why others have none."""
    found: dict[str, dict[str, str]] = {}
    broken: dict[str, str] = {}
    for oid in sorted({out.oid for out in outs if out.folder}):
        try:
            found[oid] = members(store.kept(oid).read_bytes(), oid)
        except (OSError, ValueError):
            broken[oid] = "it is not there"
    for oid, content in store.contents(sorted(broken)).items():
        try:
            found[oid] = members(content, oid)
            del broken[oid]
        except ValueError as error:
            broken[oid] = str(error)
    return found, broken


def _suspects(seen: Seen, lists: Lists, there: Mapping[str, int]) -> set[str]:
    """Objects with a size that they cannot have, and those of no trusted size in a folder whose
    sizes do not add up. Counts in `unsized` those that nothing is known of.

    The cache's sizes are trusted where they add up to what is recorded of the folder; else each
    copy is hashed, since one may be cut just as in the remote.
    """
    recorded = {oid: its.output.size for oid, its in seen.named.items()
                if its.output.oid == oid and not its.output.folder and its.output.size is not None}
    inside = {oid for its in lists.values() for oid in its.values()}
    known = _cached(seen.store, seen.named.keys() | inside) | recorded
    found = {oid for oid, size in there.items() if known.get(oid, size) != size}
    doubted: set[str] = set()
    for out in {its.output.oid: its.output for its in seen.named.values()}.values():
        inner = list(lists.get(out.oid, {}).values())
        unknown = there.keys() & set(inner) - known.keys()
        if out.size is None:
            seen.unsized += len(unknown)
        elif sum(there.get(oid, 0) for oid in inner) != out.size:
            found |= unknown
            if sum(known.get(oid, 0) for oid in inner) != out.size:
                doubted |= there.keys() & set(inner) - recorded.keys() - found
    return found | {oid for oid in doubted if not holds(seen.store.kept(oid), oid)}


def _cached(store: Store, oids: Collection[str]) -> dict[str, int]:
    """Bytes of those objects that the cache has; they may be damaged there too."""
    found = {}
    for oid in oids:
        with suppress(OSError):
            found[oid] = store.kept(oid).stat().st_size
    return found
