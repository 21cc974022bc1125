"""Section trees as a table, and back."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

import pyarrow as pa

from spanwise import schemas
from spanwise.structure.model import Section, Tree


def section_table(trees: Iterable[Tree]) -> pa.Table:
    """The `sections` table of some trees."""
    rows = [
        {
            "doc_id": tree.doc_id, "index": index, "title": s.title, "level": s.level,
            "first": s.first, "last": s.last, "start": s.start, "end": s.end,
        }
        for tree in trees
        for index, s in enumerate(tree.sections)
    ]
    return schemas.table(schemas.SECTIONS, rows)


def load_trees(path: Path) -> dict[str, Tree]:
    """Trees of a `sections` table by document id."""
    sections: dict[str, list[Section]] = {}
    for row in schemas.read(path, schemas.SECTIONS).to_pylist():
        sections.setdefault(row["doc_id"], []).append(
            Section(row["title"], row["level"], row["first"], row["last"], row["start"], row["end"])
        )
    return {doc_id: Tree(doc_id, tuple(rows)) for doc_id, rows in sections.items()}
