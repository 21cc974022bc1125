"""`spanwise remote check` and `spanwise remote mend`: what they find and do, as text and JSON."""

from __future__ import annotations

import json
from collections import Counter
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from spanwise.remotes import mending
from spanwise.remotes.looking import Seen, look
from spanwise.remotes.named import FOREIGN, Fault
from spanwise.remotes.store import opened

SHOWN = 20
"""Lines of faults in a text; JSON has all."""


@dataclass(frozen=True, slots=True)
class Result:
    """What was found, and what was or would be done.

    left:  faults that are there still.
    lines: what is said below them.
    """

    seen: Seen
    deep: bool
    left: tuple[Fault, ...]
    actions: dict[str, str]
    lines: tuple[str, ...]

    @property
    def fine(self) -> bool:
        return not self.left

    @property
    def text(self) -> str:
        """A line for each fault, what to do, and what was looked at."""
        faults = self.seen.faults
        said = [f"{its.state:<8}{its.place}: {its.said} ({its.oid})"
                + (f": {self.actions[its.oid]}" if its.oid in self.actions else "")
                for its in faults[:SHOWN]]
        if len(faults) > SHOWN:
            said.append(f"{'':<8}and {len(faults) - SHOWN} more; --json names each")
        said += [f"{'':<8}-> {line}" for line in self.lines]
        return "\n".join([*said, self._summary()])

    def _summary(self) -> str:
        seen, store = self.seen, self.seen.store
        states = Counter(its.state for its in seen.faults)
        count = ", ".join(f"{number} {state}" for state, number in sorted(states.items()))
        if mended := len(seen.faults) - len(self.left):
            count += f": {mended} mended, {len(self.left)} left"
        how = "each fetched and hashed" if self.deep else (
            f"sizes compared, {seen.hashed} fetched and hashed; --deep hashes each")
        if seen.unsized:
            how += f"; of {seen.unsized} no size is known here"
        return (f"{store.name} ({store.place}): {len(seen.named)} objects, "
                f"{count or 'all there'} ({how})")

    def as_json(self) -> str:
        """`faults` with what was done about each, `left` of them, counts, and notes."""
        seen = self.seen
        left = {its.oid for its in self.left}
        return json.dumps({
            "remote": seen.store.name, "place": seen.store.place, "fine": self.fine,
            "objects": len(seen.named), "deep": self.deep, "hashed": seen.hashed,
            "unsized": seen.unsized,
            "faults": [self._row(its, its.oid in left) for its in seen.faults],
            "advice": list(self.lines), "notes": seen.notes,
        }, indent=1, ensure_ascii=False)

    def _row(self, fault: Fault, left: bool) -> dict[str, Any]:
        output = fault.named.output if fault.named else None
        return {
            "object": fault.oid, "place": fault.place, "state": fault.state, "said": fault.said,
            "output": output.place if output else None, "stage": output.stage if output else None,
            "done": self.actions.get(fault.oid), "left": left,
        }


def check(name: str | None = None, deep: bool = False, root: Path | None = None) -> Result:
    """Compare a remote with what is named; nothing is written.

    raises: InputError for a remote that is none; Unavailable where it does not answer.
    """
    store = opened(root or Path(), name)
    with closing(store.repo):
        seen = look(store, deep)
    remote = seen.store.name
    lines = []
    if any(its.state != FOREIGN for its in seen.faults):
        lines.append(f"spanwise remote mend --remote {remote}{' --deep' if deep else ''} sends "
                     "what this machine has sound copies of")
    lines += _about_foreign(seen, False)
    return Result(seen, deep, tuple(seen.faults), {}, tuple(lines))


def mend(
    name: str | None = None, deep: bool = False, remove: bool = False, dry_run: bool = False,
    root: Path | None = None,
) -> Result:
    """Send sound copies of what is missing or damaged.

    remove:  take out damaged objects without one, the lists that name them, and foreign objects;
             lists and foreign objects only after a copy of each is in the cache.
    raises:  InputError for a remote that is none; Unavailable where it does not answer, or took
             less than all of it.
    """
    store = opened(root or Path(), name)
    with closing(store.repo):
        seen = look(store, deep)
        made = mending.plan(seen, remove)
        done = set(made.sent) if dry_run else set(mending.carry_out(made, seen))
    would = "would be " if dry_run else ""
    actions = dict.fromkeys(made.sent, f"{would}sent again from this machine")
    out = made.removed | made.files.keys()
    actions |= dict.fromkeys(out, f"{would}taken out")
    gone = {its.oid for its in seen.faults if its.state == FOREIGN} & out
    actions |= dict.fromkeys(gone, f"{would}taken out, a copy is kept in the cache")
    actions |= dict.fromkeys(made.held, "not sent while what it names is not all there")
    actions |= {oid: f"not taken out: {why}" for oid, why in made.refused.items()}
    actions |= {its.oid: "no sound copy on this machine" + (
        f", {would}taken out" if its.oid in made.removed else "") for its in made.lost}
    left = seen.faults if dry_run else [
        its for its in seen.faults if its.oid not in done and its.oid not in gone]
    lines = mending.advice(seen.store, made.lost, remove and not dry_run)
    faults = {its.oid for its in seen.faults}
    if lists := made.removed - faults:
        lines.append(f"{len(lists)} lists of folders {would or 'were '}taken out too, a copy of "
                     "each is kept in the cache: without them a push looks at every object")
    lines += [f"the list {oid} is not taken out: {why}"
              for oid, why in sorted(made.refused.items()) if oid not in faults]
    return Result(seen, deep, tuple(left), actions, (*lines, *_about_foreign(seen, remove)))


def _about_foreign(seen: Seen, remove: bool) -> list[str]:
    folder = seen.store.folder
    if not any(its.state == FOREIGN for its in seen.faults) or folder is None:
        return []
    said = [f"what git has of it stays in its history: git rm -r --cached {folder}/..., "
            "and before a push of git, undo the commits that brought it"]
    if not remove:
        said.insert(0, f"spanwise remote mend --remote {seen.store.name} --remove takes out what "
                    "is foreign")
    return said
