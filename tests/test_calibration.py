"""What the calibration rests on: simulators with the moments they state, a check that can fail."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
import pytest
from bench import placebo
from bench.calibration import intervals
from bench.calibration.designs import DESIGNS
from bench.calibration.laws import Family, Law, Lumpy, Normal, Scores, uneven
from bench.calibration.studies import simulate
from bench.calibration.tables import rate

from spanwise import params, schemas
from spanwise.documents.model import Document, Paragraph
from spanwise.spans import Span
from spanwise.statistics import infer, pair
from spanwise.statistics.cautions import evenness, lopsided, warnings
from spanwise.statistics.checks import checks
from spanwise.statistics.linearised import FEW
from spanwise.statistics.power import icc
from spanwise.text.tokens import words

from .conftest import ROOT

LAWS: dict[str, Callable[[], Law]] = {
    "normal": lambda: Normal(uneven(8), mean=0.05),
    "sizes carry information": lambda: Normal(uneven(8), mean=0.05, slope=0.1),
    "zeros": lambda: Lumpy(uneven(3), 0.27, 0.39, 8.0, (1.5, 2.2), (1.0, 8.0)),
    "family": lambda: Family(uneven(8), (0.1, 0.0, -0.1, 0.0)),
    "scores": lambda: Scores(uneven(8), (-0.1, 0.0, 0.1, 0.05)),
}


def drawn(law: Law, documents: int, seed: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    counts = law.sizes.draw(rng, (documents,))
    values = law.draw(rng, counts)
    begins = np.concatenate([[0], np.cumsum(counts)[:-1]])
    return counts.astype(float), values, np.add.reduceat(values, begins, axis=1)


# ---------------------------------------------------------------- simulators

@pytest.mark.parametrize("name", LAWS)
def test_a_law_has_the_question_weighted_mean_that_it_states(name: str) -> None:
    law = LAWS[name]()
    counts, _, sums = drawn(law, 40_000, 1)
    means = sums.sum(axis=1) / counts.sum()
    residuals = sums - means[:, None] * counts
    error = np.sqrt((residuals**2).sum(axis=1)) / counts.sum()
    assert np.all(np.abs(means - law.truth()) < 4 * error)
    assert error.max() < 0.003  # so that a wrong mean would be seen


def test_where_sizes_carry_information_the_mean_over_documents_is_another() -> None:
    counts, _, sums = drawn(Normal(uneven(8), mean=0.0, slope=0.1), 40_000, 2)
    assert (sums[0] / counts).mean() < -0.03


@pytest.mark.parametrize("name", ["normal", "sizes carry information", "zeros"])
def test_a_law_has_the_error_that_it_states(name: str) -> None:
    law = LAWS[name]()
    assert isinstance(law, Normal | Lumpy)
    counts, _, sums = drawn(law, 400 * 100, 3)
    means = sums.reshape(400, 100).sum(axis=1) / counts.reshape(400, 100).sum(axis=1)
    # A standard deviation of 400 values is known to 1 / sqrt(800) = 3.5%.
    assert means.std() == pytest.approx(law.error(100), rel=0.12)


def test_zeros_have_the_shape_that_they_state() -> None:
    law = LAWS["zeros"]()
    assert isinstance(law, Lumpy)
    counts, values, sums = drawn(law, 40_000, 4)
    assert values.min() >= -1 and values.max() <= 1
    assert (values == 0).mean() == pytest.approx(0.73, abs=0.01)
    assert values.std() == pytest.approx(law.moments()[0], rel=0.02)
    assert icc(sums[0], counts, float((values**2).sum())) == pytest.approx(law.icc(), abs=0.01)
    assert law.towards(0.0).truth()[0] == pytest.approx(0.0, abs=1e-12)


def test_contrasts_that_share_a_condition_are_correlated() -> None:
    expected = [[1, 0.5, -0.5, -0.5], [0.5, 1, -0.5, -0.5], [-0.5, -0.5, 1, 0.5],
                [-0.5, -0.5, 0.5, 1]]
    for name in ("family", "scores"):
        _, values, _ = drawn(LAWS[name](), 20_000, 5)
        assert np.corrcoef(values) == pytest.approx(np.array(expected), abs=0.03)


# ---------------------------------------------------------------- the study of studies

def test_a_small_run_sees_what_is_known_and_goes_on_where_it_stopped(tmp_path: Path) -> None:
    out = tmp_path / "lines.jsonl"
    for only in ("even-null@20", "rare-effect@20"):
        intervals.run(out, 300, 200, only)
    whole = out.read_text(encoding="utf-8")
    lines = intervals.held(out)
    sound = [line for line in lines if line["design"] == "even-null"]
    found = rate(sound, "covers.linearised")
    # Equal sizes, normal: exact. 300 studies know a share of .95 to .0126.
    assert found is not None and found[0] == pytest.approx(0.95, abs=4 * 0.0126)
    scarce = rate([line for line in lines if line["design"] == "rare-effect"], "covers.linearised")
    assert scarce is not None and scarce[0] < 0.90
    out.write_text(whole[: len(whole) // 2], encoding="utf-8")  # killed within a line
    for only in ("even-null@20", "rare-effect@20"):
        intervals.run(out, 300, 200, only)
    assert sorted(out.read_text(encoding="utf-8").split("\n")) == sorted(whole.split("\n"))


def test_the_error_of_a_rate_is_that_of_independent_blocks() -> None:
    rng = np.random.default_rng(0)
    lines = [{"tally": {"x": (int(rng.binomial(50, 0.1)), 50)}} for _ in range(400)]
    found = rate(lines, "x")
    assert found is not None
    # sqrt(.1 x .9 / 20,000) = .0021.
    assert found[1] == pytest.approx(0.0021, rel=0.15)


# ---------------------------------------------------------------- cautions

def test_cautions_name_the_designs_that_miss_and_no_others() -> None:
    def share(design: str, documents: int, word: str) -> float:
        made = simulate(DESIGNS[design], documents, 0, 60)
        told = [warnings(*made.of(0, k)) for k in range(60)]
        return float(np.mean([any(word in text for text in found) for found in told]))

    assert share("dominant-null", 100, "hold most questions") > 0.9
    assert share("rare-effect", 60, "show any difference") > 0.9
    assert share("routing-null", 10, "lies below") > 0.6  # eighty questions may hold no large loss
    assert share("normal-2-null", 10, "unequal size") > 0.9
    for design in ("even-null", "normal-2-effect", "path-effect", "scores-null"):
        assert share(design, 60, "") == 0.0
    assert share("dominant-null", 1_500, "") == 0.0


@pytest.mark.parametrize(("documents", "even", "cautioned"), [
    (30, False, True), (59, False, True), (60, False, False), (30, True, False),
    (29, False, False),  # there Student's interval is of record
])
def test_percentiles_over_few_uneven_documents_have_a_caution(
    documents: int, even: bool, cautioned: bool
) -> None:
    rng = np.random.default_rng(5)
    sizes = [4] * documents if even else [1 + 5 * (i % 2) for i in range(documents)]
    names = [f"d{i:02d}" for i, size in enumerate(sizes) for _ in range(size)]
    a = {f"q{i:03d}": (name, float(rng.normal(0.5, 0.2))) for i, name in enumerate(names)}
    b = {q: (name, float(rng.normal(0.5, 0.2))) for q, (name, _) in a.items()}
    pairs = [pair("C", a, b)]
    found = {c.name: c for c in infer(pairs, 200, 0, few=FEW)}
    said = checks(pairs, found, 200, 0, 0.01, 4)[0]["cautions"]
    assert any("percentile interval covers" in text for text in said) is cautioned


def test_figures_behind_cautions_by_hand() -> None:
    assert evenness(np.array([2.0, 2.0, 2.0])) == 1.0
    assert evenness(np.array([8.0, 1.0, 1.0])) == pytest.approx(100 / (3 * 66))
    # -3 and three 1s: sum of cubes -27 + 3, sum of squares 12.
    assert lopsided([-3.0, 1.0, 1.0, 1.0]) == pytest.approx(-24 / 12**1.5)
    assert lopsided([0.5, 0.5]) == 0.0


# ---------------------------------------------------------------- placebo against placebo

def toy() -> placebo.World:
    """Thirty documents of four sections; a question shares words with its section and its path."""
    rng = np.random.default_rng(7)
    documents, chunks, questions = [], [], []
    for d in range(30):
        title, body, at = f"manual{d}", "", []
        for _ in range(4):
            begin = len(body)
            text = " ".join(f"word{w}" for w in rng.integers(0, 60, 25))
            body += text + "\n\n"
            at.append((Span(begin, begin + len(text)), f"part{rng.integers(40)}", text.split()))
        name = f"doc{d:02d}"
        documents.append(Document(
            name, title, body, tuple(Paragraph(span, "text", None) for span, _, _ in at), (),
            None, "toy", "1", (),
        ))
        for s, (span, section, its) in enumerate(at):
            chunks.append({
                "segmentation": "induced", "chunk_id": f"{name}:{s}", "doc_id": name,
                "start": span.start, "end": span.end, "tokens": 25, "path": [title, section],
                "node": s,
            })
            evidence = [{"doc_id": name, "start": span.start, "end": span.end}]
            questions.append({
                "question_id": f"{name}-{s}", "doc_id": name, "base": None, "type": "factoid",
                "text": f"{title} {section} part{rng.integers(40)} {its[0]} {its[1]}",
                "evidence": evidence, "bundles": [[0]], "raw_evidence": evidence,
                "raw_bundles": [[0]], "excluded": None,
            })
    return placebo.World(
        params.load(ROOT / "params.yaml"), documents, schemas.table(schemas.CHUNKS, chunks),
        schemas.table(schemas.QUESTIONS, questions), words(),
    )


def judged(world: placebo.World, wrong: str | None) -> placebo.Check:
    found = placebo.run(world, range(16), wrong)
    return placebo.check([c.p for c in found if c.p is not None],
                         [c.delta for c in found if c.delta is not None])


def test_placebo_against_placebo_holds_and_against_the_path_does_not() -> None:
    world = toy()
    fair = judged(world, None)
    assert fair.n == 16 and not fair.failed
    assert {"rate", "shape", "zero"} <= set(judged(world, "path").failed)


def test_both_placebos_are_foreign_and_differ() -> None:
    world = toy()
    prefixes = [world.assigned(seed)["prefix"].to_pylist() for seed in placebo.derived(3)]
    true = world.assigned(None)["prefix"].to_pylist()
    same = [sum(a == b for a, b in zip(x, y, strict=True))
            for x, y in ((prefixes[0], prefixes[1]), (prefixes[0], true), (prefixes[1], true))]
    assert all(count < 12 for count in same), same  # of 120


def test_questions_resampled_in_place_of_documents_are_noticed() -> None:
    def p_values(by_document: bool) -> tuple[list[float], list[float]]:
        made = simulate(DESIGNS["normal-2-null"], 60, 0, 100)
        pairs = []
        for k in range(100):
            _, counts, values = made.of(0, k)
            owners: Sequence[int] = np.repeat(np.arange(60), counts.astype(int)).tolist()
            pairs.append(pair("A/A", *(
                {f"q{i}": (f"d{d}" if by_document else f"q{i}", value * side)
                 for i, (d, value) in enumerate(zip(owners, values.tolist(), strict=True))}
                for side in (0.5, -0.5)
            )))
        found = [infer([two], 400, 1, few=FEW)[0] for two in pairs]
        return [c.p or 0.0 for c in found], [c.delta or 0.0 for c in found]

    assert not placebo.check(*p_values(by_document=True)).failed
    assert "rate" in placebo.check(*p_values(by_document=False)).failed
