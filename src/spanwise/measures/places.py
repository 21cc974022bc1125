"""What the measures rank, and the little arithmetic of spans that they share."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from spanwise.errors import NoEvidence
from spanwise.spans import Evidence, Span, merge


@dataclass(frozen=True, slots=True, order=True)
class Unit:
    """A chunk as the measures see it: where its content lies and what it costs to read.

    tokens:        of the content, None where nobody counted them.
    prefix_tokens: of the rendered prefix; it can be charged, never relevant.
    raises:        ValueError unless 0 <= start < end and both counts are at least 0.
    """

    doc_id: str
    start: int
    end: int
    tokens: int | None = None
    prefix_tokens: int = 0

    def __post_init__(self) -> None:
        if not 0 <= self.start < self.end:
            raise ValueError(
                f"unit of {self.doc_id!r} needs 0 <= start < end, got [{self.start}, {self.end})"
            )
        if (self.tokens is not None and self.tokens < 0) or self.prefix_tokens < 0:
            raise ValueError(f"unit of {self.doc_id!r}: token counts are at least 0")


Place = Span | Evidence | Unit
"""Anything with a start and an end; bare spans are of one and the same document."""

DEEPEST = 10
"""The cutoff of cov_ndcg and ndcg, and how far the greedy ideal goes."""


def document(place: Place) -> str:
    """The document a place lies in; bare spans share one without a name."""
    return "" if isinstance(place, Span) else place.doc_id


def discount(rank: int) -> float:
    """What the gain at a rank is divided by: log2(rank + 1); rank 1 is the first."""
    return math.log2(rank + 1)


def shared(place: Place, span: Place) -> Span | None:
    """The code points in both, or None: places of two documents share nothing."""
    start, end = max(place.start, span.start), min(place.end, span.end)
    return Span(start, end) if start < end and document(place) == document(span) else None


def covered(ranked: Sequence[Place], span: Place) -> int:
    """How many code points of a span the union of some places covers."""
    parts = [part for place in ranked if (part := shared(place, span))]
    return sum(len(part) for part in merge(parts))


def length(place: Place) -> int:
    """Number of code points in a place."""
    return place.end - place.start


def mean(shares: Sequence[float]) -> float:
    """Mean, added from left to right, so that the array code can repeat it bit for bit."""
    total = 0.0
    for share in shares:
        total += share
    return total / len(shares)


def need(evidence: Sequence[Place]) -> None:
    """Refuse to measure against nothing.

    raises: NoEvidence if there are no gold spans: every measure is undefined then, not zero.
    """
    if not evidence:
        raise NoEvidence("a question without evidence: its measures are undefined, not zero")
