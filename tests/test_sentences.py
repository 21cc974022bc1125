"""Sentence and line ends."""

from __future__ import annotations

import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from spanwise.text import sentences as room
from spanwise.text.sentences import line_ends, sentence_ends, sentences

from .conftest import corpora_folder

KINDS = ("paragraph", "list", "fence", "table", "quote", "html", "definition")
PIECES = st.sampled_from(
    ["a", "B", ". ", "! ", "?", ".", "Dr. ", "J. ", "e.g. ", "1. ", "- ", "* ", "\n", "\n\n", "  ",
     "\t", "é", "e\u0301", "😀", "👩\u200d🔬", "𝔘", "\u2028", "\x85", "\xa0", "\x0c", "\u200b",
     "。", "！", "“", "”", '"', "(", ")", "**", "`", "…", "...", "> ", "\ufeff", "İ", "\u0964",
     "3.5"]
)


@pytest.mark.parametrize(
    ("text", "kind", "expected"),
    [
        ("Hold it. Then wait.", "paragraph", ["Hold it. ", "Then wait."]),
        ("Dr. Smith left at 3 p.m. today. He ran.", "paragraph",
         ["Dr. Smith left at 3 p.m. today. ", "He ran."]),
        # A wrapped line is no end, and the line break after a full stop belongs to its sentence.
        ("One line\ngoes on.\nAnother does.", "paragraph",
         ["One line\ngoes on.\n", "Another does."]),
        # Closing marks stay with what they close; an end inside a word is none.
        ("**Bold.** Next one. *It.* Done", "paragraph",
         ["**Bold.** ", "Next one. ", "*It.* ", "Done"]),
        ("Use Foo.Bar now. Or not.", "paragraph", ["Use Foo.Bar now. ", "Or not."]),
        ("第一句。第二句。", "paragraph", ["第一句。", "第二句。"]),
        ("😀 One. 𝔘 two. End", "paragraph", ["😀 One. ", "𝔘 two. ", "End"]),
        # A list marker is no sentence; each line of a list ends; its indentation opens the next.
        ("1. Press it.\n2. Hold it. Wait.\n\n   - nested\n", "list",
         ["1. Press it.\n", "2. Hold it. ", "Wait.\n\n", "   - nested\n"]),
        ("1. Press it.\n2. Hold it.", "paragraph", ["1. Press it.\n", "2. Hold it."]),
        ("```\nA. B.\n\nC.\n```", "fence", ["```\nA. B.\n\nC.\n```"]),
        ("| A. | B. |\n|--|--|\n| c | d |", "table", ["| A. | B. |\n|--|--|\n| c | d |"]),
        ("", "paragraph", []),
        ("", "fence", []),
        (" \n ", "list", [" \n "]),
        ("word", "list", ["word"]),
    ],
)
def test_golden(text: str, kind: str, expected: list[str]) -> None:
    assert sentences(text, kind) == expected


def test_ends_count_code_points() -> None:
    # "😀 One. " is 1 + 1 + 4 + 1 = 7 code points, "Two." 4 more.
    assert sentence_ends("😀 One. Two.") == [7, 11]


@given(st.lists(PIECES, max_size=40).map("".join), st.sampled_from(KINDS))
def test_ends_tile_any_text(text: str, kind: str) -> None:
    ends = sentence_ends(text, kind)
    assert ends == sorted(set(ends))
    assert ends[-1:] == ([len(text)] if text else [])
    assert ends == sentence_ends(text, kind)
    parts = sentences(text, kind)
    assert "".join(parts) == text
    if text.strip():
        assert all(part.strip() for part in parts)
    if kind not in ("list", "fence", "table"):
        assert not any(part[0].isspace() for part in parts[1:])


@given(st.lists(PIECES, max_size=40).map("".join))
def test_every_line_of_a_list_ends(text: str) -> None:
    ends = sentence_ends(text, "list")
    position = 0
    for line in text.split("\n"):
        end = position + len(line) + 1
        rest = text[end:]
        # Blank lines after it (or before all text) belong to one sentence with it.
        if text[:end].strip() and rest.split("\n")[0].strip():
            assert end in ends
        position = end


@given(st.text(max_size=60), st.sampled_from(KINDS))
def test_arbitrary_unicode(text: str, kind: str) -> None:
    assert "".join(sentences(text, kind)) == text


@given(st.text(alphabet="ab \n"))
def test_line_ends(text: str) -> None:
    assert [text[a:b] for a, b in zip([0, *line_ends(text)], line_ends(text), strict=False)] == (
        text.splitlines(keepends=True)
    )


def test_the_white_space_table_is_pythons() -> None:
    assert {" ", *room._SPACES} == {c for c in map(chr, range(sys.maxunicode + 1)) if c.isspace()}


def test_no_end_is_lost_on_real_prose() -> None:
    text = (corpora_folder("chroma") / "corpora" / "state_of_the_union.md").read_text("utf-8")
    parts = [s for p in text.split("\n\n") if p.strip() for s in sentences(p)]
    # A speech: hundreds of short sentences, and none that swallows a page.
    assert len(parts) > 500
    assert max(map(len, parts)) < 600
