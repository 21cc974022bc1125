"""What a model's answer says about sections and titles, whatever stands around it.

Nothing here raises: what cannot be read is absent, and `repair` names it.
"""

from __future__ import annotations

import json
import re
import unicodedata
from collections.abc import Iterator
from typing import Any

from spanwise.structure.repair import Row

_OPEN = re.compile(r"[{\[]")
_NUMBER = re.compile(r"-?\d+")
_HEADING = re.compile(r"^#+\s+")
_DIGITS = 9
_DECODER = json.JSONDecoder(strict=False)


def rows(text: str) -> list[Row]:
    """The sections of an answer, in its order.

    Text around JSON is passed over. Of several whole outlines the longest counts, the last of
    equals. Without a whole one (an answer that was cut off, JSON lines) every section that stands
    whole counts. A section is an object with a title or a first paragraph, or a list of title,
    level, first and last; numbers may be strings.
    """
    whole: list[Row] = []
    loose: list[Row] = []
    for value in _values(text):
        found = _harvest(value)
        if _is_row(value):
            loose += found
        elif found and len(found) >= len(whole):
            whole = found
    return whole or loose


def title(text: str) -> str:
    """The title of an answer `{"title": ...}`, cleaned; "" if it holds none."""
    return next((row.title for row in rows(text) if row.title), "")


def clean(text: str) -> str:
    r"""A title without control characters, lone surrogates and Markdown's marks of headings and
    strong text; white space closes up.

    >>> clean("## **Low\n tide** ")
    'Low tide'
    """
    kept = "".join(" " if unicodedata.category(c) in ("Cc", "Cs") else c for c in text)
    title = _HEADING.sub("", " ".join(kept.split()))
    if len(title) > 4 and title.startswith("**") and title.endswith("**"):
        title = title[2:-2].strip()
    return title


def _values(text: str) -> Iterator[Any]:
    """Every JSON object or list that stands whole in a text, the outermost ones, in order."""
    place = 0
    while match := _OPEN.search(text, place):
        try:
            value, place = _DECODER.raw_decode(text, match.start())
        except (ValueError, RecursionError):
            place = match.start() + 1
            continue
        yield value


def _harvest(value: Any) -> list[Row]:
    """Every section inside a value, in reading order."""
    found: list[Row] = []
    waiting = [value]
    while waiting:  # a loop: values may be nested deeper than Python can call
        one = waiting.pop()
        if _is_row(one):
            found.append(_row(one))
        inner = one.values() if isinstance(one, dict) else one
        waiting += [v for v in reversed(list(inner)) if isinstance(v, dict | list)]
    return found


def _fields(value: dict[Any, Any]) -> dict[str, Any]:
    return {key.strip().lower(): field for key, field in value.items()}


def _is_row(value: Any) -> bool:
    if isinstance(value, dict):
        return not {"title", "first"}.isdisjoint(_fields(value))
    return (
        isinstance(value, list) and len(value) == 4 and isinstance(value[0], str)
        and all(_number(number) is not None for number in value[1:])
    )


def _row(value: Any) -> Row:
    fields = _fields(value) if isinstance(value, dict) else dict(
        zip(("title", "level", "first", "last"), value, strict=True)
    )
    named = fields.get("title")
    text = str(named) if isinstance(named, str | int) and not isinstance(named, bool) else ""
    level, first, last = (_number(fields.get(name)) for name in ("level", "first", "last"))
    return Row(clean(text), level, first, last)


def _number(value: Any) -> int | None:
    """A whole number below a billion, also written as 2.0, "2" or "paragraph 2"; else None."""
    if isinstance(value, str):
        found = _NUMBER.findall(value)
        value = int(found[0]) if len(found) == 1 and len(found[0]) <= _DIGITS else None
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    if isinstance(value, bool) or not isinstance(value, int):
        return None
    return value if abs(value) < 10**_DIGITS else None
