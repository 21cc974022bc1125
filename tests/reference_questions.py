"""Slow, obvious twins of the leakage filter and of balancing."""

from __future__ import annotations

import re
from collections.abc import Sequence
from fractions import Fraction
from itertools import combinations


def ascii_words(text: str) -> list[str]:
    """The words of an ASCII text, as rouge-score has them."""
    return re.findall("[a-z0-9]+", text.lower())


def rouge_l(question: Sequence[str], span: Sequence[str]) -> Fraction:
    """2 L / (m + n), with L by trying every choice of the question's words."""
    for size in range(len(question), 0, -1):
        for places in combinations(range(len(question)), size):
            if _is_subsequence([question[i] for i in places], span):
                return Fraction(2 * size, len(question) + len(span))
    return Fraction(0)


def _is_subsequence(wanted: Sequence[str], span: Sequence[str]) -> bool:
    at = 0
    for word in span:
        if at < len(wanted) and wanted[at] == word:
            at += 1
    return at == len(wanted)


def shares_run(question: Sequence[str], span: Sequence[str], size: int) -> bool:
    """Whether any `size` words in a row stand in both, by looking for them as text."""
    text = f" {' '.join(span)} "
    return any(
        f" {' '.join(question[i : i + size])} " in text for i in range(len(question) - size + 1)
    )


def fair_shares(having: Sequence[int], cap: int) -> list[int]:
    """How many each document gives, in descending order: one a turn until the cap is reached."""
    given = [0] * len(having)
    left = cap
    while left and any(g < h for g, h in zip(given, having, strict=True)):
        for i, most in enumerate(having):
            if left and given[i] < most and given[i] == min(
                g for g, h in zip(given, having, strict=True) if g < h
            ):
                given[i] += 1
                left -= 1
    return sorted(given, reverse=True)
