"""Mixed models against a restricted likelihood with the whole covariance matrix written out."""

from __future__ import annotations

import math
import warnings
from typing import Any

import numpy as np
import pytest
import scipy.stats
from statsmodels.regression.mixed_linear_model import MixedLM

from spanwise.statistics import mixed
from spanwise.statistics.contrasts import Paired
from spanwise.statistics.mixed import Fitted, discordance, fit

from . import reference_statistics as twin

MODELS: tuple[mixed.Model, ...] = ("stacked", "paired")


def paired(a: list[float], b: list[float], documents: list[str]) -> Paired:
    return Paired(
        "C", tuple(f"q{i:04d}" for i in range(len(a))), tuple(documents), tuple(a), tuple(b)
    )


def study(
    seed: int, documents: int = 12, more: int = 20, between: float = 0.05, level: float = 0.2
) -> Paired:
    """Two questions in each document and some more; spread of the effect and of the level."""
    rng = np.random.default_rng(seed)
    codes = np.concatenate([np.repeat(np.arange(documents), 2), rng.integers(0, documents, more)])
    b = rng.random(len(codes)) + level * rng.normal(size=documents)[codes]
    effect = 0.03 + between * rng.normal(size=documents)[codes]
    a = b + effect + 0.1 * rng.normal(size=len(codes))
    return paired(a.tolist(), b.tolist(), [f"d{code:02d}" for code in codes])


def rows(pair: Paired, model: str) -> tuple[list[float], list[list[float]], list[str]]:
    """The model's data as its formula says."""
    if model == "paired":
        return list(pair.deltas), [[1.0]] * len(pair.a), list(pair.doc_ids)
    return (
        [*pair.a, *pair.b],
        [[1.0, 1.0]] * len(pair.a) + [[1.0, 0.0]] * len(pair.b),
        [*pair.doc_ids, *pair.doc_ids],
    )


@pytest.mark.parametrize("between", [0.0, 0.002, 0.05, 0.3])
@pytest.mark.parametrize("model", MODELS)
def test_the_maximum_of_the_restricted_likelihood_is_found(
    model: mixed.Model, between: float
) -> None:
    shares = []
    for seed in range(6):
        pair = study(seed, between=between)
        found = fit(pair, model)
        likelihood, estimate, se, ratio = twin.reml(*rows(pair, model))
        assert found.share == pytest.approx(ratio / (1 + ratio), abs=1e-4)
        assert found.estimate == pytest.approx(estimate, abs=1e-4 * se)
        # MixedLM's error comes from the observed information, which holds the ratio's uncertainty.
        assert found.se == pytest.approx(se, rel=0.03) and found.se >= se * (1 - 1e-4)
        assert found.p == pytest.approx(
            2 * scipy.stats.norm.sf(abs(found.estimate) / found.se), rel=1e-9
        )
        assert found.ci_high - found.ci_low == pytest.approx(2 * 1.959964 * found.se, rel=1e-6)
        at = twin.restricted(*rows(pair, model), found.share / (1 - found.share))[0]
        assert at >= likelihood - 1e-6
        shares.append(found.share)
    assert max(shares) > 0


def test_a_gradient_from_its_default_start_stops_short_and_ours_does_not() -> None:
    """The judge that is known to fail: it stays where it began, and ours is the twin's maximum."""
    failed = 0
    for seed in range(30):
        pair = study(seed, between=0.0, level=0.0)
        values, design, documents = rows(pair, "paired")
        scaled = np.array(values) / np.std(values, ddof=1)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            made: Any = MixedLM(
                scaled, np.array(design), groups=np.unique(documents, return_inverse=True)[1]
            ).fit(reml=True, method=["bfgs"])
        best, estimate, se, ratio = twin.reml(scaled.tolist(), design, documents)
        failed += made.llf < best - 0.05
        found = fit(pair, "paired")
        assert found.share == pytest.approx(ratio / (1 + ratio), abs=1e-4)
        assert found.estimate == pytest.approx(
            estimate * float(np.std(values, ddof=1)), abs=1e-4 * se
        )
    assert failed >= 2


def test_the_stacked_estimate_is_the_mean_difference_and_its_error_is_by_hand() -> None:
    # Every document holds each condition equally often, so weights cancel in A - B.
    pair = study(3)
    found = fit(pair, "stacked")
    assert found.estimate == pytest.approx(math.fsum(pair.deltas) / len(pair.deltas), abs=1e-12)
    # Balanced and one-way: documents a {0, 2}, b {4, 6}. MSW = 2, MSB = 16, var(mean) = MSB / 4.
    one = fit(paired([0.0, 2.0, 4.0, 6.0], [0.0] * 4, ["a", "a", "b", "b"]), "paired")
    assert one.estimate == pytest.approx(3.0) and one.ols_estimate == pytest.approx(3.0)
    assert one.se == pytest.approx(2.0, abs=1e-6)
    # Between (16 - 2) / 2 = 7, within 2.
    assert one.share == pytest.approx(7 / 9, abs=1e-5)
    # Least squares: sd^2 = (9 + 1 + 1 + 9) / 3, over 4 questions.
    assert one.ols_se == pytest.approx(math.sqrt(20 / 3 / 4))
    assert (one.converged, one.optimizer, one.note) == (True, "bfgs", None)
    assert one.apart == pytest.approx(0, abs=1e-6)


def test_at_the_boundary_it_is_least_squares_and_says_so() -> None:
    # Documents alike to the last digit: MSB = 0.
    found = fit(paired([0.0, 1.0, 0.0, 1.0, 1.0, 0.0], [0.0] * 6, list("aabbcc")), "paired")
    assert found.share == 0.0 and found.optimizer == "ols"
    assert found.note == "no variance lies between documents"
    assert (found.estimate, found.se) == (found.ols_estimate, found.ols_se)
    assert found.se == pytest.approx(math.sqrt(0.3 / 6))


@pytest.mark.parametrize(
    ("a", "b", "documents", "model", "note"),
    [
        ([0.5, 0.7, 0.1], [0.1, 0.2, 0.3], "ddd", "stacked", "fewer than two documents"),
        ([0.5, 0.7, 0.1], [0.1, 0.2, 0.3], "ddd", "paired", "fewer than two documents"),
        ([0.5], [0.2], "d", "paired", "fewer than two documents"),
        ([], [], "", "stacked", "fewer than two documents"),
        ([0.5, 0.7], [0.1, 0.2], "de", "paired", "too few questions"),
        ([0.3] * 6, [0.3] * 6, "aabbcc", "stacked", "the scores do not vary"),
        ([0.3] * 6, [0.1] * 6, "aabbcc", "stacked", "all differences are equal"),
        ([0.3, 0.4, 0.5, 0.6], [0.1, 0.2, 0.3, 0.4], "aabb", "paired", "differences are equal"),
        ([0.5, 0.5, 0.1, 0.1], [0.0] * 4, "aabb", "paired", "nothing varies within documents"),
        ([0.5, 0.5, 0.1, 0.1], [0.3, 0.3, -0.1, -0.1], "aabb", "stacked", "nothing varies within"),
    ],
)
def test_what_cannot_be_fitted_says_why(
    a: list[float], b: list[float], documents: str, model: mixed.Model, note: str
) -> None:
    found = fit(paired(a, b, list(documents)), model)
    assert found.note is not None and note in found.note
    assert {found.estimate, found.se, found.p, found.share, found.converged} == {None}


def test_equal_differences_leave_the_stacked_model_its_error() -> None:
    found = fit(paired([0.3, 0.9, 0.5, 0.6], [0.1, 0.7, 0.3, 0.4], list("aabb")), "stacked")
    assert found.estimate == pytest.approx(0.2) and found.se is not None and found.se > 0.1


def test_one_question_a_document_leaves_the_share_open() -> None:
    # Only the sum of both variances is known then: the likelihood is flat in their ratio.
    pair = paired([0.5, 0.7, 0.1, 0.4], [0.1, 0.2, 0.3, 0.5], list("abcd"))
    found = fit(pair, "paired")
    assert found.share is None and found.note is not None and "two questions" in found.note
    assert found.estimate == pytest.approx(0.15)
    assert found.se == pytest.approx(np.std(pair.deltas, ddof=1) / 2)
    assert fit(pair, "stacked").share is not None


def test_units_and_order_change_nothing() -> None:
    pair = study(1)
    order = np.random.default_rng(0).permutation(len(pair.a))
    shuffled = paired(
        [1000 * pair.a[i] for i in order], [1000 * pair.b[i] for i in order],
        [pair.doc_ids[i] for i in order],
    )
    for model in MODELS:
        one, two = fit(pair, model), fit(shuffled, model)
        assert two.estimate == pytest.approx(1000 * one.estimate, rel=1e-6)
        assert two.se == pytest.approx(1000 * one.se, rel=1e-6)
        assert (two.share, two.p) == pytest.approx((one.share, one.p), rel=1e-5)


def test_exchanging_a_and_b_turns_the_sign() -> None:
    pair = study(2)
    back = paired(list(pair.b), list(pair.a), list(pair.doc_ids))
    for model in MODELS:
        one, two = fit(pair, model), fit(back, model)
        assert (two.estimate, two.p) == pytest.approx((-one.estimate, one.p), rel=1e-6)


def test_a_failed_library_leaves_the_search(monkeypatch: pytest.MonkeyPatch) -> None:
    # What a matrix that cannot be inverted does to MixedLM, at a place where the search stands.
    whole = fit(study(4), "paired")

    def singular(*_: Any, **__: Any) -> None:
        raise np.linalg.LinAlgError("Singular matrix")

    monkeypatch.setattr(MixedLM, "hessian", singular)
    found = fit(study(4), "paired")
    assert found.optimizer == "powell" and found.converged is False
    assert found.note is not None and "MixedLM failed" in found.note
    assert found.estimate == pytest.approx(whole.estimate, abs=1e-6)
    assert found.se == pytest.approx(whole.se, rel=0.03)


# ---------------------------------------------------------------- why they disagree

def test_models_that_agree_need_no_words() -> None:
    pair = study(1)
    stacked, single = fit(pair, "stacked"), fit(pair, "paired")
    p = 0.01 if single.p < 0.05 else 0.5
    same = stacked.p < 0.05
    assert (discordance(pair, stacked, single, p, 0.1) is None) == (same == (p < 0.05))
    assert discordance(pair, single, single, p, 0.1) is None


def test_a_stacked_model_misses_what_pairing_finds() -> None:
    # Scores spread over [0, 1] and move together; every question gains a little.
    rng = np.random.default_rng(0)
    b = rng.random(120)
    a = b + 0.02 + 0.02 * rng.normal(size=120)
    pair = paired(a.tolist(), b.tolist(), [f"d{i % 30}" for i in range(120)])
    stacked, single = fit(pair, "stacked"), fit(pair, "paired")
    text = discordance(pair, stacked, single, 0.001, single.se)
    assert stacked.p > 0.05 > single.p and text is not None
    assert text.startswith(
        f"Before Holm's correction p is below .05 by {mixed.RECORD}, paired, not by stacked."
    )
    assert f"{stacked.se / single.se:.2f} times the paired one" in text
    assert f"correlate {np.corrcoef(a, b)[0, 1]:.2f}" in text
    assert "weighs them" not in text  # record and paired agree


def test_a_stacked_model_that_is_too_sure_is_not_blamed_on_pairing() -> None:
    # Documents differ in their effect, questions of one do not.
    rng = np.random.default_rng(2)
    effects = rng.normal(0.15, 0.4, 12)
    docs = [f"d{i % 12:02d}" for i in range(240)]
    b = rng.normal(0.5, 0.02, 240)
    a = b + effects[np.arange(240) % 12] + rng.normal(0, 0.05, 240)
    pair = paired(a.tolist(), b.tolist(), docs)
    stacked, single = fit(pair, "stacked"), fit(pair, "paired")
    assert stacked.se < single.se and stacked.p < 0.05 < single.p
    text = discordance(pair, stacked, single, 0.2, single.se)
    assert text is not None and "no place for effects that differ between documents" in text
    assert "correlate" not in text


def test_weights_by_document_are_named_where_they_turn_the_verdict() -> None:
    pair = study(5, between=0.3)
    single = fit(pair, "paired")
    text = discordance(pair, single, single, 0.04 if single.p > 0.05 else 0.5, 0.02)
    assert text is not None and f"finds {100 * single.share:.0f}% of the variance" in text
    assert f"{single.estimate:+.4f} where the mean over questions is " in text
    assert f"{single.se / 0.02:.2f} times the clustered one" in text


def test_a_model_that_is_missing_is_named() -> None:
    # Deltas equal: nothing to pair, and the stacked error is all spread between questions.
    b = [0.1, 0.9, 0.4, 0.7, 0.2, 0.5]
    pair = paired([x + 0.01 for x in b], b, list("aabbcc"))
    stacked, single = fit(pair, "stacked"), fit(pair, "paired")
    text = discordance(pair, stacked, single, 0.0, 0.004)
    assert text is not None and "No paired model: all differences are equal." in text
    assert f"{stacked.se / 0.004:.2f} times the clustered one" in text
    assert discordance(pair, stacked, single, None, None) is None


def test_a_constant_arm_does_not_correlate() -> None:
    rng = np.random.default_rng(0)
    pair = paired((0.3 + 0.2 * rng.normal(size=20)).tolist(), [0.2] * 20, list("abcde") * 4)
    one = Fitted("stacked", 0.1, 0.2, 0, 0, 0.6, 0.1, True, "bfgs", 0, 0.1, 0.2, None)
    two = Fitted("paired", 0.1, 0.02, 0, 0, 0.001, 0.1, True, "bfgs", 0, 0.1, 0.2, None)
    text = discordance(pair, one, two, 0.001, 0.02)
    assert text is not None and "one of them being constant" in text
