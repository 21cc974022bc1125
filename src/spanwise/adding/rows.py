"""A CSV of questions as entries: each row is a quotation or a span, rows of one id one question."""

from __future__ import annotations

import csv
import io
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from spanwise.errors import QuestionError
from spanwise.text.decoding import read_text
from spanwise.text.lists import Item

NAMES = {
    "id": ("id", "question_id"), "question": ("question", "query", "text"),
    "document": ("document", "doc_id", "file", "file_path"),
}
"""Our keys, and what others call them."""
ANCHOR = ("quote", "occurrence", "from", "to", "start", "end")
"""The keys of one anchor."""
_NUMBERS = ("occurrence", "start", "end")
_EVIDENCE = ({"quote"}, {"start", "end"}, {"from", "to"})
_FIELDS = frozenset({"type", "base", *(name for names in NAMES.values() for name in names)})


def read(path: Path, documents: int, errors: list[QuestionError]) -> tuple[list[Item], list[str]]:
    """The rows of a CSV as entries; those of one id are one.

    documents: how many the corpus has; of several a column must name the one that is meant.
    errors:    gains what is wrong with single rows.
    returns:   the entries, in the order of their first rows; notes, a line each. The names of
               columns are read whatever their case and the blanks around them.
    raises:    QuestionError for missing columns and for what is no CSV.
    """
    text = read_text(path, path.name).text
    head = text.partition("\n")[0]
    delimiter = max(",;\t", key=head.count)
    rows = csv.DictReader(io.StringIO(text, newline=""), strict=True, delimiter=delimiter)
    limit = csv.field_size_limit(2**31 - 1)
    items: dict[str, Item] = {}
    try:
        written = [(name or "").strip() for name in rows.fieldnames or ()]
        columns = [name.casefold() for name in written]
        _require_columns(written, columns, documents, path)
        rows.fieldnames = columns
        for number, row in enumerate(rows, 1):
            where = f"{path.name}: row {number} (line {rows.line_num})"
            try:
                if None in row or None in row.values():
                    raise QuestionError(
                        f"{where}: {_width(row)} fields, expected {len(columns)}; put fields with "
                        f"{delimiter!r} in quotation marks"
                    )
                _row(row, where, number, items)
            except QuestionError as error:
                errors.append(error)
    except csv.Error as error:
        raise QuestionError(
            f"{path.name}: line {rows.reader.line_num}: {error}; close the quotation mark that is "
            "open there or above, or double those inside a field"
        ) from None
    finally:
        csv.field_size_limit(limit)
    unused = [shown for shown, name in zip(written, columns, strict=True)
              if name not in _FIELDS | set(ANCHOR)]
    notes = [f"{path.name}: columns not read: {', '.join(map(repr, unused))}"] if unused else []
    return list(items.values()), notes


def _width(row: Mapping[str | None, Any]) -> int:
    """Fields of a row as it stands, those beyond the last column among them."""
    return sum(len(v) if isinstance(v, list) else v is not None for v in row.values())


def _require_columns(
    written: Sequence[str], columns: Sequence[str], documents: int, path: Path
) -> None:
    """Raise one QuestionError for all columns that are missing, or one that stands twice."""
    if twice := [name for name in columns if name and columns.count(name) > 1]:
        raise QuestionError(f"{path.name}: column {twice[0]!r} stands twice; keep one")
    there = set(columns)
    missing = [] if there & set(NAMES["question"]) else ["`question`"]
    if documents > 1 and not there & {*NAMES["document"], "base"}:
        missing.append("`document`")
    if not any(form <= there for form in _EVIDENCE):
        missing.append("of evidence")
    if missing:
        raise QuestionError(
            f"{path.name}: no column {' and none '.join(missing)}, found "
            f"{', '.join(map(repr, written)) or 'none'}; expected `question`"
            f"{', `document`' if documents > 1 else ''} and `quote`, or in its place `start` and "
            "`end`, or `from` and `to`"
        )


def _row(row: Mapping[str, str], where: str, number: int, items: dict[str, Item]) -> None:
    """Take a row in as an entry, or as one more anchor of the entry that has its id."""
    filled = {key: value for key, value in row.items() if value.strip()}
    if not filled:
        return
    anchor: dict[str, Any] = {}
    for key in ANCHOR:
        value = filled.pop(key, None)
        if value is None:
            continue
        if key in _NUMBERS:
            if not value.strip().isdecimal():
                raise QuestionError(f"{where}: `{key}` is {value!r}, expected a whole number")
            anchor[key] = int(value)
        else:
            anchor[key] = value
    fields: dict[str, Any] = {key: value for key, value in filled.items() if key in _FIELDS}
    for ours, theirs in NAMES.items():
        for name in theirs:
            if name in fields and ours not in fields:
                fields[ours] = fields.pop(name)
    name = str(fields.get("id", f"row {number}"))
    first = items.get(name)
    if first is None:
        items[name] = Item(where, fields | ({"anchors": [anchor]} if anchor else {}))
        return
    words = fields.get("question")
    if words is not None and words != first.fields.get("question"):
        raise QuestionError(
            f"{where}: id {name!r} is also {first.where}, with another question; give each its own"
        )
    if (document := fields.get("document")) is not None and anchor:
        anchor["document"] = document
    first.fields.setdefault("anchors", []).append(anchor)
