"""Clustered bootstrap of a family of contrasts against scipy.stats.bootstrap on per-document sums.

    python bench/bootstrap.py [--questions 4303] [--documents 1508] [--contrasts 4] [--draws 10000]

scipy gets what is quickest for it: sums and counts of each document already made, a vectorized
statistic, the percentile method, and the best of several batches; once with a call for each
contrast, once with one call for all, so that it shares draws too. Ours starts from the deltas of
the questions and gives percentiles alone, then percentiles and BCa together. With one seed both
draw the same documents, so the intervals must agree. Least times of interleaved repeats: the
machine may be busy. Exit code 1 if percentiles take longer than scipy's quickest, or percentiles
and BCa together more than 1.5 times as long.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable
from functools import partial

import numpy as np
import scipy.stats
from numpy.typing import NDArray

from spanwise.statistics.bootstrap import Sample, corrected, resample, totals

BATCHES = (100, 500, 2_500)


def main() -> int:
    """Time both sides and compare their intervals."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--questions", type=int, default=4_303)
    parser.add_argument("--documents", type=int, default=1_508)
    parser.add_argument("--contrasts", type=int, default=4)
    parser.add_argument("--draws", type=int, default=10_000)
    parser.add_argument("--repeats", type=int, default=4)
    options = parser.parse_args()
    rng = np.random.default_rng(0)
    codes = np.concatenate([
        np.arange(options.documents),
        rng.integers(0, options.documents, options.questions - options.documents),
    ])
    names = [f"paper-{code:05d}" for code in codes]
    deltas = rng.normal(0.01, 0.15, (options.contrasts, options.questions))
    samples = [Sample(row.tolist(), names) for row in deltas]
    counts = np.bincount(codes).astype(float)
    sums = [np.bincount(codes, row).astype(float) for row in deltas]

    def statistic(*drawn: NDArray[np.float64], axis: int = -1) -> NDArray[np.float64]:
        *totals, size = (part.sum(axis=axis) for part in drawn)
        means = np.array([total / size for total in totals])
        return means[0] if len(means) == 1 else means

    def scipy_interval(batch: int, *data: NDArray[np.float64]) -> NDArray[np.float64]:
        found = scipy.stats.bootstrap(
            data, statistic, n_resamples=options.draws, paired=True, vectorized=True,
            method="percentile", rng=np.random.default_rng(0), batch=batch,
        )
        return np.array(found.confidence_interval)

    def peer(batch: int) -> NDArray[np.float64]:
        return np.array([scipy_interval(batch, row, counts) for row in sums])

    def peer_at_once(batch: int) -> NDArray[np.float64]:
        return scipy_interval(batch, *sums, counts).T

    def own() -> NDArray[np.float64]:
        return np.array([(r.ci_low, r.ci_high) for r in resample(samples, options.draws, seed=0)])

    def both() -> NDArray[np.float64]:
        found = resample(samples, options.draws, seed=0)
        for its, sample in zip(found, samples, strict=True):
            if corrected(its.replicates, *totals(sample)) is None:
                raise ValueError("a BCa interval is missing")
        return np.array([(r.ci_low, r.ci_high) for r in found])

    sides: dict[str, Callable[[], NDArray[np.float64]]] = {"percentile": own, "with BCa": both}
    for batch in BATCHES:
        sides[f"a call each, batch {batch}"] = partial(peer, batch)
        sides[f"one call, batch {batch}"] = partial(peer_at_once, batch)
    least = dict.fromkeys(sides, float("inf"))
    found = {}
    for _ in range(options.repeats):
        for name, side in sides.items():
            start = time.perf_counter()
            found[name] = side()
            least[name] = min(least[name], time.perf_counter() - start)
    peers = [name for name in sides if "call" in name]
    print(
        f"{options.questions} questions, {options.documents} documents, "
        f"{options.contrasts} contrasts, {options.draws} draws, least of {options.repeats}"
    )
    for name in sides:
        apart = np.abs(found[name] - found["percentile"]).max()
        whose = "scipy.stats.bootstrap" if name in peers else "spanwise"
        print(f"{whose}, {name}: {least[name]:.3f} s   ends differ by at most {apart:.1e}")
    quickest = min(least[name] for name in peers)
    each = min(least[name] for name in peers if "each" in name)
    good = True
    for name, goal in (("percentile", 1.0), ("with BCa", 1.5)):
        ratio = least[name] / quickest
        good = good and ratio <= goal
        print(
            f"{name}: {ratio:.2f} of scipy's quickest (goal {goal}), "
            f"{least[name] / each:.2f} of its quickest with a call each"
        )
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
