"""Every condition's ranked lists: as tables for the pipeline, as TREC run files for anyone."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from spanwise import schemas
from spanwise.index import Shelf, propose_lancedb, shelf
from spanwise.params import Bm25Settings, Condition, RetrievalSettings
from spanwise.retrieval.flat import DIGITS, Ranking, flat
from spanwise.retrieval.routed import routed, section_recall, sections


def dense(
    folder: Path, conditions: Mapping[str, Condition], questions: Sequence[Mapping[str, Any]],
    queries: NDArray[np.float32], settings: RetrievalSettings,
) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """Rank the index for each question under each flat or routed condition.

    folder:  the LanceDB folder of one corpus and embedder.
    queries: (q, dim) unit vectors, in the order of `questions`.
    returns: rows of RUNS and of ROUTING.
    """
    runs: list[dict[str, Any]] = []
    routing: list[dict[str, Any]] = []
    shared: dict[str, tuple[Shelf, list[Ranking]]] = {}
    for name, condition in conditions.items():
        if condition.label not in shared:
            on = shelf(folder, condition.label)
            lists = flat(on, queries, settings.depth, propose_lancedb(folder, on))
            shared[condition.label] = (on, lists)
        on, rankings = shared[condition.label]
        if condition.retrieval == "routed":
            within = sections(on)
            for place, question in enumerate(questions):
                ranking, kept = routed(
                    on, within, queries[place], rankings[place], settings.depth, settings.sections
                )
                evidence = [(e["doc_id"], e["start"], e["end"]) for e in question["evidence"]]
                routing.append(
                    {
                        "condition": name, "question_id": question["question_id"],
                        "kept": [within.name(section) for section in kept],
                        "section_recall": section_recall(on, within, kept, evidence),
                    }
                )
                runs += _rows(name, question, ranking, on.chunk_ids)
        else:
            for question, ranking in zip(questions, rankings, strict=True):
                runs += _rows(name, question, ranking, on.chunk_ids)
    return runs, routing


def lexical(
    name: str, chunks: Sequence[Mapping[str, Any]], texts: Sequence[str],
    questions: Sequence[Mapping[str, Any]], settings: Bm25Settings, depth: int,
) -> list[dict[str, Any]]:
    """RUNS rows of a BM25 condition over chunk contents.

    chunks: rows of CHUNKS of one segmentation, sorted by (doc_id, start); texts: their contents.
    """
    from spanwise.retrieval.bm25 import bm25

    ids = [chunk["chunk_id"] for chunk in chunks]
    rankings = bm25(texts, [question["text"] for question in questions], settings, depth)
    rows: list[dict[str, Any]] = []
    for question, ranking in zip(questions, rankings, strict=True):
        rows += _rows(name, question, ranking, ids)
    return rows


def _rows(
    condition: str, question: Mapping[str, Any], ranking: Ranking, chunk_ids: Sequence[str]
) -> list[dict[str, Any]]:
    return [
        {
            "condition": condition, "question_id": question["question_id"], "rank": rank,
            "chunk_id": chunk_ids[row], "score": score,
        }
        for rank, (row, score) in enumerate(
            zip(ranking.rows.tolist(), ranking.scores.tolist(), strict=True), start=1
        )
    ]


def write_runs(
    folder: Path, runs: Sequence[Mapping[str, Any]], routing: Sequence[Mapping[str, Any]]
) -> None:
    """Ranked lists as `runs.parquet`, what routing kept as `routing.parquet`, and run files."""
    schemas.write(folder / "runs.parquet", schemas.RUNS, schemas.table(schemas.RUNS, runs))
    schemas.write(
        folder / "routing.parquet", schemas.ROUTING, schemas.table(schemas.ROUTING, routing)
    )
    write_trec(folder / "trec", runs)


def write_trec(folder: Path, rows: Sequence[Mapping[str, Any]]) -> None:
    """One TREC run file for each condition: `question Q0 chunk rank score condition`.

    A reader orders by score, then by chunk id. Where scores tie, our order is by place, which is
    not always the order of ids; the rank column keeps ours, and equal scores are lowered by less
    than their rounding so that reading the file gives the same list.
    """
    lines: dict[str, list[str]] = {}
    previous: tuple[str, str] | None = None
    score = 0.0
    for row in rows:
        here = (row["condition"], row["question_id"])
        step = 10.0 ** -(DIGITS + 3)
        score = row["score"] if here != previous else min(row["score"], score - step)
        previous = here
        lines.setdefault(row["condition"], []).append(
            f"{row['question_id']} Q0 {row['chunk_id']} {row['rank']} {score:.9f} "
            f"{row['condition']}\n"
        )
    for condition, found in lines.items():
        schemas.write_text(folder / f"{condition}.trec", "".join(found))
