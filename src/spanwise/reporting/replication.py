"""Whether a contrast comes out alike on several corpora; demonstrations are left out.

Only the primary cell counts, with the verdict of each corpus under its own Holm correction. Among
the corpora where a contrast was estimated, in this order:

    corpus-dependent  it is significant in opposite directions, or a difference in one and
                      equivalent in another
    replicated        it has the same sign in all and is significant in at least two; or it is
                      equivalent in all of at least two
    underpowered      anything else: nothing conflicts, and too little was shown

Significant is Holm's p below .05; equivalent is a 90% interval within the margin; a contrast that
is both counts as significant, and conflicts with no equivalence. The published study asked for more
and less: for significance in both of its two corpora, and it called corpus-dependent what was
significant in one and not in the other, though a missing significance alone shows no dependence.
The rule itself was registered nowhere, so its word is exploratory whatever each corpus confirmed.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

from spanwise.params import Params
from spanwise.reporting.cells import cell_name, dense_cells
from spanwise.reporting.gather import CorpusRecord, Row
from spanwise.reporting.judgement import ZERO, Judgement, judge
from spanwise.reporting.markup import (
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

STANDING = "exploratory"
"""Of a word over corpora."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """One contrast on one corpus. row: of CONTRASTS; sign: +1, -1, or 0 where there is none."""

    corpus: str
    row: Row
    says: Judgement

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

    outcomes: of every corpus whose primary cell ran, absent ones among them.
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
    for record in records:
        if record.demonstration or cell not in dense_cells(record, params):
            continue
        for row in contrast_rows(record, params, cell):
            if row["name"] in found:
                says = judge(row, record.check(row), params)
                found[row["name"]].append(Outcome(record.name, row, says))
    made = []
    for name, outcomes in found.items():
        word, reason = verdict(outcomes)
        made.append(Replication(name, outcomes, word, reason))
    return made


def verdict(outcomes: Sequence[Outcome]) -> tuple[Word | None, str]:
    """The word for one contrast, by the rules above, and why."""
    known = [o for o in outcomes if o.estimated]
    if len(known) < LEAST:
        has = f"only {known[0].corpus} has it" if known else "no corpus has it"
        return None, f"{has}, and a replication takes {LEAST}"
    shown = [o for o in known if o.significant]
    above, below = ([o.corpus for o in shown if o.sign == side] for side in (1, -1))
    if above and below:
        return "corpus-dependent", f"positive on {listed(above)}, negative on {listed(below)}"
    apart = [o.corpus for o in known if o.says.state == "difference"]
    alike = [o.corpus for o in known if o.says.state == "equivalent"]
    if apart and alike:
        return "corpus-dependent", (
            f"a difference on {listed(apart)}, and none that would matter on {listed(alike)}"
        )
    if len({o.sign for o in known}) == 1 and known[0].sign and len(shown) >= LEAST:
        more = "" if len(shown) == len(known) else f", on {len(shown)} of them significant"
        return "replicated", f"the same sign on all {len(known)} corpora{more}"
    if all(o.equivalent for o in known):
        return "replicated", f"no difference that would matter on any of {len(known)} corpora"
    same = sum(o.equivalent for o in known)
    return "underpowered", (
        f"of {len(known)} corpora significant on {len(shown) or 'none'}, equivalent on "
        f"{same or 'none'}"
    )


def _are(number: int) -> str:
    return "is" if number == 1 else "are"


def part(records: Sequence[CorpusRecord], params: Params) -> str:
    """The table for the page, or why there is none."""
    found = replications(records, params)
    usable = [r.name for r in records if not r.demonstration]
    cell = (params.primary.embedder, params.primary.reranker)
    ran = [r.name for r in records if not r.demonstration and cell in dense_cells(r, params)]
    if len(ran) < LEAST:
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
        return tag("p", esc(text + " So nothing here is said to replicate."))
    columns = ["Corpus", "Sign", "Difference", "95% interval", "Holm p", "Verdict", "Standing"]
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
                + tag("td", esc(o.says.words)) + tag("td", standing(row["standing"]))))
        bodies.append(tag("tbody", head + "".join(lines)))
    return tag("ul", "".join(said)) + table(
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
    "sign", "delta", "ci_low", "ci_high", "p_holm", "verdict",
)


def rows(records: Sequence[CorpusRecord], params: Params) -> list[list[Any]]:
    """Lines of replication.csv in the order of COLUMNS, one for each contrast and corpus."""
    return [
        [
            one.name, o.row["a"], o.row["b"], one.word, one.reason, STANDING, o.corpus,
            o.row["standing"] if o.estimated else "absent", o.row["status"],
            o.sign if o.estimated else None, o.row["delta"], o.row["ci_low"], o.row["ci_high"],
            o.row["p_holm"], o.says.words,
        ]
        for one in replications(records, params) for o in one.outcomes
    ]
