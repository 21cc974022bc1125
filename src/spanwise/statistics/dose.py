"""Dose-response: does more of the path help, level by level?"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from spanwise.errors import InputError
from spanwise.statistics.bootstrap import Resampled, Sample, resample
from spanwise.statistics.contrasts import Column

DEPTHS = (0, 1, 2, 3)
"""Nominal depth of each dose; a path that is shorter than its dose still counts as that dose."""


@dataclass(frozen=True, slots=True)
class Slopes:
    """The least-squares slope over depth of every question that has a value at each depth.

    question_ids, doc_ids, values: (n,) sorted by question; a slope is change per level.
    excluded: reason -> number of questions left out.
    """

    question_ids: tuple[str, ...]
    doc_ids: tuple[str, ...]
    values: tuple[float, ...]
    excluded: dict[str, int]

    def resample(self, iterations: int, seed: int) -> Resampled:
        """The mean slope with the document-clustered bootstrap."""
        return resample([Sample(self.values, self.doc_ids)], iterations, seed)[0]


def slope(scores: Sequence[float], depths: Sequence[int] = DEPTHS) -> float:
    """Ordinary least squares: sum of (x - mean x) y / sum of (x - mean x)^2.

    raises: ValueError for other lengths or depths that do not vary.

    >>> slope([0.25, 0.5, 0.75, 1.0])
    0.25
    """
    if len(scores) != len(depths) or len(set(depths)) < 2:
        raise ValueError(f"{len(scores)} scores over depths {tuple(depths)}")
    centre = math.fsum(depths) / len(depths)
    spread = math.fsum((x - centre) ** 2 for x in depths)
    return math.fsum((x - centre) * y for x, y in zip(depths, scores, strict=True)) / spread


def slopes(columns: Sequence[Column], depths: Sequence[int] = DEPTHS) -> Slopes:
    """The slope of each question from its scores at each depth.

    columns: one for each depth, in its order.
    raises:  InputError if a question's document differs between depths, ValueError as `slope`.
    """
    if len(columns) != len(depths):
        raise ValueError(f"{len(columns)} columns over depths {tuple(depths)}")
    everywhere = set(columns[0]).intersection(*columns[1:])
    anywhere = set(columns[0]).union(*columns[1:])
    excluded = {"not at every depth": len(anywhere) - len(everywhere), "undefined at some depth": 0}
    kept: list[tuple[str, str, float]] = []
    for question in sorted(everywhere):
        docs = {column[question][0] for column in columns}
        if len(docs) > 1:
            raise InputError(f"question {question!r} is of documents {sorted(docs)} at its depths")
        values = [column[question][1] for column in columns]
        known = [value for value in values if value is not None]
        if len(known) < len(values):
            excluded["undefined at some depth"] += 1
            continue
        kept.append((question, docs.pop(), slope(known, depths)))
    return Slopes(
        tuple(k[0] for k in kept), tuple(k[1] for k in kept), tuple(k[2] for k in kept), excluded
    )
