"""Quoted evidence found again in the text it was taken from: exact, then fuzzy, then its section.

This is the one place of the corpora that searches, because annotators hand over text, not offsets.
What it finds is a span of `body`, and how it was found is always reported.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

from rapidfuzz import fuzz

from spanwise.documents.model import Document
from spanwise.spans import Span

FUZZY_RATIO = 90.0
"""Least rapidfuzz ratio (0..100, white space closed up) of an item to whole paragraphs."""

SECTION_RATIO = 80.0
"""Least rapidfuzz partial ratio (0..100) of an item and a section, the shorter in the longer."""

PART_CHARACTERS = 40
"""Shorter text is never looked for inside longer text: it would be found anywhere."""

How = Literal["exact", "fuzzy", "section"]


@dataclass(frozen=True, slots=True)
class Match:
    """Where an item stands in `body`, how it was found, and whether other places fit as well."""

    span: Span
    how: How
    ambiguous: bool = False


@dataclass(frozen=True, slots=True)
class _Section:
    """Paragraphs [first, last) under one heading; `own_last` ends before the first subsection."""

    names: frozenset[str]
    first: int
    own_last: int
    last: int


def _close(text: str) -> str:
    return " ".join(text.split())


class Matcher:
    """Finds evidence items in one document.

    exact:   the item is one paragraph (white space at either end aside); of equal paragraphs the
             first is taken, and the match is ambiguous.
    fuzzy:   white space closed up, either the item is part of a paragraph (at least
             PART_CHARACTERS long; the span is that part), or a run of consecutive whole paragraphs
             reaches FUZZY_RATIO: the highest ratio, then the fewest paragraphs, then the earliest.
    section: the item is a section's title or its ` ::: ` trail, or it and a section's own text
             reach SECTION_RATIO, the shorter being looked for in the longer (both at least
             PART_CHARACTERS). The span is the section's text up to its first subsection, or with
             all its subsections where it has no text of its own.
    """

    def __init__(self, document: Document) -> None:
        self._document = document
        self._texts = [document.body[p.span.start : p.span.end] for p in document.paragraphs]
        self._closed = [_close(text) for text in self._texts]
        self._places: dict[str, list[int]] = {}
        for i, text in enumerate(self._texts):
            self._places.setdefault(text.strip(), []).append(i)
        self._sections = list(_sections(document))

    def match(self, item: str) -> Match | None:
        """The best place of one evidence item, or None. A blank item has none."""
        wanted = item.strip()
        if not wanted:
            return None
        places = self._places.get(wanted, [])
        if places:
            return Match(self._run(places[0], places[0] + 1), "exact", len(places) > 1)
        closed = _close(wanted)
        return self._part(closed) or self._paragraphs(closed) or self._section(closed)

    def _run(self, first: int, last: int) -> Span:
        paragraphs = self._document.paragraphs
        return Span(paragraphs[first].span.start, paragraphs[last - 1].span.end)

    def _part(self, closed: str) -> Match | None:
        inside = [i for i, text in enumerate(self._closed) if closed in text]
        if len(closed) < PART_CHARACTERS or not inside:
            return None
        pattern = re.compile(r"\s+".join(map(re.escape, closed.split())))
        found = pattern.search(self._texts[inside[0]])
        assert found is not None, "closed text contains it, so the text does up to white space"
        start = self._document.paragraphs[inside[0]].span.start
        return Match(Span(start + found.start(), start + found.end()), "fuzzy", len(inside) > 1)

    def _paragraphs(self, closed: str) -> Match | None:
        # A ratio of 2 M / (a + b) with M <= min(a, b) bounds the lengths worth comparing.
        longest = len(closed) * (200 / FUZZY_RATIO - 1)
        shortest = len(closed) / (200 / FUZZY_RATIO - 1)
        best: tuple[float, int, int] | None = None
        place = (0, 0)
        for first in range(len(self._closed)):
            length = -1
            for last in range(first, len(self._closed)):
                length += len(self._closed[last]) + 1
                if length > longest:
                    break
                if length < shortest:
                    continue
                text = " ".join(self._closed[first : last + 1])
                ratio = fuzz.ratio(closed, text, score_cutoff=FUZZY_RATIO)
                key = (ratio, first - last, -first)
                if ratio >= FUZZY_RATIO and (best is None or key > best):
                    best, place = key, (first, last + 1)
        return None if best is None else Match(self._run(*place), "fuzzy")

    def _section(self, closed: str) -> Match | None:
        named = [s for s in self._sections if closed in s.names and s.first < s.last]
        if named:
            section = named[0]
            last = section.own_last if section.first < section.own_last else section.last
            return Match(self._run(section.first, last), "section", len(named) > 1)
        best, place = 0.0, None
        for section in self._sections:
            text = " ".join(self._closed[section.first : section.own_last])
            if min(len(text), len(closed)) < PART_CHARACTERS:
                continue
            ratio = fuzz.partial_ratio(closed, text, score_cutoff=SECTION_RATIO)
            if ratio >= SECTION_RATIO and ratio > best:
                best, place = ratio, section
        return None if place is None else Match(self._run(place.first, place.own_last), "section")


def _sections(document: Document) -> Iterator[_Section]:
    """The preamble and every heading's stretch, in order of the document."""
    headings, end = document.headings, len(document.paragraphs)
    yield _Section(frozenset(), 0, headings[0].paragraph if headings else end,
                   headings[0].paragraph if headings else end)
    trail: list[tuple[int, str]] = []
    for i, heading in enumerate(headings):
        while trail and trail[-1][0] >= heading.level:
            trail.pop()
        trail.append((heading.level, heading.title))
        later = headings[i + 1 :]
        own_last = later[0].paragraph if later else end
        last = next((h.paragraph for h in later if h.level <= heading.level), end)
        names = frozenset({heading.title, " ::: ".join(title for _, title in trail)})
        yield _Section(names, heading.paragraph, own_last, last)
