"""`spanwise register`: make, show, check and amend."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from spanwise import layout
from spanwise.documents.records import load_questions
from spanwise.errors import InputError, RegistrationError
from spanwise.params import Params
from spanwise.registration import proof
from spanwise.registration.compared import counting, explored, short, standing, word
from spanwise.registration.entries import FILE, Entry, edited, load, register

ASKED = "dvc repro parse ask"


def digests_of(corpus: str) -> dict[str, str]:
    """SHA-256 of a corpus's documents and of the questions that are asked about them.

    raises: InputError if `parse` or `ask` has not run.
    """
    parsed = layout.read_report(layout.stage("parse", corpus) / "report.json", ASKED)
    asked = layout.read_report(layout.stage("ask", corpus) / "report.json", ASKED)
    return {
        "documents": parsed["study"]["digests"]["documents"],
        "questions": asked["digests"]["questions"],
    }


def documents_of(corpus: str) -> int | None:
    """Documents with questions that are compared; None before `chunk`, which leaves some out."""
    chunked = layout.stage("chunk", corpus) / "report.json"
    if not chunked.exists():
        return None
    unusable = layout.read_report(chunked)["unusable_induced_trees"]
    questions = load_questions(layout.stage("ask", corpus), unusable)
    rows = questions.select(["doc_id", "excluded", "base"]).to_pylist()
    return len({r["doc_id"] for r in rows if r["excluded"] is None and r["base"] is None})


def register_now(params: Params, reason: str) -> str:
    """Register the corpora of params.yaml, parsed and asked, at the current commit.

    returns: what to do next.
    raises:  RegistrationError outside a git repository; InputError if `parse` or `ask` has not run
             on a corpus.
    """
    found = {corpus: digests_of(corpus) for corpus in params.corpora}
    head = proof.git(Path(), "rev-parse", "HEAD")
    if head.returncode:
        raise RegistrationError(
            "no commit to register against; a registration proves its time by git: commit first"
        )
    named = {corpus for entry in load() for corpus in entry["protocol"]["corpora"]}
    late = [
        corpus
        for corpus in params.corpora
        if corpus not in named
        and (layout.cell("embed", corpus, params.primary.embedder) / "vectors.parquet").exists()
    ]
    register(params, found, head.stdout.strip(), reason, too_late=late)
    commit = f"  git add {FILE} && git commit -m 'Register the protocol'"
    if late:
        return (
            f"{FILE} written, but {params.primary.embedder} has run already on {', '.join(late)}: "
            f"their results stay exploratory. Commit it all the same:\n{commit}"
        )
    return (
        f"{FILE} written for {', '.join(found)}; commit it before the strong embedder runs:\n"
        f"{commit}"
    )


def amend(params: Params, reason: str) -> str:
    """Append an entry to a registration that has one.

    returns: what to do next.
    raises:  RegistrationError without a reason or an entry; see `register_now`.
    """
    if not reason.strip():
        raise RegistrationError("an amendment needs a reason: --reason WHY")
    if not load():
        raise RegistrationError(
            f"{FILE} has no entry to amend; make the first with `spanwise register make`"
        )
    return register_now(params, reason)


def checked(params: Params, path: Path = FILE) -> tuple[str, bool]:
    """Each corpus's standing with every difference, and what git proves of its entry.

    returns: lines to read; whether nothing deviates and git proves the order.
    raises:  RegistrationError if the file is not a registration.
    """
    entries = load(path)
    lines = [f"{path}: {why}" for _, why in edited(entries)]
    fine = not lines
    for corpus in params.corpora:
        try:
            found = standing(params, corpus, digests_of(corpus), path, documents_of(corpus))
        except RegistrationError:
            raise
        except InputError as error:
            lines.append(f"{corpus}: cannot be compared: {error}")
            fine = False
            continue
        lines.append(f"{corpus}: {found.word}")
        lines += [f"  {difference}" for difference in found.differences]
        fine = fine and not found.differences
        counts = counting(entries, corpus)
        if counts is None:
            continue
        lines += [f"  note: {note}" for note in explored(params, entries[counts])]
        proven = proof.proof(entries[counts], corpus, path)
        lines += [f"  git: entry {counts + 1}: {line}" for line in proven.lines]
        fine = fine and proven.proven
    return "\n".join(lines), fine


def as_json(path: Path = FILE) -> str:
    """The entries as they stand, each with its number and why it is not as it was written."""
    entries = load(path)
    why = dict(edited(entries))
    return json.dumps(
        {"entries": [
            {"number": i + 1, "edited": why.get(i), **entry} for i, entry in enumerate(entries)
        ]},
        indent=2, ensure_ascii=False,
    )


def shown(path: Path = FILE) -> str:
    """Each entry in plain words."""
    entries = load(path)
    if not entries:
        return f"{path}: nothing is registered; `spanwise register make` makes the first entry"
    why = dict(edited(entries))
    return "\n\n".join(
        "\n".join(_entry(i, entry, why.get(i), entries)) for i, entry in enumerate(entries)
    )


def _entry(i: int, entry: Entry, edit: str | None, entries: list[Entry]) -> Iterator[str]:
    fixed, rest = entry["protocol"], dict(entry["protocol"])
    yield f"entry {i + 1}: {word(entry['reason'])}"
    yield f"  written after commit {short(entry['parent_commit'])}"
    held = "sha256" in entry
    yield "  digest: " + (
        edit or (short(entry["sha256"]) if held else "none, it is older than digests; git alone "
                 "proves it")
    )
    primary = rest.pop("primary", {})
    yield f"  primary cell: {_settings(primary)}"
    yield f"  contrasts: {_pairs(rest.pop('contrasts', {}))}"
    inference = rest.pop("inference", {})
    yield f"  smallest effect of interest: ±{word(inference.get('margin'))}"
    yield f"  draws: {word(inference.get('iterations'))}"
    yield "  seeds: " + ", ".join(f"{place} {word(seed)}" for place, seed in _seeds(fixed, ""))
    yield from _rules(rest.pop("statistics", None))
    explored = rest.pop("exploratory", {}).get("steps")
    if isinstance(explored, Mapping):
        yield f"  exploratory: {_pairs(explored)}"
    yield f"  measures: {word(rest.pop('measures', []))}"
    yield "  excluded:"
    yield from (f"    {word(reason)}" for reason in rest.pop("exclusions", []))
    yield "  conditions:"
    yield from (f"    {n}: {_settings(its)}" for n, its in rest.pop("conditions", {}).items())
    yield "  corpora:"
    for name, its in rest.pop("corpora").items():
        yield f"    {name}: {_settings(its, digests=True)}"
        if name in entry.get("too_late", ()):
            yield "      registered after the strong embedder had run on it: it confirms nothing"
        elif counting(entries, name) != i:
            yield f"      entry {(counting(entries, name) or 0) + 1} names it first, and counts"
    yield "  also fixed:"
    yield from (f"    {part}: {_settings(its)}" for part, its in rest.items())


def _rules(rules: Any) -> Iterator[str]:
    """The rules of the statistics, a line for each."""
    if rules is None:
        yield "  rules of the statistics: none, it is older than they are"
        return

    def at(part: str, name: str) -> str:
        its = rules.get(part)
        return word(its.get(name) if isinstance(its, Mapping) else None)

    yield f"  significance: {word(rules.get('significance'))} over the family of contrasts, " + (
        f"by {at('family', 'method').capitalize()} with m = {at('family', 'm')}"
    )
    yield (
        f"  interval of record: {at('interval', 'method')}, level {at('interval', 'level')}; below "
        f"{at('interval', 'few_documents')} documents {at('interval', 'below')}"
    )
    yield (
        f"  equivalence: {at('equivalence', 'method')}, level {at('equivalence', 'level')}, "
        f"margin ±{at('equivalence', 'margin')}"
    )
    yield (
        f"  power: {at('power', 'power')}, for a difference of {at('power', 'effect')} at "
        f"alpha {at('power', 'alpha')}"
    )


def _pairs(pairs: Mapping[str, Any]) -> str:
    return ", ".join(
        f"{name} = {its[0]} − {its[1]}" if isinstance(its, list) and len(its) == 2
        else f"{name} = {word(its)}"
        for name, its in pairs.items()
    ) or "none"


def _settings(its: Any, digests: bool = False) -> str:
    """Settings in a line: `name value`, inner ones in brackets; digests are shortened."""
    if not isinstance(its, Mapping):
        return word(its)
    return ", ".join(
        f"{name} {short(value)}…" if digests and name in ("documents", "questions")
        else f"{name} ({_settings(value)})" if isinstance(value, Mapping) and value
        else f"{name} none" if value in ({}, [], "", None)
        else f"{name} {word(value)}"
        for name, value in its.items()
    )


def _seeds(value: Any, place: str) -> Iterator[tuple[str, Any]]:
    """Every seed inside a protocol, by the place where it stands."""
    if isinstance(value, Mapping):
        for name, inner in value.items():
            if name == "seed":
                yield place, inner
            else:
                yield from _seeds(inner, f"{place}.{name}" if place else str(name))
