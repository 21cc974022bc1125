"""The questions behind each number, as blocks of data that the page opens one by one.

Three kinds of inert elements stand in the page for each corpus: its questions with their scores, as
JSON; the places of all chunks; and blocks of documents with the evidence and the ranked lists of
their questions. The last two are deflated, and opened only when a question is looked at.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from spanwise import layout
from spanwise.params import WITHOUT, Params
from spanwise.reporting.gather import CorpusRecord
from spanwise.reporting.markup import data, packed, tag
from spanwise.reporting.tables import TITLES, describe
from spanwise.reporting.verdict import primary_cell
from spanwise.spans import Span, merge

TEXT = 18_000_000
"""Bytes of the documents' text, in UTF-8, that one page carries; deflated prose takes about half of
that in the file. Where the corpora have more, only what lies around evidence is kept."""
AROUND = (16_000, 8_000, 4_000, 2_000, 1_000, 500, 250)
"""Code points kept on each side of evidence where whole documents are too much; the first that fits
is taken."""
BLOCK = 250_000
"""Code points of text from which on a block is closed: small enough to open at once."""


@dataclass(frozen=True, slots=True)
class Payload:
    """One corpus's questions for the page.

    index:  {"measure", "cell", "conditions": [[name, words, segmentation]...],
            "contrasts": [[name, a, b]...] as indices into conditions, both sides present,
            "documents": [[id, title, block, length in code points]...], "questions": [[id,
            document, type, text, why it is left out or null, base that it rewords or null,
            disagreement or null, block, [score or null for each condition]]...], most disagreement
            first}.
    places: segmentation -> for each document its chunks as [start, end, start, end...]. A chunk's
            number counts the chunks of all earlier documents.
    blocks: [{"texts": {document: [[start, text]...]}, "questions": {id: {"evidence": [[document,
            start, end]...], "lists": [numbers of chunks, best first, for each condition]}}}...].
            What lies between and beyond a text's pieces is not in the page.
    """

    index: Mapping[str, Any]
    places: Mapping[str, Sequence[Sequence[int]]]
    blocks: Sequence[Mapping[str, Any]]


def elements(records: Sequence[CorpusRecord], params: Params) -> str:
    """The data of all corpora as script elements that nothing runs."""
    around = reach(records)
    made = []
    for record in records:
        found = payload(record, params, around)
        parts = [("data", "application/json", data(found.index)),
                 ("places", "text/plain", packed(found.places))]
        parts += [(f"block-{i}", "text/plain", packed(block))
                  for i, block in enumerate(found.blocks)]
        made += [tag("script", text, type=kind, id=f"{name}-{record.name}")
                 for name, kind, text in parts]
    return "\n".join(made)


def reach(records: Sequence[CorpusRecord], limit: int = TEXT) -> int | None:
    """How much of each document the page can carry.

    limit:   bytes of UTF-8 over all corpora.
    returns: None for whole documents, else the code points on each side of evidence.
    """
    for around in (None, *AROUND):
        size = 0
        for record in records:
            wanted = kept(record, around)
            for doc_id, spans in wanted.items():
                body = record.documents[doc_id]["body"]
                size += sum(len(body[s.start : s.end].encode()) for s in spans)
            if size > limit:
                break
        if size <= limit:
            return around
    return AROUND[-1]


def kept(record: CorpusRecord, around: int | None) -> dict[str, list[Span]]:
    """The stretches of each document that the page carries, in order; none of an empty document."""
    bodies = {doc_id: row["body"] for doc_id, row in record.documents.items()}
    if around is None:
        return {doc_id: [Span(0, len(body))] for doc_id, body in bodies.items() if body}
    found: dict[str, list[Span]] = defaultdict(list)
    for question in record.questions:
        for item in question["evidence"]:
            body = bodies[item["doc_id"]]
            found[item["doc_id"]].append(Span(
                _word(body, max(0, item["start"] - around), item["start"]),
                min(len(body), item["end"] + around),
            ))
    return {doc_id: merge(found[doc_id]) for doc_id in bodies if doc_id in found}


def _word(body: str, start: int, stop: int) -> int:
    """The next beginning of a word from `start` on, at most `stop`."""
    if start == 0:
        return start
    return next((i + 1 for i in range(start, min(stop, start + 40)) if body[i].isspace()), start)


def payload(record: CorpusRecord, params: Params, around: int | None = None) -> Payload:
    """One corpus's questions, and of its documents what lies within `around` of evidence (None:
    everything)."""
    cell = primary_cell(record, params)
    scores = _scores(record, params, cell)
    conditions = [name for name in params.conditions if name in scores]
    documents = {doc_id: i for i, doc_id in enumerate(sorted(record.documents))}
    texts = kept(record, around)
    blocks = _blocks(documents, texts)
    places, numbers = _places(record, documents, {
        params.conditions[name].segmentation for name in conditions
    })
    made: list[dict[str, Any]] = [
        {"texts": {}, "questions": {}} for _ in range(1 + max(blocks.values(), default=0))
    ]
    for doc_id, spans in texts.items():
        body = record.documents[doc_id]["body"]
        made[blocks[doc_id]]["texts"][str(documents[doc_id])] = [
            [span.start, body[span.start : span.end]] for span in spans
        ]
    questions = []
    for row in record.questions:
        values = [scores[name].get(row["question_id"]) for name in conditions]
        lists = []
        for name in conditions:
            its = params.conditions[name]
            where = (layout.LEXICAL, WITHOUT) if its.retrieval == "bm25" else cell
            ranked = record.ranked[where].lists.get(name, {}) if where in record.ranked else {}
            known = numbers[its.segmentation]
            lists.append([known[chunk] for chunk in ranked.get(row["question_id"], [])])
        block = blocks[row["doc_id"]]
        made[block]["questions"][row["question_id"]] = {
            "evidence": [
                [documents[item["doc_id"]], item["start"], item["end"]] for item in row["evidence"]
            ],
            "lists": lists,
        }
        questions.append([
            row["question_id"], documents[row["doc_id"]], row["type"], row["text"],
            row["excluded"], row["base"], disagreement(values), block,
            [None if value is None else round(value, 4) for value in values],
        ])
    # Where conditions disagree most comes first, of equals where they are divided most evenly;
    # those without scores come last.
    questions.sort(key=lambda q: (q[6] is None, -(q[6] or 0.0), -_variance(q[8]), q[0]))
    place = {name: i for i, name in enumerate(conditions)}
    return Payload({
        "measure": TITLES.get(params.primary.measure, params.primary.measure),
        "cell": list(cell),
        "conditions": [
            [name, describe(params.conditions[name]), params.conditions[name].segmentation]
            for name in conditions
        ],
        "contrasts": [
            [name, place[a], place[b]]
            for name, (a, b) in params.contrasts.items() if a in place and b in place
        ],
        "documents": [
            [doc_id, record.documents[doc_id]["title"], blocks[doc_id],
             len(record.documents[doc_id]["body"])] for doc_id in documents
        ],
        "questions": questions,
    }, places, made)


def disagreement(values: Iterable[float | None]) -> float | None:
    """Highest minus lowest of one question's scores over conditions, 4 digits.

    returns: None where fewer than two conditions have a score.

    >>> disagreement([1.0, 0.25, None])
    0.75
    """
    found = [value for value in values if value is not None]
    return round(max(found) - min(found), 4) if len(found) > 1 else None


def _variance(values: Iterable[float | None]) -> float:
    """Variance over what has a value; exact sums, so that equal values give equal bits."""
    found = [value for value in values if value is not None]
    if not found:
        return 0.0
    mean = math.fsum(found) / len(found)
    return math.fsum((value - mean) ** 2 for value in found) / len(found)


def _scores(
    record: CorpusRecord, params: Params, cell: tuple[str, str]
) -> dict[str, dict[str, float | None]]:
    """condition -> question_id -> the primary measure, in the cell that the page shows."""
    found: dict[str, dict[str, float | None]] = {}
    wanted = {
        name: (layout.LEXICAL, "none") if its.retrieval == "bm25" else cell
        for name, its in params.conditions.items()
    }
    columns = ("embedder", "reranker", "condition", "question_id", params.primary.measure)
    for embedder, reranker, condition, question, value in zip(
        *(record.scores[column] for column in columns), strict=True
    ):
        if wanted.get(condition) == (embedder, reranker):
            found.setdefault(condition, {})[question] = value
    return found


def _blocks(documents: Iterable[str], texts: Mapping[str, Sequence[Span]]) -> dict[str, int]:
    """Which block each document goes to: neighbours in order of id share one."""
    found, block, size = {}, 0, 0
    for doc_id in documents:
        if size >= BLOCK:
            block, size = block + 1, 0
        found[doc_id] = block
        size += sum(len(span) for span in texts.get(doc_id, ()))
    return found


def _places(
    record: CorpusRecord, documents: Mapping[str, int], segmentations: Iterable[str]
) -> tuple[dict[str, list[list[int]]], dict[str, dict[str, int]]]:
    """Places of all chunks by document, and the number of each chunk id, by segmentation."""
    places: dict[str, list[list[int]]] = {}
    numbers: dict[str, dict[str, int]] = {}
    for segmentation in sorted(segmentations):
        rows = sorted(record.chunks.get(segmentation, {}).values(),
                      key=lambda row: (documents[row["doc_id"]], row["start"], row["end"]))
        mine: list[list[int]] = [[] for _ in documents]
        for row in rows:
            mine[documents[row["doc_id"]]] += [row["start"], row["end"]]
        places[segmentation] = mine
        numbers[segmentation] = {row["chunk_id"]: i for i, row in enumerate(rows)}
    return places, numbers
