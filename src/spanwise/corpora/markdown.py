"""Markdown to documents, by a CommonMark parser with source maps; nothing is found by searching.

Each top-level block is one paragraph of `body` and an exact slice of whole lines of `raw`. Every
line of raw that is not blank is one of four things: a top-level heading, front matter, a thematic
break, or part of exactly one paragraph. Headings inside quotations and lists are content.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cache
from pathlib import PurePosixPath
from typing import Any
from urllib.parse import unquote

import yaml
from markdown_it import MarkdownIt
from markdown_it.rules_block import StateBlock
from markdown_it.rules_block.fence import fence as _fence_rule
from markdown_it.token import Token
from mdit_py_plugins.front_matter import front_matter_plugin

from spanwise.documents.model import Builder, Document, Paragraph
from spanwise.errors import CorpusError, MarkupError
from spanwise.spans import Span

_KINDS = {
    "paragraph_open": "paragraph", "bullet_list_open": "list", "ordered_list_open": "list",
    "fence": "fence", "code_block": "fence", "table_open": "table", "blockquote_open": "quote",
    "html_block": "html",
}
_SILENT = frozenset({"front_matter", "hr"})
_DEPTH = 100
"""Levels of nested lists and quotations; the parser would swallow what follows a deeper one."""
_TEXT = re.compile(r"\S")


@dataclass(frozen=True, slots=True)
class _Block:
    """Lines [first, last) of one top-level block, and the token that opens it."""

    kind: str
    first: int
    last: int
    token: Token | None = None
    inline: Token | None = None


def read_document(
    doc_id: str,
    text: str,
    *,
    stem: str | None = None,
    source: str = "",
    version: str = "1",
    labels: tuple[str, ...] = (),
    where: str | None = None,
) -> Document:
    """Read one Markdown document.

    doc_id:  its id.
    text:    its decoded text (LF line endings, no NUL); it becomes `raw` unchanged.
    stem:    the title of last resort; by default the last part of doc_id.
    where:   what messages call the document, e.g. its path.
    returns: the document. Its title is the front matter's `title`, else the text of a sole level-1
             heading, which then is no heading of the document, else the stem. All other headings
             keep the level they are written with, also below a level-1 heading that became the
             title: closing levels up is the section tree's work. Their titles are plain text:
             markup stripped, entities decoded, an image's description kept. Paragraph kinds are
             paragraph, list, fence (backticks, tildes, indented), table, quote, html and
             definition (link reference definitions).
    raises:  MarkupError with the line of an unclosed fence (nested ones too), of front matter that
             is no YAML mapping, or of nesting 100 deep; CorpusError if no paragraph is left (an
             empty document, or headings alone).
    """
    document = read_if_any(
        doc_id, text, stem=stem, source=source, version=version, labels=labels, where=where
    )
    if document is None:
        raise CorpusError(
            f"{where or doc_id}: headings at most and no text, expected at least one paragraph; "
            "write its text or take the document out of the corpus"
        )
    return document


def read_if_any(
    doc_id: str,
    text: str,
    *,
    stem: str | None = None,
    source: str = "",
    version: str = "1",
    labels: tuple[str, ...] = (),
    where: str | None = None,
) -> Document | None:
    """As `read_document`, but None for a document without a paragraph, for callers that count."""
    where = where or doc_id
    if "\r" in text or "\x00" in text:
        raise CorpusError(f"{where}: carriage return or NUL in decoded text; decode the file first")
    environment: dict[str, Any] = {}
    tokens = _parser().parse(text, environment)
    _refuse_what_would_be_guessed(tokens, where)
    starts = _line_starts(text)
    blocks = list(_blocks(tokens, text, starts))
    headings = [block for block in blocks if block.kind == "heading"]
    titles = [_plain(block.inline, environment) for block in headings]
    title = _front_matter_title(tokens, where)
    sole: _Block | None = None
    if not title:
        first = [i for i, block in enumerate(headings) if _level(block) == 1]
        if len(first) == 1 and titles[first[0]]:
            sole, title = headings[first[0]], titles[first[0]]
    builder = Builder(doc_id, title or stem or _stem(doc_id), text)
    written = iter(titles)
    for block in blocks:
        if block.kind == "heading":
            heading = next(written)
            if block is not sole:
                builder.heading(_level(block), heading)
        elif block.kind not in _SILENT:
            span = Span(starts[block.first], starts[block.last] - 1)
            builder.paragraph(text[span.start : span.end], block.kind, span)
    if builder.empty:
        return None
    return builder.build(source=source, version=version, labels=labels)


def raw_view(document: Document, where: str | None = None) -> Document:
    """The same Markdown document as a text that keeps everything: its body is its raw text.

    returns: a document whose paragraphs are all blocks of raw, headings (kind `heading`) among
             them; rules and front matter stay text between blocks. A heading of the document points
             at its own block; the one that became the title is a block and no heading.
    """
    text, where = document.raw, where or document.doc_id
    if text is None:
        raise CorpusError(f"{where}: it has no raw text, expected a Markdown file")
    blocks, levels = _raw_blocks(text, where)
    places = [i for i, block in enumerate(blocks) if block.kind == "heading"]
    if len(places) > len(document.headings):
        sole = next(i for i, level in zip(places, levels, strict=True) if level == 1)
        places.remove(sole)
    return replace(
        document, body=text, paragraphs=blocks,
        headings=tuple(
            replace(heading, paragraph=place)
            for heading, place in zip(document.headings, places, strict=True)
        ),
    )


def raw_blocks(text: str, where: str) -> tuple[Paragraph, ...]:
    """Every block of a Markdown text, headings (kind `heading`) among them, as slices of it.

    raises: as `read_document`.
    """
    return _raw_blocks(text, where)[0]


def _raw_blocks(text: str, where: str) -> tuple[tuple[Paragraph, ...], list[int]]:
    """The blocks, and the level of each heading among them."""
    tokens = _parser().parse(text, {})
    _refuse_what_would_be_guessed(tokens, where)
    starts = _line_starts(text)
    blocks = [block for block in _blocks(tokens, text, starts) if block.kind not in _SILENT]
    spans = [Span(starts[block.first], starts[block.last] - 1) for block in blocks]
    return (
        tuple(Paragraph(span, b.kind, span) for span, b in zip(spans, blocks, strict=True)),
        [_level(block) for block in blocks if block.kind == "heading"],
    )


@cache
def _parser() -> MarkdownIt:
    """Blocks alone: what stands inside a paragraph never moves its edges."""
    parser = MarkdownIt("commonmark", {"maxNesting": _DEPTH}).enable("table")
    parser.use(front_matter_plugin)
    parser.block.ruler.at(
        "fence", _fence, {"alt": ["paragraph", "reference", "blockquote", "list"]}
    )
    parser.core.ruler.enableOnly(["normalize", "block"])
    return parser


@cache
def _inline_parser() -> MarkdownIt:
    return MarkdownIt("commonmark")


def _fence(state: StateBlock, first: int, end: int, silent: bool) -> bool:
    """The parser's fence rule, which also writes down whether a closing fence was found."""
    if not _fence_rule(state, first, end, silent):
        return False
    if not silent:
        token = state.tokens[-1]
        token.meta["closed"] = state.line - 1 > first and _closes(state, state.line - 1, token)
    return True


def _closes(state: StateBlock, line: int, token: Token) -> bool:
    start, stop = state.bMarks[line] + state.tShift[line], state.eMarks[line]
    mark = state.src[start:stop].rstrip(" \t")
    return (
        not state.is_code_block(line)
        and len(mark) >= len(token.markup)
        and set(mark) == {token.markup[0]}
    )


def _refuse_what_would_be_guessed(tokens: Sequence[Token], where: str) -> None:
    for token in tokens:
        line = token.map[0] + 1 if token.map else 0
        if token.level >= _DEPTH - 1:
            raise MarkupError(
                f"{where}: line {line}: lists or quotations nested {_DEPTH} deep, expected fewer "
                "levels; take some off"
            )
        if token.type == "fence" and not token.meta["closed"]:
            raise MarkupError(
                f"{where}: line {line}: the fence {token.markup} is not closed before the end of "
                f"{'the document' if token.level == 0 else 'the list or quotation it stands in'}; "
                f"close it with {token.markup} on a line of its own, indented as it was opened"
            )


def _line_starts(text: str) -> list[int]:
    """Offset of each line and of one more: a line ends one before the next one starts."""
    starts = [0]
    starts.extend(match.end() for match in re.finditer("\n", text))
    starts.append(len(text) + 1)
    return starts


def _blocks(tokens: Sequence[Token], text: str, starts: Sequence[int]) -> Iterator[_Block]:
    """Top-level blocks in order, without the blank lines at their ends; what lies between two of
    them and is not blank are the definitions that the parser consumed."""
    edge = 0
    for i, token in enumerate(tokens):
        if token.level or token.nesting < 0 or token.map is None:
            continue
        first, last = token.map
        yield from _definitions(text, starts, edge, first)
        edge = last
        while last > first and not _has_text(text, starts, last - 1):
            last -= 1
        while first < last and not _has_text(text, starts, first):
            first += 1
        if first == last:
            continue  # e.g. a paragraph of no-break spaces: nothing that could be evidence
        if token.type == "heading_open":
            yield _Block("heading", first, last, token, tokens[i + 1])
        else:
            yield _Block(_KINDS.get(token.type, token.type), first, last, token)
    yield from _definitions(text, starts, edge, len(starts) - 1)


def _definitions(text: str, starts: Sequence[int], first: int, last: int) -> Iterator[_Block]:
    """Runs of lines that are not blank in [first, last)."""
    begun: int | None = None
    for line in range(first, last):
        if _has_text(text, starts, line):
            begun = line if begun is None else begun
        elif begun is not None:
            yield _Block("definition", begun, line)
            begun = None
    if begun is not None:
        yield _Block("definition", begun, last)


def _has_text(text: str, starts: Sequence[int], line: int) -> bool:
    return _TEXT.search(text, starts[line], starts[line + 1] - 1) is not None


def _level(block: _Block) -> int:
    assert block.token is not None
    return int(block.token.tag[1:])


def _plain(inline: Token | None, environment: dict[str, Any]) -> str:
    """A heading's title as plain text: markup stripped, entities decoded, white space closed up."""
    if inline is None or not inline.content.strip():
        return ""
    parsed = _inline_parser().parseInline(inline.content, environment)
    return " ".join("".join(_words(parsed[0].children or [])).split())


def _words(tokens: Sequence[Token]) -> Iterator[str]:
    for token in tokens:
        if token.type in ("softbreak", "hardbreak"):
            yield " "
        elif token.type == "image":
            yield from _words(token.children or [])
        elif token.type != "html_inline":
            yield token.content


def _front_matter_title(tokens: Sequence[Token], where: str) -> str:
    """`title` of the front matter as it is written (`2024` and `yes` stay text), or ''."""
    if not tokens or tokens[0].type != "front_matter":
        return ""
    try:
        found = yaml.load(tokens[0].content, Loader=yaml.BaseLoader)  # plain strings, no objects
    except (yaml.YAMLError, RecursionError) as error:
        mark = getattr(error, "problem_mark", None)
        line = mark.line + 2 if mark is not None else 1
        raise MarkupError(
            f"{where}: line {line}: the front matter is not YAML "
            f"({getattr(error, 'problem', None) or error}); mend it, or write *** where a rule and "
            "no front matter is meant"
        ) from None
    if not tokens[0].content.strip():
        return ""
    if not isinstance(found, dict):
        raise MarkupError(
            f"{where}: line 2: the front matter is {type(found).__name__}, expected `name: value` "
            "lines; mend it, or write *** where a rule and no front matter is meant"
        )
    title = found.get("title", "")
    if not isinstance(title, str):
        raise MarkupError(
            f"{where}: the front matter's title is {type(title).__name__}, expected text; "
            "put it in quotation marks"
        )
    return " ".join(title.split())


def _stem(doc_id: str) -> str:
    return unquote(PurePosixPath(doc_id).name) or doc_id
