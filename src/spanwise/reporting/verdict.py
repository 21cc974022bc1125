"""The words for what may be said of each contrast. The rules stand in `judgement`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from spanwise import layout
from spanwise.params import Params
from spanwise.reporting.cells import dense_cells
from spanwise.reporting.gather import CorpusRecord, Row
from spanwise.reporting.judgement import ZERO, State, family_size, judge, otherwise
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
from spanwise.statistics.linearised import FEW
from spanwise.statistics.power import ALPHA


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
class Sentence:
    """One contrast for a reader: the answer, then its figures.

    difference: the figures of the contrast itself; power: what could have been found, and what it
              would take, as phrases.
    doubts:   what the interval is trusted less for, and by which other interval, test or clusters
              the verdict would be another one.
    needed:   (questions, documents) that finding the margin would take, where the contrast is
              underpowered and that is known.
    standing: confirmatory or exploratory, None where there is no figure to label.
    """

    name: str
    title: str
    asks: str
    answer: str
    difference: str
    standing: str | None
    state: State
    badge: str
    power: tuple[str, ...] = ()
    doubts: tuple[str, ...] = ()
    needed: tuple[int, int] | None = None

    @property
    def figures(self) -> str:
        """All figures and every doubt, as one phrase."""
        return "; ".join([self.difference, *self.power, *self.doubts])


def told(record: CorpusRecord, row: Row, params: Params) -> Sentence:
    """A contrast of a corpus in plain words."""
    return sentence(
        row, record.check(row), params, demonstration=record.demonstration,
        same_chunks=_same_chunks(record, row, params), joined=_joined(record, row),
    )


def _joined(record: CorpusRecord, row: Row) -> Row | None:
    """The same contrast with documents that share evidence as one cluster."""
    key = ("embedder", "reranker", "measure", "name")
    return next((other for other in record.contrasts if other["family"] == "connected"
                 and all(other[k] == row[k] for k in key)), None)


def _same_chunks(record: CorpusRecord, row: Row, params: Params) -> bool:
    """Whether two segmentations came out with the very same chunks."""
    kinds = [params.conditions[arm].segmentation for arm in (row["a"], row["b"])]
    spans = [
        {(c["doc_id"], c["start"], c["end"]) for c in record.chunks.get(kind, {}).values()}
        for kind in kinds
    ]
    return kinds[0] != kinds[1] and bool(spans[0]) and spans[0] == spans[1]


def sentence(
    row: Row, check: Row | None, params: Params, *, demonstration: bool = False,
    same_chunks: bool = False, joined: Row | None = None,
) -> Sentence:
    """A contrast in plain words.

    demonstration: of its corpus; same_chunks: its two segmentations gave the same chunks; joined:
    its row of family `connected`.
    """
    margin, draws = params.inference.margin, params.inference.iterations
    told, says = wording(row), judge(row, check, params)
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
        answer = f"{told.same} That is, within ±{margin:g}."
    elif says.reason is not None:
        answer = f"{says.words.capitalize()}. {says.reason}"
        if same_chunks:
            answer += " The two structures cut the text into identical chunks."
    else:
        leaning = row["a"] if up else row["b"]
        answer = f"{says.words.capitalize()}."
        if row["delta"] and row["ci_low"] is not None:
            other = row["b"] if up else row["a"]
            answer = f"{says.words.capitalize()}: {leaning} came out ahead of {other}, "
            if row["p_holm"] == 0:
                answer += f"but {count(draws)} draws are too few to tell a p below {ALPHA:g}."
            elif row["ci_low"] > 0 or row["ci_high"] < 0:
                answer += f"but not clearly once {_family(params)} are counted."
            else:
                answer += "by what chance alone could give."
    p = (
        f"Holm p {_equals(probability(row['p_holm'], draws, family_size(row, params)))}"
        if row["p_holm"] is not None
        else f"p {_equals(probability(row['p'], draws))}, unadjusted"
    )
    figures = (
        f"{pair} = {signed(row['delta'])}, 95% interval {interval(row['ci_low'], row['ci_high'])}, "
        f"{p}, dz {_equals(signed(row['dz'], 2))}; {many(row['n_questions'], 'question')} "
        f"in {many(row['n_documents'], 'document')}"
    )
    if row["excluded"]:
        figures += f", {count(row['excluded'])} excluded"
    power = []
    if says.underpowered and says.detectable is not None:
        power.append(
            f"only a difference of about {says.detectable:.2f} would be found 4 times in 5"
        )
        if says.needed is not None:
            questions, documents = says.needed
            power.append(
                f"to find {margin:g} as often takes about {many(questions, 'question')} in "
                f"{many(documents, 'document')}"
            )
    if row["interval"] == "linearised":
        power.append(f"with fewer than {FEW} documents the interval is Student's")
    doubts = [
        *(c for c in (check["cautions"] if check else ()) if c not in answer),
        *hanging(row, check, params), *crossing(row, joined, params),
    ]
    return Sentence(
        row["name"], told.title, told.asks, answer, figures,
        called(row["standing"], demonstration), says.state, says.words, tuple(power),
        tuple(doubts), says.needed if says.underpowered else None,
    )


def hanging(row: Row, check: Row | None, params: Params) -> list[str]:
    """By which interval or test the verdict would be another one, a phrase for each."""
    draws, family = params.inference.iterations, family_size(row, params)
    told = []
    for other in otherwise(row, check, params):
        why = []
        if other.p is not None:
            why.append(f"Holm p {probability(other.p, draws, family)}")
        if other.least is not None:
            why.append(
                f"and {many(row['n_documents'], 'document')} allow none below {other.least:.2g}"
            )
        if other.ci90 is not None:
            why.append(f"90% interval {interval(*other.ci90)}")
        called_ = "a difference" if other.words == "difference" else other.words
        told.append(f"by {other.by} it would be {called_}: {', '.join(why)}")
    return told


def crossing(row: Row, joined: Row | None, params: Params) -> list[str]:
    """Whether p or Holm's p lies on the other side of 5% with connected documents as one cluster,
    as a phrase.

    joined: the contrast's row of family `connected`, None where no evidence crosses documents.
    """
    if joined is None or joined["delta"] is None or row["p"] is None:
        return []
    start = "with documents that share evidence as one cluster"
    if joined["n_documents"] < 2:
        return ["documents that share evidence are all one cluster, so there is no p over clusters"]
    if joined["p"] is None:
        return [f"{start} nothing varies, so there is no p"]
    parts = []
    for key, name, size in (("p", "p", 1), ("p_holm", "Holm p", family_size(row, params))):
        if row[key] is None or (joined[key] < ALPHA) == (row[key] < ALPHA):
            continue
        text = probability(joined[key], params.inference.iterations, size)
        parts.append(f"{name} is {text.replace('< ', 'below ')}")
    return [f"{start} {' and '.join(parts)}"] if parts else []


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
        judged = judge(step, record.check(step), params)
        if judged.state in ("difference", "both"):
            says = f"{whose} {'gains' if step['delta'] > 0 else 'harms'}"
        elif judged.state == "equivalent":
            says = f"{whose} changes nothing that would matter"
        else:
            says = f"{judged.words}: whether {whose} gains or harms is open"
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
    cells = dense_cells(record, params)  # the primary one stands first
    return cells[0] if cells else (params.primary.embedder, params.primary.reranker)


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
