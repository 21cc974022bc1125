"""What each MLflow run of the ablation holds, read from finished results; MLflow itself is not
needed.

Kinds of run: `cell`, and below it `condition` and `contrast` (contrasts, the same over connected
clusters, steps and dose-response).
What is absent makes no run; its cell says why in the tag `absent.<contrast>` or
`absent_condition.<condition>`.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from spanwise import layout, schemas
from spanwise.errors import InputError
from spanwise.params import Params

FIGURES = (
    "n_questions", "n_documents", "excluded", "mean_a", "mean_b", "delta", "ci_low", "ci_high", "p",
    "dz", "p_holm",
)
"""Columns of a contrast that become metrics, `<figure>/<measure>`."""

Artifact = str | tuple[schemas.Schema, pa.Table]


@dataclass(frozen=True, slots=True)
class Run:
    """Everything that one MLflow run holds.

    kind:      cell, condition or contrast; in the study of units retriever, segmentation or
               comparison.
    cell:      `<corpus>/<embedder>/<reranker>`, there `<corpus>/<retriever>`; a run of another kind
               lies below the one run of kind cell or retriever.
    artifacts: file name -> text, or a table with its schema.
    """

    kind: str
    cell: str
    name: str
    params: Mapping[str, str]
    metrics: Mapping[str, float]
    tags: Mapping[str, str]
    artifacts: Mapping[str, Artifact]

    @property
    def top(self) -> bool:
        """Whether it lies below no other run."""
        return self.kind in ("cell", "retriever")

    def content(self) -> str:
        """SHA-256 of all of it, tables by their rows: the same results have the same digest."""
        artifacts = {
            name: held if isinstance(held, str) else fingerprint(held[1])
            for name, held in self.artifacts.items()
        }
        return digest_of([
            self.kind, self.cell, self.name, dict(self.params), dict(self.metrics), dict(self.tags),
            artifacts,
        ])


@dataclass(frozen=True, slots=True)
class _Results:
    """One corpus: its tables, what `infer` and `label` reported, and the settings."""

    corpus: str
    params: Params
    scores: pa.Table
    means: pa.Table
    contrasts: pa.Table
    replicates: pa.Table
    report: Mapping[str, Any]
    absent_labels: Mapping[str, str]


def read_runs(root: Path, params: Params, corpus: str) -> list[Run]:
    """Every run that the finished results of one corpus call for, each cell before what is in it.

    raises: InputError if a result is missing, or contradicts another or params.yaml.
    """
    infer, score = root / layout.stage("infer", corpus), root / layout.stage("score", corpus)
    results = _Results(
        corpus, params,
        schemas.read(score / "scores.parquet", schemas.SCORES),
        schemas.read(infer / "means.parquet", schemas.MEANS),
        schemas.read(infer / "contrasts.parquet", schemas.CONTRASTS),
        schemas.read(infer / "replicates.parquet", schemas.REPLICATES),
        layout.read_report(infer / "report.json"),
        layout.read_report(root / layout.stage("label", corpus) / "report.json")["absent"],
    )
    cells = {
        pair
        for table in (results.scores, results.means, results.contrasts)
        for pair in distinct(table, "embedder", "reranker")
    }
    return [run for pair in sorted(cells) for run in _cell(results, *pair)]


def metric_name(measure: str, part: str = "") -> str:
    """A measure, or one figure or slice of it, as MLflow may name it: `@` is not allowed there.

    >>> metric_name("cov_ndcg@10"), metric_name("cov_ndcg@10", "delta")
    ('cov_ndcg_at_10', 'delta/cov_ndcg_at_10')
    >>> metric_name("mrr", "type:multi hop/2")
    'type/multi hop_x2f_2/mrr'
    """
    name = _escape(measure.replace("@", "_at_"))
    return "/".join([*(_escape(p) for p in part.split(":") if p), name])


def fingerprint(table: pa.Table) -> str:
    """SHA-256 of a table's names, types and rows, whatever wrote or compressed its file."""
    digest = hashlib.sha256()
    for field in table.schema:
        column = table[field.name].combine_chunks()
        digest.update(f"{field.name}\0{field.type}\0{len(column)}\0".encode())
        if pa.types.is_string(field.type):
            encoded = column.dictionary_encode()  # in order of first appearance
            digest.update(_canonical(encoded.dictionary.to_pylist()))
            numbers = encoded.indices.fill_null(-1)
        else:
            digest.update(column.is_null().cast(pa.int8()).to_numpy(zero_copy_only=False).tobytes())
            boolean = pa.types.is_boolean(field.type)
            numbers = (column.cast(pa.int8()) if boolean else column).fill_null(0)
        digest.update(numbers.to_numpy(zero_copy_only=False).tobytes())
    return digest.hexdigest()


def _cell(results: _Results, embedder: str, reranker: str) -> list[Run]:
    """The run of one cell, then those of its conditions, then those of its contrasts."""
    params, corpus, report = results.params, results.corpus, results.report
    cell = f"{corpus}/{embedder}/{reranker}"
    keep = partial(where, embedder=embedder, reranker=reranker)
    scores, means = keep(results.scores), keep(results.means)
    contrasts, replicates = keep(results.contrasts), keep(results.replicates)
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
        "corpus": corpus, "cell": cell, "demonstration": as_text(report["demonstration"]),
        "primary": as_text(primary), "questions": report["origin"],
        "corpus_digest": corpus_digest, "cell_digest": cell_digest,
    }

    below = []
    for name in conditions:
        its, rows = where(scores, condition=name), where(means, condition=name)
        condition = params.conditions[name].model_dump()
        below.append(Run(
            "condition", cell, name, {**shared, "condition": name, **flatten(condition)},
            _mean_metrics(cell, rows),
            {
                # A mean is no contrast that was fixed beforehand.
                **common, "kind": "condition", "condition": name, "standing": "exploratory",
                "condition_digest": digest_of([cell_digest, condition]),
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
        rows = where(contrasts, family=family, name=name)
        if "estimated" not in rows["status"].to_pylist():
            reasons = {reason or "no reason given" for reason in rows["reason"].to_pylist()}
            absent[name] = "; ".join(sorted(reasons))
            continue
        draws = where(replicates, name=name)
        if family not in ("contrast", "step"):
            draws = draws.slice(0, 0)  # `connected` reuses names; these draws are not its own
        below.append(_contrast(params, cell, rows, draws, scores, shared, common))

    n_contrasts = sum(run.kind == "contrast" for run in below)
    top = Run(
        "cell", cell, f"{embedder}/{reranker}",
        {**shared, **flatten({"inference": params.inference.model_dump()})},
        {
            "n_questions": len(distinct(scores, "question_id")),
            "n_documents": len(distinct(scores, "doc_id")),
            "n_conditions": len(conditions), "n_contrasts": n_contrasts,
            "n_absent_conditions": len(without), "n_absent_contrasts": len(absent),
            **_unique(cell, (
                (f"excluded/{_escape(reason)}", n) for reason, n in report["exclusions"].items()
            )),
        },
        {
            **common, "kind": "cell", "standing": "confirmatory" if confirmed else "exploratory",
            "data_digest": fingerprint(scores),
            **{f"absent.{_escape(name)}": reason for name, reason in absent.items()},
            **{f"absent_condition.{name}": reason for name, reason in without.items()},
        },
        {
            "means.parquet": (schemas.MEANS, means),
            "contrasts.parquet": (schemas.CONTRASTS, contrasts),
            "report.json": json.dumps(report, indent=1, ensure_ascii=False, sort_keys=True) + "\n",
        },
    )
    return [top, *below]


def _contrast(
    params: Params, cell: str, rows: pa.Table, draws: pa.Table, scores: pa.Table,
    shared: Mapping[str, str], common: Mapping[str, str],
) -> Run:
    """The run of one contrast in one cell: every measure's figures, and the bootstrap's draws."""
    listed = rows.to_pylist()
    family, name, a, b = (listed[0][c] for c in ("family", "name", "a", "b"))
    standing = {r["measure"] for r in listed if r["standing"] == "confirmatory"}
    sides = {
        side: params.conditions[condition].model_dump()
        for side, condition in (("a", a), ("b", b)) if condition in params.conditions
    }
    inference = params.inference.model_dump()
    # A slope rests on the conditions of every depth, which the table does not name.
    data = scores if family == "dose" else where(scores, condition=[a, b])
    tags = {
        **common, "kind": "contrast", "contrast": name, "family": family,
        "standing": "confirmatory" if standing else "exploratory",
        "contrast_digest": digest_of([common["cell_digest"], family, name, a, b, sides, inference]),
        "data_digest": fingerprint(data),
    }
    if standing:
        # Only these of the run's measures were fixed beforehand; all others explore.
        tags["confirmatory_measures"] = ", ".join(sorted(standing))
    for row in listed:
        if row["reason"] is not None:
            tags[f"reason.{metric_name(row['measure'])}"] = row["reason"]
    estimated = [row for row in listed if row["status"] == "estimated"]
    metrics = _unique(cell, (
        (metric_name(row["measure"], figure), row[figure])
        for row in estimated for figure in FIGURES if row[figure] is not None
    ))
    metrics["undefined_figures"] = sum(row[f] is None for row in estimated for f in FIGURES)
    metrics["absent_measures"] = len(listed) - len(estimated)
    artifacts: dict[str, Artifact] = {"contrasts.parquet": (schemas.CONTRASTS, rows)}
    if draws.num_rows:
        artifacts["replicates.parquet"] = (schemas.REPLICATES, draws)
    return Run(
        "contrast", cell, (name if name == f"{a}-{b}" else f"{name} = {a}-{b}")
        + (", connected clusters" if family == "connected" else ""),
        {
            **shared, "family": family, "contrast": name, "a": a, "b": b,
            **flatten({**sides, "inference": inference}),
        },
        metrics, tags, artifacts,
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

    return _unique(cell, pairs()) | {"undefined_figures": sum(r["mean"] is None for r in rows)}


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
        # Whether the other study runs on it too changes nothing here.
        "corpus": {"name": results.corpus, **corpus.model_dump(exclude={"units"})},
        "embedder": {"name": embedder, **encoder},
        "reranker": reranker,
        "tokens": params.tokens.model_dump(),
        "chunking": params.chunking.model_dump(),
        # `hybrid` takes the segmenter's boundaries, `llm` has no settings but the model's.
        "inducer": {} if corpus.inducer == "llm" else params.inducers.segmenter.model_dump(),
        **({"llm": params.llm.model_dump()} if asks else {}),
        **({"writing": params.writing.model_dump()} if corpus.questions else {}),
        "prefixes": params.prefixes.model_dump(),
        "retrieval": params.retrieval.model_dump(exclude={"bm25"}),
    }


def flatten(settings: Mapping[str, Any], above: str = "") -> dict[str, str]:
    """Settings as MLflow keeps them: dotted names and text.

    >>> flatten({"chunking": {"cap_tokens": 350}, "reranker": "none"})
    {'chunking.cap_tokens': '350', 'reranker': 'none'}
    """
    flat: dict[str, str] = {}
    for name, value in settings.items():
        if isinstance(value, Mapping):
            flat |= flatten(value, f"{above}{name}.")
        else:
            flat[_escape(f"{above}{name}", dots=True)] = as_text(value)
    return flat


def as_text(value: Any) -> str:
    """A setting as MLflow keeps it: text stays, all else is JSON."""
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def _escape(name: str, *, dots: bool = False) -> str:
    """Characters that MLflow or a file system refuses, as `_x<hexadecimal>_`."""
    forbidden: Callable[[re.Match[str]], str] = lambda found: f"_x{ord(found[0]):x}_"  # noqa: E731
    return re.sub(r"[^\w\- .]" if dots else r"[^\w\- ]", forbidden, name) or "_"


def _unique(cell: str, pairs: Iterable[tuple[str, float]]) -> dict[str, float]:
    found: dict[str, float] = {}
    for name, value in pairs:
        if name in found:
            raise InputError(
                f"{cell}: two figures would both be metric {name!r}; rename a question type"
            )
        found[name] = float(value)
    return found


def where(table: pa.Table, **wanted: str | list[str]) -> pa.Table:
    """The rows whose columns equal (or are among) what is wanted, in the table's order."""
    for column, value in wanted.items():
        values = pa.array([value] if isinstance(value, str) else value, pa.string())
        table = table.filter(pc.is_in(table[column], value_set=values))
    return table


def distinct(table: pa.Table, *columns: str) -> list[tuple[str, ...]]:
    """What stands in some columns of text together, each once, sorted."""
    rows = table.select(list(columns)).group_by(list(columns)).aggregate([]).to_pylist()
    return sorted(tuple(row[c] for c in columns) for row in rows)


def _canonical(value: Any) -> bytes:
    return json.dumps(value, sort_keys=True, ensure_ascii=False, allow_nan=False).encode()


def digest_of(value: Any) -> str:
    """SHA-256 of what JSON can say, whatever the order of its keys."""
    return hashlib.sha256(_canonical(value)).hexdigest()
