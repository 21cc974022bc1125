"""What git's history proves: that an entry was committed before its corpus had results, under any
name that is known for it.

Only of the history that there is. A person who rewrites it can prove anything, so what was
published, or signed by others, is worth more.
"""

from __future__ import annotations

import re
import subprocess
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from pathlib import Path

from spanwise.errors import RegistrationError
from spanwise.registration.compared import short
from spanwise.registration.entries import Entry, digest, parse

LOCK = "dvc.lock"
REFS = ("HEAD", "--branches", "--remotes", "--tags")
"""Results that were seen on any branch were seen."""


@dataclass(frozen=True, slots=True)
class Proof:
    """What git says of one corpus's entry. proven: nothing speaks against it."""

    proven: bool
    lines: tuple[str, ...]


def git(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Run git in a folder.

    raises: RegistrationError if git is not installed.
    """
    try:
        return subprocess.run(
            # A person's settings must not hide a first commit's changes.
            ["git", "-c", "log.showRoot=true", *arguments], cwd=folder, capture_output=True,
            encoding="utf-8", errors="replace", check=False,
        )
    except FileNotFoundError:
        raise RegistrationError("git is not installed; a registration proves its time by git") \
            from None


def proof(entry: Entry, names: Collection[str], path: Path) -> Proof:
    """What git proves of the entry that counts for a corpus.

    names: all that the corpus is or was called; results under any of them are its results.
    path:  the registration; dvc.lock lies beside it.
    """
    folder = path.resolve().parent
    try:
        shallow = git(folder, "rev-parse", "--is-shallow-repository")
    except RegistrationError:
        return _unproven("git is not installed; install it")
    if shallow.returncode:
        said = next(iter(shallow.stderr.strip().splitlines()), "no git repository")
        return _unproven(f"{said.removeprefix('fatal: ')}; clone the repository with its history")
    if shallow.stdout.strip() == "true":
        return _unproven("this clone is shallow; fetch its history: git fetch --unshallow")
    lines = []
    committed = _text(folder, "HEAD", path.name)
    commits = _standing_in(folder, path.name, digest(entry))
    if committed is None:
        lines.append(f"the entry is not committed: git add {path.name} && git commit")
    elif not commits:
        lines.append(
            f"no commit holds the entry as it stands: one that is new is committed, one that was "
            f"edited is restored by git checkout -- {path.name}"
        )
    elif committed != _newlines(path.read_bytes().decode("utf-8")):
        lines.append(
            f"{path.name} differs from what is committed: git diff {path.name} shows it; commit an "
            "amendment, undo anything else"
        )
    results = _first_results(folder, names)
    lines += _order(folder, commits, results)
    if lines:
        return Proof(False, tuple(lines))
    (entered,) = commits[:1]
    if results:
        return Proof(True, (
            f"committed in {short(entered)}, before its first results in {_listed(results)}",
        ))
    where = f"{LOCK} and artifacts"
    state = (
        f"its results in {where} are not committed yet: once they are, their commit shows the order"
        if _uncommitted(folder, names) else "it has no results yet"
    )
    return Proof(True, (f"committed in {short(entered)}; {state}",))


def _unproven(why: str) -> Proof:
    return Proof(False, (f"cannot be proven: {why}",))


def _order(folder: Path, commits: Sequence[str], results: Sequence[str]) -> list[str]:
    """A line for each commit with first results that no commit of the entry came before."""
    late = []
    for result in results:
        before = [
            c for c in commits
            if c != result and not git(folder, "merge-base", "--is-ancestor", c, result).returncode
        ]
        if not before:
            late.append(result)
    if not late or not commits:
        return []
    if set(late) & set(commits):
        return [f"committed together with its first results in {_listed(late)}, not before them"]
    return [
        f"committed in {short(commits[0])}, not before its first results in {_listed(late)}"
    ]


def _standing_in(folder: Path, name: str, wanted: str) -> list[str]:
    """Commits in which an entry of this content stands, of those that touched the file, oldest
    first."""
    listed = git(
        folder, "log", "--full-history", "--topo-order", "--reverse", "--format=%H", *REFS, "--",
        name,
    )
    found = []
    for commit in listed.stdout.split():
        text = _text(folder, commit, name)
        if text is None:
            continue
        try:
            entries = parse(text)
        except RegistrationError:
            continue  # a state that was no registration holds no entry
        if any(digest(entry) == wanted for entry in entries):
            found.append(commit)
    return found


def _first_results(folder: Path, names: Collection[str]) -> list[str]:
    """Commits in which dvc.lock holds results of a corpus and in no parent, oldest first."""
    pattern = _stages(names)
    listed = git(
        folder, "log", "--full-history", "-m", "--topo-order", "--reverse", "--format=%H %P",
        "--text", f"-G{pattern}", *REFS, "--", LOCK,
    )

    def holds(commit: str) -> bool:
        return not git(folder, "grep", "-q", "-E", pattern, commit, "--", LOCK).returncode

    found = []
    for commit, *parents in dict.fromkeys(tuple(x.split()) for x in listed.stdout.splitlines()):
        if holds(commit) and not any(map(holds, parents)):
            found.append(commit)
    return found


def _stages(names: Collection[str]) -> str:
    """What dvc.lock holds once `infer` has run under any name, as a pattern for git and Python."""
    return rf"^  ['\"]?infer@({'|'.join(_usable(names))})['\"]?:"


def _usable(names: Collection[str]) -> list[str]:
    """Names that params.yaml takes; under any other no stage ever ran."""
    return [name for name in sorted(names) if re.fullmatch(r"[a-z0-9-]+", name)]


def _uncommitted(folder: Path, names: Collection[str]) -> bool:
    """Whether results lie here that no commit has."""
    lock = folder / LOCK
    there = lock.exists() and re.search(
        _stages(names), lock.read_text(encoding="utf-8", errors="replace"), re.M
    )
    return bool(there) or any(
        (folder / "artifacts" / "infer" / name / "report.json").exists()
        for name in _usable(names)
    )


def _text(folder: Path, commit: str, name: str) -> str | None:
    shown = git(folder, "show", f"{commit}:./{name}")
    return None if shown.returncode else _newlines(shown.stdout)


def _newlines(text: str) -> str:
    """Git may check out other line ends than it keeps."""
    return text.replace("\r\n", "\n")


def _listed(commits: Sequence[str]) -> str:
    return ", ".join(map(short, commits))
