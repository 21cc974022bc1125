"""Curves of the study of units: what is covered over the budget, one panel for each retriever."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence

from spanwise.reporting.figures import Scale, sign
from spanwise.reporting.gather import DEVELOPMENT, UnitsRecord
from spanwise.reporting.markup import count, esc, tag

HEIGHT = 170
LOOKS = (("square", "filled blue"), ("circle", "hollow orange"), ("diamond", "filled green"))
"""Shape and look of each segmentation in turn: shape, filling and dashes tell them apart as well as
colour does."""
LABELS = 6
"""Budgets that are written under a panel at most."""

Line = tuple[str, str, Sequence[tuple[int, float]]]
"""Shape, look, and (amount, share) points, amounts rising."""


def curves(units: UnitsRecord, counted: str, words: str) -> str:
    """The figure over one kind of budget, with the last unit cut short: then all segmentations
    return the same amount, and what is left is where they cut.

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
                lines.append((*look(i), points))
        if lines:
            panels.append((retriever, lines))
    if not panels:
        return ""
    top = max(share for _, lines in panels for *_, points in lines for _, share in points)
    on = Scale(0.0, min(1.04, max(0.1, top * 1.12)))
    legend = "".join(tag("li", sign(*look(i)) + esc(name)) for i, name in enumerate(names))
    caption = (
        f"Bundle coverage over the budget in {words}, {DEVELOPMENT} slice, the last unit cut short "
        "so that every segmentation returns the same amount. Budgets are spaced by their ratio."
    )
    return tag("figure", tag("figcaption", esc(caption)) + tag("ul", legend, class_="legend") + tag(
        "div", "".join(
            tag("div", tag("p", esc(retriever), class_="panel") + panel(
                lines, on, f"Bundle coverage by {words}, {retriever}: "
                "the figures stand in the table below"
            )) for retriever, lines in panels
        ), class_="curves",
    ))


def look(place: int) -> tuple[str, str]:
    """Shape and look of a segmentation by its place."""
    return LOOKS[place % len(LOOKS)]


def panel(lines: Sequence[Line], on: Scale, label: str) -> str:
    """One retriever's curves; the horizontal axis is logarithmic.

    lines: at least one point among them; on: the vertical scale, shared by all panels.
    """
    amounts = sorted({amount for *_, points in lines for amount, _ in points})
    low, high = math.log(amounts[0]), math.log(amounts[-1])
    room = (high - low) or 1.0
    across = Scale(low - 0.2 * room, high + 0.12 * room)  # figures of the scale stand at the left

    def y(value: float) -> float:
        return round(HEIGHT * (1 - (value - on.low) / (on.high - on.low)), 2)

    parts = []
    for tick in on.ticks():
        parts.append(f'<line x1="0%" x2="100%" y1="{y(tick):g}" y2="{y(tick):g}" class="grid"/>')
        parts.append(f'<text x="0%" y="{y(tick) - 4:g}">{tick:.3g}</text>')
    for amount in amounts[:: math.ceil(len(amounts) / LABELS)]:
        parts.append(
            f'<text x="{across.at(math.log(amount))}" y="{HEIGHT + 20}" text-anchor="middle">'
            f"{count(amount)}</text>"
        )
    for _, its, points in lines:
        for (left, first), (right, second) in itertools.pairwise(points):
            parts.append(
                f'<line x1="{across.at(math.log(left))}" x2="{across.at(math.log(right))}" '
                f'y1="{y(first):g}" y2="{y(second):g}" class="reach {esc(its)}"/>'
            )
    for shape, its, points in lines:
        parts += [
            # A nested svg is placed by percentage; a sign's own middle is at (7, 7).
            f'<svg x="{across.at(math.log(amount))}" y="{y(share):g}" overflow="visible">'
            f'<g transform="translate(-7 -7)">{sign(shape, its)}</g></svg>'
            for amount, share in points
        ]
    return (
        f'<svg class="ladder curve" width="100%" height="{HEIGHT + 28}" role="img" '
        f'aria-label="{esc(label)}">{"".join(parts)}</svg>'
    )
