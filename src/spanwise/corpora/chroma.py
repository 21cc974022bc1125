"""Chroma's evaluation set: `corpora/*.md` and `questions_df.csv`, gold as spans of raw.

The files end in .md and are no Markdown unless `#` headings say so. WikiText's form, one paragraph
a line with ` = Title = ` and ` = = Section = = ` between them, is read as such; everything else is
plain text. Whatever the form, raw is the file's text and evidence indexes raw.
"""

from __future__ import annotations

import csv
import io
import json
import re
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from spanwise.corpora import markdown
from spanwise.corpora import text as plain
from spanwise.documents.model import Builder, Corpus, Document, Paragraph, Question, document_id
from spanwise.errors import CorpusError, MarkupError, ParamsError, QuestionError
from spanwise.spans import Evidence, Span
from spanwise.text.decoding import mended, read_text

QUESTIONS = "questions_df.csv"
_COLUMNS = ("question", "references", "corpus_id")
_ATX = re.compile(r"^ {0,3}#{1,6}[ \t]+\S", re.MULTILINE)
_WIKITEXT = re.compile(r"^ ((?:= )+)([^\s=].*?) \1$", re.MULTILINE)
_DIFFERS = "evidence differs from its text"


def read(path: Path, *, options: Mapping[str, Any], split: str = "study") -> Corpus:
    """Read the set.

    path:    the folder.
    options: none are known.
    split:   study; the set has no other.
    returns: the corpus. Question ids are `<corpus_id>-<row>`, rows counted from 1 over the whole
             file. Where a span is out of range or differs from the content written beside it, the
             question keeps no evidence, is excluded with the reason, and counts.
    raises:  CorpusError if files or columns are missing; QuestionError for a row whose document or
             references cannot be read; DecodingError.
    """
    if options:
        raise ParamsError(f"options {sorted(options)}: the chroma reader knows none")
    if split != "study":
        raise CorpusError(f"{path}: a chroma set has no {split} split, only study")
    names = sorted((path / "corpora").glob("*.md"))
    if not names:
        raise CorpusError(f"{path}: expected corpora/*.md and {QUESTIONS}, found no such document")
    counts: Counter[str] = Counter()
    documents, decoded = [], []
    for name in names:
        found = read_text(name)
        decoded.append(found)
        document, form = _document(document_id(name.stem), found.text, name.stem, str(name))
        documents.append(document)
        counts[f"documents read as {form}"] += 1
    documents.sort(key=lambda document: document.doc_id)
    questions = _questions(path / QUESTIONS, documents, counts)
    return Corpus(
        tuple(documents), tuple(questions), "raw",
        {"documents": len(documents), **counts, **mended(decoded)},
    )


def _document(doc_id: str, text: str, stem: str, where: str) -> tuple[Document, str]:
    if _ATX.search(text):
        try:
            return markdown.read_document(doc_id, text, stem=stem, where=where), "Markdown"
        except MarkupError:
            return plain.read_document(doc_id, text, stem=stem), "plain text (broken Markdown)"
    if _WIKITEXT.search(text):
        return _wikitext(doc_id, text, stem), "WikiText"
    return plain.read_document(doc_id, text, stem=stem), "plain text"


def raw_blocks(text: str, where: str) -> tuple[Paragraph, ...]:
    """Every block of a file, headings among them where its form has any, as slices of it."""
    if _ATX.search(text):
        try:
            return markdown.raw_blocks(text, where)
        except MarkupError:
            return plain.raw_blocks(text, where)
    if not _WIKITEXT.search(text):
        return plain.raw_blocks(text, where)
    return tuple(
        Paragraph(span, "heading" if _WIKITEXT.fullmatch(line.group()) else "paragraph", span)
        for line in re.finditer(r"[^\n]+", text)
        if line.group().strip() and (span := Span(line.start(), line.end()))
    )


def _wikitext(doc_id: str, text: str, stem: str) -> Document:
    """One paragraph a line; a heading's level is the number of its equals signs on one side."""
    builder = Builder(doc_id, stem, text)
    for line in re.finditer(r"[^\n]+", text):
        heading = _WIKITEXT.fullmatch(line.group())
        if heading:
            builder.heading(heading[1].count("="), heading[2])
        elif line.group().strip():
            builder.paragraph(line.group(), "paragraph", Span(line.start(), line.end()))
    if builder.empty:  # headings alone would lose every span: the lines are text after all
        return plain.read_document(doc_id, text, stem=stem)
    return builder.build()


def _questions(
    path: Path, documents: list[Document], counts: Counter[str]
) -> list[Question]:
    where = path.name
    if not path.is_file():
        raise CorpusError(f"{path}: not found; expected the questions of a chroma set")
    rows = csv.DictReader(io.StringIO(read_text(path).text, newline=""), strict=True)
    raw = {document.doc_id: document.raw or "" for document in documents}
    questions: list[Question] = []
    counts.update({"questions": 0, "spans": 0, "spans equal to their text": 0})
    limit = csv.field_size_limit(2**31 - 1)  # a row's references may be long
    try:
        missing = set(_COLUMNS) - set(rows.fieldnames or ())
        if missing:
            raise CorpusError(
                f"{path}: no columns {sorted(missing)}, expected {', '.join(_COLUMNS)}"
            )
        for number, row in enumerate(rows, 1):
            place = f"{where}: row {number} (line {rows.line_num})"
            questions.append(_question(row, number, place, raw, counts))
    except csv.Error as error:
        raise CorpusError(f"{path}: line {rows.line_num}: {error}; expected plain CSV") from None
    finally:
        csv.field_size_limit(limit)
    return sorted(questions, key=lambda question: question.question_id)


def _question(
    row: Mapping[str, str | None], number: int, place: str, raw: Mapping[str, str],
    counts: Counter[str],
) -> Question:
    doc_id, text = document_id(row["corpus_id"] or ""), " ".join((row["question"] or "").split())
    if doc_id not in raw:
        raise QuestionError(f"{place}: corpus_id {doc_id!r} is no document of corpora/")
    if not text:
        raise QuestionError(f"{place}: the question is empty")
    counts["questions"] += 1
    evidence: list[Evidence] = []
    differing = 0
    for start, end, content in _references(row["references"] or "", place):
        counts["spans"] += 1
        if 0 <= start < end <= len(raw[doc_id]) and raw[doc_id][start:end] == content:
            counts["spans equal to their text"] += 1
            evidence.append(Evidence(doc_id, start, end))
        else:
            differing += 1
    question_id = f"{doc_id}-{number:04d}"
    if differing:
        counts["spans that differ from their text"] += differing
        counts[f"questions excluded: {_DIFFERS}"] += 1
        return Question(question_id, doc_id, text, "untyped", excluded=_DIFFERS)
    return Question(
        question_id, doc_id, text, "untyped", tuple(evidence), (tuple(range(len(evidence))),)
    )


def _references(written: str, place: str) -> list[tuple[int, int, str]]:
    try:
        found = json.loads(written)
        spans = [(one["start_index"], one["end_index"], one["content"]) for one in found]
    except (ValueError, TypeError, KeyError) as error:
        raise QuestionError(
            f"{place}: references cannot be read ({error!r}), expected a JSON list of objects with "
            "content, start_index, end_index"
        ) from None
    for start, end, content in spans:
        if type(start) is not int or type(end) is not int or not isinstance(content, str):
            raise QuestionError(
                f"{place}: reference {start!r}-{end!r}, expected whole numbers and a text"
            )
    if not spans:
        raise QuestionError(f"{place}: no references, expected at least one")
    return spans
