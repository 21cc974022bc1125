"""What rerankers said, kept by digest: each distinct pair once for each reranker."""

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

from spanwise import schemas
from spanwise.embedding import workers
from spanwise.errors import InputError
from spanwise.params import RerankerSettings
from spanwise.reranking.scoring import Pair, Reranker, folder_of, load

VERSION = 1
"""Raised by hand whenever the same pair and settings would get another score."""

_TASK_PAIRS = 32
_SAVE_PAIRS = 512


@dataclass(frozen=True, slots=True)
class Candidate:
    """A question and a text that was retrieved for it.

    place: which question and chunk they are, for messages.
    """

    question: str
    text: str
    place: str

    @property
    def pair(self) -> Pair:
        """What the model reads."""
        return self.question, self.text


@dataclass(frozen=True, slots=True)
class Judged:
    """What a reranker said of a pair.

    tokens: of question and text together, special ones included; cut: the model read fewer.
    """

    tokens: int
    cut: bool
    score: float


def key(settings: RerankerSettings, question: str, text: str) -> str:
    """What a score is kept by: the digest of version, settings, question and text."""
    asked = settings.model_dump(exclude={"top"})  # moves no pair's score
    settled = json.dumps([VERSION, asked, question, text], sort_keys=True, ensure_ascii=False)
    return hashlib.sha256(settled.encode("utf-8")).hexdigest()


def judge(
    candidates: Mapping[str, Candidate], settings: RerankerSettings, folder: Path,
    processes: int | None = None,
) -> tuple[dict[str, Judged], int]:
    """Scores of candidates by their keys, computed where `folder` does not hold them yet.

    The folder keeps one file, `pairs.parquet`, sorted by key and pruned to what was asked; while
    work goes on, finished pairs are saved beside it, so that an interrupted call resumes.
    returns: what was said of each, and how many were computed now.
    raises:  Unavailable if a score is missing and the model cannot be had (what the folder holds
             stays); InputError if a score is no finite number.
    """
    held = _held(folder)
    missing = sorted(k for k in candidates if k not in held)
    if missing:
        _compute(missing, candidates, settings, folder, processes or workers())
        held = _held(folder)
    found = {k: held[k] for k in sorted(candidates)}
    _save(folder / "pairs.parquet", found.items())
    for part in folder.glob("part-*.parquet"):
        part.unlink()
    return found, len(missing)


def _held(folder: Path) -> dict[str, Judged]:
    found: dict[str, Judged] = {}
    for path in [*sorted(folder.glob("part-*.parquet")), folder / "pairs.parquet"]:
        if path.exists():
            table = schemas.read(path, schemas.PAIRS)
            columns = (table[name].to_pylist() for name in ("key", "tokens", "cut", "score"))
            found.update({k: Judged(*said) for k, *said in zip(*columns, strict=True)})
    return found


def _save(path: Path, judged: Iterable[tuple[str, Judged]]) -> None:
    rows = [
        {"key": k, "tokens": said.tokens, "cut": said.cut, "score": said.score}
        for k, said in judged
    ]
    schemas.write(path, schemas.PAIRS, schemas.table(schemas.PAIRS, rows))


def _compute(
    missing: Sequence[str], candidates: Mapping[str, Candidate], settings: RerankerSettings,
    folder: Path, processes: int,
) -> None:
    from tqdm import tqdm

    model = folder_of(settings)
    bar = tqdm(total=len(missing), desc=f"rerank {settings.model}", unit="pair", disable=None)
    pending: list[tuple[str, Judged]] = []
    number = len(list(folder.glob("part-*.parquet")))

    def save() -> None:
        nonlocal number
        while (path := folder / f"part-{number:06}.parquet").exists():
            number += 1
        _save(path, pending)
        pending.clear()

    with bar:
        try:
            for judged in _judge_all(missing, candidates, settings, model, processes):
                for k, said in judged:
                    _refuse_no_number(said, candidates[k], settings)
                    pending.append((k, said))
                bar.update(len(judged))
                if len(pending) >= _SAVE_PAIRS:
                    save()
        finally:
            if pending:
                save()


def _refuse_no_number(said: Judged, candidate: Candidate, settings: RerankerSettings) -> None:
    if not np.isfinite(said.score):
        raise InputError(
            f"reranker {settings.model}: the score of {candidate.place} is {said.score}, which "
            "ranks nothing; its weights are damaged or do not fit this machine: bring them again, "
            "or take the reranker out of params.yaml"
        )


def _judge_all(
    missing: Sequence[str], candidates: Mapping[str, Candidate], settings: RerankerSettings,
    model: Path, processes: int,
) -> Iterator[list[tuple[str, Judged]]]:
    if settings.device == "cuda":
        reranker = load(settings, model)
        # Longest first: equal lengths share a batch, and memory runs out at once or never.
        ordered = sorted(missing, key=lambda k: (-sum(map(len, candidates[k].pair)), k))
        step = settings.batch_size * max(1, _TASK_PAIRS // settings.batch_size)
        for some in _parts(ordered, step):
            yield list(zip(some, _say(reranker, [candidates[k].pair for k in some]), strict=True))
        return
    tasks = list(_parts(missing, _TASK_PAIRS))
    with ProcessPoolExecutor(
        min(processes, len(tasks)), mp_context=get_context("spawn"), initializer=_start,
    ) as pool:
        running = {
            pool.submit(_work, settings, model, [candidates[k].pair for k in task]): task
            for task in tasks
        }
        try:
            for done in as_completed(running):
                yield list(zip(running.pop(done), done.result(), strict=True))
        except BaseException:
            pool.shutdown(wait=False, cancel_futures=True)
            raise


def _parts(keys: Sequence[str], size: int) -> Iterator[Sequence[str]]:
    return (keys[i : i + size] for i in range(0, len(keys), size))


def _say(reranker: Reranker, pairs: Sequence[Pair]) -> list[Judged]:
    lengths, scores = reranker.lengths(pairs), reranker.score(pairs).tolist()
    return [Judged(*length, score) for length, score in zip(lengths, scores, strict=True)]


_reranker: Reranker | None = None


def _start() -> None:
    os.environ["TOKENIZERS_PARALLELISM"] = "false"
    import torch
    from transformers.utils import logging

    quiet: Any = logging
    quiet.disable_progress_bar()
    quiet.set_verbosity_error()  # it warns of texts beyond the window, which are counted
    torch.set_num_threads(1)


def _work(settings: RerankerSettings, model: Path, pairs: list[Pair]) -> list[Judged]:
    global _reranker
    if _reranker is None:  # here and not in _start: an error there would say nothing of itself
        _reranker = load(settings, model)
    return _say(_reranker, pairs)
