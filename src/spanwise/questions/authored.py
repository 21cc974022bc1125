"""Questions that a person wrote for a folder of documents, with anchors as evidence.

They stand in `questions.yaml` or `questions.jsonl` of the corpus folder, or in several such files
under `questions/`. An entry has
    id, question             always; ids are unique over all files and hold no white space
    document                 what it asks about (the manifest's name, else the path without suffix),
                             up to Unicode normalization where it alone is meant
    type                     factoid, structural, ...: a word to group by [untyped]
    anchors                  where the evidence stands; left out where type is no-answer
    bundles                  alternative sufficient sets of anchors, counted from 0 [all in one]
or, for a rewording, id, question and `base`: it has its base's document, type and evidence.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any
from unicodedata import normalize
from urllib.parse import unquote

from spanwise.documents.model import Document, Question, document_id
from spanwise.errors import AnchorError, QuestionError
from spanwise.questions.anchors import Anchor, hold, locate, parse
from spanwise.questions.equivalent import named
from spanwise.questions.faults import raise_all, require_utf8
from spanwise.spans import Evidence
from spanwise.text.lists import SUFFIXES, Item, read_list, unknown_keys

NO_ANSWER = "no-answer"
_KEYS = ("id", "type", "document", "question", "anchors", "bundles")
_REWORDING = ("id", "base", "question")
_OTHER_LISTS = frozenset({".json", ".ndjson", ".csv", ".tsv"})


@dataclass(frozen=True, slots=True)
class _Entry:
    """One checked entry; anchors are not yet looked up."""

    where: str
    question: Question
    anchors: tuple[Anchor, ...] = ()


def read_questions(
    root: Path, documents: Sequence[Document], left_out: Mapping[str, str]
) -> tuple[list[Question], dict[str, int]]:
    """Read all questions of a corpus folder.

    documents: the documents of the view, with raw text.
    left_out:  why a document of the corpus is not among them, by doc_id.
    returns:   the questions sorted by id, evidence as spans of raw in the order of the anchors; and
               counts, among them the questions that were counted out because a document they need
               was left out (their rewordings too). ([], {}) if the folder has no question file.
    raises:    QuestionError that lists every wrong entry of every file (the first 20 in full);
               AnchorError if anchors alone are wrong; QuestionError for a file that looks like
               questions and would be ignored.
    """
    files = _files(root)
    if not files:
        return [], {}
    errors: list[QuestionError] = []
    items = [item for path in files for item in _items(root, path, errors)]
    return resolve(items, documents, left_out, errors)


def resolve(
    items: Sequence[Item], documents: Sequence[Document], left_out: Mapping[str, str],
    errors: Sequence[QuestionError] = (),
) -> tuple[list[Question], dict[str, int]]:
    """The questions that entries name, wherever the entries stand; all else as `read_questions`.

    errors: what is known to be wrong already; it is raised with the rest.
    """
    errors = list(errors)
    entries = _entries(items, errors)
    ids = {str(item.fields.get("id")) for item in items}
    by_id = {document.doc_id: document for document in documents}
    kept: dict[str, Question] = {}
    out: dict[str, str] = {}
    counts: Counter[str] = Counter()
    known = {**left_out, **by_id}
    entries = {name: _with_ids(entry, known) for name, entry in entries.items()}
    for entry in entries.values():
        if entry.question.base is not None:
            continue
        names = [entry.question.doc_id]
        names += [document_id(a.document) for a in entry.anchors if a.document is not None]
        if unknown := [name for name in names if name not in by_id and name not in left_out]:
            errors.append(_unknown_document(entry, unknown[0], known))
        elif reasons := [left_out[name] for name in names if name not in by_id]:
            out[entry.question.question_id] = reasons[0]
        else:
            kept[entry.question.question_id] = _anchored(entry, by_id, errors)
    for entry in entries.values():
        question, base = entry.question, entry.question.base
        if base is None:
            continue
        if base in kept:
            kept[question.question_id] = replace(
                kept[base], question_id=question.question_id, text=question.text, base=base
            )
        elif base in out:
            out[question.question_id] = out[base]
        elif base not in ids:  # a base that is itself wrong is reported above
            errors.append(_error(entry.where, f"its base {base!r} is no question of this corpus"))
        elif base in entries and entries[base].question.base is not None:
            errors.append(
                _error(entry.where, f"its base {base!r} is itself a rewording; name the question "
                       f"behind it, {entries[base].question.base!r}")
            )
    raise_all(errors, "the questions")
    counts["questions"] = len(kept)
    counts["questions that are rewordings"] = sum(q.base is not None for q in kept.values())
    counts["questions without an answer"] = sum(q.excluded is not None for q in kept.values())
    for reason in sorted(set(out.values())):
        counts[f"questions left out: {reason}"] = sum(r == reason for r in out.values())
    return [kept[name] for name in sorted(kept)], dict(counts)


def _files(root: Path) -> list[Path]:
    folder = root / "questions"
    found = [root / f"questions{suffix}" for suffix in sorted(SUFFIXES)]
    if folder.is_dir():
        found += sorted(
            path for path in folder.iterdir()
            if path.suffix in SUFFIXES and not path.name.startswith(".")
        )
    found = [path for path in found if path.is_file()]
    for path in sorted([*root.glob("questions.*"), *folder.rglob("*")]):
        listed = path.suffix.lower() in SUFFIXES | _OTHER_LISTS
        if listed and path not in found and path.is_file() and not path.name.startswith("."):
            raise QuestionError(
                f"{path}: would be ignored; questions stand in questions.* or questions/* with the "
                f"suffix {', '.join(sorted(SUFFIXES))}: convert it, or move it out of the corpus"
            )
    return found


def _items(root: Path, path: Path, errors: list[QuestionError]) -> list[Item]:
    require_utf8(path)
    try:
        return read_list(path, path.relative_to(root).as_posix(), QuestionError)
    except QuestionError as error:
        errors.append(error)
        return []


def _entries(items: Sequence[Item], errors: list[QuestionError]) -> dict[str, _Entry]:
    entries: dict[str, _Entry] = {}
    for item in items:
        try:
            entry = _entry(item)
        except QuestionError as error:
            errors.append(error)
            continue
        name = entry.question.question_id
        if name in entries:
            first = entries[name].where.removesuffix(f", {name}")
            errors.append(_error(entry.where, f"the id is also {first}; ids are unique"))
        else:
            entries[name] = entry
    return entries


def _entry(item: Item) -> _Entry:
    fields = item.fields
    name = _word(fields, "id", item.where)
    if re.search(r"\s", name):
        raise _error(item.where, f"id {name!r} holds white space; use a hyphen")
    where = f"{item.where}, {name}"
    text = " ".join(_word(fields, "question", where).split())
    if "base" in fields:
        if wrong := unknown_keys(fields, _REWORDING):
            raise _error(where, f"{wrong} for a rewording, which has all else from its base")
        return _Entry(where, Question(name, "", text, "", base=_word(fields, "base", where)))
    if wrong := unknown_keys(fields, (*_KEYS, "base")):
        raise _error(where, wrong)
    doc_id = document_id(_word(fields, "document", where))
    kind = _word(fields, "type", where) if fields.get("type") is not None else "untyped"
    if re.search(r"\s", kind):
        raise _error(where, f"type {kind!r} holds white space; use a hyphen")
    written = fields.get("anchors") or []
    if not isinstance(written, list):
        raise _error(where, "`anchors` is no list; each anchor starts with a hyphen")
    if kind == NO_ANSWER:
        if written or fields.get("bundles"):
            raise _error(where, "type no-answer with anchors or bundles; take them or the type out")
        return _Entry(where, Question(name, doc_id, text, kind, excluded=NO_ANSWER))
    if not written:
        raise _error(where, "no anchors; give the evidence, or `type: no-answer`")
    anchors = []
    for number, one in enumerate(written):
        try:
            anchors.append(parse(one))
        except AnchorError as error:
            raise AnchorError(f"{where}, anchor {number}: {error}") from None
    bundles = _bundles(fields.get("bundles"), len(anchors), where)
    return _Entry(where, Question(name, doc_id, text, kind, bundles=bundles), tuple(anchors))


def _bundles(written: Any, anchors: int, where: str) -> tuple[tuple[int, ...], ...]:
    if written is None:
        return (tuple(range(anchors)),)
    if not isinstance(written, list) or not written or not all(
        isinstance(bundle, list) and bundle for bundle in written
    ):
        raise _error(where, f"bundles {written!r}, expected a list of lists such as [[0], [1, 2]]")
    for index in (index for bundle in written for index in bundle):
        if not isinstance(index, int) or isinstance(index, bool) or not 0 <= index < anchors:
            raise _error(
                where, f"bundles name anchor {index!r}, expected 0 to {anchors - 1}"
            )
    if unused := sorted(set(range(anchors)) - {i for bundle in written for i in bundle}):
        raise _error(where, f"anchor {unused[0]} stands in no bundle; add it to one or take it out")
    return tuple(tuple(bundle) for bundle in written)


def _anchored(
    entry: _Entry, documents: Mapping[str, Document], errors: list[QuestionError]
) -> Question:
    evidence = []
    for number, anchor in enumerate(entry.anchors):
        doc_id = document_id(anchor.document) if anchor.document else entry.question.doc_id
        try:
            hold(anchor, documents[doc_id])
            span = locate(anchor, documents[doc_id].raw or "", doc_id)
        except AnchorError as error:
            errors.append(AnchorError(f"{entry.where}, anchor {number}: {error}"))
        else:
            evidence.append(Evidence(doc_id, span.start, span.end))
    return replace(entry.question, evidence=tuple(evidence))


def _with_ids(entry: _Entry, known: Collection[str]) -> _Entry:
    """The entry with the ids of the documents that its names mean, where they mean any."""
    if entry.question.base is not None:
        return entry
    anchors = tuple(
        anchor if anchor.document is None or (meant := named(anchor.document, known)) is None
        else replace(anchor, document=unquote(meant))
        for anchor in entry.anchors
    )
    doc_id = named(unquote(entry.question.doc_id), known) or entry.question.doc_id
    return replace(entry, question=replace(entry.question, doc_id=doc_id), anchors=anchors)


def _unknown_document(entry: _Entry, name: str, known: Collection[str]) -> QuestionError:
    from rapidfuzz import process

    # Names are compared as a person would, who forgets the suffix and capital letters.
    bare = {one: normalize("NFC", _bare(unquote(one))).casefold() for one in known}
    close = process.extractOne(normalize("NFC", _bare(unquote(name))).casefold(), bare)
    hint = f"; the nearest name is {unquote(close[2])!r}" if close else ""
    return _error(entry.where, f"document {unquote(name)!r} is no document of this corpus{hint}")


def _bare(name: str) -> str:
    """A name without what may be a suffix."""
    return re.sub(r"(?<=[^/])\.\w{1,8}$", "", name)


def _word(fields: Mapping[str, Any], key: str, where: str) -> str:
    value = fields.get(key)
    if isinstance(value, int) and not isinstance(value, bool):
        value = str(value)
    if not isinstance(value, str) or not value.strip():
        found = f"`{key}` is {value!r}" if key in fields else f"no `{key}`"
        raise _error(where, f"{found}, expected text")
    return value


def _error(where: str, what: str) -> QuestionError:
    return QuestionError(f"{where}: {what}")
