"""What a person asks `spanwise add` for."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from spanwise.errors import InputError

WRITTEN = "written"
"""In place of a question file: the language model writes them."""


@dataclass(frozen=True, slots=True)
class Wish:
    """What a person asks for.

    questions: a question file, `written` for the language model, or None.
    skip:      leave out files that cannot be read, instead of refusing the folder.
    docling:   suffixes of files that docling turns into Markdown first.
    """

    name: str
    path: Path
    questions: str | None = None
    reader: str | None = None
    inducer: str = "segmenter"
    demonstration: bool = False
    units: bool = False
    contexts: bool = False
    options: Mapping[str, int | float | str | bool] = field(default_factory=dict)
    remote: str | None = None
    skip: bool = False
    docling: tuple[str, ...] = ()


def options_of(given: Sequence[str]) -> dict[str, int | float | str | bool]:
    """Options of a reader from KEY=VALUE.

    raises: InputError for what has no `=`.
    """
    found: dict[str, int | float | str | bool] = {}
    for one in given:
        key, equals, value = one.partition("=")
        if not equals or not re.fullmatch(r"[a-z]\w*", key):
            raise InputError(f"--option {one!r}: expected KEY=VALUE, e.g. articles=200")
        try:
            decoded = json.loads(value)
        except ValueError:
            decoded = value
        found[key] = decoded if isinstance(decoded, int | float | str) else value
    return found


def counted(number: int, what: str) -> str:
    """A number with its noun, e.g. `1 file`, `2 files`."""
    return f"{number} {what}{'' if number == 1 else 's'}"
