"""The few templates whose text belongs to the sentence they stand in; all others are dropped.

A template's definition is not in the page, so what it would display is known only for those named
here: INLINE (rendered as a piece of a line) and BLOCKS (rendered as paragraphs). Quantities keep
the value as written, without the converted one. Nothing here emits more words than the template's
own source has.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from mwparserfromhell.nodes import Template
from mwparserfromhell.wikicode import Wikicode

UNITS: Mapping[str, str] = {
    "C": "°C", "F": "°F", "km2": "km²", "m2": "m²", "cm2": "cm²", "ft2": "ft²", "m3": "m³",
    "km3": "km³", "cm3": "cm³", "ft3": "ft³", "sqmi": "sq mi", "sqft": "sq ft", "sqkm": "km²",
    "cuft": "cu ft", "cumi": "cu mi",
}
_BETWEEN: Mapping[str, str] = {
    "to": " to ", "and": " and ", "or": " or ", "by": " by ", "x": " × ", "×": " × ", "-": "–",
    "–": "–", "to(-)": " to ", "+/-": " ± ", "±": " ± ", "to about": " to about ", "*": " × ",
}
_NUMBER = re.compile(r"[-−+]?[\d.,]+(?:[eE][-−+]?\d+)?(?:[⁄/]\d+)?(?:\+\d+/\d+)?")


@dataclass(frozen=True, slots=True)
class Call:
    """A template call: its rendered positional parameters, and named ones rendered on demand."""

    template: Template
    render: Callable[[Wikicode], str]

    def at(self, index: int) -> str:
        """Positional parameter, from 1, as text; empty if there is none."""
        return self.named(str(index))

    def named(self, *names: str) -> str:
        """The first of these parameters that is given and not blank, as text; else empty."""
        for name in names:
            if self.template.has(name, ignore_empty=True):
                return self.render(self.template.get(name).value).strip()
        return ""

    def positional(self) -> list[str]:
        """All positional parameters from 1 up to the first that is missing."""
        texts: list[str] = []
        while self.template.has(str(len(texts) + 1)):
            texts.append(self.at(len(texts) + 1))
        return texts


def template_name(template: Template) -> str:
    """A template's name: lower case, comments dropped, blanks and underscores closed up.

    Templates are told apart by more than case only where it is a mistake to confuse them.
    """
    name = template.name.strip_code(normalize=True) if template.name.nodes else ""
    return " ".join(str(name).replace("_", " ").split()).lower().removeprefix("template:")


def _first(call: Call) -> str:
    return call.at(1)


def _or(text: str) -> Callable[[Call], str]:
    """The first parameter, or what the template displays without any."""
    return lambda call: call.at(1) or text


def _second(call: Call) -> str:
    return call.at(2)


def _last(call: Call) -> str:
    return (call.positional() or [""])[-1]


def _joined(separator: str) -> Callable[[Call], str]:
    return lambda call: separator.join(text for text in call.positional() if text)


def _sign(text: str) -> Callable[[Call], str]:
    return lambda _: text


def _convert(call: Call) -> str:
    """{{convert|5|to|10|km|mi}} -> `5 to 10 km`; {{convert|6|ft|2|in|m}} -> `6 ft 2 in`."""
    parts = call.positional()
    if not parts:
        return ""
    text, i = parts[0], 1
    while i + 1 < len(parts) and parts[i] in _BETWEEN:
        text, i = text + _BETWEEN[parts[i]] + parts[i + 1], i + 2
    if i < len(parts):
        text, i = f"{text} {UNITS.get(parts[i], parts[i])}", i + 1
    # A number and then a unit go on with the measure; a number at the end is a precision.
    while i + 1 < len(parts) and _NUMBER.fullmatch(parts[i]) and not _NUMBER.match(parts[i + 1]):
        text, i = f"{text} {parts[i]} {UNITS.get(parts[i + 1], parts[i + 1])}", i + 2
    return text


def _val(call: Call) -> str:
    """{{val|1.5|0.2|e=3|u=km}} -> `1.5 ± 0.2 × 10^3 km`."""
    text = call.at(1)
    error, power, unit = call.at(2), call.named("e"), call.named("u", "ul")
    text += f" ± {error}" if error else ""
    text += f"×10^{power}" if power else ""
    return f"{text} {unit}" if unit else text


def _fraction(call: Call) -> str:
    parts = call.positional()
    if len(parts) >= 3:
        return f"{parts[0]} {parts[1]}/{parts[2]}"
    return "/".join(parts) if len(parts) == 2 else "1/" + "".join(parts)


def _as_of(call: Call) -> str:
    since = "since" if call.named("since") else "as of"
    word = since if call.named("lc") else since.capitalize()
    date = " ".join(reversed([text for text in call.positional()[:3] if text]))
    return call.named("alt") or f"{word} {date}"


def _nihongo(call: Call) -> str:
    """{{nihongo|English|kanji|romaji}} -> `English (kanji, romaji)`."""
    beside = ", ".join(text for text in (call.at(2), call.at(3)) if text)
    return f"{call.at(1)} ({beside})" if call.at(1) and beside else call.at(1) or beside


def _ship(prefix: str) -> Callable[[Call], str]:
    return lambda call: f"{prefix} {call.at(1)}"


def _nuclide(call: Call) -> str:
    return "-".join(call.positional()[:2])


def _date(call: Call) -> str:
    return " ".join(text for text in call.positional()[:3] if text)


INLINE: Mapping[str, Callable[[Call], str]] = {
    # what is wrapped for its looks or its language
    **dict.fromkeys(
        ("nowrap", "nobreak", "nobr", "small", "smaller", "big", "larger", "large", "sc",
         "smallcaps", "small caps", "sc2", "abbr", "abbrlink", "tooltip", "vanchor",
         "visible anchor", "code", "mono", "tt", "kbd", "var", "mvar", "samp", "strong", "em",
         "ill", "interlanguage link", "longitem", "vol.", "script", "unicode", "nobold",
         "noitalic", "normal", "text", "center", "not a typo", "as written", "math", "polytonic",
         "flag", "flagcountry", "nts", "formatnum", "lc", "uc", "italics correction", "nastaliq",
         "hebrew", "cuneiform", "translation", "literal translation", "pad", "ipa", "railgauge",
         "midsize", "nq"), _first),
    **dict.fromkeys(
        ("lang", "resize", "native name", "color", "colored text", "font color", "rtl-lang",
         "legend inline"), _second),
    **dict.fromkeys(("transl", "transliteration", "script/arabic"), _last),
    **dict.fromkeys(("linktext", "chem", "chem2", "ce"), _joined("")),
    **dict.fromkeys(
        ("hlist", "plainlist", "plain list", "unbulleted list", "ubl", "ublist", "vunblist",
         "flatlist", "flat list", "collapsible list"), _joined(", ")),
    **dict.fromkeys(("keypress", "key press", "key"), _joined("+")),
    "bartable": lambda call: " ".join(filter(None, (call.at(1), call.at(2)))),
    **{name: _or(text) for name, text in {
        "n/a": "N/A", "yes": "Yes", "no": "No", "won": "Won", "nom": "Nominated", "sic": "[sic]",
        "partial": "Partial", "dunno": "?"}.items()},
    # quantities and dates
    **dict.fromkeys(("convert", "cvt"), _convert),
    "val": _val,
    **dict.fromkeys(("frac", "fraction", "sfrac"), _fraction),
    "sup": lambda call: f"^{call.at(1)}",
    "sub": _first,
    **dict.fromkeys(("e", "esp"), lambda call: f"×10^{call.at(1)}"),
    "pow": lambda call: f"{call.at(1)}^{call.at(2)}",
    "as of": _as_of,
    **dict.fromkeys(("dts", "start date", "end date", "date"), _date),
    **dict.fromkeys(("simplenuclide", "simplenuclide2", "nuclide", "nuclide2"), _nuclide),
    # names
    "nihongo": _nihongo,
    **{name.lower(): _ship(name) for name in ("USS", "HMS", "HMAS", "HMCS", "RMS", "SS", "MS")},
    # signs
    **dict.fromkeys(("ndash", "en dash"), _sign("–")),
    **dict.fromkeys(("mdash", "em dash", "mdashb"), _sign("—")),
    **dict.fromkeys(("snd", "spnd", "spaced ndash", "spaced en dash"), _sign(" – ")),
    **dict.fromkeys(("·", "dot", "middot", "bullet", "•", "bull"), _sign(" · ")),
    **dict.fromkeys(("nbsp", "spaces", "space", "thinsp", "thin space", "hair space"), _sign(" ")),
    **dict.fromkeys(("!", "pipe"), _sign("|")),
    **dict.fromkeys(("'s", "-'s"), _sign("'s")),
    **dict.fromkeys(("'", "-'"), _sign("'")),
    **dict.fromkeys(("' \"", "'\""), _sign("'\"")),
    "-\"": _sign('"'),
    "=": _sign("="),
    "eqm": _sign("⇌"),
    "music": lambda call: {"flat": "♭", "sharp": "♯", "natural": "♮"}.get(call.at(1), ""),
    "us$": lambda call: f"US${call.at(1)}",
    "minus": _sign("−"),
    "deg": _sign("°"),
    "angbr": lambda call: f"⟨{call.at(1)}⟩",
}
"""Name (lower case) -> what it displays. `lang-xx` and `IPA-xx` are their first parameter."""

BLOCKS: Mapping[str, tuple[tuple[str, ...], tuple[str, ...]]] = {
    **dict.fromkeys(
        ("quote", "blockquote", "bquote", "cquote", "quotation", "centered pull quote", "rquote",
         "long quote", "poemquote", "poem quote", "verse translation"),
        (("text", "quote", "1"), ("author", "sign", "2", "source", "3"))),
    "quote box": (("quote", "1"), ("author", "source")),
    **dict.fromkeys(("columns-list", "col-list", "columns list"), (("2", "1"), ())),
    "div col list": (("1",), ()),
}
"""Name -> (parameters that may hold the text, parameters that hold whom it is from)."""


def inline(template: Template, render: Callable[[Wikicode], str]) -> str | None:
    """What a template displays within a line, or None if it is dropped."""
    name = template_name(template)
    call = Call(template, render)
    if name in INLINE:
        return INLINE[name](call)
    if re.fullmatch(r"(?:lang|ipa)-[a-z-]+", name):
        return call.at(1)
    function, colon, first = name.partition(":")
    if colon and function in ("formatnum", "lc", "uc", "lcfirst", "ucfirst"):
        # A parser function's first argument is part of what the parser takes for the name.
        text = str(template.name).partition(":")[2].strip() if first else ""
        return {"lc": text.lower(), "uc": text.upper()}.get(function, text)
    return None
