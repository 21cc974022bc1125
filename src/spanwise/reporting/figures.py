"""Figures as inline SVG. Horizontal places are percentages and vertical ones pixels, so that a
figure takes the width it is given and its text never shrinks; colours are the page's variables.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass

from spanwise.reporting.markup import esc, tag

ROW = 30
"""Height of a row in pixels."""


@dataclass(frozen=True, slots=True)
class Scale:
    """Maps [low, high] to 0..100 percent.

    raises: ValueError unless low < high and both are finite.
    """

    low: float
    high: float

    def __post_init__(self) -> None:
        if not (math.isfinite(self.low) and math.isfinite(self.high) and self.low < self.high):
            raise ValueError(f"a scale needs finite low < high, got {self.low}, {self.high}")

    def at(self, value: float) -> str:
        """The place of a value, as an SVG percentage.

        >>> Scale(-1, 3).at(0)
        '25%'
        """
        return f"{round(100 * (value - self.low) / (self.high - self.low), 3):g}%"

    def ticks(self, most: int = 5) -> list[float]:
        """Round values inside the scale, at most `most` of them, evenly apart.

        >>> Scale(-0.031, 0.042).ticks()
        [-0.02, 0.0, 0.02, 0.04]
        """
        power = math.floor(math.log10(self.high - self.low)) - 1
        step, digits = 0.0, 0
        for factor in (1, 2, 5, 10, 20, 50, 100):
            digits = max(0, -power)
            step = round(factor * 10.0**power, digits)
            first, last = math.ceil(self.low / step - 1e-9), math.floor(self.high / step + 1e-9)
            if last - first + 1 <= most:
                break
        return [round(i * step, digits) + 0.0 for i in range(first, last + 1)]


def scale(values: Sequence[float], pad: float = 0.06) -> Scale:
    """A scale that holds all values with a little room at both ends.

    raises: ValueError without values.
    """
    if not values:
        raise ValueError("a scale needs at least one value")
    low, high = min(values), max(values)
    room = (high - low) * pad or max(abs(low), 1.0) * pad
    return Scale(low - room, high + room)


BOUND = 1.0
"""Most that measures between 0 and 1 can differ by."""


def within(value: float) -> float:
    """The nearest value that a difference of measures between 0 and 1 can have."""
    return max(-BOUND, min(BOUND, value))


def difference_scale(
    deltas: Sequence[float], intervals: Sequence[tuple[float | None, float | None]]
) -> Scale:
    """A scale for differences of measures between 0 and 1: it holds what they can be, no more.

    deltas:    always inside, even beyond 1 (the greedy ideal of coverage-nDCG is a stand-in).
    intervals: one of few documents may end where no difference can lie, and would press all others
               into dots; one that says nothing has no part in the scale.
    raises:    ValueError without values.
    """
    ends = [
        within(end) for its in intervals if not unusable(*its) for end in its if end is not None
    ]
    on = scale([*deltas, *ends])
    return Scale(max(on.low, min([-BOUND, *deltas])), min(on.high, max([BOUND, *deltas])))


def unusable(low: float | None, high: float | None) -> bool:
    """Whether an interval holds every difference there can be, so that it says nothing."""
    return low is not None and high is not None and low <= -BOUND and high >= BOUND


@dataclass(frozen=True, slots=True)
class Mark:
    """A value, with its interval where it has one. `look` names its classes in the page's style:
    `filled` or `hollow`, and a family's colour; `shape` is circle, square or diamond."""

    value: float
    low: float | None = None
    high: float | None = None
    shape: str = "circle"
    look: str = "filled"


def _shape(x: str, y: float, shape: str, look: str) -> str:
    if shape == "circle":
        return f'<circle cx="{x}" cy="{y:g}" r="5" class="mark {esc(look)}"/>'
    # A nested svg is placed by percentage; inside it lengths are pixels around its own origin.
    turn = ' transform="rotate(45)"' if shape == "diamond" else ""
    return (
        f'<svg x="{x}" y="{y:g}" overflow="visible"><rect x="-4.2" y="-4.2" width="8.4" '
        f'height="8.4"{turn} class="mark {esc(look)}"/></svg>'
    )


def sign(shape: str, look: str) -> str:
    """A mark by itself, for a legend."""
    return f'<svg width="14" height="14" aria-hidden="true">{_shape("7", 7, shape, look)}</svg>'


def strip(
    marks: Sequence[Mark], on: Scale, *, band: tuple[float, float] | None = None,
    lines: Sequence[tuple[float, str]] = (), grid: bool = True, height: int = ROW,
) -> str:
    """One row of a figure: a shaded band, upright lines, and marks with their intervals.

    band:  values between which the row is shaded.
    lines: (value, class) of upright lines; lines of adjacent rows join.
    """
    parts = []
    if band is not None:
        left, right = max(band[0], on.low), min(band[1], on.high)
        parts.append(
            f'<rect x="{on.at(left)}" y="0" width="{Scale(0, on.high - on.low).at(right - left)}" '
            f'height="{height}" class="band"/>'
        )
    if grid:
        parts += [
            f'<line x1="{on.at(t)}" x2="{on.at(t)}" y1="0" y2="{height}" class="grid"/>'
            for t in on.ticks()
        ]
    for value, look in lines:
        if on.low <= value <= on.high:
            x = on.at(value)
            parts.append(f'<line x1="{x}" x2="{x}" y1="0" y2="{height}" class="{esc(look)}"/>')
    middle = height / 2
    for mark in marks:
        if mark.low is not None and mark.high is not None:
            parts += _whisker(mark.low, mark.high, on, middle, mark.look)
        parts.append(_shape(on.at(mark.value), middle, mark.shape, mark.look))
    return (
        f'<svg class="strip" width="100%" height="{height}" aria-hidden="true" focusable="false">'
        f'{"".join(parts)}</svg>'
    )


def _whisker(low: float, high: float, on: Scale, middle: float, look: str) -> list[str]:
    """An interval: a short line across each end, or an arrow head at the edge it goes beyond."""
    ends = (on.at(max(low, on.low)), on.at(min(high, on.high)))
    parts = [
        f'<line x1="{ends[0]}" x2="{ends[1]}" y1="{middle:g}" y2="{middle:g}" '
        f'class="reach {esc(look)}"/>'
    ]
    for x, beyond, back in ((ends[0], low < on.low, 6), (ends[1], high > on.high, -6)):
        parts.append(
            f'<svg x="{x}" y="{middle:g}" overflow="visible"><path d="M{back} -4L0 0L{back} 4" '
            f'class="reach beyond {esc(look)}"/></svg>' if beyond else
            f'<line x1="{x}" x2="{x}" y1="{middle - 4:g}" y2="{middle + 4:g}" '
            f'class="reach {esc(look)}"/>'
        )
    return parts


def axis(on: Scale, *, signed: bool) -> str:
    """The scale under the rows of a figure."""
    ticks = on.ticks()
    step = ticks[1] - ticks[0] if len(ticks) > 1 else 1.0
    digits = min(6, max(0, -math.floor(math.log10(step) + 1e-9)))
    parts = []
    for tick in ticks:
        text = f"{tick:{'+' if signed and tick else ''}.{digits}f}".replace("-", "−")
        x = on.at(tick)
        parts.append(f'<line x1="{x}" x2="{x}" y1="0" y2="5" class="tick"/>')
        parts.append(f'<text x="{x}" y="18" text-anchor="middle">{text}</text>')
    return (
        '<svg class="strip axis" width="100%" height="24" aria-hidden="true" focusable="false">'
        f'<line x1="0%" x2="100%" y1="0.5" y2="0.5" class="tick"/>{"".join(parts)}</svg>'
    )


@dataclass(frozen=True, slots=True)
class PlotRow:
    """One row: HTML of its label, its marks, HTML of its figures; `head` opens a group, `note` has
    no marks and its text takes their room."""

    label: str
    marks: Sequence[Mark] = ()
    value: str = ""
    head: bool = False
    strong: bool = False
    note: bool = False


def rows(
    found: Sequence[PlotRow], on: Scale, *, unit: str, band: tuple[float, float] | None = None,
    lines: Sequence[tuple[float, str]] = (), signed: bool = False,
) -> str:
    """A figure of rows over one axis; labels and figures are text that a screen reader reads.

    unit: what the axis counts. The row that opens a group is its label alone: no line crosses it.
    """
    out = []
    for row in found:
        bare = row.note or row.head
        drawn = "" if bare else strip(row.marks, on, band=band, lines=lines)
        kinds = {"head": row.head, "strong": row.strong, "note": row.note}
        out.append(tag(
            "div",
            tag("div", row.label, class_="label")
            + (tag("div", drawn, class_="plot") if drawn else "")
            + ("" if row.head else tag("div", row.value, class_="value")),
            class_=" ".join(["row", *(kind for kind, is_so in kinds.items() if is_so)]),
            role="listitem",
        ))
    out.append(tag(
        "div", f'<div class="label"></div><div class="plot">{axis(on, signed=signed)}'
        f'<p class="unit">{esc(unit)}</p></div><div class="value"></div>',
        class_="row foot", aria_hidden="true",
    ))
    return tag("div", "".join(out), class_="rows", role="list")


Series = tuple[str, str, Sequence[tuple[float, float]]]
"""A line's name, its look, and its (depth, mean) points."""


def ladder(
    series: Sequence[Series], on: Scale, depths: Sequence[int], unit: str, height: int = 200
) -> str:
    """Means by depth of path, one line for each series. unit: what is averaged."""
    across = Scale(min(depths) - 0.35, max(depths) + 0.35)
    said = "; ".join(
        f"{name}: " + ", ".join(f"{mean:.3f} at {depth:g}" for depth, mean in points)
        for name, _, points in series
    )

    def y(value: float) -> float:
        return round(height * (1 - (value - on.low) / (on.high - on.low)), 2)

    parts = []
    for tick in on.ticks():
        parts.append(f'<line x1="0%" x2="100%" y1="{y(tick):g}" y2="{y(tick):g}" class="grid"/>')
        parts.append(f'<text x="0%" y="{y(tick) - 4:g}">{tick:.3g}</text>')
    for depth in depths:
        parts.append(
            f'<text x="{across.at(depth)}" y="{height + 20}" text-anchor="middle">{depth}</text>'
        )
    for _, look, points in series:
        for (left, low), (right, high) in itertools.pairwise(points):
            parts.append(
                f'<line x1="{across.at(left)}" x2="{across.at(right)}" y1="{y(low):g}" '
                f'y2="{y(high):g}" class="reach {esc(look)}"/>'
            )
        shape = "circle" if "hollow" in look else "square"
        parts += [_shape(across.at(depth), y(mean), shape, look) for depth, mean in points]
    return (
        f'<p class="unit up">{esc(unit)}</p><svg class="ladder" width="100%" '
        f'height="{height + 28}" role="img" aria-label="{esc(unit)} by levels of the heading path: '
        f'{esc(said)}">{"".join(parts)}</svg><p class="unit">levels of the heading path</p>'
    )
