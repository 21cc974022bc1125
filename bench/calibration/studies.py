"""Blocks of simulated studies through the project's own inference, and what is counted of each.

The project's own intervals and p-values: percentiles of the bootstrap, BCa, the linearised interval
with t(G - 1), sign flips. Beside them two candidates: Student's t with a leave-one-document-out
error ("jackknife"), and the same with the effective number of documents, (sum n)^2 / sum n^2, in
place of their number ("effective"). Which is of record below how many documents is left to the
report, so that a change of the rule needs no new run.
"""

from __future__ import annotations

import math
import zlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import numpy as np
from bench.calibration.designs import Design
from numpy.typing import NDArray

from spanwise.statistics.bootstrap import Sample, corrected, replicates
from spanwise.statistics.cautions import evenness, lopsided, warnings
from spanwise.statistics.contrasts import holm
from spanwise.statistics.linearised import errors
from spanwise.statistics.permutation import sign_flips
from spanwise.statistics.power import ALPHA, power

Floats = NDArray[np.float64]
Tally = dict[str, tuple[float, int]]
"""What is counted -> (sum, of how many)."""

SEED = 20_260_710
POWERED = 4
"""Studies of a block whose `power` is computed: it searches for sizes, which takes a while."""

CANDIDATES = ("jackknife", "effective")
"""Intervals that the project does not have."""

NULL = 1e-12
"""Two means nearer than this are equal: the rest is rounding."""


@dataclass(frozen=True)
class Block:
    """K studies of m contrasts over G documents.

    sums:   (m, K, G) of each document's questions; counts: (K, G).
    values: (m, N) of all studies' questions, study by study; ends: (K + 1,) where each begins.
    truth:  (m,) estimands.
    """

    sums: Floats
    counts: Floats
    values: Floats
    ends: NDArray[np.int64]
    truth: Floats

    def of(self, contrast: int, study: int) -> tuple[Floats, Floats, Floats]:
        """Sums, counts and values of one study."""
        begin, end = self.ends[study], self.ends[study + 1]
        return (
            self.sums[contrast, study], self.counts[study], self.values[contrast, begin:end]
        )


def seeds(design: str, documents: int, block: int) -> list[int]:
    """Entropy of a block; data and draws append 0 and 1."""
    return [SEED, zlib.crc32(design.encode()), documents, block]


def simulate(design: Design, documents: int, block: int, studies: int) -> Block:
    """Make a block's data."""
    rng = np.random.default_rng([*seeds(design.name, documents, block), 0])
    law = design.law(documents)
    counts = law.sizes.draw(rng, (studies, documents))
    values = law.draw(rng, counts.ravel())
    begins = np.concatenate([[0], np.cumsum(counts.ravel())])
    sums = np.add.reduceat(values, begins[:-1], axis=1)
    return Block(
        sums.reshape(len(values), studies, documents), counts.astype(np.float64), values,
        begins[::documents], law.truth(),
    )


def count(design: Design, documents: int, block: int, studies: int, draws: int) -> Tally:
    """Simulate one block and count.

    returns: `covers.X`, `below.X` and `above.X` (the truth lies below or above) and `width.X` for
             the interval X, `exists.X`, and `quiet.X`, coverage where no caution is given;
             `rejects.X` of true nulls and `finds.X` of effects by p < .05 for the p-value X;
             `family.X` and `any.X` of studies: a true null, an effect, rejected after Holm;
             `holm.X` of effects, and `first.X` at Holm's first step; `formula` the mean of
             `power()`; `still` without any variation; `cautioned`, `evenness`, `lopsided` and
             `differing` as cautions see them.
    """
    from scipy.stats import t

    made = simulate(design, documents, block, studies)
    m = len(made.truth)
    sums = made.sums.reshape(m * studies, documents)
    counts = np.tile(made.counts, (m, 1))
    truth = np.repeat(made.truth, studies)
    rng = np.random.default_rng([*seeds(design.name, documents, block), 1])
    drawn = replicates(sums, counts, draws, rng)
    means, se = errors(sums, counts)
    wide, df = float(t.ppf(0.975, documents - 1)), documents - 1
    apart = leave_one_out(sums, counts)
    fewer = np.maximum([documents * evenness(row) - 1 for row in counts], 1.0)
    wider = t.ppf(0.975, fewer)
    intervals = {
        "percentile": np.percentile(drawn, [2.5, 97.5], axis=1),
        "linearised": np.stack([means - wide * se, means + wide * se]),
        "jackknife": np.stack([means - wide * apart, means + wide * apart]),
        "effective": np.stack([means - wider * apart, means + wider * apart]),
        "bca": np.array([
            corrected(*of) or (np.nan, np.nan)
            for of in zip(drawn, sums, counts, strict=True)
        ]).T,
    }
    tails = np.minimum((drawn <= 0).sum(axis=1), (drawn >= 0).sum(axis=1))
    with np.errstate(divide="ignore", invalid="ignore"):
        p = {
            "percentile": np.minimum(1.0, 2 * tails / draws),
            # Nothing varies: no p, and nothing is rejected.
            "linearised": np.where(se == 0, 1.0, 2 * t.sf(np.abs(means) / se, df)),
            "jackknife": np.where(apart == 0, 1.0, 2 * t.sf(np.abs(means) / apart, df)),
            "effective": np.where(apart == 0, 1.0, 2 * t.sf(np.abs(means) / apart, fewer)),
        }
    p["flips"] = np.array(sign_flips(
        [Sample(row.tolist(), _names(documents)) for row in sums], draws,
        int(rng.integers(2**31)),
    ))
    tally: Tally = {"still": (float((se == 0).sum()), len(se))}
    covers: dict[str, NDArray[np.bool_]] = {}
    for name, (low, high) in intervals.items():
        there = ~np.isnan(low)
        covers[name] = (low - NULL <= truth) & (truth <= high + NULL)
        tally[f"exists.{name}"] = (float(there.sum()), len(there))
        for what, hit in (
            ("covers", covers[name]),
            ("below", truth < low - NULL), ("above", truth > high + NULL), ("width", high - low),
        ):
            tally[f"{what}.{name}"] = (float(hit[there].sum()), int(there.sum()))
    null = np.abs(truth) < NULL
    for name, value in p.items():
        for what, which in (("rejects", null), ("finds", ~null)):
            if which.any():
                hits = float((value[which] < ALPHA).sum())
                tally[f"{what}.{name}"] = (hits, int(which.sum()))
        if m > 1:
            tally |= _family(name, value.reshape(m, studies), null.reshape(m, studies))
    return tally | _beside(made, {name: covered.reshape(m, studies)
                                  for name, covered in covers.items()})


def _family(name: str, p: Floats, null: NDArray[np.bool_]) -> Tally:
    """What Holm's correction leaves of one kind of p-values. p, null: (m, K)."""
    m, studies = p.shape
    found = np.array([holm(column.tolist(), m) for column in p.T]).T < ALPHA
    tally: Tally = {f"family.{name}": (float((found & null).any(axis=0).sum()), studies)}
    if not null.all():
        tally[f"any.{name}"] = (float((found & ~null).any(axis=0).sum()), studies)
        tally[f"holm.{name}"] = (float((found & ~null).sum()), int((~null).sum()))
        # The level that power() takes for a family: its first step alone.
        tally[f"first.{name}"] = (float((p[~null] < ALPHA / m).sum()), int((~null).sum()))
    return tally


def _beside(made: Block, covers: Mapping[str, NDArray[np.bool_]]) -> Tally:
    """`power()` at the true effect for some studies, and what cautions see in all of them.

    covers: interval -> (m, K) whether it holds the truth.
    """
    m, studies = made.sums.shape[:2]
    tally: Tally = {}
    formula = [
        0.0 if its is None else its.power
        for contrast in np.flatnonzero(np.abs(made.truth) >= NULL)
        for study in range(min(POWERED, studies))
        for sums, counts, values in [made.of(contrast, study)]
        for its in [power(sums, counts, float((values**2).sum()),
                          abs(float(made.truth[contrast])), ALPHA / m)]
    ]
    if formula:
        known = [value for value in formula if not math.isnan(value)]
        tally["formula"] = (sum(known), len(known))
        tally["formula.nan"] = (len(formula) - len(known), len(formula))
    seen = {"evenness": 0.0, "lopsided": 0.0, "differing": 0.0}
    cautioned = np.zeros((m, studies), dtype=bool)
    for c, k in np.ndindex(m, studies):
        sums, counts, values = made.of(c, k)
        cautioned[c, k] = bool(warnings(sums, counts, values))  # type: ignore[arg-type]
        seen["evenness"] += evenness(counts)
        seen["lopsided"] += abs(lopsided(values))  # type: ignore[arg-type]
        seen["differing"] += float((sums != 0).sum())
    quiet = ~cautioned
    tally["cautioned"] = (int(cautioned.sum()), cautioned.size)
    for name, covered in covers.items():
        tally[f"quiet.{name}"] = (int((covered & quiet).sum()), int(quiet.sum()))
    return tally | {name: (total, m * studies) for name, total in seen.items()}


def leave_one_out(sums: Floats, counts: Floats) -> Floats:
    """(K,) errors of means by leaving out one document at a time.

    sqrt((G - 1) / G sum (mean_(d) - mean_(.))^2). Source: Efron and Tibshirani, An Introduction to
    the Bootstrap (1993), section 11.2.
    """
    documents = sums.shape[1]
    left = (sums.sum(axis=1, keepdims=True) - sums) / (counts.sum(axis=1, keepdims=True) - counts)
    spread = ((left - left.mean(axis=1, keepdims=True)) ** 2).sum(axis=1)
    found = np.sqrt(spread * (documents - 1) / documents)
    found[found < NULL] = 0.0
    return found


def _names(documents: int) -> list[str]:
    return [f"{i:05d}" for i in range(documents)]


def blocks(studies: int, size: int) -> Iterator[tuple[int, int]]:
    """(block, its studies) of `studies` in all."""
    for block, begin in enumerate(range(0, studies, size)):
        yield block, min(size, studies - begin)
