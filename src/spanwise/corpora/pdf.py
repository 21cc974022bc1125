"""PDF to documents, by pypdfium2: paragraphs from the layout, headings from the outline alone.

A PDF says where letters stand, not what is a paragraph. Lines belong together until a gap that is
wider than the page's usual one, or an indented line after a full stop; a new column or page goes on
with the paragraph unless a sentence ended. Headings are those of the outline (bookmarks); where a
line of the page is the bookmark's title, it is the heading, and no paragraph.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from statistics import median
from typing import Any

from spanwise.corpora.linear import Linear, closed
from spanwise.documents.model import Document
from spanwise.errors import CorpusError

_HYPHEN = re.compile(r"(?<=\w)[\x02\ufffe\u00ad]\s*")
_ENDS = re.compile(r"[.!?:;…。！？][\"'”’)\]]*$")
_NUMBER = re.compile(r"^(?:chapter|section|part)?\s*[\dIVXivx]*(?:\.\d+)*[.):]?\s+", re.IGNORECASE)
_LINES = 3
"""Lines that one heading may take."""
_WIDER = 0.35
"""Share of a line's height by which a gap exceeds the usual one between paragraphs."""
_INDENT = 0.8
"""Share of a line's height by which a first line is indented."""


@dataclass(frozen=True, slots=True)
class _Line:
    """One line of a page; left, bottom and top in points from the page's lower left corner."""

    text: str
    left: float
    bottom: float
    top: float

    @property
    def height(self) -> float:
        return max(self.top - self.bottom, 1.0)


@dataclass(frozen=True, slots=True)
class _Mark:
    """A bookmark: its level from 1, its title, and how high on its page it points, if it says."""

    level: int
    title: str
    top: float | None


def read_if_any(
    doc_id: str, data: bytes, *, stem: str, source: str = "", version: str = "1",
    where: str | None = None,
) -> tuple[Document | None, Counter[str]]:
    """Read one PDF file.

    returns: the document and what was left out, by name. Its title is the file's title property,
             else the stem. A word that a line end hyphenates is whole again.
    raises:  CorpusError for what is no PDF, needs a password, or has pages and no text on any: a
             scan, whose text must be recognised first.
    """
    where = where or doc_id
    linear = Linear()
    pdf = _opened(data, where)
    try:
        marks = _marks(pdf)
        linear.title = closed(pdf.get_metadata_dict().get("Title", ""))
        layout = _Layout(linear)
        for index in range(len(pdf)):
            lines = _lines(pdf[index])
            if not lines:
                linear.counts["PDF pages without text"] += 1
            layout.page(lines, marks.get(index, ()))
        layout.end()
        pages = len(pdf)
    finally:
        pdf.close()
    document = linear.build(doc_id, stem=stem, source=source, version=version, labels=("pdf",))
    if document is None:
        raise CorpusError(
            f"{where}: no text on its pages ({pages}), so it is a scan; have its text "
            "recognised (e.g. ocrmypdf IN.pdf OUT.pdf), or take it out of the corpus"
        )
    return document, linear.counts


def _opened(data: bytes, where: str) -> Any:
    import pypdfium2

    try:
        return pypdfium2.PdfDocument(data)
    except pypdfium2.PdfiumError as error:
        said = str(error)
        if "assword" in said:
            raise CorpusError(
                f"{where}: the PDF is encrypted and wants a password; save a copy without one "
                "(e.g. qpdf --decrypt --password=... IN.pdf OUT.pdf)"
            ) from None
        raise CorpusError(
            f"{where}: no PDF that can be opened ({closed(said)}); save it anew, or take it out of "
            "the corpus"
        ) from None


def _marks(pdf: Any) -> dict[int, list[_Mark]]:
    """The outline by page, in its order; bookmarks that lead nowhere in the file are left out."""
    found: dict[int, list[_Mark]] = {}
    for mark in pdf.get_toc():
        place = mark.get_dest()
        page = None if place is None else place.get_index()
        title = closed(mark.get_title())
        if page is None or page < 0 or not title:
            continue
        _, values = place.get_view()
        top = values[1] if len(values) >= 2 else values[0] if len(values) == 1 else None
        found.setdefault(page, []).append(_Mark(mark.level + 1, title, top or None))
    return found


def _lines(page: Any) -> list[_Line]:
    """The lines of a page in the order of its text, without blank ones."""
    from pypdfium2 import raw

    texts = page.get_textpage()
    try:
        found: list[_Line] = []
        codes: list[int] = []
        count = texts.count_chars()
        for index in range(count + 1):
            code = raw.FPDFText_GetUnicode(texts, index) if index < count else 10
            if code not in (10, 13):
                codes.append(code)
                continue
            if text := _text(codes).strip():
                found.append(_Line(text, *_box(texts, index - len(codes), index)))
            codes = []
        return found
    finally:
        texts.close()


def _text(codes: Sequence[int]) -> str:
    """Code points, or code units of UTF-16 where two make one; what is neither is a space."""
    joined = "".join(chr(code) if code else " " for code in codes)
    return joined.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")


def _box(texts: Any, first: int, last: int) -> tuple[float, float, float]:
    """Left, bottom and top of a line: of its first character that has a place."""
    import pypdfium2

    for index in range(first, last):
        try:
            left, bottom, _, top = texts.get_charbox(index, loose=True)
        except pypdfium2.PdfiumError:
            continue
        if top > bottom:
            return left, bottom, top
    return 0.0, 0.0, 0.0


class _Layout:
    """Lines to paragraphs, over pages; the paragraph that is open may go on."""

    def __init__(self, linear: Linear) -> None:
        self.linear = linear
        self.open: list[_Line] = []

    def page(self, lines: Sequence[_Line], marks: Sequence[_Mark]) -> None:
        usual = _usual_gap(lines)
        headings, taken = _placed(lines, marks)
        before: _Line | None = None
        for place, line in enumerate(lines):
            for mark in headings.get(place, ()):
                self.end()
                self.linear.heading(mark.level, mark.title)
            if place in taken:
                before = None
                continue
            if self.open and _begins(self.open[-1], line, before is None, usual):
                self.end()
            self.open.append(line)
            before = line
        for mark in headings.get(len(lines), ()):
            self.end()
            self.linear.heading(mark.level, mark.title)

    def end(self) -> None:
        """End the paragraph that is open."""
        text = _HYPHEN.sub("", "\n".join(line.text for line in self.open))
        self.linear.paragraph(closed(text))
        self.open = []


def _usual_gap(lines: Sequence[_Line]) -> float:
    """The usual distance from one line's bottom to the next one's top on a page, in points."""
    gaps = [a.bottom - b.top for a, b in pairwise(lines) if a.bottom > b.bottom]
    return median(gaps) if gaps else 0.0


def _begins(last: _Line, line: _Line, elsewhere: bool, usual: float) -> bool:
    """Whether a line begins a paragraph."""
    ended = _ENDS.search(last.text) is not None
    if elsewhere or line.bottom > last.bottom + last.height / 2:  # another page or column
        return ended or not line.text[:1].islower()
    if last.bottom - line.top > max(usual, 0.0) + _WIDER * line.height:
        return True
    other_size = abs(line.height - last.height) > _WIDER * min(line.height, last.height)
    return other_size or (ended and line.left - last.left > _INDENT * line.height)


def _placed(
    lines: Sequence[_Line], marks: Sequence[_Mark]
) -> tuple[dict[int, list[_Mark]], set[int]]:
    """Before which line each bookmark stands, and the lines that are nothing but a title."""
    headings: dict[int, list[_Mark]] = {}
    taken: set[int] = set()
    least = 0
    for mark in marks:
        match = next(_titled(lines, mark.title, least, taken), None)
        if match is not None:
            place, size = match
            taken.update(range(place, place + size))
            least = place + size
        elif mark.top is not None:
            top = mark.top
            place = next((i for i in range(least, len(lines)) if lines[i].bottom < top), least)
        else:
            place = least
        headings.setdefault(place, []).append(mark)
    return headings, taken


def _titled(
    lines: Sequence[_Line], title: str, least: int, taken: set[int]
) -> Iterator[tuple[int, int]]:
    """Places from `least` on whose one to three lines are the title, but for its number."""
    wanted = _plain(title)
    for place in range(least, len(lines)):
        text = ""
        for size in range(1, _LINES + 1):
            if place + size > len(lines) or place + size - 1 in taken:
                break
            text = f"{text} {lines[place + size - 1].text}"
            if _plain(text) == wanted:
                yield place, size


def _plain(text: str) -> str:
    words = closed(_HYPHEN.sub("", text)).casefold()
    return _NUMBER.sub("", words) or words
