"""Settings and tables refuse what they cannot mean."""

from __future__ import annotations

import copy
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
import yaml

from spanwise import layout, params, schemas
from spanwise.errors import InputError, ParamsError

from .conftest import ROOT

GOOD: dict[str, Any] = yaml.safe_load((ROOT / "params.yaml").read_text(encoding="utf-8"))

NONSENSE = [
    ("chunking.cap_tokens", 100, "a split would make small parts"),
    ("chunking.cap_tokens", "350", "valid integer"),
    ("conditions.A0.prefix", "path", "depth is above 0"),
    ("conditions.A0.retrieval", "routed", "no routing"),
    ("conditions.A0.colour", "red", "Extra inputs"),
    ("contrasts.C1", ["A3", "A9"], "no row"),
    ("contrasts.C1", ["A3"], "at least 2"),
    ("primary.measure", "map", "one of cov_ndcg@10"),
    ("primary.embedder", "nobody", "no entry of embedders"),
    ("tokens.tokenizer", "nobody", "nor `words`"),
    ("embedders.minilm.batch_size", 8, "batch_size is 1 on the cpu"),
    ("corpora.handbook.reader", "pdf", "markdown"),
    ("corpora.handbook.path", "../mine", "a corpus lies in data/handbook"),
    ("corpora.handbook.path", "data/handbooks", "a corpus lies in data/handbook"),
    ("corpora.handbook.inducer", "oracle", "expected 'segmenter', 'hybrid' or 'llm'"),
    ("steps.C1", ["A2", "A0"], "stand in contrasts and in steps"),
    ("contrasts.C1", ["A3", "A3"], "A3 against itself"),
    ("server.base_url", "http://me:hunter2@h/v1", "never into the address$"),
]


@pytest.mark.parametrize(("place", "value", "complaint"), NONSENSE)
def test_nonsense_is_refused_with_its_place(place: str, value: object, complaint: str) -> None:
    mapping = copy.deepcopy(GOOD)
    *inner, last = place.split(".")
    target = mapping
    for name in inner:
        target = target[name]
    target[last] = value
    with pytest.raises(ParamsError, match=complaint) as caught:
        params.from_mapping(mapping)
    assert inner[0] in str(caught.value) or "contrast C1" in str(caught.value)
    assert "hunter2" not in str(caught.value)  # what may be a key is not repeated


def test_the_file_itself_is_checked(tmp_path: Path) -> None:
    with pytest.raises(ParamsError, match="not found"):
        params.load(tmp_path / "params.yaml")
    (tmp_path / "params.yaml").write_text("a: [")
    with pytest.raises(ParamsError, match="not YAML"):
        params.load(tmp_path / "params.yaml")
    (tmp_path / "params.yaml").write_text("- 1")
    with pytest.raises(ParamsError, match="expected a mapping"):
        params.load(tmp_path / "params.yaml")


def test_corpora_have_plain_names() -> None:
    mapping = copy.deepcopy(GOOD)
    mapping["corpora"]["My Corpus"] = mapping["corpora"]["handbook"]
    with pytest.raises(ParamsError, match="lower-case letters"):
        params.from_mapping(mapping)


ROW = {"condition": "A0", "question_id": "q", "rank": 1, "chunk_id": "c", "score": 0.5}


def test_a_table_comes_back_as_it_was_and_its_bytes_do_not_depend_on_row_order(
    tmp_path: Path,
) -> None:
    rows = [{**ROW, "rank": n} for n in range(1, 6)]
    for name, listed in (("a", rows), ("b", rows[::-1])):
        schemas.write(tmp_path / name, schemas.RUNS, schemas.table(schemas.RUNS, listed))
    assert (tmp_path / "a").read_bytes() == (tmp_path / "b").read_bytes()
    assert schemas.read(tmp_path / "a", schemas.RUNS).to_pylist() == rows


@pytest.mark.parametrize(
    ("rows", "complaint"),
    [
        ([ROW, ROW], "repeated key"),
        ([{**ROW, "score": float("nan")}], "holds NaN"),
        ([{**ROW, "chunk_id": None}], "holds nulls"),
        ([{**ROW, "extra": 1}], "missing or unknown"),
    ],
)
def test_a_table_that_lies_is_refused(rows: list[dict[str, Any]], complaint: str) -> None:
    with pytest.raises(InputError, match=complaint):
        schemas.table(schemas.RUNS, rows)


def test_reading_refuses_another_table_and_a_missing_one(tmp_path: Path) -> None:
    import pyarrow.parquet as pq

    pq.write_table(pa.table({"x": [1]}), tmp_path / "x.parquet")
    with pytest.raises(InputError, match="not a runs table"):
        schemas.read(tmp_path / "x.parquet", schemas.RUNS)
    with pytest.raises(InputError, match="dvc repro"):
        schemas.read(tmp_path / "y.parquet", schemas.RUNS)


def test_a_failed_write_leaves_nothing(tmp_path: Path) -> None:
    bad = pa.Table.from_pylist([ROW, ROW], schema=schemas.RUNS.columns)
    with pytest.raises(InputError):
        schemas.write(tmp_path / "runs.parquet", schemas.RUNS, bad)
    assert list(tmp_path.iterdir()) == []


def test_questions_that_all_stay_are_read_as_what_they_are(tmp_path: Path) -> None:
    """A column of nulls alone has no type of its own: it once ended the embed stage."""
    from spanwise.documents.records import UNUSABLE, load_questions

    row = {
        "question_id": "q", "doc_id": "d", "text": "?", "type": "factoid", "base": None,
        "evidence": [{"doc_id": "d", "start": 0, "end": 1}], "bundles": [[0]],
        "raw_evidence": None, "raw_bundles": None, "excluded": None,
    }
    table = schemas.table(schemas.QUESTIONS, [row])
    schemas.write(tmp_path / "questions.parquet", schemas.QUESTIONS, table)
    assert load_questions(tmp_path).to_pylist() == [row]
    assert load_questions(tmp_path, ["d"])["excluded"].to_pylist() == [UNUSABLE]
    schemas.check(schemas.QUESTIONS, load_questions(tmp_path), "questions")


def test_results_of_corpora_that_were_taken_out_are_named(tmp_path: Path) -> None:
    for place in ("parse/toy/study", "index/toy/m", "infer/old", "sweep/kept", "unit-vectors/kept"):
        (tmp_path / "artifacts" / place).mkdir(parents=True)
    (tmp_path / "artifacts" / "infer" / "note.txt").write_text("none of a stage")
    assert layout.leftovers(["toy"], tmp_path) == ["old"]
    assert layout.leftovers(["old", "toy"], tmp_path) == []
    assert layout.leftovers([], tmp_path / "nowhere") == []
