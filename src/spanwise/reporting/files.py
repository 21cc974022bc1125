"""Figures as files: metrics.json for `dvc metrics`, plots/*.csv for `dvc plots`, tables/*.csv.

A figure that does not exist is null (an empty field in CSV) with its reason beside it, never NaN.
"""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Mapping, Sequence
from typing import Any

from spanwise import schemas
from spanwise.params import MEASURES, Params
from spanwise.reporting import asked, replication, sections, sweep_tables
from spanwise.reporting.cells import LEXICAL, absent_cells, cell_name, cells_of
from spanwise.reporting.diagnose import diagnose, exclusions
from spanwise.reporting.gather import DEVELOPMENT, CorpusRecord, Row, UnitsRecord
from spanwise.reporting.judgement import family_size, judge, judged
from spanwise.reporting.registered import Registered
from spanwise.reporting.verdict import contrast_rows, hanging

FIGURES = ("delta", "interval", "ci_low", "ci_high", "ci90_low", "ci90_high", "p", "p_holm", "dz",
           "n_questions", "n_documents")

POWER = ("power", "detectable", "questions_needed")
"""Of CHECKS: what a study of this size could find."""

ACROSS = "over corpora"


def metrics(records: Sequence[CorpusRecord], params: Params) -> str:
    """metrics.json: corpus -> cell -> means (by condition, then measure) and contrasts (by name).

    Every object that holds figures says how they may be read; contrasts are those of the primary
    measure, steps and dose-response among them, with power at the margin where it was checked. A p
    of 0 has its bound beside it, `p_below`.
    Where the study of units ran, `units` stands beside the cells: retriever -> segmentation -> what
    is held equal -> amount -> figures of the development slice. Beside the corpora, under a name
    that no corpus can have, stands what was replicated over them.
    """
    found: dict[str, Any] = {}
    for record in records:
        cells: dict[str, Any] = {}
        for cell in cells_of(record, params):
            entry: dict[str, Any] = {"means": {"standing": "exploratory", **_means(
                record, params, cell)}}
            contrasts = {
                row["name"]: _contrast(row, record.check(row), params)
                for family in ("contrast", "step", "dose")
                for row in contrast_rows(record, params, cell, family)
            }
            cells[cell_name(cell)] = entry | ({"contrasts": contrasts} if contrasts else {})
        for cell, reason in absent_cells(record).items():
            cells[cell_name(cell)] = {"status": "absent", "reason": reason}
        found[record.name] = {
            "standing": record.standing, "demonstration": record.demonstration,
            "differences": len(record.differences), **cells,
        }
        if record.units is not None:
            found[record.name]["units"] = _units(record.units)
    left = replication.independent(records, params)[1]
    found[ACROSS] = {
        **({"left_out": left} if left else {}),
        "replication": {
            one.name: {"standing": replication.STANDING, "word": one.word, "reason": one.reason,
                       "corpora": sum(o.estimated for o in one.outcomes)}
            for one in replication.replications(records, params)
        },
    }
    return json.dumps(found, indent=1, ensure_ascii=False, allow_nan=False) + "\n"


def _means(
    record: CorpusRecord, params: Params, cell: tuple[str, str]
) -> dict[str, dict[str, float | str | None]]:
    found: dict[str, dict[str, float | str | None]] = {}
    for condition, its in params.conditions.items():
        if (its.retrieval == "bm25") != (cell == LEXICAL):
            continue
        rows = {m: record.mean(cell, condition, m) for m in MEASURES}
        entry: dict[str, float | str | None] = {
            m: None if row is None else row["mean"] for m, row in rows.items()
        }
        if all(row is None for row in rows.values()):
            entry["reason"] = record.absent.get(condition, "it has no row in this cell")
        elif any(value is None for value in entry.values()):
            entry["reason"] = "null where a measure is undefined for every question"
        found[condition] = entry
    return found


def _contrast(row: Row, check: Row | None, params: Params) -> dict[str, Any]:
    entry = {"standing": _standing(row), "status": row["status"]}
    if judged(row, params):
        entry["verdict"] = judge(row, check, params).words
        if others := hanging(row, check, params):
            entry["hangs"] = "; ".join(others)
    entry |= {key: row[key] for key in FIGURES}
    for key, bound in zip(("p", "p_holm"), _bounds(row, params), strict=True):
        if bound is not None:
            entry[f"{key}_below"] = bound
    if check is not None and check["cautions"]:
        entry["cautions"] = "; ".join(check["cautions"])
    if check is not None:
        entry |= {key: check[key] for key in POWER}
    if row["reason"] is not None:
        entry["reason"] = row["reason"]
    elif row["ci_low"] is None:
        entry["reason"] = "no interval: all questions are about one document"
    elif row["family"] == "dose":
        entry["reason"] = "a slope has no dz, and stands in no family of Holm's"
    elif row["dz"] is None:
        entry["reason"] = "dz: the differences do not vary"
    elif check is not None and check["questions_needed"] is None:
        entry["reason"] = "questions_needed: more than anyone could ask"
    return entry


def _bounds(row: Row, params: Params) -> tuple[float | None, float | None]:
    """Below what a p and a Holm p lie that are 0 of B draws: 2 / B, times the family's size."""
    if row["interval"] != "percentile" or row["p"] != 0:
        return None, None
    bound = 2 / params.inference.iterations
    family = family_size(row, params)
    return bound, None if row["p_holm"] is None else min(1.0, family * bound)


HELD = ("sufficient", "covered", "characters", "tokens")
"""Figures of the study of units that are worth comparing between versions of a project."""


def _units(units: UnitsRecord) -> dict[str, Any]:
    found: dict[str, Any] = {"standing": "exploratory", "slice": DEVELOPMENT}
    for (retriever, segmentation, part, basis, amount), row in units.means.items():
        if part != DEVELOPMENT:
            continue
        entry: dict[str, Any] = {key: row[key] for key in HELD}
        if row["covered"] is None:
            entry["reason"] = "null where no need has an answer"
        by_basis = found.setdefault(retriever, {}).setdefault(segmentation, {})
        by_basis.setdefault(basis, {})[str(amount)] = entry
    return found


def _standing(row: Row) -> str:
    """How a contrast may be read; one without figures is neither confirmatory nor exploratory."""
    return "absent" if row["status"] == "absent" else str(row["standing"])


def plots(records: Sequence[CorpusRecord], params: Params) -> dict[str, str]:
    """The tables that DVC draws, by file name; each exists even where it has no rows."""
    means: list[list[Any]] = []
    budgets: list[list[Any]] = []
    contrasts: list[list[Any]] = []
    depths: list[list[Any]] = []
    curves: list[list[Any]] = []
    for record in records:
        curves += [
            [record.name, retriever, segmentation, amount, row["covered"], row["sufficient"],
             f"{retriever} {segmentation}"]
            for (retriever, segmentation, part, basis, amount), row in (
                record.units.means.items() if record.units else ()
            )
            # What one picture can hold; every slice and basis is in tables/units-means.csv.
            if (part, basis) == (DEVELOPMENT, "characters-cut") and row["covered"] is not None
        ]
        for cell in cells_of(record, params):
            where = [record.name, cell_name(cell)]
            for condition, its in params.conditions.items():
                row = record.mean(cell, condition, params.primary.measure)
                if row is None or row["mean"] is None:
                    continue
                means.append([*where, condition, "exploratory", row["mean"], row["n_questions"]])
                if its.segmentation == "induced" and its.retrieval == "flat" and (
                    its.prefix in ("none", "path")
                ):
                    depths.append([*where, condition, "exploratory", its.depth, row["mean"]])
                for measure in MEASURES:
                    name, _, tokens = measure.partition("@")
                    held = record.mean(cell, condition, measure)
                    if name == "coverage" and held is not None and held["mean"] is not None:
                        budgets.append(
                            [*where, condition, "exploratory", int(tokens), held["mean"]]
                        )
            for row in contrast_rows(record, params, cell):
                if row["delta"] is not None:
                    contrasts.append([*where, row["name"], row["standing"], row["delta"],
                                      row["ci_low"], row["ci_high"], row["p_holm"]])
    key = ["corpus", "cell"]
    return {
        "conditions.csv": _csv([*key, "condition", "standing", "mean", "questions"], means),
        "contrasts.csv": _csv(
            [*key, "contrast", "standing", "delta", "ci_low", "ci_high", "p_holm"], contrasts
        ),
        "budgets.csv": _csv([*key, "condition", "standing", "tokens", "coverage"], budgets),
        "depths.csv": _csv([*key, "condition", "standing", "depth", "mean"], depths),
        "units.csv": _csv(
            ["corpus", "retriever", "segmentation", "amount", "covered", "sufficient", "line"],
            curves,
        ),
    }


def tables(
    records: Sequence[CorpusRecord], params: Params, facts: Registered | None = None
) -> dict[str, str]:
    """Everything the page prints, as tables for other programs, by file name. Each table of
    results says how its lines may be read."""
    means: list[list[Any]] = []
    contrasts: list[list[Any]] = []
    left: list[list[Any]] = []
    checks: list[list[Any]] = []
    beside: list[list[Any]] = []
    mixed: list[list[Any]] = []
    stands: list[list[Any]] = []
    recalls: list[list[Any]] = []
    check_columns = schemas.CHECKS.columns.names
    mixed_columns = schemas.MIXED.columns.names
    unit_means: list[list[Any]] = []
    unit_comparisons: list[list[Any]] = []
    unit_columns = schemas.UNIT_MEANS.columns.names
    pair_columns = schemas.UNIT_COMPARISONS.columns.names
    mean_columns = ["embedder", "reranker", "condition", "slice", "measure", "n_questions",
                    "undefined", "mean"]
    columns = ["embedder", "reranker", "measure", "family", "name", "a", "b", "standing", "status",
               "reason", "n_questions", "n_documents", "excluded", "mean_a", "mean_b", "delta",
               "ci_low", "ci_high", "p", "dz", "p_holm", "interval", "se", "ci90_low", "ci90_high"]
    for record in records:
        means += [
            [record.name, "exploratory", *(row[c] for c in mean_columns)]
            for row in record.means.values()
        ]
        for row in record.contrasts:
            says = judge(row, record.check(row), params)
            # An absent contrast says so everywhere; a verdict stands only where there is one.
            told = says.words if judged(row, params) or says.state == "absent" else None
            shown = {**row, "standing": _standing(row)}
            contrasts.append([record.name, *(shown[c] for c in columns), *_bounds(row, params),
                              told, "; ".join(hanging(row, record.check(row), params))])
        beside += [
            [record.name, "exploratory",
             *("; ".join(row[c]) if c == "cautions" else row[c] for c in check_columns)]
            for row in record.checks.values()
        ]
        mixed += [
            [record.name, "exploratory", *(row[c] for c in mixed_columns)] for row in record.mixed
        ]
        stands += [
            [record.name, record.standing, "yes" if record.demonstration else "no",
             "yes" if record.registered else "no", difference]
            for difference in record.differences or [None]
        ]
        recalls += [
            [record.name, "exploratory", r.embedder, r.condition, r.sections, r.kept, r.questions,
             r.recall, r.chance]
            for r in sections.recalls(record, params)
        ]
        left += [[record.name, *item] for item in exclusions(record, params)]
        checks += [
            [record.name, c.what, c.found, c.expected, "yes" if c.flagged else "no"]
            for c in diagnose(record, params)
        ]
        if record.units is not None:
            for made, names, rows in (
                (unit_means, unit_columns, record.units.means),
                (unit_comparisons, pair_columns, record.units.comparisons),
            ):
                made += [
                    [record.name, "exploratory", *(row[c] for c in names)] for row in rows.values()
                ]
    stands += facts.rows() if facts else []
    steps, overlap = asked.rows(records)
    return {
        "funnel.csv": _csv(["corpus", "origin", "step", "type", "count"], steps),
        "overlap.csv": _csv(["corpus", "origin", "type", "figure", "rouge_l"], overlap),
        "means.csv": _csv(["corpus", "standing", *mean_columns], means),
        "contrasts.csv": _csv(
            ["corpus", *columns, "p_bound", "p_holm_bound", "verdict", "hangs"], contrasts
        ),
        "checks.csv": _csv(["corpus", "standing", *check_columns], beside),
        "mixed.csv": _csv(["corpus", "standing", *mixed_columns], mixed),
        "replication.csv": _csv(replication.COLUMNS, replication.rows(records, params)),
        "sections.csv": _csv(
            ["corpus", "standing", "embedder", "condition", "sections", "kept", "questions",
             "section_recall", "by_chance"], recalls,
        ),
        "standing.csv": _csv(
            ["corpus", "standing", "demonstration", "registered", "difference"], stands
        ),
        "exclusions.csv": _csv(["corpus", "where", "reason", "count"], left),
        "diagnostics.csv": _csv(["corpus", "diagnostic", "found", "expected", "flagged"], checks),
        "units-means.csv": _csv(["corpus", "standing", *unit_columns], unit_means),
        "units-comparisons.csv": _csv(["corpus", "standing", *pair_columns], unit_comparisons),
    }


def sweeps(records: Sequence[CorpusRecord]) -> dict[str, str]:
    """What sweeps found, by path in `reports`; nothing where nobody swept."""
    if not any(record.sweeps for record in records):
        return {}
    return {
        "plots/sweep.csv": _csv(sweep_tables.SLICES, sweep_tables.slices(records)),
        "tables/sweep-trials.csv": _csv(sweep_tables.TRIALS, sweep_tables.trials(records)),
        "tables/sweep-importance.csv": _csv(
            sweep_tables.IMPORTANCE, sweep_tables.importance(records)
        ),
    }


def _csv(header: Sequence[str], rows: Sequence[Sequence[Any]]) -> str:
    """Rows as CSV with LF; a null is an empty field, a figure has 12 significant digits, and what
    rounding alone leaves of zero is 0."""
    stream = io.StringIO()
    writer = csv.writer(stream, lineterminator="\n")
    writer.writerow(header)
    writer.writerows([_plain(value) for value in row] for row in rows)
    return stream.getvalue()


NOISE = 1e-15
"""Below it a figure is what rounding left of zero."""


def _plain(value: Any) -> Any:
    if not isinstance(value, float):
        return value
    return 0.0 if abs(value) < NOISE else float(f"{value:.12g}")


def named(found: Mapping[str, str], folder: str) -> dict[str, str]:
    """File names under a folder of `reports`."""
    return {f"{folder}/{name}": text for name, text in found.items()}
