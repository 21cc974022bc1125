"""What git proves of a registration, in real repositories; `spanwise register` from end to end."""

from __future__ import annotations

import hashlib
import json
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
import yaml

from spanwise import layout
from spanwise.cli import main

from .conftest import ROOT

Said = Callable[..., tuple[int, str]]
FIRST = "handbook: confirmatory\n  git: entry 1: "
UNPROVEN = (
    "handbook: confirmatory by its settings; that they came first is not proven\n  git: entry 1: "
)
LAST = "registered, without results here: handbook (entry 1)\n"
"""Results that dvc.lock knows are not here before they are pulled."""


def git(folder: Path, *arguments: str) -> str:
    return subprocess.run(
        ["git", "-c", "user.name=n", "-c", "user.email=e@e", "-c", "protocol.file.allow=always",
         *arguments],
        cwd=folder, check=True, capture_output=True, text=True,
    ).stdout.strip()


def commit(folder: Path, *names: str) -> str:
    git(folder, "add", *names)
    git(folder, "commit", "-q", "-m", " ".join(names))
    return git(folder, "rev-parse", "HEAD")


@pytest.fixture
def said(capsys: pytest.CaptureFixture[str]) -> Said:
    """Run `spanwise register`: its exit code, and what it said."""
    def run(*arguments: str) -> tuple[int, str]:
        code = main(["register", *arguments])
        shown = capsys.readouterr()
        return code, shown.out + shown.err
    return run


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A parsed and asked corpus in a repository, below its root, nothing registered yet."""
    folder = tmp_path / "repository" / "inner"
    folder.mkdir(parents=True)
    monkeypatch.chdir(folder)
    monkeypatch.setenv("GIT_CEILING_DIRECTORIES", str(tmp_path))
    monkeypatch.setenv("SPANWISE_MODELS", str(tmp_path / "models"))  # no weights of this machine
    shutil.copy(ROOT / "params.yaml", folder)
    digests("d1", "q1")
    git(folder.parent, "init", "-q", "-b", "main")
    commit(folder, "params.yaml")
    return folder


def digests(documents: str, questions: str, corpus: str = "handbook") -> None:
    layout.write_report(layout.stage("parse", corpus) / "report.json",
                        {"study": {"digests": {"documents": documents}}}, quiet=True)
    layout.write_report(layout.stage("ask", corpus) / "report.json",
                        {"digests": {"documents": documents, "questions": questions}}, quiet=True)


def lock(folder: Path, *corpora: str) -> None:
    """dvc.lock as DVC writes it once `infer` ran on some corpora."""
    stages = {"parse@handbook": {"cmd": "python stages/parse.py handbook"}}
    stages |= {f"infer@{corpus}": {"cmd": f"python stages/infer.py {corpus}"} for corpus in corpora}
    text = yaml.safe_dump({"schema": "2.0", "stages": stages}, sort_keys=False)
    (folder / "dvc.lock").write_text(text, encoding="utf-8")


def test_an_entry_committed_before_the_first_results_is_proven(project: Path, said: Said) -> None:
    assert said() == (0, (
        "registration.json written for handbook; commit it before the strong embedder runs:\n"
        "  git add registration.json && git commit -m 'Register the protocol'\n"
    ))
    lock(project)
    commit(project, "dvc.lock")
    code, out = said("check")
    assert (code, out) == (
        1, UNPROVEN + "the entry is not committed: git add registration.json && git commit\n" + LAST
    )
    entered = commit(project, "registration.json")[:12]
    assert said("check") == (0, f"{FIRST}committed in {entered}; it has no results yet\n{LAST}")
    lock(project, "handbook-2")  # a name that begins alike
    commit(project, "dvc.lock")
    assert said("check")[1].endswith(f"it has no results yet\n{LAST}")
    lock(project, "handbook", "handbook-2")
    code, out = said("check")
    assert code == 0 and "results in dvc.lock and artifacts are not committed yet" in out
    results = commit(project, "dvc.lock")[:12]
    proven = f"{FIRST}committed in {entered}, before its first results in {results}\n{LAST}"
    assert said("check") == (0, proven)
    # An amendment afterwards changes neither commit.
    text = (project / "params.yaml").read_text(encoding="utf-8")
    (project / "params.yaml").write_text(
        text.replace("margin: 0.01", "margin: 0.02"), encoding="utf-8"
    )
    assert said("amend", "--reason", " ")[0] == 2
    code, out = said("amend", "--reason", "a wider margin")
    assert code == 0 and "of handbook the first entry still counts" in out
    code, out = said("check")
    assert code == 1 and "inference.margin: registered 0.01, ran 0.02" in out
    assert "registration.json differs from what is committed" in out
    git(project, "checkout", "-q", "params.yaml")
    commit(project, "registration.json")
    assert said("check") == (0, proven)


def test_results_before_the_entry_or_with_it_are_a_deviation(project: Path, said: Said) -> None:
    lock(project, "handbook")
    results = commit(project, "dvc.lock")[:12]
    said("make")
    entered = commit(project, "registration.json")[:12]
    late = f"{UNPROVEN}committed in {entered}, not before its first results in {results}\n{LAST}"
    assert said("check") == (1, late)
    # Taking the results out and in again makes no entry earlier.
    lock(project)
    commit(project, "dvc.lock")
    lock(project, "handbook")
    again = commit(project, "dvc.lock")[:12]
    assert said("check") == (1, late) and again not in late


def test_an_entry_in_one_commit_with_the_results_came_not_before_them(
    project: Path, said: Said
) -> None:
    said("make")
    lock(project, "handbook")
    results = commit(project, "registration.json", "dvc.lock")[:12]
    code, out = said("check")
    assert code == 1 and f"together with its first results in {results}, not before them" in out


def test_an_entry_rewritten_after_the_results_is_a_deviation(project: Path, said: Said) -> None:
    """Whoever makes its digest anew deceives the digest; not git."""
    from spanwise.registration.entries import digest, edited, load

    said("make")
    commit(project, "registration.json")
    lock(project, "handbook")
    results = commit(project, "dvc.lock")[:12]
    file = project / "registration.json"
    (entry,) = load(file)
    entry["reason"] = "as if"
    file.write_text(json.dumps({"entries": [entry]}), encoding="utf-8")
    code, out = said("check")
    why = "entry 1 was edited after it was written: its digest does not match"
    assert code == 1 and f"registration.json: {why}\n" in out
    assert f"handbook: exploratory\n  {why}\n" in out
    entry["sha256"] = digest(entry)
    file.write_text(json.dumps({"entries": [entry]}), encoding="utf-8")
    assert edited(load(file)) == []
    code, out = said("check")
    assert code == 1 and "is restored by git checkout -- registration.json" in out
    entered = commit(project, "registration.json")[:12]
    assert said("check") == (
        1, f"{UNPROVEN}committed in {entered}, not before its first results in {results}\n{LAST}"
    )


def test_results_on_another_branch_were_seen_too(project: Path, said: Said) -> None:
    git(project, "checkout", "-q", "-b", "aside")
    lock(project, "handbook")
    results = commit(project, "dvc.lock")[:12]
    git(project, "checkout", "-q", "main")
    said("make")
    entered = commit(project, "registration.json")[:12]
    code, out = said("check")
    assert (code, out) == (
        1, f"{UNPROVEN}committed in {entered}, not before its first results in {results}\n{LAST}"
    )
    # Registered on main, run on a branch, merged: the merge is no first result.
    git(project, "branch", "-D", "aside")
    git(project, "checkout", "-q", "-b", "work")
    lock(project, "handbook")
    results = commit(project, "dvc.lock")[:12]
    git(project, "checkout", "-q", "main")
    git(project, "commit", "-q", "--allow-empty", "-m", "meanwhile")
    git(project, "merge", "-q", "--no-ff", "-m", "merge", "work")
    assert said("check") == (
        0, f"{FIRST}committed in {entered}, before its first results in {results}\n{LAST}"
    )


def test_what_cannot_be_proven_is_said_with_the_mend(
    project: Path, said: Said, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    said("make")
    commit(project, "registration.json")
    clone = tmp_path / "clone"
    git(tmp_path, "clone", "-q", "--depth", "1", f"file://{project.parent}", str(clone))
    monkeypatch.chdir(clone / "inner")
    digests("d1", "q1")
    shallow = "cannot be proven: this clone is shallow; fetch its history: git fetch --unshallow\n"
    assert said("check") == (1, UNPROVEN + shallow + LAST)
    git(clone, "fetch", "-q", "--unshallow")
    assert said("check")[0] == 0
    shutil.rmtree(clone / ".git")
    code, out = said("check")
    assert code == 1 and "cannot be proven: not a git repository" in out
    monkeypatch.setenv("PATH", "")
    assert said("check") == (
        1, f"{UNPROVEN}cannot be proven: git is not installed; install it\n{LAST}"
    )
    code, out = said("amend", "--reason", "why")
    assert code == 2 and "git is not installed" in out


def test_check_lists_a_changed_corpus_and_what_it_cannot_compare(
    project: Path, said: Said
) -> None:
    assert said("check") == (
        1, "handbook: exploratory\n  nothing is registered in registration.json\n"
    )
    code, out = said("amend", "--reason", "why")
    assert code == 2 and "no entry to amend" in out and "spanwise register make" in out
    said("make")
    commit(project, "registration.json")
    digests("d2", "q1")
    code, out = said("check")
    assert code == 1
    assert "  documents changed since registration (digest d1, now d2)\n" in out
    shutil.rmtree(layout.stage("ask", "handbook"))
    code, out = said("check")
    assert code == 1 and "handbook: cannot be compared: " in out and "dvc repro parse ask" in out
    digests("d2", "q1")
    (project / "registration.json").write_text("{", encoding="utf-8")
    for command in (["check"], ["show"], ["make"], ["amend", "--reason", "why"]):
        code, out = said(*command)
        assert code == 2 and "git checkout -- registration.json" in out


# ---------------------------------------------------------------- other names, other weights


def rename(folder: Path, name: str) -> None:
    """The project's one corpus under another name, parsed and asked at the same digests."""
    mapping = yaml.safe_load((folder / "params.yaml").read_text(encoding="utf-8"))
    (its,) = mapping["corpora"].values()
    mapping["corpora"] = {name: its | {"path": f"data/{name}"}}
    (folder / "params.yaml").write_text(yaml.safe_dump(mapping, sort_keys=False), encoding="utf-8")
    digests("d1", "q1", name)


def vectors(corpus: str) -> None:
    folder = layout.cell("embed", corpus, "mpnet")
    folder.mkdir(parents=True)
    (folder / "vectors.parquet").touch()


def test_results_under_another_name_came_before_the_entry(project: Path, said: Said) -> None:
    lock(project, "handbook")
    results = commit(project, "dvc.lock")[:12]
    rename(project, "handbook2")
    assert said("make")[0] == 0
    entered = commit(project, "registration.json", "params.yaml")[:12]
    code, out = said("check")
    assert code == 1
    assert f"entry 1: committed in {entered}, not before its first results in {results}\n" in out
    # Another corpus's results are none of its.
    digests("d9", "q9")
    code, out = said("check")
    assert code == 0 and "it has no results yet" in out


def test_vectors_under_another_name_make_a_registration_late(project: Path, said: Said) -> None:
    vectors("handbook")
    rename(project, "handbook2")
    code, out = said("make")
    assert code == 0 and "mpnet has run already on handbook2 (as handbook): their results" in out
    assert "handbook2: exploratory\n  handbook2 was registered after" in said("check")[1]
    (project / "registration.json").unlink()
    digests("d9", "q1")  # other documents, and yet the same questions
    assert "handbook2 (as handbook)" in said("make")[1]
    (project / "registration.json").unlink()
    digests("d9", "q9")
    assert said("make")[1].startswith("registration.json written for handbook2; commit it before")
    (project / "registration.json").unlink()
    for stage in ("parse", "ask"):
        shutil.rmtree(layout.stage(stage, "handbook"))
    code, out = said("make")
    assert code == 2 and "no report says of which documents" in out
    # What it had results of tells it as well.
    layout.write_report(layout.stage("infer", "handbook") / "report.json",
                        {"digests": {"documents": "d1", "questions": "q0"}}, quiet=True)
    assert "handbook2 (as handbook)" in said("make")[1]


def test_a_registered_corpus_that_is_gone_is_listed(project: Path, said: Said) -> None:
    said("make")
    commit(project, "registration.json")
    rename(project, "letters")
    digests("d9", "q9", "letters")
    assert said("amend", "--reason", "more")[0] == 0
    assert said("check")[1].endswith(f"{LAST}registered, without results here: letters (entry 2)\n")
    layout.write_report(layout.stage("infer", "letters") / "report.json", {}, quiet=True)
    assert said("check")[1].endswith(LAST)
    # Results of a corpus that params.yaml no longer names are on no page.
    layout.write_report(layout.stage("infer", "handbook") / "report.json", {}, quiet=True)
    assert said("check")[1].endswith(LAST)
    # A new name is no loss, and is said.
    rename(project, "handbook2")
    layout.write_report(layout.stage("infer", "handbook2") / "report.json", {}, quiet=True)
    code, out = said("check")
    assert code == 1 and "  registered as handbook in entry 1\n" in out
    assert out.endswith("registered, without results here: letters (entry 2)\n")
    found = json.loads(said("check", "--json")[1])
    assert found["without_results"] == [{"corpus": "letters", "entry": 2}]
    assert found["corpora"]["handbook2"]["registered_as"] == "handbook"


def test_weights_are_registered_where_they_are_and_other_ones_are_told(
    project: Path, said: Said, tmp_path: Path
) -> None:
    model = tmp_path / "models" / "sentence-transformers--all-mpnet-base-v2"
    (model / "onnx").mkdir(parents=True)
    (model / "config.json").write_text("{}", encoding="utf-8")
    for name in ("model.safetensors", "pytorch_model.bin", "onnx/model.safetensors"):
        (model / name).write_bytes(b"one")
    assert said("make")[0] == 0
    (entry,) = json.loads((project / "registration.json").read_text(encoding="utf-8"))["entries"]
    one = hashlib.sha256(b"one").hexdigest()
    assert entry["weights"] == {"model.safetensors": one}  # what is loaded
    assert f"weights: model.safetensors {one[:12]}…" in said("show")[1]
    commit(project, "registration.json")
    assert said("check")[0] == 0
    (model / "model.safetensors").write_bytes(b"two")
    two = hashlib.sha256(b"two").hexdigest()
    code, out = said("check")
    # The standing is of what ran, wherever that was.
    assert code == 1 and out.startswith("handbook: confirmatory\n")
    assert f"  weights model.safetensors: registered {one[:12]}, here {two[:12]}\n" in out
    shutil.rmtree(model)
    code, out = said("check")
    assert code == 0 and "all-mpnet-base-v2 are not on this machine, and not compared\n" in out


@pytest.mark.parametrize("command", ["", "make", "show", "check", "amend"])
def test_help_has_an_example(command: str, said: Said) -> None:
    arguments = command.split()
    code, out = said(*arguments, "--help")
    assert code == 0 and f"Example: spanwise {' '.join(['register', *arguments])}" in out
