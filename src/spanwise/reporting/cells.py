"""Cells of a corpus, an embedder and a reranker each: their names, their order, absent ones."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from spanwise import layout
from spanwise.params import WITHOUT, Params
from spanwise.reporting.gather import CorpusRecord

Cell = tuple[str, str]
LEXICAL: Cell = (layout.LEXICAL, WITHOUT)
"""The cell of conditions that search by words alone."""


def cell_name(cell: Sequence[str]) -> str:
    """A cell in words: its embedder, and its reranker where it has one.

    >>> cell_name(("mpnet", "none")), cell_name(("mpnet", "bge-reranker"))
    ('mpnet', 'mpnet + bge-reranker')
    """
    return cell[0] if cell[1] == WITHOUT else f"{cell[0]} + {cell[1]}"


def is_primary(cell: Cell, params: Params) -> bool:
    """True for the cell that was fixed beforehand."""
    return cell == (params.primary.embedder, params.primary.reranker)


def cells_of(record: CorpusRecord, params: Params) -> list[Cell]:
    """Every cell with means: the primary one first, then those without a reranker, then those of
    each reranker, embedders in params.yaml's order; the lexical cell last."""
    embedders, rerankers = [*params.embedders], [WITHOUT, *params.rerankers]

    def place(cell: Cell) -> tuple[bool, bool, int, int, Cell]:
        embedder, reranker = cell
        return (
            not is_primary(cell, params), cell == LEXICAL,
            rerankers.index(reranker) if reranker in rerankers else len(rerankers),
            embedders.index(embedder) if embedder in embedders else len(embedders), cell,
        )

    return sorted(record.cells(), key=place)


def dense_cells(record: CorpusRecord, params: Params) -> list[Cell]:
    """Cells of embedders, in the same order."""
    return [cell for cell in cells_of(record, params) if cell[0] in params.embedders]


def absent_cells(record: CorpusRecord) -> dict[Cell, str]:
    """Reranked cells that could not run -> why, as stage `score` reports them."""
    told: Mapping[str, str] = dict(record.reports).get("score", {}).get("absent_cells") or {}
    found = {}
    for name, reason in told.items():
        embedder, _, reranker = name.partition("/")
        found[embedder, reranker] = reason
    return found
