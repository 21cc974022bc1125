"""One trial: chunks, prefixes, ranked lists and measures, by the rooms that the study uses."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from spanwise import layout, models, schemas
from spanwise.chunking.chunks import Chunk, chunk_structural
from spanwise.chunking.cuts import Ruler, measure
from spanwise.chunking.fixed import fixed
from spanwise.documents.model import Document
from spanwise.embedding import query_text
from spanwise.errors import CorpusError, RunError
from spanwise.index import Shelf, propose_faiss
from spanwise.labelling import label, texts
from spanwise.measures.study import Scorer
from spanwise.params import MEASURES, WITHOUT, Params
from spanwise.retrieval.flat import Ranking, flat
from spanwise.retrieval.routed import routed, sections
from spanwise.retrieval.runs import lexical
from spanwise.spans import Span
from spanwise.structure.model import Tree
from spanwise.structure.records import load_trees, section_table
from spanwise.sweep import kept
from spanwise.sweep.own import SPLIT, Own
from spanwise.sweep.space import Setting

VERSION = 1
"""Raised by hand whenever the same settings would give other chunks."""

TRIAL = "trial"
"""The one condition that a trial has."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """What a trial came to.

    means: measure -> mean over the questions it is defined for, None where it is for none.
    """

    chunks: int
    mean_tokens: float
    means: Mapping[str, float | None]


class Bench:
    """Judges settings on one corpus's documents for sweeps, with one embedder or BM25.

    processes: that may encode at a time; None for one a core.
    """

    def __init__(
        self, settings: Params, own: Own, embedder: str, processes: int | None = None
    ) -> None:
        self.settings, self.own, self.embedder = settings, own, embedder
        self.processes = processes
        self.folder = layout.sweep(own.corpus)
        self.tokenizer = models.tokenizer(settings)
        self.questions = own.questions.to_pylist()
        self.vectors: kept.Vectors | None = None
        if embedder != layout.LEXICAL:
            self.vectors = kept.Vectors(
                self.folder / "vectors" / embedder, settings.embedder(embedder)
            )
        self._trees: dict[str, dict[str, Tree]] = {}
        self._rulers: dict[tuple[str, int], Ruler] = {}

    def judge(self, setting: Setting) -> Outcome:
        """Chunk, retrieve and score.

        raises: CorpusError or RunError for a setting that cannot be judged on these documents;
                Unavailable if a model is needed and cannot be had.
        """
        chunks = self.chunks(setting)
        condition = setting.condition()
        labels, _ = label(
            chunks.to_pylist(), self.own.documents, {condition.label: condition}, self.tokenizer,
            self.settings.prefixes.placebo, None,
        )
        runs = self._ranked(setting, chunks, texts(labels, self.own.documents))
        if not runs:
            raise RunError("no question shares a word with any chunk")
        scorer = Scorer(self.own.questions, chunks, labels, {TRIAL: condition})
        rows, _ = scorer.score(self.embedder, WITHOUT, schemas.table(schemas.RUNS, runs))
        means: dict[str, float | None] = {}
        for name in MEASURES:
            found = [row[name] for row in rows if row[name] is not None]
            means[name] = math.fsum(found) / len(found) if found else None
        tokens = chunks["tokens"].to_pylist()
        return Outcome(len(tokens), sum(tokens) / len(tokens), means)

    def chunks(self, setting: Setting) -> pa.Table:
        """The CHUNKS table of a setting's sizes, made once: prefix and retrieval move no edge."""
        trees = {} if setting.segmentation == "fixed" else self.trees(setting.segmentation)
        digest = kept.key([
            VERSION, self.own.digests["documents"], self.tokenizer.name, setting.sizes(),
            section_table(trees.values()).to_pylist(),
        ])
        found = kept.chunks(self.folder, digest)
        if found is None:
            found = kept.keep_chunks(self.folder, digest, [
                {
                    "segmentation": c.segmentation, "chunk_id": c.chunk_id, "doc_id": c.doc_id,
                    "start": c.start, "end": c.end, "tokens": c.tokens, "path": list(c.path),
                    "node": c.node,
                }
                for document in self.own.documents for c in self.cut(document, setting, trees)
            ])
        return found

    def cut(
        self, document: Document, setting: Setting, trees: Mapping[str, Tree]
    ) -> list[Chunk]:
        """One document's chunks.

        raises: CorpusError if it has no tree of that segmentation.
        """
        if setting.segmentation != "fixed":
            if document.doc_id not in trees:
                raise CorpusError(f"{document.doc_id}: no usable {setting.segmentation} tree")
            limits = setting.limits()
            ruler = self._ruler(document, limits.cap_tokens)
            return chunk_structural(
                document, trees[document.doc_id], setting.segmentation, ruler, self.tokenizer,
                limits,
            )[0]
        assert setting.window_tokens is not None and setting.overlap_tokens is not None
        # A window ends at a sentence, so it may be larger than asked; the study's cap bounds it.
        cap = max(
            self.settings.chunking.cap_tokens, setting.window_tokens + setting.overlap_tokens
        )
        ruler = self._ruler(document, cap)
        spans, _ = fixed(ruler, len(document.body), setting.window_tokens, cap)
        return [
            Chunk(
                "fixed", document.doc_id, s.start, s.end,
                self.tokenizer.count(document.body[s.start : s.end]), (document.title,), 0,
            )
            for s in overlapped(spans, ruler, setting.overlap_tokens, cap)
        ]

    def trees(self, segmentation: str) -> dict[str, Tree]:
        """Section trees of the documents, `native` or `induced`."""
        if segmentation not in self._trees:
            self._trees[segmentation] = (
                load_trees(layout.parse(self.own.corpus, SPLIT) / "sections.parquet")
                if segmentation == "native"
                else kept.induced(self.own, self.settings, self.tokenizer, self.folder)
            )
        return self._trees[segmentation]

    def _ruler(self, document: Document, cap: int) -> Ruler:
        place = (document.doc_id, cap)
        if place not in self._rulers:
            self._rulers[place] = measure(document, self.tokenizer, cap)
        return self._rulers[place]

    def _ranked(
        self, setting: Setting, chunks: pa.Table, passages: Sequence[str]
    ) -> list[dict[str, Any]]:
        """RUNS rows. chunks and passages are in the same order: by document, then place."""
        rows, depth = chunks.to_pylist(), self.settings.retrieval.depth
        if self.vectors is None:
            return lexical(
                TRIAL, rows, passages, self.questions, self.settings.retrieval.bm25, depth
            )
        encoder = self.settings.embedder(self.embedder)
        asked = [query_text(encoder, question["text"]) for question in self.questions]
        matrix = self.vectors.of([*passages, *asked], self.processes)
        queries = matrix[len(passages) :]
        on = Shelf(
            TRIAL, tuple(c["chunk_id"] for c in rows), tuple(c["doc_id"] for c in rows),
            np.array([c["start"] for c in rows]), np.array([c["end"] for c in rows]),
            np.array([c["node"] for c in rows]), matrix[: len(passages)],
        )
        lists = flat(on, queries, depth, propose_faiss(on))
        if setting.sections is not None:
            within = sections(on)
            lists = [
                routed(on, within, query, ranking, depth, setting.sections)[0]
                for query, ranking in zip(queries, lists, strict=True)
            ]
        return [
            row for question, ranking in zip(self.questions, lists, strict=True)
            for row in _rows(question["question_id"], ranking, on)
        ]


def overlapped(spans: Sequence[Span], ruler: Ruler, overlap: int, cap: int) -> list[Span]:
    """Windows that each begin earlier, at a place where a cut is allowed, within the one before.

    overlap: tokens that a window repeats of the one before, at most; 0 leaves the windows as they
             are. cap: tokens that a window has at most.
    """
    found = list(spans[:1])
    for before, span in pairwise(spans):
        earlier = [
            place for place in ruler.between(before.start, span.start)
            if ruler.tokens(place, span.start) <= overlap and ruler.tokens(place, span.end) <= cap
        ]
        found.append(Span(min([*earlier, span.start]), span.end))
    return found


def _rows(question_id: str, ranking: Ranking, on: Shelf) -> list[dict[str, Any]]:
    pairs = zip(ranking.rows.tolist(), ranking.scores.tolist(), strict=True)
    return [
        {
            "condition": TRIAL, "question_id": question_id, "rank": rank,
            "chunk_id": on.chunk_ids[row], "score": score,
        }
        for rank, (row, score) in enumerate(pairs, start=1)
    ]


def folder_of(corpus: str, embedder: str) -> Path:
    """Where the journal of a corpus and an embedder lies."""
    return layout.sweep(corpus) / embedder
