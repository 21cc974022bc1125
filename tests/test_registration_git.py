"""What git proves of a registration, in real repositories; `spanwise register` from end to end."""

from __future__ import annotations

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
    shutil.copy(ROOT / "params.yaml", folder)
    digests("d1", "q1")
    git(folder.parent, "init", "-q", "-b", "main")
    commit(folder, "params.yaml")
    return folder


def digests(documents: str, questions: str) -> None:
    layout.write_report(layout.stage("parse", "handbook") / "report.json",
                        {"study": {"digests": {"documents": documents}}}, quiet=True)
    layout.write_report(layout.stage("ask", "handbook") / "report.json",
                        {"digests": {"questions": questions}}, quiet=True)


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
        1, FIRST + "the entry is not committed: git add registration.json && git commit\n"
    )
    entered = commit(project, "registration.json")[:12]
    assert said("check") == (0, f"{FIRST}committed in {entered}; it has no results yet\n")
    lock(project, "handbook-2")  # a name that begins alike
    commit(project, "dvc.lock")
    assert said("check")[1].endswith("it has no results yet\n")
    lock(project, "handbook", "handbook-2")
    code, out = said("check")
    assert code == 0 and "results in dvc.lock and artifacts are not committed yet" in out
    results = commit(project, "dvc.lock")[:12]
    proven = f"{FIRST}committed in {entered}, before its first results in {results}\n"
    assert said("check") == (0, proven)
    # An amendment afterwards changes neither commit.
    text = (project / "params.yaml").read_text(encoding="utf-8")
    (project / "params.yaml").write_text(
        text.replace("margin: 0.01", "margin: 0.02"), encoding="utf-8"
    )
    assert said("amend", "--reason", " ")[0] == 2
    assert said("amend", "--reason", "a wider margin")[0] == 0
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
    late = f"{FIRST}committed in {entered}, not before its first results in {results}\n"
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
    assert said("check")[0] == 1
    entered = commit(project, "registration.json")[:12]
    assert said("check") == (
        1, f"{FIRST}committed in {entered}, not before its first results in {results}\n"
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
        1, f"{FIRST}committed in {entered}, not before its first results in {results}\n"
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
        0, f"{FIRST}committed in {entered}, before its first results in {results}\n"
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
    assert said("check") == (1, FIRST + shallow)
    git(clone, "fetch", "-q", "--unshallow")
    assert said("check")[0] == 0
    shutil.rmtree(clone / ".git")
    code, out = said("check")
    assert code == 1 and "cannot be proven: not a git repository" in out
    monkeypatch.setenv("PATH", "")
    assert said("check") == (1, f"{FIRST}cannot be proven: git is not installed; install it\n")
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


@pytest.mark.parametrize("command", ["", "make", "show", "check", "amend"])
def test_help_has_an_example(command: str, said: Said) -> None:
    arguments = command.split()
    code, out = said(*arguments, "--help")
    assert code == 0 and f"Example: spanwise {' '.join(['register', *arguments])}" in out
