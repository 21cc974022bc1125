"""Words of questions and passages: what the leakage filter compares, and cheap signs of a name.

A word is what UAX #29 calls one (NFKC, full case folding; an ideograph is a word), cut again at
ASCII punctuation and the few other signs that may stand inside such a word. In ASCII text that is
exactly the token of rouge-score: a run of [a-z0-9] after lower-casing. So `Don't` is two words,
`3.50` two and `x-ray` two, and punctuation never hides a copied run.
"""

from __future__ import annotations

import re
from collections.abc import Collection
from functools import cache
from typing import Any

from spanwise.text.sentences import sentences

_INNER = re.compile("[\\x00-/:-`{-\\x7f·՟״‘’․‧‿⁀⁔]+")
_CAPITAL = re.compile(r"[^\W\d_][^\W_]*")

FUNCTION_WORDS = frozenset(re.findall(
    r"\w+",
    "a an the this that these those and or but nor of in on at to for from by with as into about "
    "who whom whose which what when where why how is are was were be been being am do does did "
    "has have had can could will would shall should may might must it its he she they we you i "
    "his her their our your my him them us not no if than then there",
))
_DATES = frozenset(re.findall(
    r"\w+",
    "january february march april may june july august september october november december monday "
    "tuesday wednesday thursday friday saturday sunday",
))


def words(text: str) -> list[str]:
    """The words of a text, case-folded, in order.

    >>> words("Don't pay 3.50 for the X-ray.")
    ['don', 't', 'pay', '3', '50', 'for', 'the', 'x', 'ray']
    """
    return [part for token in _tokens(text) for part in _INNER.split(token) if part]


def _tokens(text: str) -> list[str]:
    found: list[str] = _unicode().tokenize(text)
    return found


@cache
def _unicode() -> Any:
    from rouge_score_rs.tokenizers import UnicodeTokenizer

    return UnicodeTokenizer()


def names(text: str) -> frozenset[str]:
    """Words that look like parts of proper names, case-folded.

    A word of two letters or more with a capital that does not open its sentence, and is no function
    word, month or day. Names that open a sentence are found by their second word alone, and scripts
    without capitals have none: a cheap sign, not a recogniser.

    >>> sorted(names("The crew of Apollo 8 saw the Moon. Frank Borman led it in December."))
    ['apollo', 'borman', 'moon']
    """
    return frozenset(
        word.casefold()
        for sentence in sentences(text)
        for word in _CAPITAL.findall(sentence)[1:]
        if _is_name(word)
    )


def title_names(title: str) -> frozenset[str]:
    """Words of a title that could name its subject, case-folded; the first one counts."""
    return frozenset(w.casefold() for w in _CAPITAL.findall(title) if _is_name(w))


def named(question: str, known: Collection[str]) -> list[str]:
    """The words of a question that are written with a capital and are among the known names.

    >>> named("Which moon did Borman's crew see?", names("The men of Borman saw the Moon."))
    ['Borman']
    """
    return [w for w in _CAPITAL.findall(question) if w[0].isupper() and w.casefold() in known]


def english(text: str) -> bool:
    """True if a text has an English function word; a question of several words always has one."""
    return not FUNCTION_WORDS.isdisjoint(words(text))


def _is_name(word: str) -> bool:
    folded = word.casefold()
    return len(word) > 1 and word[0].isupper() and folded not in FUNCTION_WORDS | _DATES
