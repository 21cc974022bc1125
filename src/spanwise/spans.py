"""Half-open spans of code points, and the few operations everything else is built on."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True, order=True)
class Span:
    """Half-open range [start, end) of code points in one document's text.

    raises: ValueError unless 0 <= start < end; a zero-length span covers nothing.
    """

    start: int
    end: int

    def __post_init__(self) -> None:
        if not 0 <= self.start < self.end:
            raise ValueError(f"span needs 0 <= start < end, got [{self.start}, {self.end})")

    def __len__(self) -> int:
        return self.end - self.start

    def overlap(self, other: Span) -> int:
        """Number of code points in both spans, 0 when they only touch."""
        return max(0, min(self.end, other.end) - max(self.start, other.start))

    def contains(self, other: Span) -> bool:
        """True if every code point of `other` lies inside this span."""
        return self.start <= other.start and other.end <= self.end


@dataclass(frozen=True, slots=True, order=True)
class Evidence:
    """One gold span: a span of one document's text in one representation."""

    doc_id: str
    start: int
    end: int

    def __post_init__(self) -> None:
        if not 0 <= self.start < self.end:
            raise ValueError(
                f"evidence in {self.doc_id!r} needs 0 <= start < end, "
                f"got [{self.start}, {self.end})"
            )

    @property
    def span(self) -> Span:
        """The span without its document."""
        return Span(self.start, self.end)


def merge(spans: Iterable[Span]) -> list[Span]:
    """The same set of code points as sorted, disjoint spans; spans that touch become one."""
    merged: list[Span] = []
    for span in sorted(spans):
        if merged and span.start <= merged[-1].end:
            if span.end > merged[-1].end:
                merged[-1] = Span(merged[-1].start, span.end)
        else:
            merged.append(span)
    return merged


def unite(
    evidence: Sequence[Evidence], bundles: Sequence[Sequence[int]]
) -> tuple[list[Evidence], list[list[int]]]:
    """Deduplicate evidence and unite spans of one document that overlap; touching spans stay two.

    evidence: spans in any order.
    bundles:  lists of indices into `evidence`.
    returns:  spans sorted by (doc_id, start, end), and the bundles renumbered to them: each
              sorted, without repeats, equal bundles once, in order of first appearance.
    """
    order = sorted(range(len(evidence)), key=lambda i: evidence[i])
    united: list[Evidence] = []
    place = [0] * len(evidence)
    for i in order:
        item = evidence[i]
        last = united[-1] if united else None
        if last is not None and last.doc_id == item.doc_id and item.start < last.end:
            united[-1] = Evidence(last.doc_id, last.start, max(last.end, item.end))
        else:
            united.append(item)
        place[i] = len(united) - 1
    renumbered: list[list[int]] = []
    for bundle in bundles:
        indices = sorted({place[i] for i in bundle})
        if indices not in renumbered:
            renumbered.append(indices)
    return united, renumbered


def tiles(spans: Sequence[Span], length: int) -> bool:
    """True if the spans, in order, cover [0, length) without a gap or an overlap."""
    edge = 0
    for span in spans:
        if span.start != edge:
            return False
        edge = span.end
    return edge == length
