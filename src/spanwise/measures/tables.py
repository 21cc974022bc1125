"""The pipeline's tables -> arrays. The schemas stand in `spanwise.schemas`."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from spanwise.errors import QuestionError, RunError
from spanwise.measures import arrays
from spanwise.measures.arrays import Chunks, Gold, Ints, Ranking


def gold(questions: pa.Table, representation: str = "body") -> Gold:
    """Questions of a QUESTIONS table with their evidence on `body` or on `raw`.

    Give only the questions to be scored: what leaves the ablation is filtered before.

    raises: QuestionError if the representation is neither, or a question has none of it (null).
    """
    prefix = {"body": "", "raw": "raw_"}.get(representation)
    if prefix is None:
        raise QuestionError(f"representation {representation!r}: expected `body` or `raw`")
    evidence, bundles = questions[f"{prefix}evidence"], questions[f"{prefix}bundles"]
    if evidence.null_count or bundles.null_count:
        row = pc.index(pc.or_(evidence.is_null(), bundles.is_null()), True).as_py()
        raise QuestionError(
            f"question {questions['question_id'][row].as_py()!r} has no evidence on "
            f"{representation}; leave it out and count it"
        )
    spans, groups = pc.list_flatten(evidence), pc.list_flatten(bundles)
    counts = arrays.ints(pc.list_value_length(evidence))
    begins = arrays.edges(arrays.ints(pc.list_value_length(bundles)))
    members = arrays.edges(arrays.ints(pc.list_value_length(groups)))
    # Bundles name spans of their own question; here all spans are counted through.
    owner = arrays.owners(begins)
    shift = np.repeat((np.cumsum(counts) - counts)[owner], np.diff(members))
    named = arrays.ints(pc.list_flatten(groups))
    size = np.repeat(counts[owner], np.diff(members))
    return Gold(
        arrays.strings(questions["question_id"]), arrays.strings(questions["doc_id"]),
        arrays.edges(counts), arrays.strings(pc.struct_field(spans, "doc_id")),
        arrays.ints(pc.struct_field(spans, "start")), arrays.ints(pc.struct_field(spans, "end")),
        begins, members, np.where((named >= 0) & (named < size), named + shift, -1),
    )


def chunks(table: pa.Table, segmentation: str) -> Chunks:
    """The chunks of one segmentation of a CHUNKS table.

    raises: RunError if there are none.
    """
    kept = table.filter(pc.equal(table["segmentation"], segmentation))
    if not kept.num_rows:
        there = ", ".join(sorted(pc.unique(table["segmentation"]).to_pylist())) or "none"
        raise RunError(f"no chunk of segmentation {segmentation!r}; the table has: {there}")
    return arrays.chunks(
        kept["chunk_id"], kept["doc_id"], arrays.ints(kept["start"]), arrays.ints(kept["end"]),
        arrays.ints(kept["tokens"]),
    )


def prefix_tokens(labels: pa.Table, label: str, chunks: Chunks) -> Ints:
    """(C,) tokens of the rendered prefix of each chunk under one label of a LABELS table.

    raises: RunError if a chunk is not labelled.
    """
    kept = labels.filter(pc.equal(labels["label"], label))
    rows = arrays.places(chunks.chunk_ids, arrays.strings(kept["chunk_id"]))
    if (rows < 0).any():
        missing = chunks.chunk_ids[int(np.flatnonzero(rows < 0)[0])].as_py()
        raise RunError(f"label {label!r} has no row for chunk {missing!r}; rerun the label stage")
    return arrays.ints(kept["prefix_tokens"])[rows]


def ranking(runs: pa.Table, condition: str, gold: Gold, chunks: Chunks) -> Ranking:
    """The ranking of one condition of a RUNS table, by its ranks.

    Questions that `gold` does not have are left out and counted.

    raises: RunError if the table does not have the condition, or names a chunk which is not among
            the chunks.
    """
    kept = runs.filter(pc.equal(runs["condition"], condition))
    if not kept.num_rows:
        there = ", ".join(sorted(pc.unique(runs["condition"]).to_pylist())) or "none"
        raise RunError(f"no ranking of condition {condition!r}; the table has: {there}")
    questions = arrays.places(kept["question_id"], gold.question_ids)
    units = arrays.places(kept["chunk_id"], chunks.chunk_ids)
    if (units < 0).any():
        row = int(np.flatnonzero(units < 0)[0])
        raise RunError(
            f"condition {condition!r}, question {kept['question_id'][row].as_py()!r}: chunk "
            f"{kept['chunk_id'][row].as_py()!r} is not among the chunks; rerun the retrieve stage"
        )
    strangers = len(kept["question_id"].filter(pa.array(questions < 0)).unique())
    rows = np.lexsort((arrays.ints(kept["rank"]), questions))
    rows = rows[questions[rows] >= 0]
    return Ranking(questions[rows], units[rows], strangers)
