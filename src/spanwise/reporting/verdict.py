"""What may be said of each contrast, and the words for it. The rules stand in `judge`."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from spanwise import layout
from spanwise.params import Params
from spanwise.reporting.gather import CorpusRecord, Row, Spread
from spanwise.reporting.markup import (
    called,
    count,
    figure,
    interval,
    listed,
    many,
    probability,
    signed,
)

ALPHA = 0.05
DETECTABLE = 1.959964 + 0.841621
"""Standard errors that an effect must measure to be found at 5% (two-sided, before Holm's
correction, which asks for more) four times in five."""
FEW_DOCUMENTS = 10
"""Below this many documents an interval made by resampling them is said to rest on few."""
ZERO = 1e-12
"""What rounding alone may leave of a spread."""

State = Literal["difference", "both", "equivalent", "undetermined", "absent"]


@dataclass(frozen=True, slots=True)
class Wording:
    """A contrast in plain words: what it asks, and what each outcome would mean."""

    title: str
    asks: str
    above: str
    below: str
    same: str


WORDINGS: Mapping[str, Wording] = {
    "C1": Wording(
        "organisation against contexts",
        "Do induced boundaries with heading paths beat contexts written by a language model "
        "on fixed windows?",
        "Organising the text beats writing contexts for fixed windows.",
        "Written contexts on fixed windows beat organising the text.",
        "Organising the text and writing contexts retrieve alike.",
    ),
    "C2": Wording(
        "content against tokens",
        "Does what a heading path says matter, or only that words stand before the text?",
        "What the path says matters: the right path beats another document's.",
        "The right path does worse than another document's.",
        "What the path says makes no difference that would matter.",
    ),
    "C3": Wording(
        "the author's structure against a model's",
        "How much is lost when a model draws the structure instead of the author?",
        "Inducing the structure costs: the author's headings retrieve better.",
        "The induced structure retrieves better than the author's own.",
        "The author's structure and the induced one retrieve alike.",
    ),
    "C4": Wording(
        "routing against flat search",
        "Does choosing sections first beat searching all chunks at once?",
        "Routing helps: choosing sections first beats flat search.",
        "Routing hurts: choosing sections first loses what flat search finds.",
        "Routing and flat search retrieve alike.",
    ),
}


def wording(row: Row) -> Wording:
    """The words of a contrast; one that params.yaml adds gets words made of its conditions."""
    known = WORDINGS.get(row["name"])
    if known is not None:
        return known
    a, b = row["a"], row["b"]
    return Wording(
        f"{a} against {b}", f"Does {a} beat {b}?", f"{a} beats {b}.", f"{b} beats {a}.",
        f"{a} and {b} retrieve alike.",
    )


@dataclass(frozen=True, slots=True)
class Judgement:
    """What may be said of one contrast in one cell.

    state:        see `judge`.
    underpowered: too few questions or documents to find an effect of the registered margin.
    detectable:   smallest effect found four times in five at these questions, or None.
    reason:       why the figures can show nothing at all, as a sentence, or None.
    """

    state: State
    underpowered: bool
    detectable: float | None
    reason: str | None = None

    @property
    def words(self) -> str:
        """The state in a word or two."""
        if self.state == "both":
            return "a difference, within the margin"
        if self.state == "undetermined" and self.underpowered:
            return "underpowered"
        return self.state


def judged(row: Row, params: Params) -> bool:
    """Whether a row is one that `judge` is for: a contrast or a step of the primary measure.

    The margin is fixed for that measure alone, and only there are draws kept that could show
    equivalence; a slope for each level has no margin, and clusters are a check on an interval.
    """
    return row["family"] in ("contrast", "step") and row["measure"] == params.primary.measure


def degenerate(row: Row, spread: Spread | None) -> str | None:
    """Why an estimated contrast can show neither a difference nor equivalence, or None.

    Where nothing varies, the interval has no width: it lies within any margin, or beside zero,
    whatever a further document would say. Such an interval is no evidence.
    """
    if row["n_documents"] < 2 or row["ci_low"] is None:
        return "All questions are about one document, so no interval can be given."
    still = row["ci_high"] - row["ci_low"] <= ZERO or (spread is not None and spread.sd <= ZERO)
    if row["dz"] is not None and not still:
        return None
    if row["n_questions"] < 2:
        return "There is one question only, so nothing varies."
    if row["dz"] is not None:
        return (
            "Every document comes out with the same difference, so resampling documents gives no "
            "interval."
        )
    if abs(row["delta"]) > ZERO:
        return (
            f"Every question differs by the same {signed(row['delta'])}, so nothing varies that "
            "could give an interval."
        )
    text = "Every question scores the same under both"
    if row["mean_a"] >= 1 - ZERO:
        return f"{text}, at the ceiling: these questions leave no room for a difference."
    if abs(row["mean_a"]) <= ZERO:
        return f"{text}, at zero: neither finds any of the evidence."
    return f"{text}, so nothing varies that could show a difference or its absence."


def judge(row: Row, spread: Spread | None, params: Params) -> Judgement:
    """Sort one contrast.

    row:     of the CONTRASTS table.
    spread:  its bootstrap draws, or None where none were kept (other measures).
    returns: difference    Holm's p (the plain one outside the family) below .05; a p of 0 counts
                           as its bound, 2 / draws, times the family's size under Holm
             equivalent    the 90% interval lies within (-margin, margin)
             both          a difference smaller than anyone should care for
             undetermined  neither; and underpowered if an effect as large as the margin would be
                           missed more than once in five times; also whatever is `degenerate`
             absent        a condition could not run, or no question was answered under both
    """
    if row["delta"] is None:
        return Judgement("absent", False, None)
    # A slope has no dz and no arms: what is said of paired differences does not hold of it.
    reason = None if row["family"] == "dose" else degenerate(row, spread)
    if reason is not None:
        return Judgement("undetermined", False, None, reason)
    p, margin = _least(row, params), params.inference.margin
    differs = p is not None and p < ALPHA
    same = spread is not None and -margin < spread.ninety[0] and spread.ninety[1] < margin
    error = None
    if spread is not None:
        error = spread.sd
    elif row["ci_low"] is not None:
        error = (row["ci_high"] - row["ci_low"]) / (2 * 1.959964)
    detectable = None if error is None else DETECTABLE * error
    if differs or same:
        state: State = "both" if differs and same else "difference" if differs else "equivalent"
        return Judgement(state, False, detectable)
    return Judgement("undetermined", detectable is None or detectable > margin, detectable)


def needed(row: Row, detectable: float, margin: float) -> int:
    """Questions, over as many more documents, at which a difference of the margin's size would be
    found four times in five: the standard error falls with the root of the number of documents.

    returns: two significant digits, for the spread that it rests on is itself an estimate.
    """
    questions = row["n_questions"] * (detectable / margin) ** 2
    step = int(10 ** max(0, len(str(int(questions))) - 2))
    return int(math.ceil(questions / step) * step)


def _least(row: Row, params: Params) -> float | None:
    """The p that decides; 0 of B draws is no zero but its bound."""
    bound = 2 / params.inference.iterations
    if row["p_holm"] is None:
        return None if row["p"] is None else float(row["p"]) or bound
    family = params.steps if row["family"] == "step" else params.contrasts
    return float(row["p_holm"]) or min(1.0, len(family) * bound)


@dataclass(frozen=True, slots=True)
class Sentence:
    """One contrast for a reader: the answer, then its figures.

    standing: confirmatory or exploratory, None where there is no figure to label.
    """

    name: str
    title: str
    asks: str
    answer: str
    figures: str
    standing: str | None
    state: State
    badge: str


def told(record: CorpusRecord, row: Row, params: Params) -> Sentence:
    """A contrast of a corpus in plain words."""
    return sentence(
        row, record.spread(row), params, demonstration=record.demonstration,
        same_chunks=_same_chunks(record, row, params),
    )


def _same_chunks(record: CorpusRecord, row: Row, params: Params) -> bool:
    """Whether two segmentations came out with the very same chunks."""
    kinds = [params.conditions[arm].segmentation for arm in (row["a"], row["b"])]
    spans = [
        {(c["doc_id"], c["start"], c["end"]) for c in record.chunks.get(kind, {}).values()}
        for kind in kinds
    ]
    return kinds[0] != kinds[1] and bool(spans[0]) and spans[0] == spans[1]


def sentence(
    row: Row, spread: Spread | None, params: Params, *, demonstration: bool = False,
    same_chunks: bool = False,
) -> Sentence:
    """A contrast in plain words.

    demonstration: of its corpus; same_chunks: its two segmentations gave the same chunks.
    """
    margin, draws = params.inference.margin, params.inference.iterations
    told, says = wording(row), judge(row, spread, params)
    pair = f"{row['a']} − {row['b']}"
    if says.state == "absent":
        answer = f"Not answered. {row['reason'] or 'No reason was recorded'}."
        return Sentence(
            row["name"], told.title, told.asks, answer, pair, None, "absent", "absent"
        )
    up = row["delta"] > 0
    if says.state in ("difference", "both"):
        answer = told.above if up else told.below
        if says.state == "both":
            answer += f" The difference is smaller than the margin of {margin:g}."
    elif says.state == "equivalent":
        answer = told.same
    elif says.reason is not None:
        answer = f"Undetermined. {says.reason}"
        if same_chunks:
            answer += " The two structures cut the text into identical chunks."
    else:
        leaning = row["a"] if up else row["b"]
        answer = "Undetermined."
        if row["delta"] and row["ci_low"] is not None:
            other = row["b"] if up else row["a"]
            answer = f"Undetermined: {leaning} came out ahead of {other}, "
            if row["p_holm"] == 0:
                answer += f"but {count(draws)} draws are too few to tell a p below {ALPHA:g}."
            elif row["ci_low"] > 0 or row["ci_high"] < 0:
                answer += f"but not clearly once {_family(params)} are counted."
            else:
                answer += "by what chance alone could give."
    p = (
        f"Holm p {_equals(probability(row['p_holm'], draws, len(params.contrasts)))}"
        if row["p_holm"] is not None
        else f"p {_equals(probability(row['p'], draws))}, unadjusted"
    )
    figures = (
        f"{pair} = {signed(row['delta'])}, 95% interval {interval(row['ci_low'], row['ci_high'])}, "
        f"{p}, dz {_equals(signed(row['dz'], 2))}; {many(row['n_questions'], 'question')} "
        f"in {many(row['n_documents'], 'document')}"
    )
    if says.underpowered and says.detectable is not None:
        margin = params.inference.margin
        figures += (
            f"; only a difference of about {says.detectable:.2f} would be found 4 times in 5, "
            f"before Holm's correction; one of {margin:g} would take about "
            f"{many(needed(row, says.detectable, margin), 'question')}"
        )
    if row["excluded"]:
        figures += f", {count(row['excluded'])} excluded"
    if row["ci_low"] is not None and row["n_documents"] < FEW_DOCUMENTS:
        figures += "; the interval rests on few documents"
    return Sentence(
        row["name"], told.title, told.asks, answer, figures,
        called(row["standing"], demonstration), says.state, says.words,
    )


def apart(record: CorpusRecord, row: Row, params: Params) -> str | None:
    """The two steps behind a contrast with a placebo: whether the right prefix gains over none, or
    the foreign one harms. None unless both steps are in params.yaml and were estimated."""
    a, b = row["a"], row["b"]
    if params.conditions[b].prefix != "placebo":
        return None
    steps = {
        (s["a"], s["b"]): s
        for s in contrast_rows(record, params, (row["embedder"], row["reranker"]), "step")
        if s["delta"] is not None
    }
    bare = next((y for x, y in steps if x == a and (b, y) in steps), None)
    if bare is None:
        return None
    parts = []
    for arm, whose in ((a, "the right path"), (b, "the foreign path")):
        step = steps[arm, bare]
        state = judge(step, record.spread(step), params).state
        if state in ("difference", "both"):
            says = f"{whose} {'gains' if step['delta'] > 0 else 'harms'}"
        elif state == "equivalent":
            says = f"{whose} changes nothing that would matter"
        else:
            says = f"whether {whose} gains or harms is undetermined"
        parts.append(
            f"{arm} − {bare} = {signed(step['delta'])} "
            f"{interval(step['ci_low'], step['ci_high'])}, {says}"
        )
    return f"Against no path: {'; '.join(parts)}."


def _family(params: Params) -> str:
    """The family of contrasts in words; small numbers are written out."""
    size = len(params.contrasts)
    written = {2: "two", 3: "three", 4: "four", 5: "five", 6: "six"}.get(size, str(size))
    return f"the {written} contrasts"


def _equals(text: str) -> str:
    return text if text.startswith("<") else f"= {text}"


def primary_cell(record: CorpusRecord, params: Params) -> tuple[str, str]:
    """The cell fixed beforehand; where it did not run, the first that did."""
    wanted = (params.primary.embedder, params.primary.reranker)
    cells = [cell for cell in record.cells() if cell[0] in params.embedders]
    return wanted if wanted in cells or not cells else cells[0]


def contrast_rows(
    record: CorpusRecord, params: Params, cell: tuple[str, str], family: str = "contrast"
) -> list[Row]:
    """Rows of one family in one cell for the primary measure, in params.yaml's order."""
    order = [*params.contrasts, *params.steps]
    rows = [
        row for row in record.contrasts
        if (row["embedder"], row["reranker"]) == cell
        and row["measure"] == params.primary.measure and row["family"] == family
    ]
    return sorted(rows, key=lambda row: (
        order.index(row["name"]) if row["name"] in order else len(order), row["name"]
    ))


def best(record: CorpusRecord, params: Params, cell: tuple[str, str]) -> str:
    """Which conditions retrieved best in a cell, as a sentence; a ranking of means, no test."""
    measure = params.primary.measure
    found: list[tuple[float, str]] = []
    lexical: list[str] = []
    for condition, its in params.conditions.items():
        where = (layout.LEXICAL, "none") if its.retrieval == "bm25" else cell
        row = record.mean(where, condition, measure)
        if row is None or row["mean"] is None:
            continue
        if its.retrieval == "bm25":
            lexical.append(f"{condition}, which reads words alone, {figure(row['mean'])}")
        else:
            found.append((row["mean"], condition))
    if not found:
        return "No condition has a mean in this cell."
    # sorted is stable: the conditions of params.yaml that come first stay first on ties.
    found.sort(key=lambda item: -item[0])
    top, name = found[0]
    if len(found) > 1 and top - found[-1][0] <= ZERO:
        text = f"All {len(found)} conditions have the same mean, {figure(top)}."
        return text + (f" Beside them, {listed(lexical)}." if lexical else "")
    text = f"{name} has the highest mean, {figure(top)}"
    near = [f"{other} ({figure(mean)})" for mean, other in found[1:]
            if top - mean <= params.inference.margin]
    if near:
        text += f", with {listed(near)} within {params.inference.margin:g} of it"
    if len(found) > 1:
        text += f"; {found[-1][1]} has the lowest, {figure(found[-1][0])}"
    text += "."
    if lexical:
        text += f" Beside them, {listed(lexical)}."
    return text
