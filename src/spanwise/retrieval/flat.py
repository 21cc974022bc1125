"""Flat retrieval: every chunk of the corpus competes by its vector's cosine with the query's."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from spanwise.index import Propose, Shelf

DIGITS = 6
"""Scores are rounded to 1e-6 before they are compared: below it, searches differ in last bits."""

_MARGIN = 32


@dataclass(frozen=True, slots=True)
class Ranking:
    """One query's list, best first.

    rows:   (k,) rows of the shelf.
    scores: (k,) not increasing; equal scores stand in shelf order: (doc_id, start, end).
    """

    rows: NDArray[np.int64]
    scores: NDArray[np.float64]


def scores(matrix: NDArray[np.float32], query: NDArray[np.float32]) -> NDArray[np.float64]:
    """(n,) rounded inner products, each row summed by itself so that no neighbour moves a bit."""
    products = matrix.astype(np.float64) * query.astype(np.float64)
    rounded: NDArray[np.float64] = np.round(products.sum(axis=1), DIGITS)
    return rounded


def ranked(
    rows: NDArray[np.int64], values: NDArray[np.float64], depth: int
) -> Ranking:
    """The `depth` best rows: higher score first, then shelf order."""
    order = np.lexsort((rows, -values))[:depth]
    return Ranking(rows[order], values[order])


def flat(on: Shelf, queries: NDArray[np.float32], depth: int, propose: Propose) -> list[Ranking]:
    """Rank a shelf for each query, `depth` deep (all of a smaller shelf).

    queries: (q, dim) float32 unit vectors.
    """
    number = len(on.chunk_ids)
    found: list[Ranking | None] = [None] * len(queries)
    waiting = list(range(len(queries)))
    reach = min(number, depth + _MARGIN)
    while waiting:
        proposed = propose(queries[waiting], reach)
        unsettled = []
        for query, rows in zip(waiting, proposed, strict=True):
            values = scores(on.matrix[rows], queries[query])
            best = ranked(rows, values, depth)
            # A chunk that ties with the last place may not have been proposed: look further then.
            if reach < number and values.min() >= best.scores[-1] - 2 * 10.0**-DIGITS:
                unsettled.append(query)
            else:
                found[query] = best
        waiting, reach = unsettled, min(number, 2 * reach)
    return [ranking for ranking in found if ranking is not None]
