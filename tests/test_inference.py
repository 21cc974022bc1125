"""Linearised intervals, sign flips, BCa, power and the interval of record, each against a judge."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
import scipy.stats
import statsmodels.api as sm
from hypothesis import given, settings
from hypothesis import strategies as st
from statsmodels.stats.power import TTestPower

from spanwise.statistics import holm, infer, pair, permutation, resample
from spanwise.statistics.bootstrap import Sample, corrected, totals
from spanwise.statistics.contrasts import Paired, record
from spanwise.statistics.linearised import FEW, errors, linearised
from spanwise.statistics.permutation import sign_flips
from spanwise.statistics.power import (
    MOST,
    POWER,
    detectable,
    difference,
    equivalence,
    fewest,
    icc,
    power,
)

from . import reference_statistics as twin

Floats = np.ndarray


def sample(seed: int, documents: int = 20, more: int = 60, shift: float = 0.02) -> Sample:
    rng = np.random.default_rng(seed)
    codes = np.concatenate([np.arange(documents), rng.integers(0, documents, more)])
    values = shift + 0.05 * rng.normal(size=documents)[codes] + 0.1 * rng.normal(size=len(codes))
    return Sample(values.tolist(), [f"d{code:03d}" for code in codes])


def alone(sums: list[float]) -> Sample:
    return Sample(sums, [f"d{i:02d}" for i in range(len(sums))])


rows = st.lists(
    st.tuples(st.floats(-1, 1, width=16), st.sampled_from("abcdefg")), min_size=2, max_size=20
).filter(lambda found: len({document for _, document in found}) > 1)


# ---------------------------------------------------------------- linearised

def test_a_linearised_error_by_hand() -> None:
    # a: 1, 3; b: 8. Mean 4, mean n 1.5; residuals (4 - 8) / 1.5 and (8 - 4) / 1.5.
    found = linearised(np.array([4.0, 8.0]), np.array([2.0, 1.0]))
    assert found.mean == 4.0 and found.df == 1
    # se^2 = 2 (4 / 1.5)^2 / (2 x 1), se = 8 / 3; t(1) at .975 is tan(.475 pi).
    assert found.se == pytest.approx(8 / 3)
    half = math.tan(0.475 * math.pi) * 8 / 3
    assert found.interval() == pytest.approx((4 - half, 4 + half))
    # t = 1.5 under t(1), the Cauchy distribution: p = 1 - 2 atan(1.5) / pi.
    assert found.p == pytest.approx(1 - 2 * math.atan(1.5) / math.pi)


@pytest.mark.parametrize("seed", range(4))
def test_linearised_is_cluster_robust_least_squares(seed: int) -> None:
    # statsmodels' factor is G / (G - 1) x (N - 1) / (N - k), and k = 1 for an intercept: the last
    # cancels, and what is left is ours exactly; t has G - 1 degrees of freedom in both.
    data = sample(seed, documents=4 + 9 * seed)
    groups = np.unique(data.documents, return_inverse=True)[1]
    judge = sm.OLS(np.array(data.values), np.ones(len(groups))).fit(
        cov_type="cluster", cov_kwds={"groups": groups, "use_correction": True}, use_t=True
    )
    found = linearised(*totals(data))
    assert (found.mean, found.se) == pytest.approx((judge.params[0], judge.bse[0]), rel=1e-10)
    assert found.p == pytest.approx(judge.pvalues[0], rel=1e-9)
    assert found.interval(0.9) == pytest.approx(judge.conf_int(0.1)[0].tolist(), rel=1e-9)


def test_one_question_a_document_is_the_t_test() -> None:
    values = sample(5, documents=9, more=0).values
    judge = scipy.stats.ttest_1samp(values, 0)
    found = linearised(np.array(values), np.ones(9))
    assert found.p == pytest.approx(judge.pvalue)
    assert found.interval() == pytest.approx(tuple(judge.confidence_interval()))


def test_documents_that_do_not_vary_have_no_p() -> None:
    # .1 + .2 and .3 differ in the last bit: no spread.
    found = linearised(np.array([0.1 + 0.2, 0.3, 0.6]), np.array([1.0, 1.0, 2.0]))
    assert found.se == 0.0 and found.p is None and found.interval() == (found.mean, found.mean)
    with pytest.raises(ValueError, match=r"1 document\(s\)"):
        errors(np.ones((1, 1)), np.ones((1, 1)))


# ---------------------------------------------------------------- sign flips

@settings(deadline=None, max_examples=60)
@given(st.lists(st.floats(-2, 2, width=16), min_size=2, max_size=9))
def test_flips_are_every_pattern(sums: list[float]) -> None:
    assert sign_flips([alone(sums)], 10, 0) == [pytest.approx(twin.flips(sums), abs=1e-12)]


@pytest.mark.parametrize("documents", [4, 9, 14])
def test_flips_are_scipys_on_the_documents_sums(documents: int) -> None:
    data = sample(documents, documents=documents)
    sums = totals(data)[0]
    judge = scipy.stats.permutation_test(
        (sums,), lambda x, axis: x.sum(axis=axis), permutation_type="samples", vectorized=True,
        n_resamples=math.inf,
    )
    assert sign_flips([data], 10, 0) == [pytest.approx(judge.pvalue, abs=1e-12)]


def test_flips_cannot_go_below_their_bound_and_holm_needs_eight() -> None:
    least = {n: sign_flips([alone([1.0] * n)], 10, 0)[0] for n in range(2, 10)}
    assert least == {n: 2 / 2**n for n in range(2, 10)}
    assert least[5] == 0.0625
    reached = [n for n, p in least.items() if holm([p], 4)[0] <= 0.05]
    assert min(reached) == 8 and least[7] > 0.05 / 4 >= least[8]


def test_rounding_makes_no_pattern_less_extreme() -> None:
    # Sums of thirds: patterns that are equal on paper differ in their last bits.
    sums = [1 / 3, 2 / 3, 1 / 3, -1 / 3, 1.0]
    # Exactly: |2| of {1, 2, 1, 1, 3} / 3 with signs.
    units = [1, 2, 1, -1, 3]
    patterns = [abs(sum(s * u for s, u in zip(signs, units, strict=True)))
                for signs in itertools.product((1, -1), repeat=5)]
    expected = sum(x >= abs(sum(units)) for x in patterns) / 32
    assert sign_flips([alone(sums)], 10, 0) == [expected]
    assert sign_flips([alone([0.0, 0.0, 0.0])], 10, 0) == [1.0]
    assert sign_flips([alone([1.0, -1.0])], 10, 0) == [1.0]


def test_seeded_flips_count_the_observed_and_agree_with_all(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    data = [sample(3, documents=13), sample(4, documents=13, shift=0.0)]
    every = sign_flips(data, 1, 0)
    monkeypatch.setattr(permutation, "EXACT", 0)
    seeded = sign_flips(data, 40_000, 1)
    for p, q in zip(every, seeded, strict=True):
        assert q == pytest.approx(p, abs=5 * math.sqrt(p * (1 - p) / 40_000) + 1e-4)
    assert sign_flips(data, 40_000, 1) == seeded != sign_flips(data, 40_000, 2)
    # 30 equal documents: none of 99 patterns reaches it, and the observed one counts.
    assert sign_flips([alone([1.0] * 30)], 99, 0) == [0.01]


def test_flips_of_nothing_and_of_one_document() -> None:
    data = sample(2, documents=6)
    together = sign_flips([Sample([], []), data, Sample([1.0, 2.0], ["d", "d"])], 10, 0)
    assert together == [None, *sign_flips([data], 10, 0), None]
    with pytest.raises(ValueError, match="0 iterations"):
        sign_flips([data], 0, 0)


# ---------------------------------------------------------------- BCa

def scipys(data: Sample, iterations: int, seed: int, level: float) -> tuple[float, float]:
    sums, counts = totals(data)
    judge = scipy.stats.bootstrap(
        (sums, counts), lambda s, n, axis=-1: s.sum(axis=axis) / n.sum(axis=axis), paired=True,
        n_resamples=iterations, confidence_level=level, vectorized=True, method="BCa",
        rng=np.random.default_rng(seed),
    ).confidence_interval
    return float(judge.low), float(judge.high)


@pytest.mark.parametrize("documents", [3, 8, 25, 80])
def test_bca_is_scipys_with_the_same_draws(documents: int) -> None:
    for seed in range(3):
        data = sample(seed, documents=documents, shift=0.1)
        skewed = [8 * v**3 if v > 0 else v / 9 for v in data.values]
        for values in (data.values, skewed):
            # On a binary grid sums are exact: scipy compares ties without a tolerance.
            its = Sample([round(1024 * v) / 1024 for v in values], data.documents)
            found = corrected(resample([its], 2_000, seed)[0].replicates, *totals(its))
            assert found == pytest.approx(scipys(its, 2_000, seed, 0.95), abs=1e-12)


def test_bca_of_scores_with_ties_is_scipys() -> None:
    rng = np.random.default_rng(1)
    data = Sample(rng.choice([-0.5, 0.0, 0.0, 1.0], 14).tolist(), [f"d{i // 2}" for i in range(14)])
    draws = resample([data], 3_000, 4)[0].replicates
    assert (draws == math.fsum(data.values) / 14).sum() > 50
    for level in (0.9, 0.95):
        found = corrected(draws, *totals(data), level)
        assert found == pytest.approx(scipys(data, 3_000, 4, level), abs=1e-12)


def test_bca_leans_where_the_percentiles_do_not_and_is_absent_where_it_does_not_exist() -> None:
    # One long tail to the right: both ends lie further right than the percentiles.
    rng = np.random.default_rng(0)
    data = alone(rng.lognormal(0, 1, 40).tolist())
    plain = resample([data], 4_000, 0)[0]
    low, high = corrected(plain.replicates, *totals(data)) or (0, 0)
    assert low > plain.ci_low and high > plain.ci_high
    same = alone([0.5] * 6)
    assert corrected(resample([same], 100, 0)[0].replicates, *totals(same)) is None
    # Every draw above the mean.
    assert corrected(np.ones(50), np.array([0.0, 1.0]), np.array([1.0, 1.0])) is None


@settings(deadline=None, max_examples=60)
@given(rows, st.integers(0, 99))
def test_bca_turns_with_its_sign_and_stays_within_the_draws(
    found: list[tuple[float, str]], seed: int
) -> None:
    data = Sample([v for v, _ in found], [d for _, d in found])
    back = Sample([-v for v in data.values], data.documents)
    draws = resample([data], 200, seed)[0].replicates
    there, mirrored = corrected(draws, *totals(data)), corrected(-draws, *totals(back))
    assert (there is None) == (mirrored is None)
    if there is not None and mirrored is not None:
        assert there == pytest.approx((-mirrored[1], -mirrored[0]), abs=1e-9)
        assert draws.min() <= there[0] <= there[1] <= draws.max()


# ---------------------------------------------------------------- interval of record

def test_the_interval_of_record_turns_at_thirty_documents() -> None:
    for documents, kind in ((FEW - 1, "linearised"), (FEW, "percentile")):
        data = sample(1, documents=documents)
        its = Paired("C", tuple(map(str, range(len(data.values)))), tuple(data.documents),
                     tuple(data.values), (0.0,) * len(data.values))
        (found,), (plain,) = infer([its], 500, 0, 4, FEW), infer([its], 500, 0, 4)
        line = linearised(*totals(data))
        assert found.interval == kind and plain.interval == "percentile"
        assert found.se == plain.se == line.se
        if kind == "percentile":
            assert (found.ci_low, found.ci90_high, found.p) == (
                plain.ci_low, plain.ci90_high, plain.p
            )
            assert found.ci90_low == np.percentile(found.replicates, 5)
        else:
            assert (found.ci_low, found.ci_high) == line.interval()
            assert (found.ci90_low, found.ci90_high) == line.interval(0.9)
            assert (found.p, found.p_holm) == (line.p, holm([line.p], 4)[0])
        single = record(data, resample([data], 500, 0)[0], FEW)
        assert (single.interval, single.ci, single.p) == (
            kind, (found.ci_low, found.ci_high), found.p
        )


def test_equal_differences_say_that_there_is_no_error() -> None:
    a, b = ({f"q{i}": (f"d{i % 3}", x + i / 10) for i in range(6)} for x in (0.2, 0.0))
    found = infer([pair("C", a, b)], 100, 0, 4, FEW)[0]
    assert found.se == 0.0 and found.p is None and found.p_holm is None and found.dz is None
    assert found.reason == "the documents do not vary: no error, so no p"
    assert found.ci_low == pytest.approx(0.2) and found.ci_high == pytest.approx(0.2)


def test_nothing_one_document_and_an_empty_family() -> None:
    assert infer([], 100, 0, 4, FEW) == []
    one = infer([pair("C", {"q": ("d", 1.0), "r": ("d", 0.0)}, {"q": ("d", 0.5), "r": ("d", 0.1)})],
                100, 0, 4, FEW)[0]
    assert (one.interval, one.ci_low, one.ci90_low, one.se, one.p) == (None,) * 5
    assert one.reason is not None and one.reason.startswith("one document")
    none = infer([pair("C", {}, {})], 100, 0, 4, FEW)[0]
    assert none.interval is None and none.reason is not None


# ---------------------------------------------------------------- intraclass correlation

def test_icc_by_hand_and_from_the_textbook() -> None:
    # a {0, 2}, b {4, 6}: MSB 16, MSW 2, n0 2: 14 / 18.
    assert icc(np.array([2.0, 10.0]), np.array([2.0, 2.0]), 56.0) == pytest.approx(14 / 18)
    # Shrout and Fleiss, Psychological Bulletin 86 (1979), table 2: six targets, four ratings each;
    # table 4 gives ICC(1, 1) = .17 from mean squares 11.24 and 6.26.
    ratings = np.array([[9, 2, 5, 8], [6, 1, 3, 2], [8, 4, 6, 8], [7, 1, 2, 6], [10, 5, 6, 9],
                        [6, 2, 4, 7]], float)
    found = icc(ratings.sum(axis=1), np.full(6, 4.0), float((ratings**2).sum()))
    assert found == pytest.approx((11.24 - 6.26) / (11.24 + 3 * 6.26), abs=5e-4)
    assert round(found or 0, 2) == 0.17


@settings(deadline=None, max_examples=100)
@given(rows)
def test_icc_is_the_table_of_an_analysis_of_variance(found: list[tuple[float, str]]) -> None:
    values, documents = [v for v, _ in found], [d for _, d in found]
    sums, counts = totals(Sample(values, documents))
    ours = icc(sums, counts, math.fsum(v * v for v in values))
    if len(counts) == len(values) or float(np.std(values)) < 1e-3:
        return
    assert ours is not None and ours <= 1 + 1e-9
    assert ours == pytest.approx(twin.intraclass(values, documents), abs=1e-6, rel=1e-6)


def test_icc_where_there_is_none() -> None:
    assert icc(np.array([1.0, 2.0]), np.array([1.0, 1.0]), 5.0) is None
    assert icc(np.array([3.0]), np.array([2.0]), 5.0) is None
    assert icc(np.array([1.0, 1.0]), np.array([2.0, 2.0]), 1.0) is None


# ---------------------------------------------------------------- power

def of(data: Sample, margin: float, alpha: float = 0.0125):  # type: ignore[no-untyped-def]
    return power(*totals(data), math.fsum(v * v for v in data.values), margin, alpha)


def test_one_question_a_document_is_statsmodels_power_of_a_t_test() -> None:
    data, margin, judge = sample(3, documents=40, more=0), 0.05, TTestPower()
    found, sd = of(data, margin), float(np.std(data.values, ddof=1))
    assert found is not None and found.icc is None and found.design_effect == 1.0
    assert found.power == pytest.approx(judge.power(margin / sd, 40, 0.0125), abs=1e-9)
    assert judge.power(found.detectable / sd, 40, 0.0125) == pytest.approx(POWER, abs=1e-9)
    needed = math.ceil(judge.solve_power(effect_size=margin / sd, alpha=0.0125, power=POWER))
    assert found.documents == found.questions == needed


def test_a_study_of_the_size_that_is_named_reaches_it_and_a_smaller_one_does_not() -> None:
    data = sample(7, documents=25, more=75)
    found = of(data, 0.02)
    assert found is not None and found.documents is not None and found.questions is not None
    sd, each = float(np.std(data.values, ddof=1)), 100 / 25
    for documents, reached in ((found.documents, True), (found.documents - 1, False)):
        se = sd * math.sqrt(found.design_effect / (documents * each))
        assert (difference(0.02, se, documents - 1, 0.0125) >= POWER) is reached
    assert found.questions == math.ceil(found.documents * each)
    documents = found.equivalence_documents
    assert documents is not None
    for size, reached in ((documents, True), (documents - 1, False)):
        se = sd * math.sqrt(found.design_effect / (size * each))
        assert (equivalence(0.02, se, size - 1) >= POWER) is reached
    counts = totals(data)[1]
    assert found.design_effect == pytest.approx(
        1 + ((counts**2).sum() / 100 - 1) * max(0.0, found.icc)
    )


@pytest.mark.parametrize("alpha", [0.0125, 0.05])
@pytest.mark.parametrize("df", [1, 2, 4, 29, 1_507, 20_000])
def test_detectable_is_the_inverse_of_difference(df: int, alpha: float) -> None:
    found = detectable(0.013, df, alpha)
    assert difference(found, 0.013, df, alpha) == pytest.approx(POWER, abs=1e-5)
    assert difference(0.0, 1.0, df, alpha) == pytest.approx(alpha, abs=5e-5)


@pytest.mark.parametrize("df", [1, 2, 5])
def test_power_of_a_large_effect_in_few_documents_is_no_certainty(df: int) -> None:
    # Beyond a noncentrality of 37 scipy's noncentral t gives out; the spread still decides.
    rng = np.random.default_rng(df)
    spreads = np.sqrt(rng.chisquare(df, 400_000) / df)
    bound = scipy.stats.t.ppf(1 - 0.0125 / 2, df)
    for effect in (36.9, 37.1, 60.0, 150.0):
        drawn = float((np.abs(effect + rng.normal(size=400_000)) > bound * spreads).mean())
        assert difference(effect, 1.0, df, 0.0125) == pytest.approx(drawn, abs=0.004)


def test_power_is_a_number_that_grows_with_the_effect() -> None:
    # scipy 1.17 has NaN for the far side's tail at many noncentralities above 6.
    for df, alpha in itertools.product((1, 3, 29, 1_507, 10_001), (0.05, 0.0125, 0.05 / 12)):
        found = [difference(effect, 1.0, df, alpha) for effect in np.arange(0, 60, 0.85).tolist()]
        assert all(math.isfinite(x) and 0 <= x <= 1 for x in found)
        assert (np.diff(found) >= -1e-6).all()


def test_fewest_is_the_first_that_reaches_it() -> None:
    for first in (2, 3, 4, 5, 97, 4_096, 4_097, 9_000_000, MOST):
        assert fewest(lambda size, first=first: float(size >= first)) == first
    assert fewest(lambda _: 0.79999) is None
    assert fewest(lambda size: float(size > MOST)) is None


@pytest.mark.parametrize("df", [1, 4, 19, 199])
def test_power_for_equivalence_is_how_often_the_interval_lies_within(df: int) -> None:
    rng = np.random.default_rng(df)
    means, spreads = rng.normal(size=400_000), np.sqrt(rng.chisquare(df, 400_000) / df)
    half = scipy.stats.t.ppf(0.95, df) * spreads
    for margin in (1.0, 2.0, 3.0, 6.0):
        drawn = float((np.abs(means) + half < margin).mean())
        assert equivalence(margin, 1.0, df) == pytest.approx(drawn, abs=0.004)


def test_power_is_how_often_clustered_studies_find_the_margin() -> None:
    # 30 documents of 2 to 10 questions, correlation .3, true difference the margin.
    rng = np.random.default_rng(0)
    counts = rng.integers(2, 11, 30).astype(float)
    codes, margin, alpha = np.repeat(np.arange(30), counts.astype(int)), 0.03, 0.0125
    found, stated, within, stated_within = [], [], [], []
    for _ in range(400):
        noise = math.sqrt(0.3) * rng.normal(size=30)[codes] + math.sqrt(0.7) * rng.normal(
            size=len(codes)
        )
        values = 0.1 * noise + margin
        line = linearised(np.bincount(codes, values), counts)
        its = power(np.bincount(codes, values), counts, float(values @ values), margin, alpha)
        assert its is not None and line.p is not None
        found.append(line.p < alpha)
        stated.append(its.power)
        low, high = (end - margin for end in line.interval(0.9))  # the true difference is zero
        within.append(-margin < low and high < margin)
        stated_within.append(its.equivalence_power)
    assert float(np.mean(stated)) == pytest.approx(float(np.mean(found)), abs=0.05)
    assert float(np.mean(stated_within)) == pytest.approx(float(np.mean(within)), abs=0.05)
    assert 0.1 < float(np.mean(found)) < 0.9 and 0.1 < float(np.mean(within)) < 0.9


def test_power_is_never_at_the_observed_effect() -> None:
    data = sample(3)
    moved = Sample([v + 0.3 for v in data.values], data.documents)
    one, two = of(data, 0.01), of(moved, 0.01)
    assert one is not None and two is not None
    assert (two.power, two.icc, two.documents) == (
        pytest.approx(one.power), pytest.approx(one.icc), one.documents
    )


def test_power_where_there_is_nothing_to_say() -> None:
    assert of(alone([0.5]), 0.01) is None
    assert of(alone([0.5, 0.5, 0.5]), 0.01) is None
    found = of(alone([-900.0, 1000.0, 5.0]), 1e-4)
    assert found is not None and found.documents is None and found.questions is None
    # Documents more alike than chance: their correlation is taken as none.
    alike = of(Sample([0.0, 1.0, 0.0, 1.0], list("aabb")), 0.1)
    assert alike is not None and alike.icc == -1.0 and alike.design_effect == 1.0
    for margin, alpha in ((0.0, 0.05), (0.1, 0.0), (0.1, 1.0)):
        with pytest.raises(ValueError, match="expected > 0"):
            of(sample(1), margin, alpha)
