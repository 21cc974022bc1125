"""A corpus's two splits: the study's documents, and those that sweeps have for themselves.

Where a manifest names both, the reader tells them apart. For any other corpus a seed draws whole
documents, if params.yaml asks for it; they leave the study with every question about them.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from spanwise.corpora.readers import read_split
from spanwise.corpora.view import SPLITS
from spanwise.documents.model import Corpus, Question
from spanwise.errors import CorpusError
from spanwise.params import CorpusSettings, SplitSettings


def both(settings: CorpusSettings) -> dict[str, Corpus]:
    """Read a corpus: the splits `study` and `sweep`, the latter empty where there is none.

    raises: CorpusError if the manifest names a split for sweeps and params.yaml draws one too, or
            if no document would be left for the study; and what the reader raises.
    """
    found = {
        split: read_split(
            settings.reader, Path(settings.path), options=settings.options, split=split
        )
        for split in SPLITS
    }
    if not settings.sweep.share:
        return found
    if found["sweep"].documents:
        raise CorpusError(
            f"{settings.path}: its manifest names {len(found['sweep'].documents)} documents of "
            "split sweep, and params.yaml draws others (sweep.share); take one of them out"
        )
    study, sweep = divide(found["study"], settings.sweep)
    if not study.documents:
        raise CorpusError(
            f"{settings.path}: a sweep.share of {settings.sweep.share:g} of "
            f"{len(sweep.documents)} documents leaves none for the study; lower it"
        )
    return {"study": study, "sweep": sweep}


def drawn(doc_ids: Sequence[str], settings: SplitSettings) -> set[str]:
    """The documents that a seed draws: the nearest whole number to the share, one at least.

    They come in the order of their digests with the seed, so that a document that is added moves at
    most as many as it must.
    """
    if not settings.share or not doc_ids:
        return set()
    order = sorted(doc_ids, key=lambda doc_id: _digest(settings.seed, doc_id))
    return set(order[: max(1, int(settings.share * len(order) + 0.5))])


def divide(corpus: Corpus, settings: SplitSettings) -> tuple[Corpus, Corpus]:
    """A corpus as the study's part and the sweep's.

    A question goes with the documents that it needs; one that needs some of both goes with neither,
    counted, and so do its rewordings.
    """
    chosen = drawn([document.doc_id for document in corpus.documents], settings)
    sides: dict[str, list[Question]] = {"study": [], "sweep": [], "both": []}
    for question in corpus.questions:
        needs = {question.doc_id, *(e.doc_id for e in question.evidence)}
        side = "sweep" if needs <= chosen else "both" if needs & chosen else "study"
        sides[side].append(question)
    parts = []
    for split, other in (("study", "sweep"), ("sweep", "study")):
        documents = tuple(d for d in corpus.documents if (d.doc_id in chosen) == (split == "sweep"))
        counts = {
            **corpus.counts,
            "documents left out: another split": len(corpus.documents) - len(documents),
            "questions left out: another split": len(sides[other]),
            "questions left out: documents of both splits": len(sides["both"]),
        }
        if "documents" in counts:
            counts["documents"] = len(documents)
        parts.append(
            replace(corpus, documents=documents, questions=tuple(sides[split]), counts=counts)
        )
    return parts[0], parts[1]


def _digest(seed: int, doc_id: str) -> str:
    return hashlib.sha256(f"{seed}\0{doc_id}".encode()).hexdigest()
