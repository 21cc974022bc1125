"""One reader for each source format, by the names that params.yaml uses.

Every reader takes the corpus folder or file, its options and the split, and returns a `Corpus`. A
reader's module is imported when the reader is called.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path, PurePosixPath
from typing import Any, Protocol

from spanwise.documents.model import Corpus, Document, Paragraph
from spanwise.errors import CorpusError, ParamsError


class Reader(Protocol):
    """Reads one corpus; `split` is study or sweep."""

    def __call__(
        self, path: Path, *, options: Mapping[str, Any], split: str = "study"
    ) -> Corpus: ...


def read_markdown(path: Path, *, options: Mapping[str, Any], split: str = "study") -> Corpus:
    """A folder of Markdown files with its manifest and questions; see `_folder`."""
    from spanwise.corpora.markdown import read_if_any

    return _folder(path, SUFFIXES["markdown"], read_if_any, options, split)


def read_plain(path: Path, *, options: Mapping[str, Any], split: str = "study") -> Corpus:
    """A folder of plain-text files with its manifest and questions; see `_folder`."""
    from spanwise.corpora.text import read_document

    return _folder(path, SUFFIXES["text"], read_document, options, split)


def _qasper(path: Path, *, options: Mapping[str, Any], split: str = "study") -> Corpus:
    from spanwise.corpora.qasper import read

    return read(path, options=options, split=split)


def _mediawiki(path: Path, *, options: Mapping[str, Any], split: str = "study") -> Corpus:
    from spanwise.corpora.mediawiki import read

    return read(path, options=options, split=split)


def _chroma(path: Path, *, options: Mapping[str, Any], split: str = "study") -> Corpus:
    from spanwise.corpora.chroma import read

    return read(path, options=options, split=split)


def _mixed(path: Path, *, options: Mapping[str, Any], split: str = "study") -> Corpus:
    from spanwise.corpora.folder import read

    return read(path, options=options, split=split)


def _beir(path: Path, *, options: Mapping[str, Any], split: str = "study") -> Corpus:
    from spanwise.corpora.beir import read

    return read(path, options=options, split=split)


def _snippets(path: Path, *, options: Mapping[str, Any], split: str = "study") -> Corpus:
    from spanwise.corpora.snippets import read

    return read(path, options=options, split=split)


READERS: dict[str, Reader] = {
    "markdown": read_markdown,
    "text": read_plain,
    "qasper": _qasper,
    "mediawiki": _mediawiki,
    "chroma": _chroma,
    "folder": _mixed,
    "beir": _beir,
    "snippets": _snippets,
}


SUFFIXES: dict[str, tuple[str, ...]] = {
    "markdown": (".md", ".markdown"),
    "text": (".txt", ".text"),
    "qasper": (".json",),
    "mediawiki": (".xml", ".bz2"),
    "chroma": (".md",),
    "folder": (
        ".md", ".markdown", ".txt", ".text", ".rst", ".html", ".htm", ".xhtml", ".pdf", ".docx",
    ),
    "beir": (".jsonl", ".tsv"),
    "snippets": (".txt", ".text", ".md", ".markdown"),
}
"""How the names of the files end that hold a reader's documents."""


WITH_SPLITS = frozenset({"markdown", "text", "folder"})
"""Readers whose manifest names splits; what the others read is all `study`."""


_SEVERAL = frozenset({"folder", "snippets"})
"""Readers of several formats, each document labelled with its own."""


def document_files(reader: str, path: Path) -> list[Path]:
    """The files that hold a corpus's documents, sorted: `path` itself, or those of the folder."""
    if path.is_file():
        return [path]
    return sorted(
        file for file in path.rglob("*")
        if file.is_file() and file.suffix.lower() in SUFFIXES[reader]
        and not any(part.startswith(".") for part in file.relative_to(path).parts)
    )


def read_split(
    reader: str, path: Path, *, options: Mapping[str, Any], split: str = "study"
) -> Corpus:
    """Read one split by a reader's name; the split that a corpus does not have is empty."""
    if split != "study" and reader not in WITH_SPLITS:
        return Corpus(())
    return READERS[reader](path, options=options, split=split)


def raw_blocks(
    reader: str, text: str, where: str, document: Document | None = None
) -> tuple[Paragraph, ...]:
    """The blocks of a document's raw text, headings (kind `heading`) among them, in order.

    document: whose text it is, which the readers of several formats need to know its own.
    raises:   CorpusError for a reader whose documents have no raw text.
    """
    from spanwise.corpora import chroma, folder, markdown
    from spanwise.corpora import text as plain

    if reader in _SEVERAL and document is not None:
        return folder.raw_blocks(document, where)

    known: dict[str, Callable[[str, str], tuple[Paragraph, ...]]] = {
        "markdown": markdown.raw_blocks, "text": plain.raw_blocks, "chroma": chroma.raw_blocks,
    }
    if reader not in known:
        raise CorpusError(f"{where}: what the {reader} reader reads has no raw text")
    return known[reader](text, where)


def read_documents(reader: str, path: Path, *, split: str = "study") -> tuple[Document, ...]:
    """The documents of a folder with a trusted view, its questions left alone.

    raises: CorpusError for another reader, and what the view, the decoder and the reader raise.
    """
    from spanwise.corpora.markdown import read_if_any
    from spanwise.corpora.text import read_document

    if reader == "folder":
        from spanwise.corpora.folder import read_view
        from spanwise.corpora.view import open_view

        return tuple(read_view(open_view(path, SUFFIXES[reader], split))[0])
    known: dict[str, Callable[..., Document | None]] = {
        "markdown": read_if_any, "text": read_document,
    }
    if reader not in known:
        raise CorpusError(f"{path}: the {reader} reader has no trusted view of a folder")
    return tuple(_documents(path, SUFFIXES[reader], known[reader], split)[0])


def _folder(
    path: Path,
    suffixes: tuple[str, ...],
    read_one: Callable[..., Document | None],
    options: Mapping[str, Any],
    split: str,
) -> Corpus:
    """Read what the trusted view of a folder lets be opened, and the questions about it.

    options: none are known.
    returns: the corpus. A file without text (empty, white space, headings alone) is no document:
             it counts, and so do the questions about it.
    raises:  CorpusError if no document of the study is left, and what the view, the decoder, the
             reader and the questions raise.
    """
    from spanwise.questions.authored import read_questions

    if options:
        raise ParamsError(f"options {sorted(options)}: this reader knows none")
    documents, left_out, counts = _documents(path, suffixes, read_one, split)
    questions, asked = read_questions(path, documents, left_out)
    return Corpus(tuple(documents), tuple(questions), "raw", {**counts, **asked})


def _documents(
    path: Path, suffixes: tuple[str, ...], read_one: Callable[..., Document | None], split: str
) -> tuple[list[Document], dict[str, str], dict[str, int]]:
    """The documents, why others are left out, and counts."""
    from spanwise.corpora.view import open_view
    from spanwise.text.decoding import mended, read_text

    view = open_view(path, suffixes, split)
    documents: list[Document] = []
    decoded = []
    left_out = dict(view.left_out)
    for entry in view.entries:
        file = path / entry.path
        found = read_text(file, allow_blank=True)
        decoded.append(found)
        document = None if found.blank else read_one(
            entry.doc_id, found.text, stem=PurePosixPath(entry.path).stem,
            source=entry.source, version=entry.version, where=str(file),
        )
        if document is None:
            left_out[entry.doc_id] = "no text"
        else:
            documents.append(document)
    counts = dict(view.counts)
    if without := len(view.entries) - len(documents):
        counts["files left out: no text"] = without
    if not documents and split == "study":  # a corpus need not have a sweep split
        raise CorpusError(
            f"{path}: no document of split {split} is left ({_said(counts)}); expected at least "
            f"one permitted, current {'/'.join(suffixes)} file with text"
        )
    return documents, left_out, {**counts, "documents": len(documents), **mended(decoded)}


def _said(counts: Mapping[str, int]) -> str:
    return ", ".join(f"{name}: {count}" for name, count in counts.items())
