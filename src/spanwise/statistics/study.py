"""What inference on one corpus reads: its scores, by cell and slice, and their means."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from spanwise.params import MEASURES, Params

Cell = tuple[str, str]
"""(embedder, reranker)."""


@dataclass(frozen=True, slots=True)
class Study:
    """Everything that inference on one corpus reads.

    scores:    the SCORES table.
    absent:    label -> why conditions with it could not be run.
    standing:  what the primary results may be called.
    documents: for each primary question, the documents of its evidence and its own.
    excluded:  questions that leave the ablation, whatever their condition.
    """

    params: Params
    scores: pa.Table
    absent: Mapping[str, str]
    standing: str
    documents: Mapping[str, Sequence[str]]
    excluded: frozenset[str]


def cells(study: Study) -> dict[Cell, dict[str, list[dict[str, Any]]]]:
    """Rows of each cell by condition."""
    found: dict[Cell, dict[str, list[dict[str, Any]]]] = {}
    for row in study.scores.to_pylist():
        cell = found.setdefault((row["embedder"], row["reranker"]), {})
        cell.setdefault(row["condition"], []).append(row)
    return found


def primary(study: Study, rows: Iterable[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    """Answerable questions that are no rewordings."""
    return [r for r in rows if not r["rewording"] and r["question_id"] not in study.excluded]


def means(study: Study) -> list[dict[str, Any]]:
    """Rows of MEANS: every measure of every condition, over the slices."""
    made: list[dict[str, Any]] = []
    for (embedder, reranker), conditions in cells(study).items():
        for condition, rows in conditions.items():
            kept = primary(study, rows)
            slices: dict[str, list[Mapping[str, Any]]] = {
                "primary": kept,
                "rewordings": [
                    r for r in rows if r["rewording"] and r["question_id"] not in study.excluded
                ],
            }
            for row in kept:
                slices.setdefault(f"type:{row['type']}", []).append(row)
            for name, members in slices.items():
                for measure in MEASURES:
                    known = [r[measure] for r in members if r[measure] is not None]
                    made.append(
                        {
                            "embedder": embedder, "reranker": reranker, "condition": condition,
                            "slice": name, "measure": measure, "n_questions": len(known),
                            "undefined": len(members) - len(known),
                            "mean": math.fsum(known) / len(known) if known else None,
                        }
                    )
    return made
