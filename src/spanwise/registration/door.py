"""`spanwise register`: make, show, check and amend."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from spanwise import layout
from spanwise.documents.records import load_questions
from spanwise.errors import InputError, RegistrationError
from spanwise.params import Params
from spanwise.registration import proof, weights
from spanwise.registration.compared import explored, short, standing, word
from spanwise.registration.entries import FILE, Entry, edited, load, register
from spanwise.registration.named import counting, names_here, ran_already, unseen

ASKED = "dvc repro parse ask"


def digests_of(corpus: str) -> dict[str, str]:
    """`layout.digests`, with the command for whoever registers."""
    return layout.digests(corpus, ASKED)


def documents_of(corpus: str) -> int | None:
    """Documents with questions that are compared; None before `chunk`, which leaves some out."""
    chunked = layout.stage("chunk", corpus) / "report.json"
    if not chunked.exists():
        return None
    unusable = layout.read_report(chunked)["unusable_induced_trees"]
    questions = load_questions(layout.stage("ask", corpus), unusable)
    rows = questions.select(["doc_id", "excluded", "base"]).to_pylist()
    return len({r["doc_id"] for r in rows if r["excluded"] is None and r["base"] is None})


def register_now(
    params: Params, reason: str, dry_run: bool = False, encoder: Path | None = None
) -> str:
    """Register the corpora of params.yaml, parsed and asked, at the current commit.

    dry_run: check all, write nothing, and show the entry.
    encoder: the folder of the strong embedder, whose weights' digests go into the entry; None where
             it is not on this machine.
    returns: what to do next.
    raises:  RegistrationError outside a git repository, or if it cannot be told on what the strong
             embedder has run; InputError if `parse` or `ask` has not run on a corpus.
    """
    found = {corpus: digests_of(corpus) for corpus in params.corpora}
    head = proof.git(Path(), "rev-parse", "HEAD")
    if head.returncode:
        raise RegistrationError(
            "no commit to register against; a registration proves its time by git: commit first"
        )
    entries = load()
    embedder = params.primary.embedder
    late = {
        corpus: name
        for corpus, digests in found.items()
        # What an entry knows already is held against that entry, whatever this one says.
        if counting(entries, corpus, digests) is None
        and (name := ran_already(corpus, digests, embedder)) is not None
    }
    entry = register(
        params, found, head.stdout.strip(), reason, too_late=late, dry_run=dry_run,
        weights=None if encoder is None else weights.digests(encoder),
    )
    if dry_run:
        shown = _entry(len(entries), entry, None, [*entries, entry])
        return "\n".join([*shown, f"{FILE} is as it was: this was a dry run"])
    commit = f"  git add {FILE} && git commit -m 'Register the protocol'"
    if late:
        named = ", ".join(
            corpus if corpus == name else f"{corpus} (as {name})" for corpus, name in late.items()
        )
        return (
            f"{FILE} written, but {embedder} has run already on {named}: "
            f"their results stay exploratory. Commit it all the same:\n{commit}"
        )
    known = [c for c, digests in found.items() if counting(entries, c, digests) is not None]
    if len(known) == len(found):
        return (
            f"{FILE} amended; of {', '.join(known)} the first entry still counts, and what this "
            f"one changes is a deviation. Commit it:\n{commit}"
        )
    return (
        f"{FILE} written for {', '.join(c for c in found if c not in known)}; commit it before the "
        f"strong embedder runs:\n{commit}"
    )


def amend(
    params: Params, reason: str, dry_run: bool = False, encoder: Path | None = None
) -> str:
    """Append an entry to a registration that has one.

    dry_run, encoder: as in `register_now`.
    returns: what to do next.
    raises:  RegistrationError without a reason or an entry; see `register_now`.
    """
    if not reason.strip():
        raise RegistrationError("an amendment needs a reason: --reason WHY")
    if not load():
        raise RegistrationError(
            f"{FILE} has no entry to amend; make the first with `spanwise register make`"
        )
    return register_now(params, reason, dry_run, encoder)


@dataclass(frozen=True, slots=True)
class Checked:
    """What a check found. fine: nothing deviates, and git proves the order."""

    fine: bool
    text: str
    data: Mapping[str, Any]

    def as_json(self) -> str:
        return json.dumps(self.data, indent=2, ensure_ascii=False)


def check(params: Params, path: Path = FILE, encoder: Path | None = None) -> Checked:
    """Each corpus's standing with every difference, and what git proves of its entry; beside them
    the corpora that an entry names and that have no results here.

    encoder: the folder of the strong embedder, None where it is not on this machine.
    raises:  RegistrationError if the file is not a registration.
    """
    entries = load(path)
    broken = [why for _, why in edited(entries)]
    lines = [f"{path}: {why}" for why in broken]
    fine, corpora = not broken, {}
    here: dict[str, Mapping[str, str]] = {}
    compared = _Weights(params, encoder)
    for corpus in params.corpora:
        resulted = (layout.stage("infer", corpus) / "report.json").exists()
        try:
            digests = digests_of(corpus)
            found = standing(params, corpus, digests, path, documents_of(corpus))
        except RegistrationError:
            raise
        except InputError as error:
            lines.append(f"{corpus}: cannot be compared: {error}")
            corpora[corpus] = {"standing": None, "reason": str(error)}
            fine = False
            if resulted:
                here[corpus] = {}
            continue
        if resulted:
            here[corpus] = digests
        head = len(lines)
        lines.append(f"{corpus}: {found.word}")
        lines += [f"  {difference}" for difference in found.differences]
        fine = fine and not found.differences
        counts = counting(entries, corpus, digests)
        its: dict[str, Any] = {
            "standing": found.word, "differences": list(found.differences),
            "entry": None, "registered_as": None, "weights": [], "notes": [], "proven": None,
            "git": [],
        }
        corpora[corpus] = its
        if counts is None:
            continue
        entry, number = entries[counts.index], counts.index + 1
        if counts.name != corpus:
            lines.append(f"  registered as {counts.name} in entry {number}")
        other, notes = compared.with_entry(entry)
        notes = [*explored(params, entry), *notes]
        proven = proof.proof(entry, names_here(counts), path)
        if not proven.proven and not found.differences:
            lines[head] += " by its settings; that they came first is not proven"
        lines += [f"  {difference}" for difference in other]
        lines += [f"  note: {note}" for note in notes]
        lines += [f"  git: entry {number}: {line}" for line in proven.lines]
        its |= {"entry": number, "registered_as": counts.name, "weights": other, "notes": notes,
                "proven": proven.proven, "git": list(proven.lines)}
        fine = fine and proven.proven and not other
    without = unseen(entries, here)
    lines += [f"registered, without results here: {one.name} (entry {one.entry})"
              for one in without]
    data = {
        "fine": fine, "edited": broken, "corpora": corpora,
        "without_results": [{"corpus": one.name, "entry": one.entry} for one in without],
    }
    return Checked(fine, "\n".join(lines), data)


class _Weights:
    """The strong embedder's weights on this machine, read once and only if an entry has some."""

    def __init__(self, params: Params, encoder: Path | None) -> None:
        self._model = params.embedders[params.primary.embedder].model
        self._encoder = encoder
        self._here: dict[str, str] | None = None

    def with_entry(self, entry: Entry) -> tuple[list[str], list[str]]:
        """Differences from an entry's weights; notes where they cannot be compared."""
        registered = entry.get("weights")
        # Another model is a difference of its own.
        if not registered or entry["protocol"].get("embedder", {}).get("model") != self._model:
            return [], []
        if self._encoder is None:
            return [], [f"weights of {self._model} are not on this machine, and not compared"]
        if self._here is None:
            self._here = weights.digests(self._encoder)
        return weights.differences(registered, self._here), []


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
    if entry.get("weights"):
        yield "  weights: " + ", ".join(
            f"{word(name)} {short(its)}…" for name, its in entry["weights"].items()
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
        elif (first := counting(entries, name, its)) is not None and first.index != i:
            called = "" if first.name == name else f", as {first.name}"
            yield f"      entry {first.index + 1} names it first{called}, and counts"
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
