"""Results -> MLflow, against a SQLite store and a real `mlflow server`."""

from __future__ import annotations

import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from spanwise import layout, schemas
from spanwise.errors import InputError, Unavailable
from spanwise.params import MEASURES, Params, from_mapping
from spanwise.tracking import Summary, metric_name, track, ui_command
from spanwise.tracking import store as store_room
from spanwise.tracking.place import ENVIRONMENT, place, prepare
from spanwise.tracking.runs import Run, fingerprint, read_runs

from . import reference_tracking as reference

ROOT = Path(__file__).resolve().parents[1]
CONDITIONS = ("A0", "A2", "A3")
EMBEDDERS = ("minilm", "mpnet")
PAIRS = {"A2-A0": ("step", "A2", "A0"), "C2": ("contrast", "A3", "A2")}
RUNS = len(EMBEDDERS) * (1 + len(CONDITIONS) + len(PAIRS))
"""2 cells x (its own run + 3 conditions + 2 contrasts) = 12."""
MISSING = "contexts need a language model"


@pytest.fixture(autouse=True)
def _quiet(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("MLFLOW_TRACKING_URI", raising=False)
    for name, value in ENVIRONMENT.items():
        monkeypatch.setenv(name, value)


def a_study(corpus: str = "toy") -> dict[str, Any]:
    """params.yaml of a study with four conditions, one of them without results."""
    model = {"pooling": "mean"}
    return {
        "corpora": {corpus: {"reader": "text", "path": f"data/{corpus}", "demonstration": True}},
        "embedders": {"minilm": {"model": "some/minilm", **model},
                      "mpnet": {"model": "some/mpnet", "query_prompt": "query: ", **model}},
        "tokens": {"tokenizer": "words"},
        "chunking": {"cap_tokens": 350, "floor_tokens": 60},
        "inducers": {"segmenter": {"embedder": "minilm", "levels": 3, "section_tokens": 200}},
        "prefixes": {"placebo": {"depth": 3, "seed": 1}},
        "retrieval": {"depth": 50, "sections": 5, "bm25": {"k1": 1.2, "b": 0.75}},
        "conditions": {
            "A0": {"segmentation": "fixed", "prefix": "none", "depth": 0, "retrieval": "flat"},
            "A1": {"segmentation": "fixed", "prefix": "context", "depth": 0, "retrieval": "flat"},
            "A2": {"segmentation": "induced", "prefix": "none", "depth": 0, "retrieval": "flat"},
            "A3": {"segmentation": "induced", "prefix": "path", "depth": 3, "retrieval": "flat"},
        },
        "contrasts": {"C1": ["A3", "A1"], "C2": ["A3", "A2"]},
        "steps": {"A2-A0": ["A2", "A0"]},
        "primary": {"measure": "cov_ndcg@10", "embedder": "mpnet", "reranker": "none"},
        "inference": {"iterations": 50, "seed": 7, "margin": 0.01},
    }


def score_rows(changed: dict[tuple[str, str, str], float]) -> list[dict[str, Any]]:
    """Eight questions over three documents; q7 rewords q0, and has no coverage@512."""
    rows = []
    for e, embedder in enumerate(EMBEDDERS):
        for c, condition in enumerate(CONDITIONS):
            for q in range(8):
                question = f"q{q}"
                start = 3 * e + 5 * c + 7 * q
                values = {m: (start + k) % 11 / 10 for k, m in enumerate(MEASURES)}
                values["cov_ndcg@10"] = changed.get(
                    (embedder, condition, question), values["cov_ndcg@10"]
                )
                rows.append({
                    "embedder": embedder, "reranker": "none", "condition": condition,
                    "question_id": question, "doc_id": f"d{q % 3}",
                    "type": "factoid" if q % 2 else "multihop", "rewording": q == 7,
                    **values, "coverage@512": None if q == 7 else values["coverage@512"],
                })
    return rows


def mean_rows(scores: list[dict[str, Any]]) -> list[dict[str, Any]]:
    slices = {
        "primary": lambda row: not row["rewording"],
        "rewordings": lambda row: row["rewording"],
        "type:factoid": lambda row: not row["rewording"] and row["type"] == "factoid",
        "type:multihop": lambda row: not row["rewording"] and row["type"] == "multihop",
    }
    rows = []
    for embedder in EMBEDDERS:
        for condition in CONDITIONS:
            its = [r for r in scores if (r["embedder"], r["condition"]) == (embedder, condition)]
            for part, holds in slices.items():
                for measure in MEASURES:
                    listed = [row[measure] for row in its if holds(row)]
                    values = [value for value in listed if value is not None]
                    rows.append({
                        "embedder": embedder, "reranker": "none", "condition": condition,
                        "slice": part, "measure": measure, "n_questions": len(values),
                        "undefined": len(listed) - len(values),
                        "mean": fmean(values) if values else None,
                    })
    return rows


def contrast_rows(
    scores: list[dict[str, Any]], standing: str
) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """Figures and draws: an input to tracking, so the draws are merely plausible."""
    rows, draws = [], []
    for embedder in EMBEDDERS:
        for measure in MEASURES:
            cell = {"embedder": embedder, "reranker": "none", "measure": measure}
            empty = dict.fromkeys(("mean_a", "mean_b", "delta", "ci_low", "ci_high", "p", "dz",
                                   "p_holm"))
            rows.append({
                **cell, "family": "contrast", "name": "C1", "a": "A3", "b": "A1",
                "standing": "exploratory", "status": "absent", "reason": f"A1: {MISSING}",
                "n_questions": 0, "n_documents": 0, "excluded": 0, **empty,
            })
            for name, (family, a, b) in PAIRS.items():
                sides = [
                    [row[measure] for row in scores
                     if (row["embedder"], row["condition"]) == (embedder, condition)
                     and not row["rewording"]]
                    for condition in (a, b)
                ]
                delta = fmean(sides[0]) - fmean(sides[1])
                drawn = np.random.default_rng(3).normal(delta, 0.1, 50)
                primary = (embedder, measure, family) == ("mpnet", "cov_ndcg@10", "contrast")
                rows.append({
                    **cell, "family": family, "name": name, "a": a, "b": b,
                    "standing": standing if primary else "exploratory", "status": "estimated",
                    "reason": None, "n_questions": 7, "n_documents": 3, "excluded": 0,
                    "mean_a": fmean(sides[0]), "mean_b": fmean(sides[1]), "delta": delta,
                    "ci_low": float(np.percentile(drawn, 2.5)),
                    "ci_high": float(np.percentile(drawn, 97.5)), "p": 0.5, "dz": None,
                    "p_holm": 1.0 if primary else None,
                })
                if measure == "cov_ndcg@10":
                    draws += [{**cell, "name": name, "draw": i, "delta": float(value)}
                              for i, value in enumerate(drawn)]
    return rows, draws


def a_project(
    root: Path, corpus: str = "toy", changed: dict[tuple[str, str, str], float] | None = None,
    standing: str = "exploratory",
) -> Params:
    """The artifacts of a finished study, and its params.yaml, in `root`."""
    study = a_study(corpus)
    schemas.write_text(root / "params.yaml", yaml.safe_dump(study))
    scores = score_rows(changed or {})
    contrasts, draws = contrast_rows(scores, standing)
    infer, score = root / layout.stage("infer", corpus), root / layout.stage("score", corpus)
    for path, schema, rows in (
        (score / "scores.parquet", schemas.SCORES, scores),
        (infer / "means.parquet", schemas.MEANS, mean_rows(scores)),
        (infer / "contrasts.parquet", schemas.CONTRASTS, contrasts),
        (infer / "replicates.parquet", schemas.REPLICATES, draws),
    ):
        schemas.write(path, schema, schemas.table(schema, rows))
    reports = {
        infer: {
            "corpus": corpus, "demonstration": True, "standing": standing,
            "differences": ["not registered"], "exclusions": {"no-answer": 4, "headings only": 1},
            "registered_at": None, "bm25_gold_first": {"share": 0.5},
            "digests": {"documents": "d" * 64, "questions": "e" * 64},
        },
        root / layout.stage("label", corpus): {"absent": {"fixed-context-0": MISSING}},
    }
    for folder, report in reports.items():
        schemas.write_text(folder / "report.json", json.dumps(report))
    return from_mapping(study)


def free_port() -> int:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        port: int = listener.getsockname()[1]
        return port


@contextmanager
def serving(command: list[str], folder: Path, port: int) -> Iterator[str]:
    """A server in a process group of its own, until it answers; its group ends with the block."""
    environment = {**os.environ, **ENVIRONMENT, "MLFLOW_SERVER_ENABLE_JOB_EXECUTION": "false"}
    log = folder / "server.log"
    with log.open("wb") as stream:
        process = subprocess.Popen(
            [*command, "--port", str(port)], cwd=folder, env=environment, stdout=stream,
            stderr=subprocess.STDOUT, start_new_session=True,
        )
        try:
            address = f"http://127.0.0.1:{port}"
            for _ in range(600):
                assert process.poll() is None, log.read_text()
                try:
                    with urllib.request.urlopen(f"{address}/health", timeout=5) as answer:
                        assert answer.status == 200
                    break
                except (urllib.error.URLError, TimeoutError, ConnectionError):
                    time.sleep(0.2)
            else:
                pytest.fail(f"no answer in 120 s:\n{log.read_text()}")
            yield address
        finally:
            os.killpg(process.pid, signal.SIGTERM)
            try:
                process.wait(20)
            except subprocess.TimeoutExpired:
                os.killpg(process.pid, signal.SIGKILL)
                process.wait()


@pytest.fixture(scope="module")
def blank(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An empty database as MLflow makes it, to be copied: its hundred tables take a while."""
    path = tmp_path_factory.mktemp("blank") / "mlflow.db"
    client_of(f"sqlite:///{path}").search_experiments()
    return path


@pytest.fixture(scope="module")
def served(
    tmp_path_factory: pytest.TempPathFactory, blank: Path
) -> Iterator[tuple[str, Path]]:
    """A tracked project that has moved since, and the server that `make ui` starts there."""
    folder = tmp_path_factory.mktemp("served")
    former, project = folder / "former", folder / "project"
    params = a_project(former)
    copy_to(former / "mlruns", blank)
    with pytest.MonkeyPatch.context() as patch:
        patch.delenv("MLFLOW_TRACKING_URI", raising=False)
        track(former, params)
        former.rename(project)
        command = ui_command(project)
    with serving(command, folder, free_port()) as address:
        yield address, project


def copy_to(folder: Path, blank: Path) -> str:
    folder.mkdir(parents=True)
    shutil.copy(blank, folder / "mlflow.db")
    return f"sqlite:///{folder / 'mlflow.db'}"


STORES = ["sqlite", pytest.param("server", marks=pytest.mark.slow)]


def store_of(request: pytest.FixtureRequest, folder: Path) -> str:
    if request.param == "server":
        address: str = request.getfixturevalue("served")[0]
        return address
    return copy_to(folder / "store", request.getfixturevalue("blank"))


@pytest.fixture(params=STORES)
def uri(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """A SQLite store or a real server: what follows holds for both."""
    return store_of(request, tmp_path)


@dataclass(frozen=True)
class Tracked:
    """A store that holds corpus `held`, to be read only, and its first summary."""

    uri: str
    root: Path
    params: Params
    summary: Summary


@pytest.fixture(scope="module", params=STORES)
def tracked(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Tracked:
    root = tmp_path_factory.mktemp("held")
    uri, params = store_of(request, root), a_project(root, "held", standing="confirmatory")
    return Tracked(uri, root, params, track(root, params, uri))


def client_of(uri: str) -> Any:
    from mlflow import MlflowClient

    return MlflowClient(tracking_uri=uri)


def runs_of(uri: str, corpus: str, condition: str = "") -> list[Any]:
    client = client_of(uri)
    experiment = client.get_experiment_by_name(f"spanwise/{corpus}")
    found: list[Any] = list(client.search_runs(
        [experiment.experiment_id], condition, order_by=["attributes.run_id ASC"]
    ))
    return found


CURRENT = "tags.`spanwise.superseded` = 'false'"


def download(uri: str, run: Any, name: str, folder: Path) -> Path:
    target = folder / run.info.run_id
    target.mkdir(parents=True, exist_ok=True)
    return Path(client_of(uri).download_artifacts(run.info.run_id, name, str(target)))


# What a run holds ------------------------------------------------------------------------------


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
    # dz and p_holm of each of nine measures.
    assert contrast.metrics["undefined_figures"] == 18
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
    assert set(slope.artifacts) == {"contrasts.parquet"}


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
})
TYPES = pa.schema([("text", pa.string()), ("number", pa.int64()), ("share", pa.float64()),
                   ("flag", pa.bool_())])


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


# What MLflow then has --------------------------------------------------------------------------


def test_a_second_call_adds_nothing(tracked: Tracked) -> None:
    assert tracked.summary == Summary(added=RUNS, kept=0)
    first = [run.to_dictionary() for run in runs_of(tracked.uri, "held")]
    again = track(tracked.root, tracked.params, tracked.uri)
    assert again == Summary(added=0, kept=RUNS)
    assert [run.to_dictionary() for run in runs_of(tracked.uri, "held")] == first
    assert len(first) == RUNS


def test_every_run_holds_all_that_it_should(tracked: Tracked) -> None:
    wanted = {run.content(): run for run in read_runs(tracked.root, tracked.params, "held")}
    found = {run.data.tags["spanwise.content"]: run for run in runs_of(tracked.uri, "held")}
    assert found.keys() == wanted.keys()
    client = client_of(tracked.uri)
    for content, run in wanted.items():
        data = found[content].data
        assert (data.params, data.metrics) == (run.params, run.metrics)
        assert data.tags.items() >= run.tags.items()
        artifacts = client.list_artifacts(found[content].info.run_id)
        assert {artifact.path for artifact in artifacts} == run.artifacts.keys()


def test_more_figures_than_mlflow_takes_at_once(tmp_path: Path, blank: Path) -> None:
    params, uri = a_project(tmp_path), copy_to(tmp_path / "store", blank)
    path = tmp_path / "artifacts/infer/toy/means.parquet"
    rows = schemas.read(path, schemas.MEANS).to_pylist()
    more = [{**row, "slice": f"type:{i}"} for i in range(60) for row in rows
            if (row["embedder"], row["condition"], row["slice"]) == ("minilm", "A0", "primary")]
    schemas.write(path, schemas.MEANS, schemas.table(schemas.MEANS, rows + more))
    assert track(tmp_path, params, uri).added == RUNS
    run, = runs_of(uri, "toy", "tags.condition = 'A0' and tags.cell = 'toy/minilm/none'")
    # (4 + 60 slices) x 9 measures x (mean, n_questions, undefined), less one undefined mean, and
    # the count of those.
    assert len(run.data.metrics) == 64 * 9 * 3 - 1 + 1


def test_runs_hold_the_results_and_lie_below_their_cell(tracked: Tracked, tmp_path: Path) -> None:
    uri, root = tracked.uri, tracked.root
    cell = "held/mpnet/none"
    top, = runs_of(uri, "held", f"tags.kind = 'cell' and tags.cell = '{cell}'")
    below = runs_of(uri, "held", f"tags.`mlflow.parentRunId` = '{top.info.run_id}'")
    assert len(below) == len(CONDITIONS) + len(PAIRS)
    assert {run.info.status for run in [top, *below]} == {"FINISHED"}

    condition, = (run for run in below if run.data.tags.get("condition") == "A2")
    assert condition.info.run_name == "A2"
    found = schemas.read(download(uri, condition, "scores.parquet", tmp_path), schemas.SCORES)
    stored = schemas.read(root / layout.stage("score", "held") / "scores.parquet", schemas.SCORES)
    rows = [r for r in stored.to_pylist() if (r["embedder"], r["condition"]) == ("mpnet", "A2")]
    assert found.to_pylist() == rows and len(rows) == 8
    for measure in MEASURES:
        values = [row[measure] for row in rows if not row["rewording"]]
        # The same double, through the database and back.
        assert condition.data.metrics[metric_name(measure)] == fmean(values)
    factoid = [row["mrr"] for row in rows if row["question_id"] in ("q1", "q3", "q5")]
    assert condition.data.metrics["type/factoid/mrr"] == fmean(factoid)
    assert condition.data.metrics["n_questions/primary/mrr"] == 7
    assert condition.data.params["segmentation"] == "induced"

    contrast, = (run for run in below if run.data.tags.get("contrast") == "C2")
    draws = schemas.read(download(uri, contrast, "replicates.parquet", tmp_path),
                         schemas.REPLICATES)
    kept = schemas.read(root / layout.stage("infer", "held") / "replicates.parquet",
                        schemas.REPLICATES)
    assert draws.to_pylist() == [
        row for row in kept.to_pylist() if (row["embedder"], row["name"]) == ("mpnet", "C2")
    ]
    assert draws.num_rows == 50
    low = float(np.percentile(draws["delta"].to_numpy(), 2.5))
    assert contrast.data.metrics["ci_low/cov_ndcg_at_10"] == low

    assert top.data.tags["absent.C1"] == f"A1: {MISSING}"
    report = json.loads(download(uri, top, "report.json", tmp_path).read_text())
    assert report["exclusions"] == {"no-answer": 4, "headings only": 1}


@pytest.mark.parametrize(("condition", "count"), [
    (CURRENT, RUNS), ("tags.corpus = 'held'", RUNS), ("tags.kind = 'cell'", 2),
    ("tags.kind = 'condition'", 6), ("tags.kind = 'contrast'", 4), ("tags.condition = 'A3'", 2),
    ("tags.contrast = 'C2' and tags.standing = 'confirmatory'", 1), ("tags.family = 'step'", 2),
    ("tags.demonstration = 'true'", RUNS), ("tags.demonstration = 'false'", 0),
    ("tags.primary = 'true'", 6), (f"tags.`absent.C1` = 'A1: {MISSING}'", 2),
    ("params.`chunking.cap_tokens` = '350' and params.depth = '3'", 2),
    ("metrics.cov_ndcg_at_10 >= 0", 6), ("metrics.`delta/cov_ndcg_at_10` > -2", 4),
])
def test_runs_can_be_searched(tracked: Tracked, condition: str, count: int) -> None:
    assert len(runs_of(tracked.uri, "held", condition)) == count


def test_changed_results_supersede_what_rests_on_them_and_may_come_back(
    tmp_path: Path, uri: str
) -> None:
    track(tmp_path, a_project(tmp_path, "moved"), uri)
    before = {run.info.run_id for run in runs_of(uri, "moved")}
    changed = a_project(tmp_path, "moved", {("minilm", "A0", "q2"): 0.05})
    # Minilm's cell, its A0 and its A2-A0; the other nine stand.
    assert track(tmp_path, changed, uri) == Summary(3, RUNS - 3, superseded=3)
    current = runs_of(uri, "moved", CURRENT)
    new = {run.info.run_id: run for run in current if run.info.run_id not in before}
    assert sorted(run.info.run_name for run in new.values()) == ["A0", "A2-A0", "minilm/none"]
    former = runs_of(uri, "moved", "tags.`spanwise.superseded` = 'true'")
    assert sorted(run.info.run_name for run in former) == ["A0", "A2-A0", "minilm/none"]
    assert {run.info.run_id for run in former} < before

    # Unchanged runs of that cell move below its new run.
    top, = (run for run in current if run.info.run_name == "minilm/none")
    children = [run for run in current if run.data.tags["cell"] == "moved/minilm/none"
                and run is not top]
    assert {run.data.tags["mlflow.parentRunId"] for run in children} == {top.info.run_id}
    assert len(children) == 5

    restored = a_project(tmp_path, "moved")
    assert track(tmp_path, restored, uri) == Summary(0, RUNS, superseded=3)
    assert {run.info.run_id for run in runs_of(uri, "moved", CURRENT)} == before
    assert track(tmp_path, restored, uri) == Summary(0, RUNS)


def test_an_interrupted_call_is_finished_by_the_next(
    tmp_path: Path, uri: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    params = a_project(tmp_path, "broken")
    written, write = [], schemas.write

    def interrupted(path: Path, schema: schemas.Schema, found: pa.Table) -> None:
        if len(written) == 5:
            raise KeyboardInterrupt
        written.append(path)
        write(path, schema, found)

    # Two tables for each of cell, A0 and A2: the sixth, the second of A2's, is never written.
    monkeypatch.setattr(store_room.schemas, "write", interrupted)
    with pytest.raises(KeyboardInterrupt):
        track(tmp_path, params, uri)
    monkeypatch.undo()
    assert [run.info.status for run in runs_of(uri, "broken")].count("RUNNING") == 1
    assert track(tmp_path, params, uri) == Summary(RUNS - 2, 2, repaired=1)
    found = runs_of(uri, "broken")
    assert len(found) == RUNS and {run.info.status for run in found} == {"FINISHED"}
    assert track(tmp_path, params, uri) == Summary(0, RUNS)


def test_a_run_that_lacks_its_last_mark_is_made_anew(tmp_path: Path, uri: str) -> None:
    params = a_project(tmp_path, "marks")
    track(tmp_path, params, uri)
    client = client_of(uri)
    top, = runs_of(uri, "marks", "tags.cell = 'marks/minilm/none' and tags.kind = 'cell'")
    child = runs_of(uri, "marks", "tags.condition = 'A3'")[0]
    client.update_run(top.info.run_id, status="RUNNING")
    client.delete_tag(child.info.run_id, "spanwise.content")
    assert track(tmp_path, params, uri) == Summary(2, RUNS - 2, repaired=2)
    found = runs_of(uri, "marks")
    assert len(found) == RUNS and not {top.info.run_id, child.info.run_id} & {
        run.info.run_id for run in found
    }
    parents = {run.data.tags["mlflow.parentRunId"] for run in found
               if run.data.tags["kind"] != "cell"}
    assert parents == {run.info.run_id for run in found if run.data.tags["kind"] == "cell"}


def test_runs_of_others_and_deleted_experiments(tmp_path: Path, blank: Path) -> None:
    uri = copy_to(tmp_path / "store", blank)
    params = a_project(tmp_path)
    track(tmp_path, params, uri)
    client = client_of(uri)
    experiment = client.get_experiment_by_name("spanwise/toy").experiment_id
    foreign = client.create_run(experiment, run_name="a note").info.run_id
    assert track(tmp_path, params, uri) == Summary(0, RUNS)
    assert client.get_run(foreign).info.lifecycle_stage == "active"
    client.delete_experiment(experiment)
    assert track(tmp_path, params, uri) == Summary(0, RUNS)
    assert client.get_experiment(experiment).lifecycle_stage == "active"


# Where the store lies --------------------------------------------------------------------------


def test_the_project_keeps_its_store_and_survives_a_move(tmp_path: Path, blank: Path) -> None:
    old, new = tmp_path / "old", tmp_path / "a new place #1 100%20"
    params = a_project(old)
    copy_to(old / "mlruns", blank)
    track(old, params)
    assert sorted(p.name for p in (old / "mlruns").iterdir()) == ["artifacts", "mlflow.db"]
    copy = tmp_path / "copy"
    shutil.copytree(old, copy)
    old.rename(new)
    for root in (new, copy):
        assert track(root, params) == Summary(0, RUNS)
        uri = place(root).uri
        run, = runs_of(uri, "toy", "tags.condition = 'A0' and tags.cell = 'toy/mpnet/none'")
        got = download(uri, run, "scores.parquet", tmp_path / f"from {root.name}")
        assert schemas.read(got, schemas.SCORES).num_rows == 8
        assert run.info.artifact_uri.startswith((root / "mlruns" / "artifacts").as_uri() + "/")
        # New runs lie at the new place too.
        a_project(root, changed={("mpnet", "A0", "q1"): 0.07})
        assert track(root, params).added == 3
        folders = [p for p in (root / "mlruns/artifacts/toy").iterdir() if p.is_dir()]
        assert len(folders) == RUNS + 3
    assert not old.exists()


def test_mending_leaves_artifacts_of_others_alone(tmp_path: Path, blank: Path) -> None:
    copy_to(tmp_path / "mlruns", blank)
    track(tmp_path, a_project(tmp_path))
    client = client_of(place(tmp_path).uri)
    elsewhere = client.create_experiment("other", artifact_location="file:///somewhere/other")
    shutil.move(tmp_path / "mlruns", tmp_path / "moved")
    uri = f"sqlite:///{tmp_path / 'moved' / 'mlflow.db'}"
    prepare(place(tmp_path, uri))
    after = client_of(uri)
    assert after.get_experiment(elsewhere).artifact_location == "file:///somewhere/other"
    here = (tmp_path / "moved" / "artifacts" / "toy").as_uri()
    assert after.get_experiment_by_name("spanwise/toy").artifact_location == here


def test_the_environment_names_another_store(
    tmp_path: Path, blank: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    uri = copy_to(tmp_path / "elsewhere", blank)
    monkeypatch.setenv("MLFLOW_TRACKING_URI", uri)
    assert track(tmp_path, a_project(tmp_path)).added == RUNS
    assert not (tmp_path / "mlruns").exists()
    assert (tmp_path / "elsewhere" / "artifacts" / "toy").is_dir()
    found = place(tmp_path, "https://someone:secret@host.example/x")
    assert found.shown == "https://host.example/x" and found.artifacts is None
    monkeypatch.setenv("MLFLOW_TRACKING_URI", "http://host.example")
    with pytest.raises(InputError, match="its own page"):
        ui_command(tmp_path)


@pytest.mark.parametrize("uri", ["mlruns", "file:///tmp/mlruns", "sqlite://", "sqlite:///:memory:"])
def test_a_uri_that_cannot_keep_runs_is_refused(tmp_path: Path, uri: str) -> None:
    with pytest.raises(InputError, match="tracking URI"):
        track(tmp_path, a_project(tmp_path), uri)


def test_a_file_that_is_no_database_is_refused(tmp_path: Path) -> None:
    params = a_project(tmp_path)
    schemas.write_text(tmp_path / "mlruns" / "mlflow.db", "no database, but text of some length\n")
    with pytest.raises(InputError, match="expected MLflow's SQLite database"):
        track(tmp_path, params)


def test_a_server_that_is_down_is_unavailable(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MLFLOW_HTTP_REQUEST_MAX_RETRIES", "0")
    with pytest.raises(Unavailable, match=r"no MLflow store at http://127\.0\.0\.1"):
        track(tmp_path, a_project(tmp_path), f"http://127.0.0.1:{free_port()}")


def stage(root: Path, cwd: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, str(ROOT / "stages" / "track.py"), "--root", str(root)],
        cwd=cwd, capture_output=True, text=True, check=False,
    )


def test_the_stage_prints_one_line_and_leaves_nothing_else(tmp_path: Path) -> None:
    root, cwd = tmp_path / "project", tmp_path / "cwd"
    cwd.mkdir()
    a_project(root)
    # A file that would turn MLflow's own default to its refused file store.
    schemas.write_text(root / "mlruns" / ".gitignore", "*\n!.gitignore\n")
    first, second = stage(root, cwd), stage(root, cwd)
    assert (first.returncode, first.stdout) == (0, f"added {RUNS} runs, kept 0\n"), first.stderr
    assert (second.returncode, second.stdout) == (0, f"added 0 runs, kept {RUNS}\n"), second.stderr
    assert list(cwd.iterdir()) == []
    assert {p.name for p in (root / "mlruns").iterdir()} == {".gitignore", "artifacts", "mlflow.db"}
    assert not list((root / "mlruns").rglob("meta.yaml"))
    (root / layout.stage("infer", "toy") / "means.parquet").unlink()
    third = stage(root, cwd)
    assert third.returncode == 2 and third.stderr.startswith("track: ")


@pytest.mark.slow
def test_the_page_serves_a_project_that_has_moved(served: tuple[str, Path], tmp_path: Path) -> None:
    address, project = served
    with urllib.request.urlopen(f"{address}/", timeout=30) as page:
        assert b"<title>MLflow</title>" in page.read()
    run, = runs_of(address, "toy", "tags.condition = 'A0' and tags.primary = 'true'")
    assert run.info.artifact_uri.startswith((project / "mlruns/artifacts/toy").as_uri())
    query = f"{address}/get-artifact?path=scores.parquet&run_uuid={run.info.run_id}"
    with urllib.request.urlopen(query, timeout=30) as answer:
        (tmp_path / "scores.parquet").write_bytes(answer.read())
    assert schemas.read(tmp_path / "scores.parquet", schemas.SCORES).num_rows == 8
