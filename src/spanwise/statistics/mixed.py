"""Mixed models beside the bootstrap: a random intercept for each document, by REML.

    stacked   score ~ condition + (1 | document), two rows a question: the published study's model
    paired    delta ~ 1 + (1 | document): the same question, with its pairing kept

`stacked` treats the two scores of one question as independent given the document, so the spread
between questions stays in its error; where they rise and fall together it is wider than the data
ask for. Both are checks: neither is of record.

Every model is fitted twice, by a gradient and by Powell's direction search, and the higher
likelihood is kept. A gradient alone can stop at a wrong estimate without a word where the variance
between documents is tiny, and values are scaled to unit spread first for the same reason. Where
that variance is zero to the eye, the model is ordinary least squares, which stands beside it in any
case. Source: Laird and Ware, Biometrics 38 (1982); Wald's z as in statsmodels' MixedLM.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from spanwise.statistics.contrasts import Paired

Floats = NDArray[np.float64]
Model = Literal["stacked", "paired"]

BOUNDARY = 1e-6
"""Share of the documents' variance below which there is none."""

OPTIMIZERS = ("bfgs", "powell")

RECORD = "interval of record"


@dataclass(frozen=True, slots=True)
class Fitted:
    """One model of one contrast; figures are None where it could not be fitted, `note` says why.

    estimate, se, ci_low, ci_high: of A - B, in the measure's units; p: two-sided Wald z.
    share:       of the variance that lies between documents, within [0, 1].
    converged:   what the optimizer that was kept says.
    optimizer:   bfgs or powell; `ols` where no variance lies between documents.
    apart:       distance of the two optimizers' estimates, in standard errors.
    ols_estimate, ols_se: without documents.
    note:        in words, or None.
    """

    model: Model
    estimate: float | None
    se: float | None
    ci_low: float | None
    ci_high: float | None
    p: float | None
    share: float | None
    converged: bool | None
    optimizer: str | None
    apart: float | None
    ols_estimate: float | None
    ols_se: float | None
    note: str | None


def fit(pair: Paired, model: Model) -> Fitted:
    """Fit one model of one contrast."""
    if model == "stacked":
        values = np.array([*pair.a, *pair.b])
        condition = np.repeat([1.0, 0.0], len(pair.a))
        design = np.column_stack([np.ones(len(values)), condition])
        documents, place = [*pair.doc_ids, *pair.doc_ids], 1
    else:
        values, documents, place = np.array(pair.deltas), list(pair.doc_ids), 0
        design = np.ones((len(values), 1))
    why = _impossible(values, design, documents)
    if why is not None:
        return Fitted(model, None, None, None, None, None, None, None, None, None, None, None, why)
    scale = float(values.std(ddof=1))
    scaled = values / scale
    plain_estimate, plain_se = _least_squares(scaled, design, place)
    found = [f for name in OPTIMIZERS if (f := _optimised(scaled, design, documents, name, place))]
    if not found:
        return _as(model, scale, plain_estimate, plain_se, 0.0, False, "ols", None,
                   (plain_estimate, plain_se), "neither optimizer ended; least squares instead")
    # The first on equal likelihoods: the gradient.
    best = max(found, key=lambda f: f.likelihood)
    apart = None
    if len(found) == len(OPTIMIZERS):
        apart = abs(found[0].estimate - found[1].estimate) / plain_se
    note = None if best.converged else f"{best.optimizer} did not converge"
    if best.share < BOUNDARY:
        return _as(model, scale, plain_estimate, plain_se, 0.0, best.converged, "ols", apart,
                   (plain_estimate, plain_se), note or "no variance lies between documents")
    return _as(model, scale, best.estimate, best.se, best.share, best.converged, best.optimizer,
               apart, (plain_estimate, plain_se), note)


@dataclass(frozen=True, slots=True)
class _Run:
    optimizer: str
    estimate: float
    se: float
    share: float
    likelihood: float
    converged: bool


def _optimised(
    values: Floats, design: Floats, documents: Sequence[str], optimizer: str, place: int
) -> _Run | None:
    """One optimizer's result on scaled values; None where it failed or left no finite error."""
    from statsmodels.regression.mixed_linear_model import MixedLM

    codes = np.unique(documents, return_inverse=True)[1]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # convergence is recorded, and the boundary is expected
        try:
            made: Any = MixedLM(values, design, groups=codes).fit(reml=True, method=[optimizer])
            estimate, se = float(made.fe_params[place]), float(made.bse_fe[place])
            between, within = float(made.cov_re[0, 0]), float(made.scale)
            likelihood = float(made.llf)
        except (np.linalg.LinAlgError, ValueError, FloatingPointError):
            return None
    if not all(map(math.isfinite, (estimate, se, between, within, likelihood))) or se <= 0:
        return None
    return _Run(optimizer, estimate, se, between / (between + within), likelihood,
                bool(made.converged))


def _least_squares(values: Floats, design: Floats, place: int) -> tuple[float, float]:
    beta, *_ = np.linalg.lstsq(design, values, rcond=None)
    residuals = values - design @ beta
    variance = float(residuals @ residuals) / (len(values) - design.shape[1])
    spread = np.linalg.inv(design.T @ design) * variance
    return float(beta[place]), math.sqrt(float(spread[place, place]))


def _as(
    model: Model, scale: float, estimate: float, se: float, share: float, converged: bool,
    optimizer: str, apart: float | None, plain: tuple[float, float], note: str | None,
) -> Fitted:
    """Back in the measure's units."""
    from scipy.stats import norm

    half = float(norm.ppf(0.975)) * se
    return Fitted(
        model, scale * estimate, scale * se, scale * (estimate - half), scale * (estimate + half),
        2 * float(norm.sf(abs(estimate) / se)), share, converged, optimizer, apart,
        scale * plain[0], scale * plain[1], note,
    )


def _impossible(values: Floats, design: Floats, documents: Sequence[str]) -> str | None:
    if len(set(documents)) < 2:
        return "fewer than two documents"
    if len(values) <= design.shape[1] + 1:
        return "too few questions for a variance within documents and one between them"
    if float(values.std()) <= 1e-12:
        return "the scores do not vary"
    if float(_least_squares(values, design, design.shape[1] - 1)[1]) <= 1e-12:
        return "all differences are equal"
    return None


def discordance(
    pair: Paired, stacked: Fitted, paired: Fitted, p: float | None, se: float | None
) -> str | None:
    """Why the models and the interval of record say different things at 5%, or None if they agree.

    p:  of record; se: the clustered standard error of the mean.
    The reasons are read off the data: how far the two scores of a question move together, what
    share of the variance lies between documents, and whose error is how wide.
    """
    known = {
        name: value
        for name, value in ((RECORD, p), ("stacked", stacked.p), ("paired", paired.p))
        if value is not None
    }
    found = {name for name, value in known.items() if value < 0.05}
    if len(known) < 2 or len(found) in (0, len(known)):
        return None
    others = ", ".join(sorted(set(known) - found))
    text = f"{', '.join(sorted(found))}: a difference at 5%; {others}: none."
    if ("stacked" in found) != ("paired" in found) and stacked.se and paired.se:
        text += (
            f" The stacked model's error is {stacked.se / paired.se:.2f} times the paired one's:"
            f" the two scores of a question correlate {_together(pair)}, and it does not pair them."
        )
    if RECORD in known and "paired" in known and (RECORD in found) != ("paired" in found):
        share = 100 * (paired.share or 0.0)
        text += (
            f" The paired model finds {share:.0f}% of the variance between documents and weighs"
            f" them by it: {paired.estimate:+.4f} where the mean over questions is"
            f" {math.fsum(pair.deltas) / len(pair.deltas):+.4f}"
        )
        text += f", its error {paired.se / se:.2f} times the clustered one." if (
            paired.se and se
        ) else "."
    return text


def _together(pair: Paired) -> str:
    a, b = np.array(pair.a), np.array(pair.b)
    if a.std() <= 1e-12 or b.std() <= 1e-12:
        return "not at all, one of them being constant"
    return f"{float(np.corrcoef(a, b)[0, 1]):.2f}"
