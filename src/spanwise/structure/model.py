"""Section trees over a document's paragraph table, and the check that makes them trustworthy.

A tree is a flat list of sections in document order with levels, as an outline is. A section owns
the paragraphs up to its first subsection; a heading with nothing but subsections owns none.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from spanwise.documents.model import Paragraph

MAX_LEVEL = 4


@dataclass(frozen=True, slots=True)
class Section:
    """One section.

    title: "" for text before the first heading, which has the document's title alone.
    level: 1 (top) to 4.
    first, last: its own paragraphs, inclusive; last = first - 1 where it has none of its own.
    start, end: code points of body from its first paragraph's start to its last one's end, read off
                the paragraph table; start = end where it has none.
    """

    title: str
    level: int
    first: int
    last: int
    start: int
    end: int


@dataclass(frozen=True, slots=True)
class Tree:
    """The sections of one document, in order."""

    doc_id: str
    sections: tuple[Section, ...]

    def parents(self) -> list[int]:
        """Index of each section's parent, -1 for the document itself. Shape (n,)."""
        parents: list[int] = []
        stack: list[int] = []
        for index, section in enumerate(self.sections):
            while stack and self.sections[stack[-1]].level >= section.level:
                stack.pop()
            parents.append(stack[-1] if stack else -1)
            stack.append(index)
        return parents

    def paths(self) -> list[tuple[str, ...]]:
        """Section titles from the top level down to each section, empty titles left out."""
        paths: list[tuple[str, ...]] = []
        for section, parent in zip(self.sections, self.parents(), strict=True):
            above = paths[parent] if parent >= 0 else ()
            paths.append((*above, section.title) if section.title else above)
        return paths

    def tops(self) -> list[int]:
        """Index of the top-level section that each section belongs to. Shape (n,)."""
        tops: list[int] = []
        for index, parent in enumerate(self.parents()):
            tops.append(tops[parent] if parent >= 0 else index)
        return tops


def make(
    doc_id: str, paragraphs: Sequence[Paragraph], outline: Iterable[tuple[str, int, int, int]]
) -> Tree:
    """A tree from (title, level, first, last) rows, with offsets from the paragraph table."""
    end_of_body = paragraphs[-1].span.end if paragraphs else 0
    sections = []
    for title, level, first, last in outline:
        start = paragraphs[first].span.start if first < len(paragraphs) else end_of_body
        end = paragraphs[last].span.end if last >= first else start
        sections.append(Section(title, level, first, last, start, end))
    return Tree(doc_id, tuple(sections))


def verify(tree: Tree, paragraphs: Sequence[Paragraph]) -> list[str]:
    """What is wrong with a tree; an empty list means verified.

    Sections must tile the paragraphs without gaps or overlaps, stay in bounds, nest legally (levels
    1 to 4, rising by at most one) and agree with the paragraph table to the code point.
    """
    found: list[str] = []
    count, expected, level = len(paragraphs), 0, 0
    for index, section in enumerate(tree.sections):
        name = f"section {index} {section.title!r}"
        if not 0 <= section.first <= count or not section.first - 1 <= section.last < count:
            found.append(
                f"{name}: paragraphs {section.first}..{section.last} are out of bounds "
                f"0..{count - 1}"
            )
            continue
        if section.first > expected:
            found.append(
                f"{name}: gap, paragraphs {expected}..{section.first - 1} are in no section"
            )
        elif section.first < expected:
            found.append(f"{name}: overlap, it starts at paragraph {section.first}, not {expected}")
        expected = max(expected, section.last + 1)
        if not 1 <= section.level <= MAX_LEVEL:
            found.append(f"{name}: illegal nesting, level {section.level} is not in 1..{MAX_LEVEL}")
        elif section.level > level + 1:
            found.append(f"{name}: illegal nesting, level {level} is followed by {section.level}")
        level = section.level
        (right,) = make(
            tree.doc_id, paragraphs, [(section.title, section.level, section.first, section.last)]
        ).sections
        if (section.start, section.end) != (right.start, right.end):
            found.append(
                f"{name}: offsets [{section.start}, {section.end}) disagree with the paragraph "
                f"table, which has [{right.start}, {right.end})"
            )
    if expected < count:
        found.append(f"gap: paragraphs {expected}..{count - 1} are in no section")
    return found
