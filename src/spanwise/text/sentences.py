"""Where a paragraph may be cut: sentence ends and line ends as exact offsets.

Sentences come from sentencex. Three splitters were measured on 8,905 paragraphs (4.2 million code
points: 112 scientific papers and five retrieval corpora):

- sentencex 1.0.32 (released September 2026): 20 million code points a second; all 29,894 sentences
  equal to the slice they claim, and they tile every paragraph. It panics on U+0085 beside an
  initial and mistakes some line breaks for structure, which is why white space goes in as plain
  spaces, one for one, so that offsets stand: after that none in 1.8 million random Unicode texts.
- syntok 1.4.4 (last release 2022): 1.3 million a second; leaves white space out of its spans and
  overlooks ends after an amount, in CJK text and before a link.
- pysbd 0.3.4 (last release 2021): 0.2 million a second (paragraphs above 20,000 left out); takes
  the line breaks of a wrapped paragraph for ends, and left 441 paragraphs untiled.

Its proposals are held against the text before they count: an end inside a word (`Foo.Bar`) is no
end, one before closing emphasis or a closing quotation mark moves behind it, and a list marker is
no sentence.
"""

from __future__ import annotations

import re
from itertools import pairwise

_LANGUAGE = "en"
_WHOLE = frozenset({"fence", "table"})
# str.isspace, spelled out: one space for each, so that no offset moves.
_SPACES = (
    "\t\n\x0b\x0c\r\x1c\x1d\x1e\x1f\x85\xa0\u1680\u2000\u2001\u2002\u2003\u2004\u2005\u2006\u2007"
    "\u2008\u2009\u200a\u2028\u2029\u202f\u205f\u3000"
)
_PLAIN = str.maketrans(dict.fromkeys(_SPACES, " "))
_CLOSERS = frozenset("*_~`\"'”’»›)]}")
_MARKER_WIDTH = 64  # no list marker stands further to the right; keeps long lines linear
_MARKER = re.compile(r"[ \t>]*(?:[-*+]|\d{1,9}[.)])?[ \t]*")


def sentence_ends(text: str, kind: str = "paragraph") -> list[int]:
    """Offsets after which a cut is allowed inside one paragraph's text.

    text:    one paragraph, in code points.
    kind:    the paragraph's kind. A `fence` or `table` is one sentence, cut at `line_ends` only if
             it must be; in a `list` each line's end is an end too.
    returns: ascending offsets, the last one len(text); [] for an empty text. The white space after
             a sentence belongs to it, so no sentence is blank unless the whole text is; in a list
             a line's indentation belongs to the line. The same text gives the same ends.
    """
    if not text:
        return []
    if kind in _WHOLE:
        return [len(text)]
    lines = kind == "list"
    ends = {
        _after_space(text, moved, lines)
        for end in _proposed(text)
        if (moved := _confirmed(text, end)) is not None
    }
    if lines:
        for space in re.finditer(r"\s+", text):  # one end for a run of blank lines
            if (newline := text.rfind("\n", space.start(), space.end())) >= 0:
                ends.add(newline + 1)
    return _without_blanks(text, ends)


def line_ends(text: str) -> list[int]:
    """Offsets after each LF, ascending, the last one len(text); [] for an empty text.

    Where a fence or table above the cap may be cut.
    """
    ends = [match.end() for match in re.finditer("\n", text)]
    if text and (not ends or ends[-1] != len(text)):
        ends.append(len(text))
    return ends


def sentences(text: str, kind: str = "paragraph") -> list[str]:
    """The slices between the ends; joined they are the text.

    >>> sentences("Hold it. Then wait.")
    ['Hold it. ', 'Then wait.']
    """
    return [text[a:b] for a, b in pairwise([0, *sentence_ends(text, kind)])]


def _proposed(text: str) -> list[int]:
    from sentencex import get_sentence_boundaries

    plain = text.translate(_PLAIN)
    return [int(found["end_index"]) for found in get_sentence_boundaries(_LANGUAGE, plain)]


def _confirmed(text: str, end: int) -> int | None:
    """A proposed end, moved behind what closes the sentence; None if it is none."""
    if end >= len(text):
        return len(text)
    if not text[end - 1].isspace():
        if ord(text[end - 1]) > 0x2FFF:  # CJK full stops stand without a space
            return end
        while end < len(text) and text[end] in _CLOSERS:
            end += 1
        if end < len(text) and not text[end].isspace():
            return None
    stop = end
    while stop > 0 and text[stop - 1].isspace():
        stop -= 1
    start = text.rfind("\n", max(0, stop - _MARKER_WIDTH), stop) + 1
    if start == 0 and stop > _MARKER_WIDTH:
        return end
    return None if _MARKER.fullmatch(text, start, stop) else end


def _after_space(text: str, end: int, lines: bool) -> int:
    """The end of the white space after `end`; of its last line break where lines count."""
    stop = end
    while stop < len(text) and text[stop].isspace():
        stop += 1
    if lines and stop < len(text):
        first = end
        while first > 0 and text[first - 1].isspace():
            first -= 1
        if (newline := text.rfind("\n", first, stop)) >= 0:
            return newline + 1
    return stop


def _without_blanks(text: str, ends: set[int]) -> list[int]:
    kept: list[int] = []
    start = 0
    for end in sorted(ends | {len(text)}):
        if end > start and text[start:end].strip():
            kept.append(end)
            start = end
    if not kept or kept[-1] != len(text):  # white space alone is left: it belongs to what is before
        kept[-1:] = [len(text)]
    return kept
