"""What each MLflow run of the ablation holds, read from finished results; MLflow itself is not
needed.

Kinds of run: `cell`, and below it `condition` and `contrast` (contrasts, the same over connected
clusters or within a type of question, steps and dose-response).
What is absent makes no run; its cell says why in the tag `absent.<contrast>` or
`absent_condition.<condition>`, and of a cell whose reranker could not be had the embedder's own
cell in `absent_cell.<reranker>`.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow as pa

from spanwise import layout, schemas
from spanwise.errors import InputError
from spanwise.params import WITHOUT, Params
from spanwise.tracking.estimates import (
    LOGGED,
    TABLES,
    WHOLE,
    as_artifacts,
    condition_metrics,
    condition_tags,
    contrast_metrics,
    contrast_tags,
    logged,
    of_contrast,
)
from spanwise.tracking.record import (
    Artifact,
    Run,
    as_text,
    digest_of,
    distinct,
    escape,
    fingerprint,
    flatten,
    joined,
    metric_name,
    unique,
    where,
)

_REPEATED = {"connected": "connected clusters"}
"""How a run is named whose family repeats the names of others; else by the family."""


@dataclass(frozen=True, slots=True)
class _Results:
    """One corpus: its tables, what `infer` and `label` reported, and the settings."""

    corpus: str
    params: Params
    scores: pa.Table
    means: pa.Table
    tables: Mapping[str, pa.Table]
    replicates: pa.Table
    report: Mapping[str, Any]
    absent_labels: Mapping[str, str]
    absent_cells: Mapping[str, str]

    @property
    def contrasts(self) -> pa.Table:
        return self.tables["contrasts"]


def read_runs(root: Path, params: Params, corpus: str) -> list[Run]:
    """Every run that the finished results of one corpus call for, each cell before what is in it.

    raises: InputError if a result is missing, or contradicts another or params.yaml.
    """
    infer, score = root / layout.stage("infer", corpus), root / layout.stage("score", corpus)
    results = _Results(
        corpus, params,
        schemas.read(score / "scores.parquet", schemas.SCORES),
        schemas.read(infer / "means.parquet", schemas.MEANS),
        {name: schemas.read(infer / f"{name}.parquet", its) for name, its in TABLES.items()},
        schemas.read(infer / "replicates.parquet", schemas.REPLICATES),
        layout.read_report(infer / "report.json"),
        layout.read_report(root / layout.stage("label", corpus) / "report.json")["absent"],
        layout.read_report(score / "report.json")["absent_cells"],
    )
    cells = {
        pair
        for table in (results.scores, results.means, results.contrasts)
        for pair in distinct(table, "embedder", "reranker")
    }
    return [run for pair in sorted(cells) for run in _cell(results, *pair)]


def _cell(results: _Results, embedder: str, reranker: str) -> list[Run]:
    """The run of one cell, then those of its conditions, then those of its contrasts."""
    params, corpus, report = results.params, results.corpus, results.report
    cell = f"{corpus}/{embedder}/{reranker}"
    keep = partial(where, embedder=embedder, reranker=reranker)
    scores, means = keep(results.scores), keep(results.means)
    tables = {name: keep(table) for name, table in results.tables.items()}
    contrasts, replicates = tables["contrasts"], keep(results.replicates)
    conditions = [name for name, in distinct(scores, "condition")]
    if conditions != [name for name, in distinct(means, "condition")]:
        raise InputError(
            f"{cell}: scores and means are not of the same conditions; run `dvc repro`"
        )
    if unknown := set(conditions) - set(params.conditions):
        raise InputError(
            f"{cell}: results of {sorted(unknown)}, no rows of params.yaml; run `dvc repro`"
        )
    confirmed = bool(contrasts.num_rows) and "confirmatory" in contrasts["standing"].to_pylist()
    if confirmed and report["standing"] != "confirmatory":
        raise InputError(
            f"{cell}: a contrast is confirmatory though infer's report says "
            f"{report['standing']!r}; run `dvc repro`"
        )
    settings = _settings(results, embedder, reranker)
    corpus_digest = digest_of(report["digests"])
    cell_digest = digest_of([corpus_digest, settings])
    shared = flatten(settings)
    primary = (embedder, reranker) == (params.primary.embedder, params.primary.reranker)
    common = {
        "corpus": corpus, "cell": cell, "embedder": embedder, "reranker": reranker,
        "demonstration": as_text(report["demonstration"]),
        "primary": as_text(primary), "questions": report["origin"],
        "corpus_digest": corpus_digest, "cell_digest": cell_digest,
        "n_differences": str(len(report["differences"])),
    }
    if report["differences"]:
        common["differences"] = joined(report["differences"])
    if report["registered_at"] is not None:
        common["registered_at"] = report["registered_at"]

    below = []
    for name in conditions:
        its, rows = where(scores, condition=name), where(means, condition=name)
        condition = params.conditions[name].model_dump()
        cut = _cut(params, name)
        below.append(Run(
            "condition", cell, name,
            {**shared, "condition": name, **flatten({**condition, **cut})},
            {**_mean_metrics(cell, rows), **condition_metrics(params, cell, name, contrasts)},
            {
                # A mean is no contrast that was fixed beforehand.
                **common, "kind": "condition", "condition": name, "standing": "exploratory",
                **{key: as_text(value) for key, value in condition.items()},
                **condition_tags(params, name, contrasts),
                "condition_digest": digest_of([cell_digest, {**condition, **cut}]),
                "data_digest": fingerprint(its),
            },
            {
                "scores.parquet": (schemas.SCORES, its),
                "means.parquet": (schemas.MEANS, rows),
            },
        ))
    without = _absent_conditions(results, embedder, conditions)
    absent: dict[str, str] = {}
    for family, name in distinct(contrasts, "family", "name"):
        its_tables = of_contrast(tables, family, name)
        rows = its_tables["contrasts"]
        if "estimated" not in rows["status"].to_pylist():
            reasons = {reason or "no reason given" for reason in rows["reason"].to_pylist()}
            part = [] if family in WHOLE else family.split(":")
            absent[".".join(map(escape, [*part, name]))] = "; ".join(sorted(reasons))
            continue
        draws = where(replicates, name=name)
        if family not in WHOLE:
            draws = draws.slice(0, 0)  # these families reuse names; the draws are not their own
        below.append(_contrast(params, cell, its_tables, draws, scores, shared, common))

    n_contrasts = sum(run.kind == "contrast" for run in below)
    top = Run(
        "cell", cell, f"{embedder}/{reranker}",
        {**shared, **flatten({"inference": params.inference.model_dump()})},
        {
            "n_questions": len(distinct(scores, "question_id")),
            "n_documents": len(distinct(scores, "doc_id")),
            "n_conditions": len(conditions), "n_contrasts": n_contrasts,
            "n_absent_conditions": len(without), "n_absent_contrasts": len(absent),
            **unique(cell, (
                (f"excluded/{escape(reason)}", n) for reason, n in report["exclusions"].items()
            )),
        },
        {
            **common, "kind": "cell", "standing": "confirmatory" if confirmed else "exploratory",
            LOGGED: logged(tables),
            "data_digest": fingerprint(scores),
            **{f"absent.{name}": reason for name, reason in absent.items()},
            **{f"absent_condition.{name}": reason for name, reason in without.items()},
            **_absent_cells(results, embedder, reranker),
        },
        {
            "means.parquet": (schemas.MEANS, means),
            **as_artifacts(tables),
            "report.json": json.dumps(report, indent=1, ensure_ascii=False, sort_keys=True) + "\n",
        },
    )
    return [top, *below]


def _cut(params: Params, condition: str) -> dict[str, Any]:
    """Who cuts a condition's chunks, where another package does."""
    name = params.conditions[condition].segmentation
    return {"external": params.external[name].model_dump()} if name in params.external else {}


def _contrast(
    params: Params, cell: str, tables: Mapping[str, pa.Table], draws: pa.Table, scores: pa.Table,
    shared: Mapping[str, str], common: Mapping[str, str],
) -> Run:
    """The run of one contrast in one cell: every measure's figures, and the bootstrap's draws.

    tables: the contrast's own rows of each of TABLES.
    """
    listed = tables["contrasts"].to_pylist()
    family, name, a, b = (listed[0][c] for c in ("family", "name", "a", "b"))
    standing = {r["measure"] for r in listed if r["standing"] == "confirmatory"}
    sides = {
        side: {**params.conditions[condition].model_dump(), **_cut(params, condition)}
        for side, condition in (("a", a), ("b", b)) if condition in params.conditions
    }
    inference = params.inference.model_dump()
    # A slope rests on the conditions of every depth, which the table does not name.
    data = scores if family == "dose" else where(scores, condition=[a, b])
    tags = {
        **common, "kind": "contrast", "contrast": name, "family": family, "a": a, "b": b,
        "standing": "confirmatory" if standing else "exploratory",
        "contrast_digest": digest_of([common["cell_digest"], family, name, a, b, sides, inference]),
        "data_digest": fingerprint(data), LOGGED: logged(tables),
    }
    if standing:
        # Only these of the run's measures were fixed beforehand; all others explore.
        tags["confirmatory_measures"] = ", ".join(sorted(standing))
    tags |= contrast_tags(params, tables)
    artifacts: dict[str, Artifact] = as_artifacts(tables)
    if draws.num_rows:
        artifacts["replicates.parquet"] = (schemas.REPLICATES, draws)
    return Run(
        "contrast", cell, (name if name == f"{a}-{b}" else f"{name} = {a}-{b}")
        + ("" if family in WHOLE else f", {_REPEATED.get(family, family.replace(':', ' '))}"),
        {
            **shared, "family": family, "contrast": name, "a": a, "b": b,
            **flatten({**sides, "inference": inference}),
        },
        contrast_metrics(cell, tables), tags, artifacts,
    )


def _mean_metrics(cell: str, means: pa.Table) -> dict[str, float]:
    """Means by slice, the primary slice without a name, and the counts behind each."""
    rows = means.to_pylist()

    def pairs() -> Iterable[tuple[str, float]]:
        for row in rows:
            part, measure = row["slice"], row["measure"]
            if row["mean"] is not None:
                yield metric_name(measure, "" if part == "primary" else part), row["mean"]
            for count in ("n_questions", "undefined"):
                yield metric_name(measure, f"{count}:{part}"), row[count]

    return unique(cell, pairs()) | {"undefined_figures": sum(r["mean"] is None for r in rows)}


def _absent_conditions(
    results: _Results, embedder: str, present: Iterable[str]
) -> dict[str, str]:
    """The rows of the conditions table that this cell should hold and does not, with the reason."""
    lexical = embedder == layout.LEXICAL
    return {
        name: results.absent_labels.get(its.label, "it has no scores")
        for name, its in results.params.conditions.items()
        if (its.retrieval == "bm25") == lexical and name not in set(present)
    }


def _absent_cells(results: _Results, embedder: str, reranker: str) -> dict[str, str]:
    """Tags of an embedder's own cell for those that no reranker could be had for."""
    if reranker != WITHOUT:
        return {}
    found = {tuple(cell.split("/")): reason for cell, reason in results.absent_cells.items()}
    return {
        f"absent_cell.{name}": reason for (whose, name), reason in found.items()
        if whose == embedder
    }


def _reranker(results: _Results, name: str) -> str | dict[str, Any]:
    if name == WITHOUT:
        return name
    if name not in results.params.rerankers:
        raise InputError(
            f"{results.corpus}: results of reranker {name!r}, no entry of params.yaml; "
            "run `dvc repro`"
        )
    return {"name": name, **results.params.rerankers[name].model_dump()}


def _settings(results: _Results, embedder: str, reranker: str) -> dict[str, Any]:
    """The settings that make a cell what it is, and no other cell's."""
    params, corpus = results.params, results.params.corpora[results.corpus]
    if embedder == layout.LEXICAL:
        encoder = params.retrieval.bm25.model_dump()
    elif embedder in params.embedders:
        encoder = params.embedders[embedder].model_dump()
    else:
        raise InputError(
            f"{results.corpus}: results of embedder {embedder!r}, no entry of params.yaml; "
            "run `dvc repro`"
        )
    asks = corpus.inducer != "segmenter" or corpus.contexts or corpus.questions == "written"
    return {
        # Whether the other study runs on it too changes nothing here; what is drawn for sweeps
        # does, where anything is.
        "corpus": {"name": results.corpus, **corpus.model_dump(
            exclude={"units"} if corpus.sweep.share else {"units", "sweep"}
        )},
        "embedder": {"name": embedder, **encoder},
        "reranker": _reranker(results, reranker),
        "tokens": params.tokens.model_dump(),
        "chunking": params.chunking.model_dump(),
        # `hybrid` takes the segmenter's boundaries, `llm` has no settings but the model's.
        "inducer": {} if corpus.inducer == "llm" else params.inducers.segmenter.model_dump(),
        **({"llm": params.llm.model_dump()} if asks else {}),
        **({"writing": params.writing.model_dump()} if corpus.questions else {}),
        "prefixes": params.prefixes.model_dump(),
        "retrieval": params.retrieval.model_dump(exclude={"bm25"}),
    }
