"""Which chunk is relevant, and two measures that know no more than that."""

from __future__ import annotations

from collections.abc import Sequence

from spanwise.measures.places import DEEPEST, Place, discount, length, need, shared


def relevant(chunk: Place, evidence: Sequence[Place]) -> bool:
    """True if the chunk covers >= 50% of some span, or >= 80% of the chunk lies inside one.

    In integers: 2 |c ∩ g| >= |g| or 5 |c ∩ g| >= 4 |c|.

    >>> from spanwise.spans import Span
    >>> relevant(Span(0, 50), [Span(0, 100)]), relevant(Span(0, 49), [Span(9, 109)])
    (True, True)
    >>> relevant(Span(0, 49), [Span(10, 110)])      # 39 of 49 is 79.6%
    False
    """
    for span in evidence:
        part = shared(chunk, span)
        if part and (2 * len(part) >= length(span) or 5 * len(part) >= 4 * length(chunk)):
            return True
    return False


def reciprocal_rank(ranked: Sequence[Place], evidence: Sequence[Place]) -> float:
    """1 / rank of the first relevant chunk of the whole list, 0 without one.

    raises: NoEvidence if there are no spans.
    """
    need(evidence)
    for rank, chunk in enumerate(ranked, start=1):
        if relevant(chunk, evidence):
            return 1 / rank
    return 0.0


def ndcg(
    ranked: Sequence[Place],
    evidence: Sequence[Place],
    chunks: Sequence[Place],
    k: int = DEEPEST,
) -> float:
    """nDCG@k with gain 1 for a relevant chunk; the ideal ranks all relevant ones of `chunks` first.

    returns: in [0, 1]; 0 if no chunk is relevant.
    raises:  NoEvidence if there are no spans.
    """
    need(evidence)
    found = best = 0.0
    for rank, chunk in enumerate(ranked[:k], start=1):
        if relevant(chunk, evidence):
            found += 1 / discount(rank)
    for rank in range(1, min(k, sum(relevant(chunk, evidence) for chunk in chunks)) + 1):
        best += 1 / discount(rank)
    return found / best if best > 0 else 0.0
