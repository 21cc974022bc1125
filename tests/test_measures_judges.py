"""Outside judges: ndeval and ir_measures for alpha-nDCG, trec_eval for binary nDCG and MRR."""

from __future__ import annotations

import ir_measures
import numpy as np
import pyndeval
import pytest
import pytrec_eval

from spanwise.measures import arrays
from spanwise.measures.arrays import Chunks, Gold, Ranking
from spanwise.measures.evaluate import Evaluator, Scores

Spans = list[tuple[str, int, int]]


def study(
    units: Spans, evidence: list[Spans], rankings: list[list[int]]
) -> tuple[Chunks, Evaluator, Scores]:
    """Score rankings given as indices into `units`; chunk ids are their numbers."""
    names = [f"c{i:04d}" for i in range(len(units))]
    docs, starts, ends = (list(column) for column in zip(*units, strict=True))
    chunks = arrays.chunks(names, docs, starts, ends, [1] * len(units))
    flat = [span for spans in evidence for span in spans]
    sizes = [len(spans) for spans in evidence]
    gold = Gold(
        arrays.strings([f"q{i:03d}" for i in range(len(evidence))]),
        arrays.strings(["d"] * len(evidence)), arrays.edges(sizes),
        arrays.strings([doc for doc, _, _ in flat]), arrays.ints([s for _, s, _ in flat]),
        arrays.ints([e for _, _, e in flat]), arrays.edges([1] * len(evidence)),
        arrays.edges(sizes), np.arange(len(flat)),
    )
    questions = np.repeat(np.arange(len(rankings)), [len(r) for r in rankings])
    named = arrays.strings([names[i] for r in rankings for i in r])
    evaluator = Evaluator(gold, chunks)
    return chunks, evaluator, evaluator.evaluate(
        Ranking(questions, arrays.places(named, chunks.chunk_ids))
    )


def whole_or_nothing(seed: int, repeats: bool) -> tuple[Spans, list[Spans], list[list[int]]]:
    """Chunks that hold each span whole or not at all: nuggets in the sense of alpha-nDCG.

    Spans are single cells of ten; a chunk is a run of cells. With `repeats` chunks overlap, each
    pair of runs such that every cell lies in one or two of them.
    """
    rng = np.random.default_rng(seed)
    units: Spans = []
    for doc in ("d", "e"):
        for shift in (0, 1) if repeats else (0,):
            cell = 0
            while cell < 60:
                run = int(rng.integers(1, 5)) + shift
                units.append((doc, cell * 10, min(cell + run, 60) * 10))
                cell += run
    units = list(dict.fromkeys(units))
    evidence, rankings = [], []
    for _ in range(40):
        cells = rng.choice(60, int(rng.integers(1, 9)), replace=False)
        evidence.append([(str(rng.choice(["d", "e"])), int(c) * 10 + 1, int(c) * 10 + 9)
                         for c in cells])
        rankings.append(rng.permutation(len(units))[:25].tolist())
    return units, evidence, rankings


def nuggets(units: Spans, evidence: list[Spans]) -> list[tuple[str, str, str, int]]:
    """Judgements: question, span as subtopic, chunk, 1 where the chunk holds the span."""
    return [
        (f"q{q:03d}", str(s), f"c{c:04d}", 1)
        for q, spans in enumerate(evidence)
        for s, (doc, start, end) in enumerate(spans)
        for c, (other, first, last) in enumerate(units)
        if doc == other and first <= start and end <= last
    ]


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("repeats", [False, True])
def test_cov_ndcg_is_alpha_ndcg_with_alpha_1_where_spans_are_never_cut(
    seed: int, repeats: bool
) -> None:
    units, evidence, rankings = whole_or_nothing(seed, repeats)
    _, _, scores = study(units, evidence, rankings)
    run = [
        (f"q{q:03d}", f"c{c:04d}", float(-i))
        for q, r in enumerate(rankings) for i, c in enumerate(r)
    ]
    judge = pyndeval.RelevanceEvaluator(nuggets(units, evidence), ["alpha-nDCG@10"], alpha=1.0)
    verdict = judge.evaluate(run)
    for q, value in enumerate(scores.values["cov_ndcg@10"]):
        assert value == pytest.approx(verdict[f"q{q:03d}"]["alpha-nDCG@10"], abs=1e-6), q


def test_cov_ndcg_is_ir_measures_alpha_ndcg_too() -> None:
    units, evidence, rankings = whole_or_nothing(7, repeats=False)
    _, _, scores = study(units, evidence, rankings)
    measure = ir_measures.alpha_nDCG(alpha=1.0) @ 10
    qrels = [
        ir_measures.Qrel(q, c, rel, subtopic) for q, subtopic, c, rel in nuggets(units, evidence)
    ]
    run = [
        ir_measures.ScoredDoc(f"q{q:03d}", f"c{c:04d}", float(-i))
        for q, r in enumerate(rankings) for i, c in enumerate(r)
    ]
    verdict = {m.query_id: m.value for m in ir_measures.iter_calc([measure], qrels, run)}
    assert len(verdict) == len(evidence)
    for q, value in enumerate(scores.values["cov_ndcg@10"]):
        assert value == pytest.approx(verdict[f"q{q:03d}"], abs=1e-6)


@pytest.mark.parametrize("seed", range(5))
def test_binary_ndcg_and_mrr_are_trec_evals(seed: int) -> None:
    rng = np.random.default_rng(seed)
    units = [
        (doc, int(start), int(start + rng.integers(5, 40)))
        for doc in ("d", "e") for start in range(0, 400, 15)
    ]
    evidence = [
        [(str(rng.choice(["d", "e"])), int(s), int(s + rng.integers(4, 60)))
         for s in rng.integers(0, 380, rng.integers(1, 5))]
        for _ in range(40)
    ]
    rankings = [rng.permutation(len(units))[:30].tolist() for _ in evidence]
    _, evaluator, scores = study(units, evidence, rankings)
    judged: dict[str, dict[str, int]] = {}
    for question, chunk in evaluator.relevance():
        judged.setdefault(question, {})[chunk] = 1
    run = {
        f"q{q:03d}": {f"c{c:04d}": float(-i) for i, c in enumerate(r)}
        for q, r in enumerate(rankings)
    }
    verdict = pytrec_eval.RelevanceEvaluator(judged, {"ndcg_cut_10", "recip_rank"}).evaluate(run)
    assert len(judged) > 30
    for q in range(len(evidence)):
        expected = verdict.get(f"q{q:03d}", {"ndcg_cut_10": 0.0, "recip_rank": 0.0})
        assert scores.values["ndcg@10"][q] == pytest.approx(expected["ndcg_cut_10"], abs=1e-9)
        assert scores.values["mrr"][q] == pytest.approx(expected["recip_rank"], abs=1e-9)
    assert scores.counts["no_relevant"] == len(evidence) - len(judged)
