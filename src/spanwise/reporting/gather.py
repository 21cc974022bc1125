"""Artifacts of one corpus -> plain records. No other room of this package opens an artifact."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from spanwise import layout, schemas
from spanwise.documents.records import load_questions
from spanwise.errors import InputError
from spanwise.params import WITHOUT, Params
from spanwise.reporting.current import same_rows, same_texts
from spanwise.sweep import looked
from spanwise.sweep.results import Sweep, read_all

SHOWN = 10
"""Ranks that the page lists for each question and condition."""

PRIMARY = "primary"
"""The slice of answerable questions that reword no other."""

DEVELOPMENT = "development"
"""The slice of information needs that reword no other, in the study of units."""

Row = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Ranked:
    """The top of each condition's rankings in one cell.

    lists: condition -> question_id -> chunk ids, best first, at most SHOWN.
    """

    lists: Mapping[str, Mapping[str, Sequence[str]]]


@dataclass(frozen=True, slots=True)
class UnitsRecord:
    """What the report knows of the study of units of one corpus.

    about:       what stage `units` reports: how texts were cut, how many units and needs there are.
    means:       (retriever, segmentation, slice, basis, amount) -> row of UNIT_MEANS; BM25 first,
                 then embedders in params.yaml's order.
    comparisons: (slice, basis, amount, measure, name) -> row of UNIT_COMPARISONS.
    windows:     embedder -> what stage `units-retrieve` reports: its window, and what lies beyond.
    """

    about: Mapping[str, Any]
    means: Mapping[tuple[str, str, str, str, int], Row]
    comparisons: Mapping[tuple[str, str, int, str, str], Row]
    windows: Mapping[str, Mapping[str, Any]]

    def retrievers(self) -> list[str]:
        """Retrievers with means, in order."""
        return list(dict.fromkeys(key[0] for key in self.means))

    def segmentations(self) -> list[str]:
        """Segmentations with means, in the order the table holds them."""
        return list(dict.fromkeys(key[1] for key in self.means))

    def slices(self) -> list[str]:
        """Slices with means, the development slice first."""
        return sorted({key[2] for key in self.means}, key=lambda name: (name != DEVELOPMENT, name))

    def amounts(self, basis: str) -> list[int]:
        """Cutoffs or budgets of one basis, smallest first."""
        return sorted({key[4] for key in self.means if key[3] == basis})

    def mean(
        self, retriever: str, segmentation: str, part: str, basis: str, amount: int
    ) -> Row | None:
        """A row of UNIT_MEANS, or None where nothing was judged."""
        return self.means.get((retriever, segmentation, part, basis, amount))


@dataclass(frozen=True, slots=True)
class CorpusRecord:
    """Everything the report knows of one corpus.

    demonstration: it was written to contain traps and proves nothing about the world.
    standing:      `confirmatory` or `exploratory`; differences: why it is exploratory.
    registered:    an entry of registration.json knows the corpus; which came first is not told.
    exclusions:    reason -> count, as infer reports them.
    absent:        condition -> why it could not run.
    reports:       (stage, its counts as JSON), in the order of the data's way.
    means:         (embedder, reranker, condition, slice, measure) -> row of MEANS.
    contrasts:     rows of that table.
    checks:        (embedder, reranker, measure, family, name) -> row of CHECKS.
    mixed:         rows of MIXED.
    questions:     rows of the QUESTIONS table, `excluded` also for documents without a usable
                   induced tree; documents: doc_id -> row of DOCUMENTS.
    scores:        rows of the SCORES table as columns.
    chunks:        segmentation -> chunk_id -> row of CHUNKS.
    ranked:        (embedder or `bm25`, reranker) -> Ranked.
    routing:       embedder -> rows of ROUTING.
    units:         the study of units, or None where params.yaml asks for none.
    sweeps:        what sweeps of the corpus found, by embedder.
    looked_at:     documents of the study that a sweep has looked at; one of `differences` too where
                   the corpus is exploratory.
    """

    name: str
    demonstration: bool
    standing: str
    differences: tuple[str, ...]
    registered: bool
    exclusions: Mapping[str, int]
    absent: Mapping[str, str]
    reports: Sequence[tuple[str, Any]]
    means: Mapping[tuple[str, str, str, str, str], Row]
    contrasts: Sequence[Row]
    checks: Mapping[tuple[str, str, str, str, str], Row]
    mixed: Sequence[Row]
    questions: Sequence[Row]
    documents: Mapping[str, Row]
    scores: Mapping[str, Sequence[Any]]
    chunks: Mapping[str, Mapping[str, Row]]
    ranked: Mapping[tuple[str, str], Ranked]
    routing: Mapping[str, Sequence[Row]]
    units: UnitsRecord | None = None
    sweeps: Sequence[Sweep] = ()
    looked_at: Sequence[str] = ()

    def cells(self) -> list[tuple[str, str]]:
        """(embedder, reranker) of every cell with means, in the order the table holds them."""
        return list(dict.fromkeys((key[0], key[1]) for key in self.means))

    def mean(
        self, cell: tuple[str, str], condition: str, measure: str, part: str = PRIMARY
    ) -> Row | None:
        """The row of MEANS for one condition and slice, or None where it did not run."""
        return self.means.get((*cell, condition, part, measure))

    def check(self, row: Row) -> Row | None:
        """What stands beside a contrast's row, where it was checked."""
        key = (row["embedder"], row["reranker"], row["measure"], row["family"], row["name"])
        return self.checks.get(key)

    def excluded(self) -> Counter[str]:
        """Why listed questions left the ablation, with counts."""
        return Counter(q["excluded"] for q in self.questions if q["excluded"] is not None)


def finished(root: Path, params: Params) -> tuple[list[CorpusRecord], dict[str, str]]:
    """Every corpus that has run, and of each other why it is left out and what to run.

    raises: InputError as `gather` does if there would be none.
    """
    records: list[CorpusRecord] = []
    left_out: dict[str, str] = {}
    for name in params.corpora:
        try:
            records.append(gather(root, name, params))
        except InputError as error:
            if len(params.corpora) == 1:
                raise
            left_out[name] = str(error).splitlines()[0]
    if not records:
        first = next(iter(left_out))
        raise InputError(f"no corpus has run to its end; {first}: {left_out[first]}")
    return records, left_out


def gather(root: Path, name: str, params: Params) -> CorpusRecord:
    """Read one corpus.

    root:   the project's folder, above `artifacts`.
    raises: InputError if a table is missing, is not what its schema says, or does not belong to the
            others: a stage has run apart from those that follow it.
    """
    try:
        return _gather(root, name, params)
    except KeyError as error:
        raise InputError(
            f"{name}: its artifacts have no {error}: a stage ran apart from the others, or another "
            "version of spanwise left them; run `dvc repro`"
        ) from error


def _gather(root: Path, name: str, params: Params) -> CorpusRecord:
    infer = root / layout.stage("infer", name)
    about = layout.read_report(infer / "report.json")
    same_texts(name, about, *(
        layout.read_report(root / layout.stage(stage, name) / "report.json")
        for stage in ("parse", "ask")
    ))
    label = layout.read_report(root / layout.stage("label", name) / "report.json")
    documents = schemas.read(root / layout.parse(name) / "documents.parquet", schemas.DOCUMENTS)
    chunked = layout.read_report(root / layout.stage("chunk", name) / "report.json")
    questions = load_questions(
        root / layout.stage("ask", name), chunked["unusable_induced_trees"]
    )
    chunks = _by_segmentation(schemas.read(
        root / layout.stage("chunk", name) / "chunks.parquet", schemas.CHUNKS
    ))
    scores = schemas.read(root / layout.stage("score", name) / "scores.parquet", schemas.SCORES)
    ranked, routing = _retrieved(root, name, params)
    contrasts = schemas.read(infer / "contrasts.parquet", schemas.CONTRASTS).to_pylist()
    asked = questions.to_pylist()
    same_rows(
        name, params, documents=set(documents["doc_id"].to_pylist()),
        cited={d for q in asked for d in (q["doc_id"], *(e["doc_id"] for e in q["evidence"]))},
        chunks=chunks, lists=[found.lists for found in ranked.values()],
        named={
            *(row["condition"] for rows in routing.values() for row in rows),
            *(row[arm] for row in contrasts for arm in ("a", "b")),
        },
    )
    units, counted = _units(root, name, params)
    bodies = zip(*(documents[c].to_pylist() for c in ("doc_id", "body_sha256")), strict=True)
    looked_at = looked.among(root, name, dict(bodies))
    differences = tuple(about["differences"])
    if looked_at and about["standing"] != "confirmatory":
        differences += (looked.told(looked_at),)
    return CorpusRecord(
        name=name,
        demonstration=bool(about["demonstration"]),
        standing=str(about["standing"]),
        differences=differences,
        registered=about.get("registered_at") is not None,
        exclusions=about["exclusions"],
        absent={
            condition: label["absent"][its.label]
            for condition, its in params.conditions.items()
            if its.label in label["absent"]
        },
        reports=[*_reports(root, name, params, about, label), *counted],
        means={
            (row["embedder"], row["reranker"], row["condition"], row["slice"], row["measure"]): row
            for row in schemas.read(infer / "means.parquet", schemas.MEANS).to_pylist()
        },
        contrasts=contrasts,
        checks={
            (row["embedder"], row["reranker"], row["measure"], row["family"], row["name"]): row
            for row in schemas.read(infer / "checks.parquet", schemas.CHECKS).to_pylist()
        },
        mixed=schemas.read(infer / "mixed.parquet", schemas.MIXED).to_pylist(),
        questions=asked,
        documents={row["doc_id"]: row for row in documents.drop_columns(["raw"]).to_pylist()},
        scores={column: scores[column].to_pylist() for column in scores.column_names},
        chunks=chunks,
        ranked=ranked,
        routing=routing,
        units=units,
        sweeps=read_all(root, name),
        looked_at=looked_at,
    )


def _reports(
    root: Path, name: str, params: Params, infer: Mapping[str, Any], label: Mapping[str, Any]
) -> list[tuple[str, Any]]:
    """Every stage's counts. A commit is no count: infer's is told as registered or not."""
    found: list[tuple[str, Any]] = []
    for stage in ("parse", "induce", "ask", "chunk"):
        found.append((stage, layout.read_report(root / layout.stage(stage, name) / "report.json")))
    found.append(("label", label))
    for stage in ("embed", "index"):
        for embedder in params.embedders:
            path = root / layout.cell_report(stage, name, embedder)
            found.append((f"{stage} · {embedder}", layout.read_report(path)))
    found.append(("score", layout.read_report(root / layout.stage("score", name) / "report.json")))
    found.append(("infer", {key: infer[key] for key in infer if key != "registered_at"}))
    return found


def _retrieved(
    root: Path, name: str, params: Params
) -> tuple[dict[tuple[str, str], Ranked], dict[str, list[Row]]]:
    """The lists of every cell that ran, reranked ones among them, and what routing kept."""
    folders = {(e, WITHOUT): root / layout.cell("retrieve", name, e) for e in params.embedders}
    if any(condition.retrieval == "bm25" for condition in params.conditions.values()):
        lexical = layout.LEXICAL
        folders[lexical, WITHOUT] = root / layout.cell("retrieve", name, lexical)
    routing: dict[str, list[Row]] = {}
    for embedder in params.embedders:
        path = folders[embedder, WITHOUT] / "routing.parquet"
        routing[embedder] = schemas.read(path, schemas.ROUTING).to_pylist()
        if not params.rerankers:
            continue
        told = layout.read_report(root / layout.cell("rerank", name, embedder) / "report.json")
        for reranker in told["reranked"]:
            folders[embedder, reranker] = root / layout.reranked(name, embedder, reranker)
    return {cell: _top(folder / "runs.parquet") for cell, folder in folders.items()}, routing


def _top(path: Path) -> Ranked:
    """The first SHOWN of each list of a RUNS table."""
    runs = schemas.read(path, schemas.RUNS)
    first = int(pc.min(runs["rank"]).as_py() or 0) if runs.num_rows else 0
    top = runs.filter(pc.less(runs["rank"], first + SHOWN))
    lists: dict[str, dict[str, list[str]]] = defaultdict(lambda: defaultdict(list))
    # The table is sorted by its key, so each list arrives best first.
    columns = (top[column].to_pylist() for column in ("condition", "question_id", "chunk_id"))
    for condition, question, chunk in zip(*columns, strict=True):
        lists[condition][question].append(chunk)
    return Ranked({condition: dict(found) for condition, found in lists.items()})


def _units(
    root: Path, name: str, params: Params
) -> tuple[UnitsRecord | None, list[tuple[str, Any]]]:
    """The study of units with its stages' counts; nothing where it was not asked for."""
    about = layout.read_report(root / layout.stage("units", name) / "report.json")
    if not about["asked"]:
        return None, []
    found: list[tuple[str, Any]] = [("units", about)]
    retrievers = [layout.LEXICAL, *params.embedders]
    for retriever in retrievers:
        path = root / layout.cell("units-retrieve", name, retriever) / "report.json"
        found.append((f"units-retrieve · {retriever}", layout.read_report(path)))
    windows = dict(zip(retrievers, (counts for _, counts in found[1:]), strict=True))
    del windows[layout.LEXICAL]  # it reads every word
    infer = root / layout.stage("units-infer", name)
    for stage in ("units-score", "units-infer"):
        path = root / layout.stage(stage, name) / "report.json"
        found.append((stage, layout.read_report(path)))
    means = schemas.read(infer / "means.parquet", schemas.UNIT_MEANS)
    compared = schemas.read(infer / "comparisons.parquet", schemas.UNIT_COMPARISONS)
    return units_record(
        about, means.to_pylist(), compared.to_pylist(), windows, retrievers
    ), found


def units_record(
    about: Mapping[str, Any], means: Sequence[Row], comparisons: Sequence[Row],
    windows: Mapping[str, Mapping[str, Any]], retrievers: Sequence[str],
) -> UnitsRecord:
    """Rows of the tables by their keys; means of `retrievers` alone, in that order."""
    return UnitsRecord(
        about=about,
        means={
            (r["retriever"], r["segmentation"], r["slice"], r["basis"], r["amount"]): r
            for which in retrievers for r in means if r["retriever"] == which
        },
        comparisons={
            (r["slice"], r["basis"], r["amount"], r["measure"], r["name"]): r for r in comparisons
        },
        windows=windows,
    )


def _by_segmentation(chunks: pa.Table) -> dict[str, dict[str, Row]]:
    found: dict[str, dict[str, Row]] = defaultdict(dict)
    for row in chunks.to_pylist():
        found[row["segmentation"]][row["chunk_id"]] = row
    return dict(found)
