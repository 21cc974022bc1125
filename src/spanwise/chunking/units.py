"""Retrieval units over raw text: blocks, sections and windows.

None of them adds a heading or anything else to a unit: a unit's text is its slice of raw.
"""

from __future__ import annotations

from collections.abc import Sequence

from spanwise.documents.model import Paragraph
from spanwise.errors import InputError
from spanwise.spans import Span
from spanwise.text.tokens import Tokenizer


def blocks(view: Sequence[Paragraph]) -> list[Span]:
    """Every block of a raw view: a heading, a paragraph, a list, a fence, a table, each whole."""
    return [paragraph.span for paragraph in view]


def sections(view: Sequence[Paragraph]) -> list[Span]:
    """From each heading to the next one of any level; text before the first one is a unit too."""
    found: list[Span] = []
    for paragraph in view:
        if paragraph.kind == "heading" or not found:
            found.append(paragraph.span)
        else:
            found[-1] = Span(found[-1].start, paragraph.span.end)
    return found


def windows(text: str, tokenizer: Tokenizer, size: int, overlap: int) -> list[Span]:
    """Windows of `size` tokens, each `size - overlap` after the last; the final one may be shorter.

    raises: InputError unless 0 <= overlap < size.
    """
    if not 0 <= overlap < size:
        raise InputError(
            f"windows of {size} tokens with an overlap of {overlap}: the overlap must be at least "
            "0 and below the size"
        )
    offsets = tokenizer.offsets(text)
    found: list[Span] = []
    for first in range(0, len(offsets), size - overlap):
        last = min(first + size, len(offsets)) - 1
        span = Span(int(offsets[first, 0]), int(offsets[last, 1]))
        # One character can be several tokens: a small step may begin inside it again.
        if not found or span.start > found[-1].start:
            found.append(span)
        if last == len(offsets) - 1:
            break
    return found
