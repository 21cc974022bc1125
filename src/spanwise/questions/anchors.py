"""Anchors: how a person names a gold span, and the one place in the text it names.

Three forms, each with an optional `document`:
    quote, occurrence?       the quotation, exactly as it stands in the file
    from, to, occurrence?    from the start of `from` to the end of the first `to` after it
    start, end, quote?       a span of raw, in code points, and what stands there
Words are those of the file, up to Unicode normalization where they do not stand there exactly
(`questions.equivalent`). Each may be pinned to the text it was written for: `source`, `version`,
and `sha256` of the raw text of its document. A pin that no longer holds refuses the anchor,
wherever else its words may stand.
"""

from __future__ import annotations

import json
from bisect import bisect_right
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import unquote

from spanwise.documents.model import Document, sha256
from spanwise.errors import AnchorError
from spanwise.questions.equivalent import ends, occurrences, places, same
from spanwise.spans import Span
from spanwise.text.lists import unknown_keys

PINS = ("source", "version", "sha256")
_FORMS = {
    "quote": ("quote", "occurrence", "document", *PINS),
    "from": ("from", "to", "occurrence", "document", *PINS),
    "start": ("start", "end", "quote", "document", *PINS),
}
_SHOWN = 8  # places, and
_WIDTH = 600  # code points of the nearest text, that a message shows


@dataclass(frozen=True, slots=True)
class Anchor:
    """One anchor as written. Exactly one of quote, since (`from`) and start is not None, but that a
    span may say what it quotes.

    occurrence: which occurrence of quote or `from` is meant, from 1; None if it must be the only.
    document:   the document it lies in, None for the question's own.
    pins:       what the document was when the anchor was written, by name of the pin.
    """

    quote: str | None = None
    since: str | None = None
    until: str | None = None
    start: int | None = None
    end: int | None = None
    occurrence: int | None = None
    document: str | None = None
    pins: Mapping[str, str] = field(default_factory=dict)


def parse(fields: Any) -> Anchor:
    """Check one anchor's fields.

    raises: AnchorError that says what is wrong with them.
    """
    if not isinstance(fields, Mapping):
        raise AnchorError(f"expected `quote`, `from`/`to` or `start`/`end`, found {fields!r}")
    forms = [form for form in _FORMS if form in fields]
    if forms == ["quote", "start"]:
        forms = ["start"]
    if len(forms) != 1:
        raise AnchorError(
            f"found the keys {', '.join(map(str, fields)) or 'none'}, expected exactly one of "
            "`quote`, `from` with `to`, `start` with `end`"
        )
    if wrong := unknown_keys(fields, _FORMS[forms[0]]):
        raise AnchorError(wrong)
    occurrence = _number(fields, "occurrence", 1) if "occurrence" in fields else None
    document = _words(fields, "document") if "document" in fields else None
    pins = {name: _words(fields, name) for name in PINS if name in fields}
    if forms[0] == "quote":
        return Anchor(
            quote=_words(fields, "quote"), occurrence=occurrence, document=document, pins=pins
        )
    if forms[0] == "from":
        return Anchor(
            since=_words(fields, "from"), until=_words(fields, "to"), occurrence=occurrence,
            document=document, pins=pins,
        )
    start, end = _number(fields, "start", 0), _number(fields, "end", 0)
    if start >= end:
        raise AnchorError(f"the span [{start}, {end}) is empty, expected 0 <= start < end")
    quote = _words(fields, "quote") if "quote" in fields else None
    return Anchor(start=start, end=end, quote=quote, document=document, pins=pins)


def hold(anchor: Anchor, document: Document) -> None:
    """Hold an anchor's pins against its document.

    raises: AnchorError if the document is not the one that the anchor was written for. Its words
            are not looked for: they may stand elsewhere and mean something else.
    """
    if not anchor.pins:  # the digest is of the whole text
        return
    found = {
        "source": document.source, "version": document.version, "sha256": sha256(document.raw or "")
    }
    for name, pinned in anchor.pins.items():
        if pinned != found[name]:
            raise AnchorError(
                f"it is pinned to {name} {pinned!r} of {unquote(document.doc_id)}, which has "
                f"{found[name]!r} now: read the passage again and write the anchor anew"
            )


def locate(anchor: Anchor, text: str, name: str) -> Span:
    """The span of `text` that an anchor names.

    text:   the document's raw text.
    name:   the document's id; messages show it decoded.
    raises: AnchorError if a quotation does not occur (with the nearest text, ready to paste), if it
            occurs more than once without `occurrence` or less often than that (with all places), or
            if a span ends beyond the text or does not hold the words that it quotes. Occurrences
            that overlap each other count.
    """
    name = unquote(name)
    if anchor.start is not None and anchor.end is not None:
        if anchor.end > len(text):
            raise AnchorError(
                f"the span [{anchor.start}, {anchor.end}) ends beyond {name}, which has "
                f"{len(text)} code points"
            )
        if anchor.quote is not None and not same(text[anchor.start : anchor.end], anchor.quote):
            raise AnchorError(
                f"`quote` {_paste(anchor.quote)} does not stand at [{anchor.start}, {anchor.end}) "
                f"of {name}; there stands\n    quote: "
                f"{_paste(text[anchor.start : anchor.end][:_WIDTH])}\n  mend the span, or quote "
                "without one"
            )
        return Span(anchor.start, anchor.end)
    if anchor.quote is not None:
        return _place(text, anchor.quote, anchor.occurrence, name, "quote")
    assert anchor.since is not None and anchor.until is not None
    since = _place(text, anchor.since, anchor.occurrence, name, "from")
    # `to` may be the end of `from` itself, but never ends before it.
    for until in ends(text[since.start :], anchor.until):
        if since.start + until.end >= since.end:
            return Span(since.start, since.start + until.end)
    raise AnchorError(
        f"`to` {_paste(anchor.until)} does not occur in {name} after `from` "
        f"(line {_line(text, since.start)})" + _nearest(text, anchor.until, "to", since.start)
    )


def _place(text: str, quote: str, occurrence: int | None, name: str, key: str) -> Span:
    found = places(text, quote)
    starts = [span.start for span in found]
    if not found:
        raise AnchorError(
            f"`{key}` {_paste(quote)} does not occur in {name}" + _nearest(text, quote, key)
        )
    if occurrence is None and len(found) > 1:
        raise AnchorError(
            f"`{key}` {_paste(quote)} occurs {len(found)} times in {name}: "
            f"{_places(text, starts)}; add `occurrence: 1` (to {len(found)}) or quote more"
        )
    if occurrence is not None and occurrence > len(found):
        raise AnchorError(
            f"`{key}` {_paste(quote)} occurs {len(found)} times in {name}, not {occurrence}: "
            f"{_places(text, starts)}; mend `occurrence`"
        )
    return found[(occurrence or 1) - 1]


def nearest(text: str, quote: str, after: int = 0) -> tuple[Span, float]:
    """The stretch of text[after:] most like `quote`, in whole words, and its likeness in 0..100.

    source: rapidfuzz's partial ratio (normalized Indel similarity of the best window).
    """
    from rapidfuzz import fuzz

    found = fuzz.partial_ratio_alignment(quote, text[after:])
    if found is None or found.dest_start == found.dest_end:
        return Span(after, len(text)), 0.0
    start, end = after + found.dest_start, after + found.dest_end
    while start > after and not text[start - 1].isspace() and not text[start].isspace():
        start -= 1
    while end < len(text) and not text[end - 1].isspace() and not text[end].isspace():
        end += 1
    while start < end - 1 and text[start].isspace():
        start += 1
    while end > start + 1 and text[end - 1].isspace():
        end -= 1
    return Span(start, end), float(found.score)


def _nearest(text: str, quote: str, key: str, after: int = 0) -> str:
    span, score = nearest(text, quote, after)
    if not score:
        return "; nothing in it is alike"
    found = text[span.start : span.end]
    if len(found) > _WIDTH:
        found = found[:_WIDTH].rsplit(None, 1)[0]
    shown = f"; the nearest text, line {_line(text, span.start)}, likeness {score:.0f} of 100:\n"
    shown += f"    {key}: {_paste(found)}"
    starts = occurrences(text, found)
    if len(starts) > 1 and span.start in starts and key != "to":
        shown += f"\n    occurrence: {starts.index(span.start) + 1}"
    return shown


def _places(text: str, starts: list[int]) -> str:
    lines = [at for at, character in enumerate(text) if character == "\n"]
    shown = [f"line {bisect_right(lines, at - 1) + 1} (offset {at})" for at in starts[:_SHOWN]]
    more = f" and {len(starts) - _SHOWN} more" if len(starts) > _SHOWN else ""
    return ", ".join(shown) + more


def _line(text: str, offset: int) -> int:
    return text.count("\n", 0, offset) + 1


def _paste(text: str) -> str:
    """As a double-quoted word that YAML and JSON both read."""
    return json.dumps(text, ensure_ascii=False)


def _words(fields: Mapping[str, Any], key: str) -> str:
    value = fields.get(key)
    if isinstance(value, int) and not isinstance(value, bool):
        value = str(value)  # a quotation such as 14
    if not isinstance(value, str) or not value.strip():
        raise AnchorError(f"`{key}` is {value!r}, expected text; put it in quotation marks")
    return value.replace("\r\n", "\n").replace("\r", "\n")


def _number(fields: Mapping[str, Any], key: str, least: int) -> int:
    value = fields.get(key)
    if not isinstance(value, int) or isinstance(value, bool) or value < least:
        raise AnchorError(f"`{key}` is {value!r}, expected a whole number from {least} on")
    return value
