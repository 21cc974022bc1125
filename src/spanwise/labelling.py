"""Chunks with their prefixes: one row for each chunk under each label of the conditions table."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pyarrow as pa

from spanwise import schemas
from spanwise.documents.model import Document, sha256
from spanwise.params import Condition, PlaceboSettings
from spanwise.prefixes import before, cut, placebo, prefix_of, render, rendered
from spanwise.spans import Span
from spanwise.text.tokens import Tokenizer

NO_CONTEXTS = "no contexts were asked for: set `contexts: true` for this corpus in params.yaml"
"""Why conditions with contexts are absent."""

ENOUGH = 0.9
"""Share of chunks that must have a context. With fewer the condition would measure chunks without
any, so it is absent."""

Place = tuple[str, str]
"""(segmentation, chunk id)."""


def label(
    chunks: Sequence[Mapping[str, Any]], documents: Sequence[Document],
    labels: Mapping[str, Condition], tokenizer: Tokenizer, settings: PlaceboSettings,
    contexts: Mapping[Place, str] | None, absence: str = NO_CONTEXTS,
) -> tuple[pa.Table, dict[str, Any]]:
    """The LABELS table of all labels that can be made.

    chunks:   rows of the CHUNKS table.
    labels:   label -> a condition that has it.
    contexts: of every chunk that `wanting` names, "" where there is none; None leaves the labels
              out that need them, with `absence` as the reason.
    returns:  the table; a report with what is absent and why, mean prefix tokens, placebo counts.
    """
    bodies = {document.doc_id: document.body for document in documents}
    placebos, counts = _placebos(chunks, labels, settings)
    counted: dict[str, int] = {"": 0}
    rows: list[dict[str, Any]] = []
    absent: dict[str, str] = {}
    made: dict[str, dict[str, float]] = {}
    for name, condition in labels.items():
        if condition.prefix == "context" and contexts is None:
            absent[name] = absence
            continue
        mine = [chunk for chunk in chunks if chunk["segmentation"] == condition.segmentation]
        tokens = 0
        for chunk in mine:
            path = tuple(chunk["path"])
            if condition.prefix == "placebo":
                place = (condition.segmentation, chunk["doc_id"], cut(path, settings.depth))
                prefix = render(cut(placebos[place], condition.depth))
            elif condition.prefix == "context":
                assert contexts is not None
                prefix = before(contexts[condition.segmentation, chunk["chunk_id"]])
            else:
                prefix = prefix_of(path, condition.prefix, condition.depth)
            if prefix not in counted:
                counted[prefix] = tokenizer.count(prefix)
            content = bodies[chunk["doc_id"]][chunk["start"] : chunk["end"]]
            rows.append(
                {
                    "label": name, "chunk_id": chunk["chunk_id"], "doc_id": chunk["doc_id"],
                    "start": chunk["start"], "end": chunk["end"], "prefix": prefix,
                    "prefix_tokens": counted[prefix],
                    "text_sha256": sha256(rendered(prefix, content)),
                }
            )
            tokens += counted[prefix]
        made[name] = {"chunks": len(mine), "mean_prefix_tokens": tokens / max(1, len(mine))}
    report = {"labels": made, "absent": absent, "placebo": counts}
    return schemas.table(schemas.LABELS, rows), report


def enough(contexts: Mapping[Place, str]) -> str | None:
    """Why contexts are too few to be a condition of their own, or None."""
    written = sum(bool(text) for text in contexts.values())
    if written >= ENOUGH * len(contexts):
        return None
    return (
        f"the language model wrote a context for {written} of {len(contexts)} chunks, below "
        f"{ENOUGH:.0%}: use another model"
    )


def wanting(
    chunks: Sequence[Mapping[str, Any]], documents: Sequence[Document],
    labels: Mapping[str, Condition],
) -> dict[Place, tuple[Document, Span]]:
    """The chunks that a label wants a context for, by segmentation, document and place."""
    wanted = {c.segmentation for c in labels.values() if c.prefix == "context"}
    by_id = {document.doc_id: document for document in documents}
    mine = [chunk for chunk in chunks if chunk["segmentation"] in wanted]
    mine.sort(key=lambda c: (c["segmentation"], c["doc_id"], c["start"], c["end"]))
    return {
        (c["segmentation"], c["chunk_id"]): (by_id[c["doc_id"]], Span(c["start"], c["end"]))
        for c in mine
    }


def _placebos(
    chunks: Sequence[Mapping[str, Any]], labels: Mapping[str, Condition], settings: PlaceboSettings
) -> tuple[dict[tuple[str, str, tuple[str, ...]], tuple[str, ...]], dict[str, dict[str, int]]]:
    """The placebo of every (segmentation, document, path), and counts by segmentation."""
    found: dict[tuple[str, str, tuple[str, ...]], tuple[str, ...]] = {}
    counts: dict[str, dict[str, int]] = {}
    wanted = {c.segmentation for c in labels.values() if c.prefix == "placebo"}
    for segmentation in sorted(wanted):
        pairs = [
            (chunk["doc_id"], cut(tuple(chunk["path"]), settings.depth))
            for chunk in chunks
            if chunk["segmentation"] == segmentation
        ]
        assigned, counts[segmentation] = placebo(pairs, settings.seed)
        for (doc_id, path), other in assigned.items():
            found[segmentation, doc_id, path] = other
    return found, counts


def texts(labels: pa.Table, documents: Sequence[Document]) -> list[str]:
    """The text that is embedded for each row of a LABELS table, in its order."""
    bodies = {document.doc_id: document.body for document in documents}
    columns = (labels[name].to_pylist() for name in ("prefix", "doc_id", "start", "end"))
    return [
        rendered(prefix, bodies[doc_id][start:end])
        for prefix, doc_id, start, end in zip(*columns, strict=True)
    ]
