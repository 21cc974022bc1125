"""What the stages left of one question: lists, scores, chunks and prefixes; and lists of now."""

from __future__ import annotations

import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pyarrow.compute as pc

from spanwise import layout, schemas
from spanwise.errors import InputError
from spanwise.params import Params
from spanwise.show.found import Found
from spanwise.spans import Span


def recorded(
    corpus: str, embedder: str, question_id: str
) -> tuple[set[str], dict[str, list[dict[str, Any]]]]:
    """The conditions that ran, and what each retrieved for the question."""
    ran: set[str] = set()
    found: dict[str, list[dict[str, Any]]] = {}
    for cell in (embedder, layout.LEXICAL):
        runs = schemas.read(layout.cell("retrieve", corpus, cell) / "runs.parquet", schemas.RUNS)
        ran |= set(runs["condition"].unique().to_pylist())
        for row in runs.filter(pc.equal(runs["question_id"], question_id)).to_pylist():
            found.setdefault(row["condition"], []).append(row)
    return ran, found


def scores(corpus: str, embedder: str, question_id: str, measure: str) -> dict[str, float | None]:
    table = schemas.read(layout.stage("score", corpus) / "scores.parquet", schemas.SCORES)
    rows = table.filter(pc.equal(table["question_id"], question_id)).to_pylist()
    return {
        r["condition"]: r[measure] for r in rows if r["embedder"] in (embedder, layout.LEXICAL)
    }


def chunks(corpus: str) -> dict[tuple[str, str], dict[str, Any]]:
    table = schemas.read(layout.stage("chunk", corpus) / "chunks.parquet", schemas.CHUNKS)
    return {(row["segmentation"], row["chunk_id"]): row for row in table.to_pylist()}


def prefixes(corpus: str) -> dict[tuple[str, str], str]:
    """What stood before each chunk when it was embedded, by label and chunk id."""
    table = schemas.read(layout.stage("label", corpus) / "labels.parquet", schemas.LABELS)
    columns = (table[name].to_pylist() for name in ("label", "chunk_id", "prefix"))
    return {(label, chunk): prefix for label, chunk, prefix in zip(*columns, strict=True)}


def place(
    condition: str, segmentation: str, label: str, row: Mapping[str, Any],
    chunks: Mapping[tuple[str, str], dict[str, Any]], prefixes: Mapping[tuple[str, str], str],
) -> tuple[dict[str, Any], str]:
    """The chunk of a recorded row and the prefix that it was embedded with.

    raises: InputError if settings changed after the run, so that there is no such chunk or label.
    """
    chunk = chunks.get((segmentation, row["chunk_id"]))
    if chunk is None:
        raise InputError(
            f"{condition}: its record names {row['chunk_id']}, which is no {segmentation} "
            "chunk: something changed after the last run; run `dvc repro`"
        )
    prefix = prefixes.get((label, row["chunk_id"]))
    if prefix is None:
        raise InputError(
            f"{condition}: {row['chunk_id']} has no label {label}: something changed after the "
            "last run; run `dvc repro`"
        )
    return chunk, prefix


def first(
    ranked: Sequence[Mapping[str, Any]], places: Sequence[tuple[dict[str, Any], str]],
    evidence: Sequence[Mapping[str, Any]],
) -> int | None:
    """The rank of the first chunk that overlaps any evidence."""
    for row, (chunk, _) in zip(ranked, places, strict=True):
        span = Span(chunk["start"], chunk["end"])
        if any(e["doc_id"] == chunk["doc_id"] and Span(e["start"], e["end"]).overlap(span)
               for e in evidence):
            return int(row["rank"])
    return None


def fresh(params: Params, found: Found, embedder: str) -> dict[str, list[str]]:
    """The chunk ids that each dense condition retrieves now, the question embedded anew."""
    from spanwise.embedding import embed, query_text
    from spanwise.retrieval.runs import dense

    settings = params.embedders[embedder]
    absent = layout.read_report(layout.stage("label", found.corpus) / "report.json")["absent"]
    conditions = {
        name: its
        for name, its in params.conditions.items()
        if its.retrieval != "bm25" and its.label not in absent
    }
    text = query_text(settings, found.question["text"])
    with tempfile.TemporaryDirectory() as scratch:
        vectors, _ = embed([text], settings, Path(scratch), processes=1)
    runs, _ = dense(
        layout.cell("index", found.corpus, embedder), conditions, [found.question],
        vectors.of([text]), params.retrieval,
    )
    now: dict[str, list[str]] = {}
    for row in runs:
        now.setdefault(row["condition"], []).append(row["chunk_id"])
    return now
