"""Bad input of a corpus, as the parse stage meets it: a clear error, or a counted exclusion.

Each case goes through a whole corpus folder and the stage's own script. More cases stand with the
tests of each room; what `spanwise score` refuses stands in test_measures_files.py.
"""

from __future__ import annotations

import csv
import io
import json
import runpy
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml

from spanwise import layout, schemas
from spanwise.errors import InputError

from .conftest import ROOT

DOC = "# A\n\nIntro text.\n\n## One\n\nThe first fact.\n\n## Two\n\nThe second fact.\n"
QUESTION = {"id": "q1", "document": "a", "question": "Which?", "anchors": [{"quote": "first fact"}]}
SCRIPT = ROOT / "stages" / "parse.py"

Parse = Callable[..., dict[str, Any]]


def asking(**changes: Any) -> str:
    return yaml.safe_dump([QUESTION | changes])


@pytest.fixture
def parse(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Parse:
    """Write a corpus folder, run the stage on it and return its report."""
    monkeypatch.chdir(tmp_path)

    def run(files: dict[str, str | bytes], reader: str = "markdown", **options: int) -> Any:
        settings = yaml.safe_load((ROOT / "params.yaml").read_text(encoding="utf-8"))
        settings["corpora"] = {"toy": {"reader": reader, "path": "data/toy", "options": options}}
        (tmp_path / "params.yaml").write_text(yaml.safe_dump(settings), encoding="utf-8")
        for name, content in files.items():
            path = tmp_path / "data" / "toy" / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(content if isinstance(content, bytes) else content.encode("utf-8"))
        runpy.run_path(str(SCRIPT))["main"]("toy")
        return layout.read_report(layout.stage("parse", "toy") / "report.json")

    return run


def questions() -> dict[str, dict[str, Any]]:
    rows = schemas.read(layout.parse("toy") / "questions.parquet", schemas.QUESTIONS).to_pylist()
    return {row["question_id"]: row for row in rows}


REFUSED: list[tuple[str, dict[str, str | bytes], list[str]]] = [
    ("not UTF-8", {"a.md": DOC.encode() + b"caf\xe9\n"},
     ["data/toy/a.md: byte e9 at byte offset", "(line 12)", "not UTF-8", "iconv"]),
    ("UTF-16", {"a.md": DOC.encode("utf-16")}, ["data/toy/a.md", "UTF-16", "iconv"]),
    ("NUL", {"a.md": DOC + "x\0y\n"}, ["data/toy/a.md: NUL byte", "(line 12)", "remove it"]),
    ("all empty", {"a.md": "", "b.md": "# A\n"},
     ["no document of split study is left", "no text: 2", "expected at least one"]),
    ("unclosed fence", {"a.md": DOC, "b.md": "text\n\n~~~\ncode\n"},
     ["data/toy/b.md: line 3: the fence ~~~ is not closed", "close it"]),
    ("two files of one document", {"a.md": DOC, "a.markdown": DOC},
     ["document 'a' is also", "take one out"]),
    ("a document id twice",
     {"a.md": DOC, "b.md": DOC,
      "manifest.yaml": "- {path: a.md, document: x}\n- {path: b.md, document: x}\n"},
     ["manifest.yaml: entry 2 (line 2)", "'x version 1' is also", "entry 1 (line 1)"]),
    ("a question id twice", {"a.md": DOC, "questions/1.yaml": asking(),
                             "questions/2.jsonl": json.dumps(QUESTION)},
     ["questions/2.jsonl: entry 1 (line 1), q1: the id is also questions/1.yaml", "unique"]),
    ("a question without its document", {"a.md": DOC, "questions.yaml": asking(document="aa")},
     ["questions.yaml: entry 1 (line 1), q1: document 'aa' is no document", "nearest name is 'a'"]),
    ("evidence without its document",
     {"a.md": DOC, "questions.yaml": asking(anchors=[{"quote": "fact", "document": "z"}])},
     ["q1: document 'z' is no document of this corpus"]),
    ("a span of no length",
     {"a.md": DOC, "questions.yaml": asking(anchors=[{"start": 4, "end": 4}])},
     ["q1, anchor 0: the span [4, 4) is empty", "0 <= start < end"]),
    ("a span before the text",
     {"a.md": DOC, "questions.yaml": asking(anchors=[{"start": -4, "end": 4}])},
     ["`start` is -4, expected a whole number from 0 on"]),
    ("a span beyond the text",
     {"a.md": DOC, "questions.yaml": asking(anchors=[{"start": 4, "end": 999}])},
     ["q1, anchor 0: the span [4, 999) ends beyond a, which has 68 code points"]),
    ("a quote that does not occur",
     {"a.md": DOC, "questions.yaml": asking(anchors=[{"quote": "first fuct"}])},
     ['`quote` "first fuct" does not occur in a; the nearest text, line 7', '"first fact."']),
    ("a quote that occurs twice",
     {"a.md": DOC, "questions.yaml": asking(anchors=[{"quote": "fact."}])},
     ["occurs 2 times in a: line 7", "line 11", "add `occurrence: 1` (to 2)"]),
    ("questions not UTF-8", {"a.md": DOC, "questions.yaml": b"- id: caf\xe9\n"},
     ["questions.yaml: byte e9", "not UTF-8"]),
    ("questions with NUL", {"a.md": DOC, "questions.yaml": b"- id: a\0\n"},
     ["questions.yaml: NUL byte"]),
    ("empty questions", {"a.md": DOC, "questions.yaml": ""}, ["questions.yaml: 0 bytes"]),
    *((f"{name} would be ignored", {"a.md": DOC, name: "[]"},
       [f"data/toy/{name}: would be ignored", "convert it"])
      for name in ("questions.json", "questions.csv", "questions/q.json", "questions/in/q.yaml",
                   "questions.YAML")),
    ("a bad file of the other split",
     {"a.md": DOC, "b.md": "text\n\n```\n",
      "manifest.yaml": "- {path: a.md}\n- {path: b.md, split: sweep}\n"},
     ["data/toy/b.md: line 3: the fence"]),
]


@pytest.mark.parametrize(("files", "parts"), [case[1:] for case in REFUSED],
                         ids=[case[0] for case in REFUSED])
def test_what_cannot_be_read_is_said_and_nothing_is_written(
    parse: Parse, tmp_path: Path, files: dict[str, str | bytes], parts: list[str]
) -> None:
    with pytest.raises(InputError) as caught:
        parse(files)
    assert caught.value.exit_code == 2
    assert all(part in str(caught.value) for part in parts), caught.value
    assert not (tmp_path / "artifacts").exists()


def test_the_script_says_it_in_one_line_and_exits_2(parse: Parse, tmp_path: Path) -> None:
    with pytest.raises(InputError):
        parse({"a.md": "text\n\n```\n"})
    shown = subprocess.run(
        [sys.executable, str(SCRIPT), "toy"], cwd=tmp_path, capture_output=True, text=True
    )
    assert (shown.returncode, shown.stdout) == (2, "")
    assert shown.stderr.startswith("parse: data/toy/a.md: line 3: the fence")
    assert len(shown.stderr.splitlines()) == 1


@pytest.mark.parametrize(("ending", "mark", "counts"), [
    ("\n", "\ufeff", {"byte-order marks stripped": 1}),
    ("\r\n", "", {"CR LF line endings turned into LF": 11}),
    ("\r", "", {"lone CR line endings turned into LF": 11}),
])
def test_marks_and_line_endings_are_mended_and_counted(
    parse: Parse, ending: str, mark: str, counts: dict[str, int]
) -> None:
    plain = parse({"a.md": DOC, "questions.yaml": asking()})["study"]
    found = parse({"a.md": mark + DOC.replace("\n", ending)})["study"]
    assert {name: found[name] for name in found if name not in plain} == counts
    assert {name: found[name] for name in plain} == plain  # the same documents and questions


def test_files_without_text_are_counted_with_their_questions(parse: Parse) -> None:
    more = QUESTION | {"id": "q2", "document": "b"}
    found = parse({
        "a.md": DOC, "b.md": "", "c.md": " \n", "d.md": "# Only\n\n## Headings\n",
        "questions.yaml": yaml.safe_dump([QUESTION, more, {"id": "q3", "base": "q2",
                                                            "question": "Again?"}]),
    })["study"]
    assert found["files left out: no text"] == 3 and found["documents"] == 1
    assert found["questions left out: no text"] == 2 and list(questions()) == ["q1"]


def test_headings_that_skip_levels_close_up_and_are_counted(parse: Parse) -> None:
    # B skips from 2 to 5 and so does C beside it; D skips from 5 to no level, 6 is next to 5.
    # Below E the levels 2 to 6 follow each other; the fifth is kept on the fourth.
    text = (
        "# T\n\n## A\n\nx\n\n##### B\n\nx\n\n##### C\n\nx\n\n###### D\n\nx\n\n"
        "## E\n\nx\n\n### F\n\nx\n\n#### G\n\nx\n\n##### H\n\nx\n\n###### I\n\nx\n"
    )
    found = parse({"a.md": text, "b.md": DOC})["study"]
    assert found["headings that skip levels, closed up"] == 2
    assert found["headings below level 4, kept on it"] == 1
    rows = schemas.read(layout.parse("toy") / "sections.parquet", schemas.SECTIONS).to_pylist()
    assert [row["level"] for row in rows if row["doc_id"] == "a"] == [1, 2, 2, 3, 1, 2, 3, 4, 4]
    # A first heading below what comes later hangs from nothing: it skips as well.
    found = parse({"a.md": "#### A\n\nx\n\n# B\n\nx\n\n# C\n\nx\n"})["study"]
    assert found["headings that skip levels, closed up"] == 1
    assert "headings that skip levels, closed up" not in parse({"a.md": DOC})["study"]


def test_questions_that_leave_keep_their_reason(parse: Parse) -> None:
    listed = [
        QUESTION, QUESTION | {"id": "q2", "anchors": [{"quote": "One"}]},
        {"id": "q3", "type": "no-answer", "document": "a", "question": "Who?"},
    ]
    found = parse({"a.md": DOC, "questions.yaml": yaml.safe_dump(listed)})["study"]
    assert {name: row["excluded"] for name, row in questions().items()} == {
        "q1": None, "q2": "evidence only in headings", "q3": "no-answer"
    }
    assert found["excluded: evidence only in headings"] == found["excluded: no-answer"] == 1


def chroma(*spans: tuple[int, int, str]) -> dict[str, str | bytes]:
    out = io.StringIO()
    rows = csv.writer(out)
    rows.writerow(("question", "references", "corpus_id"))
    for start, end, content in spans:
        found = [{"content": content, "start_index": start, "end_index": end}]
        rows.writerow(("Which?", json.dumps(found), "t"))
    return {"corpora/t.md": "Some plain text.", "questions_df.csv": out.getvalue()}


def test_harvested_spans_that_do_not_fit_are_counted_out(parse: Parse) -> None:
    # The last one's content is what remains of the text: it would pass for a slice.
    found = parse(
        chroma((0, 4, "Some"), (3, 3, ""), (0, 4, "some"), (-2, 4, "Some"), (11, 99, "text.")),
        "chroma",
    )["study"]
    assert found["spans equal to their text"] == 1
    assert found["spans that differ from their text"] == 4
    assert [row["excluded"] is None for row in questions().values()] == [True] + [False] * 4


def dump(text: str) -> bytes:
    return (
        "<mediawiki xmlns='http://www.mediawiki.org/xml/export-0.11/'><page><title>P</title>"
        f"<ns>0</ns><id>1</id><revision><id>5</id><text>{text}</text></revision></page></mediawiki>"
    ).encode()


PAPER = json.dumps({"p": {"title": "T", "abstract": "Text.", "full_text": [], "qas": []}})


@pytest.mark.parametrize(("reader", "files", "parts"), [
    ("qasper", {"x.json": PAPER.encode() + b"\xe9"}, ["x.json: byte", "not UTF-8"]),
    ("qasper", {"x.json": PAPER.replace("Text.", "a\\u0000")}, ["paper p: abstract", "U+0000"]),
    ("qasper", {"x.json": ""}, ["x.json: line 1, column 1: not JSON"]),
    ("qasper", {"x.json": PAPER, "y.json": PAPER}, ["y.json: paper p", "keep one of the two"]),
    ("mediawiki", {"d.xml": dump("a\0")}, ["d.xml: line 1", "broken or cut-off XML"]),
    ("mediawiki", {"d.xml": dump("é").replace(b"\xc3", b"")}, ["d.xml: line 1", "broken"]),
    ("mediawiki", {"d.xml": ""}, ["d.xml: an empty file"]),
    ("mediawiki", {"d.xml": dump("a"), "e.xml": dump("a")}, ["two pages are titled 'P'"]),
    ("text", {"a.txt": b"caf\xe9"}, ["a.txt: byte e9"]),
    ("text", {"a.txt": b"a\0"}, ["a.txt: NUL byte"]),
    ("text", {"a.txt": b"\n"}, ["no document of split study is left"]),
    ("chroma", {"corpora/t.md": b"\xe9", "questions_df.csv": b""}, ["corpora/t.md: byte e9"]),
    ("chroma", {"corpora/t.md": b"a\0", "questions_df.csv": b""}, ["corpora/t.md: NUL byte"]),
    ("chroma", {"corpora/t.md": "", "questions_df.csv": ""}, ["corpora/t.md: 0 bytes"]),
    ("chroma", chroma((0, 4, "Some")) | {"corpora/t.md": b"", "corpora/u.md": "text"},
     ["corpora/t.md: 0 bytes"]),
    ("chroma", {"corpora/t.md": "text", "questions_df.csv": "question,references,corpus_id\n"
                                                            "Who?,[],zz\n"},
     ["row 1 (line 2): corpus_id 'zz' is no document"]),
])
def test_every_reader_refuses_what_is_no_text(
    parse: Parse, tmp_path: Path, reader: str, files: dict[str, str | bytes], parts: list[str]
) -> None:
    with pytest.raises(InputError) as caught:
        parse(files, reader)
    assert all(part in str(caught.value) for part in parts), caught.value
    assert not (tmp_path / "artifacts").exists()


@pytest.mark.parametrize("ending", ["\r\n", "\r"])
def test_line_endings_of_every_reader_are_lf(parse: Parse, ending: str) -> None:
    wanted = {"min_words": 1, "min_depth": 0, "min_sections": 0}
    for reader, files, options in (
        ("text", {"a.txt": f"one{ending}two{ending}{ending}three"}, {}),
        ("qasper", {"x.json": json.dumps({"p": {
            "title": "T", "abstract": f"one{ending}two", "qas": [],
            "full_text": [{"section_name": "S", "paragraphs": ["three"]}]}})}, {}),
        ("mediawiki", {"d.xml": dump(f" one{ending} two{ending}{ending}three")}, wanted),
        ("chroma", {"corpora/t.md": f"one{ending}two{ending}{ending}three",
                    "questions_df.csv": "question,references,corpus_id\n"}, {}),
    ):
        parse(files, reader, **options)
        (row,) = schemas.read(layout.parse("toy") / "documents.parquet", schemas.DOCUMENTS
                              ).to_pylist()
        assert row["body"] == "one\ntwo\n\nthree", reader
