"""The tables of docs/calibration.md from the counts of blocks: a row for each design."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

from bench.calibration.designs import DESIGNS

Line = Mapping[str, Any]
Rate = tuple[float, float]
"""A share and its Monte Carlo error."""

TABLES = {
    "Coverage of the 95% interval of record": "covers.*",
    "Truth below the interval of record": "below.*",
    "Truth above the interval of record": "above.*",
    "Coverage, percentile": "covers.percentile",
    "Coverage, BCa": "covers.bca",
    "Coverage, linearised, t(G - 1)": "covers.linearised",
    "Coverage, leave-one-document-out error, t(G - 1)": "covers.jackknife",
    "Coverage, leave-one-document-out error, t(effective - 1)": "covers.effective",
    "False positives at .05 before Holm, record": "rejects.*",
    "False positives at .05 before Holm, sign flips": "rejects.flips",
    "Family-wise error after Holm, record": "family.*",
    "Family-wise error after Holm, leave-one-document-out error, t(effective - 1)":
        "family.effective",
    "Power at .05, record (one contrast)": "finds.*",
    "Power at .05 / 4, record (of four)": "first.*",
    "Power after Holm, record": "holm.*",
    "`power()` at the true effect, mean": "formula",
    "`power()` that was not a number": "formula.nan",
    "Studies with a caution": "cautioned",
    "Coverage of the interval of record without a caution": "quiet.*",
}
"""Title -> what is counted; * stands for the interval of record."""


def rate(lines: Sequence[Line], what: str) -> Rate | None:
    """Share over all blocks, with the error between blocks: studies of one block share draws.

    The error is that of a ratio of two sums over blocks; None where nothing was counted.
    """
    pairs = [line["tally"][what] for line in lines if what in line["tally"]]
    of = sum(pair[1] for pair in pairs)
    if not of:
        return None
    share = sum(pair[0] for pair in pairs) / of
    if len(pairs) < 2:
        return share, math.nan
    spread = sum((hits - share * each) ** 2 for hits, each in pairs)
    return share, math.sqrt(spread * len(pairs) / (len(pairs) - 1)) / of


def report(lines: Sequence[Line], few: int, below: str) -> str:
    """Markdown tables of every design and number of documents that was simulated.

    few: the percentile interval is of record from here on; below: which one is below it.
    """
    cells: dict[tuple[str, int], list[Line]] = {}
    for line in lines:
        cells.setdefault((line["design"], line["documents"]), []).append(line)
    sizes = sorted({documents for _, documents in cells})
    studies = [sum(line["studies"] for line in its) for its in cells.values()] or [0]
    parts = [
        f"{len(cells)} cells, {min(studies):,} to {max(studies):,} studies each, bootstrap draws "
        f"{sorted({line['draws'] for line in lines})}. Of record: percentile from {few} documents "
        f"on, {below} below. Percentages and their Monte Carlo errors; coverage that misses the "
        "goal by two of its errors or more is bold.\n"
    ]
    for title, counted in {**TABLES, "Effects": "truth"}.items():
        rows = []
        for name in DESIGNS:
            told = []
            for documents in sizes:
                record = "percentile" if documents >= few else below
                told.append(
                    _told(cells.get((name, documents), []), counted.replace("*", record), documents)
                )
            if any(text != "-" for text in told):  # no error rate without a null
                rows.append([name, *told])
        heads = ["design", *(f"{documents:,}" for documents in sizes)]
        parts.append("\n".join([
            f"### {title}", "", "| " + " | ".join(heads) + " |", "|" + "---|" * len(heads),
            *("| " + " | ".join(row) + " |" for row in rows), "",
        ]))
    return "\n".join(parts)


def goal(documents: int, share: float, error: float) -> str:
    """Whether coverage lies within 93-96%, or 94-96% from 200 documents on.

    `at its edge` where it lies outside by less than two of its errors.
    """
    low, high = (0.94 if documents >= 200 else 0.93), 0.96
    outside = max(low - share, share - high)
    if outside <= 0:
        return "met"
    return "at its edge" if outside < 2 * error else "missed"


def _told(lines: Sequence[Line], what: str, documents: int) -> str:
    if what == "truth":
        moved = [value for value in lines[0]["truth"] if abs(value) > 1e-12] if lines else []
        return f"{moved[0]:.4f}" if moved else "-"
    found = rate(lines, what)
    if found is None:
        return "-"
    text = f"{100 * found[0]:.1f} ± {100 * found[1]:.1f}"
    missed = what.startswith("covers") and goal(documents, *found) == "missed"
    return f"**{text}**" if missed else text
