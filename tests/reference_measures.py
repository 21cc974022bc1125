"""Slow, obvious twins of the measures: sets of characters and fractions, one question at a time."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction


@dataclass(frozen=True)
class Piece:
    """A chunk or a span; `name`, `tokens` and `prefix` matter for chunks alone."""

    doc: str
    start: int
    end: int
    name: str = ""
    tokens: int | None = None
    prefix: int = 0

    @property
    def characters(self) -> set[tuple[str, int]]:
        return {(self.doc, i) for i in range(self.start, self.end)}


def shares(pieces: Sequence[Piece], gold: Sequence[Piece]) -> list[Fraction]:
    """Share of each span that the pieces cover together."""
    union = set().union(*(p.characters for p in pieces)) if pieces else set()
    return [Fraction(len(g.characters & union), len(g.characters)) for g in gold]


def coverage(pieces: Sequence[Piece], gold: Sequence[Piece]) -> Fraction:
    return sum(shares(pieces, gold), Fraction(0)) / len(gold)


def gains(ranked: Sequence[Piece], gold: Sequence[Piece]) -> list[Fraction]:
    return [
        coverage(ranked[: i + 1], gold) - coverage(ranked[:i], gold) for i in range(len(ranked))
    ]


def dcg(values: Sequence[Fraction]) -> float:
    return sum(float(v) / math.log2(i + 2) for i, v in enumerate(values))


def greedy(chunks: Sequence[Piece], gold: Sequence[Piece], k: int) -> list[Piece]:
    order: list[Piece] = []
    while len(order) < k:
        rest = [c for c in chunks if c not in order]
        if not rest:
            break
        now = coverage(order, gold)
        order.append(min(
            rest, key=lambda c: (now - coverage([*order, c], gold), c.doc, c.start, c.end, c.name)
        ))
    return order


def relevant(chunk: Piece, gold: Sequence[Piece]) -> bool:
    inside = [len(chunk.characters & g.characters) for g in gold]
    return any(
        Fraction(n, len(g.characters)) >= Fraction(1, 2)
        or Fraction(n, len(chunk.characters)) >= Fraction(4, 5)
        for n, g in zip(inside, gold, strict=True)
    )


def holds(pieces: Sequence[Piece], gold: Sequence[Piece], bundles: Sequence[Sequence[int]]) -> bool:
    whole = [share == 1 for share in shares(pieces, gold)]
    return any(all(whole[i] for i in bundle) for bundle in bundles)


def within(ranked: Sequence[Piece], budget: int) -> list[Piece] | None:
    kept: list[Piece] = []
    for chunk in ranked:
        if chunk.tokens is None:
            return None
        if sum((c.tokens or 0) + c.prefix for c in [*kept, chunk]) > budget:
            break
        kept.append(chunk)
    return kept


def measures(
    ranked: Sequence[Piece],
    chunks: Sequence[Piece],
    gold: Sequence[Piece],
    bundles: Sequence[Sequence[int]],
) -> dict[str, float | None]:
    """Every measure of one question, None where undefined."""
    names = (
        "cov_ndcg@10", "recall@50", "mrr", "ndcg@10", "coverage@512", "coverage@1024",
        "coverage@2048", "sufficient@3", "bundle_coverage@3",
    )
    if not gold:
        return dict.fromkeys(names)
    best = dcg(gains(greedy(chunks, gold, 10), gold))
    hits = [relevant(c, gold) for c in ranked]
    possible = dcg([Fraction(1)] * min(10, sum(relevant(c, gold) for c in chunks)))
    found: dict[str, float | None] = {
        "cov_ndcg@10": dcg(gains(ranked[:10], gold)) / best if best else 0.0,
        "recall@50": sum(s >= Fraction(1, 2) for s in shares(ranked[:50], gold)) / len(gold),
        "mrr": 1 / (hits.index(True) + 1) if True in hits else 0.0,
        "ndcg@10": dcg([Fraction(h) for h in hits[:10]]) / possible if possible else 0.0,
        "sufficient@3": float(any(holds([c], gold, bundles) for c in ranked[:3])),
        "bundle_coverage@3": float(holds(ranked[:3], gold, bundles)),
    }
    counted = any(c.tokens is not None for c in chunks)
    for budget in (512, 1024, 2048):
        kept = within(ranked, budget) if counted else None
        found[f"coverage@{budget}"] = None if kept is None else float(coverage(kept, gold))
    return {name: found[name] for name in names}
