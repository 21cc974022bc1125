"""Cuts that were not fixed beforehand: contrasts within types of question, means over budgets."""

from __future__ import annotations

from collections.abc import Sequence

from spanwise.params import MEASURES, Params
from spanwise.reporting.cells import cells_of, dense_cells
from spanwise.reporting.checks_tables import TYPE, cautioned
from spanwise.reporting.figures import Mark, PlotRow, rows, scale, sign
from spanwise.reporting.gather import CorpusRecord, Row
from spanwise.reporting.judgement import degenerate
from spanwise.reporting.markup import (
    NONE,
    count,
    esc,
    figure,
    interval,
    many,
    probability,
    signed,
    standing,
    tag,
)
from spanwise.reporting.plots import absent_row, grouped, spread
from spanwise.reporting.tables import (
    COLUMN_GROUPS,
    TITLES,
    cell_head,
    heads,
    mechanism,
    number,
    table,
)
from spanwise.reporting.verdict import contrast_rows, primary_cell


def types_of(record: CorpusRecord) -> list[str]:
    """Families of contrasts within one type of question, sorted."""
    return sorted({r["family"] for r in record.contrasts if r["family"].startswith(TYPE)})


def types(record: CorpusRecord, params: Params) -> str:
    """The contrasts within each type of question: a picture of one cell, figures of all."""
    families = types_of(record)
    if not families:
        return tag("p", "All questions of the primary slice are of one type, so there is nothing "
                   "to compare within types.")
    columns = ["Contrast", "Type", "Difference", "95% interval", "p", "Holm p within the type",
               "dz", "Questions", "Documents", "Note"]
    draws, size = params.inference.iterations, len(params.contrasts)
    bodies = []
    for cell in dense_cells(record, params):
        lines = []
        found = {f: {r["name"]: r for r in contrast_rows(record, params, cell, f)}
                 for f in families}
        for name in params.contrasts:
            mine = [(f, found[f][name]) for f in families if name in found[f]]
            for family, row in mine:
                first = tag(
                    "th", f"{esc(name)} <small>{esc(row['a'])} − {esc(row['b'])}</small>",
                    scope="row",
                ) + tag("td", esc(family.removeprefix(TYPE)))
                if row["delta"] is None:
                    reason = f"absent: {row['reason'] or 'no reason was recorded'}"
                    lines.append(tag("tr", first + tag(
                        "td", esc(reason), colspan=str(len(columns) - 2), class_="absent")))
                    continue
                figures = (
                    signed(row["delta"]), interval(row["ci_low"], row["ci_high"]),
                    probability(row["p"], draws), probability(row["p_holm"], draws, size),
                    signed(row["dz"], 2), count(row["n_questions"]), count(row["n_documents"]),
                )
                lines.append(tag("tr", first + "".join(map(number, figures)) + tag(
                    "td", esc(degenerate(row) or NONE))))
        if lines:
            bodies.append(tag("tbody", cell_head(cell, params, len(columns)) + "".join(lines)))
    made = table(
        f"{esc(TITLES[params.primary.measure])} within types of question "
        f"{standing('exploratory')}",
        heads(columns, 2, ("Note",)), "".join(bodies), label=f"Contrasts by type, {record.name}",
    )
    return _forest(record, params, families) + tag("details", tag(
        "summary", "The figures of this plot, in every cell") + made
        + cautioned(record, params, families))


def _forest(record: CorpusRecord, params: Params, families: Sequence[str]) -> str:
    """The primary cell's contrasts: over all questions, then within each type."""
    cell, margin = primary_cell(record, params), params.inference.margin
    found = {
        family: {r["name"]: r for r in contrast_rows(record, params, cell, family)}
        for family in ("contrast", *families)
    }
    drawn, on = grouped(params, found, _line)
    keys = tag("li", sign("square", "filled blue") + "all questions") + tag(
        "li", sign("diamond", "hollow") + "one type") + tag(
        "li", f"shaded: ±{margin:g}; whiskers: 95% intervals")
    return tag("figure", tag("figcaption", (
        f"The contrasts within each type of question {standing('exploratory')}"
    )) + tag("ul", keys, class_="legend") + rows(
        drawn, on, band=(-margin, margin), lines=[(0.0, "zero")], signed=True,
        unit=f"difference in {TITLES[params.primary.measure]}",
    ), class_="forest")


def _line(family: str, row: Row) -> PlotRow:
    whole = family == "contrast"
    label = "all" if whole else esc(family.removeprefix(TYPE))
    if row["delta"] is None:
        return absent_row(label, row)
    mark = Mark(
        row["delta"], row["ci_low"], row["ci_high"], "square" if whole else "diamond",
        "filled blue" if whole else "hollow",
    )
    asked = many(row["n_questions"], "question")
    return PlotRow(label, [mark], (
        f"{spread(row)} <small>{asked}</small>"
    ), strong=whole)


def budgets(record: CorpusRecord, params: Params) -> str:
    """Coverage within each budget of tokens by condition, in the primary cell; BM25 beside it."""
    measures = [
        (measure, title) for measure, title in COLUMN_GROUPS[1][1] if measure in MEASURES
    ]
    cell, shapes = primary_cell(record, params), ("circle", "square", "diamond")
    lexical = [other for other in cells_of(record, params) if other[0] not in params.embedders]
    drawn, values = [], []
    for name, its in params.conditions.items():
        where = cell if its.retrieval != "bm25" else next(iter(lexical), cell)
        found = [record.mean(where, name, measure) for measure, _ in measures]
        marks = [
            Mark(row["mean"], shape=shape, look="hollow" if its.prefix == "none" else "filled blue")
            for row, shape in zip(found, shapes, strict=False) if row and row["mean"] is not None
        ]
        if not marks:
            continue
        values += [mark.value for mark in marks]
        told = " · ".join(figure(row["mean"] if row else None) for row in found)
        drawn.append(PlotRow(f"{esc(name)} <small>{esc(mechanism(its))}</small>", marks, told))
    if not values:
        return ""
    keys = "".join(
        tag("li", sign(shape, "hollow") + f"{title} tokens")
        for (_, title), shape in zip(measures, shapes, strict=False)
    ) + tag("li", sign("circle", "filled blue") + "a prefix is charged to the budget")
    return tag("figure", tag("figcaption", (
        f"Mean share of evidence covered within a budget of tokens {standing('exploratory')}"
    )) + tag("ul", keys, class_="legend") + rows(
        drawn, scale(values), unit="mean share of the evidence covered"), class_="conditions")
