"""A folder of documents of several formats: a file is read by the format that its suffix names."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from pathlib import Path, PurePosixPath
from typing import Any

from spanwise.corpora.view import View, open_view
from spanwise.documents.model import Corpus, Document, Paragraph
from spanwise.errors import CorpusError, ParamsError
from spanwise.text.decoding import Decoded, decode, mended

FORMATS: dict[str, str] = {
    ".md": "markdown", ".markdown": "markdown", ".txt": "text", ".text": "text", ".rst": "rst",
    ".html": "html", ".htm": "html", ".xhtml": "html", ".pdf": "pdf", ".docx": "docx",
}
"""Suffix -> format."""

LIBRARIES = {"html": "lxml", "rst": "docutils", "docx": "docx", "pdf": "pypdfium2"}
"""What reads a format, of the extra `formats`."""


def read(path: Path, *, options: Mapping[str, Any], split: str = "study") -> Corpus:
    """Read what the trusted view of a folder lets be opened, and the questions about it.

    options: none are known.
    returns: the corpus, evidence on raw: the text of a Markdown or text file itself; of the other
             formats the text that they are laid out as, headings included.
    raises:  CorpusError if no document of the study is left, and what the view, the decoder, the
             formats and the questions raise.
    """
    from spanwise.questions.authored import read_questions

    if options:
        raise ParamsError(f"options {sorted(options)}: the folder reader knows none")
    view = open_view(path, tuple(FORMATS), split)
    documents, left_out, counts = read_view(view)
    if not documents and split == "study":
        raise CorpusError(
            f"{path}: no document is left; expected at least one permitted, current file with text "
            f"of {', '.join(FORMATS)}"
        )
    questions, asked = read_questions(path, documents, left_out)
    return Corpus(tuple(documents), tuple(questions), "raw", {**counts, **asked})


def read_view(view: View) -> tuple[list[Document], dict[str, str], dict[str, int]]:
    """The documents of a view, why others are left out, and counts."""
    documents: list[Document] = []
    left_out = dict(view.left_out)
    kinds: Counter[str] = Counter()
    lost: Counter[str] = Counter()
    texts: list[Decoded] = []
    for entry in view.entries:
        document, counts, text = read_file(
            view.root / entry.path, entry.doc_id, entry.source, entry.version
        )
        texts += [text] if text is not None else []
        lost.update(counts)
        if document is None:
            left_out[entry.doc_id] = "no text"
        else:
            documents.append(document)
            kinds[FORMATS[PurePosixPath(entry.path).suffix.lower()]] += 1
    counts = Counter(view.counts)
    counts["files left out: no text"] = len(view.entries) - len(documents)
    counts["documents"] = len(documents)
    counts.update({f"documents in {kind}": kinds[kind] for kind in sorted(kinds)})
    counts.update({name: lost[name] for name in sorted(lost)})
    return documents, left_out, {
        **{name: n for name, n in counts.items() if n or name == "documents"}, **mended(texts),
    }


def read_file(
    path: Path, doc_id: str, source: str = "", version: str = "1", kind: str | None = None
) -> tuple[Document | None, Mapping[str, int], Decoded | None]:
    """One file as a document (None without text), what it lost, and its text where it is one.

    kind:   its format [as its suffix says].
    raises: CorpusError for a file that cannot be read, and what its format raises.
    """
    kind = kind or FORMATS[path.suffix.lower()]
    try:
        data = path.read_bytes()
    except OSError as error:
        raise CorpusError(
            f"{path}: cannot be read ({error.strerror or error}); expected a readable file"
        ) from None
    given = {"stem": path.stem, "source": source, "version": version, "where": str(path)}
    try:
        if kind in ("html", "pdf", "docx"):
            if not data:
                return None, {}, None
            return *_binary(kind)(doc_id, data, **given), None
        text = decode(data, str(path), allow_blank=True)
        if text.blank:
            return None, {}, text
        if kind == "rst":
            from spanwise.corpora import rst

            return *rst.read_if_any(doc_id, text.text, **given), text
    except ModuleNotFoundError as error:
        if error.name != LIBRARIES.get(kind):
            raise
        raise CorpusError(
            f"{path}: reading {kind} takes {error.name}, which is not installed; run "
            "`pip install -c constraints.txt -e '.[formats]'`"
        ) from None
    return _written(kind, doc_id, text.text, given), {}, text


def _written(kind: str, doc_id: str, text: str, given: Mapping[str, str]) -> Document | None:
    """A file whose own text is the document's raw."""
    from spanwise.corpora import markdown
    from spanwise.corpora import text as plain

    if kind == "markdown":
        return markdown.read_if_any(doc_id, text, labels=(kind,), **given)
    return plain.read_document(doc_id, text, labels=(kind,), **given)


def _binary(kind: str) -> Any:
    from spanwise.corpora import docx, html, pdf

    return {"html": html, "pdf": pdf, "docx": docx}[kind].read_if_any


def raw_blocks(document: Document, where: str) -> tuple[Paragraph, ...]:
    """The blocks of a document's raw text, by the format that it was read from."""
    from spanwise.corpora import linear, markdown
    from spanwise.corpora import text as plain

    if "markdown" in document.labels:
        return markdown.raw_blocks(document.raw or "", where)
    if "text" in document.labels:
        return plain.raw_blocks(document.raw or "", where)
    return linear.raw_blocks(document)


def same_texts(documents: Iterable[Document]) -> dict[str, list[str]]:
    """Documents that have the same body, by the first of them; ids in their order."""
    first: dict[str, str] = {}
    found: dict[str, list[str]] = {}
    for document in documents:
        kept = first.setdefault(document.body, document.doc_id)
        if kept != document.doc_id:
            found.setdefault(kept, []).append(document.doc_id)
    return found
