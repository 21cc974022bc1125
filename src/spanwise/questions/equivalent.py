"""One rule for words that were typed elsewhere: equal up to Unicode normalization is equal.

`é` is one code point or two (`e` and an accent); macOS names files with two, a keyboard types one.
What stands there code point for code point comes first. Only where nothing does, canonically
equivalent text counts, and it must still be the one place or the one document that is meant. The
span that is found is of the text as it is, so the quotation becomes the text's own.

source: Unicode Standard Annex #15 (canonical equivalence; NFC, NFD).
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from functools import lru_cache
from unicodedata import combining, normalize
from urllib.parse import unquote

from spanwise.documents.model import document_id
from spanwise.spans import Span

_NEVER_JOINS = "\u0300"
"""No code point below it is joined with the one before it by normalization."""


def occurrences(text: str, quote: str) -> list[int]:
    """Offsets of every exact occurrence, those that overlap included.

    >>> occurrences("| a | a |", "| a |")
    [0, 4]
    """
    places = []
    at = text.find(quote)
    while at >= 0:
        places.append(at)
        at = text.find(quote, at + 1)
    return places


def places(text: str, quote: str) -> list[Span]:
    """The spans of `text` that hold `quote`: exact ones, or where there are none equivalent ones.

    quote:   not empty.
    returns: spans in code points of `text`, in ascending order. Exact ones are as they were typed;
             an equivalent one begins and ends where normalization joins nothing, so that no letter
             is parted from its accent.

    >>> places("cafe\\u0301 open", "caf\\u00e9")
    [Span(start=0, end=5)]
    """
    exact = [Span(at, at + len(quote)) for at in occurrences(text, quote)]
    return exact or _equivalent(text, quote)


def ends(text: str, quote: str) -> list[Span]:
    """The spans of `text` that hold `quote`, exact or equivalent, by where they end.

    For the end of a passage, which is the next one, however it is encoded.
    """
    exact = [Span(at, at + len(quote)) for at in occurrences(text, quote)]
    if len(exact) < len(occurrences(normalize("NFD", text), normalize("NFD", quote))):
        exact += _equivalent(text, quote)
    return sorted(set(exact), key=lambda span: (span.end, span.start))


def _equivalent(text: str, quote: str) -> list[Span]:
    """The spans that hold what is canonically equivalent to `quote`, parting no letter."""
    wanted = normalize("NFD", quote)
    if wanted not in normalize("NFD", text):
        return []
    starts = _starts(text)
    ends = [*starts[1:], len(text)]
    pieces = [normalize("NFD", text[a:b]) for a, b in zip(starts, ends, strict=True)]
    begins, stops, length = {}, {}, 0
    for start, end, piece in zip(starts, ends, pieces, strict=True):
        begins[length] = start
        length += len(piece)
        stops[length] = end
    found = occurrences("".join(pieces), wanted)
    return [
        Span(begins[at], stops[at + len(wanted)]) for at in found
        if at in begins and at + len(wanted) in stops
    ]


def same(one: str, other: str) -> bool:
    """Whether two texts are canonically equivalent."""
    return one == other or normalize("NFC", one) == normalize("NFC", other)


def named(name: str, known: Collection[str]) -> str | None:
    """The id of the document that a name means, or None.

    name:  as a person writes it, or percent-encoded as ids are.
    known: document ids. One that is exactly so comes first, then the only equivalent one.

    >>> named("r\\u00fcmpf", ["ru%CC%88mpf"])
    'ru%CC%88mpf'
    """
    for exact in (document_id(name), name):
        if exact in known:
            return exact
    return _alike(tuple(known)).get(normalize("NFC", unquote(name)))


@lru_cache(maxsize=4)
def _alike(known: tuple[str, ...]) -> Mapping[str, str | None]:
    """Ids by what they are called, normalized; None where several are called so.

    Kept, because every question of a corpus asks it.
    """
    found: dict[str, str | None] = {}
    for one in known:
        name = normalize("NFC", unquote(one))
        found[name] = None if name in found else one
    return found


def _starts(text: str) -> list[int]:
    """Offsets of a text, 0 first, where normalization joins nothing: of letters with their marks,
    and of syllables."""
    starts = [0]
    for at in range(1, len(text)):
        if text[at] >= _NEVER_JOINS:
            if combining(normalize("NFD", text[at])[0]):
                continue
            before = text[starts[-1] : at]
            alone = normalize("NFC", before) + normalize("NFC", text[at])
            if normalize("NFC", before + text[at]) != alone:
                continue
        starts.append(at)
    return starts
