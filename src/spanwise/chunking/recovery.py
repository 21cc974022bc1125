"""Spans of chunks that are only known as strings: exact, or an error that says why not.

A splitter that returns strings has lost its offsets. They follow from the strings and the text
where there is one way alone to lay the strings over the text; where there are two, nothing tells
them apart and nothing is guessed.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from unicodedata import normalize

from spanwise.errors import AmbiguousChunk, ChunkError
from spanwise.spans import Span

WHITESPACE = ("exact", "collapsed")
LISTED = 5
"""Places of an ambiguous chunk that its error lists."""


@dataclass(frozen=True, slots=True)
class Hints:
    """What a person writes to set the two settings, where the strings were given."""

    collapsed: str
    overlap: str


SETTINGS = Hints("whitespace: collapsed", "overlap")
"""In an entry of `external` in params.yaml."""

OPTIONS = Hints("--whitespace collapsed", "--overlap")
"""On the command line."""


@dataclass(frozen=True, slots=True)
class _Reading:
    """A text to search in. at: its code points' places in the document, None if they are equal."""

    text: str
    at: tuple[int, ...] | None = None

    def span(self, place: int, size: int) -> Span:
        """The document's span of `size` > 0 code points of this text."""
        if self.at is None:
            return Span(place, place + size)
        return Span(self.at[place], self.at[place + size - 1] + 1)

    def first(self, sought: str, low: int) -> Span | None:
        """The first occurrence that starts at `low` of the document or later."""
        begin = low if self.at is None else bisect_left(self.at, low)
        place = self.text.find(sought, begin)
        return None if place < 0 else self.span(place, len(sought))

    def last(self, sought: str, high: int, end: int | None) -> Span | None:
        """The last occurrence that starts at `high` of the document at most, and ends at `end` at
        most (None: anywhere)."""
        stop = len(self.text) if end is None else end
        if self.at is None:
            begin = high
        else:
            begin = bisect_right(self.at, high) - 1
            stop = stop if end is None else bisect_left(self.at, end)
        if begin < 0:
            return None
        place = self.text.rfind(sought, 0, max(0, min(begin + len(sought), stop)))
        return None if place < 0 else self.span(place, len(sought))


def collapsed(text: str) -> str:
    """A text with each run of white space as one blank, and none around it."""
    return " ".join(text.split())


def _collapsed(text: str) -> _Reading:
    made: list[str] = []
    at: list[int] = []
    for place, sign in enumerate(text):
        if not sign.isspace():
            made.append(sign)
            at.append(place)
        elif made and made[-1] != " ":
            made.append(" ")
            at.append(place)
    return _Reading("".join(made), tuple(at))


def recover(
    text: str, strings: Sequence[str], where: str, whitespace: str = "exact",
    overlap: int | None = None, hints: Hints = SETTINGS,
) -> list[Span]:
    """The spans of chunks in a text, from their strings.

    An alignment gives each string an occurrence of it, so that no chunk starts before the one
    before it starts, nor more than `overlap` code points before that one ends. Each bound on a
    start only rises with the start before it. So two extremes exist wherever any alignment does:
    the earliest, which takes the first occurrence that each bound allows, from the front, and the
    latest, from the back. Every alignment lies between them, chunk by chunk, so the alignment is
    the only one if and only if both are equal; and any occurrence between a chunk's two extremes is
    its place in some alignment (earliest before it, latest behind it).

    A splitter that changes white space could make of one place's text what stands at another. So
    an alignment is taken only if there is no second one when white space does not count, whatever
    `whitespace` is; every alignment of `exact` is one of those too, its outer white space aside.

    text:       of the document, in which offsets count code points.
    strings:    every chunk, in the order of the text.
    where:      names the document in messages.
    whitespace: `exact`: a string occurs as it is, or, where it occurs nowhere so, without its outer
                white space. `collapsed`: any run of white space stands for any other; a span begins
                and ends with what is none.
    overlap:    code points that a chunk may share with the one before it; None: any number.
    hints:      what messages call the two settings.
    returns:    a span for each string.
    raises:     ChunkError for a string that is empty, is not in the text, or not in this order;
                AmbiguousChunk where a second alignment exists, with the places of the first chunk
                that has several.
    """
    if whitespace not in WHITESPACE:
        raise ChunkError(f"whitespace {whitespace!r}: expected one of {', '.join(WHITESPACE)}")
    if overlap is not None and overlap < 0:
        raise ChunkError(f"overlap {overlap}: expected at least 0 code points")
    chunks = [
        _Chunk(where, number, len(strings), string, hints)
        for number, string in enumerate(strings, 1)
    ]
    bare = _collapsed(text)
    if whitespace == "collapsed":
        return _only(bare, text, chunks, overlap, collapsed=True)
    found = _only(_Reading(text), text, chunks, overlap, collapsed=False)
    _only(bare, text, chunks, overlap, collapsed=True)
    return found


def _only(
    reading: _Reading, text: str, chunks: Sequence[_Chunk], overlap: int | None, *, collapsed: bool
) -> list[Span]:
    """The one alignment in one reading of the text."""
    sought: list[str] = []
    earliest: list[Span] = []
    low = 0
    for chunk in chunks:
        one, found = _first(reading, low, collapsed, chunk)
        if found is None:
            raise ChunkError(_late(reading, text, one, low, chunk, earliest[-1], overlap))
        sought.append(one)
        earliest.append(found)
        low = found.start if overlap is None else max(found.start, found.end - overlap)
    latest: list[Span] = []
    high, end = len(text), None
    for one in reversed(sought):
        last = reading.last(one, high, end)
        assert last is not None  # the earliest alignment is within the same bounds
        latest.append(last)
        high, end = last.start, None if overlap is None else last.start + overlap
    for chunk, one, early, late in zip(chunks, sought, earliest, reversed(latest), strict=True):
        if early != late:
            raise AmbiguousChunk(_ambiguous(reading, text, one, early, late, chunk))
    return earliest


@dataclass(frozen=True, slots=True)
class _Chunk:
    """What a message calls a chunk."""

    where: str
    number: int
    of: int
    string: object
    hints: Hints

    def __str__(self) -> str:
        return f"{self.where}, chunk {self.number} of {self.of} ({shown(self.string)})"


def shown(value: object) -> str:
    """A value in quotes, cut where it is long."""
    text = repr(value)
    return text if len(text) <= 60 else f"{text[:40]}…{text[-16:]}"


def _first(
    reading: _Reading, low: int, white: bool, chunk: _Chunk
) -> tuple[str, Span | None]:
    """What is looked for in place of a chunk's string, and its first occurrence from `low` on.

    white: any run of white space stands for any other.
    """
    string = chunk.string
    if not isinstance(string, str):
        raise ChunkError(f"{chunk}: {type(string).__name__}, expected a string")
    core = string.strip()
    if not core:
        raise ChunkError(
            f"{chunk}: it holds no text, so it has no place of its own; leave such chunks out"
        )
    for form in (collapsed(core),) if white else (string, core):
        # Looked for from `low` first: a whole text would be read for each chunk.
        if (found := reading.first(form, low)) or form in reading.text:
            return form, found
    raise ChunkError(_missing(reading, collapsed(core) if white else core, white, chunk))


def _missing(reading: _Reading, core: str, white: bool, chunk: _Chunk) -> str:
    """Why a string that is nowhere in the text cannot be placed: where they part."""
    if not white and collapsed(core) in collapsed(reading.text):
        return (
            f"{chunk}: it differs from the document's text in white space; say "
            f"`{chunk.hints.collapsed}`, which takes any run of it for any other"
        )
    if normalize("NFC", core) in normalize("NFC", reading.text):
        return (
            f"{chunk}: it differs from the document's text in how accents and the like are written "
            "(Unicode normalisation); give the text that was split, or split this one as it is"
        )
    low, high = 0, len(core)  # the longest beginning that occurs, by halving
    while low < high:
        middle = (low + high + 1) // 2
        if core[:middle] in reading.text:
            low = middle
        else:
            high = middle - 1
    parts = "not even its first character does"
    if low:
        place = reading.text.find(core[:low])
        goes_on = shown(reading.text[place + low : place + low + 20])
        parts = (
            f"its first {low} code points stand at offset {reading.span(place, 1).start}, where "
            f"the text goes on {goes_on} and the chunk {shown(core[low : low + 20])}"
        )
    return (
        f"{chunk}: it does not occur in the document's text; {parts}. Give the text that was "
        "split, or a splitter that changes none"
    )


def _late(
    reading: _Reading, text: str, sought: str, low: int, chunk: _Chunk, before: Span,
    overlap: int | None,
) -> str:
    last = reading.last(sought, len(text), None)
    assert last is not None
    bound = f"starts at {before.start} at the earliest"
    if overlap is not None and low > before.start:
        bound = (
            f"ends at {before.end} at the earliest, and they may share {overlap} code points"
        )
    return (
        f"{chunk}: its last place is {_place(text, last)}, but chunk {chunk.number - 1} {bound}; "
        "give all chunks in the order of the text"
        + ("" if overlap is None else f", or allow a larger `{chunk.hints.overlap}`")
    )


def _ambiguous(
    reading: _Reading, text: str, sought: str, early: Span, late: Span, chunk: _Chunk
) -> str:
    places = [early]
    more = 0
    while (after := reading.first(sought, places[-1].start + 1)) and after.start < late.start:
        if len(places) + 1 == LISTED:
            more = 1
            break
        places.append(after)
    listed = ", ".join(_place(text, place) for place in places)
    return (
        f"{chunk}: ambiguous, it can stand at {listed}{', and others' if more else ''} or "
        f"{_place(text, late)}, with every other chunk in order; white space aside, the strings "
        "do not tell which. Take a splitter that gives offsets, or say how many code points "
        f"neighbouring chunks share at most (`{chunk.hints.overlap}`)"
    )


def _place(text: str, span: Span) -> str:
    return f"offset {span.start} (line {text.count(chr(10), 0, span.start) + 1})"
