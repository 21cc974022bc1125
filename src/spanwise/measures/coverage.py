"""Coverage-nDCG: newly covered evidence, discounted, against the segmentation's own best.

Source: alpha-nDCG (Clarke et al., SIGIR 2008) with alpha = 1, shares of spans in place of nuggets.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from spanwise.measures.places import (
    DEEPEST,
    Place,
    covered,
    discount,
    document,
    length,
    mean,
    need,
    shared,
)

TIE = 1e-12
"""Two gains no further apart than this are equal in the greedy order."""


def marginal_gains(ranked: Sequence[Place], evidence: Sequence[Place]) -> NDArray[np.float64]:
    """Mean share of each evidence span that each ranked chunk is the first to cover.

    ranked:   k chunks, best first; a chunk of another document gains nothing.
    evidence: S >= 1 spans; each counts 1/S, whatever its length.
    returns:  (k,) in [0, 1]; the sum is the total coverage.
    raises:   NoEvidence if S == 0: undefined, not zero.

    >>> from spanwise.spans import Span
    >>> marginal_gains([Span(0, 60), Span(40, 100), Span(200, 300)], [Span(0, 100)]).tolist()
    [0.6, 0.4, 0.0]
    """
    need(evidence)
    gains = np.zeros(len(ranked))
    for i in range(len(ranked)):
        gains[i] = _gain(ranked[i], ranked[:i], evidence)
    return gains


def dcg(gains: Sequence[float] | NDArray[np.float64], k: int = DEEPEST) -> float:
    """Discounted cumulative gain: sum over ranks i <= k of gains[i] / log2(i + 1).

    >>> round(dcg([0.6, 0.4, 0.0]), 3)      # .60/1 + .40/1.585
    0.852
    """
    total = 0.0
    for rank, gain in enumerate(gains[:k], start=1):
        total += float(gain) / discount(rank)
    return total


def ideal(chunks: Sequence[Place], evidence: Sequence[Place], k: int = DEEPEST) -> list[Place]:
    """The greedy order: always the chunk with the largest current gain, while there is one.

    Equal gains (within 1e-12) go by (doc_id, start, end). Greedy stands in for the best order:
    with overlapping chunks a ranking can beat it.

    chunks:  every chunk of the segmentation (or those of the evidence's documents), in any order.
    returns: at most k chunks; none if no chunk covers any evidence.
    raises:  NoEvidence if there are no spans.
    """
    need(evidence)
    touching = [c for c in chunks if any(shared(c, span) for span in evidence)]
    rest = sorted(touching, key=lambda c: (document(c), c.start, c.end))
    order: list[Place] = []
    while rest and len(order) < k:
        gains = [_gain(chunk, order, evidence) for chunk in rest]
        best = max(gains)
        if best <= 0:
            break
        order.append(rest.pop(next(i for i, g in enumerate(gains) if g > 0 and g >= best - TIE)))
    return order


def cov_ndcg(
    ranked: Sequence[Place],
    evidence: Sequence[Place],
    chunks: Sequence[Place],
    k: int = DEEPEST,
) -> float:
    """DCG@k of the ranking's marginal gains over DCG@k of the greedy order of `chunks`.

    returns: 0 if no chunk covers any evidence. Never clipped: with overlapping chunks greedy can
             miss the best order, and the ratio can exceed 1.
    raises:  NoEvidence if there are no spans.

    >>> from spanwise.spans import Span
    >>> gold, ranked = [Span(0, 100)], [Span(0, 60), Span(40, 100), Span(200, 300)]
    >>> cov_ndcg(ranked, gold, ranked)
    1.0
    >>> round(cov_ndcg(ranked, gold, [*ranked, Span(0, 100)]), 3)
    0.852
    """
    best = dcg(marginal_gains(ideal(chunks, evidence, k), evidence), k)
    return dcg(marginal_gains(ranked[:k], evidence), k) / best if best > 0 else 0.0


def recall(ranked: Sequence[Place], evidence: Sequence[Place], k: int = 50) -> float:
    """Share of spans that the union of the first k chunks covers at least half.

    raises: NoEvidence if there are no spans.
    """
    need(evidence)
    return mean([float(2 * covered(ranked[:k], span) >= length(span)) for span in evidence])


def _gain(chunk: Place, above: Sequence[Place], evidence: Sequence[Place]) -> float:
    shares = []
    for span in evidence:
        new = 0
        if shared(chunk, span):
            new = covered([*above, chunk], span) - covered(above, span)
        shares.append(new / length(span))
    return mean(shares)
