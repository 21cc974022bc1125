"""Curves of the study of units over the budget, one panel for each retriever: what is covered, and
how segmentations differ in it.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping, Sequence

from spanwise.reporting.figures import Scale, difference_scale, sign
from spanwise.reporting.gather import DEVELOPMENT, Row, UnitsRecord
from spanwise.reporting.markup import count, esc, interval, signed, tag
from spanwise.reporting.units_verdict import named, shared

HEIGHT = 170
Look = tuple[str, str]
"""A mark's shape, and its classes in the page's style."""
LOOKS: Sequence[Look] = (
    ("square", "filled blue"), ("circle", "hollow orange"), ("diamond", "filled green")
)
"""Of each segmentation in turn: shape, filling and dashes tell them apart as well as colour."""
PAIR_LOOKS: Sequence[Look] = (("up", "filled ink"), ("down", "hollow violet"), ("cross", "grey"))
"""Of each pair of segmentations in turn; none is a segmentation's own."""
PATHS = {
    "up": "M7 1L12.2 10H1.8Z", "down": "M7 13L1.8 4H12.2Z",
    "cross": "M2.6 2.6L11.4 11.4M11.4 2.6L2.6 11.4",
}
"""Shapes that only pairs have, around (7, 7)."""
LABELS = 6
"""Budgets that are written under a panel at most."""
SPREAD = 0.66
"""Share of the way from one budget to the next that the pairs of one budget take side by side."""

Line = tuple[str, str, Sequence[tuple[int, float]]]
"""Shape, look, and (amount, share) points, amounts rising."""

Pair = tuple[str, str]
"""Two segmentations: the first minus the second."""


def curves(units: UnitsRecord, counted: str, words: str) -> str:
    """The figure over one kind of budget, with the last unit cut short: then all segmentations
    return the same amount, unless a list is over before. They still differ in where they cut and in
    the size and the number of their units.

    counted: `characters` or `tokens`; words: what they are called; "" where there is nothing.
    """
    basis = f"{counted}-cut"
    names = units.segmentations()
    panels = []
    for retriever in units.retrievers():
        lines = []
        for i, name in enumerate(names):
            points = [
                (amount, row["covered"]) for amount in units.amounts(basis)
                if (row := units.mean(retriever, name, DEVELOPMENT, basis, amount))
                and row["covered"] is not None
            ]
            if points:
                lines.append((*LOOKS[i % len(LOOKS)], points))
        if lines:
            panels.append((retriever, lines))
    if not panels:
        return ""
    top = max(share for _, lines in panels for *_, points in lines for _, share in points)
    on = Scale(0.0, min(1.04, max(0.1, top * 1.12)))
    caption = (
        f"Bundle coverage over the budget in {words}, {DEVELOPMENT} slice, the last unit cut short "
        "so that all return the same amount, unless a list is over before. Segmentations differ "
        "in the size and the number of their units as well as in where they end. Budgets are "
        "spaced by their ratio."
    )
    return _figure(caption, f"bundle coverage, by {words}", [
        named(units, name) for name in names
    ], LOOKS, {
        retriever: panel(
            lines, on,
            f"Bundle coverage by {words}, {retriever}: the figures stand in the tables below",
        ) for retriever, lines in panels
    })


def differences(units: UnitsRecord, counted: str, words: str) -> str:
    """The figure of paired differences over the same budgets as `curves`, with their intervals.

    What was not compared, or could not be estimated, leaves its place empty; "" where there is
    nothing to draw.
    """
    basis = f"{counted}-cut"
    pairs: dict[Pair, None] = {}
    found: dict[str, dict[tuple[Pair, int], Row]] = {}
    for row in units.comparisons.values():
        of = (row["slice"], row["measure"], row["family"])
        if of != (DEVELOPMENT, "covered", "segmentation"):
            continue
        first, second = (named(units, row[arm].partition("/")[2]) for arm in ("a", "b"))
        pair = (first, second)
        pairs[pair] = None  # of every basis, so that a pair has one look in all figures
        if row["basis"] == basis and row["delta"] is not None:
            found.setdefault(shared(row), {})[pair, row["amount"]] = row
    drawn = [row for rows in found.values() for row in rows.values()]
    if not drawn:
        return ""
    on = difference_scale(
        [0.0, *(row["delta"] for row in drawn)],
        [(row["ci_low"], row["ci_high"]) for row in drawn],
    )
    caption = (
        f"Differences of bundle coverage over the budget in {words}, {DEVELOPMENT} slice, the last "
        "unit cut short. Paired by need, documents resampled, 95% intervals, not corrected for the "
        "number of pairs. Above zero, the first of a pair covers more; the size and the number of "
        "units differ as well as where they end. Budgets are evenly spaced. All comparisons, "
        "below, hold every figure with Holm's p."
    )
    return _figure(caption, f"difference in bundle coverage, by {words}", [
        " − ".join(pair) for pair in pairs
    ], PAIR_LOOKS, {
        retriever: paired(
            found[retriever], list(pairs), units.amounts(basis), on,
            f"Differences of bundle coverage by {words}, {retriever}",
        ) for retriever in units.retrievers() if retriever in found
    })


def _figure(
    caption: str, axes: str, names: Sequence[str], looks: Sequence[Look],
    panels: Mapping[str, str],
) -> str:
    """A caption, a legend of what has a look, and a panel for each retriever, its axes named."""
    legend = "".join(
        tag("li", _mark(*looks[i % len(looks)]) + esc(name)) for i, name in enumerate(names)
    )
    return tag("figure", tag("figcaption", esc(caption)) + tag("ul", legend, class_="legend") + tag(
        "div", "".join(
            tag("div", tag("p", f"{esc(retriever)} <small>{esc(axes)}</small>", class_="panel")
                + drawn)
            for retriever, drawn in panels.items()
        ), class_="curves",
    ))


def _mark(shape: str, its: str) -> str:
    """A mark by itself, its middle at (7, 7)."""
    if shape not in PATHS:
        return sign(shape, its)
    drawn = f'<path d="{PATHS[shape]}" class="mark {esc(its)}"/>'
    return f'<svg width="14" height="14" aria-hidden="true">{drawn}</svg>'


def panel(lines: Sequence[Line], on: Scale, label: str) -> str:
    """One retriever's curves; the horizontal axis is logarithmic.

    lines: at least one point among them; on: the vertical scale, shared by all panels.
    """
    amounts = sorted({amount for *_, points in lines for amount, _ in points})
    low, high = math.log(amounts[0]), math.log(amounts[-1])
    room = (high - low) or 1.0
    across = Scale(low - 0.2 * room, high + 0.12 * room)  # figures of the scale stand at the left

    parts = _grid(on, {tick: f"{tick:.3g}" for tick in on.ticks()})
    parts += _budgets(amounts, [across.at(math.log(amount)) for amount in amounts])
    for _, its, points in lines:
        for (left, first), (right, second) in itertools.pairwise(points):
            parts.append(
                f'<line x1="{across.at(math.log(left))}" x2="{across.at(math.log(right))}" '
                f'y1="{_y(on, first):g}" y2="{_y(on, second):g}" class="reach {esc(its)}"/>'
            )
    for shape, its, points in lines:
        parts += [
            # A nested svg is placed by percentage.
            f'<svg x="{across.at(math.log(amount))}" y="{_y(on, share):g}" overflow="visible">'
            f'<g transform="translate(-7 -7)">{_mark(shape, its)}</g></svg>'
            for amount, share in points
        ]
    return (
        f'<svg class="ladder curve" width="100%" height="{HEIGHT + 28}" role="img" '
        f'aria-label="{esc(label)}">{"".join(parts)}</svg>'
    )


def paired(
    rows: Mapping[tuple[Pair, int], Row], pairs: Sequence[Pair], amounts: Sequence[int],
    on: Scale, label: str,
) -> str:
    """One retriever's differences: at each budget the pairs side by side, each with its interval.

    rows:    rows of UNIT_COMPARISONS that have a difference; what is absent leaves a gap.
    amounts: at least one, rising; budgets stand at even steps, so that no two sets can meet.
    on:      the vertical scale, shared by all panels; it holds 0.
    """
    room = (len(amounts) - 1) or 1
    across = Scale(-0.34 * room, (len(amounts) - 1) + 0.16 * room)
    ticks = on.ticks()
    digits = max(len(f"{tick:g}".partition(".")[2]) for tick in ticks)
    parts = _grid(on, {tick: signed(tick, digits) for tick in ticks})
    zero = _y(on, 0.0)
    parts.append(f'<line x1="0%" x2="100%" y1="{zero:g}" y2="{zero:g}" class="zero"/>')
    parts += _budgets(amounts, [across.at(place) for place in range(len(amounts))])
    told = []
    for i, pair in enumerate(pairs):
        its = PAIR_LOOKS[i % len(PAIR_LOOKS)]
        aside = SPREAD * ((i + 0.5) / len(pairs) - 0.5)
        for place, amount in enumerate(amounts):
            row = rows.get((pair, amount))
            if row is None:
                continue
            told.append(
                f"{' − '.join(pair)} at {count(amount)}: {signed(row['delta'])} "
                f"{interval(row['ci_low'], row['ci_high'])}"
            )
            parts.append(
                f'<svg x="{across.at(place + aside)}" y="0" overflow="visible">'
                f"<title>{esc(told[-1])}</title>{_whiskers(row, on, its[1])}"
                f'<g transform="translate(-5.6 {_y(on, row["delta"]) - 5.6:g}) scale(.8)">'
                f"{_mark(*its)}</g></svg>"
            )
    return (
        f'<svg class="ladder paired" width="100%" height="{HEIGHT + 28}" role="img">'
        f"<title>{esc(label)}</title><desc>{esc('; '.join(told))}</desc>{''.join(parts)}</svg>"
    )


def _grid(on: Scale, ticks: Mapping[float, str]) -> list[str]:
    """Level lines with what stands above each, at the left."""
    return [
        f'<line x1="0%" x2="100%" y1="{_y(on, tick):g}" y2="{_y(on, tick):g}" class="grid"/>'
        f'<text x="0%" y="{_y(on, tick) - 4:g}">{text}</text>' for tick, text in ticks.items()
    ]


def _budgets(amounts: Sequence[int], places: Sequence[str]) -> list[str]:
    """Budgets under a panel, or every nth of them."""
    every = math.ceil(len(amounts) / LABELS)
    return [
        f'<text x="{x}" y="{HEIGHT + 20}" text-anchor="middle">{count(amount)}</text>'
        for amount, x in list(zip(amounts, places, strict=True))[::every]
    ]


def _whiskers(row: Row, on: Scale, its: str) -> str:
    """The interval around an origin of its own, a short line across each end, or an arrow head at
    the edge that it goes beyond."""
    if row["ci_low"] is None or row["ci_high"] is None:
        return ""
    low, high = _y(on, max(row["ci_low"], on.low)), _y(on, min(row["ci_high"], on.high))
    made = f'<line y1="{low:g}" y2="{high:g}" class="reach {esc(its)}"/>'
    for end, beyond, back in (
        (low, row["ci_low"] < on.low, -5), (high, row["ci_high"] > on.high, 5)
    ):
        made += (
            f'<path d="M-3 {end + back:g}L0 {end:g}L3 {end + back:g}" '
            f'class="reach beyond {esc(its)}"/>' if beyond else
            f'<line x1="-3" x2="3" y1="{end:g}" y2="{end:g}" class="reach {esc(its)}"/>'
        )
    return made


def _y(on: Scale, value: float) -> float:
    """The place of a value in pixels from a panel's top."""
    return round(HEIGHT * (1 - (value - on.low) / (on.high - on.low)), 2)
