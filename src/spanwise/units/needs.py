"""Questions -> information needs: what each asks for, by anchors and alternative bundles of them.

Judgements are about the source, never about units: a bundle is met by whatever covers its anchors.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa

from spanwise import schemas
from spanwise.documents.model import Document
from spanwise.errors import UnitError
from spanwise.spans import Evidence
from spanwise.units.identity import Parent, parents, reference, resolve

SLICES = ("development", "reworded")


@dataclass(frozen=True, slots=True)
class Need:
    """One information need.

    anchors: spans of its parents, as they were given.
    bundles: alternative sufficient sets of indices into `anchors`; none if nothing answers it.
    slice:   `development`, or `reworded` for a wording of a development need, whose anchors it
             shares: agreement between the two is no second confirmation.
    """

    need_id: str
    doc_id: str
    text: str
    type: str
    slice: str
    anchors: tuple[Evidence, ...]
    bundles: tuple[tuple[int, ...], ...]


def representation(anchors: pa.Table) -> str:
    """What the study cuts: the text that people's anchors are spans of, else `body`."""
    found = set(anchors["representation"].to_pylist())
    return "raw" if found == {"raw"} else "body"


def anchored(
    anchors: pa.Table, questions: Sequence[Mapping[str, Any]], documents: Sequence[Document]
) -> tuple[dict[str, Parent], pa.Table, pa.Table, dict[str, int]]:
    """The parents of the study, its ANCHORS and NEEDS tables, and counts.

    anchors:   those that the corpus brought; where it brought none, the evidence of its questions
               on `body` stands for them.
    questions: rows of QUESTIONS.
    raises:    UnitError for an anchor that its parent does not bear out, or a study without any.
    """
    known = parents(documents, representation(anchors))
    rows = anchors.to_pylist() or _of_questions(questions, known)
    if not rows:
        raise UnitError(
            "no question has an anchor, so there is nothing to cover; set `units: false` for this "
            "corpus in params.yaml, or give its questions evidence"
        )
    bundles: dict[str, dict[int, list[int]]] = defaultdict(lambda: defaultdict(list))
    for row in rows:
        resolve(row, known)
        for number in row["bundles"]:
            bundles[row["question_id"]][number].append(row["index"])
    needs, counts = [], Counter[str]()
    for question in questions:
        base = question["base"] or question["question_id"]
        needs.append(
            {
                "need_id": question["question_id"], "doc_id": question["doc_id"],
                "text": question["text"], "type": question["type"],
                "slice": SLICES[question["base"] is not None], "anchored_by": base,
                "bundles": [found for _, found in sorted(bundles[base].items())],
            }
        )
        counts[needs[-1]["slice"]] += 1
        counts[f"{needs[-1]['slice']} without an answer"] += not bundles[base]
    counts["anchors"] = len(rows)
    counts["needs with alternative bundles"] = sum(len(need["bundles"]) > 1 for need in needs)
    made = schemas.table(schemas.ANCHORS, rows), schemas.table(schemas.NEEDS, needs)
    return known, *made, dict(counts)


def load(anchors: pa.Table, needs: pa.Table) -> list[Need]:
    """Needs with their anchors, sorted by id."""
    spans: dict[str, list[Evidence]] = defaultdict(list)
    for row in anchors.to_pylist():
        spans[row["question_id"]].append(Evidence(row["doc_id"], row["start"], row["end"]))
    return [
        Need(
            row["need_id"], row["doc_id"], row["text"], row["type"], row["slice"],
            tuple(spans[row["anchored_by"]]), tuple(tuple(b) for b in row["bundles"]),
        )
        for row in needs.to_pylist()
    ]


def read(folder: Path) -> list[Need]:
    """The needs that stage `units` left in its folder, sorted by id."""
    return load(
        schemas.read(folder / "anchors.parquet", schemas.ANCHORS),
        schemas.read(folder / "needs.parquet", schemas.NEEDS),
    )


def _of_questions(
    questions: Sequence[Mapping[str, Any]], known: Mapping[str, Parent]
) -> list[dict[str, Any]]:
    """Anchor rows of evidence on `body`, for questions that were written for a corpus."""
    return [
        {
            "question_id": question["question_id"], "index": index,
            **reference(known[item["doc_id"]]), "start": item["start"], "end": item["end"],
            "quote": known[item["doc_id"]].text[item["start"] : item["end"]],
            "bundles": [n for n, bundle in enumerate(question["bundles"]) if index in bundle],
        }
        for question in questions
        if question["base"] is None
        for index, item in enumerate(question["evidence"])
    ]
