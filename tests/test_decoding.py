"""Bytes to text, and the strict lists that people write."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from spanwise.errors import CorpusError, DecodingError, QuestionError
from spanwise.text.decoding import Decoded, decode, mended, read_text
from spanwise.text.lists import read_list, unknown_keys

from . import reference_text as twin


def test_every_line_ending_becomes_lf_and_counts() -> None:
    # CR LF twice, a lone CR once; CR CR LF is one lone CR and one CR LF.
    assert decode(b"a\r\nb\rc\nd\r\n", "f") == Decoded("a\nb\nc\nd\n", bom=0, crlf=2, cr=1)
    assert decode(b"a\r\r\nb", "f") == Decoded("a\n\nb", bom=0, crlf=1, cr=1)


def test_a_mark_at_the_start_goes_and_one_inside_stays() -> None:
    assert decode(b"\xef\xbb\xbfa\xef\xbb\xbfb", "f") == Decoded("a\ufeffb", bom=1)


@pytest.mark.parametrize(
    ("data", "parts"),
    [
        # "a\n" is 2 bytes, "caf" 3 more: the wrong byte is number 5 from 0, on line 2.
        (b"a\ncaf\xe9\n", ["f.md", "byte e9", "byte offset 5", "line 2", "iconv"]),
        ("é".encode() + b"\x00", ["f.md", "NUL", "byte offset 2", "line 1"]),
        (b"a\r\nb\rc\x00", ["NUL", "byte offset 6", "line 3"]),
        ("hello".encode("utf-16"), ["UTF-16", "byte offset 0", "iconv -f UTF-16"]),
        (b"\xed\xa0\x80", ["byte ed", "byte offset 0"]),  # half a surrogate pair
        (b"\xc0\xaf", ["byte c0"]),  # an overlong form
        (b"abc\xe2\x82", ["byte offset 3"]),  # cut off
        (b"", ["f.md", "0 bytes and no text"]),
        (b" \r\n\t\xc2\xa0", ["6 bytes and no text"]),
        (b"\xef\xbb\xbf", ["3 bytes and no text"]),
    ],
)
def test_bytes_that_are_no_text_are_refused_with_their_place(data: bytes, parts: list[str]) -> None:
    with pytest.raises(DecodingError) as caught:
        decode(data, "f.md")
    for part in parts:
        assert part in str(caught.value)
    assert caught.value.exit_code == 2


def test_a_blank_file_may_be_allowed_and_says_that_it_is_blank() -> None:
    assert decode(b" \n", "f", allow_blank=True).blank
    assert not decode(b" x", "f").blank


def test_a_file_that_cannot_be_read_is_named(tmp_path: Path) -> None:
    with pytest.raises(CorpusError, match=r"gone\.md"):
        read_text(tmp_path / "gone.md")


def test_mended_sums_and_leaves_zeros_out() -> None:
    files = [decode(b"\xef\xbb\xbfa\r\n", "f"), decode(b"b\r\nc\r\n", "g"), decode(b"d", "h")]
    assert mended(files) == {
        "byte-order marks stripped": 1, "CR LF line endings turned into LF": 3,
    }


@given(st.text(alphabet=st.sampled_from("ab é😀\n\r\ufeff\u2028\x0c\x85")))
def test_same_text_as_the_standard_library(text: str) -> None:
    data = text.encode("utf-8")
    decoded = decode(data, "f", allow_blank=True)
    assert decoded.text == twin.universal_newlines(data)
    assert "\r" not in decoded.text
    # Each CR LF gives up one code point, the mark one more; a lone CR is replaced.
    assert len(decoded.text) == len(text) - decoded.bom - decoded.crlf


@given(st.binary())
def test_any_bytes_decode_or_are_refused(data: bytes) -> None:
    try:
        decoded = decode(data, "f", allow_blank=True)
    except DecodingError:
        return
    assert "\x00" not in decoded.text
    assert "\r" not in decoded.text


def test_words_of_a_list_stay_as_written(tmp_path: Path) -> None:
    path = tmp_path / "l.yaml"
    path.write_text(
        "- {version: 1.10, day: 2024-02-09, word: no, on: yes, n: 14, zero: 007, t: true, "
        "x: null}\n"
        "- {y: ~, e: , hex: 0x1F, sexagesimal: 1:30}\n"
    )
    first, second = read_list(path, "l.yaml", QuestionError)
    assert first.fields == {
        "version": "1.10", "day": "2024-02-09", "word": "no", "on": "yes", "n": 14, "zero": "007",
        "t": True, "x": None,
    }
    assert second.fields == {"y": None, "e": None, "hex": "0x1F", "sexagesimal": "1:30"}
    assert (first.where, second.where) == ("l.yaml: entry 1 (line 1)", "l.yaml: entry 2 (line 2)")


@pytest.mark.parametrize(
    ("name", "text", "parts"),
    [
        ("l.yaml", "- a: 1\n  a: 2\n", ["line 2", "'a' stands twice"]),
        ("l.yaml", "- a: {b: 1, b: 2}\n", ["'b' stands twice"]),
        ("l.yaml", "a: 1\n", ["expected one list"]),
        ("l.yaml", "- a: 1\n- word\n", ["entry 2 (line 2)", "pairs"]),
        ("l.yaml", "- a: [1\n", ["line 2", "plain YAML"]),
        ("l.yaml", "- !!python/object/apply:os.getcwd []\n", ["entry 1", "pairs"]),
        ("l.yaml", "- a: !!python/name:os.getcwd ''\n", ["line 1", "python/name"]),
        ("l.yaml", '- a: "\\ud800"\n', ["surrogates"]),
        ("l.yaml", "- a\n---\n- b\n", ["plain YAML"]),
        ("l.jsonl", '{"a": 1}\n\n{"a": 1, "a": 2}\n', ["entry 2 (line 3)", "'a' stands twice"]),
        ("l.jsonl", '{"a": NaN}\n', ["line 1", "NaN"]),
        ("l.jsonl", "[1]\n", ["JSON object", "list"]),
        ("l.jsonl", '{"a": "\\ud800"}\n', ["surrogates"]),
        ("l.jsonl", "{'a': 1}\n", ["entry 1 (line 1)"]),
    ],
)
def test_lists_that_are_none(tmp_path: Path, name: str, text: str, parts: list[str]) -> None:
    path = tmp_path / name
    path.write_text(text)
    with pytest.raises(QuestionError) as caught:
        read_list(path, name, QuestionError)
    for part in (name, *parts):
        assert part in str(caught.value)


def test_unknown_keys_are_said() -> None:
    assert unknown_keys({"a": 1}, ("a", "b")) is None
    assert unknown_keys({"a": 1, "c": 1}, ("a", "b")) == "unknown key 'c'; known are a, b"
