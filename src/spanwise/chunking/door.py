"""`spanwise chunk`: one file in, spans as JSON lines out."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

from spanwise.chunking.chunks import chunk_fixed, chunk_structural
from spanwise.chunking.cuts import measure
from spanwise.chunking.units import blocks, sections, windows
from spanwise.documents.model import Document, document_id
from spanwise.errors import InputError, MarkupError
from spanwise.params import ChunkingSettings
from spanwise.spans import Span
from spanwise.structure.native import native_tree
from spanwise.text.tokens import Tokenizer

SEGMENTATIONS = ("native", "fixed", "blocks", "sections", "windows")
REPRESENTATIONS = ("body", "raw")
FORMATS = {
    ".md": "markdown", ".markdown": "markdown", ".txt": "text", ".text": "text",
    ".wikitext": "wikitext", ".wiki": "wikitext", ".json": "qasper", ".rst": "rst",
    ".html": "html", ".htm": "html", ".xhtml": "html", ".pdf": "pdf", ".docx": "docx",
}
LAID_OUT = frozenset({"rst", "html", "pdf", "docx"})
"""Formats whose raw text is what a reader lays them out as."""

CAP, FLOOR = 350, 60


def chunk_file(
    path: Path, segmentation: str, size: int, overlap: int, tokenizer: Tokenizer,
    representation: str | None = None, format_: str | None = None,
) -> tuple[list[dict[str, Any]], dict[str, str]]:
    """Chunk every document of one file.

    size:    tokens of a window; fixed windows have it on average. Structural chunks are cut at 350
             tokens and merged below 60, whatever the size. No fixed chunk exceeds 350 tokens
             either, unless a larger size is asked for: then 1.4 times that.
    overlap: tokens that two neighbouring windows share; the other segmentations have none.
    returns: rows `doc_id start end tokens path chunk_id`, which `spanwise score --chunks` reads,
             and the text that the offsets index by document.
    raises:  InputError for a combination that cannot be; what the readers raise.
    """
    for given, known, name in (
        (segmentation, SEGMENTATIONS, "segmentation"),
        (representation, (None, *REPRESENTATIONS), "representation"),
    ):
        if given not in known:
            listed = ", ".join(str(k) for k in known if k)
            raise InputError(f"{name} {given!r}: expected one of {listed}")
    if size < 1:
        raise InputError(f"size {size}: expected at least 1 token")
    if overlap < 0:
        raise InputError(f"overlap {overlap}: expected at least 0 tokens")
    wanted = representation or ("body" if segmentation in ("native", "fixed") else "raw")
    rows: list[dict[str, Any]] = []
    texts: dict[str, str] = {}
    chosen = _format(path, format_)
    for document in _documents(path, chosen):
        view = document if wanted == "body" else _raw_view(document, path, chosen)
        texts[view.doc_id] = view.body
        rows += _rows(view, segmentation, size, overlap, tokenizer)
    return rows, texts


def _rows(
    view: Document, segmentation: str, size: int, overlap: int, tokenizer: Tokenizer
) -> Iterator[dict[str, Any]]:
    tree = native_tree(view)
    if segmentation in ("native", "fixed"):
        cap = CAP if segmentation == "native" or size <= CAP else round(1.4 * size)
        settings = ChunkingSettings(cap_tokens=cap, floor_tokens=FLOOR)
        ruler = measure(view, tokenizer, cap)
        if segmentation == "native":
            chunks, _ = chunk_structural(view, tree, segmentation, ruler, tokenizer, settings)
        else:
            chunks, _ = chunk_fixed(view, size, ruler, tokenizer, settings)
        for chunk in chunks:
            yield _row(view, Span(chunk.start, chunk.end), chunk.tokens, list(chunk.path))
        return
    if segmentation == "windows":
        spans = windows(view.body, tokenizer, size, overlap)
    elif segmentation == "blocks":
        spans = blocks(view.paragraphs)
    elif view.body == view.raw:
        spans = sections(view.paragraphs)
    else:  # headings are not in body: the tree alone knows where sections begin
        spans = [Span(s.start, s.end) for s in tree.sections if s.last >= s.first]
    paths = tree.paths()
    owner = [
        index for index, s in enumerate(tree.sections) for _ in range(s.first, s.last + 1)
    ]
    starts = {p.span.start: place for place, p in enumerate(view.paragraphs)}
    for span in spans:
        place = starts.get(span.start)
        path = paths[owner[place]] if place is not None and segmentation != "windows" else ()
        yield _row(
            view, span, tokenizer.count(view.body[span.start : span.end]), [view.title, *path]
        )


def _row(view: Document, span: Span, tokens: int, path: list[str]) -> dict[str, Any]:
    return {
        "doc_id": view.doc_id, "start": span.start, "end": span.end, "tokens": tokens, "path": path,
        "chunk_id": f"{view.doc_id}:{span.start}-{span.end}",
    }


def _format(path: Path, named: str | None) -> str:
    if path.is_dir():
        raise InputError(f"{path}: a folder, expected one file; name a file in it")
    if not path.exists():
        raise InputError(f"{path}: no such file; mend the path")
    chosen = named or FORMATS.get(path.suffix.lower())
    if chosen is None or chosen not in FORMATS.values():
        known = ", ".join(sorted(set(FORMATS.values())))
        raise InputError(
            f"{path}: format {named or path.suffix!r} is unknown; give --format, one of {known}"
        )
    return chosen


def _documents(path: Path, chosen: str) -> list[Document]:
    if chosen == "qasper":
        from spanwise.corpora import qasper

        return list(qasper.read(path, options={}).documents)
    from spanwise.text.decoding import read_text

    try:
        doc_id = document_id(path.stem)
    except UnicodeEncodeError:
        raise InputError(f"{path!a}: the file's name is not UTF-8; rename the file") from None
    if chosen in LAID_OUT:
        from spanwise.corpora.folder import read_file

        document, _, _ = read_file(path, doc_id, kind=chosen)
        if document is None:
            raise InputError(f"{path}: no text in it; expected at least one paragraph")
        return [document]
    text = read_text(path).text
    if chosen == "wikitext":
        from spanwise.corpora.wikitext import read_wikitext

        try:
            return [read_wikitext(doc_id, path.stem, text)]
        except MarkupError as error:
            raise MarkupError(f"{path}: {error}") from None
    from spanwise.corpora import markdown
    from spanwise.corpora import text as plain

    read = markdown.read_document if chosen == "markdown" else plain.read_document
    return [read(doc_id, text, stem=path.stem, where=str(path))]


def _raw_view(document: Document, path: Path, chosen: str) -> Document:
    """The document over its own raw text."""
    if document.raw is None:
        raise InputError(
            f"{path}: this format is flattened, it has no raw text; use --representation body"
        )
    if chosen == "text":
        raw = tuple(replace(p, span=p.raw) for p in document.paragraphs if p.raw is not None)
        return replace(document, body=document.raw, paragraphs=raw)
    if chosen in LAID_OUT:
        from spanwise.corpora.linear import raw_view as laid_out

        return laid_out(document)
    from spanwise.corpora.markdown import raw_view

    return raw_view(document, str(path))


def as_lines(rows: list[dict[str, Any]]) -> str:
    """Rows as JSON lines."""
    return "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows)


def text_out(texts: dict[str, str]) -> str:
    """The text that the offsets index: itself for one document, else JSON lines `doc_id text`."""
    if len(texts) == 1:
        (text,) = texts.values()
        return text
    return as_lines([{"doc_id": doc_id, "text": text} for doc_id, text in texts.items()])
