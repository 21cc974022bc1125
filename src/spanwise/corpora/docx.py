"""DOCX to documents, by python-docx: styles and outline levels as headings, footnotes at the end.

Of tracked changes the text that was put in counts, not what was taken out. Page headers and
footers, comments and pictures are left out.
"""

from __future__ import annotations

import io
import re
import zipfile
from collections import Counter
from collections.abc import Iterator
from typing import Any

from spanwise.corpora.linear import Linear, closed
from spanwise.documents.model import Document
from spanwise.errors import CorpusError

_W = "{http://schemas.openxmlformats.org/wordprocessingml/2006/main}"
_FALLBACK = "{http://schemas.openxmlformats.org/markup-compatibility/2006}Fallback"
_HEADING = re.compile(r"heading ([1-9])", re.IGNORECASE)
_LARGEST = 256 * 2**20
"""Bytes that a file may unpack to."""
_OLE = b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1"
_PLAIN = 9  # the outline level of body text


def read_if_any(
    doc_id: str, data: bytes, *, stem: str, source: str = "", version: str = "1",
    where: str | None = None,
) -> tuple[Document | None, Counter[str]]:
    """Read one DOCX file.

    returns: the document (None without text) and what was left out, by name. Its title is the one
             paragraph of style Title, else the sole heading of level 1, else the file's title
             property, else the stem. Headings have a style `Heading n` or an outline level.
             Paragraphs of a list that follow each other are one paragraph, and so is a table.
    raises:  CorpusError for what is no DOCX, is encrypted or unpacks to more than 256 MB.
    """
    where = where or doc_id
    document = _opened(data, where)
    linear = Linear()
    walk = _Walk(linear, document)
    walk.through(document.element.body)
    walk.end_list()
    for text in _notes(document):
        linear.paragraph(text, "footnote")
    if len(walk.titles) == 1:
        linear.title = walk.titles[0]
    else:
        linear.titles_to_text()
        linear.title = closed(document.core_properties.title or "")
        linear.sole_heading_to_title()
    built = linear.build(doc_id, stem=stem, source=source, version=version, labels=("docx",))
    return built, linear.counts


def _opened(data: bytes, where: str) -> Any:
    import docx
    from docx.opc.exceptions import PackageNotFoundError
    from lxml import etree

    if data.startswith(_OLE):
        raise CorpusError(
            f"{where}: an encrypted file or one of old Word; save it as .docx without a password"
        )
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            size = sum(info.file_size for info in archive.infolist())
        if size > _LARGEST:
            raise CorpusError(
                f"{where}: it unpacks to {size / 2**20:.0f} MB, expected at most "
                f"{_LARGEST // 2**20}; take pictures out of it"
            )
        return docx.Document(io.BytesIO(data))
    except (zipfile.BadZipFile, PackageNotFoundError, KeyError, ValueError, OSError,
            NotImplementedError, zipfile.LargeZipFile, etree.XMLSyntaxError) as error:
        if isinstance(error, CorpusError):
            raise
        raise CorpusError(
            f"{where}: no DOCX that can be opened ({closed(str(error))}); save it anew as .docx"
        ) from None


class _Walk:
    """One way through the body; the paragraphs of a list gather until it ends."""

    def __init__(self, linear: Linear, document: Any) -> None:
        self.linear = linear
        self.styles = {style.style_id: style for style in document.styles}
        self.titles: list[str] = []
        self.items: list[str] = []

    def through(self, body: Any) -> None:
        for child in body:
            if child.tag == f"{_W}p":
                self._paragraph(child)
            elif child.tag == f"{_W}tbl":
                self.end_list()
                self.linear.paragraph("\n".join(_rows(child)), "table")
            elif child.tag in (f"{_W}sdt", f"{_W}sdtContent", f"{_W}ins", f"{_W}moveTo",
                               f"{_W}customXml", f"{_W}smartTag"):
                self.through(child)

    def _paragraph(self, paragraph: Any) -> None:
        self.linear.counts["DOCX pictures left out"] += sum(
            1 for _ in paragraph.iter(f"{_W}drawing", f"{_W}pict")
        )
        text = _text(paragraph)
        if not text:
            return
        properties = paragraph.find(f"{_W}pPr")
        style = _value(properties, "pStyle")
        names, level, listed = self._of_style(style)
        own = _value(properties, "outlineLvl")
        if own is not None and own.isdigit():
            level = int(own) + 1 if int(own) < _PLAIN else 0
        if properties is not None and (numbered := properties.find(f"{_W}numPr")) is not None:
            listed = _value(numbered, "numId") != "0"
        if level:
            self.end_list()
            self.linear.heading(level, text)
        elif "Title" in names:
            self.end_list()
            self.titles.append(closed(text))
            self.linear.paragraph(closed(text), "title")
        elif listed:
            indent = _value(properties.find(f"{_W}numPr"), "ilvl") if (
                properties is not None and properties.find(f"{_W}numPr") is not None) else None
            depth = int(indent) if indent is not None and indent.isdigit() else 0
            self.items.append("  " * depth + "- " + closed(text))
        else:
            self.end_list()
            self.linear.paragraph(text, "quote" if "Quote" in names else "paragraph")

    def end_list(self) -> None:
        """End the list that is open."""
        if self.items:
            self.linear.paragraph("\n".join(self.items), "list")
        self.items = []

    def _of_style(self, style_id: str | None) -> tuple[set[str], int, bool]:
        """A style's names with those that it is based on, its heading level, whether it lists."""
        names: set[str] = set()
        level, listed = 0, False
        style = self.styles.get(style_id) if style_id is not None else None
        while style is not None and style.name not in names:
            names.add(str(style.name))
            properties = style.element.find(f"{_W}pPr")
            outline = _value(properties, "outlineLvl")
            if not level and (found := _HEADING.fullmatch(str(style.name))):
                level = int(found[1])
            elif not level and outline is not None and outline.isdigit() and int(outline) < _PLAIN:
                level = int(outline) + 1
            listed = listed or str(style.name).startswith("List ") or (
                properties is not None and properties.find(f"{_W}numPr") is not None
            )
            style = getattr(style, "base_style", None)
        return names, level, listed and not level


def _value(properties: Any, name: str) -> str | None:
    """The `val` of one property."""
    found = None if properties is None else properties.find(f"{_W}{name}")
    return None if found is None else found.get(f"{_W}val")


def _text(paragraph: Any) -> str:
    """A paragraph's text, a line for each break; what was deleted is no `t` and drops out."""
    lines = (closed(line) for line in "".join(_words(paragraph)).split("\n"))
    return "\n".join(line for line in lines if line)


def _words(element: Any) -> Iterator[str]:
    for child in element:
        if child.tag == f"{_W}t":
            yield child.text or ""
        elif child.tag in (f"{_W}br", f"{_W}cr"):
            yield "\n"
        elif child.tag == f"{_W}tab":
            yield " "
        elif child.tag == f"{_W}noBreakHyphen":
            yield "-"
        elif child.tag not in (_FALLBACK, f"{_W}pPr", f"{_W}rPr", f"{_W}del", f"{_W}moveFrom"):
            yield from _words(child)
            if child.tag == f"{_W}p":  # of a text box
                yield "\n"


def _rows(table: Any) -> Iterator[str]:
    """A line for each row, its cells between bars; a cell that spans rows stands in its first."""
    for row in table.iter(f"{_W}tr"):
        if next(row.iterancestors(f"{_W}tbl")) is not table:
            continue
        cells = []
        for cell in row.iter(f"{_W}tc"):
            if next(cell.iterancestors(f"{_W}tr")) is row:
                cells.append(" ".join(filter(None, (
                    closed(_text(p)) for p in cell.iter(f"{_W}p")))))
        if any(cells):
            yield " | ".join(cells).strip()


def _notes(document: Any) -> Iterator[str]:
    """Footnotes, then endnotes, without those that only draw a line."""
    from lxml import etree

    for kind in ("footnote", "endnote"):
        for relation in document.part.rels.values():
            if relation.is_external or not relation.reltype.endswith(f"/{kind}s"):
                continue
            parser = etree.XMLParser(resolve_entities=False, no_network=True)
            for note in etree.fromstring(relation.target_part.blob, parser).iter(f"{_W}{kind}"):
                if note.get(f"{_W}type") is None:
                    yield " ".join(filter(None, (closed(_text(p)) for p in note.iter(f"{_W}p"))))
