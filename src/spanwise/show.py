"""What each condition and each segmentation retrieved for one question, the evidence marked."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow.compute as pc

from spanwise import layout, schemas
from spanwise.documents.records import load_documents, load_questions
from spanwise.errors import InputError, UnitError
from spanwise.params import Params
from spanwise.retrieval.routed import ROUTED_BONUS
from spanwise.spans import Span, merge
from spanwise.units import trace as units
from spanwise.units.cutting import SEGMENTATIONS

OPEN, CLOSE = "⟦", "⟧"

NO_RECORD = "no record: it joined params.yaml after the last run; run `dvc repro`"


@dataclass(frozen=True, slots=True)
class Found:
    """One question of one corpus, and the texts that its spans index.

    refused: why a document's text is shown no more, by doc_id: what was indexed is not what there
             is now, or may not be searched any more.
    """

    corpus: str
    question: dict[str, Any]
    bodies: dict[str, str]
    refused: dict[str, str]

    def text(self, doc_id: str, start: int, end: int) -> str:
        """A slice of a body, or why it is not shown."""
        if doc_id in self.refused:
            return f"(refused: {self.refused[doc_id]})"
        return self.bodies[doc_id][start:end]


def find(params: Params, question_id: str) -> Found:
    """Look a question up in every corpus.

    raises: InputError with the nearest ids if no corpus has it.
    """
    ids: list[str] = []
    for corpus in params.corpora:
        chunked = layout.read_report(layout.stage("chunk", corpus) / "report.json")
        unusable = chunked["unusable_induced_trees"]
        for question in load_questions(layout.stage("ask", corpus), unusable).to_pylist():
            if question["question_id"] == question_id:
                texts = schemas.read(layout.parse(corpus) / "documents.parquet", schemas.DOCUMENTS)
                bodies = dict(zip(texts["doc_id"].to_pylist(), texts["body"].to_pylist(),
                                  strict=True))
                return Found(corpus, question, bodies, _refused(params, corpus, bodies))
            ids.append(question["question_id"])
    from difflib import get_close_matches

    near = get_close_matches(question_id, ids, n=3, cutoff=0.3)
    hint = f"; did you mean {', '.join(near)}?" if near else ""
    raise InputError(f"no corpus of params.yaml has a question {question_id!r}{hint}")


def _refused(params: Params, corpus: str, bodies: Mapping[str, str]) -> dict[str, str]:
    try:
        documents = units.present(params, corpus)
    except InputError as error:
        why = f"the corpus cannot be read now: {str(error).splitlines()[0]}"
        return dict.fromkeys(bodies, why)
    if documents is None:
        return {}
    now = {document.doc_id: document for document in documents}
    # Titles and headings too: they stand in prefixes.
    changed = {
        was.doc_id
        for was in load_documents(layout.parse(corpus))
        if was.doc_id in now and (was.version, was.title, was.raw, was.body) != (
            now[was.doc_id].version, now[was.doc_id].title, now[was.doc_id].raw,
            now[was.doc_id].body,
        )
    }
    return {
        doc_id: "its document is another text now" if doc_id in changed
        else "its document is not in the trusted view"
        for doc_id in bodies if doc_id in changed or doc_id not in now
    }


def mark(text: str, start: int, evidence: Sequence[Mapping[str, Any]]) -> str:
    """Text that begins at `start` of its document, its evidence between ⟦ and ⟧."""
    here = Span(start, start + len(text))
    spans = merge(
        Span(max(e["start"], here.start), min(e["end"], here.end))
        for e in evidence
        if Span(e["start"], e["end"]).overlap(here)
    )
    for span in reversed(spans):
        a, b = span.start - start, span.end - start
        text = f"{text[:a]}{OPEN}{text[a:b]}{CLOSE}{text[b:]}"
    return text


def show(
    params: Params, question_id: str, embedder: str | None, conditions: Sequence[str], top: int,
    fresh: bool,
) -> str:
    """A question, its evidence, and the `top` chunks of each condition, to read; see `gather`."""
    data, trace, now = _gathered(params, question_id, embedder, conditions, top, fresh)
    lines = [f"{question_id} ({data['corpus']}, {data['type']}, {data['doc_id']})"]
    if data["demonstration"]:
        lines.append("a demonstration corpus: built to contain traps, it proves nothing")
    lines += ["", data["text"], ""]
    if data["excluded"]:
        lines.append(f"leaves the ablation: {data['excluded']}")
    for e in data["evidence"]:
        marked = f"{OPEN}{units.short(e['text'])}{CLOSE}"
        lines.append(f"evidence {e['doc_id']}:{e['start']}-{e['end']}  {marked}")
    for its in data["conditions"]:
        lines += ["", *_lines(its, data)]
    if trace is not None:
        wanted = [name for name in conditions if name in SEGMENTATIONS]
        lines += ["", *units.lines(trace, wanted, top, now)]
    return "\n".join([*lines, *_reason(data["units"])])


def as_json(
    params: Params, question_id: str, embedder: str | None, conditions: Sequence[str], top: int,
    fresh: bool,
) -> str:
    """What `gather` gives, as one JSON object."""
    data = gather(params, question_id, embedder, conditions, top, fresh)
    return json.dumps(data, indent=2, ensure_ascii=False, allow_nan=False)


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
    return _gathered(params, question_id, embedder, conditions, top, fresh)[0]


def _gathered(
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
    ran, recorded = _recorded(found.corpus, embedder, question["question_id"])
    now = _fresh(params, found, embedder) if fresh and wanted else {}
    scores = _scores(found.corpus, embedder, question["question_id"], params.primary.measure)
    chunks = _chunks(found.corpus)
    prefixes = _prefixes(found.corpus)
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
            _place(name, its.segmentation, its.label, row, chunks, prefixes) for row in ranked
        ]
        data["first_evidence_rank"] = _first(ranked, places, question["evidence"])
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
        yield f" {sign}{row['rank']:>2}  {row['score']:.4f}  {row['chunk_id']}  {shown}"
        yield f"        {_around(row['text'])}"
    if not its["chunks"]:
        yield "  nothing retrieved"


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


def _reason(data: Mapping[str, Any] | None) -> list[str]:
    if data is None or data["reason"] is None:
        return []
    return [data["reason"]] if "slice" in data else ["", data["reason"]]


def _recorded(
    corpus: str, embedder: str, question_id: str
) -> tuple[set[str], dict[str, list[dict[str, Any]]]]:
    """The conditions that ran, and what each retrieved for the question."""
    ran: set[str] = set()
    found: dict[str, list[dict[str, Any]]] = {}
    for cell in (embedder, layout.LEXICAL):
        runs = schemas.read(layout.cell("retrieve", corpus, cell) / "runs.parquet", schemas.RUNS)
        ran |= set(runs["condition"].unique().to_pylist())
        for row in runs.filter(pc.equal(runs["question_id"], question_id)).to_pylist():
            found.setdefault(row["condition"], []).append(row)
    return ran, found


def _scores(corpus: str, embedder: str, question_id: str, measure: str) -> dict[str, float | None]:
    table = schemas.read(layout.stage("score", corpus) / "scores.parquet", schemas.SCORES)
    rows = table.filter(pc.equal(table["question_id"], question_id)).to_pylist()
    return {
        r["condition"]: r[measure] for r in rows if r["embedder"] in (embedder, layout.LEXICAL)
    }


def _chunks(corpus: str) -> dict[tuple[str, str], dict[str, Any]]:
    table = schemas.read(layout.stage("chunk", corpus) / "chunks.parquet", schemas.CHUNKS)
    return {(row["segmentation"], row["chunk_id"]): row for row in table.to_pylist()}


def _prefixes(corpus: str) -> dict[tuple[str, str], str]:
    """What stood before each chunk when it was embedded, by label and chunk id."""
    table = schemas.read(layout.stage("label", corpus) / "labels.parquet", schemas.LABELS)
    columns = (table[name].to_pylist() for name in ("label", "chunk_id", "prefix"))
    return {(label, chunk): prefix for label, chunk, prefix in zip(*columns, strict=True)}


def _place(
    condition: str, segmentation: str, label: str, row: Mapping[str, Any],
    chunks: Mapping[tuple[str, str], dict[str, Any]], prefixes: Mapping[tuple[str, str], str],
) -> tuple[dict[str, Any], str]:
    """The chunk of a recorded row and the prefix that it was embedded with.

    raises: InputError if settings changed after the run, so that there is no such chunk or label.
    """
    chunk = chunks.get((segmentation, row["chunk_id"]))
    if chunk is None:
        raise InputError(
            f"{condition}: its record names {row['chunk_id']}, which is no {segmentation} "
            "chunk: something changed after the last run; run `dvc repro`"
        )
    prefix = prefixes.get((label, row["chunk_id"]))
    if prefix is None:
        raise InputError(
            f"{condition}: {row['chunk_id']} has no label {label}: something changed after the "
            "last run; run `dvc repro`"
        )
    return chunk, prefix


def _first(
    ranked: Sequence[Mapping[str, Any]], places: Sequence[tuple[dict[str, Any], str]],
    evidence: Sequence[Mapping[str, Any]],
) -> int | None:
    """The rank of the first chunk that overlaps any evidence."""
    for row, (chunk, _) in zip(ranked, places, strict=True):
        span = Span(chunk["start"], chunk["end"])
        if any(e["doc_id"] == chunk["doc_id"] and Span(e["start"], e["end"]).overlap(span)
               for e in evidence):
            return int(row["rank"])
    return None


def _fresh(params: Params, found: Found, embedder: str) -> dict[str, list[str]]:
    """The chunk ids that each dense condition retrieves now, the question embedded anew."""
    from spanwise.embedding import embed, query_text
    from spanwise.retrieval.runs import dense

    settings = params.embedders[embedder]
    absent = layout.read_report(layout.stage("label", found.corpus) / "report.json")["absent"]
    conditions = {
        name: its
        for name, its in params.conditions.items()
        if its.retrieval != "bm25" and its.label not in absent
    }
    text = query_text(settings, found.question["text"])
    with tempfile.TemporaryDirectory() as scratch:
        vectors, _ = embed([text], settings, Path(scratch), processes=1)
    runs, _ = dense(
        layout.cell("index", found.corpus, embedder), conditions, [found.question],
        vectors.of([text]), params.retrieval,
    )
    now: dict[str, list[str]] = {}
    for row in runs:
        now.setdefault(row["condition"], []).append(row["chunk_id"])
    return now


def _around(marked: str, length: int = 200) -> str:
    """One line of a chunk: from where its evidence begins, if it has any."""
    joined = " ".join(marked.split())
    first = max(0, joined.find(OPEN) - 40) if OPEN in joined else 0
    cut = joined[first : first + length]
    return ("…" if first else "") + cut + ("…" if first + length < len(joined) else "")
