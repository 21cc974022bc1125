"""The designs: a law, null or with an effect, over 5 to 1,500 documents."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace

from bench.calibration.laws import (
    Family,
    Law,
    Lumpy,
    Normal,
    Scores,
    Sizes,
    even,
    heavy,
    uneven,
)

DOCUMENTS = (5, 10, 20, 30, 60, 100, 200, 1_500)
"""30 is where the interval of record changes, and the size of handbook."""

DETECTED = 2.8
"""First-order standard errors that an effect of one contrast measures: found four times in five."""

DETECTED_OF_FOUR = 3.34
"""The same at .05 / 4, Holm's first step in a family of four."""


@dataclass(frozen=True)
class Design:
    """One named way to make studies.

    law: documents -> the law of its values.
    says: what it is, for a table.
    """

    name: str
    says: str
    law: Callable[[int], Law]


def mean_size(documents: int) -> int:
    """Questions of a document on average: 8, or 3 in large corpora."""
    return 3 if documents >= 1_000 else 8


PATH = ((1.0, 3.0), (1.6, 2.4))
"""Betas of losses and gains of A3 - P in handbook: 40% zeros, sd .30, skewness .3."""

ROUTING = ((1.5, 2.2), (1.0, 8.0))
"""Of A4 - A3: 73% zeros, small gains, losses up to 1, sd .16, skewness -2.7."""

RARE = ((8.0, 1.0), (1.0, 3.0))
"""95% zeros, what differs a near-total loss, mostly in the same documents."""


def _lumpy(sizes: Sizes, kind: str) -> Lumpy:
    return {
        "path": Lumpy(sizes, 0.60, 0.23, 5.0, *PATH),
        "routing": Lumpy(sizes, 0.27, 0.39, 8.0, *ROUTING),
        "rare": Lumpy(sizes, 0.05, 0.90, 4.0, *RARE),
    }[kind]


def _normal(name: str, says: str, sizes: Callable[[int], Sizes], icc: float, slope: float
            ) -> list[Design]:
    def law(documents: int, effect: bool) -> Normal:
        null = Normal(sizes(mean_size(documents)), icc=icc, slope=slope)
        return replace(null, mean=DETECTED * null.error(documents)) if effect else null

    return [
        Design(f"{name}-null", says, lambda documents: law(documents, False)),
        Design(f"{name}-effect", says, lambda documents: law(documents, True)),
    ]


def _zeros(kind: str, says: str, towards: float) -> list[Design]:
    """towards: side of the effect, 1 or -1."""

    def law(documents: int, effect: bool) -> Lumpy:
        null = _lumpy(uneven(mean_size(documents)), kind).towards(0.0)
        return null.towards(towards * DETECTED * null.error(documents)) if effect else null

    return [
        Design(f"{kind}-null", says, lambda documents: law(documents, False)),
        Design(f"{kind}-effect", says, lambda documents: law(documents, True)),
    ]


def _family(name: str, effects: tuple[float, float, float, float]) -> Design:
    """effects: in standard errors."""

    def law(documents: int) -> Family:
        null = Family(uneven(mean_size(documents)))
        scale = DETECTED_OF_FOUR * null.error(documents)
        a, b, c, d = (scale * effect for effect in effects)
        return replace(null, means=(a, b, c, d))

    return Design(name, "four normal contrasts, correlated +-.5", law)


def _scores(name: str, shifts: tuple[float, float, float, float]) -> Design:
    """shifts: of A1, P, G3 and A4, times 1 / sqrt(questions)."""

    def law(documents: int) -> Scores:
        size = mean_size(documents)
        a1, p, g3, a4 = (shift / math.sqrt(documents * size) for shift in shifts)
        return Scores(uneven(size), (a1, p, g3, a4))

    return Design(name, "four contrasts of bounded scores, 57% zeros, correlated +-.5", law)


DESIGNS: dict[str, Design] = {
    design.name: design
    for design in [
        *_normal("even", "normal, ICC .2, 7 to 9 questions (2 to 4 at 1,500)", even, 0.2, 0.0),
        *_normal("normal-0", "normal, ICC 0", uneven, 0.0, 0.0),
        *_normal("normal-2", "normal, ICC .2", uneven, 0.2, 0.0),
        *_normal("informative", "normal, ICC .2, effect grows with log size", uneven, 0.2, 0.1),
        *_normal("dominant", "the same, a few documents hold most questions", heavy, 0.2, 0.1),
        *_zeros("path", "40% zeros, gains and losses, ICC .08", 1.0),
        *_zeros("routing", "73% zeros, small gains, large losses, ICC .03", -1.0),
        *_zeros("rare", "95% zeros, near-total losses, ICC .04 to .2", -1.0),
        _family("family-null", (0.0, 0.0, 0.0, 0.0)),
        _family("family-half", (1.0, 1.0, 0.0, 0.0)),
        _scores("scores-null", (0.0, 0.0, 0.0, 0.0)),
        _scores("scores-half", (-3.0, -3.0, 0.0, 0.0)),
    ]
}
