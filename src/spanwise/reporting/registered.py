"""What only the registration itself tells: other names of corpora, and corpora without results."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from spanwise.registration import FILE, Unseen, counting, load, unseen
from spanwise.reporting.gather import CorpusRecord
from spanwise.reporting.markup import esc, tag

ABSENT = "absent"
"""In the place of a standing: there is nothing that could have one."""


@dataclass(frozen=True, slots=True)
class Registered:
    """Facts beside the standings, which `infer` gave.

    renamed: corpus -> (name in the entry that counts for it, number of the entry), where the name
             is another.
    unseen:  corpora that an entry names and that have no results here.
    left_out: corpora of params.yaml that have not run to their end -> why.
    """

    renamed: Mapping[str, tuple[str, int]] = field(default_factory=dict)
    unseen: Sequence[Unseen] = ()
    left_out: Mapping[str, str] = field(default_factory=dict)

    def sentence(self, corpus: str) -> str | None:
        """That a corpus was registered under another name; None where it was not."""
        if corpus not in self.renamed:
            return None
        name, entry = self.renamed[corpus]
        return f"Registered as {name} (entry {entry})."

    def part(self) -> str:
        """Lines for the page: no corpus is dropped in silence."""
        lines = [
            tag("p", esc(f"Left out, for it has not run to its end: {name} ({why})."),
                class_="quiet")
            for name, why in self.left_out.items()
        ]
        if self.unseen:
            names = ", ".join(f"{one.name} (entry {one.entry})" for one in self.unseen)
            lines.append(
                tag("p", esc(f"Registered, without results here: {names}."), class_="quiet")
            )
        return "".join(lines)

    def rows(self) -> list[list[Any]]:
        """Lines of standing.csv for corpora without results."""
        return [
            [one.name, ABSENT, "yes" if one.demonstration else "no", "yes",
             f"registered in entry {one.entry}, without results here"]
            for one in self.unseen
        ]


def registered(root: Path, records: Sequence[CorpusRecord]) -> Registered:
    """Hold the corpora of the report against the registration.

    root:   the project's folder.
    raises: RegistrationError if the file is not a registration.
    """
    entries = load(root / FILE)
    digests = {r.name: dict(r.reports)["infer"].get("digests", {}) for r in records}
    found = {name: counting(entries, name, its) for name, its in digests.items()}
    return Registered(
        {
            corpus: (its.name, its.index + 1)
            for corpus, its in found.items() if its is not None and its.name != corpus
        },
        unseen(entries, digests),
    )
