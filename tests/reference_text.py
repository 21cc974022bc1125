"""Slow, obvious twins of the text and corpora rooms."""

from __future__ import annotations

import io

from markdown_it import MarkdownIt
from mdit_py_plugins.front_matter import front_matter_plugin


def universal_newlines(data: bytes) -> str:
    """What the standard library reads from UTF-8 bytes, a mark at the start taken off."""
    return io.TextIOWrapper(io.BytesIO(data), encoding="utf-8-sig", newline=None).read()


def paragraphs(text: str) -> list[str]:
    """Plain text's paragraphs, collected line by line."""
    found: list[list[str]] = [[]]
    for line in text.split("\n"):
        if line.strip():
            found[-1].append(line)
        elif found[-1]:
            found.append([])
    return ["\n".join(lines) for lines in found if lines]


def occurrences(text: str, quote: str) -> list[int]:
    """Every offset at which the quotation stands."""
    return [at for at in range(len(text)) if text.startswith(quote, at)]


def lines_outside_paragraphs(text: str) -> set[int]:
    """Lines that are not blank and lie in a top-level heading, rule or front matter."""
    parser = MarkdownIt("commonmark", {"maxNesting": 400}).enable("table").use(front_matter_plugin)
    lines = text.split("\n")
    outside: set[int] = set()
    for token in parser.parse(text):
        if token.level == 0 and token.type in ("heading_open", "hr", "front_matter") and token.map:
            outside.update(n for n in range(*token.map) if n < len(lines) and lines[n].strip())
    return outside
