"""Every measure of every question at once: what `score`, the pipeline and the benchmark call.

The values are those of the plain functions, bit for bit: covered lengths are integers, and shares
are added in the order of the formulas.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from spanwise.errors import RunError
from spanwise.measures.arrays import (
    UNKNOWN,
    Chunks,
    Gold,
    Ints,
    Ranking,
    edges,
    owners,
    repeated,
    sums,
)
from spanwise.measures.budget import BUDGETS
from spanwise.measures.bundles import UNITS
from spanwise.measures.geometry import (
    DISCOUNTS,
    NEVER,
    Geometry,
    first_cover,
    ideal_dcg,
    overlaps,
)
from spanwise.measures.places import DEEPEST

RECALL_DEPTH = 50
"""How many units recall looks at."""

Floats = NDArray[np.float64]
Bools = NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class Scores:
    """All measures of one ranking.

    gold:    the questions, in the order of the columns.
    values:  measure -> (Q,) values, 0 where undefined; never NaN.
    defined: measure -> (Q,) False where the measure is undefined for the question.
    counts:  what was scored 0 or left undefined and why, by name:
             questions, no_evidence (every measure null), absent (not in the run: 0),
             no_relevant (no chunk of the segmentation is relevant: mrr and ndcg 0),
             unreachable (no chunk touches the evidence: cov_ndcg 0),
             above_one (cov_ndcg above 1: greedy is a stand-in), uncounted (some budget coverage
             null for chunks without tokens), strangers (questions of the run that nobody asked).
    """

    gold: Gold
    values: Mapping[str, Floats]
    defined: Mapping[str, Bools]
    counts: Mapping[str, int]

    def column(self, measure: str) -> pa.Array:
        """(Q,) the measure as an Arrow column, null where it is undefined."""
        return pa.array(self.values[measure], mask=~self.defined[measure])

    def mean(self, measure: str) -> tuple[float | None, int]:
        """Mean over the questions the measure is defined for, None over none, and their number."""
        kept = self.values[measure][self.defined[measure]]
        # fsum: the same mean whatever order the questions stand in.
        return (math.fsum(kept.tolist()) / len(kept) if len(kept) else None), len(kept)

    def rows(self) -> Iterator[dict[str, str | float | None]]:
        """One row a question: question_id, doc_id and each measure."""
        names = ["question_id", "doc_id", *self.values]
        columns = [self.gold.question_ids.to_pylist(), self.gold.doc_ids.to_pylist()]
        columns += [self.column(measure).to_pylist() for measure in self.values]
        for row in zip(*columns, strict=True):
            yield dict(zip(names, row, strict=True))


class Evaluator:
    """Scores rankings of one segmentation's chunks for a fixed set of questions.

    What does not depend on a ranking (overlaps, relevance, the greedy ideal) is computed once, so
    the conditions that share a segmentation share an evaluator.
    """

    def __init__(self, gold: Gold, chunks: Chunks) -> None:
        self.gold, self.chunks = gold, chunks
        self._found: Geometry = overlaps(gold, chunks)
        self._ideal = ideal_dcg(self._found, len(gold))
        self._relevant = np.bincount(self._found.questions[self._found.relevant],
                                     minlength=len(gold))
        self._touched = np.zeros(len(chunks), dtype=bool)
        self._touched[self._found.keys % max(len(chunks), 1)] = True

    def relevance(self) -> Iterator[tuple[str, str]]:
        """Each (question id, chunk id) of a relevant chunk: the judgements of a TREC tool."""
        keys = self._found.keys[self._found.relevant]
        questions = self.gold.question_ids.take(pa.array(keys // max(len(self.chunks), 1)))
        units = self.chunks.chunk_ids.take(pa.array(keys % max(len(self.chunks), 1)))
        yield from zip(questions.to_pylist(), units.to_pylist(), strict=True)

    def evaluate(self, ranking: Ranking, prefix_tokens: Ints | None = None) -> Scores:
        """Every measure of every question.

        ranking:       indices into this evaluator's questions and chunks.
        prefix_tokens: (C,) tokens of the rendered prefixes of this condition, in the order of the
                       chunks; by default what the chunks themselves say.
        raises:        RunError if the ranking is not sorted by question or repeats a chunk.
        """
        gold, found = self.gold, self._found
        counts = self._checked(ranking)
        begins = edges(counts)
        keys = ranking.questions * len(self.chunks) + ranking.chunks

        rows = np.flatnonzero(self._touched[ranking.chunks])
        at = np.minimum(np.searchsorted(found.keys, keys[rows]), max(len(found.keys) - 1, 0))
        hit = found.keys[at] == keys[rows] if len(rows) else np.zeros(0, dtype=bool)
        rows, candidates = rows[hit], at[hit]
        questions = ranking.questions[rows]
        ranks = rows - begins[questions] + 1
        rank_of = np.full(len(found.keys), NEVER)
        rank_of[candidates] = ranks
        cover, through = first_cover(found, rank_of)

        values: dict[str, Floats] = {}
        top = ranks <= DEEPEST
        fresh = np.where(cover == NEVER, 0, found.piece_lengths)
        gains = found.gains(sums(through, fresh, len(found.pair_candidates)))[candidates]
        achieved = sums(questions[top], gains[top] / DISCOUNTS[ranks[top]], len(gold))
        values["cov_ndcg@10"] = _ratio(achieved, self._ideal)
        half = 2 * self._covered(cover, np.full(len(gold), RECALL_DEPTH)) >= found.lengths
        values["recall@50"] = self._mean(half.astype(np.float64))
        relevant = found.relevant[candidates]
        values["mrr"] = _reciprocal(questions[relevant], ranks[relevant], len(gold))
        values["ndcg@10"] = self._binary(questions[relevant & top], ranks[relevant & top])

        cuts, met = self._fitting(ranking, begins, prefix_tokens)
        for budget, cut in cuts.items():
            seen = self._covered(cover, cut)
            values[f"coverage@{budget}"] = self._mean(seen / found.lengths)
        values[f"sufficient@{UNITS}"] = self._sufficient(rank_of)
        whole = self._covered(cover, np.full(len(gold), UNITS)) == found.lengths
        values[f"bundle_coverage@{UNITS}"] = self._bundles(whole).astype(np.float64)

        has = found.sizes > 0
        defined = dict.fromkeys(values, has)
        for budget, cut in cuts.items():
            defined[f"coverage@{budget}"] = has & ~(met <= cut)
        for measure, kept in defined.items():
            values[measure][~kept] = 0.0
        uncounted = has & ~np.logical_and.reduce([defined[f"coverage@{b}"] for b in BUDGETS])
        return Scores(gold, values, defined, {
            "questions": len(gold),
            "no_evidence": int((~has).sum()),
            "absent": int((has & (counts == 0)).sum()),
            "no_relevant": int((has & (self._relevant == 0)).sum()),
            "unreachable": int((has & (self._ideal == 0)).sum()),
            "above_one": int((values["cov_ndcg@10"] > 1 + 1e-9).sum()),
            "uncounted": int(uncounted.sum()),
            "strangers": ranking.strangers,
        })

    def _checked(self, ranking: Ranking) -> Ints:
        if (np.diff(ranking.questions) < 0).any():
            raise RunError("a ranking lists its questions in ascending order; this one does not")
        if (again := repeated(ranking.questions, ranking.chunks)) is not None:
            raise RunError(
                f"question {self.gold.question_ids[again[0]].as_py()!r} ranks chunk "
                f"{self.chunks.chunk_ids[again[1]].as_py()!r} twice; a chunk has one rank"
            )
        return np.bincount(ranking.questions, minlength=len(self.gold))

    def _mean(self, shares: Floats) -> Floats:
        """(Q,) mean of (E,) shares over each question's spans, 0 without spans."""
        found = self._found
        return sums(found.owner, shares, len(self.gold)) / np.maximum(found.sizes, 1)

    def _covered(self, cover: Ints, cut: Ints) -> Floats:
        """(E,) code points of each span that the ranks up to (Q,) `cut` cover."""
        found = self._found
        seen = cover <= cut[found.owner[found.piece_spans]]
        spans, lengths = found.piece_spans[seen], found.piece_lengths[seen]
        return sums(spans, lengths, len(found.owner))

    def _binary(self, questions: Ints, ranks: Ints) -> Floats:
        best = np.zeros(DEEPEST + 1)
        for rank in range(1, DEEPEST + 1):
            best[rank] = best[rank - 1] + 1 / DISCOUNTS[rank]
        achieved = sums(questions, 1 / DISCOUNTS[ranks], len(self.gold))
        return _ratio(achieved, best[np.minimum(self._relevant, DEEPEST)])

    def _fitting(
        self, ranking: Ranking, begins: Ints, prefix_tokens: Ints | None
    ) -> tuple[dict[int, Ints], Ints]:
        """How many units fit each budget, and the rank of the first unit without tokens.

        A unit without tokens is taken as free: if the walk reaches it, its rank is within the cut,
        and the measure is undefined.
        """
        tokens = self.chunks.tokens
        prefix = self.chunks.prefix_tokens if prefix_tokens is None else prefix_tokens
        cost = np.where(tokens == UNKNOWN, 0, tokens + prefix)[ranking.chunks]
        spent = np.cumsum(cost)
        before = np.concatenate([[0], spent])[begins[:-1]]
        spent = spent - before[ranking.questions]
        cuts = {
            budget: np.bincount(ranking.questions[spent <= budget], minlength=len(self.gold))
            for budget in BUDGETS
        }
        met = np.full(len(self.gold), NEVER)
        if (tokens == UNKNOWN).all():
            met[:] = 0      # nobody counted anything: undefined for everyone, absent or not
        else:
            rows = np.flatnonzero(tokens[ranking.chunks] == UNKNOWN)
            owner = ranking.questions[rows]
            np.minimum.at(met, owner, rows - begins[owner] + 1)
        return cuts, met

    def _sufficient(self, rank_of: Ints) -> Floats:
        """(Q,) whether one of the first units holds every span of a bundle whole."""
        found = self._found
        whole = found.whole()
        ranks = rank_of[found.pair_candidates]
        held = np.zeros(len(self.gold), dtype=bool)
        for rank in range(1, UNITS + 1):
            spans = np.zeros(len(found.owner), dtype=bool)
            spans[found.pair_spans[whole & (ranks == rank)]] = True
            held |= self._bundles(spans)
        return held.astype(np.float64)

    def _bundles(self, spans: Bools) -> Bools:
        """(Q,) whether all spans of some bundle are among the (E,) marked ones."""
        gold = self.gold
        held = np.zeros(len(gold), dtype=bool)
        if len(gold.member_spans):
            whole = np.logical_and.reduceat(spans[gold.member_spans], gold.members[:-1])
            held[owners(gold.bundles)[whole]] = True
        return held


def _ratio(achieved: Floats, best: Floats) -> Floats:
    ratio = np.zeros(len(best))
    np.divide(achieved, best, out=ratio, where=best > 0)
    return ratio


def _reciprocal(questions: Ints, ranks: Ints, size: int) -> Floats:
    first = np.full(size, NEVER)
    np.minimum.at(first, questions, ranks)
    return _ratio(np.where(first == NEVER, 0.0, 1.0), first.astype(np.float64))
