"""How much of a document a language model is shown: shortened paragraphs, overlapping windows."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import accumulate

from spanwise.documents.model import Document
from spanwise.text.tokens import Tokenizer

SHOWN_CHARACTERS = (1_000_000, 1200, 800, 500, 300, 200)
"""Longest paragraph that is shown whole, in code points: the first of these at which a document
fits into one window, else the last, and as many windows as that takes. The first is no limit."""

# Of a window's paragraphs, a quarter stands in the next one too: a section or two, whole.
_OVERLAP = 0.25
_LEAST_OVERLAP = 3  # paragraphs: two boundaries on which windows can agree


def counter(tokenizer: Tokenizer) -> Callable[[str], int]:
    """How many tokens a text may take in a language model's window, by the study's tokenizer.

    Words are no tokens: a model's own tokenizer cuts some into several, in English 1.3 of them on
    average, so where the study counts words every third code point counts here, which no text of
    words reaches.
    """
    if tokenizer.name == "words":
        return lambda text: len(text) // 3 + 1
    return tokenizer.count


def shorten(text: str, limit: int) -> str:
    """A paragraph on one line, in at most `limit` code points: white space closes up, and of a
    longer one stand the first two thirds and the last third, each cut at a word if it has one in
    its half next to the gap.

    >>> shorten("one two three four five six seven", 20)
    'one two … seven'
    """
    line = " ".join(text.split())
    if len(line) <= limit:
        return line
    room = limit - 3
    head, tail = line[: room * 2 // 3 + 1], line[-(room - room * 2 // 3) - 1 :]
    left, right = head.rfind(" ", len(head) // 2), tail.find(" ", 0, len(tail) // 2 + 1)
    head = head[: left if left >= 0 else len(head) - 1]
    return f"{head.rstrip()} … {tail[(right if right >= 0 else 0) + 1 :].lstrip()}"


def texts(document: Document) -> list[str]:
    """The text of each paragraph."""
    return [document.body[p.span.start : p.span.end] for p in document.paragraphs]


def windows(tokens: Sequence[int], room: Callable[[int], int]) -> list[tuple[int, int]]:
    """Overlapping runs [first, stop) of paragraphs that fit, together all of them.

    Each is as long as fits, a quarter of it (at least 3 paragraphs) stands in the next one too, and
    each goes at least one paragraph further than the one before, whether that fits or not. The last
    one begins as early as fits.

    tokens: of each paragraph. room: tokens that n paragraphs may take.
    """
    total = [0, *accumulate(tokens)]
    found: list[tuple[int, int]] = []
    first = stop = 0
    while stop < len(tokens):
        stop += 1
        while stop < len(tokens) and total[stop + 1] - total[first] <= room(stop + 1 - first):
            stop += 1
        found.append((first, stop))
        overlap = max(_LEAST_OVERLAP, int((stop - first) * _OVERLAP))
        first = max(first + 1, stop - overlap)
    if len(found) > 1:
        (before, _), (first, stop) = found[-2:]
        while first - 1 > before and total[stop] - total[first - 1] <= room(stop - first + 1):
            first -= 1
        found[-1] = (first, stop)
    return found
