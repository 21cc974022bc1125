"""From an outline as a model gave it to a legal one, by rules, or to a counted failure.

Starts are trusted and ends follow from them: a model says where a topic begins more reliably than
where it ends, and ranges that share their edges (half-open ones) come out right.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace

from spanwise.documents.model import Paragraph
from spanwise.structure.model import MAX_LEVEL, Section, Tree, make, verify
from spanwise.text.scripts import letters_of

NEAR_VALID = 0.5
"""An outline is near-valid if at least this share of paragraphs stays in a section that claimed
them, and at least this share of its sections stays. Below a half it would be more the repair's
outline than the model's."""

TITLE_CHARACTERS = 80
"""Longest title, in code points: a title stands in every prefix of its section."""

_PART = re.compile(r"Part \d+(?: \(\d+\))?")

Line = tuple[str, int, int, int]
"""(title, level, first, last) of a section, paragraphs inclusive, as `model.make` takes them."""


@dataclass(frozen=True, slots=True)
class Row:
    """One section as a model gave it; what could not be read is None, a title is then ""."""

    title: str
    level: int | None
    first: int | None
    last: int | None


@dataclass(frozen=True, slots=True)
class Repaired:
    """A legal tiling made from an answer.

    lines:      the sections; empty if no section of the answer could be placed.
    paragraphs: share of paragraphs that are in a section that claimed them, in [0, 1].
    sections:   share of the answer's sections that are left, in [0, 1].
    """

    lines: tuple[Line, ...]
    paragraphs: float
    sections: float

    @property
    def near_valid(self) -> bool:
        """True if this is still the model's outline."""
        return bool(self.lines) and min(self.paragraphs, self.sections) >= NEAR_VALID


def own(rows: Sequence[Row]) -> list[Row]:
    """Rows in which a section that also claims all of its subsections claims only what precedes
    the first of them: the same outline in the notation of section trees.

    Legal outlines stay as they are: there no section reaches into its subsections.
    """
    found = list(rows)
    for index, row in enumerate(rows):
        if row.level is None or row.first is None or row.last is None:
            continue
        below: list[tuple[int, int]] = []
        for later in rows[index + 1 :]:
            if later.level is None or later.first is None or later.last is None:
                below = []
                break
            if later.level <= row.level:
                break
            below.append((later.first, later.last))
        if below and all(row.first <= first and last <= row.last for first, last in below):
            found[index] = replace(row, last=min(row.last, below[0][0] - 1))
    return found


def close_up(levels: Sequence[int]) -> list[int]:
    """Levels that rise by at most one, 1 to 4: each is one below the nearest earlier level of a
    higher rank, as native headings are read. Legal levels stay as they are.

    >>> close_up([2, 2, 4, 3, 1])
    [1, 1, 2, 2, 1]
    """
    found, stack = [], list[int]()
    for level in levels:
        while stack and stack[-1] >= level:
            stack.pop()
        stack.append(level)
        found.append(min(len(stack), MAX_LEVEL))
    return found


def tree_of(doc_id: str, paragraphs: Sequence[Paragraph], lines: Sequence[Line]) -> Tree:
    """A tree of any lines whatsoever; a section out of bounds gets no offsets."""
    sections: list[Section] = []
    for title, level, first, last in lines:
        if 0 <= first <= len(paragraphs) and first - 1 <= last < len(paragraphs):
            sections += make(doc_id, paragraphs, [(title, level, first, last)]).sections
        else:
            sections.append(Section(title, level, first, last, 0, 0))
    return Tree(doc_id, tuple(sections))


def lines_of(rows: Sequence[Row]) -> list[Line] | None:
    """Rows as lines, or None if anything of them could not be read."""
    lines: list[Line] = []
    for row in rows:
        if row.level is None or row.first is None or row.last is None:
            return None
        lines.append((row.title, row.level, row.first, row.last))
    return lines


def violations(
    rows: Sequence[Row], paragraphs: Sequence[Paragraph], scripts: frozenset[str] = frozenset()
) -> list[str]:
    """What is wrong with an answer, in words a model can act on; an empty list means usable.

    rows:    after `own`.
    scripts: scripts that the document is written in; none: any title will do.
    """
    if not rows:
        return ["the answer holds no sections"]
    lines = lines_of(rows)
    if lines is None:
        return [
            f"section {index} {row.title[:TITLE_CHARACTERS]!r}: no readable "
            + ", ".join(n for n in ("level", "first", "last") if getattr(row, n) is None)
            for index, row in enumerate(rows)
            if None in (row.level, row.first, row.last)
        ]
    found = verify(tree_of("", paragraphs, lines), paragraphs)
    return found + title_faults(lines, scripts)


def repair(rows: Sequence[Row], paragraphs: Sequence[Paragraph]) -> Repaired:
    """Snap an answer to a legal tiling of the paragraphs.

    A legal one stays as it is. Otherwise, in this order: a section without a readable start, one
    wholly out of bounds and a heading with neither text nor subsections leave; a reversed range is
    turned round; an unreadable level is the level before it; sections are sorted by start, then
    level; of several with one start and level the first stays; the first section begins at the
    first paragraph; each section ends where the next one begins, so that gaps go to the section
    before and overlaps to the section after; levels close up. Titles are left alone.

    rows:       in any state.
    paragraphs: of the document, or of the window that was asked about.
    """
    count = len(paragraphs)
    rows = own(rows)
    lines = lines_of(rows)
    if lines is not None and not verify(tree_of("", paragraphs, lines), paragraphs):
        return Repaired(tuple(lines), 1.0, 1.0)
    placed = sorted(_placeable(rows, count), key=lambda line: (line[2], line[1]))
    kept = [
        line for index, line in enumerate(placed)
        if not index or (line[1], line[2]) != (placed[index - 1][1], placed[index - 1][2])
    ]
    if not kept:
        return Repaired((), 0.0, 0.0)
    starts = [0 if line[2] == kept[0][2] else line[2] for line in kept]
    stops = [*starts[1:], count]
    levels = close_up([line[1] for line in kept])
    made = [
        (line[0], level, start, stop - 1)
        for line, level, start, stop in zip(kept, levels, starts, stops, strict=True)
    ]
    claimed = sum(
        max(0, min(after[3], before[3]) - max(after[2], before[2]) + 1)
        for before, after in zip(kept, made, strict=True)
    )
    return Repaired(tuple(made), claimed / count, len(kept) / len(rows))


def _placeable(rows: Sequence[Row], count: int) -> list[Line]:
    """Rows with a place among `count` paragraphs, clipped to them, each with a level."""
    found: list[Line] = []
    level = 1
    for index, row in enumerate(rows):
        level = level if row.level is None else row.level
        if row.first is None:
            continue
        first, last = row.first, row.last
        if last is None:  # it reaches to where another one begins
            last = min((r.first for r in rows if r.first is not None and r.first > first),
                       default=count) - 1
        elif last < first - 1:
            first, last = last, first
        after = rows[index + 1].level if index + 1 < len(rows) else None
        idle = last < first and (after is None or after <= level)
        if first < count and last >= (0 if last >= first else -1) and not idle:
            found.append((row.title, level, max(0, first), min(last, count - 1)))
    return found


def join(left: Sequence[Line], right: Sequence[Line]) -> tuple[list[Line], bool]:
    """Two legal tilings of overlapping runs of paragraphs as one.

    The seam is the boundary that both have inside the overlap, else a boundary that one of them
    has; of several the one nearest to the overlap's middle, the earlier on ties. Before it stands
    the left one's outline, from it on the right one's, whose section across the seam begins there.
    Where neither has a boundary inside the overlap, one section runs through it, under the left
    one's title. Levels are kept, and close up only where they would rise by more than one.

    left, right: with paragraph numbers of the document; right begins inside left or right after it.
    returns:     the tiling, and whether both agreed on the seam.
    """
    begin = right[0][2]
    end = max(line[3] for line in left)
    # Every outline begins a section where its window begins, so that this start says nothing.
    a, b = ({line[2] for line in lines if begin < line[2] <= end} for lines in (left, right))
    agreed = bool(a & b)
    if begin > end:
        head, tail = list(left), list(right)
    elif places := (a & b) or (a | b):
        seam = min(places, key=lambda start: (abs(2 * start - begin - end - 1), start))
        head = [(t, lv, first, min(last, seam - 1)) for t, lv, first, last in left if first < seam]
        tail = [(t, lv, max(first, seam), last) for t, lv, first, last in right
                if first >= seam or last >= seam]
    else:
        stop = next(last for _, _, _, last in right if last >= end)
        head = [line for line in left if line[2] <= end]
        head[-1] = (*head[-1][:3], stop)
        tail = [line for line in right if line[2] > stop]
    joined = head + tail
    levels = close_up([line[1] for line in joined])
    return [(line[0], lv, *line[2:]) for line, lv in zip(joined, levels, strict=True)], agreed


def title_faults(lines: Sequence[Line], scripts: frozenset[str] = frozenset()) -> list[str]:
    """What is wrong with titles: none, too long, in another script than the document, or that of a
    section above or of an earlier one beside it. An empty list means usable."""
    found: list[str] = []

    def look(index: int, title: str, taken: set[str]) -> str:
        if fault := title_fault(title, taken, scripts):
            found.append(f"section {index} {title[:TITLE_CHARACTERS]!r}: {fault}")
        return title

    choose_titles(lines, look)
    return found


def mend_titles(
    lines: Sequence[Line], scripts: frozenset[str] = frozenset()
) -> tuple[list[Line], int]:
    """Titles without a fault, and how many had to change.

    A long title is cut at a word; one that is taken gets a number; what has no title or one in
    another script than the document becomes `Part n`, n being the section's number from 1.
    """

    def choose(index: int, title: str, taken: set[str]) -> str:
        return next(
            candidate for candidate in _candidates(title, f"Part {index + 1}", taken, scripts)
            if not title_fault(candidate, taken, scripts)
        )

    chosen = choose_titles(lines, choose)
    changed = sum(title != line[0] for title, line in zip(chosen, lines, strict=True))
    return [(title, *line[1:]) for title, line in zip(chosen, lines, strict=True)], changed


def choose_titles(
    lines: Sequence[Line], choose: Callable[[int, str, set[str]], str]
) -> list[str]:
    """Choose each title in order, told which ones those above and beside it have taken."""
    parents = Tree("", tuple(Section(*line, 0, 0) for line in lines)).parents()
    beside: dict[int, set[str]] = {}
    chosen: list[str] = []
    for index, (line, parent) in enumerate(zip(lines, parents, strict=True)):
        taken = set(beside.setdefault(parent, set()))
        above = parent
        while above >= 0:
            taken.add(chosen[above].casefold())
            above = parents[above]
        chosen.append(choose(index, line[0], taken))
        beside[parent].add(chosen[-1].casefold())
    return chosen


def _candidates(
    title: str, part: str, taken: set[str], scripts: frozenset[str]
) -> Iterator[str]:
    yield title
    for base in (_cut(title, TITLE_CHARACTERS), part):
        if title_fault(base, set(), scripts):
            continue  # a number would not make it a title
        yield base
        for number in range(2, len(taken) + 3):
            mark = f" ({number})"
            yield _cut(base, TITLE_CHARACTERS - len(mark)) + mark


def _cut(title: str, limit: int) -> str:
    """The title's beginning, at most `limit` code points, cut back to a word's end if it has one
    in its later half."""
    if len(title) <= limit:
        return title
    space = title.rfind(" ", limit // 2, limit + 1)
    return title[: space if space > 0 else limit].rstrip()


def title_fault(title: str, taken: set[str], scripts: frozenset[str]) -> str | None:
    """Why a title cannot stay, or None.

    taken:   titles above it and beside it, case-folded.
    scripts: as `scripts_of` finds them in the document; none: any will do.
    """
    if not any(character.isalnum() for character in title):
        return "no title"
    if len(title) > TITLE_CHARACTERS:
        return f"a title of more than {TITLE_CHARACTERS} characters"
    letters = letters_of(title)
    if scripts and letters and not letters.keys() & scripts and not _PART.fullmatch(title):
        return "a title that is not in the language of the text"
    if title.casefold() in taken:
        return "the title of another section above it or beside it"
    return None
