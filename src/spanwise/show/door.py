"""`spanwise show`: the data of a question as JSON, or as lines to read."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from spanwise.params import Params
from spanwise.retrieval.routed import ROUTED_BONUS
from spanwise.show.found import CLOSE, OPEN, readable
from spanwise.show.gathered import gather, gathered
from spanwise.units import trace as units
from spanwise.units.cutting import SEGMENTATIONS


def show(
    params: Params, question_id: str, embedder: str | None, conditions: Sequence[str], top: int,
    fresh: bool,
) -> str:
    """A question, its evidence, and the `top` chunks of each condition, to read; see `gather`.

    Ids stand as a person reads them; `as_json` has them as they are.
    """
    data, trace, now = gathered(params, question_id, embedder, conditions, top, fresh)
    lines = [f"{question_id} ({data['corpus']}, {data['type']}, {readable(data['doc_id'])})"]
    if data["demonstration"]:
        lines.append("a demonstration corpus: built to contain traps, it proves nothing")
    lines += ["", data["text"], ""]
    if data["excluded"]:
        lines.append(f"leaves the ablation: {data['excluded']}")
    for e in data["evidence"]:
        marked = f"{OPEN}{units.short(e['text'])}{CLOSE}"
        lines.append(f"evidence {readable(e['doc_id'])}:{e['start']}-{e['end']}  {marked}")
    for its in data["conditions"]:
        lines += ["", *_lines(its, data)]
    if trace is not None:
        wanted = [name for name in conditions if name in SEGMENTATIONS]
        lines += ["", *(_readable(line, trace) for line in units.lines(trace, wanted, top, now))]
    return "\n".join([*lines, *_reason(data["units"])])


def as_json(
    params: Params, question_id: str, embedder: str | None, conditions: Sequence[str], top: int,
    fresh: bool,
) -> str:
    """What `gather` gives, as one JSON object."""
    data = gather(params, question_id, embedder, conditions, top, fresh)
    return json.dumps(data, indent=2, ensure_ascii=False, allow_nan=False)


def _lines(its: Mapping[str, Any], data: Mapping[str, Any]) -> Iterator[str]:
    """One condition, to read."""
    depth = f" of depth {its['depth']}" if its["depth"] else ""
    score = "" if its["score"] is None else f"  {data['measure']} {its['score']:.3f}"
    yield (
        f"{its['condition']}  {its['segmentation']}, {its['prefix']}{depth}, {its['retrieval']}"
        + score
    )
    if its["state"] != "ran":
        yield f"  absent: {its['reason']}" if its["state"] == "absent" else f"  {its['reason']}"
        return
    if data["evidence"]:
        first = its["first_evidence_rank"]
        yield (f"  no evidence in the top {data['list_depth']}" if first is None
               else f"  first evidence at rank {first}")
    if its["retrieval"] == "routed":
        yield f"  scores: +{ROUTED_BONUS:g} for chunks of the sections that were kept"
    if its["agrees_now"] is not None:
        yield "  retrieved now: " + (
            "agrees with the record" if its["agrees_now"]
            else "DIFFERS from the record; run `dvc repro`"
        )
    for row in its["chunks"]:
        sign, prefix = "*" if row["holds_evidence"] else " ", row["prefix"]
        shown = "(refused)" if prefix is None else " ".join(prefix.split()) or "(no prefix)"
        yield f" {sign}{row['rank']:>2}  {row['score']:.4f}  {readable(row['chunk_id'])}  {shown}"
        yield f"        {_around(row['text'])}"
    if not its["chunks"]:
        yield "  nothing retrieved"


def _readable(line: str, trace: units.Trace) -> str:
    """A line of the trace, the ids of its documents as a person reads them."""
    rows = [*trace.anchors, *(row for found in trace.lists.values() for row in found)]
    for doc_id in {row["doc_id"] for row in rows if readable(row["doc_id"]) != row["doc_id"]}:
        line = line.replace(doc_id, readable(doc_id))
    return line


def _reason(data: Mapping[str, Any] | None) -> list[str]:
    if data is None or data["reason"] is None:
        return []
    return [data["reason"]] if "slice" in data else ["", data["reason"]]


def _around(marked: str, length: int = 200) -> str:
    """One line of a chunk: from where its evidence begins, if it has any."""
    joined = " ".join(marked.split())
    first = max(0, joined.find(OPEN) - 40) if OPEN in joined else 0
    cut = joined[first : first + length]
    return ("…" if first else "") + cut + ("…" if first + length < len(joined) else "")
