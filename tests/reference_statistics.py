"""Slow, obvious twins of the statistics."""

from __future__ import annotations

import random
import statistics
from collections.abc import Sequence


def replicate(values: Sequence[float], documents: Sequence[str], drawn: Sequence[int]) -> float:
    """Mean over every question of the drawn documents, a document drawn twice counted twice."""
    names = sorted(set(documents))
    pool = [
        value for i in drawn for value, document in zip(values, documents, strict=True)
        if document == names[i]
    ]
    return sum(pool) / len(pool)


def clustered(
    values: Sequence[float], documents: Sequence[str], iterations: int, seed: int
) -> tuple[float, float, float]:
    """Interval and p with draws of another generator."""
    dice = random.Random(seed)
    size = len(set(documents))
    drawn = sorted(
        replicate(values, documents, [dice.randrange(size) for _ in range(size)])
        for _ in range(iterations)
    )
    cuts = statistics.quantiles(drawn, n=40, method="inclusive")
    below = sum(x <= 1e-12 for x in drawn) / iterations
    above = sum(x >= -1e-12 for x in drawn) / iterations
    return cuts[0], cuts[-1], min(1.0, 2 * min(below, above))


def holm(p: Sequence[float], m: int) -> list[float]:
    """Each adjusted p is the largest of (m - rank) p over itself and those below it."""
    order = sorted(range(len(p)), key=lambda i: p[i])
    return [
        min(1.0, max((m - rank) * p[j] for rank, j in enumerate(order[: order.index(i) + 1])))
        for i in range(len(p))
    ]
