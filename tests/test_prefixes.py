"""Heading paths, and the placebo that has everything of them but their truth."""

from __future__ import annotations

from collections import Counter

from hypothesis import given
from hypothesis import strategies as st

from spanwise.prefixes import cut, placebo, prefix_of, render, rendered


def test_depth_keeps_the_title_and_that_many_levels() -> None:
    path = ("Title", "One", "Two", "Three", "Four")
    assert [len(cut(path, depth)) for depth in (0, 1, 2, 3)] == [1, 2, 3, 4]
    assert cut(("Title",), 3) == ("Title",)
    assert prefix_of(path, "path", 2) == "[Title › One › Two]\n\n"
    assert prefix_of(path, "none", 0) == ""
    assert rendered(render(("T",)), "\n text \n") == "[T]\n\ntext"


PAIRS = st.lists(
    st.tuples(st.sampled_from("abcde"),
              st.lists(st.sampled_from("xyz"), max_size=3).map(lambda p: ("T", *p))),
    min_size=1, max_size=40,
)


@given(PAIRS, st.integers(0, 1000))
def test_paths_are_permuted_one_to_one_within_their_depth(
    pairs: list[tuple[str, tuple[str, ...]]], seed: int
) -> None:
    assigned, counts = placebo(pairs, seed)
    unique = set(pairs)
    assert set(assigned) == unique and counts["pairs"] == len(unique)
    for depth in {len(path) for _, path in unique}:
        given_ = Counter(path for _, path in unique if len(path) == depth)
        taken = Counter(assigned[pair] for pair in unique if len(pair[1]) == depth)
        assert given_ == taken


@given(PAIRS, st.integers(0, 1000))
def test_residuals_are_as_few_as_any_permutation_allows(
    pairs: list[tuple[str, tuple[str, ...]]], seed: int
) -> None:
    _, counts = placebo(pairs, seed)
    least = 0
    buckets: dict[int, Counter[str]] = {}
    for doc_id, path in set(pairs):
        buckets.setdefault(len(path), Counter())[doc_id] += 1
    for bucket in buckets.values():
        # A document with more than half of the pairs must keep what the others cannot take.
        least += max(0, 2 * max(bucket.values()) - sum(bucket.values()))
    assert counts["residual"] == least


def test_the_same_seed_gives_the_same_placebo_whatever_the_order() -> None:
    pairs = [(d, ("T", s)) for d in "abcd" for s in "uvw"]
    assert placebo(pairs, 7) == placebo(pairs[::-1] + pairs[:3], 7)
    assert placebo(pairs, 7)[0] != placebo(pairs, 8)[0]
