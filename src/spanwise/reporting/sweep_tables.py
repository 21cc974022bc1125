"""What sweeps found: the best trials, what moves the measure, and the trials along each parameter.

All of it was chosen by looking at the very questions it is about, so all of it says exploratory.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from spanwise import schemas
from spanwise.reporting.figures import Mark, PlotRow, Scale, rows, scale, sign
from spanwise.reporting.gather import CorpusRecord, Row
from spanwise.reporting.markup import NONE, count, esc, figure, many, standing, tag, words
from spanwise.reporting.plots import FAMILIES
from spanwise.reporting.tables import TITLES, heads, number, table
from spanwise.sweep import looked
from spanwise.sweep.results import PARAMETERS, Sweep

SHOWN = 10
"""Trials that the table lists; tables/sweep-trials.csv has all."""

BUDGET = "coverage@1024"
"""Stands beside the measure that was sought: sizes that differ are equal in it."""

BINS = 6
"""Rows of a parameter in the figure of slices at most."""

TRIALS = ["corpus", "embedder", "standing", *schemas.SWEEP_TRIALS.columns.names]
IMPORTANCE = ["corpus", "embedder", "standing", *schemas.SWEEP_IMPORTANCE.columns.names]
SLICES = ["corpus", "embedder", "standing", "measure", "parameter", "value", "trial", "mean"]


def part(record: CorpusRecord) -> str:
    """The sweeps of a corpus; "" where nobody swept."""
    if not record.sweeps and not record.looked_at:
        return ""
    apart = (
        "No document of the study is among those of a sweep." if not record.looked_at
        else f"{looked.told(record.looked_at)}. What was chosen there cannot be confirmed here."
    )
    return tag("h3", f"Sweeps {standing('exploratory')}") + tag("p", esc(apart)) + "".join(
        _sweep(record.name, found) for found in record.sweeps
    )


def _sweep(name: str, found: Sweep) -> str:
    measure = TITLES[found.measure]
    about = (
        f"{found.embedder}: {many(len(found.trials), 'trial')} on "
        f"{many(found.n_documents, 'document')} of their own with "
        f"{many(found.n_questions, 'question')}; no figure of the primary cell is among them."
    )
    if not found.complete:
        return tag("p", esc(about)) + _failed(found) + tag("p", "No trial could be judged.")
    best = found.complete[0]
    told = (
        f"The best trial is number {best['number']}: {_said(best)}, mean {measure} "
        f"{figure(best[found.measure])}. It was chosen on these very questions, so its figure is "
        "too high and says nothing of other documents. Sizes are not matched here: a measure that "
        "counts chunks favours long ones, one within a budget of tokens does not. To test it, make "
        "it a condition, name a contrast and register both for a corpus before the primary "
        "embedder runs on it."
    )
    return (
        tag("p", esc(about)) + tag("div", tag("p", esc(told)), class_="notice", role="note")
        + _best(name, found) + _failed(found) + _importance(found) + _slices(found)
    )


def _said(row: Row) -> str:
    return ", ".join(
        str(row[p]) if isinstance(row[p], str) else f"{words(p)} {row[p]}"
        for p in PARAMETERS if row[p] is not None
    )


def _best(name: str, found: Sweep) -> str:
    measures = list(dict.fromkeys((found.measure, BUDGET)))
    columns = ["Trial", TITLES[found.measure], *("within 1,024 tokens" for _ in measures[1:]),
               *(words(p) for p in PARAMETERS), "chunks", "mean tokens"]
    over_words = ("segmentation", "retrieval")
    body = "".join(
        tag("tr", tag("th", count(row["number"]), scope="row")
            + "".join(number(figure(row[m])) for m in measures) + "".join(
            tag("td", esc(row[p])) if p in over_words
            else number(NONE if row[p] is None else count(row[p])) for p in PARAMETERS
        ) + number(count(row["chunks"])) + number(figure(row["mean_tokens"], 1)))
        for row in found.complete[:SHOWN]
    )
    more = len(found.complete) - SHOWN
    caption = f"The best trials, {esc(found.embedder)} {standing('exploratory')}" + (
        f" <small>{more} more in tables/sweep-trials.csv</small>" if more > 0 else ""
    )
    return table(
        caption, heads(columns, 1, over_words), tag("tbody", body),
        label=f"The best trials of the sweep, {name}, {found.embedder}",
    )


def _failed(found: Sweep) -> str:
    reasons: dict[str, int] = {}
    for row in found.failed:
        reasons[row["reason"]] = reasons.get(row["reason"], 0) + 1
    return "".join(
        tag("p", esc(f"{many(n, 'trial')} failed: {reason}."), class_="soft")
        for reason, n in reasons.items()
    )


def _importance(found: Sweep) -> str:
    """What share of the variance each parameter explains, in the trials that have it."""
    drawn: list[PlotRow] = []
    for which in dict.fromkeys(row["part"] for row in found.importance):
        mine = [row for row in found.importance if row["part"] == which]
        drawn.append(PlotRow(tag("span", f"<b>{esc(which)}</b> <small>"
                                 f"{many(mine[0]['trials'], 'trial')}</small>"), head=True))
        if mine[0]["reason"]:
            drawn.append(PlotRow(tag("span", "absent", class_="absent"), value=tag(
                "span", esc(mine[0]["reason"]), class_="absent"), note=True))
            continue
        drawn += [
            PlotRow(esc(words(row["parameter"])), [Mark(row["importance"], look="filled blue")],
                    figure(row["importance"], 2))
            for row in mine
        ]
    if not drawn:
        return ""
    caption = (
        f"Which parameter moves the mean {standing('exploratory')}: shares of the variance that a "
        "forest of trees explains (fANOVA), within the trials that have the parameter. The sampler "
        "looked where means were high, so a share is of that region."
    )
    return tag("figure", tag("figcaption", caption) + rows(
        drawn, Scale(-0.03, 1.03), lines=[(0.0, "zero")], unit="share of the variance explained",
    ), class_="conditions")


def _slices(found: Sweep) -> str:
    """Every trial along each parameter."""
    drawn: list[PlotRow] = []
    for parameter in PARAMETERS:
        having = along(found, parameter)
        if len({row[parameter] for row in having}) < 2:
            continue
        drawn.append(PlotRow(tag("span", f"<b>{esc(words(parameter))}</b>"), head=True))
        for label, mine in binned(having, parameter):
            marks = [
                Mark(row[found.measure], look=f"hollow {FAMILIES[row['segmentation']]}")
                for row in mine
            ]
            told = many(len(mine), "trial")
            drawn.append(PlotRow(
                esc(label), marks, f"best {figure(mine[0][found.measure])} <small>{told}</small>"
            ))
    if not drawn:
        return ""
    families = list(dict.fromkeys(row["segmentation"] for row in found.complete))
    keys = "".join(
        tag("li", sign("circle", f"hollow {FAMILIES[one]}") + esc(one)) for one in families
    )
    caption = (
        f"Mean {esc(TITLES[found.measure])} of each trial along each parameter "
        f"{standing('exploratory')}; everything else differs between them too."
    )
    values = [row[found.measure] for row in found.complete]
    return tag("details", tag("summary", "The trials along each parameter") + tag(
        "figure", tag("figcaption", caption) + tag("ul", keys, class_="legend")
        + rows(drawn, scale(values), unit=f"mean {TITLES[found.measure]}"), class_="conditions",
    ))


def along(found: Sweep, parameter: str) -> list[Row]:
    """The complete trials that could have had another value of a parameter, the best first.

    Fixed chunks have no structure, so neither a depth nor a way of searching.
    """
    return [
        row for row in found.complete if row[parameter] is not None
        and not (row["segmentation"] == "fixed" and parameter in ("depth", "retrieval"))
    ]


def binned(having: Sequence[Row], parameter: str) -> list[tuple[str, list[Row]]]:
    """Trials by the value of a parameter, in as many rows as a figure holds, their order kept.

    Words and few numbers each have a row; more numbers share rows of equal width.
    """
    values = sorted({row[parameter] for row in having})
    groups: dict[str, list[Row]] = {}
    if len(values) <= BINS or isinstance(values[0], str):
        for value in values:
            groups[str(value)] = [row for row in having if row[parameter] == value]
        return list(groups.items())
    low, wide = values[0], -(-(values[-1] - values[0] + 1) // BINS)
    for start in range(low, values[-1] + 1, wide):
        mine = [row for row in having if start <= row[parameter] < start + wide]
        if mine:
            groups[f"{start}–{min(start + wide - 1, values[-1])}"] = mine
    return list(groups.items())


def trials(records: Sequence[CorpusRecord]) -> list[list[Any]]:
    """Every trial, as lines of tables/sweep-trials.csv."""
    return _lines(records, "trials", TRIALS)


def importance(records: Sequence[CorpusRecord]) -> list[list[Any]]:
    """Every importance, as lines of tables/sweep-importance.csv."""
    return _lines(records, "importance", IMPORTANCE)


def _lines(
    records: Sequence[CorpusRecord], what: str, columns: Sequence[str]
) -> list[list[Any]]:
    return [
        [found.corpus, found.embedder, "exploratory", *(row[c] for c in columns[3:])]
        for record in records for found in record.sweeps
        for row in _of(found, what)
    ]


def _of(found: Sweep, what: str) -> Sequence[Mapping[str, Any]]:
    return found.trials if what == "trials" else found.importance


def slices(records: Sequence[CorpusRecord]) -> list[list[Any]]:
    """Every complete trial along each parameter it has, as lines of plots/sweep.csv."""
    return [
        [found.corpus, found.embedder, "exploratory", found.measure, parameter, row[parameter],
         row["number"], row[found.measure]]
        for record in records for found in record.sweeps for parameter in PARAMETERS
        for row in along(found, parameter)
    ]
