"""Tables of the study of units: equal units, what was returned, equal amounts, causes, windows.

A slice never shares a table with another. Comparisons have a room of their own, `units_pairs`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from spanwise.reporting.gather import Row, UnitsRecord
from spanwise.reporting.markup import NONE, count, esc, figure, listed, many, standing, tag
from spanwise.reporting.tables import number, table
from spanwise.reporting.units_verdict import EQUAL, MATCHED, cutoff, named

MEASURES = {"sufficient": "Single-unit sufficiency", "covered": "Bundle coverage"}
CAUSES = ("boundary", "cutoff", "truncation", "ranking")
KINDS = {"": "whole units", "-cut": "last unit cut short"}

Groups = Sequence[tuple[str, Sequence[str]]]


def _head(first: str, groups: Groups, tail: Sequence[str] = ()) -> str:
    """Two rows of headings: groups of figures, and the figures."""
    upper = tag("th", esc(first), scope="col", rowspan="2") + "".join(
        tag("th", esc(title), scope="colgroup", colspan=str(len(columns)), class_="group")
        for title, columns in groups
    ) + "".join(tag("th", esc(title), scope="col", rowspan="2", class_="n") for title in tail)
    lower = "".join(
        tag("th", esc(title), scope="col", class_="n") for _, columns in groups
        for title in columns
    )
    return tag("tr", upper) + tag("tr", lower)


def titled(title: str, columns: int, rows: Sequence[str]) -> str:
    """Rows under a heading of their own, e.g. a retriever's."""
    head = tag("th", esc(title), scope="rowgroup", colspan=str(columns))
    return tag("tbody", tag("tr", head, class_="cell") + "".join(rows))


def line(name: str, cells: str) -> str:
    """A row: its name, and the HTML of its cells."""
    return tag("tr", tag("th", esc(name), scope="row") + cells)


def _top(value: float | None, column: Sequence[float | None]) -> str:
    """The class of the highest figure of a group's column, where there is something to beat."""
    found = [other for other in column if other is not None]
    return "top" if value is not None and len(found) > 1 and value == max(found) else ""


def needs(units: UnitsRecord, part: str) -> str:
    """How many needs a slice has, those that nothing answers told apart."""
    row = next((row for key, row in units.means.items() if key[2] == part), None)
    if row is None:
        return "no needs"
    asked, without = row["n_answerable"], row["n_needs"] - row["n_answerable"]
    text = f"{many(asked, 'need')} with an answer"
    if not without:
        return f"{text}, none without"
    return f"{text}; {count(without)} without one, apart, for nothing could hold it"


def equal_units(units: UnitsRecord, part: str, name: str) -> str:
    """Both measures at every cutoff, by retriever and segmentation."""
    amounts = units.amounts("units")
    groups = [(f"At {many(k, 'unit')}", ["sufficient", "covered"]) for k in amounts]
    bodies = _bodies(
        units, part, 2 * len(amounts) + 1, [("", "units")],
        lambda rows, beside: "".join(
            number(figure(row[m] if row else None), _top(row[m] if row else None, beside(k, m)))
            for k, row in rows.items() for m in MEASURES
        ),
    )
    return table(
        f"At equal units, {esc(part)} slice {standing('exploratory')}: {esc(needs(units, part))}",
        _head("Segmentation", groups), bodies, label=f"Equal units, {part} slice, {name}",
    )


def returned(units: UnitsRecord, part: str, name: str) -> str:
    """The audit of what was returned at every cutoff."""
    amounts = units.amounts("units")
    groups = [
        (f"{words[0].upper()}{words[1:]} returned at", [count(k) for k in amounts])
        for words in EQUAL.values()
    ]
    bodies = _bodies(
        units, part, len(groups) * len(amounts) + 1, [("", "units")],
        lambda rows, _: "".join(
            tag("td", _amount(row, counted), class_="n")
            for counted in EQUAL for row in rows.values()
        ),
    )
    row = next((row for key, row in units.means.items() if key[2] == part), None)
    over = many(row["n_needs"] if row else 0, "need")
    return table(
        f"What was returned, {esc(part)} slice: means over all {over}, those without an answer "
        "included", _head("Segmentation", groups), bodies,
        label=f"What was returned, {part} slice, {name}",
    )


def equal_amounts(units: UnitsRecord, part: str, counted: str, name: str) -> str:
    """Both measures and what was returned at every budget, whole units and cut short apart."""
    words = EQUAL[counted]
    return _budgets(
        units, part, f"At equal {words}", [count(a) for a in units.amounts(counted)], counted,
        [(f" · {how}", counted + kind) for kind, how in KINDS.items()], name,
    )


def matched(units: UnitsRecord, part: str, name: str) -> str:
    """The same where each need is given as many characters as its first sections have; "" where it
    was not judged."""
    amounts = units.amounts(MATCHED)
    return _budgets(
        units, part, "At the same amount of text, need by need",
        [f"text of {many(k, 'section')}" for k in amounts], "characters", [("", MATCHED)], name,
    ) if amounts else ""


def _budgets(
    units: UnitsRecord, part: str, caption: str, titles: Sequence[str], counted: str,
    bases: Sequence[tuple[str, str]], name: str,
) -> str:
    """titles: of the budgets; counted: what was returned is counted in; bases: as in `_bodies`."""
    bodies = _bodies(
        units, part, 3 * len(titles) + 1, bases,
        lambda rows, beside: "".join(
            "".join(
                number(figure(row[m] if row else None), _top(row[m] if row else None, beside(a, m)))
                for m in MEASURES
            ) + tag("td", _amount(row, counted), class_="n")
            for a, row in rows.items()
        ),
    )
    return table(
        f"{esc(caption)}, {esc(part)} slice {standing('exploratory')}: {esc(needs(units, part))}; "
        f"returned: mean {esc(EQUAL[counted])} over all needs",
        _head("Segmentation", [(title, ["sufficient", "covered", "returned"]) for title in titles]),
        bodies, label=f"{caption}, {part} slice, {name}", look="tight",
    )


def _amount(row: Row | None, counted: str) -> str:
    """A mean amount, with the number of lists that were over before the budget was full."""
    if row is None:
        return NONE
    text = esc(f"{row[counted]:,.1f}")
    return text + (f" <small>{count(row['ended'])} ended</small>" if row["ended"] else "")


Rows = dict[int, Row | None]
Beside = Callable[[int, str], Sequence[float | None]]


def _bodies(
    units: UnitsRecord, part: str, columns: int, bases: Sequence[tuple[str, str]],
    cells: Callable[[Rows, Beside], str],
) -> str:
    """Groups of rows: one for each retriever and basis.

    bases: (what follows a retriever's name, basis).
    cells: (amount -> row, (amount, column) -> that column of the group) -> HTML of a row's cells.
    """
    made = []
    for retriever in units.retrievers():
        for title, basis in bases:
            found: dict[str, Rows] = {
                name: {
                    amount: units.mean(retriever, name, part, basis, amount)
                    for amount in units.amounts(basis)
                } for name in units.segmentations()
            }

            def beside(
                amount: int, column: str, found: dict[str, Rows] = found
            ) -> list[float | None]:
                return [row[column] for rows in found.values() if (row := rows[amount])]

            made.append(titled(f"{retriever}{title}", columns, [
                line(named(units, name), cells(rows, beside)) for name, rows in found.items()
            ]))
    return "".join(made)


def causes(units: UnitsRecord, part: str, name: str) -> str:
    """Why needs were missed at the cutoff, for both measures; causes sum to the misses."""
    k = cutoff(units)
    groups = [(title, ["misses", *CAUSES]) for title in MEASURES.values()]

    def cells(rows: Rows, _: Beside) -> str:
        row = rows[k]
        if row is None or row["covered"] is None:
            return number(NONE) * len(groups) * (len(CAUSES) + 1)
        return "".join(
            number(count(round(row["n_answerable"] * (1 - row[measure]))), "strong")
            + "".join(number(count(row[f"{measure}_{cause}"])) for cause in CAUSES)
            for measure in MEASURES
        )

    return table(
        f"Misses at {many(k, 'unit')} by cause, {esc(part)} slice: {esc(needs(units, part))}",
        _head("Segmentation", groups),
        _bodies(units, part, len(groups) * (len(CAUSES) + 1) + 1, [("", "units")], cells),
        label=f"Causes of misses, {part} slice, {name}",
    )


def never(units: UnitsRecord, part: str) -> str:
    """How many needs no number of units can cover, by segmentation; "" where no need has an answer.

    The cause `boundary` depends on neither the cutoff nor the retriever.
    """
    found: dict[str, Row] = {}
    for (_, segmentation, slice_, basis, _), row in units.means.items():
        if (slice_, basis) == (part, "units") and row["covered"] is not None:
            found.setdefault(segmentation, row)
    if not found:
        return ""

    def told(measure: str) -> str:
        return listed([
            f"{count(row[f'{measure}_boundary'])} in {named(units, name)}"
            for name, row in found.items()
        ])

    asked = next(iter(found.values()))["n_answerable"]
    return (
        f"Whatever k and whatever the retriever, of {many(asked, 'need')} with an answer in the "
        f"{part} slice these can never be covered: {told('covered')}. No single unit holds a "
        f"bundle of these: {told('sufficient')}."
    )


LOST = ("units", "units truncated", "characters never seen", "anchor characters never seen")


def windows(units: UnitsRecord, name: str) -> str:
    """What each encoder never saw of the units."""
    head = tag("tr", tag("th", "Segmentation", scope="col") + "".join(
        tag("th", esc(title), scope="col", class_="n") for title in LOST
    ))
    bodies = "".join(
        titled(
            f"{embedder} · window of {count(told['window_tokens'])} tokens, special ones included, "
            "as params.yaml asks", len(LOST) + 1, [
                line(named(units, segmentation), "".join(
                    number(count(counts[what]), "flag" if what != LOST[0] and counts[what] else "")
                    for what in LOST
                )) for segmentation, counts in told["beyond_window"].items()
            ],
        )
        for embedder, told in units.windows.items()
    )
    return table(
        "What lies beyond the encoder's window", head, bodies, label=f"Encoder window, {name}"
    )
