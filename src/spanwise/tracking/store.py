"""The runs that results call for, against the runs that MLflow has.

A run is made in this order: created with its tags, then artifacts, figures and the tag
`spanwise.content`, then the status FINISHED. One that lacks either of the last two was interrupted:
it is deleted and made anew. One whose results have changed is kept and tagged
`spanwise.superseded` = true. Two calls at once on one store would each take the other's unfinished
runs for interrupted ones; DVC's lock prevents that within a project.
"""

from __future__ import annotations

import logging
import os
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from spanwise import schemas
from spanwise.errors import Unavailable
from spanwise.params import Params
from spanwise.tracking.place import ENVIRONMENT, EXPERIMENT, Place, place, prepare
from spanwise.tracking.record import Run
from spanwise.tracking.runs import read_runs
from spanwise.tracking.sweeps import SWEEP, read_sweeps
from spanwise.tracking.units import STUDY, read_units
from spanwise.tracking.views import save, views

if TYPE_CHECKING:
    from mlflow import MlflowClient

CONTENT = "spanwise.content"
SUPERSEDED = "spanwise.superseded"
PARENT = "mlflow.parentRunId"
# MLflow takes 100 parameters and 1000 entries in all in one call.
_BATCH_PARAMS, _BATCH_METRICS = 100, 800


@dataclass(frozen=True, slots=True)
class Summary:
    """What a call of `track` did.

    added:      runs made.
    kept:       runs found whole and current, or current again.
    superseded: runs found whole whose results have changed since.
    repaired:   interrupted runs that were deleted.
    """

    added: int
    kept: int
    superseded: int = 0
    repaired: int = 0

    def __add__(self, other: Summary) -> Summary:
        return Summary(
            self.added + other.added, self.kept + other.kept,
            self.superseded + other.superseded, self.repaired + other.repaired,
        )


def track(root: Path, params: Params, tracking_uri: str | None = None) -> Summary:
    """Log the finished results of every corpus of `params` to MLflow; what stands there stays.

    The study of units has an experiment of its own beside the ablation's, and so have sweeps. A
    corpus that was not run on has none; where there is one from before, its runs are superseded.

    root:         the project's root, where artifacts/ lies.
    tracking_uri: a store; by default MLFLOW_TRACKING_URI, else mlruns/mlflow.db.
    raises:       InputError if results are missing or contradict each other (then nothing is
                  logged), Unavailable if the store cannot be reached or fails.
    """
    wanted = {corpus: read_runs(root, params, corpus) for corpus in params.corpora}
    wanted |= {f"{STUDY}{corpus}": read_units(root, params, corpus) for corpus in params.corpora}
    wanted |= {f"{SWEEP}{corpus}": read_sweeps(root, params, corpus) for corpus in params.corpora}
    return _log(root, params, wanted, tracking_uri)


def track_sweeps(
    root: Path, params: Params, corpus: str, tracking_uri: str | None = None
) -> Summary:
    """Log the trials of a corpus's sweeps alone, which need no finished study; else as `track`."""
    wanted = {f"{SWEEP}{corpus}": read_sweeps(root, params, corpus)}
    return _log(root, params, wanted, tracking_uri)


def _log(
    root: Path, params: Params, wanted: Mapping[str, Sequence[Run]], tracking_uri: str | None
) -> Summary:
    found = place(root, tracking_uri)
    prepare(found)
    client = _connect(found)
    from mlflow.exceptions import MlflowException
    from requests import RequestException

    total = Summary(0, 0)
    try:
        for name, runs in wanted.items():
            experiment = _experiment(client, found, name, wanted=bool(runs))
            if experiment is not None:
                total += _reconcile(client, experiment, runs)
                if not name.startswith((STUDY, SWEEP)):
                    save(client, experiment, views(params))
    except (MlflowException, RequestException) as error:
        raise Unavailable(
            f"MLflow at {found.shown} failed: {found.told(error)}; run `dvc repro` again: it goes "
            "on from here"
        ) from error
    return total


def _connect(found: Place) -> MlflowClient:
    for name, value in ENVIRONMENT.items():
        os.environ.setdefault(name, value)
    import mlflow
    import sqlalchemy.exc
    from mlflow.exceptions import MlflowException

    for noisy in ("mlflow", "alembic"):
        logging.getLogger(noisy).setLevel(logging.WARNING)
    try:
        client = mlflow.MlflowClient(tracking_uri=found.uri)
        client.search_experiments(max_results=1)  # the first word with a server
    except (MlflowException, sqlalchemy.exc.SQLAlchemyError) as error:
        raise Unavailable(
            f"no MLflow store at {found.shown}: {found.told(error)}; start the server, or unset "
            "MLFLOW_TRACKING_URI; for a database of an older MLflow run `mlflow db upgrade URI`"
        ) from error
    return client


def _experiment(client: MlflowClient, found: Place, name: str, *, wanted: bool) -> str | None:
    """The experiment's id; if it is wanted it is made, or restored if it was deleted.

    name:    what follows `spanwise/`, and the artifacts' folder.
    returns: None for one that is neither wanted nor there.
    """
    experiment = client.get_experiment_by_name(f"{EXPERIMENT}{name}")
    if experiment is None:
        if not wanted:
            return None
        location = None if found.artifacts is None else (found.artifacts / name).as_uri()
        made: str = client.create_experiment(f"{EXPERIMENT}{name}", artifact_location=location)
        return made
    if experiment.lifecycle_stage == "deleted":
        if not wanted:
            return None
        client.restore_experiment(experiment.experiment_id)
    identity: str = experiment.experiment_id
    return identity


def _reconcile(client: MlflowClient, experiment: str, runs: Sequence[Run]) -> Summary:
    """Make the experiment's current runs those that are wanted, each before what lies below it."""
    wanted = {run.content(): run for run in runs}
    whole: dict[str, Any] = {}
    stale, broken = [], []
    for run in _search(client, experiment, "false"):
        content = run.data.tags.get(CONTENT)
        if content is None or run.info.status != "FINISHED":
            broken.append(run)
        elif content in wanted and content not in whole:
            whole[content] = run
        else:
            stale.append(run)
    if wanted.keys() - whole.keys():
        # Results that were changed back: their runs stand there already.
        for run in _search(client, experiment, "true"):
            content = run.data.tags.get(CONTENT)
            if content in wanted and content not in whole:
                client.set_tag(run.info.run_id, SUPERSEDED, "false")
                whole[content] = run
    for run in broken:
        client.delete_run(run.info.run_id)
    parents: dict[str, str] = {}
    for content, run in wanted.items():
        parent = None if run.top else parents[run.cell]
        if content not in whole:
            identity = _make(client, experiment, run, content, parent)
        else:
            identity = whole[content].info.run_id
            if parent is not None and whole[content].data.tags.get(PARENT) != parent:
                client.set_tag(identity, PARENT, parent)  # the one above it is new
        if run.top:
            parents[run.cell] = identity
    # Last, so that an interrupted call leaves the former results current, not none.
    for run in stale:
        client.set_tag(run.info.run_id, SUPERSEDED, "true")
    return Summary(len(wanted) - len(whole), len(whole), len(stale), len(broken))


def _search(client: MlflowClient, experiment: str, superseded: str) -> Iterator[Any]:
    """Runs of ours (others have no such tag), oldest first."""
    token = None
    while True:
        page = client.search_runs(
            [experiment], f"tags.`{SUPERSEDED}` = '{superseded}'", max_results=1000,
            order_by=["attributes.start_time ASC", "attributes.run_id ASC"], page_token=token,
        )
        yield from page
        token = page.token
        if not token:
            return


def _make(
    client: MlflowClient, experiment: str, run: Run, content: str, parent: str | None
) -> str:
    """One run, marked whole only when everything is in it."""
    from mlflow.entities import Metric, Param, RunTag

    tags = {**run.tags, SUPERSEDED: "false"}
    if parent is not None:
        tags[PARENT] = parent
    made = client.create_run(experiment, tags=tags, run_name=run.name)
    identity: str = made.info.run_id
    with tempfile.TemporaryDirectory() as scratch:
        for name, held in run.artifacts.items():
            if isinstance(held, str):
                schemas.write_text(Path(scratch) / name, held)
            else:
                schemas.write(Path(scratch) / name, *held)
        client.log_artifacts(identity, scratch)
    params = [Param(name, value) for name, value in run.params.items()]
    # MLflow wants a moment for each figure: the run's own, which MLflow chose.
    moment = made.info.start_time
    metrics = [Metric(name, value, moment, 0) for name, value in run.metrics.items()]
    steps = max(-(-len(params) // _BATCH_PARAMS), -(-len(metrics) // _BATCH_METRICS), 1)
    for i in range(steps):
        client.log_batch(
            identity,
            metrics[i * _BATCH_METRICS : (i + 1) * _BATCH_METRICS],
            params[i * _BATCH_PARAMS : (i + 1) * _BATCH_PARAMS],
            [RunTag(CONTENT, content)] if i == steps - 1 else [],
        )
    client.set_terminated(identity, "FINISHED")
    return identity
