"""What `infer` says of contrasts, as metrics, tags and files of the runs that they concern.

Numbers become metrics and words become tags, whatever columns the tables have. A condition holds
the primary measure's figures of each contrast that it is a side of, as metrics
`<family>/<contrast>/<figure>`: selected conditions show them when they are compared.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Any

import pyarrow as pa

from spanwise import schemas
from spanwise.params import Params
from spanwise.tracking.record import (
    Artifact,
    as_text,
    escape,
    figures,
    joined,
    metric_name,
    readable,
    unique,
    where,
    words,
)

TABLES = {"contrasts": schemas.CONTRASTS, "checks": schemas.CHECKS, "mixed": schemas.MIXED}
"""Tables of `infer` by file, with rows by cell, measure and name. Metrics of a contrast's run are
`<figure>/<measure>`, with whatever else is in the key between the two."""

WHOLE = ("contrast", "step", "dose")
"""Families of one row for each name: others repeat a name over clusters or within a type."""

LOGGED = "mlflow.loggedArtifacts"
"""The tag that tells MLflow's page which files are tables."""

_KNOWN = ("embedder", "reranker", "measure", "family", "name")
_TAGGED = ("a", "b", "standing", "status")


def of_contrast(tables: Mapping[str, pa.Table], family: str, name: str) -> dict[str, pa.Table]:
    """The rows of one contrast; one without families says nothing of those that repeat names."""
    found = {}
    for key, table in tables.items():
        if "family" in table.column_names:
            found[key] = where(table, family=family, name=name)
        else:
            found[key] = where(table, name=name) if family in WHOLE else table.slice(0, 0)
    return found


def contrast_metrics(cell: str, tables: Mapping[str, pa.Table]) -> dict[str, float]:
    """Every figure of every measure of one contrast, and how many are undefined.

    tables: the contrast's own rows.
    """
    metrics = unique(cell, (
        (metric_name(row["measure"], ":".join([figure, *_rest(row, TABLES[key])])), row[figure])
        for key, table in tables.items() for row in estimated(table)
        for figure in figures(TABLES[key]) if row[figure] is not None
    ))
    rows = estimated(tables["contrasts"])
    return {
        **metrics,
        "undefined_figures": sum(
            row[figure] is None for row in rows for figure in figures(schemas.CONTRASTS)
        ),
        "absent_measures": tables["contrasts"].num_rows - len(rows),
    }


def contrast_tags(params: Params, tables: Mapping[str, pa.Table]) -> dict[str, str]:
    """What is said in words: `<column>.<measure>`, of the primary measure `<column>` alone too."""
    tags = {}
    for key, table in tables.items():
        for row in table.to_pylist():
            rest = _rest(row, TABLES[key])
            for column, said in _words(TABLES[key], row).items():
                tags[f"{column}.{metric_name(row['measure'], ':'.join(rest))}"] = said
                if row["measure"] == params.primary.measure:
                    tags[".".join([column, *map(escape, rest)])] = said
    return tags


def condition_metrics(
    params: Params, cell: str, condition: str, contrasts: pa.Table
) -> dict[str, float]:
    """Figures of the contrasts that a condition is a side of: `<family>/<contrast>/<figure>`.

    A delta is A - B of the contrast, whichever side the condition is.
    """
    return unique(cell, (
        (metric_name(figure, f"{row['family']}:{row['name']}"), row[figure])
        for row in _sides(params, condition, contrasts)
        for figure in figures(schemas.CONTRASTS) if row[figure] is not None
    ))


def condition_tags(params: Params, condition: str, contrasts: pa.Table) -> dict[str, str]:
    """The contrasts that a condition is a side of, those among them that confirm, and of each which
    side, with what it says in words."""
    rows, tags = _sides(params, condition, contrasts), {}
    for row in rows:
        side = "a" if row["a"] == condition else "b"
        for column, said in {"side": side, **_words(schemas.CONTRASTS, row)}.items():
            tags[f"{escape(row['family'])}.{escape(row['name'])}.{column}"] = said
    names = sorted({row["name"] for row in rows})
    confirm = sorted({row["name"] for row in rows if row["standing"] == "confirmatory"})
    return {
        **tags, "contrasts": joined(names, between=", ") or "none",
        "confirms": joined(confirm, between=", ") or "none",
    }


def as_artifacts(tables: Mapping[str, pa.Table]) -> dict[str, Artifact]:
    """Each table as a file for programs and one that MLflow's page shows."""
    artifacts: dict[str, Artifact] = {}
    for name, table in tables.items():
        artifacts[f"{name}.parquet"] = (TABLES[name], table)
        artifacts[f"{name}.json"] = readable(table)
    return artifacts


def logged(tables: Iterable[str]) -> str:
    """The value of the tag `LOGGED`."""
    return json.dumps([{"path": f"{name}.json", "type": "table"} for name in tables])


def estimated(table: pa.Table) -> list[dict[str, Any]]:
    """Rows with figures."""
    return [row for row in table.to_pylist() if row.get("status", "estimated") == "estimated"]


def _sides(params: Params, condition: str, contrasts: pa.Table) -> list[dict[str, Any]]:
    """What was estimated of the primary measure with this condition as a side."""
    rows = where(contrasts, measure=params.primary.measure, family=list(WHOLE))
    return [row for row in estimated(rows) if condition in (row["a"], row["b"])]


def _words(schema: schemas.Schema, row: Mapping[str, Any]) -> dict[str, str]:
    said = {}
    for column in words(schema):
        value = row[column]
        if column not in _TAGGED and value is not None and value != []:
            parts = value if isinstance(value, list) else [as_text(value)]
            said[column] = joined(parts, between="; ")
    return said


def _rest(row: Mapping[str, Any], schema: schemas.Schema) -> list[str]:
    """What tells rows of one contrast and one measure apart."""
    return [str(row[column]) for column in schema.key if column not in _KNOWN]
