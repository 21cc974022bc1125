"""What a person expects of any command: examples that hold, exit codes, JSON, dry runs."""

from __future__ import annotations

import ast
import difflib
import json
import os
import pty
import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import typer
import yaml

from spanwise import params, profiles
from spanwise.cli import app, main
from spanwise.show import OPEN

from . import reporting_world as world
from .conftest import ROOT
from .test_commands import PROGRAM
from .test_registration_git import digests, git

Said = Callable[..., tuple[int, str, str]]


def every(group: Any = None, words: tuple[str, ...] = ()) -> Iterator[tuple[str, ...]]:
    """The words of each command, groups that are commands themselves among them."""
    group = group or typer.main.get_command(app)
    for word, command in group.commands.items():
        if not hasattr(command, "commands") or command.invoke_without_command:
            yield (*words, word)
        if hasattr(command, "commands"):
            yield from every(command, (*words, word))


COMMANDS = list(every())


def command_at(words: tuple[str, ...]) -> Any:
    found = typer.main.get_command(app)
    for word in words:
        found = found.commands[word]
    return found


@pytest.fixture
def said(capsys: pytest.CaptureFixture[str]) -> Said:
    def run(*arguments: str) -> tuple[int, str, str]:
        code = main(arguments)
        shown = capsys.readouterr()
        return code, shown.out, shown.err
    return run


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The project's settings and profiles in a git repository, one corpus parsed and asked."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("GIT_CEILING_DIRECTORIES", str(tmp_path.parent))
    shutil.copy(ROOT / "params.yaml", tmp_path)
    shutil.copytree(ROOT / "profiles", tmp_path / "profiles")
    digests("d1", "q1")
    git(tmp_path, "init", "-q", "-b", "main")
    git(tmp_path, "add", "params.yaml")
    git(tmp_path, "-c", "user.name=a", "-c", "user.email=a@b", "commit", "-q", "-m", "a")
    return tmp_path


# ---------------------------------------------------------------- help and mistakes


@pytest.mark.parametrize("words", COMMANDS, ids=" ".join)
def test_help_ends_with_an_example_that_the_command_takes(
    words: tuple[str, ...], said: Said
) -> None:
    code, out, _ = said(*words, "--help")
    found = re.search(r"Examples?: (.*)", " ".join(out.split("Options:")[1].split()))
    assert code == 0 and found, out
    calls = re.split(r"; | && ", found[1])
    own = [call for call in calls if call.startswith(f"spanwise {' '.join(words)}")]
    assert own, calls
    for call in own:
        rest = shlex.split(call)[1 + len(words):]
        command_at(words).make_context(" ".join(words), rest)  # UsageError for what it takes not


@pytest.mark.parametrize("words", COMMANDS, ids=" ".join)
def test_an_option_that_is_none_is_a_mistake_of_the_person(
    words: tuple[str, ...], said: Said, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    code, out, error = said(*words, "--no-such-option")
    assert (code, out) == (2, "") and "--no-such-option" in error
    assert f"Try 'spanwise {' '.join(words)} --help'" in error
    assert "\x1b" not in error and list(tmp_path.iterdir()) == []


def test_every_summary_of_a_command_is_whole_on_a_line(said: Said) -> None:
    groups = {words[:-1] for words in COMMANDS} | {("register",)}
    for words in groups:
        out = said(*words, "--help")[1]
        listed = out.split("Commands:\n")[1].split("\n\n")[0].splitlines()
        summaries = dict(re.split(r"  +", line.strip(), maxsplit=1) for line in listed)
        for name, summary in summaries.items():
            assert len(listed) == len(summaries) and not summary.endswith("..."), (words, name)


@pytest.mark.parametrize("arguments", [
    ["score", "--questions", "none", "--chunks", "none", "--run", "none"],
    ["compare", "none.jsonl", "none.jsonl"], ["chunk", "none.md"],
    ["spans", "none.jsonl", "--texts", "none"], ["show", "no-such-question"],
    ["models", "fetch", "no-such-model"], ["ask", "no-such-corpus"],
    ["register", "make", "--reason", ""], ["register", "amend", "--reason", " "],
    ["add", "notes", "no-such-folder"], ["sweep", "no-such-corpus"],
    ["profile", "no-such-profile"], ["report"], ["ui", "--port", "0"],
], ids=lambda arguments: " ".join(arguments[:2]))
def test_a_bad_argument_ends_with_2_and_one_reason(
    project: Path, said: Said, arguments: list[str]
) -> None:
    if arguments[:2] == ["register", "make"]:  # a second entry without a reason
        assert said("register", "make")[0] == 0
    before = sorted(path for path in project.rglob("*") if ".git" not in path.parts)
    code, out, error = said(*arguments)
    assert (code, out) == (2, "") and "rror: " in error and "Traceback" not in error, error
    assert sorted(path for path in project.rglob("*") if ".git" not in path.parts) == before


# ---------------------------------------------------------------- programs that read along


@pytest.mark.usefixtures("project")
def test_json_of_models_and_of_the_registration_says_what_the_text_says(said: Said) -> None:
    models = json.loads(said("models", "list", "--json")[1])
    rows = [line.split("\t") for line in said("models", "list")[1].splitlines()]
    assert rows == [
        [name, its["model"], its["place"] or "not here"] for name, its in models.items()
    ]
    code, out, _ = said("register", "check", "--json")
    found = json.loads(out)
    assert (code, found["fine"], found["corpora"]["handbook"]["standing"]) == (
        1, False, "exploratory"
    )
    assert said("register")[0] == 0
    found = json.loads(said("register", "check", "--json")[1])["corpora"]["handbook"]
    assert found == {
        "standing": "confirmatory", "differences": [], "entry": 1, "registered_as": "handbook",
        "weights": [], "notes": [], "proven": False,
        "git": ["the entry is not committed: git add registration.json && git commit"],
    }
    text = said("register", "check")[1]
    assert found["git"][0] in text and text.startswith("handbook: confirmatory")


def test_json_of_show_has_what_the_text_shows(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, said: Said
) -> None:
    world.build(tmp_path, world.settings())
    monkeypatch.chdir(tmp_path)
    settings = yaml.safe_dump(world.settings().model_dump(mode="json"), sort_keys=False)
    Path("params.yaml").write_text(settings, encoding="utf-8")
    asked = ("show", "doc-1-q0", "--top", "5")
    data, text = json.loads(said(*asked, "--json")[1]), said(*asked)[1]
    assert (data["corpus"], data["type"], data["units"]) == ("harbour", "factoid", None)
    by_name = {its["condition"]: its for its in data["conditions"]}
    assert by_name["A1"]["state"] == "absent" and by_name["A1"]["reason"] in text
    rows = re.findall(r"^ ([* ]) ?(\d+)  (-?\d+\.\d{4})  (\S+)", text, re.MULTILINE)
    chunks = [row for its in data["conditions"] for row in its["chunks"]]
    assert rows == [
        ("*" if row["holds_evidence"] else " ", str(row["rank"]), f"{row['score']:.4f}",
         row["chunk_id"]) for row in chunks
    ]
    firsts = [its["first_evidence_rank"] for its in data["conditions"] if its["state"] == "ran"]
    assert [int(rank) for rank in re.findall(r"first evidence at rank (\d+)", text)] == [
        rank for rank in firsts if rank
    ]
    assert any(OPEN in row["text"] for row in chunks)


@pytest.fixture
def two_corpora(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Artifacts of `harbour`, which has run, and of `toy`, whose inference has not."""
    world.build(tmp_path, world.settings())
    monkeypatch.chdir(tmp_path)
    settings = yaml.safe_dump(world.settings().model_dump(mode="json"), sort_keys=False)
    Path("params.yaml").write_text(settings, encoding="utf-8")
    shutil.rmtree(tmp_path / "artifacts" / "infer" / "toy")
    return tmp_path


def test_a_corpus_that_has_not_run_hides_no_other(two_corpora: Path, said: Said) -> None:
    code, out, error = said("report", "--json")
    page = (two_corpora / "reports" / "report.html").read_text(encoding="utf-8")
    assert code == 0 and set(json.loads(out)) == {"harbour", "over corpora"}
    assert error == ("note: toy is left out: artifacts/infer/toy/report.json: not there; run "
                     "`dvc repro`\n")
    assert "Left out, for it has not run to its end: toy (artifacts/infer/toy/report.json" in page
    code, out, error = said("report")
    assert code == 0 and out.startswith("harbour: ") and "toy is left out" in error
    # The stage leaves none out.
    for name in ("report.html", "metrics.json"):
        (two_corpora / "reports" / name).unlink()
    done = subprocess.run([sys.executable, ROOT / "stages" / "report.py"], capture_output=True,
                          text=True, check=False)
    assert done.returncode == 2 and "artifacts/infer/toy/report.json: not there" in done.stderr
    assert not (two_corpora / "reports" / "metrics.json").exists()

    for stage in ("chunk", "ask", "parse"):
        shutil.rmtree(two_corpora / "artifacts" / stage / "toy")
    settings = yaml.safe_load(Path("params.yaml").read_text(encoding="utf-8"))
    settings["corpora"] = dict(reversed(settings["corpora"].items()))  # toy is looked at first
    Path("params.yaml").write_text(yaml.safe_dump(settings, sort_keys=False), encoding="utf-8")
    code, out, _ = said("show", "doc-1-q0", "--json")
    assert code == 0 and json.loads(out)["corpus"] == "harbour"
    code, _, error = said("show", "doc-1-q9")
    assert code == 2 and "did you mean doc-1-q" in error
    assert "toy was not looked at: artifacts/chunk/toy/report.json: not there; run `dvc" in error
    shutil.rmtree(two_corpora / "artifacts" / "infer")
    shutil.rmtree(two_corpora / "artifacts" / "chunk")
    code, out, error = said("report")
    assert (code, out) == (2, "") and "no corpus has run to its end; toy: artifacts/" in error
    code, _, error = said("show", "doc-1-q0")
    assert code == 2 and error.startswith("error: artifacts/chunk/toy/report.json: not there")


def test_json_of_profile_and_fetch_says_what_the_text_says(project: Path, said: Said) -> None:
    before = (project / "params.yaml").read_bytes()
    text = said("profile", "study", "--dry-run")
    found = json.loads(said("profile", "study", "--dry-run", "--json")[1])
    assert found["difference"] == text[1] and found["written"] is False
    assert [f"note: {note}" for note in found["notes"]] == text[2].splitlines()
    assert (project / "params.yaml").read_bytes() == before
    found = json.loads(said("profile", "study", "--json")[1])
    assert found["written"] and found["difference"] == text[1]
    (project / "params.yaml").write_bytes(before)
    (project / "model").mkdir()
    (project / "model" / "config.json").write_text("{}", encoding="utf-8")
    settings = yaml.safe_load(before)
    settings["embedders"]["minilm"]["model"] = "model"
    (project / "params.yaml").write_text(yaml.safe_dump(settings), encoding="utf-8")
    assert json.loads(said("models", "fetch", "minilm", "--json")[1]) == {"minilm": "model"}


# ---------------------------------------------------------------- profiles


def test_one_s_own_corpus_with_minilm_alone(project: Path, said: Said) -> None:
    path = project / "params.yaml"
    bundled = path.read_text(encoding="utf-8")
    entry = {"reader": "markdown", "path": "data/notes", "inducer": "segmenter"}
    path.write_text(profiles.with_corpus("notes", entry), encoding="utf-8")
    code, out, error = said("profile", "minilm", "--corpus", "nots", "--force")
    assert (code, out) == (2, "") and "no corpus 'nots'" in error and "handbook, notes" in error
    code, out, error = said("profile", "minilm", "--corpus", "notes", "--force")
    assert code == 0 and out.startswith("params.yaml now has minilm's corpora, embedders, ")
    assert error.splitlines()[:2] == [
        "note: corpora: handbook is dropped from params.yaml; its data stay in data/handbook",
        "note: embedders: mpnet is dropped from params.yaml",
    ]
    found = params.load()
    assert list(found.corpora) == ["notes"] and list(found.embedders) == ["minilm"]
    assert (found.primary.embedder, found.tokens.tokenizer) == ("minilm", "minilm")
    # Only what is dropped or changed is another line; columns and comments of the rest stay.
    ours = path.read_text(encoding="utf-8")
    kept = bundled[bundled.index("rerankers:") :].replace("embedder: mpnet", "embedder: minilm")
    assert ours.endswith(f"\n\n{kept}")
    path.write_text(profiles.with_corpus("more", {**entry, "path": "data/more"}), encoding="utf-8")
    with_more = path.read_text(encoding="utf-8")
    assert said("profile", "minilm", "--corpus", "notes", "--force")[0] == 0
    assert path.read_text(encoding="utf-8") == ours != with_more
    assert said("profile", "minilm", "--force")[0] == 0  # all corpora stay, and nothing changes
    assert path.read_text(encoding="utf-8") == ours


@pytest.mark.parametrize("name", ["study", "real", "tutorial"])
def test_a_profile_changes_no_line_that_it_does_not_name(
    project: Path, said: Said, name: str
) -> None:
    path = project / "params.yaml"
    before = path.read_text(encoding="utf-8").splitlines()
    assert said("profile", name)[0] == 0
    after = path.read_text(encoding="utf-8").splitlines()
    named = yaml.safe_load((project / "profiles" / f"{name}.yaml").read_text(encoding="utf-8"))
    part = ""
    for line in before:
        part = found[1] if (found := re.match(r"(\w+):", line)) else part
        if part not in named:
            assert line in after, line
    for line in set(after) - set(before):
        key = line.split("#")[0].strip().split(":")[0]
        assert f"{key}:" in (project / "profiles" / f"{name}.yaml").read_text(encoding="utf-8")


# ---------------------------------------------------------------- dry runs


def test_a_dry_registration_shows_the_entry_and_writes_none(project: Path, said: Said) -> None:
    code, out, _ = said("register", "--dry-run")
    assert code == 0 and not (project / "registration.json").exists()
    assert out.endswith("registration.json is as it was: this was a dry run\n")
    assert said("register")[0] == 0
    # What was announced is what is shown of it afterwards.
    assert out.rsplit("\n", 2)[0] == said("register", "show")[1].rstrip("\n")
    before = (project / "registration.json").read_bytes()
    # A dry run refuses what a real one would.
    assert said("register", "amend", "--reason", "none", "--dry-run")[0] == 2
    text = (project / "params.yaml").read_text(encoding="utf-8")
    (project / "params.yaml").write_text(text.replace("margin: 0.01", "margin: 0.02"), "utf-8")
    code, out, _ = said("register", "amend", "--reason", "wider", "--dry-run")
    assert code == 0 and out.startswith("entry 2: wider") and "±0.02" in out
    assert (project / "registration.json").read_bytes() == before
    assert said("register", "--dry-run", "show")[0] == 2


def test_a_dry_profile_prints_the_change_that_the_real_one_makes(
    project: Path, said: Said
) -> None:
    path = project / "params.yaml"
    before = path.read_bytes()
    code, out, error = said("profile", "tutorial", "--dry-run")
    assert code == 0 and path.read_bytes() == before and "handbook is dropped" in error
    assert "-  embedder: mpnet\n+  embedder: minilm\n" in out
    assert said("profile", "tutorial")[0] == 0
    made = difflib.unified_diff(
        before.decode("utf-8").splitlines(keepends=True),
        path.read_text(encoding="utf-8").splitlines(keepends=True),
        "params.yaml", "params.yaml (planned)",
    )
    assert "".join(made) == out


# ---------------------------------------------------------------- terminals and shells


def test_progress_is_for_terminals_alone() -> None:
    """Every bar asks whether its stream is a terminal; tqdm does so where `disable` is None."""
    bars = [
        (path.name, {keyword.arg: ast.unparse(keyword.value) for keyword in node.keywords})
        for path in (ROOT / "src").rglob("*.py")
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "tqdm"
    ]
    assert len(bars) >= 4
    assert [name for name, keywords in bars if keywords.get("disable") != "None"] == []


@pytest.mark.parametrize(("setting", "coloured"), [({}, True), ({"NO_COLOR": "1"}, False)])
def test_colour_is_for_terminals_that_want_it(
    project: Path, setting: dict[str, str], coloured: bool
) -> None:
    environment = {k: v for k, v in os.environ.items() if k != "NO_COLOR"} | setting
    ours, theirs = pty.openpty()
    done = subprocess.Popen([PROGRAM, "doctor"], cwd=project, stdout=theirs, env=environment,
                            stderr=subprocess.DEVNULL)
    os.close(theirs)
    shown = b""
    try:
        while part := os.read(ours, 65536):
            shown += part
    except OSError:  # the other end is closed
        pass
    os.close(ours)
    assert done.wait(60) == 1 and b"problem" in shown  # the corpus is not there
    assert (b"\x1b[" in shown) == coloured
    if coloured:
        piped = subprocess.run([PROGRAM, "doctor"], cwd=project, capture_output=True, check=False)
        assert b"problem" in piped.stdout and b"\x1b[" not in piped.stdout + piped.stderr


def completed(folder: Path, line: str) -> list[str]:
    """What bash would offer behind a line."""
    words = line.split(" ")
    done = subprocess.run(
        [PROGRAM], cwd=folder, capture_output=True, text=True, check=True,
        env={**os.environ, "_SPANWISE_COMPLETE": "complete_bash", "COMP_WORDS": line,
             "COMP_CWORD": str(len(words) - 1)},
    )
    return done.stdout.split()


def test_the_shell_completes_commands_and_names_of_the_project(project: Path) -> None:
    assert completed(project, "spanwise regis") == ["register"]
    assert completed(project, "spanwise ask ha") == ["handbook"]
    assert completed(project, "spanwise models fetch m") == ["minilm", "mpnet"]
    assert completed(project, "spanwise profile s") == ["study"]
    (project / "params.yaml").write_text("corpora: [\n", encoding="utf-8")
    assert completed(project, "spanwise ask ha") == []


def test_the_page_of_commands_says_what_there_is(said: Said) -> None:
    page = (ROOT / "docs" / "commands.md").read_text(encoding="utf-8")
    lines = {
        "--json": r"`--json` is an option of (.*?)\.",
        "--dry-run": r"\*\*Dry runs\.\*\* (.*? --dry-run`)",
    }
    for option, pattern in lines.items():
        (line,) = re.findall(pattern, page, re.DOTALL)
        has = {
            " ".join(words) for words in COMMANDS
            if any(option in parameter.opts for parameter in command_at(words).params)
        }
        assert set(re.findall(r"`([a-z ]+?)(?: --deep --dry-run)?`", line)) == has - {"register"}
    assert re.findall(r"^\| (\d) \|", page, re.MULTILINE) == ["0", "1", "2", "3"]
    assert "--install-completion" in said("--help")[1] and "--install-completion" in page
