"""Scoring 10,000 questions x 50 results: every measure here against nDCG alone in pytrec_eval.

    python bench/scoring.py [--questions 10000] [--depth 50] [--repeats 7]

Both sides start from the same TREC run on disk and end in numbers for each question. Three timings,
each the median of interleaved repeats, best before worst:

    run      judgements and chunks prepared beforehand on both sides; the run is parsed and scored
    prepare  the preparation from memory is inside as well: pytrec_eval builds its evaluator from a
             dictionary of judgements, spanwise finds overlaps and the greedy ideals from arrays
    files    nothing is prepared: pytrec_eval parses a qrels file, spanwise the JSON lines of
             questions and chunks, and the run

pytrec_eval gets the relevance rule as its judgements: both judge the same chunks. Exit code 1 if
the first ratio is not below 1.
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytrec_eval

from spanwise.measures.evaluate import Evaluator
from spanwise.measures.files import read_chunks, read_questions
from spanwise.measures.trec import read_run

DOCUMENTS, CHUNKS_EACH, MEAN_CHARACTERS = 1_500, 27, 1_100


def corpus(folder: Path, questions: int, depth: int, seed: int) -> None:
    """Write chunks that tile documents, questions with 1-4 spans, and a run that finds some."""
    rng = np.random.default_rng(seed)
    lines, places = [], []
    for doc in range(DOCUMENTS):
        edges = np.concatenate([[0], np.cumsum(rng.integers(400, 1_800, CHUNKS_EACH))])
        for start, end in zip(edges[:-1].tolist(), edges[1:].tolist(), strict=True):
            name = f"document-{doc:04d}:{start}-{end}"
            places.append(name)
            lines.append(json.dumps({
                "chunk_id": name, "doc_id": f"document-{doc:04d}", "start": start, "end": end,
                "tokens": (end - start) // 4, "prefix_tokens": 12,
            }))
    (folder / "chunks.jsonl").write_text("\n".join(lines) + "\n")
    asked, run = [], []
    for q in range(questions):
        doc = int(rng.integers(DOCUMENTS))
        starts = rng.integers(0, CHUNKS_EACH * MEAN_CHARACTERS - 2_000, rng.integers(1, 5))
        lengths = rng.integers(40, 1_500, len(starts))
        asked.append(json.dumps({
            "question_id": f"q{q:05d}", "doc_id": f"document-{doc:04d}", "text": "what?",
            "evidence": [{"start": int(s), "end": int(s + n)}
                         for s, n in zip(starts, lengths, strict=True)],
        }))
        near = doc * CHUNKS_EACH + rng.choice(CHUNKS_EACH, min(15, depth), replace=False)
        far = rng.choice(len(places), depth, replace=False)
        found = list(dict.fromkeys([*near.tolist(), *far.tolist()]))[:depth]
        rng.shuffle(found)
        scores = np.sort(rng.random(len(found)))[::-1]
        run += [
            f"q{q:05d} Q0 {places[c]} {i} {s:.6f} dense"
            for i, (c, s) in enumerate(zip(found, scores.tolist(), strict=True), start=1)
        ]
    (folder / "questions.jsonl").write_text("\n".join(asked) + "\n")
    (folder / "run.trec").write_text("\n".join(run) + "\n")


def seconds(work: Callable[[], object]) -> float:
    """Wall time of one call."""
    start = time.perf_counter()
    work()
    return time.perf_counter() - start


def main() -> int:
    """Write the files, time both sides, print the medians and their ratios."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--questions", type=int, default=10_000)
    parser.add_argument("--depth", type=int, default=50)
    parser.add_argument("--repeats", type=int, default=7)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch)
        corpus(folder, options.questions, options.depth, options.seed)
        run = folder / "run.trec"
        chunks = read_chunks(folder / "chunks.jsonl")
        gold = read_questions(folder / "questions.jsonl", chunks)
        ours = Evaluator(gold, chunks)
        judged: dict[str, dict[str, int]] = {}
        for question, chunk in ours.relevance():
            judged.setdefault(question, {})[chunk] = 1
        (folder / "qrels").write_text("".join(
            f"{q} 0 {c} 1\n" for q, found in judged.items() for c in found
        ))
        theirs = pytrec_eval.RelevanceEvaluator(judged, {"ndcg"})

        def parse() -> dict[str, dict[str, float]]:
            with run.open() as stream:
                return pytrec_eval.parse_run(stream)

        def their_files() -> object:
            with (folder / "qrels").open() as stream:
                parsed = pytrec_eval.parse_qrel(stream)
            return pytrec_eval.RelevanceEvaluator(parsed, {"ndcg"}).evaluate(parse())

        def our_files() -> object:
            units = read_chunks(folder / "chunks.jsonl")
            asked = read_questions(folder / "questions.jsonl", units)
            return Evaluator(asked, units).evaluate(read_run(run, asked, units))

        sides: dict[str, tuple[Callable[[], object], Callable[[], object]]] = {
            "run": (
                lambda: ours.evaluate(read_run(run, gold, chunks)),
                lambda: theirs.evaluate(parse()),
            ),
            "prepare": (
                lambda: Evaluator(gold, chunks).evaluate(read_run(run, gold, chunks)),
                lambda: pytrec_eval.RelevanceEvaluator(judged, {"ndcg"}).evaluate(parse()),
            ),
            "files": (our_files, their_files),
        }
        print(
            f"{len(gold)} questions x {options.depth} results, {len(chunks)} chunks, "
            f"{run.stat().st_size / 1e6:.1f} MB run, median of {options.repeats}"
        )
        ratios = {}
        for name, (mine, other) in sides.items():
            times = [(seconds(mine), seconds(other)) for _ in range(options.repeats)]
            own, peer = (statistics.median(side) for side in zip(*times, strict=True))
            ratios[name] = own / peer
            print(
                f"{name:8} spanwise, all measures {own:.3f} s   pytrec_eval, nDCG {peer:.3f} s   "
                f"ratio {own / peer:.2f}"
            )
    return 0 if ratios["run"] < 1 else 1


if __name__ == "__main__":
    sys.exit(main())
