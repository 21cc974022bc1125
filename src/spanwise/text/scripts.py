"""Which writing systems a text uses: a cheap sign of an answer in another language."""

from __future__ import annotations

import unicodedata
from collections import Counter
from functools import lru_cache

SHARE = 1 / 20
"""Of a text's letters; a script with fewer is a quotation or a formula."""


def scripts_of(text: str) -> frozenset[str]:
    """Scripts that a text is written in: those of at least a twentieth of its letters.

    >>> scripts_of("The area of a circle is π times its radius squared.")
    frozenset({'LATIN'})
    """
    tally = letters_of(text)
    return frozenset(s for s, n in tally.items() if n >= SHARE * tally.total())


def letters_of(text: str) -> Counter[str]:
    """Letters of a text by script."""
    return Counter(
        _script(letter) for letter in unicodedata.normalize("NFKC", text) if letter.isalpha()
    )


@lru_cache(maxsize=1 << 16)
def _script(letter: str) -> str:
    """The first word of a letter's Unicode name: LATIN, CYRILLIC, CJK."""
    return unicodedata.name(letter, "").split(" ")[0]
