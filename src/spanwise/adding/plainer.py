"""docling's Markdown without marks that nobody would quote."""

from __future__ import annotations

import re

_PICTURE = "<!-- image -->"
_INDENT = 3
"""Columns by which a fence may stand to the right of what holds it; from 4 on it is text of it."""
_OPENING = re.compile(r"([\s>]*(?:(?:[-*+]|\d+[.)])\s+)*)(`{3,}(?=[^`]*$)|~{3,})")
_CLOSING = re.compile(r"([\s>]*)(`{3,}|~{3,})\s*")
_CODE = re.compile(r"(?<!`)(`+)(?!`).+?(?<!`)\1(?!`)")
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
    pictures = 0
    fence: re.Match[str] | None = None
    given = text.split("\n")
    for line, below in zip(given, [*given[1:], ""], strict=True):
        opened, fence = fence, _fence(fence, line)
        fenced = bool(opened or fence)  # its last line too
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


def _fence(opened: re.Match[str] | None, line: str) -> re.Match[str] | None:
    """The fence that is open below a line, by CommonMark's rule, where it was opened.

    One is closed by its own character, at least as often, with nothing behind it.
    """
    if opened is None:
        return _OPENING.match(line)
    found = _CLOSING.fullmatch(line)
    closes = (found is not None and found[2].startswith(opened[2])
              and len(found[1]) <= len(opened[1]) + _INDENT)
    return None if closes else opened


def _line(line: str) -> str:
    """One line outside of a fence, its inline code as it is."""
    parts: list[str] = []
    at = 0
    for code in _CODE.finditer(line):
        parts += [_words(line[at : code.start()]), code[0]]
        at = code.end()
    joined = "".join([*parts, _words(line[at:])])
    if "&lt;" in joined or "`" in joined:
        return joined
    # Behind a letter it opens no quotation.
    first = _LETTER.search(joined.replace("&gt;", "    "))
    at = first.start() if first else len(joined)
    return joined[:at] + joined[at:].replace("&gt;", ">")


def _words(part: str) -> str:
    """What is no code of a line."""
    part = re.sub(r"(?<=[^\W_])\\_(?=[^\W_])", "_", part)
    part = re.sub(r"&amp;(?!#?\w+;)", "&", part)
    # Before a letter it could open a tag, before an address with @ be a link.
    return re.sub(r"&lt;(?=\s|=|\d(?!\S*@))", "<", part)
