"""Section trees: native ones, their verification, and the segmenter."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from spanwise.documents.model import Builder, Document
from spanwise.structure.model import Section, Tree, make, verify
from spanwise.structure.native import native_tree
from spanwise.structure.segmenter import Segmenter, merge_order, partition, phrases, scatter


def document(*parts: tuple[int, str] | str) -> Document:
    builder = Builder("d", "T")
    for part in parts:
        if isinstance(part, tuple):
            builder.heading(*part)
        else:
            builder.paragraph(part)
    return builder.build()


def outline(tree: Tree) -> list[tuple[str, int, int, int]]:
    return [(s.title, s.level, s.first, s.last) for s in tree.sections]


def test_skipped_levels_close_up() -> None:
    made = document((2, "A"), "p", (4, "A.1"), "p", (3, "A.2"), "p", (2, "B"), "p")
    assert outline(native_tree(made)) == [("A", 1, 0, 0), ("A.1", 2, 1, 1), ("A.2", 2, 2, 2),
                                          ("B", 1, 3, 3)]


def test_levels_below_four_stay_on_four() -> None:
    made = document(*itertools.chain.from_iterable(((n, f"h{n}"), "p") for n in range(1, 7)))
    assert [s.level for s in native_tree(made).sections] == [1, 2, 3, 4, 4, 4]


def test_text_before_the_first_heading_and_headings_without_text() -> None:
    made = document("intro", (1, "A"), (2, "A.1"), "p", (1, "B"))
    tree = native_tree(made)
    assert outline(tree) == [("", 1, 0, 0), ("A", 1, 1, 0), ("A.1", 2, 1, 1), ("B", 1, 2, 1)]
    assert tree.paths() == [(), ("A",), ("A", "A.1"), ("B",)]
    assert tree.parents() == [-1, -1, 1, -1]
    assert tree.tops() == [0, 1, 1, 3]
    assert verify(tree, made.paragraphs) == []


def test_a_document_without_headings_is_one_section() -> None:
    assert outline(native_tree(document("p", "q"))) == [("", 1, 0, 1)]


@pytest.mark.parametrize(
    ("rows", "complaint"),
    [
        ([("A", 1, 0, 0), ("B", 1, 2, 2)], "gap"),
        ([("A", 1, 0, 1), ("B", 1, 1, 2)], "overlap"),
        ([("A", 1, 0, 1)], "gap: paragraphs 2..2"),
        ([("A", 1, 0, 3)], "out of bounds"),
        ([("A", 1, 0, 0), ("B", 3, 1, 2)], "level 1 is followed by 3"),
        ([("A", 2, 0, 2)], "level 0 is followed by 2"),
        ([("A", 0, 0, 2)], "not in 1..4"),
    ],
)
def test_each_violation_is_named(rows: list[tuple[str, int, int, int]], complaint: str) -> None:
    made = document("p", "q", "r")
    sections = [Section(*row, 0, 1) for row in rows]
    legal = all(last < 3 for _, _, _, last in rows)
    tree = make("d", made.paragraphs, rows) if legal else Tree("d", tuple(sections))
    assert any(complaint in found for found in verify(tree, made.paragraphs))


def test_offsets_that_disagree_with_the_paragraph_table_are_named() -> None:
    made = document((1, "A"), "first", "second")
    tree = native_tree(made)
    (section,) = tree.sections
    (found,) = verify(Tree("d", (replace(section, end=section.end - 1),)), made.paragraphs)
    assert "disagree with the paragraph table" in found and "[0, 13)" in found


@given(st.lists(st.one_of(st.tuples(st.integers(1, 6), st.just("h")), st.just("p")), max_size=30))
def test_every_native_tree_verifies(parts: list[tuple[int, str] | str]) -> None:
    made = document(*parts)
    assert verify(native_tree(made), made.paragraphs) == []


def slow_partition(
    sums: NDArray[np.float64], counts: NDArray[np.float64], parts: int
) -> tuple[float, list[int]]:
    """Every partition, one by one."""
    best = (np.inf, [0])
    for inner in itertools.combinations(range(1, len(counts)), parts - 1):
        starts = [0, *inner]
        stops = [*inner, len(counts)]
        cost = sum(
            float(scatter(sums[a:b].sum(axis=0)[None], counts[a:b].sum()[None])[0])
            for a, b in zip(starts, stops, strict=True)
        )
        if cost < best[0] - 1e-9:
            best = (cost, starts)
    return best


@given(st.integers(1, 7), st.integers(1, 7), st.integers(0, 10_000))
@settings(deadline=None)
def test_the_partition_is_the_best_of_all(n: int, parts: int, seed: int) -> None:
    parts = min(n, parts)
    rng = np.random.default_rng(seed)
    counts = rng.integers(1, 4, n).astype(np.float64)
    sums = rng.normal(size=(n, 3))
    found = partition(sums, counts, parts)
    stops = [*found[1:], n]
    cost = sum(
        float(scatter(sums[a:b].sum(axis=0)[None], counts[a:b].sum()[None])[0])
        for a, b in zip(found, stops, strict=True)
    )
    assert len(found) == parts and found[0] == 0 and found == sorted(set(found))
    assert cost == pytest.approx(slow_partition(sums, counts, parts)[0], abs=1e-6)


def test_the_most_alike_neighbours_merge_first() -> None:
    sums = np.array([[1.0, 0.0], [1.0, 0.0], [0.0, 1.0], [-1.0, 0.0]])
    assert merge_order(sums, np.ones(4))[0] == 1


def test_phrases_stay_within_a_clause_and_begin_and_end_with_content() -> None:
    found = phrases("Hold the blue button, then wait.")
    assert "blue button" in found and "Hold the blue" in found
    assert not any("button then" in p or p.startswith("the") for p in found)


def toy_encode(texts: Sequence[str]) -> NDArray[np.float32]:
    """Unit vectors by topic word: exact, so that the tree can be told by hand."""
    topics = ["tide", "lamp", "boat"]
    rows = np.array([[text.lower().count(t) for t in topics] for text in texts], dtype=np.float32)
    rows += 1e-3
    unit: NDArray[np.float32] = rows / np.linalg.norm(rows, axis=1, keepdims=True)
    return unit


def test_the_segmenter_cuts_where_the_topic_changes_and_titles_by_key_phrases() -> None:
    made = document(
        "The tide gauge reads tide. Every tide counts.", "Low tide marks. High tide marks.",
        "The lamp blinks. The lamp glows.", "A lamp guard. A spare lamp.",
        "The boat sails. The boat turns.",
    )
    segmenter = Segmenter(toy_encode, lambda text: len(text.split()), levels=2, section_tokens=11)
    tree = segmenter.induce(made)
    assert verify(tree, made.paragraphs) == []
    own = [(s.first, s.last) for s in tree.sections if s.last >= s.first]
    assert own == [(0, 1), (2, 3), (4, 4)]
    titles = {s.title.lower() for s in tree.sections}
    assert any("lamp" in t for t in titles) and any("boat" in t for t in titles)
    assert segmenter.induce(made) == tree


@given(st.lists(st.sampled_from(["tide tide.", "lamp. lamp!", "boat", "a", "1 2 3", "…"]),
                min_size=1, max_size=25), st.integers(1, 4), st.integers(1, 30))
@settings(deadline=None, max_examples=60)
def test_every_induced_tree_verifies(texts: list[str], levels: int, size: int) -> None:
    made = document(*texts)
    segmenter = Segmenter(toy_encode, lambda text: len(text.split()), levels, size)
    assert verify(segmenter.induce(made), made.paragraphs) == []
