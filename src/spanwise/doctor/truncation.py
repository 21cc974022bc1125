"""Chunks of which an encoder does not see all."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from spanwise import layout, models
from spanwise.doctor import weights
from spanwise.doctor.corpora import Seen
from spanwise.doctor.estimates import PATH, SAMPLE
from spanwise.doctor.findings import NOTE, OK, Finding
from spanwise.errors import SpanwiseError
from spanwise.params import EmbedderSettings, Params


def look(params: Params, seen: Seen) -> list[Finding]:
    """A line for each embedder: counted where its vectors are, else expected."""
    found = []
    for name, its in params.embedders.items():
        place, report = f"window {seen.name} {name}", _embed_report(seen, name)
        counts = report.get("beyond_window", {})
        if counts and report.get("window_tokens") == its.max_seq_length:
            cut = {label: n["chunks_beyond_window"] for label, n in counts.items()}
            if not any(cut.values()):
                found.append(Finding(place, OK, "every chunk that was embedded fits, with its "
                                     "prefix"))
                continue
            worst = max(cut, key=lambda label: counts[label]["share_of_chunks"])
            found.append(Finding(
                place, NOTE, f"{sum(cut.values())} chunks do not fit into {its.max_seq_length} "
                f"tokens, most in {worst}: {cut[worst]}, with "
                f"{counts[worst]['share_of_evidence_characters']:.1%} of the evidence",
                "lower chunking.cap_tokens, or raise max_seq_length if the model can",
            ))
            continue
        found.append(_expected(params, seen, name, its))
    return found


def _embed_report(seen: Seen, embedder: str) -> Mapping[str, Any]:
    path = layout.cell_report("embed", seen.name, embedder)
    if not seen.holds("embed", embedder) or not path.exists():
        return {}
    try:
        return layout.read_report(path)
    except json.JSONDecodeError:
        return {}


def _expected(params: Params, seen: Seen, name: str, its: EmbedderSettings) -> Finding:
    place = f"window {seen.name} {name}"
    contexts = seen.settings.contexts and any(
        c.prefix == "context" for c in params.conditions.values()
    )
    prefix = max(2 * PATH, params.prefixes.context.most_tokens if contexts else 0)
    ratio = _ratio(params, seen, its)
    longest = round((params.chunking.cap_tokens + prefix) * ratio) + 2
    said = (f"the longest chunk ({params.chunking.cap_tokens} tokens, chunking.cap_tokens) with "
            f"its prefix is about {longest} tokens for this encoder; it sees {its.max_seq_length}")
    if longest <= its.max_seq_length:
        return Finding(place, OK, f"{said}: nothing is cut off")
    fits = max(1, int((its.max_seq_length - 2) / ratio) - prefix)
    return Finding(
        place, NOTE, f"{said}, and what lies beyond is never embedded",
        f"lower chunking.cap_tokens to {fits}, or raise max_seq_length if the model can",
    )


def _ratio(params: Params, seen: Seen, its: EmbedderSettings) -> float:
    """Tokens of an embedder for one of the study's, on a part of this corpus."""
    from spanwise.text.tokens import from_folder

    folder, name = weights.found(its.model), params.tokens.tokenizer
    here = name == "words" or weights.found(params.embedders[name].model) is not None
    sample = "\n".join(d.body for d in seen.documents)[:SAMPLE // 5]
    if not sample.strip() or folder is None or not here:
        return 1.35 if name == "words" else 1.0  # sub-words of English
    if name != "words" and params.embedders[name].model == its.model:
        return 1.0
    try:
        own = from_folder(its.model, folder).count(sample)
        return own / max(1, models.tokenizer(params).count(sample))
    except SpanwiseError:
        return 1.0
