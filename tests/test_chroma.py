"""Chroma's evaluation set: its forms of text, and spans that must equal their text."""

from __future__ import annotations

import csv
import json
from pathlib import Path

import pytest

from spanwise.corpora.chroma import read
from spanwise.documents.model import Heading
from spanwise.errors import CorpusError, DecodingError, ParamsError, QuestionError
from spanwise.spans import Evidence

from .conftest import corpora_folder

WIKITEXT = " = Pump = \n Hold it . \n Then wait . \n = = Reset = = \n Ten seconds . \n"
ROW = tuple[str, object, str]


def make(root: Path, rows: list[ROW], files: dict[str, str] | None = None) -> Path:
    (root / "corpora").mkdir(parents=True)
    for name, text in (files or {"a": "One two.\n\nThree."}).items():
        (root / "corpora" / f"{name}.md").write_text(text, encoding="utf-8")
    with (root / "questions_df.csv").open("w", encoding="utf-8", newline="") as stream:
        writer = csv.writer(stream)
        writer.writerow(["question", "references", "corpus_id"])
        for question, references, corpus in rows:
            written = references if isinstance(references, str) else json.dumps(references)
            writer.writerow([question, written, corpus])
    return root


def span(content: str, start: int, end: int) -> dict[str, object]:
    return {"content": content, "start_index": start, "end_index": end}


def test_real_set() -> None:
    corpus = read(corpora_folder("chroma"), options={})
    assert corpus.counts == {
        "documents": 5, "documents read as plain text": 4, "documents read as WikiText": 1,
        "questions": 472, "spans": 790, "spans equal to their text": 790,
    }
    raw = {d.doc_id: d.raw or "" for d in corpus.documents}
    with (corpora_folder("chroma") / "questions_df.csv").open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    assert len(rows) == len(corpus.questions) == len({q.question_id for q in corpus.questions})
    for question in corpus.questions:
        row = rows[int(question.question_id.rsplit("-", 1)[1]) - 1]
        assert [raw[e.doc_id][e.start : e.end] for e in question.evidence] == [
            one["content"] for one in json.loads(row["references"])
        ]
        assert question.bundles == (tuple(range(len(question.evidence))),)
    headed = {d.doc_id for d in corpus.documents if d.headings}
    assert headed == {"wikitexts"}
    by_id = {d.doc_id: d for d in corpus.documents}
    for question in corpus.questions:  # no span lies in a heading alone
        for evidence in question.evidence:
            assert by_id[evidence.doc_id].to_body(evidence.span)[0] is not None


def test_forms_of_text(tmp_path: Path) -> None:
    root = make(tmp_path, [], {
        "plain": "One\ntwo.\n\n---\n\nNo heading\n===\n", "wiki": WIKITEXT,
        "marked": "# T\n\nText.\n\n## S\n\nMore.\n", "broken": "# T\n\n```\nopen\n",
    })
    corpus = read(root, options={})
    by_id = {d.doc_id: d for d in corpus.documents}
    assert by_id["plain"].body == "One\ntwo.\n\n---\n\nNo heading\n==="
    assert by_id["wiki"].headings == (Heading(1, "Pump", 0), Heading(2, "Reset", 2))
    assert by_id["wiki"].body == " Hold it . \n\n Then wait . \n\n Ten seconds . "
    assert (by_id["marked"].title, by_id["marked"].headings) == ("T", (Heading(2, "S", 1),))
    assert by_id["broken"].headings == ()
    assert corpus.counts == {
        "documents": 4, "documents read as plain text": 1, "documents read as WikiText": 1,
        "documents read as Markdown": 1, "documents read as plain text (broken Markdown)": 1,
        "questions": 0, "spans": 0, "spans equal to their text": 0,
    }


def test_spans_that_differ_are_counted_and_keep_no_evidence(tmp_path: Path) -> None:
    good = span("two", 4, 7)
    root = make(tmp_path, [
        ("Good?", [good, span("Three", 10, 15)], "a"),
        ("Shifted?", [good, span("two", 5, 8)], "a"),
        ("Beyond?", [span("Three.x", 10, 17)], "a"),
        ("Zero?", [span("", 3, 3)], "a"),
        ("Negative?", [span(".", -1, 16)], "a"),
    ])
    corpus = read(root, options={})
    first, *rest = corpus.questions
    assert first.evidence == (Evidence("a", 4, 7), Evidence("a", 10, 15))
    assert (first.question_id, first.excluded, first.bundles) == ("a-0001", None, ((0, 1),))
    assert [q.evidence for q in rest] == [()] * 4
    assert {q.excluded for q in rest} == {"evidence differs from its text"}
    assert corpus.counts["spans"] == 7
    assert corpus.counts["spans equal to their text"] == 3
    assert corpus.counts["spans that differ from their text"] == 4
    assert corpus.counts["questions excluded: evidence differs from its text"] == 4


@pytest.mark.parametrize(
    ("row", "parts"),
    [
        (("Q?", [span("two", 4, 7)], "gone"), ["row 1 (line 2)", "'gone'"]),
        (("Q?", "not json", "a"), ["row 1", "references"]),
        (("Q?", [{"content": "two"}], "a"), ["start_index"]),
        (("Q?", [span("two", 4, 7) | {"end_index": "7"}], "a"), ["whole numbers"]),
        (("Q?", [], "a"), ["no references"]),
        ((" ", [span("two", 4, 7)], "a"), ["empty"]),
    ],
)
def test_rows_that_cannot_be_read(tmp_path: Path, row: ROW, parts: list[str]) -> None:
    with pytest.raises(QuestionError) as caught:
        read(make(tmp_path, [row]), options={})
    for part in ("questions_df.csv", *parts):
        assert part in str(caught.value)


def test_sets_that_are_none(tmp_path: Path) -> None:
    with pytest.raises(CorpusError, match=r"corpora/\*\.md"):
        read(tmp_path, options={})
    root = make(tmp_path / "set", [])
    with pytest.raises(ParamsError, match="depth"):
        read(root, options={"depth": 1})
    with pytest.raises(CorpusError, match="sweep"):
        read(root, options={}, split="sweep")
    (root / "questions_df.csv").write_text("question,corpus_id\nQ?,a\n")
    with pytest.raises(CorpusError, match="references"):
        read(root, options={})
    (root / "questions_df.csv").unlink()
    with pytest.raises(CorpusError, match=r"questions_df\.csv"):
        read(root, options={})
    (root / "corpora" / "b.md").write_bytes(b"")
    with pytest.raises(DecodingError, match=r"b\.md"):
        read(root, options={})


def test_line_endings_do_not_move_spans(tmp_path: Path) -> None:
    root = make(tmp_path, [("Q?", [span("Three", 10, 15)], "a")])
    (root / "corpora" / "a.md").write_bytes(b"One two.\r\n\r\nThree.")
    corpus = read(root, options={})
    assert corpus.counts["spans equal to their text"] == 1
    assert corpus.counts["CR LF line endings turned into LF"] == 2
