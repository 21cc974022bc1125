"""What each MLflow run is to hold, read from finished results."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from spanwise import schemas
from spanwise.errors import InputError
from spanwise.params import MEASURES, from_mapping
from spanwise.tracking import metric_name, track
from spanwise.tracking.record import Run, figures, fingerprint, joined
from spanwise.tracking.runs import read_runs

from . import reference_tracking as reference
from .tracking_world import CONDITIONS, EMBEDDERS, MISSING, RUNS, a_project, a_study


@pytest.fixture(autouse=True)
def _own_store(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("MLFLOW_TRACKING_URI", raising=False)


def test_a_run_for_each_cell_condition_and_estimated_contrast(tmp_path: Path) -> None:
    runs = read_runs(tmp_path, a_project(tmp_path), "toy")
    names = [(run.kind, run.cell, run.name) for run in runs]
    expected = []
    for embedder in EMBEDDERS:
        cell = f"toy/{embedder}/none"
        expected += [("cell", cell, f"{embedder}/none")]
        expected += [("condition", cell, name) for name in CONDITIONS]
        expected += [("contrast", cell, "C2 = A3-A2"), ("contrast", cell, "A2-A0")]
    assert names == expected
    assert len({run.content() for run in runs}) == RUNS


def test_what_is_absent_is_a_tag_on_its_cell_and_no_run(tmp_path: Path) -> None:
    runs = read_runs(tmp_path, a_project(tmp_path), "toy")
    top = runs[0]
    assert top.tags["absent.C1"] == f"A1: {MISSING}"
    assert top.tags["absent_condition.A1"] == MISSING
    assert (top.metrics["n_absent_contrasts"], top.metrics["n_absent_conditions"]) == (1, 1)
    assert (top.metrics["n_questions"], top.metrics["n_documents"]) == (8, 3)
    assert (top.metrics["excluded/no-answer"], top.metrics["excluded/headings only"]) == (4, 1)
    assert not any("C1" in run.name for run in runs)


def test_a_reranked_cell_has_its_rerankers_settings_and_an_absent_one_its_reason(
    tmp_path: Path,
) -> None:
    a_project(tmp_path)
    study = a_study() | {"rerankers": {"tiny": {"model": "some/tiny", "kind": "cross-encoder"},
                                       "gone": {"model": "some/gone", "kind": "cross-encoder"}}}
    for table, schema in (("score/toy/scores", schemas.SCORES), ("infer/toy/means", schemas.MEANS)):
        path = tmp_path / f"artifacts/{table}.parquet"
        rows = schemas.read(path, schema).to_pylist()
        more = [r | {"reranker": "tiny"} for r in rows if r["embedder"] == "minilm"]
        schemas.write(path, schema, schemas.table(schema, rows + more))
    report = tmp_path / "artifacts/score/toy/report.json"
    schemas.write_text(report, json.dumps({"absent_cells": {"mpnet/gone": "no such model"}}))
    cells = {run.cell: run for run in read_runs(tmp_path, from_mapping(study), "toy")
             if run.kind == "cell"}
    assert cells["toy/minilm/tiny"].params["reranker.model"] == "some/tiny"
    assert cells["toy/minilm/none"].params["reranker"] == "none"
    assert {cell: run.tags.get("absent_cell.gone") for cell, run in cells.items()} == {
        "toy/minilm/none": None, "toy/minilm/tiny": None, "toy/mpnet/none": "no such model"}
    with pytest.raises(InputError, match="reranker 'tiny', no entry"):
        read_runs(tmp_path, from_mapping(a_study()), "toy")


def test_only_a_registered_contrast_of_the_primary_cell_is_confirmatory(tmp_path: Path) -> None:
    runs = read_runs(tmp_path, a_project(tmp_path, standing="confirmatory"), "toy")
    found = {(run.kind, run.cell, run.name): run for run in runs
             if run.tags["standing"] == "confirmatory"}
    cell = "toy/mpnet/none"
    assert set(found) == {("cell", cell, "mpnet/none"), ("contrast", cell, "C2 = A3-A2")}
    contrast = found[("contrast", cell, "C2 = A3-A2")]
    assert contrast.tags["confirmatory_measures"] == "cov_ndcg@10"
    assert {run.tags["primary"] for run in runs if run.cell == cell} == {"true"}
    assert {run.tags["primary"] for run in runs if run.cell != cell} == {"false"}


def test_undefined_figures_are_counted_and_never_logged(tmp_path: Path) -> None:
    runs = read_runs(tmp_path, a_project(tmp_path), "toy")
    condition = next(run for run in runs if run.kind == "condition")
    # q7 is the only rewording and has no coverage@512: that mean alone is undefined.
    assert "rewordings/coverage_at_512" not in condition.metrics
    assert condition.metrics["undefined/rewordings/coverage_at_512"] == 1
    assert condition.metrics["undefined_figures"] == 1
    contrast = next(run for run in runs if run.name == "A2-A0")
    # Nine measures; all but nine figures of each are given.
    given = 9
    assert contrast.metrics["undefined_figures"] == 9 * (len(figures(schemas.CONTRASTS)) - given)
    assert "dz/mrr" not in contrast.metrics and "delta/mrr" in contrast.metrics


def test_settings_are_parameters(tmp_path: Path) -> None:
    runs = read_runs(tmp_path, a_project(tmp_path), "toy")
    run = next(r for r in runs if r.kind == "condition" and r.name == "A3" and "mpnet" in r.cell)
    expected = {
        "condition": "A3", "segmentation": "induced", "prefix": "path", "depth": "3",
        "retrieval": "flat", "chunking.cap_tokens": "350", "chunking.floor_tokens": "60",
        "tokens.tokenizer": "words", "embedder.name": "mpnet", "embedder.model": "some/mpnet",
        "embedder.query_prompt": "query: ", "reranker": "none", "retrieval.depth": "50",
        "inducer.section_tokens": "200", "prefixes.placebo.seed": "1",
    }
    assert {name: run.params.get(name) for name in expected} == expected


def test_the_language_model_is_a_parameter_where_it_was_asked(tmp_path: Path) -> None:
    a_project(tmp_path)

    def settings(**changes: object) -> dict[str, str]:
        study = a_study()
        study["corpora"]["toy"] |= changes
        return dict(read_runs(tmp_path, from_mapping(study), "toy")[0].params)

    plain, written = settings(), settings(questions="written")
    assert not any(name.startswith(("llm.", "writing.")) for name in plain)
    assert (written["llm.model"], written["writing.per_type"]) == ("m", "3")
    people = settings(questions="questions/toy.jsonl")
    assert "llm.model" not in people and people["writing.rouge_l"] == "0.35"
    assert settings(inducer="llm")["llm.seed"] == "1"


def test_the_lexical_cell_and_the_slope_over_depth(tmp_path: Path) -> None:
    a_project(tmp_path)
    study = a_study()
    study["conditions"]["BM25"] = {**study["conditions"]["A2"], "retrieval": "bm25"}
    lexical = {"embedder": "bm25", "condition": "BM25"}
    for folder, name, schema in (("score", "scores", schemas.SCORES),
                                 ("infer", "means", schemas.MEANS)):
        path = tmp_path / f"artifacts/{folder}/toy/{name}.parquet"
        rows = schemas.read(path, schema).to_pylist()
        more = [{**row, **lexical} for row in rows
                if (row["embedder"], row["condition"]) == ("minilm", "A0")]
        schemas.write(path, schema, schemas.table(schema, rows + more))
    path = tmp_path / "artifacts/infer/toy/contrasts.parquet"
    rows = schemas.read(path, schemas.CONTRASTS).to_pylist()
    dose = [{**row, "family": "dose", "name": "path depth", "a": "A3", "b": "A2"} for row in rows
            if (row["embedder"], row["name"]) == ("minilm", "C2")]
    schemas.write(path, schemas.CONTRASTS, schemas.table(schemas.CONTRASTS, rows + dose))

    runs = read_runs(tmp_path, from_mapping(study), "toy")
    top, condition = (run for run in runs if run.cell == "toy/bm25/none")
    assert (top.kind, condition.kind, condition.name) == ("cell", "condition", "BM25")
    assert (condition.params["embedder.k1"], condition.params["embedder.b"]) == ("1.2", "0.75")
    assert not any(tag.startswith("absent") for tag in top.tags)
    assert top.metrics["n_contrasts"] == 0 and top.tags["primary"] == "false"
    slope, = (run for run in runs if run.tags.get("family") == "dose")
    assert slope.name == "path depth = A3-A2"
    # It rests on every condition of the cell; its draws were not kept.
    cell = next(run for run in runs if run.cell == slope.cell)
    assert slope.tags["data_digest"] == cell.tags["data_digest"]
    assert "replicates.parquet" not in slope.artifacts


def test_connected_clusters_have_a_run_of_their_own_without_anothers_draws(tmp_path: Path) -> None:
    study = a_project(tmp_path)
    path = tmp_path / "artifacts/infer/toy/contrasts.parquet"
    rows = schemas.read(path, schemas.CONTRASTS).to_pylist()
    joined = [{**row, "family": "connected", "n_documents": 2} for row in rows
              if (row["name"], row["measure"]) == ("C2", "cov_ndcg@10")]
    schemas.write(path, schemas.CONTRASTS, schemas.table(schemas.CONTRASTS, rows + joined))
    found = {(run.cell, run.name): run for run in read_runs(tmp_path, study, "toy")}
    assert len(found) == RUNS + len(joined)
    plain = found["toy/mpnet/none", "C2 = A3-A2"]
    check = found["toy/mpnet/none", "C2 = A3-A2, connected clusters"]
    assert check.tags["family"] == "connected" and check.tags["standing"] == "exploratory"
    # The draws and the models of this name are of documents, not clusters.
    assert plain.artifacts.keys() - check.artifacts.keys() == {"replicates.parquet"}
    assert json.loads(str(plain.artifacts["mixed.json"]))["data"]
    assert not json.loads(str(check.artifacts["mixed.json"]))["data"]
    # Nor does a condition hold the same difference twice.
    condition = found["toy/mpnet/none", "A3"]
    assert not any(name.startswith("connected") for name in condition.metrics)


def test_a_contrast_within_a_type_of_question_is_told_from_the_whole(tmp_path: Path) -> None:
    study = a_project(tmp_path)
    path = tmp_path / "artifacts/infer/toy/contrasts.parquet"
    rows = schemas.read(path, schemas.CONTRASTS).to_pylist()
    typed = [{**row, "family": "type:factoid"} for row in rows
             if (row["embedder"], row["measure"]) == ("mpnet", "cov_ndcg@10")
             and row["name"] in ("C1", "C2")]
    schemas.write(path, schemas.CONTRASTS, schemas.table(schemas.CONTRASTS, rows + typed))
    found = {(run.cell, run.name): run for run in read_runs(tmp_path, study, "toy")}
    assert len(found) == RUNS + 1
    assert found["toy/mpnet/none", "C2 = A3-A2, type factoid"].tags["family"] == "type:factoid"
    top = found["toy/mpnet/none", "mpnet/none"]
    assert {name for name in top.tags if name.startswith("absent.")} == {
        "absent.C1", "absent.type.factoid.C1"
    }


def test_a_condition_holds_the_figures_of_its_contrasts(tmp_path: Path) -> None:
    runs = read_runs(tmp_path, a_project(tmp_path, standing="confirmatory"), "toy")
    here = {run.name: run for run in runs if run.cell == "toy/mpnet/none"}
    rows = schemas.read(
        tmp_path / "artifacts/infer/toy/contrasts.parquet", schemas.CONTRASTS
    ).to_pylist()
    row, = (r for r in rows if (r["embedder"], r["measure"], r["name"])
            == ("mpnet", "cov_ndcg@10", "C2"))
    # Every number of the row, whatever columns the table has.
    expected = {f"contrast/C2/{figure}": row[figure] for figure in figures(schemas.CONTRASTS)}
    expected.pop("contrast/C2/dz" if row["dz"] is None else "")
    for name in ("A3", "A2"):
        held = here[name].metrics
        assert {key: held[key] for key in held if key.startswith("contrast/")} == expected
    assert not any(name.startswith("contrast/") for name in here["A0"].metrics)
    assert here["A0"].metrics["step/A2-A0/delta"] == here["A2"].metrics["step/A2-A0/delta"]
    tags = {name: here[name].tags for name in CONDITIONS}
    assert {name: its["contrasts"] for name, its in tags.items()} == {
        "A0": "A2-A0", "A2": "A2-A0, C2", "A3": "C2"
    }
    assert {name: its["confirms"] for name, its in tags.items()} == {
        "A0": "none", "A2": "C2", "A3": "C2"
    }
    assert (tags["A3"]["contrast.C2.side"], tags["A2"]["contrast.C2.side"]) == ("a", "b")
    assert tags["A3"]["contrast.C2.interval"] == row["interval"]


def test_what_stands_beside_a_contrast_is_in_its_run(tmp_path: Path) -> None:
    runs = read_runs(tmp_path, a_project(tmp_path), "toy")
    contrast = next(run for run in runs if run.name == "C2 = A3-A2")
    measure = "cov_ndcg_at_10"
    assert contrast.metrics[f"bca_low/{measure}"] == -0.5
    assert contrast.metrics[f"documents_needed/{measure}"] == 300
    assert contrast.metrics[f"estimate/stacked/{measure}"] == 0.125
    assert f"estimate/paired/{measure}" not in contrast.metrics
    assert contrast.tags["cautions"] == contrast.tags[f"cautions.{measure}"] == "said; said too"
    assert contrast.tags["converged.paired"] == "true"
    shown = json.loads(str(contrast.artifacts["checks.json"]))
    assert shown["columns"] == schemas.CHECKS.columns.names and len(shown["data"]) == 1
    named = {item["path"] for item in json.loads(contrast.tags["mlflow.loggedArtifacts"])}
    assert named == {name for name in contrast.artifacts if name.endswith(".json")}


def test_differences_from_the_registration_are_in_every_run(tmp_path: Path) -> None:
    params = a_project(tmp_path)
    path = tmp_path / "artifacts/infer/toy/report.json"
    report = json.loads(path.read_text())
    report |= {"differences": ["seed: registered 1, ran 2", "x" * 7990], "registered_at": "abc"}
    path.write_text(json.dumps(report))
    for run in read_runs(tmp_path, params, "toy"):
        assert run.tags["n_differences"] == "2" and run.tags["registered_at"] == "abc"
        # Longer than a tag may be: whole differences only, and how many are left out.
        assert run.tags["differences"] == "seed: registered 1, ran 2\nand 1 more"


@given(st.lists(st.text(max_size=9), max_size=6), st.integers(11, 40))
def test_joined_texts_fit_and_lose_no_count(parts: list[str], most: int) -> None:
    text = joined(parts, most, " | ")
    assert len(text) <= most
    whole = " | ".join(parts)
    if len(whole) <= most:
        assert text == whole
    else:
        left = int(text.split()[-2])
        kept = parts[: len(parts) - left]
        assert text == " | ".join([*kept, f"and {left} more"]) and left > 0


def test_digests_say_what_is_the_same(tmp_path: Path) -> None:
    runs = read_runs(tmp_path, a_project(tmp_path), "toy")
    by_kind: dict[str, list[Run]] = {"cell": [], "condition": [], "contrast": []}
    for run in runs:
        by_kind[run.kind].append(run)
    assert len({run.tags["corpus_digest"] for run in runs}) == 1
    assert len({run.tags["cell_digest"] for run in runs}) == 2
    assert len({run.tags["condition_digest"] for run in by_kind["condition"]}) == 6
    assert len({run.tags["contrast_digest"] for run in by_kind["contrast"]}) == 4
    assert len({run.tags["data_digest"] for run in runs}) == RUNS


@pytest.mark.parametrize(("break_it", "message"), [
    (lambda root: (root / "artifacts/score/toy/scores.parquet").unlink(), "no such table"),
    (lambda root: (root / "artifacts/infer/toy/report.json").unlink(), "not there"),
    (lambda root: _rewrite(root, "means", schemas.MEANS, lambda r: r["condition"] != "A0"),
     "not of the same conditions"),
])
def test_results_that_do_not_fit_are_refused_before_anything_is_logged(
    tmp_path: Path, break_it: Any, message: str
) -> None:
    params = a_project(tmp_path)
    break_it(tmp_path)
    with pytest.raises(InputError, match=message):
        track(tmp_path, params)
    assert not (tmp_path / "mlruns").exists()


def _rewrite(root: Path, name: str, schema: schemas.Schema, keep: Any) -> None:
    path = root / f"artifacts/infer/toy/{name}.parquet"
    rows = [row for row in schemas.read(path, schema).to_pylist() if keep(row)]
    schemas.write(path, schema, schemas.table(schema, rows))


def test_results_of_what_params_do_not_name_are_refused(tmp_path: Path) -> None:
    a_project(tmp_path)
    study = a_study()
    del study["conditions"]["A0"], study["steps"]
    with pytest.raises(InputError, match=r"results of \['A0'\], no rows"):
        read_runs(tmp_path, from_mapping(study), "toy")
    study = a_study()
    del study["embedders"]["mpnet"]
    study["primary"]["embedder"] = "minilm"
    with pytest.raises(InputError, match="embedder 'mpnet', no entry"):
        read_runs(tmp_path, from_mapping(study), "toy")


def test_a_confirmatory_contrast_contradicts_an_exploratory_report(tmp_path: Path) -> None:
    params = a_project(tmp_path, standing="confirmatory")
    path = tmp_path / "artifacts/infer/toy/report.json"
    path.write_text(path.read_text().replace('"standing": "confirmatory"',
                                             '"standing": "exploratory"'))
    with pytest.raises(InputError, match="confirmatory though"):
        read_runs(tmp_path, params, "toy")


COLUMNS = st.fixed_dictionaries({
    "text": st.one_of(st.none(), st.text(max_size=3)),
    "number": st.one_of(st.none(), st.integers(-2, 2)),
    "share": st.one_of(st.none(), st.sampled_from([0.0, 0.1, 0.1 + 2**-56, 1.0])),
    "flag": st.one_of(st.none(), st.booleans()),
    "texts": st.one_of(st.none(), st.lists(st.text(max_size=2), max_size=2)),
})
TYPES = pa.schema([("text", pa.string()), ("number", pa.int64()), ("share", pa.float64()),
                   ("flag", pa.bool_()), ("texts", pa.list_(pa.string()))])


@settings(deadline=None)
@given(st.lists(COLUMNS, max_size=4), st.lists(COLUMNS, max_size=4), st.integers(0, 4))
def test_fingerprint_tells_tables_apart_as_its_twin_does(
    one: list[dict[str, Any]], other: list[dict[str, Any]], cut: int
) -> None:
    a, b = pa.Table.from_pylist(one, TYPES), pa.Table.from_pylist(other, TYPES)
    same = reference.fingerprint(a) == reference.fingerprint(b)
    assert (fingerprint(a) == fingerprint(b)) == same
    pieces = pa.concat_tables([a.slice(0, cut), a.slice(cut)])
    assert fingerprint(pieces) == fingerprint(a)


@settings(deadline=None)
@given(st.sampled_from(MEASURES), st.text())
def test_every_metric_name_is_one_that_mlflow_takes(measure: str, part: str) -> None:
    from mlflow.utils.validation import _validate_metric_name

    _validate_metric_name(metric_name(measure, f"type:{part}"))
    assert metric_name(measure) == measure.replace("@", "_at_")
