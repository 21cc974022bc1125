"""A question of any corpus that was asked, and the texts of now that its spans index."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from urllib.parse import unquote

from spanwise import layout, schemas
from spanwise.documents.records import load_documents, load_questions
from spanwise.errors import InputError
from spanwise.params import Params
from spanwise.spans import Span, merge
from spanwise.units import trace as units

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
        """A slice of a body, or why it is not shown.

        raises: InputError if parse has left no such document.
        """
        if doc_id in self.refused:
            return f"(refused: {self.refused[doc_id]})"
        if doc_id not in self.bodies:
            raise InputError(
                f"{self.corpus}: parse has left other documents since, and no {doc_id}; "
                "run `dvc repro`"
            )
        return self.bodies[doc_id][start:end]


def find(params: Params, question_id: str) -> Found:
    """Look a question up in every corpus that has been asked and chunked.

    raises: InputError with the nearest ids if none of them has it, and with the corpora that could
            not be looked at: those without artifacts, and those whose texts or questions are others
            than its record is of.
    """
    ids: list[str] = []
    unread: dict[str, str] = {}
    for corpus in params.corpora:
        try:
            chunked = layout.read_report(layout.stage("chunk", corpus) / "report.json")
            unusable = chunked["unusable_induced_trees"]
            questions = load_questions(layout.stage("ask", corpus), unusable).to_pylist()
            _held(corpus)
        except InputError as error:
            unread[corpus] = str(error)
            continue
        except KeyError as error:
            unread[corpus] = f"{corpus}: its artifacts have no {error}; run `dvc repro`"
            continue
        for question in questions:
            if question["question_id"] == question_id:
                texts = schemas.read(layout.parse(corpus) / "documents.parquet", schemas.DOCUMENTS)
                bodies = dict(zip(texts["doc_id"].to_pylist(), texts["body"].to_pylist(),
                                  strict=True))
                return Found(corpus, question, bodies, _refused(params, corpus, bodies))
            ids.append(question["question_id"])
    from difflib import get_close_matches

    near = get_close_matches(question_id, ids, n=3, cutoff=0.3)
    hint = f"; did you mean {', '.join(near)}?" if near else ""
    if len(unread) == len(params.corpora):
        raise InputError(next(iter(unread.values())))
    left = "".join(f"; {corpus} was not looked at: {why}" for corpus, why in unread.items())
    raise InputError(f"no corpus of params.yaml has a question {question_id!r}{hint}{left}")


def _held(corpus: str) -> None:
    """Hold the documents and questions that there are against those that the figures are of.

    raises: InputError if they are others, also where nothing was inferred yet.
    """
    record = layout.stage("infer", corpus) / "report.json"
    parsed = layout.read_report(layout.stage("parse", corpus) / "report.json")
    asked = layout.read_report(layout.stage("ask", corpus) / "report.json")["digests"]
    documents = parsed["study"]["digests"]["documents"]
    was = layout.read_report(record)["digests"] if record.exists() else asked
    # An older `ask` does not say which documents it asked about.
    if any(its.get("documents", documents) != documents for its in (was, asked)):
        raise InputError(f"{corpus}: parse has left other documents since; run `dvc repro`")
    if was["questions"] != asked["questions"]:
        raise InputError(f"{corpus}: ask has left other questions since; run `dvc repro`")


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


def readable(doc_id: str) -> str:
    """An id as a person reads it: the files of a folder have theirs percent-encoded.

    What would not be printed, such as a terminal's escapes, and what is no UTF-8 stays as it is.

    >>> readable("B%C3%BCro%20und%20Team/plan"), readable("a%1B%5B31m"), readable("100%")
    ('Büro und Team/plan', 'a%1B%5B31m', '100%')
    """
    try:
        read = unquote(doc_id, errors="strict")
    except UnicodeDecodeError:
        return doc_id
    return read if read.isprintable() else doc_id


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
