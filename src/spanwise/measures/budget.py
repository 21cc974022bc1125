"""Coverage within a budget of tokens: what a reader with a limited context would see."""

from __future__ import annotations

from collections.abc import Sequence

from spanwise.measures.places import Unit, covered, length, mean, need
from spanwise.spans import Evidence

BUDGETS = (512, 1024, 2048)
"""Budgets in tokens."""


def fitting(ranked: Sequence[Unit], budget_tokens: int) -> int | None:
    """How many whole units fit, in rank order, before the first that does not.

    Each costs its tokens and those of its rendered prefix. An oversized first unit leaves 0, and
    nothing after a unit that does not fit is tried.

    returns: None if the walk meets a unit whose tokens nobody counted.

    >>> [fitting([Unit("d", 0, 9, 300, 20), Unit("d", 9, 12, 190, 3)], b) for b in (319, 512, 513)]
    [0, 1, 2]
    """
    spent = 0
    for i, unit in enumerate(ranked):
        if unit.tokens is None:
            return None
        spent += unit.tokens + unit.prefix_tokens
        if spent > budget_tokens:
            return i
    return len(ranked)


def budget_coverage(
    ranked: Sequence[Unit], evidence: Sequence[Evidence], budget_tokens: int
) -> float | None:
    """Mean share of each span that the fitting units cover, their overlap counted once.

    returns: in [0, 1], or None where tokens are not known (see `fitting`).
    raises:  NoEvidence if there are no spans.
    """
    need(evidence)
    count = fitting(ranked, budget_tokens)
    if count is None:
        return None
    return mean([covered(ranked[:count], span) / length(span) for span in evidence])
