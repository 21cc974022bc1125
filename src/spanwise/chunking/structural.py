"""Chunks that follow a section tree: split where a section is long, merged where it is short."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

from spanwise.chunking.cuts import Ruler, split
from spanwise.structure.model import Tree


@dataclass(frozen=True, slots=True)
class Piece:
    """A chunk in the making: its span, and how many code points of it each section holds."""

    start: int
    end: int
    sections: tuple[tuple[int, int], ...]  # (section index, code points), in document order

    @property
    def section(self) -> int:
        """The section that holds most of its code points, the earlier on ties."""
        return max(self.sections, key=lambda item: (item[1], -item[0]))[0]

    def joined(self, other: Piece) -> Piece:
        """This piece and the one after it as one."""
        held: Counter[int] = Counter()
        for section, size in (*self.sections, *other.sections):
            held[section] += size
        return Piece(self.start, other.end, tuple(sorted(held.items())))


def structural(
    ruler: Ruler, tree: Tree, length: int, cap: int, floor: int
) -> tuple[list[Piece], Counter[str]]:
    """Chunk a body by its section tree.

    The text of each section up to its first subsection is one piece; above `cap` tokens it is split
    into balanced parts at sentence ends. Then each piece below `floor` merges with a neighbour of
    the same parent section, the previous one first, else with the previous piece, as long as the
    sum stays within `cap`.

    length:  code points of the body, which the pieces tile.
    returns: pieces in order, and counts: `split` sections, `merged` pieces, `small` ones that stay.
    """
    counts: Counter[str] = Counter()
    own = [(i, s.start) for i, s in enumerate(tree.sections) if s.last >= s.first]
    pieces: list[Piece] = []
    for place, (index, first) in enumerate(own):
        start = first if place else 0
        stop = own[place + 1][1] if place + 1 < len(own) else length
        ends = split(ruler, start, stop, cap)
        counts["split"] += len(ends) > 1
        for end in ends:
            pieces.append(Piece(start, end, ((index, end - start),)))
            start = end
    parents = tree.parents()
    at = 0
    while at < len(pieces):
        if ruler.tokens(pieces[at].start, pieces[at].end) >= floor:
            at += 1
            continue
        partner = _partner(ruler, pieces, at, parents, cap)
        if partner is None:
            at += 1
            continue
        left = min(at, partner)
        pieces[left : left + 2] = [pieces[left].joined(pieces[left + 1])]
        counts["merged"] += 1
        at = left  # the sum may still be small
    counts["small"] = sum(ruler.tokens(p.start, p.end) < floor for p in pieces)
    return pieces, counts


def _partner(
    ruler: Ruler, pieces: list[Piece], at: int, parents: list[int], cap: int
) -> int | None:
    """The neighbour that a small piece merges with, or None."""

    def fits(other: int) -> bool:
        first, last = min(at, other), max(at, other)
        return ruler.tokens(pieces[first].start, pieces[last].end) <= cap

    neighbours = [other for other in (at - 1, at + 1) if 0 <= other < len(pieces) and fits(other)]
    parent = parents[pieces[at].section]
    for other in neighbours:
        if parents[pieces[other].section] == parent:
            return other
    return at - 1 if at - 1 in neighbours else None
