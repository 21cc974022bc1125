"""The study's contrasts: confirmatory ones in the primary cell, all else beside them, marked.

Families of one cell and measure, each with Holm's correction of its own: `contrast` and `step`; and
for the primary measure `connected`, the contrasts with documents that share a question's evidence
as one cluster, and `type:...`, the contrasts within the questions of one type. `dose` has slopes.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from spanwise.params import MEASURES, Condition
from spanwise.statistics.bootstrap import Sample
from spanwise.statistics.checks import checks, models
from spanwise.statistics.clusters import connected
from spanwise.statistics.contrasts import Column, Contrast, Paired, infer, pair, record
from spanwise.statistics.dose import DEPTHS, slopes
from spanwise.statistics.linearised import FEW
from spanwise.statistics.study import Cell, Study, cells, primary

FIGURES = (
    "mean_a", "mean_b", "delta", "ci_low", "ci_high", "ci90_low", "ci90_high", "se", "p", "dz",
    "p_holm",
)

Row = dict[str, Any]


@dataclass(slots=True)
class Inferred:
    """Rows of CONTRASTS, REPLICATES, CHECKS and MIXED."""

    contrasts: list[Row] = field(default_factory=list)
    replicates: list[Row] = field(default_factory=list)
    checks: list[Row] = field(default_factory=list)
    mixed: list[Row] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class _Family:
    """Pairs that one correction is over.

    pairs:    name -> (A, B), absent ones among them; as many as Holm counts.
    columns:  the scores that they are paired from.
    """

    name: str
    pairs: Mapping[str, Sequence[str]]
    columns: Mapping[str, Column]

    def paired(self) -> list[Paired]:
        """Those whose two conditions have scores."""
        return [
            pair(name, self.columns[a], self.columns[b])
            for name, (a, b) in self.pairs.items()
            if a in self.columns and b in self.columns
        ]


def inferred(study: Study) -> Inferred:
    """Everything that is inferred about one corpus."""
    made = Inferred()
    for cell, conditions in cells(study).items():
        if not any(arm in conditions for two in study.params.contrasts.values() for arm in two):
            continue  # a cell of a lexical condition has no arm of any contrast
        kept = {name: primary(study, rows) for name, rows in conditions.items()}
        for measure in MEASURES:
            columns = {name: _column(rows, measure) for name, rows in kept.items()}
            families = [
                _Family("contrast", study.params.contrasts, columns),
                _Family("step", study.params.steps, columns),
            ]
            if measure == study.params.primary.measure:
                families += _connected(study, columns)
                families += _types(study, kept, measure)
            for family in families:
                _infer(study, cell, measure, family, made)
            made.contrasts += _doses(study, cell, measure, columns)
    return made


def _column(rows: Sequence[Mapping[str, Any]], measure: str) -> Column:
    return {r["question_id"]: (r["doc_id"], r[measure]) for r in rows}


def _connected(study: Study, columns: Mapping[str, Column]) -> list[_Family]:
    """The contrasts with connected documents as one cluster, where evidence crosses documents."""
    joined = connected(study.documents.values())
    if all(joined[doc] == doc for doc in joined):
        return []
    clustered = {
        name: {q: (joined.get(doc, doc), value) for q, (doc, value) in column.items()}
        for name, column in columns.items()
    }
    return [_Family("connected", study.params.contrasts, clustered)]


def _types(
    study: Study, kept: Mapping[str, Sequence[Mapping[str, Any]]], measure: str
) -> list[_Family]:
    """The contrasts within the questions of each type, where there are several."""
    types = sorted({row["type"] for rows in kept.values() for row in rows})
    if len(types) < 2:
        return []
    return [
        _Family(f"type:{kind}", study.params.contrasts, {
            name: _column([row for row in rows if row["type"] == kind], measure)
            for name, rows in kept.items()
        })
        for kind in types
    ]


def _infer(study: Study, cell: Cell, measure: str, family: _Family, made: Inferred) -> None:
    settings, at = study.params.inference, study.params.primary
    m = len(family.pairs)  # also where a contrast is absent
    paired = family.paired()
    results = infer(paired, settings.iterations, settings.seed, m, FEW)
    found = {result.name: result for result in results}
    of_record = family.name == "contrast" and study.standing == "confirmatory" and (
        (*cell, measure) == (at.embedder, at.reranker, at.measure)
    )
    for name, (a, b) in family.pairs.items():
        # An absent contrast confirms nothing.
        standing = "confirmatory" if of_record and name in found else "exploratory"
        made.contrasts.append(
            _row(cell, measure, family.name, name, a, b, standing, found.get(name),
                 _why_absent(study, (a, b), family.columns))
        )
    if measure != at.measure:
        return
    where = {"embedder": cell[0], "reranker": cell[1], "measure": measure}
    made.checks += [
        {**where, "family": family.name, **row}
        for row in checks(paired, found, settings.iterations, settings.seed, settings.margin, m)
    ]
    if family.name not in ("contrast", "step"):
        return
    made.replicates += [
        {**where, "name": name, "draw": draw, "delta": delta}
        for name, result in found.items()
        for draw, delta in enumerate(result.replicates.tolist())
    ]
    made.mixed += [{**where, **row} for row in models(paired, found)]


def _why_absent(study: Study, arms: Sequence[str], columns: Mapping[str, Column]) -> str:
    return "; ".join(
        f"{arm}: {study.absent.get(study.params.conditions[arm].label, 'not in this cell')}"
        for arm in arms
        if arm not in columns
    )


def _row(
    cell: Cell, measure: str, family: str, name: str, a: str, b: str, standing: str,
    found: Contrast | None, absent: str,
) -> Row:
    row: Row = {
        "embedder": cell[0], "reranker": cell[1], "measure": measure, "family": family,
        "name": name, "a": a, "b": b, "standing": standing,
        "status": "absent", "reason": absent, "interval": None, "n_questions": 0,
        "n_documents": 0, "excluded": 0,
    }
    if found is None:
        return row | dict.fromkeys(FIGURES)
    return row | {
        "status": "estimated", "reason": found.reason, "interval": found.interval,
        "n_questions": found.n_questions, "n_documents": found.n_documents,
        "excluded": sum(found.excluded.values()),
        **{figure: getattr(found, figure) for figure in FIGURES},
    }


def ladders(conditions: Mapping[str, Condition]) -> dict[str, list[str]]:
    """Segmentation -> the conditions that differ in nothing but the path's depth 0, 1, 2, 3."""
    found: dict[str, dict[int, str]] = {}
    for name, its in conditions.items():
        if its.retrieval == "flat" and its.prefix in ("none", "path"):
            found.setdefault(its.segmentation, {}).setdefault(its.depth, name)
    return {
        segmentation: [rungs[depth] for depth in DEPTHS]
        for segmentation, rungs in found.items()
        if set(DEPTHS) <= rungs.keys()
    }


def _doses(
    study: Study, cell: Cell, measure: str, columns: Mapping[str, Column]
) -> list[Row]:
    """Rows of family `dose`: the mean slope for each further level of the path; b is depth 0."""
    made = []
    settings = study.params.inference
    for segmentation, rungs in ladders(study.params.conditions).items():
        if any(rung not in columns for rung in rungs):
            continue
        found = slopes([columns[rung] for rung in rungs])
        drawn = found.resample(settings.iterations, settings.seed)
        its = record(Sample(found.values, found.doc_ids), drawn, FEW)
        row = _row(cell, measure, "dose", f"depth-{segmentation}", rungs[-1], rungs[0],
                   "exploratory", None, "")
        made.append(
            row | {
                "status": "estimated", "reason": None, "n_questions": len(found.values),
                "n_documents": drawn.n_documents, "excluded": sum(found.excluded.values()),
                "delta": drawn.mean, "interval": its.interval, "ci_low": its.ci[0],
                "ci_high": its.ci[1], "ci90_low": its.ci90[0], "ci90_high": its.ci90[1],
                "p": its.p,
            }
        )
    return made
