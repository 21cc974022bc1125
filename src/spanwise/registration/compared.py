"""What ran, held against the first entry that knows its corpus."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from spanwise.params import (
    CorpusSettings,
    EmbedderSettings,
    ExternalSettings,
    Params,
    RerankerSettings,
)
from spanwise.registration.entries import FILE, Entry, edited, load
from spanwise.registration.fixed import protocol
from spanwise.registration.named import Counting, counting
from spanwise.statistics.linearised import FEW


@dataclass(frozen=True, slots=True)
class Standing:
    """What a corpus's primary results may be called, and every reason why not `confirmatory`."""

    word: str
    differences: tuple[str, ...]
    parent_commit: str | None


def standing(
    params: Params, corpus: str, digests: Mapping[str, str], path: Path = FILE,
    documents: int | None = None,
) -> Standing:
    """Compare what ran on one corpus with the first entry that names it or holds its digests.

    The first and not the last: an amendment may have been made after the results were seen, so what
    it changes for a corpus is a deviation, listed like any other. A new name makes no new corpus.
    That the entry came first in time is not compared here: git alone can tell (`proof`).

    documents: with questions that are compared; below FEW the interval of record is another one,
               which old entries do not know. None: not asked.
    raises:    RegistrationError if the file is not a registration.
    """
    entries = load(path)
    if not entries:
        return Standing("exploratory", (f"nothing is registered in {path}",), None)
    counts = counting(entries, corpus, digests)
    if counts is None:
        return Standing("exploratory", (f"corpus {corpus} is not registered",), None)
    entry = entries[counts.index]
    found = [why for i, why in edited(entries) if i <= counts.index]
    if counts.name in entry.get("too_late", ()):
        found.append(f"{corpus} was registered after the strong embedder had run on it")
    registered, ran = dict(entry["protocol"]), protocol(params, {corpus: digests})
    # One document has no interval by either rule.
    if "statistics" not in registered and documents is not None and 1 < documents < FEW:
        found.append(
            "interval of record: registered none (percentile), ran linearised below "
            f"{FEW} documents"
        )
    registered["corpora"] = {corpus: _renamed(registered["corpora"][counts.name], counts, corpus)}
    found += _differences(*_comparable(params, registered, ran), "")
    return Standing(
        "exploratory" if found else "confirmatory", tuple(found), entry["parent_commit"]
    )


def explored(params: Params, entry: Entry) -> list[str]:
    """How the exploratory family differs from the registered one: it is so named either way."""
    registered = entry["protocol"].get("exploratory")
    if registered is None:
        return []
    return list(_differences(registered, protocol(params, {})["exploratory"], "exploratory"))


def _renamed(its: Mapping[str, Any], counts: Counting, corpus: str) -> Mapping[str, Any]:
    """A corpus as it was registered, in the folder that its name of now demands: data/NAME."""
    home, path = f"data/{counts.name}", its.get("path")
    if isinstance(path, str) and f"{path}/".startswith(f"{home}/"):
        return {**its, "path": f"data/{corpus}{path.removeprefix(home)}"}
    return its


def _comparable(
    params: Params, registered: dict[str, Any], ran: dict[str, Any]
) -> tuple[dict[str, Any], dict[str, Any]]:
    """Both sides without what the entry cannot know, nor what confirms nothing."""
    for key in ("encoders", "statistics"):  # entries of before name neither
        if key not in registered:
            ran.pop(key)
    registered.pop("exploratory", None)
    ran.pop("exploratory")
    for key in ("primary", "inference", "tokens", "chunking", "inducers", "prefixes", "retrieval"):
        _fill(registered, key, ran, type(getattr(params, key)))
    _fill(registered, "embedder", ran, EmbedderSettings)
    if "reranker" in ran:
        _fill(registered, "reranker", ran, RerankerSettings)
    for part, model in (("encoders", EmbedderSettings), ("external", ExternalSettings),
                        ("corpora", CorpusSettings)):
        if isinstance(registered.get(part), Mapping):
            registered[part] = dict(registered[part])
            for name in registered[part].keys() & ran.get(part, {}).keys():
                _fill(registered[part], name, ran[part], model)
    return registered, ran


def _fill(registered: dict[str, Any], key: str, ran: Mapping[str, Any], model: Any) -> None:
    """Give settings that came after an entry was written the default that they had unsaid."""
    known, now = registered.get(key), ran[key]
    if not isinstance(known, Mapping):
        return
    filled = dict(known)
    for name in now:
        field = model.model_fields.get(name)
        if field is None:
            continue
        if name not in filled and not field.is_required():
            default = field.get_default(call_default_factory=True)
            filled[name] = default.model_dump() if hasattr(default, "model_dump") else default
        elif hasattr(field.annotation, "model_fields"):
            _fill(filled, name, now, field.annotation)
    registered[key] = filled


def _differences(registered: Any, ran: Any, place: str) -> Iterator[str]:
    if isinstance(registered, Mapping) and isinstance(ran, Mapping):
        for name in sorted(registered.keys() | ran.keys()):
            here = f"{place}.{word(name)}" if place else word(name)
            if name not in ran:
                yield f"{here}: registered, not in what ran"
            elif name not in registered:
                yield f"{here}: ran, not registered"
            else:
                yield from _differences(registered[name], ran[name], here)
    elif registered != ran:
        part, _, what = place.rpartition(".")
        if part.startswith("corpora.") and what in ("documents", "questions"):
            was, now = short(registered), short(ran)
            yield f"{what} changed since registration (digest {was}, now {now})"
        else:
            before, after = word(registered), word(ran)
            if before == after:  # a number and its text
                before, after = json.dumps(registered), json.dumps(ran)
            yield f"{place}: registered {before}, ran {after}"


def short(digest: Any) -> str:
    """The beginning of a digest or a commit, enough to tell it from others."""
    return word(digest)[:12]


def word(value: Any) -> str:
    """A value as a person reads it: text without quotes, lists with commas, else as in JSON.

    >>> word("minilm"), word(["A3", "P"]), word(True), word("")
    ('minilm', 'A3, P', 'true', '""')
    """
    if isinstance(value, str) and value.isprintable() and value.strip() == value != "":
        return value
    if isinstance(value, list) and value and not any(isinstance(v, list | dict) for v in value):
        return ", ".join(map(word, value))
    text = json.dumps(value, ensure_ascii=False)
    return text if text.isprintable() else json.dumps(value)
