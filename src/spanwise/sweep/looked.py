"""Documents that sweeps have looked at. They stay known, for another share or seed later returns
them to the study, where they can confirm nothing any more.

`sweeps/<corpus>.json` is written before the first trial, and documents are only ever added to it.
It holds digests of ids and texts alone: git keeps it, and names of documents may be private.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path

import pyarrow.parquet as pq

from spanwise import layout, schemas
from spanwise.documents.model import Document, sha256
from spanwise.errors import InputError

MEND = (
    "put sweep.share and sweep.seed back (raise the share until they are drawn again, if documents "
    "were added since), or name them `split: sweep` in the corpus's manifest in place of a share; "
    "then `dvc repro parse@{0}`"
)

SHOWN = 3
"""Documents that a message names."""


def path(corpus: str) -> Path:
    """Where it is kept which documents of a corpus sweeps have looked at."""
    return layout.swept(corpus).with_suffix(".json")


def keep(corpus: str, documents: Sequence[Document]) -> None:
    """Enter the documents of a sweep that is about to begin, beside those of earlier ones."""
    known = _read(path(corpus)) if path(corpus).exists() else {}
    known |= {sha256(document.doc_id): sha256(document.body) for document in documents}
    held = {"corpus": corpus, "documents": dict(sorted(known.items()))}
    schemas.write_text(path(corpus), json.dumps(held, indent=1, ensure_ascii=False) + "\n")


def among(root: Path, corpus: str, documents: Mapping[str, str]) -> list[str]:
    """Those of a study's documents that a sweep has looked at, in their order.

    A document counts by its id in the same corpus, whatever its text is now, and by its text in
    any.

    documents: of the study of a corpus, doc_id -> SHA-256 of its body.
    raises:    InputError if a file is none that `keep` leaves.
    """
    kept = {file.stem: _read(file) for file in sorted((root / layout.swept("")).glob("*.json"))}
    texts = {digest for its in kept.values() for digest in its.values()}
    return [
        doc_id for doc_id, digest in documents.items()
        if sha256(doc_id) in kept.get(corpus, {}) or digest in texts
    ]


def parsed(corpus: str, root: Path = Path()) -> list[str]:
    """`among` for what `parse` left last; none where it left nothing."""
    file = root / layout.parse(corpus) / "documents.parquet"
    if not file.exists() or not (root / layout.swept("")).exists():
        return []
    rows = pq.read_table(file, columns=["doc_id", "body_sha256"], partitioning=None).to_pylist()
    return among(root, corpus, {row["doc_id"]: row["body_sha256"] for row in rows})


def told(doc_ids: Sequence[str]) -> str:
    """That documents of a study were looked at, in words.

    >>> told(["a", "b"])
    '2 documents of this study were looked at by a sweep: a, b'
    """
    named = ", ".join(doc_ids[:SHOWN]) + (" …" if len(doc_ids) > SHOWN else "")
    many = "1 document of this study was" if len(doc_ids) == 1 else (
        f"{len(doc_ids)} documents of this study were"
    )
    return f"{many} looked at by a sweep: {named}"


def refuse(corpus: str, kind: type[InputError], why: str) -> None:
    """Refuse a corpus whose study holds documents that a sweep has looked at.

    why:    what is not done for that.
    raises: `kind` that names the documents and the mend.
    """
    if found := parsed(corpus):
        raise kind(f"corpus {corpus!r} {why}: {told(found)}; {MEND.format(corpus)}")


def _read(file: Path) -> dict[str, str]:
    try:
        held = json.loads(file.read_text(encoding="utf-8"))
        documents = held["documents"]
        if held["corpus"] != file.stem or not all(isinstance(d, str) for d in documents.values()):
            raise ValueError("of another form")
        return dict(documents)
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise InputError(
            f"{file}: not the list of documents that sweeps have looked at ({error}); bring it "
            f"back with `git checkout -- {file}`"
        ) from None
