"""Tables of the contrasts: their figures by family, and in every measure."""

from __future__ import annotations

from collections.abc import Sequence

from spanwise.params import MEASURES, Params
from spanwise.reporting.cells import cells_of
from spanwise.reporting.gather import CorpusRecord, Row
from spanwise.reporting.judgement import family_size, judge, judged, otherwise
from spanwise.reporting.markup import (
    NONE,
    called,
    count,
    esc,
    interval,
    listed,
    many,
    probability,
    signed,
    standing,
    tag,
    words,
)
from spanwise.reporting.tables import COLUMN_GROUPS, TITLES, cell_head, heads, number, table
from spanwise.reporting.verdict import contrast_rows

FAMILY_TITLES = {
    "contrast": "The contrasts", "step": "Steps", "dose": "Slope for each level of the path",
    "connected": "The contrasts, with documents that share a question's evidence as one cluster",
}


def measure_title(measure: str) -> str:
    """A measure's name as a person reads it, with its group where the column is a bare number."""
    for group, columns in COLUMN_GROUPS[1:]:
        for name, title in columns:
            if name == measure:
                return f"{group.lower()}: {title}"
    return TITLES.get(measure, measure)


def contrasts(record: CorpusRecord, params: Params, family: str) -> str:
    """All figures of one family's contrasts for the primary measure, one group for each cell."""
    columns = [
        "Contrast", "Standing", "Verdict", "Difference", "95% interval", "90% interval", "p",
        "Holm p", "dz", "Questions", "Documents", "Excluded",
    ]
    if family == "dose":  # a slope for each level: the margin is not its own, and it has no arms
        columns = ["Ladder", "Standing", "Slope", "95% interval", "p", "Questions", "Documents",
                   "Excluded"]
    elif family == "connected":  # a check on the intervals: no draws are kept, no verdict is given
        columns = ["Contrast", "Standing", "Difference", "95% interval", "p", "Holm p", "dz",
                   "Questions", "Clusters", "Excluded"]
    found = {cell: contrast_rows(record, params, cell, family) for cell in cells_of(record, params)}
    same, told = _constant([row for rows in found.values() for row in rows], family)
    columns = [column for column in columns if column not in same]
    bodies = [
        tag("tbody", cell_head(cell, params, len(columns)) + "".join(
            _contrast_row(record, row, params, columns, family) for row in rows
        )) for cell, rows in found.items() if rows
    ]
    title = FAMILY_TITLES.get(family, words(family))
    return table(
        f"{esc(title)}, {esc(TITLES[params.primary.measure])}{esc(told)}",
        heads(columns, 2 if family in ("dose", "connected") else 3), "".join(bodies),
        label=f"{title}, {record.name}", look="tight",
    ) if bodies else ""


def _constant(rows: Sequence[Row], family: str) -> tuple[set[str], str]:
    """Columns that would say the same in every row, and what they say, for the caption."""
    clusters = ("Clusters", "cluster") if family == "connected" else ("Documents", "document")
    columns = (("Questions", "question", "n_questions"), (*clusters, "n_documents"))
    estimated = [row for row in rows if row["delta"] is not None]
    same: set[str] = set()
    told = []
    for column, word, key in columns:
        values = {row[key] for row in estimated}
        if len(values) == 1:
            same.add(column)
            told.append(many(values.pop(), word))
    if estimated and not any(row["excluded"] for row in estimated):
        same.add("Excluded")
        told.append("none excluded")
    return same, f"; in every row {', '.join(told)}" if told else ""


def _contrast_row(
    record: CorpusRecord, row: Row, params: Params, columns: Sequence[str], family: str
) -> str:
    pair = f"{row['a']} − {row['b']}"
    name = row["name"] if family == "step" else f"{row['name']} <small>{esc(pair)}</small>"
    name = tag("th", name if family != "step" else esc(pair), scope="row")
    if row["delta"] is None:
        reason = f"absent: {esc(row['reason'] or 'no reason was recorded')}"
        return tag("tr", name + tag("td", reason, colspan=str(len(columns) - 1), class_="absent"))
    says, draws = judge(row, record.check(row), params), params.inference.iterations
    cells = tag("td", standing(called(row["standing"], record.demonstration)))
    if judged(row, params):
        cells += tag("td", esc(says.words) + _otherwise(record, row, params))
    digits = 4 if family == "dose" else 3
    cells += number(signed(row["delta"], digits), "strong")
    cells += number(interval(row["ci_low"], row["ci_high"], digits))
    if judged(row, params):
        cells += number(interval(row["ci90_low"], row["ci90_high"]))
    cells += number(probability(row["p"], draws))
    if family != "dose":
        cells += number(probability(row["p_holm"], draws, family_size(row, params)))
        cells += number(signed(row["dz"], 2))
    for column, key in (("Questions", "n_questions"), ("Documents", "n_documents"),
                        ("Clusters", "n_documents"), ("Excluded", "excluded")):
        if column in columns:
            cells += number(count(row[key]))
    return tag("tr", name + cells)


def _otherwise(record: CorpusRecord, row: Row, params: Params) -> str:
    """What the verdict would be by another interval or test, small, where it would be another."""
    by_word: dict[str, list[str]] = {}
    for other in otherwise(row, record.check(row), params):
        by_word.setdefault(other.words, []).append(other.by)
    return "".join(
        f" <small>{esc(f'{word} by {listed(by)}')}</small>" for word, by in by_word.items()
    )


def every_measure(record: CorpusRecord, params: Params) -> str:
    """The contrasts in every measure and cell: differences with their intervals."""
    measures = [m for m in MEASURES if any(r["measure"] == m for r in record.contrasts)]
    bodies = []
    for cell in cells_of(record, params):
        found = {
            (row["name"], row["measure"]): row for row in record.contrasts
            if (row["embedder"], row["reranker"]) == cell and row["family"] == "contrast"
        }
        names = [name for name in params.contrasts if any(key[0] == name for key in found)]
        if not names:
            continue
        lines = []
        for measure in measures:
            cells = ""
            for name in params.contrasts:
                row = found.get((name, measure))
                if row is None or row["delta"] is None:
                    cells += number(NONE)
                    continue
                cells += tag(
                    "td", f"{esc(signed(row['delta']))} "
                    f"<small>{esc(interval(row['ci_low'], row['ci_high']))}</small> "
                    f"{standing(called(row['standing'], record.demonstration))}", class_="n",
                )
            lines.append(tag("tr", tag("th", esc(measure_title(measure)), scope="row") + cells))
        bodies.append(tag(
            "tbody", cell_head(cell, params, len(params.contrasts) + 1) + "".join(lines)
        ))
    return table(
        "The contrasts in every measure, with 95% intervals",
        heads(["Measure", *params.contrasts]), "".join(bodies),
        label=f"Contrasts in every measure, {record.name}",
    ) if bodies else ""
