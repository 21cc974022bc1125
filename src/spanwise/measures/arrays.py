"""Questions, chunks and rankings of a whole corpus as arrays; each value protects its own sense."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from spanwise.errors import QuestionError, RunError

Ints = NDArray[np.int64]

LIMIT = 2**31
"""Offsets lie below this many code points, so that a document and an offset fit one integer."""

UNKNOWN = -1
"""Tokens of a chunk that nobody counted."""


@dataclass(frozen=True, slots=True)
class Gold:
    """Q questions, their E spans and B bundles, question by question.

    question_ids, doc_ids: (Q,) strings, ids unique.
    spans:                 (Q + 1,) where each question's spans begin.
    span_docs:             (E,) strings.
    starts, ends:          (E,) half-open spans in code points.
    bundles:               (Q + 1,) where each question's bundles begin; at least one where it has
                           spans, none where it has none.
    members:               (B + 1,) where each bundle's members begin; none is empty.
    member_spans:          (M,) indices into the E spans.
    raises:                QuestionError for a repeated id, an empty span or a bundle that names
                           nothing or a span of another question.
    """

    question_ids: pa.Array
    doc_ids: pa.Array
    spans: Ints
    span_docs: pa.Array
    starts: Ints
    ends: Ints
    bundles: Ints
    members: Ints
    member_spans: Ints

    def __post_init__(self) -> None:
        _unique(self.question_ids, "question", QuestionError)
        owner = owners(self.spans)
        bad = (self.starts < 0) | (self.ends <= self.starts) | (self.ends >= LIMIT)
        self._refuse(
            owner[bad], "a span that is not 0 <= start < end < 2**31; mend the question's evidence"
        )
        sizes, bundle_owner = np.diff(self.members), owners(self.bundles)
        self._refuse(bundle_owner[sizes == 0], "a bundle without a span; leave it out")
        self._refuse(
            np.flatnonzero((np.diff(self.spans) > 0) != (np.diff(self.bundles) > 0)),
            "spans without a bundle or bundles without a span; one bundle of all spans is usual",
        )
        holder = np.repeat(bundle_owner, sizes)
        inside = (self.member_spans >= 0) & (self.member_spans < len(owner))
        inside[inside] = owner[self.member_spans[inside]] == holder[inside]
        self._refuse(holder[~inside], "a bundle that names a span the question does not have")

    def _refuse(self, questions: Ints, what: str) -> None:
        if len(questions):
            named = self.question_ids[int(questions[0])].as_py()
            raise QuestionError(f"question {named!r} has {what}")

    def __len__(self) -> int:
        return len(self.question_ids)


@dataclass(frozen=True, slots=True)
class Chunks:
    """The C chunks of one segmentation in the order (doc_id, start, end, chunk_id).

    chunk_ids:     (C,) strings, unique.
    documents:     (D,) strings, sorted.
    docs:          (C,) indices into `documents`.
    starts, ends:  (C,) half-open spans of content in code points.
    tokens:        (C,) of the content, UNKNOWN where nobody counted them.
    prefix_tokens: (C,) of the rendered prefix.
    order:         (C,) the place of each chunk's id among all ids: what ties of a run go by.
    """

    chunk_ids: pa.Array
    documents: pa.Array
    docs: Ints
    starts: Ints
    ends: Ints
    tokens: Ints
    prefix_tokens: Ints
    order: Ints

    def __len__(self) -> int:
        return len(self.chunk_ids)


@dataclass(frozen=True, slots=True)
class Ranking:
    """N retrieved chunks, question by question in the order of Gold, best first.

    questions: (N,) indices into Gold's questions, ascending.
    chunks:    (N,) indices into Chunks; no chunk twice for a question.
    strangers: questions the run ranks chunks for although Gold does not know them: not scored.
    """

    questions: Ints
    chunks: Ints
    strangers: int = 0


def owners(edges: Ints) -> Ints:
    """Which group each item belongs to, from where the groups begin.

    >>> owners(np.array([0, 2, 2, 3])).tolist()
    [0, 0, 2]
    """
    return np.repeat(np.arange(len(edges) - 1), np.diff(edges))


def ints(values: Sequence[int] | NDArray[np.integer] | pa.Array | pa.ChunkedArray) -> Ints:
    """An int64 array of anything that holds integers and no null."""
    if isinstance(values, pa.Array | pa.ChunkedArray):
        values = values.to_numpy(zero_copy_only=False) if isinstance(values, pa.Array) else (
            values.to_numpy()
        )
    return np.asarray(values, dtype=np.int64)


def strings(values: Sequence[str] | pa.Array | pa.ChunkedArray) -> pa.Array:
    """One Arrow array of anything that holds strings."""
    if isinstance(values, pa.ChunkedArray):
        return values.combine_chunks() if values.num_chunks != 1 else values.chunk(0)
    return values if isinstance(values, pa.Array) else pa.array(values, pa.string())


def edges(counts: Sequence[int] | NDArray[np.integer]) -> Ints:
    """Where groups of these sizes begin, and where the last ends."""
    return np.concatenate([[0], np.cumsum(counts, dtype=np.int64)]).astype(np.int64)


def repeated(questions: Ints, chunks: Ints) -> tuple[int, int] | None:
    """A (question, chunk) that a ranking holds twice, or None.

    Questions with equally many chunks make a matrix: its short rows sort much faster than all keys.
    """
    counts = np.bincount(questions)
    begins = edges(counts)
    for size in np.unique(counts[counts > 1]).tolist():
        members = np.flatnonzero(counts == size)
        block = np.sort(chunks[begins[members][:, None] + np.arange(size)], axis=1)
        again = np.argwhere(block[:, 1:] == block[:, :-1])
        if len(again):
            row, column = again[0].tolist()
            return int(members[row]), int(block[row, column])
    return None


def sums(groups: Ints, weights: NDArray[Any], size: int) -> NDArray[np.float64]:
    """(size,) sum of the weights of each group, added in the order they stand in.

    Sums of integers are exact below 2**53.
    """
    return np.bincount(groups, weights.astype(np.float64), size).astype(np.float64, copy=False)


def places(values: pa.Array | pa.ChunkedArray, among: pa.Array) -> Ints:
    """(N,) index of each value in `among`, -1 where it does not occur."""
    found = pc.index_in(values, value_set=among).fill_null(-1)
    return ints(found)


def chunks(
    chunk_ids: Sequence[str] | pa.Array | pa.ChunkedArray,
    doc_ids: Sequence[str] | pa.Array | pa.ChunkedArray,
    starts: Sequence[int] | Ints,
    ends: Sequence[int] | Ints,
    tokens: Sequence[int] | Ints,
    prefix_tokens: Sequence[int] | Ints | None = None,
) -> Chunks:
    """Sort the chunks of one segmentation, given in any order.

    raises: RunError for a repeated id, an empty span or a negative count.
    """
    ids, named = strings(chunk_ids), strings(doc_ids)
    _unique(ids, "chunk", RunError)
    documents = pc.unique(named)
    documents = documents.take(pc.sort_indices(documents))
    order = np.empty(len(ids), dtype=np.int64)
    order[ints(pc.sort_indices(ids))] = np.arange(len(ids))
    docs, first, last = places(named, documents), ints(starts), ints(ends)
    counts = ints(tokens)
    extra = np.zeros(len(ids), dtype=np.int64) if prefix_tokens is None else ints(prefix_tokens)
    bad = (first < 0) | (last <= first) | (last >= LIMIT) | (counts < UNKNOWN) | (extra < 0)
    if bad.any():
        raise RunError(
            f"chunk {ids[int(np.flatnonzero(bad)[0])].as_py()!r} needs 0 <= start < end < 2**31 "
            "and counts of at least 0"
        )
    sort = np.lexsort((order, last, first, docs))
    return Chunks(
        ids.take(pa.array(sort)), documents, docs[sort], first[sort], last[sort], counts[sort],
        extra[sort], order[sort],
    )


def _unique(ids: pa.Array, what: str, error: type[QuestionError] | type[RunError]) -> None:
    if len(pc.unique(ids)) == len(ids):
        return
    counted = pc.value_counts(ids)
    twice = counted.field("values").filter(pc.greater(counted.field("counts"), 1))[0].as_py()
    raise error(f"{what} id {twice!r} occurs twice; ids are unique")
