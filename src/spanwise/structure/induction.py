"""Induced trees of a whole corpus, by the inducer that params.yaml names, verified and counted.

`segmenter` needs no language model: its trees are kept by digest and redone only where a text
changed. `hybrid` gives them the model's titles; `llm` asks the model for the whole outline. What
the model answered is kept in the stage's folder, so a second run asks nothing.
"""

from __future__ import annotations

import hashlib
import json
import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from spanwise import embedding, schemas
from spanwise.documents.model import Document, sha256
from spanwise.llm.cache import answering, forget
from spanwise.llm.client import settings_of
from spanwise.llm.showing import counter
from spanwise.params import Params
from spanwise.structure import hybrid, outline
from spanwise.structure.model import Tree, verify
from spanwise.structure.outline import OutlineSettings
from spanwise.structure.records import load_trees, section_table
from spanwise.structure.segmenter import VERSION, Segmenter, sentences
from spanwise.text.tokens import Tokenizer

_SEGMENTED = "segmenter.parquet"
_KEYS = "keys.json"


def induce(
    documents: Sequence[Document], inducer: str, settings: Params, tokenizer: Tokenizer,
    folder: Path,
) -> dict[str, Any]:
    """Write `sections.parquet`, and what it is made again from, into `folder`.

    A document whose tree fails verification has no rows: it leaves every condition's index. What
    another inducer left in the folder goes, so that its content follows from the settings alone.
    inducer: segmenter, hybrid or llm.
    returns: the report: inducer, documents, unusable ones with their violations, mean sections,
             and what became of the model's answers.
    raises:  Unavailable if the model is needed and cannot be had.
    """
    trees: dict[str, Tree]
    unusable = {d.doc_id: ["it has no paragraphs"] for d in documents if not d.paragraphs}
    full = [d for d in documents if d.paragraphs]
    counts: dict[str, Any] = {}
    if inducer == "llm":
        for name in (_SEGMENTED, _KEYS):
            (folder / name).unlink(missing_ok=True)
        trees, wrong, counts = _outlined(full, settings, tokenizer, folder)
    else:
        trees, wrong = _segmented(full, settings, tokenizer, folder)
        if inducer == "hybrid":
            trees, counts = _titled(full, trees, settings, tokenizer, folder)
        else:
            forget(folder)
    unusable |= wrong
    made = [trees[d.doc_id] for d in documents if d.doc_id in trees]
    schemas.write(folder / "sections.parquet", schemas.SECTIONS, section_table(made))
    return {
        "inducer": inducer,
        "documents": len(documents),
        "usable": len(made),
        "unusable": unusable,
        "mean_sections": sum(len(t.sections) for t in made) / max(1, len(made)),
        **counts,
    }


def _outlined(
    documents: Sequence[Document], settings: Params, tokenizer: Tokenizer, folder: Path
) -> tuple[dict[str, Tree], dict[str, list[str]], dict[str, Any]]:
    limits = OutlineSettings(settings.llm.context_tokens, counter(tokenizer))
    with answering(settings_of(settings), folder) as answers:
        found = outline.induce_outlines(documents, answers.ask, limits)
    trees = {one.doc_id: one.tree for one in found if one.tree is not None}
    unusable = {one.doc_id: list(one.violations) for one in found if one.tree is None}
    return trees, unusable, {"outlines": {**outline.tally(found), **answers.report()}}


def _titled(
    documents: Sequence[Document], trees: Mapping[str, Tree], settings: Params,
    tokenizer: Tokenizer, folder: Path,
) -> tuple[dict[str, Tree], dict[str, Any]]:
    limits = OutlineSettings(settings.llm.context_tokens, counter(tokenizer))
    mine = [d for d in documents if d.doc_id in trees]
    with answering(settings_of(settings), folder) as answers:
        found = hybrid.title_sections(mine, [trees[d.doc_id] for d in mine], answers.ask, limits)
    titled = {one.tree.doc_id: one.tree for one in found}
    return titled, {"titles": {**hybrid.tally(found), **answers.report()}}


def _segmented(
    documents: Sequence[Document], settings: Params, tokenizer: Tokenizer, folder: Path
) -> tuple[dict[str, Tree], dict[str, list[str]]]:
    """The segmenter's trees, kept in a file of their own and by the digests beside it."""
    keys = {d.doc_id: _key(d, settings, tokenizer) for d in documents}
    kept = _kept(folder, keys)
    fresh = [d for d in documents if d.doc_id not in kept]
    unusable: dict[str, list[str]] = {}
    made = _segment(fresh, settings, tokenizer, folder)
    for document, tree in zip(fresh, made, strict=True):
        if violations := verify(tree, document.paragraphs):
            unusable[document.doc_id] = violations
        else:
            kept[document.doc_id] = tree
    trees = [kept[d.doc_id] for d in documents if d.doc_id in kept]
    schemas.write(folder / _SEGMENTED, schemas.SECTIONS, section_table(trees))
    schemas.write_text(folder / _KEYS, json.dumps(keys, indent=0, sort_keys=True) + "\n")
    print(f"{len(fresh)} of {len(documents)} trees were segmented now")
    return kept, unusable


def _key(document: Document, settings: Params, tokenizer: Tokenizer) -> str:
    """Digest of all that a segmenter's tree depends on."""
    segmenter = settings.inducers.segmenter
    parts = [
        VERSION, embedding.VERSION, "segmenter", segmenter.model_dump(),
        settings.embedders[segmenter.embedder].model_dump(), tokenizer.name,
        sha256(document.body), [[p.span.start, p.span.end, p.kind] for p in document.paragraphs],
    ]
    return hashlib.sha256(json.dumps(parts, sort_keys=True).encode()).hexdigest()


def _kept(folder: Path, keys: Mapping[str, str]) -> dict[str, Tree]:
    """Trees of an earlier run whose digests still hold."""
    if not (folder / _KEYS).exists() or not (folder / _SEGMENTED).exists():
        return {}
    earlier = json.loads((folder / _KEYS).read_text(encoding="utf-8"))
    return {
        doc_id: tree
        for doc_id, tree in load_trees(folder / _SEGMENTED).items()
        if doc_id in keys and earlier.get(doc_id) == keys[doc_id]
    }


def _segment(
    documents: Sequence[Document], settings: Params, tokenizer: Tokenizer, folder: Path
) -> list[Tree]:
    if not documents:
        return []
    segmenter = settings.inducers.segmenter
    # While work goes on, finished sentences lie here, so that an interrupted run resumes.
    partial = folder / "partial"
    partial.mkdir(parents=True, exist_ok=True)
    asked = [s for document in documents for group in sentences(document) for s in group]
    encoder = settings.embedders[segmenter.embedder]

    def ready(texts: list[str]) -> Segmenter:
        """A segmenter for which every one of these texts has its vector."""
        vectors, _ = embedding.embed(texts, encoder, partial)
        return Segmenter(vectors.of, tokenizer.count, segmenter.levels, segmenter.section_tokens)

    # Two rounds, so that the whole corpus shares each: sentences decide the cuts, and only then is
    # it known which phrases could be titles.
    first = ready(asked)
    plans = [first.plan(document) for document in documents]
    phrases = [phrase for plan in plans for node in plan.nodes for phrase in node.candidates]
    final = ready([*asked, *phrases])
    trees = [final.induce(document) for document in documents]
    shutil.rmtree(partial)
    return trees
