"""The verdicts as plain text, for a person who has just run the study."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence
from pathlib import Path

from spanwise.params import Params
from spanwise.reporting.cells import cell_name
from spanwise.reporting.deviations import deviation
from spanwise.reporting.diagnose import warned
from spanwise.reporting.gather import CorpusRecord
from spanwise.reporting.judgement import judge
from spanwise.reporting.markup import NONE, called, interval, probability, signed
from spanwise.reporting.summary import DEMONSTRATION, take
from spanwise.reporting.verdict import apart, contrast_rows, primary_cell, told

HEADS = ("", "asks", "difference", "95% interval", "Holm p", "verdict", "standing")

SHOWN = 3
"""Differences from the registration that are told here."""


def verdicts(records: Sequence[CorpusRecord], params: Params, page: Path) -> str:
    """One table for each corpus, a line for each contrast, then where the page lies.

    Reasons of absent contrasts, and of those that could show nothing, cautions, what to use, and
    differences from what was registered follow their table.
    """
    parts = [_corpus(record, params) for record in records]
    return "\n\n".join([*parts, f"The report: {page}"])


def _corpus(record: CorpusRecord, params: Params) -> str:
    cell = primary_cell(record, params)
    lines, notes = [HEADS], []
    if cell != (params.primary.embedder, params.primary.reranker):
        notes.append("The primary cell did not run, so nothing is confirmed.")
    if uncut := warned(record):
        notes.append(uncut)
    for row in contrast_rows(record, params, cell):
        says, said = judge(row, record.check(row), params), told(record, row, params)
        if says.state == "absent":
            lines.append((row["name"], said.title, NONE, NONE, NONE, "absent", "absent"))
        else:
            p = probability(row["p_holm"], params.inference.iterations, len(params.contrasts))
            lines.append((
                row["name"], said.title, signed(row["delta"]),
                interval(row["ci_low"], row["ci_high"]), p, says.words,
                called(row["standing"], record.demonstration),
            ))
        if says.state == "absent" or says.reason is not None:
            notes.append(f"{row['name']}: {said.answer}")
        notes += [f"{row['name']}: {doubt}." for doubt in said.doubts]
        if says.state in ("difference", "both") and (behind := apart(record, row, params)):
            notes.append(f"{row['name']}: {behind[0].lower()}{behind[1:]} Exploratory.")
    notes.append(f"To use: {take(record, params, cell)} An order of means, no test.")
    if record.differences:
        told_here = "; ".join(str(deviation(why)) for why in record.differences[:SHOWN])
        more = len(record.differences) - SHOWN
        notes.append(f"Exploratory, for what ran is not what was registered: {told_here}"
                     + (f"; and {more} more, on the page." if more > 0 else "."))
    if record.demonstration:
        notes.append(DEMONSTRATION)
    head = f"{record.name}: {params.primary.measure}, {cell_name(cell)}"
    below = [
        textwrap.fill(note, 100, initial_indent="  ", subsequent_indent="  ") for note in notes
    ]
    return "\n".join([head, *_aligned(lines), *below])


def _aligned(lines: Sequence[Sequence[str]]) -> list[str]:
    """Columns two spaces apart; nothing trails."""
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    return [
        ("  " + "  ".join(
            text.ljust(width) for text, width in zip(line, widths, strict=True)
        )).rstrip()
        for line in lines
    ]
