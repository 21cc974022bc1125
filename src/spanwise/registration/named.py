"""Which entry counts for a corpus, whatever it is called now.

A name is easily changed. What was seen of documents or of questions under one name was seen under
all, so a corpus is known by either digest as well.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from spanwise import layout
from spanwise.errors import RegistrationError
from spanwise.registration.entries import Entry

PARTS = ("documents", "questions")
"""Of whose digests either makes two corpora the same."""


@dataclass(frozen=True, slots=True)
class Counting:
    """The entry that counts for a corpus.

    index: of the entry, from 0.
    name:  what the corpus is called there.
    names: all that it is called in any entry, and its own name.
    known: its digests, and those that entries hold under any of its names, as (part, digest).
    """

    index: int
    name: str
    names: frozenset[str]
    known: frozenset[tuple[str, str]]


@dataclass(frozen=True, slots=True)
class Unseen:
    """A corpus that an entry names and that has no results here. entry: its number, from 1."""

    name: str
    entry: int
    demonstration: bool


def marks(its: Mapping[str, Any]) -> frozenset[tuple[str, str]]:
    """What a corpus is known by beside its name: (part, digest)."""
    return frozenset((part, its[part]) for part in PARTS if isinstance(its.get(part), str))


def counting(
    entries: list[Entry], corpus: str, digests: Mapping[str, Any]
) -> Counting | None:
    """The first entry that names a corpus, or holds the digest of its documents or its questions.

    Names and digests lead on to each other: a corpus that an amendment knows with other documents
    is still the one that the first entry named.

    returns: None where no entry knows it.
    """
    names, known = {corpus}, set(marks(digests))
    entered = [
        (i, name, marks(its))
        for i, entry in enumerate(entries) for name, its in entry["protocol"]["corpora"].items()
    ]
    size = 0
    while size < len(names) + len(known):
        size = len(names) + len(known)
        for _, name, held in entered:
            if name in names or held & known:
                names.add(name)
                known |= held
    first = next((i for i, name, _ in entered if name in names), None)
    if first is None:
        return None
    there = {name: held for i, name, held in entered if i == first and name in names}
    # Its own name, else the name under which most of it stands.
    called = max(there, key=lambda name: (name == corpus, len(there[name] & marks(digests))))
    return Counting(first, called, frozenset(names), frozenset(known))


def unseen(entries: list[Entry], here: Mapping[str, Mapping[str, Any]]) -> list[Unseen]:
    """Every corpus that an entry names and that has no results here, in the order of the entries.

    here: corpus -> its digests, of those with results.
    """
    seen = {(found.index, found.name) for corpus, digests in here.items()
            if (found := counting(entries, corpus, digests))}
    told: dict[str, Unseen] = {}
    for i, entry in enumerate(entries):
        for name, its in entry["protocol"]["corpora"].items():
            found = counting(entries, name, its)
            if name in here or (found and (found.index, found.name) in seen):
                continue
            told.setdefault(name, Unseen(name, i + 1, its.get("demonstration") is True))
    return list(told.values())


def known_here(corpus: str) -> frozenset[tuple[str, str]]:
    """What the artifacts of a corpus are known by: as it is parsed and asked, and as it had
    results, which may be older."""
    found: set[tuple[str, str]] = set()
    for stage in ("parse", "ask", "infer"):
        path = layout.stage(stage, corpus) / "report.json"
        if not path.exists():
            continue
        its = layout.read_report(path)
        if stage == "parse":  # what it read as questions is not yet what is asked
            its = its.get("study", {}).get("digests", {})
            found |= marks({key: its[key] for key in its if key == "documents"})
        else:
            found |= marks(its.get("digests", {}))
    return frozenset(found)


def names_here(counts: Counting) -> frozenset[str]:
    """All names of a corpus: those in entries, and those of artifacts here with its digests."""
    found = {
        folder.name
        for stage in ("parse", "ask", "infer") for folder in (layout.ARTIFACTS / stage).glob("*")
    }
    return counts.names | {name for name in found if known_here(name) & counts.known}


def ran_already(corpus: str, digests: Mapping[str, Any], embedder: str) -> str | None:
    """The name under which an embedder's vectors of a corpus lie here, its own first; or None.

    raises: RegistrationError if it cannot be told of what some vectors are.
    """
    there = sorted(
        path.parent.parent.name
        for path in (layout.ARTIFACTS / "embed").glob(f"*/{embedder}/vectors.parquet")
    )
    if corpus in there:
        return corpus
    for name in there:
        its = known_here(name)
        if not its:
            folder = layout.cell("embed", name, embedder)
            raise RegistrationError(
                f"{folder} holds vectors, and no report says of which documents and questions: "
                "they may be of what is to be registered; make the reports with `dvc repro parse "
                f"ask`, or remove {folder} if {name} is gone"
            )
        if its & marks(digests):
            return name
    return None
