"""MLflow's page as a person uses it: search strings, saved views, comparisons."""

from __future__ import annotations

import json
import os
import pty
import select
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

import pytest

from spanwise.params import Params
from spanwise.tracking import track, ui_command
from spanwise.tracking.page import addresses, may_open
from spanwise.tracking.place import ENVIRONMENT
from spanwise.tracking.runs import read_runs
from spanwise.tracking.views import SEARCHES, SHARED, searches, views

from .browser import Tab, browser, program
from .test_tracking import copy_to, free_port, runs_of, serving
from .tracking_world import RUNS, a_project, client_of

PROGRAM = str(Path(sys.executable).with_name("spanwise"))
Tags = Mapping[str, str]


@pytest.fixture(autouse=True)
def _quiet(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("MLFLOW_TRACKING_URI", raising=False)
    for name, value in ENVIRONMENT.items():
        monkeypatch.setenv(name, value)


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory, blank: Path) -> tuple[Path, Params]:
    """A tracked project whose contrast C2 is confirmatory."""
    root = tmp_path_factory.mktemp("page")
    params = a_project(root, standing="confirmatory")
    copy_to(root / "mlruns", blank)
    with pytest.MonkeyPatch.context() as patch:
        patch.delenv("MLFLOW_TRACKING_URI", raising=False)
        track(root, params)
    return root, params


def store(root: Path) -> str:
    return f"sqlite:///{root / 'mlruns' / 'mlflow.db'}"


def has(**wanted: str) -> Callable[[Tags], bool]:
    return lambda tags: wanted.items() <= tags.items()


# What each search string says, without MLflow: whether a run with these tags is found.
SAID: dict[str, Callable[[Tags], bool]] = {
    "current results alone": has(),
    "one corpus": has(corpus="toy"),
    "one cell": has(cell="toy/mpnet/none"),
    "one embedder": has(embedder="mpnet"),
    "one reranker": has(reranker="none"),
    "the primary cell": has(primary="true"),
    "conditions": has(kind="condition"),
    "one condition in every cell": has(condition="A3"),
    "conditions of one segmentation": has(kind="condition", segmentation="induced"),
    "conditions that are routed": has(kind="condition", retrieval="routed"),
    "conditions of one prefix": has(kind="condition", prefix="path"),
    "conditions that one contrast compares": lambda tags: "contrast.C2.side" in tags,
    "conditions that a confirmatory contrast compares": has(kind="condition", confirms="C2"),
    "contrasts": has(kind="contrast"),
    "one contrast in every cell": has(contrast="C2"),
    "the registered family": has(family="contrast"),
    "confirmatory contrasts": has(kind="contrast", standing="confirmatory"),
    "exploratory contrasts": has(kind="contrast", standing="exploratory"),
    "what ran as it was registered": has(n_differences="0"),
    "no demonstrations": has(demonstration="false"),
}
NONE = {"conditions that are routed", "no demonstrations"}
"""Of these the study has none; every other search finds some runs and, but for four, not all."""
ALL = {"current results alone", "one corpus", "one reranker", "what ran as it was registered"}


def test_every_search_string_finds_what_it_says(project: tuple[Path, Params]) -> None:
    root, params = project
    assert SAID.keys() == SEARCHES.keys()
    runs = read_runs(root, params, "toy")
    # C1, the first contrast, is absent here: C2 stands in its place.
    named = {title: search.replace("C1", "C2") for title, search in searches(params).items()}
    for title, search in named.items():
        expected = sorted((run.cell, run.name) for run in runs if SAID[title](run.tags))
        found = sorted((run.data.tags["cell"], run.info.run_name)
                       for run in runs_of(store(root), "toy", search))
        assert found == expected, title
        assert len(found) == 0 if title in NONE else len(found) == RUNS if title in ALL else (
            0 < len(found) < RUNS
        ), title


def test_views_are_saved_once_and_hold_columns_that_runs_have(
    project: tuple[Path, Params]
) -> None:
    root, params = project
    client = client_of(store(root))
    before = client.get_experiment_by_name("spanwise/toy").tags
    track(root, params)
    assert client.get_experiment_by_name("spanwise/toy").tags == before
    held = {name: json.loads(value) for name, value in before.items() if name.startswith(SHARED)}
    assert [its["name"] for its in sorted(held.values(), key=lambda its: -its["createdAt"])] == [
        view.title for view in views(params)
    ]
    for name, saved in held.items():
        state = json.loads(saved["state"])
        runs = runs_of(store(root), "toy", state["searchFilter"])
        assert runs, name
        known = {f"metrics.`{key}`" for run in runs for key in run.data.metrics}
        known |= {f"tags.`{key}`" for run in runs for key in run.data.tags}
        # C1 is absent; its columns wait for it.
        assert {c for c in state["selectedColumns"] if "/C1/" not in c} <= known, name
        assert state["orderByKey"] in known, name
    # What a person changes in a view of ours is set right; views of others stay.
    experiment = client.get_experiment_by_name("spanwise/toy").experiment_id
    changed = next(iter(held))
    client.set_experiment_tag(experiment, changed, "{}")
    client.set_experiment_tag(experiment, f"{SHARED}mine", "{}")
    track(root, params)
    assert client.get_experiment(experiment).tags == {**before, f"{SHARED}mine": "{}"}


@pytest.mark.parametrize(("terminal", "environment", "expected"), [
    (True, {"DISPLAY": ":0"}, True), (True, {"WAYLAND_DISPLAY": "w"}, True),
    (True, {"BROWSER": "firefox"}, True), (False, {"DISPLAY": ":0"}, False),
    (True, {"DISPLAY": ":0", "CI": "true"}, False),
    pytest.param(True, {}, False, marks=pytest.mark.skipif(
        sys.platform in ("darwin", "win32"), reason="a desktop needs no variable")),
])
def test_a_browser_opens_only_where_a_person_sees_it(
    terminal: bool, environment: dict[str, str], expected: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("DISPLAY", "WAYLAND_DISPLAY", "BROWSER", "CI"):
        monkeypatch.delenv(name, raising=False)
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    for_reading, for_writing = pty.openpty() if terminal else os.pipe()
    with os.fdopen(for_writing, "w") as out:
        monkeypatch.setattr(sys, "stdout", out)
        assert may_open() is expected
        monkeypatch.undo()
    os.close(for_reading)


def test_the_search_strings_stand_in_the_documentation() -> None:
    text = (Path(__file__).resolve().parents[1] / "docs" / "mlflow.md").read_text()
    names = {"corpus": "handbook", "cell": "handbook/mpnet/none", "embedder": "mpnet",
             "reranker": "none", "condition": "A3", "contrast": "C1"}
    for title, search in SEARCHES.items():
        assert f"| {title} | ``{search.format(**names)}`` |" in text


def test_searches_are_printed_and_no_server_starts(project: tuple[Path, Params]) -> None:
    root, params = project
    done = subprocess.run(
        [PROGRAM, "ui", "--searches"], cwd=root, capture_output=True, text=True, timeout=60,
        check=True,
    )
    assert [line.split("  ")[-1].strip() for line in done.stdout.splitlines()] == list(
        searches(params).values()
    )


# In a browser, against a real server ------------------------------------------------------------


@pytest.fixture(scope="module")
def server(project: tuple[Path, Params]) -> Iterator[str]:
    root, port = project[0], free_port()
    with pytest.MonkeyPatch.context() as patch:
        patch.delenv("MLFLOW_TRACKING_URI", raising=False)
        command = ui_command(root, port)
    with serving(command, root, port) as address:
        yield address


@pytest.fixture(scope="module")
def tab(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Tab]:
    program()
    with browser(tmp_path_factory.mktemp("profile")) as found:
        yield found


def until(tab: Tab, expression: str) -> None:
    """Wait until a JavaScript expression holds."""
    for _ in range(240):
        if tab.run(expression):
            return
        time.sleep(0.25)
    pytest.fail(f"not in 60 s: {expression}\n{tab.run('document.body.innerText')[:3000]}")


def shows(text: str) -> str:
    return f"document.body.innerText.includes({json.dumps(text)})"


TICK = """(name => {
  const rows = [...document.querySelectorAll('.ag-row')];
  const row = rows.find(r => [...r.querySelectorAll('a')].some(a => a.innerText.trim() === name));
  const index = row.getAttribute('row-index');
  rows.filter(r => r.getAttribute('row-index') === index)
    .map(r => r.querySelector('input[type=checkbox]')).find(box => box).click();
})"""
# As a person sees them, from left to right: the page moves columns after it has drawn them.
HEADS = """(expected => {
  const cells = [...document.querySelectorAll('.ag-header-cell')]
    .map(c => [c.getBoundingClientRect().left, c.innerText.trim()])
    .filter(([, text]) => expected.includes(text)).sort((a, b) => a[0] - b[0]);
  return JSON.stringify(cells.map(([, text]) => text)) === JSON.stringify(expected);
})"""
BUTTON = "[...document.querySelectorAll('button')].find(b => b.innerText.trim() === 'Compare')"


@pytest.mark.slow
def test_a_saved_view_opens_and_conditions_selected_there_compare_by_their_contrast(
    project: tuple[Path, Params], server: str, tab: Tab
) -> None:
    root, params = project
    (title, address), *_ = addresses(server, params)
    assert title == "toy: conditions of the primary cell"
    tab.open(address, 1900, 1300)
    until(tab, shows("3 matching runs"))
    until(tab, "document.querySelectorAll('.ag-row a').length >= 3")
    # By its name in the page's own list of views, with its columns in its order.
    assert tab.run("document.querySelector('[data-testid=saved-views-trigger]').innerText") == (
        "conditions of the primary cell"
    )
    expected = ["segmentation", "prefix", "retrieval", "cov_ndcg_at_10"]
    until(tab, f"{HEADS}({json.dumps(expected)})")

    for name in ("A2", "A3"):
        tab.run(f"{TICK}({json.dumps(name)})")
    until(tab, f"Boolean({BUTTON})")
    tab.run(f"{BUTTON}.click()")
    until(tab, shows("Comparing 2 Runs"))
    until(tab, shows("contrast/C2/delta"))
    metrics = tab.run("document.body.innerText").split("\nMetrics\n")[-1].split("\nArtifacts\n")[0]
    lines = [line.strip() for line in metrics.splitlines() if line.strip()]
    names = [line for line in lines if "/" in line or "_at_" in line]
    values = lines[lines.index(names[-1]) + 1 :]
    run, = runs_of(store(root), "toy", "tags.condition = 'A3' and tags.primary = 'true'")
    delta = run.data.metrics["contrast/C2/delta"]
    at = 2 * names.index("contrast/C2/delta")
    assert [float(value) for value in values[at : at + 2]] == [round(delta, 3)] * 2


@pytest.mark.slow
def test_ui_says_where_the_views_are_and_opens_the_first(
    project: tuple[Path, Params], tmp_path: Path
) -> None:
    root, params = project
    opened, script, port = tmp_path / "opened", tmp_path / "browser", free_port()
    script.write_text(f'#!/bin/sh\nprintf %s "$1" > {opened}.new && mv {opened}.new {opened}\n')
    script.chmod(0o755)
    environment = {key: value for key, value in os.environ.items()
                   if key not in ("CI", "MLFLOW_TRACKING_URI")}
    controller, worker = pty.openpty()
    process = subprocess.Popen(
        [PROGRAM, "ui", "--port", str(port)], cwd=root, stdout=worker, stderr=worker,
        env={**environment, "BROWSER": str(script)},
    )
    os.close(worker)
    said = b""
    try:
        deadline = time.monotonic() + 120
        while not opened.exists() and time.monotonic() < deadline and process.poll() is None:
            if select.select([controller], [], [], 0.5)[0]:
                said += os.read(controller, 1 << 16)
        first = opened.read_text()
    finally:
        process.send_signal(signal.SIGINT)
        process.wait(30)
        os.close(controller)
    identity = client_of(store(root)).get_experiment_by_name("spanwise/toy").experiment_id
    links = [f"http://127.0.0.1:{port}{view.path(identity)}" for view in views(params)]
    assert first == links[0]
    assert [link for link in links if link in said.decode()] == links
