"""What a study of this size could have found, and how large one would settle it.

The effect is always the registered margin, never the one observed: power at an observed effect
says no more than its p-value (Hoenig and Heisey, The American Statistician 55 (2001)). Questions
of one document move together, which a design effect accounts for: the variance of a mean over N
questions is sd^2 D / N with D = 1 + (sum n_d^2 / N - 1) rho (Donner and Klar, Design and Analysis
of Cluster Randomization Trials in Health Research (2000), section 5; the weighted cluster size is
that of unequal clusters).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]

ALPHA = 0.05
"""Family-wise level."""

POWER = 0.8
"""What a study aims at: to find the margin four times in five."""

MOST = 10_000_000
"""Documents beyond which no number is given."""


@dataclass(frozen=True, slots=True)
class Power:
    """Power and size of a study, at the registered margin.

    icc:                   intraclass correlation of the deltas as estimated, may be negative; None
                           where no document has two questions or nothing varies within and between.
    design_effect:         D, with a negative correlation taken as none.
    power:                 probability to find a difference of the margin at `alpha`, two-sided.
    detectable:            difference found four times in five.
    documents, questions:  what finding the margin four times in five takes, with as many questions
                           a document; None beyond MOST.
    equivalence_power:     probability that the 90% interval falls within the margin if A = B.
    equivalence_documents, equivalence_questions: what that takes, four times in five.
    """

    icc: float | None
    design_effect: float
    power: float
    detectable: float
    documents: int | None
    questions: int | None
    equivalence_power: float
    equivalence_documents: int | None
    equivalence_questions: int | None


def icc(sums: Floats, counts: Floats, squares: float) -> float | None:
    """Intraclass correlation by analysis of variance.

    (MSB - MSW) / (MSB + (n0 - 1) MSW), n0 = (N - sum n_d^2 / N) / (G - 1). Source: Donner and
    Koval, Biometrics 36 (1980).

    sums, counts: (G,) of each document's questions; squares: sum of the values' squares.
    returns: at most 1, negative where documents are more alike than chance would have them; None
             below two documents, where none has two questions, or where nothing varies.
    """
    documents, questions = len(sums), float(counts.sum())
    if documents < 2 or questions <= documents:
        return None
    mean = float(sums.sum()) / questions
    means = sums / counts
    between = float((counts * (means - mean) ** 2).sum()) / (documents - 1)
    within = max(0.0, squares - float((sums * means).sum())) / (questions - documents)
    size = (questions - float((counts**2).sum()) / questions) / (documents - 1)
    spread = between + (size - 1) * within
    return (between - within) / spread if spread > 1e-24 else None


def power(
    sums: Floats, counts: Floats, squares: float, margin: float, alpha: float
) -> Power | None:
    """Power of one contrast.

    alpha:   two-sided level of the hardest comparison in the family: ALPHA / m.
    returns: None below two documents, or where the deltas do not vary.
    raises:  ValueError unless margin > 0 and 0 < alpha < 1.
    """
    if margin <= 0 or not 0 < alpha < 1:
        raise ValueError(f"margin {margin}, alpha {alpha}: expected > 0, within (0, 1)")
    documents, questions = len(sums), float(counts.sum())
    if documents < 2:
        return None
    mean = float(sums.sum()) / questions
    variance = (squares - questions * mean**2) / (questions - 1)
    if variance <= 1e-24:
        return None
    correlation = icc(sums, counts, squares)
    heaviness = float((counts**2).sum()) / questions
    effect = 1 + (heaviness - 1) * max(0.0, correlation or 0.0)
    each = questions / documents

    def error(size: int) -> float:
        return math.sqrt(variance * effect / (size * each))

    wanted = fewest(lambda size: difference(margin, error(size), size - 1, alpha))
    alike = fewest(lambda size: equivalence(margin, error(size), size - 1))
    return Power(
        correlation, effect, difference(margin, error(documents), documents - 1, alpha),
        detectable(error(documents), documents - 1, alpha),
        wanted, _questions(wanted, each),
        equivalence(margin, error(documents), documents - 1), alike, _questions(alike, each),
    )


def difference(effect: float, se: float, df: int, alpha: float) -> float:
    """Power of a two-sided t test at `alpha` where the true mean is `effect`: noncentral t."""
    from scipy.stats import chi2, nct, norm, t

    centre, bound = effect / se, float(t.ppf(1 - alpha / 2, df))
    if df > 10_000:  # there noncentral t is normal to four digits
        return float(norm.sf(bound - centre) + norm.cdf(-bound - centre))
    if centre > 37:  # beyond scipy's reach: over the mean's own deviation, given the spread's
        weights, drawn = _quantiles()
        return float(weights @ chi2.cdf(df * ((centre + norm.ppf(drawn)) / bound) ** 2, df))
    # The far side is below Phi(-centre); where that is nothing, scipy's value may be NaN.
    far = float(nct.cdf(-bound, df, centre)) if centre < 5 else 0.0
    return min(1.0, float(nct.sf(bound, df, centre)) + far)


def detectable(se: float, df: int, alpha: float) -> float:
    """The true mean that is found with probability POWER."""
    low, high = 0.0, se
    while difference(high, se, df, alpha) < POWER:
        low, high = high, 2 * high
    for _ in range(40):
        middle = (low + high) / 2
        if difference(middle, se, df, alpha) < POWER:
            low = middle
        else:
            high = middle
    return high


def equivalence(margin: float, se: float, df: int) -> float:
    """Power to have the 90% interval within +-margin where the true mean is 0.

    The mean over S of 2 Phi(margin / se - t_.95 S) - 1 where that is above 0, S^2 being chi-square
    over its df: the interval's half width is t_.95 S se. Source: Phillips, Journal of
    Pharmacokinetics and Biopharmaceutics 18 (1990).
    """
    from scipy.stats import chi2, norm, t

    centre, bound = margin / se, float(t.ppf(0.95, df))
    most = float(chi2.cdf(df * (centre / bound) ** 2, df))
    weights, drawn = _quantiles()
    spreads = np.sqrt(chi2.ppf(most * drawn, df) / df)
    return most * float(weights @ (2 * norm.cdf(centre - bound * spreads) - 1))


@cache
def _quantiles() -> tuple[Floats, Floats]:
    """Gauss-Legendre weights and places of probabilities, within (0, 1)."""
    places, weights = np.polynomial.legendre.leggauss(100)
    return weights / 2, (places + 1) / 2


def fewest(power_of: Callable[[int], float]) -> int | None:
    """The least number of documents, from 2, whose power is POWER; it grows with them."""
    low, high = 1, 2
    while power_of(high) < POWER:
        if high == MOST:
            return None
        low, high = high, min(2 * high, MOST)
    while high - low > 1:
        middle = (low + high) // 2
        if power_of(middle) < POWER:
            low = middle
        else:
            high = middle
    return high


def _questions(documents: int | None, each: float) -> int | None:
    return None if documents is None else math.ceil(documents * each)
