"""What the report says of exact evidence units in words and curves, whatever the signs.

Outcomes are set here; means, differences and intervals are what the real rooms make of them.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from typing import Any

import pytest

from spanwise import schemas
from spanwise.reporting.figures import Scale
from spanwise.reporting.gather import UnitsRecord, units_record
from spanwise.reporting.units_plots import HEIGHT, curves, panel
from spanwise.reporting.units_tables import causes, equal_units
from spanwise.reporting.units_verdict import cutoff, middle, of_row, told, whole
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
        for basis, amounts in (("units", cutoffs), ("characters", (400,)),
                               ("characters-cut", (400,)), ("tokens", (60,)), ("tokens-cut", (60,)))
        for amount in amounts
    ]
    kept = schemas.table(schemas.OUTCOMES, rows).to_pylist()
    tables = [
        schemas.table(schema, made).to_pylist() for schema, made in (
            (schemas.UNIT_MEANS, compare.means(kept)),
            (schemas.UNIT_COMPARISONS, compare.comparisons(kept, [], "bm25", SETTINGS.inference)),
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


def said(units: UnitsRecord) -> tuple[str, str]:
    """The answer and what is left, as one text each."""
    found = told(units, SETTINGS, "bm25")
    assert found is not None
    return found.answer, " ".join(found.left)


@pytest.mark.parametrize("leader", NAMES)
def test_a_lead_that_vanishes_at_equal_amounts_is_said_so(leader: str) -> None:
    # A third of the documents goes one way, a third the other: the means are level.
    answer, left = said(study(lead(leader, lambda name, _, d, n: (
        n < 2 + wobble(d) * (1 if name == leader else -1)))))
    others = " and ".join(name for name in NAMES if name != leader)
    assert answer.startswith(f"At 3 units {leader} come out ahead in bundle coverage, 0.750; ")
    assert f"The lead over {others} is more than chance alone would give." in answer
    assert answer.endswith("At equal characters and equal tokens it vanishes, and what is left is "
                           "undetermined.")
    assert left.count("vanishes, 0.000 [") == left.count("of +0.500: undetermined") == 4 * 2


def test_an_interval_that_still_holds_the_lead_does_not_make_it_vanish() -> None:
    # At equal amounts the leader gains two needs in some documents, and loses some in others.
    answer, left = said(study(lead("blocks", lambda name, _, d, n: (
        n < (3 if d % 2 else 1) if name == "blocks" else n < (0 if d % 3 else 4))), documents=6))
    assert answer.endswith("whether any of it is left is undetermined.")
    assert "vanishes" not in answer + left
    assert "whether any of the lead over windows is left is undetermined, +0." in left


def test_a_lead_is_left_in_part_whole_or_turns_round() -> None:
    part_of = study(lead("sections", lambda name, _, d, n: (
        n < 2 + wobble(d) if name == "sections" else n == d % 4)))
    answer, left = said(part_of)
    assert answer.endswith("At equal characters and equal tokens part of it is left.")
    # Three of four against one of four, then two against one: +.5, then +.25.
    assert "over blocks, +0.250" in left and "is left of +0.500" in left
    same = lead("sections", lambda *_: False)

    def equal(name: str, basis: str, d: int, n: int) -> bool:
        if basis.startswith("characters"):
            return same(name, "units", d, n)
        return n < {"blocks": 4, "sections": 2 + wobble(d), "windows": 2 - wobble(d)}[name]

    answer, left = said(study(lead("sections", equal)))
    assert "At equal characters all of it is left. At equal tokens" in answer
    assert answer.endswith("over blocks it turns round; over windows it vanishes, and what is "
                           "left is undetermined.")
    assert "the lead over blocks stays, +0.500" in left
    assert "the lead over blocks turns round, −0.500" in left


def test_an_undetermined_lead_is_called_so_and_what_equal_amounts_say_is_told() -> None:
    # Sections gain a need in two documents of twelve, and lose one in another.
    def held(name: str, basis: str, d: int, n: int) -> bool:
        if basis != "units":
            return n < 3 + wobble(d) if name == "windows" else n == 0
        return n == 0 or (name == "sections" and n == 1 and d < 2) or (
            name != "sections" and n == 2 and d == 2)

    answer, left = said(study(held))
    assert "Undetermined: chance alone could give the lead over blocks and windows." in answer
    assert "more than chance" not in answer
    assert "against windows sections fall behind" in answer
    assert "windows lead sections, sections − windows = −0.500" in left


def test_level_segmentations_and_ceilings_have_no_leader() -> None:
    answer, _ = said(study(lambda *_: True))
    level = "come out level in bundle coverage"
    assert answer.startswith(f"At 3 units blocks, sections and windows {level}, 1.000.")
    assert "at the ceiling" in answer and "lead over" not in answer.split("At equal")[0]
    answer, _ = said(study(lambda name, _, __, n: n < (1 if name == "windows" else 3)))
    assert answer.startswith(f"At 3 units blocks and sections {level}, 0.750; windows 0.250.")


def test_one_document_leaves_all_undetermined() -> None:
    units = study(lambda name, *_: name == "sections", documents=1)
    answer, left = said(units)
    assert "All questions are about one document, so no interval can be given." in answer
    assert "more than chance" not in answer and "is left of" not in left
    found = told(units, SETTINGS, "bm25")
    assert found is not None and found.figures.endswith("the intervals rest on few documents")


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
    assert counted.state == "undetermined" and "once all pairs are counted" in str(counted)
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
            assert f'<p class="panel">{retriever}</p>' in panels
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
    assert curves(units, "tokens", "tokens") == ""
    for text in (equal_units(units, "development", "x"), causes(units, "development", "x")):
        assert "0 needs with an answer; 48 without one" in text and text.count(">–<") >= 3 * 4
