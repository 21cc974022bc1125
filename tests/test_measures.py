"""Golden values of the plain measures, each with its arithmetic."""

from __future__ import annotations

import math

import pytest

from spanwise.errors import NoEvidence
from spanwise.measures import (
    Unit,
    budget_coverage,
    bundle_coverage,
    cov_ndcg,
    dcg,
    fitting,
    ideal,
    marginal_gains,
    ndcg,
    recall,
    reciprocal_rank,
    relevant,
    sufficient,
)
from spanwise.spans import Evidence, Span

GOLD = [Span(0, 100)]
RANKED = [Span(0, 60), Span(40, 100), Span(200, 300)]


def test_worked_example() -> None:
    # gold [0,100), ranked [0,60), [40,100), other: gains .60, .40, 0
    assert marginal_gains(RANKED, GOLD).tolist() == [0.6, 0.4, 0.0]
    # DCG = .60 / log2(2) + .40 / log2(3) = .60 + .40 / 1.585 = .852
    assert dcg(marginal_gains(RANKED, GOLD)) == pytest.approx(0.6 + 0.4 / math.log2(3), abs=1e-15)
    assert round(dcg([0.6, 0.4, 0.0]), 3) == 0.852
    # With only these chunks the greedy order is the same: 1.
    assert cov_ndcg(RANKED, GOLD, RANKED) == 1.0
    # With [0,100) in the set IDCG = 1 / log2(2) = 1, and the same ranking scores .852.
    whole = [*RANKED, Span(0, 100)]
    assert ideal(whole, GOLD) == [Span(0, 100)]
    assert cov_ndcg(RANKED, GOLD, whole) == pytest.approx(0.6 + 0.4 / math.log2(3), abs=1e-15)


def test_each_span_counts_equally_whatever_its_length() -> None:
    # Spans of 10 and 90: a chunk over the short one alone gains 1/2, over the long one alone 1/2.
    gold = [Span(0, 10), Span(10, 100)]
    assert marginal_gains([Span(0, 10), Span(10, 100)], gold).tolist() == [0.5, 0.5]


def test_a_chunk_gains_nothing_in_another_document_but_takes_a_rank() -> None:
    gold = [Evidence("a", 0, 10)]
    ranked = [Unit("b", 0, 10), Unit("a", 0, 10)]
    assert marginal_gains(ranked, gold).tolist() == [0.0, 1.0]
    # DCG = 1 / log2(3), IDCG = 1
    assert cov_ndcg(ranked, gold, ranked) == pytest.approx(1 / math.log2(3), abs=1e-15)


def test_evidence_crosses_documents() -> None:
    gold = [Evidence("a", 0, 10), Evidence("b", 0, 10)]
    # [0,5) of a covers half of one of two spans: 1/4.
    assert marginal_gains([Unit("a", 0, 5), Unit("b", 0, 20)], gold).tolist() == [0.25, 0.5]


def test_greedy_takes_equal_gains_by_document_start_and_end() -> None:
    gold = [Evidence("a", 0, 10), Evidence("b", 0, 10)]
    units = [Unit("b", 0, 10), Unit("a", 0, 12), Unit("a", 0, 10), Unit("a", 20, 30)]
    assert ideal(units, gold) == [Unit("a", 0, 10), Unit("b", 0, 10)]
    assert ideal(units, gold, k=1) == [Unit("a", 0, 10)]
    # After [3,10) of [0,12), [0,3) and [0,6) gain 3 each: the lesser end. Then [6,12), as [10,12)
    # gains 2 too but starts later.
    chunks = [Span(3, 10), Span(0, 6), Span(6, 12), Span(0, 3), Span(10, 12)]
    assert ideal(chunks, [Span(0, 12)]) == [Span(3, 10), Span(0, 3), Span(6, 12)]


def test_the_ratio_exceeds_one_where_greedy_is_beaten_and_is_not_clipped() -> None:
    # Greedy takes the middle: .52, then .24 on the left, then .24 on the right. Two halves beat it.
    gold = [Span(0, 100)]
    chunks = [Span(24, 76), Span(0, 50), Span(50, 100)]
    best = 0.52 + 0.24 / math.log2(3) + 0.24 / math.log2(4)
    ratio = (0.5 + 0.5 / math.log2(3)) / best
    assert ratio > 1.03
    assert cov_ndcg(chunks[1:], gold, chunks) == pytest.approx(ratio, abs=1e-15)


def test_nothing_reachable_is_zero() -> None:
    assert cov_ndcg([Span(0, 5)], [Span(10, 20)], [Span(0, 5)]) == 0.0
    assert ndcg([Span(0, 5)], [Span(10, 20)], [Span(0, 5)]) == 0.0
    assert reciprocal_rank([Span(0, 5)], [Span(10, 20)]) == 0.0
    assert recall([], [Span(10, 20)]) == 0.0


def test_relevance_is_exact_at_its_borders() -> None:
    # 50 of 100 is half of the span; 49 is not, and of a chunk of 62 it is 79.03%.
    assert relevant(Span(50, 400), GOLD) and not relevant(Span(51, 113), GOLD)
    # 80 of a chunk of 100 against a span of 1,000: 80% inside; 79 is not.
    assert relevant(Span(920, 1020), [Span(0, 1000)])
    assert not relevant(Span(921, 1021), [Span(0, 1000)])
    # Halves of an odd span: 3 of 5 is over half, 2 of 5 (chunk of 3, 66%) is under.
    assert relevant(Span(2, 9), [Span(0, 5)]) and not relevant(Span(3, 6), [Span(0, 5)])
    assert not relevant(Unit("b", 0, 100), [Evidence("a", 0, 100)])
    assert not relevant(Span(100, 200), GOLD)      # touching is not overlapping


def test_mrr_sees_the_whole_list_and_ndcg_the_first_ten() -> None:
    ranked = [*(Span(1000 + i, 1001 + i) for i in range(59)), Span(0, 100)]
    assert reciprocal_rank(ranked, GOLD) == 1 / 60
    assert ndcg(ranked, GOLD, ranked) == 0.0
    # Relevant at ranks 1 and 3 of two: (1 + 1/2) / (1 + 1/log2(3)).
    order = [Span(0, 60), Span(200, 300), Span(40, 100)]
    assert ndcg(order, GOLD, order) == pytest.approx(1.5 / (1 + 1 / math.log2(3)), abs=1e-15)
    # The ideal is the segmentation's: a third relevant chunk nobody retrieved lowers it.
    assert ndcg(order, GOLD, [*order, Span(0, 100)]) == pytest.approx(
        1.5 / (1 + 1 / math.log2(3) + 1 / 2), abs=1e-15
    )


def test_recall_counts_spans_half_covered_by_the_union_of_fifty() -> None:
    gold = [Span(0, 10), Span(20, 31)]
    # 3 + 2 of 10 is half; 5 of 11 is not.
    assert recall([Span(0, 3), Span(1, 5), Span(20, 25)], gold) == 0.5
    far = [Span(100 + i, 101 + i) for i in range(50)]
    assert recall([*far, Span(0, 10)], gold) == 0.0
    assert recall([*far[1:], Span(0, 10)], gold) == 0.5


def test_budget_charges_prefixes_and_stops_at_the_first_that_does_not_fit() -> None:
    ranked = [
        Unit("d", 0, 50, tokens=400, prefix_tokens=12),
        Unit("d", 50, 90, tokens=90, prefix_tokens=11),     # 412 + 101 = 513: one too many
        Unit("d", 90, 100, tokens=1, prefix_tokens=0),      # would fit, is not tried
    ]
    gold = [Evidence("d", 0, 100)]
    assert fitting(ranked, 512) == 1 and budget_coverage(ranked, gold, 512) == 0.5
    assert fitting(ranked, 513) == 2 and budget_coverage(ranked, gold, 513) == 0.9
    assert budget_coverage(ranked, gold, 1024) == 1.0
    assert budget_coverage([Unit("d", 0, 100, tokens=513)], gold, 512) == 0.0
    # Without tokens it is undefined as soon as the walk meets the unit, not before.
    assert budget_coverage([ranked[0], Unit("d", 50, 90)], gold, 512) is None
    assert budget_coverage([Unit("d", 0, 9, 600), Unit("d", 50, 90)], gold, 512) == 0.0


def test_bundles() -> None:
    gold = [Span(0, 10), Span(12, 20), Span(30, 40)]
    both = [Span(0, 20)]
    halves = [Span(0, 10), Span(12, 20)]
    assert sufficient(both, gold, [[0, 1], [2]]) == 1.0
    # Neither half holds both; together they do.
    assert sufficient(halves, gold, [[0, 1], [2]]) == 0.0
    assert bundle_coverage(halves, gold, [[0, 1], [2]]) == 1.0
    # The alternative alone suffices.
    assert sufficient([Span(30, 41)], gold, [[0, 1], [2]]) == 1.0
    # No bundles: one of all evidence.
    assert bundle_coverage(halves, gold) == 0.0
    assert bundle_coverage([*halves, Span(30, 40)], gold) == 1.0
    # The fourth unit is beyond k.
    assert bundle_coverage([*halves, Span(50, 60), Span(30, 40)], gold) == 0.0


def test_a_gap_is_a_gap_and_repeats_fill_none() -> None:
    gold = [Span(0, 10)]
    assert bundle_coverage([Span(0, 5), Span(6, 10)], gold) == 0.0       # [5, 6) may be a blank
    assert bundle_coverage([Span(0, 5), Span(0, 5), Span(0, 5)], gold) == 0.0
    assert bundle_coverage([Span(0, 5), Span(5, 10)], gold) == 1.0       # touching merges
    # The same offsets in another document fill nothing.
    halves = [Unit("a", 0, 5), Unit("b", 5, 10)]
    assert bundle_coverage(halves, [Evidence("a", 0, 10)]) == 0.0


def test_without_evidence_every_measure_is_undefined() -> None:
    unit = [Unit("d", 0, 5, 3)]
    for undefined in (
        lambda: marginal_gains(unit, []), lambda: cov_ndcg(unit, [], unit),
        lambda: recall(unit, []), lambda: reciprocal_rank(unit, []), lambda: ndcg(unit, [], unit),
        lambda: budget_coverage(unit, [], 512), lambda: sufficient([], []),
        lambda: bundle_coverage(unit, []),
    ):
        with pytest.raises(NoEvidence):
            undefined()


def test_impossible_values_do_not_exist() -> None:
    for start, end in ((5, 5), (6, 5), (-1, 5)):
        with pytest.raises(ValueError, match="0 <= start < end"):
            Unit("d", start, end)
    with pytest.raises(ValueError, match="at least 0"):
        Unit("d", 0, 1, tokens=-1)
    with pytest.raises(ValueError, match="empty bundle"):
        sufficient([Span(0, 1)], [Span(0, 1)], [[]])
