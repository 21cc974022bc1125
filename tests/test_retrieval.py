"""Ranked lists: ties, LanceDB against FAISS, routing, BM25, run files."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from spanwise.errors import InputError
from spanwise.index import Shelf, build, digest, propose_faiss, propose_lancedb, rows, shelf
from spanwise.params import Bm25Settings
from spanwise.retrieval.bm25 import bm25
from spanwise.retrieval.flat import flat, ranked, scores
from spanwise.retrieval.routed import routed, section_recall, sections
from spanwise.retrieval.runs import write_trec


def unit(matrix: np.ndarray) -> np.ndarray:
    return (matrix / np.linalg.norm(matrix, axis=1, keepdims=True)).astype(np.float32)


def make_shelf(matrix: np.ndarray, nodes: list[int] | None = None, per_doc: int = 3) -> Shelf:
    n = len(matrix)
    docs = [f"d{i // per_doc:03}" for i in range(n)]
    starts = np.array([10 * (i % per_doc) for i in range(n)], dtype=np.int64)
    ids = tuple(f"{d}:{s}-{s + 10}" for d, s in zip(docs, starts, strict=True))
    return Shelf("x-none-0", ids, tuple(docs), starts, starts + 10,
                 np.array(nodes or [0] * n, dtype=np.int64), matrix)


def table_of(on: Shelf) -> pa.Table:
    entries = pa.table({
        "label": [on.label] * len(on.chunk_ids), "chunk_id": list(on.chunk_ids),
        "doc_id": list(on.doc_ids), "start": on.starts, "end": on.ends, "node": on.nodes,
        "path": [["T"]] * len(on.chunk_ids), "conditions": [["A0"]] * len(on.chunk_ids),
    })
    return rows(entries, on.matrix)


def plain(on: Shelf, query: np.ndarray, depth: int) -> list[int]:
    """Everything scored and sorted, as the definition says."""
    values = scores(on.matrix, query)
    order = sorted(range(len(values)), key=lambda i: (-values[i], on.doc_ids[i], on.starts[i]))
    return order[:depth]


def test_higher_scores_first_then_the_place() -> None:
    found = ranked(np.array([4, 1, 3]), np.array([0.5, 0.5, 0.9]), 3)
    assert found.rows.tolist() == [3, 1, 4]


def test_lancedb_and_faiss_give_the_same_ranking_as_the_definition(tmp_path: Path) -> None:
    rng = np.random.default_rng(3)
    matrix = unit(rng.normal(size=(400, 16)))
    matrix[100:180] = matrix[100]  # 80 exact ties, more than the margin
    on = make_shelf(matrix)
    queries = unit(np.vstack([rng.normal(size=(20, 16)), matrix[100:101]]))
    made = build(tmp_path / "lance", table_of(on))
    assert made["rows"] == 400 and made["dimension"] == 16
    read = shelf(tmp_path / "lance", on.label)
    assert read.chunk_ids == on.chunk_ids and np.array_equal(read.matrix, on.matrix)
    by_lance = flat(read, queries, 50, propose_lancedb(tmp_path / "lance", read))
    by_faiss = flat(on, queries, 50, propose_faiss(on))
    for query, a, b in zip(queries, by_lance, by_faiss, strict=True):
        assert a.rows.tolist() == b.rows.tolist() == plain(on, query, 50)
        assert a.scores.tobytes() == b.scores.tobytes()


@given(st.integers(0, 1000), st.integers(1, 60), st.integers(1, 60))
@settings(max_examples=40, deadline=None)
def test_flat_equals_the_definition_with_many_ties(seed: int, number: int, depth: int) -> None:
    rng = np.random.default_rng(seed)
    matrix = unit(rng.integers(0, 2, size=(number, 3)) + 0.5)
    on = make_shelf(matrix)
    (found,) = flat(on, matrix[:1], depth, propose_faiss(on))
    assert found.rows.tolist() == plain(on, matrix[0], depth)


def test_the_digest_is_of_contents(tmp_path: Path) -> None:
    matrix = unit(np.random.default_rng(0).normal(size=(9, 4)))
    first = build(tmp_path / "a", table_of(make_shelf(matrix)))
    assert build(tmp_path / "b", table_of(make_shelf(matrix))) == first
    assert digest(table_of(make_shelf(matrix[::-1].copy()))) != first["digest"]


def test_an_index_that_is_not_there_or_lacks_a_label_says_so(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="no index there"):
        shelf(tmp_path / "none", "x")
    build(tmp_path / "a", table_of(make_shelf(unit(np.eye(3)))))
    with pytest.raises(InputError, match="no rows of 'y'"):
        shelf(tmp_path / "a", "y")


def test_routing_keeps_the_nearest_sections_ranks_their_chunks_and_backfills() -> None:
    # d000: node 0 has two chunks near x, node 1 one near y; d001: one chunk nearest of all, whose
    # section is diluted by a second one that points away.
    matrix = unit(np.array([[1, .2], [1, .3], [0, 1], [1, 0], [-1, .1], [0, 1.0]]))
    on = make_shelf(matrix, nodes=[0, 0, 1, 0, 0, 2])
    query = unit(np.array([[1, 0]]))[0]
    within = sections(on)
    assert within.ids == (("d000", 0), ("d000", 1), ("d001", 0), ("d001", 2))
    (flat_,) = flat(on, query[None], 4, propose_faiss(on))
    assert flat_.rows.tolist() == [3, 0, 1, 2]
    found, kept = routed(on, within, query, flat_, depth=4, keep=1)
    assert [within.name(k) for k in kept] == ["d000#0"]
    assert found.rows.tolist() == [0, 1, 3, 2]
    assert (np.diff(found.scores) <= 0).all()
    assert section_recall(on, within, kept, [("d001", 0, 5)]) == 0
    assert section_recall(on, within, kept, [("d001", 0, 5), ("d000", 19, 21)]) == 1
    assert section_recall(on, within, kept, [("d000", 20, 21)]) == 0
    assert section_recall(on, within, kept, []) is None


def test_bm25_ranks_what_shares_a_term_and_nothing_else() -> None:
    texts = ["the blue button", "a grey button resets", "tide tables", "tide tables"]
    found = bm25(texts, ["blue button", "tide", "nothing here matches zzz", ""],
                 Bm25Settings(k1=1.2, b=0.75), 50)
    assert found[0].rows.tolist() == [0, 1]
    assert found[1].rows.tolist() == [2, 3]  # a tie: the place decides
    assert len(found[2].rows) == len(found[3].rows) == 0


def test_a_run_file_reads_back_in_our_order_although_readers_break_ties_by_id(
    tmp_path: Path,
) -> None:
    listed = [("q", "d:9-20", 0.5), ("q", "d:20-30", 0.5), ("q", "d:100-110", 0.5), ("r", "x", 0.1)]
    write_trec(tmp_path, [
        {"condition": "A0", "question_id": q, "rank": i, "chunk_id": c, "score": s}
        for i, (q, c, s) in enumerate(listed, start=1)
    ])
    lines = [line.split() for line in (tmp_path / "A0.trec").read_text().splitlines()]
    mine = [line for line in lines if line[0] == "q"]
    assert [x[2] for x in sorted(mine, key=lambda x: (-float(x[4]), x[2]))] == [
        "d:9-20", "d:20-30", "d:100-110"
    ]
