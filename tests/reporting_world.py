"""A small world of artifacts: two corpora, two embedders and bm25, made by the real rooms.

Only rankings are drawn here (seeded, leaning towards evidence by condition); chunks, labels,
scores, means, contrasts and draws are what the real rooms make of them. The corpus `toy` has the
study of units, whose lists by BM25 are real as well.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import yaml

from spanwise import layout, params, schemas
from spanwise.chunking.chunks import Chunk, chunk_corpus
from spanwise.chunking.external import chunk_external
from spanwise.documents.model import Builder, Corpus, Document, Question
from spanwise.documents.records import document_tables, question_table
from spanwise.labelling import label
from spanwise.measures.study import Scorer
from spanwise.params import Params
from spanwise.spans import Evidence
from spanwise.statistics.families import inferred
from spanwise.statistics.study import Study, means
from spanwise.structure.model import Tree
from spanwise.structure.native import native_tree
from spanwise.structure.records import section_table
from spanwise.text.tokens import words
from spanwise.units import compare
from spanwise.units.cutting import cut
from spanwise.units.needs import anchored, load
from spanwise.units.outcomes import Held, Judge, beyond
from spanwise.units.ranking import lexical
from spanwise.writing.asking import judged
from spanwise.writing.rounds import collect
from spanwise.writing.sampling import SampleSettings, sample

ROOT = Path(__file__).resolve().parents[1]

HOSTILE = (
    '</script><script>document.title="owned"</script>'
    """<img src=x onerror="document.title='owned'"><b>&amp;"""
)
"""A text that would leave its element if anything forgot to escape it."""

LEANING = {"A0": 0.8, "A2": 1.0, "A3-d1": 1.3, "A3-d2": 1.5, "A3": 1.6, "A4": 0.9, "P": 0.9,
           "G2": 1.2, "G3": 1.9, "G4": 1.3, "BM25": 1.1}
"""How far rankings lean towards chunks with evidence, by condition."""

_NOUNS = ("mast", "cable", "lamp", "buoy", "valve", "ladder", "gauge", "winch", "filter", "hatch")
_VERBS = ("holds", "needs", "replaces", "carries", "follows", "limits", "opens", "warns", "feeds")


def settings(**changes: Any) -> Params:
    """params.yaml with two small corpora, words as tokens and few draws."""
    found = yaml.safe_load((ROOT / "params.yaml").read_text(encoding="utf-8"))
    found["corpora"] = {
        "harbour": {"reader": "markdown", "path": "data/harbour"},
        "toy": {
            "reader": "markdown", "path": "data/toy", "demonstration": True, "units": True,
        },
    }
    found["embedders"] = {
        "minilm": {"model": "small", "pooling": "mean"},
        "mpnet": {"model": "large", "pooling": "mean"},
    }
    found["tokens"] = {"tokenizer": "words"}
    found["chunking"] = {"cap_tokens": 60, "floor_tokens": 12, "size_tolerance_tokens": 5}
    found["units"] = {
        "windows": {"size_tokens": 12, "overlap_tokens": 4}, "cutoffs": [1, 2, 3],
        "characters": [200, 400, 800], "tokens": [30, 60, 120, 240], "depth": 30,
    }
    found["inference"] = {"iterations": 400, "seed": 7, "margin": 0.01}
    return params.from_mapping(found | changes)


def _plain(rng: np.random.Generator) -> str:
    return " ".join(
        f"The {rng.choice(_NOUNS)} {rng.choice(_VERBS)} the {rng.choice(_NOUNS)} "
        f"at step {rng.integers(1, 90)}." for _ in range(int(rng.integers(3, 9)))
    )


def build(
    root: Path, study: Params, *, title: str = "", documents: int = 8,
    paragraph: Callable[[np.random.Generator], str] = _plain,
) -> None:
    """Write artifacts of every corpus of `study` under `root`.

    title:     a document's and a question's text in each corpus, e.g. HOSTILE; that document says
               it as well.
    documents: each has eight paragraphs and five questions, one of them without an answer.
    paragraph: makes the text of one.
    """
    for number, name in enumerate(study.corpora):
        rng = np.random.default_rng(number + 1)
        texts = [_document(rng, i, title, paragraph) for i in range(documents)]
        _corpus(root, name, study, texts, _questions(rng, texts, title), rng)


def _document(
    rng: np.random.Generator, number: int, title: str,
    paragraph: Callable[[np.random.Generator], str],
) -> Document:
    hostile = bool(title) and not number
    made = Builder(f"doc-{number}", title if hostile else f"Manual {number}")
    for section in range(4):
        made.heading(1 + section % 2, f"Part {section + 1}")
        for i in range(2):
            text = paragraph(rng)
            if section == 1 and i == 0:  # what JavaScript counts as two and Python as one
                text = f"\U0001f6a2\U0001f6a2 {text} {title if hostile else ''}".rstrip()
            made.paragraph(text)
    return made.build(source="manuals")


def _questions(rng: np.random.Generator, texts: list[Document], title: str) -> list[Question]:
    made = []
    for document in texts:
        for i in range(4):
            spans = [document.paragraphs[i].span]
            if i == 3:
                spans.append(document.paragraphs[7].span)
            evidence = tuple(Evidence(document.doc_id, s.start, s.end - 20) for s in spans)
            text = f"What does the {rng.choice(_NOUNS)} of {document.title} need?"
            if title and i == 1:
                text = f"Why {title}?"
            made.append(Question(
                f"{document.doc_id}-q{i}", document.doc_id, text,
                "multihop" if i == 3 else "factoid", evidence, (tuple(range(len(evidence))),),
                base=f"{document.doc_id}-q0" if i == 2 else None,
            ))
        made.append(Question(
            f"{document.doc_id}-none", document.doc_id, "Who painted it?", "no-answer",
            excluded="no-answer",
        ))
    return made


def _corpus(
    root: Path, name: str, study: Params, texts: list[Document], asked: list[Question],
    rng: np.random.Generator,
) -> None:
    corpus = Corpus(tuple(texts), tuple(asked), "body")
    questions, mapping = question_table(corpus)
    tables = document_tables(texts)
    folder = root / layout.parse(name)
    schemas.write(folder / "documents.parquet", schemas.DOCUMENTS, tables["documents"])
    native = {d.doc_id: native_tree(d) for d in texts}
    induced = {d.doc_id: native_tree(_reheaded(d)) for d in texts}
    schemas.write(folder / "sections.parquet", schemas.SECTIONS, section_table(native.values()))
    parsed = {"files": len(texts), "files left out: not permitted": 2, **mapping,
              "digests": {"documents": "d1"}}
    _json(root / layout.stage("parse", name), {"study": parsed, "sweep": {"files": 0}})
    _ask(root / layout.stage("ask", name), study, name, questions, texts, native)
    _json(root / layout.stage("induce", name), {"inducer": "segmenter", "usable": len(texts)})
    trees = {"native": native, "induced": induced}
    chunks, report = chunk_corpus(texts, trees, words(), study.chunking)
    others, counts = chunk_external(
        study.external, texts, trees, words(), study.chunking,
        report["segmentations"]["fixed"]["mean_tokens"],
    )
    report["segmentations"] |= counts
    rows = [_row(chunk) for chunk in [*chunks, *others]]
    table = schemas.table(schemas.CHUNKS, rows)
    schemas.write(root / layout.stage("chunk", name) / "chunks.parquet", schemas.CHUNKS, table)
    _json(root / layout.stage("chunk", name), report)
    labels, report = label(
        rows, texts, study.labels(), words(), study.prefixes.placebo, None
    )
    schemas.write(root / layout.stage("label", name) / "labels.parquet", schemas.LABELS, labels)
    _json(root / layout.stage("label", name), report)
    absent = report["absent"]

    scorer = Scorer(questions, table, labels, study.conditions)
    scores, counts = [], {}
    for cell in [*study.embedders, layout.LEXICAL]:
        runs, routing = _retrieve(study, cell, absent, rows, questions.to_pylist(), rng)
        kept = root / layout.cell("retrieve", name, cell)
        found = schemas.table(schemas.RUNS, runs)
        schemas.write(kept / "runs.parquet", schemas.RUNS, found)
        schemas.write(
            kept / "routing.parquet", schemas.ROUTING, schemas.table(schemas.ROUTING, routing)
        )
        made, counts[cell] = scorer.score(cell, "none", found)
        scores += made
        if cell != layout.LEXICAL:
            _json(root / layout.cell("rerank", name, cell), {"reranked": {}, "absent": {}})
            beyond = {"chunks_beyond_window": 0, "share_of_chunks": 0.0,
                      "share_of_evidence_characters": 0.0}
            schemas.write_text(root / layout.cell_report("embed", name, cell), json.dumps(
                {"distinct_texts": 99, "window_tokens": 512, "beyond_window": {"fixed": beyond}}
            ))
            schemas.write_text(
                root / layout.cell_report("index", name, cell), json.dumps({"rows": len(labels)})
            )
    first = {"BM25": scorer.gold_first("BM25", found)}
    score = root / layout.stage("score", name)
    written = schemas.table(schemas.SCORES, scores)
    schemas.write(score / "scores.parquet", schemas.SCORES, written)
    _json(score, {"counts": counts, "bm25_gold_first": first})
    _infer(root, name, study, written, questions.to_pylist(), absent, first)
    if study.corpora[name].units:
        _units(root, name, study, texts, questions.to_pylist(), native, rng)
    else:
        _json(root / layout.stage("units", name), {"asked": False})


def _ask(
    folder: Path, study: Params, name: str, questions: pa.Table, texts: list[Document],
    native: Mapping[str, Tree],
) -> None:
    """Questions that came with the corpus; where it is a demonstration, a funnel beside them."""
    schemas.write(folder / "questions.parquet", schemas.QUESTIONS, questions)
    report: dict[str, Any] = {"origin": "given", "questions": questions.num_rows}
    if study.corpora[name].demonstration:
        drawn = sample(texts, native, SampleSettings(1, 7, (5, 90), (20, 900))).samples
        wordings = [f"Which one of them, number {i}, is meant?" for i in range(len(drawn))]
        records = collect([
            # Every fifth one copies its passage.
            (one, text, f"What, then, is number {i}?" if i % 5 else
             f"{' '.join(one.texts[0].split()[:7])}?")
            for i, (one, text) in enumerate(zip(drawn, wordings, strict=True))
        ])
        report |= {"origin": "authored", "question file": {"name": "questions/toy.jsonl"}}
        report |= judged(records, study.writing, None)[1]
    _json(folder, report | {"digests": {"documents": "d1", "questions": "d2"}})


SEEN = 150
"""Code points of a unit that the embedders of this world see."""


def _units(
    root: Path, name: str, study: Params, texts: list[Document], questions: list[dict[str, Any]],
    native: Mapping[str, Tree], rng: np.random.Generator,
) -> None:
    """The study of units of one corpus. Lists of the embedders are drawn, those of BM25 are not."""
    none = schemas.table(schemas.ANCHORS, [])
    known, anchors, needs, counts = anchored(none, questions, texts)
    manifests = {
        segmentation: table.to_pylist() for segmentation, table in
        cut(texts, known, native, "markdown", words(), study.units).items()
    }
    asked = [(q["question_id"], q["text"]) for q in questions]
    listed = load(anchors, needs)
    judge = Judge(listed, known, words(), study.units)
    outcomes: list[dict[str, Any]] = []
    for retriever in (layout.LEXICAL, *study.embedders):
        seen = {} if retriever == layout.LEXICAL else {
            u["passage_id"]: min(SEEN, u["end"] - u["start"])
            for found in manifests.values() for u in found
        }
        if retriever == layout.LEXICAL:
            runs = lexical(manifests, known, asked, study.retrieval.bm25, study.units.depth)
        else:
            runs = _ranked(manifests, questions, study.units.depth, rng)
        held = {segmentation: Held(found, seen) for segmentation, found in manifests.items()}
        outcomes += judge.retriever(retriever, held, runs)[0]
        report: dict[str, Any] = {"asked": True}
        if seen:
            report |= {"window_tokens": 16, "beyond_window": beyond(manifests, seen, listed)}
        _json(root / layout.cell("units-retrieve", name, retriever), report)
    _json(root / layout.stage("units", name), {
        "asked": True, "representation": "body",
        "cut_by": {"windows": study.units.windows.model_dump(), "tokenizer": "words"}, **counts,
        "units": {segmentation: len(found) for segmentation, found in manifests.items()},
    })
    _json(root / layout.stage("units-score", name), {"asked": True, "outcomes": len(outcomes)})
    folder = root / layout.stage("units-infer", name)
    kept = schemas.table(schemas.OUTCOMES, outcomes)
    schemas.write(root / layout.stage("units-score", name) / "outcomes.parquet",
                  schemas.OUTCOMES, kept)
    compared = compare.comparisons(
        kept.to_pylist(), list(study.embedders), layout.LEXICAL, study.inference,
        {need.need_id: [need.doc_id, *(a.doc_id for a in need.anchors)] for need in listed},
    )
    for file, schema, rows in (
        ("means", schemas.UNIT_MEANS, compare.means(kept.to_pylist())),
        ("comparisons", schemas.UNIT_COMPARISONS, compared),
    ):
        schemas.write(folder / f"{file}.parquet", schema, schemas.table(schema, rows))
    _json(folder, {"asked": True})


def _ranked(
    manifests: Mapping[str, list[dict[str, Any]]], questions: list[dict[str, Any]], depth: int,
    rng: np.random.Generator,
) -> pa.Table:
    """Lists that lean towards units with evidence."""
    rows = []
    for segmentation, found in manifests.items():
        for question in questions:
            gold = np.array([
                any(e["doc_id"] == u["doc_id"] and e["start"] < u["end"] and u["start"] < e["end"]
                    for e in question["evidence"]) for u in found
            ], dtype=float)
            noise = rng.normal(size=len(found)) + 1.8 * gold
            rows += [
                {"segmentation": segmentation, "need_id": question["question_id"], "rank": rank,
                 "passage_id": found[i]["passage_id"], "score": round(float(noise[i]), 6)}
                for rank, i in enumerate(np.argsort(-noise)[:depth].tolist(), start=1)
            ]
    return schemas.table(schemas.UNIT_RUNS, rows)


def _infer(
    root: Path, name: str, study: Params, scores: Any, questions: list[dict[str, Any]],
    absent: Mapping[str, str], first: Mapping[str, Any],
) -> None:
    demonstration = study.corpora[name].demonstration
    standing = "exploratory" if demonstration else "confirmatory"
    left = frozenset(q["question_id"] for q in questions if q["excluded"] is not None)
    documents = {q["question_id"]: [q["doc_id"]] for q in questions}
    found = Study(study, scores, absent, standing, documents, left)
    made = inferred(found)
    folder = root / layout.stage("infer", name)
    for table, schema, rows in (
        ("means", schemas.MEANS, means(found)), ("contrasts", schemas.CONTRASTS, made.contrasts),
        ("replicates", schemas.REPLICATES, made.replicates),
        ("checks", schemas.CHECKS, made.checks), ("mixed", schemas.MIXED, made.mixed),
    ):
        schemas.write(folder / f"{table}.parquet", schema, schemas.table(schema, rows))
    _json(folder, {
        "corpus": name, "demonstration": demonstration, "standing": standing,
        "differences": ["nothing is registered"] if demonstration else [],
        "registered_at": None if demonstration else "0123abcd" * 5, "questions": len(questions),
        "exclusions": {
            "no-answer": len(left), "rewording": sum(q["base"] is not None for q in questions),
        },
        "bm25_gold_first": first, "digests": {"documents": "d1", "questions": "d2"},
    })


def _reheaded(document: Document) -> Document:
    """The same text with headings at other paragraphs, as a model might set them."""
    made = Builder(document.doc_id, document.title)
    for i, paragraph in enumerate(document.paragraphs):
        if i in (0, 3, 5):
            made.heading(1 + (i == 3), f"Topic {i}")
        made.paragraph(document.body[paragraph.span.start : paragraph.span.end])
    return made.build()


def _retrieve(
    study: Params, cell: str, absent: Mapping[str, str], chunks: list[dict[str, Any]],
    questions: list[dict[str, Any]], rng: np.random.Generator,
) -> tuple[dict[str, list[Any]], list[dict[str, Any]]]:
    columns: dict[str, list[Any]] = {
        key: [] for key in ("condition", "question_id", "rank", "chunk_id", "score")
    }
    routing = []
    for name, its in study.conditions.items():
        if its.label in absent or (its.retrieval == "bm25") != (cell == layout.LEXICAL):
            continue
        mine = [c for c in chunks if c["segmentation"] == its.segmentation]
        ids = np.array([c["chunk_id"] for c in mine], dtype=object)
        homes: dict[str, list[int]] = {}
        for i, chunk in enumerate(mine):
            homes.setdefault(chunk["doc_id"], []).append(i)
        for question in questions:
            among = _candidates(len(mine), homes[question["doc_id"]], rng)
            gold = np.zeros(len(mine))
            gold[[
                i for e in question["evidence"] for i in homes[e["doc_id"]]
                if e["start"] < mine[i]["end"] and mine[i]["start"] < e["end"]
            ]] = 1.0
            lean = LEANING.get(name, 1.0) + 0.6 * (cell == "mpnet")
            noise = rng.normal(size=len(among)) + gold[among] * lean
            best = np.argsort(-noise)[: study.retrieval.depth]
            columns["condition"] += [name] * len(best)
            columns["question_id"] += [question["question_id"]] * len(best)
            columns["rank"] += range(1, len(best) + 1)
            columns["chunk_id"] += ids[among[best]].tolist()
            columns["score"] += noise[best].round(6).tolist()
            if its.retrieval == "routed":
                recall = float(gold[among[best[:9]]].any()) if question["evidence"] else None
                routing.append({"condition": name, "question_id": question["question_id"],
                                "kept": ["doc-0#0"], "section_recall": recall})
    return columns, routing


def _candidates(size: int, own: Sequence[int], rng: np.random.Generator) -> Any:
    """Every chunk; of a large corpus 200 and those of the question's document."""
    if size <= 2_000:
        return np.arange(size)
    return np.union1d(rng.choice(size, 200, replace=False), own)


def _row(chunk: Chunk) -> dict[str, Any]:
    return {
        "segmentation": chunk.segmentation, "chunk_id": chunk.chunk_id, "doc_id": chunk.doc_id,
        "start": chunk.start, "end": chunk.end, "tokens": chunk.tokens, "path": list(chunk.path),
        "node": chunk.node,
    }


def _json(folder: Path, report: Mapping[str, Any]) -> None:
    schemas.write_text(folder / "report.json", json.dumps(report))
