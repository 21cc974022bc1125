"""One condition minus another, paired by question."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from spanwise.errors import InputError
from spanwise.statistics.bootstrap import ZERO, Resampled, Sample, resample, totals
from spanwise.statistics.linearised import Linearised, linearised

Column = Mapping[str, tuple[str, float | None]]
"""One measure under one condition: question_id -> (doc_id, value, None where undefined)."""

Interval = Literal["percentile", "linearised"]

REASONS = ("only in A", "only in B", "undefined in A", "undefined in B", "undefined in both")


@dataclass(frozen=True, slots=True)
class Paired:
    """The questions answered under both conditions, sorted by id.

    deltas:   (n,) A - B.
    excluded: reason -> number of questions left out, every reason there.
    """

    name: str
    question_ids: tuple[str, ...]
    doc_ids: tuple[str, ...]
    a: tuple[float, ...]
    b: tuple[float, ...]
    excluded: Mapping[str, int] = field(default_factory=lambda: dict.fromkeys(REASONS, 0))

    @property
    def deltas(self) -> tuple[float, ...]:
        """A - B of each question."""
        return tuple(x - y for x, y in zip(self.a, self.b, strict=True))


@dataclass(frozen=True, slots=True)
class Contrast:
    """What a pair of conditions came to. None where there is nothing to say, never NaN.

    ci_low, ci_high:     95% interval of record; ci90_low, ci90_high: 90%, for equivalence.
    interval: which that is, percentile or linearised, None where there is none.
    se:       linearised standard error, None below two documents.
    dz:       mean / sd of the deltas (ddof 1), None if they do not vary or are fewer than two.
    p_holm:   p adjusted for the family, None where p is.
    excluded: reason -> number of questions.
    reason:   why there is no interval, or None.
    """

    name: str
    n_questions: int
    n_documents: int
    mean_a: float | None
    mean_b: float | None
    delta: float | None
    ci_low: float | None
    ci_high: float | None
    ci90_low: float | None
    ci90_high: float | None
    interval: Interval | None
    se: float | None
    p: float | None
    dz: float | None
    p_holm: float | None
    excluded: Mapping[str, int]
    reason: str | None
    replicates: NDArray[np.float64]


def pair(name: str, a: Column, b: Column) -> Paired:
    """Keep the questions that have a value under both conditions; count the others by reason.

    raises: InputError if a question has another document under B than under A.
    """
    excluded = dict.fromkeys(REASONS, 0)
    excluded["only in A"] = len(a.keys() - b.keys())
    excluded["only in B"] = len(b.keys() - a.keys())
    kept: list[tuple[str, str, float, float]] = []
    for question in sorted(a.keys() & b.keys()):
        (doc, x), (other, y) = a[question], b[question]
        if doc != other:
            raise InputError(
                f"{name}: question {question!r} is of document {doc!r} in A and {other!r} in B; "
                "compare scores of the same questions"
            )
        if x is None and y is None:
            excluded["undefined in both"] += 1
        elif x is None:
            excluded["undefined in A"] += 1
        elif y is None:
            excluded["undefined in B"] += 1
        else:
            kept.append((question, doc, x, y))
    return Paired(
        name, tuple(k[0] for k in kept), tuple(k[1] for k in kept), tuple(k[2] for k in kept),
        tuple(k[3] for k in kept), excluded,
    )


def infer(
    pairs: Sequence[Paired], iterations: int, seed: int, m: int | None = None, few: int = 0
) -> list[Contrast]:
    """Every contrast of one family, with Holm's correction over it.

    m:      size of the family, by default the number of pairs. A family fixed beforehand keeps its
            size where a contrast is absent.
    few:    below this many documents the linearised interval and its p are of record, else the
            bootstrap's percentiles.
    raises: ValueError if the family is smaller than what is given.
    """
    samples = [Sample(p.deltas, p.doc_ids) for p in pairs]
    drawn = resample(samples, iterations, seed)
    errors = [
        linearised(*totals(sample)) if found.n_documents > 1 else None
        for sample, found in zip(samples, drawn, strict=True)
    ]
    recorded = [_record(found, error, few) for found, error in zip(drawn, errors, strict=True)]
    adjusted = holm([record.p for record in recorded], len(pairs) if m is None else m)
    return [
        Contrast(
            p.name, len(p.deltas), r.n_documents, _mean(p.a), _mean(p.b), r.mean,
            *its.ci, *its.ci90, its.interval, None if error is None else error.se, its.p,
            _dz(p.deltas), q, p.excluded, _reason(r, its), r.replicates,
        )
        for p, r, error, its, q in zip(pairs, drawn, errors, recorded, adjusted, strict=True)
    ]


@dataclass(frozen=True, slots=True)
class Record:
    """Interval and p of record."""

    interval: Interval | None
    ci: tuple[float | None, float | None]
    ci90: tuple[float | None, float | None]
    p: float | None


def record(sample: Sample, found: Resampled, few: int) -> Record:
    """The interval of record of one sample that has been resampled. few: as for `infer`."""
    error = linearised(*totals(sample)) if found.n_documents > 1 else None
    return _record(found, error, few)


def _record(found: Resampled, error: Linearised | None, few: int) -> Record:
    if error is None:
        return Record(None, (None, None), (None, None), None)
    if found.n_documents < few:
        return Record("linearised", error.interval(), error.interval(0.90), error.p)
    low, high = np.percentile(found.replicates, [5, 95]).tolist()
    return Record("percentile", (found.ci_low, found.ci_high), (low, high), found.p)


def holm(p: Sequence[float | None], m: int) -> list[float | None]:
    """Holm's step-down adjustment: ascending, the i-th (from 0) times m - i, running maximum, <= 1.

    p:      None for a contrast without one; it keeps its place in m and stays None.
    raises: ValueError if m is below the number of p-values.

    >>> holm([0.01, 0.04, None, 0.02], m=4)     # .01 x 4, .02 x 3, .04 x 2
    [0.04, 0.08, None, 0.06]
    """
    known = sorted((value, i) for i, value in enumerate(p) if value is not None)
    if m < len(known):
        raise ValueError(f"a family of {m} holds {len(known)} p-values")
    adjusted: list[float | None] = [None] * len(p)
    largest = 0.0
    for rank, (value, i) in enumerate(known):
        largest = max(largest, min(1.0, (m - rank) * value))
        adjusted[i] = largest
    return adjusted


def render_p(p: float | None, iterations: int, times: int = 1) -> str:
    """A p-value to read: 0 is printed as its bound, for B draws can tell no less than 2 / B.

    times: what a corrected p was multiplied by at most, the family's size.

    >>> render_p(0.0, 10_000), render_p(0.0, 10_000, times=4), render_p(0.0312, 10_000)
    ('< 0.0002', '< 0.0008', '0.0312')
    """
    if p is None:
        return "-"
    return f"< {min(1.0, times * 2 / iterations):.2g}" if p == 0 else f"{p:.4f}"


def _dz(deltas: Sequence[float]) -> float | None:
    if len(deltas) < 2:
        return None
    mean = math.fsum(deltas) / len(deltas)
    sd = math.sqrt(math.fsum((d - mean) ** 2 for d in deltas) / (len(deltas) - 1))
    # Equal deltas may differ by the rounding of a subtraction; that is no spread.
    return mean / sd if sd > ZERO else None


def _mean(values: Sequence[float]) -> float | None:
    return math.fsum(values) / len(values) if values else None


def _reason(found: Resampled, its: Record) -> str | None:
    if found.mean is None:
        return "no question has a value under both conditions"
    if found.n_documents < 2:
        return "one document: nothing to resample, so no interval and no p"
    if its.p is None:
        return "the documents do not vary: no error, so no p"
    return None
