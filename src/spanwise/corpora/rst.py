"""reStructuredText to documents, by docutils: sections as headings, one paragraph for each block.

Directives and roles that docutils does not know (Sphinx has many) are read as what they hold:
their text stays. No file is included and no raw markup is passed on: such a directive stays as it
is written, and so does what docutils cannot read.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from spanwise.corpora.linear import Linear, closed
from spanwise.documents.model import Document
from spanwise.errors import MarkupError

_DIRECTIVE = re.compile(r"^[ \t]*\.\. (?:\|[^|\n]+\| )?([\w:.+-]+?)[ ]?::(?:\s|$)", re.MULTILINE)
_ROLE = re.compile(r":([A-Za-z][\w:.+-]*):`|`:([A-Za-z][\w:.+-]*):")
_OPTION = re.compile(r"^:[\w-]+:.*(?:\n|$)", re.MULTILINE)
_NEVER = ("include", "raw", "csv-table")
"""Directives that would open other files or pass on other markup."""
_FENCES = frozenset({"literal_block", "doctest_block", "math_block", "raw"})
_LISTS = frozenset({"bullet_list", "enumerated_list", "definition_list", "field_list",
                    "option_list", "docinfo"})
_SILENT = frozenset({"comment", "target", "substitution_definition", "pending", "image", "meta"})


def read_if_any(
    doc_id: str, text: str, *, stem: str, source: str = "", version: str = "1",
    where: str | None = None,
) -> tuple[Document | None, Counter[str]]:
    """Read one reStructuredText document.

    text:    decoded text (LF line endings).
    returns: the document (None without text) and counts. Its title is the sole section of the
             first level that holds all others, as in docutils, else the stem.
    raises:  MarkupError for nesting beyond what the parser can follow.
    """
    where = where or doc_id
    linear = Linear()
    _Walk(linear).through(_parsed(text, where), 0)
    linear.sole_heading_to_title()
    document = linear.build(
        doc_id, stem=stem, source=source, version=version, labels=("rst",)
    )
    return document, linear.counts


def _parsed(text: str, where: str) -> Any:
    import docutils.frontend
    import docutils.parsers.rst
    import docutils.utils
    from docutils.transforms.references import Substitutions

    parser = docutils.parsers.rst.Parser()
    settings = docutils.frontend.get_default_settings(docutils.parsers.rst.Parser)
    settings.report_level = settings.halt_level = 5  # said by us, not printed
    settings.file_insertion_enabled = settings.raw_enabled = False
    settings.syntax_highlight = "none"
    settings.smart_quotes = False
    document = docutils.utils.new_document(where, settings)
    try:
        with _known(text):
            parser.parse(text, document)
            Substitutions(document).apply()
    except RecursionError:
        raise MarkupError(f"{where}: nested too deep to be read; take some levels off") from None
    return document


@contextmanager
def _known(text: str) -> Iterator[None]:
    """Let docutils know, for one text, every directive and role that it would throw away."""
    from docutils import nodes
    from docutils.parsers.rst import Directive, directives, languages, roles

    class Holding(Directive):  # type: ignore[misc]
        """A directive of somebody else's: what it holds, read as text of the document."""

        has_content, optional_arguments = True, 1
        final_argument_whitespace = True

        def run(self) -> list[Any]:
            found = nodes.container()
            # Where no option is known, options are lines of the argument.
            said = _OPTION.sub("", "\n".join(self.arguments))
            if said.strip():
                found += nodes.paragraph("", "", *self.state.inline_text(said, self.lineno)[0])
            self.state.nested_parse(self.content, self.content_offset, found, match_titles=False)
            return [found]

    class AsWritten(Directive):  # type: ignore[misc]
        """A directive that would open a file: it stays as it is written."""

        has_content, optional_arguments = True, 1
        final_argument_whitespace = True
        option_spec = None

        def run(self) -> list[Any]:
            return [nodes.literal_block(self.block_text, self.block_text)]

    def plain(name: str, _raw: str, words: str, *_: Any, **__: Any) -> tuple[list[Any], list[Any]]:
        shown = re.sub(r"\s*<[^<>]*>$", "", words).lstrip("!~") or words
        return [nodes.inline(words, nodes.unescape(shown), classes=[name])], []

    english = languages.get_language("en")
    known = {*directives._directive_registry, *getattr(english, "directives", {})}
    kept = dict(directives._directives), dict(roles._roles)
    try:
        for name in {found[1].lower() for found in _DIRECTIVE.finditer(text)} - known:
            directives.register_directive(name, Holding)
        for name in _NEVER:
            directives.register_directive(name, AsWritten)
        told = {*roles._role_registry, *getattr(english, "roles", {})}
        for match in _ROLE.finditer(text):
            if (name := (match[1] or match[2]).lower()) not in told:
                roles.register_local_role(name, plain)
        yield
    finally:
        for registry, before in zip((directives._directives, roles._roles), kept, strict=True):
            registry.clear()
            registry.update(before)


class _Walk:
    """One way through docutils' tree."""

    def __init__(self, linear: Linear) -> None:
        self.linear = linear

    def through(self, node: Any, level: int, kind: str = "paragraph") -> None:
        for child in node.children:
            self._child(child, level, kind)

    def _child(self, child: Any, level: int, kind: str) -> None:
        name = child.tagname
        if name == "section":
            self.through(child, level + 1, kind)
        elif name == "title" and child.parent.tagname == "section":
            self.linear.heading(level, child.astext())
        elif name in _FENCES:
            self.linear.paragraph(child.astext(), "fence")
        elif name in _LISTS and not any(self._blocks(child)):
            self.linear.paragraph("\n".join(_items(child)), "list")
        elif name == "table":
            self.linear.paragraph("\n".join(_rows(child)), "table")
        elif name == "line_block":
            self.linear.paragraph("\n".join(_lines(child)), kind)
        elif name in ("footnote", "citation"):
            self.linear.paragraph(" ".join(closed(c.astext()) for c in child.children), "footnote")
        elif name == "system_message":
            self._message(child)
        elif name in _SILENT:
            if name == "image":
                self.linear.counts["reStructuredText images left out"] += 1
        elif any(hasattr(inner, "tagname") and inner.tagname != "#text"
                 and _is_block(inner) for inner in child.children):
            self.through(child, level, "quote" if name == "block_quote" else kind)
        else:
            self.linear.paragraph(closed(child.astext()), kind)

    @staticmethod
    def _blocks(node: Any) -> Iterator[bool]:
        """Whether something in a list is code: then its items stand for themselves."""
        yield from (True for inner in node.findall() if inner.tagname in _FENCES)

    def _message(self, message: Any) -> None:
        """What docutils could not read stays as it is written."""
        for child in message.children:
            if child.tagname == "literal_block":
                self.linear.counts["reStructuredText blocks kept as they are written"] += 1
                self.linear.paragraph(child.astext(), "fence")


def _is_block(node: Any) -> bool:
    from docutils import nodes

    return isinstance(node, nodes.Body | nodes.Part | nodes.Structural) and not isinstance(
        node, nodes.Inline
    )


def _items(node: Any, indent: str = "") -> Iterator[str]:
    """A line for each item, those of inner lists indented below it."""
    start = node.get("start", 1) if node.tagname == "enumerated_list" else 1
    for number, item in enumerate(node.children, start):
        mark = {"bullet_list": "- ", "enumerated_list": f"{number}. "}.get(node.tagname, "")
        words: list[str] = []
        inner: list[Any] = []
        for part in item.children or [item]:
            nested = part.children if part.tagname in ("definition", "field_body",
                                                       "description") else [part]
            for one in nested:
                if one.tagname in _LISTS:
                    inner.append(one)
                elif one.tagname not in _SILENT:
                    words.append(closed(one.astext()))
        if item.tagname == "field" and words:
            words[0] += ":"
        if shown := " ".join(word for word in words if word):
            yield f"{indent}{mark}{shown}"
        for one in inner:
            yield from _items(one, indent + "  ")


def _rows(table: Any) -> Iterator[str]:
    for node in table.children:
        if node.tagname == "title":
            yield closed(node.astext())
    for row in table.findall():
        if row.tagname == "row":
            yield " | ".join(closed(entry.astext()) for entry in row.children)


def _lines(block: Any) -> Iterator[str]:
    for line in block.children:
        if line.tagname == "line_block":
            yield from ("  " + inner for inner in _lines(line))
        elif words := closed(line.astext()):
            yield words
