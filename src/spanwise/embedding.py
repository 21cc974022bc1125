"""Vectors: each distinct text once for each embedder, the same bits whatever else was asked.

On a CPU one text goes through one forward pass with one torch thread, in one process for each core:
as fast as batches there, and the only way in which a vector depends on its text alone.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import dataclass
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from spanwise import models, schemas
from spanwise.errors import InputError, ParamsError
from spanwise.params import EmbedderSettings

VERSION = 1
"""Raised by hand whenever the same text and settings would give another vector."""

_TASK_TEXTS = 16
_SAVE_TEXTS = 64


@dataclass(frozen=True, slots=True)
class Vectors:
    """Vectors by text.

    rows:   text -> row.
    matrix: (n, dim) float32 unit vectors.
    tokens: (n,) tokens of each text, special ones left out.
    seen:   (n,) code points of each text inside the encoder's window.
    """

    rows: Mapping[str, int]
    matrix: NDArray[np.float32]
    tokens: NDArray[np.int64]
    seen: NDArray[np.int64]

    def of(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """(n, dim) vectors of texts, in their order."""
        return self.matrix[[self.rows[text] for text in texts]]


def query_text(settings: EmbedderSettings, question: str) -> str:
    """A question as the encoder gets it: with the prompt where the model has one."""
    return settings.query_prompt + question


def key(settings: EmbedderSettings, text: str) -> str:
    """What a vector is kept by: the digest of version, settings and text."""
    kept = settings.model_dump(exclude={"query_prompt"})  # the prompt is part of the text
    settled = json.dumps([VERSION, kept, text], sort_keys=True, ensure_ascii=False)
    return hashlib.sha256(settled.encode("utf-8")).hexdigest()


def workers() -> int:
    """Processes for CPU work: $SPANWISE_WORKERS, else the cores this process may use."""
    named = os.environ.get("SPANWISE_WORKERS")
    if named is None:
        # Not every system can say which cores a process may use.
        allowed = getattr(os, "sched_getaffinity", None)
        return len(allowed(0)) if allowed else os.cpu_count() or 1
    if not named.isdigit() or named == "0":
        raise ParamsError(f"SPANWISE_WORKERS is {named!r}: expected a number above 0")
    return int(named)


def embed(
    texts: Iterable[str], settings: EmbedderSettings, folder: Path, processes: int | None = None
) -> tuple[Vectors, int]:
    """Vectors of the distinct texts, computed where `folder` does not hold them yet.

    The folder keeps one file, `vectors.parquet`, sorted by key and pruned to what was asked; while
    work goes on, finished texts are saved beside it, so that an interrupted call resumes.
    returns: the vectors, and how many were computed now.
    raises:  Unavailable if a vector is missing and the model cannot be had.
    """
    keys = {key(settings, text): text for text in texts}
    wanted = sorted(keys)
    held = _held(folder)
    missing = [k for k in wanted if k not in held]
    if missing:
        _compute(missing, keys, settings, folder, processes or workers())
        held = _held(folder)
    found = _vectors([keys[k] for k in wanted], [held[k] for k in wanted])
    _save(folder / "vectors.parquet", wanted, found.tokens, found.seen, found.matrix)
    for part in folder.glob("part-*.parquet"):
        part.unlink()
    return found, len(missing)


def load(texts: Iterable[str], settings: EmbedderSettings, folder: Path) -> Vectors:
    """Vectors that must be there already.

    raises: InputError if one is missing.
    """
    asked = dict.fromkeys(texts)
    held = _held(folder)
    missing = [text for text in asked if key(settings, text) not in held]
    if missing:
        raise InputError(
            f"{folder}: {len(missing)} of {len(asked)} vectors are missing, the first of "
            f"{missing[0][:60]!r}; run `dvc repro`"
        )
    return _vectors(list(asked), [held[key(settings, text)] for text in asked])


def _vectors(
    texts: Sequence[str], rows: Sequence[tuple[int, int, NDArray[np.float32]]]
) -> Vectors:
    """Distinct texts and what is kept of each, in the same order."""
    return Vectors(
        {text: i for i, text in enumerate(texts)},
        np.stack([row[2] for row in rows]) if rows else np.zeros((0, 1), dtype=np.float32),
        np.array([row[0] for row in rows], dtype=np.int64),
        np.array([row[1] for row in rows], dtype=np.int64),
    )


def _held(folder: Path) -> dict[str, tuple[int, int, NDArray[np.float32]]]:
    import pyarrow.parquet as pq

    held: dict[str, tuple[int, int, NDArray[np.float32]]] = {}
    for path in sorted(folder.glob("*.parquet")):
        table = pq.read_table(path)
        dim = table.schema.field("vector").type.list_size
        schemas.check(schemas.vectors(dim), table, str(path))
        matrix = _matrix(table)
        found = zip(table["key"].to_pylist(), table["tokens"].to_pylist(),
                    table["seen"].to_pylist(), matrix, strict=True)
        held.update({k: (tokens, seen, vector) for k, tokens, seen, vector in found})
    return held


def _matrix(table: pa.Table) -> NDArray[np.float32]:
    """The vector column as (n, dim), without a copy."""
    column = table["vector"].combine_chunks()
    values: NDArray[np.float32] = column.values.to_numpy(zero_copy_only=True)
    return values.reshape(len(table), column.type.list_size)


def _save(
    path: Path, keys: Sequence[str], tokens: NDArray[np.int64], seen: NDArray[np.int64],
    matrix: NDArray[np.float32],
) -> None:
    schema = schemas.vectors(matrix.shape[1])
    values = pa.FixedSizeListArray.from_arrays(pa.array(matrix.reshape(-1)), matrix.shape[1])
    columns = {"key": list(keys), "tokens": tokens, "seen": seen, "vector": values}
    schemas.write(path, schema, schemas.table(schema, columns))


def _compute(
    missing: Sequence[str], keys: Mapping[str, str], settings: EmbedderSettings, folder: Path,
    processes: int,
) -> None:
    from tqdm import tqdm

    model = models.ensure(settings.model)
    bar = tqdm(total=len(missing), desc=f"embed {settings.model}", unit="text", disable=None)
    pending: list[tuple[str, _Encoded]] = []
    number = len(list(folder.glob("part-*.parquet")))

    def save() -> None:
        nonlocal number
        while (path := folder / f"part-{number:06}.parquet").exists():
            number += 1
        _save(path, [k for k, _ in pending], np.array([e.tokens for _, e in pending]),
              np.array([e.seen for _, e in pending]), np.stack([e.vector for _, e in pending]))
        pending.clear()

    with bar:
        try:
            for encoded in _encode_all(missing, keys, settings, model, processes):
                pending += encoded
                bar.update(len(encoded))
                if len(pending) >= _SAVE_TEXTS:
                    save()
        finally:
            if pending:
                save()


@dataclass(frozen=True, slots=True)
class _Encoded:
    tokens: int
    seen: int
    vector: NDArray[np.float32]


def _encode_all(
    missing: Sequence[str], keys: Mapping[str, str], settings: EmbedderSettings, model: Path,
    processes: int,
) -> Iterator[list[tuple[str, _Encoded]]]:
    tasks = [missing[i : i + _TASK_TEXTS] for i in range(0, len(missing), _TASK_TEXTS)]
    if settings.device == "cuda":
        encoder = Encoder(model, settings)
        step = settings.batch_size
        # Longest first: equal lengths share a batch, and memory runs out at once or never.
        ordered = sorted(missing, key=lambda k: (-len(keys[k]), k))
        for i in range(0, len(ordered), step):
            batch = ordered[i : i + step]
            yield list(zip(batch, encoder([keys[k] for k in batch]), strict=True))
        return
    with ProcessPoolExecutor(
        min(processes, len(tasks)), mp_context=get_context("spawn"),
        initializer=_start, initargs=(model, settings),
    ) as pool:
        running = {pool.submit(_work, [keys[k] for k in task]): task for task in tasks}
        try:
            for done in as_completed(running):
                yield list(zip(running[done], done.result(), strict=True))
        except BaseException:
            pool.shutdown(wait=False, cancel_futures=True)
            raise


class Encoder:
    """A loaded model. Calling it encodes texts: one forward pass each on a CPU."""

    def __init__(self, model: Path, settings: EmbedderSettings) -> None:
        from sentence_transformers import SentenceTransformer

        if settings.device == "cuda":
            import torch

            if not torch.cuda.is_available():
                raise ParamsError(
                    f"embedder {settings.model}: params.yaml says device cuda, and no such device "
                    "is here; set device: cpu and batch_size: 1"
                )
        self.settings = settings
        loaded: Any = SentenceTransformer(str(model), device=settings.device)
        loaded.max_seq_length = settings.max_seq_length
        self.model = loaded
        pooling = next(
            (m.pooling_mode for m in self.model if hasattr(m, "pooling_mode")), None
        )
        if pooling != settings.pooling:
            raise ParamsError(
                f"embedder {settings.model}: params.yaml says pooling {settings.pooling!r}, the "
                f"model itself says {pooling!r}; correct params.yaml"
            )
        config: Any = self.model[0].auto_model.config
        longest = getattr(config, "max_position_embeddings", None)
        if longest is not None and settings.max_seq_length > longest:
            raise ParamsError(
                f"embedder {settings.model}: max_seq_length {settings.max_seq_length} is above the "
                f"{longest} positions that the model has"
            )
        from spanwise.text.tokens import from_folder

        self.tokenizer = from_folder(settings.model, model)
        self.window = settings.max_seq_length - self.model.tokenizer.num_special_tokens_to_add()

    def __call__(self, texts: Sequence[str]) -> list[_Encoded]:
        """Encode texts; each vector has unit length."""
        matrix = self.model.encode(
            list(texts), batch_size=self.settings.batch_size, normalize_embeddings=True,
            show_progress_bar=False, convert_to_numpy=True,
        ).astype(np.float32)
        made = []
        for text, vector in zip(texts, matrix, strict=True):
            offsets = self.tokenizer.offsets(text)
            seen = len(text) if len(offsets) <= self.window else int(offsets[self.window - 1, 1])
            made.append(_Encoded(len(offsets), seen, vector))
        return made


_encoder: Encoder | None = None


def _start(model: Path, settings: EmbedderSettings) -> None:
    global _encoder
    os.environ["TOKENIZERS_PARALLELISM"] = "false"
    import torch
    from transformers.utils import logging

    quieten: Any = logging.disable_progress_bar
    quieten()
    torch.set_num_threads(1)
    _encoder = Encoder(model, settings)


def _work(texts: list[str]) -> list[_Encoded]:
    assert _encoder is not None
    return [_encoder([text])[0] for text in texts]
