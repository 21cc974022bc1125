"""The figures of one corpus: which rows they have, and their legends."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TypeVar

from spanwise.params import Params
from spanwise.reporting.cells import LEXICAL, Cell, cell_name, dense_cells, is_primary
from spanwise.reporting.figures import (
    Mark,
    PlotRow,
    Scale,
    Series,
    difference_scale,
    ladder,
    rows,
    scale,
    sign,
    unusable,
)
from spanwise.reporting.gather import CorpusRecord, Row
from spanwise.reporting.markup import (
    called,
    esc,
    figure,
    interval,
    probability,
    signed,
    standing,
    tag,
)
from spanwise.reporting.tables import TITLES, mechanism
from spanwise.reporting.verdict import contrast_rows, wording

FAMILIES = {"fixed": "green", "induced": "blue", "native": "orange"}
"""Colour of each segmentation; the shape tells the cell, so no figure rests on colour alone."""
OTHERS = ("violet", "ink", "grey")
"""Colours of the segmentations that other packages cut, by name and in turn, as in the view of a
question."""


def forest(record: CorpusRecord, params: Params) -> str:
    """The contrasts with their intervals in every cell; the primary cell is filled and bold."""
    margin = params.inference.margin
    cells = dense_cells(record, params)
    found = {cell: {r["name"]: r for r in contrast_rows(record, params, cell)} for cell in cells}
    drawn, on = grouped(
        params, found, lambda cell, row: _contrast_row(cell, row, params, record.demonstration)
    )
    if not drawn:
        return tag("p", "No contrast was computed.")
    legend = _legend([
        ("square", "filled blue", "primary cell"), ("circle", "hollow", "other cells"),
    ], f"shaded: ±{margin:g}, the smallest effect of interest; whiskers: 95% intervals")
    caption = (
        f"Difference in {esc(TITLES[params.primary.measure])}, paired by question, documents "
        "resampled. Right of zero, the first condition of the pair retrieves better."
    )
    return tag("figure", tag("figcaption", caption) + legend + rows(
        drawn, on, band=(-margin, margin), lines=[(0.0, "zero")], signed=True,
        unit=f"difference in {TITLES[params.primary.measure]}",
    ), class_="forest", id=f"forest-{record.name}")


Key = TypeVar("Key")


def grouped(
    params: Params, found: Mapping[Key, Mapping[str, Row]], line: Callable[[Key, Row], PlotRow]
) -> tuple[list[PlotRow], Scale]:
    """Rows of a forest, one group for each contrast, and the scale of its axis.

    found: where a contrast was estimated -> its name -> its row; line: draws one of them.
    """
    margin = params.inference.margin
    drawn: list[PlotRow] = []
    deltas: list[float] = []
    intervals: list[tuple[float | None, float | None]] = [(-1.5 * margin, 1.5 * margin)]
    for name in params.contrasts:
        mine = [(key, by_name[name]) for key, by_name in found.items() if name in by_name]
        if not mine:
            continue
        drawn.append(contrast_head(mine[0][1]))
        if all(row["delta"] is None for _, row in mine):
            drawn.append(absent_row("absent", mine[0][1]))
            continue
        drawn += [line(key, row) for key, row in mine]
        deltas += [row["delta"] for _, row in mine if row["delta"] is not None]
        intervals += [(row["ci_low"], row["ci_high"]) for _, row in mine]
    return drawn, difference_scale(deltas, intervals)


def spread(row: Row) -> str:
    """A row's difference with its interval, and a word where the interval says nothing, as HTML."""
    said = f"{signed(row['delta'])} {interval(row['ci_low'], row['ci_high'])}"
    return said + (
        " <small>no usable interval;</small>" if unusable(row["ci_low"], row["ci_high"]) else ""
    )


def contrast_head(row: Row) -> PlotRow:
    """The row that opens a contrast's group."""
    pair = f"{row['a']} − {row['b']}"
    return PlotRow(tag(
        "span", f"<b>{esc(row['name'])}</b> {esc(wording(row).title)} <small>{esc(pair)}</small>"
    ), head=True)


def _contrast_row(cell: Cell, row: Row, params: Params, demonstration: bool) -> PlotRow:
    primary = is_primary(cell, params)
    label = esc(cell_name(cell)) + (" <small>primary cell</small>" if primary else "")
    if row["delta"] is None:
        return absent_row(label, row)
    mark = Mark(
        row["delta"], row["ci_low"], row["ci_high"], "square" if primary else "circle",
        "filled blue" if primary else "hollow",
    )
    p = probability(row["p_holm"], params.inference.iterations, len(params.contrasts))
    return PlotRow(
        label, [mark],
        f"{spread(row)} <small>Holm p {esc(p)}</small> "
        f"{standing(called(row['standing'], demonstration))}",
        strong=primary,
    )


def absent_row(label: str, row: Row) -> PlotRow:
    """A row without a figure: its reason. label: HTML."""
    reason = row["reason"] or "no reason was recorded"
    return PlotRow(tag("span", label, class_="absent"), value=tag(
        "span", esc(reason), class_="absent"), note=True)


def conditions(record: CorpusRecord, params: Params) -> str:
    """Means of the primary measure by condition; BM25 as a line across."""
    measure, cells = params.primary.measure, dense_cells(record, params)
    lexical = [
        (name, row["mean"]) for name, its in params.conditions.items() if its.retrieval == "bm25"
        and (row := record.mean(LEXICAL, name, measure)) and row["mean"] is not None
    ]
    others = sorted(
        {its.segmentation for its in params.conditions.values()}.difference(FAMILIES)
    )
    colours = {**FAMILIES, **{name: OTHERS[i % len(OTHERS)] for i, name in enumerate(others)}}
    drawn: list[PlotRow] = []
    values = [mean for _, mean in lexical]
    for name, its in params.conditions.items():
        if its.retrieval == "bm25":
            continue
        marks: list[Mark] = []
        told: list[str] = []
        for cell in reversed(cells):  # the primary cell is drawn last, so it lies on top
            row = record.mean(cell, name, measure)
            if row is None or row["mean"] is None:
                continue
            fill, shape = ("filled", "square") if is_primary(cell, params) else ("hollow", "circle")
            colour = colours[its.segmentation]
            marks.append(Mark(row["mean"], shape=shape, look=f"{fill} {colour}"))
            told.insert(0, f"{esc(cell_name(cell))} {figure(row['mean'])}")
            values.append(row["mean"])
        value = " · ".join(told) if told else tag("span", "absent", class_="absent")
        drawn.append(PlotRow(f"{esc(name)} <small>{esc(mechanism(its))}</small>", marks,
                             value))
    if not values:
        return tag("p", "No condition has a mean.")
    keys = [("square", f"filled {look}", f"{family}, primary cell")
            for family, look in colours.items()
            if any(its.segmentation == family for its in params.conditions.values())]
    keys.append(("circle", "hollow", "other cells"))
    note = "; ".join(f"dashed: {name}, {figure(mean)}" for name, mean in lexical)
    caption = f"Mean {esc(TITLES[measure])} by condition {standing('exploratory')}"
    return tag("figure", tag("figcaption", caption) + _legend(keys, note) + rows(
        drawn, scale(values), lines=[(mean, "beside") for _, mean in lexical],
        unit=f"mean {TITLES[measure]}",
    ), class_="conditions")


def dose(record: CorpusRecord, params: Params) -> str:
    """Means by depth of the path, flat retrieval over induced chunks; empty below three depths."""
    rungs = {
        its.depth: name for name, its in params.conditions.items()
        if its.segmentation == "induced" and its.retrieval == "flat"
        and its.prefix in ("none", "path")
    }
    series: list[Series] = []
    for cell in dense_cells(record, params):
        points = [
            (float(depth), row["mean"]) for depth, name in sorted(rungs.items())
            if (row := record.mean(cell, name, params.primary.measure))
            and row["mean"] is not None
        ]
        if len(points) > 2:
            look = "filled blue" if is_primary(cell, params) else "hollow"
            series.append((cell_name(cell), look, points))
    if not series:
        return ""
    keys = [("circle" if "hollow" in look else "square", look, name) for name, look, _ in series]
    names = ", ".join(f"{depth} {name}" for depth, name in sorted(rungs.items()))
    on = scale([mean for _, _, points in series for _, mean in points], 0.15)
    return tag("figure", tag("figcaption", esc(
        f"Mean {TITLES[params.primary.measure]} by depth of the heading path ({names})."
    )) + _legend(keys, "") + ladder(
        series, on, sorted(rungs), f"mean {TITLES[params.primary.measure]}"))


def _legend(keys: Sequence[tuple[str, str, str]], note: str) -> str:
    items = [tag("li", sign(shape, look) + esc(text)) for shape, look, text in keys]
    if note:
        items.append(tag("li", esc(note)))
    return tag("ul", "".join(items), class_="legend")
