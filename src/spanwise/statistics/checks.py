"""What stands beside a contrast's interval of record: other intervals, power, mixed models."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from spanwise.statistics.bootstrap import Sample, corrected, percentiles, totals
from spanwise.statistics.cautions import EVEN, dominated, evenness, scarce, warnings
from spanwise.statistics.contrasts import Contrast, Paired, holm
from spanwise.statistics.linearised import linearised
from spanwise.statistics.mixed import discordance, fit
from spanwise.statistics.permutation import sign_flips
from spanwise.statistics.power import ALPHA, power

PERCENTILES = ("percentile_low", "percentile_high", "percentile_p")
FIGURES = (
    *PERCENTILES, "bca_low", "bca_high", "linear_low",
    "linear_high", "linear_p", "linear_p_holm", "flip_p", "flip_p_holm", "icc", "design_effect",
    "power", "detectable", "equivalence_power",
)
NARROW = 60
"""Documents below which percentiles over documents of unequal size cover 91 to 94% in place of 95
(docs/calibration.md)."""

SIZES = ("documents_needed", "questions_needed", "equivalence_documents", "equivalence_questions")


def checks(
    pairs: Sequence[Paired], found: Mapping[str, Contrast], iterations: int, seed: int,
    margin: float, m: int,
) -> list[dict[str, Any]]:
    """Figures of CHECKS for each pair of one family, None where there is nothing to say.

    found:  the contrast of each pair by its name.
    `equivalence_unsure`: the 90% interval is known to be too near zero in such data, where few
    documents show any difference, or too narrow, where a few hold most questions.
    margin: the registered smallest effect of interest; m: size of the family, Holm's first step.
    """
    samples = [Sample(pair.deltas, pair.doc_ids) for pair in pairs]
    flips = sign_flips(samples, iterations, seed)
    made = []
    for pair, sample, flip in zip(pairs, samples, flips, strict=True):
        row: dict[str, Any] = {"name": pair.name, **dict.fromkeys((*FIGURES, *SIZES))}
        row |= {"equivalence_unsure": False, "cautions": []}
        made.append(row)
        its = found[pair.name]
        if its.n_documents < 2:
            continue
        sums, counts = totals(sample)
        line = linearised(sums, counts)
        low, high = line.interval()
        row |= {"flip_p": flip, "linear_low": low, "linear_high": high, "linear_p": line.p}
        row |= dict(zip(PERCENTILES, percentiles(its.replicates), strict=True))
        bca = corrected(its.replicates, sums, counts)
        if bca is not None:
            row["bca_low"], row["bca_high"] = bca
        squares = math.fsum(value**2 for value in sample.values)
        size = power(sums, counts, squares, margin, ALPHA / m)
        if size is not None:
            row |= {
                "icc": size.icc, "design_effect": size.design_effect, "power": size.power,
                "detectable": size.detectable, "equivalence_power": size.equivalence_power,
                "documents_needed": size.documents, "questions_needed": size.questions,
                "equivalence_documents": size.equivalence_documents,
                "equivalence_questions": size.equivalence_questions,
            }
        row["equivalence_unsure"] = scarce(sums) or dominated(counts)
        row["cautions"] = warnings(sums, counts, sample.values) + _narrow(its, counts)
    for p in ("linear_p", "flip_p"):
        for row, adjusted in zip(made, holm([row[p] for row in made], m), strict=True):
            row[f"{p}_holm"] = adjusted
    return made


def _narrow(its: Contrast, counts: NDArray[np.float64]) -> list[str]:
    """Whether percentiles are of record where they are known to be a little too narrow."""
    if its.interval != "percentile" or its.n_documents >= NARROW or evenness(counts) >= EVEN:
        return []
    return [
        f"with {its.n_documents} documents of unequal size the percentile interval covers the true "
        "difference in 91 to 94% of studies, not 95%: the linearised one stands beside it"
    ]


def models(pairs: Sequence[Paired], found: Mapping[str, Contrast]) -> list[dict[str, Any]]:
    """Figures of MIXED: two models of each pair, with why they disagree with what is of record."""
    made = []
    for pair in pairs:
        stacked, paired = fit(pair, "stacked"), fit(pair, "paired")
        its = found[pair.name]
        why = discordance(pair, stacked, paired, its.p, its.se)
        for model in (stacked, paired):
            made.append(
                {
                    "name": pair.name, "model": model.model,
                    **{
                        field: getattr(model, field)
                        for field in (
                            "estimate", "se", "ci_low", "ci_high", "p", "share", "converged",
                            "optimizer", "apart", "ols_estimate", "ols_se", "note",
                        )
                    },
                    "discordance": why,
                }
            )
    return made
