"""Worksheets for people, and question files without the documents' text."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path

import pytest
import yaml
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from spanwise.documents.model import Builder, Document
from spanwise.errors import AnchorError, DecodingError, QuestionError
from spanwise.spans import Span
from spanwise.structure.native import native_tree
from spanwise.writing.funnel import funnel
from spanwise.writing.leakage import shared_run
from spanwise.writing.sampling import TYPES, Sample, SampleSettings, draw, sample
from spanwise.writing.worksheet import (
    Entry,
    Sheet,
    Source,
    read_sheet,
    write_questions,
    write_worksheet,
)

from .conftest import corpora_folder

SOURCE = Source("wikipedia", "dump.xml.bz2", "ab" * 32)
GOOD = "Which limb had the old whaler been robbed of?"
BETTER = "Of what limb did an animal: a whale # rob a \"sailor\"?"
NAMES = ("Ahab", "Starbuck", "Ishmael", "Queequeg", "Pip")


def document(doc_id: str = "d", change: str = "") -> Document:
    builder = Builder(doc_id, "2001: The Pequod")
    for section in range(5):
        builder.heading(1, f"Part {section}")
        for part in range(4):
            name = NAMES[(section + part) % 5]
            builder.paragraph(
                f"On day {section}{part} the sailor {name} went below to mend torn sails{change}. "
                f"Nobody heard {name} speak of it afterwards."
            )
    return builder.build()


@pytest.fixture
def drawn() -> list[Sample]:
    documents = [document("a"), document("b")]
    trees = {d.doc_id: native_tree(d) for d in documents}
    limits = SampleSettings(per_type=1, words=(5, 60), section_words=(20, 200))
    return list(sample(documents, trees, limits).samples)


def fill(text: str, words: Callable[[int, str], str]) -> str:
    """Fill a worksheet in as a person does: on the line below each key."""
    lines, entry = text.split("\n"), -1
    for at, line in enumerate(lines):
        entry += line.startswith("- id:")
        if match := re.fullmatch("  (question|paraphrase): >-", line):
            lines[at + 1] = "    " + words(entry, match.group(1))
    return "\n".join(lines)


def filled(text: str) -> str:
    return fill(text, lambda i, key: f"{GOOD if key == 'question' else BETTER} {i}?")


def put(tmp_path: Path, text: str, name: str = "sheet.yaml") -> Path:
    path = tmp_path / name
    path.write_text(text, encoding="utf-8")
    return path


DOCUMENTS = [document("a"), document("b")]


def test_a_person_fills_a_worksheet(tmp_path: Path, drawn: list[Sample]) -> None:
    assert len(drawn) == 8
    text = write_worksheet(drawn, SOURCE)
    for one in drawn:
        for passage in one.texts:
            assert passage.split("\n")[0] in text  # as it stands, to be read
    blank = read_sheet(put(tmp_path, text), DOCUMENTS)
    assert [e.sample for e in blank.entries] == drawn
    assert {r.outcome for r in blank.records()} == {"unanswered"}
    sheet = read_sheet(put(tmp_path, filled(text)), DOCUMENTS)
    assert sheet.source == SOURCE
    assert [e.sample for e in sheet.entries] == drawn
    assert [e.paraphrase for e in sheet.entries] == [f"{BETTER} {i}?" for i in range(8)]
    assert {r.outcome for r in sheet.records()} == {"survived"}
    rows = funnel(sheet.records(), (), sheet.totals())
    assert rows["sampled"] == {**dict.fromkeys(TYPES, 2), "all": 8}
    assert rows["survivors"]["all"] == 8


def test_a_worksheet_filled_in_part_is_counted(tmp_path: Path, drawn: list[Sample]) -> None:
    text = fill(write_worksheet(drawn, SOURCE), lambda i, _: GOOD if i == 3 else "")
    sheet = read_sheet(put(tmp_path, text), DOCUMENTS)
    outcomes = [r.outcome for r in sheet.records()]
    assert outcomes == ["unanswered"] * 3 + ["malformed again"] + ["unanswered"] * 4


def test_editors_that_strip_blanks_or_fold_lines_do_no_harm(
    tmp_path: Path, drawn: list[Sample]
) -> None:
    text = write_worksheet(drawn, SOURCE)
    stripped = "\n".join(line.rstrip() for line in text.split("\n"))
    assert read_sheet(put(tmp_path, stripped), DOCUMENTS).entries == tuple(
        Entry(one) for one in drawn
    )
    folded = fill(text, lambda *_: "Which limb had the old\n\n    whaler  been robbed of?")
    crlf = folded.replace("\n", "\r\n")
    for variant in (folded, crlf):
        path = tmp_path / "sheet.yaml"
        path.write_bytes(variant.encode())
        assert {e.question for e in read_sheet(path, DOCUMENTS).entries} == {GOOD}


def test_a_question_file_holds_no_text_of_the_documents(
    tmp_path: Path, drawn: list[Sample]
) -> None:
    sheet = read_sheet(put(tmp_path, filled(write_worksheet(drawn, SOURCE))), DOCUMENTS)
    text = write_questions(sheet)
    for one in drawn:
        for passage in one.texts:
            assert shared_run(text, passage, 4) is None
    head, *lines = [json.loads(line) for line in text.splitlines()]
    assert head == {
        "format": "spanwise-questions-1", "corpus": "wikipedia", "source": "dump.xml.bz2",
        "source_sha256": "ab" * 32, "sampled": {d: dict.fromkeys(TYPES, 1) for d in "ab"},
    }
    assert [line["id"] for line in lines] == sorted(s.sample_id for s in drawn)
    again = read_sheet(put(tmp_path, text, "sheet.jsonl"), DOCUMENTS)
    assert {e.sample.sample_id: e for e in again.entries} == {
        e.sample.sample_id: e for e in sheet.entries
    }
    assert write_questions(again) == text
    assert funnel(again.records(), (), again.totals()) == funnel(
        sheet.records(), (), sheet.totals()
    )


def test_what_was_left_empty_stays_in_the_funnel(tmp_path: Path, drawn: list[Sample]) -> None:
    text = fill(write_worksheet(drawn, SOURCE), lambda i, _: GOOD if i == 3 else "")
    sheet = read_sheet(put(tmp_path, text), DOCUMENTS)
    again = read_sheet(put(tmp_path, write_questions(sheet), "q.jsonl"), DOCUMENTS)
    assert len(again.entries) == 1
    rows = funnel(again.records(), (), again.totals())
    assert (rows["sampled"]["all"], rows["answered"]["all"]) == (8, 1)


def test_a_changed_text_is_refused(tmp_path: Path, drawn: list[Sample]) -> None:
    sheet = read_sheet(put(tmp_path, filled(write_worksheet(drawn, SOURCE))), DOCUMENTS)
    path = put(tmp_path, write_questions(sheet), "q.jsonl")
    with pytest.raises(AnchorError) as caught:
        read_sheet(path, [document("a", ","), document("b")])
    said = str(caught.value)
    assert "4 entries of the sheet are wrong" in said
    assert re.search(r"q.jsonl: entry 2 \(line 2\): span \[\d+, \d+\) of 'a' has the digest", said)
    assert "the text has changed; it was drawn from dump.xml.bz2, SHA-256 abab" in said
    short = Builder("a", "A")
    short.paragraph("Too short.")
    with pytest.raises(AnchorError, match="leaves body, which has 10 code points"):
        read_sheet(path, [short.build(), document("b")])


def test_questions_about_absent_documents_are_counted(tmp_path: Path, drawn: list[Sample]) -> None:
    sheet = read_sheet(put(tmp_path, filled(write_worksheet(drawn, SOURCE))), DOCUMENTS)
    path = put(tmp_path, write_questions(sheet), "q.jsonl")
    found = read_sheet(path, DOCUMENTS[1:])
    assert found.left_out == {"a": 4} and len(found.entries) == 4
    assert found.totals() == dict.fromkeys(TYPES, 1)
    with pytest.raises(QuestionError, match="none of its 2 documents is in the corpus"):
        read_sheet(path, [document("c")])


def change(key: str, value: object) -> Callable[[list[dict[str, object]]], None]:
    return lambda entries: entries[1].__setitem__(key, value)


def of_span(key: str, value: object) -> Callable[[list[dict[str, object]]], None]:
    def apply(entries: list[dict[str, object]]) -> None:
        spans = entries[1]["spans"]
        assert isinstance(spans, list)
        spans[0][key] = value

    return apply


def of_head(key: str, value: object) -> Callable[[list[dict[str, object]]], None]:
    return lambda entries: entries[0].__setitem__(key, value)


@pytest.mark.parametrize(
    ("spoil", "error", "message"),
    [
        (change("id", "a:factoid:1-2"), QuestionError, "id is 'a:factoid:1-2', but type, document"),
        (change("id", ""), QuestionError, "`id` is '', expected text"),
        (change("type", "yesno"), QuestionError, "type is 'yesno', expected one of factoid, under"),
        (change("type", "multihop"), QuestionError, "multihop has 2 spans, got 1"),
        (change("type", "structural"), QuestionError, "but type, document and spans make"),
        (change("answer", "a leg"), QuestionError, "unknown key 'answer'"),
        (change("question", ["a"]), QuestionError, "`question` is ['a'], expected text"),
        (change("paraphrase", True), QuestionError, "`paraphrase` is True, expected text"),
        (change("spans", []), QuestionError, "no list of `spans`"),
        (change("spans", ["a"]), QuestionError, "span 0 is 'a', expected start, end"),
        (of_span("start", -1), AnchorError, "span 0 is [-1, "),
        (of_span("start", True), AnchorError, "span 0 is [True, "),
        (of_span("end", 10**9), AnchorError, "leaves body, which has"),
        (of_span("start", 1), AnchorError, "the text has changed"),
        (of_span("sha256", "ff"), AnchorError, "expected 64 hexadecimal digits"),
        (of_span("sha256", "0" * 64), AnchorError, "expected 000000000000…: the text has changed"),
        (of_span("text", "Another one."), AnchorError, "its passage was changed in the sheet"),
        (of_span("text", 7), QuestionError, "text of span 0 is 7"),
        (lambda e: e.append(e[1]), QuestionError, "occurs twice; take one out"),
        (of_head("format", "2"), QuestionError, "format is '2', expected 'spanwise-questions-1'"),
        (of_head("sampled", {"a": {"factoid": -1}}), QuestionError, "`sampled` is no mapping"),
        (of_head("sampled", {}), QuestionError, "0 factoid samples of 'a' in `sampled`, but 1"),
        (of_head("source_sha256", "12"), QuestionError, "expected 64 hexadecimal digits"),
        (of_head("more", 1), QuestionError, "unknown key 'more'"),
    ],
)
@pytest.mark.parametrize("suffix", [".yaml", ".jsonl"])
def test_spoilt_sheets(
    tmp_path: Path, drawn: list[Sample], suffix: str, message: str, error: type[QuestionError],
    spoil: Callable[[list[dict[str, object]]], None],
) -> None:
    entries = yaml.safe_load(write_worksheet(drawn, SOURCE))
    assert entries[1]["type"] == "factoid"
    spoil(entries)
    if suffix == ".yaml":
        text = yaml.safe_dump(entries)
    else:
        text = "".join(json.dumps(entry) + "\n" for entry in entries)
    with pytest.raises(error) as caught:
        read_sheet(put(tmp_path, text, f"sheet{suffix}"), DOCUMENTS)
    assert message in str(caught.value)
    assert f"sheet{suffix}" in str(caught.value)
    assert type(caught.value) is error


def test_an_empty_sheet(tmp_path: Path) -> None:
    with pytest.raises(QuestionError, match="no entry, expected one that says"):
        read_sheet(put(tmp_path, "[]"), DOCUMENTS)
    with pytest.raises(DecodingError, match="0 bytes and no text"):
        read_sheet(put(tmp_path, "", "sheet.jsonl"), DOCUMENTS)


def test_a_slip_of_the_pen_has_its_line(tmp_path: Path, drawn: list[Sample]) -> None:
    text = write_worksheet(drawn, SOURCE)
    slipped = text.replace("  question: >-\n    \n", "  question: >-\nWho was it?\n", 1)
    line = slipped.split("\n").index("Who was it?") + 1
    with pytest.raises(QuestionError, match=f"line ({line}|{line + 1}), column"):
        read_sheet(put(tmp_path, slipped), DOCUMENTS)
    path = tmp_path / "sheet.yaml"
    path.write_bytes(text.encode("utf-16"))
    with pytest.raises(DecodingError):
        read_sheet(path, DOCUMENTS)


PASSAGES = st.text(
    st.characters(exclude_categories=["Cs"], exclude_characters="\x00\r"), min_size=1, max_size=60
).filter(str.strip)


@given(st.lists(PASSAGES, min_size=1, max_size=3), PASSAGES)
@settings(deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_any_passage_survives_the_worksheet(
    tmp_path: Path, passages: list[str], title: str
) -> None:
    builder = Builder("d", title)
    for text in passages:
        builder.paragraph(text)
    whole = builder.build()
    one = draw(whole, "structural", (Span(0, len(whole.body)),))
    sheet = read_sheet(put(tmp_path, write_worksheet([one], SOURCE)), [whole])
    assert sheet.entries == (Entry(one),)


@given(PASSAGES)
@settings(deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_any_wording_survives_the_question_file(tmp_path: Path, text: str) -> None:
    one = draw(DOCUMENTS[0], "factoid", (Span(0, 20),))
    wording = " ".join(text.split())
    sheet = Sheet(SOURCE, (Entry(one, wording, wording),), {"a": {"factoid": 1}})
    path = put(tmp_path, write_questions(sheet), "q.jsonl")
    assert read_sheet(path, DOCUMENTS).entries == sheet.entries


def test_a_source_needs_a_digest() -> None:
    with pytest.raises(ValueError, match="expected 64 hexadecimal digits"):
        Source("c", "n", "12")


def test_real_articles_there_and_back(tmp_path: Path) -> None:
    from spanwise.corpora.mediawiki import read

    (dump,) = Path(corpora_folder("wikipedia")).glob("*shortened.bz2")
    documents = read(dump, options={"articles": 6}).documents
    trees = {d.doc_id: native_tree(d) for d in documents}
    samples = sample(documents, trees, SampleSettings()).samples
    sheet = read_sheet(put(tmp_path, filled(write_worksheet(samples, SOURCE))), documents)
    assert [e.sample for e in sheet.entries] == list(samples)
    again = read_sheet(put(tmp_path, write_questions(sheet), "q.jsonl"), documents)
    assert {r.sample for r in again.records()} == set(samples)
