"""The part of a corpus's section on exact evidence units: does what was retrieved hold the evidence
whole? Verdict in words first, then tables, curves and comparisons. All of it is exploratory.
"""

from __future__ import annotations

from spanwise.params import Params
from spanwise.reporting import units_pairs as pairs
from spanwise.reporting import units_tables as tables
from spanwise.reporting.gather import DEVELOPMENT, CorpusRecord, UnitsRecord
from spanwise.reporting.markup import count, esc, listed, many, standing, tag
from spanwise.reporting.units_plots import curves, differences
from spanwise.reporting.units_verdict import CONNECTED, EQUAL, cutoff, told, whole

TEXTS = {
    "raw": "Each document's own text, headings included,",
    "body": "Each document's paragraphs, without its headings,",
}
JUDGES = {
    "given": "The needs came with the corpus, and so did their anchors.",
    "harvested": "The needs came with the corpus; the anchors are what its annotators quoted, "
                 "found again in its text.",
    "written": "A language model wrote the needs, for spans that were drawn beforehand: those "
               "spans are the anchors.",
    "authored": "The needs were written into a question file, for spans that were drawn "
                "beforehand: those spans are the anchors.",
}
"""Who said what would answer a need, by the origin of the questions."""
SAME_HAND = (
    "This corpus is a demonstration: the judgements were written by the same hand as the corpus, "
    "so they are neither blind nor independent of it. The wordings are by the same hand too, so "
    "that differences between retrievers are partly a property of the authoring."
)
REWORDED = (
    "Reworded needs share the anchors and bundles of the needs that they reword. They try other "
    "wordings on the same evidence, so agreement between the slices is no second confirmation."
)
COUNTING = (
    "Text that two units share counts twice, an empty list counts 0; no metadata and no separator "
    "is returned or counted. Characters are code points."
)
MATCHED = (
    "Each need is given as many characters as its first sections under the same retriever have, "
    "overlaps counted again and the last unit cut short: the same amount, unless a list is over "
    "before, which is counted beside the mean. Sections are given what they have at equal units, "
    "so that they alone always end whole. No equal amount separates boundaries from length: what "
    "remains of a difference still mixes where the units end with their size and their number."
)
CAUSES = (
    ("boundary", "no number of units of this segmentation holds a bundle, however large k is: of "
     "each some character lies in none of them. For sufficiency: no unit holds one by itself."),
    ("cutoff", "units of this segmentation do hold a bundle together, and more than k of them are "
     "needed. For sufficiency it is never the cause, for one unit is enough."),
    ("truncation", "k units or fewer would do, but not by the beginning of each that the encoder "
     "saw. BM25 reads every word, so it truncates nothing."),
    ("ranking", "what would do was seen, and stood too low."),
)
"""What each cause says, in the order in which they are asked for."""
GAPS = (
    "Each miss has one cause, the first of these that holds. Blank lines between units lie in no "
    "unit, and a gap is a gap, even one of white space: an anchor that runs over it is never held "
    "whole."
)
PAIRED = (
    "Paired by need; documents are resampled. Holm's correction is within the pairs under one "
    "heading, of one measure and amount. Bold: the interval does not hold 0 and Holm's p is below "
    "0.05; all else is undetermined. Where one retriever is subtracted from another, characters of "
    "sections are those of each one's own sections, so that amounts differ between the two."
)

CHOSEN = (
    "The segmentation that leads is chosen on the needs on which it is then compared, which "
    "flatters its lead. "
)


def part(record: CorpusRecord, params: Params) -> str:
    """The whole part as HTML; "" for a corpus without the study."""
    units = record.units
    if units is None:
        return ""
    name, reworded = record.name, [s for s in units.slices() if s != DEVELOPMENT]
    k = cutoff(units)
    parts = [
        tag("h3", f"Exact evidence units {standing('exploratory')}"),
        tag("p", esc(_cut(units)), class_="soft"),
        _verdict(units, params),
        tag("p", esc(CHOSEN + _compared(units)), class_="soft"),
        tag("p", esc(_judged(record, units))),
        tag("h4", "At equal units"),
        tables.equal_units(units, DEVELOPMENT, name),
        tag("p", "Sufficient: one of the first units holds every anchor of a bundle whole. "
            "Covered: they do so together. Bold is the highest under a retriever.", class_="soft"),
        *(_more(f"Equal units, {slice_} slice", tables.equal_units(units, slice_, name))
          for slice_ in reworded),
        tag("h4", "What was returned"),
        tables.returned(units, DEVELOPMENT, name),
        tag("p", esc(COUNTING), class_="soft"),
        *(_more(f"What was returned, {slice_} slice", tables.returned(units, slice_, name))
          for slice_ in reworded),
        *_matched(units, name),
        tag("h4", "At equal characters and equal tokens"),
        *(draw(units, counted, words) for counted, words in EQUAL.items()
          for draw in (curves, differences)),
        _more("The figures of these plots, whole units and cut ones", "".join(
            tables.equal_amounts(units, DEVELOPMENT, counted, name) for counted in EQUAL)),
        tag("p", esc(_ended(units)), class_="soft"),
        *(_more(f"Equal amounts, {slice_} slice", tables.matched(units, slice_, name) + "".join(
            tables.equal_amounts(units, slice_, counted, name) for counted in EQUAL
        )) for slice_ in reworded),
        tag("h4", f"Why needs were missed at {many(k, 'unit')}"),
        tag("p", esc(GAPS), class_="soft"),
        tag("dl", "".join(
            tag("div", tag("dt", esc(cause)) + tag("dd", esc(text))) for cause, text in CAUSES
        ), class_="causes"),
        _causes(units, DEVELOPMENT, name),
        *(_more(f"Why needs were missed, {slice_} slice", _causes(units, slice_, name))
          for slice_ in reworded),
        tag("h4", "What the encoder never saw"), tables.windows(units, name),
        tag("p", "A model's own default may be shorter, and then more is cut. Anchor characters "
            "are summed over the development needs and the units that hold them.", class_="soft"),
        tag("h4", "Comparisons"), pairs.in_view(units, params, name, "covered"),
        tag("p", esc(PAIRED), class_="soft"),
        _more("The same in single-unit sufficiency",
              pairs.in_view(units, params, name, "sufficient")),
        _more("All comparisons: every amount, both slices, each by itself",
              pairs.all_pairs(units, params, name) + pairs.connected(units, params, name)),
        tag("p", "<code>spanwise show NEED_ID</code> prints what was retrieved for one need, unit "
            "by unit, with the anchors that each holds.", class_="soft"),
    ]
    return tag("div", "".join(parts), class_="units", id=f"units-{name}")


def _causes(units: UnitsRecord, part: str, name: str) -> str:
    """The causes of one slice's misses, and what no number of units can cover."""
    return tables.causes(units, part, name) + tag(
        "p", esc(tables.never(units, part)), class_="soft")


def _more(title: str, inner: str) -> str:
    return tag("details", tag("summary", esc(title)) + inner) if inner else ""


def _cut(units: UnitsRecord) -> str:
    """What was cut, and by what rule."""
    about = units.about
    counts = [f"{count(n)} {name}" for name, n in about["units"].items()]
    text = f"{TEXTS.get(about['representation'], about['representation'])} is cut in "
    text += f"{many(len(counts), 'way')}: {listed(counts)}"
    sizes = about.get("cut_by", {}).get("windows")
    if sizes:
        text += (
            f" (of {many(sizes['size_tokens'], 'token')}, {count(sizes['overlap_tokens'])} shared "
            "with the next)"
        )
    return (
        f"{text}. A need is met where every anchor of one of its bundles is returned whole; the "
        "same words in another place do not count."
    )


def _verdict(units: UnitsRecord, params: Params) -> str:
    """What is held whole, then each retriever: who leads, and how far at the same amount."""
    items = tag("li", tag("div", "Held", class_="key") + tag(
        "div", tag("p", "Does what was retrieved hold the evidence whole?", class_="asks")
        + tag("p", esc(whole(units)), class_="answer"),
    ))
    for retriever in units.retrievers():
        found = told(units, params, retriever)
        if found is None:
            continue
        said = [tag("p", esc(text), class_="answer") for text in (found.answer, found.equal)
                if text is not None]
        if found.alone:
            said += [
                tag("p", "By themselves, with one budget for every need:", class_="figures"),
                tag("ul", "".join(tag("li", esc(text)) for text in found.alone), class_="alone"),
            ]
        items += tag("li", tag("div", esc(retriever), class_="key") + tag(
            "div",
            tag("p", "Which segmentation leads, and how far at the same amount of text?",
                class_="asks")
            + "".join(said) + tag("p", esc(found.rests), class_="figures"),
        ))
    return tag("ol", items, class_="answers")


def _compared(units: UnitsRecord) -> str:
    """How many comparisons there are, and how few of them a correction spans."""
    joined = [row for row in units.comparisons.values() if row["family"] == CONNECTED]
    again = sum(row["amount"] == cutoff(units) for row in joined)  # the others are in tables/
    once = many(len(units.comparisons) - len(joined), "comparison")
    text = f"The page holds {once} of this corpus"
    if again:
        text += f", and {count(again)} of them once more with connected documents as one cluster"
    return (
        f"{text}; Holm's correction spans only the pairs under one heading, so that some intervals "
        "may lie off 0 by chance."
    )


def _matched(units: UnitsRecord, name: str) -> list[str]:
    """The table of the development slice and what it means; nothing where it was not judged."""
    made = tables.matched(units, DEVELOPMENT, name)
    return [
        tag("h4", "At the same amount of text, need by need"), made,
        tag("p", esc(MATCHED), class_="soft"),
    ] if made else []


def _judged(record: CorpusRecord, units: UnitsRecord) -> str:
    """Who wrote the judgements, and what the slices are to one another."""
    origin = str(dict(record.reports).get("ask", {}).get("origin"))
    said = [JUDGES.get(origin, origin)]
    if record.demonstration:
        said.append(SAME_HAND)
    for slice_ in units.slices():
        said.append(f"The {slice_} slice has {tables.needs(units, slice_)}.")
    if len(units.slices()) > 1:
        said.append(REWORDED)
    return " ".join(said)


def _ended(units: UnitsRecord) -> str:
    """How many lists were over before their budget was full."""
    if not any(row["ended"] for key, row in units.means.items() if key[3] != "units"):
        return "No list was over before its budget was full."
    return (
        "Lists that were over before their budget was full are counted beside the mean, as ended: "
        "they return less than the others."
    )
