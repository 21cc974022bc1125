"""What each condition and each segmentation retrieved for one question, the evidence marked."""

from __future__ import annotations

import tempfile
from collections.abc import Mapping, Sequence
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
    """A question, its evidence, and the `top` chunks of each condition.

    embedder:   the primary cell's by default; what is lexical is shown beside it.
    conditions: of the ablation, and segmentations of the study of units; none stands for all.
    fresh:    retrieve now, and say for each condition whether that agrees with the record.
    raises:   InputError for an unknown question, embedder or condition.
    """
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
    lines = [f"{question_id} ({found.corpus}, {question['type']}, {question['doc_id']})"]
    if params.corpora[found.corpus].demonstration:
        lines.append("a demonstration corpus: built to contain traps, it proves nothing")
    lines += ["", question["text"], ""]
    if question["excluded"]:
        lines.append(f"leaves the ablation: {question['excluded']}")
    for e in question["evidence"]:
        text = found.text(e["doc_id"], e["start"], e["end"])
        marked = f"{OPEN}{units.short(text)}{CLOSE}"
        lines.append(f"evidence {e['doc_id']}:{e['start']}-{e['end']}  {marked}")
    ran, recorded = _recorded(found.corpus, embedder, question_id)
    now = _fresh(params, found, embedder) if fresh and wanted else {}
    scores = _scores(found.corpus, embedder, question_id, params.primary.measure)
    chunks = _chunks(found.corpus)
    prefixes = _prefixes(found.corpus)
    absent = layout.read_report(layout.stage("label", found.corpus) / "report.json")["absent"]
    for name in wanted:
        its = params.conditions[name]
        depth = f" of depth {its.depth}" if its.depth else ""
        lines += ["", f"{name}  {its.segmentation}, {its.prefix}{depth}, {its.retrieval}"]
        if its.label in absent:
            lines.append(f"  absent: {absent[its.label]}")
            continue
        score = scores.get(name)
        lines[-1] += "" if score is None else f"  {params.primary.measure} {score:.3f}"
        if name not in ran:
            lines.append("  no record: it joined params.yaml after the last run; run `dvc repro`")
            continue
        ranked = recorded.get(name, [])
        # What is searched: bm25 searches content alone, which its label, without prefix, says too.
        places = [
            _place(name, its.segmentation, its.label, row, chunks, prefixes) for row in ranked
        ]
        if question["evidence"]:
            lines.append(f"  {_first(ranked, places, question['evidence'], params)}")
        if its.retrieval == "routed":
            lines.append(f"  scores: +{ROUTED_BONUS:g} for chunks of the sections that were kept")
        if name in now:
            agrees = [r["chunk_id"] for r in ranked] == now[name]
            lines.append("  retrieved now: " + (
                "agrees with the record" if agrees else "DIFFERS from the record; run `dvc repro`"
            ))
        for row, (chunk, prefix) in list(zip(ranked, places, strict=True))[:top]:
            evidence = [
                e for e in question["evidence"]
                if e["doc_id"] == chunk["doc_id"] and e["doc_id"] not in found.refused
            ]
            text = found.text(chunk["doc_id"], chunk["start"], chunk["end"])
            marked = mark(text, chunk["start"], evidence)
            sign = "*" if OPEN in marked else " "
            # A placebo is some other document's path: one that is refused may be behind it.
            hidden = chunk["doc_id"] in found.refused or (
                its.prefix == "placebo" and bool(found.refused)
            )
            lines += [
                f" {sign}{row['rank']:>2}  {row['score']:.4f}  {chunk['chunk_id']}  "
                f"{_shown(prefix, hidden)}",
                f"        {_around(marked)}",
            ]
        if not ranked:
            lines.append("  nothing retrieved")
    if segmentations or not conditions:
        lines += _units(params, found, embedder, segmentations, top, fresh)
    return "\n".join(lines)


def _units(
    params: Params, found: Found, embedder: str, segmentations: Sequence[str], top: int, fresh: bool
) -> list[str]:
    """The need's trace in the study of units, where that ran on its corpus."""
    trace = units.read(params, found.corpus, found.question["question_id"], embedder)
    if trace is None:
        return (
            ["", f"the study of units did not run on {found.corpus}; set `units: true` in "
             "params.yaml and run `dvc repro`"]
            if segmentations else []
        )
    now: dict[tuple[str, str], list[str]] = {}
    said = []
    if fresh:
        try:
            now = units.retrieve(params, found.corpus, trace.need, trace.known, embedder)
        except UnitError as error:  # units that are slices of former texts retrieve nothing now
            said = [f"not retrieved now: {error}"]
    return ["", *units.lines(trace, segmentations, top, now), *said]


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
    evidence: Sequence[Mapping[str, Any]], params: Params,
) -> str:
    """Where the first chunk that overlaps any evidence stands."""
    for row, (chunk, _) in zip(ranked, places, strict=True):
        span = Span(chunk["start"], chunk["end"])
        if any(e["doc_id"] == chunk["doc_id"] and Span(e["start"], e["end"]).overlap(span)
               for e in evidence):
            return f"first evidence at rank {row['rank']}"
    return f"no evidence in the top {params.retrieval.depth}"


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


def _shown(prefix: str, refused: bool) -> str:
    """A prefix on one line; one of a refused document is text of it too."""
    return "(refused)" if refused else " ".join(prefix.split()) or "(no prefix)"


def _around(marked: str, length: int = 200) -> str:
    """One line of a chunk: from where its evidence begins, if it has any."""
    joined = " ".join(marked.split())
    first = max(0, joined.find(OPEN) - 40) if OPEN in joined else 0
    cut = joined[first : first + length]
    return ("…" if first else "") + cut + ("…" if first + length < len(joined) else "")
