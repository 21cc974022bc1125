"""What can be made of an answer's text, however it is wrapped."""

from __future__ import annotations

import json
from collections.abc import Collection
from typing import Any

_STARTS = 100


def json_object(text: str, names: Collection[str] = ()) -> dict[str, Any] | None:
    """The first JSON object in a text that has all of these names, or None.

    It may be the whole text or stand inside prose or a fence. Say the names that the schema
    requires: of an answer that was cut short, an inner object would be the first whole one. NaN
    and infinities are no JSON. Only the first hundred opening braces are tried, so the time is
    bounded whatever the text.

    >>> json_object('Sure! {see below} ```{"first": 1}```')
    {'first': 1}
    >>> json_object('{"sections": [{"first": 1}, {"fir', ["sections"]) is None
    True
    """
    decoder = json.JSONDecoder(parse_constant=_refuse)
    start = -1
    for _ in range(_STARTS):
        start = text.find("{", start + 1)
        if start < 0:
            break
        try:
            found, _ = decoder.raw_decode(text, start)
        except (ValueError, RecursionError):
            continue
        if set(names) <= set(found):
            whole: dict[str, Any] = found
            return whole
    return None


def _refuse(name: str) -> None:
    raise ValueError(f"{name} is no JSON")
