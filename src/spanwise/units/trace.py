"""One need's frozen lists: what was retrieved, which anchors it holds, and whether it still stands.

A trace is a record. Printing one retrieves nothing; its references are held against the texts that
there are now, and where one is refused its words are not shown.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow.compute as pc

from spanwise import layout, schemas
from spanwise.documents.model import Document
from spanwise.documents.records import load_documents
from spanwise.errors import AnchorError, InputError, UnitError
from spanwise.params import Params
from spanwise.units.cutting import SEGMENTATIONS, cut_by
from spanwise.units.identity import Parent, collection, moved, parents, resolve
from spanwise.units.needs import Need
from spanwise.units.needs import load as load_needs

Row = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Trace:
    """What is on record for one need, and what it is a record of.

    lists:    (segmentation, retriever) -> rows of TRACES, best first.
    outcomes: (segmentation, retriever) -> rows of OUTCOMES at equal units, smallest first.
    depth:    how deep lists can be compared: the largest cutoff, the record's or now's.
    known:    the parents that there are now.
    stale:    why the record is of something else than what there is now; none if it stands.
    """

    need: Need
    anchors: Sequence[Row]
    lists: Mapping[tuple[str, str], Sequence[Row]]
    outcomes: Mapping[tuple[str, str], Sequence[Row]]
    depth: int
    known: Mapping[str, Parent]
    stale: tuple[str, ...]


def read(params: Params, corpus: str, need_id: str, embedder: str) -> Trace | None:
    """The trace of a need under BM25 and one embedder; None where the study did not run on it.

    raises: InputError if a table is missing.
    """
    folder = layout.stage("units", corpus)
    if not params.corpus(corpus).units or not (folder / "report.json").exists():
        return None
    report = layout.read_report(folder / "report.json")
    if not report["asked"]:
        return None
    anchors = schemas.read(folder / "anchors.parquet", schemas.ANCHORS)
    needs = schemas.read(folder / "needs.parquet", schemas.NEEDS)
    found = [need for need in load_needs(anchors, needs) if need.need_id == need_id]
    if not found:
        return None
    row = needs.filter(pc.equal(needs["need_id"], need_id)).to_pylist()[0]
    mine = anchors.filter(pc.equal(anchors["question_id"], row["anchored_by"])).to_pylist()
    scored = layout.stage("units-score", corpus)
    retrievers = (layout.LEXICAL, embedder)
    lists = _grouped(scored / "traces.parquet", schemas.TRACES, need_id, retrievers)
    outcomes = _grouped(scored / "outcomes.parquet", schemas.OUTCOMES, need_id, retrievers)
    known, unread = _parents(params, corpus, report["representation"])
    traced = [r for rows in lists.values() for r in rows]
    return Trace(
        found[0], mine, lists,
        {key: [r for r in rows if r["basis"] == "units"] for key, rows in outcomes.items()},
        min(report["cut_by"]["cutoffs"][-1], params.units.cutoffs[-1]),
        known,
        tuple(dict.fromkeys((
            *unread,
            *_other_settings(params, corpus, embedder, report),
            *_other_collection(report, known),
            *_other_need(params, corpus, found[0]),
            *(why for r in (*mine, *traced) if (why := _refusal(r, known))),
        ))),
    )


def lines(
    trace: Trace, segmentations: Sequence[str], top: int, fresh: Mapping[tuple[str, str], list[str]]
) -> Iterator[str]:
    """A trace as lines to read.

    fresh: (segmentation, retriever) -> passage ids that are retrieved now, where that was asked.
    """
    need = trace.need
    yield f"exact evidence units: the frozen trace of a {need.slice} need"
    for why in trace.stale:
        yield f"STALE: {why}; run `dvc repro`"
    for row in trace.anchors:
        yield (
            f"anchor {row['index']}  {row['doc_id']}@{row['version']}:{row['start']}-{row['end']}  "
            f"{_text(row, trace.known)}"
        )
    yield "bundles " + (
        " or ".join(" + ".join(map(str, bundle)) for bundle in need.bundles)
        or "none: nothing in the corpus answers this"
    )
    for segmentation in segmentations or SEGMENTATIONS:
        for key in [key for key in trace.outcomes if key[0] == segmentation]:
            yield from _list(trace, key, top, fresh.get(key))


def as_data(
    trace: Trace, segmentations: Sequence[str], top: int, fresh: Mapping[tuple[str, str], list[str]]
) -> Row:
    """A trace for a program; the arguments are those of `lines`."""
    need = trace.need
    return {
        "slice": need.slice, "stale": list(trace.stale),
        # The recorded quotation is left out: it may be of a text that is shown no more.
        "anchors": [
            {**{key: value for key, value in row.items() if key != "quote"},
             "text": _text(row, trace.known)}
            for row in trace.anchors
        ],
        "bundles": [list(bundle) for bundle in need.bundles],
        "lists": [
            {
                "segmentation": key[0], "retriever": key[1],
                "outcomes": list(trace.outcomes[key]) if need.bundles else [],
                "agrees_now": _agrees(trace, key, fresh[key]) if key in fresh else None,
                "units": [
                    {**row, "text": _text(row, trace.known)}
                    for row in trace.lists.get(key, [])[:top]
                ],
            }
            for segmentation in segmentations or SEGMENTATIONS
            for key in trace.outcomes if key[0] == segmentation
        ],
    }


def _agrees(trace: Trace, key: tuple[str, str], fresh: Sequence[str]) -> bool:
    """Whether what is retrieved now is what the record has."""
    # As deep as both were asked for: a cutoff that was changed since moves no list.
    rows = trace.lists.get(key, [])[: trace.depth]
    return fresh[: trace.depth] == [row["passage_id"] for row in rows]


def _list(
    trace: Trace, key: tuple[str, str], top: int, fresh: list[str] | None
) -> Iterator[str]:
    rows = trace.lists.get(key, [])
    yield ""
    yield f"{key[0]}  {key[1]}"
    if trace.need.bundles:
        for row in trace.outcomes[key]:
            yield f"  first {row['amount']:>2}: " + ", ".join(
                f"{said} {'yes' if row[measure] else 'no (' + row[measure + '_cause'] + ')'}"
                for measure, said in (("sufficient", "one holds all"), ("covered", "together"))
            )
    if fresh is not None:
        yield "  retrieved now: " + (
            "agrees with the record" if _agrees(trace, key, fresh)
            else "DIFFERS from the record; run `dvc repro`"
        )
    met: set[int] = set()
    for row in rows[:top]:
        met |= set(row["met"])
        held = [f"anchor {i} whole" for i in row["met"]] + [f"anchor {i} in part" for i in
                                                            row["part"]]
        yield (
            f" {'*' if held else ' '}{row['rank']:>2}  {row['score']:.4f}  {row['passage_id']}"
            + (f"  {', '.join(held)}" if held else "")
        )
        yield f"        {_text(row, trace.known)}"
    if not rows:
        yield "  nothing retrieved"
    elif trace.need.bundles and not any(met.issuperset(b) for b in trace.need.bundles):
        missing = [str(row["index"]) for row in trace.anchors if row["index"] not in met]
        yield f"  whole in none of these units by itself: anchor {', '.join(missing)}"


def retrieve(
    params: Params, corpus: str, need: Need, known: Mapping[str, Parent], embedder: str
) -> dict[tuple[str, str], list[str]]:
    """The passage ids that a need retrieves now, as deep as its trace is.

    Vectors of units that this machine does not hold yet are computed first.
    raises: UnitError if a unit is no slice of its parent any more; Unavailable without the model.
    """
    from spanwise.embedding import embed, query_text
    from spanwise.units import ranking

    units = ranking.load_units(layout.stage("units", corpus))
    asked, depth = [(need.need_id, need.text)], params.units.cutoffs[-1]
    encoder = params.embedder(embedder)
    passages = {name: ranking.texts(found, known) for name, found in units.items()}
    vectors, _ = embed(
        [text for found in passages.values() for text in found], encoder,
        layout.unit_vectors(corpus, embedder),
    )
    query = query_text(encoder, need.text)
    with tempfile.TemporaryDirectory() as scratch:
        queries, _ = embed([query], encoder, Path(scratch), processes=1)
    runs = {
        layout.LEXICAL: ranking.lexical(units, known, asked, params.retrieval.bm25, depth),
        embedder: ranking.dense(
            units, {name: vectors.of(found) for name, found in passages.items()}, asked,
            queries.of([query]), depth,
        ),
    }
    now: dict[tuple[str, str], list[str]] = {
        (name, retriever): [] for name in units for retriever in runs
    }
    for retriever, table in runs.items():
        for row in table.to_pylist():
            now[row["segmentation"], retriever].append(row["passage_id"])
    return now


def _grouped(
    path: Path, schema: schemas.Schema, need_id: str, retrievers: Sequence[str]
) -> dict[tuple[str, str], list[Row]]:
    table = schemas.read(path, schema)
    found: dict[tuple[str, str], list[Row]] = {}
    for row in table.filter(pc.equal(table["need_id"], need_id)).to_pylist():
        if row["retriever"] in retrievers:
            found.setdefault((row["segmentation"], row["retriever"]), []).append(row)
    return found


def present(params: Params, corpus: str) -> Sequence[Document] | None:
    """The documents of a folder as they are now; None where the last `parse` is what there is.

    A file may have been edited, or its permission withdrawn, since `parse`. Dumps take minutes to
    read, and a folder may not be on this machine.
    """
    from spanwise.corpora.apart import drawn
    from spanwise.corpora.readers import WITH_SPLITS, read_documents

    its = params.corpus(corpus)
    if its.reader in WITH_SPLITS and Path(its.path).exists():
        found = read_documents(its.reader, Path(its.path))
        away = drawn([document.doc_id for document in found], its.sweep)
        return tuple(document for document in found if document.doc_id not in away)
    return None


def _parents(
    params: Params, corpus: str, representation: str
) -> tuple[dict[str, Parent], tuple[str, ...]]:
    """The parents that there are now, and why there are none where the corpus cannot be read."""
    try:
        documents = present(params, corpus)
        if documents is None:
            documents = load_documents(layout.parse(corpus))
        return parents(documents, representation), ()
    except InputError as error:
        return {}, (f"the corpus cannot be read now: {str(error).splitlines()[0]}",)


def _other_collection(report: Row, known: Mapping[str, Parent]) -> Iterator[str]:
    """Any document that came, went or changed moves what every need retrieves."""
    now = collection(known)
    if report.get("collection") == now:
        return
    yield "the collection is another one now: documents came, went or were edited"


def _other_settings(
    params: Params, corpus: str, embedder: str, report: Row
) -> Iterator[str]:
    now = cut_by(params)
    if report["cut_by"] != now:
        yield f"the study was set up by {report['cut_by']}, params.yaml says {now}"
    ranked = {
        layout.LEXICAL: params.retrieval.bm25.model_dump(),
        embedder: params.embedder(embedder).model_dump(),
    }
    for retriever, its in ranked.items():
        path = layout.cell("units-retrieve", corpus, retriever) / "report.json"
        if (was := layout.read_report(path)["ranked_by"]) != its:
            yield f"{retriever} ranked by {was}, params.yaml says {its}"


def _other_need(params: Params, corpus: str, need: Need) -> Iterator[str]:
    from spanwise.corpora.readers import WITH_SPLITS, read_split

    its = params.corpus(corpus)
    if its.questions or its.reader not in WITH_SPLITS or not Path(its.path).exists():
        return
    try:
        given = read_split(its.reader, Path(its.path), options=its.options)
    except AnchorError:  # its message quotes, and what it quotes may stand in no document any more
        yield "the corpus's questions cannot be read now: an anchor names no place any more"
        return
    except InputError as error:
        yield f"the corpus's questions cannot be read now: {str(error).splitlines()[0]}"
        return
    now = {question.question_id: question for question in given.questions}.get(need.need_id)
    if now is None:
        yield f"{need.need_id} is no question of the corpus any more"
    elif now.text != need.text:
        yield f"{need.need_id} asks something else now: {now.text!r}"
    elif given.evidence == "raw" and (
        tuple(now.evidence) != need.anchors
        or [tuple(sorted(set(bundle))) for bundle in now.bundles] != list(need.bundles)
    ):
        yield f"{need.need_id} has other anchors or bundles now"


def _text(row: Row, known: Mapping[str, Parent]) -> str:
    why = _refusal(row, known)
    return short(resolve(row, known)) if why is None else f"(refused: {why})"


def _refusal(row: Row, known: Mapping[str, Parent]) -> str | None:
    """Why a row's words are not shown, or None."""
    if why := moved(row, known):
        return why
    try:
        resolve(row, known)
    except UnitError:
        return "its quotation is not what stands there"
    return None


def short(text: str, length: int = 160) -> str:
    """A text on one line, cut at a length."""
    joined = " ".join(text.split())
    return joined if len(joined) <= length else joined[: length - 1] + "…"


