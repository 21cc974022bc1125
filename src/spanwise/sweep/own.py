"""A corpus's own documents for sweeps, and everything that a sweep refuses to touch."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc

from spanwise import layout, schemas
from spanwise.documents.model import Document, sha256
from spanwise.documents.records import digest, load_documents, load_questions
from spanwise.errors import CorpusError, ParamsError, QuestionError
from spanwise.params import Params
from spanwise.structure.records import load_trees
from spanwise.writing.asking import Parsed, authored

SPLIT = "sweep"


@dataclass(frozen=True, slots=True)
class Own:
    """What a sweep may see of one corpus.

    questions: rows of QUESTIONS that are judged: answerable ones that are no rewordings.
    digests:   of the documents and of these questions.
    """

    corpus: str
    documents: Sequence[Document]
    questions: pa.Table
    digests: Mapping[str, str]


def embedder_of(settings: Params, named: str | None) -> str:
    """Who ranks: what was named, else what params.yaml names, else the first weak embedder.

    raises: ParamsError for the primary cell's embedder, under any name, and for an unknown one.
    """
    primary = settings.embedder(settings.primary.embedder)
    weak = [
        name for name, its in settings.embedders.items()
        if name != settings.primary.embedder and its.model != primary.model
    ]
    name = named or settings.sweep.embedder or next(iter(weak), layout.LEXICAL)
    if name == layout.LEXICAL:
        return name
    settings.embedder(name)
    if name not in weak:
        raise ParamsError(
            f"embedder {name!r} runs {primary.model}, the primary cell's model: a sweep never "
            "touches that cell, which would be looked at before it is tested; take "
            f"{', '.join([*weak, layout.LEXICAL])}"
        )
    return name


def load(settings: Params, name: str) -> Own:
    """The documents of the split `sweep` and the questions about them.

    raises: CorpusError if there is no document, or one that is the study's; QuestionError if there
            is no question to judge by; InputError if `parse` has not run.
    """
    corpus = settings.corpus(name)
    again = f"dvc repro parse@{name}"
    layout.read_report(layout.stage("parse", name) / "report.json", again)
    folder = layout.parse(name, SPLIT)
    documents = load_documents(folder)
    if not documents and corpus.sweep.share:
        raise CorpusError(
            f"corpora.{name}.sweep draws documents, and parse has drawn none yet; run `{again}`"
        )
    if not documents:
        raise CorpusError(
            f"corpus {name!r} has no documents of its own for a sweep, and those of the study are "
            "not to be looked at; let a seed draw some: `sweep: {share: 0.2}` below "
            f"corpora.{name} in params.yaml (or `split: sweep` in its manifest), then `{again}`"
        )
    questions = _questions(settings, name, documents, folder)
    refuse(documents, questions, layout.parse(name))
    keep = pc.and_(questions["excluded"].is_null(), questions["base"].is_null())
    judged = questions.filter(keep)
    if not judged.num_rows:
        raise QuestionError(
            f"corpus {name!r}: no answerable question is about the {len(documents)} documents for "
            f"sweeps ({questions.num_rows} are listed); write some about "
            f"{', '.join(d.doc_id for d in documents[:3])}"
            + (f" into a question file: `spanwise ask {name} --worksheet FILE.yaml` shows the form"
               if corpus.questions else "")
        )
    return Own(name, documents, judged, {
        "documents": identity(documents), "questions": digest(judged),
    })


def refuse(documents: Sequence[Document], questions: pa.Table, study: Path) -> None:
    """Refuse every document of the study, under its own name or another.

    study:  the folder of the study's documents.
    raises: CorpusError that names the first one.
    """
    table = schemas.read(study / "documents.parquet", schemas.DOCUMENTS)
    ids = set(table["doc_id"].to_pylist())
    texts = dict(zip(table["body_sha256"].to_pylist(), table["doc_id"].to_pylist(), strict=True))
    mend = "a sweep has its own; correct the manifest (or sweep.share) and run `dvc repro parse`"
    for document in documents:
        if document.doc_id in ids:
            raise CorpusError(f"{document.doc_id!r} is a document of the study; {mend}")
        if twin := texts.get(sha256(document.body)):
            raise CorpusError(
                f"{document.doc_id!r} reads like {twin!r}, a document of the study; {mend}"
            )
    for row in questions.select(["question_id", "doc_id", "evidence"]).to_pylist():
        needs = {row["doc_id"], *(e["doc_id"] for e in row["evidence"])}
        if found := sorted(needs - {d.doc_id for d in documents}):
            raise CorpusError(
                f"question {row['question_id']!r} needs {found[0]!r}, no document for sweeps; "
                f"{mend}"
            )


def identity(documents: Sequence[Document]) -> str:
    """SHA-256 of all of documents that chunks depend on."""
    parts = [
        [d.doc_id, d.title, sha256(d.body),
         [[p.span.start, p.span.end, p.kind] for p in d.paragraphs]]
        for d in documents
    ]
    return hashlib.sha256(json.dumps(parts, ensure_ascii=False).encode("utf-8")).hexdigest()


def _questions(
    settings: Params, name: str, documents: Sequence[Document], folder: Path
) -> pa.Table:
    """Those that the corpus brings, else those of its question file about these documents."""
    given = load_questions(folder)
    source = settings.corpus(name).questions
    if given.num_rows or source in (None, "written"):
        return given
    found = Parsed(name, given, documents, load_trees(folder / "sections.parquet"))
    assert source is not None
    return authored(found, Path(source), settings.writing).questions
