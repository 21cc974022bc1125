"""`spanwise score` and `spanwise compare` as a person meets them."""

from __future__ import annotations

import gzip
import json
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from spanwise.cli import main
from spanwise.params import MEASURES

CHUNKS = [
    {"chunk_id": "a-1", "doc_id": "a", "start": 0, "end": 60, "tokens": 20},
    {"chunk_id": "a-2", "doc_id": "a", "start": 40, "end": 100, "tokens": 20},
    {"chunk_id": "b-1", "doc_id": "b", "start": 0, "end": 100, "tokens": 20},
]
QUESTIONS = [
    {"question_id": "q1", "doc_id": "a", "text": "?", "evidence": [{"start": 0, "end": 100}]},
    {"question_id": "q2", "doc_id": "b", "text": "?", "evidence": [{"start": 0, "end": 50}]},
    {"question_id": "q3", "doc_id": "b", "text": "?", "evidence": []},
]
RUN = "q1 Q0 a-1 1 3.0 t\nq1 Q0 a-2 2 2.0 t\nq1 Q0 b-1 3 1.0 t\n"


@pytest.fixture
def files(tmp_path: Path) -> dict[str, Path]:
    found = {name: tmp_path / f"{name}.file" for name in ("questions", "chunks", "run")}
    found["questions"].write_text("".join(json.dumps(q) + "\n" for q in QUESTIONS))
    found["chunks"].write_text("".join(json.dumps(c) + "\n" for c in CHUNKS))
    found["run"].write_text(RUN)
    return found


def score(files: dict[str, Path], *more: str) -> int:
    return main(["score", *(a for n, p in files.items() for a in (f"--{n}", str(p))), *more])


def put_scores(path: Path, values: dict[str, tuple[str, Any]], measure: str = "mrr") -> Path:
    path.write_text("".join(
        json.dumps({"question_id": q, "doc_id": d, measure: v}) + "\n"
        for q, (d, v) in values.items()
    ))
    return path


def test_score_prints_one_line_a_question(
    files: dict[str, Path], capsys: pytest.CaptureFixture[str]
) -> None:
    assert score(files) == 0
    shown = capsys.readouterr()
    rows = [json.loads(line) for line in shown.out.splitlines()]
    assert [list(row) for row in rows] == [["question_id", "doc_id", *MEASURES]] * 3
    assert rows[0]["cov_ndcg@10"] == 1.0 and rows[0]["bundle_coverage@3"] == 1.0
    assert [rows[1][m] for m in MEASURES] == [0.0] * 9
    assert [rows[2][m] for m in MEASURES] == [None] * 9
    assert shown.err.splitlines() == [
        "note: 1 without evidence: every measure null", "note: 1 absent from the run: scored 0",
    ]


def test_score_writes_whole_files_and_a_summary(
    files: dict[str, Path], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "new" / "S.jsonl"
    assert score(files, "--out", str(out), "--summary") == 0
    shown = capsys.readouterr().out
    assert len(out.read_text().splitlines()) == 3 and list(out.parent.iterdir()) == [out]
    table = {line.split()[0]: line.split()[1:] for line in shown.splitlines()[1:10]}
    assert table["cov_ndcg@10"] == ["0.5000", "2", "1"] and set(table) == set(MEASURES)
    assert "1 absent from the run: scored 0" in shown
    before = out.read_bytes()
    files["run"].write_text(RUN + "q2 Q0 nowhere 1 1 t\n")
    assert score(files, "--out", str(out)) == 2
    shown_error = capsys.readouterr().err
    assert shown_error.startswith("error: ") and "run.file:4" in shown_error
    assert "'nowhere'" in shown_error and out.read_bytes() == before
    missing = tmp_path / "other.jsonl"
    assert score(files, "--out", str(missing)) == 2 and not missing.exists()


def test_score_never_writes_over_an_input_or_a_folder(
    files: dict[str, Path], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert score(files, "--out", str(files["run"])) == 2
    assert files["run"].read_text() == RUN
    assert score(files, "--out", str(tmp_path)) == 2
    assert score(files, "--out", str(files["run"] / "x")) == 2
    assert [line[:13] for line in capsys.readouterr().err.splitlines()] == ["error: --out "] * 3


def test_a_users_mistake_exits_2(
    files: dict[str, Path], capsys: pytest.CaptureFixture[str]
) -> None:
    files["chunks"].write_text(json.dumps({**CHUNKS[0], "end": 0}) + "\n")
    for arguments in (
        ["score"], ["nonsense"], ["score", "--depth", "3"], [],
        ["compare"], ["compare", "one.jsonl"], ["compare", "a", "b", "--iterations", "0"],
        ["compare", "a", "b", "--seed", "-1"], ["compare", "nowhere", "nowhere2"],
        ["compare", "--pair", "C1"], ["compare", "--pair", "C1=a"],
        ["compare", "--pair", "C1=a,b", "--pair", "C1=a,c"],
    ):
        assert main(arguments) == 2, arguments
    assert score(files) == 2
    assert "chunks.file:1: span [0, 0)" in capsys.readouterr().err


def test_compare_prints_json(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    a = put_scores(tmp_path / "A3.jsonl", {
        "q1": ("d1", 1.0), "q2": ("d2", 0.5), "q3": ("d3", None), "q4": ("d3", 0.25)
    })
    b = put_scores(tmp_path / "A1.jsonl", {
        "q1": ("d1", 0.5), "q2": ("d2", 0.25), "q3": ("d3", 0.5), "q5": ("d3", 0.25)
    })
    assert main(["compare", str(a), str(b), "--measure", "mrr", "--json", "--seed", "3"]) == 0
    shown = capsys.readouterr()
    (found,) = json.loads(shown.out)
    assert list(found) == [
        "name", "n_questions", "n_documents", "delta", "ci_low", "ci_high", "p", "dz", "p_holm",
        "excluded",
    ]
    # Deltas .5 (d1) and .25 (d2): draws give .25, .375 or .5.
    assert found["name"] == "A3-A1" and found["delta"] == 0.375
    assert (found["n_questions"], found["n_documents"], found["excluded"]) == (2, 2, 3)
    assert (found["ci_low"], found["ci_high"]) == (0.25, 0.5)
    assert found["p"] == 0.0 and found["p_holm"] == 0.0
    assert found["dz"] == pytest.approx(0.375 / 0.125 / 2**0.5)
    assert "note: A3-A1: 1 excluded, undefined in A" in shown.err
    assert "only in A" in shown.err and "only in B" in shown.err


def test_compare_prints_a_family_with_holm(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for i, name in enumerate("abc"):
        put_scores(tmp_path / name, {f"q{j}": (f"d{j % 7}", (i * j % 5) / 4) for j in range(40)})
    put_scores(tmp_path / "one", {f"q{j}": ("d", 1.0) for j in range(3)})
    put_scores(tmp_path / "two", {f"q{j}": ("d", 0.5) for j in range(3)})
    pairs = ["C1=a,b", "C2=c,a", "C3=one,two"]
    named = [
        "--pair=" + p.replace("=", f"={tmp_path}/").replace(",", f",{tmp_path}/") for p in pairs
    ]
    arguments = ["compare", *named, "--measure", "mrr", "--iterations", "500"]
    assert main([*arguments, "--json"]) == 0
    first, second, third = json.loads(capsys.readouterr().out)
    assert [first["name"], second["name"], third["name"]] == ["C1", "C2", "C3"]
    assert first["p_holm"] == pytest.approx(min(1, first["p"] * 3))
    assert third["delta"] == 0.5 and third["n_documents"] == 1
    assert {third[k] for k in ("ci_low", "ci_high", "p", "p_holm", "dz")} == {None}
    assert main(arguments) == 0
    shown = capsys.readouterr().out
    assert "C3: one document: nothing to resample, so no interval and no p" in shown
    assert "< 0.004" in shown and "< 0.012" in shown       # 2 / 500, and times 3 under Holm
    assert "nan" not in shown.lower()


def test_scoring_then_comparing_is_one_road(
    files: dict[str, Path], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert score(files, "--out", str(tmp_path / "A")) == 0
    files["run"].write_text(RUN.replace("a-1 1 3.0", "a-1 1 0.5") + "q2 Q0 b-1 1 1 t\n")
    assert score(files, "--out", str(tmp_path / "B")) == 0
    capsys.readouterr()
    assert main(["compare", str(tmp_path / "A"), str(tmp_path / "B"), "--json"]) == 0
    (found,) = json.loads(capsys.readouterr().out)
    assert (found["n_questions"], found["excluded"]) == (2, 1)
    assert main(["compare", str(tmp_path / "A"), str(tmp_path / "B"), "--measure", "ndcg@5"]) == 2
    assert "no measure 'ndcg@5'; this line has: cov_ndcg@10" in capsys.readouterr().err


def test_distances_in_place_of_scores_are_noted(
    files: dict[str, Path], capsys: pytest.CaptureFixture[str]
) -> None:
    tied = "q1 Q0 a-1 0 3.0 t\nq1 Q0 a-2 1 3.0 t\n"    # pyterrier counts ranks from 0
    for run, apart in (
        (RUN, 0), (tied, 0), (RUN.replace(" 3 1.0", " 2 1.0"), 0),
        (RUN.replace(" 3 1.0", " - 1.0"), 0),
        ("q1 Q0 a-1 1 0.1 t\nq1 Q0 a-2 2 0.4 t\nq2 Q0 b-1 1 1 t\n", 1),
    ):
        files["run"].write_text(run)
        for more in ([], ["--summary"]):
            assert score(files, *more) == 0
            notes = [n for n in capsys.readouterr().err.splitlines() if "contradict" in n]
            assert len(notes) == apart
            assert not apart or "note: 1 of 2 questions in the run have ranks that" in notes[0]


def test_files_that_have_nothing_to_do_with_each_other_are_refused(
    files: dict[str, Path], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    files["run"].write_text(RUN.replace("q1 ", "1 "))
    assert score(files) == 2
    assert "run.file: none of its 1 questions is in " in (said := capsys.readouterr().err)
    assert "whose first is 'q1'" in said
    files["run"].write_bytes(gzip.compress(RUN.encode()))
    assert score(files) == 2
    assert "run.file: compressed by gzip; unpack it first" in capsys.readouterr().err
    a = put_scores(tmp_path / "a", {"q1": ("d", 1.0)})
    b = put_scores(tmp_path / "b", {"q2": ("d", 1.0)})
    assert main(["compare", str(a), str(b), "--measure", "mrr"]) == 2
    said = capsys.readouterr().err
    assert "have no question in common (their first are 'q1' and 'q2')" in said
    b = put_scores(tmp_path / "b", {"q1": ("other", 1.0)})
    assert main(["compare", str(a), str(b), "--measure", "mrr"]) == 2
    assert "question 'q1' is of document 'd' in A and 'other' in B" in capsys.readouterr().err


def test_the_command_line_starts_without_heavy_rooms() -> None:
    code = (
        "import sys; from spanwise.cli import main; main(['--help']); "
        "print([m for m in ('numpy', 'pyarrow', 'scipy', 'torch', 'pandas') if m in sys.modules])"
    )
    start = time.perf_counter()
    shown = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=60
    )
    assert shown.stdout.splitlines()[-1] == "[]"
    assert "score" in shown.stdout and "compare" in shown.stdout
    # A tenth of a second when idle; this bound only notices a heavy import.
    assert time.perf_counter() - start < 5


def test_the_program_is_installed() -> None:
    program = Path(sys.executable).parent / "spanwise"
    shown = subprocess.run([program, "--version"], capture_output=True, text=True, timeout=60)
    assert shown.returncode == 0 and shown.stdout.strip()
    shown = subprocess.run(
        [program, "compare", "x"], capture_output=True, text=True, timeout=60
    )
    assert shown.returncode == 2 and shown.stderr.startswith("error: 1 file(s) of scores")
    assert "Traceback" not in shown.stderr
