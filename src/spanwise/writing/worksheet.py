"""Sheets: samples for people to write questions for, and what they wrote, without the articles.

One format in two spellings. A worksheet is YAML with the passages in it, to be filled in; a
question file is JSON lines without any text of the documents: offsets and digests name the spans,
so that a corpus that may not be passed on can still be asked about. The first entry says what the
sheet is about, every other one is a sample:

    format, corpus, source, source_sha256, sampled
    id, type, document, spans: [{start, end, sha256, text?}], question, paraphrase, title?, asks?

Spans index `body`. A sheet is read against the parsed corpus: every span must lie in its document
and have the digest that it was drawn with, or the sheet is refused. Questions about documents that
the corpus left out are counted, not read.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from textwrap import wrap
from typing import Any

import yaml

from spanwise.documents.model import Document, sha256
from spanwise.errors import AnchorError, QuestionError
from spanwise.questions.faults import raise_all
from spanwise.spans import Span
from spanwise.text.lists import Item, read_list, unknown_keys
from spanwise.writing.funnel import Record
from spanwise.writing.leakage import Limits
from spanwise.writing.prompts import ASKS, RULES
from spanwise.writing.rounds import collect
from spanwise.writing.sampling import TYPES, Sample, Type, draw

FORMAT = "spanwise-questions-1"
_HEAD = ("format", "corpus", "source", "source_sha256", "sampled")
_KEYS = ("id", "type", "document", "title", "asks", "spans", "question", "paraphrase")
_SPAN_KEYS = ("start", "end", "sha256", "text")
_DIGEST = re.compile(r"[0-9a-f]{64}")

@dataclass(frozen=True, slots=True)
class Source:
    """What a sheet is about: the corpus, the file it was read from, and that file's SHA-256."""

    corpus: str
    name: str
    sha256: str

    def __post_init__(self) -> None:
        if not _DIGEST.fullmatch(self.sha256):
            raise ValueError(f"source_sha256 is {self.sha256!r}, expected 64 hexadecimal digits")


@dataclass(frozen=True, slots=True)
class Entry:
    """A sample and what a person wrote for it; "" where nothing is filled in."""

    sample: Sample
    question: str = ""
    paraphrase: str = ""


@dataclass(frozen=True, slots=True)
class Sheet:
    """A sheet as read against its corpus.

    sampled:  samples drawn for it, by document and type, whether or not they are entries.
    left_out: entries about documents that this corpus does not have, by document.
    """

    source: Source
    entries: tuple[Entry, ...]
    sampled: Mapping[str, Mapping[str, int]]
    left_out: Mapping[str, int] = field(default_factory=dict)

    def totals(self) -> dict[str, int]:
        """Samples by type over the documents that the corpus has, for the funnel's first row."""
        found: Counter[str] = Counter(dict.fromkeys(TYPES, 0))
        for counts in self.sampled.values():
            found.update(counts)
        return dict(found)

    def records(self, limits: Limits | None = None) -> list[Record]:
        """The entries through both rounds of the filter."""
        return collect([(e.sample, e.question, e.paraphrase) for e in self.entries], limits)


def write_worksheet(
    samples: Sequence[Sample], source: Source, limits: Limits | None = None
) -> str:
    """The YAML text of a worksheet, every question and paraphrase empty; it tells the limits."""
    limits = limits or Limits()
    lines = [line for part in _help(limits) for line in (*wrap(part, 98), "")]
    comments = "".join(f"# {line}".rstrip() + "\n" for line in lines)
    parts = [comments, _yaml(_head(source, _counts(samples)))]
    for sample in samples:
        entry = {**_identity(sample), "title": sample.title, "asks": ASKS[sample.type]}
        entry["spans"] = [
            {**span, "text": _Text(text)}
            for span, text in zip(entry["spans"], sample.texts, strict=True)
        ]
        empty = "".join(f"  {key}: >-\n    \n" for key in ("question", "paraphrase"))
        parts.append(_yaml(entry) + empty)
    return "\n".join(parts)


def write_questions(sheet: Sheet) -> str:
    """The JSON lines of all entries with a question, without a word of the documents.

    Rejected ones stay in: the reader filters again, so that the funnel is counted and not claimed.
    """
    lines = [_head(sheet.source, sheet.sampled)]
    lines += [
        {**_identity(e.sample), "question": e.question, "paraphrase": e.paraphrase}
        for e in sorted(sheet.entries, key=lambda e: e.sample.sample_id) if e.question
    ]
    return "".join(json.dumps(line, ensure_ascii=False) + "\n" for line in lines)


def read_sheet(path: Path, documents: Sequence[Document]) -> Sheet:
    """Read a worksheet or a question file against the corpus it was made for.

    raises: QuestionError that lists every wrong entry (the first 20 in full); AnchorError if only
            spans are wrong: one beyond its document, one whose text has another digest now, or a
            passage that was changed in the worksheet; DecodingError for bytes that are no text.
    """
    items = read_list(path, path.name, QuestionError)
    if not items:
        raise QuestionError(f"{path.name}: no entry, expected one that says `format: {FORMAT}`")
    source, sampled = _source(items[0])
    known = {document.doc_id: document for document in documents}
    entries: dict[str, Entry] = {}
    left_out: Counter[str] = Counter()
    errors: list[QuestionError] = []
    for item in items[1:]:
        try:
            entry = _entry(item, known, left_out, source)
            if entry is not None and entry.sample.sample_id in entries:
                raise _error(item, f"id {entry.sample.sample_id!r} occurs twice; take one out")
        except QuestionError as error:
            errors.append(error)
            continue
        if entry is not None:
            entries[entry.sample.sample_id] = entry
    raise_all(errors, "the sheet")
    if left_out and not entries:
        raise QuestionError(
            f"{path.name}: none of its {len(left_out)} documents is in the corpus, e.g. "
            f"{next(iter(left_out))!r}; it was made for {source.corpus!r} from {source.name}"
        )
    present = {doc_id: counts for doc_id, counts in sampled.items() if doc_id in known}
    sheet = Sheet(source, tuple(entries.values()), present, dict(left_out))
    _check_counts(sheet, items[0])
    return sheet


def _help(limits: Limits) -> tuple[str, ...]:
    """What a writer has to know, in paragraphs."""
    return (
        "For each entry write a question on the line below `question`, and the same question in "
        "other words below `paraphrase`: the paraphrase is what is used. Indent both by four "
        "spaces and change nothing else. Leave an entry empty if nothing good comes to mind.",
        RULES,
        f"A wording is rejected if it shares {limits.ngram} words in a row with its passage, or "
        "if too many of its words stand in the passage in the same order (ROUGE-L F1 above "
        f"{limits.rouge_l}). An underspecified one is rejected if it has a proper name of its "
        "passage or title.",
    )


def _head(source: Source, sampled: Mapping[str, Mapping[str, int]]) -> dict[str, Any]:
    values = (FORMAT, source.corpus, source.name, source.sha256)
    return {
        **dict(zip(_HEAD, values, strict=False)),
        "sampled": {doc_id: dict(counts) for doc_id, counts in sorted(sampled.items())},
    }


def _counts(samples: Sequence[Sample]) -> dict[str, dict[str, int]]:
    found: dict[str, dict[str, int]] = {}
    for sample in samples:
        counts = found.setdefault(sample.doc_id, {})
        counts[sample.type] = counts.get(sample.type, 0) + 1
    return found


def _identity(sample: Sample) -> dict[str, Any]:
    return {
        "id": sample.sample_id, "type": sample.type, "document": sample.doc_id,
        "spans": [
            {"start": span.start, "end": span.end, "sha256": digest}
            for span, digest in zip(sample.spans, sample.digests, strict=True)
        ],
    }


class _Text(str):
    """A passage, to be written as a block that a person reads as it stands."""


class _Dumper(yaml.SafeDumper):
    pass


def _as_block(dumper: yaml.SafeDumper, text: _Text) -> yaml.ScalarNode:
    # Three signs are line breaks to YAML and no line breaks to the text: only quoted they survive.
    style = '"' if re.search("[\x85\u2028\u2029]", text) else "|"
    return dumper.represent_scalar("tag:yaml.org,2002:str", str(text), style=style)


_Dumper.add_representer(_Text, _as_block)


def _yaml(entry: Mapping[str, Any]) -> str:
    return yaml.dump(
        [entry], Dumper=_Dumper, allow_unicode=True, sort_keys=False, width=10**9
    )


def _source(item: Item) -> tuple[Source, dict[str, dict[str, int]]]:
    fields = item.fields
    if fields.get("format") != FORMAT:
        raise _error(item, f"format is {fields.get('format')!r}, expected {FORMAT!r}: is it a "
                     "worksheet or a question file of this version?")
    if wrong := unknown_keys(fields, _HEAD):
        raise _error(item, wrong)
    sampled = fields.get("sampled")
    if not isinstance(sampled, dict) or not all(
        isinstance(counts, dict) and all(
            kind in TYPES and isinstance(n, int) and not isinstance(n, bool) and n >= 0
            for kind, n in counts.items()
        )
        for counts in sampled.values()
    ):
        raise _error(item, "`sampled` is no mapping of documents to counts by type; restore it")
    try:
        source = Source(*(_word(item, key) for key in ("corpus", "source", "source_sha256")))
    except ValueError as error:
        raise _error(item, str(error)) from None
    return source, sampled


def _entry(
    item: Item, documents: Mapping[str, Document], left_out: Counter[str], source: Source
) -> Entry | None:
    if wrong := unknown_keys(item.fields, _KEYS):
        raise _error(item, wrong)
    name, doc_id, kind = (_word(item, key) for key in ("id", "document", "type"))
    if kind not in TYPES:
        raise _error(item, f"type is {kind!r}, expected one of {', '.join(TYPES)}")
    spans = _spans(item)
    wordings = [_wording(item, key) for key in ("question", "paraphrase")]
    if doc_id not in documents:
        left_out[doc_id] += 1
        return None
    body = documents[doc_id].body
    for span, digest, text in spans:
        _check_span(item, doc_id, body, span, digest, text, source)
    of_type: Type = kind
    try:
        sample = draw(documents[doc_id], of_type, tuple(span for span, _, _ in spans))
    except ValueError as error:
        raise _error(item, f"{error}; restore the entry") from None
    if sample.sample_id != name:
        raise _error(item, f"id is {name!r}, but type, document and spans make "
                     f"{sample.sample_id!r}; restore the entry")
    return Entry(sample, *wordings)


def _spans(item: Item) -> list[tuple[Span, str, str | None]]:
    found: list[tuple[Span, str, str | None]] = []
    written = item.fields.get("spans")
    if not isinstance(written, list) or not written:
        raise _error(item, "no list of `spans`; restore the entry")
    for number, one in enumerate(written):
        if not isinstance(one, dict) or unknown_keys(one, _SPAN_KEYS):
            raise _error(item, f"span {number} is {one!r}, expected {', '.join(_SPAN_KEYS)}")
        start, end, digest, text = (one.get(key) for key in _SPAN_KEYS)
        numbers = [n for n in (start, end) if isinstance(n, int) and not isinstance(n, bool)]
        if len(numbers) != 2 or not 0 <= numbers[0] < numbers[1]:
            raise AnchorError(f"{item.where}: span {number} is [{start!r}, {end!r}), expected "
                              "whole numbers 0 <= start < end; restore the entry")
        if not isinstance(digest, str) or not _DIGEST.fullmatch(digest):
            raise AnchorError(f"{item.where}: sha256 of span {number} is {digest!r}, expected 64 "
                              "hexadecimal digits; restore the entry")
        if text is not None and not isinstance(text, str):
            raise _error(item, f"text of span {number} is {text!r}; restore the passage")
        found.append((Span(numbers[0], numbers[1]), digest, text))
    return found


def _check_span(
    item: Item, doc_id: str, body: str, span: Span, digest: str, text: str | None, source: Source
) -> None:
    where = f"{item.where}: span [{span.start}, {span.end}) of {doc_id!r}"
    mend = (
        f"it was drawn from {source.name}, SHA-256 {source.sha256}: read the corpus from that "
        "file, or draw a fresh worksheet"
    )
    if span.end > len(body):
        raise AnchorError(f"{where} leaves body, which has {len(body)} code points; {mend}")
    found = sha256(body[span.start : span.end])
    if found != digest:
        raise AnchorError(
            f"{where} has the digest {found[:12]}…, expected {digest[:12]}…: the text has changed; "
            f"{mend}"
        )
    if text is not None and sha256(text) != digest:
        raise AnchorError(
            f"{where}: its passage was changed in the sheet, so what was asked about is not what "
            "stands there; restore the passage"
        )


def _check_counts(sheet: Sheet, item: Item) -> None:
    """The entries of a document and type are no more than were sampled."""
    for doc_id, counts in _counts([e.sample for e in sheet.entries]).items():
        for kind, count in counts.items():
            drawn = sheet.sampled.get(doc_id, {}).get(kind, 0)
            if count > drawn:
                raise _error(item, f"{drawn} {kind} samples of {doc_id!r} in `sampled`, but "
                             f"{count} entries; restore both")


def _wording(item: Item, key: str) -> str:
    value = item.fields.get(key)
    if isinstance(value, int) and not isinstance(value, bool):
        value = str(value)
    if value is not None and not isinstance(value, str):
        raise _error(item, f"`{key}` is {value!r}, expected text; write it below `{key}: >-`, "
                     "indented")
    return " ".join((value or "").split())


def _word(item: Item, key: str) -> str:
    value = item.fields.get(key)
    if isinstance(value, int) and not isinstance(value, bool):
        value = str(value)  # a document called 2001
    if not isinstance(value, str) or not value.strip():
        raise _error(item, f"`{key}` is {value!r}, expected text; restore the entry")
    return value


def _error(item: Item, what: str) -> QuestionError:
    return QuestionError(f"{item.where}: {what}")
