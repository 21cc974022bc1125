"""Topic buckets of Wikipedia articles by keywords in their categories.

The study names six buckets and the rule (non-hidden categories, the first bucket of the table that
matches, else `other`); its keyword table is lost. KEYWORDS is this project's own, so the shares of
the buckets are ours. A dump does not say which categories are hidden, so maintenance categories are
recognised by their names, HIDDEN; categories that templates add are not in the page and unknown.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

OTHER = "other"

KEYWORDS: Mapping[str, tuple[str, ...]] = {
    "history_war": (
        "war", "wars", "wartime", "battle", "battles", "siege", "sieges", "military", "army",
        "armies", "navy", "naval", "air force", "air forces", "regiments", "warships",
        "battleships", "cruisers", "destroyers", "submarines", "conflict", "conflicts", "invasions",
        "rebellion", "rebellions", "revolt", "revolts", "revolution", "revolutions",
        "revolutionary", "uprisings", "coups", "treaty", "treaties", "massacres", "genocide",
        "genocides", "assassinations", "history of", "military history", "historical",
    ),
    "biography": (
        "births", "deaths", "living people", "people from", "people of", "people in", "alumni",
        "burials", "saints", "monarchs",
    ),
    "science_nature": (
        "science", "sciences", "scientific", "biology", "biochemistry", "chemistry", "chemical",
        "chemicals", "physics", "astronomy", "mathematics", "mathematical", "algorithms",
        "statistics", "statistical", "computing", "computer", "technology", "engineering",
        "spacecraft", "missions", "spaceflight", "space", "planets", "moons", "asteroids", "comets",
        "stars", "galaxies", "medicine", "medical", "disease", "diseases", "disorder", "disorders",
        "anatomy", "genetics", "evolution", "evolutionary", "psychology", "ecology", "species",
        "animals", "mammals", "birds", "fish", "reptiles", "amphibians", "insects",
        "plants", "fungi", "bacteria", "viruses", "algae", "flora", "fauna", "genera", "taxa",
        "dinosaurs", "fossils", "first appearances", "elements", "compounds", "hydrocarbons",
        "acids", "metals", "minerals", "geology", "agronomy", "climate", "climatology",
        "meteorology", "hurricanes", "hurricane", "cyclones", "storms", "tornadoes", "earthquakes",
        "radiation",
    ),
    "arts_media": (
        "film", "films", "cinema", "novel", "novels", "book", "books", "literature", "literary",
        "poem", "poems", "poetry", "essays", "plays", "song", "songs", "single", "singles", "album",
        "albums", "music", "musical", "musicals", "opera", "operas", "compositions", "art", "arts",
        "painting", "paintings", "sculpture", "sculptures", "artworks", "architecture", "theatre",
        "dance", "ballets", "animation", "television", "episodes", "radio", "video games", "comics",
        "characters", "fiction", "fictional", "magazines", "newspapers", "journals", "awards",
    ),
    "geography_places": (
        "geography", "countries", "country", "cities", "towns", "villages", "municipalities",
        "counties", "provinces", "districts", "states and territories", "states of", "u.s. states",
        "continents", "regions", "populated places", "islands", "island", "rivers", "lakes",
        "mountains", "volcanoes", "oceans", "ocean", "seas", "landforms", "parks", "gardens",
        "roads", "highways", "railway", "stations", "bridges", "buildings", "economy of",
        "transport in", "demographics of", "politics of",
    ),
}
"""Whole words or phrases, case ignored, in table order; the first bucket that matches wins."""

BUCKETS: tuple[str, ...] = (*KEYWORDS, OTHER)

HIDDEN = re.compile(
    r"(?:all |pages |pages using |articles? |wikipedia|wikiproject|cs1|webarchive|commons category"
    r"|commons link|use (?:[dm]{2}y|\w+ english)|engvarb|short description|coordinates |"
    r"good articles|featured articles|accuracy disputes|npov disputes|harv and sfn|infobox |"
    r"official website|redirects |requests for|orphaned |incomplete |interlanguage link|"
    r"template |user |vague or ambiguous|cleanup |copied |dead link|disambiguation pages|"
    r"lang and lang-xx|isbn |issn |subscription required|unreferenced |units of measure |"
    r"dynamic lists|twitter username|.*\bwikidata\b|.*\bfrom wikimedia|.* errors?:|.*\bstubs?$"
    r"|.*\bin need of\b|.*\bwithout (?:images|citations)|.* articles (?:needing|missing|with)\b)",
    re.I,
)
"""Names of maintenance categories, from their start."""

_PATTERNS = {
    bucket: re.compile(r"\b(?:" + "|".join(map(re.escape, words)) + r")\b", re.I)
    for bucket, words in KEYWORDS.items()
}
_NO_MARKUP = re.compile(r"<!--.*?(?:-->|\Z)|<nowiki>.*?</nowiki>", re.S | re.I)
_CATEGORY = re.compile(r"\[\[\s*category\s*:\s*([^\[\]|]+)", re.I)
_FEATURED = re.compile(r"\{\{\s*(?:template:)?featured[ _]?article\s*(?:\||\}\})", re.I)


def categories(wikitext: str) -> list[str]:
    """The categories that a page names itself, in order, without repeats and hidden ones."""
    names = (
        " ".join(name.replace("_", " ").split())
        for name in _CATEGORY.findall(_NO_MARKUP.sub("", wikitext))
    )
    return [name for name in dict.fromkeys(names) if name and not HIDDEN.match(name)]


def is_featured(wikitext: str) -> bool:
    """True if the page carries {{Featured article}}."""
    return _FEATURED.search(_NO_MARKUP.sub("", wikitext)) is not None


def bucket_of(names: Iterable[str]) -> str:
    """The first bucket in table order of which any keyword stands in any category.

    >>> bucket_of(["1809 births", "People of the Black Hawk War"]), bucket_of(["Logic"])
    ('history_war', 'other')
    """
    known = list(names)
    for bucket, pattern in _PATTERNS.items():
        if any(pattern.search(name) for name in known):
            return bucket
    return OTHER
