"""The only room that knows LanceDB and FAISS: where vectors are kept, and candidates for a ranking.

Both searches are exact, but they add in another order and return equal scores in any order. So they
only propose candidates, a margin beyond what is asked; `retrieval` scores and ranks them itself.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
from collections.abc import Callable
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from spanwise.errors import InputError

TABLE = "chunks"
_QUERIES = 256

Propose = Callable[[NDArray[np.float32], int], NDArray[np.int64]]
"""(q, dim) queries and a number c -> (q, c) rows of a shelf, the c nearest in any order."""


@dataclass(frozen=True, slots=True)
class Shelf:
    """The labelled chunks that one or more conditions search, sorted by (doc_id, start, end).

    matrix: (n, dim) float32 unit vectors.
    """

    label: str
    chunk_ids: tuple[str, ...]
    doc_ids: tuple[str, ...]
    starts: NDArray[np.int64]
    ends: NDArray[np.int64]
    nodes: NDArray[np.int64]
    matrix: NDArray[np.float32]


def rows(entries: pa.Table, matrix: NDArray[np.float32]) -> pa.Table:
    """What a table of the index holds: `entries` (label, chunk_id, doc_id, start, end, node, path,
    conditions) sorted by (label, doc_id, start), with their vectors."""
    values = pa.FixedSizeListArray.from_arrays(
        pa.array(np.ascontiguousarray(matrix).reshape(-1)), matrix.shape[1]
    )
    made = entries.append_column("vector", values)
    return made.sort_by([(name, "ascending") for name in ("label", "doc_id", "start")])


def digest(table: pa.Table) -> str:
    """SHA-256 of the rows' contents; a rebuilt table has other file names and the same digest."""
    sha = hashlib.sha256()
    for name in sorted(table.column_names):
        column = table[name].combine_chunks()
        sha.update(name.encode())
        if name == "vector":
            sha.update(column.flatten().to_numpy(zero_copy_only=False).tobytes())
        else:
            sha.update(json.dumps(column.to_pylist(), ensure_ascii=False).encode("utf-8"))
    return sha.hexdigest()


def build(folder: Path, table: pa.Table) -> dict[str, Any]:
    """Write a LanceDB table and return what identifies it: digest, rows, dimension."""
    import warnings

    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    made = _connect(folder).create_table(TABLE, data=table, mode="overwrite")
    with warnings.catch_warnings():
        # It warns of readers of older versions: a table that was made just now has none.
        warnings.simplefilter("ignore", UserWarning)
        made.optimize(cleanup_older_than=timedelta(0))
    return {
        "digest": digest(table),
        "rows": len(table),
        "dimension": table.schema.field("vector").type.list_size,
    }


def _connect(folder: Path) -> Any:
    os.environ.setdefault("LANCE_LOG", "error")  # it warns that a new table is new
    import lancedb

    return lancedb.connect(folder)


def _open(folder: Path) -> Any:
    if not folder.exists():
        raise InputError(f"{folder}: no index there; run `dvc repro`")
    return _connect(folder).open_table(TABLE)


def shelf(folder: Path, label: str) -> Shelf:
    """Read one label's rows.

    raises: InputError if there are none.
    """
    found = _open(folder).search().where(f"label = '{label}'").limit(None).to_arrow()
    if not len(found):
        raise InputError(f"{folder}: no rows of {label!r}; run `dvc repro`")
    found = found.sort_by([(n, "ascending") for n in ("doc_id", "start", "end")]).combine_chunks()
    vectors = found["vector"].combine_chunks()
    return Shelf(
        label, tuple(found["chunk_id"].to_pylist()), tuple(found["doc_id"].to_pylist()),
        found["start"].to_numpy(), found["end"].to_numpy(), found["node"].to_numpy(),
        vectors.flatten().to_numpy(zero_copy_only=False).reshape(len(found), -1),
    )


def propose_lancedb(folder: Path, on: Shelf) -> Propose:
    """Candidates from LanceDB's exact search, many queries at a time (one by one is 50x slower)."""
    table = _open(folder)
    place = {chunk_id: row for row, chunk_id in enumerate(on.chunk_ids)}

    def propose(queries: NDArray[np.float32], number: int) -> NDArray[np.int64]:
        found = np.empty((len(queries), number), dtype=np.int64)
        for first in range(0, len(queries), _QUERIES):
            some = queries[first : first + _QUERIES]
            asked = list(some) if len(some) > 1 else some[0]
            hits = (
                table.search(asked, vector_column_name="vector")
                .distance_type("dot")
                .where(f"label = '{on.label}'", prefilter=True)
                .select(["chunk_id", "_distance"])
                .limit(number)
                .to_arrow()
            )
            which = hits["query_index"].to_numpy() if len(some) > 1 else np.zeros(len(hits), int)
            chunk_rows = np.array([place[c] for c in hits["chunk_id"].to_pylist()], dtype=np.int64)
            order = np.argsort(which, kind="stable")
            found[first : first + len(some)] = chunk_rows[order].reshape(len(some), number)
        return found

    return propose


def propose_faiss(on: Shelf) -> Propose:
    """Candidates from FAISS's exact inner-product index in memory."""
    import faiss

    flat = faiss.IndexFlatIP(on.matrix.shape[1])
    flat.add(on.matrix)

    def propose(queries: NDArray[np.float32], number: int) -> NDArray[np.int64]:
        _, found = flat.search(np.ascontiguousarray(queries), number)
        return np.asarray(found, dtype=np.int64)

    return propose
