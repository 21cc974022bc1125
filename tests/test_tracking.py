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

from spanwise import layout, schemas
from spanwise.errors import InputError, Unavailable
from spanwise.params import MEASURES, Params
from spanwise.tracking import Summary, metric_name, track, ui_command
from spanwise.tracking import store as store_room
from spanwise.tracking.place import ENVIRONMENT, place, prepare
from spanwise.tracking.runs import read_runs

from .tracking_world import CONDITIONS, MISSING, PAIRS, RUNS, a_project, client_of

ROOT = Path(__file__).resolve().parents[1]


@pytest.fixture(autouse=True)
def _quiet(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("MLFLOW_TRACKING_URI", raising=False)
    for name, value in ENVIRONMENT.items():
        monkeypatch.setenv(name, value)


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
            command, cwd=folder, env=environment, stdout=stream,
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
        port = free_port()
        command = ui_command(project, port)
    with serving(command, folder, port) as address:
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
    # (4 + 60 slices) x 9 measures x (mean, n_questions, undefined), less one undefined mean, the
    # count of those, and nine figures of the step that it is a side of.
    assert len(run.data.metrics) == 64 * 9 * 3 - 1 + 1 + 9


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
    # Minilm's cell, its A0, its A2-A0 and A2, which holds the figures of A2-A0; the others stand.
    assert track(tmp_path, changed, uri) == Summary(4, RUNS - 4, superseded=4)
    current = runs_of(uri, "moved", CURRENT)
    new = {run.info.run_id: run for run in current if run.info.run_id not in before}
    rested = ["A0", "A2", "A2-A0", "minilm/none"]
    assert sorted(run.info.run_name for run in new.values()) == rested
    former = runs_of(uri, "moved", "tags.`spanwise.superseded` = 'true'")
    assert sorted(run.info.run_name for run in former) == rested
    assert {run.info.run_id for run in former} < before

    # Unchanged runs of that cell move below its new run.
    top, = (run for run in current if run.info.run_name == "minilm/none")
    children = [run for run in current if run.data.tags["cell"] == "moved/minilm/none"
                and run is not top]
    assert {run.data.tags["mlflow.parentRunId"] for run in children} == {top.info.run_id}
    assert len(children) == 5

    restored = a_project(tmp_path, "moved")
    assert track(tmp_path, restored, uri) == Summary(0, RUNS, superseded=4)
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

    # Four tables of the cell, two of A0: the second of A0's is never written.
    monkeypatch.setattr(store_room.schemas, "write", interrupted)
    with pytest.raises(KeyboardInterrupt):
        track(tmp_path, params, uri)
    monkeypatch.undo()
    assert [run.info.status for run in runs_of(uri, "broken")].count("RUNNING") == 1
    assert track(tmp_path, params, uri) == Summary(RUNS - 1, 1, repaired=1)
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
        assert track(root, params).added == 4
        folders = [p for p in (root / "mlruns/artifacts/toy").iterdir() if p.is_dir()]
        assert len(folders) == RUNS + 4
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
