"""The study's scores: every question under every condition of every cell, and what was counted."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from spanwise.measures import tables
from spanwise.measures.evaluate import Evaluator
from spanwise.params import MEASURES, Condition


class Scorer:
    """Scores the runs of one corpus; conditions that share a segmentation share an ideal."""

    def __init__(
        self, questions: pa.Table, chunks: pa.Table, labels: pa.Table,
        conditions: Mapping[str, Condition],
    ) -> None:
        self.questions, self.labels, self.conditions = questions, labels, conditions
        gold = tables.gold(questions)
        self.evaluators = {
            name: Evaluator(gold, tables.chunks(chunks, name))
            for name in sorted({c.segmentation for c in conditions.values()})
        }

    def score(
        self, embedder: str, reranker: str, runs: pa.Table
    ) -> tuple[list[dict[str, Any]], dict[str, dict[str, int]]]:
        """Rows of SCORES for every condition of one cell's runs, and the counts of each."""
        rows: list[dict[str, Any]] = []
        counts: dict[str, dict[str, int]] = {}
        present = set(pc.unique(runs["condition"]).to_pylist())
        columns = [self.questions[n].to_pylist() for n in ("question_id", "doc_id", "type", "base")]
        for name, condition in self.conditions.items():
            if name not in present:
                continue
            evaluator = self.evaluators[condition.segmentation]
            scores = evaluator.evaluate(
                tables.ranking(runs, name, evaluator.gold, evaluator.chunks),
                tables.prefix_tokens(self.labels, condition.label, evaluator.chunks),
            )
            counts[name] = dict(scores.counts)
            values = [scores.column(measure).to_pylist() for measure in MEASURES]
            for question, doc, kind, base, *measured in zip(*columns, *values, strict=True):
                rows.append(
                    {
                        "embedder": embedder, "reranker": reranker, "condition": name,
                        "question_id": question, "doc_id": doc, "type": kind,
                        "rewording": base is not None, **dict(zip(MEASURES, measured, strict=True)),
                    }
                )
        return rows, counts

    def gold_first(self, condition: str, runs: pa.Table) -> dict[str, float | int]:
        """Share of primary questions whose rank-1 chunk is relevant: how lexical they are."""
        evaluator = self.evaluators[self.conditions[condition].segmentation]
        relevant = set(evaluator.relevance())
        first = {
            row["question_id"]: row["chunk_id"]
            for row in runs.filter(pc.equal(runs["condition"], condition)).to_pylist()
            if row["rank"] == 1
        }
        asked = self._primary()
        hits = sum((question, first.get(question)) in relevant for question in asked)
        share = hits / len(asked) if asked else 0.0
        return {"questions": len(asked), "gold_first": hits, "share": share}

    def mean_recall(self, routing: pa.Table) -> dict[str, dict[str, float | int | None]]:
        """Mean section recall of each routed condition over the primary questions."""
        asked = self._primary()
        rows = [row for row in routing.to_pylist() if row["question_id"] in asked]
        found: dict[str, dict[str, float | int | None]] = {}
        for name in sorted({row["condition"] for row in rows}):
            known = [
                row["section_recall"]
                for row in rows
                if row["condition"] == name and row["section_recall"] is not None
            ]
            mean = math.fsum(known) / len(known) if known else None
            found[name] = {"questions": len(known), "section_recall": mean}
        return found

    def _primary(self) -> set[str]:
        """Answerable questions that are no rewordings."""
        return {
            row["question_id"]
            for row in self.questions.select(["question_id", "base", "excluded"]).to_pylist()
            if row["base"] is None and row["excluded"] is None
        }
