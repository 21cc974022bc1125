"""TREC runs: `question Q0 chunk rank score tag`, ordered by score, then by chunk id.

The fields are split by a vectorised reader; only a file it stumbles over is read line by line, to
put right what can be (tabs, runs of blanks, lone CRs) and to name the line of what cannot.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import islice
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray
from pyarrow import csv

from spanwise.errors import DecodingError, RunError
from spanwise.measures.arrays import Chunks, Gold, Ints, Ranking, places, repeated
from spanwise.measures.files import content

_FIELDS = ("question", "q0", "chunk", "rank", "score", "tag")


def read_run(path: Path, gold: Gold, chunks: Chunks) -> Ranking:
    """The ranking of a TREC run: score descending, then chunk id; the rank column is ignored.

    Questions that `gold` does not have are left out and counted; an empty file ranks nothing.

    raises: RunError that names file, line, question and chunk for a line of other than six fields,
            a score that is no number, an unknown chunk or one ranked twice for its question.
    """
    data = content(path)
    if b"\t" in data:
        data = _mended(data)
    table = _split(data)
    if table is None:
        data = _mended(data)
        table = _split(data)
    if table is None:
        table = _slowly(path, data)
    questions = places(table["question"], gold.question_ids)
    units = places(table["chunk"], chunks.chunk_ids)
    scores: NDArray[np.float64] = table["score"].to_numpy()
    if (units < 0).any():
        where, fields = _line(path, data, int(np.flatnonzero(units < 0)[0]))
        raise RunError(
            f"{where}: question {fields[0]!r} ranks chunk {fields[2]!r}, which is not among the "
            "chunks; score a run with the chunks it was made from"
        )
    if not np.isfinite(scores).all():
        where, fields = _line(path, data, int(np.flatnonzero(~np.isfinite(scores))[0]))
        raise RunError(_scoreless(where, fields))
    strangers = len(table["question"].filter(pa.array(questions < 0)).unique())
    rows = None if not strangers else np.flatnonzero(questions >= 0)
    if rows is not None:
        questions, units, scores = questions[rows], units[rows], scores[rows]
    order = _order(questions, scores, chunks.order[units])
    if order is not None:
        questions, units = questions[order], units[order]
    if (again := repeated(questions, units)) is not None:
        lines = np.flatnonzero((questions == again[0]) & (units == again[1]))
        lines = lines if order is None else order[lines]
        lines = np.sort(lines if rows is None else rows[lines])
        first, fields = _line(path, data, int(lines[0]))
        raise RunError(
            f"{_line(path, data, int(lines[1]))[0]}: question {fields[0]!r} ranks chunk "
            f"{fields[2]!r} a second time (first on {first}); a chunk has one rank"
        )
    return Ranking(questions, units, strangers)


def ranked(path: Path) -> tuple[Ints, NDArray[np.float64], NDArray[np.float64]]:
    """What a run's lines say of order: question as a number, rank and score, each of shape (n,).

    Lines whose rank or score is no number are left out.
    """
    data = content(path)
    if data.strip() and (table := _split(data, ("question", "rank", "score"))) is not None:
        names = pc.dictionary_encode(table["question"]).combine_chunks().indices
        return (
            names.to_numpy().astype(np.int64), table["rank"].to_numpy(), table["score"].to_numpy()
        )
    numbers: dict[bytes, int] = {}
    rows: list[tuple[int, float, float]] = []
    for line in data.splitlines():
        fields = line.split()
        try:
            row = float(fields[3]), float(fields[4])
        except (IndexError, ValueError):
            continue
        rows.append((numbers.setdefault(fields[0], len(numbers)), *row))
    columns = np.array(rows, dtype=np.float64).reshape(-1, 3).T
    return columns[0].astype(np.int64), columns[1], columns[2]


def _split(
    data: bytes, columns: Sequence[str] = ("question", "chunk", "score")
) -> pa.Table | None:
    """Some columns of a run, or None if some line does not have them."""
    if not data.strip():
        text = pa.array([], pa.string())
        return pa.table({"question": text, "chunk": text, "score": pa.array([], pa.float64())})
    try:
        return csv.read_csv(
            pa.BufferReader(data),
            # One thread: the work is too small for two, and blocks come in order.
            csv.ReadOptions(column_names=list(_FIELDS), use_threads=False),
            csv.ParseOptions(delimiter=" ", quote_char=False, double_quote=False),
            csv.ConvertOptions(
                include_columns=list(columns),
                column_types={
                    "question": pa.string(), "chunk": pa.string(), "rank": pa.float64(),
                    "score": pa.float64(),
                },
                null_values=[],
            ),
        ).combine_chunks()
    except pa.ArrowInvalid:
        return None


def _mended(data: bytes) -> bytes:
    """One blank between fields and LF between lines; the number of lines stays what it was."""
    data = data.replace(b"\r\n", b"\n").replace(b"\r", b"\n").replace(b"\t", b" ")
    while b"  " in data:
        data = data.replace(b"  ", b" ")
    return data.replace(b"\n ", b"\n").replace(b" \n", b"\n").strip(b" ")


def _order(questions: Ints, scores: NDArray[np.float64], ids: Ints) -> Ints | None:
    """The rows by question, score descending and chunk id, or None if that is how they stand.

    Most runs are sorted but for some ties, so only the questions that are not are sorted: by score
    where they are many, and again by id as well where that left ties in a wrong order.
    """
    order = None
    if (np.diff(questions) < 0).any():
        order = _by_question(questions)
    wrong = _unsorted(questions, scores, ids, order)
    if len(wrong) > 10_000:
        order = np.arange(len(questions)) if order is None else order
        rows = order[wrong]
        rows = rows[np.argsort(-scores[rows])]
        order[wrong] = rows[_by_question(questions[rows])]
        wrong = _unsorted(questions, scores, ids, order)
    if len(wrong):
        order = np.arange(len(questions)) if order is None else order
        rows = order[wrong]
        order[wrong] = rows[np.lexsort((ids[rows], -scores[rows], questions[rows]))]
    return order


def _unsorted(
    questions: Ints, scores: NDArray[np.float64], ids: Ints, order: Ints | None
) -> Ints:
    """The places, grouped by question, of every row of the questions with a row out of order."""
    if order is not None:
        questions, scores, ids = questions[order], scores[order], ids[order]
    down = scores[:-1] > scores[1:]
    tied = (scores[:-1] == scores[1:]) & (ids[:-1] <= ids[1:])
    wrong = np.flatnonzero((questions[:-1] == questions[1:]) & ~(down | tied))
    bad = np.zeros(int(questions[-1]) + 1 if len(questions) else 0, dtype=bool)
    bad[questions[wrong]] = True
    return np.flatnonzero(bad[questions])


def _by_question(questions: Ints) -> Ints:
    # Sixteen bits are sorted by radix, many times faster.
    narrow = questions.astype(np.uint16) if questions.max(initial=0) < 2**16 else questions
    return np.argsort(narrow, kind="stable")


def _lines(data: bytes) -> Iterator[tuple[int, bytes]]:
    data = data.removeprefix(b"\xef\xbb\xbf").replace(b"\r\n", b"\n").replace(b"\r", b"\n")
    for number, line in enumerate(data.split(b"\n"), start=1):
        if line.strip():
            yield number, line


def _line(path: Path, data: bytes, row: int) -> tuple[str, list[str]]:
    """The place and the fields of a row; rows are the lines that are not blank."""
    number, line = next(islice(_lines(data), row, None))
    return f"{path}:{number}", [field.decode("utf-8", "replace") for field in line.split()]


def _slowly(path: Path, data: bytes) -> pa.Table:
    """The same columns line by line, for numbers that Python alone can read (`+1.5`).

    raises: DecodingError or RunError that names the first line that is none of a run.
    """
    columns: dict[str, list[str | float]] = {"question": [], "chunk": [], "score": []}
    for number, line in _lines(data):
        where = f"{path}:{number}"
        try:
            fields = [field.decode("utf-8") for field in line.split()]
        except UnicodeDecodeError:
            raise DecodingError(f"{where}: not UTF-8; save the run as UTF-8") from None
        if len(fields) != len(_FIELDS):
            raise RunError(
                f"{where}: {len(fields)} fields; a TREC line has six: "
                "question Q0 chunk rank score tag"
            )
        try:
            score = float(fields[4].replace("_", "?"))
        except ValueError:
            raise RunError(_scoreless(where, fields)) from None
        columns["question"].append(fields[0])
        columns["chunk"].append(fields[2])
        columns["score"].append(score)
    return pa.table(columns, pa.schema({
        "question": pa.string(), "chunk": pa.string(), "score": pa.float64()
    }))


def _scoreless(where: str, fields: list[str]) -> str:
    return (
        f"{where}: question {fields[0]!r}, chunk {fields[2]!r}: score {fields[4]!r} is no finite "
        "number"
    )
