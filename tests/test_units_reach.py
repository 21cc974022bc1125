"""Reach, budgets and causes against sets of characters and against every subset of units."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import combinations, pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from spanwise.measures.bundles import bundle_coverage, sufficient
from spanwise.measures.places import Unit
from spanwise.spans import Evidence, Span, merge
from spanwise.units.reach import CAUSES, Bundles, Reach, buy, cause, least_units, reach

Place = Unit | Evidence
Characters = set[tuple[str, int]]

LENGTH = 12
"""Code points of each document: short, so that lists often hold an anchor whole."""


def place(doc_id: str, start: int, length: int) -> tuple[str, int, int]:
    return doc_id, start, min(LENGTH, start + length)


PLACES = st.builds(
    place, st.sampled_from("ab"), st.integers(0, LENGTH - 1), st.integers(1, 7)
)
UNITS = st.lists(PLACES.map(lambda p: Unit(*p)), max_size=7)


@st.composite
def lists(draw: st.DrawFn) -> list[Unit]:
    """Ranked units, some of them again further down."""
    units = draw(UNITS)
    again = draw(st.lists(st.sampled_from(units), max_size=3)) if units else []
    return draw(st.permutations([*units, *again]))


@st.composite
def asked(draw: st.DrawFn) -> tuple[list[Evidence], list[list[int]]]:
    """Anchors, and alternative bundles of them; anchors may overlap or be the same."""
    anchors = draw(st.lists(PLACES.map(lambda p: Evidence(*p)), min_size=1, max_size=3))
    bundle = st.lists(st.integers(0, len(anchors) - 1), min_size=1, max_size=3)
    return anchors, draw(st.lists(bundle, min_size=1, max_size=3))


ASKED = asked()
LISTS = lists()


def characters(places: Sequence[Place]) -> Characters:
    return {(p.doc_id, i) for p in places for i in range(p.start, p.end)}


def holds(units: Sequence[Unit], anchors: Sequence[Evidence], bundles: Bundles) -> bool:
    union = characters(units)
    return any(characters([anchors[i] for i in bundle]) <= union for bundle in bundles)


def first(found: Callable[[int], bool], length: int) -> int | None:
    return next((k for k in range(1, length + 1) if found(k)), None)


def fewest(units: Sequence[Unit], anchors: Sequence[Evidence], bundles: Bundles) -> int | None:
    """By every subset of the units, the small ones first."""
    return first(
        lambda k: any(holds(some, anchors, bundles) for some in combinations(units, k)),
        len(units),
    )


@given(st.lists(st.builds(lambda a, n: Span(a, a + n), st.integers(0, 20), st.integers(1, 6))))
def test_merged_intervals_are_the_same_characters(spans: list[Span]) -> None:
    merged = merge(spans)
    assert {i for s in merged for i in range(s.start, s.end)} == {
        i for s in spans for i in range(s.start, s.end)
    }
    assert all(a.end < b.start for a, b in pairwise(merged))


@given(LISTS, ASKED)
@settings(max_examples=150, deadline=None)
def test_reach_is_the_first_cutoff_that_sets_of_characters_and_the_measures_find(
    ranked: list[Unit], need: tuple[list[Evidence], list[list[int]]]
) -> None:
    anchors, bundles = need
    found = reach(ranked, anchors, bundles)
    assert found == Reach(
        first(lambda k: any(holds([u], anchors, bundles) for u in ranked[:k]), len(ranked)),
        first(lambda k: holds(ranked[:k], anchors, bundles), len(ranked)),
    )
    for k in range(1, len(ranked) + 2):
        alone, together = found.sufficient, found.covered
        assert (alone is not None and alone <= k) == sufficient(ranked, anchors, bundles, k)
        assert (together is not None and together <= k) == (
            bundle_coverage(ranked, anchors, bundles, k)
        )


ANCHOR = [Evidence("d", 10, 30)]


@pytest.mark.parametrize(
    ("ranked", "expected"),
    [
        # Whole, to the code point; more does no harm, one less is partial.
        ([Unit("d", 10, 30)], Reach(1, 1)),
        ([Unit("d", 0, 99)], Reach(1, 1)),
        ([Unit("d", 11, 30)], Reach(None, None)),
        ([Unit("d", 10, 29)], Reach(None, None)),
        # Units that touch are merged; between [10, 20) and [21, 30) one code point is missing.
        ([Unit("d", 20, 30), Unit("d", 10, 20)], Reach(None, 2)),
        ([Unit("d", 10, 20), Unit("d", 21, 30)], Reach(None, None)),
        ([Unit("d", 10, 20), Unit("d", 21, 30), Unit("d", 20, 21)], Reach(None, 3)),
        # Repeats and nested fragments fill nothing: 12 + 12 code points are not 20.
        ([Unit("d", 10, 22), Unit("d", 10, 22)], Reach(None, None)),
        ([Unit("d", 10, 22), Unit("d", 12, 20), Unit("d", 10, 22)], Reach(None, None)),
        # The same offsets of another document, and together with it.
        ([Unit("e", 10, 30)], Reach(None, None)),
        ([Unit("d", 10, 20), Unit("e", 20, 30)], Reach(None, None)),
        # Covered before one unit is sufficient.
        ([Unit("d", 10, 20), Unit("d", 15, 40), Unit("d", 5, 35)], Reach(3, 2)),
        ([], Reach(None, None)),
    ],
)
def test_one_anchor(ranked: list[Unit], expected: Reach) -> None:
    assert reach(ranked, ANCHOR, [[0]]) == expected


def test_a_gap_of_one_white_space_character_is_a_gap() -> None:
    text = "Hold it. Let go."
    whole = [Evidence("d", 0, len(text))]
    sentences = [Unit("d", 0, 8), Unit("d", 9, len(text))]
    assert text[8] == " " and [text[u.start : u.end] for u in sentences] == ["Hold it.", "Let go."]
    assert reach(sentences, whole, [[0]]) == Reach(None, None)
    assert least_units(sentences, whole, [[0]]) is None


def test_any_bundle_does_and_each_needs_all_of_its_anchors() -> None:
    anchors = [Evidence("a", 0, 5), Evidence("b", 0, 5), Evidence("a", 7, 9)]
    ranked = [Unit("a", 0, 6), Unit("a", 6, 9), Unit("b", 0, 5), Unit("a", 0, 9)]
    assert reach(ranked, anchors, [[0, 1]]) == Reach(None, 3)
    assert reach(ranked, anchors, [[0, 2]]) == Reach(4, 2)
    assert reach(ranked, anchors, [[0, 1], [2]]) == Reach(2, 2)


@pytest.mark.parametrize("bundles", [[], [[]], [[0], []]])
def test_a_need_without_a_bundle_has_no_reach(bundles: list[list[int]]) -> None:
    with pytest.raises(ValueError, match="bundle"):
        reach([Unit("d", 0, 99)], ANCHOR, bundles)


@given(UNITS, ASKED)
@settings(max_examples=150, deadline=None)
def test_fewest_units_against_every_subset(
    units: list[Unit], need: tuple[list[Evidence], list[list[int]]]
) -> None:
    assert least_units(units, *need) == fewest(units, *need)


def test_fewest_units_takes_the_cheaper_bundle() -> None:
    units = [Unit("d", 0, 4), Unit("d", 3, 8), Unit("d", 8, 10), Unit("e", 0, 3)]
    long, short = Evidence("d", 0, 10), Evidence("e", 1, 2)
    assert least_units(units, [long, short], [[0]]) == 3
    assert least_units(units, [long, short], [[0, 1]]) == 4
    assert least_units(units, [long, short], [[0], [1]]) == 1


def begun(unit: Unit, seen: int) -> Unit:
    return Unit(unit.doc_id, unit.start, min(unit.end, unit.start + seen))


@given(UNITS, ASKED, st.integers(1, 4), st.data())
@settings(max_examples=150, deadline=None)
def test_the_cause_is_the_first_reason_that_no_ranking_could_mend(
    units: list[Unit], need: tuple[list[Evidence], list[list[int]]], k: int, data: st.DataObject
) -> None:
    """Against every choice: no units do, no k of them, no k of what was seen, or some k would."""
    cuts = data.draw(st.lists(st.integers(1, 8), min_size=len(units), max_size=len(units)))
    seen = [begun(unit, count) for unit, count in zip(units, cuts, strict=True)]
    for alone in (False, True):
        def do(places: list[Unit], most: int) -> bool:
            return any(
                holds(some, *need) for n in range(1, most + 1) for some in combinations(places, n)
            )

        # One unit is at most one of any k: for it there is no cutoff that was too small.
        whole, most = (1, 1) if alone else (len(units), k)
        expected = (
            "boundary" if not do(units, whole) else "cutoff" if not do(units, most)
            else "truncation" if not do(seen, most) else "ranking"
        )
        assert cause(k, *need, units, seen, alone) == expected
        # Who sees everything loses nothing to truncation.
        unseen = "ranking" if expected == "truncation" else expected
        assert cause(k, *need, units, units, alone) == unseen


def test_causes() -> None:
    anchors, halves = [Evidence("d", 0, 10)], [Unit("d", 0, 6), Unit("d", 6, 10)]
    assert CAUSES == ("boundary", "cutoff", "truncation", "ranking")
    # Two units hold it together, so that it takes two; none ever holds it alone.
    assert cause(1, anchors, [[0]], halves, halves, False) == "cutoff"
    assert cause(2, anchors, [[0]], halves, halves, False) == "ranking"
    assert cause(9, anchors, [[0]], halves, halves, True) == "boundary"
    # A code point that lies in no unit is in none of any number of them.
    gap = [halves[0], Unit("d", 7, 10)]
    assert cause(9, anchors, [[0]], gap, gap, False) == "boundary"
    # What was not seen is no cause while the cutoff is too small for what was seen whole.
    assert cause(1, anchors, [[0]], halves, halves[:1], False) == "cutoff"
    # The bundle that takes fewest units decides.
    either = [Evidence("d", 0, 10), Evidence("e", 0, 3)]
    elsewhere = [*halves, Unit("e", 0, 5)]
    assert cause(1, either, [[0], [1]], elsewhere, elsewhere, False) == "ranking"
    assert cause(1, either, [[0], [1]], elsewhere, halves, False) == "truncation"
    # Of the second only one code point was seen; and a unit that was not seen at all is missing.
    assert cause(2, anchors, [[0]], halves, [halves[0], Unit("d", 6, 7)], False) == "truncation"
    assert cause(2, anchors, [[0]], halves, halves[:1], False) == "truncation"
    # What was not seen of a unit matters only if the anchor stands there.
    long = [Unit("d", 0, 99)]
    assert cause(1, anchors, [[0]], long, [Unit("d", 0, 10)], True) == "ranking"
    assert cause(1, anchors, [[0]], long, [Unit("d", 0, 9)], True) == "truncation"


def filled(
    ranked: Sequence[Unit], sizes: Sequence[int], budget: int,
    prefix: Callable[[int, int], int] | None,
) -> tuple[int, list[Unit]]:
    """How many units are returned whole, and all the pieces that are."""
    pieces: list[Unit] = []
    used = 0
    for i, (unit, size) in enumerate(zip(ranked, sizes, strict=True)):
        if used + size > budget:
            if prefix is not None and budget > used:
                end = unit.start + prefix(i, budget - used)
                return i, [*pieces, Unit(unit.doc_id, unit.start, end)]
            return i, pieces
        pieces.append(unit)
        used += size
    return len(ranked), pieces


@given(LISTS, ASKED, st.integers(0, 40), st.sampled_from([1, 2, 3]), st.booleans(), st.booleans())
@settings(max_examples=150, deadline=None)
def test_budgets_are_filled_in_rank_order(
    ranked: list[Unit], need: tuple[list[Evidence], list[list[int]]], budget: int, width: int,
    cut: bool, answerable: bool,
) -> None:
    """A token is `width` code points here, the last of a unit the rest of it."""
    anchors, bundles = need
    sizes = [-(-(u.end - u.start) // width) for u in ranked]

    def prefix(i: int, size: int) -> int:
        return min(size * width, ranked[i].end - ranked[i].start)

    cutting = prefix if cut else None
    found = reach(ranked, anchors, bundles) if answerable else None
    bought = buy(ranked, sizes, budget, anchors, bundles if answerable else [], found, cutting)
    whole, pieces = filled(ranked, sizes, budget, cutting)
    assert bought.whole == whole
    assert bought.rest == (0 if len(pieces) == whole else pieces[-1].end - pieces[-1].start)
    if answerable:
        assert bought.sufficient == any(holds([p], anchors, bundles) for p in pieces)
        assert bought.covered == holds(pieces, anchors, bundles)
    else:
        assert (bought.sufficient, bought.covered) == (None, None)


def test_a_budget_stops_at_the_first_unit_that_does_not_fit() -> None:
    anchors = [Evidence("d", 50, 60)]
    ranked = [Unit("d", 0, 10), Unit("d", 10, 40), Unit("d", 50, 60)]
    sizes, found = [10, 30, 10], reach(ranked, anchors, [[0]])

    def same(_: int, size: int) -> int:
        return size

    # 25 = 10 + 15 of the second; the third would fit, but stands below.
    bought = buy(ranked, sizes, 25, anchors, [[0]], found)
    assert (bought.whole, bought.rest, bought.covered) == (1, 0, 0.0)
    bought = buy(ranked, sizes, 25, anchors, [[0]], found, same)
    assert (bought.whole, bought.rest, bought.covered) == (1, 15, 0.0)
    # 45 = 10 + 30 + 5: half of the anchor, which is none of it; 50 = all of it.
    bought = buy(ranked, sizes, 45, anchors, [[0]], found, same)
    assert (bought.whole, bought.rest, bought.covered) == (2, 5, 0.0)
    assert buy(ranked, sizes, 50, anchors, [[0]], found).covered == 1.0


def test_the_beginning_of_a_unit_may_complete_a_bundle() -> None:
    ranked = [Unit("d", 0, 10), Unit("d", 10, 40)]
    for anchor, alone in ((Evidence("d", 5, 20), 0.0), (Evidence("d", 12, 20), 1.0)):
        found = reach(ranked, [anchor], [[0]])
        for budget, held in ((19, False), (20, True)):
            bought = buy(
                ranked, [10, 30], budget, [anchor], [[0]], found, lambda _, size: size
            )
            assert (bought.whole, bought.rest) == (1, budget - 10)
            assert (bought.sufficient, bought.covered) == (held * alone, held)
        assert buy(ranked, [10, 30], 20, [anchor], [[0]], found).covered == 0.0


def test_text_that_is_returned_twice_is_paid_twice() -> None:
    ranked = [Unit("d", 0, 10), Unit("d", 0, 10), Unit("d", 10, 20)]
    anchors = [Evidence("d", 0, 20)]
    found = reach(ranked, anchors, [[0]])
    assert found == Reach(None, 3)
    assert buy(ranked, [10, 10, 10], 29, anchors, [[0]], found).covered == 0.0
    assert buy(ranked, [10, 10, 10], 30, anchors, [[0]], found).covered == 1.0


def test_a_list_ends_only_before_its_budget_is_full() -> None:
    ranked = [Unit("d", 0, 10), Unit("d", 10, 20)]
    assert buy(ranked, [1, 1], 3, [], [], None).ended
    assert not buy(ranked, [1, 1], 2, [], [], None).ended  # two were asked for, and two are there
    assert not buy(ranked, [1, 1], 1, [], [], None).ended
    assert buy([], [], 1, [], [], None).ended
