"""Whether a contrast comes out alike on several corpora; demonstrations are left out.

Only the primary cell counts, with the verdict of each corpus under its own Holm correction. Corpora
that share a document are no two corpora: the largest of them counts, the others are left out. Among
those where a contrast was estimated, in this order:

    replicated        it is equivalent in all of at least two
    corpus-dependent  two of them differ: |d1 - d2| / sqrt(se1^2 + se2^2) is above 1.96, one at
                      least is significant, and not both in the same direction
    replicated        it has the same sign in all and is significant in at least two
    underpowered      anything else: it is not settled

Significant is Holm's p below .05; equivalent is a 90% interval within the margin, where `judge`
lets that count. A difference in one corpus and equivalence in another may be one and the same
effect near the margin, so neither conflicts with the other unless the corpora differ. Two that both
show a difference in one direction agree on that, whatever its size. Each pair of corpora is held
against 1.96 by itself: among many corpora one pair in twenty lies beyond by chance. The published
study asked for significance in both of its two corpora, and called corpus-dependent what was
significant in one and not in the other, though a missing significance alone shows no dependence.
The rule itself was registered nowhere, so its word is exploratory whatever each corpus confirmed.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

from spanwise.params import Params
from spanwise.reporting.cells import cell_name, dense_cells
from spanwise.reporting.checks_tables import share
from spanwise.reporting.gather import CorpusRecord, Row
from spanwise.reporting.judgement import ZERO, Judgement, judge
from spanwise.reporting.markup import (
    NONE,
    count,
    esc,
    interval,
    listed,
    many,
    probability,
    signed,
    standing,
    tag,
)
from spanwise.reporting.tables import heads, number, table
from spanwise.reporting.verdict import contrast_rows, wording

Word = Literal["replicated", "corpus-dependent", "underpowered"]

LEAST = 2
"""Corpora that a replication takes."""

APART = 1.96
"""Standard errors between two corpora from which on they differ, at 5%."""

STANDING = "exploratory"
"""Of a word over corpora."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """One contrast on one corpus.

    row: of CONTRASTS; power: at the margin, None where it was not to be had; sign: +1, -1, or 0
    where there is none.
    """

    corpus: str
    row: Row
    says: Judgement
    power: float | None = None

    @property
    def estimated(self) -> bool:
        """Whether there is a figure."""
        return self.says.state != "absent"

    @property
    def significant(self) -> bool:
        """Holm's p is below .05."""
        return self.says.state in ("difference", "both")

    @property
    def equivalent(self) -> bool:
        """The 90% interval lies within the margin."""
        return self.says.state in ("equivalent", "both")

    @property
    def sign(self) -> int:
        """Of the difference."""
        delta = self.row["delta"] or 0.0
        return 0 if abs(delta) <= ZERO else 1 if delta > 0 else -1


@dataclass(frozen=True, slots=True)
class Replication:
    """One contrast over all corpora.

    outcomes: of every corpus that counts (`independent`), absent ones among them.
    word:     None below LEAST estimated outcomes; reason: in words, why this word.
    """

    name: str
    outcomes: Sequence[Outcome]
    word: Word | None
    reason: str


def replications(records: Sequence[CorpusRecord], params: Params) -> list[Replication]:
    """Every contrast of params.yaml."""
    cell = (params.primary.embedder, params.primary.reranker)
    found: dict[str, list[Outcome]] = {name: [] for name in params.contrasts}
    for record in independent(records, params)[0]:
        for row in contrast_rows(record, params, cell):
            if row["name"] in found:
                check = record.check(row)
                power = None if check is None else check["power"]
                found[row["name"]].append(
                    Outcome(record.name, row, judge(row, check, params), power)
                )
    made = []
    for name, outcomes in found.items():
        word, reason = verdict(outcomes)
        made.append(Replication(name, outcomes, word, reason))
    return made


def independent(
    records: Sequence[CorpusRecord], params: Params
) -> tuple[list[CorpusRecord], dict[str, str]]:
    """The corpora that count, in their order, and why others do not.

    No demonstration, the primary cell ran, and no document of the same text in two of them: of
    those that share one the largest counts, of equally large ones the first.

    returns: records; corpus -> with which it shares documents, as a phrase.
    """
    cell = (params.primary.embedder, params.primary.reranker)
    ran = [r for r in records if not r.demonstration and cell in dense_cells(r, params)]
    # Empty texts are equal everywhere.
    texts = {
        r.name: {d["body_sha256"] for d in r.documents.values() if d["words"]} for r in ran
    }
    kept: list[str] = []
    left: dict[str, str] = {}
    for record in sorted(ran, key=lambda r: -len(r.documents)):  # stable: the first stays first
        for other in kept:
            if common := len(texts[record.name] & texts[other]):
                left[record.name] = f"it shares {many(common, 'document')} with {other}"
                break
        else:
            kept.append(record.name)
    return [r for r in ran if r.name in kept], left


def _gap(one: Outcome, other: Outcome) -> float:
    """Between the differences of two corpora, in standard errors; 0 where they have none."""
    errors = [o.row["se"] for o in (one, other)]
    if not all(errors):
        return 0.0
    return abs(float(one.row["delta"] - other.row["delta"])) / math.hypot(*errors)


def _conflict(one: Outcome, other: Outcome) -> bool:
    """Whether two corpora differ, one of them with a difference to show that the other lacks."""
    alike = one.significant and other.significant and one.sign == other.sign
    return (one.significant or other.significant) and not alike and _gap(one, other) > APART


def verdict(outcomes: Sequence[Outcome]) -> tuple[Word | None, str]:
    """The word for one contrast, by the rules above, and why."""
    known = [o for o in outcomes if o.estimated]
    if len(known) < LEAST:
        has = f"only {known[0].corpus} has it" if known else "no corpus has it"
        return None, f"{has}, and a replication takes {LEAST}"
    shown = [o for o in known if o.significant]
    if all(o.equivalent for o in known):
        return "replicated", f"no difference that would matter on any of {len(known)} corpora"
    pairs = [two for two in itertools.combinations(known, 2) if _conflict(*two)]
    if pairs:
        one, other = max(pairs, key=lambda two: _gap(*two))
        return "corpus-dependent", (
            f"{_found(one)} and {_found(other)}, {_gap(one, other):.1f} standard errors apart"
        )
    if len({o.sign for o in known}) == 1 and known[0].sign and len(shown) >= LEAST:
        more = "" if len(shown) == len(known) else f", on {len(shown)} of them significant"
        return "replicated", f"the same sign on all {len(known)} corpora{more}"
    same = sum(o.equivalent for o in known)
    powers = listed([
        f"{'unknown' if o.power is None else share(o.power)} on {o.corpus}" for o in known
    ])
    return "underpowered", (
        f"not settled: of {len(known)} corpora significant on {len(shown) or 'none'}, equivalent "
        f"on {same or 'none'}; power at the margin {powers}"
    )


def _found(one: Outcome) -> str:
    return f"{signed(one.row['delta'])} ({one.says.words}) on {one.corpus}"


def _are(number: int) -> str:
    return "is" if number == 1 else "are"


def part(records: Sequence[CorpusRecord], params: Params) -> str:
    """The table for the page, or why there is none."""
    found = replications(records, params)
    usable = [r.name for r in records if not r.demonstration]
    cell = (params.primary.embedder, params.primary.reranker)
    ran = [r.name for r in records if not r.demonstration and cell in dense_cells(r, params)]
    kept, left = independent(records, params)
    apart = " ".join(f"Left out: {name}, for {why}." for name, why in left.items())
    if len(kept) < LEAST:
        shown = [r.name for r in records if r.demonstration]
        text = (
            f"Whether a result replicates takes at least {LEAST} corpora that are no "
            "demonstrations; here "
            + (f"{_are(len(usable))} {many(len(usable), 'such corpus', 'such corpora')} "
               f"({listed(usable)})." if usable else "is none.")
        )
        if shown:
            text += f" Left out as {_a(shown)}: {listed(shown)}."
        if len(ran) < len(usable):
            text += f" The primary cell, {cell_name(cell)}, ran on {count(len(ran))} of them."
        if apart:
            text += f" {apart} Corpora that share documents count as one."
        return tag("p", esc(text + " So nothing here is said to replicate."))
    columns = ["Corpus", "Sign", "Difference", "95% interval", "Holm p", "Power", "Verdict",
               "Standing"]
    draws, family = params.inference.iterations, len(params.contrasts)
    bodies, said = [], []
    for one in found:
        title = wording({"name": one.name, **_arms(one, params)}).title
        word = one.word or "not answered"
        said.append(tag("li", (
            f"{esc(one.name)}, {esc(title)}: <b>{esc(word)}</b>, {esc(one.reason)} "
            f"{standing(STANDING)}"
        )))
        head = tag("tr", tag(
            "th", f"{esc(one.name)} · {esc(word)}", scope="rowgroup", colspan=str(len(columns)),
        ), class_="cell")
        lines = []
        for o in one.outcomes:
            name = tag("th", esc(o.corpus), scope="row")
            if not o.estimated:
                reason = f"absent: {o.row['reason'] or 'no reason was recorded'}"
                lines.append(tag("tr", name + tag(
                    "td", esc(reason), colspan=str(len(columns) - 1), class_="absent")))
                continue
            row = o.row
            lines.append(tag("tr", name + number({1: "+", -1: "−", 0: "0"}[o.sign])
                + number(signed(row["delta"]), "strong")
                + number(interval(row["ci_low"], row["ci_high"]))
                + number(probability(row["p_holm"], draws, family))
                + number(NONE if o.power is None else share(o.power))
                + tag("td", esc(o.says.words)) + tag("td", standing(row["standing"]))))
        bodies.append(tag("tbody", head + "".join(lines)))
    note = f"{apart} Corpora that share documents count as one." if apart else ""
    return tag("ul", "".join(said)) + (tag("p", esc(note)) if note else "") + table(
        f"The contrasts over corpora, {esc(cell_name(cell))}; demonstrations are left out",
        heads(columns, over_words=("Verdict", "Standing")), "".join(bodies),
        label="Replication over corpora",
    )


def _a(shown: Sequence[str]) -> str:
    return "a demonstration" if len(shown) == 1 else "demonstrations"


def _arms(one: Replication, params: Params) -> dict[str, str]:
    a, b = params.contrasts[one.name]
    return {"a": a, "b": b}


COLUMNS = (
    "contrast", "a", "b", "replication", "why", "standing", "corpus", "corpus_standing", "status",
    "sign", "delta", "ci_low", "ci_high", "p_holm", "se", "power", "verdict",
)


def rows(records: Sequence[CorpusRecord], params: Params) -> list[list[Any]]:
    """Lines of replication.csv in the order of COLUMNS, one for each contrast and corpus."""
    return [
        [
            one.name, o.row["a"], o.row["b"], one.word, one.reason, STANDING, o.corpus,
            o.row["standing"] if o.estimated else "absent", o.row["status"],
            o.sign if o.estimated else None, o.row["delta"], o.row["ci_low"], o.row["ci_high"],
            o.row["p_holm"], o.row["se"], o.power, o.says.words,
        ]
        for one in replications(records, params) for o in one.outcomes
    ]
