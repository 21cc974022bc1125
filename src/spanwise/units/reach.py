"""Where in a ranked list the evidence is held whole, what a budget buys, and why a need missed.

Everything here looks at places alone. Units of one document are merged where they overlap or touch;
a gap is a gap, and a repeated fragment fills none (`measures.bundles`).
"""

from __future__ import annotations

from bisect import bisect_right
from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import accumulate

from spanwise.measures.bundles import bundle_coverage, sufficient
from spanwise.measures.places import Unit, length, shared
from spanwise.spans import Evidence, Span, merge

Bundles = Sequence[Sequence[int]]
CAUSES = ("boundary", "cutoff", "truncation", "ranking")


@dataclass(frozen=True, slots=True)
class Reach:
    """The shortest beginning of a list that meets some bundle, as a number of units; None if none.

    sufficient: up to the first unit that alone holds every anchor of a bundle.
    covered:    up to the first units that together do.
    """

    sufficient: int | None
    covered: int | None


def reach(ranked: Sequence[Unit], anchors: Sequence[Evidence], bundles: Bundles) -> Reach:
    """How far down a list one has to read.

    bundles: at least one, none empty: a need without an answer has no reach.

    >>> heading, text = Evidence("d", 0, 9), Evidence("d", 11, 30)
    >>> reach([Unit("d", 11, 30), Unit("e", 0, 30), Unit("d", 0, 11)], [heading, text], [[0, 1]])
    Reach(sufficient=None, covered=3)
    """
    if not bundles or not all(bundles):
        raise ValueError("a need without a bundle, or with an empty one, cannot be reached")
    held: list[list[Span]] = [[] for _ in anchors]
    whole = [False] * len(anchors)
    alone: int | None = None
    for place, unit in enumerate(ranked, start=1):
        mine = set()
        for i, anchor in enumerate(anchors):
            part = shared(unit, anchor)
            if part is None:
                continue
            if len(part) == length(anchor):
                mine.add(i)
            if not whole[i]:
                held[i] = merge([*held[i], part])
                whole[i] = sum(map(len, held[i])) == length(anchor)
        if alone is None and any(mine.issuperset(bundle) for bundle in bundles):
            alone = place
        if any(all(whole[i] for i in bundle) for bundle in bundles):
            # What holds a bundle alone covers it too, so nothing is covered later than that.
            if alone is None:
                alone = _alone(ranked, place, anchors, bundles)
            return Reach(alone, place)
    return Reach(None, None)


def _alone(
    ranked: Sequence[Unit], after: int, anchors: Sequence[Evidence], bundles: Bundles
) -> int | None:
    for place, unit in enumerate(ranked[after:], start=after + 1):
        if sufficient([unit], anchors, bundles, 1):
            return place
    return None


@dataclass(frozen=True, slots=True)
class Bought:
    """What one budget returns of a list.

    whole: units that fit; rest: of the next unit, code points that still fit, 0 if it is left out.
    sufficient, covered: whether the returned text holds a bundle; None without an answer.
    ended: the list was over before the budget was full.
    """

    whole: int
    rest: int
    sufficient: float | None
    covered: float | None
    ended: bool


def buy(
    ranked: Sequence[Unit], sizes: Sequence[int], budget: int, anchors: Sequence[Evidence],
    bundles: Bundles, found: Reach | None, prefix: Callable[[int, int], int] | None = None,
) -> Bought:
    """Fill a budget in rank order.

    sizes:  of each unit, in what the budget counts; overlaps count again.
    found:  the list's reach, None for a need without an answer.
    prefix: (place, size) -> code points that the first `size` of a unit have; given, the first unit
            that does not fit is cut short, else it and all that follow are left out.
    """
    sums = list(accumulate(sizes))
    whole = bisect_right(sums, budget)
    over = whole == len(ranked)
    spare = budget - (sums[whole - 1] if whole else 0)
    ended = over and spare > 0
    rest = 0 if over or prefix is None or not spare else prefix(whole, spare)
    if found is None:
        return Bought(whole, rest, None, None, ended)
    alone = found.sufficient is not None and found.sufficient <= whole
    covered = found.covered is not None and found.covered <= whole
    if rest and not (alone and covered):
        unit = ranked[whole]
        piece = Unit(unit.doc_id, unit.start, unit.start + rest)
        alone = alone or bool(sufficient([piece], anchors, bundles, 1))
        covered = covered or bool(
            bundle_coverage([*ranked[:whole], piece], anchors, bundles, whole + 1)
        )
    return Bought(whole, rest, float(alone), float(covered), ended)


def least_units(units: Sequence[Unit], anchors: Sequence[Evidence], bundles: Bundles) -> int | None:
    """The fewest units of a segmentation that together hold some bundle whole; None if none do.

    In each document the anchors are covered from left to right, always by the unit that reaches
    furthest: with intervals on a line no choice needs fewer.
    """
    return min(
        (n for bundle in bundles
         if (n := _fewest(units, [anchors[i] for i in bundle])) is not None),
        default=None,
    )


def _fewest(units: Sequence[Unit], anchors: Sequence[Evidence]) -> int | None:
    wanted: dict[str, list[Span]] = defaultdict(list)
    for anchor in anchors:
        wanted[anchor.doc_id].append(anchor.span)
    total = 0
    for doc_id, spans in wanted.items():
        mine = sorted((u.start, u.end) for u in units if u.doc_id == doc_id)
        edge = -1  # everything wanted before it is covered by what was chosen
        for span in merge(spans):
            at = max(span.start, edge)
            while at < span.end:
                furthest = max((end for start, end in mine if start <= at), default=at)
                if furthest <= at:
                    return None
                total, at, edge = total + 1, furthest, furthest
    return total


def cause(
    k: int, anchors: Sequence[Evidence], bundles: Bundles, units: Sequence[Unit],
    seen: Sequence[Unit], alone: bool,
) -> str:
    """Why a need was missed in the first k units: one cause, the first of these that holds.

    boundary:   no units of the segmentation hold a bundle, however many: it was cut apart for good.
    cutoff:     some do, and no k of them: each holds too little.
    truncation: k do, and of what the encoder saw of each unit no k do.
    ranking:    what would have done was seen whole and stood too low.

    units: all units of the segmentation that lie in the anchors' documents; seen: the beginning of
           each that the encoder saw.
    alone: one unit must hold the bundle.
    """
    fewest, of_seen = (
        _least(places, anchors, bundles, alone) for places in (units, seen)
    )
    if fewest is None:
        return "boundary"
    if fewest > k:
        return "cutoff"
    return "ranking" if of_seen is not None and of_seen <= k else "truncation"


def _least(
    units: Sequence[Unit], anchors: Sequence[Evidence], bundles: Bundles, alone: bool
) -> int | None:
    if not alone:
        return least_units(units, anchors, bundles)
    return 1 if any(sufficient([unit], anchors, bundles, 1) for unit in units) else None
