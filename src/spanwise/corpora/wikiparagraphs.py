"""Lines of a wiki page gathered into paragraphs, which are emitted as they end.

A line goes on with the paragraph before it, unless it is blank, of another kind, or a block begins.
"""

from __future__ import annotations

from spanwise.corpora import wikilines, wikitables
from spanwise.documents.model import Builder


class Gatherer:
    """Holds the line and the paragraph that are being gathered, and emits what is finished.

    With a builder, paragraphs and headings are emitted. Without, they are kept in `blocks` and
    lists have no signs: that is how a cell, a heading or a parameter becomes one line.
    """

    def __init__(self, builder: Builder | None) -> None:
        self.builder = builder
        self.blocks: list[str] = []
        self.mended = 0
        self._line: list[str] = []
        self._marker = ""  # `*#;:` of the line's list item
        self._started = False  # something of this line was seen
        self._comment = False  # a comment was
        self._lines: list[str] = []
        self._kind = ""
        self._numbers: list[int] = []  # of the open numbered lists, by depth
        self._quoting = 0
        self._lists = ""  # the signs of the open HTML lists, as `*` and `#`
        self._open_table = wikitables.OpenTable()

    def add(self, text: str) -> None:
        """Add to the line; a line break in it is a blank."""
        self._line.append(text.replace("\n", " "))
        self._started = True

    def drop(self) -> None:
        """Note that something was dropped here."""
        self.add(wikilines.DROPPED)

    def end_line(self) -> None:
        """Close the line: it goes on with its paragraph, or opens or ends one."""
        raw, marker = "".join(self._line), self._marker
        comment_only = self._comment and not marker and not raw.strip()
        self._line, self._marker, self._started, self._comment = [], "", False, False
        if comment_only:  # MediaWiki removes such a line together with its line break
            return
        if self._open_table.takes(raw, item=bool(marker)):
            self._rows_of_open_table()
            return
        if not marker and raw.startswith(" ") and not self._quoting and self.builder is not None:
            text = self._clean(raw, verbatim=True)
            if text.strip():
                self._push("fence", text.removeprefix(" ").rstrip())
            else:
                self.flush()
            return
        text = self._clean(raw)
        if not text:
            if not marker and not self._lists:
                self.flush()
        elif marker:
            kind = "list" if marker.strip(";:") else "definition"
            if self._kind not in ("list", "definition"):
                self._begin(kind)
            self._lines.append(self._sign(marker) + text)
        else:
            self._push("quote" if self._quoting else "paragraph", text)

    def flush(self) -> None:
        """End the line and the paragraph."""
        if self._line or self._marker:
            self.end_line()
        self._open_table.close_row()
        self._rows_of_open_table()
        lines, kind = self._lines, self._kind
        self._lines, self._kind, self._numbers = [], "", []
        if lines:
            self._emit(kind, lines)

    def _end_block(self) -> None:
        """End a block; what follows on its last line does not begin a line."""
        self.flush()
        self._started = True

    def _rows_of_open_table(self) -> None:
        for row in self._open_table.taken():
            texts = [self._clean(cell) for cell in row]
            if any(texts):
                self._push("table", " | ".join(texts))

    def _begin(self, kind: str) -> None:
        lines, old = self._lines, self._kind
        self._lines, self._kind, self._numbers = [], kind, []
        if lines:
            self._emit(old, lines)

    def _push(self, kind: str, text: str) -> None:
        if self._kind != kind:
            self._begin(kind)
        self._lines.append(text)

    def _emit(self, kind: str, lines: list[str]) -> None:
        if self.builder is None:
            self.blocks.append((" " if kind in ("paragraph", "quote") else "; ").join(lines))
        else:
            text = (" " if kind in ("paragraph", "quote") else "\n").join(lines)
            self.builder.paragraph(text, kind)

    def _sign(self, marker: str) -> str:
        """What stands before a list item: indentation by depth, and a dash or the item's number."""
        if self.builder is None:
            return ""
        depth = len(marker)
        del self._numbers[depth:]
        self._numbers += [0] * (depth - len(self._numbers))
        indent = "  " * (depth - 1)
        if marker[-1] == "#":
            self._numbers[-1] += 1
            return f"{indent}{self._numbers[-1]}. "
        return indent + ("- " if marker[-1] == "*" else "")

    def _clean(self, line: str, verbatim: bool = False) -> str:
        text, mended = wikilines.clean(line, verbatim)
        self.mended += mended
        return text
