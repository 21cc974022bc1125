"""The questions behind each number, as compact data that the page opens lazily."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from typing import Any

from spanwise import layout
from spanwise.params import Params
from spanwise.reporting.gather import CorpusRecord, Row
from spanwise.reporting.tables import describe
from spanwise.reporting.verdict import primary_cell

AROUND = 260
"""Characters of the document shown on each side of an evidence span."""
LONGEST = 1200
"""Characters of one evidence span shown; the middle of a longer one is left out, and it says so."""
HEAD = 110
"""Characters shown of a retrieved chunk."""


def payload(record: CorpusRecord, params: Params) -> dict[str, Any]:
    """One corpus's questions for the page.

    returns: {"measure", "cell", "conditions": [[name, words, segmentation]...],
             "contrasts": [[name, a, b]...] as indices into conditions, both sides present,
             "documents": [[id, title]...],
             "chunks": {segmentation: [[document, start, end, first words]...]} of chunks that any
             list names, "questions": [...]}; each question is {"id", "doc", "type", "text", "why"
             (left out) or null, "reworded" base or null, "scores": one a condition or null,
             "spread" or null, "evidence": [[document, start, end, before, text, after, characters
             left out]...], "lists": one a condition, indices into its segmentation's chunks}.
    """
    cell = primary_cell(record, params)
    scores = _scores(record, params, cell)
    conditions = [name for name in params.conditions if name in scores]
    documents = {doc_id: i for i, doc_id in enumerate(sorted(record.documents))}
    chunks = _Chunks(record, documents)
    questions = []
    for row in record.questions:
        values = [scores[name].get(row["question_id"]) for name in conditions]
        lists = []
        for name in conditions:
            its = params.conditions[name]
            where = layout.LEXICAL if its.retrieval == "bm25" else cell[0]
            ranked = record.ranked[where].lists.get(name, {}) if where in record.ranked else {}
            lists.append(chunks.indices(its.segmentation, ranked.get(row["question_id"], [])))
        questions.append({
            "id": row["question_id"], "doc": documents[row["doc_id"]], "type": row["type"],
            "text": row["text"], "why": row["excluded"], "reworded": row["base"],
            "scores": [None if value is None else round(value, 4) for value in values],
            "spread": disagreement(values),
            "evidence": [excerpt(item, record.documents, documents) for item in row["evidence"]],
            "lists": lists,
        })
    # Where conditions disagree most comes first; those without scores come last.
    questions.sort(key=lambda q: (q["spread"] is None, -(q["spread"] or 0.0), q["id"]))
    place = {name: i for i, name in enumerate(conditions)}
    return {
        "measure": params.primary.measure,
        "cell": list(cell),
        "conditions": [
            [name, describe(params.conditions[name]), params.conditions[name].segmentation]
            for name in conditions
        ],
        "contrasts": [
            [name, place[a], place[b]]
            for name, (a, b) in params.contrasts.items() if a in place and b in place
        ],
        "documents": [[doc_id, record.documents[doc_id]["title"]] for doc_id in documents],
        "chunks": chunks.rows,
        "questions": questions,
    }


def disagreement(values: Sequence[float | None]) -> float | None:
    """Standard deviation (ddof 0) of one question's scores over conditions, 4 digits.

    returns: None where fewer than two conditions have a score.

    >>> disagreement([1.0, 0.0, None])
    0.5
    """
    found = [value for value in values if value is not None]
    if len(found) < 2:
        return None
    mean = math.fsum(found) / len(found)
    return round(math.sqrt(math.fsum((value - mean) ** 2 for value in found) / len(found)), 4)


def excerpt(
    item: Row, bodies: Mapping[str, Row], documents: Mapping[str, int]
) -> list[int | str]:
    """An evidence span with the text around it.

    returns: [document, start, end, text before, its text, text after, characters left out]. The
             text of a span above LONGEST is its first two thirds of LONGEST and its last third.
    """
    body, start, end = bodies[item["doc_id"]]["body"], item["start"], item["end"]
    text, missing = body[start:end], 0
    if len(text) > LONGEST:
        first = 2 * LONGEST // 3
        missing = len(text) - LONGEST
        text = f"{text[:first]} […] {text[len(text) - (LONGEST - first):]}"
    before, after = body[max(0, start - AROUND) : start], body[end : end + AROUND]
    if start > AROUND:  # from the next word on
        before = "…" + re.sub(r"^\S*\s", "", before)
    if end + AROUND < len(body):  # up to the last whole word
        after = re.sub(r"(?<=\s)\S*$", "", after) + "…"
    return [documents[item["doc_id"]], start, end, before, text, after, missing]


def _scores(
    record: CorpusRecord, params: Params, cell: tuple[str, str]
) -> dict[str, dict[str, float | None]]:
    """condition -> question_id -> the primary measure, in the cell that the page shows."""
    found: dict[str, dict[str, float | None]] = {}
    columns = ("embedder", "reranker", "condition", "question_id", params.primary.measure)
    for embedder, reranker, condition, question, value in zip(
        *(record.scores[column] for column in columns), strict=True
    ):
        lexical = condition in params.conditions and (
            params.conditions[condition].retrieval == "bm25"
        )
        if lexical or (embedder, reranker) == cell:
            found.setdefault(condition, {})[question] = value
    return found


class _Chunks:
    """Numbers the chunks that lists name, in order of first appearance."""

    def __init__(self, record: CorpusRecord, documents: Mapping[str, int]) -> None:
        self._record, self._documents = record, documents
        self._places: dict[str, dict[str, int]] = {}
        self.rows: dict[str, list[list[int | str]]] = {}

    def indices(self, segmentation: str, ids: Sequence[str]) -> list[int]:
        """Where each chunk stands in `rows`; new ones are added."""
        places = self._places.setdefault(segmentation, {})
        rows = self.rows.setdefault(segmentation, [])
        known = self._record.chunks[segmentation]
        for chunk_id in ids:
            if chunk_id in places:
                continue
            places[chunk_id] = len(rows)
            row = known[chunk_id]
            body = self._record.documents[row["doc_id"]]["body"]
            head = " ".join(body[row["start"] : min(row["end"], row["start"] + 2 * HEAD)].split())
            more = len(head) > HEAD or row["end"] - row["start"] > 2 * HEAD
            rows.append([
                self._documents[row["doc_id"]], row["start"], row["end"],
                head[:HEAD].rstrip() + ("…" if more else ""),
            ])
        return [places[chunk_id] for chunk_id in ids]
