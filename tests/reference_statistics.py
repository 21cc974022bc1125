"""Slow, obvious twins of the statistics."""

from __future__ import annotations

import itertools
import math
import random
import statistics
from collections.abc import Sequence

import numpy as np


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


def restricted(
    values: Sequence[float], design: Sequence[Sequence[float]], documents: Sequence[str],
    ratio: float,
) -> tuple[float, np.ndarray, np.ndarray]:
    """REML log-likelihood, estimates and their errors with the whole covariance matrix written out.

    V = I + ratio where two values share a document, times a variance that is profiled out.
    """
    y, x = np.array(values), np.array(design)
    same = np.equal.outer(np.array(documents), np.array(documents))
    inverse = np.linalg.inv(np.eye(len(y)) + ratio * same)
    square = x.T @ inverse @ x
    beta = np.linalg.solve(square, x.T @ inverse @ y)
    free = len(y) - x.shape[1]
    variance = (y - x @ beta) @ inverse @ (y - x @ beta) / free
    likelihood = -0.5 * (
        free * math.log(2 * math.pi * variance) + free
        - np.linalg.slogdet(inverse)[1] + np.linalg.slogdet(square)[1]
    )
    return float(likelihood), beta, np.sqrt(variance * np.diag(np.linalg.inv(square)))


def reml(
    values: Sequence[float], design: Sequence[Sequence[float]], documents: Sequence[str]
) -> tuple[float, float, float, float]:
    """Log-likelihood, last estimate, its error and ratio where the likelihood is largest.

    Looked for on a grid, then by golden section between the neighbours of its best point.
    """
    def at(ratio: float) -> float:
        return restricted(values, design, documents, ratio)[0]

    grid = [0.0, *np.logspace(-5, 4, 91).tolist()]
    best = max(range(len(grid)), key=lambda i: at(grid[i]))
    low, high = grid[max(0, best - 1)], grid[min(len(grid) - 1, best + 1)]
    golden = (math.sqrt(5) - 1) / 2
    for _ in range(60):
        left, right = high - golden * (high - low), low + golden * (high - low)
        low, high = (low, right) if at(left) > at(right) else (left, high)
    ratio = max((0.0, (low + high) / 2), key=at)
    likelihood, beta, errors = restricted(values, design, documents, ratio)
    return likelihood, float(beta[-1]), float(errors[-1]), ratio


def flips(sums: Sequence[float]) -> float:
    """Share of all patterns of signs whose sum is at least as far from zero."""
    patterns = [
        abs(math.fsum(sign * value for sign, value in zip(signs, sums, strict=True)))
        for signs in itertools.product((1, -1), repeat=len(sums))
    ]
    return sum(x >= patterns[0] - 1e-9 for x in patterns) / len(patterns)


def intraclass(values: Sequence[float], documents: Sequence[str]) -> float:
    """From the table of an analysis of variance, sums of squares written out."""
    groups = [
        [v for v, d in zip(values, documents, strict=True) if d == name]
        for name in sorted(set(documents))
    ]
    mean, total = statistics.fmean(values), len(values)
    between = sum(len(g) * (statistics.fmean(g) - mean) ** 2 for g in groups) / (len(groups) - 1)
    within = sum((v - statistics.fmean(g)) ** 2 for g in groups for v in g) / (total - len(groups))
    size = (total - sum(len(g) ** 2 for g in groups) / total) / (len(groups) - 1)
    return (between - within) / (between + (size - 1) * within)
