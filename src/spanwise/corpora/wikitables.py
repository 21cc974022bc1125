"""Rows and cells of wikitext tables: closed ones from the parser's tree, open ones line by line."""

from __future__ import annotations

import re
from collections.abc import Iterator

from mwparserfromhell.nodes import Tag
from mwparserfromhell.wikicode import Wikicode

_ATTRIBUTES = re.compile(
    r'(?:(?:colspan|rowspan|bgcolor|valign|style)=(?:"[^"]*"|[^\s"]+)(?:\s+|$))+', re.I
)
_BEFORE_PIPE = re.compile(r"^[^|\[{]*=[^|\[{]*\|")  # attributes, up to a single pipe


def rows(contents: Wikicode | None) -> Iterator[list[Wikicode] | str]:
    """The rows of a table, each a list of cells, and its caption as wikitext."""
    first: list[Wikicode] = []  # cells before the first row sign
    for node in contents.nodes if contents is not None else ():
        name = str(node.tag).strip().lower() if isinstance(node, Tag) else ""
        if isinstance(node, Tag) and name in ("td", "th"):
            text = str(node.contents or "")
            if str(node).lstrip().startswith("|+") and not first:
                # The parser knows no captions: `|+ text` is a cell, maybe with attributes.
                yield _BEFORE_PIPE.sub("", text.removeprefix("+"))
            else:
                first.append(node.contents)
            continue
        if name and first:
            yield first
            first = []
        if isinstance(node, Tag):
            if name == "tr":
                cells = list(_cells(node.contents))
                if cells:
                    yield cells
            elif name in ("tbody", "thead", "tfoot"):
                yield from rows(node.contents)
            elif name == "caption":
                yield str(node.contents or "")
    if first:
        yield first


def _cells(contents: Wikicode | None) -> Iterator[Wikicode]:
    for node in contents.nodes if contents is not None else ():
        if isinstance(node, Tag) and str(node.tag).strip().lower() in ("td", "th"):
            yield node.contents


def without_attributes(text: str) -> str:
    """A cell's text without the attributes before it, whose pipe stands in a template.

    >>> without_attributes('colspan="2" N/A'), without_attributes("a = b")
    ('N/A', 'a = b')
    """
    found = _ATTRIBUTES.match(text)
    return text[found.end() :] if found else text


class OpenTable:
    """A table whose end is missing. The parser leaves its signs as text; lines are read here.

    It ends at `|}`, or at the first line after a blank one that is no part of a table.
    """

    def __init__(self) -> None:
        self._inside = False
        self._row: list[str] = []
        self._rows: list[list[str]] = []

    def takes(self, raw: str, item: bool = False) -> bool:
        """True if the line, maybe a list item, belongs to an open table."""
        line = raw.strip()
        if item:
            if self._inside and self._row and line:
                self._row[-1] = f"{self._row[-1]}; {line}".removeprefix("; ")
            return self._inside
        if line.startswith(("{|", "|}", "|-")):
            self.close_row()
            self._inside = not line.startswith("|}")
            return True
        if not self._inside:
            return False
        if line.startswith(("|", "!")):
            for cell in re.split(r"\|\||!!", line[1:].removeprefix("+")):
                self._row.append(_BEFORE_PIPE.sub("", cell).strip())
            return True
        if line and self._row:
            self._row[-1] = f"{self._row[-1]} {line}"
            return True
        self.close_row()
        self._inside = False
        return False

    def close_row(self) -> None:
        """End the row that is being gathered."""
        if self._row:
            self._rows.append(self._row)
        self._row = []

    def taken(self) -> list[list[str]]:
        """The finished rows since the last call, each a list of uncleaned cells."""
        finished, self._rows = self._rows, []
        return finished
