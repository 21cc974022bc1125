"""Everything that `show` says of a question, as data."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from spanwise import layout
from spanwise.errors import InputError, UnitError
from spanwise.params import Params
from spanwise.show import records
from spanwise.show.found import OPEN, Found, find, mark
from spanwise.units import trace as units
from spanwise.units.cutting import SEGMENTATIONS

NO_RECORD = "no record: it joined params.yaml after the last run; run `dvc repro`"


def gather(
    params: Params, question_id: str, embedder: str | None, conditions: Sequence[str], top: int,
    fresh: bool,
) -> dict[str, Any]:
    """What `show` says, for a program: every chunk whole, evidence between ⟦ and ⟧.

    embedder:   the primary cell's by default; what is lexical is shown beside it.
    conditions: of the ablation, and segmentations of the study of units; none stands for all.
    fresh:    retrieve now, and say for each condition whether that agrees with the record.
    raises:   InputError for an unknown question, embedder or condition.
    """
    return gathered(params, question_id, embedder, conditions, top, fresh)[0]


def gathered(
    params: Params, question_id: str, embedder: str | None, conditions: Sequence[str], top: int,
    fresh: bool,
) -> tuple[dict[str, Any], units.Trace | None, dict[tuple[str, str], list[str]]]:
    """The data, and for the study of units its trace and what is retrieved now."""
    embedder = embedder or params.primary.embedder
    if embedder not in params.embedders:
        raise InputError(f"embedder {embedder!r}: params.yaml has {', '.join(params.embedders)}")
    for name in conditions:
        if name not in params.conditions and name not in SEGMENTATIONS:
            raise InputError(
                f"condition {name!r}: params.yaml has {', '.join(params.conditions)}; the study of "
                f"units has {', '.join(SEGMENTATIONS)}"
            )
    segmentations = [name for name in conditions if name in SEGMENTATIONS]
    wanted = [name for name in conditions if name not in SEGMENTATIONS]
    if not conditions:
        wanted = list(params.conditions)
    found = find(params, question_id)
    question = found.question
    data: dict[str, Any] = {
        "question_id": question_id, "corpus": found.corpus,
        "demonstration": params.corpora[found.corpus].demonstration,
        "type": question["type"], "doc_id": question["doc_id"], "text": question["text"],
        "excluded": question["excluded"], "embedder": embedder, "measure": params.primary.measure,
        "list_depth": params.retrieval.depth,
        "evidence": [
            {"doc_id": e["doc_id"], "start": e["start"], "end": e["end"],
             "text": found.text(e["doc_id"], e["start"], e["end"])}
            for e in question["evidence"]
        ],
        "conditions": _conditions(params, found, embedder, wanted, top, fresh),
        "units": None,
    }
    if conditions and not segmentations:
        return data, None, {}
    trace, now, data["units"] = _units(params, found, embedder, segmentations, top, fresh)
    return data, trace, now


def _conditions(
    params: Params, found: Found, embedder: str, wanted: Sequence[str], top: int, fresh: bool
) -> list[dict[str, Any]]:
    """What each condition retrieved; `reason` says why one has no record."""
    question = found.question
    ran, recorded = records.recorded(found.corpus, embedder, question["question_id"])
    now = records.fresh(params, found, embedder) if fresh and wanted else {}
    scores = records.scores(found.corpus, embedder, question["question_id"], params.primary.measure)
    chunks = records.chunks(found.corpus)
    prefixes = records.prefixes(found.corpus)
    absent = layout.read_report(layout.stage("label", found.corpus) / "report.json")["absent"]
    made = []
    for name in wanted:
        its = params.conditions[name]
        data: dict[str, Any] = {
            "condition": name, **its.model_dump(), "state": "ran", "reason": None, "score": None,
            "first_evidence_rank": None, "agrees_now": None, "chunks": [],
        }
        made.append(data)
        if its.label in absent:
            data |= {"state": "absent", "reason": absent[its.label]}
            continue
        data["score"] = scores.get(name)
        if name not in ran:
            data |= {"state": "not run", "reason": NO_RECORD}
            continue
        ranked = recorded.get(name, [])
        # What is searched: bm25 searches content alone, which its label, without prefix, says too.
        places = [
            records.place(name, its.segmentation, its.label, row, chunks, prefixes)
            for row in ranked
        ]
        data["first_evidence_rank"] = records.first(ranked, places, question["evidence"])
        if name in now:
            data["agrees_now"] = [row["chunk_id"] for row in ranked] == now[name]
        data["chunks"] = [
            _chunk(found, its.prefix, row, *place)
            for row, place in list(zip(ranked, places, strict=True))[:top]
        ]
    return made


def _chunk(
    found: Found, kind: str, row: Mapping[str, Any], chunk: Mapping[str, Any], prefix: str
) -> dict[str, Any]:
    """One retrieved chunk: where it is, what stood before it, and its text with evidence marked."""
    doc_id = chunk["doc_id"]
    refused = doc_id in found.refused
    evidence = [e for e in found.question["evidence"] if e["doc_id"] == doc_id and not refused]
    marked = mark(found.text(doc_id, chunk["start"], chunk["end"]), chunk["start"], evidence)
    # A placebo is some other document's path: one that is refused may be behind it.
    hidden = refused or (kind == "placebo" and bool(found.refused))
    return {
        "rank": row["rank"], "score": row["score"], "chunk_id": chunk["chunk_id"],
        "doc_id": doc_id, "start": chunk["start"], "end": chunk["end"],
        "holds_evidence": OPEN in marked, "refused": found.refused.get(doc_id),
        # One of a refused document is text of it too.
        "prefix": None if hidden else prefix, "text": marked,
    }


def _units(
    params: Params, found: Found, embedder: str, segmentations: Sequence[str], top: int, fresh: bool
) -> tuple[units.Trace | None, dict[tuple[str, str], list[str]], dict[str, Any] | None]:
    """The need's trace in the study of units, where that ran on its corpus."""
    trace = units.read(params, found.corpus, found.question["question_id"], embedder)
    if trace is None:
        return None, {}, {"reason": (
            f"the study of units did not run on {found.corpus}; set `units: true` in "
            "params.yaml and run `dvc repro`"
        )} if segmentations else None
    now: dict[tuple[str, str], list[str]] = {}
    reason = None
    if fresh:
        try:
            now = units.retrieve(params, found.corpus, trace.need, trace.known, embedder)
        except UnitError as error:  # units that are slices of former texts retrieve nothing now
            reason = f"not retrieved now: {error}"
    return trace, now, {"reason": reason, **units.as_data(trace, segmentations, top, now)}
