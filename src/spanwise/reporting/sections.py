"""Section recall by corpus size: how often routing keeps a section with evidence, beside chance.

Routing keeps the same few sections whatever the corpus holds, so what it keeps by chance falls as
one over the number of sections. Recall beside it tells a router that is lost from one that has more
to choose from.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean

from spanwise.params import Params
from spanwise.reporting.figures import Mark, PlotRow, rows, scale, sign
from spanwise.reporting.gather import CorpusRecord, Row
from spanwise.reporting.markup import count, esc, figure, listed, standing, tag
from spanwise.reporting.tables import heads, number, table


@dataclass(frozen=True, slots=True)
class Recall:
    """One routed condition in one corpus and embedder.

    sections:  that a segmentation's chunks belong to; kept: of them, by routing.
    questions: of the primary slice, with evidence.
    recall:    share of them for which a kept section overlaps evidence, in [0, 1].
    chance:    the same expected of as many sections drawn without replacement.
    """

    corpus: str
    embedder: str
    condition: str
    sections: int
    kept: int
    questions: int
    recall: float
    chance: float


def recalls(record: CorpusRecord, params: Params) -> list[Recall]:
    """Every routed condition of a corpus that was asked anything, the primary embedder first."""
    asked = {
        q["question_id"]: q["evidence"] for q in record.questions
        if q["excluded"] is None and q["base"] is None and q["evidence"]
    }
    made, gold = [], {}
    order = sorted(record.routing, key=lambda name: (name != params.primary.embedder, name))
    for embedder in order:
        found = record.routing[embedder]
        for condition in dict.fromkeys(row["condition"] for row in found):
            segmentation = params.conditions[condition].segmentation
            chunks = record.chunks.get(segmentation, {})
            if segmentation not in gold:
                gold[segmentation] = _holding(list(chunks.values()), asked)
            holding = gold[segmentation]
            values = {
                row["question_id"]: row["section_recall"] for row in found
                if row["condition"] == condition and row["section_recall"] is not None
                and row["question_id"] in asked
            }
            if not values:
                continue
            sections = len({(c["doc_id"], c["node"]) for c in chunks.values()})
            kept = min(params.retrieval.sections, sections)
            made.append(Recall(
                record.name, embedder, condition, sections, kept, len(values),
                fmean(values.values()),
                fmean(chance(sections, holding[question], kept) for question in values),
            ))
    return made


def _holding(chunks: Sequence[Row], asked: Mapping[str, Sequence[Row]]) -> dict[str, int]:
    """question_id -> sections with a chunk that overlaps any of its evidence."""
    by_document: dict[str, list[Row]] = {}
    for chunk in chunks:
        by_document.setdefault(chunk["doc_id"], []).append(chunk)
    return {
        question: len({
            (c["doc_id"], c["node"]) for e in evidence for c in by_document.get(e["doc_id"], ())
            if c["start"] < e["end"] and e["start"] < c["end"]
        })
        for question, evidence in asked.items()
    }


def chance(sections: int, holding: int, kept: int) -> float:
    """Probability that `kept` of `sections`, drawn without replacement, meet one of `holding`.

    1 - C(sections - holding, kept) / C(sections, kept).

    >>> chance(10, 1, 5), chance(4, 4, 1), chance(9, 0, 5)
    (0.5, 1.0, 0.0)
    """
    missed = 1.0
    for drawn in range(kept):
        missed *= max(0, sections - holding - drawn) / (sections - drawn)
    return 1 - missed


def part(records: Sequence[CorpusRecord], params: Params) -> str:
    """Table and, from two corpora on, a picture of all corpora by their number of sections."""
    found = [one for record in records for one in recalls(record, params)]
    if not found:
        return ""
    # sorted is stable: embedders and conditions of one corpus keep their order.
    found.sort(key=lambda one: one.sections)
    shown = {record.name for record in records if record.demonstration}
    body = "".join(
        tag("tr", tag("th", _corpus(one, shown), scope="row")
            + tag("td", esc(one.condition)) + tag("td", esc(one.embedder))
            + number(count(one.sections)) + number(count(one.kept))
            + number(figure(one.recall), "strong") + number(figure(one.chance))
            + number(f"{one.recall / one.chance:,.1f} ×" if one.chance > 0 else "–")
            + number(count(one.questions)))
        for one in found
    )
    made = table(
        f"Section recall by number of sections {standing('exploratory')}",
        heads(["Corpus", "Condition", "Embedder", "Sections", "Kept", "Section recall",
               "By chance", "Times chance", "Questions"], 3),
        tag("tbody", body), label="Section recall by number of sections",
    )
    corpora = {one.corpus for one in found}
    picture = _picture(found, params, shown) if len(corpora) > 1 else ""
    return picture + made + tag(
        "p", esc(
            f"Routing keeps {params.retrieval.sections} sections however many there are, so what "
            "chance would keep falls with their number. What it does not keep, only the backfill "
            "can find. By chance: as many sections drawn at random."
        ), class_="soft",
    )


def _corpus(one: Recall, shown: set[str]) -> str:
    return esc(one.corpus) + (" <small>demonstration</small>" if one.corpus in shown else "")


def _picture(found: Sequence[Recall], params: Params, shown: set[str]) -> str:
    primary = [one for one in found if one.embedder == params.primary.embedder]
    drawn = []
    for one in primary or found:
        label = f"{_corpus(one, shown)} <small>{esc(one.condition)}, {count(one.sections)}</small>"
        drawn.append(PlotRow(label, [
            Mark(one.chance, shape="diamond", look="hollow"),
            Mark(one.recall, shape="square", look="filled blue"),
        ], f"{figure(one.recall)} <small>by chance {figure(one.chance)}</small>"))
    on = scale([0.0, 1.0], 0.03)
    keys = tag("li", sign("square", "filled blue") + "section recall") + tag(
        "li", sign("diamond", "hollow") + "by chance")
    embedders = listed(sorted({one.embedder for one in primary or found}))
    caption = f"Section recall, {esc(embedders)}: fewest sections first {standing('exploratory')}"
    return tag("figure", tag("figcaption", caption) + tag("ul", keys, class_="legend")
               + rows(drawn, on, unit="share of questions with evidence in a kept section"))
