"""Markdown and plain text: exact slices, kinds, titles, and what cannot be read."""

from __future__ import annotations

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from spanwise.corpora import text as plain
from spanwise.corpora.markdown import read_document, read_if_any
from spanwise.documents.model import SEPARATOR, Document, Heading
from spanwise.errors import CorpusError, MarkupError
from spanwise.spans import Span
from spanwise.text.decoding import decode

from . import reference_text as twin
from .conftest import corpora_folder

BLOCKS = [
    "# One", "## Two ##", "####### seven", "#", "Set *ext*\n===", "Two\nlines\n---", "   ### in",
    "Some text. More text.", "wrapped\nlines here", "***", "---", "- - -", "```\ncode\n```",
    "```py\n\n# no heading\n\n```", "~~~~\n```\n~~~\n~~~~", "    indented\n\n    code", "\tcode",
    "| a | b |\n|---|:-:|\n| 1 | 2 |", "a | b\n--|--", "- one\n- two", "* one\n\n  more\n\n* two",
    "1. one\n   ```\n   # x\n\n   ```\n2. two", "- # inner\n- x", "> # quoted\n> text", "> a\nlazy",
    "> - ~~~\n>   x\n>   ~~~", "<div>\n# x\n</div>", "<!-- c\n\nd -->", "[r]: /url 'title'",
    "[r]: /url\n[s]: <u> \"multi\nline\"", "[r]: /url\ntext after", "[r]\n: no", "\xa0", "\u2028x",
    "\x0cform", "  leading", "trailing  ", "&amp; &copy;", "👩\u200d🔬 text", "- a\n\n\n\n- b", "+",
    "```\nunclosed", "~~~", "- ```\n  open", "2)", ">", "> ", ">>>>>>>>>>>>>>>>>>>>>>>>> deep",
    "- - - - - - - - - - - - - - - - - - - - - - - - x",
]
FRONT = st.sampled_from(
    ["", "", "", "---\ntitle: T\n---\n", "---\na: b\n...\n", "---\n---\n", "---\n"]
)
NOISE = st.text(alphabet="#=-~`>|:[]<!a*_1. \n\t", max_size=12)
MARKDOWN = st.builds(
    lambda front, parts: front + "".join(block + gap for block, gap in parts),
    FRONT,
    st.lists(
        st.tuples(
            st.one_of(st.sampled_from(BLOCKS), NOISE),
            st.sampled_from(["\n", "\n\n", "\n \n\n", ""]),
        ),
        max_size=9,
    ),
)


def slices(document: Document) -> list[tuple[str, str]]:
    assert document.raw is not None
    return [(p.kind, document.raw[p.raw.start : p.raw.end]) for p in document.paragraphs if p.raw]


def check_tiling(document: Document | None, text: str) -> None:
    lines = text.split("\n")
    covered: list[int] = []
    if document is not None:
        assert document.raw == text
        assert document.body == SEPARATOR.join(part for _, part in slices(document))
        assert len(slices(document)) == len(document.paragraphs)
        for paragraph in document.paragraphs:
            raw = paragraph.raw
            assert raw is not None
            span = paragraph.span
            assert document.body[span.start : span.end] == text[raw.start : raw.end]
            assert raw.start == 0 or text[raw.start - 1] == "\n"  # whole lines
            assert raw.end == len(text) or text[raw.end] == "\n"
            first = text.count("\n", 0, raw.start)
            own = range(first, first + text[raw.start : raw.end].count("\n") + 1)
            covered.extend(n for n in own if lines[n].strip())
            assert lines[own[0]].strip()
            assert lines[own[-1]].strip()
    assert covered == sorted(set(covered))  # in order, each line once
    expected = {n for n, line in enumerate(lines) if line.strip()}
    assert set(covered) == expected - twin.lines_outside_paragraphs(text)


@given(MARKDOWN)
@settings(max_examples=400, deadline=None)
@example("[r]: /u\n# h\n[s]: /v")
@example("---\n")
@example("---\n---")
@example("a\n\x0c\nb\n\n\xa0\n\nc")
@example("* a\n\n\n\n    b\nc\n> d\ne")
def test_paragraphs_are_exact_slices_and_cover_every_other_line(text: str) -> None:
    try:
        document = read_if_any("d", text)
    except MarkupError as error:
        # Only for these two reasons, and never without their marks.
        fence = "is not closed" in str(error) and ("```" in text or "~~~" in text)
        assert fence or ("front matter" in str(error) and text.startswith("---"))
        return
    check_tiling(document, text)


@given(MARKDOWN, st.sampled_from(["\r\n", "\r"]))
@settings(max_examples=150, deadline=None)
def test_every_line_ending_reads_alike(text: str, ending: str) -> None:
    other = decode(text.replace("\n", ending).encode(), "f", allow_blank=True).text
    outcomes = []
    for one in (text, other):
        try:
            outcomes.append(read_if_any("d", one))
        except MarkupError as error:
            outcomes.append(str(error))
    assert outcomes[0] == outcomes[1]


@given(st.text(max_size=80))
@settings(max_examples=300, deadline=None)
def test_arbitrary_text(text: str) -> None:
    text = text.replace("\x00", "").replace("\r", "")
    try:
        check_tiling(read_if_any("d", text), text)
    except MarkupError:
        assert "```" in text or "~~~" in text or text.startswith("---")


def test_kinds_and_levels() -> None:
    text = (
        "# Title\n\nIntro.\n\n[r]: /url\n\n## A\n\n- x\n  ```\n  # no\n\n  ```\n- y\n\n"
        "> # quoted\n\n"
        "B *b*\n-----\n~~~\n\ncode\n\n~~~\n| a |\n|---|\n| b |\n\n    in\n\n    dented\n\n***\n"
        "<p>\nx\n</p>\n\n#### Deep\n"
    )
    document = read_document("d", text)
    assert document.title == "Title"
    assert document.headings == (Heading(2, "A", 2), Heading(2, "B b", 4), Heading(4, "Deep", 8))
    assert slices(document) == [
        ("paragraph", "Intro."),
        ("definition", "[r]: /url"),
        ("list", "- x\n  ```\n  # no\n\n  ```\n- y"),
        ("quote", "> # quoted"),
        ("fence", "~~~\n\ncode\n\n~~~"),
        ("table", "| a |\n|---|\n| b |"),
        ("fence", "    in\n\n    dented"),
        ("html", "<p>\nx\n</p>"),
    ]


@pytest.mark.parametrize(
    ("text", "title", "headings"),
    [
        # Front matter's title leads, and a level-1 heading stays a section.
        ("---\ntitle: F\n---\n# A\nx", "F", [(1, "A")]),
        ("---\ntitle: 'F: g'\nother: [1]\n---\n# A\nx\n# B\ny", "F: g", [(1, "A"), (1, "B")]),
        ("---\ntitle: 2024\n---\nx", "2024", []),
        ("---\ntitle: yes\n---\nx", "yes", []),
        # Without one, a sole level-1 heading is the title and no level; levels stay as written.
        ("---\nby: me\n---\n# A\nx\n### C\ny", "A", [(3, "C")]),
        ("A\n===\nx\n\nB\n---\ny", "A", [(2, "B")]),
        ("before\n# A\nx", "A", []),
        # Else the stem.
        ("# A\nx\n# B\ny", "stem", [(1, "A"), (1, "B")]),
        ("## A\nx", "stem", [(2, "A")]),
        ("#\nx", "stem", [(1, "")]),
        ("---\ntitle:\n---\nx", "stem", []),
        ("x\n\n---\ntitle: F\n---\n", "stem", [(2, "title: F")]),
        # Titles are plain text.
        ("# *A* `b<c>` [l](u \"t\") ![alt *x*](u) <b>d</b> &amp; &eacute;\\# #\nx",
         "A b<c> l alt x d & é#", []),
        ("# See [r][id]\nx\n\n[id]: /u", "See r", []),
        ("Two  \nlines\n===\nx", "Two lines", []),
    ],
)
def test_titles(text: str, title: str, headings: list[tuple[int, str]]) -> None:
    document = read_document("folder/stem", text)
    assert document.title == title
    assert [(heading.level, heading.title) for heading in document.headings] == headings


def test_raw_maps_to_body_and_heading_characters_drop_out() -> None:
    text = "# T\n\nOne.\n\n## Only here\n\nTwo."
    document = read_document("d", text)
    assert document.body == "One.\n\nTwo."
    # From "One." to "Two.": "##", "Only", "here" are 2 + 4 + 4 = 10 characters that drop out.
    assert document.to_body(Span(text.index("One"), len(text))) == (Span(0, 10), 10)
    assert document.to_body(Span(text.index("Only"), text.index("Only") + 9)) == (None, 8)


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        ("a\n\n```py\nx\n", ["f.md", "line 3", "```", "end of the document"]),
        ("~~~~\nx\n~~~\n", ["line 1", "~~~~"]),
        ("```\nx\n    ```", ["line 1"]),
        ("```\nx\n``` y", ["line 1"]),
        ("```", ["line 1"]),
        ("- a\n\n  ```\n  x\n\ntext", ["line 3", "list or quotation"]),
        ("> ~~~\n> x\n", ["line 1", "list or quotation"]),
        # A closing fence that lost its indentation opens a second one.
        ("- ```\n  x\n```\n", ["line 1"]),
        ("---\na: [\n---\nx", ["f.md", "line 2", "not YAML"]),
        ("---\n- a\n---\nx", ["line 2", "list", "***"]),
        ("---\nwords\n---\nx", ["line 2", "str"]),
        ("---\ntitle: [a]\n---\nx", ["title is list"]),
    ],
)
def test_markup_that_would_have_to_be_guessed(text: str, parts: list[str]) -> None:
    with pytest.raises(MarkupError) as caught:
        read_document("d", text, where="f.md")
    for part in parts:
        assert part in str(caught.value)


@pytest.mark.parametrize(
    "text", ["", " \n", "# A\n\n## B\n", "---\ntitle: x\n---\n", "***\n", "\xa0"]
)
def test_no_paragraph_no_document(text: str) -> None:
    assert read_if_any("d", text) is None
    with pytest.raises(CorpusError, match=r"f\.md"):
        read_document("d", text, where="f.md")


def test_text_must_be_decoded_first() -> None:
    with pytest.raises(CorpusError, match="decode"):
        read_document("d", "a\r\nb")


@pytest.mark.parametrize("mark", [">", "- ", "> - ", "1. "])
def test_deep_nesting_swallows_nothing_or_is_refused(mark: str) -> None:
    text = mark * 24 + "x\n\n# A\n\nafter\n"
    document = read_document("d", text)
    check_tiling(document, text)
    assert (len(document.paragraphs), document.title) == (2, "A")
    with pytest.raises(MarkupError, match=r"line 3: .* 100 deep"):
        read_document("d", "# A\n\n" + mark * 300 + "x\n\nafter\n")


@given(st.text(alphabet="ab \n\t\x0c\xa0é😀"))
def test_plain_text_paragraphs(text: str) -> None:
    expected = twin.paragraphs(text)
    if not expected:
        with pytest.raises(CorpusError):
            plain.read_document("d", text)
        return
    document = plain.read_document("a/d", text)
    assert [part for _, part in slices(document)] == expected
    assert document.body == SEPARATOR.join(expected)
    assert (document.title, document.headings) == ("d", ())


@pytest.mark.parametrize(
    "name", ["chatlogs", "finance", "pubmed", "state_of_the_union", "wikitexts"]
)
def test_real_text_of_every_kind(name: str) -> None:
    text = (corpora_folder("chroma") / "corpora" / f"{name}.md").read_text("utf-8")
    check_tiling(read_document(name, text), text)
