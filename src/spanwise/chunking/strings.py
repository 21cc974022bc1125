"""`spanwise spans`: a file of chunks that are known as strings in, the same chunks as spans out."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from spanwise.chunking.door import FORMATS, LAID_OUT
from spanwise.chunking.recovery import OPTIONS, recover
from spanwise.documents.model import document_id
from spanwise.errors import AmbiguousChunk, ChunkError, DecodingError
from spanwise.spans import Span
from spanwise.text.decoding import read_text
from spanwise.text.lists import Item, read_list


@dataclass(frozen=True, slots=True)
class _Text:
    """A document's text. file: which it is no text of but what a reader lays out, else None."""

    text: str
    file: Path | None = None


def spans_of(
    chunks: Path, texts: Path, whitespace: str = "exact", overlap: int | None = None
) -> list[dict[str, Any]]:
    """Chunks with `start` and `end` in place of `text`, in the order of the file.

    chunks:     JSON lines `doc_id text`, each document's chunks in the order of its text; further
                keys stay. Without a `chunk_id` a chunk is called by its place.
    texts:      a folder of files named after the documents, JSON lines `doc_id text`, or the one
                file of chunks about one document. The text of .rst, .html, .pdf and .docx is what
                their readers lay out, `raw` of a corpus; of any other file, the file itself.
    whitespace, overlap: as `recover` takes them.
    raises:     ChunkError with file, line and key, or with the chunk that has no place or several.
    """
    items = _items(chunks)
    held: dict[str, list[int]] = {}
    for place, item in enumerate(items):
        held.setdefault(_string(item, "doc_id"), []).append(place)
        _string(item, "text")
        if known := {"start", "end"} & item.fields.keys():
            raise ChunkError(
                f"{item.where}: `{sorted(known)[0]}` stands there already; leave it out, or give "
                "the file to `spanwise score` as it is"
            )
    bodies = _texts(texts, list(held))
    found: list[dict[str, Any]] = [{} for _ in items]
    for doc_id, places in held.items():
        spans = _recovered(
            bodies[doc_id], [items[place].fields["text"] for place in places],
            f"{chunks}: {doc_id}", whitespace, overlap,
        )
        for place, span in zip(places, spans, strict=True):
            fields = items[place].fields
            found[place] = {
                "chunk_id": fields.get("chunk_id", f"{doc_id}:{span.start}-{span.end}"),
                "doc_id": doc_id, "start": span.start, "end": span.end,
                **{k: v for k, v in fields.items() if k not in ("chunk_id", "doc_id", "text")},
            }
    seen: dict[str, str] = {}
    for item, row in zip(items, found, strict=True):
        name = row["chunk_id"]
        if not isinstance(name, str) or name.split() != [name]:
            raise ChunkError(
                f"{item.where}: `chunk_id` {name!r}; expected text without white space"
            )
        if name in seen:
            raise ChunkError(
                f"{item.where}: chunk {name!r} is that of {seen[name]}; leave one of them out, or "
                "give each a `chunk_id` of its own"
            )
        seen[name] = item.where
    return found


def _recovered(
    body: _Text, strings: list[str], where: str, whitespace: str, overlap: int | None
) -> list[Span]:
    try:
        return recover(body.text, strings, where, whitespace, overlap, OPTIONS)
    except AmbiguousChunk:
        raise
    except ChunkError as error:
        if body.file is None:
            raise
        raise ChunkError(
            f"{error}. The text of {body.file} is what `spanwise chunk {body.file} "
            "--representation raw --text-out TEXT` writes, not its markup or another program's "
            "reading: split that, or give what was split as JSON lines (doc_id, text)"
        ) from None


def _items(path: Path) -> list[Item]:
    if path.suffix != ".jsonl":
        raise ChunkError(f"{path}: expected JSON lines; give the file a name that ends in .jsonl")
    return read_list(path, str(path), ChunkError)


def _string(item: Item, key: str) -> str:
    value = item.fields.get(key)
    if not isinstance(value, str):
        found = "is missing" if value is None else f"is {type(value).__name__}"
        raise ChunkError(f"{item.where}: `{key}` {found}; expected text")
    return value


def _texts(path: Path, wanted: list[str]) -> Mapping[str, _Text]:
    """The text of each document that chunks are of."""
    if path.suffix == ".jsonl":
        found: dict[str, _Text] = {}
        for item in _items(path):
            doc_id = _string(item, "doc_id")
            if doc_id in found:
                raise ChunkError(f"{item.where}: document {doc_id!r} stands twice; keep one")
            found[doc_id] = _Text(_string(item, "text"))
    elif path.is_dir():
        found = _named(path, wanted)
    elif len(wanted) > 1:
        raise ChunkError(
            f"{path}: one text, but the chunks are of {len(wanted)} documents; give a folder, or "
            "JSON lines of doc_id and text"
        )
    else:
        found = {wanted[0]: _text(path)}
    for doc_id in wanted:
        if doc_id not in found:
            raise ChunkError(f"{path}: no text of {doc_id!r}, which chunks are of; add it")
    return found


def _text(path: Path) -> _Text:
    """The text of one file, as a corpus has it as `raw`."""
    kind = FORMATS.get(path.suffix.lower())
    if kind in LAID_OUT:
        from spanwise.corpora.folder import read_file

        document, _, _ = read_file(path, "text", kind=kind)
        if document is None or document.raw is None:
            raise ChunkError(f"{path}: no text in it; expected at least one paragraph")
        return _Text(document.raw, path)
    if kind in ("wikitext", "qasper"):
        raise ChunkError(
            f"{path}: {kind} is read as text without its markup, and the file itself is no text "
            "that a corpus has; give what was split as JSON lines (doc_id, text)"
        )
    try:
        return _Text(read_text(path).text)
    except DecodingError:
        if kind is not None:
            raise
        raise ChunkError(  # a .pptx or .epub that is converted is spoilt
            f"{path}: no plain text in UTF-8, and none of {', '.join(sorted(LAID_OUT))}, which are "
            "read too; give what was split as JSON lines (doc_id, text)"
        ) from None


def _named(folder: Path, wanted: list[str]) -> dict[str, _Text]:
    """The text of the one file that each document is named after, with its suffix or without."""
    files: dict[str, list[Path]] = {}
    for path in sorted(p for p in folder.rglob("*") if p.is_file()):
        inside = path.relative_to(folder)
        for name in {inside.as_posix(), inside.with_suffix("").as_posix()}:
            try:
                files.setdefault(document_id(name), []).append(path)
            except UnicodeEncodeError:
                continue  # a name that is no text is no document's
    found = {}
    for doc_id in wanted:
        mine = files.get(doc_id, [])
        if not mine and (ours := files.get(document_id(doc_id))):
            raise ChunkError(
                f"{folder}: document {doc_id!r} is called {document_id(doc_id)!r} here, after "
                f"{ours[0].name}; call it so in the chunks"
            )
        if not mine:
            raise ChunkError(
                f"{folder}: no file is named after document {doc_id!r}; expected {doc_id}.txt, "
                f"{doc_id}.md or the like"
            )
        if len(mine) > 1:
            raise ChunkError(
                f"{folder}: {' and '.join(p.name for p in mine)} are both named after document "
                f"{doc_id!r}; call it by its whole name in the chunks, e.g. {mine[0].name}"
            )
        found[doc_id] = _text(mine[0])
    return found
