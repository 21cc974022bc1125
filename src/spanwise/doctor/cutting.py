"""Corpora whose documents are too short to be cut: then there is nothing to compare."""

from __future__ import annotations

from statistics import median

from spanwise.doctor.corpora import Seen
from spanwise.doctor.findings import NOTE, Finding
from spanwise.doctor.work import Estimate
from spanwise.params import SEGMENTATIONS, Params

NEARLY = 0.9
"""Share of the documents that are one chunk each from which on a segmentation cuts nothing."""


def look(params: Params, seen: Seen, made: Estimate) -> list[Finding]:
    """A line where fixed and induced chunks are whole documents, counted or foretold."""
    whole = _counted(seen, made) if made.counted else _foretold(params, seen, made)
    if not {"fixed", "induced"} <= whole:
        return []
    cap, sizes = params.chunking.cap_tokens, _sizes(seen, made)
    short = sum(size < cap for size in sizes)
    all_of_it = whole >= set(SEGMENTATIONS)
    return [Finding(
        f"cutting {seen.name}", NOTE,
        f"{'nothing is cut' if all_of_it else 'fixed and induced chunks are whole documents'}: "
        f"{short} of {len(sizes)} documents are shorter than chunking.cap_tokens ({cap}), so "
        f"{'segmentations and routing' if all_of_it else 'fixed and induced'} cannot differ "
        f"(median document: {median(sizes):.0f} tokens)",
        "lower chunking.cap_tokens, and with it inducers.segmenter.section_tokens (now "
        f"{params.inducers.segmenter.section_tokens}) and chunking.floor_tokens (now "
        f"{params.chunking.floor_tokens}), well below the median document",
    )]


def _sizes(seen: Seen, made: Estimate) -> list[float]:
    """Tokens of each document: its share of all, by its length."""
    total = sum(len(d.body) for d in seen.documents)
    return [made.tokens * len(d.body) / max(1, total) for d in seen.documents]


def _counted(seen: Seen, made: Estimate) -> set[str]:
    most = len(seen.documents) / NEARLY
    return {name for name in SEGMENTATIONS if made.chunks[name] <= most}


def _foretold(params: Params, seen: Seen, made: Estimate) -> set[str]:
    """A document is one induced chunk where it is no longer than a section is to be, and fixed
    chunks have the size of induced ones; a native one where the author's sections are merged."""
    enough = NEARLY * len(seen.documents)
    section = min(params.chunking.cap_tokens, params.inducers.segmenter.section_tokens)
    sizes, floor = _sizes(seen, made), params.chunking.floor_tokens
    merged = sum(
        size < section and (size < floor or not document.headings)
        for size, document in zip(sizes, seen.documents, strict=True)
    )
    induced = sum(size < section for size in sizes) >= enough
    found = {"fixed", "induced"} if induced else set()
    return found | {"native"} if merged >= enough else found
