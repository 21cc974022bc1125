"""JSON lines, TREC runs and the pipeline's tables: what is read, and what is refused and how."""

from __future__ import annotations

import json
import math
import random
from pathlib import Path
from typing import Any

import pytest

from spanwise import schemas
from spanwise.errors import DecodingError, InputError, QuestionError, RunError
from spanwise.measures import arrays, ideal, tables
from spanwise.measures.arrays import Chunks, Gold
from spanwise.measures.door import score_files
from spanwise.measures.evaluate import Evaluator
from spanwise.measures.files import read_chunks, read_questions, read_scores, score_lines
from spanwise.measures.trec import read_run
from spanwise.spans import Span

CHUNKS = [
    {"chunk_id": "a:0-60", "doc_id": "a", "start": 0, "end": 60, "tokens": 500},
    {"chunk_id": "a:40-100", "doc_id": "a", "start": 40, "end": 100, "tokens": 10,
     "prefix_tokens": 2},
    {"chunk_id": "b:0-100", "doc_id": "b", "start": 0, "end": 100, "tokens": 20, "path": ["B"]},
]
QUESTIONS = [
    {"question_id": "q1", "doc_id": "a", "text": "?", "evidence": [{"start": 0, "end": 100}]},
    {"question_id": "q2", "doc_id": "a", "text": "?", "type": "multihop", "bundles": [[0], [1]],
     "evidence": [{"start": 0, "end": 10}, {"start": 50, "end": 60, "doc_id": "b"}]},
    {"question_id": "none", "doc_id": "a", "text": "?", "evidence": []},
]
RUN = "q1 Q0 a:0-60 1 3 t\nq1 Q0 a:40-100 2 2 t\nq1 Q0 b:0-100 3 1 t\n"


def put(path: Path, rows: list[Any] | str | bytes) -> Path:
    if isinstance(rows, list):
        rows = "".join(json.dumps(row) + "\n" for row in rows)
    path.write_bytes(rows.encode() if isinstance(rows, str) else rows)
    return path


@pytest.fixture
def loaded(tmp_path: Path) -> tuple[Gold, Chunks]:
    chunks = read_chunks(put(tmp_path / "C.jsonl", CHUNKS))
    return read_questions(put(tmp_path / "Q.jsonl", QUESTIONS), chunks), chunks


def ranked(path: Path, text: str | bytes, loaded: tuple[Gold, Chunks]) -> list[tuple[str, str]]:
    gold, chunks = loaded
    found = read_run(put(path / "R.trec", text), gold, chunks)
    return list(zip(
        gold.question_ids.take(found.questions).to_pylist(),
        chunks.chunk_ids.take(found.chunks).to_pylist(), strict=True,
    ))


def test_scores_and_counts(tmp_path: Path) -> None:
    scores = score_files(
        put(tmp_path / "Q", QUESTIONS), put(tmp_path / "C", CHUNKS),
        put(tmp_path / "R", RUN + "who Q0 b:0-100 1 1 t\n"),
    )
    rows = {row["question_id"]: row for row in scores.rows()}
    assert list(rows) == ["q1", "q2", "none"]
    assert rows["q1"] == {
        "question_id": "q1", "doc_id": "a",
        "cov_ndcg@10": 1.0,         # .6 + .4 / log2(3) is also the best these chunks can do
        "recall@50": 1.0, "mrr": 1.0, "ndcg@10": 1.0,
        "coverage@512": 1.0,        # 500 + 12 fit exactly, then 20 do not
        "coverage@1024": 1.0, "coverage@2048": 1.0,
        "sufficient@3": 0.0, "bundle_coverage@3": 1.0,
    }
    assert set(list(rows["q2"].values())[2:]) == {0.0}      # absent from the run
    assert set(list(rows["none"].values())[2:]) == {None}
    assert dict(scores.counts) == {
        "questions": 3, "no_evidence": 1, "absent": 1, "no_relevant": 0, "unreachable": 0,
        "above_one": 0, "uncounted": 0, "strangers": 1,
    }
    assert scores.mean("cov_ndcg@10") == (0.5, 2)


def test_what_is_zero_above_one_or_null_is_counted(tmp_path: Path) -> None:
    chunks = [
        {"chunk_id": "m", "doc_id": "a", "start": 24, "end": 76, "tokens": 5},
        {"chunk_id": "l", "doc_id": "a", "start": 0, "end": 50, "tokens": 5},
        {"chunk_id": "r", "doc_id": "a", "start": 50, "end": 100},
    ]
    questions = [
        {"question_id": name, "doc_id": "a", "text": "", "evidence": [{"start": s, "end": e}]}
        for name, s, e in (("beaten", 0, 100), ("far", 500, 600), ("cut", 90, 200))
    ]
    run = "beaten Q0 l 1 2 t\nbeaten Q0 r 2 1 t\nfar Q0 m 1 1 t\n"
    scores = score_files(
        put(tmp_path / "Q", questions), put(tmp_path / "C", chunks), put(tmp_path / "R", run)
    )
    assert scores.values["cov_ndcg@10"][0] > 1.03
    assert scores.counts["above_one"] == 1
    assert scores.counts["unreachable"] == 1            # far
    assert scores.counts["no_relevant"] == 2            # far; cut: 10 of 110 and of 50
    assert scores.counts["uncounted"] == 1              # beaten: the walk meets `r`
    assert scores.column("coverage@512").to_pylist() == [None, 0.0, 0.0]
    bare = [{k: v for k, v in chunk.items() if k != "tokens"} for chunk in chunks]
    nothing = score_files(tmp_path / "Q", put(tmp_path / "C", bare), tmp_path / "R")
    assert nothing.column("coverage@2048").to_pylist() == [None] * 3
    assert nothing.column("cov_ndcg@10").to_pylist() == scores.column("cov_ndcg@10").to_pylist()
    assert nothing.mean("coverage@512") == (None, 0)


def test_gains_that_differ_by_rounding_alone_are_equal(tmp_path: Path) -> None:
    # X = [90,120) gains .1 + .2, which is .30000000000000004 in doubles, and Y = [70,100) gains .3.
    # They tie, so Y goes first for its start. After Y, X gains .2 and V = [65,90) .05; had X gone
    # first, V would have gained .25.
    spans = [{"start": 0, "end": 100}, {"start": 100, "end": 200}]
    places = {"X": (90, 120), "Y": (70, 100), "V": (65, 90)}
    chunks = [
        {"chunk_id": name, "doc_id": "a", "start": s, "end": e} for name, (s, e) in places.items()
    ]
    scores = score_files(
        put(tmp_path / "Q", [{**QUESTIONS[0], "evidence": spans}]), put(tmp_path / "C", chunks),
        put(tmp_path / "R", "q1 Q0 X 1 2 t\nq1 Q0 V 2 1 t\n"),
    )
    assert 0.1 + 0.2 > 0.3
    ratio = (0.3 + 0.25 / math.log2(3)) / (0.3 + 0.2 / math.log2(3) + 0.05 / 2)
    assert scores.values["cov_ndcg@10"][0] == pytest.approx(ratio, abs=1e-12)
    evidence = [Span(0, 100), Span(100, 200)]
    order = ideal([Span(*place) for place in places.values()], evidence)
    assert order == [Span(70, 100), Span(90, 120), Span(65, 90)]


def test_chunks_stand_by_document_start_end_and_id() -> None:
    found = arrays.chunks(
        ["z", "b", "a", "y", "c"], ["b", "a", "a", "a", "a"], [0, 0, 0, 0, 5], [1, 9, 9, 2, 6],
        [1] * 5,
    )
    assert found.chunk_ids.to_pylist() == ["y", "a", "b", "c", "z"]
    assert found.order.tolist() == [3, 0, 1, 2, 4]      # among a b c y z


@pytest.mark.parametrize(("text", "expected"), [
    ("q1 Q0 b:0-100 1 1 t\nq1 Q0 a:0-60 2 5 t\n", ["a:0-60", "b:0-100"]),        # not the rank
    ("q1 Q0 b:0-100 1 1 t\nq1 Q0 a:40-100 1 1 t\nq1 Q0 a:0-60 1 1 t\n",
     ["a:0-60", "a:40-100", "b:0-100"]),                                            # ties by id
    ("q1 Q0 b:0-100 1 1e-3 t\nq1 Q0 a:0-60 2 +2 t\n", ["a:0-60", "b:0-100"]),
    ("q1 Q0 b:0-100 1 -1 t\nq1 Q0 a:0-60 2 -2 t", ["b:0-100", "a:0-60"]),         # no last newline
    ("q1\tQ0\tb:0-100\t1\t1\tt\n", ["b:0-100"]),
    ("  q1   Q0 b:0-100\t 1 1 t  \n\n\nq1 Q0 a:0-60 1 0 t\n", ["b:0-100", "a:0-60"]),
    ("q1 Q0 b:0-100 1 1 t\r\nq1 Q0 a:0-60 1 0 t\r\n", ["b:0-100", "a:0-60"]),
    ("q1 Q0 b:0-100 1 1 t\rq1 Q0 a:0-60 1 0 t\r", ["b:0-100", "a:0-60"]),
    ("\ufeffq1 Q0 b:0-100 1 1 t\n", ["b:0-100"]),
    ('q1 Q0 b:0-100 1 1 "t\nq1 Q0 a:0-60 1 0 t"\n', ["b:0-100", "a:0-60"]),
    ("", []), ("\n \n", []),
])
def test_runs_are_read(
    tmp_path: Path, loaded: tuple[Gold, Chunks], text: str, expected: list[str]
) -> None:
    assert ranked(tmp_path, text, loaded) == [("q1", chunk) for chunk in expected]


def test_a_shuffled_run_is_the_same_run(tmp_path: Path) -> None:
    chunks = put(tmp_path / "C", [
        {"chunk_id": f"c{i}", "doc_id": "a", "start": i, "end": i + 1} for i in range(300)
    ])
    questions = put(tmp_path / "Q", [
        {**QUESTIONS[0], "question_id": f"q{i}", "evidence": [{"start": i, "end": i + 9}]}
        for i in range(200)
    ])
    dice = random.Random(1)
    lines = [
        f"q{q} Q0 c{c} 0 {dice.choice([0.5, 1.5, dice.random()])} t\n"
        for q in range(200) for c in dice.sample(range(300), 60)
    ]
    units = read_chunks(chunks)
    gold = read_questions(questions, units)
    expected = sorted(
        ((int(q[1:]), -float(s), c) for q, _, c, _, s, _ in map(str.split, lines))
    )
    for _ in range(2):      # 12,000 lines in order, then shuffled: both ways of sorting
        found = read_run(put(tmp_path / "R", "".join(lines)), gold, units)
        assert found.questions.tolist() == [q for q, _, _ in expected]
        assert units.chunk_ids.take(found.chunks).to_pylist() == [c for _, _, c in expected]
        dice.shuffle(lines)


@pytest.mark.parametrize(("text", "error", "message"), [
    ("q1 Q0 a:0-60 1 1 t\n\nq1 Q0 zzz 2 0 t\n", RunError,
     "R.trec:3: question 'q1' ranks chunk 'zzz'"),
    ("who Q0 zzz 1 1 t\n", RunError, "R.trec:1: question 'who' ranks chunk 'zzz'"),
    ("q1 Q0 a:0-60 1 1 t\nq2 Q0 a:0-60 1 9 t\nq1 Q0 a:0-60 2 3 t\n", RunError,
     "R.trec:3: question 'q1' ranks chunk 'a:0-60' a second time \\(first on .*R.trec:1\\)"),
    ("who Q0 a:0-60 1 1 t\nq2 Q0 b:0-100 1 1 t\nq2\tQ0 a:0-60 1 1 t\nq2 Q0 b:0-100 4 7 t\n",
     RunError,
     "R.trec:4: question 'q2' ranks chunk 'b:0-100' a second time \\(first on .*R.trec:2\\)"),
    ("q1 Q0 a:0-60 1 1 t\nq1 Q0 b:0-100 1 1\n", RunError, "R.trec:2: 5 fields; a TREC line has"),
    ("q1 Q0 a:0-60 1 1 t u\n", RunError, "R.trec:1: 7 fields"),
    ("q1 Q0 a:0-60 1 high t\n", RunError, "R.trec:1: .* score 'high' is no finite number"),
    ("q1 Q0 a:0-60 1 1_0 t\n", RunError, "score '1_0'"),
    ("q1 Q0 b:0-100 1 1 t\nq1 Q0 a:0-60 1 nan t\n", RunError, "R.trec:2: .* score 'nan'"),
    ("q1 Q0 a:0-60 1 inf t\n", RunError, "score 'inf'"),
    (b"q1 Q0 a:0-60 1 1 t\nq1 Q0 \xff 1 1 t\n", DecodingError, "R.trec:2: not UTF-8"),
])
def test_runs_are_refused(
    tmp_path: Path, loaded: tuple[Gold, Chunks], text: str | bytes, error: type[Exception],
    message: str,
) -> None:
    with pytest.raises(error, match=message):
        ranked(tmp_path, text, loaded)


Q, C = QUESTIONS[0], CHUNKS[0]


@pytest.mark.parametrize(("rows", "message"), [
    ([Q, Q], "Q:2: question 'q1' stands already on .*Q:1"),
    ([{**Q, "question_id": "q 1"}], "Q:1: `question_id` 'q 1' is empty or holds white space"),
    ([{**Q, "question_id": "q\u00a01"}], "white space"),
    ([{**Q, "question_id": ""}], "is empty or holds"),
    ([{**Q, "question_id": 7}], "`question_id` is 7, not a string"),
    ([{**Q, "question_id": "\ud800"}], "half a surrogate pair"),
    ([{k: v for k, v in Q.items() if k != "doc_id"}], "`doc_id` is missing or null"),
    ([{k: v for k, v in Q.items() if k != "text"}], "`text` is missing"),
    ([{k: v for k, v in Q.items() if k != "evidence"}], "`evidence` is missing"),
    ([{**Q, "evidence": {"start": 1, "end": 2}}], "`evidence` is an object, not a list"),
    ([{**Q, "evidence": [[0, 5]]}], "evidence 0 is a list, not a span"),
    ([Q, {**Q, "question_id": "x", "evidence": [*Q["evidence"], {"start": 5, "end": 5}]}],
     r"Q:2: evidence 1: span \[5, 5\); expected 0 <= start < end"),
    ([{**Q, "evidence": [{"start": 9, "end": 5}]}], r"span \[9, 5\)"),
    ([{**Q, "evidence": [{"start": -1, "end": 5}]}], r"span \[-1, 5\)"),
    ([{**Q, "evidence": [{"start": 0, "end": 2**40}]}], "2\\*\\*31"),
    ([{**Q, "evidence": [{"start": 0, "end": 1.5}]}], "end is 1.5; both are whole numbers"),
    ([{**Q, "evidence": [{"start": False, "end": 1}]}], "start is False"),
    ([{**Q, "evidence": [{"start": 0, "end": 1, "doc_id": "zz"}]}],
     "Q:1: evidence 0 lies in document 'zz', of which there is no chunk"),
    ([{**Q, "doc_id": "zz"}], "document 'zz'"),
    ([{**Q, "bundles": [[1]]}], r"bundle \[1\] names span 1; `evidence` has 1"),
    ([{**Q, "bundles": [[-1]]}], "names span -1"),
    ([{**Q, "bundles": [[True]]}], "names span True"),
    ([{**Q, "bundles": [[]]}], r"bundle \[\]; expected one or more"),
    ([{**Q, "bundles": {"a": 1}}], "`bundles` is an object"),
    ([{**Q, "evidence": [], "bundles": [[0]]}], "`evidence` has 0"),
    ("", "holds no question"),
    ('{"question_id": "q1"\n', "Q:1: not JSON"),
    (json.dumps(Q) + " {}\n", "Q:1: not JSON .*more text after the object"),
    (json.dumps(Q) + "\n[1]\n", "Q:2: expected a JSON object, found a list"),
    ('\n{"question_id": NaN}\n', "Q:2: not JSON .*NaN"),
    ("[" * 100_000, "Q:1: not JSON"),
])
def test_questions_are_refused(tmp_path: Path, rows: Any, message: str) -> None:
    chunks = read_chunks(put(tmp_path / "C", CHUNKS))
    with pytest.raises(InputError, match=message):
        read_questions(put(tmp_path / "Q", rows), chunks)


@pytest.mark.parametrize(("rows", "message"), [
    ([C, {**CHUNKS[1], "chunk_id": "a:0-60"}], "C:2: chunk 'a:0-60' stands already on .*C:1"),
    ([{**C, "chunk_id": "a b"}], "C:1: `chunk_id` 'a b' is empty or holds white space"),
    ([{**C, "doc_id": None}], "`doc_id` is missing or null"),
    ([{**C, "end": 0}], r"C:1: span \[0, 0\)"),
    ([{**C, "start": "0"}], "start is '0'"),
    ([{**C, "tokens": -1}], "`tokens` is -1; expected a whole number"),
    ([{**C, "tokens": 1.0}], "`tokens` is 1.0"),
    ([{**C, "prefix_tokens": True}], "`prefix_tokens` is True"),
    ("\n", "holds no chunk"),
    (b'{"chunk_id": "\xe9"}\n', "C:1: byte 15 of the line is not UTF-8"),
])
def test_chunks_are_refused(tmp_path: Path, rows: Any, message: str) -> None:
    with pytest.raises(InputError, match=message):
        read_chunks(put(tmp_path / "C", rows))


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"nowhere: cannot be read \(No such file"):
        read_chunks(tmp_path / "nowhere")
    with pytest.raises(InputError, match="cannot be read"):
        read_chunks(tmp_path)


def test_empty_and_null_bundles_mean_all_evidence(tmp_path: Path) -> None:
    two = QUESTIONS[1]["evidence"]
    rows = [
        {**Q, "question_id": f"q{i}", "evidence": two, **extra}
        for i, extra in enumerate([{}, {"bundles": None}, {"bundles": []}, {"bundles": [[0, 1]]}])
    ]
    gold = read_questions(put(tmp_path / "Q", "\ufeff" + "\r\n".join(map(json.dumps, rows))))
    assert gold.members.tolist() == [0, 2, 4, 6, 8]
    assert gold.member_spans.tolist() == list(range(8))


def test_scores_go_out_and_come_back(tmp_path: Path) -> None:
    scores = score_files(
        put(tmp_path / "Q", QUESTIONS), put(tmp_path / "C", CHUNKS), put(tmp_path / "R", RUN)
    )
    written = put(tmp_path / "S", score_lines(scores))
    assert read_scores(written, "sufficient@3") == {
        "q1": ("a", 0.0), "q2": ("a", 0.0), "none": ("a", None)
    }
    with pytest.raises(InputError, match="S:1: no measure 'ndcg'; this line has: cov_ndcg@10"):
        read_scores(written, "ndcg")
    for value in ('"1"', "true", "1e999", "[1]"):
        text = f'{{"question_id": "q", "doc_id": "d", "mrr": {value}}}\n'
        with pytest.raises(InputError, match=r"S:1: mrr is .*, not a number or null"):
            read_scores(put(tmp_path / "S", text), "mrr")
    with pytest.raises(InputError, match="occurs twice"):
        read_scores(put(tmp_path / "S", score_lines(scores) * 2), "mrr")


def test_the_pipelines_tables_score_the_same() -> None:
    chunks = schemas.table(schemas.CHUNKS, [
        {"segmentation": "native", "chunk_id": f"{d}:{s}-{s + 50}", "doc_id": d, "start": s,
         "end": s + 50, "tokens": 300, "path": [d], "node": 0}
        for d in "ab" for s in (0, 50)
    ] + [
        {"segmentation": "fixed", "chunk_id": "a:0-100", "doc_id": "a", "start": 0, "end": 100,
         "tokens": 9, "path": [], "node": 0}
    ])
    labels = schemas.table(schemas.LABELS, [
        {"label": "native-path-3", "chunk_id": f"{d}:{s}-{s + 50}", "doc_id": d, "start": s,
         "end": s + 50, "prefix": "p", "prefix_tokens": tokens, "text_sha256": "0"}
        for d, s, tokens in (("a", 0, 212), ("a", 50, 213), ("b", 0, 1), ("b", 50, 2))
    ])
    body = [[{"doc_id": "a", "start": 10, "end": 60}, {"doc_id": "b", "start": 0, "end": 5}], []]
    questions = schemas.table(schemas.QUESTIONS, [
        {"question_id": f"q{i}", "doc_id": "a", "text": "?", "type": "t", "base": None,
         "evidence": spans, "bundles": [[0], [1]] if spans else [],
         "raw_evidence": spans[1:], "raw_bundles": [[0]] if spans else [], "excluded": None}
        for i, spans in enumerate(body)
    ])
    runs = schemas.table(schemas.RUNS, [
        {"condition": "G3", "question_id": q, "rank": rank, "chunk_id": c, "score": score}
        for q, rank, c, score in (
            # The ranks of a table are its order, even where scores have been rounded to equal.
            ("q0", 1, "a:50-100", 0.5), ("q0", 2, "a:0-50", 0.5), ("other", 1, "a:0-50", 0.1),
        )
    ])
    gold, units = tables.gold(questions), tables.chunks(chunks, "native")
    prefix = tables.prefix_tokens(labels, "native-path-3", units)
    assert prefix.tolist() == [212, 213, 1, 2]
    ranking = tables.ranking(runs, "G3", gold, units)
    evaluator = Evaluator(gold, units)
    scores = evaluator.evaluate(ranking, prefix)
    assert scores.counts["strangers"] == 1 and scores.counts["no_evidence"] == 1
    first = next(scores.rows())
    # Half of S = 2 spans; [50,60) is 10 of 50, [10,50) is 40 of 50.
    assert first["coverage@512"] == 0.0                # 300 + 213 = 513
    assert first["coverage@1024"] == 0.1               # 513 + 512 = 1025: the first alone
    assert first["coverage@2048"] == 0.5
    assert evaluator.evaluate(ranking).values["coverage@1024"][0] == 0.5    # no prefix charged
    assert first["recall@50"] == 0.5 and first["bundle_coverage@3"] == 1.0
    assert first["sufficient@3"] == 0.0

    raw = tables.gold(questions, "raw")
    assert raw.span_docs.to_pylist() == ["b"] and raw.ends.tolist() == [5]
    with pytest.raises(RunError, match=r"no chunk of segmentation 'induced'; .*: fixed, na"):
        tables.chunks(chunks, "induced")
    with pytest.raises(RunError, match="'other': chunk 'a:0-50' is not among the chunks"):
        tables.ranking(runs, "G3", gold, tables.chunks(chunks, "fixed"))
    with pytest.raises(RunError, match="no ranking of condition 'G2'; the table has: G3"):
        tables.ranking(runs, "G2", gold, units)
    with pytest.raises(RunError, match="label 'native-none-0' has no row for chunk 'a:0-50'"):
        tables.prefix_tokens(labels, "native-none-0", units)
    with pytest.raises(QuestionError, match="`body` or `raw`"):
        tables.gold(questions, "html")
