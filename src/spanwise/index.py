"""The only room that knows LanceDB and FAISS: where vectors are kept, and candidates for a ranking.

Both searches are exact, but they add in another order and return equal scores in any order. So they
only propose candidates, a margin beyond what is asked; `retrieval` scores and ranks them itself.

A table lies in the folder that DVC tracks, or, where SPANWISE_INDEX_URI is set, on an S3 store
under the digest of its rows; then the folder holds that digest alone. Address and keys come from
the environment, never from params.yaml: they are no part of a study, and keys are nobody's to read.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from spanwise import schemas
from spanwise.errors import InputError, SpanwiseError, Unavailable

TABLE = "chunks"
STORE = "SPANWISE_INDEX_URI"
"""Environment variable with the place of tables on an S3 store, as s3://BUCKET/FOLDER."""

_ELSEWHERE = "elsewhere.json"
_OPTIONS = {
    "AWS_ENDPOINT_URL": "endpoint", "AWS_REGION": "region",
    "AWS_ACCESS_KEY_ID": "access_key_id", "AWS_SECRET_ACCESS_KEY": "secret_access_key",
    "AWS_SESSION_TOKEN": "session_token",
}
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
    conditions) sorted by (label, doc_id, start, end), with their vectors."""
    values = pa.FixedSizeListArray.from_arrays(
        pa.array(np.ascontiguousarray(matrix).reshape(-1)), matrix.shape[1]
    )
    made = entries.append_column("vector", values)
    return made.sort_by([(name, "ascending") for name in ("label", "doc_id", "start", "end")])


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
    """Write a LanceDB table and return what identifies it: digest, rows, dimension.

    raises: InputError if SPANWISE_INDEX_URI is no such address, Unavailable if the store fails;
            then `folder` is as it was.
    """
    identity, base = digest(table), _store()
    if base is not None:
        _send(f"{base}/{identity}", table, identity)
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    if base is None:
        _write(folder, table)
    else:
        schemas.write_text(folder / _ELSEWHERE, json.dumps({"digest": identity}) + "\n")
    return {
        "digest": identity,
        "rows": len(table),
        "dimension": table.schema.field("vector").type.list_size,
    }


def _write(folder: Path, table: pa.Table) -> None:
    import warnings

    made = _connect(folder).create_table(TABLE, data=table, mode="overwrite")
    with warnings.catch_warnings():
        # It warns of readers of older versions: a table that was made just now has none.
        warnings.simplefilter("ignore", UserWarning)
        made.optimize(cleanup_older_than=timedelta(0))


def _send(place: str, table: pa.Table, identity: str) -> None:
    """Put a table on the store unless it is there with these very rows.

    What an interrupted call left has no manifest, so it is no table. Older versions are not cleaned
    up: somebody else may write the same table now.
    """
    with _asking(place):
        if not _same(place, table, identity):
            _connect(place, _options()).create_table(TABLE, data=table, mode="overwrite")


def _same(place: str, table: pa.Table, identity: str) -> bool:
    """Whether a store has a table of these very rows: all of them are read and digested."""
    there = _find(place)
    if there is None:
        return False
    # Damaged data may not even be readable; whatever it is, it is written anew.
    with suppress(ValueError, RuntimeError, OSError, pa.ArrowException):
        found = there.search().limit(None).to_arrow()
        return digest(found.select(table.column_names)) == identity
    return False


def _store() -> str | None:
    """Where tables go on an S3 store, or None for the folder itself.

    raises: InputError for another address; it is not repeated, since a key may stand in it.
    """
    base = os.environ.get(STORE, "").strip().rstrip("/")
    if not base:
        return None
    try:
        parts = urlsplit(base)
        fit = parts.scheme == "s3" and bool(parts.hostname) and parts.netloc == parts.hostname
    except ValueError:
        fit = False
    if not fit or parts.query or parts.fragment:
        raise InputError(
            f"{STORE}: expected s3://BUCKET/FOLDER and nothing else; the endpoint stands in "
            "AWS_ENDPOINT_URL, keys in AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY"
        )
    return base


def _options() -> dict[str, str]:
    found = {name: os.environ[variable] for variable, name in _OPTIONS.items()
             if os.environ.get(variable)}
    if found.get("endpoint", "").startswith("http://"):
        found["allow_http"] = "true"
    return found


@contextmanager
def _asking(place: str) -> Iterator[None]:
    """Say what a store answers as one error of ours, without the keys."""
    try:
        yield
    except SpanwiseError:
        raise
    except (ValueError, RuntimeError, OSError) as error:
        said = " ".join(str(error).split())
        for name, value in _options().items():
            if name in ("access_key_id", "secret_access_key", "session_token"):
                said = said.replace(value, "***")
        raise Unavailable(
            f"{place}: the store of the index failed: {said[:400]}; check {STORE}, "
            "AWS_ENDPOINT_URL and the keys, and run `dvc repro` again: it goes on from here"
        ) from None


def _connect(place: Path | str, options: dict[str, str] | None = None) -> Any:
    os.environ.setdefault("LANCE_LOG", "error")  # it warns that a new table is new
    import lancedb

    return lancedb.connect(place, storage_options=options)


def _find(place: str) -> Any | None:
    """A table of the store, or None where there is none."""
    try:
        return _connect(place, _options()).open_table(TABLE)
    except ValueError as error:
        if "was not found" in str(error):
            return None
        raise


@contextmanager
def _opened(folder: Path) -> Iterator[Any]:
    """The table of an index, wherever it lies.

    raises: InputError if it is not there, Unavailable if its store fails while the block runs.
    """
    if not folder.exists():
        raise InputError(f"{folder}: no index there; run `dvc repro`")
    if not (folder / _ELSEWHERE).exists():
        yield _connect(folder).open_table(TABLE)
        return
    base = _store()
    mend = f"`dvc repro --force --single-item index@{folder.parent.name}-{folder.name}`"
    if base is None:
        raise InputError(
            f"{folder}: the table lies on an S3 store; set {STORE}, or write it here with {mend}"
        )
    place = f"{base}/{json.loads((folder / _ELSEWHERE).read_text(encoding='utf-8'))['digest']}"
    with _asking(place):
        there = _find(place)
        if there is None:
            raise InputError(f"{place}: no index there; write it with {mend}")
        yield there


def shelf(folder: Path, label: str) -> Shelf:
    """Read one label's rows.

    raises: InputError if there are none.
    """
    with _opened(folder) as table:
        found = table.search().where(f"label = '{label}'").limit(None).to_arrow()
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
    place = {chunk_id: row for row, chunk_id in enumerate(on.chunk_ids)}

    def propose(queries: NDArray[np.float32], number: int) -> NDArray[np.int64]:
        found = np.empty((len(queries), number), dtype=np.int64)
        with _opened(folder) as table:
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
                which = (hits["query_index"].to_numpy() if len(some) > 1
                         else np.zeros(len(hits), int))
                ids = hits["chunk_id"].to_pylist()
                chunk_rows = np.array([place[chunk_id] for chunk_id in ids], dtype=np.int64)
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
