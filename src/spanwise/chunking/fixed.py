"""Equal windows cut at sentence ends, as large on average as their document's induced chunks."""

from __future__ import annotations

from collections import Counter

import numpy as np

from spanwise.chunking.cuts import Ruler
from spanwise.spans import Span


def fixed(
    ruler: Ruler, length: int, size_tokens: float, cap: int
) -> tuple[list[Span], Counter[str]]:
    """Tile a body with n = round(total / size_tokens) windows, a half rounded up.

    Edge i lies at i x total / n tokens, moved to the nearest sentence end: the earlier one on ties,
    and an earlier one where the window would exceed `cap`. Two edges that meet at one sentence end
    are one edge (`vanished`); where a window still exceeds the cap an edge is added (`added`).

    length:  code points of the body.
    returns: spans in order, and the counts.
    """
    counts: Counter[str] = Counter()
    total = ruler.tokens(0, length)
    windows = max(1, int(total / size_tokens + 0.5))
    cuts = np.array(ruler.between(0, length), dtype=np.int64)
    places = np.searchsorted(ruler.starts, cuts)  # tokens before each cut
    edges = [0]

    def within_cap() -> int:
        """The last cut after the last edge with at most `cap` tokens between."""
        before = int(np.searchsorted(ruler.starts, edges[-1]))
        return int(cuts[(cuts > edges[-1]) & (places <= before + cap)][-1])

    for i in range(1, windows if len(cuts) else 1):
        # argmin takes the first of equals: the earlier sentence end.
        edge = int(cuts[int(np.argmin(np.abs(places - i * total / windows)))])
        if ruler.tokens(edges[-1], edge) > cap:
            edge = within_cap()
        if edge > edges[-1]:
            edges.append(edge)
        else:
            counts["vanished"] += 1
    while ruler.tokens(edges[-1], length) > cap:
        edges.append(within_cap())
        counts["added"] += 1
    return [Span(a, b) for a, b in zip(edges, [*edges[1:], length], strict=True)], counts
