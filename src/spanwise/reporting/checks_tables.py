"""What stands beside an interval of record: other intervals and tests, power, mixed models."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from spanwise.params import Params
from spanwise.reporting.cells import Cell, cell_name, cells_of, dense_cells
from spanwise.reporting.gather import CorpusRecord, Row
from spanwise.reporting.judgement import degenerate, family_size, judge
from spanwise.reporting.markup import (
    NONE,
    count,
    esc,
    figure,
    interval,
    probability,
    signed,
    standing,
    tag,
)
from spanwise.reporting.tables import cell_head, heads, number, table
from spanwise.reporting.verdict import contrast_rows, hanging
from spanwise.statistics.linearised import FEW
from spanwise.statistics.power import ALPHA, MOST, POWER

INTERVALS = (
    "All 95%. What is of record decides; the others show whether the answer hangs on how the "
    "interval was made. Linearised: Student's interval. Sign flips: the share of sign patterns, "
    "all differences of a document flipped together, whose mean lies at least as far from zero. "
    "Each Holm p is over the same family. Below {few} documents percentiles are too narrow, and no "
    "verdict is held against them."
)
POWERS = (
    "For a true difference of {margin}, the smallest effect of interest, at the first step of "
    "Holm's correction ({level:.3g}): power is never given at the observed difference. Detectable: "
    "what would be found {often:.0%} of the time. Documents and questions: what it would take to "
    "find the margin as often, with as many questions a document as here. A design effect of 2 "
    "says that twice the questions are needed, since those of one document move together."
)
EQUALS = (
    "Equivalent: the 90% interval lies within ±{margin}; each contrast by itself, without Holm's "
    "correction. Unsure: it lies there, and a caution says that it does so too often in such data: "
    "it counts for nothing. Power and what it would take: for conditions that are truly equal."
)
MODELS = (
    "Stacked, the published study's: score ~ condition + (1 | document), two rows a question. "
    "Paired: difference ~ 1 + (1 | document). Restricted maximum likelihood, Wald's z; each fitted "
    "by two optimizers, of which the higher likelihood is kept. Least squares knows no documents. "
    "None of these is of record."
)


def beside(record: CorpusRecord, params: Params, family: str) -> str:
    """Everything about one family of the primary measure, in every cell; empty without rows."""
    found = [
        (cell, rows) for cell in dense_cells(record, params)
        if (rows := contrast_rows(record, params, cell, family))
    ]
    if not found:
        return ""
    level = ALPHA / len(params.steps if family == "step" else params.contrasts)
    margin = f"{params.inference.margin:g}"
    powers = POWERS.format(margin=margin, level=level, often=POWER)
    return (
        _table(record, params, found, "Other intervals and tests", [
            "Contrast", "Of record", "Interval of record", "Holm p of record", "Linearised Holm p",
            "Sign flips Holm p", "Linearised", "Linearised p", "Sign flips p", "Percentile",
            "Percentile p", "BCa"], _intervals)
        + tag("p", esc(INTERVALS.format(few=FEW)), class_="soft")
        + _hanging(record, params, found)
        + _table(record, params, found, f"Power for a difference of {margin}", [
            "Contrast", "Standard error", "Intraclass correlation", "Design effect", "Power",
            "Detectable", "Documents it takes", "Questions it takes"], _powers)
        + tag("p", esc(powers), class_="soft")
        + _table(record, params, found, f"Equivalence within ±{margin}", [
            "Contrast", "90% interval", "Within", "Power", "Documents it takes",
            "Questions it takes"], _equals)
        + tag("p", esc(EQUALS.format(margin=margin)), class_="soft")
        + _table(record, params, found, "Mixed models", [
            "Contrast", "Model", "Difference", "95% interval", "p", "Between documents",
            "Least squares", "Optimizer", "Note"], _models)
        + tag("p", esc(MODELS), class_="soft") + _discordances(record, found)
    )


def cautions(record: CorpusRecord, params: Params, families: Sequence[str]) -> list[str]:
    """Reasons to trust intervals less, as sentences, those of the primary cell first; a reason that
    several contrasts share is told once, with each of them and its cell."""
    found: dict[str, dict[Cell, list[str]]] = {}
    for cell in cells_of(record, params):
        for family in families:
            within = f" of {family.removeprefix(TYPE)}" if family.startswith(TYPE) else ""
            for row in contrast_rows(record, params, cell, family):
                check = record.check(row)
                for reason in check["cautions"] if check else ():
                    names = found.setdefault(reason, {}).setdefault(cell, [])
                    names.append(f"{row['name']}{within}")
    return [
        "; ".join(f"{', '.join(names)} in {cell_name(cell)}" for cell, names in by_cell.items())
        + f": {reason}."
        for reason, by_cell in found.items()
    ]


def cautioned(record: CorpusRecord, params: Params, families: Sequence[str]) -> str:
    """The cautions of some families as a list, to stand beneath their table; empty without any."""
    found = cautions(record, params, families)
    if not found:
        return ""
    items = "".join(tag("li", esc(text)) for text in found)
    return tag("p", "Trust these intervals less:") + tag("ul", items)


TYPE = "type:"
"""What the name of a family begins with that is within one type of question."""

WORDS = ("Of record", "Within", "Model", "Optimizer", "Note")
"""Columns that hold no figures."""

Lines = Callable[[CorpusRecord, Row, Params], str | None]
"""HTML of a contrast's lines, None where nothing was checked."""


def _table(
    record: CorpusRecord, params: Params, found: Sequence[tuple[Cell, Sequence[Row]]], title: str,
    columns: Sequence[str], lines: Lines,
) -> str:
    bodies = [
        tag("tbody", cell_head(cell, params, len(columns)) + "".join(
            _absent(row, len(columns)) if row["delta"] is None
            else lines(record, row, params)
            or _wide(row, degenerate(row) or "nothing was checked", len(columns)) for row in rows
        ))
        for cell, rows in found
    ]
    return table(
        f"{esc(title)} {standing('exploratory')}", heads(columns, over_words=WORDS),
        "".join(bodies),
        label=f"{title}, {record.name}", look="checks",
    )


def _name(row: Row) -> str:
    pair = f" <small>{esc(row['a'])} − {esc(row['b'])}</small>"
    return tag("th", esc(row["name"]) + (pair if row["family"] == "contrast" else ""), scope="row")


def _wide(row: Row, text: str, columns: int) -> str:
    return tag("tr", _name(row) + tag(
        "td", esc(text), colspan=str(columns - 1), class_="absent"))


def _absent(row: Row, columns: int) -> str:
    return _wide(row, f"absent: {row['reason'] or 'no reason was recorded'}", columns)


def _intervals(record: CorpusRecord, row: Row, params: Params) -> str | None:
    check = record.check(row)
    if check is None or check["linear_low"] is None:
        return None
    draws = params.inference.iterations
    family = family_size(row, params)
    bca = interval(check["bca_low"], check["bca_high"])
    cells = tag("td", esc(row["interval"])) + number(
        interval(row["ci_low"], row["ci_high"]), "strong")
    cells += number(probability(row["p_holm"], draws, family), "strong")
    cells += number(probability(check["linear_p_holm"], draws))
    cells += number(probability(check["flip_p_holm"], draws))
    cells += number(interval(check["linear_low"], check["linear_high"]))
    cells += number(probability(check["linear_p"], draws))
    cells += number(probability(check["flip_p"], draws))
    cells += number(interval(check["percentile_low"], check["percentile_high"]))
    cells += number(probability(check["percentile_p"], draws))
    cells += number("none: the draws lie on one side" if bca == NONE else bca)
    return tag("tr", _name(row) + cells)


def _hanging(
    record: CorpusRecord, params: Params, found: Sequence[tuple[Cell, Sequence[Row]]]
) -> str:
    """Where a verdict hangs on the interval or the test."""
    told = [
        f"{row['name']} in {cell_name(cell)}: {judge(row, check, params).words}; "
        f"{'; '.join(phrases)}."
        for cell, rows in found for row in rows
        if row["delta"] is not None and (check := record.check(row)) is not None
        and (phrases := hanging(row, check, params))
    ]
    if not told:
        return tag("p", "No verdict hangs on the interval or the test.")
    return tag("p", "Where a verdict hangs on the interval or the test:") + tag(
        "ul", "".join(tag("li", esc(text)) for text in told))


def _powers(record: CorpusRecord, row: Row, _: Params) -> str | None:
    check = record.check(row)
    if check is None or check["power"] is None:
        return None
    return tag("tr", _name(row) + number(figure(row["se"], 4)) + number(signed(check["icc"], 2))
               + number(figure(check["design_effect"], 2)) + number(share(check["power"]), "strong")
               + number(figure(check["detectable"])) + number(size(check["documents_needed"]))
               + number(size(check["questions_needed"])))


def _equals(record: CorpusRecord, row: Row, params: Params) -> str | None:
    check, margin = record.check(row), params.inference.margin
    if check is None or check["power"] is None:
        return None
    low, high = row["ci90_low"], row["ci90_high"]
    within = -margin < low and high < margin and degenerate(row) is None
    told = "no" if not within else "unsure" if check["equivalence_unsure"] else "yes"
    return tag("tr", _name(row) + number(interval(low, high), "strong") + tag("td", told)
               + number(share(check["equivalence_power"]))
               + number(size(check["equivalence_documents"]))
               + number(size(check["equivalence_questions"])))


def share(value: float) -> str:
    """A probability in percent; nothing that is possible reads as 0 or 100.

    >>> share(0.8123), share(0.0002), share(0.9999), share(0.0)
    ('81%', '< 1%', '> 99%', '0%')
    """
    if 0 < value < 0.005:
        return "< 1%"
    return "> 99%" if 0.995 <= value < 1 else f"{100 * value:.0f}%"


def size(value: int | None) -> str:
    """How many it takes; beyond what is worth saying it is only bounded."""
    return f"> {count(MOST)}" if value is None else count(value)


def _models(record: CorpusRecord, row: Row, params: Params) -> str | None:
    mine = _fitted(record, row)
    if not mine:
        return None
    lines = []
    for model in mine:
        cells = _name(row) + tag("td", esc(model["model"]))
        if model["estimate"] is None:
            cells += tag("td", esc(model["note"]), colspan="7", class_="absent")
        else:
            how = str(model["optimizer"])
            if model["converged"] is False:  # least squares does not iterate
                how += ", not converged"
            between = model["share"]  # none where no document has two questions
            cells += number(signed(model["estimate"]), "strong")
            cells += number(interval(model["ci_low"], model["ci_high"]))
            cells += number(probability(model["p"], params.inference.iterations))
            cells += number(NONE if between is None else f"{100 * between:.1f}%")
            cells += number(f"{signed(model['ols_estimate'])} ± {figure(model['ols_se'])}")
            cells += tag("td", esc(how)) + tag("td", esc(model["note"] or NONE))
        lines.append(tag("tr", cells))
    return "".join(lines)


def _fitted(record: CorpusRecord, row: Row) -> list[Row]:
    """The models of one contrast, the published study's first."""
    where = ("embedder", "reranker", "measure", "name")
    mine = [model for model in record.mixed if all(model[key] == row[key] for key in where)]
    return sorted(mine, key=lambda model: str(model["model"]), reverse=True)


def _discordances(
    record: CorpusRecord, found: Sequence[tuple[Cell, Sequence[Row]]]
) -> str:
    """Where models and what is of record part before Holm's correction, with the reason read off
    the data."""
    told = []
    for cell, rows in found:
        for row in rows:
            reasons = {m["discordance"] for m in _fitted(record, row) if m["discordance"]}
            told += [f"{row['name']} in {cell_name(cell)}: {reason}" for reason in sorted(reasons)]
    if not told:
        return tag("p", "Before Holm's correction no model says otherwise at 5% than what is of "
                   "record.")
    items = "".join(tag("li", esc(text)) for text in told)
    return tag("p", "Where they part:") + tag("ul", items)
