"""The trusted view, and the readers of a folder that stand on it."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from spanwise.corpora.readers import READERS, read_split
from spanwise.corpora.view import open_view
from spanwise.errors import CorpusError, DecodingError, MarkupError, ParamsError

OPENED: list[str] | None = None


def _listen(event: str, arguments: tuple[Any, ...]) -> None:
    if OPENED is not None and event == "open" and isinstance(arguments[0], str | bytes):
        OPENED.append(os.fsdecode(arguments[0]))


sys.addaudithook(_listen)


@pytest.fixture
def opened() -> Iterator[list[str]]:
    """Every path that is opened while the test runs, as the interpreter itself reports it."""
    global OPENED
    OPENED = []
    yield OPENED
    OPENED = None


def fill(root: Path, files: dict[str, str | bytes]) -> Path:
    for name, text in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return root


MANIFEST = """\
- {path: pump.md, source: manuals, document: pump, version: 3}
- {path: pump.v2.md, source: manuals, document: pump, version: 2, current: false}
- {path: secret.md, source: notes, document: secret, permitted: false}
- {path: sub/tuning.md, source: notes, document: tuning, version: 1.10, split: sweep}
- {path: old.md, document: gone, version: 1, current: false}
- {path: old secret.md, document: gone, version: 0, current: false, permitted: false}
"""
FOLDER: dict[str, str | bytes] = {
    "manifest.yaml": MANIFEST,
    "pump.md": "# Pump\n\nHold it.\n",
    "pump.v2.md": b"\xff\x00 not text: read me and fail",
    "secret.md": b"\xff\x00",
    "sub/tuning.md": b"Tune.",
    "old.md": b"\xff\x00",
    "old secret.md": b"\xff\x00",
    "picture.png": b"\xff\x00",
    ".hidden.md": b"\xff\x00",
}


def test_the_manifest_decides(tmp_path: Path) -> None:
    fill(tmp_path, FOLDER)
    view = open_view(tmp_path, (".md",))
    assert [(e.path, e.doc_id, e.source, e.version) for e in view.entries] == [
        ("pump.md", "pump", "manuals", "3")
    ]
    assert view.left_out == {
        "gone": "older version", "secret": "not permitted", "tuning": "another split",
    }
    assert view.counts == {
        "files": 6, "files left out: not permitted": 2, "files left out: older version": 2,
        "files left out: another split": 1,
    }
    sweep = open_view(tmp_path, (".md",), "sweep")
    assert [(e.doc_id, e.version) for e in sweep.entries] == [("tuning", "1.10")]
    assert sweep.left_out["pump"] == "another split"


@pytest.mark.parametrize(("split", "expected"), [("study", "pump.md"), ("sweep", "sub/tuning.md")])
def test_no_body_that_was_left_out_is_opened(
    tmp_path: Path, opened: list[str], split: str, expected: str
) -> None:
    fill(tmp_path, FOLDER)
    opened.clear()
    corpus = READERS["markdown"](tmp_path, options={}, split=split)
    inside = {
        Path(path).relative_to(tmp_path).as_posix()
        for path in opened
        if Path(path).is_relative_to(tmp_path) and Path(path).is_file()
    }
    assert inside == {"manifest.yaml", expected}
    assert len(corpus.documents) == 1


def test_without_a_manifest_every_file_counts(tmp_path: Path) -> None:
    fill(tmp_path, {"b note.md": "B.", "sub/a.MD": "A.", "c.txt": "C.", "é.markdown": "E."})
    view = open_view(tmp_path, (".md", ".markdown"))
    assert [entry.doc_id for entry in view.entries] == ["%C3%A9", "b%20note", "sub/a"]
    assert {(e.version, e.split, e.current, e.permitted) for e in view.entries} == {
        ("1", "study", True, True)
    }
    assert (view.left_out, view.counts) == ({}, {"files": 3})


@pytest.mark.parametrize(
    ("manifest", "parts"),
    [
        ("- {path: a.md, colour: red}\n- path: b.md\n", ["entry 1 (line 1)", "'colour'"]),
        ("- path: a.md\n- path: gone.md\n", ["entry 2 (line 2)", "'gone.md' is no file"]),
        ("- path: a.md\n", ["1 files", "'b.md'", "not listed"]),
        ("- path: a.md\n- path: b.md\n- path: a.md\n", ["entry 3", "'a.md'", "entry 1"]),
        ("- {path: a.md, document: d}\n- {path: b.md, document: d, version: 2}\n",
         ["entry 2", "second current", "entry 1"]),
        ("- {path: a.md, document: d}\n- {path: b.md, document: d, current: false}\n",
         ["entry 2", "'d version 1'", "entry 1"]),
        ("- path: ../a.md\n- path: b.md\n", ["'../a.md'", "inside"]),
        ("- path: /a.md\n- path: b.md\n", ["'/a.md'", "inside"]),
        ("- path: x/../a.md\n- path: b.md\n", ["inside"]),
        ("- path: x\\a.md\n- path: b.md\n", ["inside"]),
        ("- path: ./a.md\n- path: b.md\n", ["inside"]),
        ("- path: a.txt\n- path: b.md\n", ["'a.txt'", ".md"]),
        ("- {path: a.md, split: test}\n- path: b.md\n", ["split 'test'", "study, sweep"]),
        ("- {path: a.md, permitted: no}\n- path: b.md\n", ["`permitted` is 'no'", "true or false"]),
        ("- {path: a.md, current: }\n- path: b.md\n", ["`current` is None"]),
        ("- {path: a.md, version: [1]}\n- path: b.md\n", ["`version` is [1]"]),
        ("- {source: x}\n", ["no `path`"]),
        ("path: a.md\n", ["expected one list"]),
        ("[]\n", ["2 files", "not listed"]),
    ],
)
def test_manifests_that_cannot_be_trusted(
    tmp_path: Path, manifest: str, parts: list[str]
) -> None:
    fill(tmp_path, {"a.md": "A.", "b.md": "B.", "manifest.yaml": manifest})
    with pytest.raises(CorpusError) as caught:
        open_view(tmp_path, (".md",))
    for part in ("manifest.yaml", *parts):
        assert part in str(caught.value)


def test_an_empty_manifest_opens_nothing(tmp_path: Path) -> None:
    fill(tmp_path, {"a.md": "A.", "manifest.yaml": ""})
    with pytest.raises(DecodingError, match=r"manifest\.yaml"):
        open_view(tmp_path, (".md",))


@pytest.mark.parametrize("name", ["manifest.yml", "manifest.json", "sub/manifest.yaml"])
def test_a_manifest_that_would_be_ignored_is_refused(tmp_path: Path, name: str) -> None:
    fill(tmp_path, {"a.md": "A.", "sub/b.md": "B.", name: "[]"})
    with pytest.raises(CorpusError, match="would be ignored"):
        open_view(tmp_path, (".md",))


def test_links_are_refused(tmp_path: Path) -> None:
    outside = fill(tmp_path / "outside", {"x.md": "X."})
    for name, target, said in (
        ("leaves", outside / "x.md", "leaves the folder"),
        ("alias", Path("a.md"), "to another file"),
        ("folder", outside, "linked folder"),
        ("broken", Path("gone.md"), "to another file"),
    ):
        root = fill(tmp_path / name, {"a.md": "A."})
        (root / ("linked" if name == "folder" else "linked.md")).symlink_to(target)
        with pytest.raises(CorpusError, match=said):
            open_view(root, (".md",))
    root = fill(tmp_path / "manifest", {"a.md": "A."})
    (root / "manifest.yaml").symlink_to("gone.yaml")  # a broken one must not open everything
    with pytest.raises(CorpusError, match=r"manifest\.yaml"):
        open_view(root, (".md",))


def test_two_files_of_one_name_are_refused(tmp_path: Path) -> None:
    fill(tmp_path, {"a.md": "A.", "a.markdown": "A."})
    with pytest.raises(CorpusError, match=r"document 'a' is also a\.markdown"):
        open_view(tmp_path, (".md", ".markdown"))


def test_a_missing_folder_and_an_unknown_split(tmp_path: Path) -> None:
    with pytest.raises(CorpusError, match="no such folder"):
        open_view(tmp_path / "gone", (".md",))
    with pytest.raises(CorpusError, match="study, sweep"):
        open_view(tmp_path, (".md",), "all")


def test_reader_counts_what_it_mends_and_leaves_out(tmp_path: Path) -> None:
    fill(tmp_path, {
        "a.md": b"\xef\xbb\xbf# A\r\n\r\nText.\r\n", "b.md": b"x\ry\r", "empty.md": b"",
        "blank.md": b" \n", "heads.md": b"# H\n\n## I\n",
        "questions.yaml": "- {id: q1, document: a, question: Q, anchors: [{quote: Text}]}\n"
                          "- {id: q2, document: heads, question: Q, anchors: [{quote: H}]}\n",
    })
    corpus = READERS["markdown"](tmp_path, options={})
    assert [(d.doc_id, d.title, d.body) for d in corpus.documents] == [
        ("a", "A", "Text."), ("b", "b", "x\ny"),
    ]
    assert [q.question_id for q in corpus.questions] == ["q1"]
    assert corpus.evidence == "raw"
    # CR LF stands at three places of a.md, a lone CR at two of b.md.
    assert corpus.counts == {
        "files": 5, "files left out: no text": 3, "documents": 2, "byte-order marks stripped": 1,
        "CR LF line endings turned into LF": 3, "lone CR line endings turned into LF": 2,
        "questions": 1, "questions that are rewordings": 0, "questions without an answer": 0,
        "questions left out: no text": 1,
    }


def test_plain_text_reader(tmp_path: Path) -> None:
    fill(tmp_path, {"a.txt": "# no heading\n\nTwo.", "b.md": "ignored"})
    corpus = READERS["text"](tmp_path, options={})
    assert [(d.doc_id, d.title, d.body, d.headings) for d in corpus.documents] == [
        ("a", "a", "# no heading\n\nTwo.", ())
    ]


def test_readers_say_what_they_cannot_read(tmp_path: Path) -> None:
    fill(tmp_path / "fence", {"a.md": "x\n\n```\ny\n"})
    with pytest.raises(MarkupError, match=r"a\.md: line 3"):
        READERS["markdown"](tmp_path / "fence", options={})
    fill(tmp_path / "bytes", {"a.md": b"x\xff"})
    with pytest.raises(DecodingError, match=r"a\.md.*byte offset 1"):
        READERS["markdown"](tmp_path / "bytes", options={})
    fill(tmp_path / "none", {"a.md": "", "b.txt": "x"})
    with pytest.raises(CorpusError, match="files left out: no text: 1"):
        READERS["markdown"](tmp_path / "none", options={})
    fill(tmp_path / "one", {"a.md": "x"})
    assert READERS["markdown"](tmp_path / "one", options={}, split="sweep").documents == ()
    assert read_split("chroma", tmp_path / "one", options={}, split="sweep").documents == ()
    with pytest.raises(ParamsError, match="depth"):
        READERS["markdown"](tmp_path / "one", options={"depth": 3})
    assert set(READERS) == {
        "markdown", "text", "qasper", "mediawiki", "chroma", "folder", "beir", "snippets",
    }
