"""What a unit and an anchor are: a slice of one parent, which is one text of one version.

A reference names source, document, version, representation, the parent's digest and a span. It
means something only while the parent is that very text. Another body is another version: whoever
holds the old reference is told, and nothing is looked for that reads alike.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote

from spanwise.documents.model import Document, sha256
from spanwise.errors import UnitError


@dataclass(frozen=True, slots=True)
class Parent:
    """One document's text in one representation, which units and anchors are slices of.

    text: the whole of it; digest: its SHA-256.
    """

    source: str
    doc_id: str
    version: str
    representation: str
    text: str
    digest: str


def parents(documents: Iterable[Document], representation: str) -> dict[str, Parent]:
    """The parent of each document, by doc_id.

    raises: UnitError if a document has no text in that representation.
    """
    found = {}
    for document in documents:
        text = document.raw if representation == "raw" else document.body
        if text is None:
            raise UnitError(f"{document.doc_id}: it has no {representation} text to be a slice of")
        found[document.doc_id] = Parent(
            document.source, document.doc_id, document.version, representation, text, sha256(text)
        )
    return found


def collection(known: Mapping[str, Parent]) -> str:
    """SHA-256 of all parents: what every list depends on, whichever documents it names."""
    listed = "".join(
        f"{name}\0{known[name].version}\0{known[name].digest}\0" for name in sorted(known)
    )
    return sha256(listed)


def reference(parent: Parent) -> dict[str, str]:
    """What names a parent in a table."""
    return {
        "source": parent.source, "doc_id": parent.doc_id, "version": parent.version,
        "representation": parent.representation, "parent_sha256": parent.digest,
    }


def passage_id(segmentation: str, parent: Parent, start: int, end: int) -> str:
    """The identity of a unit: every segmentation and every version has its own.

    >>> passage_id("blocks", Parent("", "notes", "2", "raw", "abc", ""), 0, 3)
    'blocks:notes@2:0-3'
    """
    return f"{segmentation}:{parent.doc_id}@{quote(parent.version, safe='')}:{start}-{end}"


def moved(row: Mapping[str, Any], known: Mapping[str, Parent]) -> str | None:
    """Why a reference means nothing any more, or None while its parent is the text it is of."""
    parent = known.get(row["doc_id"])
    if parent is None:
        return f"document {row['doc_id']!r} is not in the trusted view"
    now = reference(parent)
    for name in ("source", "version", "representation", "parent_sha256"):
        if row[name] != now[name]:
            return f"{row['doc_id']} has {name} {now[name]!r} now, not {row[name]!r}"
    if not 0 <= row["start"] < row["end"] <= len(parent.text):
        return (
            f"[{row['start']}, {row['end']}) is no span of {row['doc_id']}, which has "
            f"{len(parent.text)} code points"
        )
    if "passage_id" in row:
        here = passage_id(row["segmentation"], parent, row["start"], row["end"])
        if row["passage_id"] != here:
            return f"its span is that of {here}"
    return None


def resolve(row: Mapping[str, Any], known: Mapping[str, Parent]) -> str:
    """The text of a unit or an anchor: exactly that slice of exactly that parent.

    row:    a row of UNITS, ANCHORS or TRACES.
    known:  the parents that there are now.
    raises: UnitError if source, version, representation, digest or span are not the parent's, or
            the slice is not what the row says stands there.
    """
    name = row.get("passage_id") or f"anchor {row.get('index')} of {row.get('question_id')}"
    if why := moved(row, known):
        raise UnitError(
            f"{name}: {why}; the reference is refused: run `dvc repro`, and write anchors anew for "
            "the new text"
        )
    text = known[row["doc_id"]].text[row["start"] : row["end"]]
    if row.get("quote", text) != text or row.get("text_sha256") not in (None, sha256(text)):
        raise UnitError(
            f"{name}: at [{row['start']}, {row['end']}) of {row['doc_id']} stands {text[:60]!r}, "
            f"not {(row.get('quote') or 'the text of its digest')[:60]!r}; the reference is refused"
        )
    return text
