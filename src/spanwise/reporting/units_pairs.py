"""Tables of the comparisons in the study of units: one segmentation or retriever minus another.

A slice never shares a table with another.
"""

from __future__ import annotations

from collections.abc import Sequence

from spanwise.params import Params
from spanwise.reporting.gather import DEVELOPMENT, Row, UnitsRecord
from spanwise.reporting.markup import (
    NONE,
    count,
    esc,
    interval,
    many,
    probability,
    signed,
    standing,
    tag,
)
from spanwise.reporting.tables import number, table
from spanwise.reporting.units_tables import KINDS, MEASURES, line, titled
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

BASES = {"units": "units", MATCHED: "characters, need by need"} | {
    f"{counted}{kind}": f"{words}, {how}"
    for counted, words in EQUAL.items() for kind, how in KINDS.items()
}
"""What is held equal, in words."""

TITLES = {**FAMILIES, CONNECTED: f"{FAMILIES['segmentation']}, connected documents as one cluster"}


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
            rows.append(line(" − ".join(names), cells))
        bodies.append(titled(
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


def in_view(units: UnitsRecord, params: Params, name: str, measure: str) -> str:
    """The comparisons of the development slice in one measure, at the cutoff and at the middle
    budgets."""
    return pairs(units, params, name, DEVELOPMENT, measure, compared(units),
                 f"{MEASURES[measure]}, {DEVELOPMENT} slice", counts=True)
