"""Designs whose 95% interval is known to miss its level, recognised from the data.

Every threshold comes from the simulated studies of docs/calibration.md and was judged on the same:
it parts the designs there whose coverage leaves 93 to 96% from those that keep it. Silence is no
assurance.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from spanwise.statistics.linearised import STILL

Floats = NDArray[np.float64]

FEW_UNEVEN = 20
"""Documents below which sizes that differ (EVEN) cost one to three points of coverage."""

EVEN = 0.9
"""`evenness` from which documents count as alike in size."""

DOMINATED = 0.5
"""`evenness` below which a few documents decide the mean, whatever their number."""

ENOUGH = 200
"""Effective documents from which even so uneven sizes leave the interval right."""

SCARCE = 50
"""Documents with any difference below which, if they are less than half, the rest of the effect may
lie in documents that were not drawn."""

LOPSIDED = 0.14
"""`lopsided`, of either sign, above which one tail is missed more often than the other."""


def evenness(counts: Floats) -> float:
    """Effective number of documents over their number, (sum n)^2 / (G sum n^2).

    returns: within [1 / G, 1], 1 for equal sizes. Source: Kish, Survey Sampling (1965), 11.7.
    """
    return float(counts.sum() ** 2 / (len(counts) * (counts**2).sum()))


def lopsided(values: Sequence[float]) -> float:
    """Skewness / sqrt(n) of the questions' differences: about the skewness of their mean.

    It is the first term by which the mean's distribution differs from the normal one (Hall, The
    Bootstrap and Edgeworth Expansion (1992), section 2.6). Questions tell more of it than a few
    documents' sums do. returns: 0 where nothing varies.
    """
    apart = np.asarray(values, dtype=np.float64)
    apart = apart - apart.mean()
    square = float((apart**2).sum())
    return float((apart**3).sum()) / square**1.5 if square > 1e-24 else 0.0


def dominated(counts: Floats) -> bool:
    """Whether a few documents hold most questions."""
    even = evenness(counts)
    return even < DOMINATED and even * len(counts) < ENOUGH


def scarce(sums: Floats) -> bool:
    """Whether so few documents show any difference that the rest of it may not have been drawn."""
    differing = int((np.abs(sums) > STILL).sum())
    return differing < SCARCE and 2 * differing < len(sums)


def warnings(sums: Floats, counts: Floats, values: Sequence[float]) -> list[str]:
    """Reasons to trust a contrast's interval less, in plain words; none for most studies.

    sums, counts: (G,) of each document's questions, G >= 2.
    values:       (n,) the questions' differences, n = sum of counts.
    """
    documents, found = len(sums), []
    even = evenness(counts)
    if dominated(counts):
        found.append(
            f"a few documents hold most questions: {documents} weigh as much as "
            f"{even * documents:.1f} equal ones, so the interval is too narrow"
        )
    elif documents < FEW_UNEVEN and even < EVEN:
        found.append(
            f"{documents} documents of unequal size are few: the interval covers the true "
            "difference in 89 to 94% of studies, not 95%"
        )
    if scarce(sums):
        differing = int((np.abs(sums) > STILL).sum())
        found.append(
            f"only {differing} of {documents} documents show any difference: where it is rare, "
            "most of it may lie in documents that are not here, and the interval is too near zero"
        )
    lean = lopsided(values)
    if abs(lean) > LOPSIDED:
        # Where losses are rare and large, a sample that has few of them is too high.
        side = "below" if lean < 0 else "above"
        found.append(
            f"a few questions differ far more than the others: the true difference lies {side} the "
            "interval more often than 2.5% of the time"
        )
    return found
