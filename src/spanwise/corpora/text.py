"""Plain text to documents: paragraphs between blank lines, no headings."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import PurePosixPath
from urllib.parse import unquote

from spanwise.documents.model import Builder, Document, Paragraph
from spanwise.errors import CorpusError
from spanwise.spans import Span


def read_document(
    doc_id: str,
    text: str,
    *,
    stem: str | None = None,
    source: str = "",
    version: str = "1",
    labels: tuple[str, ...] = (),
    where: str | None = None,
) -> Document:
    """Read one plain text.

    text:    decoded text (LF line endings); it becomes `raw` unchanged.
    stem:    the document's title; by default the last part of doc_id.
    returns: the document: each run of lines that are not blank is a paragraph and an exact slice
             of raw, without its last line ending.
    raises:  CorpusError if no line has text.
    """
    builder = Builder(doc_id, stem or unquote(PurePosixPath(doc_id).name) or doc_id, text)
    for span in paragraph_spans(text):
        builder.paragraph(text[span.start : span.end], "paragraph", span)
    if builder.empty:
        raise CorpusError(
            f"{where or doc_id}: no text, expected at least one paragraph; "
            "write its text or take the document out of the corpus"
        )
    return builder.build(source=source, version=version, labels=labels)


def raw_blocks(text: str, _: str = "") -> tuple[Paragraph, ...]:
    """Every paragraph of a plain text as a slice of it."""
    return tuple(Paragraph(span, "paragraph", span) for span in paragraph_spans(text))


def paragraph_spans(text: str) -> Iterator[Span]:
    """Runs of whole lines that are not blank, without the last line ending of each.

    >>> [(s.start, s.end) for s in paragraph_spans("a\\nb\\n \\n\\nc\\n")]
    [(0, 3), (7, 8)]
    """
    begun: int | None = None
    end = 0
    for line in re.finditer(r"[^\n]+", text):
        blank = not line.group().strip()
        touches = begun is not None and line.start() == end + 1
        if begun is not None and (blank or not touches):
            yield Span(begun, end)
            begun = None
        if not blank:
            begun = line.start() if begun is None else begun
            end = line.end()
    if begun is not None:
        yield Span(begun, end)
