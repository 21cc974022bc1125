"""Two-stage retrieval: choose sections by their centroids, then rank the chunks inside them.

Both stages use the vectors that flat retrieval searches, so a difference is routing's alone.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from spanwise.index import Shelf
from spanwise.retrieval.flat import DIGITS, Ranking, ranked, scores

ROUTED_BONUS = 2.0
"""Added to the cosine (at most 1) of chunks in kept sections: a run file is read by its scores, and
they stand before the backfill whatever their cosine."""


@dataclass(frozen=True, slots=True)
class Sections:
    """The top-level sections of a shelf, sorted by (doc_id, node).

    centroids: (m, dim) float64, the renormalised mean of each section's chunk vectors.
    members:   rows of each section.
    """

    ids: tuple[tuple[str, int], ...]
    centroids: NDArray[np.float64]
    members: tuple[NDArray[np.int64], ...]

    def name(self, section: int) -> str:
        """A section's id, `doc_id#node`."""
        doc_id, node = self.ids[section]
        return f"{doc_id}#{node}"


def sections(on: Shelf) -> Sections:
    """Group a shelf's chunks by the section they are routed by."""
    groups: dict[tuple[str, int], list[int]] = {}
    for row, (doc_id, node) in enumerate(zip(on.doc_ids, on.nodes.tolist(), strict=True)):
        groups.setdefault((doc_id, node), []).append(row)
    ids = tuple(sorted(groups))
    members = tuple(np.array(groups[key], dtype=np.int64) for key in ids)
    means = np.stack([on.matrix[rows].astype(np.float64).mean(axis=0) for rows in members])
    # Opposite unit vectors could cancel; such a section matches nothing rather than everything.
    lengths = np.maximum(np.sqrt((means**2).sum(axis=1, keepdims=True)), 1e-12)
    return Sections(ids, means / lengths, members)


def routed(
    on: Shelf, within: Sections, query: NDArray[np.float32], flat: Ranking, depth: int, keep: int
) -> tuple[Ranking, NDArray[np.int64]]:
    """Rank the chunks of the `keep` best sections, then backfill from the flat ranking.

    flat:    the same query's flat ranking, `depth` deep.
    returns: the ranking, and the kept sections, best first.
    """
    closeness = np.round((within.centroids * query.astype(np.float64)).sum(axis=1), DIGITS)
    kept = np.argsort(-closeness, kind="stable")[:keep]  # stable: the lower (doc_id, node) on ties
    rows = np.concatenate([within.members[section] for section in kept])
    inside = ranked(rows, scores(on.matrix[rows], query), depth)
    rest = ~np.isin(flat.rows, rows)
    missing = max(0, depth - len(inside.rows))
    return Ranking(
        np.concatenate([inside.rows, flat.rows[rest][:missing]]),
        np.concatenate([inside.scores + ROUTED_BONUS, flat.scores[rest][:missing]]),
    ), kept


def section_recall(
    on: Shelf, within: Sections, kept: NDArray[np.int64], evidence: list[tuple[str, int, int]]
) -> float | None:
    """1 if a kept section's chunk overlaps any evidence character, else 0; None without evidence.

    evidence: (doc_id, start, end) spans.
    """
    if not evidence:
        return None
    for section in kept:
        rows = within.members[section]
        doc_id = within.ids[section][0]
        for gold_doc, start, end in evidence:
            overlaps = (on.starts[rows] < end) & (on.ends[rows] > start)
            if gold_doc == doc_id and bool(overlaps.any()):
                return 1.0
    return 0.0
