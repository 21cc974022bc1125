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
    listed,
    many,
    probability,
    signed,
    standing,
    tag,
)
from spanwise.reporting.tables import number, table
from spanwise.reporting.units_verdict import (
    CONNECTED,
    EQUAL,
    FAMILIES,
    MATCHED,
    correction,
    corrections,
    cutoff,
    middle,
    named,
    of_row,
    shared,
)

MEASURES = {"sufficient": "Single-unit sufficiency", "covered": "Bundle coverage"}
CAUSES = ("boundary", "cutoff", "truncation", "ranking")
KINDS = {"": "whole units", "-cut": "last unit cut short"}
BASES = {"units": "units", MATCHED: "characters, need by need"} | {
    f"{counted}{kind}": f"{words}, {how}"
    for counted, words in EQUAL.items() for kind, how in KINDS.items()
}
"""What is held equal, in words."""

TITLES = {**FAMILIES, CONNECTED: f"{FAMILIES['segmentation']}, connected documents as one cluster"}

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

            made.append(_group(f"{retriever}{title}", columns, [
                _line(named(units, name), cells(rows, beside)) for name, rows in found.items()
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
        _group(
            f"{embedder} · window of {count(told['window_tokens'])} tokens, special ones included, "
            "as params.yaml asks", len(LOST) + 1, [
                _line(named(units, segmentation), "".join(
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


def pairs(
    units: UnitsRecord, params: Params, name: str, part: str, measure: str,
    columns: Sequence[tuple[str, int]], caption: str, counts: bool = False,
    families: Sequence[str] = tuple(FAMILIES),
) -> str:
    """Comparisons of one slice and measure, a row for each pair; "" where there are none.

    columns: (basis, amount); counts: needs, documents (clusters of them, where connected ones are
    one) and needs left out at the end of each row.
    """
    found: dict[tuple[str, str], dict[tuple[str, str], dict[tuple[str, int], Row]]] = {}
    for row in units.comparisons.values():
        at = (row["basis"], row["amount"])
        if (row["slice"], row["measure"]) == (part, measure) and (
            row["family"] in families and at in columns
        ):
            group = found.setdefault((row["family"], shared(row)), {})
            group.setdefault((row["a"], row["b"]), {})[at] = row
    documents = "Clusters" if CONNECTED in families else "Documents"
    tail = ["Needs", documents, "Excluded"] if counts else []
    order = [*families, *units.retrievers(), *units.segmentations()]
    sizes = corrections(units)
    bodies = []
    for kind, of in sorted(found, key=lambda its: [order.index(name) for name in its]):
        side = 0 if kind == "retriever" else 1
        rows = []
        for (a, b), its in found[kind, of].items():
            names = [named(units, arm.partition("/")[::2][side]) for arm in (a, b)]
            cells = "".join(
                _pair(one, sizes[correction(one)], params) if (one := its.get(column))
                else number(NONE) for column in columns
            )
            if counts:
                row = next(iter(its.values()))
                cells += "".join(
                    number(count(row[key])) for key in ("n_questions", "n_documents", "excluded")
                )
            rows.append(_line(" − ".join(names), cells))
        bodies.append(_group(
            f"{named(units, of)} · {TITLES[kind]}", len(columns) + len(tail) + 1, rows
        ))
    head = tag("tr", "".join(
        tag("th", esc(title), scope="col", class_="n" if i else None)
        for i, title in enumerate(["Pair", *(_column(*column) for column in columns), *tail])
    ))
    return table(
        f"{esc(caption)} {standing('exploratory')}", head, "".join(bodies),
        label=f"{caption}, {name}", look="pairs",
    ) if bodies else ""


def _column(basis: str, amount: int) -> str:
    """What two arms of a comparison are given."""
    if basis == "units":
        return many(amount, "unit")
    if basis == MATCHED:
        return f"characters of {many(amount, 'section')}, need by need"
    return f"{count(amount)} {BASES[basis]}"


def _pair(row: Row, size: int, params: Params) -> str:
    """size: pairs that the row's correction spans."""
    if row["delta"] is None:
        return tag("td", esc(row["reason"] or "no reason was recorded"), class_="n absent")
    p = probability(row["p_holm"], params.inference.iterations, size)
    clear = of_row(row, size, params).state in ("ahead", "behind")
    beside = (interval(row["ci_low"], row["ci_high"]), f"Holm p {p}")
    return tag("td", esc(signed(row["delta"])) + "".join(tag("small", esc(t)) for t in beside),
               class_="n top" if clear else "n")


def compared(units: UnitsRecord) -> list[tuple[str, int]]:
    """(basis, amount) of the comparisons that stand in view: the cutoff, in units and in sections'
    characters, and middle budgets."""
    k = cutoff(units)
    found = [(basis, k) for basis in ("units", MATCHED) if k in units.amounts(basis)]
    return found + [
        (basis, middle(units.amounts(basis))) for basis in list(BASES)[2:] if units.amounts(basis)
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


def connected(units: UnitsRecord, params: Params, name: str) -> str:
    """The segmentations once more at the cutoff, connected documents as one cluster; "" where no
    need's anchors connect any."""
    k = cutoff(units)
    return "".join(
        pairs(
            units, params, name, DEVELOPMENT, measure, [("units", k), (MATCHED, k)],
            f"Sensitivity: {MEASURES[measure][0].lower()}{MEASURES[measure][1:]}, {DEVELOPMENT} "
            "slice, documents that share a need's anchors as one cluster", True, [CONNECTED],
        )
        for measure in ("covered", "sufficient")
    )


def in_view(units: UnitsRecord, params: Params, name: str) -> str:
    """The comparisons of the development slice at the cutoff and at the middle budgets; what the
    words are about comes first."""
    return "".join(
        pairs(units, params, name, DEVELOPMENT, measure, compared(units),
              f"{MEASURES[measure]}, {DEVELOPMENT} slice", counts=True)
        for measure in ("covered", "sufficient")
    )
