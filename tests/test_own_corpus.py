"""The pages about your own documents against the code: their examples are read and run."""

from __future__ import annotations

import json
import re
import shlex
from pathlib import Path

import pytest
import yaml

from spanwise import models, params
from spanwise.adding import asked
from spanwise.cli import main
from spanwise.corpora import view
from spanwise.corpora.readers import READERS, read_split
from spanwise.documents.model import Corpus
from spanwise.errors import QuestionError
from spanwise.measures import trec
from spanwise.questions import anchors, authored

from .conftest import ROOT

PAGES = {
    name: (ROOT / "docs" / f"{name}.md").read_text(encoding="utf-8")
    for name in ("own-corpus", "formats", "rerankers", "own-retriever", "mlflow")
}
PAGE = "\n".join(PAGES.values())
WRONG = "data/notes/questions/wrong.yaml"
FENCES = [
    (found["line"], found["kind"], found["body"])
    for found in re.finditer(
        r"^(?P<line>[^\n]*)\n```(?P<kind>[a-z]*)\n(?P<body>.*?)^```$", PAGE, re.S | re.M
    )
]
FILES = {
    name[1]: body
    for line, _, body in FENCES
    if (name := re.search(r"`([\w./-]+\.(?:md|yaml|jsonl|trec))`[:,]$", line))
}


def fence_below(line_end: str) -> str:
    """The fence below the one line that ends so."""
    (body,) = [body for line, _, body in FENCES if line.endswith(line_end)]
    return body


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The page's files in an empty folder; what must stay closed is no text at all."""
    for name, body in FILES.items():
        if name != WRONG:
            (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
            (tmp_path / name).write_text(body, encoding="utf-8")
    folder = tmp_path / "data" / "notes"
    for entry in yaml.safe_load(FILES["data/notes/manifest.yaml"]):
        path = folder / entry["path"]
        if not path.exists():
            path.parent.mkdir(exist_ok=True)
            closed = entry.get("split") != "sweep"
            path.write_bytes(b"\xff\x00" if closed else b"It rains.\n")
    monkeypatch.chdir(tmp_path)


def read(split: str = "study") -> Corpus:
    return read_split("markdown", Path("data/notes"), options={}, split=split)


def test_every_marked_example_was_found() -> None:
    assert set(FILES) == {
        "data/notes/hull.md", "data/notes/rigging.md", "data/notes/manifest.yaml",
        "data/notes/questions/first.yaml", "data/notes/questions/more.jsonl", WRONG,
        "questions.jsonl", "chunks.jsonl", "mine.trec",
    }
    assert {name: page.count("\n") for name, page in PAGES.items() if page.count("\n") >= 270} == {}
    # The first page leads to all of them.
    assert all(f"({name}.md" in PAGES["own-corpus"] for name in PAGES if name != "own-corpus")


@pytest.mark.usefixtures("project")
def test_the_folder_is_read_as_the_page_says() -> None:
    corpus = read()
    assert [document.doc_id for document in corpus.documents] == ["hull", "rigging"]
    assert corpus.counts == {
        "files": 5, "files left out: not permitted": 1, "files left out: older version": 1,
        "files left out: another split": 1, "documents": 2, "questions": 7,
        "questions that are rewordings": 1, "questions without an answer": 1,
    }
    assert [document.doc_id for document in read("sweep").documents] == ["weather"]


@pytest.mark.usefixtures("project")
def test_the_questions_have_the_evidence_that_the_page_describes() -> None:
    corpus = read()
    raw = {document.doc_id: document.raw or "" for document in corpus.documents}
    quoted = {
        q.question_id: [(e.doc_id, raw[e.doc_id][e.start : e.end]) for e in q.evidence]
        for q in corpus.questions
    }
    drying = "The paint dries in 12 hours, in winter in 20."
    assert quoted == {
        "keel-weight": [("hull", "410 kg")], "keel-again": [("hull", "410 kg")],
        "second-sanding": [("hull", "Sand")],
        "two-sources": [("rigging", "14 m"), ("hull", "410 kg")],
        "drying": [("hull", "12 hours"), ("hull", drying), ("hull", raw["hull"][55:61])],
        "shrouds": [("rigging", "every spring")], "engine": [],
    }
    by_id = {q.question_id: q for q in corpus.questions}
    assert by_id["drying"].bundles == ((0,), (1, 2))
    assert by_id["two-sources"].bundles == ((0, 1),)
    assert by_id["engine"].excluded == "no-answer"
    assert by_id["keel-again"].base == "keel-weight"
    assert by_id["second-sanding"].evidence[0].start == raw["hull"].rindex("Sand")


@pytest.mark.usefixtures("project")
def test_the_row_of_a_csv_is_the_entry_of_a_list() -> None:
    (rows,) = [body for _, _, body in FENCES if body.startswith("question,document,quote")]
    Path("q.csv").write_text(rows, encoding="utf-8")
    documents = read().documents
    items, notes = asked.entries(Path("q.csv"), [d.doc_id for d in documents])
    (question,), _ = authored.resolve(items, documents, {})
    (same,) = [q for q in read().questions if q.question_id == "keel-weight"]
    assert (question.text, question.evidence) == (same.text, same.evidence)
    assert notes == []


@pytest.mark.usefixtures("project")
def test_wrong_entries_give_the_message_that_is_printed() -> None:
    Path(WRONG).write_text(FILES[WRONG], encoding="utf-8")
    with pytest.raises(QuestionError) as caught:
        read()
    assert str(caught.value) + "\n" == fence_below("or with all places:")


def test_every_key_has_an_example() -> None:
    entries = yaml.safe_load(FILES["data/notes/manifest.yaml"])
    listed = re.findall(r"^- `(\w+)`: .+$", PAGE, re.M)
    assert tuple(entries[0]) == view._KEYS == tuple(listed)
    questions = yaml.safe_load(FILES["data/notes/questions/first.yaml"])
    assert {key for entry in questions for key in entry} == {
        *authored._KEYS, *authored._REWORDING
    }
    used = {key for entry in questions for anchor in entry.get("anchors", ()) for key in anchor}
    assert used == {key for form in anchors._FORMS.values() for key in form}


def test_the_entry_is_a_corpus_and_the_readers_are_all_named() -> None:
    (body,) = [body for _, _, body in FENCES if body.startswith("corpora:")]
    settings = yaml.safe_load((ROOT / "params.yaml").read_text(encoding="utf-8"))
    notes = yaml.safe_load(body)["corpora"]["notes"]
    settings["corpora"]["notes"] = notes
    del settings["embedders"]["mpnet"]  # as the page says for MiniLM alone
    settings["primary"]["embedder"] = "minilm"
    made = params.from_mapping(settings)
    assert made.corpus("notes").path == "data/notes"
    assert set(notes) == set(params.CorpusSettings.model_fields) - {"demonstration"}
    (body,) = [body for _, _, body in FENCES if body.startswith("rerankers:")]
    settings["rerankers"] = yaml.safe_load(body)["rerankers"]
    assert params.from_mapping(settings).rerankers["bge"].kind == "flag"
    assert re.findall(r"^\| `([a-z]+)` \|", PAGE, re.M) == list(READERS)
    shipped = params.load(ROOT / "params.yaml").embedders
    assert all(shipped[name].model in models.PACKAGED for name in ("minilm", "mpnet"))


@pytest.mark.usefixtures("project")
def test_score_and_compare_run_on_the_printed_lines(capsys: pytest.CaptureFixture[str]) -> None:
    # The two further ones are of another example, which tests/test_external.py runs.
    found = re.findall(r"^spanwise (score .+|compare .+)$", PAGE, re.M)
    commands = [shlex.split(command) for command in found][:2]
    assert [command[0] for command in commands] == ["score", "compare"]
    assert main(commands[0]) == 0
    rows = {
        row["question_id"]: row
        for row in map(json.loads, Path("mine.jsonl").read_text(encoding="utf-8").splitlines())
    }
    # keel-weight: all evidence in the chunk at rank 1. drying: all of it at rank 2.
    assert (rows["keel-weight"]["mrr"], rows["drying"]["mrr"]) == (1.0, 0.5)
    assert rows["keel-weight"]["cov_ndcg@10"] == 1.0
    Path("theirs.jsonl").write_bytes(Path("mine.jsonl").read_bytes())
    capsys.readouterr()
    assert main(commands[1]) == 0
    assert "cov_ndcg@10" in capsys.readouterr().out
    assert all(len(line.split()) == len(trec._FIELDS) for line in FILES["mine.trec"].splitlines())


@pytest.mark.usefixtures("project")
def test_the_evidence_of_the_printed_questions_is_where_they_say() -> None:
    text = FILES["data/notes/hull.md"]
    lines = [json.loads(line) for line in FILES["questions.jsonl"].splitlines()]
    assert [[text[e["start"] : e["end"]] for e in line["evidence"]] for line in lines] == [
        ["410 kg"], ["12 hours", "The paint dries in 12 hours, in winter in 20."],
    ]


@pytest.mark.usefixtures("project")
def test_chunk_writes_the_printed_chunks(capsys: pytest.CaptureFixture[str]) -> None:
    (line,) = re.findall(r"^spanwise (chunk .+) > chunks\.jsonl$", PAGE, re.M)
    assert main(shlex.split(line)) == 0
    made = capsys.readouterr().out
    rows = [json.loads(row) for row in made.splitlines()]
    keys = ("chunk_id", "doc_id", "start", "end", "tokens")
    printed = [json.loads(row) for row in FILES["chunks.jsonl"].splitlines()]
    assert [[row[key] for key in keys] for row in rows] == [
        [row[key] for key in keys] for row in printed
    ]
    Path("chunks.jsonl").write_text(made, encoding="utf-8")
    assert main(["score", "--questions", "questions.jsonl", "--chunks", "chunks.jsonl",
                 "--run", "mine.trec"]) == 0
