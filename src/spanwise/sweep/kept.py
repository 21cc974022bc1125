"""Chunks, induced trees and vectors of earlier trials, each by the digest of all it depends on.

Several processes may work in one folder: a file appears whole, and two that would have the same
name hold the same. Nothing is pruned; the folder may be deleted at any time.
"""

from __future__ import annotations

import hashlib
import io
import json
import tempfile
from collections.abc import Mapping, Sequence
from contextlib import redirect_stdout
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

from spanwise import embedding, schemas
from spanwise.params import EmbedderSettings, Params
from spanwise.structure.induction import induce
from spanwise.structure.model import Tree
from spanwise.structure.records import load_trees
from spanwise.structure.segmenter import VERSION
from spanwise.sweep.own import Own
from spanwise.text.tokens import Tokenizer


def key(value: Any) -> str:
    """SHA-256 of what JSON can say, whatever the order of its keys."""
    text = json.dumps(value, sort_keys=True, ensure_ascii=False, allow_nan=False)
    return hashlib.sha256(text.encode("utf-8")).hexdigest()


def induced(own: Own, settings: Params, tokenizer: Tokenizer, folder: Path) -> dict[str, Tree]:
    """The segmenter's trees, whichever inducer the study has: no language model is asked."""
    segmenter = settings.inducers.segmenter
    digest = key([
        VERSION, embedding.VERSION, own.digests["documents"], tokenizer.name,
        segmenter.model_dump(), settings.embedders[segmenter.embedder].model_dump(),
    ])
    file = folder / "trees" / f"{digest}.parquet"
    if not file.exists():
        with tempfile.TemporaryDirectory(dir=_made(folder), prefix=".induce-") as scratch:
            with redirect_stdout(io.StringIO()):  # it counts for a stage's log
                induce(own.documents, "segmenter", settings, tokenizer, Path(scratch))
            made = schemas.read(Path(scratch) / "sections.parquet", schemas.SECTIONS)
        schemas.write(file, schemas.SECTIONS, made)
    return load_trees(file)


class Vectors:
    """Vectors of one embedder by text; what a trial lacks is computed, and kept for the next."""

    def __init__(self, folder: Path, settings: EmbedderSettings) -> None:
        self.folder, self.settings = folder, settings
        self._held: dict[str, NDArray[np.float32]] = {}
        self._read: set[str] = set()

    def of(self, texts: Sequence[str], processes: int | None = None) -> NDArray[np.float32]:
        """(n, dim) unit vectors, in the order of the texts.

        raises: Unavailable if one is missing and the model cannot be had.
        """
        keys = {text: embedding.key(self.settings, text) for text in texts}
        if any(k not in self._held for k in keys.values()):
            self._look()
        missing = [text for text, k in keys.items() if k not in self._held]
        if missing:
            with tempfile.TemporaryDirectory(dir=_made(self.folder), prefix=".embed-") as scratch:
                embedding.embed(missing, self.settings, Path(scratch), processes)
                made = pq.read_table(Path(scratch) / "vectors.parquet")
            name = f"{key(sorted(keys[text] for text in missing))}.parquet"
            schemas.write(self.folder / name, _schema(made), made)
            self._look()
        return np.stack([self._held[keys[text]] for text in texts])

    def _look(self) -> None:
        """Read the files that were not there before, of this process or another."""
        for file in sorted(self.folder.glob("*.parquet")):
            if file.name in self._read:
                continue
            table = pq.read_table(file)
            schemas.check(_schema(table), table, str(file))
            matrix = table["vector"].combine_chunks().flatten().to_numpy(zero_copy_only=False)
            rows = matrix.reshape(table.num_rows, -1)
            self._held |= dict(zip(table["key"].to_pylist(), rows, strict=True))
            self._read.add(file.name)


def chunks(folder: Path, digest: str) -> pa.Table | None:
    """The CHUNKS table of that digest, or None."""
    file = folder / "chunks" / f"{digest}.parquet"
    return schemas.read(file, schemas.CHUNKS) if file.exists() else None


def keep_chunks(folder: Path, digest: str, rows: Sequence[Mapping[str, Any]]) -> pa.Table:
    """Keep a CHUNKS table, and return it."""
    made = schemas.table(schemas.CHUNKS, rows)
    schemas.write(folder / "chunks" / f"{digest}.parquet", schemas.CHUNKS, made)
    return made


def _schema(table: pa.Table) -> schemas.Schema:
    return schemas.vectors(table.schema.field("vector").type.list_size)


def _made(folder: Path) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    return folder
