"""What the study of units says in plain words: what is held whole, which segmentation covers most,
and how the others differ from it, at equal units and at the same amount of text. All of it
exploratory.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from spanwise.params import Params
from spanwise.reporting.gather import DEVELOPMENT, Row, UnitsRecord
from spanwise.reporting.judgement import ZERO, degenerate
from spanwise.reporting.markup import count, figure, interval, listed, many, signed
from spanwise.statistics.linearised import FEW
from spanwise.statistics.power import ALPHA

CUTOFF = 3
"""Units that the words are about, where it is among the cutoffs."""

EQUAL = {"characters": "code points", "tokens": "tokens"}
"""What a budget is the same in for every need, and what it is counted in."""

MATCHED = "matched"
"""Basis where a need is given as many characters as its first sections have, by their number."""

FAMILIES = {"segmentation": "one segmentation minus another",
            "retriever": "one retriever minus another"}
"""Comparisons that the words and tables are about, and what each subtracts."""

CONNECTED = "connected"
"""Those of segmentations once more, documents that share a need's anchors as one cluster."""

Correction = tuple[str, str, int, str, str, str]
State = Literal["ahead", "behind", "undetermined", "absent"]
COUNTED = "not clear once all pairs are counted"


def cutoff(units: UnitsRecord) -> int:
    """The cutoff that words, causes and comparisons are about: 3, else the middle one."""
    found = units.amounts("units")
    return CUTOFF if CUTOFF in found else middle(found)


def middle(amounts: Sequence[int]) -> int:
    """The middle of a rising list, the lower of two.

    >>> middle([500, 1000, 2000, 4000])
    1000
    """
    return amounts[(len(amounts) - 1) // 2]


def named(units: UnitsRecord, segmentation: str) -> str:
    """A segmentation as a reader meets it: windows with their size, e.g. `48-token windows`."""
    sizes = units.about.get("cut_by", {}).get("windows")
    if segmentation != "windows" or not sizes:
        return segmentation
    return f"{count(sizes['size_tokens'])}-token {segmentation}"


@dataclass(frozen=True, slots=True)
class Difference:
    """One arm minus another, as UNIT_COMPARISONS has it or the other way round.

    state: ahead or behind    the interval does not hold 0, and Holm's p is below .05
           undetermined       anything else that was estimated
           absent             nothing was compared
    why:   what makes it undetermined although the interval alone would not say so, or absent.
    size:  pairs that Holm's correction spans.
    """

    delta: float
    low: float | None
    high: float | None
    state: State
    why: str | None = None
    size: int = 0

    def __str__(self) -> str:
        if self.low is None:
            return signed(self.delta)
        return f"{signed(self.delta)} {interval(self.low, self.high)}"


def difference(
    units: UnitsRecord, params: Params, arms: tuple[str, str], basis: str, amount: int,
    measure: str = "covered", part: str = DEVELOPMENT,
) -> Difference:
    """arms: two of `retriever/segmentation`; the first minus the second."""
    at = (part, basis, amount, measure)
    for row in units.comparisons.values():
        if (row["slice"], row["basis"], row["amount"], row["measure"]) != at:
            continue
        if row["family"] in FAMILIES and {row["a"], row["b"]} == set(arms):
            sign = 1 if row["a"] == arms[0] else -1
            return of_row(row, corrections(units)[correction(row)], params, sign)
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

    def found(state: State, why: str | None = None) -> Difference:
        return Difference(delta, low, high, state, why, size)

    if (why := degenerate(row)) is not None:
        return found("undetermined", why)
    if low <= 0 <= high:
        return found("undetermined")
    # 0 of B draws is no zero but its bound.
    p = row["p_holm"] or min(1.0, size * 2 / params.inference.iterations)
    if row["p_holm"] is None or p >= ALPHA:
        return found("undetermined", COUNTED)
    return found("ahead" if delta > 0 else "behind")


def corrections(units: UnitsRecord) -> Counter[Correction]:
    """How many pairs each of Holm's corrections spans."""
    return Counter(correction(row) for row in units.comparisons.values())


def correction(row: Row) -> Correction:
    """What is one for all pairs that are corrected together: slice, basis, amount, measure, family
    and the retriever, or the segmentation."""
    return (
        row["slice"], row["basis"], row["amount"], row["measure"], row["family"], shared(row)
    )


def shared(row: Row) -> str:
    """The retriever or the segmentation that both arms of a comparison have."""
    retriever, _, segmentation = row["a"].partition("/")
    return str(segmentation if row["family"] == "retriever" else retriever)


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
        f"({_arm(units, worst)}) to {figure(high)} ({_arm(units, best)}), and one of them alone "
        f"for {figure(min(alone))} to {figure(max(alone))}."
    )


def _arm(units: UnitsRecord, row: Row) -> str:
    return f"{row['retriever']}, {named(units, row['segmentation'])}"


@dataclass(frozen=True, slots=True)
class Told:
    """One retriever in words.

    answer: which segmentation covers most at equal units, and by how much.
    equal:  the same difference where every need is given as much text; None if nothing was.
    alone:  differences at budgets that are the same for all needs, each by itself.
    rests:  what the intervals rest on.
    """

    answer: str
    equal: str | None
    alone: Sequence[str]
    rests: str


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
    first = named(units, leader)
    level = [named(units, name) for mean, name in others if top - mean <= ZERO]
    rest = [f"{named(units, name)} {figure(mean)}" for mean, name in others if top - mean > ZERO]

    def pairs(basis: str, amount: int) -> dict[str, Difference]:
        return {
            named(units, name): difference(
                units, params, (f"{retriever}/{leader}", f"{retriever}/{name}"), basis, amount
            ) for _, name in others
        }

    answer = f"At {many(k, 'unit')} {listed([first, *level])} come out "
    answer += f"{'level' if level else 'ahead'} in bundle coverage, {figure(top)}"
    answer += f"; {', '.join(rest)}." if rest else "."
    # Of level ones the first stands for all, and is named where it is compared.
    of = f" of {first}" if level else ""
    said = " ".join(_sentences(pairs("units", k), _clear, of))
    answer += f" {said[0].upper()}{said[1:]}"
    equal = None
    if k in units.amounts(MATCHED):
        amount = f"as many characters as its first {many(k, 'section')}"
        said = " ".join(_sentences(pairs(MATCHED, k), lambda its: (
            f"{first} cover {'more' if its.state == 'ahead' else 'less'}"
        ), of))
        equal = (
            f"At the same amount of text, need by need ({amount} {'has' if k == 1 else 'have'}), "
            f"{said}"
        )
    alone = []
    for basis, counted in EQUAL.items():
        if amounts := units.amounts(f"{basis}-cut"):
            at = middle(amounts)
            its = "; ".join(
                _alone(first, name, it) for name, it in pairs(f"{basis}-cut", at).items()
            )
            alone.append(f"{count(at)} {counted}, the last unit cut short: {its}.")
    return Told(answer, equal, alone, _rests(units, retriever))


def _clear(its: Difference) -> str:
    return (
        "the interval does not hold 0 after Holm's correction over this retriever's "
        f"{many(its.size, 'pair')}"
    )


def _sentences(
    found: Mapping[str, Difference], clear: Callable[[Difference], str], of: str
) -> Iterator[str]:
    """The differences, those of one word together; why others say nothing.

    found: by the name of what is subtracted; clear: what is said of one that is not undetermined;
    of: whose differences they are, where that has to be said.
    """
    groups: dict[str, list[str]] = {}
    for name, its in found.items():
        if its.state != "absent":
            word = clear(its) if its.state != "undetermined" else "undetermined"
            word += f", {COUNTED}" if its.why == COUNTED else ""
            groups.setdefault(word, []).append(f"{its} to {name}")
    if not groups:
        yield "nothing was compared."
        return
    yield f"the difference{of} is " + "; ".join(
        f"{listed(figures)}: {word}" for word, figures in groups.items()
    ) + "."
    reasons: dict[str, list[str]] = {}
    for name, its in found.items():
        if its.state == "undetermined" and its.why and its.why != COUNTED:
            reasons.setdefault(its.why, []).append(name)
    for why, names in reasons.items():  # of all pairs, or of those that it names
        yield why if len(names) == len(found) else f"To {listed(names)}: {why[0].lower()}{why[1:]}"
    yield from (f"{name}: {its.why}." for name, its in found.items() if its.state == "absent")


def _alone(first: str, other: str, its: Difference) -> str:
    if its.state == "absent":
        return f"{first} − {other}, {its.why}"
    state = ", undetermined" if its.state == "undetermined" else ""
    return f"{first} − {other} {its}{state}"


def _rests(units: UnitsRecord, retriever: str) -> str:
    row = next(
        (row for row in units.comparisons.values()
         if row["slice"] == DEVELOPMENT and row["family"] in FAMILIES
         and row["a"].startswith(f"{retriever}/")), None,
    )
    if row is None:
        return ""
    text = f"{many(row['n_questions'], 'need')} in {many(row['n_documents'], 'document')}"
    few = f"; with fewer than {FEW} documents the intervals are Student's" if (
        1 < row["n_documents"] < FEW
    ) else ""
    return f"{text}{few}"
