"""Slow, obvious twins of the evidence matcher and of QASPER's section trails."""

from __future__ import annotations

from collections.abc import Sequence

from rapidfuzz import fuzz

from spanwise.documents.model import Document
from spanwise.questions.harvest import FUZZY_RATIO
from spanwise.spans import Span


def best_run(document: Document, item: str) -> Span | None:
    """Every run of paragraphs compared with the item; best ratio, then shortest, then earliest."""
    body = document.body
    texts = [" ".join(body[p.span.start : p.span.end].split()) for p in document.paragraphs]
    wanted = " ".join(item.split())
    runs = []
    for first in range(len(texts)):
        for last in range(first + 1, len(texts) + 1):
            ratio = fuzz.ratio(wanted, " ".join(texts[first:last]))
            if ratio >= FUZZY_RATIO:
                runs.append((-ratio, last - first, first, last))
    if not runs:
        return None
    _, _, first, last = min(runs)
    spans = document.paragraphs
    return Span(spans[first].span.start, spans[last - 1].span.end)


def headings_of(trails: Sequence[tuple[str, ...]]) -> list[tuple[int, str]]:
    """A trail's last part is a heading always; a parent is, unless the trail before goes by it."""
    found = []
    before: tuple[str, ...] = ()
    for trail in trails:
        for level in range(1, len(trail) + 1):
            if level == len(trail) or before[:level] != trail[:level]:
                found.append((level, trail[level - 1]))
        before = trail
    return found
