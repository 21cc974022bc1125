"""Which parameter moves the measure: fANOVA over the trials that share their parameters."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from spanwise.params import SweepSettings
from spanwise.sweep.results import COMPLETE
from spanwise.sweep.space import RETRIEVALS, bounds, segmentations

LEAST = 10
"""Complete trials of a part, below which a forest of trees tells nothing."""

_STRUCTURAL = ("segmentation", "cap_tokens", "floor_tokens", "depth", "retrieval")

PARTS: Mapping[str, tuple[str, ...]] = {
    "fixed": ("window_tokens", "overlap_tokens"),
    "structural": _STRUCTURAL,
    "routed": (*(name for name in _STRUCTURAL if name != "retrieval"), "sections"),
}
"""Part of the trials -> the parameters that all of them have and that differ between them."""


def part_of(rows: Sequence[Mapping[str, Any]], part: str) -> list[Mapping[str, Any]]:
    """The trials of a part."""
    holds: dict[str, Callable[[Mapping[str, Any]], bool]] = {
        "fixed": lambda row: row["segmentation"] == "fixed",
        "structural": lambda row: row["segmentation"] != "fixed",
        "routed": lambda row: row["retrieval"] == "routed",
    }
    return [row for row in rows if holds[part](row)]


def importance(
    rows: Sequence[Mapping[str, Any]], measure: str, space: SweepSettings, *, lexical: bool
) -> list[dict[str, Any]]:
    """Rows of SWEEP_IMPORTANCE, the parts in order, the weightiest parameter of each first.

    rows:   of SWEEP_TRIALS, in order: the same rows give the same figures, whatever drew them.
    source: Hutter, Hoos and Leyton-Brown, 2014: the share of the variance of a forest's prediction
            that a parameter has by itself, here shares of those of all parameters.
    """
    done = [row for row in rows if row["state"] == COMPLETE]
    found: list[dict[str, Any]] = []
    for part, names in PARTS.items():
        mine = part_of(done, part)
        free = [name for name in names if len(_choices(space, name, lexical=lexical)) > 1]
        if not mine or not free:
            continue
        reason = None
        if len(mine) < LEAST:
            reason = f"{len(mine)} complete trials, below {LEAST}"
        elif len({row[measure] for row in mine}) == 1:
            reason = "every trial came to the same"
        weights: Mapping[str, float | None] = dict.fromkeys(free)
        if reason is None:
            weights = _weights(mine, measure, space, free, lexical=lexical)
        order = sorted(free, key=lambda name: -(weights[name] or 0.0))  # stable: as they stand
        found += [
            {"part": part, "parameter": name, "trials": len(mine), "importance": weights[name],
             "reason": reason}
            for name in order
        ]
    return found


def _choices(space: SweepSettings, name: str, *, lexical: bool) -> Sequence[Any]:
    if name == "segmentation":
        return [one for one in segmentations(space, lexical=lexical) if one != "fixed"]
    if name == "retrieval":
        return [] if lexical else RETRIEVALS
    low, high, step = bounds(space, name)
    return range(low, high + 1, step)


def _weights(
    rows: Sequence[Mapping[str, Any]], measure: str, space: SweepSettings, names: Sequence[str],
    *, lexical: bool,
) -> dict[str, float | None]:
    import optuna
    from optuna.distributions import (
        BaseDistribution,
        CategoricalDistribution,
        IntDistribution,
    )

    optuna.logging.set_verbosity(optuna.logging.ERROR)
    distributions: dict[str, BaseDistribution] = {}
    for name in names:
        if name in ("segmentation", "retrieval"):
            distributions[name] = CategoricalDistribution(_choices(space, name, lexical=lexical))
        else:
            low, high, step = bounds(space, name)
            distributions[name] = IntDistribution(low, high, step=step)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        study = optuna.create_study(direction="maximize")
        study.add_trials([
            optuna.trial.create_trial(
                params={name: row[name] for name in names}, distributions=distributions,
                value=row[measure],
            )
            for row in rows
        ])
        found = optuna.importance.get_param_importances(
            study, params=list(names),
            evaluator=optuna.importance.FanovaImportanceEvaluator(seed=space.seed),
        )
    return {name: float(found.get(name, 0.0)) for name in names}
