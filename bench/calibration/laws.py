"""Where simulated scores come from: laws with means and variances known in closed form.

A study is K independent draws of G documents. A document has n questions, n from a `Sizes`; values
are differences between two conditions. The estimand is what the project estimates: the
question-weighted mean, E[sum of a document] / E[n].
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


@dataclass(frozen=True)
class Sizes:
    """Questions of a document: probability of 1, 2, ... questions."""

    shares: Floats

    @property
    def support(self) -> Floats:
        """1, 2, ..."""
        return np.arange(1, len(self.shares) + 1, dtype=np.float64)

    def mean(self, of: Callable[[Floats], Floats] = lambda n: n) -> float:
        """E[of(n)]."""
        return float((self.shares * of(self.support)).sum())

    def draw(self, rng: np.random.Generator, shape: tuple[int, ...]) -> Ints:
        """Numbers of questions, each at least 1."""
        return rng.choice(len(self.shares), shape, p=self.shares) + 1


def even(mean: int) -> Sizes:
    """mean - 1 .. mean + 1 with equal shares: documents asked about alike, as in handbook."""
    shares = np.zeros(mean + 1)
    shares[mean - 2 :] = 1 / 3
    return Sizes(shares)


def uneven(mean: int) -> Sizes:
    """1 + negative binomial of shape 2: standard deviation .70 of a mean of 8, .67 of 3."""
    from scipy.stats import nbinom

    shares = nbinom.pmf(np.arange(40 * mean), 2, 2 / (2 + mean - 1))
    return Sizes(shares / shares.sum())


def heavy(mean: int) -> Sizes:
    """Lognormal of sigma 1.3, at most 40 times the mean: a few documents hold most questions."""
    from scipy.stats import lognorm

    edges = np.arange(0, 40 * mean + 1) + 0.5
    scale = mean * math.exp(-(1.3**2) / 2)
    shares = np.diff(lognorm.cdf(edges, 1.3, scale=scale))
    return Sizes(shares / shares.sum())


class Law(Protocol):
    """Values of the questions of documents, for each of m contrasts."""

    sizes: Sizes

    def truth(self) -> Floats:
        """(m,) estimands."""

    def draw(self, rng: np.random.Generator, counts: Ints) -> Floats:
        """(m, sum of counts) values, question by question. counts: (D,) of each document."""


@dataclass(frozen=True)
class Normal:
    """mean + slope (log n - c) + document + question: normal, and of size n's making if slope != 0.

    c makes `mean` the question-weighted mean: c = E[n log n] / E[n].
    """

    sizes: Sizes
    mean: float = 0.0
    icc: float = 0.2
    sd: float = 0.3
    slope: float = 0.0

    def truth(self) -> Floats:
        """(1,)"""
        return np.array([self.mean])

    def error(self, documents: int) -> float:
        """First-order standard error of the mean: sqrt(E[u^2] / G), u = (sum - mean n) / E[n].

        E[(sum - mean n)^2] = E[n^2 effect(n)^2] + sd^2 (icc E[n^2] + (1 - icc) E[n]).
        """
        shift = self.sizes.mean(lambda n: (n * self._effect(n)) ** 2)
        noise = self.sd**2 * (
            self.icc * self.sizes.mean(lambda n: n**2) + (1 - self.icc) * self.sizes.mean()
        )
        return math.sqrt((shift + noise) / documents) / self.sizes.mean()

    def _effect(self, n: Floats) -> Floats:
        centre = self.sizes.mean(lambda m: m * np.log(m)) / self.sizes.mean()
        return self.slope * (np.log(n) - centre)

    def draw(self, rng: np.random.Generator, counts: Ints) -> Floats:
        """(1, N)"""
        own = self.mean + self._effect(counts.astype(np.float64))
        own = own + self.sd * math.sqrt(self.icc) * rng.normal(size=len(counts))
        noise = self.sd * math.sqrt(1 - self.icc) * rng.normal(size=int(counts.sum()))
        return (np.repeat(own, counts) + noise)[None, :]


@dataclass(frozen=True)
class Lumpy:
    """Zero for most questions, else a loss or a gain within [-1, 1], as rank measures differ.

    A document differs with probability a ~ Beta of mean `differ`, and what differs is a loss with
    probability q ~ Beta of mean `lose`, both of concentration `alike`; sizes of losses and gains
    follow Betas. Mean: differ (gain - lose (gain + loss)).
    """

    sizes: Sizes
    differ: float
    lose: float
    alike: float
    losses: tuple[float, float]
    gains: tuple[float, float]

    def truth(self) -> Floats:
        """(1,)"""
        (loss, _), (gain, _) = _beta(*self.losses), _beta(*self.gains)
        return np.array([self.differ * (gain - self.lose * (gain + loss))])

    def moments(self) -> tuple[float, float]:
        """Standard deviation of a value, and variance of a document's mean over its questions."""
        (loss, loss2), (gain, gain2) = _beta(*self.losses), _beta(*self.gains)
        mean = float(self.truth()[0])
        square = self.differ * (self.lose * loss2 + (1 - self.lose) * gain2)
        spread = self.lose * (1 - self.lose) / (self.alike + 1) * (gain + loss) ** 2
        given = (gain - self.lose * (gain + loss)) ** 2 + spread
        active = self.differ**2 + self.differ * (1 - self.differ) / (self.alike + 1)
        return math.sqrt(square - mean**2), active * given - mean**2

    def icc(self) -> float:
        """Correlation of two questions of one document."""
        sd, between = self.moments()
        return between / sd**2

    def error(self, documents: int) -> float:
        """First-order standard error, as of `Normal`."""
        sd, between = self.moments()
        square = self.sizes.mean(lambda n: n**2)
        within = sd**2 - between
        found = between * square + within * self.sizes.mean()
        return math.sqrt(found / documents) / self.sizes.mean()

    def towards(self, mean: float) -> Lumpy:
        """The same law with this mean, by more or fewer losses; .98 of either at most."""
        (loss, _), (gain, _) = _beta(*self.losses), _beta(*self.gains)
        lose = (gain - mean / self.differ) / (gain + loss)
        return Lumpy(self.sizes, self.differ, min(0.98, max(0.02, lose)), self.alike, self.losses,
                     self.gains)

    def draw(self, rng: np.random.Generator, counts: Ints) -> Floats:
        """(1, N)"""
        number, total = len(counts), int(counts.sum())
        a = rng.beta(self.differ * self.alike, (1 - self.differ) * self.alike, number)
        q = rng.beta(self.lose * self.alike, (1 - self.lose) * self.alike, number)
        differ = rng.random(total) < np.repeat(a, counts)
        lose = rng.random(total) < np.repeat(q, counts)
        values = np.where(lose, -rng.beta(*self.losses, total), rng.beta(*self.gains, total))
        return np.where(differ, values, 0.0)[None, :]


SIGNS = np.array([1.0, 1.0, -1.0, -1.0])
"""How A3 enters C1 to C4: A3 - A1, A3 - P, G3 - A3, A4 - A3."""


@dataclass(frozen=True)
class Family:
    """Four normal contrasts that share a condition: correlated by +-.5 in documents and questions.

    means: (4,) question-weighted means.
    """

    sizes: Sizes
    means: tuple[float, float, float, float] = (0.0, 0.0, 0.0, 0.0)
    icc: float = 0.1
    sd: float = 0.3

    def truth(self) -> Floats:
        """(4,)"""
        return np.array(self.means)

    def error(self, documents: int) -> float:
        """Of each contrast."""
        return Normal(self.sizes, icc=self.icc, sd=self.sd).error(documents)

    def draw(self, rng: np.random.Generator, counts: Ints) -> Floats:
        """(4, N)"""

        def parts(number: int) -> Floats:
            return math.sqrt(0.5) * (
                SIGNS[:, None] * rng.normal(size=(1, number)) + rng.normal(size=(4, number))
            )

        documents = self.sd * math.sqrt(self.icc) * parts(len(counts))
        noise = self.sd * math.sqrt(1 - self.icc) * parts(int(counts.sum()))
        return self.truth()[:, None] + np.repeat(documents, counts, axis=1) + noise


LEVELS = np.array([0.0, *(1 / math.log2(rank + 1) for rank in range(10, 0, -1))])
"""nDCG@10 of one piece of evidence: none, or at rank 10, 9, ... 1."""

_SHARES = np.array([0.15, *[0.02] * 6, 0.05, 0.08, 0.15, 0.45])

SPLIT = (0.10, 0.80, 0.10)
"""Variance of a question's latent: its document, itself, and its condition."""


@dataclass(frozen=True)
class Scores:
    """Four contrasts of five conditions whose scores are ranks' discounts: most differences are 0.

    A score is the level that a latent falls on: document + question, shared by the conditions, +
    the condition's own part + its shift, with variance 1 in all. shifts: of A1, P, G3, A4; A3 has
    none.
    """

    sizes: Sizes
    shifts: tuple[float, float, float, float] = (0.0, 0.0, 0.0, 0.0)

    def truth(self) -> Floats:
        """(4,) A3 - A1, A3 - P, G3 - A3, A4 - A3: differences of E[level], by the normal law."""
        from scipy.special import ndtr

        means = [float((np.diff(LEVELS) * ndtr(shift - _edges())).sum())
                 for shift in (*self.shifts, 0.0)]
        a1, p, g3, a4, a3 = means
        return np.array([a3 - a1, a3 - p, g3 - a3, a4 - a3])

    def draw(self, rng: np.random.Generator, counts: Ints) -> Floats:
        """(4, N)"""
        document, question, own = (math.sqrt(share) for share in SPLIT)
        total = int(counts.sum())
        shared = np.repeat(document * rng.normal(size=len(counts)), counts)
        shared = shared + question * rng.normal(size=total)
        # A document favours a condition too: half of the condition's part is the document's.
        mine = np.repeat(rng.normal(size=(5, len(counts))), counts, axis=1)
        latent = shared + own * math.sqrt(0.5) * (mine + rng.normal(size=(5, total)))
        latent += np.array([*self.shifts, 0.0])[:, None]
        a1, p, g3, a4, a3 = LEVELS[np.searchsorted(_edges(), latent)]
        return np.stack([a3 - a1, a3 - p, g3 - a3, a4 - a3])


def _edges() -> Floats:
    """(10,) latents at which the next level begins."""
    from scipy.special import ndtri

    edges: Floats = ndtri(np.cumsum(_SHARES)[:-1])
    return edges


def _beta(a: float, b: float) -> tuple[float, float]:
    """Mean and mean square of a Beta."""
    mean = a / (a + b)
    return mean, mean * (a + 1) / (a + b + 1)
