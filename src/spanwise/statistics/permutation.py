"""Sign flips by document: what the mean would be if A and B had been exchanged.

Under the hypothesis that A and B are exchangeable, a document's differences could as well have had
the other sign, all of them together. Source: Fisher's randomisation test, Good, Permutation,
Parametric and Bootstrap Tests of Hypotheses (2005), section 3.2, with documents as its units.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from spanwise.statistics.bootstrap import Sample, totals

Floats = NDArray[np.float64]

EXACT = 14
"""Up to this many documents every pattern of signs is tried: 16,384 of them at most."""

_EQUAL = 1e-12    # of the largest possible sum: the rounding of a sum is no smaller mean
_BLOCK = 1 << 20


def sign_flips(samples: Sequence[Sample], iterations: int, seed: int) -> list[float | None]:
    """Two-sided p-values, by the absolute mean.

    With up to EXACT documents: the share of all sign patterns at least as extreme, which cannot be
    below 2 / 2^G. With more: (1 + as extreme) / (1 + iterations) of seeded patterns, the observed
    one counted among them. Samples over the same number of documents share their patterns.

    returns: None for a sample without questions or with one document.
    raises:  ValueError unless iterations > 0.
    """
    if iterations < 1:
        raise ValueError(f"{iterations} iterations: expected at least 1")
    sums = [totals(sample)[0] for sample in samples]
    groups: dict[int, list[int]] = {}
    for i, its in enumerate(sums):
        if len(its) > 1:
            groups.setdefault(len(its), []).append(i)
    found: list[float | None] = [None] * len(samples)
    for documents, members in groups.items():
        stacked = np.array([sums[i] for i in members])
        for i, p in zip(members, _shares(stacked, documents, iterations, seed), strict=True):
            found[i] = p
    return found


def _shares(sums: Floats, documents: int, iterations: int, seed: int) -> list[float]:
    """(K,) p-values of (K, G) sums."""
    exact = documents <= EXACT
    observed = np.abs(sums.sum(axis=1))
    least = observed - _EQUAL * np.abs(sums).sum(axis=1)
    patterns = 1 << documents if exact else iterations
    generator = np.random.default_rng(seed)
    extreme = np.zeros(len(sums), dtype=np.int64)
    block = max(1, _BLOCK // documents)
    for begin in range(0, patterns, block):
        size = min(block, patterns - begin)
        if exact:
            codes = np.arange(begin, begin + size)[:, None] >> np.arange(documents)[None, :]
            signs = 1.0 - 2.0 * (codes & 1)
        else:
            signs = 1.0 - 2.0 * generator.integers(0, 2, (size, documents), dtype=np.int8)
        # einsum, not a BLAS product: the order of addition must not depend on threads.
        flipped = np.abs(np.einsum("bd,kd->kb", signs, sums))
        extreme += (flipped >= least[:, None]).sum(axis=1)
    one = 0 if exact else 1  # a seeded sample of patterns counts the observed one among them
    return [(n + one) / (patterns + one) for n in extreme.tolist()]
