"""Bootstrap, pairing, Holm and slopes: golden values, twins, scipy and statsmodels."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
import scipy.stats
from hypothesis import given, settings
from hypothesis import strategies as st
from statsmodels.stats.multitest import multipletests

from spanwise.errors import InputError
from spanwise.statistics import bootstrap, connected, holm, infer, pair, render_p, resample, slopes
from spanwise.statistics.bootstrap import Sample, replicates
from spanwise.statistics.dose import slope

from . import reference_statistics as twin


def sample(seed: int, questions: int = 120, documents: int = 30, shift: float = 0.02) -> Sample:
    rng = np.random.default_rng(seed)
    rest = rng.integers(0, documents, questions - documents)
    codes = np.concatenate([np.arange(documents), rest])
    effects = rng.normal(0, 0.1, documents)
    values = shift + effects[codes] + rng.normal(0, 0.1, questions)
    return Sample(values.tolist(), [f"d{code:03d}" for code in codes])


def per_document(data: Sample) -> tuple[np.ndarray, np.ndarray]:
    names, codes = np.unique(np.array(data.documents), return_inverse=True)
    return (np.bincount(codes, data.values, len(names)),
            np.bincount(codes, minlength=len(names)).astype(float))


# ---------------------------------------------------------------- bootstrap

def test_two_documents_by_hand() -> None:
    # Documents a: {1, 1}, b: {4}. Draws aa, ab, ba, bb: means 1, 6/3 = 2, 2, 4, each one in four.
    found = resample([Sample([1.0, 4.0, 1.0], ["a", "b", "a"])], 20_000, seed=1)[0]
    assert found.mean == 2.0
    drawn, counts = np.unique(found.replicates, return_counts=True)
    assert drawn.tolist() == [1.0, 2.0, 4.0]
    assert counts / 20_000 == pytest.approx([0.25, 0.5, 0.25], abs=0.01)
    assert (found.ci_low, found.ci_high) == (1.0, 4.0)
    assert found.p == 0.0 and found.n_documents == 2


def test_p_counts_both_tails_and_is_clipped() -> None:
    # Sums -1 and 1: draws give -1, 0, 0, 1. P[<= 0] = P[>= 0] = .75, so p = 1.5 -> 1.
    found = resample([Sample([-1.0, 1.0], ["a", "b"])], 1_000, seed=0)[0]
    assert found.p == 1.0
    # -1 and 3: -1 in one of four draws, else 1 or 3: p = 2 x .25.
    found = resample([Sample([-1.0, 3.0], ["a", "b"])], 40_000, seed=0)[0]
    assert found.p == pytest.approx(0.5, abs=0.02)


def test_rounding_is_no_evidence() -> None:
    # 0.1 + 0.2 - 0.3 is 5.6e-17 in doubles: every replicate of such sums is zero, and p is 1.
    values = [0.1, 0.2, -0.3]
    found = resample([Sample(values * 4, [d for d in "abcd" for _ in values])], 500, seed=3)[0]
    assert set(found.replicates.tolist()) == {0.0} and found.p == 1.0


def test_the_same_draws_as_scipy_give_the_same_interval_and_replicates() -> None:
    family = [sample(1), sample(2, shift=-0.03)]
    ours = resample(family, 2_000, seed=5)
    for data, found in zip(family, ours, strict=True):
        judge = scipy.stats.bootstrap(
            per_document(data), lambda s, n, axis=-1: s.sum(axis=axis) / n.sum(axis=axis),
            n_resamples=2_000, paired=True, vectorized=True, method="percentile",
            rng=np.random.default_rng(5),
        )
        assert found.replicates == pytest.approx(judge.bootstrap_distribution, abs=1e-12)
        assert found.ci_low == pytest.approx(judge.confidence_interval.low, abs=1e-12)
        assert found.ci_high == pytest.approx(judge.confidence_interval.high, abs=1e-12)


@pytest.mark.parametrize("seed", range(3))
def test_another_generator_gives_the_same_answer_within_its_noise(seed: int) -> None:
    data = sample(seed, questions=40, documents=12)
    found = resample([data], 4_000, seed=0)[0]
    low, high, p = twin.clustered(data.values, data.documents, 4_000, seed)
    assert found.ci_low == pytest.approx(low, abs=0.01)
    assert found.ci_high == pytest.approx(high, abs=0.01)
    assert found.p == pytest.approx(p, abs=0.05)


@settings(deadline=None, max_examples=50)
@given(st.lists(st.tuples(st.floats(-1, 1), st.sampled_from("abcdef")), min_size=1, max_size=15),
       st.integers(0, 2**32))
def test_every_replicate_is_the_mean_over_the_drawn_documents(
    rows: list[tuple[float, str]], seed: int
) -> None:
    values, documents = [v for v, _ in rows], [d for _, d in rows]
    size = len(set(documents))
    found = resample([Sample(values, documents)], 20, seed)[0]
    if size == 1:
        assert len(found.replicates) == 0 and found.p is None
        return
    drawn = np.random.default_rng(seed).integers(0, size, (20, size), dtype=np.int32)
    for row, mean in zip(drawn.tolist(), found.replicates.tolist(), strict=True):
        assert mean == pytest.approx(twin.replicate(values, documents, row), abs=1e-9)


def test_results_do_not_depend_on_order_blocks_or_company(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    data = sample(1)
    alone = resample([data], 500, seed=9)[0]
    mixed = np.random.default_rng(0).permutation(len(data.values))
    shuffled = Sample([data.values[i] for i in mixed], [data.documents[i] for i in mixed])
    family = resample([sample(2, documents=7), shuffled, sample(3), Sample([], [])], 500, seed=9)
    assert family[1].replicates.tobytes() == alone.replicates.tobytes()
    assert (family[1].mean, family[1].ci_low, family[1].p) == (alone.mean, alone.ci_low, alone.p)
    monkeypatch.setattr(bootstrap, "_BLOCK", 77)
    assert resample([data], 500, seed=9)[0].replicates.tobytes() == alone.replicates.tobytes()
    assert resample([data], 500, seed=8)[0].replicates.tobytes() != alone.replicates.tobytes()


def test_contrasts_over_the_same_documents_share_draws() -> None:
    data = sample(4)
    twice = Sample([2 * v for v in data.values], data.documents)
    one, two = resample([data, twice], 300, seed=2)
    assert two.replicates == pytest.approx(2 * one.replicates, abs=1e-15)


def test_clusters_widen_the_interval() -> None:
    data = sample(6, questions=300, documents=20)
    clustered = resample([data], 2_000, seed=0)[0]
    naive = resample([Sample(data.values, [str(i) for i in range(300)])], 2_000, seed=0)[0]
    assert clustered.ci_high - clustered.ci_low > 1.5 * (naive.ci_high - naive.ci_low)


def test_a_wider_level_is_wider_and_nonsense_is_refused() -> None:
    wide, narrow = (resample([sample(1)], 500, 0, level)[0] for level in (0.95, 0.90))
    assert wide.ci_low < narrow.ci_low < narrow.ci_high < wide.ci_high
    assert narrow.ci_low == np.percentile(narrow.replicates, 5)
    for iterations, level in ((0, 0.95), (10, 1.0)):
        with pytest.raises(ValueError, match="iterations"):
            resample([sample(1)], iterations, 0, level)
    with pytest.raises(ValueError, match="'d' is nan"):
        Sample([math.nan], ["d"])
    with pytest.raises(ValueError, match="1 values of 2 documents"):
        Sample([1.0], ["a", "b"])


def test_replicates_weigh_samples_with_other_counts() -> None:
    sums = np.array([[1.0, 2.0], [3.0, 9.0], [5.0, 5.0]])
    counts = np.array([[1.0, 1.0], [3.0, 1.0], [1.0, 1.0]])
    found = replicates(sums, counts, 50, np.random.default_rng(0))
    drawn = np.random.default_rng(0).integers(0, 2, (50, 2), dtype=np.int32)
    for k in range(3):
        expected = sums[k][drawn].sum(axis=1) / counts[k][drawn].sum(axis=1)
        assert found[k] == pytest.approx(expected, abs=1e-15)


# ---------------------------------------------------------------- contrasts

A = {"q1": ("d1", 0.5), "q2": ("d1", 0.25), "q3": ("d2", 1.0), "q4": ("d2", None),
     "q5": ("d3", 0.5), "q6": ("d3", None), "only": ("d1", 1.0)}
B = {"q1": ("d1", 0.25), "q2": ("d1", 0.25), "q3": ("d2", 0.25), "q4": ("d2", 0.5),
     "q5": ("d3", None), "q6": ("d3", None), "else": ("d1", 1.0), "more": ("d9", None)}


def test_pairs_keep_what_both_answer_and_count_the_rest() -> None:
    found = pair("C1", A, B)
    assert found.question_ids == ("q1", "q2", "q3") and found.doc_ids == ("d1", "d1", "d2")
    assert found.deltas == (0.25, 0.0, 0.75)
    assert found.excluded == {
        "only in A": 1, "only in B": 2, "undefined in A": 1, "undefined in B": 1,
        "undefined in both": 1,
    }
    contrast = infer([found], 1_000, seed=0)[0]
    assert contrast.delta == pytest.approx(1 / 3, abs=1e-15)
    assert contrast.mean_a == pytest.approx(1.75 / 3) and contrast.mean_b == pytest.approx(0.25)
    # Deviations -1/12, -4/12, 5/12: sd^2 = (1 + 16 + 25) / 144 / 2, dz = (1/3) / sd.
    assert contrast.dz == pytest.approx((1 / 3) / math.sqrt(42 / 288), abs=1e-12)
    assert (contrast.n_questions, contrast.n_documents, contrast.reason) == (3, 2, None)
    assert contrast.ci_low == pytest.approx(0.125) and contrast.ci_high == pytest.approx(0.75)


def test_b_minus_a_is_the_mirror() -> None:
    rng = np.random.default_rng(0)
    a, b = ({f"q{i}": (f"d{i % 9}", float(x)) for i, x in enumerate(rng.random(60))}
            for _ in range(2))
    (there,), (back,) = infer([pair("x", a, b)], 999, 4), infer([pair("x", b, a)], 999, 4)
    assert (there.delta, there.dz, there.p) == (-back.delta, -back.dz, back.p)
    assert there.ci_low == pytest.approx(-back.ci_high, abs=1e-15)


def test_one_document_has_no_interval_and_says_so() -> None:
    a, b = ({f"q{i}": ("d", x * i) for i in range(5)} for x in (0.2, 0.1))
    found = infer([pair("C", a, b)], 100, 0)[0]
    assert found.delta == pytest.approx(0.2) and found.dz is not None
    assert (found.ci_low, found.ci_high, found.p, found.p_holm) == (None, None, None, None)
    assert found.reason is not None and "one document" in found.reason


def test_nothing_to_compare_is_null_and_says_so() -> None:
    found = infer([pair("C", {"q": ("d", 1.0)}, {"r": ("d", 1.0)})], 100, 0)[0]
    assert found.n_questions == 0 and found.n_documents == 0
    assert {found.delta, found.mean_a, found.mean_b, found.dz, found.p, found.p_holm} == {None}
    assert found.reason == "no question has a value under both conditions"


def test_equal_deltas_have_no_dz() -> None:
    # 0.3 - 0.2 and 0.2 - 0.1 differ in their last bit.
    a, b = {"q": ("d", 0.3), "r": ("e", 0.2)}, {"q": ("d", 0.2), "r": ("e", 0.1)}
    found = infer([pair("C", a, b)], 100, 0)[0]
    assert found.dz is None and found.p == 0.0
    assert infer([pair("C", {"q": ("d", 1.0)}, {"q": ("d", 0.0)})], 100, 0)[0].dz is None


def test_a_question_of_two_documents_is_an_error() -> None:
    with pytest.raises(InputError, match="C1: question 'q1' is of document 'd1' in A and 'x' in B"):
        pair("C1", A, {"q1": ("x", 0.5)})


# ---------------------------------------------------------------- Holm

def test_holm_by_hand() -> None:
    # Ascending .01 .02 .03 .04 times 4 3 2 1: .04 .06 .06 .04, running maximum .04 .06 .06 .06.
    assert holm([0.03, 0.01, 0.04, 0.02], 4) == pytest.approx([0.06, 0.04, 0.06, 0.06])
    # One of four is absent: m stays 4.
    assert holm([0.03, 0.01, None, 0.02], 4) == [0.06, 0.04, None, 0.06]
    assert holm([0.5, 0.4], 2) == [0.8, 0.8] and holm([0.9, 0.8], 2) == [1.0, 1.0]
    assert holm([], 4) == []
    with pytest.raises(ValueError, match="family of 1 holds 2"):
        holm([0.1, 0.2], 1)


@settings(max_examples=200)
@given(st.lists(st.floats(0, 1), min_size=1, max_size=8), st.integers(0, 4))
def test_holm_is_its_twin(p: list[float], absent: int) -> None:
    m = len(p) + absent
    assert holm(p, m) == pytest.approx(twin.holm(p, m), abs=1e-12)


@pytest.mark.parametrize("absent", range(4))
def test_holm_is_statsmodels(absent: int) -> None:
    p = np.random.default_rng(absent).beta(0.4, 3, 5).tolist()
    # To a judge that knows no absent members, an absent one is a p of 1.
    judge = multipletests([*p, *[1.0] * absent], method="holm")[1][:5]
    assert holm(p, 5 + absent) == pytest.approx(judge.tolist(), abs=1e-12)


def test_a_family_keeps_its_size() -> None:
    rng = np.random.default_rng(1)
    a, b = ({f"q{i}": (f"d{i % 20}", float(x)) for i, x in enumerate(rng.normal(s, 1, 200))}
            for s in (0.15, 0.0))
    alone, of_four = (infer([pair("C", a, b)], 2_000, 0, m)[0] for m in (None, 4))
    assert alone.p is not None and 0 < alone.p < 0.25
    assert alone.p_holm == alone.p and of_four.p_holm == 4 * alone.p


def test_p_is_printed_with_its_bound() -> None:
    assert render_p(0.0, 10_000) == "< 0.0002"
    assert render_p(0.0, 10_000, times=4) == "< 0.0008"
    assert render_p(0.0, 1, times=4) == "< 1"
    assert render_p(0.0002, 10_000) == "0.0002" and render_p(1.0, 10) == "1.0000"
    assert render_p(None, 10_000) == "-"


# ---------------------------------------------------------------- dose and clusters

def test_slopes() -> None:
    # (-1.5 y0 - .5 y1 + .5 y2 + 1.5 y3) / 5
    assert slope([0.1, 0.4, 0.2, 0.3]) == pytest.approx((-0.15 - 0.2 + 0.1 + 0.45) / 5)
    rows: dict[str, list[Any]] = {
        "up": [0.0, 0.1, 0.2, 0.3], "flat": [0.5] * 4, "gap": [0.0, None, 0.2, 0.3],
    }
    columns = [{q: (f"d-{q}", ys[i]) for q, ys in rows.items()} for i in range(4)]
    columns[0]["once"] = ("d", 0.5)
    found = slopes(columns)
    assert found.question_ids == ("flat", "up")
    assert found.values == pytest.approx((0.0, 0.1), abs=1e-15)
    assert found.excluded == {"not at every depth": 1, "undefined at some depth": 1}
    drawn = found.resample(2_000, seed=0)
    assert drawn.mean == pytest.approx(0.05) and drawn.n_documents == 2
    assert (drawn.ci_low, drawn.ci_high) == pytest.approx((0.0, 0.1))
    with pytest.raises(ValueError, match="2 columns"):
        slopes(columns[:2])
    columns[3]["up"] = ("elsewhere", 0.3)
    with pytest.raises(InputError, match="'up' is of documents"):
        slopes(columns)


@given(st.lists(st.floats(-10, 10), min_size=4, max_size=4))
def test_slope_is_scipys(ys: list[float]) -> None:
    assert slope(ys) == pytest.approx(scipy.stats.linregress(range(4), ys).slope, abs=1e-9)


def test_components_join_through_others() -> None:
    groups = [["b", "c"], ["c", "a"], ["d"], ["f", "e"], ["d", "d"]]
    assert connected(groups) == {"a": "a", "b": "a", "c": "a", "d": "d", "e": "e", "f": "e"}
    assert connected(reversed(groups)) == connected(groups)
    assert connected([]) == {}
