"""One line of wikitext on its way to text: what is literal, what was dropped, what is cleaned.

Two private characters travel inside a line until it is cleaned; a source's own are removed first.
"""

from __future__ import annotations

import html
import re

LITERAL = "\ue000"
"""What stands before it is text, not markup."""

DROPPED = "\ue001"
"""Something was dropped here."""

_MAGIC = re.compile(
    r"__(?:NO|FORCE)?TOC__|__NO(?:EDITSECTION|NEWSECTIONLINK|GALLERY|CONTENTCONVERT|CC|TITLECONVERT"
    r"|TC|INDEX|GLOBAL)__|__(?:NEWSECTIONLINK|HIDDENCAT|INDEX|STATICREDIRECT|DISAMBIG|START|END"
    r"|EXPECTUNUSEDCATEGORY|EXPECTED_UNCONNECTED_PAGE)__"
)
_INVISIBLE = re.compile("[\u00ad\u200b\u200e\u200f\u2060\ufeff\x00-\x08\x0e-\x1f\ud800-\udfff]")
_FILE = re.compile(r"\s*(?:file|image|media|category|datei|fichier|archivo)\s*:", re.I)
_LANGUAGE = re.compile(
    r"\s*(?:(?!mw:)[a-z]{2}|simple|als|arc|ast|bar|bat-smg|be-x-old|ceb|ckb|commons-lang|diq|fiu-vro"
    r"|hsb|ilo|kab|lad|lmo|map-bms|min|nah|nap|nds|nds-nl|pms|pnb|roa-tara|rue|scn|sco|vec|vls|war"
    r"|zh-(?:classical|min-nan|yue)):"
)
# An unclosed link to a file, up to the caption; other signs of markup that was never closed.
_LOOSE = re.compile(
    r"\[\[\s*(?:file|image|category)\s*:(?:[^|\]\n]*\|)*[^|\]\n]*?(?:\]\]|(?<=\|)|$)"
    r"|\{\{+|\}\}+|\[\[+|\]\]+|\{\||\|\}"
    r"|</?(?:ref|li|ul|ol|dl|dt|dd|tr|td|th|table|caption|tbody|small|big|sup|sub|span|div|center"
    r"|p|br|b|i|u|s|em|strong|font|code|tt|nowiki|blockquote|math|gallery|poem|includeonly"
    r"|noinclude|onlyinclude)\b[^<>\n]*/?>",
    re.I,
)


def literal(text: str) -> str:
    """Text that must not be taken for markup later: each sign is followed by a private one."""
    return LITERAL + re.sub(r"([{}\[\]|'<_])", rf"\1{LITERAL}", text) if text else ""


def plain(text: str) -> str:
    """The text alone, without private characters."""
    return text.replace(LITERAL, "").replace(DROPPED, "")


def decode(text: str) -> str:
    """Entities decoded; those that name no visible character become nothing."""
    return _INVISIBLE.sub("", html.unescape(text).replace("\ufffd", ""))


def shows_nothing(target: str) -> bool:
    """True for a link target that puts no text into its line: a file, category, other language."""
    return bool(_FILE.match(target) or _LANGUAGE.match(target))


def visible(text: str) -> str:
    """Text without invisible characters, its no-break blanks as blanks."""
    return _INVISIBLE.sub("", text.replace("\xa0", " "))


def clean(line: str, verbatim: bool = False) -> tuple[str, int]:
    """A line without what is not text, and how many signs of unclosed markup were removed.

    Bold and italics, magic words and signs of unclosed markup go, and with them what a dropped part
    leaves behind: an empty pair of parentheses, a separator at its edge, a blank before a full
    stop, a separator that begins the line. White space closes up unless the line is verbatim.
    """
    if "''" in line:
        line = without_quotes(line)
    line, mended = _LOOSE.subn(" ", _MAGIC.sub("", line))
    if DROPPED in line:
        line = re.sub(rf"^(?:\s*{DROPPED})+(?:[\s,;:]|\.(?!\d)|[–—-](?=\s))*", "", line)
        line = re.sub(rf"\((?:[\s;,/]*{DROPPED})+[\s;,/]*\)", DROPPED, line)
        line = re.sub(rf"\((?:[\s;,]*{DROPPED})+[\s;,]*", "(", line)
        line = re.sub(rf"(?:[\s;,]*{DROPPED})+\s*\)", ")", line)
        line = re.sub(rf"\s+{DROPPED}+(?=[.,;:!?)])", "", line)
        line = line.replace(DROPPED, "")
    line = _INVISIBLE.sub("", line.replace(LITERAL, ""))
    return (line.replace("\xa0", " ") if verbatim else " ".join(line.split())), mended


def without_quotes(line: str) -> str:
    """Remove the apostrophes of bold and italics by MediaWiki's rule for one line.

    Runs of two are italics, of three bold, of five both; of four, and of more than five, the first
    ones are text. If both bold and italics are left open, one bold's first apostrophe is text: that
    after a one-letter word, else after a longer word, else after a blank.

    >>> without_quotes("L'''amour'' fou")
    "L'amour fou"
    """
    parts = re.split(r"('{2,})", line)
    for i in range(1, len(parts), 2):
        run = len(parts[i])
        extra = 1 if run == 4 else max(0, run - 5)
        parts[i - 1] += "'" * extra
        parts[i] = "'" * (run - extra)
    runs = [len(run) for run in parts[1::2]]
    bold = sum(run in (3, 5) for run in runs)
    italic = sum(run in (2, 5) for run in runs)
    if bold % 2 and italic % 2:
        places: dict[str, int] = {}
        for i in range(1, len(parts), 2):
            before = parts[i - 1]
            if len(parts[i]) == 3:
                if before.endswith(" "):
                    places.setdefault("blank", i)
                elif before[-2:-1] == " ":
                    places.setdefault("letter", i)
                else:
                    places.setdefault("word", i)
        for where in ("letter", "word", "blank"):
            if where in places:
                parts[places[where] - 1] += "'"
                break
    return "".join(parts[::2])
