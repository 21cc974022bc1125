"""Where a text may be cut, in tokens and code points, and how a long stretch is split there.

A sentence end is the best place to cut. A sentence above the cap is cut at its line ends (fences
and tables) and, failing those, at a token edge that begins a word.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from spanwise.documents.model import Document, Paragraph
from spanwise.text.sentences import line_ends, sentence_ends
from spanwise.text.tokens import Tokenizer


@dataclass(frozen=True, slots=True)
class Ruler:
    """A body measured in tokens.

    starts: (n,) first code point of each token, ascending.
    cuts:   (m,) code points where a cut is allowed, ascending, the last the end of the text; no two
            neighbours are more than `cap` tokens apart.
    forced: cuts that are no sentence end: a sentence above the cap made them necessary.
    """

    starts: NDArray[np.int64]
    cuts: tuple[int, ...]
    forced: int

    def tokens(self, start: int, end: int) -> int:
        """Tokens that begin in [start, end)."""
        low, high = np.searchsorted(self.starts, (start, end))
        return int(high - low)

    def at(self, start: int, tokens: float) -> float:
        """Position, in tokens from the beginning, of `tokens` after `start`."""
        return float(np.searchsorted(self.starts, start)) + tokens

    def between(self, start: int, end: int) -> Sequence[int]:
        """The cuts strictly inside (start, end)."""
        return self.cuts[bisect_right(self.cuts, start) : bisect_left(self.cuts, end)]


def measure(document: Document, tokenizer: Tokenizer, cap: int) -> Ruler:
    """Measure a document's body.

    White space between paragraphs belongs to the text before it, so that cuts tile the body.
    """
    body = document.body
    offsets = tokenizer.offsets(body)
    starts = offsets[:, 0].copy() if len(offsets) else np.zeros(0, dtype=np.int64)
    cuts: list[int] = []
    forced = 0
    for index, paragraph in enumerate(document.paragraphs):
        begin = paragraph.span.start
        follows = index + 1 < len(document.paragraphs)
        stop = document.paragraphs[index + 1].span.start if follows else len(body)
        ends = _sentence_cuts(body, paragraph, stop)
        for end in ends:
            # A piece is within the cap or is cut again, so that a chunk can always end somewhere.
            inner = _divide(body, starts, begin, end, cap, tokenizer)
            forced += len(inner)
            cuts += [*inner, end]
            begin = end
    return Ruler(starts, tuple(cuts), forced)


def _sentence_cuts(body: str, paragraph: Paragraph, stop: int) -> list[int]:
    span = paragraph.span
    text = body[span.start : span.end]
    ends = [span.start + end for end in sentence_ends(text, paragraph.kind)]
    return [*ends[:-1], stop] if ends else [stop]


def _divide(
    body: str, starts: NDArray[np.int64], begin: int, end: int, cap: int, tokenizer: Tokenizer
) -> list[int]:
    """Cuts inside one sentence so that no piece has more than `cap` tokens; [] if it fits."""
    low, high = (int(i) for i in np.searchsorted(starts, (begin, end)))
    if high - low <= cap:
        return []
    lines = [begin + offset for offset in line_ends(body[begin:end])[:-1]]
    made: list[int] = []
    while high - low > cap:
        limit = int(starts[low + cap])  # the first token that no longer fits
        fitting = [cut for cut in lines if int(starts[low]) < cut <= limit]
        cut = fitting[-1] if fitting else _token_edge(body, starts, low, cap, end, tokenizer)
        made.append(cut)
        begin, low = cut, int(np.searchsorted(starts, cut))
    return made


def _token_edge(
    body: str, starts: NDArray[np.int64], low: int, cap: int, end: int, tokenizer: Tokenizer
) -> int:
    """The last token edge within the cap that begins a word; failing that, the last one that leaves
    the tokens on both sides as they are (a word cut in two may count more than before)."""
    edges = [int(starts[i]) for i in range(low + cap, low, -1)]
    for edge in edges:
        if body[edge - 1].isspace():
            return edge
    total = len(starts[low:]) - int((starts[low:] >= end).sum())
    for place, edge in enumerate(edges):
        before = tokenizer.count(body[int(starts[low]) : edge])
        if before == cap - place and before + tokenizer.count(body[edge:end]) == total:
            return edge
    return edges[0]


def split(ruler: Ruler, start: int, end: int, cap: int) -> list[int]:
    """Cut [start, end) into ceil(t / cap) balanced parts at allowed cuts; no part exceeds the cap.

    Each cut is the one nearest to its balanced place among those that leave the rest feasible; the
    earlier on ties. Where sentences are so long that no such cut exists, a part more is made.
    returns: the end of each part, the last one `end`.
    """
    ends: list[int] = []
    while (rest := ruler.tokens(start, end)) > cap:
        parts = -(-rest // cap)
        first = int(np.searchsorted(ruler.starts, start))
        target = first + rest / parts
        at_least = first + rest - (parts - 1) * cap
        # Cuts up to the first token that no longer fits; the rest of a long text is not looked at.
        near = ruler.between(start, min(end, int(ruler.starts[first + cap]) + 1))
        places = np.searchsorted(ruler.starts, near).tolist()
        fitting = [item for item in zip(places, near, strict=True) if item[0] > first]
        feasible = [item for item in fitting if item[0] >= at_least] or fitting
        _, start = min(feasible, key=lambda item: (abs(item[0] - target), item[1]))
        ends.append(start)
    return [*ends, end]
