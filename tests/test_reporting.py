"""The report: words, figures, tables, files; and that no text can change the page."""

from __future__ import annotations

import csv
import io
import itertools
import json
import math
import re
import shutil
import statistics
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from spanwise import layout, schemas
from spanwise.errors import InputError
from spanwise.params import MEASURES
from spanwise.reporting import report
from spanwise.reporting.figures import Mark, Scale, scale, strip
from spanwise.reporting.files import metrics as metrics_of
from spanwise.reporting.files import tables
from spanwise.reporting.gather import CorpusRecord, gather
from spanwise.reporting.judgement import DETECTABLE, judge
from spanwise.reporting.markup import data, esc, interval, probability, signed
from spanwise.reporting.questions import disagreement, kept, payload, reach
from spanwise.reporting.verdict import sentence
from spanwise.spans import Span

from . import reporting_world as world
from .reference_reporting import Page

SETTINGS = world.settings()


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A world with a hostile document and question in each corpus, reported."""
    made = tmp_path_factory.mktemp("world")
    world.build(made, SETTINGS, title=world.HOSTILE)
    report(made, SETTINGS)
    return made


@pytest.fixture(scope="module")
def html(root: Path) -> str:
    return (root / "reports" / "report.html").read_text(encoding="utf-8")


@pytest.fixture(scope="module")
def page(html: str) -> Page:
    return Page(html)


@pytest.fixture(scope="module")
def harbour(root: Path) -> CorpusRecord:
    return gather(root, "harbour", SETTINGS)


@pytest.fixture(scope="module")
def metrics(root: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((root / "reports" / "metrics.json").read_text())
    return found


# ---------------------------------------------------------------- the words


def row(**changes: Any) -> dict[str, Any]:
    """A contrast's row; p_holm .02 and an interval off zero unless changed."""
    return {
        "embedder": "mpnet", "reranker": "none", "measure": "cov_ndcg@10", "family": "contrast",
        "name": "C2", "a": "A3", "b": "P", "standing": "confirmatory", "status": "estimated",
        "reason": None, "interval": "percentile", "n_questions": 180, "n_documents": 30,
        "excluded": 0, "mean_a": 0.52, "mean_b": 0.5, "delta": 0.02, "ci_low": 0.004,
        "ci_high": 0.036, "ci90_low": 0.006, "ci90_high": 0.034, "se": 0.008, "p": 0.005,
        "dz": 0.2, "p_holm": 0.02,
    } | changes


def check(**changes: Any) -> dict[str, Any]:
    """What stands beside it, as far as words are made of it; every test says what is of record."""
    return {
        "detectable": 0.028, "questions_needed": 1413, "documents_needed": 236,
        "equivalence_unsure": False, "cautions": [],
        "linear_p_holm": None, "flip_p_holm": None,
    } | changes


def test_a_contrast_is_a_difference_by_holms_p() -> None:
    assert judge(row(), check(), SETTINGS).state == "difference"
    assert judge(row(p_holm=0.05), check(), SETTINGS).state == "undetermined"
    # Outside the family there is no Holm's p, and the plain one decides.
    assert judge(row(p_holm=None, p=0.04), check(), SETTINGS).state == "difference"


def test_a_contrast_is_equivalent_within_the_open_margin() -> None:
    none = row(p_holm=1.0, delta=0.001, ci90_low=-0.0099, ci90_high=0.0099)
    assert judge(none, check(), SETTINGS).state == "equivalent"
    assert judge(none | {"ci90_high": 0.01}, check(), SETTINGS).state == "undetermined"
    assert judge(row(ci90_low=0.001, ci90_high=0.009), check(), SETTINGS).state == "both"


def test_an_interval_that_is_known_to_lie_too_near_zero_shows_no_equivalence() -> None:
    rare = check(equivalence_unsure=True, cautions=["only 6 of 30 documents show any difference"])
    none = row(p_holm=1.0, delta=0.001, ci90_low=-0.0099, ci90_high=0.0099)
    said = sentence(none, rare, SETTINGS)
    assert said.state == "undetermined"
    assert said.answer == (
        "Underpowered. The 90% interval lies within the margin, but only 6 of 30 documents show "
        "any difference.")
    assert "documents show" not in said.figures  # told once
    # A difference stays one, but is not said to be small.
    within = row(ci90_low=0.001, ci90_high=0.009)
    assert judge(within, rare, SETTINGS).state == "difference"
    # What does not lie within the margin is undetermined for the usual reason.
    assert judge(row(p_holm=1.0), rare, SETTINGS).reason is None


def test_a_verdict_says_by_what_it_would_be_another_one() -> None:
    found = row(p_holm=0.043)
    both = check(linear_p_holm=0.081, flip_p_holm=0.078)
    assert sentence(found, both, SETTINGS).figures.endswith(
        "; by Student's interval it would be underpowered: Holm p 0.081; by sign flips it would be "
        "underpowered: Holm p 0.078")
    agree = sentence(found, check(linear_p_holm=0.049, flip_p_holm=0.04), SETTINGS)
    assert agree.doubts == ()
    missed = sentence(row(p_holm=0.06), check(linear_p_holm=0.07, flip_p_holm=0.02), SETTINGS)
    assert missed.doubts == ("by sign flips it would be a difference: Holm p 0.020",)
    # Student's interval of its own record has no other to be held against.
    few = sentence(row(interval="linearised", p_holm=0.043, n_documents=20), both, SETTINGS)
    assert few.doubts == ("by sign flips it would be underpowered: Holm p 0.078",)
    # Four contrasts over six documents: 4 x 2/2^6 = .125.
    five = row(interval="linearised", p_holm=0.02, n_documents=6)
    assert sentence(five, check(flip_p_holm=0.13), SETTINGS).doubts == (
        "by sign flips it would be underpowered: Holm p 0.130, and 6 documents allow none below "
        "0.12",)


def test_equivalence_may_hang_on_the_interval_too() -> None:
    # t(.95, 29) = 1.699: .002 +- 1.699 x .005 = [-.0065, .0105], beyond the margin of .01.
    narrow = row(p_holm=1.0, delta=0.002, ci90_low=-0.006, ci90_high=0.0099, se=0.005)
    said = sentence(narrow, check(linear_p_holm=1.0, flip_p_holm=1.0), SETTINGS)
    assert said.state == "equivalent"
    assert said.doubts == (
        "by Student's interval it would be underpowered: 90% interval [−0.006, +0.010]",)
    rare = check(linear_p_holm=1.0, equivalence_unsure=True, cautions=["rare"])
    assert sentence(narrow, rare, SETTINGS).doubts == ()  # neither counts


def test_a_p_that_crosses_five_percent_over_connected_documents_is_told() -> None:
    found = row(p=0.012, p_holm=0.048)
    joined = row(family="connected", p=0.09, p_holm=0.36)
    assert sentence(found, check(), SETTINGS, joined=joined).figures.endswith(
        "; with documents that share evidence as one cluster p is 0.090 and Holm p is 0.360")
    holm = sentence(found, check(), SETTINGS, joined=joined | {"p": 0.02, "p_holm": 0.08})
    assert holm.doubts == ("with documents that share evidence as one cluster Holm p is 0.080",)
    same = sentence(found, check(), SETTINGS, joined=joined | {"p": 0.01, "p_holm": 0.04})
    assert same.doubts == ()
    one = joined | {"n_documents": 1, "p": None, "p_holm": None}
    assert "all one cluster" in sentence(found, check(), SETTINGS, joined=one).figures


def test_underpowered_is_what_would_be_missed_more_than_once_in_five() -> None:
    none = row(p_holm=0.3)
    assert judge(none, check(detectable=0.0099), SETTINGS).underpowered is False
    missed = judge(none, check(detectable=0.0101), SETTINGS)
    assert missed.underpowered and missed.words == "underpowered"
    # Without a check: z(.99375) + z(.8) = 2.4977 + .8416 = 3.3393 standard errors of .008.
    assert pytest.approx(2.4977 + 0.8416, abs=1e-4) == DETECTABLE
    assert judge(none, None, SETTINGS).detectable == pytest.approx(3.3393 * 0.008, rel=1e-4)


def test_sentences_say_which_way_how_much_and_how_sure() -> None:
    said = sentence(row(), check(), SETTINGS)
    assert said.answer == "What the path says matters: the right path beats another document's."
    assert said.figures == (
        "A3 − P = +0.020, 95% interval [+0.004, +0.036], Holm p = 0.020, dz = +0.20; 180 questions "
        "in 30 documents"
    )
    assert said.standing == "confirmatory"
    below = sentence(row(delta=-0.02, ci_low=-0.036, ci_high=-0.004), None, SETTINGS)
    assert below.answer == "The right path does worse than another document's."


def test_an_undetermined_contrast_is_told_by_its_interval() -> None:
    across = sentence(row(p_holm=0.4, ci_low=-0.01, ci_high=0.05), check(), SETTINGS)
    assert across.answer == (
        "Underpowered: A3 came out ahead of P, by what chance alone could give.")
    assert across.badge == "underpowered"
    # The first two digits of 1,413 are enough, upwards.
    assert across.figures.endswith(
        "only a difference of about 0.03 would be found 4 times in 5; to find 0.01 as often takes "
        "about 1,500 questions in 240 documents")
    below = row(p_holm=0.06, delta=-0.02, ci_low=-0.04, ci_high=-0.001)
    assert sentence(below, check(), SETTINGS).answer == (
        "Underpowered: P came out ahead of A3, but not clearly once the four contrasts are "
        "counted.")


@pytest.mark.parametrize("detectable", [0.0099, 0.028])
@pytest.mark.parametrize("changes", [
    {}, {"ci_low": -0.01, "ci_high": 0.05}, {"dz": None, "se": 0.0}, {"delta": 0.0},
    {"ci90_low": -0.009, "ci90_high": 0.009},
])
def test_sentence_badge_and_other_tests_share_one_word(
    changes: dict[str, Any], detectable: float
) -> None:
    beside = check(detectable=detectable, equivalence_unsure=True, cautions=["rare"])
    said = sentence(row(p_holm=0.4, **changes), beside, SETTINGS)
    assert said.state == "undetermined"
    assert re.split(r"\W", said.answer)[0] == said.badge.capitalize()
    found = sentence(row(), beside | {"flip_p_holm": 0.3}, SETTINGS)
    word = "underpowered" if detectable > SETTINGS.inference.margin else "undetermined"
    assert found.doubts[-1] == f"by sign flips it would be {word}: Holm p 0.300"


def test_an_absent_contrast_gives_its_reason_and_no_figure() -> None:
    figures = dict.fromkeys(
        ("mean_a", "mean_b", "delta", "ci_low", "ci_high", "p", "dz", "p_holm"))
    said = sentence(row(status="absent", reason="A1: not there", **figures), None, SETTINGS)
    assert (said.state, said.answer, said.figures) == (
        "absent", "Not answered. A1: not there.", "A3 − P")


def test_one_document_gives_no_interval_and_says_so() -> None:
    alone = row(n_documents=1, ci_low=None, ci_high=None, ci90_low=None, ci90_high=None, se=None,
                interval=None, p=None, p_holm=None, reason="one document")
    said = sentence(alone, None, SETTINGS)
    assert said.answer == (
        "Undetermined. All questions are about one document, so no interval can be given.")
    assert (said.state, said.badge) == ("undetermined", "undetermined")
    assert "Student" not in said.figures  # there is no interval of any kind


@pytest.mark.parametrize(("changes", "reason"), [
    ({"delta": 0.0, "mean_a": 0.5}, "Every question scores the same under both, so nothing"),
    ({"delta": 0.0, "mean_a": 1.0, "mean_b": 1.0}, "at the ceiling: these questions leave no room"),
    ({"delta": 0.0, "mean_a": 0.0, "mean_b": 0.0}, "at zero: neither finds any of the evidence"),
    ({"delta": 0.1, "p_holm": 0.0}, "Every question differs by the same +0.100"),
    ({"delta": 0.0, "n_questions": 1}, "one question only"),
    ({"delta": 0.1, "dz": 0.4, "p_holm": 0.0}, "Every document comes out with the same"),
])
def test_what_does_not_vary_is_undetermined_and_never_equivalent(
    changes: dict[str, Any], reason: str
) -> None:
    still = dict.fromkeys(("ci_low", "ci_high", "ci90_low", "ci90_high"), changes["delta"])
    found = row(**still, **({"dz": None, "p_holm": 1.0, "se": 0.0} | changes))
    said = sentence(found, check(detectable=None, questions_needed=None), SETTINGS)
    assert (said.state, said.badge) == ("undetermined", "undetermined")
    assert said.answer.startswith("Undetermined. ") and reason in said.answer
    assert "identical chunks" not in said.answer
    same = sentence(found, None, SETTINGS, same_chunks=True)
    assert same.answer.endswith("The two structures cut the text into identical chunks.")


def test_an_interval_says_what_makes_it_less_sure() -> None:
    few = "; with fewer than 30 documents the interval is Student's"
    assert sentence(row(interval="linearised"), check(), SETTINGS).figures.endswith(few)
    assert few not in sentence(row(), check(), SETTINGS).figures
    warned = sentence(row(), check(cautions=["3 of 30 documents differ"]), SETTINGS)
    assert warned.figures.endswith("; 3 of 30 documents differ")


def test_a_p_of_nought_is_judged_by_its_bound() -> None:
    def few(draws: int) -> Any:
        return world.settings(inference={"iterations": draws, "seed": 7, "margin": 0.01})

    wide, none = check(), row(p=0.0, p_holm=0.0)
    # Four contrasts: 4 x 2/160 = .05, which is not below .05; 4 x 2/161 is.
    assert judge(none, wide, few(160)).state == "undetermined"
    assert "160 draws are too few" in sentence(none, wide, few(160)).answer
    assert judge(none, wide, few(161)).state == "difference"
    # Outside a family the bound is 2/B: 2/40 = .05.
    alone = row(p=0.0, p_holm=None)
    assert judge(alone, wide, few(40)).state == "undetermined"
    assert judge(alone, wide, few(41)).state == "difference"


def test_a_demonstrations_confirmation_is_called_one() -> None:
    assert sentence(row(), None, SETTINGS, demonstration=True).standing == (
        "confirmatory, demonstration")
    explored = sentence(row(standing="exploratory"), None, SETTINGS, demonstration=True)
    assert explored.standing == "exploratory"


def test_the_lists_of_a_reranked_cell_are_its_own(root: Path, tmp_path: Path) -> None:
    shutil.copytree(root / "artifacts", tmp_path / "artifacts")
    plain = schemas.read(tmp_path / layout.cell("retrieve", "harbour", "mpnet") / "runs.parquet",
                         schemas.RUNS).to_pylist()
    length = {(r["condition"], r["question_id"]): r["rank"] for r in plain}
    turned = [r | {"rank": length[r["condition"], r["question_id"]] + 1 - r["rank"]} for r in plain]
    folder = tmp_path / layout.reranked("harbour", "mpnet", "tiny")
    schemas.write(folder / "runs.parquet", schemas.RUNS, schemas.table(schemas.RUNS, turned))
    told = json.dumps({"reranked": {"tiny": {}}, "absent": {}})
    schemas.write_text(folder.parent / "report.json", told)
    study = world.settings(rerankers={"tiny": {"model": "some/tiny", "kind": "cross-encoder"}})
    record = gather(tmp_path, "harbour", study)
    key = next(iter(length))
    best = {r["chunk_id"] for r in plain if (r["condition"], r["question_id"]) == key
            and r["rank"] == length[key]}
    assert record.ranked["mpnet", "tiny"].lists[key[0]][key[1]][0] in best
    assert record.ranked["mpnet", "none"].lists[key[0]][key[1]][0] not in best


def test_equal_means_have_no_best_and_no_lowest(harbour: CorpusRecord) -> None:
    from spanwise.reporting.verdict import best

    cell = ("mpnet", "none")
    assert "has the lowest" in best(harbour, SETTINGS, cell)
    level = replace(harbour, means={k: {**m, "mean": 0.5} for k, m in harbour.means.items()})
    # Twelve conditions, less A1, which is absent, and BM25, which stands beside them.
    assert best(level, SETTINGS, cell) == (
        "All 10 conditions have the same mean, 0.500. Beside them, BM25, which reads words alone, "
        "0.500.")


def test_identical_chunks_are_told_where_nothing_varies(harbour: CorpusRecord) -> None:
    from spanwise.reporting.verdict import told

    chunks = {**harbour.chunks, "induced": harbour.chunks["native"]}
    alike = replace(harbour, chunks=chunks, checks={})
    still = row(name="C3", a="G3", b="A3", delta=0.0, ci_low=0.0, ci_high=0.0, dz=None, p_holm=1.0)
    assert "identical chunks" in told(alike, still, SETTINGS).answer
    parted = replace(harbour, checks={})
    assert "identical chunks" not in told(parted, still, SETTINGS).answer
    # One segmentation under both arms is the design of C2, no accident worth telling.
    same = row(delta=0.0, ci_low=0.0, ci_high=0.0, dz=None, p_holm=1.0)
    assert "identical chunks" not in told(alike, same, SETTINGS).answer


def test_the_steps_behind_the_placebo_are_told(harbour: CorpusRecord) -> None:
    from spanwise.reporting.verdict import apart

    def step(name: str, a: str, delta: float, p: float | None) -> dict[str, Any]:
        return row(family="step", name=name, a=a, b="A2", delta=delta, ci_low=delta - 0.01,
                   ci_high=delta + 0.01, p_holm=p, standing="exploratory")

    def said(*steps: dict[str, Any]) -> str | None:
        return apart(replace(harbour, contrasts=steps, checks={}), row(), SETTINGS)

    gains, harms = step("A3-A2", "A3", 0.05, 0.01), step("P-A2", "P", -0.07, 0.01)
    assert said(gains, harms) == (
        "Against no path: A3 − A2 = +0.050 [+0.040, +0.060], the right path gains; P − A2 = −0.070 "
        "[−0.080, −0.060], the foreign path harms.")
    unclear = said(gains, step("P-A2", "P", -0.005, 0.6))
    assert unclear is not None
    assert unclear.endswith("underpowered: whether the foreign path gains or harms is open.")
    assert said(gains) is None and said(gains, {**harms, "delta": None}) is None
    assert apart(harbour, row(name="C3", a="G3", b="A3"), SETTINGS) is None


def test_the_terminal_has_a_line_for_each_contrast(harbour: CorpusRecord, root: Path) -> None:
    from spanwise.reporting.terminal import verdicts

    place = Path("reports/report.html")
    toy = replace(gather(root, "toy", SETTINGS), contrasts=[
        {**r, "standing": "confirmatory"} if r["delta"] is not None else r
        for r in harbour.contrasts])
    text = verdicts([harbour, toy], SETTINGS, place)
    first, second, last = text.split("\n\n")
    assert last == "The report: reports/report.html"
    lines = first.splitlines()
    assert lines[0] == "harbour: cov_ndcg@10, mpnet"
    assert [line.split()[0] for line in lines[2:6]] == ["C1", "C2", "C3", "C4"]
    for title in ("asks", "difference", "95% interval", "Holm p", "verdict", "standing"):
        assert title in lines[1]
    found = {r["name"]: r for r in harbour.contrasts
             if (r["embedder"], r["family"], r["measure"]) == ("mpnet", "contrast", "cov_ndcg@10")}
    for line, name in zip(lines[3:6], ("C2", "C3", "C4"), strict=True):
        its = found[name]
        for figure in (signed(its["delta"]), interval(its["ci_low"], its["ci_high"]),
                       probability(its["p_holm"], 400, 4)):
            at = line.index(figure)
            assert line[at - 2 : at] == "  "
        assert line.endswith("  confirmatory")
    assert lines[2].split()[-2:] == ["absent", "absent"]
    assert "C1: Not answered. A1: no contexts" in first
    # A difference from the placebo alone would read as a gain of the path.
    assert ("C2: against no path: " in " ".join(first.split())) == (" difference " in lines[3])
    assert any(" difference " in line for line in lines[3:6])
    used = " ".join(first.split()).partition("To use: ")[2]
    assert used.startswith("G3 (native chunks, heading path to depth 3), until more is known of")
    assert "demonstration" not in first
    assert "confirmatory, demonstration" in second
    assert "prove nothing about the world" in " ".join(second.split())
    assert all(len(line) <= 132 and line == line.rstrip() for line in text.splitlines())


def test_the_verdict_in_short_says_what_is_found_open_and_used(harbour: CorpusRecord) -> None:
    from spanwise.reporting.summary import short, take

    cell = ("mpnet", "none")
    answers = [sentence(row(), check(), SETTINGS), sentence(
        row(name="C3", a="G3", b="A3", p_holm=0.4), check(), SETTINGS), sentence(
        row(name="C4", a="A4", b="A3", p_holm=0.4), check(questions_needed=999), SETTINGS)]
    html = short(harbour, SETTINGS, cell, answers)
    text = Page(f'<main id="short">{html}</main>').text("short")
    assert "Found C2: What the path says matters: the right path beats another document's. " in text
    assert "Open C3 and C4: underpowered. Underpowered says nothing against an effect" in text
    assert "C4 takes about 1,000 questions in 240 documents, the others more." in text
    means = {name: r["mean"] for (e, _, name, part, measure), r in harbour.means.items()
             if (e, part, measure) == ("mpnet", "primary", "cov_ndcg@10")}
    best = max(means, key=means.__getitem__)
    assert f"Use {best} (" in text and "until more is known of this corpus." in text
    assert "What ran is what was registered" in text and "differences" not in text
    # Words alone may do better than any embedder, and all conditions may be alike.
    key = ("bm25", "none", "BM25", "primary", "cov_ndcg@10")
    lexical = replace(harbour, means={**harbour.means, key: {**harbour.means[key], "mean": 0.99}})
    assert take(lexical, SETTINGS, cell) == (
        "BM25: no embedder does better here than words alone (0.990).")
    level = replace(harbour, means={k: {**r, "mean": 0.5} for k, r in harbour.means.items()
                                    if k[0] != "bm25"})
    assert take(level, SETTINGS, cell) == "Whichever is cheapest: all conditions come out alike."
    # The placebo is there to be compared with: nobody is told to use another document's path.
    key = ("mpnet", "none", "P", "primary", "cov_ndcg@10")
    foreign = replace(harbour, means={**harbour.means, key: {**harbour.means[key], "mean": 0.99}})
    assert take(foreign, SETTINGS, cell) == take(harbour, SETTINGS, cell)
    none = short(harbour, SETTINGS, cell, [sentence(row(p_holm=0.4), check(), SETTINGS)])
    assert "No contrast shows a difference or its absence." in none


def test_what_differs_from_the_registration_is_told_in_words(harbour: CorpusRecord) -> None:
    from spanwise.reporting.deviations import deviation
    from spanwise.reporting.summary import short

    for text, words, key in (
        ("corpora.toy.inducer: registered segmenter, ran hybrid",
         "Who drew the induced sections: registered segmenter, ran hybrid", "corpora.toy.inducer"),
        ("corpora.toy.contexts: registered false, ran true",
         "Whether a language model wrote contexts: registered no, ran yes", "corpora.toy.contexts"),
        ("corpora.toy.llm: ran, not registered",
         "The language model: was not registered, but ran", "corpora.toy.llm"),
        ("contrasts.C9: registered, not in what ran",
         "Contrast C9: was registered, but did not run", "contrasts.C9"),
        ("chunking.cap_tokens: registered 350, ran 300",
         "The largest chunk, in tokens: registered 350, ran 300", "chunking.cap_tokens"),
        ("some_new.setting: registered 1, ran 2", "Some new, setting: registered 1, ran 2",
         "some_new.setting"),
        ("questions changed since registration (digest 7ef8, now ca69)",
         "The questions are not those that were registered", "digest 7ef8, now ca69"),
        ("corpus toy is not registered", "Corpus toy is not registered", None),
    ):
        said = deviation(text)
        assert (said.words, said.key) == (words, key)
    hostile = deviation(f"corpora.toy.path: registered {world.HOSTILE}, ran b")
    assert "<script" not in hostile.html() and esc(world.HOSTILE) in hostile.html()
    two = ("tokens.tokenizer: registered words, ran minilm", "measures: registered a, ran b")
    folded = short(replace(harbour, standing="exploratory", differences=two), SETTINGS,
                   ("mpnet", "none"), [])
    assert "<summary>2 differences</summary>" in folded
    once = "What counts tokens: registered words, ran minilm"
    assert f"<li>{once} <small><code>tokens.tokenizer</code></small></li>" in folded


def test_every_registered_setting_has_words() -> None:
    from spanwise.registration import load
    from spanwise.reporting.deviations import deviation

    def keys(value: Any, place: str = "") -> Iterator[str]:
        if not isinstance(value, dict):
            yield place
            return
        for name, inner in value.items():
            yield from keys(inner, f"{place}.{name}" if place else name)

    for entry in load(world.ROOT / "registration.json"):
        protocol = {k: v for k, v in entry["protocol"].items() if k != "exploratory"}
        for key in keys(protocol):
            said = deviation(f"{key}: registered 1, ran 2")
            told = said.words.removesuffix(": registered 1, ran 2")
            assert said.key == key and "_" not in told and told.strip(" :") == told
            assert told.lower() != key.replace("_", " ").replace(".", ", "), key


def test_a_new_contrast_gets_words_of_its_own_conditions() -> None:
    said = sentence(row(name="C9", a="G4", b="G3"), None, SETTINGS)
    assert (said.asks, said.answer) == ("Does G4 beat G3?", "G4 beats G3.")


def test_numbers_as_text() -> None:
    assert signed(-0.0004) == "0.000" and signed(0.0126) == "+0.013" and signed(None) == "–"
    assert interval(None, None) == "–" and interval(-0.1, 0.1) == "[−0.100, +0.100]"
    # An edge beside zero says on which side; zero itself lies on none.
    assert interval(-0.0346, 0.0004) == "[−0.035, +0.000]"
    assert interval(-0.0, 1) == "[0.000, +1.000]"
    assert interval(-0.0004, 0.0346) == "[−0.000, +0.035]"
    # 0 of 10,000 draws: p < 2/10,000, and Holm's factor is at most the family's 4.
    assert probability(0.0, 10_000) == "< 0.0002" and probability(0.0, 10_000, 4) == "< 0.0008"
    assert probability(0.0004, 10_000) == "0.0004" and probability(0.2, 10_000) == "0.200"


# ---------------------------------------------------------------- the figures


def test_places_are_shares_of_the_scale() -> None:
    on = Scale(-0.02, 0.06)  # zero lies at .02/.08, the margin from .01/.08 to .03/.08
    drawn = strip([Mark(0.04, 0.02, 0.06, "square")], on, band=(-0.01, 0.01), lines=[(0.0, "zero")])
    assert '<rect x="12.5%" y="0" width="25%" height="30" class="band"/>' in drawn
    assert '<line x1="25%" x2="25%" y1="0" y2="30" class="zero"/>' in drawn
    assert '<svg x="75%" y="15" overflow="visible">' in drawn
    assert '<line x1="50%" x2="100%" y1="15" y2="15" class="reach filled"/>' in drawn


@given(st.floats(-1, 1), st.floats(1e-4, 2))
def test_ticks_are_few_even_and_inside(low: float, width: float) -> None:
    on = Scale(low, low + width)
    ticks = on.ticks()
    assert 1 <= len(ticks) <= 5
    assert all(on.low - 1e-9 <= tick <= on.high + 1e-9 for tick in ticks)
    gaps = [b - a for a, b in itertools.pairwise(ticks)]
    assert all(math.isclose(gap, gaps[0], rel_tol=1e-6) for gap in gaps)


@given(st.lists(st.floats(-1, 1), min_size=1, max_size=9))
def test_a_scale_holds_its_values_strictly(values: list[float]) -> None:
    on = scale(values)
    assert all(on.low < value < on.high for value in values)


def test_a_scale_refuses_nothing_to_show() -> None:
    with pytest.raises(ValueError, match="at least one"):
        scale([])
    with pytest.raises(ValueError, match="finite low < high"):
        Scale(1.0, 1.0)


def test_the_forest_plot_holds_every_estimated_contrast(page: Page, html: str) -> None:
    # C1 is absent; C2, C3 and C4 in two cells: six marks, three of them the primary cell's.
    start = html.index('id="forest-harbour"')
    plot = html[start : html.index("</figure>", start)]
    rows = plot[plot.index('class="rows"') :]
    assert rows.count('class="mark filled blue"') == 3 and rows.count('class="mark hollow"') == 3
    text = page.text("forest-harbour")
    assert "no contexts were asked for" in text
    for name in ("C1", "C2", "C3", "C4"):
        assert name in text
    heads = re.findall(r'<div class="row head".*?(?=<div class="row)', plot)
    assert len(heads) == 4 and not any("<svg" in head for head in heads)  # no line crosses a label
    assert '<p class="unit">difference in coverage-nDCG@10</p>' in plot
    # Two cells of three contrasts, and no p that does not say whose it is.
    assert plot.count("<small>Holm p ") == 6 and "<small>p " not in plot


def test_conditions_are_told_before_their_means(page: Page, html: str) -> None:
    start = html.index('id="c-harbour"')
    told = html.index("What each condition is", start)
    assert told < html.index("Means by condition", start)
    text = page.text("c-harbour")
    assert "P induced: sections a model drew another document's heading path, depth 3" in text
    assert "G4 native: the author's sections its heading path, depth 3 sections first" in text
    assert "Against no path: A3 − A2" in page.text("verdict-harbour")


# ---------------------------------------------------------------- the page


def test_the_page_is_sound_html_that_fetches_nothing(page: Page, html: str) -> None:
    assert len(page.ids) == len(set(page.ids))
    for element, link in page.links:
        assert element == "a" and link.startswith("#") and link[1:] in page.ids
    assert "http:" not in html.replace("http-equiv", "") and "https:" not in html
    assert "url(" not in html and "@import" not in html
    levels = [int(level) for level in re.findall(r"<h([1-6])[ >]", html.partition("<script")[0])]
    assert levels[0] == 1 and all(b <= a + 1 for a, b in itertools.pairwise(levels))
    for drawn in re.findall(r'<svg[^>]*role="img".*?</svg>', html):
        assert "aria-label=" in drawn or "<title>" in drawn
    for table in page.tables:
        assert len(table["caption"]) == 1
        assert set(table["scopes"]) <= {"col", "row", "rowgroup", "colgroup"}


def test_no_text_changes_the_page(html: str, page: Page, tmp_path: Path) -> None:
    world.build(tmp_path, SETTINGS, title="Plain")
    report(tmp_path, SETTINGS)
    plain = Page((tmp_path / "reports" / "report.html").read_text(encoding="utf-8"))
    assert page.shape == plain.shape
    kinds = [attributes.get("type") for attributes, _ in page.scripts]
    each = ["application/json", "text/plain", "text/plain"]  # questions, places, one block
    assert kinds == [*each * len(SETTINGS.corpora), None]
    assert page.scripts[-1] == plain.scripts[-1]
    found = json.loads(page.scripts[0][1])
    assert ["doc-0", world.HOSTILE] in [document[:2] for document in found["documents"]]
    assert all(re.fullmatch("[A-Za-z0-9+/]+=*", text) for attributes, text in page.scripts
               if attributes.get("type") == "text/plain")
    assert world.HOSTILE not in html


_texts = st.text(st.characters(codec="utf-8"), max_size=60)


@given(st.recursive(_texts, lambda inner: st.lists(inner) | st.dictionaries(_texts, inner)))
def test_data_comes_back_and_cannot_end_its_element(value: Any) -> None:
    text = data(value)
    assert json.loads(text) == value
    assert not set("<>&\u2028\u2029") & set(text)


@given(_texts)
def test_escaped_text_reads_as_itself(text: str) -> None:
    shown = Page(f'<p id="here" title="{esc(text)}">{esc(text)}</p>')
    assert shown.shape == [("p", "")] and shown.text() == " ".join(text.split())


def test_data_refuses_nan() -> None:
    with pytest.raises(ValueError, match="not JSON compliant"):
        data({"mean": math.nan})


def test_verdicts_stand_first_and_are_labelled(page: Page, html: str) -> None:
    assert html.index('id="verdict"') < html.index('id="c-harbour"') < html.index('id="methods"')
    harbour, toy = page.text("verdict-harbour"), page.text("verdict-toy")
    assert "confirmatory" in harbour and "confirmatory" not in toy
    assert "Nothing is registered" in toy
    for text in (harbour, toy):
        assert "Not answered. A1: no contexts were asked for" in text
        assert "has the highest mean" in text and "BM25, which reads words alone" in text


def test_no_word_of_a_contrast_stands_over_a_whole_corpus(html: str) -> None:
    # Contrasts carry their own word; means and questions of the same corpus are exploratory.
    assert '<div class="title"><h2>harbour</h2></div>' in html
    assert '<h2>toy</h2><span class="tag open">exploratory</span>' in html


def test_a_document_without_a_tree_leaves_the_page_as_it_left_the_study(
    root: Path, tmp_path: Path, harbour: CorpusRecord
) -> None:
    from spanwise.reporting.page import page as whole

    shutil.copytree(root / "artifacts", tmp_path / "artifacts")
    path = tmp_path / layout.stage("chunk", "harbour") / "report.json"
    chunked = json.loads(path.read_text()) | {"unusable_induced_trees": ["doc-1"]}
    path.write_text(json.dumps(chunked))
    record = gather(tmp_path, "harbour", SETTINGS)
    why = "document without a usable induced tree"
    # Each document has four questions with evidence, one of them a rewording, and one without.
    assert record.excluded() == {**harbour.excluded(), why: 4}
    left = {q[0] for q in payload(record, SETTINGS).index["questions"] if q[4] == why}
    assert left == {f"doc-1-q{i}" for i in range(4)}
    assert "24 of them in the primary slice" in Page(whole([harbour], SETTINGS)).text("c-harbour")
    assert "21 of them in the primary slice" in Page(whole([record], SETTINGS)).text("c-harbour")


def test_connected_clusters_have_intervals_and_no_verdict(harbour: CorpusRecord) -> None:
    from spanwise.reporting.contrast_tables import contrasts

    joined = [{**r, "family": "connected", "standing": "exploratory", "n_documents": 3}
              for r in harbour.contrasts
              if r["family"] == "contrast" and r["measure"] == "cov_ndcg@10"]
    shown = contrasts(replace(harbour, contrasts=joined), SETTINGS, "connected")
    assert "3 clusters" in shown and "Verdict" not in shown and "90%" not in shown
    columns = shown[: shown.index("</thead>")].count("<th ")
    rows = [r for r in shown.split("<tr")[2:] if "exploratory" in r]
    assert len(rows) == 6 and {r.count("<td") + 1 for r in rows} == {columns}
    assert not any(word in shown for word in ("underpowered", "undetermined", "difference<"))


def test_a_demonstration_says_so_wherever_it_stands(page: Page) -> None:
    assert page.text("verdict-toy").count("prove nothing about the world") == 1
    assert "A demonstration" in page.text("c-toy") and "prove nothing" not in page.text("c-toy")
    for place in ("verdict-harbour", "c-harbour"):
        assert "A demonstration" not in page.text(place)


def test_exclusions_funnels_and_counts_are_all_shown(page: Page, harbour: CorpusRecord) -> None:
    text = page.text("c-harbour")
    assert "no-answer questions 8" in text and "rewording questions 8" in text
    assert "files left out: not permitted 2" in text
    for said in ("Size matching", "Small chunks, induced", "Span identity", "Placebo residuals",
                 "Encoder window, mpnet", "Section recall, A4 · mpnet", "Coverage-nDCG above 1",
                 "BM25 puts gold first"):
        assert said in text

    def leaves(value: Any) -> Iterator[str]:
        if isinstance(value, dict):
            for key, inner in value.items():
                yield key.replace("_", " ")
                yield from leaves(inner)

    for _, counts in harbour.reports:
        for name in leaves(counts):
            assert name in text


def test_the_page_says_who_wrote_the_questions_and_what_became_of_each(
    page: Page, root: Path
) -> None:
    told = layout.read_report(root / layout.stage("ask", "toy") / "report.json")
    text = page.text("c-toy")
    assert "for spans that were drawn beforehand. They stand in questions/toy.jsonl." in text
    steps = told["funnel"]
    for step in ("sampled", "rejected again: rouge-l", "finals"):
        counts = [str(n) for n in steps[step].values()]
        assert f"{step} {' '.join(counts)} " in text
    assert 0 < steps["finals"]["all"] < steps["sampled"]["all"]
    top = told["rouge_l of finals"]["all"]["p100"]
    assert re.search(rf"all {steps['finals']['all']} (\d\.\d{{3}} )+{top:.3f} ", text)
    share = layout.read_report(root / layout.stage("score", "toy") / "report.json")
    first = share["bm25_gold_first"]["BM25"]["share"]
    assert f"BM25 alone puts a relevant chunk first for {100 * first:.1f}% of the questions" in text
    plain = page.text("c-harbour")
    assert "40 questions. They came with the corpus. BM25 alone" in plain and "funnel" not in plain
    for name, key in (("funnel", "funnel"), ("overlap", "rouge_l of finals")):
        rows = list(csv.reader((root / f"reports/tables/{name}.csv").open(encoding="utf-8")))[1:]
        kept = told[key].items()
        assert [row[2:] for row in rows] == [
            [a, b, "" if v is None else str(v)] for a, inner in kept for b, v in inner.items()
        ] and {(row[0], row[1]) for row in rows} == {("toy", "authored")}


def test_where_the_primary_cell_did_not_run_nothing_is_confirmed(root: Path) -> None:
    primary = {"measure": "cov_ndcg@10", "embedder": "mpnet", "reranker": "bge"}
    from spanwise.reporting.page import page as whole

    rerankers = {"bge": {"model": "owner/name", "kind": "flag"}}
    other = world.settings(primary=primary, rerankers=rerankers)
    found = Page(whole([gather(root, "toy", other)], other))
    assert "The primary cell (mpnet + bge) did not run on this corpus" in found.text("verdict-toy")


# ---------------------------------------------------------------- diagnostics and questions


def test_diagnostics_against_their_slow_twins(harbour: CorpusRecord) -> None:
    from spanwise.reporting.diagnose import diagnose

    found = {check.what: check for check in diagnose(harbour, SETTINGS)}
    same = sum(
        any((i["doc_id"], i["start"], i["end"]) == (n["doc_id"], n["start"], n["end"])
            for n in harbour.chunks["native"].values())
        for i in harbour.chunks["induced"].values()
    )
    share = 100 * same / len(harbour.chunks["induced"])
    what = "Span identity: induced chunks that are native chunks too"
    assert found[what].found == f"{share:.1f}%" and 0 < share < 100
    asked = {q["question_id"] for q in harbour.questions
             if q["excluded"] is None and q["base"] is None}
    recalls = [r["section_recall"] for r in harbour.routing["mpnet"]
               if r["condition"] == "A4" and r["question_id"] in asked]
    assert found["Section recall, A4 · mpnet"].found == (
        f"{statistics.mean(recalls):.3f} over {len(asked)} questions")


def test_who_made_the_structure_and_the_contexts_is_told(harbour: CorpusRecord) -> None:
    from spanwise.reporting.diagnose import contexts, inducer

    titles = {"sections": 40, "segmenter's title kept: no title": 3, "model": "m"}
    told = {"inducer": "hybrid", "documents": 4, "usable": 3, "mean_sections": 10.0,
            "titles": titles}
    (check,) = inducer(replace(harbour, reports=[("induce", told)]))
    assert check.flagged and "3 of 4 documents usable" in check.found
    assert "a language model's titles" in check.found and "3 of 40 titles" in check.found
    told = {"inducer": "llm", "documents": 4, "usable": 4, "mean_sections": 9.5, "outlines": {
        "usable as given": 1, "corrected": 2, "repaired": 1, "model": "m"}}
    (check,) = inducer(replace(harbour, reports=[("induce", told)]))
    assert "1 as given, 2 corrected, 1 repaired by rules" in check.found and not check.flagged
    label = {"contexts": {
        "chunks": 9, "of use at once": 6, "of use when asked again": 1, "without a context": 1,
        "shorter than asked for": 1,
        "mean tokens": 71.25, "written from a part of the document": 2, "model": "m"}}
    (check,) = contexts(replace(harbour, reports=[("label", label)]), SETTINGS)
    assert check.flagged and "71.2 tokens" in check.found and check.expected.startswith("50 to 100")
    assert contexts(harbour, SETTINGS) == []


def test_a_flag_is_raised_where_sizes_part(harbour: CorpusRecord) -> None:
    from spanwise.reporting.diagnose import sizes

    longer = {k: dict(c) | {"tokens": c["tokens"] + 6} for k, c in harbour.chunks["fixed"].items()}
    calm = sizes(harbour, SETTINGS)[0]
    off = sizes(replace(harbour, chunks={**harbour.chunks, "fixed": longer}), SETTINGS)[0]
    assert not calm.flagged and off.flagged and "apart" in off.expected
    grown = {k: dict(c) | {"tokens": c["tokens"] + 99} for k, c in harbour.chunks["native"].items()}
    far = {
        check.what: check
        for check in sizes(replace(harbour, chunks={**harbour.chunks, "native": grown}), SETTINGS)
    }["Native against induced: mean tokens of a chunk"]
    means = [statistics.mean(c["tokens"] for c in held) for held in (
        grown.values(), harbour.chunks["induced"].values())]
    assert far.flagged and far.found == f"{means[0] - means[1]:.1f} apart"


@given(st.lists(st.none() | st.floats(0, 1), max_size=12))
def test_disagreement_is_the_widest_difference_of_two(values: list[float | None]) -> None:
    found = [value for value in values if value is not None]
    pairs = [abs(a - b) for a, b in itertools.combinations(found, 2)]
    assert disagreement(values) == (pytest.approx(max(pairs), abs=1e-4) if pairs else None)


def test_questions_list_what_the_runs_ranked(root: Path, harbour: CorpusRecord) -> None:
    found = payload(harbour, SETTINGS)
    places = {name: i for i, (name, _, _) in enumerate(found.index["conditions"])}
    assert "A1" not in places and list(places)[-1] == "BM25"
    spreads = [q[6] for q in found.index["questions"] if q[6] is not None]
    assert spreads == sorted(spreads, reverse=True)
    assert found.index["questions"][-1][6] is None
    ids = [doc[0] for doc in found.index["documents"]]
    chunks = {  # every chunk in the order of its number
        segmentation: [
            f"{ids[doc]}:{start}-{end}" for doc, edges in enumerate(documents)
            for start, end in zip(edges[::2], edges[1::2], strict=True)
        ] for segmentation, documents in found.places.items()
    }
    for cell in ("mpnet", "bm25"):
        runs = schemas.read(root / layout.cell("retrieve", "harbour", cell) / "runs.parquet",
                            schemas.RUNS).to_pylist()
        for question in found.index["questions"]:
            told = found.blocks[question[7]]["questions"][question[0]]
            for name, i in places.items():
                mine = [r["chunk_id"] for r in runs
                        if r["question_id"] == question[0] and r["condition"] == name
                        and r["rank"] <= 10]
                if mine:
                    known = chunks[found.index["conditions"][i][2]]
                    assert mine == [known[number] for number in told["lists"][i]]


def test_scores_of_a_question_are_those_of_the_table(root: Path, harbour: CorpusRecord) -> None:
    found = payload(harbour, SETTINGS)
    table = schemas.read(root / layout.stage("score", "harbour") / "scores.parquet",
                         schemas.SCORES).to_pylist()
    known = {(r["condition"], r["question_id"]): r["cov_ndcg@10"] for r in table
             if r["embedder"] in ("mpnet", "bm25")}
    for question in found.index["questions"]:
        for (name, _, _), value in zip(found.index["conditions"], question[8], strict=True):
            expected = known[name, question[0]]
            assert value == (None if expected is None else round(expected, 4))


@pytest.mark.parametrize("around", [None, 60])
def test_blocks_carry_the_text_that_they_say(harbour: CorpusRecord, around: int | None) -> None:
    found = payload(harbour, SETTINGS, around)
    for i, (doc_id, _, block, length) in enumerate(found.index["documents"]):
        body = harbour.documents[doc_id]["body"]
        pieces = found.blocks[block]["texts"][str(i)]
        assert length == len(body)
        assert all(text == body[start : start + len(text)] for start, text in pieces)
        carried = [Span(start, start + len(text)) for start, text in pieces]
        gold = [Span(e["start"], e["end"]) for q in harbour.questions for e in q["evidence"]
                if e["doc_id"] == doc_id]
        assert gold and all(any(part.contains(span) for part in carried) for span in gold)
        assert (carried == [Span(0, length)]) == (around is None)


def test_a_page_carries_whole_documents_or_what_lies_around_evidence(
    harbour: CorpusRecord,
) -> None:
    size = sum(len(row["body"].encode()) for row in harbour.documents.values())
    assert reach([harbour], size) is None
    around = reach([harbour], size - 1)
    assert around is not None and around <= 16_000
    tight = reach([harbour], size * 9 // 10)
    assert tight == 250
    parts = kept(harbour, tight)
    assert sum(len(span) for spans in parts.values() for span in spans) < size


# ---------------------------------------------------------------- the files


def test_metrics_are_the_tables_figures(root: Path, metrics: dict[str, Any]) -> None:
    folder = root / layout.stage("infer", "harbour")
    for mean in schemas.read(folder / "means.parquet", schemas.MEANS).to_pylist():
        if mean["slice"] == "primary":
            told = metrics["harbour"][mean["embedder"]]["means"][mean["condition"]]
            assert told[mean["measure"]] == mean["mean"]
    for found in schemas.read(folder / "contrasts.parquet", schemas.CONTRASTS).to_pylist():
        if found["measure"] == "cov_ndcg@10" and found["family"] in ("contrast", "step", "dose"):
            told = metrics["harbour"][found["embedder"]]["contrasts"][found["name"]]
            assert all(told[key] == found[key] for key in ("delta", "ci_low", "p_holm"))
            absent = found["status"] == "absent"
            assert told["standing"] == ("absent" if absent else found["standing"])


def test_a_p_of_nought_stands_beside_its_bound(harbour: CorpusRecord) -> None:
    drawn = replace(harbour, contrasts=[
        {**r, "interval": "percentile", "p": 0.0, "p_holm": 0.0 if r["family"] != "dose" else None}
        if r["name"] in ("C2", "A3-A2", "depth-induced") else r for r in harbour.contrasts])
    # 2/400 draws, times four contrasts or all steps; a slope has no Holm's p.
    steps = round(len(SETTINGS.steps) * 0.005, 3)
    expected = {"C2": (0.005, 0.02), "A3-A2": (0.005, steps), "depth-induced": (0.005, None)}
    told = json.loads(metrics_of([drawn], SETTINGS))["harbour"]["mpnet"]["contrasts"]
    assert {name: (c["p_below"], c.get("p_holm_below")) for name, c in told.items()
            if "p_below" in c} == expected
    rows = list(csv.DictReader(io.StringIO(tables([drawn], SETTINGS)["contrasts.csv"])))
    assert {(r["name"], r["p_bound"], r["p_holm_bound"]) for r in rows if r["p_bound"]} == {
        (name, str(p), str(q or "")) for name, (p, q) in expected.items()}
    assert {r["name"] for r in rows if not r["p_bound"]}.isdisjoint(expected)


def test_metrics_say_what_each_contrast_comes_to(
    metrics: dict[str, Any], harbour: CorpusRecord
) -> None:
    seen = set()
    for found in harbour.contrasts:
        if (found["measure"], found["family"]) != ("cov_ndcg@10", "contrast"):
            continue
        told, its = metrics["harbour"][found["embedder"]]["contrasts"][found["name"]], harbour.check
        assert told["verdict"] == judge(found, its(found), SETTINGS).words
        assert (told["interval"], told["ci90_low"]) == (found["interval"], found["ci90_low"])
        cautions = (its(found) or {"cautions": []})["cautions"]
        assert told.get("cautions", "") == "; ".join(cautions)
        seen |= {*cautions, told["verdict"]}
    assert {"absent", "difference"} < seen and "verdict" not in (
        metrics["harbour"]["mpnet"]["contrasts"]["depth-induced"])


def test_figures_of_tables_hold_no_rounding_noise(harbour: CorpusRecord) -> None:
    noisy = replace(harbour, checks={
        key: {**check, "equivalence_power": 7e-18, "icc": 0.1 + 0.2}
        for key, check in harbour.checks.items()})
    told = csv.DictReader(io.StringIO(tables([noisy], SETTINGS)["checks.csv"]))
    assert {(r["equivalence_power"], r["icc"]) for r in told} == {("0.0", "0.3")}


def test_metrics_hold_no_nan_and_a_reason_for_every_null(metrics: dict[str, Any]) -> None:
    def walk(value: Any, path: str) -> None:
        if isinstance(value, dict):
            if any(inner is None for inner in value.values()):
                assert value.get("reason"), path
            for key, inner in value.items():
                walk(inner, f"{path}/{key}")
        elif isinstance(value, float):
            assert math.isfinite(value), path

    walk(metrics, "")
    absent = metrics["harbour"]["mpnet"]
    assert absent["contrasts"]["C1"]["status"] == "absent"
    assert "no contexts" in absent["contrasts"]["C1"]["reason"]
    assert "no contexts" in absent["means"]["A1"]["reason"]
    # A slope varies and has no dz all the same.
    assert "slope has no dz" in absent["contrasts"]["depth-induced"]["reason"]


def test_only_registered_contrasts_of_the_primary_cell_are_confirmatory(
    metrics: dict[str, Any],
) -> None:
    confirmed = {
        (corpus, cell, name)
        for corpus, cells in metrics.items() for cell, found in cells.items()
        if isinstance(found, dict) for name, contrast in found.get("contrasts", {}).items()
        if contrast["standing"] == "confirmatory" and contrast["status"] == "estimated"
    }
    assert confirmed == {("harbour", "mpnet", name) for name in ("C2", "C3", "C4")}


def test_plots_and_tables_are_whole_csv(root: Path) -> None:
    files = sorted((root / "reports").glob("*/*.csv"))
    assert [f"{f.parent.name}/{f.name}" for f in files] == [
        "plots/budgets.csv", "plots/conditions.csv", "plots/contrasts.csv", "plots/depths.csv",
        "plots/units.csv", "tables/checks.csv", "tables/contrasts.csv",
        "tables/diagnostics.csv", "tables/exclusions.csv", "tables/funnel.csv", "tables/means.csv",
        "tables/mixed.csv", "tables/overlap.csv", "tables/replication.csv", "tables/sections.csv",
        "tables/standing.csv", "tables/units-comparisons.csv", "tables/units-means.csv",
    ]
    for path in files:
        text = path.read_text(encoding="utf-8")
        rows = list(csv.reader(io.StringIO(text)))
        assert len(rows) > 1 and {len(r) for r in rows} == {len(rows[0])}
        assert "nan" not in {cell.lower() for r in rows for cell in r} and "\r" not in text
    drawn = list(csv.DictReader(io.StringIO((root / "reports/plots/contrasts.csv").read_text())))
    assert [(r["corpus"], r["cell"], r["contrast"]) for r in drawn[:3]] == [
        ("harbour", "mpnet", "C2"), ("harbour", "mpnet", "C3"), ("harbour", "mpnet", "C4")]
    told = list(csv.DictReader(io.StringIO((root / "reports/tables/contrasts.csv").read_text())))
    judged = {(r["family"], r["measure"]) for r in told
              if r["verdict"] and r["status"] == "estimated"}
    assert judged == {("contrast", "cov_ndcg@10"), ("step", "cov_ndcg@10")}
    assert {(r["verdict"], r["standing"]) for r in told if r["status"] == "absent"} == {
        ("absent", "absent")}
    budgets = list(csv.DictReader(io.StringIO((root / "reports/plots/budgets.csv").read_text())))
    assert {r["tokens"] for r in budgets} == {
        m.split("@")[1] for m in MEASURES if m.startswith("coverage@")}


def test_dvc_shows_the_metrics(root: Path, tmp_path: Path) -> None:
    shutil.copy(root / "reports" / "metrics.json", tmp_path / "metrics.json")
    dvc = [sys.executable, "-m", "dvc"]
    quiet = {"cwd": tmp_path, "check": True, "capture_output": True, "text": True, "timeout": 120}
    subprocess.run([*dvc, "init", "--no-scm", "-q"], **quiet)  # type: ignore[call-overload]
    shown = subprocess.run(  # type: ignore[call-overload]
        [*dvc, "metrics", "show", "metrics.json", "--json"], **quiet)
    told = next(iter(json.loads(shown.stdout).values()))["data"]["metrics.json"]["data"]
    expected = json.loads((tmp_path / "metrics.json").read_text())["toy"]["mpnet"]
    assert told["toy"]["mpnet"]["means"]["G3"] == expected["means"]["G3"]
    assert told["toy"]["mpnet"]["contrasts"]["C2"]["delta"] == expected["contrasts"]["C2"]["delta"]


def test_the_same_artifacts_give_the_same_bytes_anywhere(root: Path, tmp_path: Path) -> None:
    shutil.copytree(root / "artifacts", tmp_path / "artifacts")
    report(tmp_path, SETTINGS)
    for path in sorted((root / "reports").rglob("*.*")):
        text = path.read_bytes()
        assert text == (tmp_path / path.relative_to(root)).read_bytes(), path.name
        assert str(root).encode() not in text
        assert b"0123abcd" not in text  # the registration's commit


def test_a_missing_artifact_is_named_and_nothing_is_written(root: Path, tmp_path: Path) -> None:
    shutil.copytree(root / "artifacts", tmp_path / "artifacts")
    (tmp_path / layout.stage("infer", "toy") / "contrasts.parquet").unlink()
    with pytest.raises(InputError, match=r"infer/toy/contrasts.parquet: no such table"):
        report(tmp_path, SETTINGS)
    assert not (tmp_path / "reports").exists()


def test_a_corpus_of_one_document_is_reported_whole(tmp_path: Path) -> None:
    world.build(tmp_path, SETTINGS, documents=1)
    report(tmp_path, SETTINGS)
    page = Page((tmp_path / "reports" / "report.html").read_text(encoding="utf-8"))
    assert "All questions are about one document" in page.text("verdict-harbour")
    metrics = json.loads((tmp_path / "reports" / "metrics.json").read_text())
    lone = metrics["harbour"]["mpnet"]["contrasts"]["C2"]
    assert lone["ci_low"] is None and "one document" in lone["reason"]
    assert np.isfinite(lone["delta"])
