"""A corpus's questions and texts for another retriever: handed out, searched, scored."""

from __future__ import annotations

import json
import runpy
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml

from spanwise.cli import main

from .conftest import ROOT
from .small_files import docx

KEEL = "# Keel\n\nThe keel is old.\n\n## Weight\n\nThe keel weighs 410 kg.\n"
Said = Callable[..., tuple[int, str, str]]


@pytest.fixture
def said(capsys: pytest.CaptureFixture[str]) -> Said:
    def run(*arguments: str) -> tuple[int, str, str]:
        code = main(arguments)
        shown = capsys.readouterr()
        return code, shown.out, shown.err
    return run


@pytest.fixture
def toy(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A corpus of a Markdown file and a DOCX with four questions, parsed and asked."""
    settings = yaml.safe_load((ROOT / "params.yaml").read_text(encoding="utf-8"))
    settings["corpora"] = {"toy": {"reader": "folder", "path": "data/toy"}}
    settings["tokens"]["tokenizer"] = "words"
    folder = tmp_path / "data" / "toy"
    folder.mkdir(parents=True)
    (folder / "keel.md").write_text(KEEL)
    (folder / "mast.docx").write_bytes(docx(("Heading 1", "Mast"), ("Normal", "It is 14 m high.")))
    weight = {"id": "weight", "document": "keel", "type": "factoid", "question": "How heavy?",
              "anchors": [{"quote": "410 kg"}]}
    (folder / "questions.yaml").write_text(yaml.safe_dump([
        weight, {"id": "again", "base": "weight", "question": "What does it weigh?"},
        {"id": "high", "document": "mast", "type": "factoid", "question": "How high is it?",
         "anchors": [{"quote": "14 m"}]},
        {"id": "part", "document": "keel", "type": "factoid", "question": "Which part is it?",
         "anchors": [{"quote": "# Keel"}]},
    ]))
    (tmp_path / "params.yaml").write_text(yaml.safe_dump(settings))
    (tmp_path / "questions").mkdir()
    monkeypatch.chdir(tmp_path)
    for stage in ("parse", "ask"):
        runpy.run_path(str(ROOT / "stages" / f"{stage}.py"))["main"]("toy")
    return tmp_path


def rows_of(text: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in text.splitlines()]


@pytest.mark.parametrize("representation", ["raw", "body"])
def test_evidence_is_where_the_texts_say(toy: Path, said: Said, representation: str) -> None:
    more = [] if representation == "raw" else ["--representation", "body"]  # raw unless asked
    code, out, error = said("export", "toy", "--text-out", "texts.jsonl", *more)
    texts = {row["doc_id"]: row["text"] for row in rows_of((toy / "texts.jsonl").read_text())}
    assert code == 0 and set(texts) == {"keel", "mast"}
    assert (texts["keel"] == KEEL) == (representation == "raw")
    found = {
        row["question_id"]: [texts[e["doc_id"]][e["start"] : e["end"]] for e in row["evidence"]]
        for row in rows_of(out)
    }
    # `# Keel` is no text of body, so the study leaves its question out.
    assert found == {"weight": ["410 kg"], "again": ["410 kg"], "high": ["14 m"]}
    assert [row["base"] for row in rows_of(out) if row["question_id"] == "again"] == ["weight"]
    assert error.splitlines() == [
        f"note: offsets are of {representation}",
        "note: 1 questions are excluded from the study and left out",
        "note: 1 are rewordings (`base` names the question), which the study's means leave out",
    ]


def test_what_is_handed_out_is_cut_searched_and_scored(toy: Path, said: Said) -> None:
    assert said("export", "toy", "--out", "q.jsonl", "--text-out", "texts.jsonl")[0] == 0
    strings = [
        {"doc_id": row["doc_id"], "text": line, "chunk_id": f"{row['doc_id']}-{number}"}
        for row in rows_of((toy / "texts.jsonl").read_text())
        for number, line in enumerate(filter(str.strip, row["text"].splitlines()))
    ]
    Path("strings.jsonl").write_text("".join(json.dumps(row) + "\n" for row in strings))
    for texts in ("texts.jsonl", "data/toy"):  # one text, in the file or read again from the folder
        command = ("spans", "strings.jsonl", "--texts", texts, "--overlap", "0", "--out", "c.jsonl")
        assert said(*command)[0] == 0
        Path("r.trec").write_text("weight Q0 keel-3 1 1 t\nagain Q0 keel-1 1 1 t\n")
        code, out, _ = said("score", "--questions", "q.jsonl", "--chunks", "c.jsonl",
                            "--run", "r.trec")
        assert code == 0
        assert {row["question_id"]: row["cov_ndcg@10"] for row in rows_of(out)} == {
            "weight": 1.0, "again": 0.0, "high": 0.0,
        }


def test_a_corpus_that_cannot_be_handed_out_says_why(toy: Path, said: Said) -> None:
    for arguments, complaint in (
        (["none"], "no corpus 'none'"),
        (["toy", "--text-out", "texts"], "expected a name that ends in .jsonl"),
        (["toy", "--out", "a.jsonl", "--text-out", "a.jsonl"], "name two files"),
        (["toy", "--out", "data"], "--out data is no regular file"),
        (["toy", "--representation", "text"], "'--representation'"),
    ):
        code, out, error = said("export", *arguments)
        assert (code, out) == (2, "") and complaint in error, error
    assert not list(toy.glob("*.jsonl"))
    (toy / "artifacts" / "ask" / "toy" / "questions.parquet").unlink()
    code, _, error = said("export", "toy")
    assert code == 2 and "questions.parquet: no such table; run `dvc repro`" in error


def test_questions_about_texts_that_are_gone_are_not_handed_out(toy: Path, said: Said) -> None:
    """Evidence of the older text would stand elsewhere in the new one, and nobody would see."""
    keel = toy / "data" / "toy" / "keel.md"
    keel.write_text(f"A word before it.\n\n{KEEL}")
    runpy.run_path(str(ROOT / "stages" / "parse.py"))["main"]("toy")
    code, _, error = said("export", "toy")
    assert code == 2 and "about other documents than those of" in error
    assert "run `dvc repro ask@toy`" in error
    runpy.run_path(str(ROOT / "stages" / "ask.py"))["main"]("toy")
    assert said("export", "toy")[0] == 0
