"""Span-labelled sets: text files, and one JSON of queries with the spans that answer them.

source: the form of LegalBench-RAG (Pipitone and Alami, 2024): a list, or an object with `tests`, of
        `{"query", "snippets": [{"file_path", "span": [start, end], "answer"?}]}`. Spans are code
        points of the file's text, end excluded; all snippets of a query together are its evidence.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path, PurePosixPath
from typing import Any

from spanwise.corpora.folder import read_view
from spanwise.corpora.view import open_view
from spanwise.documents.model import Corpus, Document, Question, document_id
from spanwise.errors import CorpusError, ParamsError, QuestionError
from spanwise.questions.faults import raise_all
from spanwise.spans import Evidence
from spanwise.text.decoding import read_text

SUFFIXES = (".txt", ".text", ".md", ".markdown")
CORPUS = "corpus"
"""A folder that paths of snippets may be relative to."""


def read(path: Path, *, options: Mapping[str, Any], split: str = "study") -> Corpus:
    """Read the set.

    path:    the folder, with exactly one .json file at its top; paths of snippets are relative to
             the folder, or to `corpus` in it.
    options: none are known.
    returns: the corpus; evidence on raw. Questions are `<name of the JSON>-<number>`, from 1; each
             belongs to the document of its first snippet.
    raises:  CorpusError for no or several JSON files, QuestionError that lists every query that is
             no such object, or whose span leaves its file or is not the `answer` beside it.
    """
    if options:
        raise ParamsError(f"options {sorted(options)}: the snippets reader knows none")
    if split != "study":
        raise CorpusError(f"{path}: a span-labelled set has no {split} split, only study")
    found = sorted(path.glob("*.json"))
    if len(found) != 1:
        raise CorpusError(
            f"{path}: expected one .json of queries at its top, found {len(found)}; make each its "
            "own corpus"
        )
    documents, left_out, counts = read_view(open_view(path, SUFFIXES, split))
    if not documents:
        raise CorpusError(f"{path}: no {'/'.join(SUFFIXES)} file with text")
    by_id = {document.doc_id: document for document in documents}
    questions = _questions(found[0], by_id, left_out)
    return Corpus(
        tuple(documents), tuple(sorted(questions, key=lambda question: question.question_id)),
        "raw", {**counts, "questions": len(questions)},
    )


def is_set(path: Path) -> bool:
    """Whether a JSON file has the form, judged by its first query."""
    try:
        tests = _tests(path)
    except (CorpusError, QuestionError):
        return False
    return bool(tests) and isinstance(tests[0], dict) and {"query", "snippets"} <= set(tests[0])


def _tests(path: Path) -> list[Any]:
    try:
        found = json.loads(read_text(path).text)
    except (ValueError, RecursionError) as error:
        raise QuestionError(f"{path}: no JSON ({error}); mend it") from None
    tests = found.get("tests") if isinstance(found, dict) else found
    if not isinstance(tests, list):
        raise QuestionError(f"{path}: expected a list of queries, or an object with `tests`")
    return tests


def _questions(
    path: Path, documents: Mapping[str, Document], left_out: Mapping[str, str]
) -> list[Question]:
    tests, stem = _tests(path), document_id(path.stem)
    width = max(4, len(str(len(tests))))
    questions: list[Question] = []
    errors: list[QuestionError] = []
    for number, test in enumerate(tests, 1):
        where = f"{path.name}: query {number}"
        try:
            text, evidence = _query(test, where, documents, left_out)
        except QuestionError as error:
            errors.append(error)
            continue
        questions.append(Question(
            f"{stem}-{number:0{width}d}", evidence[0].doc_id, text, "untyped", evidence,
            (tuple(range(len(evidence))),),
        ))
    raise_all(errors, path.name)
    if not questions:
        raise QuestionError(f"{path}: no query in it")
    return questions


def _query(
    test: Any, where: str, documents: Mapping[str, Document], left_out: Mapping[str, str]
) -> tuple[str, tuple[Evidence, ...]]:
    query = test.get("query") if isinstance(test, dict) else None
    if not isinstance(query, str) or not query.strip():
        raise QuestionError(f"{where}: `query` is {query!r}, expected text")
    snippets = test.get("snippets")
    if not isinstance(snippets, list) or not snippets:
        raise QuestionError(f"{where}: no `snippets`, expected at least one")
    evidence = tuple(
        _snippet(one, f"{where}, snippet {number}", documents, left_out)
        for number, one in enumerate(snippets)
    )
    return " ".join(query.split()), tuple(dict.fromkeys(evidence))


def _snippet(
    one: Any, where: str, documents: Mapping[str, Document], left_out: Mapping[str, str]
) -> Evidence:
    name = one.get("file_path") if isinstance(one, dict) else None
    span = one.get("span") if isinstance(one, dict) else None
    if not isinstance(name, str) or not name:
        raise QuestionError(f"{where}: `file_path` is {name!r}, expected a file of the folder")
    bare = document_id(str(PurePosixPath(name).with_suffix("")))
    doc_id = next((d for d in (bare, f"{CORPUS}/{bare}") if d in documents), None)
    if doc_id is None:
        why = left_out.get(bare) or left_out.get(f"{CORPUS}/{bare}") or "no such file of text"
        raise QuestionError(f"{where}: {name!r}: {why}; mend the path")
    text = documents[doc_id].raw or ""
    if not (isinstance(span, list) and len(span) == 2 and all(type(n) is int for n in span)
            and 0 <= span[0] < span[1] <= len(text)):
        raise QuestionError(
            f"{where}: span {span!r}, expected [start, end] with 0 <= start < end <= {len(text)}, "
            f"the code points of {name}"
        )
    answer, stands = one.get("answer"), text[span[0] : span[1]]
    if isinstance(answer, str) and answer.replace("\r\n", "\n") != stands:
        raise QuestionError(
            f"{where}: `answer` {json.dumps(answer[:200], ensure_ascii=False)} does not stand at "
            f"{span} of {name}; there stands\n    answer: "
            f"{json.dumps(stands[:200], ensure_ascii=False)}\n  mend the span or the answer"
        )
    return Evidence(doc_id, span[0], span[1])
