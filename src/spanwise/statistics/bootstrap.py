"""Document-clustered percentile bootstrap of a mean over questions.

Questions of one document move together, so documents are resampled and every question of a drawn
document enters the replicate: sum of sums / sum of counts. Source: cluster bootstrap, Davison and
Hinkley, Bootstrap Methods and their Application (1997), section 3.8.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]

ZERO = 1e-12
"""A replicate this near to zero is zero: the rounding of a sum is no evidence for a side."""

_BLOCK = 1 << 20    # drawn documents held at a time: about 12 MB whatever the iterations


@dataclass(frozen=True, slots=True)
class Sample:
    """One value for each question, and the document that each belongs to.

    values:    (n,) finite.
    documents: (n,) their clusters.
    raises:    ValueError for other lengths or a value that is not finite.
    """

    values: Sequence[float]
    documents: Sequence[str]

    def __post_init__(self) -> None:
        if len(self.values) != len(self.documents):
            raise ValueError(f"{len(self.values)} values of {len(self.documents)} documents")
        for value, document in zip(self.values, self.documents, strict=True):
            if not math.isfinite(value):
                raise ValueError(f"a value of document {document!r} is {value}, not finite")


@dataclass(frozen=True, slots=True)
class Resampled:
    """Mean, interval and two-sided p-value of one sample.

    mean:            over questions, unweighted; None without questions.
    ci_low, ci_high: percentiles of the replicates; None below two documents, as p is.
    p:               2 min(P[<= 0], P[>= 0]) of the replicates, clipped to 1; 0 says below 2 / B.
    n_documents:     distinct documents.
    replicates:      (B,) means of the replicates, empty below two documents.
    """

    mean: float | None
    ci_low: float | None
    ci_high: float | None
    p: float | None
    n_documents: int
    replicates: Floats


def resample(
    samples: Sequence[Sample], iterations: int, seed: int, level: float = 0.95
) -> list[Resampled]:
    """Bootstrap every sample of a family.

    Draws depend on the seed and the number of documents alone: samples over the same documents
    share their draws, and no sample's result depends on which others stand beside it. Documents are
    sorted by name and their sums are exact, so the order of questions changes no bit.

    samples: in any order; an empty one has no mean, one of a single document no interval.
    level:   coverage of the interval, .95 for the percentiles 2.5 and 97.5.
    raises:  ValueError unless iterations > 0 and 0 < level < 1.
    """
    if iterations < 1 or not 0 < level < 1:
        raise ValueError(f"{iterations} iterations, level {level}: expected > 0, within (0, 1)")
    grouped = [totals(sample) for sample in samples]
    means = np.empty((len(samples), iterations))
    groups: dict[int, list[int]] = {}
    for i, (sums, _) in enumerate(grouped):
        if len(sums) > 1:
            groups.setdefault(len(sums), []).append(i)
    for members in groups.values():
        means[members] = replicates(
            np.array([grouped[i][0] for i in members]),
            np.array([grouped[i][1] for i in members]),
            iterations, np.random.default_rng(seed),
        )
    found = []
    for sample, (sums, _), drawn in zip(samples, grouped, means, strict=True):
        mean = math.fsum(sample.values) / len(sample.values) if len(sample.values) else None
        if len(sums) < 2:
            found.append(Resampled(mean, None, None, None, len(sums), np.empty(0)))
            continue
        low, high, p = percentiles(drawn, level)
        found.append(Resampled(mean, low, high, p, len(sums), drawn))
    return found


def percentiles(drawn: Floats, level: float = 0.95) -> tuple[float, float, float]:
    """Interval and two-sided p-value of (B,) replicates, as in `Resampled`."""
    low, high = np.percentile(drawn, [50 * (1 - level), 50 * (1 + level)]).tolist()
    tail = min(int((drawn <= 0).sum()), int((drawn >= 0).sum()))
    return low, high, min(1.0, 2 * tail / len(drawn))


def replicates(
    sums: Floats, counts: Floats, iterations: int, generator: np.random.Generator
) -> Floats:
    """Means of resampled documents, for K samples at once from the same draws.

    sums, counts: (K, D) of each document's questions; every count is at least 1.
    returns:      (K, B); the result does not depend on how many draws are held at a time.
    """
    samples, documents = sums.shape
    # Samples paired over the same questions have the same counts: weigh them once.
    distinct, which = np.unique(counts, axis=0, return_inverse=True)
    weighed = np.concatenate([sums, distinct])
    means = np.empty((samples, iterations))
    block = max(1, _BLOCK // documents)
    for begin in range(0, iterations, block):
        size = min(block, iterations - begin)
        drawn = generator.integers(0, documents, (size, documents), dtype=np.int32)
        drawn += np.arange(0, size * documents, documents, dtype=np.int32)[:, None]
        times = np.bincount(drawn.ravel(), minlength=size * documents)
        weights = times.astype(np.float64).reshape(size, documents)
        # einsum, not a BLAS product: the order of addition must not depend on threads.
        summed = np.einsum("bd,kd->kb", weights, weighed)
        means[:, begin : begin + size] = summed[:samples] / summed[samples:][which.ravel()]
    means[np.abs(means) < ZERO] = 0.0
    return means


def corrected(
    draws: Floats, sums: Floats, counts: Floats, level: float = 0.95
) -> tuple[float, float] | None:
    """Bias-corrected and accelerated interval from draws that are there already.

    The acceleration comes from leaving out one document at a time. Source: Efron, Better Bootstrap
    Confidence Intervals, JASA 82 (1987); ties count half, for scores have many.

    draws:        (B,) replicates of the mean.
    sums, counts: (G,) of each document's questions, G >= 2.
    returns:      None where it does not exist: nothing varies, or every draw lies on one side.
    """
    from scipy.special import ndtr, ndtri

    mean = float(sums.sum() / counts.sum())
    below = (float((draws < mean - ZERO).sum()) + float((draws <= mean + ZERO).sum())) / 2
    if not 0 < below < len(draws):
        return None
    left = (sums.sum() - sums) / (counts.sum() - counts)
    apart = left.mean() - left
    spread = float((apart**2).sum())
    if spread <= ZERO**2:
        return None
    bias, speed = ndtri(below / len(draws)), float((apart**3).sum()) / (6 * spread**1.5)
    edges = ndtri(np.array([0.5 * (1 - level), 0.5 * (1 + level)]))
    reach = bias + edges
    if np.any(1 - speed * reach <= 0):
        return None
    low, high = np.percentile(draws, 100 * ndtr(bias + reach / (1 - speed * reach))).tolist()
    return low, high


def totals(sample: Sample) -> tuple[Floats, Floats]:
    """(D,) exact sum and (D,) count of each document, documents sorted."""
    grouped: dict[str, list[float]] = {}
    for value, document in zip(sample.values, sample.documents, strict=True):
        grouped.setdefault(document, []).append(value)
    names = sorted(grouped)
    return (
        np.array([math.fsum(grouped[name]) for name in names]),
        np.array([float(len(grouped[name])) for name in names]),
    )
