"""The study's contrasts: confirmatory ones in the primary cell, all else beside them, marked."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from spanwise.params import MEASURES, Condition, Params
from spanwise.statistics.clusters import connected
from spanwise.statistics.contrasts import Column, Contrast, infer, pair
from spanwise.statistics.dose import DEPTHS, slopes

Cell = tuple[str, str]
"""(embedder, reranker)."""

_Family = tuple[str, Mapping[str, Sequence[str]], int | None, Mapping[str, str] | None]
"""Name, contrasts, Holm's m, and the cluster of each document where it is not the document."""


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


def _primary(study: Study, rows: Iterable[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    """Answerable questions that are no rewordings."""
    return [r for r in rows if not r["rewording"] and r["question_id"] not in study.excluded]


def means(study: Study) -> list[dict[str, Any]]:
    """Rows of MEANS: every measure of every condition, over the slices."""
    made: list[dict[str, Any]] = []
    for (embedder, reranker), conditions in cells(study).items():
        for condition, rows in conditions.items():
            primary = _primary(study, rows)
            slices: dict[str, list[Mapping[str, Any]]] = {
                "primary": primary,
                "rewordings": [
                    r for r in rows if r["rewording"] and r["question_id"] not in study.excluded
                ],
            }
            for row in primary:
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


def contrasts(study: Study) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """Rows of CONTRASTS for every cell and measure, and of REPLICATES for the primary measure."""
    made: list[dict[str, Any]] = []
    replicates: list[dict[str, Any]] = []
    for cell, conditions in cells(study).items():
        if not any(arm in conditions for two in study.params.contrasts.values() for arm in two):
            continue  # a cell of a lexical condition has no arm of any contrast
        for measure in MEASURES:
            columns = {
                name: {
                    r["question_id"]: (r["doc_id"], r[measure]) for r in _primary(study, rows)
                }
                for name, rows in conditions.items()
            }
            rows, drawn = _measure(study, cell, measure, columns)
            made += rows
            replicates += drawn
    return made, replicates


def _measure(
    study: Study, cell: Cell, measure: str, columns: Mapping[str, Column]
) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    params, primary = study.params, study.params.primary
    size = len(params.contrasts)  # Holm's m, also where a contrast is absent
    families: list[_Family] = [
        ("contrast", params.contrasts, size, None), ("step", params.steps, len(params.steps), None)
    ]
    if measure == primary.measure:
        joined = connected(study.documents.values())
        if any(joined[doc] != doc for doc in joined):
            # Evidence crosses documents: the same contrasts, connected documents as one cluster.
            families.append(("connected", params.contrasts, size, joined))
    made: list[dict[str, Any]] = []
    replicates: list[dict[str, Any]] = []
    for family, pairs, m, clusters in families:
        present = {n: two for n, two in pairs.items() if all(arm in columns for arm in two)}
        paired = [
            pair(name, _clustered(columns[a], clusters), _clustered(columns[b], clusters))
            for name, (a, b) in present.items()
        ]
        results = infer(paired, params.inference.iterations, params.inference.seed, m)
        found = {result.name: result for result in results}
        for name, (a, b) in pairs.items():
            confirmatory = (
                name in found  # an absent contrast confirms nothing
                and family == "contrast"
                and study.standing == "confirmatory"
                and (*cell, measure) == (primary.embedder, primary.reranker, primary.measure)
            )
            made.append(
                _row(cell, measure, family, name, a, b, confirmatory, found.get(name),
                     _why_absent(study, (a, b), columns))
            )
            if measure == primary.measure and family in ("contrast", "step") and name in found:
                replicates += [
                    {
                        "embedder": cell[0], "reranker": cell[1], "measure": measure, "name": name,
                        "draw": draw, "delta": delta,
                    }
                    for draw, delta in enumerate(found[name].replicates.tolist())
                ]
    made += _doses(study, cell, measure, columns)
    return made, replicates


def _clustered(column: Column, clusters: Mapping[str, str] | None) -> Column:
    if clusters is None:
        return column
    return {q: (clusters.get(doc, doc), value) for q, (doc, value) in column.items()}


def _why_absent(study: Study, arms: Sequence[str], columns: Mapping[str, Column]) -> str:
    return "; ".join(
        f"{arm}: {study.absent.get(study.params.conditions[arm].label, 'not in this cell')}"
        for arm in arms
        if arm not in columns
    )


def _row(
    cell: Cell, measure: str, family: str, name: str, a: str, b: str, confirmatory: bool,
    found: Contrast | None, absent: str,
) -> dict[str, Any]:
    row: dict[str, Any] = {
        "embedder": cell[0], "reranker": cell[1], "measure": measure, "family": family,
        "name": name, "a": a, "b": b,
        "standing": "confirmatory" if confirmatory else "exploratory",
        "status": "absent", "reason": absent, "n_questions": 0, "n_documents": 0, "excluded": 0,
    }
    figures = ("mean_a", "mean_b", "delta", "ci_low", "ci_high", "p", "dz", "p_holm")
    if found is None:
        return row | dict.fromkeys(figures)
    return row | {
        "status": "estimated", "reason": found.reason, "n_questions": found.n_questions,
        "n_documents": found.n_documents, "excluded": sum(found.excluded.values()),
        **{figure: getattr(found, figure) for figure in figures},
    }


def ladders(conditions: Mapping[str, Condition]) -> dict[str, list[str]]:
    """Segmentation -> the conditions that differ in nothing but the path's depth 0, 1, 2, 3."""
    found: dict[str, dict[int, str]] = {}
    for name, its in conditions.items():
        if its.retrieval == "flat" and its.prefix in ("none", "path"):
            found.setdefault(its.segmentation, {}).setdefault(its.depth, name)
    return {
        segmentation: [rungs[depth] for depth in DEPTHS]
        for segmentation, rungs in found.items()
        if set(DEPTHS) <= rungs.keys()
    }


def _doses(
    study: Study, cell: Cell, measure: str, columns: Mapping[str, Column]
) -> list[dict[str, Any]]:
    """Rows of family `dose`: the mean slope for each further level of the path; b is depth 0."""
    made = []
    settings = study.params.inference
    for segmentation, rungs in ladders(study.params.conditions).items():
        if any(rung not in columns for rung in rungs):
            continue
        found = slopes([columns[rung] for rung in rungs])
        drawn = found.resample(settings.iterations, settings.seed)
        row = _row(cell, measure, "dose", f"depth-{segmentation}", rungs[-1], rungs[0], False,
                   None, "")
        made.append(
            row | {
                "status": "estimated", "reason": None, "n_questions": len(found.values),
                "n_documents": drawn.n_documents, "excluded": sum(found.excluded.values()),
                "delta": drawn.mean, "ci_low": drawn.ci_low, "ci_high": drawn.ci_high, "p": drawn.p,
            }
        )
    return made
