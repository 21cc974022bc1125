"""Families of contrasts: what is in them, what is confirmatory, and that nothing else matters."""

from __future__ import annotations

import functools
import itertools
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from spanwise import schemas
from spanwise.params import MEASURES, Params
from spanwise.statistics import infer, pair
from spanwise.statistics.bootstrap import Sample
from spanwise.statistics.checks import FIGURES, SIZES
from spanwise.statistics.families import Inferred, inferred, ladders
from spanwise.statistics.linearised import FEW, linearised
from spanwise.statistics.study import Study

ROOT = Path(__file__).resolve().parents[1]
ARMS = ("A0", "A1", "A2", "A3-d1", "A3-d2", "A3", "A4", "P", "G3", "BM25")
DRAWS = 200
SEED = 20260710


@functools.cache
def params() -> Params:
    found = yaml.safe_load((ROOT / "params.yaml").read_text(encoding="utf-8"))
    found["inference"] = {"iterations": DRAWS, "seed": SEED, "margin": 0.01}
    # The steps whose two arms the scores below have.
    found["steps"] = {name: two for name, two in found["steps"].items() if set(two) <= set(ARMS)}
    return Params.model_validate(found)


def scores(
    arms: tuple[str, ...] = ARMS, documents: int = 6, cells: tuple[str, ...] = ("mpnet", "minilm")
) -> list[dict[str, Any]]:
    """Three questions a document and one rewording; two types; one score is undefined."""
    rng = np.random.default_rng(0)
    rows: list[dict[str, Any]] = []
    for document, number in itertools.product(range(documents), range(4)):
        level = rng.random()
        for embedder, arm in itertools.product(("mpnet", "minilm", "bm25"), ARMS):
            values = np.clip(level + 0.2 * rng.normal(size=len(MEASURES)), 0, 1).tolist()
            its = arm in arms and embedder in cells
            if its and (arm == "BM25") == (embedder == "bm25"):
                rows.append({
                    "embedder": embedder, "reranker": "none", "condition": arm,
                    "question_id": f"q{document}-{number}", "doc_id": f"d{document}",
                    "type": "factoid" if number % 2 else "multihop", "rewording": number == 3,
                    **dict(zip(MEASURES, values, strict=True)),
                })
    rows[0] |= {"cov_ndcg@10": None}
    return rows


def study(
    rows: list[dict[str, Any]], standing: str = "confirmatory", across: bool = False,
    excluded: frozenset[str] = frozenset(), absent: dict[str, str] | None = None,
) -> Study:
    documents = {
        r["question_id"]: [r["doc_id"], *(["d1"] if across and r["doc_id"] == "d0" else [])]
        for r in rows
    }
    return Study(
        params(), schemas.table(schemas.SCORES, rows), absent or {}, standing, documents, excluded
    )


@functools.cache
def whole() -> Inferred:
    return inferred(study(scores(cells=("mpnet", "minilm", "bm25")), across=True))


def of(found: Inferred, **where: str) -> list[dict[str, Any]]:
    return [r for r in found.contrasts if all(r[k] == v for k, v in where.items())]


def columns(rows: list[dict[str, Any]], arm: str, measure: str, **where: Any) -> dict[str, Any]:
    return {
        r["question_id"]: (r["doc_id"], r[measure]) for r in rows
        if r["condition"] == arm and r["embedder"] == "mpnet" and not r["rewording"]
        and all(r[k] == v for k, v in where.items())
    }


def test_every_family_has_its_rows_and_a_lexical_cell_none() -> None:
    counted: dict[tuple[str, str, str], list[str]] = {}
    for r in whole().contrasts:
        counted.setdefault((r["embedder"], r["measure"], r["family"]), []).append(r["name"])
    expected = {}
    for embedder, measure in itertools.product(("mpnet", "minilm"), MEASURES):
        families = {"contrast": params().contrasts, "step": params().steps}
        if measure == "cov_ndcg@10":
            families |= dict.fromkeys(("connected", "type:factoid", "type:multihop"),
                                      params().contrasts)
        for family, names in families.items():
            expected[embedder, measure, family] = sorted(names)
        expected[embedder, measure, "dose"] = ["depth-induced"]
    assert {key: sorted(names) for key, names in counted.items()} == expected
    assert ladders(params().conditions) == {"induced": ["A2", "A3-d1", "A3-d2", "A3"]}


def test_rows_fit_their_schemas_and_stand_beside_each_other() -> None:
    found = whole()
    for schema, rows in ((schemas.CONTRASTS, found.contrasts), (schemas.CHECKS, found.checks),
                         (schemas.MIXED, found.mixed), (schemas.REPLICATES, found.replicates)):
        assert schemas.table(schema, rows).num_rows == len(rows) > 0
    beside = {(r["embedder"], r["name"]) for r in found.checks
              if r["family"] in ("contrast", "step")}
    assert beside == {
        (embedder, name) for embedder in ("mpnet", "minilm")
        for name in (*params().contrasts, *params().steps)
    }
    # Every family of the primary measure but the slopes is checked.
    assert {(r["family"], r["name"]) for r in found.checks} == {
        (r["family"], r["name"]) for r in found.contrasts
        if r["measure"] == "cov_ndcg@10" and r["family"] != "dose" and r["n_documents"] > 1
    }
    assert {(r["embedder"], r["name"]) for r in found.mixed} == beside
    assert len(found.mixed) == 2 * len(beside) and len(found.replicates) == DRAWS * len(beside)
    for row in found.checks:
        (its,) = of(found, embedder=row["embedder"], measure="cov_ndcg@10", name=row["name"],
                    family=row["family"])
        # 6 documents: what is of record is the linearised interval.
        assert its["interval"] == "linearised"
        assert (its["ci_low"], its["ci_high"], its["p"]) == (
            row["linear_low"], row["linear_high"], row["linear_p"]
        )
        assert row["flip_p"] >= 2 / 2 ** its["n_documents"]
        if row["family"] in ("contrast", "step"):
            assert all(row[name] is not None for name in FIGURES)


def test_only_contrasts_of_the_primary_cell_and_measure_confirm() -> None:
    confirmed = [(r["embedder"], r["measure"], r["family"], r["name"])
                 for r in whole().contrasts if r["standing"] == "confirmatory"]
    assert confirmed == [("mpnet", "cov_ndcg@10", "contrast", name) for name in params().contrasts]
    exploratory = inferred(study(scores(), standing="exploratory"))
    assert {r["standing"] for r in exploratory.contrasts} == {"exploratory"}
    # But for its standing nothing changes.
    for one, two in zip(of(whole(), family="contrast"), of(exploratory, family="contrast"),
                        strict=True):
        assert {k: v for k, v in one.items() if k != "standing"} == {
            k: v for k, v in two.items() if k != "standing"
        }


def test_an_absent_contrast_keeps_its_place_in_holm_and_confirms_nothing() -> None:
    arms = tuple(arm for arm in ARMS if arm != "A1")
    found = inferred(study(scores(arms), absent={"fixed-context-0": "no language model"}))
    primary = {r["name"]: r for r in of(found, embedder="mpnet", measure="cov_ndcg@10",
                                        family="contrast")}
    gone = primary.pop("C1")
    assert (gone["status"], gone["standing"], gone["reason"], gone["delta"]) == (
        "absent", "exploratory", "A1: no language model", None
    )
    ascending = sorted(primary.values(), key=lambda r: r["p"])
    largest = 0.0
    for rank, row in enumerate(ascending):  # times 4, 3, 2, though three are left
        largest = max(largest, min(1.0, (4 - rank) * row["p"]))
        assert row["p_holm"] == largest and row["standing"] == "confirmatory"
    assert not [r for r in found.checks if r["name"] in ("C1", "A2-A1")]


@pytest.mark.parametrize("kind", ["factoid", "multihop"])
def test_a_cut_by_type_is_inference_on_its_questions(kind: str) -> None:
    rows = scores(cells=("mpnet", "minilm", "bm25"))
    pairs = [
        pair(name, *(columns(rows, arm, "cov_ndcg@10", type=kind) for arm in arms))
        for name, arms in params().contrasts.items()
    ]
    judged = infer(pairs, DRAWS, SEED, 4, FEW)
    found = of(whole(), embedder="mpnet", family=f"type:{kind}")
    for its, row in zip(judged, found, strict=True):
        assert (its.name, its.delta, its.ci_low, its.p, its.p_holm, its.n_questions) == (
            row["name"], row["delta"], row["ci_low"], row["p"], row["p_holm"], row["n_questions"]
        )
    assert found[0]["n_questions"] in (6, 12)


def test_connected_documents_are_one_cluster() -> None:
    rows = scores(cells=("mpnet", "minilm", "bm25"))
    (row,) = of(whole(), embedder="mpnet", family="connected", name="C2")
    joined = [
        {q: ("d0" if doc == "d1" else doc, v)
         for q, (doc, v) in columns(rows, arm, "cov_ndcg@10").items()} for arm in ("A3", "P")
    ]
    (its,) = infer([pair("C2", *joined)], DRAWS, SEED, 4, FEW)
    assert (row["n_documents"], row["ci_low"], row["p"]) == (5, its.ci_low, its.p)
    plain = inferred(study(scores()))
    assert not of(plain, family="connected")


def test_excluded_questions_and_rewordings_are_out_everywhere() -> None:
    left = frozenset({"q0-0", "q3-1"})
    found = inferred(study(scores(), excluded=left))
    without = inferred(study([r for r in scores() if r["question_id"] not in left
                              and not r["rewording"]]))
    assert found == without
    assert {r["n_questions"] for r in of(found, family="contrast", measure="mrr")} == {16}


def test_a_second_run_is_the_same_to_the_bit() -> None:
    rows = scores()
    assert inferred(study(rows)) == inferred(study(rows))


@settings(deadline=None, max_examples=3)
@given(st.randoms(use_true_random=False), st.sets(st.sampled_from(
    ["A0", "A1", "A2", "A3-d1", "A3-d2", "A4", "P", "G3"]), max_size=5))
def test_neither_the_order_of_rows_nor_the_company_changes_a_result(
    dice: Any, gone: set[str]
) -> None:
    rows = [r for r in scores(cells=("mpnet",)) if r["condition"] not in gone]
    dice.shuffle(rows)
    found = inferred(study(rows))
    full = {(r["measure"], r["family"], r["name"]): r for r in whole().contrasts
            if r["embedder"] == "mpnet"}
    for row in found.contrasts:
        its = full[row["measure"], row["family"], row["name"]]
        if row["status"] == "absent":
            assert gone & {row["a"], row["b"]}
            continue
        # Holm's p alone may hold others' in it.
        for field in ("delta", "ci_low", "ci_high", "ci90_low", "se", "p", "dz", "excluded"):
            assert row[field] == its[field], (row["family"], row["name"], field)
    beside = {(r["family"], r["name"]): r for r in whole().checks if r["embedder"] == "mpnet"}
    for row in found.checks:
        its = beside[row["family"], row["name"]]
        assert {k: v for k, v in row.items() if not k.endswith("_holm")} == {
            k: v for k, v in its.items() if not k.endswith("_holm")
        }


def test_a_slope_has_the_interval_of_record_too() -> None:
    (row,) = of(whole(), embedder="mpnet", measure="mrr", family="dose")
    rows = scores(cells=("mpnet", "minilm", "bm25"))
    rungs = [columns(rows, arm, "mrr") for arm in ("A2", "A3-d1", "A3-d2", "A3")]
    values = {q: (-1.5 * rungs[0][q][1] - 0.5 * rungs[1][q][1] + 0.5 * rungs[2][q][1]
                  + 1.5 * rungs[3][q][1]) / 5 for q in sorted(rungs[0])}
    assert row["delta"] == pytest.approx(math.fsum(values.values()) / len(values), abs=1e-15)
    sums: dict[str, float] = {}
    for q, value in values.items():
        sums[rungs[0][q][0]] = sums.get(rungs[0][q][0], 0.0) + value
    line = linearised(np.array(list(sums.values())), np.full(len(sums), 3.0))
    assert row["interval"] == "linearised" and row["p"] == pytest.approx(line.p)
    assert (row["ci_low"], row["ci_high"]) == pytest.approx(line.interval())
    assert row["p_holm"] is None and row["standing"] == "exploratory"


@pytest.mark.parametrize("bad", [math.nan, math.inf])
def test_a_value_that_is_not_finite_names_its_document(bad: float) -> None:
    for a, b in ((bad, 0.5), (0.5, bad)):
        its = pair("C1", {"q": ("d-17", a), "r": ("e", 0.1)}, {"q": ("d-17", b), "r": ("e", 0.0)})
        with pytest.raises(ValueError, match=r"document 'd-17' is .*, not finite"):
            infer([its], 10, 0, 4, FEW)
    with pytest.raises(ValueError, match="'d' is"):
        Sample([bad], ["d"])


def test_a_study_of_one_document_says_that_there_is_no_interval() -> None:
    found = inferred(study(scores(documents=1)))
    for row in of(found, family="contrast", measure="mrr"):
        assert row["reason"] == "one document: nothing to resample, so no interval and no p"
        assert (row["ci_low"], row["p"], row["interval"]) == (None, None, None)
        assert row["delta"] is not None
    for row in found.checks:
        assert all(row[name] is None for name in (*FIGURES, *SIZES)) and row["cautions"] == []
    assert {row["note"] for row in found.mixed} == {"fewer than two documents"}
    assert found.replicates == []


def test_no_scores_make_no_rows() -> None:
    assert inferred(study([scores()[1] | {"condition": "BM25", "embedder": "bm25"}])) == Inferred()
