"""Chunks: tiling, the cap, balance, merging, size matching."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from spanwise.chunking.chunks import chunk_corpus, chunk_fixed, chunk_structural
from spanwise.chunking.cuts import measure, split
from spanwise.chunking.fixed import fixed
from spanwise.chunking.structural import structural
from spanwise.documents.model import Builder, Document
from spanwise.errors import CorpusError
from spanwise.params import ChunkingSettings
from spanwise.spans import Span, tiles
from spanwise.structure.native import native_tree
from spanwise.text.tokens import words

WORDS = words()
SETTINGS = ChunkingSettings(cap_tokens=350, floor_tokens=60)


def sentence(tokens: int) -> str:
    return " ".join(["word"] * (tokens - 1) + ["end."])


def document(*parts: tuple[int, str] | list[int]) -> Document:
    """Headings as (level, title), paragraphs as lists of sentence lengths in tokens."""
    builder = Builder("d", "T")
    for part in parts:
        if isinstance(part, tuple):
            builder.heading(*part)
        else:
            builder.paragraph(" ".join(sentence(n) for n in part))
    return builder.build()


def sizes(made: Document, spans: list[tuple[int, int]]) -> list[int]:
    return [WORDS.count(made.body[a:b]) for a, b in spans]


def native(made: Document) -> list[int]:
    ruler = measure(made, WORDS, 350)
    pieces, _ = structural(ruler, native_tree(made), len(made.body), 350, 60)
    assert tiles([Span(p.start, p.end) for p in pieces], len(made.body))
    return sizes(made, [(p.start, p.end) for p in pieces])


def test_a_long_section_splits_into_balanced_parts_at_sentence_ends() -> None:
    # 800 tokens: ceil(800 / 350) = 3 parts; balanced edges at 266.7 and 533.3; sentences end at
    # every 50, so 250 (16.7 away; 300 is 33.3 away), then 250 + 550 / 2 = 525 -> 500 or 550, a tie:
    # the earlier, 500; but then 300 remain in one part, within the cap.
    assert native(document((1, "A"), [50] * 16)) == [250, 250, 300]


def test_a_part_more_is_made_where_sentences_are_too_long_to_balance() -> None:
    # 690 tokens in sentences of 230: 2 parts would need a cut at 340..350 and there is none.
    assert native(document((1, "A"), [230] * 3)) == [230, 230, 230]


def test_a_sentence_above_the_cap_is_cut_at_a_token_edge() -> None:
    made = document((1, "A"), [800])
    assert native(made) == [350, 350, 100]
    assert measure(made, WORDS, 350).forced == 2


def test_small_parts_merge_with_a_sibling_before_the_previous_chunk() -> None:
    # A.2 (20 tokens) has two neighbours of its parent, A.1 and A.3: the previous one takes it.
    made = document((1, "A"), [100], (2, "A.1"), [100], (2, "A.2"), [20], (2, "A.3"), [100])
    assert native(made) == [100, 120, 100]
    # B (20 tokens, top level) follows A.1; its sibling C stands behind it and is preferred.
    made = document((1, "A"), [100], (2, "A.1"), [100], (1, "B"), [20], (1, "C"), [100])
    assert native(made) == [100, 100, 120]
    # Without a sibling beside it, the previous chunk takes it.
    made = document((1, "A"), [100], (2, "A.1"), [100], (1, "B"), [20])
    assert native(made) == [100, 120]


def test_nothing_merges_above_the_cap_and_what_stays_small_is_counted() -> None:
    made = document((1, "A"), [340], (1, "B"), [20], (1, "C"), [345])
    ruler = measure(made, WORDS, 350)
    pieces, counts = structural(ruler, native_tree(made), len(made.body), 350, 60)
    assert sizes(made, [(p.start, p.end) for p in pieces]) == [340, 20, 345]
    assert counts["small"] == 1 and counts["merged"] == 0


def test_a_merged_chunk_keeps_the_path_of_the_section_with_most_characters() -> None:
    made = document((1, "A"), [50], (1, "B"), [70], (1, "C"), [200])
    chunks, _ = chunk_structural(
        made, native_tree(made), "native", measure(made, WORDS, 350), WORDS, SETTINGS
    )
    assert [(c.tokens, c.path, c.node) for c in chunks] == [(120, ("T", "B"), 1),
                                                            (200, ("T", "C"), 2)]


def test_text_before_the_first_heading_has_the_title_alone() -> None:
    made = document([100], (1, "A"), [100])
    chunks, _ = chunk_structural(
        made, native_tree(made), "native", measure(made, WORDS, 350), WORDS, SETTINGS
    )
    assert [c.path for c in chunks] == [("T",), ("T", "A")]


def test_fixed_edges_move_to_the_nearest_sentence_end_the_earlier_on_ties() -> None:
    made = document([10] * 10)
    ruler = measure(made, WORDS, 350)
    # 100 tokens in windows of 33: n = 3, edges at 33.3 -> 30 and 66.7 -> 70.
    spans, _ = fixed(ruler, len(made.body), 33, 350)
    assert sizes(made, [(s.start, s.end) for s in spans]) == [30, 40, 30]
    # n = 100 / 40 = 2.5 -> 3 (a half is rounded up); n = 4: edges 25 -> 20 (a tie with 30), 50,
    # 75 -> 70.
    spans, _ = fixed(ruler, len(made.body), 25, 350)
    assert sizes(made, [(s.start, s.end) for s in spans]) == [20, 30, 20, 30]


def test_fixed_takes_an_earlier_end_above_the_cap_and_adds_an_edge_at_the_end() -> None:
    made = document([10] * 10)
    ruler = measure(made, WORDS, 30)
    spans, counts = fixed(ruler, len(made.body), 45, 30)  # n = 2, edge 50, cap 30
    assert sizes(made, [(s.start, s.end) for s in spans]) == [30, 30, 30, 10]
    assert counts["added"] == 2


def test_fixed_windows_are_as_large_as_induced_chunks_and_the_report_says_so() -> None:
    made = document((1, "A"), [40] * 6, (1, "B"), [40] * 4, (1, "C"), [40] * 5)
    trees = {"native": {"d": native_tree(made)}, "induced": {"d": native_tree(made)}}
    chunks, report = chunk_corpus([made], trees, WORDS, SETTINGS)
    assert [c.tokens for c in chunks if c.segmentation == "induced"] == [240, 160, 200]
    assert [c.tokens for c in chunks if c.segmentation == "fixed"] == [200, 200, 200]
    assert report["size_matching"]["gap_tokens"] == 0 and report["size_matching"]["within"]
    assert report["induced_spans_identical_to_native"] == 1


def test_a_document_without_an_induced_tree_leaves_every_segmentation() -> None:
    made = document((1, "A"), [100])
    lost, tree = replace(made, doc_id="lost"), native_tree(made)
    trees = {"native": {"d": tree, "lost": replace(tree, doc_id="lost")}, "induced": {"d": tree}}
    chunks, report = chunk_corpus([made, lost], trees, WORDS, SETTINGS)
    assert {c.doc_id for c in chunks} == {"d"} and report["unusable_induced_trees"] == ["lost"]
    with pytest.raises(CorpusError, match="name another inducer"):
        chunk_corpus([made, lost], {**trees, "induced": {}}, WORDS, SETTINGS)


PARTS = st.lists(
    st.one_of(
        st.tuples(st.integers(1, 5), st.sampled_from(["One", "Two", "Three"])),
        st.lists(st.integers(1, 90), min_size=1, max_size=6),
    ),
    min_size=1, max_size=14,
).filter(lambda parts: any(isinstance(p, list) for p in parts))


@given(PARTS, st.integers(20, 120), st.integers(5, 150))
@settings(max_examples=150, deadline=None)
def test_every_segmentation_tiles_and_never_exceeds_the_cap(
    parts: list[tuple[int, str] | list[int]], cap: int, size: int
) -> None:
    made = document(*parts)
    chosen = ChunkingSettings(cap_tokens=cap, floor_tokens=cap // 4)
    ruler = measure(made, WORDS, cap)
    for chunks, _ in (
        chunk_structural(made, native_tree(made), "native", ruler, WORDS, chosen),
        chunk_fixed(made, size, ruler, WORDS, chosen),
    ):
        assert tiles([Span(c.start, c.end) for c in chunks], len(made.body))
        assert all(0 < c.tokens <= cap for c in chunks)


@given(st.text(alphabet="ab .\nß漢!?-", min_size=1).filter(str.strip), st.integers(1, 12))
@settings(max_examples=200, deadline=None)
def test_splitting_any_text_loses_nothing_and_keeps_the_cap(text: str, cap: int) -> None:
    builder = Builder("d", "T")
    builder.paragraph(text)
    made = builder.build()
    ruler = measure(made, WORDS, cap)
    ends = split(ruler, 0, len(made.body), cap)
    spans = [Span(a, b) for a, b in zip([0, *ends], ends, strict=False)]
    assert tiles(spans, len(made.body))
    assert all(WORDS.count(made.body[s.start : s.end]) <= cap for s in spans)
