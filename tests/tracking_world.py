"""A finished toy study for the tracking room's tests: two cells, three conditions, one absent
contrast."""

from __future__ import annotations

import json
from pathlib import Path
from statistics import fmean
from typing import Any

import numpy as np
import pyarrow as pa
import yaml

from spanwise import layout, schemas
from spanwise.params import MEASURES, Params, from_mapping

CONDITIONS = ("A0", "A2", "A3")
EMBEDDERS = ("minilm", "mpnet")
PAIRS = {"A2-A0": ("step", "A2", "A0"), "C2": ("contrast", "A3", "A2")}
RUNS = len(EMBEDDERS) * (1 + len(CONDITIONS) + len(PAIRS))
"""2 cells x (its own run + 3 conditions + 2 contrasts) = 12."""
MISSING = "contexts need a language model"


def a_study(corpus: str = "toy") -> dict[str, Any]:
    """params.yaml of a study with four conditions, one of them without results."""
    model = {"pooling": "mean"}
    return {
        "corpora": {corpus: {"reader": "text", "path": f"data/{corpus}", "demonstration": True}},
        "embedders": {"minilm": {"model": "some/minilm", **model},
                      "mpnet": {"model": "some/mpnet", "query_prompt": "query: ", **model}},
        "tokens": {"tokenizer": "words"},
        "chunking": {"cap_tokens": 350, "floor_tokens": 60},
        "inducers": {"segmenter": {"embedder": "minilm", "levels": 3, "section_tokens": 200}},
        "llm": {"model": "m"},
        "prefixes": {"placebo": {"depth": 3, "seed": 1}},
        "retrieval": {"depth": 50, "sections": 5, "bm25": {"k1": 1.2, "b": 0.75}},
        "conditions": {
            "A0": {"segmentation": "fixed", "prefix": "none", "depth": 0, "retrieval": "flat"},
            "A1": {"segmentation": "fixed", "prefix": "context", "depth": 0, "retrieval": "flat"},
            "A2": {"segmentation": "induced", "prefix": "none", "depth": 0, "retrieval": "flat"},
            "A3": {"segmentation": "induced", "prefix": "path", "depth": 3, "retrieval": "flat"},
        },
        "contrasts": {"C1": ["A3", "A1"], "C2": ["A3", "A2"]},
        "steps": {"A2-A0": ["A2", "A0"]},
        "primary": {"measure": "cov_ndcg@10", "embedder": "mpnet", "reranker": "none"},
        "inference": {"iterations": 50, "seed": 7, "margin": 0.01},
    }


def score_rows(changed: dict[tuple[str, str, str], float]) -> list[dict[str, Any]]:
    """Eight questions over three documents; q7 rewords q0, and has no coverage@512."""
    rows = []
    for e, embedder in enumerate(EMBEDDERS):
        for c, condition in enumerate(CONDITIONS):
            for q in range(8):
                question = f"q{q}"
                start = 3 * e + 5 * c + 7 * q
                values = {m: (start + k) % 11 / 10 for k, m in enumerate(MEASURES)}
                values["cov_ndcg@10"] = changed.get(
                    (embedder, condition, question), values["cov_ndcg@10"]
                )
                rows.append({
                    "embedder": embedder, "reranker": "none", "condition": condition,
                    "question_id": question, "doc_id": f"d{q % 3}",
                    "type": "factoid" if q % 2 else "multihop", "rewording": q == 7,
                    **values, "coverage@512": None if q == 7 else values["coverage@512"],
                })
    return rows


def mean_rows(scores: list[dict[str, Any]]) -> list[dict[str, Any]]:
    slices = {
        "primary": lambda row: not row["rewording"],
        "rewordings": lambda row: row["rewording"],
        "type:factoid": lambda row: not row["rewording"] and row["type"] == "factoid",
        "type:multihop": lambda row: not row["rewording"] and row["type"] == "multihop",
    }
    rows = []
    for embedder in EMBEDDERS:
        for condition in CONDITIONS:
            its = [r for r in scores if (r["embedder"], r["condition"]) == (embedder, condition)]
            for part, holds in slices.items():
                for measure in MEASURES:
                    listed = [row[measure] for row in its if holds(row)]
                    values = [value for value in listed if value is not None]
                    rows.append({
                        "embedder": embedder, "reranker": "none", "condition": condition,
                        "slice": part, "measure": measure, "n_questions": len(values),
                        "undefined": len(listed) - len(values),
                        "mean": fmean(values) if values else None,
                    })
    return rows


def contrast_rows(
    scores: list[dict[str, Any]], standing: str
) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """Figures and draws: an input to tracking, so the draws are merely plausible."""
    rows, draws = [], []
    for embedder in EMBEDDERS:
        for measure in MEASURES:
            cell = {"embedder": embedder, "reranker": "none", "measure": measure}
            empty = dict.fromkeys(
                field.name for field in schemas.CONTRASTS.columns if field.nullable
            )
            rows.append({
                **cell, "family": "contrast", "name": "C1", "a": "A3", "b": "A1",
                "standing": "exploratory", "status": "absent", "n_questions": 0,
                "n_documents": 0, "excluded": 0, **empty, "reason": f"A1: {MISSING}",
            })
            for name, (family, a, b) in PAIRS.items():
                further = {
                    field.name: _something(field.type) if family == "contrast" else None
                    for field in schemas.CONTRASTS.columns if field.nullable
                }
                sides = [
                    [row[measure] for row in scores
                     if (row["embedder"], row["condition"]) == (embedder, condition)
                     and not row["rewording"]]
                    for condition in (a, b)
                ]
                delta = fmean(sides[0]) - fmean(sides[1])
                drawn = np.random.default_rng(3).normal(delta, 0.1, 50)
                primary = (embedder, measure, family) == ("mpnet", "cov_ndcg@10", "contrast")
                rows.append({
                    **cell, "family": family, "name": name, "a": a, "b": b,
                    "standing": standing if primary else "exploratory", "status": "estimated",
                    **further, "reason": None, "n_questions": 7, "n_documents": 3, "excluded": 0,
                    "mean_a": fmean(sides[0]), "mean_b": fmean(sides[1]), "delta": delta,
                    "ci_low": float(np.percentile(drawn, 2.5)),
                    "ci_high": float(np.percentile(drawn, 97.5)), "p": 0.5, "dz": None,
                    "p_holm": 1.0 if primary else None,
                })
                if measure == "cov_ndcg@10":
                    draws += [{**cell, "name": name, "draw": i, "delta": float(value)}
                              for i, value in enumerate(drawn)]
    return rows, draws


def check_rows() -> list[dict[str, Any]]:
    """What stands beside contrasts of the primary measure: plausible figures, one caution."""
    return [
        {
            **{f.name: _something(f.type) for f in schemas.CHECKS.columns},
            "embedder": embedder, "reranker": "none", "measure": "cov_ndcg@10",
            "family": family, "name": name, "bca_low": -0.5, "documents_needed": 300,
        }
        for embedder in EMBEDDERS for name, (family, _, _) in PAIRS.items()
    ]


def mixed_rows() -> list[dict[str, Any]]:
    """Two models of each contrast; the second has no estimate."""
    return [
        {
            **{f.name: _something(f.type) for f in schemas.MIXED.columns},
            "embedder": embedder, "reranker": "none", "measure": "cov_ndcg@10", "name": name,
            "model": model, "estimate": 0.125 if model == "stacked" else None,
        }
        for embedder in EMBEDDERS for name in PAIRS for model in ("stacked", "paired")
    ]


def _something(kind: pa.DataType) -> Any:
    """A value for a column that these tests know nothing else of."""
    if pa.types.is_list(kind):
        return ["said", "said too"]
    if pa.types.is_boolean(kind):
        return True
    return "said" if pa.types.is_string(kind) else 1 if pa.types.is_integer(kind) else 0.25


def a_project(
    root: Path, corpus: str = "toy", changed: dict[tuple[str, str, str], float] | None = None,
    standing: str = "exploratory",
) -> Params:
    """The artifacts of a finished study, and its params.yaml, in `root`."""
    study = a_study(corpus)
    schemas.write_text(root / "params.yaml", yaml.safe_dump(study))
    scores = score_rows(changed or {})
    contrasts, draws = contrast_rows(scores, standing)
    infer, score = root / layout.stage("infer", corpus), root / layout.stage("score", corpus)
    for path, schema, rows in (
        (score / "scores.parquet", schemas.SCORES, scores),
        (infer / "means.parquet", schemas.MEANS, mean_rows(scores)),
        (infer / "contrasts.parquet", schemas.CONTRASTS, contrasts),
        (infer / "replicates.parquet", schemas.REPLICATES, draws),
        (infer / "checks.parquet", schemas.CHECKS, check_rows()),
        (infer / "mixed.parquet", schemas.MIXED, mixed_rows()),
    ):
        schemas.write(path, schema, schemas.table(schema, rows))
    reports = {
        infer: {
            "corpus": corpus, "demonstration": True, "standing": standing,
            "differences": [] if standing == "confirmatory" else ["not registered"],
            "exclusions": {"no-answer": 4, "headings only": 1},
            "registered_at": None, "origin": "given", "bm25_gold_first": {"share": 0.5},
            "digests": {"documents": "d" * 64, "questions": "e" * 64},
        },
        root / layout.stage("label", corpus): {"absent": {"fixed-context-0": MISSING}},
        root / layout.stage("units", corpus): {"asked": False},
        score: {"absent_cells": {}},
    }
    for folder, report in reports.items():
        schemas.write_text(folder / "report.json", json.dumps(report))
    return from_mapping(study)


def client_of(uri: str) -> Any:
    """A client of one store."""
    from mlflow import MlflowClient

    return MlflowClient(tracking_uri=uri)
