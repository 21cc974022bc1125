"""The report's checks beside the contrasts, cuts, reranked cells and what is said over corpora."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from spanwise import schemas
from spanwise.params import Params
from spanwise.reporting import checks_tables, exploratory, files, sections
from spanwise.reporting.cells import cells_of
from spanwise.reporting.gather import CorpusRecord, gather
from spanwise.reporting.judgement import Judgement
from spanwise.reporting.page import page as whole
from spanwise.reporting.replication import Outcome, verdict
from spanwise.reporting.terminal import verdicts
from spanwise.reporting.verdict import contrast_rows, primary_cell, told
from spanwise.statistics.families import inferred
from spanwise.statistics.study import Study, means

from . import reporting_world as world
from .reference_reporting import Page, met

SETTINGS = world.settings()
PRIMARY = ("mpnet", "none")


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("world")
    world.build(made, SETTINGS)
    return made


@pytest.fixture(scope="module")
def harbour(root: Path) -> CorpusRecord:
    return gather(root, "harbour", SETTINGS)


def again(
    record: CorpusRecord, params: Params, change: Callable[[dict[str, Any]], dict[str, Any] | None]
) -> CorpusRecord:
    """The record with its scores changed, or left out, and everything inferred from them anew."""
    rows = [dict(zip(record.scores, row, strict=True))
            for row in zip(*record.scores.values(), strict=True)]
    kept = [new for row in rows if (new := change(row)) is not None]
    left = frozenset(q["question_id"] for q in record.questions if q["excluded"] is not None)
    study = Study(
        params, schemas.table(schemas.SCORES, kept), {}, "confirmatory",
        {q["question_id"]: [q["doc_id"]] for q in record.questions}, left,
    )
    found = inferred(study)
    return replace(
        record, contrasts=found.contrasts, mixed=found.mixed,
        checks={tuple(r[k] for k in schemas.CHECKS.key): r for r in found.checks},
        means={(r["embedder"], r["reranker"], r["condition"], r["slice"], r["measure"]): r
               for r in means(study)},
    )


def lines(text: str) -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO(text)))


# ---------------------------------------------------------------- over corpora

SAYS: Mapping[str, tuple[str, float]] = {
    "+": ("difference", 0.02), "-": ("difference", -0.02), "+within": ("both", 0.005),
    "same": ("equivalent", 0.001), "+open": ("undetermined", 0.02),
    "-open": ("undetermined", -0.02), "nought": ("undetermined", 0.0), "absent": ("absent", 0.0),
}


def outcome(corpus: str, kind: str) -> Outcome:
    state, delta = SAYS[kind]
    row = {"delta": None if state == "absent" else delta}
    return Outcome(corpus, row, Judgement(state, False, None))  # type: ignore[arg-type]


@pytest.mark.parametrize(("kinds", "word"), [
    (["+", "+"], "replicated"),
    (["+", "+within", "+open"], "replicated"),
    (["same", "same"], "replicated"),            # that nothing matters replicates as well
    (["+within", "same"], "replicated"),         # both say that nothing matters
    (["+", "-"], "corpus-dependent"),
    (["+", "same"], "corpus-dependent"),
    (["+", "+", "same"], "corpus-dependent"),    # a conflict outweighs any number that agree
    (["+", "+open"], "underpowered"),            # significant and not significant is no conflict
    (["+", "+", "-open"], "underpowered"),
    (["+", "+", "nought"], "underpowered"),
    (["+open", "+open"], "underpowered"),
    (["same", "+open"], "underpowered"),
    (["+", "absent"], None),
    (["+"], None),
    ([], None),
])
def test_what_a_contrast_over_corpora_is_called(kinds: list[str], word: str | None) -> None:
    outcomes = [outcome(f"c{i}", kind) for i, kind in enumerate(kinds)]
    assert verdict(outcomes)[0] == word
    assert verdict(outcomes[::-1])[0] == word


def test_replication_leaves_demonstrations_out(root: Path, harbour: CorpusRecord) -> None:
    toy = gather(root, "toy", SETTINGS)
    alone = Page(whole([harbour, toy], SETTINGS)).text("corpora")
    assert "at least 2 corpora that are no demonstrations; here is 1 such corpus (harbour)" in alone
    assert "Left out as a demonstration: toy" in alone
    records = [harbour, replace(harbour, name="quay"), toy]
    text = Page(whole(records, SETTINGS)).text("corpora")
    # The same corpus twice: what it shows is shown twice, and an absent contrast by none.
    assert "C1, organisation against contexts: not answered , no corpus has it" in text
    found = {r["name"]: told(harbour, r, SETTINGS).state
             for r in contrast_rows(harbour, SETTINGS, PRIMARY)}
    rows = lines(files.tables(records, SETTINGS)["replication.csv"])
    assert {row["corpus"] for row in rows} == {"harbour", "quay"}
    for row in rows:
        state = found[row["contrast"]]
        assert row["replication"] == {
            "difference": "replicated", "both": "replicated", "equivalent": "replicated",
            "undetermined": "underpowered", "absent": ""}[state]
    assert "difference" in found.values()
    metrics = json.loads(files.metrics(records, SETTINGS))["over corpora"]["replication"]
    assert {name: one["word"] or "" for name, one in metrics.items()} == {
        row["contrast"]: row["replication"] for row in rows}
    assert metrics["C2"]["corpora"] == 2 and metrics["C2"]["standing"] == "exploratory"
    assert {row["corpus_standing"] for row in rows} == {"confirmatory", "absent"}


@pytest.mark.parametrize(("total", "holding", "kept"), [(9, 2, 5), (6, 6, 5), (5, 0, 3), (4, 1, 4)])
def test_chance_is_the_share_of_all_ways(total: int, holding: int, kept: int) -> None:
    assert sections.chance(total, holding, kept) == pytest.approx(met(total, holding, kept))


def test_section_recall_stands_beside_chance(root: Path, harbour: CorpusRecord) -> None:
    found = {(r.embedder, r.condition): r for r in sections.recalls(harbour, SETTINGS)}
    its = found["mpnet", "A4"]
    chunks = list(harbour.chunks["induced"].values())
    assert its.sections == len({(c["doc_id"], c["node"]) for c in chunks}) > its.kept == 5
    asked = [q for q in harbour.questions if q["excluded"] is None and q["base"] is None]
    expected = []
    for question in asked:
        holding = {
            (c["doc_id"], c["node"]) for c in chunks for e in question["evidence"]
            if c["doc_id"] == e["doc_id"]
            and set(range(c["start"], c["end"])) & set(range(e["start"], e["end"]))
        }
        expected.append(met(its.sections, len(holding), 5))
    assert its.chance == pytest.approx(sum(expected) / len(expected))
    assert its.questions == len(asked)
    # A picture takes two corpora.
    toy = gather(root, "toy", SETTINGS)
    assert "<figure" not in sections.part([harbour], SETTINGS)
    assert sections.part([harbour, toy], SETTINGS).count("<figure") == 1


# ---------------------------------------------------------------- beside the intervals


def test_everything_that_was_checked_is_shown(harbour: CorpusRecord) -> None:
    shown = Page(checks_tables.beside(harbour, SETTINGS, "contrast")).text()
    for check in harbour.checks.values():
        if check["family"] != "contrast":
            continue
        assert f"{check['percentile_low']:+.3f}".replace("-", "−") in shown
        assert f"{check['detectable']:.3f}" in shown and f"{check['documents_needed']:,}" in shown
        assert f"{check['equivalence_questions']:,}" in shown
    kept = [m for m in harbour.mixed if m["name"] in SETTINGS.contrasts]
    assert kept and all(f"{m['estimate']:+.3f}".replace("-", "−") in shown for m in kept)
    assert "absent: A1: no contexts" in shown
    reason = "stacked: none. The errors differ."
    parted = replace(harbour, mixed=[{**m, "discordance": reason} for m in harbour.mixed])
    assert f"C2 in mpnet: {reason}" in checks_tables.beside(parted, SETTINGS, "contrast")
    quiet = replace(harbour, mixed=[{**m, "discordance": None} for m in harbour.mixed])
    assert "no model says otherwise" in checks_tables.beside(quiet, SETTINGS, "contrast")


def test_cautions_stand_over_the_contrasts(harbour: CorpusRecord) -> None:
    warned = replace(harbour, checks={
        key: {**check, "cautions": ["few documents differ"]}
        if key[:2] == PRIMARY and key[4] in ("C2", "C3") else {**check, "cautions": []}
        for key, check in harbour.checks.items()})
    html = whole([warned], SETTINGS)
    assert html.count("C2, C3: few documents differ.") == 1
    assert html.index("Trust these intervals less") < html.index('id="forest-harbour"')
    assert "few documents differ" in verdicts([warned], SETTINGS, Path("x"))
    rows = lines(files.tables([warned], SETTINGS)["checks.csv"])
    assert {row["name"] for row in rows if row["cautions"]} == {"C2", "C3"}
    assert "Trust these intervals less" not in whole([replace(warned, checks={})], SETTINGS)


def test_tables_of_results_say_how_their_lines_may_be_read(harbour: CorpusRecord) -> None:
    tables = files.tables([harbour], SETTINGS)
    for name in ("checks", "mixed", "contrasts", "means", "sections", "replication"):
        rows = lines(tables[f"{name}.csv"])
        assert rows and {r["standing"] for r in rows} <= {"confirmatory", "exploratory", "absent"}
    changed = replace(harbour, standing="exploratory", differences=("seed: registered 1, ran 2",))
    (row,) = lines(files.tables([changed], SETTINGS)["standing.csv"])
    assert (row["standing"], row["difference"]) == ("exploratory", "seed: registered 1, ran 2")
    assert "seed: registered 1, ran 2" in Page(whole([changed], SETTINGS)).text("verdict-harbour")
    assert "seed: registered 1, ran 2" in verdicts([changed], SETTINGS, Path("x"))


def test_types_are_cut_within_their_own_questions(harbour: CorpusRecord) -> None:
    shown = Page(exploratory.types(harbour, SETTINGS)).text()
    for row in harbour.contrasts:
        if row["family"].startswith("type:") and row["embedder"] == "mpnet" and row["delta"]:
            assert f"{row['delta']:+.3f}".replace("-", "−") in shown
    assert "factoid" in shown and "multihop" in shown


# ---------------------------------------------------------------- reranked cells


def test_reranked_cells_follow_those_without_and_are_named(harbour: CorpusRecord) -> None:
    params = world.settings(rerankers={"bge": {"model": "owner/name", "kind": "flag"}})
    extra = {(key[0], "bge", *key[2:]): {**row, "reranker": "bge"}
             for key, row in harbour.means.items() if key[0] != "bm25"}
    both = replace(harbour, means=extra | dict(harbour.means), contrasts=[
        *harbour.contrasts,
        *({**r, "reranker": "bge", "standing": "exploratory"} for r in harbour.contrasts)])
    assert cells_of(both, params) == [
        PRIMARY, ("minilm", "none"), ("minilm", "bge"), ("mpnet", "bge"), ("bm25", "none")]
    assert primary_cell(both, params) == PRIMARY
    # Where the primary cell did not run, one without a reranker stands in for it.
    other = world.settings(
        rerankers={"bge": {"model": "owner/name", "kind": "flag"}},
        primary={"measure": "cov_ndcg@10", "embedder": "mpnet", "reranker": "bge"})
    assert primary_cell(harbour, other) == ("minilm", "none")
    html = whole([both], params)
    assert "mpnet + bge" in html and "mpnet + bge · primary cell" not in html
    assert "mpnet + bge" in json.loads(files.metrics([both], params))["harbour"]


def test_an_absent_cell_says_why(harbour: CorpusRecord) -> None:
    reports = [(stage, {**counts, "absent_cells": {"mpnet/bge": "bge: no such model here"}}
                if stage == "score" else counts) for stage, counts in harbour.reports]
    gone = replace(harbour, reports=reports)
    text = Page(whole([gone], SETTINGS)).text("c-harbour")
    assert "Cell mpnet + bge is absent: bge: no such model here." in text
    assert json.loads(files.metrics([gone], SETTINGS))["harbour"]["mpnet + bge"] == {
        "status": "absent", "reason": "bge: no such model here"}
    left = lines(files.tables([gone], SETTINGS)["exclusions.csv"])
    # Twelve conditions, less BM25, less A1, which is absent everywhere.
    assert {"corpus": "harbour", "where": "conditions in cell mpnet + bge",
            "reason": "bge: no such model here", "count": "10"} in left


# ---------------------------------------------------------------- too little to say anything


def _sound(record: CorpusRecord, params: Params) -> str:
    """The page's text, with metrics and tables written as well; none may hold NaN."""
    made = [files.metrics([record], params), *files.tables([record], params).values(),
            *files.plots([record], params).values()]
    assert not any("nan" in text.lower().replace("\n", ",").split(",") for text in made)
    return Page(whole([record], params)).text()


def test_one_question_says_that_nothing_varies(harbour: CorpusRecord) -> None:
    lone = again(harbour, SETTINGS, lambda r: r if r["question_id"] == "doc-0-q0" else None)
    text = _sound(lone, SETTINGS)
    assert "All questions are about one document, so no interval can be given." in text
    assert "All questions of the primary slice are of one type" in text
    assert all(told(lone, r, SETTINGS).state in ("undetermined", "absent")
               for r in contrast_rows(lone, SETTINGS, PRIMARY))


def test_equal_differences_are_no_evidence(harbour: CorpusRecord) -> None:
    level = {"A3": 0.75}
    flat = again(harbour, SETTINGS, lambda r: r | {
        "cov_ndcg@10": None if r["cov_ndcg@10"] is None else level.get(r["condition"], 0.5)})
    text = _sound(flat, SETTINGS)
    assert "Every question differs by the same +0.250" in text
    states = {r["name"]: told(flat, r, SETTINGS).state
              for r in contrast_rows(flat, SETTINGS, PRIMARY)}
    assert set(states.values()) == {"undetermined", "absent"}
    # In the tables beside the intervals too.
    shown = Page(checks_tables.beside(flat, SETTINGS, "contrast")).text()
    assert shown.count("Every question differs by the same +0.250") >= 2
    assert "all differences are equal" in shown or "the scores do not vary" in shown


def test_no_steps_and_a_type_of_one_question_are_told(harbour: CorpusRecord) -> None:
    params = world.settings(steps={})
    one = again(harbour, params, lambda r: r | {
        "type": "rare" if r["question_id"] == "doc-0-q0" else "common"})
    text = _sound(one, params)
    assert "No steps are named in params.yaml" in text
    rare = [r for r in one.contrasts if r["family"] == "type:rare" and r["delta"] is not None]
    assert rare and {r["n_questions"] for r in rare} == {1}
    shown = Page(exploratory.types(one, params)).text()
    assert shown.count("All questions are about one document, so no interval") >= len(rare)
