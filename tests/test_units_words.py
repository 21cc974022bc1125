"""What the report says of exact evidence units in words and curves, whatever the signs.

Outcomes are set here; means, differences and intervals are what the real rooms make of them.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from spanwise import schemas
from spanwise.reporting.figures import Scale
from spanwise.reporting.gather import UnitsRecord, units_record
from spanwise.reporting.units_plots import HEIGHT, curves, panel
from spanwise.reporting.units_tables import causes, equal_units, matched, never
from spanwise.reporting.units_verdict import cutoff, middle, named, of_row, told, whole
from spanwise.units import compare

from . import reporting_world as world

SETTINGS = world.settings()
NAMES = ("blocks", "sections", "windows")

Held = Callable[[str, str, int, int], bool]
"""(segmentation, basis, document, need) -> whether the evidence is held."""


def study(held: Held, documents: int = 12, cutoffs: tuple[int, ...] = (1, 3)) -> UnitsRecord:
    """A record of one retriever, made by the real rooms; four needs in each document."""
    rows = [
        {
            "retriever": "bm25", "segmentation": name, "need_id": f"d{d:02}-n{n}",
            "doc_id": f"d{d:02}", "slice": "development", "type": "factoid", "basis": basis,
            "amount": amount, "sufficient": float(held(name, basis, d, n)),
            "covered": float(held(name, basis, d, n)), "units": 3, "characters": 90, "tokens": 20,
            "ended": False, **{
                f"{m}_cause": "ranking" if basis == "units" and not held(name, basis, d, n)
                else None for m in ("sufficient", "covered")
            },
        }
        for name in NAMES for d in range(documents) for n in range(4)
        for basis, amounts in (("units", cutoffs), ("matched", cutoffs), ("characters", (400,)),
                               ("characters-cut", (400,)), ("tokens", (60,)), ("tokens-cut", (60,)))
        for amount in amounts
    ]
    kept = schemas.table(schemas.OUTCOMES, rows).to_pylist()
    tables = [
        schemas.table(schema, made).to_pylist() for schema, made in (
            (schemas.UNIT_MEANS, compare.means(kept)),
            (schemas.UNIT_COMPARISONS, compare.comparisons(
                kept, [], "bm25", SETTINGS.inference,
                {row["need_id"]: [row["doc_id"]] for row in kept})),
        )
    ]
    about = {"asked": True, "representation": "raw", "units": dict.fromkeys(NAMES, 9)}
    return units_record(about, tables[0], tables[1], {}, ["bm25"])


def wobble(d: int) -> int:
    """-1, 0 or 1 by document, 0 in the mean: what never varies is no evidence of anything."""
    return (d % 3 == 0) - (d % 3 == 1)


def lead(leader: str, equal: Held) -> Held:
    """At equal units the leader holds three of four needs and the others one; else as `equal`."""
    def held(name: str, basis: str, d: int, n: int) -> bool:
        if basis == "units":
            return n < 3 + wobble(d) if name == leader else n == d % 4
        return equal(name, basis, d, n)

    return held


def said(units: UnitsRecord) -> tuple[str, str, str]:
    """What is said at equal units, at the same amount need by need, and of budgets."""
    found = told(units, SETTINGS, "bm25")
    assert found is not None and found.equal is not None
    for text in (found.answer, found.equal, *found.alone):
        assert " left" not in text and "vanish" not in text and "chance" not in text
    start = "At the same amount of text, need by need (as many characters as its first "
    assert found.equal.startswith(start)
    return found.answer, found.equal.partition("), ")[2], " ".join(found.alone)


FIGURE = r"[+−]?\d\.\d{3} \[[^]]+\]"
CLEAR = ": the interval does not hold 0 after Holm's correction over this retriever's 3 pairs."


def apart(units: UnitsRecord, basis: str, leader: str) -> dict[str, str]:
    """other -> how the leader differs from it, as the words are to have it; from the rows."""
    found = {}
    for r in units.comparisons.values():
        arms = [r[arm].partition("/")[2] for arm in ("a", "b")]
        if (r["basis"], r["measure"], r["amount"] == 1) != (basis, "covered", False):
            continue
        if leader in arms:
            ends = (r["delta"], r["ci_low"], r["ci_high"])
            if arms[1] == leader:
                ends = (-ends[0], -ends[2], -ends[1])
            texts = [f"{end:+.3f}".replace("-", "−") for end in ends]
            texts = ["0.000" if text[1:] == "0.000" else text for text in texts]
            found[next(arm for arm in arms if arm != leader)] = "{} [{}, {}]".format(*texts)
    return found


@pytest.mark.parametrize("leader", NAMES)
def test_each_amount_has_its_own_difference_and_interval(leader: str) -> None:
    # A third of the documents goes one way, a third the other: the means are level.
    units = study(lead(leader, lambda name, _, d, n: (
        n < 2 + wobble(d) * (1 if name == leader else -1))))
    answer, equal, alone = said(units)
    others = [name for name in NAMES if name != leader]
    assert answer.startswith(f"At 3 units {leader} come out ahead in bundle coverage, 0.750; ")
    figures = apart(units, "units", leader)
    between = " and ".join(f"{figures[name]} to {name}" for name in others)
    assert answer.endswith(f"The difference is {between}{CLEAR}") and "+0.500 [" in between
    figures = apart(units, "matched", leader)
    between = " and ".join(f"{figures[name]} to {name}" for name in others)
    assert equal == f"the difference is {between}: undetermined."
    assert all(figure.startswith("0.000 [−") for figure in figures.values())
    for basis in ("characters-cut", "tokens-cut"):
        for name, figure in apart(units, basis, leader).items():
            assert f"{leader} − {name} {figure}, undetermined" in alone
    assert alone.startswith("400 code points, the last unit cut short: ")
    assert " 60 tokens, the last unit cut short: " in alone


def test_more_and_less_come_from_sign_and_interval_alone() -> None:
    # Less than at equal units, three of four against one of four: +.5 there, +.25 here.
    units = study(lead("sections", lambda name, _, d, n: (
        n < 2 + wobble(d) if name == "sections" else n == d % 4)))
    figures = apart(units, "matched", "sections")
    assert said(units)[1] == (
        f"the difference is {figures['blocks']} to blocks and {figures['windows']} to windows: "
        "sections cover more.")
    assert all(figure.startswith("+0.250 [") for figure in figures.values())

    def equal(name: str, _: str, d: int, n: int) -> bool:
        return n < {"blocks": 4, "sections": 2 + wobble(d), "windows": 2 - wobble(d)}[name]

    units = study(lead("sections", equal))
    figures = apart(units, "matched", "sections")
    answer, text, alone = said(units)
    assert text == (
        f"the difference is {figures['blocks']} to blocks: sections cover less; "
        f"{figures['windows']} to windows: undetermined.")
    assert figures["blocks"].startswith("−0.500 [") and "sections − blocks −0.500 [" in alone
    assert answer.endswith(CLEAR)
    counted = {key: {**r, "p_holm": 0.06} for key, r in units.comparisons.items()}
    assert said(replace(units, comparisons=counted))[1] == (
        f"the difference is {figures['blocks']} to blocks: undetermined, not clear once all pairs "
        f"are counted; {figures['windows']} to windows: undetermined.")


def test_a_budget_for_all_is_no_part_of_what_is_said_need_by_need() -> None:
    units = study(lambda name, basis, d, n: n < (
        1 + (name == "sections") * (2 if basis in ("units", "matched") else 0)) + wobble(d) * (
        name == "sections"))
    _, equal, alone = said(units)
    assert equal.count("+0.500 [") == 2 and equal.endswith(": sections cover more.")
    assert alone.count("undetermined") == 4 and "+0.500" not in alone


def test_an_undetermined_lead_is_called_so_and_what_equal_amounts_say_is_told() -> None:
    # Sections gain a need in two documents of twelve, and lose one in another.
    def held(name: str, basis: str, d: int, n: int) -> bool:
        if basis != "units":
            return n < 3 + wobble(d) if name == "windows" else n == 0
        return n == 0 or (name == "sections" and n == 1 and d < 2) or (
            name != "sections" and n == 2 and d == 2)

    answer, equal, alone = said(study(held))
    assert re.search(
        rf"The difference is {FIGURE} to blocks and {FIGURE} to windows: undetermined\.$", answer)
    assert "Holm" not in answer
    assert re.search(rf"^the difference is {FIGURE} to blocks: undetermined; −0\.500 \[[^]]+\] to "
                     r"windows: sections cover less\. To blocks: every question scores the same",
                     equal)
    assert "sections − windows −0.500 [" in alone


def test_level_segmentations_and_ceilings_have_no_leader() -> None:
    answer, equal, _ = said(study(lambda *_: True))
    level = "come out level in bundle coverage"
    assert answer.startswith(f"At 3 units blocks, sections and windows {level}, 1.000.")
    assert "at the ceiling" in answer and "Holm" not in answer
    assert equal.startswith("the difference of blocks is 0.000 ")
    answer, _, _ = said(study(lambda name, _, __, n: n < (1 if name == "windows" else 3)))
    assert answer.startswith(f"At 3 units blocks and sections {level}, 0.750; windows 0.250.")


def test_one_document_leaves_all_undetermined() -> None:
    units = study(lambda name, *_: name == "sections", documents=1)
    answer, equal, _ = said(units)
    for text in (answer, equal):
        assert "+1.000 to blocks and +1.000 to windows: undetermined. All questions are" in text
        assert "about one document, so no interval can be given." in text
    found = told(units, SETTINGS, "bm25")
    assert found is not None and found.rests.endswith("in 1 document")


def test_windows_are_named_with_their_size() -> None:
    units = study(lambda name, _, d, n: n < 2 + wobble(d) * (name == "windows"))
    assert named(units, "windows") == "windows"
    about = {**units.about, "cut_by": {"windows": {"size_tokens": 48, "overlap_tokens": 12}}}
    units = replace(units, about=about)
    assert [named(units, name) for name in NAMES] == ["blocks", "sections", "48-token windows"]
    for text in said(units):
        assert text.count("48-token windows") == text.count("windows") > 0


def test_without_matched_amounts_or_comparisons_that_much_is_told() -> None:
    units = study(lambda name, _, d, n: n < 2 + wobble(d) * (name == "sections"))
    means = {key: row for key, row in units.means.items() if row["basis"] != "matched"}
    found = told(replace(units, means=means), SETTINGS, "bm25")
    assert found is not None and found.equal is None and len(found.alone) == 2
    assert matched(replace(units, means=means), "development", "x") == ""
    found = told(replace(units, comparisons={}), SETTINGS, "bm25")
    assert found is not None and found.rests == ""
    assert found.equal is not None and found.equal.endswith("), nothing was compared.")
    assert found.answer.endswith(". Nothing was compared.")


def row(**changes: Any) -> dict[str, Any]:
    """A comparison whose interval is off zero."""
    return {
        "slice": "development", "basis": "units", "amount": 3, "measure": "covered", "name": "x",
        "family": "segmentation", "a": "bm25/sections", "b": "bm25/blocks", "n_questions": 48,
        "n_documents": 12, "excluded": 0, "reason": None, "mean_a": 0.5, "mean_b": 0.4,
        "delta": 0.1, "ci_low": 0.02, "ci_high": 0.2, "p": 0.01, "dz": 0.3, "p_holm": 0.03,
    } | changes


def test_a_difference_takes_an_interval_off_zero_and_holms_p() -> None:
    assert of_row(row(), 3, SETTINGS).state == "ahead"
    turned = of_row(row(), 3, SETTINGS, sign=-1)
    assert (turned.state, turned.delta, turned.low, turned.high) == ("behind", -0.1, -0.2, -0.02)
    assert of_row(row(ci_low=0.0), 3, SETTINGS).state == "undetermined"
    counted = of_row(row(p_holm=0.05), 3, SETTINGS)
    assert counted.state == "undetermined" and str(counted) == "+0.100 [+0.020, +0.200]"
    assert counted.why == "not clear once all pairs are counted" and counted.size == 3
    # 0 of 400 draws is at most 2/400, times the family: 3 x .005 = .015; of 120 draws it is .05.
    assert of_row(row(p_holm=0.0), 3, SETTINGS).state == "ahead"
    few = world.settings(inference={"iterations": 120, "seed": 7, "margin": 0.01})
    assert of_row(row(p_holm=0.0), 3, few).state == "undetermined"
    gone = dict.fromkeys(("delta", "ci_low", "ci_high", "p", "dz", "p_holm"))
    absent = of_row(row(**gone, reason="no need in both"), 3, SETTINGS)
    assert (absent.state, absent.why) == ("absent", "no need in both")


@pytest.mark.parametrize(("share", "words"), [
    (0, "For no need"), (1, "For fewer than half"), (2, "For half of the needs or more"),
    (4, "For every need")])
def test_whether_evidence_is_held_whole_is_told_by_the_range(share: int, words: str) -> None:
    text = whole(study(lambda _, __, ___, n: n < share))
    assert text.startswith(words) and "of 48 needs with an answer, the first 3 units" in text
    assert f"{share / 4:.3f} (bm25, blocks)" in text


def test_the_cutoff_is_three_else_the_middle_one() -> None:
    assert cutoff(study(lambda *_: True)) == 3
    other = study(lambda *_: True, cutoffs=(1, 2, 5, 8))
    assert cutoff(other) == 2 and said(other)[0].startswith("At 2 units")
    assert [middle(a) for a in ([7], [1, 2], [1, 2, 3], [1, 2, 3, 4])] == [7, 1, 2, 2]


def test_a_point_stands_where_its_figures_say() -> None:
    on = Scale(0.0, 0.8)
    drawn = panel([("square", "filled blue", [(100, 0.4), (200, 0.6), (400, 0.2)])], on, "<of>")
    places = re.findall(r'<svg x="([\d.]+)%" y="([\d.]+)"', drawn)
    assert [float(y) for _, y in places] == pytest.approx(
        [HEIGHT * (1 - v / 0.8) for v in (0.4, 0.6, 0.2)])
    x = [float(x) for x, _ in places]
    assert x[1] - x[0] == pytest.approx(x[2] - x[1], abs=0.01)  # each is twice the last
    # The axis begins a fifth of its range before the first and ends .12 of it after the last.
    assert x[0] == pytest.approx(100 * 0.2 / 1.32, abs=0.01)
    assert 'aria-label="&lt;of&gt;"' in drawn
    for text in (">100<", ">200<", ">400<"):
        assert text in drawn


def test_one_budget_has_a_panel_too() -> None:
    drawn = panel([("circle", "hollow orange", [(1, 0.0)])], Scale(0.0, 1.0), "one")
    assert drawn.count("<circle") == 1 and not math.isnan(float(
        re.findall(r'<svg x="([\d.]+)%"', drawn)[0]))


def test_curves_have_a_panel_for_each_retriever_and_a_shape_for_each_segmentation() -> None:
    units = study(lambda name, _, __, n: n < (3 if name == "blocks" else 2))
    rows = [*units.means.values(), *({**r, "retriever": "mpnet"} for r in units.means.values())]
    both = units_record(units.about, rows, [], {}, ["bm25", "mpnet"])
    for counted in ("characters", "tokens"):
        legend, panels = curves(both, counted, counted).split('class="curves"')
        assert panels.count('role="img"') == 2
        assert panels.count("<circle") == panels.count("rotate(45)") == 2
        assert panels.count("<rect") == 2 * 2
        assert legend.count("<li>") == 3
        for retriever in ("bm25", "mpnet"):
            axes = f"<small>bundle coverage, by {counted}</small>"
            assert f'<p class="panel">{retriever} {axes}</p>' in panels
    assert curves(units_record({}, [], [], {}, []), "tokens", "tokens") == ""


def test_needs_without_an_answer_alone_leave_nothing_to_tell() -> None:
    units = study(lambda *_: True)
    none = {
        key: {**row, "n_answerable": 0, "sufficient": None, "covered": None}
        for key, row in units.means.items()
    }
    units = units_record(units.about, list(none.values()), [], {}, ["bm25"])
    assert whole(units) == "No need has an answer, so there is nothing to hold."
    assert told(units, SETTINGS, "bm25") is None
    assert curves(units, "tokens", "tokens") == "" and never(units, "development") == ""
    for text in (equal_units(units, "development", "x"), causes(units, "development", "x")):
        assert "0 needs with an answer; 48 without one" in text and text.count(">–<") >= 3 * 4
