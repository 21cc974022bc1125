"""BEIR's form and span-labelled sets: what is evidence, what counts, what is refused."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from spanwise.corpora import readers
from spanwise.documents.records import question_table
from spanwise.errors import CorpusError, InputError, ParamsError, QuestionError


def beir(root: Path, **files: str) -> Path:
    written = {
        "corpus.jsonl": '{"_id": "d 1", "title": "One", "text": "A fact.\\n\\nMore."}\n'
                        '{"_id": "d2", "title": "", "text": "Another."}\n'
                        '{"_id": "d3", "text": " "}\n',
        "queries.jsonl": '{"_id": "q1", "text": "Which  fact?"}\n{"_id": "q2", "text": "None?"}\n'
                         '{"_id": "q9", "text": "Of another split?"}\n',
        "qrels/test.tsv": "query-id\tcorpus-id\tscore\nq1\td2\t1\nq1\td 1\t2\n"
                          "q2\td2\t0\nq2\td3\t1\n",
    } | {name.replace("__", "/").replace("_", "."): text for name, text in files.items()}
    for name, text in written.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text, encoding="utf-8")
    return root


def test_each_relevant_document_is_enough_by_itself(tmp_path: Path) -> None:
    corpus = readers.read_split("beir", beir(tmp_path), options={})
    bodies = {d.doc_id: (d.title, d.body) for d in corpus.documents}
    assert bodies == {"d%201": ("One", "A fact.\n\nMore."), "d2": ("d2", "Another.")}
    first, second = corpus.questions
    assert (first.doc_id, first.text, first.bundles) == ("d%201", "Which fact?", ((0,), (1,)))
    assert [(e.doc_id, e.start, e.end) for e in first.evidence] == [("d%201", 0, 14), ("d2", 0, 8)]
    assert (second.evidence, second.excluded) == ((), "unjudged")
    assert corpus.counts == {
        "documents": 2, "questions": 2, "documents left out: no text": 1,
        "questions left out: no judgement": 1, "judged documents that are not there": 1,
    }
    assert question_table(corpus)[0].num_rows == 2
    assert readers.read_split("beir", tmp_path, options={}, split="sweep").documents == ()


def test_the_judgements_can_be_named(tmp_path: Path) -> None:
    beir(tmp_path, qrels__dev_tsv="query-id\tcorpus-id\tscore\nq9\td2\t1\n")
    corpus = readers.read_split("beir", tmp_path, options={"qrels": "dev"})
    assert [q.question_id for q in corpus.questions] == ["q9"]
    with pytest.raises(CorpusError, match=r"no train\.tsv among dev, test"):
        readers.read_split("beir", tmp_path, options={"qrels": "train"})
    with pytest.raises(ParamsError, match="knows `qrels`"):
        readers.read_split("beir", tmp_path, options={"depth": 1})


@pytest.mark.parametrize(("name", "text", "says"), [
    ("qrels__test_tsv", "q1\td2\t1\n", "line 1: expected the columns query-id"),
    ("qrels__test_tsv", "query-id\tcorpus-id\tscore\nq1\td2\n", "line 2: .*parted by tabs"),
    ("qrels__test_tsv", "query-id\tcorpus-id\tscore\nq1\td2\t1\nq1\td2\t1\n", "line 3: .*twice"),
    ("corpus_jsonl", '{"_id": "a", "text": "x"}\n{"_id": "a", "text": "y"}\n', "'a' stands twice"),
    ("corpus_jsonl", '{"_id": "a"}\n', r"entry 1 \(line 1\): `text`"),
    ("queries_jsonl", '{"_id": "q1"}\n', r"entry 1 \(line 1\): `text` is None"),
    ("queries_jsonl", '{"_id": "z", "text": "x"}\n', "name none of its queries"),
])
def test_a_broken_beir_set_is_refused_with_its_place(
    tmp_path: Path, name: str, text: str, says: str
) -> None:
    with pytest.raises(InputError, match=says):
        readers.read_split("beir", beir(tmp_path, **{name: text}), options={})


def snippets(root: Path, tests: Any, wrapped: bool = True) -> Path:
    (root / "corpus" / "a").mkdir(parents=True)
    (root / "corpus" / "a" / "x y.txt").write_text("The keel weighs 410 kg.\n", encoding="utf-8")
    (root / "corpus" / "b.txt").write_text("Né. It is 14 m.\n", encoding="utf-8")
    found = {"tests": tests} if wrapped else tests
    (root / "set.json").write_text(json.dumps(found), encoding="utf-8")
    return root


KEEL = {"file_path": "a/x y.txt", "span": [16, 22], "answer": "410 kg"}


@pytest.mark.parametrize("wrapped", [True, False])
def test_spans_are_code_points_of_the_file(tmp_path: Path, wrapped: bool) -> None:
    mast = {"file_path": "corpus/b.txt", "span": [10, 14]}
    tests = [{"query": "How  heavy?", "snippets": [KEEL, mast, KEEL]}]
    corpus = readers.read_split("snippets", snippets(tmp_path, tests, wrapped), options={})
    raw = {d.doc_id: d.raw or "" for d in corpus.documents}
    (question,) = corpus.questions
    assert (question.question_id, question.text, question.bundles) == (
        "set-0001", "How heavy?", ((0, 1),)
    )
    assert question.doc_id == "corpus/a/x%20y"
    assert [raw[e.doc_id][e.start : e.end] for e in question.evidence] == ["410 kg", "14 m"]
    (document, _) = corpus.documents
    assert readers.raw_blocks("snippets", document.raw or "", "a", document)[0].kind == "paragraph"


@pytest.mark.parametrize(("snippet", "says"), [
    (KEEL | {"span": [16, 99]}, r"query 1, snippet 0: span \[16, 99\].*<= 24"),
    (KEEL | {"span": ["a", 2]}, "expected .start, end."),
    (KEEL | {"answer": "410 lb"}, r'does not stand at.*\n    answer: "410 kg"'),
    (KEEL | {"file_path": "a/z.txt"}, "'a/z.txt': no such file of text"),
    (KEEL | {"file_path": None}, "`file_path` is None"),
])
def test_a_snippet_that_is_not_there_is_refused(
    tmp_path: Path, snippet: dict[str, Any], says: str
) -> None:
    tests = [{"query": "How?", "snippets": [snippet]}]
    with pytest.raises(QuestionError, match=says):
        readers.read_split("snippets", snippets(tmp_path, tests), options={})


def test_every_wrong_query_is_told(tmp_path: Path) -> None:
    root = snippets(tmp_path, [{"query": "", "snippets": [KEEL]}, {"query": "x"}, 3])
    with pytest.raises(QuestionError, match=r"3 entries of set\.json are wrong"):
        readers.read_split("snippets", root, options={})
    (root / "other.json").write_text("[]", encoding="utf-8")
    with pytest.raises(CorpusError, match=r"one \.json of queries at its top, found 2"):
        readers.read_split("snippets", root, options={})
