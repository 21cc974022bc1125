"""What each MLflow run of the study of exact evidence units holds, read from finished results.

Kinds of run: `retriever`, and below it `segmentation`, what one came to under that retriever, and
`comparison`, one difference: of two segmentations below their retriever, of an embedder and BM25
below the embedder. Metrics are `<basis>/<figure>_at_<amount>`, those of the reworded slice with
`reworded/` before it; the amount of `matched` is a number of sections. A comparison that was
repeated with documents that share a need's anchors as one cluster has those figures too, with
`connected/` before them.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa

from spanwise import layout, schemas
from spanwise.errors import InputError
from spanwise.params import Params
from spanwise.tracking.record import (
    Artifact,
    Run,
    as_text,
    digest_of,
    distinct,
    fingerprint,
    flatten,
    metric_name,
    where,
)

STUDY = "units/"
"""What stands before the corpus in an experiment's name and in the place of its artifacts."""

FIGURES = ("delta", "ci_low", "ci_high", "p", "p_holm", "n_questions", "n_documents")
"""Columns of a comparison that become metrics; both means are metrics of its segmentations."""

_PLAIN = "development"
_CONNECTED = "connected"
_MEASURES = ("sufficient", "covered")
_RETURNED = ("units", "characters", "tokens")
_COUNTS = ("n_needs", "n_answerable")
_SHARED = "wordings of development needs, with their anchors: no second confirmation"


@dataclass(frozen=True, slots=True)
class _Study:
    """One corpus: its tables, what its stages reported, and the settings.

    reports:  stage -> counts; retrieved: retriever -> the same of `units-retrieve`.
    data:     (retriever, segmentation) -> digest of its outcomes.
    ablation: what `infer` reported, which names the corpus's documents and questions.
    """

    corpus: str
    params: Params
    means: pa.Table
    comparisons: pa.Table
    reports: Mapping[str, Mapping[str, Any]]
    retrieved: Mapping[str, Mapping[str, Any]]
    data: Mapping[tuple[str, str], str]
    ablation: Mapping[str, Any]


def read_units(root: Path, params: Params, corpus: str) -> list[Run]:
    """Every run that the study of one corpus calls for, each retriever before what lies below it.

    returns: none for a corpus that the study does not run on.
    raises:  InputError if a result is missing, or contradicts another or params.yaml.
    """
    at = {
        name: root / layout.stage(name, corpus) for name in ("units", "units-score", "units-infer")
    }
    asked = params.corpora[corpus].units
    reports = {"units": _report(at["units"], corpus, asked)}
    if not asked:
        return []
    reports |= {name: _report(at[name], corpus, asked) for name in ("units-score", "units-infer")}
    retrieved = {
        name: _report(root / layout.cell("units-retrieve", corpus, name), corpus, asked)
        for name in (layout.LEXICAL, *params.embedders)
    }
    outcomes = schemas.read(at["units-score"] / "outcomes.parquet", schemas.OUTCOMES)
    study = _Study(
        corpus, params,
        schemas.read(at["units-infer"] / "means.parquet", schemas.UNIT_MEANS),
        schemas.read(at["units-infer"] / "comparisons.parquet", schemas.UNIT_COMPARISONS),
        reports, retrieved,
        {
            (retriever, segmentation): fingerprint(
                where(outcomes, retriever=retriever, segmentation=segmentation)
            )
            for retriever, segmentation in distinct(outcomes, "retriever", "segmentation")
        },
        layout.read_report(root / layout.stage("infer", corpus) / "report.json"),
    )
    _agree(study)
    return [run for retriever in retrieved for run in _retriever(study, retriever)]


def _report(folder: Path, corpus: str, asked: bool) -> dict[str, Any]:
    """A stage's counts, if it asked for what params.yaml asks for."""
    report = layout.read_report(folder / "report.json")
    if report["asked"] != asked:
        raise InputError(
            f"{folder / 'report.json'}: made with `units: {as_text(report['asked'])}`, and "
            f"params.yaml says `units: {as_text(asked)}` for {corpus}; run `dvc repro`"
        )
    return report


def _agree(study: _Study) -> None:
    """Hold the tables against each other and against params.yaml.

    raises: InputError that says where they part.
    """
    corpus, its = study.corpus, study.params.units
    pairs = sorted(study.data)
    if pairs != distinct(study.means, "retriever", "segmentation"):
        raise InputError(
            f"{corpus}: outcomes and means of units are not of the same retrievers and "
            "segmentations; run `dvc repro`"
        )
    if (found := {retriever for retriever, _ in pairs}) != set(study.retrieved):
        raise InputError(
            f"{corpus}: units were searched by {sorted(found)}, params.yaml has "
            f"{sorted(study.retrieved)}; run `dvc repro`"
        )
    sides = {side for pair in distinct(study.comparisons, "a", "b") for side in pair}
    if unknown := sides - {"/".join(pair) for pair in pairs}:
        raise InputError(
            f"{corpus}: {sorted(unknown)} are compared and have no outcomes; run `dvc repro`"
        )
    compared: dict[bool, set[tuple[str, str]]] = {True: set(), False: set()}
    for family, a, b in distinct(study.comparisons, "family", "a", "b"):
        compared[family == _CONNECTED].add((a, b))
    if alone := compared[True] - compared[False]:
        raise InputError(
            f"{corpus}: {sorted(alone)} are compared over connected clusters alone; run `dvc repro`"
        )
    amounts = {
        "units": its.cutoffs, "characters": its.characters, "tokens": its.tokens,
        "matched": its.cutoffs,
    }
    for table in (study.means, study.comparisons):
        held: dict[str, set[int]] = {}
        for basis, amount in zip(
            table["basis"].to_pylist(), table["amount"].to_pylist(), strict=True
        ):
            held.setdefault(basis, set()).add(amount)
        for basis, numbers in held.items():
            expected = amounts.get(basis.partition("-")[0], [])
            if sorted(numbers) != expected:
                raise InputError(
                    f"{corpus}: results at {sorted(numbers)} {basis}, params.yaml has {expected}; "
                    "run `dvc repro`"
                )


def _retriever(study: _Study, retriever: str) -> list[Run]:
    """The run of one retriever, then those of its segmentations, then those of its comparisons."""
    params, corpus, report = study.params, study.corpus, study.reports["units"]
    cell = f"{corpus}/{retriever}"
    settings = {
        "corpus": {
            "name": corpus,
            **params.corpora[corpus].model_dump(include={"reader", "questions", "options"}),
        },
        "retriever": _searcher(params, retriever),
        "tokens": params.tokens.model_dump(),
        "units": params.units.model_dump(),
        "representation": report["representation"],
    }
    inference = {"inference": params.inference.model_dump(include={"iterations", "seed"})}
    shared = flatten(settings)
    corpus_digest = digest_of(study.ablation["digests"])
    common = {
        "corpus": corpus, "study": "units", "retriever": retriever, "standing": "exploratory",
        "demonstration": as_text(study.ablation["demonstration"]),
        "questions": study.ablation["origin"], "corpus_digest": corpus_digest,
        "retriever_digest": digest_of([corpus_digest, settings]),
    }
    means = where(study.means, retriever=retriever)
    slices = {}
    for row in means.to_pylist():
        slices[row["slice"]] = f"{row['n_needs']} needs, {row['n_answerable']} with an answer"
    for name, facts in slices.items():
        common[f"slice.{name}"] = facts if name == _PLAIN else f"{facts}; {_SHARED}"

    below = []
    for segmentation, in distinct(means, "segmentation"):
        rows = where(means, segmentation=segmentation)
        below.append(Run(
            "segmentation", cell, f"{retriever}/{segmentation}",
            {**shared, "segmentation": segmentation},
            _mean_metrics(rows) | _unit_counts(study, retriever, segmentation),
            {
                **common, "kind": "segmentation", "segmentation": segmentation,
                "segmentation_digest": digest_of([common["retriever_digest"], segmentation]),
                "data_digest": study.data[retriever, segmentation],
            },
            {"means.parquet": (schemas.UNIT_MEANS, rows)},
        ))
    mine = [name for name, in distinct(study.comparisons, "a") if _split(name)[0] == retriever]
    comparisons = where(study.comparisons, a=mine)
    for a, b in distinct(comparisons, "a", "b"):
        rows = where(comparisons, a=a, b=b)
        below.append(_comparison(study, cell, rows, {**shared, **flatten(inference)}, common))

    counts = {**report, **study.retrieved[retriever]}
    reports = {**study.reports, "units-retrieve": study.retrieved[retriever]}
    artifacts: dict[str, Artifact] = {
        f"{name}.json": json.dumps(found, indent=1, ensure_ascii=False, sort_keys=True) + "\n"
        for name, found in reports.items()
    }
    top = Run(
        "retriever", cell, retriever, {**shared, **flatten(inference)},
        {
            **{
                metric_name(name): float(value) for name, value in counts.items()
                if isinstance(value, int) and not isinstance(value, bool)
            },
            "n_segmentations": float(sum(run.kind == "segmentation" for run in below)),
            "n_comparisons": float(sum(run.kind == "comparison" for run in below)),
        },
        {
            **common, "kind": "retriever",
            "data_digest": digest_of([found for key, found in sorted(study.data.items())
                                      if key[0] == retriever]),
        },
        {
            "means.parquet": (schemas.UNIT_MEANS, means),
            "comparisons.parquet": (schemas.UNIT_COMPARISONS, comparisons),
            **artifacts,
        },
    )
    return [top, *below]


def _comparison(
    study: _Study, cell: str, rows: pa.Table, shared: Mapping[str, str], common: Mapping[str, str]
) -> Run:
    """The run of one comparison: both measures at every amount of every basis, in both slices.

    rows: of one pair, those over connected clusters among them.
    """
    listed = rows.to_pylist()
    first = next(row for row in listed if row["family"] != _CONNECTED)
    name, family, a, b = (first[c] for c in ("name", "family", "a", "b"))
    sides = {}
    for side, (retriever, segmentation) in (("a", _split(a)), ("b", _split(b))):
        sides[side] = {
            "retriever": _searcher(study.params, retriever), "segmentation": segmentation
        }
    tags = {
        **common, "kind": "comparison", "comparison": name, "family": family, "a": a, "b": b,
        "comparison_digest": digest_of([common["corpus_digest"], family, sides, dict(shared)]),
        "data_digest": digest_of([study.data[_split(a)], study.data[_split(b)]]),
    }
    if family == "retriever":  # both sides are of the one segmentation
        tags["segmentation"] = sides["a"]["segmentation"]
    # Why there is no interval: of every amount alike, for it lies in the needs.
    reasons: dict[str, set[str]] = {}
    for row in listed:
        if row["reason"]:
            part = _CONNECTED if row["family"] == _CONNECTED else row["slice"]
            reasons.setdefault(part, set()).add(row["reason"])
    tags |= {f"reason.{part}": "; ".join(sorted(found)) for part, found in reasons.items()}
    metrics = {
        metric_name(f"{row['measure']}@{row['amount']}", _part(row, figure)): float(row[figure])
        for row in listed for figure in FIGURES if row[figure] is not None
    }
    undefined = sum(row[figure] is None for row in listed for figure in FIGURES)
    return Run(
        "comparison", cell, name,
        {**shared, "family": family, "comparison": name, "a": a, "b": b, **flatten(sides)},
        {**metrics, "undefined_figures": float(undefined)},
        tags, {"comparisons.parquet": (schemas.UNIT_COMPARISONS, rows)},
    )


def _mean_metrics(means: pa.Table) -> dict[str, float]:
    """Means and causes by slice, basis and amount; the needs behind them once for each slice."""
    listed = means.to_pylist()
    metrics = {}
    for row in listed:
        for count in _COUNTS:
            metrics[metric_name(count, _slice(row))] = float(row[count])
        for column, value in row.items():
            if column in (*schemas.UNIT_MEANS.key, *_COUNTS) or value is None:
                continue
            figure = f"returned_{column}" if column in _RETURNED else column
            metrics[metric_name(f"{figure}@{row['amount']}", _part(row))] = float(value)
    undefined = sum(row[measure] is None for row in listed for measure in _MEASURES)
    return {**metrics, "undefined_figures": float(undefined)}


def _unit_counts(study: _Study, retriever: str, segmentation: str) -> dict[str, float]:
    """How many units a segmentation has, and what lies beyond an embedder's window."""
    beyond = study.retrieved[retriever].get("beyond_window", {}).get(segmentation, {})
    return {
        "n_units": float(study.reports["units"]["units"][segmentation]),
        **{metric_name(name, "beyond_window"): float(n) for name, n in beyond.items()},
    }


def _searcher(params: Params, retriever: str) -> dict[str, Any]:
    """The settings of one retriever."""
    lexical = retriever == layout.LEXICAL
    its = params.retrieval.bm25 if lexical else params.embedders[retriever]
    return {"name": retriever, **its.model_dump()}


def _split(side: str) -> tuple[str, str]:
    """Retriever and segmentation of one side of a comparison."""
    retriever, _, segmentation = side.partition("/")
    return retriever, segmentation


def _part(row: Mapping[str, Any], figure: str = "") -> str:
    before = _CONNECTED if row.get("family") == _CONNECTED else ""
    return ":".join([before, _slice(row), figure, row["basis"]])


def _slice(row: Mapping[str, Any]) -> str:
    return "" if row["slice"] == _PLAIN else str(row["slice"])
