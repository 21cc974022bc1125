"""Induced trees of a whole corpus: verified, kept by digest, redone only where a text changed."""

from __future__ import annotations

import hashlib
import json
import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from spanwise import embedding, schemas
from spanwise.documents.model import Document, sha256
from spanwise.params import Params
from spanwise.structure.model import Tree, verify
from spanwise.structure.records import load_trees, section_table
from spanwise.structure.segmenter import VERSION, Segmenter, sentences
from spanwise.text.tokens import Tokenizer


def induce(
    documents: Sequence[Document], inducer: str, settings: Params, tokenizer: Tokenizer,
    folder: Path,
) -> dict[str, Any]:
    """Write `sections.parquet` (and the digests it is kept by) into `folder`.

    A document whose tree fails verification has no rows: it leaves every condition's index.
    returns: the report: inducer, documents, unusable ones with their violations, mean sections.
    """
    keys = {d.doc_id: _key(d, inducer, settings, tokenizer) for d in documents}
    kept = _kept(folder, keys)
    fresh = [d for d in documents if d.doc_id not in kept]
    unusable: dict[str, list[str]] = {}
    for document, tree in zip(fresh, _segment(fresh, settings, tokenizer, folder), strict=True):
        if violations := verify(tree, document.paragraphs):
            unusable[document.doc_id] = violations
        else:
            kept[document.doc_id] = tree
    trees = [kept[d.doc_id] for d in documents if d.doc_id in kept]
    schemas.write(folder / "sections.parquet", schemas.SECTIONS, section_table(trees))
    schemas.write_text(folder / "keys.json", json.dumps(keys, indent=0, sort_keys=True) + "\n")
    print(f"{len(fresh)} of {len(documents)} trees were induced now")
    return {
        "inducer": inducer,
        "documents": len(documents),
        "usable": len(trees),
        "unusable": unusable,
        "mean_sections": sum(len(t.sections) for t in trees) / max(1, len(trees)),
    }


def _key(document: Document, inducer: str, settings: Params, tokenizer: Tokenizer) -> str:
    """Digest of all that a tree depends on."""
    segmenter = settings.inducers.segmenter
    parts = [
        VERSION, embedding.VERSION, inducer, segmenter.model_dump(),
        settings.embedders[segmenter.embedder].model_dump(), tokenizer.name,
        sha256(document.body), [[p.span.start, p.span.end, p.kind] for p in document.paragraphs],
    ]
    return hashlib.sha256(json.dumps(parts, sort_keys=True).encode()).hexdigest()


def _kept(folder: Path, keys: dict[str, str]) -> dict[str, Tree]:
    """Trees of an earlier run whose digests still hold."""
    if not (folder / "keys.json").exists() or not (folder / "sections.parquet").exists():
        return {}
    earlier = json.loads((folder / "keys.json").read_text(encoding="utf-8"))
    return {
        doc_id: tree
        for doc_id, tree in load_trees(folder / "sections.parquet").items()
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
