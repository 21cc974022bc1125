"""Tables of the study of units: equal units, what was returned, equal amounts, causes, windows,
comparisons. A slice never shares a table with another.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from spanwise.params import Params
from spanwise.reporting.gather import DEVELOPMENT, Row, UnitsRecord
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
from spanwise.reporting.tables import number, table
from spanwise.reporting.units_verdict import EQUAL, cutoff, family, middle, of_row, shared

MEASURES = {"sufficient": "Single-unit sufficiency", "covered": "Bundle coverage"}
CAUSES = ("boundary", "truncation", "ranking")
KINDS = {"": "whole units", "-cut": "last unit cut short"}
BASES = {"units": "units"} | {
    f"{counted}{kind}": f"{words}, {how}"
    for counted, words in EQUAL.items() for kind, how in KINDS.items()
}
"""What is held equal, in words."""

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


def _group(title: str, columns: int, rows: Sequence[str]) -> str:
    """Rows under a heading of their own, e.g. a retriever's."""
    head = tag("th", esc(title), scope="rowgroup", colspan=str(columns))
    return tag("tbody", tag("tr", head, class_="cell") + "".join(rows))


def _line(name: str, cells: str) -> str:
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
    amounts = units.amounts(counted)
    words = EQUAL[counted]
    groups = [(count(a), ["sufficient", "covered", "returned"]) for a in amounts]
    bodies = _bodies(
        units, part, 3 * len(amounts) + 1, [(f" · {how}", counted + kind)
                                            for kind, how in KINDS.items()],
        lambda rows, beside: "".join(
            "".join(
                number(figure(row[m] if row else None), _top(row[m] if row else None, beside(a, m)))
                for m in MEASURES
            ) + tag("td", _amount(row, counted), class_="n")
            for a, row in rows.items()
        ),
    )
    return table(
        f"At equal {esc(words)}, {esc(part)} slice {standing('exploratory')}: "
        f"{esc(needs(units, part))}; returned: mean {esc(words)} over all needs",
        _head("Segmentation", groups), bodies, label=f"Equal {words}, {part} slice, {name}",
        look="tight",
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

            made.append(_group(f"{retriever}{title}", columns, [
                _line(name, cells(rows, beside)) for name, rows in found.items()
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


LOST = ("units", "units truncated", "characters never seen", "anchor characters never seen")


def windows(units: UnitsRecord, name: str) -> str:
    """What each encoder never saw of the units."""
    head = tag("tr", tag("th", "Segmentation", scope="col") + "".join(
        tag("th", esc(title), scope="col", class_="n") for title in LOST
    ))
    bodies = "".join(
        _group(f"{embedder} · window of {count(told['window_tokens'])} tokens", len(LOST) + 1, [
            _line(segmentation, "".join(
                number(count(counts[what]), "flag" if what != LOST[0] and counts[what] else "")
                for what in LOST
            )) for segmentation, counts in told["beyond_window"].items()
        ])
        for embedder, told in units.windows.items()
    )
    return table(
        "What lies beyond the encoder's window", head, bodies, label=f"Encoder window, {name}"
    )


FAMILIES = {"segmentation": "one segmentation minus another",
            "retriever": "one retriever minus another"}


def pairs(
    units: UnitsRecord, params: Params, name: str, part: str, measure: str,
    columns: Sequence[tuple[str, int]], caption: str, counts: bool = False,
) -> str:
    """Comparisons of one slice and measure, a row for each pair; "" where there are none.

    columns: (basis, amount); counts: needs, documents and needs left out at the end of each row.
    """
    found: dict[tuple[str, str], dict[tuple[str, str], dict[tuple[str, int], Row]]] = {}
    for (slice_, basis, amount, which, a, b), row in units.comparisons.items():
        if (slice_, which) == (part, measure) and (basis, amount) in columns:
            group = found.setdefault((row["family"], shared(row)), {})
            group.setdefault((a, b), {})[basis, amount] = row
    tail = ["Needs", "Documents", "Excluded"] if counts else []
    order = [*FAMILIES, *units.retrievers(), *units.segmentations()]
    bodies = []
    for kind, of in sorted(found, key=lambda its: [order.index(name) for name in its]):
        side = 1 if kind == "segmentation" else 0
        rows = []
        for (a, b), its in found[kind, of].items():
            names = [arm.partition("/")[::2][side] for arm in (a, b)]
            cells = "".join(_pair(units, params, its.get(column)) for column in columns)
            if counts:
                row = next(iter(its.values()))
                cells += "".join(
                    number(count(row[key])) for key in ("n_questions", "n_documents", "excluded")
                )
            rows.append(_line(" − ".join(names), cells))
        bodies.append(_group(
            f"{of} · {FAMILIES[kind]}", len(columns) + len(tail) + 1, rows
        ))
    heads = [f"{count(amount)} {BASES[basis]}" for basis, amount in columns]
    head = tag("tr", "".join(
        tag("th", esc(title), scope="col", class_="n" if i else None)
        for i, title in enumerate(["Pair", *heads, *tail])
    ))
    return table(
        f"{esc(caption)} {standing('exploratory')}", head, "".join(bodies),
        label=f"{caption}, {name}", look="pairs",
    ) if bodies else ""


def _pair(units: UnitsRecord, params: Params, row: Row | None) -> str:
    if row is None:
        return number(NONE)
    if row["delta"] is None:
        return tag("td", esc(row["reason"] or "no reason was recorded"), class_="n absent")
    size = family(units, row)
    p = probability(row["p_holm"], params.inference.iterations, size)
    clear = of_row(row, size, params).state in ("ahead", "behind")
    beside = (interval(row["ci_low"], row["ci_high"]), f"Holm p {p}")
    return tag("td", esc(signed(row["delta"])) + "".join(tag("small", esc(t)) for t in beside),
               class_="n top" if clear else "n")


def compared(units: UnitsRecord) -> list[tuple[str, int]]:
    """(basis, amount) of the comparisons that stand in view: the cutoff, and middle budgets."""
    found = [("units", cutoff(units))]
    return found + [
        (basis, middle(units.amounts(basis))) for basis in list(BASES)[1:] if units.amounts(basis)
    ]


def all_pairs(units: UnitsRecord, params: Params, name: str) -> str:
    """Every comparison there is: slices apart, one table for each measure and basis."""
    return "".join(
        pairs(
            units, params, name, part, measure, [(basis, a) for a in units.amounts(basis)],
            f"{title} at equal {words}, {part} slice",
        )
        for part in units.slices() for measure, title in MEASURES.items()
        for basis, words in BASES.items()
    )


def in_view(units: UnitsRecord, params: Params, name: str) -> str:
    """The comparisons of the development slice at the cutoff and at the middle budgets; what the
    words are about comes first."""
    return "".join(
        pairs(units, params, name, DEVELOPMENT, measure, compared(units),
              f"{MEASURES[measure]}, {DEVELOPMENT} slice", counts=True)
        for measure in ("covered", "sufficient")
    )
