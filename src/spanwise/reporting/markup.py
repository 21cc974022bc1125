"""Escaping, and numbers as text. Every text that enters the page passes through `esc` or `data`."""

from __future__ import annotations

import base64
import html
import json
import zlib
from typing import Any

from spanwise.statistics.contrasts import render_p

NONE = "–"
"""Stands where there is no figure; the reason stands beside it."""


def esc(text: object) -> str:
    """Text as it may stand in HTML content and in quoted attributes."""
    return html.escape(str(text), quote=True)


def tag(name: str, inner: str, /, **attributes: str | None) -> str:
    """One element. `inner` is HTML already; attributes are escaped here, None ones left out.

    A trailing underscore in an attribute's name drops, other underscores become hyphens.

    >>> tag("td", esc("a < b"), class_="n", data_x=None)
    '<td class="n">a &lt; b</td>'
    """
    written = "".join(
        f' {key.rstrip("_").replace("_", "-")}="{esc(value)}"'
        for key, value in attributes.items()
        if value is not None
    )
    return f"<{name}{written}>{inner}</{name}>"


def data(value: Any) -> str:
    """JSON that may stand inside a script element: no `<`, so nothing can close it.

    raises: ValueError for NaN or an infinity.
    """
    text = json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    for character in "<>&\u2028\u2029":
        text = text.replace(character, f"\\u{ord(character):04x}")
    return text


def packed(value: Any) -> str:
    """JSON, deflated (zlib's format) and in base64: for data that a page opens seldom.

    The same value gives the same text with the same zlib.

    raises: ValueError for NaN or an infinity.

    >>> json.loads(zlib.decompress(base64.b64decode(packed({"a": [1, "<"]}))))
    {'a': [1, '<']}
    """
    text = json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    return base64.b64encode(zlib.compress(text.encode(), 9)).decode()


def signed(value: float | None, digits: int = 3) -> str:
    """A difference with its sign; one that rounds to zero has none.

    >>> signed(0.01249), signed(-0.5), signed(-0.0001), signed(None)
    ('+0.012', '−0.500', '0.000', '–')
    """
    if value is None:
        return NONE
    text = f"{value:+.{digits}f}"
    if float(text) == 0:
        return text[1:]
    return text.replace("-", "−")


def figure(value: float | None, digits: int = 3) -> str:
    """A value without a sign, e.g. a mean.

    >>> figure(0.4126), figure(None)
    ('0.413', '–')
    """
    if value is None:
        return NONE
    text = f"{value:.{digits}f}"
    return (text.lstrip("-") if float(text) == 0 else text).replace("-", "−")


def interval(low: float | None, high: float | None, digits: int = 3) -> str:
    """An interval of a difference. An edge that rounds to zero keeps its sign, which says on which
    side of zero it lies.

    >>> interval(-0.003, 0.0271), interval(-0.035, 0.0002), interval(0.0, 0.01)
    ('[−0.003, +0.027]', '[−0.035, +0.000]', '[0.000, +0.010]')
    """
    if low is None or high is None:
        return NONE
    return f"[{_edge(low, digits)}, {_edge(high, digits)}]"


def _edge(value: float, digits: int) -> str:
    return f"{value:+.{digits}f}".replace("-", "−") if value else signed(0.0, digits)


def probability(value: float | None, iterations: int, family: int = 1) -> str:
    """A bootstrap p value: 0 of B draws is no zero, so it prints as below 2/B, times Holm's m.

    >>> probability(0.0, 10_000), probability(0.0, 10_000, 4), probability(0.0315, 10_000)
    ('< 0.0002', '< 0.0008', '0.032')
    """
    if value is None:
        return NONE
    if value == 0:
        return render_p(value, iterations, family)
    if value < 0.00005:  # of a distribution, not of draws
        return "< 0.0001"
    return f"{value:.4f}" if value < 0.001 else f"{value:.3f}"


def count(value: int) -> str:
    """A whole number with thousands apart.

    >>> count(4303)
    '4,303'
    """
    return f"{value:,}"


def many(number: int, one: str, several: str | None = None) -> str:
    """A count with its noun.

    >>> many(1, "document"), many(30, "document")
    ('1 document', '30 documents')
    """
    return f"{count(number)} {one if number == 1 else several or one + 's'}"


def words(name: str) -> str:
    """A key of a stage's counts as words.

    >>> words("share_of_chunks")
    'share of chunks'
    """
    return name.replace("_", " ")


def listed(items: list[str]) -> str:
    """Items as one phrase.

    >>> listed(["A", "B", "C"])
    'A, B and C'
    """
    if len(items) < 2:
        return "".join(items)
    return f"{', '.join(items[:-1])} and {items[-1]}"


def called(word: str, demonstration: bool) -> str:
    """A standing as a reader meets it: what a demonstration confirms is said to be one.

    >>> called("confirmatory", True), called("exploratory", True)
    ('confirmatory, demonstration', 'exploratory')
    """
    return f"{word}, demonstration" if demonstration and word == "confirmatory" else word


def standing(word: str) -> str:
    """The tag that says how a figure may be read."""
    firm = word.startswith("confirmatory")
    return tag("span", esc(word), class_=f"tag {'firm' if firm else 'open'}")
