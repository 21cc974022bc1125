"""Spans from strings: the only alignment, or the proof that there is none or a second one."""

from __future__ import annotations

import itertools
from collections.abc import Sequence

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from spanwise.chunking.recovery import OPTIONS, collapsed, recover
from spanwise.errors import AmbiguousChunk, ChunkError
from spanwise.spans import Span

# Few letters and blanks: strings repeat, overlap themselves and differ in white space alone.
TEXTS = st.text("ab \n", min_size=1, max_size=12).filter(lambda text: bool(text.strip()))


def places(text: str, string: str, whitespace: str) -> list[Span]:
    """Every occurrence of one string, read off every slice of the text."""
    def those(same: str, form: str) -> list[Span]:
        return [
            Span(start, end)
            for start, end in itertools.combinations(range(len(text) + 1), 2)
            if (text[start:end] if same == "exact" else collapsed(text[start:end])) == form
            # A span of collapsed text begins and ends with what is no white space.
            and (same == "exact" or text[start:end] == text[start:end].strip())
        ]

    if whitespace == "collapsed":
        return those("collapsed", collapsed(string))
    return those("exact", string) or those("exact", string.strip())


def alignments(
    text: str, strings: Sequence[str], whitespace: str, overlap: int | None
) -> list[tuple[Span, ...]]:
    """All of them, by trying every combination of places."""
    return [
        spans
        for spans in itertools.product(*(places(text, s, whitespace) for s in strings))
        if all(
            a.start <= b.start and (overlap is None or a.end - overlap <= b.start)
            for a, b in itertools.pairwise(spans)
        )
    ]


@st.composite
def cut(draw: st.DrawFn) -> tuple[str, list[Span]]:
    """A text and up to four chunks of it in order, with overlaps and gaps as they come."""
    text = draw(TEXTS)
    inside = st.tuples(
        st.integers(0, len(text) - 1), st.integers(1, len(text))
    ).filter(lambda pair: pair[0] < pair[1] and bool(text[pair[0] : pair[1]].strip()))
    pairs = draw(st.lists(inside, min_size=1, max_size=4))
    return text, [Span(*pair) for pair in sorted(pairs)]


@settings(deadline=None)
@given(cut(), st.sampled_from(["exact", "collapsed"]), st.sampled_from([None, 0, 1, 3]))
def test_a_segmentation_comes_back_or_has_a_second_alignment(
    made: tuple[str, list[Span]], whitespace: str, overlap: int | None
) -> None:
    text, spans = made
    strings = [text[s.start : s.end] for s in spans]
    if whitespace == "collapsed":
        strings = [collapsed(string) for string in strings]
    possible = alignments(text, strings, whitespace, overlap)
    try:
        found = recover(text, strings, "d", whitespace, overlap)
    except AmbiguousChunk:
        assert len(alignments(text, strings, "collapsed", overlap)) > 1
    except ChunkError:
        assert not possible  # more overlap than was declared
    else:
        assert possible == [tuple(found)]
        if whitespace == "exact":
            assert [text[s.start : s.end] for s in found] == strings
            assert overlap is not None or found == spans


@settings(deadline=None)
@given(TEXTS, st.lists(st.text("ab \n", max_size=3), min_size=1, max_size=3),
       st.sampled_from(["exact", "collapsed"]), st.sampled_from([None, 0, 2]))
def test_any_strings_have_the_alignments_that_trying_all_finds(
    text: str, strings: list[str], whitespace: str, overlap: int | None
) -> None:
    blank = any(not string.strip() for string in strings)
    possible = [] if blank else alignments(text, strings, whitespace, overlap)
    try:
        assert [tuple(recover(text, strings, "d", whitespace, overlap))] == possible
        assert len(alignments(text, strings, "collapsed", overlap)) == 1
    except AmbiguousChunk:
        assert possible and len(alignments(text, strings, "collapsed", overlap)) > 1
    except ChunkError:
        assert not possible


@st.composite
def rewritten(draw: st.DrawFn) -> tuple[str, list[tuple[int, int]], list[str]]:
    """All of a text in chunks as a splitter gives them that changes white space, and where each is.

    The places are of what is no white space at a chunk's edges.
    """
    text = draw(st.text("ab \n", min_size=2, max_size=9).filter(lambda t: len(t.split()) > 1))
    solid = [place for place, sign in enumerate(text) if not sign.isspace()]
    cuts = sorted(draw(st.sets(st.integers(1, len(solid) - 1), max_size=3)))
    shared = draw(st.integers(0, 1))
    spans = [
        (solid[max(0, first - shared)], solid[last - 1] + 1)
        for first, last in itertools.pairwise([0, *cuts, len(solid)])
    ]
    white = draw(st.sampled_from([" ", "\n", " \n"]))
    change = draw(st.sampled_from([
        str.strip, lambda string: string + white, lambda string: white + string,
        lambda string: white.join(string.split()),
    ]))
    return text, spans, [change(text[start:end]) for start, end in spans]


@settings(deadline=None, max_examples=200)
@given(rewritten(), st.sampled_from(["exact", "collapsed"]))
def test_a_splitter_that_changes_white_space_gets_its_own_places_or_an_error(
    made: tuple[str, list[tuple[int, int]], list[str]], whitespace: str
) -> None:
    text, spans, strings = made
    try:
        found = recover(text, strings, "d", whitespace)
    except ChunkError:
        return
    solid = [[i for i in range(s.start, s.end) if not text[i].isspace()] for s in found]
    assert [(places[0], places[-1] + 1) for places in solid] == spans


@pytest.mark.parametrize(("text", "strings"), [
    ("A. A.\n", ["A.\n", "A.\n"]),               # a line end is added to each
    ("A. B. A.\n\nB.", ["A.\n\nB."] * 2),         # sentences are joined anew
])
def test_white_space_that_a_splitter_changed_takes_no_chunk_to_another_place(
    text: str, strings: list[str]
) -> None:
    with pytest.raises(AmbiguousChunk, match=r"chunk 1 of 2 .* offset 0 .* white space aside"):
        recover(text, strings, "d")
    assert [s.start for s in recover(text, strings, "d", "collapsed", overlap=0)] == [
        0, text.rindex("A.")
    ]


def test_a_chunk_that_repeats_is_pinned_by_its_neighbours() -> None:
    text = "Sand. Paint. Sand. Dry."
    assert recover(text, ["Sand.", "Paint.", "Sand.", "Dry."], "d") == [
        Span(0, 5), Span(6, 12), Span(13, 18), Span(19, 23),
    ]


def test_the_first_ambiguous_chunk_is_named_with_its_places() -> None:
    text = "Sand.\nPaint.\nSand.\nDry."
    with pytest.raises(AmbiguousChunk) as caught:
        recover(text, ["Sand.", "Dry."], "hull")
    assert str(caught.value).startswith(
        "hull, chunk 1 of 2 ('Sand.'): ambiguous, it can stand at offset 0 (line 1) or offset 13 "
        "(line 3), with every other chunk in order;"
    )


def test_a_declared_overlap_settles_what_order_alone_does_not() -> None:
    # The first chunk holds what the second could be, unless chunks share nothing.
    strings = ["so no", "no", "yes"]
    with pytest.raises(AmbiguousChunk, match=r"chunk 2 of 3 \('no'\)"):
        recover("so no no yes", strings, "d")
    assert recover("so no no yes", strings, "d", overlap=0) == [
        Span(0, 5), Span(6, 8), Span(9, 12)
    ]


def test_collapsed_white_space_is_matched_and_the_span_holds_the_original() -> None:
    text = "One\n  two\tthree.  Four"
    assert recover(text, ["One two", "three. Four "], "d", "collapsed") == [
        Span(0, 9), Span(10, 22)
    ]


@pytest.mark.parametrize(("strings", "complaint"), [
    (["one", ""], r"d, chunk 2 of 2 \(''\): it holds no text"),
    (["one", " \n"], r"chunk 2 of 2 .*: it holds no text"),
    (["one", 3], r"chunk 2 of 2 \(3\): int, expected a string"),
    (["One"], r"chunk 1 of 1 \('One'\): it does not occur .*; not even its first character does"),
    (["one two ten"], r"first 9 code points stand at offset 0, .* goes on 'hree' and .* 'en'"),
    (["one two"], None),
    (["one  two"], r"differs from the document's text in white space; say `whitespace: collapsed`"),
    (["one", "thre\u00e9"], r"chunk 2 of 2 .*first 4 code points stand at offset 8"),
    (["two", "one"], r"chunk 2 of 2 \('one'\): its last place is offset 0 \(line 1\), but chunk 1 "
                     r"starts at 4 at the earliest"),
])
def test_what_cannot_be_placed_says_where_and_why(
    strings: list[str], complaint: str | None
) -> None:
    if complaint is None:
        assert recover("one two three", strings, "d") == [Span(0, 7)]
        return
    with pytest.raises(ChunkError, match=complaint) as caught:
        recover("one two three", strings, "d")
    assert not isinstance(caught.value, AmbiguousChunk)


def test_more_overlap_than_declared_is_an_error_and_no_other_place_is_taken() -> None:
    with pytest.raises(ChunkError, match=r"chunk 1 ends at 7 .*, and they may share 2 code points"):
        recover("one two three", ["one two", "two three"], "d", overlap=2)


def test_accents_written_otherwise_are_named_as_that() -> None:
    composed, apart = "Caf\u00e9 au lait", "Cafe\u0301 au lait"
    for text, string in ((composed, apart), (apart, composed)):
        with pytest.raises(ChunkError, match=r"chunk 1 of 1 .* \(Unicode normalisation\)"):
            recover(text, [string], "d")


def test_lines_that_end_otherwise_are_white_space() -> None:
    with pytest.raises(ChunkError, match="in white space; say `whitespace: collapsed`"):
        recover("one\ntwo", ["one\r\ntwo"], "d")
    assert recover("one\ntwo", ["one\r\ntwo"], "d", "collapsed") == [Span(0, 7)]


def test_hints_are_those_of_the_door() -> None:
    for strings, complaint in (
        (["one  two"], "say `--whitespace collapsed`"), (["o"], "share at most (`--overlap`)"),
        (["one two", "two one"], "or allow a larger `--overlap`"),
    ):
        with pytest.raises(ChunkError) as caught:
            recover("one two one", strings, "d", overlap=0 if len(strings) > 1 else None,
                    hints=OPTIONS)
        assert complaint in str(caught.value), str(caught.value)
    with pytest.raises(ChunkError, match=r"^whitespace 'any': expected one of exact, collapsed$"):
        recover("one", ["one"], "d", "any")
