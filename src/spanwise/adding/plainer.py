"""docling's Markdown without marks that nobody would quote."""

from __future__ import annotations

import re

_PICTURE = "<!-- image -->"
_FENCE = re.compile(r"\s*(?:```|~~~)")
_CODE = re.compile(r"(`+.+?`+)")
_RULE = re.compile(r"\|(?:\s*:?-+:?\s*\|)+\s*")
_LETTER = re.compile(r"[^\W\d_]")


def has_text(text: str) -> bool:
    """Whether Markdown holds more than places of pictures."""
    return bool(text.replace(_PICTURE, "").strip())


def plainer(text: str) -> tuple[str, int]:
    """The same page in plainer letters, and how many pictures it lost.

    Lines that only say where a picture was are taken out. A table right below a list gets the blank
    line without which it is none. `&amp;`, `&lt;`, `&gt;` and `\\_` become
    the letters that they stand for wherever CommonMark reads these in the same way; code stays.
    """
    lines: list[str] = []
    pictures, fenced = 0, False
    given = text.split("\n")
    for line, below in zip(given, [*given[1:], ""], strict=True):
        if _FENCE.match(line):
            fenced = not fenced
        if not fenced and line.strip() == _PICTURE:
            pictures += 1
            if lines and not lines[-1]:
                lines.pop()
            continue
        if not fenced and _RULE.fullmatch(below) and line.lstrip().startswith("|"):
            lines += [""] if lines and lines[-1] else []
            line = line.lstrip()
        lines.append(line if fenced else _line(line))
    return "\n".join(lines).strip("\n") + "\n", pictures


def _line(line: str) -> str:
    """One line outside of a fence, its inline code as it is."""
    parts = _CODE.split(line)
    for place in range(0, len(parts), 2):
        part = re.sub(r"(?<=[^\W_])\\_(?=[^\W_])", "_", parts[place])
        part = re.sub(r"&amp;(?!#?\w+;)", "&", part)
        # Before a letter it could open a tag, before an address with @ be a link.
        parts[place] = re.sub(r"&lt;(?=\s|=|\d(?!\S*@))", "<", part)
    joined = "".join(parts)
    if "&lt;" in joined or "`" in joined:
        return joined
    # Behind a letter it opens no quotation.
    first = _LETTER.search(joined.replace("&gt;", "    "))
    at = first.start() if first else len(joined)
    return joined[:at] + joined[at:].replace("&gt;", ">")
