"""The array code against the plain functions (equal bits) and both against the twin (close)."""

from __future__ import annotations

import json
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from spanwise import measures as plain
from spanwise.measures.arrays import Ranking
from spanwise.measures.door import score_files
from spanwise.measures.evaluate import Evaluator, Scores
from spanwise.measures.files import read_chunks, read_questions
from spanwise.measures.geometry import NEVER, first_cover
from spanwise.measures.trec import read_run
from spanwise.spans import Evidence

from . import reference_measures as twin

LENGTH = 30


@st.composite
def pieces(draw: st.DrawFn, most: int) -> list[tuple[str, int, int]]:
    found = []
    for _ in range(draw(st.integers(0, most))):
        start = draw(st.integers(0, LENGTH - 1))
        found.append((draw(st.sampled_from("abc")), start, draw(st.integers(start + 1, LENGTH))))
    return found


@st.composite
def studies(draw: st.DrawFn) -> dict[str, Any]:
    """Chunks that overlap, nest, repeat or leave gaps; evidence in several documents; ties."""
    tokens = st.sampled_from([0, 1, 200, 300, 513]) if draw(st.booleans()) else st.none()
    tokens = st.one_of(tokens, st.none()) if draw(st.booleans()) else tokens
    tiles = [("a", i, i + 6) for i in range(0, LENGTH, 6)] if draw(st.booleans()) else []
    named = draw(st.permutations(range(99)))
    chunks = [
        twin.Piece(*place, f"c{name}", draw(tokens), draw(st.sampled_from([0, 12])))
        for place, name in zip([*tiles, *draw(pieces(14)), ("a", 0, 1)], named, strict=False)
    ]
    questions = []
    for q in range(draw(st.integers(1, 4))):
        gold = [twin.Piece(*place) for place in draw(pieces(4))]
        bundles = draw(st.lists(
            st.lists(st.integers(0, len(gold) - 1), min_size=1, max_size=3), max_size=3
        )) if gold else []
        ranked = draw(st.lists(st.sampled_from(chunks), unique=True, max_size=len(chunks)))
        scores = [draw(st.sampled_from([-1.0, 0.0, 0.25, 2.5])) for _ in ranked]
        questions.append((f"q{q}", gold, bundles, list(zip(scores, ranked, strict=True))))
    lines = [(q, s, c.name) for q, _, _, run in questions for s, c in run]
    return {"chunks": chunks, "questions": questions, "lines": draw(st.permutations(lines))}


def write(folder: Path, study: dict[str, Any]) -> tuple[Path, Path, Path]:
    asked, units, run = folder / "q.jsonl", folder / "c.jsonl", folder / "r.trec"
    known = {c.doc for c in study["chunks"]}
    rows = []
    for question, gold, bundles, _ in study["questions"]:
        row: dict[str, Any] = {"question_id": question, "doc_id": "a", "text": "?", "evidence": [
            {"doc_id": g.doc, "start": g.start, "end": g.end} for g in gold
        ]}
        if bundles:
            row["bundles"] = bundles
        rows.append(row)
    spare = [
        {"chunk_id": f"spare-{doc}", "doc_id": doc, "start": 90, "end": 91, "tokens": 1}
        for doc in "abc" if doc not in known
    ]
    parts = [
        {"chunk_id": c.name, "doc_id": c.doc, "start": c.start, "end": c.end, "tokens": c.tokens,
         "prefix_tokens": c.prefix}
        for c in study["chunks"]
    ]
    asked.write_text("".join(json.dumps(row) + "\n" for row in rows))
    units.write_text("".join(json.dumps(part) + "\n" for part in [*parts, *spare]))
    run.write_text("".join(f"{q} Q0 {c} 1 {s} t\n" for q, s, c in study["lines"]))
    return asked, units, run


def scored(study: dict[str, Any]) -> Scores:
    with tempfile.TemporaryDirectory() as folder:
        return score_files(*write(Path(folder), study))


def by_hand(study: dict[str, Any], gold: list[Any], bundles: Any, run: Any) -> dict[str, Any]:
    """The plain functions of one question, None where a measure is undefined."""
    def unit(c: twin.Piece) -> plain.Unit:
        return plain.Unit(c.doc, c.start, c.end, c.tokens, c.prefix)

    spans = [Evidence(g.doc, g.start, g.end) for g in gold]
    ranked = [unit(c) for _, c in sorted(run, key=lambda pair: (-pair[0], pair[1].name))]
    units = [unit(c) for c in study["chunks"]]
    if not spans:
        return {}
    found: dict[str, Any] = {
        "cov_ndcg@10": plain.cov_ndcg(ranked, spans, units),
        "recall@50": plain.recall(ranked, spans),
        "mrr": plain.reciprocal_rank(ranked, spans),
        "ndcg@10": plain.ndcg(ranked, spans, units),
        "sufficient@3": plain.sufficient(ranked, spans, bundles),
        "bundle_coverage@3": plain.bundle_coverage(ranked, spans, bundles),
    }
    counted = any(c.tokens is not None for c in study["chunks"])
    for budget in (512, 1024, 2048):
        found[f"coverage@{budget}"] = (
            plain.budget_coverage(ranked, spans, budget) if counted else None
        )
    return found


@settings(deadline=None, max_examples=150)
@given(studies())
def test_every_measure_is_the_plain_one_bit_for_bit_and_the_twin_closely(
    study: dict[str, Any],
) -> None:
    # A spare chunk carries tokens and would make "nobody counted" untrue: keep every document.
    study["chunks"] += [
        twin.Piece(doc, LENGTH + 1, LENGTH + 2, f"z{doc}", study["chunks"][0].tokens)
        for doc in "abc"
    ]
    rows = list(scored(study).rows())
    assert [row["question_id"] for row in rows] == [q for q, *_ in study["questions"]]
    for row, (_, gold, bundles, run) in zip(rows, study["questions"], strict=True):
        for measure, value in by_hand(study, gold, bundles, run).items():
            assert row[measure] == value, measure
        ranked = [c for _, c in sorted(run, key=lambda pair: (-pair[0], pair[1].name))]
        expected = twin.measures(
            ranked, study["chunks"], gold, bundles or [list(range(len(gold)))]
        )
        for measure, value in expected.items():
            assert row[measure] == (None if value is None else pytest.approx(value, abs=1e-12))


@settings(deadline=None, max_examples=40)
@given(studies(), st.randoms(use_true_random=False))
def test_no_value_depends_on_the_order_of_anything(study: dict[str, Any], random: Any) -> None:
    first = {row["question_id"]: row for row in scored(study).rows()}
    for part in ("chunks", "questions", "lines"):
        study[part] = random.sample(list(study[part]), len(study[part]))
    again = scored(study)
    assert {row["question_id"]: row for row in again.rows()} == first
    assert all(np.isfinite(values).all() for values in again.values.values())


@settings(deadline=None, max_examples=60)
@given(studies(), st.data())
def test_first_cover_is_the_least_rank_over_each_piece(
    study: dict[str, Any], data: st.DataObject
) -> None:
    with tempfile.TemporaryDirectory() as folder:
        asked, units, _ = write(Path(folder), study)
        chunks = read_chunks(units)
        found = Evaluator(read_questions(asked, chunks), chunks)._found
    size = len(found.keys)
    ranks = np.array(data.draw(st.permutations(range(1, size + 1))), dtype=np.int64)
    ranks[np.array(data.draw(st.lists(st.booleans(), min_size=size, max_size=size)), bool)] = NEVER
    cover, through = first_cover(found, ranks)
    for piece in range(len(found.piece_spans)):
        over = [
            (int(ranks[found.pair_candidates[p]]), p) for p in range(len(found.pair_spans))
            if found.first[p] <= piece < found.last[p] and ranks[found.pair_candidates[p]] != NEVER
        ]
        assert cover[piece] == (min(over)[0] if over else NEVER)
        if over:
            assert through[piece] == min(over)[1]


def test_deep_overlap_is_exact_and_stays_small() -> None:
    # 3,000 chunks of 300 characters, one starting at each character, over one span of 3,000:
    # ranked back to front in steps of 300, ten of them cover [2990 - 9 x 300, 3290) = [290, 3000).
    gold = '{"question_id":"q","doc_id":"d","text":"?","evidence":[{"start":0,"end":3000}]}\n'
    units = "".join(
        json.dumps({"chunk_id": f"c{i}", "doc_id": "d", "start": i, "end": i + 300}) + "\n"
        for i in range(3000)
    )
    run = "".join(f"q Q0 c{2990 - 300 * i} 1 {-i} t\n" for i in range(10))
    with tempfile.TemporaryDirectory() as folder:
        paths = [Path(folder) / name for name in ("q", "c", "r")]
        for path, text in zip(paths, (gold, units, run), strict=True):
            path.write_text(text)
        chunks = read_chunks(paths[1])
        asked = read_questions(paths[0], chunks)
        scores = Evaluator(asked, chunks).evaluate(read_run(paths[2], asked, chunks))
    # The first gains 10 / 3000 (of its 300 characters 290 lie beyond the span), nine gain 0.1 each.
    achieved = 10 / 3000 + sum(0.1 / np.log2(rank + 1) for rank in range(2, 11))
    best = sum(0.1 / np.log2(rank + 1) for rank in range(1, 11))
    assert scores.values["cov_ndcg@10"][0] == pytest.approx(achieved / best, abs=1e-12)
    assert scores.values["recall@50"][0] == 1.0


def test_a_ranking_out_of_order_or_with_a_repeat_is_refused() -> None:
    study = {
        "chunks": [twin.Piece("a", 0, 5, "x"), twin.Piece("a", 5, 9, "y")],
        "questions": [("q0", [twin.Piece("a", 0, 5)], [], [])] * 1
        + [("q1", [twin.Piece("a", 0, 5)], [], [])],
        "lines": [],
    }
    with tempfile.TemporaryDirectory() as folder:
        asked, units, _ = write(Path(folder), study)
        chunks = read_chunks(units)
        evaluator = Evaluator(read_questions(asked, chunks), chunks)
    ints = np.array
    with pytest.raises(ValueError, match="ascending"):
        evaluator.evaluate(Ranking(ints([1, 0]), ints([0, 0])))
    with pytest.raises(ValueError, match="'q1' ranks chunk 'y' twice"):
        evaluator.evaluate(Ranking(ints([0, 1, 1]), ints([0, 1, 1])))
