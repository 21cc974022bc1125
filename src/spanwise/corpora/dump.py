"""Pages of a MediaWiki XML dump, one after the other, whatever its size.

The file is fed to expat in blocks and only the page at hand is held, so memory does not grow with
the dump. A dump declares no document type; one that does is refused, which rules out entity bombs.
"""

from __future__ import annotations

import bz2
from collections.abc import Iterator, Mapping
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import IO
from xml.parsers import expat

from spanwise.errors import CorpusError

BLOCK_BYTES = 1 << 17

# The first bytes of gzip, 7z, zip, xz and zstandard.
_OTHER_COMPRESSION = (b"\x1f\x8b", b"7z\xbc\xaf", b"PK\x03\x04", b"\xfd7zXZ", b"\x28\xb5\x2f\xfd")

_KEPT = frozenset(("title", "ns", "id", "text", "model", "timestamp"))


@dataclass(frozen=True, slots=True)
class Page:
    """One page with its last revision.

    namespace: its number; 0 holds the articles.
    text:      wikitext, or None where the dump holds none (a deleted revision, a stub dump).
    model:     content model, `wikitext` unless the dump says otherwise.
    """

    title: str
    namespace: int
    redirect: bool
    text: str | None
    revision: str
    model: str

    @property
    def is_article(self) -> bool:
        """An article is a page of namespace 0 with wikitext that is no redirect."""
        return (
            self.namespace == 0 and not self.redirect and self.model == "wikitext"
            and bool(self.text and self.text.strip())
        )


def dump_files(path: Path) -> list[Path]:
    """The dump itself, or the parts of a dump in a folder: all its .xml and .bz2 files by name."""
    if path.is_file():
        return [path]
    files = sorted(p for p in path.glob("*") if p.suffix in (".xml", ".bz2"))
    if not files:
        raise CorpusError(
            f"{path}: expected a MediaWiki dump (.xml or .xml.bz2) or a folder of its parts"
        )
    return files


def pages(file: Path) -> Iterator[Page]:
    """Yield the pages of one dump file in order.

    raises: CorpusError, with file, line and the page before, for XML that is broken or cut off, a
            compressed file that is, a document type, a root that is not `mediawiki`, a page
            without a title; for an unknown compression; and for a file without pages.
    """
    reader = _Reader(file)
    with closing(_open(file)) as stream:
        while True:
            try:
                block = stream.read(BLOCK_BYTES)
            except (EOFError, OSError) as error:
                raise CorpusError(
                    f"{reader.place}: the compressed data is cut off or damaged ({error}); "
                    "fetch the file again and compare its checksum"
                ) from error
            yield from reader.feed(block, last=not block)
            if not block:
                break
    if not reader.count:
        raise CorpusError(f"{file}: a MediaWiki export without any page; is it the right file?")


def _open(file: Path) -> IO[bytes]:
    with file.open("rb") as stream:
        head = stream.read(6)
    if head.startswith(b"BZh"):
        return bz2.open(file, "rb")
    if head.startswith(_OTHER_COMPRESSION):
        raise CorpusError(f"{file}: compressed, but not by bzip2; expected plain XML or .bz2")
    if not head:
        raise CorpusError(f"{file}: an empty file; expected a MediaWiki XML dump")
    return file.open("rb")


class _Reader:
    """Turns blocks of bytes into pages; what it holds is the page that is not finished yet."""

    def __init__(self, file: Path) -> None:
        self.file = file
        self.count = 0
        self._finished: list[Page] = []
        self._last = ""
        self._path: list[str] = []
        self._texts: list[str] | None = None
        self._page: dict[str, str] = {}
        self._revision: dict[str, str] = {}
        self._namespaces: dict[str, int] = {}  # by name, from the dump's head
        self._key = ""
        self._parser = expat.ParserCreate(namespace_separator=" ")
        self._parser.buffer_text = True
        self._parser.StartElementHandler = self._start
        self._parser.EndElementHandler = self._end
        self._parser.CharacterDataHandler = self._characters
        self._parser.StartDoctypeDeclHandler = self._doctype

    @property
    def place(self) -> str:
        """Where the reader is, for messages."""
        after = f"after page {self.count} ({self._last!r})" if self.count else "before any page"
        return f"{self.file}: line {self._parser.CurrentLineNumber}, {after}"

    def feed(self, block: bytes, last: bool) -> list[Page]:
        """The pages that end in this block."""
        try:
            self._parser.Parse(block, last)
        except expat.ExpatError as error:
            raise CorpusError(
                f"{self.place}: broken or cut-off XML ({error}); expected a whole MediaWiki export"
            ) from error
        finished, self._finished = self._finished, []
        return finished

    def _doctype(self, name: str, *_: object) -> None:
        raise CorpusError(
            f"{self.place}: a document type ({name}) is declared, which no MediaWiki export does; "
            "it is refused because its entities could be harmful"
        )

    def _start(self, name: str, attributes: Mapping[str, str]) -> None:
        tag = name.rpartition(" ")[2]
        if not self._path and tag != "mediawiki":
            raise CorpusError(
                f"{self.place}: the root is <{tag}>, expected <mediawiki>: is this an export?"
            )
        self._path.append(tag)
        parent = self._path[-2] if len(self._path) > 1 else ""
        if tag == "page":
            self._page, self._revision = {}, {}
        elif tag == "revision":
            self._revision = {}  # dumps list the oldest first: the last one is current
        elif tag == "redirect" and parent == "page":
            self._page["redirect"] = attributes.get("title", "")
        elif tag == "namespace":
            self._key, self._texts = attributes.get("key", "0"), []
        elif parent in ("page", "revision") and tag in _KEPT:
            self._texts = []
        if tag == "text" and parent == "revision" and "deleted" in attributes:
            self._revision["deleted"] = "deleted"

    def _characters(self, data: str) -> None:
        if self._texts is not None:
            self._texts.append(data)

    def _end(self, name: str) -> None:
        tag = name.rpartition(" ")[2]
        self._path.pop()
        if self._texts is not None:
            text, self._texts = "".join(self._texts), None
            if tag == "namespace":
                self._namespaces[text] = int(self._key)
            elif self._path[-1:] == ["revision"]:
                self._revision[tag] = text
            else:
                self._page[tag] = text
        if tag == "page":
            self._finish()

    def _finish(self) -> None:
        title = " ".join(self._page.get("title", "").replace("_", " ").split())
        if not title:
            raise CorpusError(f"{self.place}: the next page has no title")
        text = None if "deleted" in self._revision else self._revision.get("text")
        # Old exports name neither a page's namespace nor its being a redirect.
        prefix = title.partition(":")[0] if ":" in title else ""
        number = self._page.get("ns", "").strip()
        namespace = int(number) if number.lstrip("-").isdigit() else self._namespaces.get(prefix, 0)
        redirect = "redirect" in self._page or (text or "").lstrip()[:9].lower() == "#redirect"
        self.count += 1
        self._last = title
        self._finished.append(Page(
            title, namespace, redirect, text, self._revision.get("id", "1"),
            self._revision.get("model", "wikitext"),
        ))
        self._page, self._revision = {}, {}
