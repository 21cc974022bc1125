"""What the study of units says in plain words: what is held whole, which segmentation leads, and
how much of its lead is left where all return the same amount of text. All of it exploratory.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from spanwise.params import Params
from spanwise.reporting.gather import DEVELOPMENT, Row, UnitsRecord
from spanwise.reporting.markup import count, figure, interval, listed, many, signed
from spanwise.reporting.verdict import ALPHA, FEW_DOCUMENTS, ZERO, degenerate

CUTOFF = 3
"""Units that the words are about, where it is among the cutoffs."""

EQUAL = {"characters": "code points", "tokens": "tokens"}
"""What is held equal beside units, and what it is counted in."""

State = Literal["ahead", "behind", "undetermined", "absent"]
COUNTED = "not clear once all pairs are counted"


def cutoff(units: UnitsRecord) -> int:
    """The cutoff that words, causes and comparisons are about: 3, else the middle one."""
    found = units.amounts("units")
    return CUTOFF if CUTOFF in found else middle(found)


def middle(amounts: Sequence[int]) -> int:
    """The middle of a rising list, the lower of two: what three units return is no more than that.

    >>> middle([500, 1000, 2000, 4000])
    1000
    """
    return amounts[(len(amounts) - 1) // 2]


@dataclass(frozen=True, slots=True)
class Difference:
    """One arm minus another, as UNIT_COMPARISONS has it or the other way round.

    state: ahead or behind    the interval does not hold 0, and Holm's p is below .05
           undetermined       anything else that was estimated
           absent             nothing was compared
    why:   what makes it undetermined although the interval alone would not say so, or absent.
    """

    delta: float
    low: float | None
    high: float | None
    state: State
    why: str | None = None

    def __str__(self) -> str:
        text = f"{signed(self.delta)} {interval(self.low, self.high)}"
        return f"{text}, {COUNTED}" if self.why == COUNTED else text


def difference(
    units: UnitsRecord, params: Params, arms: tuple[str, str], basis: str, amount: int,
    measure: str = "covered", part: str = DEVELOPMENT,
) -> Difference:
    """arms: two of `retriever/segmentation`; the first minus the second."""
    a, b = arms
    for sign, key in ((1, (a, b)), (-1, (b, a))):
        row = units.comparisons.get((part, basis, amount, measure, *key))
        if row is not None:
            return of_row(row, family(units, row), params, sign)
    return Difference(0.0, None, None, "absent", "not compared")


def of_row(row: Row, size: int, params: Params, sign: int = 1) -> Difference:
    """Sort one comparison.

    size: pairs in its family, which Holm's correction spans; sign: -1 to turn it round.
    """
    if row["delta"] is None:
        return Difference(0.0, None, None, "absent", row["reason"] or "no reason was recorded")
    low, high = row["ci_low"], row["ci_high"]
    if sign < 0 and low is not None:
        low, high = -high, -low
    delta = sign * row["delta"]
    if (why := degenerate(row, None)) is not None:
        return Difference(delta, low, high, "undetermined", why)
    if low <= 0 <= high:
        return Difference(delta, low, high, "undetermined")
    # 0 of B draws is no zero but its bound.
    p = row["p_holm"] or min(1.0, size * 2 / params.inference.iterations)
    if row["p_holm"] is None or p >= ALPHA:
        return Difference(delta, low, high, "undetermined", COUNTED)
    return Difference(delta, low, high, "ahead" if delta > 0 else "behind")


def family(units: UnitsRecord, row: Row) -> int:
    """Pairs that the correction of a row spans: those of its retriever, or of its segmentation."""
    at, of = (row["slice"], row["basis"], row["amount"], row["measure"]), shared(row)
    return sum(
        other["family"] == row["family"] and shared(other) == of
        for key, other in units.comparisons.items() if key[:4] == at
    )


def shared(row: Row) -> str:
    """The retriever or the segmentation that both arms of a comparison have."""
    retriever, _, segmentation = row["a"].partition("/")
    return str(retriever if row["family"] == "segmentation" else segmentation)


def whole(units: UnitsRecord) -> str:
    """Whether what was retrieved holds the evidence whole: the range over all that was compared."""
    k = cutoff(units)
    rows = [
        row for key, row in units.means.items()
        if key[2:] == (DEVELOPMENT, "units", k) and row["covered"] is not None
    ]
    if not rows:
        return "No need has an answer, so there is nothing to hold."
    rows.sort(key=lambda row: float(row["covered"]))
    worst, best = rows[0], rows[-1]
    low, high = worst["covered"], best["covered"]
    alone = [row["sufficient"] for row in rows]
    if high <= ZERO:
        begin = "For no need"
    elif low >= 1 - ZERO:
        begin = "For every need"
    elif high < 0.5:
        begin = "For fewer than half of the needs"
    elif low >= 0.5:
        begin = "For half of the needs or more"
    else:
        begin = "It depends on how the text is cut and searched"
    return (
        f"{begin}: of {many(best['n_answerable'], 'need')} with an answer, the first "
        f"{many(k, 'unit')} together hold the evidence whole for a share of {figure(low)} "
        f"({_arm(worst)}) to {figure(high)} ({_arm(best)}), and one of them alone for "
        f"{figure(min(alone))} to {figure(max(alone))}."
    )


def _arm(row: Row) -> str:
    return f"{row['retriever']}, {row['segmentation']}"


@dataclass(frozen=True, slots=True)
class Told:
    """One retriever: which segmentation leads, what is left of it, and what that rests on."""

    answer: str
    left: Sequence[str]
    figures: str


def told(units: UnitsRecord, params: Params, retriever: str) -> Told | None:
    """The verdict of one retriever on the development slice, or None where it has no means."""
    k = cutoff(units)
    found = [
        (row["covered"], name) for name in units.segmentations()
        if (row := units.mean(retriever, name, DEVELOPMENT, "units", k))
        and row["covered"] is not None
    ]
    if not found:
        return None
    found.sort(key=lambda item: -item[0])  # stable: level ones stay in the table's order
    (top, leader), others = found[0], found[1:]
    level = [name for mean, name in others if top - mean <= ZERO]
    rest = [f"{name} {figure(mean)}" for mean, name in others if name not in level]
    at = f"At {many(k, 'unit')}"
    if level:
        answer = f"{at} {listed([leader, *level])} come out level in bundle coverage, {figure(top)}"
        answer += f"; {', '.join(rest)}." if rest else "."
    else:
        answer = f"{at} {leader} come out ahead in bundle coverage, {figure(top)}"
        answer += f"; {', '.join(rest)}." if rest else "."

    def pairs(basis: str, amount: int) -> dict[str, Difference]:
        return {
            name: difference(
                units, params, (f"{retriever}/{leader}", f"{retriever}/{name}"), basis, amount
            ) for _, name in others
        }

    before = pairs("units", k)
    answer += "".join(f" {text}" for text in _clear(before, level))
    left = []
    sums: dict[str, str] = {}
    for basis, counted in EQUAL.items():
        for kind, how in (("-cut", "the last unit cut short"), ("", "whole units alone")):
            amounts = units.amounts(basis + kind)
            if not amounts:
                continue
            amount = middle(amounts)
            after = pairs(basis + kind, amount)
            clauses = "; ".join(_left(leader, n, before[n], its) for n, its in after.items())
            left.append(f"{count(amount)} {counted}, {how}: {clauses}.")
            if kind:  # only then all return the same amount
                sums[basis] = _sum(leader, before, after)
    for text in dict.fromkeys(sums.values()):
        bases = [f"equal {basis}" for basis, its in sums.items() if its == text]
        answer += f" At {listed(bases)} {text}."
    return Told(answer, left, _figures(units, retriever, leader, before))


def _clear(before: dict[str, Difference], level: Sequence[str]) -> list[str]:
    """Which leads are more than chance alone would give, and why others are undetermined."""
    ahead = [name for name, its in before.items() if its.state == "ahead"]
    unclear = [
        name for name, its in before.items()
        if its.state == "undetermined" and name not in level
    ]
    made = []
    if ahead:
        text = f"The lead over {listed(ahead)} is more than chance alone would give"
        made.append(text + (f"; over {listed(unclear)} it is undetermined." if unclear else "."))
    elif unclear:
        made.append(f"Undetermined: chance alone could give the lead over {listed(unclear)}.")
    made += list(dict.fromkeys(
        its.why for its in before.values()
        if its.state == "undetermined" and its.why and its.why != COUNTED
    ))
    made += [f"{name}: {its.why}." for name, its in before.items() if its.state == "absent"]
    return made


def _sum(leader: str, before: dict[str, Difference], after: dict[str, Difference]) -> str:
    """What became of the lead where all return the same amount, in as few words as it takes."""
    led = [name for name, its in before.items() if its.state == "ahead"]
    groups: dict[str, list[str]] = {}
    for name in led or before:
        its = after[name]
        if its.state == "absent":
            says = "nothing was compared"
        elif led:
            kept = its.delta >= before[name].delta - ZERO
            says = {
                "ahead": "all of it is left" if kept else "part of it is left",
                "behind": "it turns round",
                "undetermined": "it vanishes, and what is left is undetermined"
                if _vanishes(before[name], its) else "whether any of it is left is undetermined",
            }[its.state]
        else:
            says = {
                "ahead": f"{leader} lead", "behind": f"{leader} fall behind",
                "undetermined": "it is undetermined too",
            }[its.state]
        groups.setdefault(says, []).append(name)
    if len(groups) == 1:
        return next(iter(groups))
    how = "over" if led else "against"
    return "; ".join(f"{how} {listed(names)} {says}" for says, names in groups.items())


def _vanishes(before: Difference, after: Difference) -> bool:
    """Whether the interval holds 0 and no longer the lead there was: else it says too little."""
    return after.high is not None and after.high < before.delta


def _left(leader: str, other: str, before: Difference, after: Difference) -> str:
    """What became of a lead, for whatever signs."""
    if after.state == "absent":
        return f"over {other}, {after.why}"
    if before.state != "ahead":
        return {
            "ahead": f"{leader} lead {other}, {after}",
            "behind": f"{other} lead {leader}, {leader} − {other} = {after}",
            "undetermined": f"against {other} undetermined, {after}",
        }[after.state]
    if after.state == "behind":
        return f"the lead over {other} turns round, {after}"
    if after.state == "undetermined":
        was = f"{after} of {signed(before.delta)}"
        if _vanishes(before, after):
            return f"the lead over {other} vanishes, {was}: undetermined"
        return f"whether any of the lead over {other} is left is undetermined, {was}"
    if after.delta < before.delta - ZERO:
        return f"over {other}, {after} is left of {signed(before.delta)}"
    return f"the lead over {other} stays, {after} after {signed(before.delta)}"


def _figures(
    units: UnitsRecord, retriever: str, leader: str, before: dict[str, Difference]
) -> str:
    parts = [f"{leader} − {name} = {its}" for name, its in before.items() if its.state != "absent"]
    row = next(
        (row for key, row in units.comparisons.items()
         if key[0] == DEVELOPMENT and key[4].startswith(f"{retriever}/")), None,
    )
    if row is not None:
        documents = many(row["n_documents"], "document")
        parts.append(f"{many(row['n_questions'], 'need')} in {documents}")
        if row["n_documents"] < FEW_DOCUMENTS:
            parts.append("the intervals rest on few documents")
    return "; ".join(parts)
