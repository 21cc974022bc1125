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
from spanwise.reporting import checks_tables, exploratory, files, replication, sections
from spanwise.reporting.cells import cells_of
from spanwise.reporting.gather import CorpusRecord, gather
from spanwise.reporting.judgement import Judgement
from spanwise.reporting.page import page as whole
from spanwise.reporting.replication import Outcome, independent, verdict
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

SAYS: Mapping[str, tuple[str, float, float]] = {
    "+": ("difference", 0.02, 0.006), "-": ("difference", -0.02, 0.006),
    "++": ("difference", 0.2, 0.006), "+within": ("both", 0.005, 0.001),
    "-within": ("both", -0.005, 0.001), "same": ("equivalent", 0.001, 0.004),
    "near": ("equivalent", 0.006, 0.004), "+open": ("undetermined", 0.02, 0.02),
    "-open": ("undetermined", -0.02, 0.02), "-wide": ("undetermined", -0.02, 0.05),
    "nought": ("undetermined", 0.0, 0.02), "absent": ("absent", 0.0, 0.0),
}
"""Verdict, difference and standard error."""


def outcome(corpus: str, kind: str) -> Outcome:
    state, delta, se = SAYS[kind]
    row = {"delta": None if state == "absent" else delta, "se": se}
    says = Judgement(state, False, None)  # type: ignore[arg-type]
    return Outcome(corpus, row, says, 0.07 if kind == "+open" else None)


@pytest.mark.parametrize(("kinds", "word"), [
    (["+", "+"], "replicated"),
    (["+", "+within", "+open"], "replicated"),
    (["same", "same"], "replicated"),            # that nothing matters replicates as well
    (["+within", "same"], "replicated"),         # both say that nothing matters
    (["+within", "-within"], "replicated"),      # whatever the signs: neither matters
    (["+", "++"], "replicated"),                 # of different sizes, but in one direction
    (["+", "-"], "corpus-dependent"),            # .04 / (.006 sqrt 2) = 4.7
    (["+", "same"], "corpus-dependent"),         # .019 / sqrt(.006^2 + .004^2) = 2.6
    (["+", "+", "same"], "corpus-dependent"),    # a conflict outweighs any number that agree
    (["++", "+open"], "corpus-dependent"),       # .18 / sqrt(.006^2 + .02^2) = 8.6
    (["+", "near"], "underpowered"),             # .014 / .0072 = 1.94: maybe one and the same
    (["+", "+open"], "underpowered"),            # significant and not significant is no conflict
    (["+", "+", "-open"], "underpowered"),       # .04 / sqrt(.006^2 + .02^2) = 1.9
    (["+", "+", "nought"], "underpowered"),
    (["-wide", "same"], "underpowered"),
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


def test_what_is_not_settled_says_how_much_could_be_found() -> None:
    _, reason = verdict([outcome("a", "+open"), outcome("b", "same"), outcome("c", "+open")])
    assert reason == (
        "not settled: of 3 corpora significant on none, equivalent on 1; power at the margin 7% on "
        "a, unknown on b and 7% on c")
    _, reason = verdict([outcome("a", "+"), outcome("b", "same")])
    assert reason == (
        "+0.020 (difference) on a and +0.001 (equivalent) on b, 2.6 standard errors apart")


def elsewhere(record: CorpusRecord, name: str, own: int = 99) -> CorpusRecord:
    """The same figures under another name; the texts of its first `own` documents are its own."""
    documents = {
        doc: {**row, "body_sha256": f"{name}-{doc}"} if i < own else row
        for i, (doc, row) in enumerate(record.documents.items())
    }
    return replace(record, name=name, documents=documents)


def test_corpora_that_share_a_document_count_as_one(harbour: CorpusRecord) -> None:
    first = next(iter(harbour.documents))
    made = elsewhere(harbour, "part", 6)
    part = replace(made, documents={
        doc: row for doc, row in made.documents.items() if doc != first})
    text = replication.part([part, harbour], SETTINGS)
    assert "Left out: part, for it shares 2 documents with harbour." in text
    assert "So nothing here is said to replicate" in text
    quay = elsewhere(harbour, "quay")
    records = [part, harbour, quay]
    kept, left = independent(records, SETTINGS)
    assert [r.name for r in kept] == ["harbour", "quay"] and list(left) == ["part"]
    rows = lines(files.tables(records, SETTINGS)["replication.csv"])
    assert {row["corpus"] for row in rows} == {"harbour", "quay"}
    assert json.loads(files.metrics(records, SETTINGS))["over corpora"]["left_out"] == left
    assert "Left out: part" in replication.part(records, SETTINGS)
    # Texts without words are equal everywhere.
    empty = {"body_sha256": "nothing", "words": 0}
    bare = [replace(r, documents={**r.documents, "blank": {**r.documents[first], **empty}})
            for r in (harbour, quay)]
    assert independent(bare, SETTINGS)[1] == {}


def test_replication_leaves_demonstrations_out(root: Path, harbour: CorpusRecord) -> None:
    toy = gather(root, "toy", SETTINGS)
    alone = Page(whole([harbour, toy], SETTINGS)).text("corpora")
    assert "at least 2 corpora that are no demonstrations; here is 1 such corpus (harbour)" in alone
    assert "Left out as a demonstration: toy" in alone
    records = [harbour, elsewhere(harbour, "quay"), toy]
    text = Page(whole(records, SETTINGS)).text("corpora")
    # The same figures twice: what they show is shown twice, and an absent contrast by none.
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
    assert html.count("C2, C3 in mpnet: few documents differ.") == 1
    assert html.index("Trust these intervals less") < html.index('id="forest-harbour"')
    assert "few documents differ" in verdicts([warned], SETTINGS, Path("x"))
    rows = lines(files.tables([warned], SETTINGS)["checks.csv"])
    assert {row["name"] for row in rows if row["cautions"]} == {"C2", "C3"}
    assert "Trust these intervals less" not in whole([replace(warned, checks={})], SETTINGS)
    # Those of the other cell too, each named by its cell.
    other = replace(harbour, checks={
        key: {**check, "cautions": ["one is large"] if key[3:] == ("contrast", "C4") else []}
        for key, check in harbour.checks.items()})
    text = Page(whole([other], SETTINGS)).text("c-harbour")
    assert "C4 in mpnet; C4 in minilm: one is large." in text


def test_cautions_of_types_and_of_connected_documents_stand_with_their_tables(
    harbour: CorpusRecord,
) -> None:
    def warned(family: str, contrasts: Any = harbour.contrasts) -> CorpusRecord:
        found = {
            (*key[:3], family, key[4]): {**check, "family": family, "cautions": ["few differ"]}
            for key, check in harbour.checks.items() if key[:2] == PRIMARY
            and key[3:] == ("contrast", "C2")}
        return replace(harbour, contrasts=contrasts, checks=found)

    shown = Page(exploratory.types(warned("type:factoid"), SETTINGS)).text()
    assert "Holm p within the type" in shown
    assert "C2 of factoid in mpnet: few differ." in shown
    joined = [{**r, "family": "connected"} for r in contrast_rows(harbour, SETTINGS, PRIMARY)]
    html = whole([warned("connected", [*harbour.contrasts, *joined])], SETTINGS)
    start = html.index("Sensitivity: documents that share")
    assert "C2 in mpnet: few differ." in html[start : html.index("</details>", start)]
    assert html.count("C2 in mpnet: few differ.") == 1


def test_where_a_verdict_hangs_on_the_test_the_page_says_so(harbour: CorpusRecord) -> None:
    shown = {r["name"]: r for r in contrast_rows(harbour, SETTINGS, ("minilm", "none"))}
    name = next(n for n, r in shown.items() if r["p_holm"] is not None and r["p_holm"] < 0.05)
    doubted = replace(harbour, checks={
        key: {**check, "linear_p_holm": 0.001, "flip_p_holm": 0.078}
        if key[0] == "minilm" and key[3:] == ("contrast", name) else check
        for key, check in harbour.checks.items()})
    text = Page(whole([doubted], SETTINGS)).text("c-harbour")
    said = f"{name} in minilm: difference; by sign flips it would be underpowered: Holm p 0.078."
    assert said in text and "underpowered by sign flips" in text
    rows = lines(files.tables([doubted], SETTINGS)["contrasts.csv"])
    told_of = {(r["embedder"], r["name"]): r["hangs"] for r in rows if r["hangs"]
               and r["family"] == "contrast"}
    assert told_of["minilm", name] == "by sign flips it would be underpowered: Holm p 0.078"
    metrics = json.loads(files.metrics([doubted], SETTINGS))["harbour"]["minilm"]["contrasts"]
    assert "by sign flips" in metrics[name]["hangs"]


def test_least_squares_neither_converges_nor_fails_to(harbour: CorpusRecord) -> None:
    def shown(**changes: Any) -> str:
        record = replace(harbour, mixed=[{**m, **changes} for m in harbour.mixed])
        return Page(checks_tables.beside(record, SETTINGS, "contrast")).text()

    # One question a document: no variance between documents, and no iteration.
    plain = shown(model="paired", converged=None, share=None, optimizer="least squares")
    assert "not converged" not in plain and "least squares" in plain
    assert "not converged" in shown(converged=False)


def test_an_equivalence_that_does_not_count_is_called_unsure(harbour: CorpusRecord) -> None:
    def said(unsure: bool) -> list[str]:
        rows = [{**r, "ci90_low": -0.004, "ci90_high": 0.004} if r["delta"] is not None else r
                for r in harbour.contrasts]
        checks = {key: {**c, "equivalence_unsure": unsure} for key, c in harbour.checks.items()}
        html = checks_tables.beside(
            replace(harbour, contrasts=rows, checks=checks), SETTINGS, "contrast")
        return [word for word in ("yes", "no", "unsure") if f"<td>{word}</td>" in html]

    assert said(False) == ["yes"] and said(True) == ["unsure"]


def test_tables_of_results_say_how_their_lines_may_be_read(harbour: CorpusRecord) -> None:
    tables = files.tables([harbour], SETTINGS)
    for name in ("checks", "mixed", "contrasts", "means", "sections", "replication"):
        rows = lines(tables[f"{name}.csv"])
        assert rows and {r["standing"] for r in rows} <= {"confirmatory", "exploratory", "absent"}
    changed = replace(harbour, standing="exploratory", differences=("seed: registered 1, ran 2",))
    (row,) = lines(files.tables([changed], SETTINGS)["standing.csv"])
    assert (row["standing"], row["difference"]) == ("exploratory", "seed: registered 1, ran 2")
    assert "Seed: registered 1, ran 2" in Page(whole([changed], SETTINGS)).text("verdict-harbour")
    assert "Seed: registered 1, ran 2" in verdicts([changed], SETTINGS, Path("x"))


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
