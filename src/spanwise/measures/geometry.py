"""Which chunks overlap which spans, and the pieces that the chunks' edges cut the spans into.

Everything here is integers, so every covered length is exact however chunks overlap. A span is cut
into pieces at the edges of the chunks that touch it; a chunk covers a run of whole pieces.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from spanwise.measures.arrays import LIMIT, Chunks, Gold, Ints, owners, places, sums
from spanwise.measures.coverage import TIE
from spanwise.measures.places import DEEPEST, discount

NEVER = np.iinfo(np.int64).max
"""Rank of what no ranked chunk covers."""

DISCOUNTS = np.array([1.0, *(discount(rank) for rank in range(1, DEEPEST + 1))])
"""log2(rank + 1) at index rank; index 0 is no rank."""


@dataclass(frozen=True, slots=True)
class Geometry:
    """What a segmentation can do for some questions, before anything is ranked.

    owner, lengths:  (E,) question and length of each span.
    sizes:           (Q,) number of spans of each question.
    keys:            (K,) question * C + chunk of each candidate, a chunk that touches a span of the
                     question; ascending, so by question and then (doc_id, start, end).
    questions:       (K,) the candidates' questions.
    relevant:        (K,) the relevance rule.
    pair_candidates: (P,) candidate of each (candidate, span) pair that overlaps, ascending; the
                     pairs of one candidate stand in the order of its spans.
    pair_spans:      (P,)
    first, last:     (P,) the run [first, last) of pieces that the pair covers.
    piece_spans:     (R,) span of each piece.
    piece_lengths:   (R,) in code points; 0 for the mark that ends a span.
    """

    owner: Ints
    lengths: Ints
    sizes: Ints
    keys: Ints
    questions: Ints
    relevant: NDArray[np.bool_]
    pair_candidates: Ints
    pair_spans: Ints
    first: Ints
    last: Ints
    piece_spans: Ints
    piece_lengths: Ints

    def gains(self, new: NDArray[Any]) -> NDArray[np.float64]:
        """(K,) gain of each candidate from the newly covered length of each pair."""
        # Added span by span, as the formula is written.
        shares = sums(
            self.pair_candidates, new / self.lengths[self.pair_spans], len(self.keys)
        )
        return shares / self.sizes[self.questions]

    def whole(self) -> NDArray[np.bool_]:
        """(P,) whether the pair covers its span from end to end."""
        ends = np.concatenate([[0], np.cumsum(self.piece_lengths)])
        covers: NDArray[np.bool_] = (
            ends[self.last] - ends[self.first] == self.lengths[self.pair_spans]
        )
        return covers


def overlaps(gold: Gold, chunks: Chunks) -> Geometry:
    """Find every pair of a span and a chunk that share a code point; chunks may overlap or nest."""
    owner = owners(gold.spans)
    lengths = gold.ends - gold.starts
    docs = places(gold.span_docs, chunks.documents)
    known = docs >= 0
    # One integer for a document and an offset: (doc, start) ascends with the chunks' order.
    base = np.where(known, docs, 0) * LIMIT
    chunk_base = chunks.docs * LIMIT
    after = np.searchsorted(chunk_base + chunks.starts, base + gold.ends, "left")
    # The furthest end so far never falls: all before the first beyond `start` end too early.
    reach = np.maximum.accumulate(chunk_base + chunks.ends) if len(chunks) else chunk_base
    before = np.searchsorted(reach, base + gold.starts, "right")
    counts = np.where(known, np.maximum(after - before, 0), 0)
    spans = np.repeat(np.arange(len(owner)), counts)
    within = np.arange(len(spans)) - np.repeat(np.cumsum(counts) - counts, counts)
    units = np.repeat(before, counts) + within
    touching = chunks.ends[units] > gold.starts[spans]
    spans, units = spans[touching], units[touching]

    keys = owner[spans] * len(chunks) + units
    sort = np.argsort(keys, kind="stable")
    spans, units, keys = spans[sort], units[sort], keys[sort]
    opens = _opens(keys)
    pair_candidates = np.cumsum(opens) - 1
    distinct = keys[opens]
    questions = distinct // max(len(chunks), 1)

    start = np.maximum(chunks.starts[units], gold.starts[spans]) - gold.starts[spans]
    end = np.minimum(chunks.ends[units], gold.ends[spans]) - gold.starts[spans]
    shared = end - start
    hits = (2 * shared >= lengths[spans]) | (
        5 * shared >= 4 * (chunks.ends[units] - chunks.starts[units])
    )
    relevant = np.zeros(len(distinct), dtype=bool)
    relevant[pair_candidates[hits]] = True

    marks, run = np.unique(np.concatenate([spans * LIMIT + start, spans * LIMIT + end]),
                           return_inverse=True)
    piece_spans = marks // LIMIT
    piece_lengths = np.diff(marks, append=marks[-1:])
    piece_lengths[np.diff(piece_spans, append=-1) != 0] = 0
    return Geometry(
        owner, lengths, np.diff(gold.spans), distinct, questions, relevant, pair_candidates, spans,
        run[: len(spans)], run[len(spans) :], piece_spans, piece_lengths,
    )


def ideal_dcg(found: Geometry, questions: int) -> NDArray[np.float64]:
    """(Q,) DCG@10 of each question's greedy order, all questions one rank at a time.

    The choice is that of `coverage.ideal`: the first candidate within 1e-12 of the largest gain.
    """
    total = np.zeros(questions)
    if not len(found.keys):
        return total
    opens = _opens(found.questions)
    heads, group = np.flatnonzero(opens), np.cumsum(opens) - 1
    left = found.piece_lengths.copy()
    for rank in range(1, DEEPEST + 1):
        ends = np.concatenate([[0], np.cumsum(left)])
        gains = found.gains(ends[found.last] - ends[found.first])
        best = np.maximum.reduceat(gains, heads)
        equal = np.flatnonzero((gains > 0) & (gains >= best[group] - TIE))
        if not len(equal):
            break
        picked = equal[_opens(group[equal])]
        total[found.questions[picked]] += gains[picked] / DISCOUNTS[rank]
        chosen = np.zeros(len(found.keys), dtype=bool)
        chosen[picked] = True
        pairs = chosen[found.pair_candidates]
        left[_inside(found.first[pairs], found.last[pairs], len(left))] = 0
    return total


def first_cover(found: Geometry, ranks: Ints) -> tuple[Ints, Ints]:
    """Which pair of a ranking covers each piece first.

    ranks:   (K,) rank of each candidate, NEVER where it is not ranked.
    returns: (R,) rank of the first candidate that covers the piece (NEVER: none does), and the pair
             through which it does (meaningless where none does).
    """
    pairs = np.flatnonzero(ranks[found.pair_candidates] != NEVER)
    width = max(len(found.pair_candidates), 1)
    # Rank first, pair second: the least code is the first cover, and it knows its pair.
    codes = ranks[found.pair_candidates[pairs]] * width + pairs
    first, run = found.first[pairs], found.last[pairs] - found.first[pairs]
    # A sparse table of minima turned round: a run of n pieces is two runs of 2^level <= n, written
    # at their level and handed down in halves. Tilings need level 0 alone.
    levels = np.frexp(run)[1] - 1
    top = int(levels.max(initial=0))
    table = np.full(len(found.piece_spans), NEVER)
    for level in range(top, -1, -1):
        half = 1 << level
        if level < top:
            table[half:] = np.minimum(table[half:], table[:-half])
        here = levels == level
        np.minimum.at(table, first[here], codes[here])
        np.minimum.at(table, (first + run)[here] - half, codes[here])
    ranked = np.where(table == NEVER, NEVER, table // width)
    return ranked, np.where(table == NEVER, 0, table % width)


def _opens(groups: Ints) -> NDArray[np.bool_]:
    return np.concatenate([[True], groups[1:] != groups[:-1]])[: len(groups)]


def _inside(first: Ints, last: Ints, size: int) -> NDArray[np.bool_]:
    steps = np.bincount(first, minlength=size + 1) - np.bincount(last, minlength=size + 1)
    return (np.cumsum(steps) > 0)[:size]
