"""One corpus's questions through the stage and the command: its own, a model's, or a file's."""

from __future__ import annotations

import json
import re
import runpy
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml

from spanwise import layout, params, schemas
from spanwise.cli import main
from spanwise.documents.model import sha256
from spanwise.documents.records import digest
from spanwise.errors import AnchorError, ParamsError, QuestionError, Unavailable
from spanwise.writing.asking import Parsed, ask, parsed
from spanwise.writing.funnel import STEPS
from spanwise.writing.sampling import TYPES

from .conftest import ROOT
from .llm_world import Handler, completion, world

CREW = ("Ahab", "Starbuck", "Ishmael", "Queequeg", "Pip")
OWN = [{"id": "q1", "document": "a", "question": "Who mended?", "anchors": [{"quote": "Part 1"}]},
       {"id": "q2", "document": "b", "type": "no-answer", "question": "Who sang?"}]
Said = Callable[..., tuple[int, str, str]]


def article(stem: str) -> str:
    """Five sections of four paragraphs: spans of every type may be drawn of it."""
    parts = [f"# The log of {stem}\n"]
    for section in range(5):
        parts.append(f"## Part {section}\n")
        for part in range(4):
            name, day = CREW[(section + part) % 5], f"{stem}{section}{part}"
            parts.append(
                f"On day {day} the sailor {name} went below deck again to mend torn grey sails. "
                f"Nobody on that watch {day} ever heard old {name} speak of it to anyone.\n"
            )
    return "\n".join(parts)


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Two parsed documents without questions, the corpus `notes`."""
    monkeypatch.chdir(tmp_path)
    for stem in "ab":
        path = tmp_path / "data" / "notes" / f"{stem}.md"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(article(stem), encoding="utf-8")
    study()
    stage("parse")
    return tmp_path


@pytest.fixture
def said(capsys: pytest.CaptureFixture[str]) -> Said:
    def run(*arguments: str) -> tuple[int, str, str]:
        capsys.readouterr()
        code = main(arguments)
        shown = capsys.readouterr()
        return code, shown.out, shown.err

    return run


def study(questions: str | None = None, url: str | None = None, **writing: Any) -> None:
    settings = yaml.safe_load((ROOT / "params.yaml").read_text(encoding="utf-8"))
    settings["corpora"] = {"notes": {
        "reader": "markdown", "path": "data/notes", "questions": questions
    }}
    settings["llm"]["model"] = "m"
    settings["server"] |= {"base_url": url, "retries": 0}
    settings["writing"] |= {"per_type": 1, **writing}
    Path("params.yaml").write_text(yaml.safe_dump(settings), encoding="utf-8")


def stage(name: str) -> None:
    runpy.run_path(str(ROOT / "stages" / f"{name}.py"))["main"]("notes")


def rows() -> list[dict[str, Any]]:
    path = layout.stage("ask", "notes") / "questions.parquet"
    found: list[dict[str, Any]] = schemas.read(path, schemas.QUESTIONS).to_pylist()
    return found


def told() -> dict[str, Any]:
    return layout.read_report(layout.stage("ask", "notes") / "report.json")


# ---------------------------------------------------------------- what the corpus brings


@pytest.mark.usefixtures("project")
def test_a_corpus_with_questions_keeps_them_and_their_digest() -> None:
    stage("ask")
    assert (rows(), told()["origin"]) == ([], "none")
    Path("data/notes/questions.yaml").write_text(yaml.safe_dump(OWN), encoding="utf-8")
    stage("parse")
    stage("ask")
    path = layout.parse("notes") / "questions.parquet"
    assert rows() == schemas.read(path, schemas.QUESTIONS).to_pylist() and len(rows()) == 2
    report = layout.read_report(layout.stage("parse", "notes") / "report.json")
    assert told() == {
        "origin": "given", "questions": 2, "questions by type": {"no-answer": 1, "untyped": 1},
        "digests": report["study"]["digests"],
    }
    settings = yaml.safe_load(Path("params.yaml").read_text(encoding="utf-8"))
    settings["corpora"]["notes"]["reader"] = "qasper"
    found = ask(parsed("notes"), params.from_mapping(settings), Path())
    assert found.report["origin"] == "harvested"


@pytest.mark.usefixtures("project")
@pytest.mark.parametrize("source", ["written", "questions/notes.jsonl"])
def test_two_sources_of_questions_are_refused(said: Said, source: str) -> None:
    Path("data/notes/questions.yaml").write_text(yaml.safe_dump(OWN), encoding="utf-8")
    stage("parse")
    study(source)
    with pytest.raises(ParamsError, match="data/notes brings 2 questions of its own, and"):
        stage("ask")
    code, out, error = said("ask", "notes")
    assert (code, out) == (2, "") and "take that line out of params.yaml, or the" in error
    study()
    code, _, error = said("ask", "notes", "--worksheet", "w.yaml")
    assert code == 2 and "expected none where questions are to be written" in error
    assert not Path("w.yaml").exists() and not layout.stage("ask", "notes").exists()


# ---------------------------------------------------------------- by a language model


def writer(handler: Handler, body: dict[str, Any]) -> None:
    """Words questions that pass; every fourth copies its passage, one paraphrase copies too."""
    prompt = body["messages"][-1]["content"]
    number = len(handler.server.asked)
    if prompt.startswith("Question: "):
        text = f"Is it known whose thing the log means under {number}?"
    elif number % 4 == 0:
        passage = prompt.split(":\n", 1)[1]
        text = " ".join(passage.split()[:12]) + "?"
    else:
        text = f"Which matter is meant by the entry {number}, pray?"
    handler.reply(completion(json.dumps({"question": text})))


@pytest.mark.usefixtures("project")
def test_a_model_writes_each_question_once(said: Said) -> None:
    folder = layout.stage("ask", "notes")
    with world(writer) as server:
        study("written", server.url)
        stage("ask")
        asked = len(server.asked)
    report, found = told(), rows()
    sampled = report["funnel"]["sampled"]["all"]
    assert report["origin"] == "written" and sampled == 8
    # Requests 4 and 8 copied their passage.
    assert asked == report["language model"]["distinct_requests"] == 8 + 6
    rejected = [report["funnel"][f"rejected: {why}"]["all"] for why in ("rouge-l", "4-gram")]
    assert sum(rejected) == 2
    assert list(report["funnel"]) == list(STEPS) and report["funnel"]["finals"]["all"] == 6
    assert report["questions"] == len(found) == 6
    assert report["digests"]["questions"] == digest(
        schemas.read(folder / "questions.parquet", schemas.QUESTIONS)
    )
    assert report["rouge_l of finals"]["all"]["n"] == 6
    assert report["rouge_l of finals"]["all"]["p100"] <= 0.35
    documents = {d.doc_id: d for d in parsed("notes").documents}
    for row in found:
        document = documents[row["doc_id"]]
        assert row["type"] in TYPES and row["excluded"] is None
        assert row["bundles"] == row["raw_bundles"] == [list(range(len(row["evidence"])))]
        spans = "+".join(f"{e['start']}-{e['end']}" for e in row["evidence"])
        assert row["question_id"] == f"{row['doc_id']}:{row['type']}:{spans}"
        for body, raw in zip(row["evidence"], row["raw_evidence"], strict=True):
            inside = document.body[body["start"] : body["end"]]
            around = (document.raw or "")[raw["start"] : raw["end"]]
            assert re.sub(r"\n+## .*\n+", "\n\n", around) == inside
    # The server is gone: everything that was answered is kept.
    before = {path.name: path.read_bytes() for path in folder.iterdir()}
    stage("ask")
    assert {path.name: path.read_bytes() for path in folder.iterdir()} == before
    assert set(before) == {"answers.jsonl", "questions.parquet", "report.json"}
    code, out, _ = said("ask", "notes", "--json")
    assert code == 0 and json.loads(out) == {"corpus": "notes", **report}
    out = said("ask", "notes")[1]
    assert out.startswith("notes: 6 questions, written\n")
    line = next(line for line in out.splitlines() if line.startswith("finals "))
    assert line.split()[1:] == [str(report["funnel"]["finals"][k]) for k in (*TYPES, "all")]


def files() -> dict[str, bytes]:
    return {str(path): path.read_bytes() for path in Path().rglob("*") if path.is_file()}


@pytest.mark.usefixtures("project")
def test_a_dry_run_says_what_is_left_and_asks_and_writes_nothing(said: Said) -> None:
    def dry() -> dict[str, Any]:
        before = files()
        code, out, error = said("ask", "notes", "--dry-run", "--json")
        text = said("ask", "notes", "--dry-run")[1]
        assert (code, error, files()) == (0, "", before) and "this was a dry run" in text
        found: dict[str, Any] = json.loads(out)
        assert f"{found['answers_kept']} answers are kept already" in text
        return found

    study("written")  # no server: one would be started here
    found = dry()
    assert (found["documents"], found["model"], found["server"]) == (2, "m", None)
    assert sum(found["passages"].values()) == 8
    # A wording and a paraphrase for each passage, ten seconds each.
    assert (found["answers_kept"], found["requests_left"], found["seconds"]) == (0, 16, 160.0)
    assert "about 3 min on two cores" in said("ask", "notes", "--dry-run")[1]

    def interrupted(handler: Handler, body: dict[str, Any]) -> None:
        if len(handler.server.asked) > 5:
            handler.reply({}, 503)
        else:
            writer(handler, body)

    with world(interrupted) as server:
        study("written", server.url)
        found = dry()
        assert not server.asked and found["server"] == server.url and found["seconds"] is None
        with pytest.raises(QuestionError):
            stage("ask")
        asked = len(server.asked)
        found = dry()
        assert len(server.asked) == asked
        # Five wordings are kept, one of them a copy: three are left, and 4 + 3 paraphrases.
        assert (found["answers_kept"], found["requests_left"]) == (5, 3 + 4 + 3)
    with world(writer) as server:
        study("written", server.url)
        stage("ask")
        found = dry()
        assert (found["answers_kept"], found["requests_left"]) == (
            told()["language model"]["distinct_requests"], 0
        )
        assert found["seconds"] == 0
    assert "nothing is left to ask" in said("ask", "notes", "--dry-run")[1]


@pytest.mark.usefixtures("project")
def test_a_dry_run_without_a_model_says_what_the_real_one_does(said: Said) -> None:
    before = files()
    code, out, _ = said("ask", "notes", "--worksheet", "w.yaml", "--dry-run")
    assert code == 0 and "w.yaml would be written: 8 samples" in out and files() == before
    filled(said)
    before = files()
    dry = json.loads(said("ask", "notes", "--worksheet", "w.yaml", "--dry-run", "--json")[1])
    assert files() == before
    real = json.loads(said("ask", "notes", "--worksheet", "w.yaml", "--json")[1])
    assert (dry.pop("dry_run"), real.pop("dry_run")) == (True, False) and dry == real
    study("questions/notes.jsonl")
    before = files()
    code, out, _ = said("ask", "notes", "--dry-run")
    assert code == 0 and "no language model is asked" in out and files() == before
    assert said("ask", "notes")[1] == out.rsplit("\n\n", 1)[0] + "\n"


@pytest.mark.usefixtures("project")
def test_without_a_server_nothing_is_written() -> None:
    with world(writer) as server:
        study("written", server.url)
    with pytest.raises(Unavailable):
        stage("ask")
    assert not (layout.stage("ask", "notes") / "report.json").exists()


@pytest.mark.usefixtures("project")
def test_a_cap_is_kept_and_a_filter_that_nothing_passes_says_what_to_do() -> None:
    with world(writer) as server:
        study("written", server.url, cap=1)
        stage("ask")
        assert set(told()["questions by type"].values()) == {1}
        assert told()["funnel"]["survivors"]["all"] > told()["questions"]
        study("written", server.url, ngram=1)
        with pytest.raises(QuestionError, match="none of 8 samples became a question") as caught:
            stage("ask")
    assert "`spanwise ask notes --worksheet F`" in str(caught.value)


# ---------------------------------------------------------------- by people


def fill(path: Path, words: Callable[[int, str], str]) -> None:
    """Fill a worksheet in as a person does, on the line below each key; entries from 0."""
    lines, entry = path.read_text(encoding="utf-8").split("\n"), -1
    for at, line in enumerate(lines):
        entry += line.startswith("- id:")
        if match := re.fullmatch("  (question|paraphrase): >-", line):
            lines[at + 1] = "    " + words(entry, match.group(1))
    path.write_text("\n".join(lines), encoding="utf-8")


def good(entry: int, key: str) -> str:
    return f"Which matter is {'meant' if key == 'question' else 'told'} by entry {entry}, pray?"


def filled(said: Said) -> None:
    """A worksheet with a copied wording, a name where none may be, and one left empty."""
    assert said("ask", "notes", "--worksheet", "w.yaml")[0] == 0
    (_, *entries) = yaml.safe_load(Path("w.yaml").read_text(encoding="utf-8"))
    at = {one["type"]: i for i, one in reversed(list(enumerate(entries)))}
    passage = entries[at["factoid"]]["spans"][0]["text"].split()
    name = next(n for n in CREW if n in entries[at["underspecified"]]["spans"][0]["text"])

    def words(entry: int, key: str) -> str:
        if entry == at["multihop"]:
            return ""
        if entry == at["factoid"] and key == "paraphrase":
            return "Is it said that " + " ".join(passage[3:9]) + "?"
        if entry == at["underspecified"]:
            return f"Which matter of {name}'s is meant here, pray?"
        return good(entry, key)

    fill(Path("w.yaml"), words)


@pytest.mark.usefixtures("project")
def test_a_worksheet_becomes_the_questions_of_the_corpus(said: Said) -> None:
    code, out, _ = said("ask", "notes", "--worksheet", "w.yaml", "--per-type", "4", "--json")
    said_so = json.loads(out)
    drawn, missing = said_so["drawn"], said_so["could not be drawn"]
    assert code == 0 and {drawn[kind] + missing[kind] for kind in TYPES} == {2 * 4}
    entries = yaml.safe_load(Path("w.yaml").read_text(encoding="utf-8"))[1:]
    assert drawn == {kind: sum(one["type"] == kind for one in entries) for kind in TYPES}
    assert drawn["factoid"] == 8 and missing["structural"] > 0
    first = Path("w.yaml").read_bytes()
    code, _, error = said("ask", "notes", "--worksheet", "w.yaml")  # it is there: taken back
    assert code == 2 and "no question is filled in" in error
    assert Path("w.yaml").read_bytes() == first and not Path("questions").exists()
    Path("w.yaml").unlink()
    said("ask", "notes", "--worksheet", "w.yaml", "--per-type", "4", "--seed", "3")
    assert Path("w.yaml").read_bytes() != first
    Path("w.yaml").unlink()

    filled(said)
    code, out, error = said("ask", "notes", "--worksheet", "w.yaml", "--seed", "3")
    assert code == 0 and error == "note: w.yaml is drawn already; --seed not used\n"
    assert "2 rejected:" in out and "names what it should hint at: " in out
    assert re.search(r"a:factoid:\S+: shares '(\w+ ){3}\w+' with its passage\n    Is it said", out)
    assert "\n    questions: questions/notes.jsonl\n" in out
    back = json.loads(said("ask", "notes", "--worksheet", "w.yaml", "--json")[1])
    assert [r["round"] for r in back["rejected"]] == ["paraphrase", "question"]
    assert back["funnel"]["sampled"]["all"] == 8 and back["funnel"]["answered"]["all"] == 7
    assert back["funnel"]["finals"]["all"] == 5

    study(back["params"].removeprefix("questions: "))
    kept = layout.stage("ask", "notes") / "answers.jsonl"
    kept.parent.mkdir(parents=True)
    kept.write_text("of a model that is not asked any more\n", encoding="utf-8")
    stage("ask")
    assert not kept.exists()
    report = told()
    assert report["origin"] == "authored" and report["question file"]["corpus"] == "notes"
    shared = ("funnel", "rouge_l of finals", "documents of finals")
    assert {key: report[key] for key in shared} == {key: back[key] for key in shared}
    entries = yaml.safe_load(Path("w.yaml").read_text(encoding="utf-8"))[1:]
    rejected = {one["id"] for one in back["rejected"]}
    assert {row["question_id"]: row["text"] for row in rows()} == {
        one["id"]: one["paraphrase"] for one in entries
        if one["paraphrase"] and one["id"] not in rejected
    }
    assert "params.yaml names it already" in said("ask", "notes", "--worksheet", "w.yaml")[1]


@pytest.mark.usefixtures("project")
def test_a_question_file_is_refused_where_a_document_reads_otherwise(said: Said) -> None:
    filled(said)
    said("ask", "notes", "--worksheet", "w.yaml")
    study("questions/notes.jsonl")
    Path("data/notes/a.md").write_text(article("a").replace("torn", "old"), encoding="utf-8")
    stage("parse")
    for act in (lambda: stage("ask"), lambda: parsed_ask()):
        with pytest.raises(AnchorError, match="the text has changed; it was drawn from documents"):
            act()
    assert not layout.stage("ask", "notes").exists()
    Path("data/notes/a.md").unlink()
    stage("parse")
    stage("ask")
    assert told()["left out: about documents that are not in the corpus"] == 3
    assert {row["doc_id"] for row in rows()} == {"b"}


def parsed_ask() -> None:
    ask(parsed("notes"), params.load(), Path("elsewhere"))


@pytest.mark.usefixtures("project")
def test_a_question_file_is_judged_and_stays_as_it_is(said: Said) -> None:
    filled(said)
    file = "questions/theirs.jsonl"
    said("ask", "notes", "--worksheet", "w.yaml", "--out", file)
    study(file)
    before = Path(file).read_bytes()
    Path("data/notes/a.md").unlink()  # the file has questions that this corpus does not know of
    stage("parse")
    code, out, _ = said("ask", "notes", "--worksheet", file)
    assert code == 0 and "params.yaml names it already" in out and f"{file} read; 4 of its" in out
    assert Path(file).read_bytes() == before
    assert [path.name for path in Path("questions").iterdir()] == ["theirs.jsonl"]


@pytest.mark.usefixtures("project")
def test_what_the_command_refuses(said: Said) -> None:
    filled(said)
    for arguments, part in (
        (["--seed", "1"], "--seed: only with --worksheet"),
        (["--worksheet", "w.yaml", "--out", "notes.jsonl"], "expected a .jsonl file in questions/"),
        (["--worksheet", "w.yaml", "--out", "questions/../n.jsonl"], "in questions/"),
        (["--worksheet", "w.yaml", "--out", "questions/n.yaml"], "expected a .jsonl file"),
        (["--worksheet", "other.txt"], "name it FILE.yaml"),
        (["--worksheet", "data"], "data: cannot be read"),
    ):
        code, out, error = said("ask", "notes", *arguments)
        assert (code, out) == (2, "") and part in error, arguments
    assert not Path("questions").exists() and not Path("other.txt").exists()
    assert "no corpus 'note'" in said("ask", "note")[2]
    study("questions/notes.jsonl")
    code, _, error = said("ask", "notes")
    assert code == 2 and "questions/notes.jsonl is not there; make it with `spanwise ask" in error


@pytest.mark.usefixtures("project")
def test_questions_that_only_the_old_file_has_are_not_written_over(said: Said) -> None:
    filled(said)
    said("ask", "notes", "--worksheet", "w.yaml")
    before = Path("questions/notes.jsonl").read_bytes()
    said("ask", "notes", "--worksheet", "v.yaml", "--seed", "3")
    fill(Path("v.yaml"), good)
    code, _, error = said("ask", "notes", "--worksheet", "v.yaml")
    assert code == 2 and re.search(r"has \d questions that the worksheet does not have", error)
    assert Path("questions/notes.jsonl").read_bytes() == before
    more = "questions/more/v.jsonl"
    assert said("ask", "notes", "--worksheet", "v.yaml", "--out", more)[0] == 0
    study(more)
    stage("ask")
    assert told()["question file"]["name"] == more


def test_a_sheet_says_what_file_it_was_drawn_from(project: Path, said: Said) -> None:
    def source() -> tuple[str, str]:
        Path("w.yaml").unlink(missing_ok=True)
        assert said("ask", "notes", "--worksheet", "w.yaml")[0] == 0
        head = yaml.safe_load(Path("w.yaml").read_text(encoding="utf-8"))[0]
        return head["source"], head["source_sha256"]

    report = layout.read_report(layout.stage("parse", "notes") / "report.json")
    assert source() == ("documents", report["study"]["digests"]["documents"])
    (project / "data/notes/b.md").unlink()
    stage("parse")
    assert source() == ("a.md", sha256(article("a")))


@pytest.mark.usefixtures("project")
def test_a_corpus_without_prose_has_nothing_to_ask_about(said: Said) -> None:
    for stem in "ab":
        Path(f"data/notes/{stem}.md").write_text("# A\n\n- one\n- two\n", encoding="utf-8")
    stage("parse")
    code, _, error = said("ask", "notes", "--worksheet", "w.yaml")
    assert code == 2 and "scripts without them yield no spans" in error
    study("written")  # no server is looked for: there is nothing to ask it
    with pytest.raises(QuestionError, match="no document has a span to ask about"):
        stage("ask")


def test_evidence_stays_on_body_where_there_is_no_raw_text(project: Path) -> None:
    from dataclasses import replace

    from spanwise.llm.model import Answer
    from spanwise.writing.asking import written

    found = parsed("notes")
    made = [
        replace(d, raw=None, paragraphs=tuple(replace(p, raw=None) for p in d.paragraphs))
        for d in found.documents
    ]
    numbers = iter(range(99))

    def asker(requests: Any) -> list[Answer]:
        return [
            Answer(json.dumps({"question": good(next(numbers), "question")}), 1, 1, "stop")
            for _ in requests
        ]

    without = Parsed(found.name, found.own, made, found.trees)
    asked = written(without, params.load(project / "params.yaml").writing, asker)
    assert asked.questions["raw_evidence"].null_count == asked.questions.num_rows == 8
