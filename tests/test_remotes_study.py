"""A whole study shared through real servers, with secrets planted wherever a person keeps them.

One toy study runs once: a language model behind a key, MLflow's server behind a password. Then each
kind of remote takes it, and a second clone has nothing left to run.
"""

from __future__ import annotations

import json
import re
import shutil
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
import yaml

from spanwise import schemas

from . import llm_world
from .remotes_world import call, clone, commit, connect
from .servers import HOST, KINDS, SECRETS, USER, bucket, free_port, module, running
from .test_pipeline import make_project, ran
from .test_tracking import ENVIRONMENT as MLFLOW

pytestmark = [pytest.mark.system, pytest.mark.slow]

VARIABLE = "SPANWISE_PLANTED_KEY"
PLANTED = {
    **SECRETS, "language model": "planted-llm-d41c7be6a0", "mlflow": "planted-mlflow-58f20c9b3e",
}
SAID = (
    "This passage of the manual stands near its beginning; a lighthouse keeper would look here "
    "first, since it tells in plain words which part is meant, what the reader has to do with it, "
    "and when. It belongs to one of three sections of the same length, and says nothing of others."
)


@dataclass
class Shared:
    """project: a finished study. said: what every command of these tests printed."""

    folder: Path
    project: Path
    environment: dict[str, str]
    said: list[str] = field(default_factory=list)

    def does(self, folder: Path, *command: str, **environment: str) -> str:
        done = call(folder, *command, **{**self.environment, **environment})
        self.said.append(done.stdout + done.stderr)
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout


def answers(handler: llm_world.Handler, _: dict[str, Any]) -> None:
    """A language model that wants its key, and a first time breaks down and repeats it."""
    given = handler.headers.get("Authorization", "")
    first = not getattr(handler.server, "broke", False)
    handler.server.broke = True  # type: ignore[attr-defined]
    if given != f"Bearer {PLANTED['language model']}":
        handler.reply({"error": {"message": "a wrong key"}}, 401)
    elif first:
        handler.reply({"error": {"message": f"no luck with {given}"}}, 500)
    else:
        handler.reply(llm_world.completion(json.dumps({"context": SAID})))


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory, blank: Path) -> Iterator[Shared]:
    for package in ("dvc_s3", "dvc_ssh", "dvc_webdav"):
        module(package, package)
    folder = tmp_path_factory.mktemp("shared")
    project = make_project(folder / "project")
    port, store = free_port(), folder / "mlflow"
    store.mkdir()
    shutil.copy(blank, store / "mlflow.db")
    command = [
        sys.executable, "-m", "mlflow", "server", "--host", HOST, "--port", str(port),
        "--workers", "1", "--backend-store-uri", f"sqlite:///{store / 'mlflow.db'}",
        "--artifacts-destination", (store / "artifacts").as_uri(), "--serve-artifacts",
    ]
    with (
        llm_world.world(answers) as model,
        running(command, port, store / "server.log", **MLFLOW,
                MLFLOW_SERVER_ENABLE_JOB_EXECUTION="false"),
    ):
        settings = yaml.safe_load((project / "params.yaml").read_text())
        settings["corpora"]["toy"] |= {"contexts": True, "units": False}
        settings["llm"]["model"] = "m"
        settings["server"] |= {"base_url": model.url, "api_key_variable": VARIABLE,
                               "concurrency": 2}
        (project / "params.yaml").write_text(yaml.safe_dump(settings, sort_keys=False))
        found = Shared(folder, project, {
            VARIABLE: PLANTED["language model"],
            "MLFLOW_TRACKING_URI": f"http://{USER}:{PLANTED['mlflow']}@{HOST}:{port}",
        })
        (project / ".gitignore").write_text("/artifacts\n/reports\n/mlruns\n/data\n")
        found.does(project, "dvc", "add", "-q", "data")
        found.does(project, "dvc", "repro", SPANWISE_WORKERS="2")
        commit(project)
        yield found


@pytest.fixture
def paths() -> list[str]:
    """What a person who pulls must have, by the words of the study."""
    return [
        "data/toy/tides.md",  # corpora
        "artifacts/induce/toy/sections.parquet",  # trees
        "artifacts/label/toy/labels.parquet",  # generations
        "artifacts/embed/toy/minilm",  # vectors
        "artifacts/index/toy/minilm", "artifacts/retrieve/toy/minilm/runs.parquet",
        "reports/report.html",
    ]


@pytest.mark.parametrize("kind", list(KINDS))
def test_a_second_clone_pulls_and_only_tracks(
    shared: Shared, kind: str, paths: list[str], tmp_path: Path
) -> None:
    other = shared.folder / f"clone-{kind}"
    with KINDS[kind](tmp_path / "server") as server:
        connect(shared.project, server)
        assert "pushed" in shared.does(shared.project, "dvc", "push", "-v")
        clone(shared.project, other)
        connect(other, server)
        shared.does(other, "dvc", "pull", "-v")
        shared.does(other, "spanwise", "remote", "check", "--deep")
    for path in paths:
        assert (other / path).exists(), path
    for path in sorted((shared.project / "artifacts").rglob("*")):
        if path.is_file() and "unit-vectors" not in path.parts:
            assert (other / path.relative_to(shared.project)).read_bytes() == path.read_bytes()
    # Neither the remote nor a model is there any more; MLflow's server has all runs already.
    output = shared.does(other, "dvc", "repro", **{VARIABLE: ""})
    assert ran(output) == ["track"]
    assert re.search(r"added 0 runs, kept [1-9]", output)


def test_an_index_on_an_s3_store_ranks_as_one_in_the_folder(
    shared: Shared, tmp_path: Path
) -> None:
    other = tmp_path / "other"
    shutil.copytree(shared.project, other)
    runs = other / "artifacts/retrieve/toy/minilm/runs.parquet"
    before, held = runs.read_bytes(), other / "artifacts/index/toy/minilm"
    with bucket(tmp_path / "server") as server:
        place = {"SPANWISE_INDEX_URI": "s3://bucket/index",
                 "AWS_ENDPOINT_URL": f"http://{HOST}:{server.port}"}
        shared.does(other, "dvc", "repro", "-f", "-s", "index@toy-minilm", **place)
        assert [path.name for path in held.iterdir()] == ["elsewhere.json"]
        assert (held.parent / "minilm.json").read_bytes() == (
            shared.project / "artifacts/index/toy/minilm.json").read_bytes()
        assert list((server.kept / "index").glob("*/chunks.lance/_versions/*"))
        runs.unlink()
        shared.does(other, "dvc", "repro", "-f", "-s", "retrieve@toy-minilm", **place)
        assert runs.read_bytes() == before
    for path in other.glob("dvc.*"):
        assert "s3://" not in path.read_text()
    shutil.copytree(other, shared.folder / "on-s3")


def holds(path: Path, words: list[str]) -> list[str]:
    """Which of the words a file holds; a table is read, for it is compressed."""
    content = path.read_bytes()
    if path.suffix == ".parquet" or content[:4] == b"PAR1":
        content += repr(pq.read_table(path, partitioning=None).to_pylist()).encode()
    return [word for word in words if word.encode() in content]


def test_no_secret_is_in_any_file_or_line(shared: Shared) -> None:
    """Last: it looks through all that the tests above left."""
    secrets = [*PLANTED.values()]
    seen: dict[str, int] = dict.fromkeys(("lighthouse keeper", "clone", "mlflow", "page"), 0)
    for path in sorted(shared.folder.rglob("*")):
        inside = path.relative_to(shared.folder)
        if not path.is_file() or path.name == "config.local":
            continue
        assert holds(path, secrets) == [], inside
        seen["lighthouse keeper"] += bool(
            path.suffix == ".parquet" and holds(path, ["lighthouse keeper"]))
        seen["clone"] += inside.parts[0].startswith("clone")
        seen["mlflow"] += inside.parts[0] == "mlflow"
        seen["page"] += path.name == "report.html"
    said = "".join(shared.said)
    assert [secret for secret in secrets if secret in said] == []
    # It looked where secrets could be: the same search finds what should be there.
    assert all(seen.values()), seen
    assert "added" in said and "files pushed" in said
    database = shared.folder / "mlflow" / "mlflow.db"
    assert holds(database, ["spanwise.content"]) and holds(database, ["lighthouse"]) == []
    configs = list(shared.folder.rglob("config.local"))
    assert any(holds(path, secrets) for path in configs)
    labels = schemas.read(shared.project / "artifacts/label/toy/labels.parquet", schemas.LABELS)
    assert any("lighthouse keeper" in row["prefix"] for row in labels.to_pylist())
