"""Where a corpus's questions come from and, where they were written for it, what became of each."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from spanwise.reporting.diagnose import gold_first
from spanwise.reporting.gather import CorpusRecord
from spanwise.reporting.markup import count, esc, figure, many, tag
from spanwise.reporting.tables import heads, number, table

ORIGINS = {
    "given": "They came with the corpus.",
    "harvested": "They came with the corpus; the evidence that their annotators quoted was found "
                 "again in its text.",
    "written": "A language model wrote them, for spans that were drawn beforehand.",
    "authored": "They were written into a question file, for spans that were drawn beforehand.",
    "none": "There are none.",
}
"""What each origin in the report of `ask` means."""

RULES = (
    "Each was held against its gold spans twice, as it was first worded and as it was reworded"
    "{unseen}; the second wording is what is asked. Rejected is what shares a run of words with a "
    "span, or too many words in the same order (ROUGE-L F1)."
)
UNSEEN = " without a look at them"
"""Only a model is asked to reword in that way; who fills in a sheet has the spans in view."""


def asked(record: CorpusRecord) -> str:
    """The part of a corpus's section about its questions."""
    told = _told(record)
    origin = str(told.get("origin"))
    parts = [tag("p", esc(f"{many(int(told.get('questions', 0)), 'question')}. "
                          + ORIGINS.get(origin, origin) + _by(told)))]
    if "funnel" in told:
        rules = RULES.format(unseen=UNSEEN if origin == "written" else "")
        parts += [tag("p", esc(rules), class_="soft"), _funnel(told["funnel"], record.name),
                  _overlap(told["rouge_l of finals"], record.name)]
    first = [f"{figure(100 * share, 1)}%" for share in gold_first(record)]
    if first:
        parts.append(tag("p", esc(
            f"BM25 alone puts a relevant chunk first for {', '.join(first)} of the questions: the "
            "lower, the less the questions give away by their words."
        )))
    return "".join(parts)


def rows(records: Sequence[CorpusRecord]) -> tuple[list[list[Any]], list[list[Any]]]:
    """The funnels as (corpus, origin, step, type, count), and the ROUGE-L of what is asked as
    (corpus, origin, type, figure, value), of all corpora whose questions were written for them."""
    steps: list[list[Any]] = []
    overlap: list[list[Any]] = []
    for record in records:
        told = _told(record)
        for step, by_type in told.get("funnel", {}).items():
            steps += [[record.name, told["origin"], step, kind, n] for kind, n in by_type.items()]
        for kind, spread in told.get("rouge_l of finals", {}).items():
            overlap += [[record.name, told["origin"], kind, name, value]
                        for name, value in spread.items()]
    return steps, overlap


def _told(record: CorpusRecord) -> Mapping[str, Any]:
    found: Mapping[str, Any] = dict(record.reports).get("ask", {})
    return found


def _by(told: Mapping[str, Any]) -> str:
    if model := told.get("language model", {}).get("model"):
        return f" The model is {model}."
    if file := told.get("question file", {}).get("name"):
        return f" They stand in {file}."
    return ""


def _funnel(found: Mapping[str, Mapping[str, int]], name: str) -> str:
    kinds = list(next(iter(found.values())))
    body = "".join(
        tag("tr", tag("th", esc(step), scope="row")
            + "".join(number(count(by_type[kind])) for kind in kinds))
        for step, by_type in found.items()
    )
    return table("The funnel: what became of every sample", heads(["Step", *kinds]),
                 tag("tbody", body), label=f"Funnel of the questions, {name}")


def _overlap(found: Mapping[str, Mapping[str, float | int | None]], name: str) -> str:
    columns = [key for key in found["all"] if key != "n"]
    body = "".join(
        tag("tr", tag("th", esc(kind), scope="row") + number(count(int(spread["n"] or 0)))
            + "".join(number(figure(spread[key])) for key in columns))
        for kind, spread in found.items()
    )
    return table("ROUGE-L F1 of what is asked against its gold spans, by quantile",
                 heads(["Type", "n", *columns]), tag("tbody", body),
                 label=f"ROUGE-L of the questions, {name}")
