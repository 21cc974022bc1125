"""Clustered bootstrap of a family of contrasts against scipy.stats.bootstrap on per-document sums.

    python bench/bootstrap.py [--questions 4303] [--documents 1508] [--contrasts 4] [--draws 10000]

scipy gets what is quickest for it: sums and counts of each document already made, a vectorized
statistic, the percentile method; once with a call for each contrast, once with one call for all, so
that it shares draws too. Ours starts from the deltas of the questions. With one seed both draw the
same documents, so the intervals must agree. Medians of interleaved repeats; exit code 1 if a ratio
is above 1.
"""

from __future__ import annotations

import argparse
import statistics
import sys
import time

import numpy as np
import scipy.stats
from numpy.typing import NDArray

from spanwise.statistics.bootstrap import Sample, resample


def main() -> int:
    """Time both sides and compare their intervals."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--questions", type=int, default=4_303)
    parser.add_argument("--documents", type=int, default=1_508)
    parser.add_argument("--contrasts", type=int, default=4)
    parser.add_argument("--draws", type=int, default=10_000)
    parser.add_argument("--repeats", type=int, default=5)
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
    sums = [np.bincount(codes, row) for row in deltas]

    def statistic(*drawn: NDArray[np.float64], axis: int = -1) -> NDArray[np.float64]:
        *totals, size = (part.sum(axis=axis) for part in drawn)
        means = np.array([total / size for total in totals])
        return means[0] if len(means) == 1 else means

    def scipy_interval(*data: NDArray[np.float64]) -> NDArray[np.float64]:
        found = scipy.stats.bootstrap(
            data, statistic, n_resamples=options.draws, paired=True, vectorized=True,
            method="percentile", rng=np.random.default_rng(0), batch=1_000,
        )
        return np.array(found.confidence_interval)

    def peer() -> NDArray[np.float64]:
        return np.array([scipy_interval(row, counts) for row in sums])

    def peer_at_once() -> NDArray[np.float64]:
        return scipy_interval(*sums, counts).T

    def own() -> NDArray[np.float64]:
        return np.array([(r.ci_low, r.ci_high) for r in resample(samples, options.draws, seed=0)])

    sides = {"spanwise": own, "a call each": peer, "one call": peer_at_once}
    times: dict[str, list[float]] = {name: [] for name in sides}
    found = {}
    for _ in range(options.repeats):
        for name, side in sides.items():
            start = time.perf_counter()
            found[name] = side()
            times[name].append(time.perf_counter() - start)
    median = {name: statistics.median(taken) for name, taken in times.items()}
    print(
        f"{options.questions} questions, {options.documents} documents, "
        f"{options.contrasts} contrasts, {options.draws} draws, median of {options.repeats}"
    )
    print(f"spanwise {median['spanwise']:.3f} s")
    for name in ("a call each", "one call"):
        print(
            f"scipy.stats.bootstrap, {name}: {median[name]:.3f} s   "
            f"ratio {median['spanwise'] / median[name]:.2f}   "
            f"ends differ by at most {np.abs(found['spanwise'] - found[name]).max():.1e}"
        )
    return 0 if median["spanwise"] <= min(median.values()) else 1


if __name__ == "__main__":
    sys.exit(main())
