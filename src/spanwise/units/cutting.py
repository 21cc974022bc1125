"""Documents -> units: the same documents divided by three policies.

With the edges their size, their number and the statistics of terms differ too.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pyarrow as pa

from spanwise import schemas
from spanwise.chunking.units import blocks, sections, windows
from spanwise.corpora.readers import raw_blocks
from spanwise.documents.model import Document, sha256
from spanwise.errors import ParamsError
from spanwise.params import Params, UnitsSettings
from spanwise.spans import Span
from spanwise.structure.model import Tree
from spanwise.text.tokens import Tokenizer
from spanwise.units.identity import Parent, passage_id, reference

SEGMENTATIONS = ("blocks", "sections", "windows")


def cut_by(params: Params) -> dict[str, Any]:
    """All settings of the study but those of the retrievers."""
    return {**params.units.model_dump(), "tokenizer": params.tokens.tokenizer}


def cut(
    documents: Sequence[Document], known: Mapping[str, Parent], trees: Mapping[str, Tree],
    reader: str, tokenizer: Tokenizer, settings: UnitsSettings,
) -> dict[str, pa.Table]:
    """The manifest of each segmentation, a UNITS table.

    documents: those of the trusted view; known: their parents; trees: their native trees.
    reader:    what read them, which knows the blocks of a raw text. On `body` a block is a
               paragraph, a section what the author wrote under one heading, and no unit holds a
               heading.
    raises:    MarkupError for a fence that is not closed, with its line; ParamsError for a cutoff
               above the number of units.
    """
    rows: dict[str, list[dict[str, object]]] = {name: [] for name in SEGMENTATIONS}
    for document in documents:
        parent = known[document.doc_id]
        spans = _spans(document, parent, trees[document.doc_id], reader, tokenizer, settings)
        for name, found in spans.items():
            for span in found:
                text = parent.text[span.start : span.end]
                rows[name].append(
                    {
                        "segmentation": name,
                        "passage_id": passage_id(name, parent, span.start, span.end),
                        **reference(parent), "start": span.start, "end": span.end,
                        "tokens": tokenizer.count(text), "text_sha256": sha256(text),
                    }
                )
    for name, made in rows.items():
        if settings.cutoffs[-1] > len(made):
            raise ParamsError(
                f"units.cutoffs: the first {settings.cutoffs[-1]} units are asked for, and there "
                f"are {len(made)} {name}; lower it in params.yaml, or set `units: false` for this "
                "corpus"
            )
    return {name: schemas.table(schemas.UNITS, made) for name, made in rows.items()}


def _spans(
    document: Document, parent: Parent, tree: Tree, reader: str, tokenizer: Tokenizer,
    settings: UnitsSettings,
) -> dict[str, list[Span]]:
    its = settings.windows
    found = {"windows": windows(parent.text, tokenizer, its.size_tokens, its.overlap_tokens)}
    if parent.representation == "raw":
        listed = raw_blocks(reader, parent.text, document.doc_id, document)
        return found | {"blocks": blocks(listed), "sections": sections(listed)}
    return found | {
        "blocks": blocks(document.paragraphs),
        "sections": [Span(s.start, s.end) for s in tree.sections if s.last >= s.first],
    }
