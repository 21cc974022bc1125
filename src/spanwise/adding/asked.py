"""A question file of JSON lines, CSV or YAML as entries of a corpus's own `questions.jsonl`.

The form is that of `questions.authored`. For one quotation or span its keys may stand in the entry
itself; `question_id`, `doc_id`, `query`, `text` and `evidence`, as other tools write them, are
known too, and an entry without an id gets one. Rows of a CSV are read by `rows`.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any
from urllib.parse import unquote

from spanwise.adding import rows
from spanwise.errors import QuestionError
from spanwise.questions.equivalent import named
from spanwise.questions.faults import raise_all, require_utf8
from spanwise.text.decoding import read_text
from spanwise.text.lists import Item, read_list

SUFFIXES = (".jsonl", ".yaml", ".yml", ".csv", ".tsv")
_SHOWN = 3  # documents, in a message


def entries(
    path: Path, documents: Iterable[str], errors: list[QuestionError] | None = None
) -> tuple[list[Item], list[str]]:
    """The entries of a question file, each with its place in it.

    documents: ids of the corpus; a name with its suffix is one too, and the only one need not be
               named.
    errors:    gains what is wrong with single entries, which are left out, as are their
               rewordings; without it that is raised.
    returns:   items that `questions.authored.resolve` takes; notes on what was not read, a line
               each.
    raises:    QuestionError for another kind of file, missing columns, no document named in any
               entry, and what is no list; DecodingError for bytes that are no text.
    """
    if path.suffix not in SUFFIXES:
        raise QuestionError(
            f"{path}: expected questions as {', '.join(SUFFIXES)}; convert the file, or name it so"
        )
    if not path.is_file():
        raise QuestionError(f"{path}: no such file; mend the path")
    require_utf8(path)
    known = dict.fromkeys(documents)
    wrong: list[QuestionError] = []
    items: list[Item] = []
    notes: list[str] = []
    if not read_text(path, path.name, allow_blank=True).blank:
        if path.suffix in (".csv", ".tsv"):
            items, notes = rows.read(path, len(known), wrong)
        else:
            items = read_list(path, path.name, QuestionError)
    if not items and not wrong:
        raise QuestionError(
            f"{path}: no question in it; write at least one, or leave it out: with --questions "
            "written the language model writes them"
        )
    _require_documents(items, list(known), path)
    made: list[Item] = []
    given = {name for item in items if (name := _name(item)) is not None}
    lost: set[str] = set()
    for number, item in enumerate(items, 1):
        try:
            made.append(_entry(item, number, given, known))
        except QuestionError as error:
            wrong.append(error)
            own = _name(item)
            if own is not None or _numbered(number) not in given:
                lost.add(own if own is not None else _numbered(number))
    if errors is None:
        raise_all(wrong, path.name)
    else:
        errors += wrong
    return [item for item in made
            if item.fields.get("base") is None or str(item.fields["base"]) not in lost], notes


def _name(item: Item) -> str | None:
    """The id that an entry gives itself, as others may name it."""
    given = next((item.fields[key] for key in rows.NAMES["id"] if key in item.fields), None)
    return None if given is None else str(given)


def _numbered(number: int) -> str:
    """The id of an entry that gives itself none."""
    return f"q{number:04d}"


def _require_documents(items: Sequence[Item], known: Sequence[str], path: Path) -> None:
    """Raise one QuestionError, not one an entry, where none says what it asks about."""
    keys = {*rows.NAMES["document"], "base"}
    if len(known) < 2 or not items or any(keys & item.fields.keys() for item in items):
        return
    shown = ", ".join(repr(unquote(name)) for name in known[:_SHOWN])
    raise QuestionError(
        f"{path.name}: no `document` in any entry, and the corpus has {len(known)} ({shown}"
        f"{', ...' if len(known) > _SHOWN else ''}); name in each the one that it asks about"
    )


def lines(items: Sequence[Item]) -> str:
    """Entries as JSON lines."""
    return "".join(json.dumps(item.fields, ensure_ascii=False) + "\n" for item in items)


def _entry(item: Item, number: int, given: set[str], known: Collection[str]) -> Item:
    fields = dict(item.fields)
    for ours, theirs in rows.NAMES.items():
        there = [name for name in theirs if name in fields]
        if len(there) > 1:
            raise QuestionError(
                f"{item.where}: {there[0]!r} and {there[1]!r} say the same; keep one"
            )
        if there:
            fields[ours] = fields.pop(there[0])
    if "id" not in fields:
        name = _numbered(number)
        if name in given:
            raise QuestionError(f"{item.where}: no `id`, and {name!r} is another's; give it one")
        fields["id"] = name
    if "base" not in fields:
        if "document" not in fields and len(known) == 1:
            fields["document"] = unquote(next(iter(known)))
        if "document" in fields:
            fields["document"] = _document(fields["document"], known)
    _anchors(fields, item.where, known)
    order = ("id", "base", "document", "type", "question", "anchors", "bundles")
    ordered = {key: fields[key] for key in order if key in fields}
    return Item(item.where, {**ordered, **{k: v for k, v in fields.items() if k not in order}})


def _anchors(fields: dict[str, Any], where: str, known: Collection[str]) -> None:
    """Put evidence, however it is given, under `anchors`."""
    forms: list[str] = [name for name in ("anchors", "evidence") if name in fields]
    inline = {key: fields.pop(key) for key in rows.ANCHOR if key in fields}
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


def _anchor(one: Any, known: Collection[str]) -> Any:
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


def _document(name: Any, known: Collection[str]) -> Any:
    """A document's name, also where it is given as its file's or percent-encoded."""
    if not isinstance(name, str):
        return name
    bare, dot, suffix = name.rpartition(".")
    for one in (name, bare if dot and "/" not in suffix else name):
        if meant := named(one, known):
            return unquote(meant)
    return name
