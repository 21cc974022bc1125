"""What was fixed beforehand, and the comparison with what ran.

registration.json is written and committed before the strong embedder first runs on a corpus. A
result is confirmatory only while everything that it depends on equals the first entry that names
its corpus; until there is one, and for whatever deviates from it, all output says exploratory.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from spanwise import layout, schemas
from spanwise.errors import RegistrationError
from spanwise.params import MEASURES, Params

FILE = Path("registration.json")

EXCLUSIONS = (
    "questions without an answer",
    "questions whose evidence stands only in headings",
    "questions without evidence, or with evidence only in tables or figures",
    "rewordings of another question",
    "documents without a usable induced tree, and questions about them",
)


@dataclass(frozen=True, slots=True)
class Standing:
    """What a corpus's primary results may be called, and every reason why not `confirmatory`."""

    word: str
    differences: tuple[str, ...]
    parent_commit: str | None


def protocol(params: Params, digests: Mapping[str, Mapping[str, str]]) -> dict[str, Any]:
    """All that a confirmatory result depends on.

    digests: {corpus: {"documents": sha256, "questions": sha256}} of the study split.
    """
    arms = {arm for pair in params.contrasts.values() for arm in pair}
    return {
        "contrasts": {name: list(pair) for name, pair in params.contrasts.items()},
        "primary": params.primary.model_dump(),
        "measures": list(MEASURES),
        "exclusions": list(EXCLUSIONS),
        "inference": params.inference.model_dump(),
        "conditions": {
            name: its.model_dump() for name, its in params.conditions.items() if name in arms
        },
        "embedder": params.embedders[params.primary.embedder].model_dump(),
        "tokens": params.tokens.model_dump(),
        "encoders": {
            name: params.embedders[name].model_dump()
            for name in sorted({params.tokens.tokenizer, params.inducers.segmenter.embedder})
            if name in params.embedders
        },
        "chunking": params.chunking.model_dump(),
        "inducers": params.inducers.model_dump(),
        "prefixes": params.prefixes.model_dump(exclude={"context"}),
        "retrieval": params.retrieval.model_dump(),
        "corpora": {
            name: {**_corpus(params, name), **found} for name, found in digests.items()
        },
    }


def _corpus(params: Params, name: str) -> dict[str, Any]:
    """A corpus's entry, with the settings of the language model where its results depend on one.

    Where its questions came from is told by their digest, which takes that key. The study of units
    moves no result of the ablation.
    """
    corpus = params.corpora[name]
    found = corpus.model_dump(exclude={"questions", "units"})
    if corpus.contexts or corpus.inducer in ("hybrid", "llm"):
        found["llm"] = params.llm.model_dump()
    if corpus.contexts:
        found["context"] = params.prefixes.context.model_dump()
    return found


def load(path: Path = FILE) -> list[dict[str, Any]]:
    """The entries of a registration, oldest first; [] where there is none.

    raises: RegistrationError if the file is not a registration.
    """
    if not path.exists():
        return []
    try:
        entries = json.loads(path.read_text(encoding="utf-8"))["entries"]
        for entry in entries:
            if {"reason", "parent_commit", "protocol"} - set(entry):
                raise KeyError("reason, parent_commit, protocol")
            if not isinstance(entry["protocol"]["corpora"], dict):
                raise TypeError("corpora is no mapping")
    except (OSError, ValueError, KeyError, TypeError) as error:  # ValueError: no JSON, or no UTF-8
        raise RegistrationError(
            f"{path} is not a registration ({error}); restore the committed file with "
            f"`git checkout -- {path}`"
        ) from None
    return list(entries)


def register(
    params: Params, digests: Mapping[str, Mapping[str, str]], parent_commit: str, reason: str,
    path: Path = FILE, too_late: Collection[str] = (),
) -> None:
    """Append an entry; earlier ones stay.

    too_late: corpora on which the strong embedder has run already; the entry says so, and it will
              confirm nothing about them.

    raises: RegistrationError if nothing changed, or if an amendment has no reason.
    """
    entries = load(path)
    made = protocol(params, digests)
    if entries and not reason.strip():
        raise RegistrationError(f"{path} has an entry already: an amendment needs a reason")
    if entries and entries[-1]["protocol"] == made:
        raise RegistrationError(f"{path}: this protocol is registered already")
    entries.append(
        {
            "reason": reason.strip() or "first registration",
            "parent_commit": parent_commit,
            **({"too_late": sorted(too_late)} if too_late else {}),
            "protocol": made,
        }
    )
    schemas.write_text(path, json.dumps({"entries": entries}, indent=2, ensure_ascii=False) + "\n")


def digests_of(corpus: str) -> dict[str, str]:
    """SHA-256 of a corpus's documents and of the questions that are asked about them.

    raises: InputError if `parse` or `ask` has not run.
    """
    mend = "dvc repro parse ask"
    parsed = layout.read_report(layout.stage("parse", corpus) / "report.json", mend)
    asked = layout.read_report(layout.stage("ask", corpus) / "report.json", mend)
    return {
        "documents": parsed["study"]["digests"]["documents"],
        "questions": asked["digests"]["questions"],
    }


def register_now(params: Params, reason: str) -> str:
    """Register the corpora of params.yaml, parsed and asked, at the current commit.

    returns: what to do next.
    raises:  RegistrationError outside a git repository; InputError if `parse` or `ask` has not run
             on a corpus.
    """
    import subprocess

    found = {corpus: digests_of(corpus) for corpus in params.corpora}
    head = subprocess.run(
        ["git", "rev-parse", "HEAD"], capture_output=True, text=True, check=False
    )
    if head.returncode:
        raise RegistrationError(
            "no commit to register against; a registration proves its time by git: commit first"
        )
    named = {corpus for entry in load() for corpus in entry["protocol"]["corpora"]}
    late = [
        corpus
        for corpus in params.corpora
        if corpus not in named
        and (layout.cell("embed", corpus, params.primary.embedder) / "vectors.parquet").exists()
    ]
    register(params, found, head.stdout.strip(), reason, too_late=late)
    if late:
        return (
            f"{FILE} written, but {params.primary.embedder} has run already on {', '.join(late)}: "
            "their results stay exploratory. Commit it all the same:\n"
            f"  git add {FILE} && git commit -m 'Register the protocol'"
        )
    return (
        f"{FILE} written for {', '.join(found)}; commit it before the strong embedder runs:\n"
        f"  git add {FILE} && git commit -m 'Register the protocol'"
    )


def standing(
    params: Params, corpus: str, digests: Mapping[str, str], path: Path = FILE
) -> Standing:
    """Compare what ran on one corpus with the first entry that names it.

    The first and not the last: an amendment may have been made after the results were seen, so what
    it changes for a corpus is a deviation, listed like any other.
    """
    entries = load(path)
    if not entries:
        return Standing("exploratory", (f"nothing is registered in {path}",), None)
    entry = next((e for e in entries if corpus in e["protocol"]["corpora"]), None)
    if entry is None:
        return Standing("exploratory", (f"corpus {corpus} is not registered",), None)
    registered, ran = dict(entry["protocol"]), protocol(params, {corpus: digests})
    if "encoders" not in registered:  # entries of before name tokenizer and encoder alone
        del ran["encoders"]
    # Entries of before there were contexts knew none.
    registered["corpora"] = {corpus: {"contexts": False, **registered["corpora"][corpus]}}
    differences = list(_differences(registered, ran, ""))
    if corpus in entry.get("too_late", ()):
        differences.insert(0, f"{corpus} was registered after the strong embedder had run on it")
    word = "exploratory" if differences else "confirmatory"
    return Standing(word, tuple(differences), entry["parent_commit"])


def _differences(registered: Any, ran: Any, place: str) -> Iterator[str]:
    if isinstance(registered, Mapping) and isinstance(ran, Mapping):
        for name in sorted(registered.keys() | ran.keys()):
            here = f"{place}.{name}" if place else str(name)
            if name not in ran:
                yield f"{here}: registered, not in what ran"
            elif name not in registered:
                yield f"{here}: ran, not registered"
            else:
                yield from _differences(registered[name], ran[name], here)
    elif registered != ran:
        yield f"{place}: registered {registered!r}, ran {ran!r}"
