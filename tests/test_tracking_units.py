"""The study of units -> MLflow: what each run is to hold, and what a SQLite store then has."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean
from typing import Any

import pyarrow as pa
import pytest

from spanwise import layout, schemas
from spanwise.errors import InputError
from spanwise.params import Params, from_mapping
from spanwise.tracking import Summary, track
from spanwise.tracking.place import ENVIRONMENT, place, prepare
from spanwise.tracking.runs import Run, read_runs
from spanwise.tracking.units import FIGURES, read_units
from spanwise.units.compare import comparisons, means
from spanwise.units.cutting import SEGMENTATIONS, cut_by
from spanwise.units.outcomes import BASES, MEASURES
from spanwise.units.reach import CAUSES

from .tracking_world import RUNS as ABLATION
from .tracking_world import a_project, a_study, client_of

RETRIEVERS = ("bm25", "minilm", "mpnet")
RUNS = 27
"""3 retrievers + 3 x 3 segmentations + 3 x 3 pairs of segmentations + 2 x 3 embedders over BM25."""
AMOUNTS = {"units": (1, 3), "characters": (100, 200), "tokens": (32, 64), "matched": (1, 3)}
REPEATED = ("units", "matched")
"""Bases over which pairs of segmentations are compared once more, over connected clusters."""
# need -> document, slice and whether anything answers it
NEEDS = {
    "n0": ("d0", "development", True), "n1": ("d1", "development", True),
    "n2": ("d2", "development", True), "n3": ("d0", "development", True),
    "n4": ("d1", "development", True), "n5": ("d2", "development", False),
    "n6": ("d0", "reworded", True), "n7": ("d1", "reworded", True),
}
ELSEWHERE = {"n1": "d2"}
"""Needs with an anchor in another document too, so that d1 and d2 are one cluster."""
Changed = dict[tuple[str, str, str], float]
EXPERIMENT = "spanwise/units/toy"


@pytest.fixture(autouse=True)
def _quiet(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("MLFLOW_TRACKING_URI", raising=False)
    for name, value in ENVIRONMENT.items():
        monkeypatch.setenv(name, value)


# A finished study of units ---------------------------------------------------------------------


def within(doc_id: str, documents: int) -> str:
    """The document in a study of that many."""
    return f"d{int(doc_id[1]) % documents}"


def outcome_rows(changed: Changed, documents: int = 3) -> list[dict[str, Any]]:
    """Outcomes of eight needs over three documents, or fewer.

    changed: (retriever, segmentation, need) -> whether it is covered, at every amount.
    """
    rows = []
    for r, retriever in enumerate(RETRIEVERS):
        for s, segmentation in enumerate(SEGMENTATIONS):
            for q, (need, (doc_id, slice_, answered)) in enumerate(NEEDS.items()):
                for basis in BASES:
                    for k, amount in enumerate(AMOUNTS[basis.partition("-")[0]]):
                        mark = (3 * r + 5 * s + 7 * q + 2 * k) % 11
                        covered = changed.get((retriever, segmentation, need), float(mark < 5 + k))
                        sufficient = float(covered and mark < 3)
                        missed = basis == "units" and answered
                        rows.append({
                            "retriever": retriever, "segmentation": segmentation, "need_id": need,
                            "doc_id": within(doc_id, documents),
                            "slice": slice_, "type": "factoid", "basis": basis, "amount": amount,
                            "sufficient": sufficient if answered else None,
                            "covered": covered if answered else None,
                            "units": 1 + k, "characters": 90 + mark, "tokens": 20 + mark,
                            "ended": mark == 0,
                            "sufficient_cause": CAUSES[(q + s) % len(CAUSES)]
                            if missed and not sufficient else None,
                            "covered_cause": CAUSES[(q + s + 1) % len(CAUSES)]
                            if missed and not covered else None,
                        })
    return rows


def a_units_study(asked: bool = True) -> dict[str, Any]:
    study = a_study()
    study["corpora"]["toy"]["units"] = asked
    study["units"] = {
        "windows": {"size_tokens": 12, "overlap_tokens": 4}, "cutoffs": [1, 3],
        "characters": [100, 200], "tokens": [32, 64], "depth": 20,
    }
    return study


def a_units_project(
    root: Path, changed: Changed | None = None, asked: bool = True, documents: int = 3
) -> Params:
    """Both finished studies of corpus `toy`, and its params.yaml, in `root`."""
    a_project(root)
    study = a_units_study(asked)
    params = from_mapping(study)
    reports: dict[Path, dict[str, Any]] = {
        layout.stage(name, "toy"): {"asked": asked}
        for name in ("units", "units-score", "units-infer")
    }
    if asked:
        reports[layout.stage("units", "toy")] |= {
            "representation": "raw", "documents": 3, "development": 6,
            "development without an answer": 1, "reworded": 2, "anchors": 9,
            "units": {"blocks": 40, "sections": 20, "windows": 44},
            "cut_by": cut_by(params), "collection": "c" * 64,
        }
        outcomes = outcome_rows(changed or {}, documents)
        infer = root / layout.stage("units-infer", "toy")
        for path, schema, rows in (
            (root / layout.stage("units-score", "toy") / "outcomes.parquet", schemas.OUTCOMES,
             outcomes),
            (infer / "means.parquet", schemas.UNIT_MEANS, means(outcomes)),
            (infer / "comparisons.parquet", schemas.UNIT_COMPARISONS, comparisons(
                outcomes, list(params.embedders), layout.LEXICAL, params.inference,
                {
                    need: [within(doc_id, documents) for doc_id in (its[0], ELSEWHERE.get(need))
                           if doc_id]
                    for need, its in NEEDS.items()
                },
            )),
        ):
            schemas.write(path, schema, schemas.table(schema, rows))
    for retriever in RETRIEVERS:
        report: dict[str, Any] = {"asked": asked}
        if asked and retriever != "bm25":
            report |= {"distinct_texts": 104, "window_tokens": 512, "beyond_window": {
                name: {"units": 40, "units truncated": n, "characters never seen": 100 * n}
                for n, name in enumerate(SEGMENTATIONS)
            }}
        reports[layout.cell("units-retrieve", "toy", retriever)] = report
    for folder, report in reports.items():
        schemas.write_text(root / folder / "report.json", json.dumps(report))
    return params


def named(runs: list[Run]) -> dict[str, Run]:
    found = {run.name: run for run in runs}
    assert len(found) == len(runs)
    return found


# What runs hold ---------------------------------------------------------------------------------


@dataclass(frozen=True)
class World:
    root: Path
    params: Params
    outcomes: list[dict[str, Any]]
    runs: dict[str, Run]

    def listed(self, retriever: str, segmentation: str, **where: Any) -> list[dict[str, Any]]:
        where |= {"retriever": retriever, "segmentation": segmentation}
        return [row for row in self.outcomes if where.items() <= row.items()]


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> World:
    """A study to be read only."""
    root = tmp_path_factory.mktemp("world")
    params = a_units_project(root)
    return World(root, params, outcome_rows({}), named(read_units(root, params, "toy")))


def test_a_run_for_each_retriever_segmentation_and_comparison(world: World) -> None:
    expected = []
    for retriever in RETRIEVERS:
        cell = f"toy/{retriever}"
        expected.append(("retriever", cell, retriever))
        expected += [("segmentation", cell, f"{retriever}/{name}") for name in SEGMENTATIONS]
        pairs = [] if retriever == "bm25" else [
            (f"{retriever}/{name}", f"bm25/{name}") for name in SEGMENTATIONS
        ]
        pairs += [(f"{retriever}/{a}", f"{retriever}/{b}") for a, b in (
            ("sections", "blocks"), ("sections", "windows"), ("windows", "blocks"))]
        expected += [("comparison", cell, f"{a} - {b}") for a, b in sorted(pairs)]
    runs = list(world.runs.values())
    assert [(run.kind, run.cell, run.name) for run in runs] == expected
    assert len(runs) == len({run.content() for run in runs}) == RUNS
    assert [run.name for run in runs if run.top] == list(RETRIEVERS)


@pytest.mark.parametrize("retriever", RETRIEVERS)
@pytest.mark.parametrize("segmentation", SEGMENTATIONS)
def test_every_figure_of_a_segmentation_is_that_of_its_outcomes(
    world: World, retriever: str, segmentation: str
) -> None:
    expected: dict[str, float] = {"undefined_figures": 0}
    for slice_, before in (("development", ""), ("reworded", "reworded/")):
        its = [need for need in NEEDS.values() if need[1] == slice_]
        expected[f"{before}n_needs"] = len(its)
        expected[f"{before}n_answerable"] = sum(answered for *_, answered in its)
        for basis in BASES:
            for amount in AMOUNTS[basis.partition("-")[0]]:
                rows = world.listed(
                    retriever, segmentation, slice=slice_, basis=basis, amount=amount
                )
                at, after = f"{before}{basis}", f"_at_{amount}"
                for measure in MEASURES:
                    values = [r[measure] for r in rows if r[measure] is not None]
                    expected[f"{at}/{measure}{after}"] = fmean(values)
                    for cause in CAUSES if basis == "units" else ():
                        expected[f"{at}/{measure}_{cause}{after}"] = sum(
                            row[f"{measure}_cause"] == cause for row in rows
                        )
                for size in ("units", "characters", "tokens"):
                    # Over all needs, the one without an answer too.
                    expected[f"{at}/returned_{size}{after}"] = fmean(row[size] for row in rows)
                expected[f"{at}/ended{after}"] = sum(row["ended"] for row in rows)
    expected["n_units"] = {"blocks": 40, "sections": 20, "windows": 44}[segmentation]
    if retriever != "bm25":
        truncated = SEGMENTATIONS.index(segmentation)
        expected |= {
            "beyond_window/units": 40, "beyond_window/units truncated": truncated,
            "beyond_window/characters never seen": 100 * truncated,
        }
    assert world.runs[f"{retriever}/{segmentation}"].metrics == pytest.approx(expected)


def test_figures_of_a_comparison_and_the_means_that_it_is_of(world: World) -> None:
    infer = world.root / layout.stage("units-infer", "toy")
    table = schemas.read(infer / "comparisons.parquet", schemas.UNIT_COMPARISONS).to_pylist()
    assert {row["slice"] for row in table} == {"development", "reworded"}
    compared = [run for run in world.runs.values() if run.kind == "comparison"]
    for run in compared:
        a, b = run.params["a"], run.params["b"]
        rows = [row for row in table if (row["a"], row["b"]) == (a, b)]
        again = [row for row in rows if row["family"] == "connected"]
        # 2 slices x 6 bases x 2 amounts x 2 measures, and 2 bases of one slice again; retrievers
        # are not compared where each sets its own amounts.
        assert (len(rows) - len(again), len(again)) == (
            (48, 8) if run.tags["family"] == "segmentation" else (40, 0)
        )
        logged = dict(run.metrics)
        # With few documents, those that do not vary leave no p.
        undefined = sum(row[figure] is None for row in rows for figure in FIGURES)
        assert logged.pop("undefined_figures") == undefined
        for row in rows:
            before = "reworded/" if row["slice"] == "reworded" else ""
            prefix = "connected/" if row in again else before
            after = f"{row['basis']}/{row['measure']}_at_{row['amount']}"
            for figure in FIGURES:
                assert logged.pop(f"{prefix}{figure}/{after}", None) == row[figure]
            a_mean, b_mean = (
                world.runs[row[side]].metrics[f"{before}{after}"] for side in "ab"
            )
            assert run.metrics[f"{prefix}delta/{after}"] == pytest.approx(a_mean - b_mean)
        assert not logged
    name = "mpnet/blocks - bm25/blocks"
    assert world.runs[name].metrics["n_questions/characters-cut/covered_at_100"] == 5
    assert world.runs[name].metrics["reworded/n_documents/units/sufficient_at_3"] == 2


@pytest.mark.parametrize("basis", REPEATED)
@pytest.mark.parametrize("retriever", RETRIEVERS)
def test_the_same_difference_over_fewer_clusters_is_in_the_same_run(
    world: World, retriever: str, basis: str
) -> None:
    run = world.runs[f"{retriever}/sections - {retriever}/blocks"]
    assert run.tags["family"] == run.params["family"] == "segmentation"
    for amount in AMOUNTS[basis]:
        after = f"{basis}/covered_at_{amount}"
        for figure in ("delta", "n_questions"):
            assert run.metrics[f"connected/{figure}/{after}"] == run.metrics[f"{figure}/{after}"]
        # d0, d1 and d2; d1 and d2 share a need's anchors.
        assert run.metrics[f"n_documents/{after}"] == 3
        assert run.metrics[f"connected/n_documents/{after}"] == 2


def test_tags_say_what_a_run_is_of_and_that_it_only_explores(world: World) -> None:
    for run in world.runs.values():
        assert run.tags.items() >= {
            "corpus": "toy", "study": "units", "kind": run.kind, "standing": "exploratory",
            "retriever": run.cell.removeprefix("toy/"), "demonstration": "true",
            "slice.development": "6 needs, 5 with an answer",
            "slice.reworded": "2 needs, 2 with an answer; wordings of development needs, with "
                              "their anchors: no second confirmation",
        }.items()
    assert world.runs["bm25/windows"].tags["segmentation"] == "windows"
    within = world.runs["minilm/sections - minilm/blocks"].tags
    across = world.runs["minilm/blocks - bm25/blocks"].tags
    assert (within["family"], within.get("segmentation")) == ("segmentation", None)
    assert (across["family"], across["segmentation"]) == ("retriever", "blocks")
    assert (across["a"], across["b"]) == ("minilm/blocks", "bm25/blocks")
    reasons = {said for tags in (within, across) for name, said in tags.items()
               if name.startswith("reason.")}
    assert reasons <= {"the documents do not vary: no error, so no p"}


def test_settings_are_parameters_and_those_of_no_influence_are_not(
    world: World, tmp_path: Path
) -> None:
    expected = {
        "corpus.name": "toy", "corpus.reader": "text", "tokens.tokenizer": "words",
        "units.windows.size_tokens": "12", "units.windows.overlap_tokens": "4",
        "units.cutoffs": "[1, 3]", "units.characters": "[100, 200]", "units.tokens": "[32, 64]",
        "units.depth": "20", "representation": "raw",
    }
    for run in world.runs.values():
        assert run.params.items() >= expected.items()
    lexical, dense = world.runs["bm25/blocks"].params, world.runs["mpnet/blocks"].params
    assert (lexical["retriever.k1"], lexical["retriever.b"]) == ("1.2", "0.75")
    assert (dense["retriever.model"], dense["retriever.query_prompt"]) == ("some/mpnet", "query: ")
    across = world.runs["mpnet/blocks - bm25/blocks"].params
    assert (across["a.retriever.model"], across["b.retriever.k1"]) == ("some/mpnet", "1.2")
    assert (across["inference.iterations"], across["inference.seed"]) == ("50", "7")

    # Neither the smallest effect of interest nor an inducer touches this study.
    params = a_units_project(tmp_path)
    study = a_units_study()
    study["inference"]["margin"] = 0.5
    study["corpora"]["toy"]["inducer"] = "hybrid"
    again = read_units(tmp_path, from_mapping(study), "toy")
    assert again == read_units(tmp_path, params, "toy") == list(world.runs.values())


def test_artifacts_are_the_rows_of_the_run_and_what_the_stages_reported(world: World) -> None:
    infer = world.root / layout.stage("units-infer", "toy")
    rows = {
        "means.parquet": schemas.read(infer / "means.parquet", schemas.UNIT_MEANS).to_pylist(),
        "comparisons.parquet": schemas.read(
            infer / "comparisons.parquet", schemas.UNIT_COMPARISONS).to_pylist(),
    }

    def held(run: str, file: str) -> list[dict[str, Any]]:
        found = world.runs[run].artifacts[file]
        assert not isinstance(found, str)
        listed: list[dict[str, Any]] = found[1].to_pylist()
        return listed

    assert set(world.runs["mpnet/blocks"].artifacts) == {"means.parquet"}
    assert held("mpnet/blocks", "means.parquet") == [
        row for row in rows["means.parquet"]
        if (row["retriever"], row["segmentation"]) == ("mpnet", "blocks")
    ]
    name = "mpnet/blocks - bm25/blocks"
    assert set(world.runs[name].artifacts) == {"comparisons.parquet"}
    assert held(name, "comparisons.parquet") == [
        row for row in rows["comparisons.parquet"] if row["name"] == name
    ]
    # Rows over connected clusters lie beside those that they repeat.
    name = "mpnet/sections - mpnet/windows"
    assert held(name, "comparisons.parquet") == [
        row for row in rows["comparisons.parquet"]
        if row["name"] in (name, f"{name} (connected)")
    ]
    assert {row["family"] for row in held(name, "comparisons.parquet")} == {
        "segmentation", "connected",
    }
    top = world.runs["mpnet"]
    assert set(top.artifacts) == {
        "means.parquet", "comparisons.parquet", "units.json", "units-retrieve.json",
        "units-score.json", "units-infer.json",
    }
    assert held("mpnet", "comparisons.parquet") == [
        row for row in rows["comparisons.parquet"] if row["a"].startswith("mpnet/")
    ]
    assert json.loads(str(top.artifacts["units-retrieve.json"]))["window_tokens"] == 512
    said = json.loads(str(top.artifacts["units.json"]))
    assert said["collection"] == "c" * 64 and said["cut_by"] == cut_by(world.params)
    assert top.metrics == {
        "documents": 3, "development": 6, "development without an answer": 1, "reworded": 2,
        "anchors": 9, "distinct_texts": 104, "window_tokens": 512,
        "n_segmentations": 3, "n_comparisons": 6,
    }


def test_digests_say_what_is_the_same(world: World) -> None:
    runs = world.runs.values()

    def distinct(tag: str) -> int:
        return len({run.tags[tag] for run in runs if tag in run.tags})

    assert (distinct("corpus_digest"), distinct("retriever_digest")) == (1, 3)
    assert (distinct("segmentation_digest"), distinct("comparison_digest")) == (9, 15)
    assert distinct("data_digest") == RUNS
    # The same documents and questions as the ablation's.
    ablation = read_runs(world.root, world.params, "toy")[0]
    assert world.runs["bm25"].tags["corpus_digest"] == ablation.tags["corpus_digest"]


def test_one_document_has_differences_and_says_why_no_interval(tmp_path: Path) -> None:
    params = a_units_project(tmp_path, documents=1)
    run = named(read_units(tmp_path, params, "toy"))["bm25/sections - bm25/blocks"]
    for slice_ in ("development", "reworded"):
        assert run.tags[f"reason.{slice_}"] == (
            "one document: nothing to resample, so no interval and no p"
        )
    assert "delta/units/covered_at_3" in run.metrics
    assert not any("ci_low" in name or name.startswith("p/") for name in run.metrics)
    # ci_low, ci_high, p and p_holm of 48 rows; no document can be joined to another.
    assert run.metrics["undefined_figures"] == 4 * 48
    assert not any(name.startswith("connected/") for name in run.metrics)


def test_documents_that_are_all_connected_leave_the_interval_over_documents(tmp_path: Path) -> None:
    params = a_units_project(tmp_path, documents=2)
    run = named(read_units(tmp_path, params, "toy"))["bm25/sections - bm25/blocks"]
    assert run.tags["reason.connected"] == (
        "one document: nothing to resample, so no interval and no p"
    )
    assert "ci_low/units/covered_at_3" in run.metrics
    assert "connected/delta/units/covered_at_3" in run.metrics
    assert not any(name.startswith(("connected/ci_", "connected/p")) for name in run.metrics)
    # ci_low, ci_high, p and p_holm of the 8 rows
    table = tmp_path / layout.stage("units-infer", "toy") / "comparisons.parquet"
    still = [row for row in schemas.read(table, schemas.UNIT_COMPARISONS).to_pylist()
             if (row["a"], row["b"]) == ("bm25/sections", "bm25/blocks")
             and row["family"] != "connected" and row["p"] is None]
    assert run.metrics["undefined_figures"] == 4 * 8 + 2 * len(still)  # p and Holm's p of these


# What does not fit ------------------------------------------------------------------------------


@pytest.mark.parametrize("path", [
    "units/toy/report.json", "units-score/toy/report.json", "units-infer/toy/report.json",
    "units-retrieve/toy/bm25/report.json", "units-retrieve/toy/mpnet/report.json",
    "units-score/toy/outcomes.parquet", "units-infer/toy/means.parquet",
    "units-infer/toy/comparisons.parquet",
])
def test_a_missing_result_is_named_before_anything_is_logged(tmp_path: Path, path: str) -> None:
    params = a_units_project(tmp_path)
    (tmp_path / "artifacts" / path).unlink()
    with pytest.raises(InputError, match=rf"{path}: no.* run `dvc repro`"):
        track(tmp_path, params)
    assert not (tmp_path / "mlruns").exists()


def rewrite(
    root: Path, file: str, schema: schemas.Schema,
    change: Callable[[dict[str, Any]], dict[str, Any] | None],
) -> None:
    path = root / "artifacts" / file
    rows = [new for row in schemas.read(path, schema).to_pylist() if (new := change(row))]
    schemas.write(path, schema, schemas.table(schema, rows))


MEANS, COMPARISONS = "units-infer/toy/means.parquet", "units-infer/toy/comparisons.parquet"


@pytest.mark.parametrize(("break_it", "message"), [
    (lambda root: rewrite(root, MEANS, schemas.UNIT_MEANS,
                          lambda r: None if r["segmentation"] == "windows" else r),
     "not of the same retrievers and segmentations"),
    (lambda root: rewrite(root, COMPARISONS, schemas.UNIT_COMPARISONS,
                          lambda r: r | {"b": r["b"].replace("windows", "pages")}),
     r"'bm25/pages'.* are compared and have no outcomes"),
    (lambda root: rewrite(root, COMPARISONS, schemas.UNIT_COMPARISONS,
                          lambda r: None if r["family"] == "segmentation"
                          and r["a"] == "bm25/windows" else r),
     r"\[\('bm25/windows', 'bm25/blocks'\)\] are compared over connected clusters alone"),
    (lambda root: rewrite(root, MEANS, schemas.UNIT_MEANS,
                          lambda r: None if (r["basis"], r["amount"]) == ("matched", 3) else r),
     r"results at \[1\] matched, params.yaml has \[1, 3\]"),
    (lambda root: rewrite(root, MEANS, schemas.UNIT_MEANS,
                          lambda r: None if r["amount"] == 64 else r),
     r"results at \[32\] tokens.*, params.yaml has \[32, 64\]"),
    (lambda root: schemas.write_text(root / "artifacts/units-infer/toy/report.json",
                                     '{"asked": false}'),
     "made with `units: false`, and params.yaml says `units: true` for toy"),
])
def test_results_that_contradict_each_other_are_refused(
    tmp_path: Path, break_it: Callable[[Path], None], message: str
) -> None:
    params = a_units_project(tmp_path)
    break_it(tmp_path)
    with pytest.raises(InputError, match=rf"{message}.*; run `dvc repro`"):
        read_units(tmp_path, params, "toy")


def test_results_that_contradict_the_settings_are_refused(tmp_path: Path) -> None:
    a_units_project(tmp_path)
    study = a_units_study()
    study["units"]["cutoffs"] = [1, 3, 5]
    with pytest.raises(InputError, match=r"\[1, 3\] matched, params.yaml has \[1, 3, 5\]"):
        read_units(tmp_path, from_mapping(study), "toy")
    with pytest.raises(InputError, match=r"params\.yaml says `units: false` for toy"):
        read_units(tmp_path, from_mapping(a_units_study(asked=False)), "toy")
    study = a_units_study()
    del study["embedders"]["mpnet"]
    study["primary"]["embedder"] = "minilm"
    with pytest.raises(InputError, match=r"searched by .*'mpnet'\], params.yaml has .*'minilm'\]"):
        read_units(tmp_path, from_mapping(study), "toy")


# What a store then has --------------------------------------------------------------------------


@pytest.fixture(scope="module")
def logged(tmp_path_factory: pytest.TempPathFactory, blank: Path) -> Path:
    """A project whose studies were tracked once in its own store; to be copied."""
    root = tmp_path_factory.mktemp("logged") / "project"
    (root / "mlruns").mkdir(parents=True)
    shutil.copy(blank, root / "mlruns")
    with pytest.MonkeyPatch.context() as patch:
        patch.delenv("MLFLOW_TRACKING_URI", raising=False)
        first = track(root, a_units_project(root))
    assert first == Summary(added=ABLATION + RUNS, kept=0)
    return root


@pytest.fixture
def project(logged: Path, tmp_path: Path) -> Path:
    """A copy of it, which is to the store a folder that has moved."""
    root = tmp_path / "a new place #1 100%20"
    shutil.copytree(logged, root)
    return root


def runs_of(root: Path, condition: str = "", experiment: str = EXPERIMENT) -> list[Any]:
    client = client_of(place(root).uri)
    identity = client.get_experiment_by_name(experiment).experiment_id
    found: list[Any] = list(client.search_runs(
        [identity], condition, order_by=["attributes.run_id ASC"]
    ))
    return found


CURRENT = "tags.`spanwise.superseded` = 'false'"
FORMER = "tags.`spanwise.superseded` = 'true'"


def names(runs: list[Any]) -> set[str]:
    return {run.info.run_name for run in runs}


def test_every_run_holds_all_that_it_should_and_lies_below_its_retriever(
    logged: Path, tmp_path: Path
) -> None:
    wanted = named(read_units(logged, from_mapping(a_units_study()), "toy"))
    found = {run.info.run_name: run for run in runs_of(logged)}
    assert found.keys() == wanted.keys()
    client = client_of(place(logged).uri)
    for name, run in wanted.items():
        stored = found[name]
        assert stored.info.status == "FINISHED"
        assert (stored.data.params, stored.data.metrics) == (run.params, run.metrics)
        assert stored.data.tags.items() >= run.tags.items()
        assert stored.data.tags["spanwise.content"] == run.content()
        parent = stored.data.tags.get("mlflow.parentRunId")
        above = None if run.top else found[run.cell.removeprefix("toy/")].info.run_id
        assert parent == above
        files = client.list_artifacts(stored.info.run_id)
        assert {file.path for file in files} == run.artifacts.keys()
    got = client.download_artifacts(found["bm25/blocks"].info.run_id, "means.parquet", tmp_path)
    # 2 slices x 6 bases x 2 amounts
    assert schemas.read(Path(got), schemas.UNIT_MEANS).num_rows == 24


@pytest.mark.parametrize(("condition", "count"), [
    (CURRENT, RUNS), ("tags.study = 'units' and tags.standing = 'exploratory'", RUNS),
    ("tags.kind = 'retriever'", 3), ("tags.kind = 'segmentation'", 9),
    ("tags.family = 'segmentation'", 9), ("tags.family = 'retriever'", 6),
    ("tags.segmentation = 'blocks'", 5), ("params.`units.windows.size_tokens` = '12'", RUNS),
    ("metrics.`units/covered_at_3` >= 0", 9), ("metrics.`reworded/units/covered_at_3` >= 0", 9),
    ("metrics.`tokens-cut/returned_characters_at_64` > 0", 9),
    ("metrics.`delta/characters-cut/covered_at_200` > -2", 15),
    ("metrics.`matched/covered_at_3` >= 0", 9), ("metrics.`units/covered_cutoff_at_1` >= 0", 9),
    ("metrics.`delta/matched/covered_at_3` > -2", 9),
    ("metrics.`connected/n_documents/matched/covered_at_3` = 2", 9),
])
def test_runs_can_be_searched(logged: Path, condition: str, count: int) -> None:
    assert len(runs_of(logged, condition)) == count


def test_a_second_call_adds_nothing_and_a_moved_folder_is_mended(
    project: Path, tmp_path: Path
) -> None:
    before = [run.info.run_id for run in runs_of(project)]
    params = from_mapping(a_units_study())
    for _ in range(2):
        assert track(project, params) == Summary(added=0, kept=ABLATION + RUNS)
    stored = runs_of(project)
    assert [run.info.run_id for run in stored] == before
    here = project / "mlruns" / "artifacts" / "units" / "toy"
    client = client_of(place(project).uri)
    assert client.get_experiment_by_name(EXPERIMENT).artifact_location == here.as_uri()
    assert {p.name for p in here.iterdir()} == set(before)
    for run in stored:
        assert run.info.artifact_uri == f"{here.as_uri()}/{run.info.run_id}/artifacts"
    run = next(run for run in stored if run.info.run_name == "mpnet")
    got = client.download_artifacts(run.info.run_id, "units.json", tmp_path)
    assert json.loads(Path(got).read_text())["anchors"] == 9


def test_the_study_of_units_alone_tells_where_a_folder_was(project: Path) -> None:
    client = client_of(place(project).uri)
    client.rename_experiment(client.get_experiment_by_name("spanwise/toy").experiment_id, "else")
    prepare(place(project))
    here = (project / "mlruns" / "artifacts" / "units" / "toy").as_uri()
    found = client_of(place(project).uri).get_experiment_by_name(EXPERIMENT)
    assert found.artifact_location == here


def test_changed_results_supersede_what_rests_on_them_and_may_come_back(project: Path) -> None:
    params = from_mapping(a_units_study())
    first = named(read_units(project, params, "toy"))
    before = {run.info.run_id for run in runs_of(project)}
    a_units_project(project, {("minilm", "blocks", "n2"): 1.0, ("minilm", "blocks", "n3"): 0.0})
    second = named(read_units(project, params, "toy"))
    changed = {name for name, run in second.items() if run.content() != first[name].content()}
    assert changed >= {
        "minilm", "minilm/blocks", "minilm/sections - minilm/blocks",
        "minilm/windows - minilm/blocks", "minilm/blocks - bm25/blocks",
    }
    # The correction ties the others of a family to it, and nothing else does.
    assert changed <= {
        "minilm", "minilm/blocks", "minilm/sections - minilm/blocks",
        "minilm/windows - minilm/blocks", "minilm/blocks - bm25/blocks",
        "minilm/sections - minilm/windows", "mpnet", "mpnet/blocks - bm25/blocks",
    }
    n = len(changed)
    assert track(project, params) == Summary(n, ABLATION + RUNS - n, superseded=n)
    current = runs_of(project, CURRENT)
    assert {r.info.run_name for r in current if r.info.run_id not in before} == changed
    former = runs_of(project, FORMER)
    assert names(former) == changed and {run.info.run_id for run in former} < before
    top = {run.info.run_name: run.info.run_id for run in current if run.info.run_name in RETRIEVERS}
    for run in current:
        if run.info.run_name not in RETRIEVERS:
            above = top[run.data.tags["retriever"]]
            assert run.data.tags["mlflow.parentRunId"] == above

    a_units_project(project)
    assert track(project, params) == Summary(0, ABLATION + RUNS, superseded=n)
    assert {run.info.run_id for run in runs_of(project, CURRENT)} == before
    assert track(project, params) == Summary(0, ABLATION + RUNS)


def test_an_interrupted_call_is_finished_by_the_next(
    tmp_path: Path, blank: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "mlruns").mkdir()
    shutil.copy(blank, tmp_path / "mlruns")
    params = a_units_project(tmp_path)
    written: list[Path] = []
    write = schemas.write

    def interrupted(path: Path, schema: schemas.Schema, found: pa.Table) -> None:
        if path.name == "comparisons.parquet":
            if written:
                raise KeyboardInterrupt
            written.append(path)
        write(path, schema, found)

    # BM25's own run and those of its segmentations are whole, its first comparison is not.
    monkeypatch.setattr(schemas, "write", interrupted)
    with pytest.raises(KeyboardInterrupt):
        track(tmp_path, params)
    monkeypatch.undo()
    assert sorted(run.info.status for run in runs_of(tmp_path)) == ["FINISHED"] * 4 + ["RUNNING"]
    assert track(tmp_path, params) == Summary(RUNS - 4, ABLATION + 4, repaired=1)
    found = runs_of(tmp_path)
    assert len(found) == RUNS and {run.info.status for run in found} == {"FINISHED"}
    assert track(tmp_path, params) == Summary(0, ABLATION + RUNS)


def test_a_corpus_without_the_study_has_no_experiment(tmp_path: Path, blank: Path) -> None:
    (tmp_path / "mlruns").mkdir()
    shutil.copy(blank, tmp_path / "mlruns")
    params = a_units_project(tmp_path, asked=False)
    assert track(tmp_path, params) == Summary(ABLATION, 0)
    client = client_of(place(tmp_path).uri)
    found = {e.name for e in client.search_experiments(view_type=3)}
    assert found == {"Default", "spanwise/toy"}
    assert not (tmp_path / "mlruns" / "artifacts" / "units").exists()


def test_a_study_that_is_switched_off_keeps_its_experiment_and_supersedes_its_runs(
    project: Path,
) -> None:
    before = {run.info.run_id for run in runs_of(project)}
    off = a_units_project(project, asked=False)
    assert track(project, off) == Summary(0, ABLATION, superseded=RUNS)
    assert {run.info.run_id for run in runs_of(project, FORMER)} == before
    assert not runs_of(project, CURRENT)
    assert len(runs_of(project, CURRENT, "spanwise/toy")) == ABLATION
    assert track(project, off) == Summary(0, ABLATION)

    on = a_units_project(project)
    assert track(project, on) == Summary(0, ABLATION + RUNS)
    assert {run.info.run_id for run in runs_of(project, CURRENT)} == before


def test_a_deleted_experiment_comes_back_with_the_study_only(project: Path) -> None:
    client = client_of(place(project).uri)
    experiment = client.get_experiment_by_name(EXPERIMENT).experiment_id
    client.delete_experiment(experiment)
    assert track(project, a_units_project(project, asked=False)) == Summary(0, ABLATION)
    assert client.get_experiment(experiment).lifecycle_stage == "deleted"
    assert track(project, a_units_project(project)) == Summary(0, ABLATION + RUNS)
    assert client.get_experiment(experiment).lifecycle_stage == "active"
