"""A strict reader of the report's HTML, and slow twins of what the report computes."""

from __future__ import annotations

import itertools
from html.parser import HTMLParser

VOID = {"meta", "br", "input", "hr", "img", "link"}


class Page(HTMLParser):
    """Reads a page, refuses one whose elements do not nest, and keeps what tests ask for.

    shape:   (element, class) of every element in order.
    texts:   every text outside style and script elements, joined per element path.
    scripts: (attributes, content) of each script element.
    """

    def __init__(self, text: str) -> None:
        super().__init__(convert_charrefs=True)
        self.shape: list[tuple[str, str]] = []
        self.scripts: list[tuple[dict[str, str | None], str]] = []
        self.ids: list[str] = []
        self.links: list[tuple[str, str]] = []
        self.tables: list[dict[str, list[str]]] = []
        self._open: list[tuple[str, dict[str, str | None]]] = []
        self._texts: list[tuple[tuple[str, ...], str]] = []
        self.feed(text)
        self.close()
        assert not self._open, f"left open: {[name for name, _ in self._open]}"

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Every table is remembered with its captions and the scopes of its headings."""
        found = dict(attrs)
        assert len(found) == len(attrs), f"{tag}: an attribute twice: {attrs}"
        self.shape.append((tag, found.get("class") or ""))
        if found.get("id"):
            self.ids.append(str(found["id"]))
        for name in ("src", "href", "data", "action", "srcset", "poster"):
            if name in found:
                self.links.append((tag, str(found[name])))
        if tag == "table":
            self.tables.append({"caption": [], "scopes": []})
        elif tag == "th":
            self.tables[-1]["scopes"].append(found.get("scope") or "")
        elif tag == "caption":
            self.tables[-1]["caption"].append("")
        elif tag == "script":
            self.scripts.append((found, ""))
        if tag not in VOID:
            self._open.append((tag, found))

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """SVG's own `<circle/>`: opens and closes."""
        self.shape.append((tag, dict(attrs).get("class") or ""))

    def handle_endtag(self, tag: str) -> None:
        """An element closes only the one that was opened last."""
        assert self._open and self._open[-1][0] == tag, f"</{tag}> closes {self._open[-1:]}"
        self._open.pop()

    def handle_data(self, data: str) -> None:
        """Scripts keep their content; other text goes with the ids of the elements around it."""
        inside = self._open[-1][0] if self._open else ""
        if inside == "script":
            attributes, text = self.scripts[-1]
            self.scripts[-1] = (attributes, text + data)
        elif inside != "style":
            around = tuple(str(found["id"]) for _, found in self._open if found.get("id"))
            self._texts.append((around, data))

    def text(self, place: str = "") -> str:
        """All text, or that inside the element with this id, with single spaces."""
        parts = [text for around, text in self._texts if not place or place in around]
        return " ".join(" ".join(parts).split())


def met(sections: int, holding: int, kept: int) -> float:
    """Share of all ways to keep `kept` sections that meet one of the first `holding`."""
    ways = list(itertools.combinations(range(sections), kept))
    return sum(way[0] < holding for way in ways) / len(ways)
