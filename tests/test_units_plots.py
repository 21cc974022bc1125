"""How the study of units is drawn: differences with their intervals, curves, and their marks."""

from __future__ import annotations

import itertools
import re
from dataclasses import replace
from pathlib import Path

import pytest

from spanwise.reporting.gather import CorpusRecord, Row, gather, units_record
from spanwise.reporting.page import page as whole_page
from spanwise.reporting.units import part
from spanwise.reporting.units_plots import LOOKS, PAIR_LOOKS, curves, differences

from . import reporting_world as world
from .reference_reporting import Page

SETTINGS = world.settings()


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Of two corpora, `toy` has the study."""
    made = tmp_path_factory.mktemp("plots")
    world.build(made, SETTINGS)
    return made


@pytest.fixture(scope="module")
def toy(root: Path) -> CorpusRecord:
    return gather(root, "toy", SETTINGS)


PAIRS = ("sections − blocks", "sections − 12-token windows", "12-token windows − blocks")
BUDGETS = {"code points": (200, 400, 800), "tokens": (30, 60, 120, 240)}

Point = tuple[float, list[float], float, str, str]
"""Place across in percent, ends of its interval, difference, mark, and what it says of itself."""


def plotted(text: str, words: str) -> dict[str, dict[tuple[str, int], Point]]:
    """retriever -> (pair, budget) -> its point; values are read off the panel's own scale."""
    start = text.index(f"Differences of bundle coverage over the budget in {words},")
    found: dict[str, dict[tuple[str, int], Point]] = {}
    for panel in text[start : text.index("</figure>", start)].split('<p class="panel">')[1:]:
        ticks = [(float(y), float(v.replace("−", "-"))) for y, v in re.findall(
            r' y2="([\d.-]+)" class="grid"/><text x="0%" y="[\d.-]+">([^<]+)<', panel)]
        (low, first), (high, last) = ticks[0], ticks[-1]

        def value(y: str, low: float = low, first: float = first,
                  each: float = (last - first) / (high - low)) -> float:
            return first + (float(y) - low) * each

        (zero,) = re.findall(r' y2="([\d.-]+)" class="zero"', panel)
        assert value(zero) == pytest.approx(0, abs=1e-3)
        points = found.setdefault(panel[: panel.index("<")].strip(), {})
        for x, pair, amount, told_, inner in re.findall(
            r'<svg x="([\d.]+)%" y="0" overflow="visible"><title>(.*?) at ([\d,]+): (.*?)</title>'
            r"(.*?)</g></svg>", panel,
        ):
            ends = re.findall(r'<line y1="([\d.-]+)" y2="([\d.-]+)" class="reach', inner)
            caps = re.findall(r'x1="-3" x2="3" y1="([\d.-]+)" y2="([\d.-]+)"', inner)
            assert caps == [(end, end) for both in ends for end in both]
            ((y, mark),) = re.findall(r"translate\(-5.6 ([\d.-]+)\) scale\(.8\)\">(.*)$", inner)
            points[pair, int(amount.replace(",", ""))] = (
                float(x), [value(end) for both in ends for end in both],
                value(str(float(y) + 5.6)), mark, told_)
        (said,) = re.findall(r"<desc>(.*?)</desc>", panel)
        assert said == "; ".join(
            f"{pair} at {amount:,}: {its[4]}" for (pair, amount), its in points.items())
    return found


def signed(value: float) -> str:
    """As the page has it, written the other way."""
    text = f"{abs(value):.3f}"
    return text if text == "0.000" else ("−" if value < 0 else "+") + text


@pytest.mark.parametrize("words", BUDGETS)
def test_drawn_differences_are_the_comparisons_figures(toy: CorpusRecord, words: str) -> None:
    assert toy.units is not None
    text = part(toy, SETTINGS)
    drawn = plotted(text, words)
    assert list(drawn) == ["bm25", "minilm", "mpnet"]
    basis = "tokens-cut" if words == "tokens" else "characters-cut"
    rows = [r for r in toy.units.comparisons.values() if (
        r["slice"], r["basis"], r["measure"], r["family"]
    ) == ("development", basis, "covered", "segmentation")]
    assert len(rows) == sum(map(len, drawn.values())) == 3 * 3 * len(BUDGETS[words])
    for r in rows:
        names = [r[arm].replace("windows", "12-token windows").split("/") for arm in ("a", "b")]
        pair = " − ".join(name for _, name in names)
        _, ends, delta, _, said = drawn[names[0][0]][pair, r["amount"]]
        assert [delta, *ends] == pytest.approx(  # three digits, and pixels
            [r["delta"], r["ci_low"], r["ci_high"]], abs=7e-4)
        assert said == f"{signed(r['delta'])} [{signed(r['ci_low'])}, {signed(r['ci_high'])}]"
    at = [text.index(start) for start in (
        f"Bundle coverage over the budget in {words},",
        f"Differences of bundle coverage over the budget in {words},", f"At equal {words}, ")]
    assert at == sorted(at)
    caption = text[at[1] : text.index("</figcaption>", at[1])]
    assert "Paired by need, documents resampled, 95% intervals" in caption
    for start in at[:2]:  # nothing is told apart that is not
        assert "as well as" in text[start : text.index("</figcaption>", start)]


@pytest.mark.parametrize("words", BUDGETS)
def test_pairs_stand_side_by_side_and_differ_without_colour(toy: CorpusRecord, words: str) -> None:
    text = part(toy, SETTINGS)
    looks: dict[str, set[str]] = {}
    for points in plotted(text, words).values():
        sets = [[points[pair, amount][0] for pair in PAIRS] for amount in BUDGETS[words]]
        places = [x for of in sets for x in of]
        step = sets[1][0] - sets[0][0]
        gaps = [right - left for left, right in itertools.pairwise(places)]
        assert min(gaps) > step / 5 and places[0] > 15  # percent, that figures of the scale take
        assert max(gaps) > 1.3 * min(gaps) and places[-1] < 97  # sets are told apart
        for (pair, _), (*_, mark, _) in points.items():
            looks.setdefault(pair, set()).add(mark)
    assert list(looks) == list(PAIRS) and all(len(marks) == 1 for marks in looks.values())
    marks = [next(iter(its)) for its in looks.values()]
    assert len({re.sub(r'class="[^"]*"', "", mark) for mark in marks}) == 3
    start = text.index(f"Differences of bundle coverage over the budget in {words},")
    legend = text[text.index("<ul", start) : text.index("</ul>", start)]
    assert re.findall(r"<li>(.*?)</li>", legend) == [
        mark + pair for mark, pair in zip(marks, PAIRS, strict=True)]


def test_a_pair_looks_like_no_segmentation(toy: CorpusRecord) -> None:
    assert toy.units is not None
    legends = [re.findall(r"<li>(<svg.*?</svg>)", drawn(toy.units, "tokens", "tokens"))
               for drawn in (curves, differences)]
    assert [len(marks) for marks in legends] == [3, 3]
    classes = [{word for mark in marks for its in re.findall(r'class="mark ([^"]+)"', mark)
                for word in its.split()} - {"filled", "hollow"} for marks in legends]
    assert classes == [{"blue", "orange", "green"}, {"ink", "violet", "grey"}]
    shapes = [{re.sub(r'class="[^"]*"', "", mark) for mark in marks} for marks in legends]
    assert not shapes[0] & shapes[1]
    assert not {shape for shape, _ in LOOKS} & {shape for shape, _ in PAIR_LOOKS}


def test_what_was_not_compared_leaves_a_gap(toy: CorpusRecord) -> None:
    assert toy.units is not None
    before = plotted(differences(toy.units, "tokens", "tokens"), "tokens")

    def of(row: Row, pair: str, amount: int) -> bool:
        names = [f"mpnet/{name.removeprefix('12-token ')}" for name in pair.split(" − ")]
        return [row["a"], row["b"]] == names and row["amount"] == amount and (
            row["slice"], row["basis"], row["measure"]
        ) == ("development", "tokens-cut", "covered")

    missing, unknown, bare = (PAIRS[0], 30), (PAIRS[2], 60), (PAIRS[1], 240)
    figures = ("delta", "ci_low", "ci_high")
    rows = {}
    for key, row in toy.units.comparisons.items():
        if of(row, *unknown):
            row = {**row, **dict.fromkeys(figures), "reason": "no need"}
        elif of(row, *bare):
            row = {**row, **dict.fromkeys(figures[1:])}  # of one document alone
        if not (of(row, *missing) or row["a"].startswith("minilm/")):
            rows[key] = row
    after = plotted(differences(replace(toy.units, comparisons=rows), "tokens", "tokens"), "tokens")
    assert list(after) == ["bm25", "mpnet"]
    assert set(before["mpnet"]) - set(after["mpnet"]) == {missing, unknown}
    for key, (x, ends, delta, mark, _) in after["mpnet"].items():
        was = before["mpnet"][key]
        assert (x, mark) == (was[0], was[3]) and delta == pytest.approx(was[2], abs=1e-3)
        assert ends == ([] if key == bare else pytest.approx(was[1], abs=1e-3))
    text = part(replace(toy, units=replace(toy.units, comparisons=rows)), SETTINGS)
    assert Page(text).text().count("Differences of bundle coverage over the budget") == 2
    text = part(replace(toy, units=replace(toy.units, comparisons={})), SETTINGS)
    assert "Differences of bundle coverage" not in text and "Bundle coverage over the" in text


def test_no_differences_are_drawn_for_a_corpus_without_the_study(
    root: Path, toy: CorpusRecord
) -> None:
    harbour = gather(root, "harbour", SETTINGS)
    page = Page(whole_page([harbour, toy], SETTINGS))
    assert "Differences of bundle coverage" in page.text("c-toy")
    assert "Differences of bundle coverage" not in page.text("c-harbour")
    assert "Differences of bundle coverage" not in whole_page([harbour], SETTINGS)
    assert differences(units_record({}, [], [], {}, []), "tokens", "tokens") == ""
