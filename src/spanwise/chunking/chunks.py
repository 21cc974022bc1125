"""All segmentations of a corpus as one table, with size matching and what it realised."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from spanwise.chunking.cuts import Ruler, measure
from spanwise.chunking.fixed import fixed
from spanwise.chunking.structural import structural
from spanwise.documents.model import Document
from spanwise.errors import CorpusError
from spanwise.params import ChunkingSettings
from spanwise.structure.model import Tree
from spanwise.text.tokens import Tokenizer


@dataclass(frozen=True, slots=True)
class Chunk:
    """A span of one document's body that is embedded and retrieved as one unit.

    path: the document's title, then the titles of the section that holds most of its characters;
          the title alone in fixed chunks.
    node: index of the top-level section it is routed by; 0 in fixed chunks.
    """

    segmentation: str
    doc_id: str
    start: int
    end: int
    tokens: int
    path: tuple[str, ...]
    node: int

    @property
    def chunk_id(self) -> str:
        """Its content's place, so that reruns agree: `doc7:120-480`."""
        return f"{self.doc_id}:{self.start}-{self.end}"


def chunk_structural(
    document: Document, tree: Tree, segmentation: str, ruler: Ruler, tokenizer: Tokenizer,
    settings: ChunkingSettings,
) -> tuple[list[Chunk], Counter[str]]:
    """One document's chunks by one tree, and the counts of `structural`."""
    pieces, counts = structural(
        ruler, tree, len(document.body), settings.cap_tokens, settings.floor_tokens
    )
    paths, tops = tree.paths(), tree.tops()
    chunks = [
        _chunk(
            document, segmentation, piece.start, piece.end, tokenizer, settings,
            (document.title, *paths[piece.section]), tops[piece.section],
        )
        for piece in pieces
    ]
    return chunks, counts


def chunk_fixed(
    document: Document, size_tokens: float, ruler: Ruler, tokenizer: Tokenizer,
    settings: ChunkingSettings,
) -> tuple[list[Chunk], Counter[str]]:
    """One document's windows of `size_tokens`, and the counts of `fixed`."""
    spans, counts = fixed(ruler, len(document.body), size_tokens, settings.cap_tokens)
    return [
        _chunk(document, "fixed", s.start, s.end, tokenizer, settings, (document.title,), 0)
        for s in spans
    ], counts


def _chunk(
    document: Document, segmentation: str, start: int, end: int, tokenizer: Tokenizer,
    settings: ChunkingSettings, path: tuple[str, ...], node: int,
) -> Chunk:
    tokens = tokenizer.count(document.body[start:end])
    if tokens > settings.cap_tokens:
        raise CorpusError(
            f"{document.doc_id} [{start}, {end}): {tokens} tokens, above the cap of "
            f"{settings.cap_tokens}: {tokenizer.name} counts this text differently in part than in "
            "whole; set tokens.tokenizer to another one"
        )
    return Chunk(segmentation, document.doc_id, start, end, tokens, path, node)


def chunk_corpus(
    documents: Sequence[Document], trees: Mapping[str, Mapping[str, Tree]], tokenizer: Tokenizer,
    settings: ChunkingSettings,
) -> tuple[list[Chunk], dict[str, Any]]:
    """Every segmentation of every document.

    trees:   {"native": {doc_id: tree}, "induced": {doc_id: tree}}; a document without an induced
             tree leaves every segmentation, counted.
    returns: chunks, and a report: counts by segmentation, mean tokens, size matching.
    raises:  CorpusError if no document has an induced tree.
    """
    chunks: list[Chunk] = []
    counts: dict[str, Counter[str]] = {name: Counter() for name in ("fixed", "induced", "native")}
    unusable = [d.doc_id for d in documents if d.doc_id not in trees["induced"]]
    if documents and len(unusable) == len(documents):
        raise CorpusError(
            f"no document of {len(documents)} has a usable induced tree, so nothing is left to "
            "compare; name another inducer for this corpus in params.yaml (`segmenter` needs no "
            "language model)"
        )
    forced = 0
    for document in documents:
        if document.doc_id not in trees["induced"]:
            continue
        ruler = measure(document, tokenizer, settings.cap_tokens)
        forced += ruler.forced
        for segmentation in ("induced", "native"):
            tree = trees[segmentation][document.doc_id]
            made, tally = chunk_structural(
                document, tree, segmentation, ruler, tokenizer, settings
            )
            chunks += made
            counts[segmentation] += tally
            if segmentation == "induced":
                size = sum(chunk.tokens for chunk in made) / len(made)
        made, tally = chunk_fixed(document, size, ruler, tokenizer, settings)
        chunks += made
        counts["fixed"] += tally
    means = {name: _mean([c.tokens for c in chunks if c.segmentation == name]) for name in counts}
    gap = abs(means["fixed"] - means["induced"])
    native = {(c.doc_id, c.start, c.end) for c in chunks if c.segmentation == "native"}
    induced = [(c.doc_id, c.start, c.end) for c in chunks if c.segmentation == "induced"]
    report = {
        "documents": len(documents) - len(unusable),
        "unusable_induced_trees": unusable,
        "sentences_cut_at_the_cap": forced,
        "segmentations": {
            name: {
                "chunks": sum(c.segmentation == name for c in chunks),
                "mean_tokens": means[name],
                "max_tokens": max((c.tokens for c in chunks if c.segmentation == name), default=0),
                **dict(sorted(tally.items())),
            }
            for name, tally in counts.items()
        },
        "size_matching": {
            "gap_tokens": gap,
            "tolerance_tokens": settings.size_tolerance_tokens,
            "within": gap <= settings.size_tolerance_tokens,
        },
        "induced_spans_identical_to_native": _mean([span in native for span in induced]),
    }
    return chunks, report


def _mean(values: Sequence[float]) -> float:
    return sum(values) / len(values) if values else 0.0
