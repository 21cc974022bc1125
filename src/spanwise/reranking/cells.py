"""The ranked lists of one embedder, reordered by a reranker."""

from __future__ import annotations

import shutil
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from spanwise import schemas
from spanwise.errors import RunError
from spanwise.params import Condition, RerankerSettings
from spanwise.reranking.kept import Candidate, judge, key
from spanwise.retrieval.flat import DIGITS, ranked
from spanwise.retrieval.runs import write_trec


@dataclass(frozen=True, slots=True)
class Retrieved:
    """What one embedder retrieved, and what was embedded.

    runs:       the RUNS table.
    labels:     the LABELS table, sorted by (label, doc_id, start).
    texts:      prefix and content of each of its rows.
    questions:  question_id -> its text.
    conditions: rows of the conditions table by name.
    """

    runs: pa.Table
    labels: pa.Table
    texts: Sequence[str]
    questions: Mapping[str, str]
    conditions: Mapping[str, Condition]

    def top(self, depth: int) -> dict[tuple[str, str], list[int]]:
        """(condition, question_id) -> rows of LABELS of the first `depth` ranks.

        raises: RunError if a list names a chunk that its label does not have.
        """
        chunks = zip(self.labels["label"].to_pylist(), self.labels["chunk_id"].to_pylist(),
                     strict=True)
        places = {place: row for row, place in enumerate(chunks)}
        names = ("condition", "question_id", "rank", "chunk_id")
        found: dict[tuple[str, str], list[int]] = {}
        for condition, question, rank, chunk in zip(
            *(self.runs[name].to_pylist() for name in names), strict=True
        ):
            if rank > depth:
                continue
            row = places.get((self.conditions[condition].label, chunk))
            if row is None:
                raise RunError(
                    f"condition {condition}, question {question}: chunk {chunk} is not among the "
                    f"labelled ones; run `dvc repro`"
                )
            found.setdefault((condition, question), []).append(row)
        return found


def rerank(
    found: Retrieved, settings: RerankerSettings, folder: Path, processes: int | None = None
) -> tuple[list[dict[str, Any]], dict[str, Any], int]:
    """Reorder the first `settings.top` ranks of every list; what stands below leaves the list.

    folder:  where the scores of pairs are kept.
    returns: rows of RUNS, best first: higher score (rounded as cosines are), then (doc_id, start);
             pairs of each condition and how many of them the model read in part; how many scores
             were computed now.
    raises:  Unavailable if a score is missing and the model cannot be had.
    """
    lists = found.top(settings.top)
    ids = found.labels["chunk_id"].to_pylist()
    keys: dict[tuple[str, int], str] = {}
    candidates: dict[str, Candidate] = {}
    for (_, question), rows in lists.items():
        asked = found.questions[question]
        for row in rows:
            if (question, row) not in keys:  # conditions may share a label
                digest = keys[question, row] = key(settings, asked, found.texts[row])
                place = f"question {question}, chunk {ids[row]}"
                candidates.setdefault(digest, Candidate(asked, found.texts[row], place))
    judged, computed = judge(candidates, settings, folder, processes)
    runs: list[dict[str, Any]] = []
    counts: dict[str, dict[str, float]] = {}
    for (condition, question), rows in lists.items():
        said = [judged[keys[question, row]] for row in rows]
        # Rows of one label stand by (doc_id, start): ties fall as they do without a reranker.
        best = ranked(
            np.array(rows, dtype=np.int64), np.round([one.score for one in said], DIGITS),
            settings.top,
        )
        runs += [
            {"condition": condition, "question_id": question, "rank": rank, "chunk_id": ids[row],
             "score": score}
            for rank, (row, score) in enumerate(
                zip(best.rows.tolist(), best.scores.tolist(), strict=True), start=1
            )
        ]
        tally = counts.setdefault(condition, {"pairs": 0, "beyond_max_length": 0})
        tally["pairs"] += len(said)
        tally["beyond_max_length"] += sum(one.cut for one in said)
    for tally in counts.values():
        tally["share_beyond"] = tally["beyond_max_length"] / tally["pairs"]
    return runs, {"distinct_pairs": len(candidates), "conditions": counts}, computed


def write(folder: Path, runs: Sequence[Mapping[str, Any]]) -> None:
    """Reordered lists as `runs.parquet` and run files, in place of those that were there."""
    clear(folder)
    schemas.write(folder / "runs.parquet", schemas.RUNS, schemas.table(schemas.RUNS, runs))
    write_trec(folder / "trec", runs)


def clear(folder: Path) -> None:
    """Take lists away that are no longer true; the scores of pairs stay."""
    (folder / "runs.parquet").unlink(missing_ok=True)
    shutil.rmtree(folder / "trec", ignore_errors=True)


def forget(folder: Path, rerankers: Collection[str]) -> None:
    """Delete what is kept of rerankers that params.yaml no longer has."""
    for gone in folder.glob("*/"):
        if gone.name not in rerankers:
            shutil.rmtree(gone)
