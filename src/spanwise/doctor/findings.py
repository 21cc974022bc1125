"""One line for each check."""

from __future__ import annotations

from dataclasses import dataclass

OK, NOTE, PROBLEM = "ok", "note", "problem"


@dataclass(frozen=True, slots=True)
class Finding:
    """What one check found.

    place:  what was looked at, e.g. `corpus handbook`.
    status: `ok`; `note`, which a person should know; `problem`, with which a run would fail, lose
            its worth or publish what is private.
    said:   what was found.
    mend:   what to do about it, a command where there is one; "" where nothing is to be done.
    lines:  what belongs to it, one below the other.
    """

    place: str
    status: str
    said: str
    mend: str = ""
    lines: tuple[str, ...] = ()


def size(number: float) -> str:
    """Bytes as people say them.

    >>> size(437_971_872), size(2.5e9), size(900)
    ('440 MB', '2.5 GB', '1 kB')
    """
    for unit, name in ((1e9, "GB"), (1e6, "MB"), (1e3, "kB")):
        if number >= unit or name == "kB":
            many = number / unit
            return f"{max(many, 1):.2g} {name}" if many < 99.5 else f"{round(many, -1):.0f} {name}"
    raise AssertionError


def duration(seconds: float) -> str:
    """Seconds as people say them, to two digits at most.

    >>> [duration(s) for s in (0.2, 42, 200, 9000, 200_000)]
    ['under 1 s', '42 s', '3 min', '2.5 h', '2.3 days']
    """
    if seconds < 1:
        return "under 1 s"
    if seconds < 90:
        return f"{seconds:.0f} s"
    if seconds < 5400:
        return f"{seconds / 60:.0f} min"
    if seconds < 48 * 3600:
        return f"{seconds / 3600:.2g} h"
    return f"{seconds / 86400:.2g} days"
