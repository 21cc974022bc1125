"""Documents and questions as tables, and back; evidence mapped to `body` on the way in."""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa

from spanwise import schemas
from spanwise.documents.model import Corpus, Document, Paragraph, Question, sha256
from spanwise.errors import CorpusError, QuestionError
from spanwise.spans import Evidence, Span, unite

ONLY_HEADINGS = "evidence only in headings"
"""Why a question whose gold spans all drop out of `body` leaves the ablation."""

UNUSABLE = "document without a usable induced tree"
"""Why a question about a document that is in no index leaves it."""


def document_tables(documents: Sequence[Document]) -> dict[str, pa.Table]:
    """The `documents` and `paragraphs` tables."""
    seen: set[str] = set()
    for document in documents:
        if document.doc_id in seen:
            raise CorpusError(f"document id {document.doc_id!r} occurs twice; rename one")
        seen.add(document.doc_id)
    rows = [
        {
            "doc_id": d.doc_id, "source": d.source, "version": d.version, "title": d.title,
            "body": d.body, "raw": d.raw, "body_sha256": sha256(d.body),
            "raw_sha256": None if d.raw is None else sha256(d.raw),
            "words": len(d.body.split()), "labels": list(d.labels),
        }
        for d in documents
    ]
    paragraphs = [
        {
            "doc_id": d.doc_id, "index": index, "start": p.span.start, "end": p.span.end,
            "raw_start": p.raw.start if p.raw else None, "raw_end": p.raw.end if p.raw else None,
            "kind": p.kind,
        }
        for d in documents
        for index, p in enumerate(d.paragraphs)
    ]
    return {
        "documents": schemas.table(schemas.DOCUMENTS, rows),
        "paragraphs": schemas.table(schemas.PARAGRAPHS, paragraphs),
    }


def question_table(corpus: Corpus) -> tuple[pa.Table, dict[str, int]]:
    """The `questions` table, and counts of what mapping to `body` changed.

    raises: QuestionError for a repeated id, a missing document, or a span that leaves its text.
    """
    documents = {document.doc_id: document for document in corpus.documents}
    counts: Counter[str] = Counter()
    seen: set[str] = set()
    rows = []
    for question in corpus.questions:
        if question.question_id in seen:
            raise QuestionError(f"question id {question.question_id!r} occurs twice; rename one")
        seen.add(question.question_id)
        _check(question, documents, corpus.evidence)
        given = unite(question.evidence, question.bundles)
        body, bundles = given
        if corpus.evidence == "raw":
            body, bundles = unite(*_to_body(question, documents, counts))
        excluded = question.excluded
        if excluded is None and not body:
            excluded = ONLY_HEADINGS if question.evidence else "no evidence"
        rows.append(
            {
                "question_id": question.question_id, "doc_id": question.doc_id,
                "text": question.text, "type": question.type, "base": question.base,
                "evidence": _spans(body), "bundles": bundles,
                "raw_evidence": _spans(given[0]) if corpus.evidence == "raw" else None,
                "raw_bundles": given[1] if corpus.evidence == "raw" else None,
                "excluded": excluded,
            }
        )
        counts[f"excluded: {excluded}"] += excluded is not None
    kept = {name: count for name, count in sorted(counts.items()) if count}
    return schemas.table(schemas.QUESTIONS, rows), kept


def anchor_table(corpus: Corpus) -> pa.Table:
    """The `anchors` table: gold spans as they were given, each with the one text that it is of.

    A rewording has its base's. Call `question_table` first: it holds the spans against their texts.
    """
    documents = {document.doc_id: document for document in corpus.documents}
    parents = {d.doc_id: d.body if corpus.evidence == "body" else d.raw or "" for d in
               corpus.documents}
    digests = {doc_id: sha256(text) for doc_id, text in parents.items()}
    rows = [
        {
            "question_id": question.question_id, "index": index,
            "source": documents[item.doc_id].source, "doc_id": item.doc_id,
            "version": documents[item.doc_id].version, "representation": corpus.evidence,
            "parent_sha256": digests[item.doc_id], "start": item.start, "end": item.end,
            "quote": parents[item.doc_id][item.start : item.end],
            "bundles": [n for n, bundle in enumerate(question.bundles) if index in bundle],
        }
        for question in corpus.questions
        if question.base is None
        for index, item in enumerate(question.evidence)
    ]
    return schemas.table(schemas.ANCHORS, rows)


def _check(question: Question, documents: Mapping[str, Document], representation: str) -> None:
    where = f"question {question.question_id!r}"
    if question.doc_id not in documents:
        raise QuestionError(f"{where}: its document {question.doc_id!r} is not in the corpus")
    for item in question.evidence:
        document = documents.get(item.doc_id)
        if document is None:
            raise QuestionError(f"{where}: evidence in {item.doc_id!r}, which is not in the corpus")
        text = document.body if representation == "body" else document.raw
        if text is None or item.end > len(text):
            raise QuestionError(
                f"{where}: evidence [{item.start}, {item.end}) leaves the {representation} of "
                f"{item.doc_id!r}, which has {len(text or '')} code points"
            )


def _to_body(
    question: Question, documents: Mapping[str, Document], counts: Counter[str]
) -> tuple[list[Evidence], list[list[int]]]:
    """Evidence on raw through the paragraph table; what stands in headings drops out, counted."""
    mapped: list[Evidence] = []
    place: dict[int, int] = {}
    for index, item in enumerate(question.evidence):
        span, dropped = documents[item.doc_id].to_body(item.span)
        counts["evidence characters dropped with headings"] += dropped
        if span is None:
            counts["evidence spans dropped with headings"] += 1
            continue
        place[index] = len(mapped)
        mapped.append(Evidence(item.doc_id, span.start, span.end))
    bundles = [[place[i] for i in bundle if i in place] for bundle in question.bundles]
    return mapped, [bundle for bundle in bundles if bundle]


def _spans(evidence: Sequence[Evidence]) -> list[dict[str, Any]]:
    return [{"doc_id": e.doc_id, "start": e.start, "end": e.end} for e in evidence]


def load_documents(folder: Path) -> list[Document]:
    """Documents of a parse folder, sorted by id, without headings: the native tree holds them."""
    paragraphs: dict[str, list[Paragraph]] = {}
    for row in schemas.read(folder / "paragraphs.parquet", schemas.PARAGRAPHS).to_pylist():
        raw = None if row["raw_start"] is None else Span(row["raw_start"], row["raw_end"])
        paragraphs.setdefault(row["doc_id"], []).append(
            Paragraph(Span(row["start"], row["end"]), row["kind"], raw)
        )
    return [
        Document(
            row["doc_id"], row["title"], row["body"], tuple(paragraphs.get(row["doc_id"], ())), (),
            row["raw"], row["source"], row["version"], tuple(row["labels"]),
        )
        for row in schemas.read(folder / "documents.parquet", schemas.DOCUMENTS).to_pylist()
    ]


def load_questions(folder: Path, unusable: Collection[str] = ()) -> pa.Table:
    """The `questions` table of a stage's folder, sorted by id: `ask`, or `parse` as they came.

    unusable: documents without a usable induced tree; a question about one of them, or with
              evidence in one, leaves the ablation.
    """
    table = schemas.read(folder / "questions.parquet", schemas.QUESTIONS)
    excluded = [
        UNUSABLE
        if row["excluded"] is None
        and {row["doc_id"], *(e["doc_id"] for e in row["evidence"])} & set(unusable)
        else row["excluded"]
        for row in table.select(["doc_id", "evidence", "excluded"]).to_pylist()
    ]
    field = schemas.QUESTIONS.columns.field("excluded")
    # The type is named: a column of nulls alone would have none.
    column = pa.array(excluded, field.type)
    return table.set_column(table.schema.get_field_index("excluded"), field, column)


def digests(tables: Mapping[str, pa.Table]) -> dict[str, str]:
    """SHA-256 of what a corpus is: its documents (ids, titles, both texts), and its questions."""
    documents = tables["documents"].select(["doc_id", "title", "body_sha256", "raw_sha256"])
    return {"documents": digest(documents), "questions": digest(tables["questions"])}


def digest(table: pa.Table) -> str:
    """SHA-256 of a table's rows in their order, whatever wrote its file."""
    rows = json.dumps(table.to_pylist(), sort_keys=True, ensure_ascii=False)
    return hashlib.sha256(rows.encode("utf-8")).hexdigest()
