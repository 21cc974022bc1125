"""What the encoder never saw: chunks, and evidence inside them, beyond its window."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import Any

from spanwise.embedding import Vectors
from spanwise.spans import Span


def beyond(
    labels: Sequence[Mapping[str, Any]], texts: Sequence[str], vectors: Vectors,
    questions: Sequence[Mapping[str, Any]],
) -> dict[str, dict[str, float]]:
    """For each label, what lies beyond the encoder's window.

    labels: rows of the LABELS table; texts: what was embedded for each.
    returns: label -> chunks truncated, their share, and the share of evidence characters (summed
             over questions) that stands in chunk text beyond the window.
    """
    evidence: dict[str, list[Span]] = defaultdict(list)
    for question in questions:
        for item in question["evidence"]:
            evidence[item["doc_id"]].append(Span(item["start"], item["end"]))
    total = sum(len(span) for spans in evidence.values() for span in spans)
    counts: dict[str, list[int]] = defaultdict(lambda: [0, 0, 0])
    for row, text in zip(labels, texts, strict=True):
        tally = counts[row["label"]]
        tally[0] += 1
        seen = int(vectors.seen[vectors.rows[text]])
        if seen >= len(text):
            continue
        tally[1] += 1
        # Content begins after the prefix; the chunk's surrounding white space holds no evidence.
        first = row["start"] + max(0, seen - len(row["prefix"]))
        if first < row["end"]:
            lost = Span(first, row["end"])
            tally[2] += sum(span.overlap(lost) for span in evidence[row["doc_id"]])
    return {
        label: {
            "chunks_beyond_window": truncated,
            "share_of_chunks": truncated / chunks,
            "share_of_evidence_characters": lost / total if total else 0.0,
        }
        for label, (chunks, truncated, lost) in sorted(counts.items())
    }
