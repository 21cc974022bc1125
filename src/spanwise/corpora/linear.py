"""Formats that are no plain text, laid out as one: headings and paragraphs, blank lines between.

What a reader of HTML, reStructuredText, DOCX or PDF says, block after block, becomes the document's
`raw`; every span is written down while that text is made, and none is looked for in it.
"""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass, field, replace

from spanwise.documents.model import SEPARATOR, Builder, Document, Paragraph
from spanwise.errors import CorpusError
from spanwise.spans import Span

_CONTROL = re.compile("[\x00-\x08\x0b-\x1f\x7f\ud800-\udfff\ufffe\uffff]")
_TEXT = "paragraph"
_BLANK = re.compile(r"\n(?:[^\S\n]*\n)+")


@dataclass(slots=True)
class Linear:
    """The blocks of one document, in order.

    title:  the author's, "" where there is none.
    counts: what could not be kept, by the names that reports print.
    """

    title: str = ""
    counts: Counter[str] = field(default_factory=Counter)
    _blocks: list[tuple[str, str, int]] = field(default_factory=list)

    def heading(self, level: int, title: str) -> None:
        """Add a heading; one without words is none."""
        if words := closed(title):
            self._blocks.append(("heading", words, level))

    def paragraph(self, text: str, kind: str = "paragraph") -> None:
        """Add a paragraph, its lines kept; one without words is none.

        Blank lines inside it close up to one line end: a blank line parts blocks.
        """
        text = _BLANK.sub("\n", _CONTROL.sub(" ", text)).strip("\n")
        if text.strip():
            self._blocks.append((kind, text.rstrip(), 0))

    def sole_heading_to_title(self, level: int = 1) -> None:
        """The sole heading of a level that stands above all others is the title, and no heading."""
        levels = [rank for kind, _, rank in self._blocks if kind == "heading"]
        if levels.count(level) == 1 and min(levels) == level:
            place = next(i for i, block in enumerate(self._blocks) if block[2] == level)
            self.title = self._blocks[place][1]
            self._blocks[place] = ("title", self.title, 0)

    def titles_to_text(self) -> None:
        """What was said to be the title is a paragraph like others."""
        self._blocks = [(_TEXT if kind == "title" else kind, text, level)
                        for kind, text, level in self._blocks]

    def build(
        self, doc_id: str, *, stem: str, source: str = "", version: str = "1",
        labels: tuple[str, ...] = (),
    ) -> Document | None:
        """The document, whose raw text is all blocks; None where no paragraph is left."""
        raw = SEPARATOR.join(text for _, text, _ in self._blocks)
        builder = Builder(doc_id, closed(self.title) or stem, raw)
        at = 0
        for kind, text, level in self._blocks:
            if kind == "heading":
                builder.heading(level, text)
            elif kind != "title":
                builder.paragraph(text, kind, Span(at, at + len(text)))
            at += len(text) + len(SEPARATOR)
        if builder.empty:
            return None
        return builder.build(source=source, version=version, labels=labels)


def raw_blocks(document: Document) -> tuple[Paragraph, ...]:
    """Every block of a laid-out text, headings (kind `heading`) among them, in order.

    What stands in raw between two paragraphs is headings, each a block of its own.
    """
    text = document.raw
    if text is None:
        raise CorpusError(f"{document.doc_id}: it has no raw text to find blocks in")
    found: list[Paragraph] = []
    at = 0
    for paragraph in document.paragraphs:
        if paragraph.raw is None:
            raise CorpusError(f"{document.doc_id}: a paragraph without a place in its raw text")
        found += _headings(text, at, paragraph.raw.start)
        found.append(Paragraph(paragraph.raw, paragraph.kind, paragraph.raw))
        at = paragraph.raw.end
    return (*found, *_headings(text, at, len(text)))


def raw_view(document: Document) -> Document:
    """The same document as a text that keeps everything: its body is its raw text.

    A heading of the document points at its own block; the title is a block and no heading.
    """
    blocks = raw_blocks(document)
    text = document.raw or ""
    places = [i for i, block in enumerate(blocks) if block.kind == "heading"]
    if len(places) > len(document.headings):
        places.remove(next(
            i for i in places
            if text[blocks[i].span.start : blocks[i].span.end] == document.title
        ))
    return replace(
        document, body=text, paragraphs=blocks,
        headings=tuple(
            replace(heading, paragraph=place)
            for heading, place in zip(document.headings, places, strict=True)
        ),
    )


def _headings(text: str, start: int, end: int) -> list[Paragraph]:
    lines = (Span(m.start(), m.end()) for m in re.compile(r"[^\n]+").finditer(text, start, end))
    return [Paragraph(span, "heading", span) for span in lines]


def closed(text: str) -> str:
    """Text on one line, white space closed up, without control characters."""
    return " ".join(_CONTROL.sub(" ", text).split())
