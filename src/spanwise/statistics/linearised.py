"""The interval of record where documents are few: a ratio's linearised error and Student's t.

A mean over questions is a ratio of two sums over documents, sum of sums / sum of counts. Its
first-order residuals u_d = (sum_d - mean n_d) / mean n have one value for each document, and
se^2 = sum u_d^2 / (G (G - 1)). Source: Cochran, Sampling Techniques (1977), section 6.3; the t
distribution with G - 1 degrees of freedom as for any mean of G independent values.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]

FEW = 30
"""Below this many documents the linearised interval is the interval of record: resampling fewer
gives intervals that are too narrow."""

STILL = 1e-12
"""A standard error this near to zero is what rounding leaves of none."""


@dataclass(frozen=True, slots=True)
class Linearised:
    """A mean with its linearised error.

    se:   standard error, at least 0.
    df:   documents - 1.
    p:    two-sided, of mean / se under t(df); None where the error is zero, for documents that do
          not vary say nothing of the next one.
    """

    mean: float
    se: float
    df: int
    p: float | None

    def interval(self, level: float = 0.95) -> tuple[float, float]:
        """mean -+ t se. level: coverage, within (0, 1)."""
        from scipy.stats import t

        half = float(t.ppf(0.5 * (1 + level), self.df)) * self.se
        return self.mean - half, self.mean + half


def errors(sums: Floats, counts: Floats) -> tuple[Floats, Floats]:
    """Means and standard errors of K samples at once.

    sums, counts: (K, G) of each document's questions; G >= 2, every count at least 1.
    returns:      (K,) means, (K,) standard errors.
    raises:       ValueError below two documents.
    """
    documents = sums.shape[1]
    if documents < 2:
        raise ValueError(f"{documents} document(s): a spread needs two")
    means = sums.sum(axis=1) / counts.sum(axis=1)
    residuals = (sums - means[:, None] * counts) / counts.mean(axis=1)[:, None]
    found = np.sqrt((residuals**2).sum(axis=1) / (documents * (documents - 1)))
    found[found < STILL] = 0.0
    return means, found


def linearised(sums: Floats, counts: Floats) -> Linearised:
    """One sample's mean and error.

    sums, counts: (G,) of each document's questions, G >= 2.
    """
    from scipy.stats import t

    (mean,), (se,) = errors(sums[None, :], counts[None, :])
    df = len(sums) - 1
    p = None if se == 0 else 2 * float(t.sf(abs(mean) / se, df))
    return Linearised(float(mean), float(se), df, None if p is None or math.isnan(p) else p)
