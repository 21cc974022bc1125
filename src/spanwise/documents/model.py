"""Documents as every later room sees them, and the builder that records spans while it emits text.

No offset is ever recovered by searching: a reader tells the builder one paragraph or heading after
the other, and the builder writes down where each went.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from urllib.parse import quote

from spanwise.errors import CorpusError
from spanwise.spans import Evidence, Span

SEPARATOR = "\n\n"
"""What joins two paragraphs of `body`."""


@dataclass(frozen=True, slots=True)
class Paragraph:
    """One paragraph of `body` (a fence, a table or a list is one), and where it stands in `raw`.

    `raw` is None where the document has no raw text. Otherwise the paragraph is an exact copy of
    that slice, so that offsets differ by a constant inside it.
    """

    span: Span
    kind: str  # paragraph, list, fence, table, quote, html, definition
    raw: Span | None = None


@dataclass(frozen=True, slots=True)
class Heading:
    """An author's heading: its level as written (1 = most important below the title) and the index
    of the first paragraph that comes after it (the number of paragraphs if none does)."""

    level: int
    title: str
    paragraph: int


@dataclass(frozen=True, slots=True)
class Document:
    """One document in both representations.

    body:       its paragraphs, without headings, joined by a blank line.
    raw:        the file's own text (UTF-8, LF), or None for formats that are no text file.
    paragraphs: in order; body[p.span.start:p.span.end] is the paragraph's text.
    headings:   in order of the document.
    labels:     what a reader knows of it beside (a topic bucket, `featured`), sorted.
    """

    doc_id: str
    title: str
    body: str
    paragraphs: tuple[Paragraph, ...]
    headings: tuple[Heading, ...] = ()
    raw: str | None = None
    source: str = ""
    version: str = "1"
    labels: tuple[str, ...] = ()

    def to_body(self, span: Span) -> tuple[Span | None, int]:
        """Map a span of `raw` through the paragraph table.

        returns: the span of `body` from the first to the last character that survives (None if
                 none does), and the number of characters that are in no paragraph and drop out
                 although they are not white space: headings, rules, front matter.
        """
        if self.raw is None:
            raise CorpusError(f"{self.doc_id}: it has no raw text to map from")
        first = last = None
        kept = 0
        for paragraph in self.paragraphs:
            raw = paragraph.raw
            if raw is None or not raw.overlap(span):
                continue
            start, end = max(raw.start, span.start), min(raw.end, span.end)
            shift = paragraph.span.start - raw.start
            first = start + shift if first is None else first
            last = end + shift
            kept += len("".join(self.raw[start:end].split()))
        dropped = len("".join(self.raw[span.start : span.end].split())) - kept
        if first is None or last is None:
            return None, dropped
        return Span(first, last), dropped


@dataclass(frozen=True, slots=True)
class Question:
    """An information need with its gold spans in the representation it was given in.

    evidence: gold spans as given, not yet united.
    bundles:  alternative sufficient sets of indices into `evidence`; empty without evidence.
    base:     the question this one rewords, or None.
    excluded: why it leaves the ablation although it is listed (e.g. `no-answer`), or None.
    """

    question_id: str
    doc_id: str
    text: str
    type: str
    evidence: tuple[Evidence, ...] = ()
    bundles: tuple[tuple[int, ...], ...] = ()
    base: str | None = None
    excluded: str | None = None


@dataclass(frozen=True, slots=True)
class Corpus:
    """What a reader returns.

    documents: sorted by doc_id, ids unique.
    questions: sorted by question_id, ids unique; each names a document of `documents`.
    evidence:  the representation that evidence indexes, `raw` or `body`.
    counts:    every exclusion and irregularity by name, e.g. the funnel of a harvest; printed in
               this order and kept in the parse stage's report.
    """

    documents: tuple[Document, ...]
    questions: tuple[Question, ...] = ()
    evidence: str = "raw"
    counts: Mapping[str, int] = field(default_factory=dict)


class Builder:
    """Emits a document's body and records where each paragraph went.

    >>> b = Builder("d", "A title")
    >>> b.heading(1, "First")
    >>> b.paragraph("Text.")
    >>> b.paragraph("More.")
    >>> d = b.build()
    >>> d.body, d.paragraphs[1].span
    ('Text.\\n\\nMore.', Span(start=7, end=12))
    """

    def __init__(self, doc_id: str, title: str, raw: str | None = None) -> None:
        if not doc_id or re.search(r"\s", doc_id):
            raise CorpusError(f"document id {doc_id!r}: ids are not empty and hold no white space")
        self.doc_id, self.title, self.raw = doc_id, title, raw
        self._parts: list[str] = []
        self._length = 0
        self._paragraphs: list[Paragraph] = []
        self._headings: list[Heading] = []

    def heading(self, level: int, title: str) -> None:
        """Record a heading before the next paragraph; white space in its title closes up."""
        self._headings.append(Heading(level, " ".join(title.split()), len(self._paragraphs)))

    def paragraph(self, text: str, kind: str = "paragraph", raw: Span | None = None) -> Span:
        """Emit one paragraph and return its span of `body`.

        raises: CorpusError if the text is blank or is not the slice of raw that it claims to be.
        """
        if not text.strip():
            raise CorpusError(f"{self.doc_id}: a blank paragraph was emitted")
        if raw is not None and (self.raw is None or self.raw[raw.start : raw.end] != text):
            raise CorpusError(
                f"{self.doc_id}: paragraph at raw {raw} is not that slice of the text"
            )
        if self._parts:
            self._parts.append(SEPARATOR)
            self._length += len(SEPARATOR)
        span = Span(self._length, self._length + len(text))
        self._parts.append(text)
        self._length = span.end
        self._paragraphs.append(Paragraph(span, kind, raw))
        return span

    @property
    def empty(self) -> bool:
        """True while no paragraph has been emitted."""
        return not self._paragraphs

    def build(
        self, *, source: str = "", version: str = "1", labels: tuple[str, ...] = ()
    ) -> Document:
        """The finished document."""
        return Document(
            self.doc_id, self.title, "".join(self._parts), tuple(self._paragraphs),
            tuple(self._headings), self.raw, source, version, tuple(sorted(labels)),
        )


def document_id(name: str) -> str:
    """A file name or title as an id without white space, percent-encoded where it must be.

    >>> document_id("notes/Apollo 8.md")
    'notes/Apollo%208.md'
    """
    return quote(name, safe="/-_.~()!,'+=@:&;")


def sha256(text: str) -> str:
    """SHA-256 of a text's UTF-8 bytes, in hexadecimal."""
    return hashlib.sha256(text.encode("utf-8")).hexdigest()
