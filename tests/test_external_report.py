"""Arms over chunks of another package, in the report and in MLflow's runs."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy
import pytest

from spanwise.doctor import splitters
from spanwise.doctor.findings import NOTE, OK, PROBLEM
from spanwise.params import Params, from_mapping
from spanwise.reporting import report
from spanwise.reporting.diagnose import diagnose
from spanwise.reporting.gather import gather
from spanwise.tracking.record import Run
from spanwise.tracking.runs import read_runs

from . import reporting_world as world
from .browser import browser, program
from .splitter_world import entry, importable
from .tracking_world import a_project, a_study


def study() -> Params:
    """One corpus; beside the usual arms `thirds` (by three, routed too) and `most`, with gaps."""
    plain = world.settings().model_dump()
    flat = {"depth": 0, "prefix": "none", "retrieval": "flat"}
    return world.settings(
        corpora={"harbour": plain["corpora"]["harbour"]},
        external={
            "thirds": entry("Halves", method="thirds", version="3").model_dump(),
            "most": entry("Halves", method="most", tree="induced").model_dump(),
        },
        conditions=plain["conditions"] | {
            "T2": {"segmentation": "thirds", **flat},
            "T4": {"segmentation": "thirds", "depth": 2, "prefix": "path", "retrieval": "routed"},
            "M2": {"segmentation": "most", **flat},
        },
        contrasts=plain["contrasts"] | {"C5": ["T2", "A0"]},
        steps=plain["steps"] | {"M2-A0": ["M2", "A0"]},
    )


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Path, Params]]:
    folder = tmp_path_factory.mktemp("world")
    with importable(tmp_path_factory.mktemp("packages")):
        world.build(folder, study(), documents=4)
    report(folder, study())
    yield folder, study()


def test_its_arms_stand_in_every_table_and_figure(made: tuple[Path, Params]) -> None:
    folder, params = made
    record = gather(folder, "harbour", params)
    page = (folder / "reports" / "report.html").read_text(encoding="utf-8")
    assert "thirds: by Halves of own_splitter 3" in page
    assert "thirds chunks, heading path to depth 2, routed" in page
    assert all(record.mean(("mpnet", "none"), name, "cov_ndcg@10") for name in ("T2", "T4", "M2"))
    (row,) = [r for r in record.contrasts if (
        r["family"], r["name"], r["embedder"], r["measure"]
    ) == ("contrast", "C5", "mpnet", "cov_ndcg@10")]
    assert row["status"] == "estimated" and (row["a"], row["b"]) == ("T2", "A0")


def test_size_and_gaps_are_checks_of_their_own(made: tuple[Path, Params]) -> None:
    folder, params = made
    found = {check.what: check for check in diagnose(gather(folder, "harbour", params), params)}
    assert found["thirds against fixed: mean tokens of a chunk"].flagged
    assert not found["Text that chunks of thirds hold"].flagged
    gaps = found["Text that chunks of most hold"]
    # The splitter leaves out the last tenth and holds the first half twice.
    held = float(gaps.found.split("%")[0])
    assert gaps.flagged and held == pytest.approx(90, abs=1.5)


def test_a_run_of_mlflow_says_who_cut_and_another_version_is_another_run(tmp_path: Path) -> None:
    a_project(tmp_path)

    def conditions(version: str) -> dict[str, Run]:
        told = a_study()
        told["external"] = {"own": entry("Halves", version=version).model_dump()}
        told["conditions"]["A2"]["segmentation"] = "own"
        return {run.name: run for run in read_runs(tmp_path, from_mapping(told), "toy")
                if run.kind != "cell" and run.cell == "toy/mpnet/none"}

    older, newer = conditions("3"), conditions("4")
    assert older["A2"].params["external.callable"] == "Halves"
    assert older["A2"].params["external.version"] == "3"
    assert not any("external" in name for name in older["A3"].params)
    # What has no chunk of it is the same run, whatever the version.
    assert {name for name in older if older[name].tags != newer[name].tags} == {
        "A2", "A2-A0", "C2 = A3-A2"}


def test_doctor_says_what_would_stop_the_stage(tmp_path: Path) -> None:
    installed = {"package": "numpy", "version": numpy.__version__}
    with importable(tmp_path):
        found = splitters.look(world.settings(external={
            "same": entry("array", **installed).model_dump(),
            "older": entry("array", **{**installed, "version": "1.0"}).model_dump(),
            "own": entry("Halves").model_dump(),
            "none": entry("x", package="no_such_splitter").model_dump(),
        }))
    assert [(one.place, one.status) for one in found] == [
        ("external same", OK), ("external older", PROBLEM), ("external own", NOTE),
        ("external none", PROBLEM),
    ]
    assert found[1].mend == (
        f'pip install numpy==1.0, or say `version: "{numpy.__version__}"`'
    )


@pytest.mark.system
def test_its_edges_stand_in_the_text_and_a_control_takes_them_away(
    made: tuple[Path, Params], tmp_path: Path
) -> None:
    program()
    folder, params = made
    record = gather(folder, "harbour", params)
    with browser(tmp_path) as tab:
        url = (folder / "reports" / "report.html").as_uri()
        tab.open(f"{url}#q/harbour/doc-1-q1", 1280, 1000, dark=False)
        tab.wait("!!document.querySelector('.lanes .lane')")
        for name in ("thirds", "most"):
            begins = f".edge.other[data-of={name}][data-what=begins]"
            before = tab.run(f"""[...document.querySelectorAll('{begins}')].map(edge => {{
                const range = document.createRange();
                range.setStart(document.querySelector('.sheet .text'), 0);
                range.setEndBefore(edge); return [...range.toString()].length }})""")
            assert before == sorted(
                c["start"] for c in record.chunks[name].values() if c["doc_id"] == "doc-1"
            )
        drawn = """[...document.querySelectorAll('.edge.other')].map(
            e => [e.dataset.of, getComputedStyle(e).display])"""
        assert {how for _, how in tab.run(drawn)} == {"inline-block"}
        tab.press_space(".edges input[value=thirds]")
        assert {tuple(pair) for pair in tab.run(drawn)} == {
            ("thirds", "none"), ("most", "inline-block")}
        titles = tab.run("[...document.querySelectorAll('.lane.other')].map(e => e.title)")
        assert titles and all(title.startswith("most chunk") for title in titles)
