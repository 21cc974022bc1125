"""What may be said of each contrast: the rules, without the words."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal

from spanwise.params import Params
from spanwise.reporting.gather import Row
from spanwise.reporting.markup import signed
from spanwise.statistics.linearised import Linearised
from spanwise.statistics.power import ALPHA

DETECTABLE = 2.497705 + 0.841621
"""Standard errors that an effect must measure to be found at 1.25% (two-sided, the first step of
Holm's correction over four) four times in five."""
ZERO = 1e-12
"""What rounding alone may leave of a spread."""

State = Literal["difference", "both", "equivalent", "undetermined", "absent"]


def worded(state: State, underpowered: bool) -> str:
    """A judgement in a word or two: the same ones in sentences, badges, tables and files.

    underpowered: what is undetermined is called so where too little was asked to find the margin.
    """
    if state == "both":
        return "a difference, within the margin"
    return "underpowered" if state == "undetermined" and underpowered else state


@dataclass(frozen=True, slots=True)
class Judgement:
    """What may be said of one contrast in one cell.

    state:        see `judge`.
    underpowered: too few questions or documents to find an effect of the registered margin.
    detectable:   smallest effect found four times in five at these questions and Holm's first step,
                  or None.
    needed:       (questions, documents) that the margin would take, with as many questions a
                  document, or None.
    reason:       why the figures cannot show what they seem to, as a sentence, or None.
    """

    state: State
    underpowered: bool
    detectable: float | None
    needed: tuple[int, int] | None = None
    reason: str | None = None

    @property
    def words(self) -> str:
        """The state in a word or two."""
        return worded(self.state, self.underpowered)


def judged(row: Row, params: Params) -> bool:
    """Whether a row is one that `judge` is for: a contrast or a step of the primary measure.

    The margin is fixed for that measure alone; a slope for each level has no margin, and clusters
    are a check on an interval.
    """
    return row["family"] in ("contrast", "step") and row["measure"] == params.primary.measure


def degenerate(row: Row) -> str | None:
    """Why an estimated contrast can show neither a difference nor equivalence, or None.

    Where nothing varies, the interval has no width: it lies within any margin, or beside zero,
    whatever a further document would say. Such an interval is no evidence.
    """
    if row["n_documents"] < 2 or row["ci_low"] is None:
        return "All questions are about one document, so no interval can be given."
    # The study of units keeps no error of its own.
    width = row["ci_high"] - row["ci_low"] if row.get("se") is None else row["se"]
    still = width <= ZERO
    if row["dz"] is not None and not still:
        return None
    if row["n_questions"] < 2:
        return "There is one question only, so nothing varies."
    if row["dz"] is not None:
        return (
            "Every document comes out with the same difference, so nothing says how another would."
        )
    if abs(row["delta"]) > ZERO:
        return (
            f"Every question differs by the same {signed(row['delta'])}, so nothing varies that "
            "could give an interval."
        )
    text = "Every question scores the same under both"
    if row["mean_a"] >= 1 - ZERO:
        return f"{text}, at the ceiling: these questions leave no room for a difference."
    if abs(row["mean_a"]) <= ZERO:
        return f"{text}, at zero: neither finds any of the evidence."
    return f"{text}, so nothing varies that could show a difference or its absence."


def judge(row: Row, check: Row | None, params: Params) -> Judgement:
    """Sort one contrast.

    row:     of the CONTRASTS table; check: of CHECKS, None where there is none (other measures).
    returns: difference    Holm's p (the plain one outside the family) below .05; a bootstrap's p of
                           0 counts as its bound, 2 / draws, times the family's size under Holm
             equivalent    the 90% interval lies within (-margin, margin), and nothing is known
                           of such data by which it lies there too often (`equivalence_unsure`)
             both          a difference smaller than anyone should care for
             undetermined  neither; and underpowered if an effect as large as the margin would be
                           missed more than once in five times; also whatever is `degenerate`
             absent        a condition could not run, or no question was answered under both
    """
    if row["delta"] is None:
        return Judgement("absent", False, None)
    # A slope has no dz and no arms: what is said of paired differences does not hold of it.
    reason = None if row["family"] == "dose" else degenerate(row)
    if reason is not None:
        return Judgement("undetermined", False, None, reason=reason)
    within = _within(row["ci90_low"], row["ci90_high"], params)
    unsure = check is not None and check["equivalence_unsure"]
    state = _state(_least(row, params), within and not unsure)
    found, needed = _detectable(row, check)
    if state != "undetermined":
        return Judgement(state, False, found, needed)
    if within and check is not None:
        cautions = "; ".join(check["cautions"]) or "it is known to miss in such data"
        reason = f"The 90% interval lies within the margin, but {cautions}."
    return Judgement(state, _underpowered(found, params), found, needed, reason)


def _underpowered(detectable: float | None, params: Params) -> bool:
    return detectable is None or detectable > params.inference.margin


def _within(low: float | None, high: float | None, params: Params) -> bool:
    margin = params.inference.margin
    return low is not None and high is not None and -margin < low and high < margin


def _state(p: float | None, same: bool) -> State:
    """p: of Holm's; same: equivalent."""
    if p is not None and p < ALPHA:
        return "both" if same else "difference"
    return "equivalent" if same else "undetermined"


@dataclass(frozen=True, slots=True)
class Otherwise:
    """A verdict that another interval or test would give.

    by: which one; words: what the verdict would be called; p: Holm's by it, None where p is not
    what changes the verdict; ci90: its 90% interval, None where that is not; least: what p cannot
    go below, where that is no lower than 5%.
    """

    by: str
    words: str
    p: float | None
    ci90: tuple[float, float] | None
    least: float | None = None


def otherwise(row: Row, check: Row | None, params: Params) -> list[Otherwise]:
    """By which intervals and tests, each under the same Holm correction, a contrast's verdict would
    be another one: Student's interval where percentiles are of record, and sign flips.

    Below FEW documents percentiles are known to be too narrow and nothing is held against them.
    """
    decides = _least(row, params)
    if check is None or decides is None or not judged(row, params) or degenerate(row) is not None:
        return []
    sure = not check["equivalence_unsure"]
    same = sure and _within(row["ci90_low"], row["ci90_high"], params)
    others: list[tuple[str, str, tuple[float, float] | None]] = [
        ("sign flips", "flip_p_holm", None)]
    if row["interval"] == "percentile" and row["se"]:
        line = Linearised(row["delta"], row["se"], row["n_documents"] - 1, None)
        others.insert(0, ("Student's interval", "linear_p_holm", line.interval(0.90)))
    found = []
    underpowered = _underpowered(_detectable(row, check)[0], params)
    for by, column, ci90 in others:
        p = check[column]
        if p is None:
            continue
        alike = same if ci90 is None else sure and _within(*ci90, params)
        if (state := _state(p, alike)) != _state(decides, same):
            crosses = (p < ALPHA) != (decides < ALPHA)
            # Of all 2^G patterns two are as extreme as the most extreme one.
            least = family_size(row, params) * 2.0 ** (1 - row["n_documents"])
            found.append(Otherwise(
                by, worded(state, underpowered), p if crosses else None,
                ci90 if alike != same else None,
                min(1.0, least) if ci90 is None and least >= ALPHA else None,
            ))
    return found


def family_size(row: Row, params: Params) -> int:
    """How many Holm's correction of a row's family counts."""
    return len(params.steps if row["family"] == "step" else params.contrasts)


def _detectable(
    row: Row, check: Row | None
) -> tuple[float | None, tuple[int, int] | None]:
    """What is found four times in five, and the questions and documents that the margin would take,
    to two significant digits: the spread that they rest on is itself an estimate."""
    if check is None:
        return (None if row["se"] is None else DETECTABLE * row["se"]), None
    if check["questions_needed"] is None:
        return check["detectable"], None
    needed = _about(check["questions_needed"]), _about(check["documents_needed"])
    return check["detectable"], needed


def _about(size: int) -> int:
    step = int(10 ** max(0, len(str(size)) - 2))
    return math.ceil(size / step) * step


def _least(row: Row, params: Params) -> float | None:
    """The p that decides; 0 of B draws is no zero but its bound."""
    bound = 2 / params.inference.iterations
    if row["p_holm"] is None:
        return None if row["p"] is None else float(row["p"]) or bound
    return float(row["p_holm"]) or min(1.0, family_size(row, params) * bound)
