"""HTML to documents, by lxml: what a browser shows as text, headings kept.

Left out are scripts, styles, templates, navigation (`nav`), links of headings to themselves (class
`headerlink`, as Sphinx and MkDocs write them), graphics and form controls. White space
closes up as in a browser, but for `pre`. A list, a table and a `pre` are one paragraph each; a list
or table that holds headings or code only lays out a page, and what is in it stands for itself.
"""

from __future__ import annotations

import codecs
import re
from collections import Counter
from collections.abc import Iterator
from typing import Any

from spanwise.corpora.linear import Linear, closed
from spanwise.documents.model import Document
from spanwise.errors import DecodingError, MarkupError

_SILENT = frozenset({
    "script", "style", "template", "noscript", "nav", "svg", "iframe", "object", "canvas", "audio",
    "video", "select", "textarea", "button", "head", "math",
})
_INLINE = frozenset({
    "a", "abbr", "acronym", "b", "bdi", "bdo", "big", "cite", "code", "data", "del", "dfn", "em",
    "font", "i", "img", "input", "ins", "kbd", "label", "mark", "meter", "output", "progress", "q",
    "rp", "rt", "ruby", "s", "samp", "small", "span", "strike", "strong", "sub", "sup", "time",
    "tt", "u", "var", "wbr", "nobr",
})
_HEADING = re.compile(r"h([1-6])")
_LISTS = frozenset({"ul", "ol", "dl", "menu", "dir"})
_WHOLE = _LISTS | {"table"}
_DECLARED = re.compile(
    rb"""<meta[^>]+charset\s*=\s*["']?\s*([A-Za-z0-9_.:-]+)|^\s*<\?xml[^>]+encoding=["']([^"']+)""",
    re.IGNORECASE,
)
_HEAD = 4096  # bytes in which a charset must be declared, with room for long comments
_DEPTH = 200
_LATIN = frozenset({"iso8859-1", "ascii"})


def read_if_any(
    doc_id: str, data: bytes, *, stem: str, source: str = "", version: str = "1",
    where: str | None = None,
) -> tuple[Document | None, Counter[str]]:
    """Read one HTML file.

    data:    its bytes: in the charset of its byte-order mark or of `<meta charset>`, else UTF-8.
    returns: the document (None without text) and what was left out, by name. Its title is the sole
             h1, which then is no heading, else `<title>`, else the stem.
    raises:  DecodingError for an unknown charset and for bytes that are none of it; MarkupError for
             elements nested 200 deep.
    """
    where = where or doc_id
    root = _tree(_text(data, where), where)
    linear = Linear()
    if root is not None:
        title = root.find(".//head/title")
        linear.title = closed("".join(title.itertext())) if title is not None else ""
        _Walk(linear, where).through(root)
    linear.sole_heading_to_title()
    document = linear.build(
        doc_id, stem=stem, source=source, version=version, labels=("html",)
    )
    return document, linear.counts


def _text(data: bytes, where: str) -> str:
    """The file's text in the charset that it declares."""
    marks = ((codecs.BOM_UTF8, "utf-8"), (codecs.BOM_UTF16_LE, "utf-16-le"),
             (codecs.BOM_UTF16_BE, "utf-16-be"))
    for mark, charset in marks:
        if data.startswith(mark):
            return _decoded(data[len(mark):], charset, "its byte-order mark", where)
    declared = _DECLARED.search(data[:_HEAD])
    if declared is None:
        return _decoded(data, "utf-8", "no declared charset", where)
    name = (declared[1] or declared[2]).decode("ascii", "replace")
    try:
        charset = codecs.lookup(name).name
    except LookupError:
        raise DecodingError(
            f"{where}: the charset {name!r} that it declares is unknown; convert the file to UTF-8 "
            "and declare that"
        ) from None
    if charset.startswith("utf-16"):
        charset = "utf-8"  # the declaration was read byte by byte, so it cannot be true
    # As browsers do: who writes Latin-1 means Windows-1252.
    return _decoded(data, "cp1252" if charset in _LATIN else charset, f"charset {name}", where)


def _decoded(data: bytes, charset: str, why: str, where: str) -> str:
    try:
        return data.decode(charset)
    except UnicodeDecodeError as error:
        line = 1 + data[: error.start].count(b"\n")
        raise DecodingError(
            f"{where}: byte {data[error.start]:02x} at byte offset {error.start} (line {line}) is "
            f"no {charset} ({why}); convert the file to UTF-8, or declare the charset it is in"
        ) from None
    except LookupError:  # a codec of Python's that is no charset, e.g. `hex`
        raise DecodingError(
            f"{where}: {why} is no charset of texts; convert the file to UTF-8 and declare that"
        ) from None


def _tree(text: str, where: str) -> Any:
    """The parsed page, None where there is nothing to parse."""
    from lxml import etree

    if "\x00" in text:
        raise DecodingError(f"{where}: a NUL character, expected text; remove it")
    parser = etree.HTMLParser(encoding="utf-8", huge_tree=True, no_network=True,
                              remove_comments=True, remove_pis=True)
    try:
        return etree.fromstring(text.encode("utf-8", "surrogatepass"), parser)
    except etree.XMLSyntaxError as error:
        if not text.strip():
            return None
        raise MarkupError(f"{where}: no HTML ({error}); expected a page with text") from None


class _Walk:
    """One way through a page; inline text gathers until a block begins or ends."""

    def __init__(self, linear: Linear, where: str) -> None:
        self.linear, self.where = linear, where
        self.waiting: list[str] = []

    def through(self, element: Any, kind: str = "paragraph", depth: int = 0) -> None:
        """Everything below an element, in order."""
        if depth >= _DEPTH:
            raise MarkupError(
                f"{self.where}: line {element.sourceline}: elements nested {_DEPTH} deep, expected "
                "fewer; mend the page"
            )
        self.waiting.append(element.text or "")
        for child in element:
            self._child(child, kind, depth)
            self.waiting.append(child.tail or "")
        if depth == 0:
            self.flush(kind)

    def _child(self, child: Any, kind: str, depth: int) -> None:
        name = child.tag if isinstance(child.tag, str) else "script"
        if _silent(child):
            if name == "nav":
                self.linear.counts["HTML navigation blocks left out"] += 1
        elif name == "br":
            self.waiting.append("\v")  # a line end that white space does not close up
        elif name in _INLINE:
            self.through(child, kind, depth + 1)
        else:
            self.flush(kind)
            self._block(child, name, kind, depth)

    def _block(self, child: Any, name: str, kind: str, depth: int) -> None:
        if heading := _HEADING.fullmatch(name):
            self.linear.heading(int(heading[1]), _inline(_texts(child)))
        elif name == "pre":
            self.linear.paragraph("".join(_texts(child)).replace("\v", "\n"), "fence")
        elif name in _WHOLE and not _lays_out(child):
            if name == "table":
                self.linear.paragraph("\n".join(_rows(child)), "table")
            else:
                self.linear.paragraph("\n".join(_items(child)), "list")
        else:
            inside = "quote" if name == "blockquote" else kind
            self.through(child, inside, depth + 1)
            self.flush(inside)

    def flush(self, kind: str) -> None:
        """End the paragraph that is open."""
        text = _inline(self.waiting)
        self.waiting = []
        self.linear.paragraph(text, kind)


def _silent(node: Any) -> bool:
    """Whether a node is left out with all that it holds."""
    return not isinstance(node.tag, str) or node.tag in _SILENT or (
        node.tag == "a" and "headerlink" in node.get("class", "").split())


def _lays_out(element: Any) -> bool:
    """Whether a list or table holds what a list or table of data does not."""
    return any(True for _ in element.iter("h1", "h2", "h3", "h4", "h5", "h6", "pre"))


def _texts(element: Any) -> Iterator[str]:
    """The text below an element as it is written, without what is left out; `br` is a VT."""
    waiting = [(element, False)]
    while waiting:
        node, tail = waiting.pop()
        if tail:
            yield node.tail or ""
            continue
        if _silent(node):
            continue
        if node.tag == "br":
            yield "\v"
            continue
        block = node is not element and node.tag not in _INLINE
        yield (" " if block else "") + (node.text or "")
        for child in reversed(node):
            waiting += [(child, True), (child, False)]


def _inline(texts: Any) -> str:
    """Inline text as a browser shows it: white space closed up, a line for each `br`."""
    lines = (closed(line) for line in "".join(texts).split("\v"))
    return "\n".join(line for line in lines if line)


def _rows(table: Any) -> Iterator[str]:
    """A line for each row and caption; cells stand between bars. A table in a cell is its text."""
    for row in table.iter("tr", "caption"):
        if next(row.iterancestors("table")) is not table:
            continue
        if row.tag == "caption":
            yield closed("".join(_texts(row)))
            continue
        cells = [closed("".join(_texts(cell)).replace("\v", " ")) for cell in row
                 if cell.tag in ("td", "th")]
        if any(cells):
            yield " | ".join(cells).strip()


def _items(element: Any, indent: str = "", depth: int = 0) -> Iterator[str]:
    """A line for each item, those of inner lists indented below it."""
    for number, item in enumerate(element, 1):
        if not isinstance(item.tag, str) or item.tag in _SILENT:
            continue
        if item.tag in _LISTS:
            yield from _items(item, indent + "  ", depth + 1)
            continue
        inner = [node for node in item.iter(*_LISTS) if node is not item
                 and _nearest_item(node) is item]
        mark = f"{number}. " if element.tag == "ol" else "" if element.tag == "dl" else "- "
        if words := closed("".join(_own(item, set(inner))).replace("\v", " ")):
            yield f"{indent}{'  ' if item.tag == 'dd' else ''}{mark}{words}"
        for node in inner:
            if depth < _DEPTH:
                yield from _items(node, indent + "  ", depth + 1)


def _nearest_item(node: Any) -> Any:
    return next((one for one in node.iterancestors("li", "dd", "dt")), None)


def _own(item: Any, inner: set[Any]) -> Iterator[str]:
    """An item's text without that of the lists in it."""
    yield item.text or ""
    for child in item:
        if child in inner:
            yield " "
        else:
            if any(node in inner for node in child.iter()):
                yield " "
                yield from _own(child, inner)
                yield " "
            else:
                block = isinstance(child.tag, str) and child.tag not in _INLINE | {"br"}
                yield " " if block else ""
                yield from _texts(child)
                yield " " if block else ""
        yield child.tail or ""
