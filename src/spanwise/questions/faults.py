"""What is wrong with a person's file, all of it at once."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from pathlib import Path

from spanwise.errors import AnchorError, QuestionError
from spanwise.text.decoding import read_text

SHOWN = 20
"""How many errors of one file are printed; the rest are counted."""


def raise_all(errors: Sequence[QuestionError], of: str) -> None:
    """Raise what was found as one error, an AnchorError if nothing else is wrong; none, nothing.

    of: what the entries belong to, e.g. `the questions`.
    """
    if not errors:
        return
    kind = AnchorError if all(isinstance(error, AnchorError) for error in errors) else QuestionError
    if len(errors) == 1:
        raise kind(str(errors[0]))
    shown = "\n".join(f"  {error}" for error in errors[:SHOWN])
    more = f"\n  and {len(errors) - SHOWN} more" if len(errors) > SHOWN else ""
    raise kind(f"{len(errors)} entries of {of} are wrong:\n{shown}{more}")


def require_utf8(path: Path) -> None:
    """Raise what `read_text` does for bytes that are no text, the whole path in it.

    Other messages name a question file shortly; this one holds a command that must find it.
    """
    read_text(path, shlex.quote(str(path)), allow_blank=True)
