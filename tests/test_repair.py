"""From an answer's rows to a legal tiling: each rule by hand, then any rows whatsoever."""

from __future__ import annotations

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from spanwise.documents.model import Builder, Document
from spanwise.structure.model import make, verify
from spanwise.structure.native import native_tree
from spanwise.structure.repair import (
    NEAR_VALID,
    TITLE_CHARACTERS,
    Line,
    Row,
    close_up,
    join,
    mend_titles,
    own,
    repair,
    title_faults,
    violations,
)


def document(count: int) -> Document:
    builder = Builder("d", "T")
    for number in range(count):
        builder.paragraph(f"Paragraph {number}.")
    return builder.build()


def rows(*given: tuple[str, int | None, int | None, int | None]) -> list[Row]:
    return [Row(*one) for one in given]


def lines(count: int, *given: tuple[str, int | None, int | None, int | None]) -> list[Line]:
    return list(repair(rows(*given), document(count).paragraphs).lines)


def legal(made: list[Line], count: int) -> bool:
    paragraphs = document(count).paragraphs
    return verify(make("d", paragraphs, made), paragraphs) == []


# what strategies build

titles = st.one_of(
    st.sampled_from(["A", "B", "a", "", "Part 2", "水", "x" * 90]), st.text(max_size=9)
)
wild = st.one_of(st.none(), st.integers(-3, 14), st.integers())
any_rows = st.lists(st.builds(Row, titles, wild, wild, wild), max_size=12)


@st.composite
def legal_lines(draw: st.DrawFn, first: int = 0, stop: int | None = None) -> list[Line]:
    """A legal tiling of [first, stop), headings without text among its sections."""
    stop = draw(st.integers(first + 1, first + 14)) if stop is None else stop
    cuts = draw(st.sets(st.integers(first + 1, stop - 1))) if stop > first + 1 else set[int]()
    made: list[Line] = []
    level = 0
    for a, b in itertools.pairwise([first, *sorted(cuts), stop]):
        for last in (*([a - 1] * draw(st.integers(0, 2))), b - 1):
            level = draw(st.integers(1, min(4, level + 1)))
            made.append((draw(titles), level, a, last))
    return made


# each rule by hand


def test_a_gap_goes_to_the_section_before_and_one_at_the_start_to_the_first() -> None:
    made = repair(rows(("A", 1, 1, 2), ("B", 1, 5, 7)), document(8).paragraphs)
    assert made.lines == (("A", 1, 0, 4), ("B", 1, 5, 7))
    assert made.paragraphs == (2 + 3) / 8 and made.sections == 1


def test_an_overlap_goes_to_the_section_after() -> None:
    assert lines(8, ("A", 1, 0, 4), ("B", 1, 3, 7)) == [("A", 1, 0, 2), ("B", 1, 3, 7)]


def test_ranges_that_share_their_edges_lose_nothing() -> None:
    made = repair(
        rows(("A", 1, 0, 2), ("B", 1, 2, 3), ("C", 2, 3, 6)), document(6).paragraphs
    )
    assert made.lines == (("A", 1, 0, 1), ("B", 1, 2, 2), ("C", 2, 3, 5))
    assert made.paragraphs == made.sections == 1


def test_sections_are_sorted_and_clipped_and_reversed_ranges_turned_round() -> None:
    assert lines(6, ("B", 1, 99, 3), ("A", 1, -2, 2)) == [("A", 1, 0, 2), ("B", 1, 3, 5)]


def test_what_has_no_place_leaves() -> None:
    made = repair(
        rows(("A", 1, 0, 3), ("none", 1, None, 2), ("beyond", 1, 9, 12), ("empty", 1, 4, 3)),
        document(4).paragraphs,
    )
    assert made.lines == (("A", 1, 0, 3),) and made.sections == 1 / 4
    assert not made.near_valid


def test_of_two_sections_with_one_start_and_level_the_first_stays() -> None:
    assert lines(4, ("A", 1, 0, 3), ("B", 1, 0, 3)) == [("A", 1, 0, 3)]


def test_a_section_that_begins_with_its_subsection_has_no_text_of_its_own() -> None:
    assert lines(4, ("A", 1, 0, 9), ("A.1", 2, 0, 1), ("A.2", 2, 2, 9)) == [
        ("A", 1, 0, -1), ("A.1", 2, 0, 1), ("A.2", 2, 2, 3)
    ]


def test_missing_ends_and_levels_follow_from_their_neighbours() -> None:
    assert lines(6, ("A", 1, 0, None), ("A.1", 2, 2, None), ("A.2", None, 4, 5)) == [
        ("A", 1, 0, 1), ("A.1", 2, 2, 3), ("A.2", 2, 4, 5)
    ]


def test_levels_close_up_by_rank() -> None:
    # All levels one too deep is a habit of models: clamping the first alone would put the others
    # below it.
    assert close_up([2, 2, 3, 2]) == [1, 1, 2, 1]
    assert close_up([1, 4, 4, 2]) == [1, 2, 2, 2]
    assert close_up([1, 2, 3, 4, 5, 6]) == [1, 2, 3, 4, 4, 4]
    assert close_up([0, -7, 99]) == [1, 1, 2]


def test_a_section_that_claims_its_subsections_too_is_read_as_a_tree_has_it() -> None:
    given = rows(("A", 1, 0, 5), ("A.1", 2, 2, 3), ("A.2", 2, 4, 5), ("B", 1, 6, 7))
    paragraphs = document(8).paragraphs
    assert any("overlap" in found for found in violations(given, paragraphs))
    assert [(r.first, r.last) for r in own(given)] == [(0, 1), (2, 3), (4, 5), (6, 7)]
    assert violations(own(given), paragraphs) == []


def test_a_section_that_claims_a_part_of_its_subsections_is_an_overlap() -> None:
    given = rows(("A", 1, 0, 4), ("A.1", 2, 2, 5))
    assert own(given) == given
    assert any("overlap" in found for found in violations(given, document(6).paragraphs))


@pytest.mark.parametrize(
    ("claimed", "near"), [(4, True), (3, False)],
)
def test_near_valid_is_half_of_the_paragraphs(claimed: int, near: bool) -> None:
    made = repair(rows(("A", 1, 0, claimed - 1)), document(8).paragraphs)
    assert made.paragraphs == claimed / 8 and NEAR_VALID == 0.5
    assert made.near_valid is near


def test_nothing_is_no_tiling() -> None:
    assert repair([], document(3).paragraphs).near_valid is False
    assert violations([], document(3).paragraphs) == ["the answer holds no sections"]


def test_what_cannot_be_read_is_named() -> None:
    (found,) = violations(rows(("A", 1, 0, 1), ("B", None, 2, None)), document(3).paragraphs)
    assert found == "section 1 'B': no readable level, last"


# titles


def test_titles_are_mended_by_rule() -> None:
    given = [
        ("Tides", 1, 0, 0), ("tides", 2, 1, 1), ("Gauges", 2, 2, 2), ("Gauges", 2, 3, 3),
        ("", 1, 4, 4), ("—", 1, 5, 5), ("潮汐", 1, 6, 6), ("long " * 20, 1, 7, 7),
    ]
    assert len(title_faults(given, frozenset({"LATIN"}))) == 6
    made, changed = mend_titles(given, frozenset({"LATIN"}))
    assert [line[0] for line in made] == [
        "Tides", "tides (2)", "Gauges", "Gauges (2)", "Part 5", "Part 6", "Part 7",
        " ".join(["long"] * 16),  # 16 x 4 + 15 = 79 characters
    ]
    assert changed == 6
    assert [line[1:] for line in made] == [line[1:] for line in given]


def test_equal_titles_in_different_places_stay() -> None:
    given = [("A", 1, 0, 0), ("Use", 2, 1, 1), ("B", 1, 2, 2), ("Use", 2, 3, 3)]
    assert title_faults(given) == [] and mend_titles(given) == (given, 0)



# windows


def test_windows_are_joined_at_the_boundary_that_both_have() -> None:
    left = [("A", 1, 0, 3), ("B", 2, 4, 6), ("C", 1, 7, 9)]
    right = [("x", 1, 5, 6), ("C'", 2, 7, 8), ("D", 1, 9, 12)]
    joined, agreed = join(left, right)  # inside the overlap 5..9 left has 7, right has 7 and 9
    assert agreed
    assert joined == [("A", 1, 0, 3), ("B", 2, 4, 6), ("C'", 2, 7, 8), ("D", 1, 9, 12)]


def test_without_a_common_boundary_the_one_nearest_the_middle_is_the_seam() -> None:
    left = [("A", 1, 0, 5), ("B", 1, 6, 9)]
    right = [("x", 1, 4, 8), ("D", 1, 9, 12)]
    joined, agreed = join(left, right)  # overlap 4..9, middle 7: 6 is nearer than 9
    assert not agreed and joined == [("A", 1, 0, 5), ("x", 1, 6, 8), ("D", 1, 9, 12)]


def test_without_any_boundary_one_section_runs_through() -> None:
    left = [("A", 1, 0, 3), ("B", 1, 4, 9)]
    right = [("x", 1, 6, 5), ("y", 2, 6, 10), ("z", 2, 11, 12)]
    joined, agreed = join(left, right)
    assert not agreed and joined == [("A", 1, 0, 3), ("B", 1, 4, 10), ("z", 2, 11, 12)]


def test_levels_close_up_only_where_they_would_rise_by_more_than_one() -> None:
    left = [("A", 1, 0, 9)]
    right = [("P", 1, 5, 5), ("Q", 2, 6, 6), ("R", 3, 7, 12)]
    # Boundaries 6 and 7; the middle of 5..9 is 7.5: 7 is nearer, so P and Q fall away.
    assert join(left, right)[0] == [("A", 1, 0, 6), ("R", 2, 7, 12)]


@given(st.data())
def test_joining_legal_windows_gives_a_legal_tiling(data: st.DataObject) -> None:
    stop = data.draw(st.integers(1, 12))
    left = data.draw(legal_lines(0, stop))
    begin = data.draw(st.integers(1, stop))
    end = data.draw(st.integers(stop + 1, stop + 8))
    right = data.draw(legal_lines(begin, end))
    joined, _ = join(left, right)
    assert legal(joined, end)
    assert joined == join(left, right)[0]
    # Outside the overlap every boundary is one of the window that alone saw the place.
    starts = {line[2] for line in joined}
    assert {s for s in starts if s < begin} == {line[2] for line in left if line[2] < begin}
    assert {s for s in starts if s > stop} == {line[2] for line in right if line[2] > stop}


# whatever comes


@given(any_rows, st.integers(1, 12))
def test_any_rows_become_a_legal_tiling_or_none(given: list[Row], count: int) -> None:
    made = repair(given, document(count).paragraphs)
    assert 0 <= made.paragraphs <= 1 and 0 <= made.sections <= 1
    if not made.lines:
        assert not made.near_valid
        return
    assert legal(list(made.lines), count)
    owners = [i for i in range(count) for line in made.lines if line[2] <= i <= line[3]]
    assert owners == list(range(count))


@given(any_rows, st.integers(1, 12))
def test_repair_is_idempotent(given: list[Row], count: int) -> None:
    paragraphs = document(count).paragraphs
    once = repair(given, paragraphs)
    if once.lines:
        again = repair([Row(*line) for line in once.lines], paragraphs)
        assert again.lines == once.lines and again.paragraphs == again.sections == 1


@given(legal_lines())
def test_legal_outlines_are_left_alone(given: list[Line]) -> None:
    count = max(line[3] for line in given) + 1
    assert legal(given, count)
    as_rows = [Row(*line) for line in given]
    assert own(as_rows) == as_rows
    made = repair(as_rows, document(count).paragraphs)
    assert list(made.lines) == given and made.near_valid


@given(st.lists(st.one_of(st.tuples(st.integers(1, 6), st.just("h")), st.just("p")), max_size=20))
def test_native_trees_are_left_alone(parts: list[tuple[int, str] | str]) -> None:
    builder = Builder("d", "T")
    for part in [*parts, "p"]:
        if isinstance(part, tuple):
            builder.heading(*part)
        else:
            builder.paragraph(part)
    made = builder.build()
    given = [(s.title, s.level, s.first, s.last) for s in native_tree(made).sections]
    assert list(repair([Row(*line) for line in given], made.paragraphs).lines) == given


@given(st.lists(st.integers(-9, 9)))
def test_levels_that_closed_up_stay(levels: list[int]) -> None:
    once = close_up(levels)
    assert close_up(once) == once
    assert all(1 <= b <= min(4, a + 1) for a, b in itertools.pairwise([0, *once]))


@given(legal_lines(), st.sampled_from([frozenset[str](), frozenset({"LATIN"}), frozenset({"CJK"})]))
def test_mended_titles_have_no_fault_and_stay(given: list[Line], scripts: frozenset[str]) -> None:
    made, changed = mend_titles(given, scripts)
    assert title_faults(made, scripts) == []
    assert mend_titles(made, scripts) == (made, 0)
    assert (changed == 0) == (title_faults(given, scripts) == [])
    assert all(len(line[0]) <= TITLE_CHARACTERS for line in made)
