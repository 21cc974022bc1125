"""Questions, chunks and scores as JSON lines, checked line by line: an error names file and line.

Keys beyond those named here are let through, so that a file can carry what its maker wants.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NoReturn

from spanwise.errors import DecodingError, InputError, QuestionError, RunError
from spanwise.measures import arrays
from spanwise.measures.arrays import LIMIT, UNKNOWN, Chunks, Gold
from spanwise.measures.evaluate import Scores


def content(path: Path) -> bytes:
    """The bytes of an input file.

    raises: InputError if it cannot be read or is compressed.
    """
    try:
        data = path.read_bytes()
    except OSError as error:
        raise InputError(
            f"{path}: cannot be read ({error.strerror}); give an existing file"
        ) from None
    if data.startswith(b"\x1f\x8b"):
        raise InputError(f"{path}: compressed by gzip; unpack it first, `gunzip -k {path}`")
    return data


def objects(path: Path) -> Iterator[tuple[str, dict[str, Any]]]:
    """Each JSON object of a file of JSON lines with its place, `file:line`. Blank lines are passed.

    raises: InputError for a line that is not one JSON object or holds NaN or Infinity,
            DecodingError for one that is not UTF-8.
    """
    decoder = json.JSONDecoder(parse_constant=_refuse_constant)
    data = content(path).removeprefix(b"\xef\xbb\xbf")
    for number, line in enumerate(data.split(b"\n"), start=1):
        where = f"{path}:{number}"
        try:
            text = line.decode("utf-8").strip()
            if not text:
                continue
            found, end = decoder.raw_decode(text)
            if end != len(text):
                raise ValueError(f"more text after the object, at character {end + 1}")
        except UnicodeDecodeError as error:
            raise DecodingError(
                f"{where}: byte {error.start + 1} of the line is not UTF-8; save the file as UTF-8"
            ) from None
        except (ValueError, RecursionError) as error:
            raise InputError(f"{where}: not JSON ({error}); expected one object a line") from None
        if type(found) is not dict:
            raise InputError(f"{where}: expected a JSON object, found {_kind(found)}")
        yield where, found


def read_questions(path: Path, chunks: Chunks | None = None) -> Gold:
    """Questions with their gold spans and bundles; spans are taken as given, not united.

    A span lies in the question's document unless it names its own. No bundles (absent, null or an
    empty list) means one of all evidence.

    chunks: if given, every document with evidence must have chunks.
    raises: QuestionError that names file, line and what is wrong.
    """
    ids: dict[str, str] = {}
    docs: list[str] = []
    counts: list[int] = []
    span_docs: list[str] = []
    starts: list[int] = []
    ends: list[int] = []
    groups: list[int] = []
    sizes: list[int] = []
    members: list[int] = []
    known = None if chunks is None else set(chunks.documents.to_pylist())
    for where, found in objects(path):
        question = _identifier(found, "question_id", where, QuestionError)
        if question in ids:
            raise QuestionError(
                f"{where}: question {question!r} stands already on {ids[question]}; ids are unique"
            )
        ids[question] = where
        docs.append(_identifier(found, "doc_id", where, QuestionError))
        if type(found.get("text")) is not str:
            raise QuestionError(f"{where}: `text` is {_kind(found.get('text'))}, not a string")
        evidence = found.get("evidence")
        if type(evidence) is not list:
            raise QuestionError(
                f"{where}: `evidence` is {_kind(evidence)}, not a list of spans; a question "
                "without evidence has an empty list"
            )
        first = len(starts)
        for i, span in enumerate(evidence):
            if type(span) is not dict:
                raise QuestionError(f"{where}: evidence {i} is {_kind(span)}, not a span")
            place = f"{where}: evidence {i}"
            start, end = _span(span, place, QuestionError)
            doc = docs[-1]
            if "doc_id" in span:
                doc = _identifier(span, "doc_id", place, QuestionError)
            if known is not None and doc not in known:
                raise QuestionError(
                    f"{place} lies in document {doc!r}, of which there is no chunk; add its chunks "
                    "or leave the question out"
                )
            span_docs.append(doc)
            starts.append(start)
            ends.append(end)
        counts.append(len(evidence))
        bundles = _bundles(found.get("bundles"), len(evidence), where)
        groups.append(len(bundles))
        for bundle in bundles:
            sizes.append(len(bundle))
            members.extend(first + i for i in bundle)
    if not ids:
        raise QuestionError(f"{path}: holds no question; expected one JSON object a line")
    return Gold(
        arrays.strings(list(ids)), arrays.strings(docs), arrays.edges(counts),
        arrays.strings(span_docs), arrays.ints(starts), arrays.ints(ends), arrays.edges(groups),
        arrays.edges(sizes), arrays.ints(members),
    )


def read_chunks(path: Path) -> Chunks:
    """The chunks of one segmentation, sorted.

    raises: RunError that names file, line and what is wrong.
    """
    ids: dict[str, str] = {}
    docs: list[str] = []
    starts: list[int] = []
    ends: list[int] = []
    tokens: list[int] = []
    prefixes: list[int] = []
    for where, found in objects(path):
        chunk = _identifier(found, "chunk_id", where, RunError)
        if chunk in ids:
            raise RunError(
                f"{where}: chunk {chunk!r} stands already on {ids[chunk]}; ids are unique"
            )
        ids[chunk] = where
        docs.append(_identifier(found, "doc_id", where, RunError))
        start, end = _span(found, where, RunError)
        starts.append(start)
        ends.append(end)
        tokens.append(_count(found, "tokens", UNKNOWN, where))
        prefixes.append(_count(found, "prefix_tokens", 0, where))
    if not ids:
        raise RunError(f"{path}: holds no chunk; expected one JSON object a line")
    return arrays.chunks(list(ids), docs, starts, ends, tokens, prefixes)


def score_lines(scores: Scores) -> str:
    """Scores as JSON lines, one question a line, undefined measures null."""
    return "".join(
        json.dumps(row, ensure_ascii=False, allow_nan=False) + "\n" for row in scores.rows()
    )


def read_scores(path: Path, measure: str) -> dict[str, tuple[str, float | None]]:
    """One measure of a file of scores: question_id -> (doc_id, value or None).

    raises: InputError that names file, line and what is wrong.
    """
    values: dict[str, tuple[str, float | None]] = {}
    for where, found in objects(path):
        question = _identifier(found, "question_id", where, InputError)
        if question in values:
            raise InputError(f"{where}: question {question!r} occurs twice; ids are unique")
        doc = _identifier(found, "doc_id", where, InputError)
        if measure not in found:
            names = ", ".join(k for k in found if k not in ("question_id", "doc_id")) or "none"
            raise InputError(f"{where}: no measure {measure!r}; this line has: {names}")
        value = found[measure]
        # An integer beyond floats would become an infinity; nothing here is far from 1.
        if value is not None and (type(value) not in (int, float) or not abs(value) < 1e300):
            raise InputError(f"{where}: {measure} is {_kind(value)}, not a number or null")
        values[question] = (doc, None if value is None else float(value))
    if not values:
        raise InputError(f"{path}: holds no scores; expected one JSON object a line")
    return values


def _identifier(
    found: dict[str, Any], key: str, where: str, error: type[InputError]
) -> str:
    value = found.get(key)
    if type(value) is not str:
        raise error(f"{where}: `{key}` is {_kind(value)}, not a string")
    # "a b".split() is two parts and "".split() none: one look for all white space there is.
    if value.split() != [value]:
        raise error(
            f"{where}: `{key}` {value!r} is empty or holds white space; percent-encode it (%20)"
        )
    if not value.isascii():
        try:
            value.encode("utf-8")
        except UnicodeEncodeError:
            raise error(f"{where}: `{key}` {value!r} holds half a surrogate pair") from None
    return value


def _span(found: dict[str, Any], where: str, error: type[InputError]) -> tuple[int, int]:
    start, end = found.get("start"), found.get("end")
    if type(start) is not int or type(end) is not int:
        raise error(
            f"{where}: start is {_kind(start)} and end is {_kind(end)}; both are whole numbers of "
            "code points"
        )
    if not 0 <= start < end < LIMIT:
        raise error(f"{where}: span [{start}, {end}); expected 0 <= start < end < 2**31")
    return start, end


def _count(found: dict[str, Any], key: str, default: int, where: str) -> int:
    value = found.get(key)
    if value is None:
        return default
    if type(value) is not int or not 0 <= value < LIMIT:
        raise RunError(f"{where}: `{key}` is {_kind(value)}; expected a whole number of at least 0")
    return value


def _bundles(given: Any, spans: int, where: str) -> list[list[int]]:
    if given is None or given == []:
        return [list(range(spans))] if spans else []
    if type(given) is not list:
        raise QuestionError(f"{where}: `bundles` is {_kind(given)}, not a list of lists")
    for bundle in given:
        if type(bundle) is not list or not bundle:
            raise QuestionError(
                f"{where}: bundle {bundle!r}; expected one or more indices into `evidence`"
            )
        for i in bundle:
            if type(i) is not int or not 0 <= i < spans:
                raise QuestionError(
                    f"{where}: bundle {bundle!r} names span {i!r}; `evidence` has {spans}, counted "
                    "from 0"
                )
    return given


def _kind(value: Any) -> str:
    if value is None:
        return "missing or null"
    if isinstance(value, dict | list):
        return "an object" if isinstance(value, dict) else "a list"
    shown = repr(value)
    return shown if len(shown) <= 40 else shown[:37] + "..."


def _refuse_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is no JSON number")
