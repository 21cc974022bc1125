"""Sound copies sent again; what this machine has none of taken out, so that others can send it."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from spanwise.errors import InputError, Unavailable
from spanwise.remotes.belonging import of_dvc
from spanwise.remotes.looking import Seen
from spanwise.remotes.named import DAMAGED, FOREIGN, MISSING, Fault
from spanwise.remotes.store import Store, holds

_AGAIN = "the same command goes on from there"


@dataclass(slots=True)
class Plan:
    """What a mend does.

    sent:    object -> its sound copy on this machine.
    lost:    faults that nothing here mends.
    held:    lists that are missing and not sent while what they name is lost, since DVC takes all
             that a list names for pushed.
    removed: objects that are taken out: damaged ones without a copy, the lists of folders that
             lack one, and foreign ones. Of all but the damaged a copy is put into the cache first.
    files:   the same of foreign files that are no objects of DVC 3's, by their path in the remote.
    refused: why what should be taken out is not.
    """

    sent: dict[str, Path] = field(default_factory=dict)
    lost: list[Fault] = field(default_factory=list)
    held: set[str] = field(default_factory=set)
    removed: set[str] = field(default_factory=set)
    files: dict[str, Path] = field(default_factory=dict)
    refused: dict[str, str] = field(default_factory=dict)


def plan(seen: Seen, remove: bool) -> Plan:
    """Sort faults by what this machine can do about them; each copy is hashed first."""
    from tqdm import tqdm

    made = Plan()
    for fault in tqdm(seen.faults, desc="look for sound copies", unit="object", disable=None):
        if fault.state == FOREIGN:
            if remove:
                _take_out(made, fault)
        elif path := _sound(seen.store, fault):
            made.sent[fault.oid] = path
        else:
            made.lost.append(fault)
            if remove:
                made.removed |= {fault.oid} if fault.state == DAMAGED else set()
                made.removed |= set(fault.named.lists if fault.named else ())
    missing = {fault.oid for fault in seen.faults if fault.state == MISSING}
    short = {oid for its in made.lost if its.named for oid in its.named.lists}
    made.held = short & missing & made.sent.keys()
    made.removed -= missing
    for oid in (made.removed | made.held) & made.sent.keys():
        del made.sent[oid]  # a list that is to go is not sent first
    return made


def _take_out(made: Plan, fault: Fault) -> None:
    if fault.file is None:
        made.removed.add(fault.oid)
    elif of_dvc(fault.oid):
        made.files[fault.oid] = fault.file
    else:
        made.refused[fault.oid] = "DVC did not put it there; move it yourself"


def carry_out(made: Plan, seen: Seen) -> list[str]:
    """Send and take out; what was sent is fetched once more and hashed.

    Of what no copy can be kept nothing is taken out: it goes from `removed` to `refused`.

    returns: the objects that are sound in the remote now.
    raises:  Unavailable where some could not be sent; InputError while DVC works on the project.
    """
    from dvc.lock import LockError

    store = seen.store
    damaged = {fault.oid for fault in seen.faults if fault.state == DAMAGED}
    try:
        with store.repo.lock:
            _keep(made, store, made.removed - damaged)
            store.remove(made.removed)
            for path in made.files.values():
                path.unlink(missing_ok=True)
            failed = store.put(made.sent, damaged & made.sent.keys())
        digests = store.digests(sorted(made.sent.keys() - failed.keys()))
    except LockError as error:
        raise InputError(f"DVC is at work on this project; wait for it ({error})") from None
    except Unavailable as error:
        raise Unavailable(f"{error}; {_AGAIN}") from None
    failed |= {oid: f"what came to lie there has the MD5 {digest}"
               for oid, digest in digests.items() if digest != oid.removesuffix(".dir")}
    if failed:
        raise Unavailable(
            f"remote {store.name} ({store.place}): {len(failed)} of {len(made.sent)} objects were "
            f"not sent ({next(iter(failed.values()))}); {_AGAIN}"
        )
    return sorted(made.sent)


def _keep(made: Plan, store: Store, oids: Collection[str]) -> None:
    """Put a copy of what is taken out into the cache, which may be the last."""
    made.refused |= store.keep(oids)
    made.refused |= {oid: why for oid, path in made.files.items()
                     if (why := store.keep_file(oid, path)) is not None}
    made.removed -= made.refused.keys()
    made.files = {oid: path for oid, path in made.files.items() if oid not in made.refused}


def advice(store: Store, lost: Sequence[Fault], removed: bool) -> list[str]:
    """What to do about objects without a sound copy here, by what makes them."""
    if not lost:
        return []
    stages = sorted({its.named.output.stage for its in lost if its.named and its.named.output.made})
    given = sorted({its.place for its in lost if its.named and not its.named.output.made})
    again = f"dvc push -r {store.name}"
    if not removed:
        again = f"spanwise remote mend --remote {store.name}"
    said = [f"whoever has a sound copy sends it: `{again}` in their clone"
            + ("" if removed else "; or take out what is damaged with --remove, and anyone's "
               f"`dvc push -r {store.name}` brings it")]
    if stages:
        said.append(f"if nobody has: `dvc repro {' '.join(stages)}` makes it again, at its cost")
    if given:
        said.append(f"if nobody has, lost for good, since no stage makes it: {', '.join(given)}")
    return said


def _sound(store: Store, fault: Fault) -> Path | None:
    """A copy on this machine that is what its name says: the cache's, or the file itself."""
    places = (store.kept(fault.oid), Path(store.repo.root_dir) / fault.place)
    return next((path for path in places if holds(path, fault.oid)), None)
