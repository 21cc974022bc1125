"""Mixed models beside the bootstrap: a random intercept for each document, by REML.

    stacked   score ~ condition + (1 | document), two rows a question: the published study's model
    paired    delta ~ 1 + (1 | document): the same question, with its pairing kept

`stacked` treats the two scores of one question as independent given the document, so the spread
between questions stays in its error; where they rise and fall together it is wider than the data
ask for. Both are checks: neither is of record.

The variance between documents, as a ratio to that within, is searched first: Powell's method from
the best point of a grid over all ratios, on the restricted likelihood in closed form. MixedLM then
starts there, and its own gradient has to agree. From its default start that gradient can stop at a
wrong estimate where documents hardly vary: its sign is wrong beyond zero, which a line search
crosses. Where the likelihood is largest without any variance between documents the model is
ordinary least squares, which stands beside it in any case. Values are scaled to unit spread first.
Source: Laird and Ware, Biometrics 38 (1982); Wald's z as in statsmodels' MixedLM.
"""

from __future__ import annotations

import math
import warnings
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from spanwise.statistics.contrasts import Paired

Floats = NDArray[np.float64]
Model = Literal["stacked", "paired"]

BOUNDARY = 1e-6
"""Share of the documents' variance below which there is none."""

_RATIOS = np.concatenate([[0.0], np.logspace(-6, 6, 121)])
_EQUAL = 1e-6    # a log-likelihood this much lower is the same

RECORD = "interval of record"


@dataclass(frozen=True, slots=True)
class Fitted:
    """One model of one contrast; figures are None where it could not be fitted, `note` says why.

    estimate, se, ci_low, ci_high: of A - B, in the measure's units; p: two-sided Wald z.
    share:       of the variance that lies between documents, within [0, 1]; None where no document
                 has two values.
    converged:   what MixedLM's gradient says; None where least squares stands for it.
    optimizer:   bfgs, or powell where MixedLM failed or fell short of it; `ols` where no variance
                 lies between documents.
    apart:       distance of MixedLM's estimate from Powell's, in standard errors.
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
    codes = np.unique(documents, return_inverse=True)[1]
    why = _impossible(values, design, codes)
    if why is not None:
        return Fitted(model, None, None, None, None, None, None, None, None, None, None, None, why)
    scale = float(values.std(ddof=1))
    scaled = values / scale
    plain = _least_squares(scaled, design, place)
    if len(values) == codes.max() + 1:
        return _as(model, scale, *plain, None, None, "ols", None, plain,
                   "no document has two questions: nothing tells its variance from theirs")
    searched = _searched(_Likelihood(scaled, design, codes), place)
    if searched.share < BOUNDARY:
        return _as(model, scale, *plain, 0.0, None, "ols", None, plain,
                   "no variance lies between documents")
    found = _optimised(scaled, design, codes, searched.ratio, place)
    if found is None:
        return _as(model, scale, searched.estimate, searched.se, searched.share, False, "powell",
                   None, plain, "MixedLM failed; Powell's search instead")
    apart = abs(found.estimate - searched.estimate) / plain[1]
    if found.likelihood < searched.likelihood - _EQUAL:
        return _as(model, scale, searched.estimate, searched.se, searched.share, found.converged,
                   "powell", apart, plain, "MixedLM left the maximum; Powell's search instead")
    return _as(model, scale, found.estimate, found.se, found.share, found.converged, "bfgs", apart,
               plain, None if found.converged else "bfgs did not converge")


@dataclass(frozen=True, slots=True)
class _Run:
    ratio: float
    estimate: float
    se: float
    likelihood: float
    converged: bool

    @property
    def share(self) -> float:
        return self.ratio / (1 + self.ratio)


class _Likelihood:
    """Restricted log-likelihood with all but the ratio of variances profiled out.

    With ratio r a document of n values has the covariance I + r J, whose inverse is
    I - r / (1 + n r) J: sums over each document are all that is needed.
    """

    def __init__(self, values: Floats, design: Floats, codes: NDArray[np.intp]) -> None:
        self.counts = np.bincount(codes).astype(np.float64)
        self.sums = np.bincount(codes, values)
        self.designs = np.column_stack([np.bincount(codes, column) for column in design.T])
        self.square, self.cross = design.T @ design, design.T @ values
        self.squares, self.free = float(values @ values), len(values) - design.shape[1]

    def at(self, ratio: float, place: int) -> _Run:
        """Everything at one ratio."""
        weights = ratio / (1 + self.counts * ratio)
        square = self.square - (self.designs * weights[:, None]).T @ self.designs
        cross = self.cross - self.designs.T @ (weights * self.sums)
        beta = np.linalg.solve(square, cross)
        left = self.squares - float((weights * self.sums) @ self.sums) - float(beta @ cross)
        variance = max(left, 0.0) / self.free
        likelihood = -0.5 * (
            self.free * (math.log(2 * math.pi * variance) + 1) if variance > 0 else -math.inf
        ) - 0.5 * (float(np.log1p(self.counts * ratio).sum()) + np.linalg.slogdet(square)[1])
        se = math.sqrt(variance * float(np.linalg.inv(square)[place, place]))
        return _Run(ratio, float(beta[place]), se, float(likelihood), True)


def _searched(likelihood: _Likelihood, place: int) -> _Run:
    """The ratio of the highest likelihood; 0 wins where another is no better."""
    from scipy.optimize import minimize

    found = [likelihood.at(float(ratio), place) for ratio in _RATIOS]
    best = max(found, key=lambda run: run.likelihood)
    start = math.log(max(best.ratio, float(_RATIOS[1])))
    ended = minimize(
        lambda log: -likelihood.at(math.exp(min(float(log[0]), 30.0)), place).likelihood,
        [start], method="Powell", options={"xtol": 1e-9, "ftol": 1e-14},
    )
    best = max(best, likelihood.at(math.exp(min(float(ended.x[0]), 30.0)), place),
               key=lambda run: run.likelihood)
    return best if best.likelihood > found[0].likelihood + _EQUAL else found[0]


def _optimised(
    values: Floats, design: Floats, codes: NDArray[np.intp], ratio: float, place: int
) -> _Run | None:
    """MixedLM from the ratio by its gradient; None where it failed or left no finite error."""
    from statsmodels.regression.mixed_linear_model import MixedLM

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # convergence is recorded, and the boundary is expected
        try:
            made: Any = MixedLM(values, design, groups=codes).fit(
                reml=True, method=["bfgs"], start_params=np.array([math.sqrt(ratio)])
            )
            estimate, se = float(made.fe_params[place]), float(made.bse_fe[place])
            between, within = float(made.cov_re[0, 0]), float(made.scale)
            likelihood = float(made.llf)
        except (np.linalg.LinAlgError, ValueError, FloatingPointError):
            return None
    if not all(map(math.isfinite, (estimate, se, between, within, likelihood))) or se <= 0:
        return None
    return _Run(between / within, estimate, se, likelihood, bool(made.converged))


def _least_squares(values: Floats, design: Floats, place: int) -> tuple[float, float]:
    beta, *_ = np.linalg.lstsq(design, values, rcond=None)
    residuals = values - design @ beta
    variance = float(residuals @ residuals) / (len(values) - design.shape[1])
    spread = np.linalg.inv(design.T @ design) * variance
    return float(beta[place]), math.sqrt(float(spread[place, place]))


def _as(
    model: Model, scale: float, estimate: float, se: float, share: float | None,
    converged: bool | None, optimizer: str, apart: float | None, plain: tuple[float, float],
    note: str | None,
) -> Fitted:
    """Back in the measure's units."""
    from scipy.stats import norm

    half = float(norm.ppf(0.975)) * se
    return Fitted(
        model, scale * estimate, scale * se, scale * (estimate - half), scale * (estimate + half),
        2 * float(norm.sf(abs(estimate) / se)), share, converged, optimizer, apart,
        scale * plain[0], scale * plain[1], note,
    )


def _impossible(values: Floats, design: Floats, codes: NDArray[np.intp]) -> str | None:
    if len(np.unique(codes)) < 2:
        return "fewer than two documents"
    if len(values) <= design.shape[1] + 1:
        return "too few questions for a variance within documents and one between them"
    if design.shape[1] > 1 and float(values.std()) <= 1e-12:
        return "the scores do not vary"
    if _least_squares(values, design, design.shape[1] - 1)[1] <= 1e-12:
        return "all differences are equal"
    if len(values) > codes.max() + 1 and _within(values, design, codes) <= 1e-12:
        return "nothing varies within documents: there are no two variances to tell apart"
    return None


def _within(values: Floats, design: Floats, codes: NDArray[np.intp]) -> float:
    """Root mean square of what is left when every document has a level of its own."""
    counts = np.bincount(codes)

    def centred(column: Floats) -> Floats:
        return column - (np.bincount(codes, column) / counts)[codes]

    rest = centred(values)
    if design.shape[1] > 1:
        condition = centred(design[:, 1])
        rest = rest - float(condition @ rest) / float(condition @ condition) * condition
    return math.sqrt(float(rest @ rest) / len(rest))


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
    text = "Before Holm's correction p is below .05 by "
    text += f"{', '.join(sorted(found))}, not by {others}."
    if "paired" not in known:
        text += f" No paired model: {paired.note}."
    other, name = (paired.se, "paired") if paired.se else (se, "clustered")
    apart = ("stacked" in found) != ((name if name in known else RECORD) in found)
    if "stacked" in known and apart and stacked.se and other:
        text += f" The stacked model's error is {stacked.se / other:.2f} times the {name} one: "
        text += (
            f"the two scores of a question correlate {_together(pair)}, and it does not pair them."
            if stacked.se > other else
            "it has no place for effects that differ between documents, and takes their spread"
            " for that of single questions."
        )
    if RECORD in known and "paired" in known and (RECORD in found) != ("paired" in found):
        if paired.share:
            text += (
                f" The paired model finds {100 * paired.share:.0f}% of the variance between"
                f" documents and weighs them by it: {paired.estimate:+.4f} where the mean over"
                f" questions is {math.fsum(pair.deltas) / len(pair.deltas):+.4f}"
            )
        elif paired.share is None:
            text += " No document has two questions, so the paired model is least squares"
        else:
            text += " The paired model finds no variance between documents: questions count singly"
        text += f", its error {paired.se / se:.2f} times the clustered one." if (
            paired.se and se
        ) else "."
    return text


def _together(pair: Paired) -> str:
    a, b = np.array(pair.a), np.array(pair.b)
    if a.std() <= 1e-12 or b.std() <= 1e-12:
        return "not at all, one of them being constant"
    return f"{float(np.corrcoef(a, b)[0, 1]):.2f}"
