"""A question file of JSON lines, CSV or YAML as entries of a corpus's own `questions.jsonl`.

The form is that of `questions.authored`. For one quotation or span its keys may stand in the entry
itself; `question_id`, `doc_id`, `query`, `text` and `evidence`, as other tools write them, are
known too, and an entry without an id gets one. In CSV each row is a quotation or a span; rows of
one id are one question with several.
"""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from spanwise.documents.model import document_id
from spanwise.errors import QuestionError
from spanwise.questions.faults import raise_all
from spanwise.text.decoding import read_text
from spanwise.text.lists import Item, read_list

SUFFIXES = (".jsonl", ".yaml", ".yml", ".csv", ".tsv")
_NAMES = {
    "id": ("id", "question_id"), "question": ("question", "query", "text"),
    "document": ("document", "doc_id", "file", "file_path"),
}
"""Our keys, and what others call them."""
_ANCHOR = ("quote", "occurrence", "from", "to", "start", "end")
_NUMBERS = ("occurrence", "start", "end")
_FORMS = "`quote`, or `start` and `end`, or `from` and `to`"


def entries(path: Path, documents: Iterable[str]) -> tuple[list[Item], list[str]]:
    """The entries of a question file, each with its place in it.

    documents: ids of the corpus; a name with its suffix is one too, and the only one need not be
               named.
    returns:   items that `questions.authored.resolve` takes; notes on what was not read, a line
               each.
    raises:    QuestionError for another kind of file, missing columns and what is no list.
    """
    if path.suffix not in SUFFIXES:
        raise QuestionError(
            f"{path}: expected questions as {', '.join(SUFFIXES)}; convert the file, or name it so"
        )
    if not path.is_file():
        raise QuestionError(f"{path}: no such file; mend the path")
    known = list(documents)
    if path.suffix in (".csv", ".tsv"):
        items, notes = _of_rows(path)
    else:
        items, notes = read_list(path, path.name, QuestionError), []
    if not items:
        raise QuestionError(f"{path}: no question in it")
    errors: list[QuestionError] = []
    made: list[Item] = []
    given = {str(item.fields.get("id", item.fields.get("question_id"))) for item in items}
    for number, item in enumerate(items, 1):
        try:
            made.append(_entry(item, number, given, known))
        except QuestionError as error:
            errors.append(error)
    raise_all(errors, path.name)
    return made, notes


def lines(items: Sequence[Item]) -> str:
    """Entries as JSON lines."""
    return "".join(json.dumps(item.fields, ensure_ascii=False) + "\n" for item in items)


def _entry(item: Item, number: int, given: set[str], known: Sequence[str]) -> Item:
    fields = dict(item.fields)
    for ours, theirs in _NAMES.items():
        there = [name for name in theirs if name in fields]
        if len(there) > 1:
            raise QuestionError(
                f"{item.where}: {there[0]!r} and {there[1]!r} say the same; keep one"
            )
        if there:
            fields[ours] = fields.pop(there[0])
    if "id" not in fields:
        name = f"q{number:04d}"
        if name in given:
            raise QuestionError(f"{item.where}: no `id`, and {name!r} is another's; give it one")
        fields["id"] = name
    if "base" not in fields:
        if "document" not in fields and len(known) == 1:
            fields["document"] = known[0]
        if "document" in fields:
            fields["document"] = _document(fields["document"], known)
    _anchors(fields, item.where, known)
    order = ("id", "base", "document", "type", "question", "anchors", "bundles")
    ordered = {key: fields[key] for key in order if key in fields}
    return Item(item.where, {**ordered, **{k: v for k, v in fields.items() if k not in order}})


def _anchors(fields: dict[str, Any], where: str, known: Sequence[str]) -> None:
    """Put evidence, however it is given, under `anchors`."""
    forms: list[str] = [name for name in ("anchors", "evidence") if name in fields]
    inline = {key: fields.pop(key) for key in _ANCHOR if key in fields}
    if inline:
        forms += list(inline)[:1]
    if len(forms) > 1:
        raise QuestionError(f"{where}: {forms[0]!r} and {forms[1]!r} both give evidence; keep one")
    if inline:
        fields["anchors"] = [inline]
    if "evidence" in fields:
        fields["anchors"] = fields.pop("evidence")
    written = fields.get("anchors")
    if isinstance(written, list):
        fields["anchors"] = [_anchor(one, known) for one in written]


def _anchor(one: Any, known: Sequence[str]) -> Any:
    if isinstance(one, str):
        return {"quote": one}
    if not isinstance(one, Mapping):
        return one
    fields = dict(one)
    if "doc_id" in fields and "document" not in fields:
        fields["document"] = fields.pop("doc_id")
    if "document" in fields:
        fields["document"] = _document(fields["document"], known)
    return fields


def _document(name: Any, known: Sequence[str]) -> Any:
    """A document's name, also where it is given as its file's or percent-encoded."""
    if not isinstance(name, str) or document_id(name) in known:
        return name
    if name in known:  # the id itself
        from urllib.parse import unquote

        return unquote(name)
    bare, dot, suffix = name.rpartition(".")
    return bare if dot and "/" not in suffix and document_id(bare) in known else name


def _of_rows(path: Path) -> tuple[list[Item], list[str]]:
    """Rows of a CSV as entries; those of one id are one."""
    text = read_text(path, path.name).text
    head = text.partition("\n")[0]
    delimiter = max(",;\t", key=head.count)
    rows = csv.DictReader(io.StringIO(text, newline=""), strict=True, delimiter=delimiter)
    limit = csv.field_size_limit(2**31 - 1)
    try:
        columns = [(name or "").strip() for name in rows.fieldnames or ()]
        rows.fieldnames = columns
        unused = _columns(columns, path)
        items: dict[str, Item] = {}
        for number, row in enumerate(rows, 1):
            where = f"{path.name}: row {number} (line {rows.line_num})"
            if None in row or None in row.values():
                raise QuestionError(
                    f"{where}: {_width(row)} fields, "
                    f"expected {len(columns)}; put fields with {delimiter!r} in quotation marks"
                )
            _row(row, where, number, items)
    except csv.Error as error:
        raise QuestionError(
            f"{path.name}: line {rows.reader.line_num}: {error}; close the quotation mark that is "
            "open there or above, or double those inside a field"
        ) from None
    finally:
        csv.field_size_limit(limit)
    notes = [f"{path.name}: columns not read: {', '.join(map(repr, unused))}"] if unused else []
    return list(items.values()), notes


def _width(row: Mapping[str | None, Any]) -> int:
    """Fields of a row as it stands, those beyond the last column among them."""
    return sum(len(v) if isinstance(v, list) else v is not None for v in row.values())


def _columns(columns: Sequence[str], path: Path) -> list[str]:
    """Columns that nobody reads.

    raises: QuestionError for those that are missing or stand twice.
    """
    there = ", ".join(map(repr, columns)) or "none"
    if twice := {name for name in columns if columns.count(name) > 1}:
        raise QuestionError(f"{path.name}: column {min(twice)!r} stands twice; keep one")
    if not set(columns) & set(_NAMES["question"]):
        raise QuestionError(
            f"{path.name}: no column `question`, found {there}; name the column of questions so"
        )
    forms = ({"quote"}, {"start", "end"}, {"from", "to"})
    if not any(form <= set(columns) for form in forms):
        raise QuestionError(
            f"{path.name}: no columns of evidence, found {there}; expected {_FORMS}, and "
            "`document` for the document that it stands in"
        )
    known = {*_ANCHOR, "type", "base", *(name for names in _NAMES.values() for name in names)}
    return [name for name in columns if name not in known]


def _row(
    row: Mapping[str, str], where: str, number: int, items: dict[str, Item]
) -> None:
    filled = {key: value for key, value in row.items() if value.strip()}
    if not filled:
        return
    anchor: dict[str, Any] = {}
    for key in _ANCHOR:
        value = filled.pop(key, None)
        if value is None:
            continue
        if key in _NUMBERS:
            if not value.strip().isdecimal():
                raise QuestionError(f"{where}: `{key}` is {value!r}, expected a whole number")
            anchor[key] = int(value)
        else:
            anchor[key] = value
    known = {"type", "base", *(name for names in _NAMES.values() for name in names)}
    fields: dict[str, Any] = {key: value for key, value in filled.items() if key in known}
    for ours, theirs in _NAMES.items():
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
