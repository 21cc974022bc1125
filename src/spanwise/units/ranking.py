"""Units and needs -> ranked lists of each segmentation, by BM25 and by vectors.

What is searched is the unit's own text: no path, no context, no heading that is not in it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from spanwise import schemas
from spanwise.index import Shelf, propose_faiss
from spanwise.layout import units_table
from spanwise.params import Bm25Settings
from spanwise.retrieval.flat import Ranking, flat
from spanwise.units.cutting import SEGMENTATIONS
from spanwise.units.identity import Parent, resolve

Rows = Sequence[Mapping[str, Any]]


def load_units(folder: Path) -> dict[str, list[dict[str, Any]]]:
    """The units of each segmentation, sorted by document and place."""
    return {
        name: schemas.read(folder / units_table(name), schemas.UNITS).to_pylist()
        for name in SEGMENTATIONS
    }


def texts(units: Rows, known: Mapping[str, Parent]) -> list[str]:
    """The text of each unit.

    raises: UnitError if one is no slice of its parent any more.
    """
    return [resolve(unit, known) for unit in units]


def lexical(
    units: Mapping[str, Rows], known: Mapping[str, Parent], asked: Sequence[tuple[str, str]],
    settings: Bm25Settings, depth: int,
) -> pa.Table:
    """UNIT_RUNS by BM25; units that share no term with a need are in none of its lists.

    asked: (need_id, text) of each need.
    """
    from spanwise.retrieval.bm25 import bm25

    questions = [text for _, text in asked]
    rows: list[dict[str, Any]] = []
    for name, found in units.items():
        rankings = bm25(texts(found, known), questions, settings, depth)
        rows += _rows(name, asked, found, rankings)
    return schemas.table(schemas.UNIT_RUNS, rows)


def dense(
    units: Mapping[str, Rows], matrices: Mapping[str, NDArray[np.float32]],
    asked: Sequence[tuple[str, str]], queries: NDArray[np.float32], depth: int,
) -> pa.Table:
    """UNIT_RUNS by cosine, over all units of a segmentation.

    matrices: segmentation -> (n, dim) unit vectors, in the order of its units.
    queries:  (q, dim) unit vectors of the needs.
    """
    rows: list[dict[str, Any]] = []
    for name, found in units.items():
        on = Shelf(
            name, tuple(u["passage_id"] for u in found), tuple(u["doc_id"] for u in found),
            np.array([u["start"] for u in found]), np.array([u["end"] for u in found]),
            np.zeros(len(found), dtype=np.int64), matrices[name],
        )
        rows += _rows(name, asked, found, flat(on, queries, depth, propose_faiss(on)))
    return schemas.table(schemas.UNIT_RUNS, rows)


def _rows(
    segmentation: str, asked: Sequence[tuple[str, str]], units: Rows, rankings: Sequence[Ranking]
) -> list[dict[str, Any]]:
    return [
        {
            "segmentation": segmentation, "need_id": need_id, "rank": rank,
            "passage_id": units[row]["passage_id"], "score": score,
        }
        for (need_id, _), ranking in zip(asked, rankings, strict=True)
        for rank, (row, score) in enumerate(
            zip(ranking.rows.tolist(), ranking.scores.tolist(), strict=True), start=1
        )
    ]
