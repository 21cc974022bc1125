"""The verdict on a corpus in short: what was found, what is open, what to use, how sure it is."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from spanwise import layout
from spanwise.params import Params
from spanwise.reporting import tables
from spanwise.reporting.cells import Cell, cell_name
from spanwise.reporting.deviations import deviation
from spanwise.reporting.diagnose import diagnose, warned
from spanwise.reporting.gather import CorpusRecord
from spanwise.reporting.judgement import ZERO
from spanwise.reporting.markup import esc, figure, listed, many, standing, tag
from spanwise.reporting.verdict import Sentence, apart, best, contrast_rows

DEMONSTRATION = (
    "A demonstration. This corpus was written to contain the very traps that the study looks for. "
    "Its figures show that the laboratory works; they prove nothing about the world."
)


def short(
    record: CorpusRecord, params: Params, cell: Cell, answers: Sequence[Sentence]
) -> str:
    """Four lines for a reader who has a minute, as HTML.

    cell: whose contrasts are told; answers: its contrasts in params.yaml's order.
    """
    of = f"Means of {tables.TITLES[params.primary.measure]} in cell {cell_name(cell)}"
    steps = {row["name"]: apart(record, row, params)
             for row in contrast_rows(record, params, cell) if row["delta"] is not None}
    lines = [
        ("Found", _found(answers, steps)),
        ("Open", _open(answers, params)),
        ("Use", tag("p", esc(take(record, params, cell))) + tag(
            "p", f"{esc(best(record, params, cell))} {standing('exploratory')} "
            f"{esc(of)}: an order of means, no test.", class_="figures")),
        ("How sure", _sure(record) + _flags(record, params)),
    ]
    return tag("dl", "".join(
        tag("div", tag("dt", esc(name)) + tag("dd", inner)) for name, inner in lines if inner
    ), class_="short")


def _found(answers: Sequence[Sentence], steps: Mapping[str, str | None]) -> str:
    """Contrasts whose answer is no doubt, each with its standing.

    steps: what stands behind a contrast with a placebo, by its name: without it a gain over harm
           would read as a gain.
    """
    known = [said for said in answers if said.state in ("difference", "both", "equivalent")]
    if not known:
        return tag("p", "No contrast shows a difference or its absence.")
    told = ""
    for said in known:
        label = f" {standing(said.standing)}" if said.standing else ""
        told += tag("p", esc(f"{said.name}: {said.answer}") + label)
        if behind := steps.get(said.name):
            told += tag("p", f"{esc(behind)} {standing('exploratory')}", class_="figures")
    return told


def _open(answers: Sequence[Sentence], params: Params) -> str:
    """Contrasts without an answer by the word for them, and what would settle the nearest."""
    by_word: dict[str, list[str]] = {}
    for said in answers:
        if said.state in ("undetermined", "absent"):
            by_word.setdefault(said.badge, []).append(said.name)
    if not by_word:
        return ""
    told = "; ".join(f"{listed(names)}: {word}" for word, names in by_word.items()) + "."
    sizes = [(said.needed, said.name) for said in answers if said.needed is not None]
    if sizes:
        (questions, documents), name = min(sizes)
        told += (
            f" Underpowered says nothing against an effect: to find one of "
            f"{params.inference.margin:g} four times in five, {name} takes about "
            f"{many(questions, 'question')} in {many(documents, 'document')}"
            + (", the others more." if len(sizes) > 1 else ".")
        )
    return tag("p", esc(told))


def take(record: CorpusRecord, params: Params, cell: Cell) -> str:
    """Which condition to use on this corpus until more is known, as a sentence."""
    measure = params.primary.measure
    means: list[tuple[float, str]] = []
    lexical: list[tuple[float, str]] = []
    for name, its in params.conditions.items():
        if its.prefix == "placebo":
            continue  # foreign paths are there to be compared with, never to be used
        words_alone = its.retrieval == "bm25"
        row = record.mean((layout.LEXICAL, "none") if words_alone else cell, name, measure)
        if row is not None and row["mean"] is not None:
            (lexical if words_alone else means).append((row["mean"], name))
    if not means:
        return "Nothing: no condition has a mean in this cell."
    top, name = max(means, key=lambda found: found[0])  # the first of params.yaml on ties
    above = [found for found in lexical if found[0] >= top - ZERO]
    if above:
        mean, name = above[0]
        return f"{name}: no embedder does better here than words alone ({figure(mean)})."
    if len(means) > 1 and top - min(means)[0] <= ZERO:
        return "Whichever is cheapest: all conditions come out alike."
    described = tables.describe(params.conditions[name])
    return f"{name} ({described}), until more is known of this corpus."


def _flags(record: CorpusRecord, params: Params) -> str:
    flags = sum(check.flagged for check in diagnose(record, params))
    link = tag("a", many(flags, "diagnostic"), href=f"#c-{record.name}.diagnostics")
    return tag("p", f"{link} {'is' if flags == 1 else 'are'} not as expected.") if flags else ""


def _sure(record: CorpusRecord) -> str:
    """How far all this may be trusted: whether anything was cut, the registration, the corpus."""
    uncut = warned(record)
    first = tag("p", tag("strong", esc(uncut))) if uncut else ""
    if record.standing == "confirmatory":
        made = tag("p", "What ran is what was registered: its contrasts are confirmatory, all else "
                   "is exploratory.")
    elif len(record.differences) == 1:
        made = tag("p", "Everything here is exploratory. "
                   f"{deviation(record.differences[0]).html()}.")
    elif record.differences:
        made = tag("p", "Everything here is exploratory: what ran is not what was registered.")
        made += tag("details", tag("summary", many(len(record.differences), "difference")) + tag(
            "ul", "".join(tag("li", deviation(why).html()) for why in record.differences)))
    else:
        made = tag("p", "Everything here is exploratory.")
    return first + made + (tag("p", esc(DEMONSTRATION)) if record.demonstration else "")
