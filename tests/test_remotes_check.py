"""`spanwise remote check` and `mend` against real servers, and the remote that git tracks."""

from __future__ import annotations

import fcntl
import json
import os
import pty
import struct
import subprocess
import sys
import termios
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from spanwise.cli import main
from spanwise.remotes import bundled, settings
from spanwise.remotes.door import check, mend
from spanwise.tracking.place import ENVIRONMENT as TRACKING

from .conftest import ROOT
from .remotes_world import (
    ENVIRONMENT,
    broken,
    call,
    clone,
    commit,
    connect,
    does,
    fails,
    objects,
    small,
    start,
)
from .servers import KINDS, SECRETS, Server, line
from .test_commands import PROGRAM
from .test_remotes import ENOUGH, same
from .tracking_world import a_project

OURS = "A page that the repository brings.\n"
PRIVATE = "A page that is nobody's business.\n"


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return small(tmp_path_factory.mktemp("small") / "project")


@pytest.fixture
def mine(project: Path, tmp_path: Path) -> Path:
    """A machine of one test's own that has everything and has never pushed."""
    made = clone(project, tmp_path / "mine")
    does(project, "cp", "-a", str(project / ".dvc" / "cache"), str(made / ".dvc" / "cache"))
    does(made, "dvc", "checkout", "-q")
    return made


@pytest.fixture
def server(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Server]:
    with KINDS[request.param](tmp_path / "server") as found:
        yield found


Run = Callable[..., tuple[int, str, str]]
Said = Callable[..., dict[str, Any]]


@pytest.fixture
def run(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Run:
    """A command `spanwise remote` in a folder; no secret is in what it prints."""
    for name, value in ENVIRONMENT.items():
        monkeypatch.setenv(name, value)

    def call_it(folder: Path, *arguments: str) -> tuple[int, str, str]:
        monkeypatch.chdir(folder)
        code = main(["remote", *arguments])
        shown = capsys.readouterr()
        assert not [its for its in SECRETS.values() if its in shown.out + shown.err]
        return code, shown.out, shown.err
    return call_it


@pytest.fixture
def said(run: Run) -> Said:
    """The JSON of a command that must end with a code."""
    def json_of(folder: Path, command: str, *options: str, code: int = 0) -> dict[str, Any]:
        ended, out, err = run(folder, command, "--json", *options)
        assert ended == code, out + err
        found: dict[str, Any] = json.loads(out)
        assert found["fine"] == (code == 0)
        return found
    return json_of


def states(found: dict[str, Any]) -> dict[str, str]:
    return {its["place"]: its["state"] for its in found["faults"]}


def place_of(project: Path, path: Path) -> str:
    """The file of the workspace that an object of a store holds."""
    (found,) = [file for file in (project / "data").iterdir()
                if file.stat().st_size == path.stat().st_size
                and path.name in does(project, "md5sum", str(file))]
    return f"data/{found.name}"


def spoil(path: Path, content: bytes) -> None:
    path.chmod(0o644)
    path.write_bytes(content)


@pytest.mark.system
@pytest.mark.slow
@pytest.mark.parametrize("server", list(KINDS), indirect=True)
def test_what_is_missing_short_or_changed_is_found_by_name_and_sent_again(
    mine: Path, server: Server, tmp_path: Path, said: Said
) -> None:
    connect(mine, server)
    does(mine, "dvc", "push")
    assert said(mine, "check", "--deep") == said(mine, "check", "--deep") | {
        "objects": 5, "hashed": 5, "faults": []}
    gone, short, changed, _ = objects(server.kept)
    names = [place_of(mine, path) for path in (gone, short, changed)]
    gone.unlink()
    content = bytearray(changed.read_bytes())
    content[1000] ^= 1
    spoil(short, short.read_bytes()[:1000])
    spoil(changed, bytes(content))
    time.sleep(1.2 if server.kind == "s3" else 0)  # for as long as rclone remembers a folder

    # Without a cache sizes alone tell of the half object: the folder's do not add up.
    bare = clone(mine, tmp_path / "bare")
    connect(bare, server)
    quick = said(bare, "check", code=1)
    assert states(quick) == {names[0]: "missing", names[1]: "damaged"} | (
        {names[2]: "damaged"} if quick["hashed"] == 3 else {})
    assert states(said(mine, "check", code=1)) == {names[0]: "missing", names[1]: "damaged"}
    deep = said(mine, "check", "--deep", code=1)
    assert states(deep) == dict(zip(names, ["missing", "damaged", "damaged"], strict=True))
    assert {(its["output"], its["stage"]) for its in deep["faults"]} == {("data", "data.dvc")}

    # Who has no copy changes nothing, and is told what to do.
    before = sorted((path.name, path.stat().st_size) for path in objects(server.kept))
    poor = said(bare, "mend", "--deep", code=1)
    assert "whoever has a sound copy" in " ".join(poor["advice"])
    assert "lost for good, since no stage makes it" in " ".join(poor["advice"])
    dry = said(mine, "mend", "--deep", "--dry-run", code=1)
    assert {its["done"] for its in dry["faults"]} == {"would be sent again from this machine"}
    assert sorted((path.name, path.stat().st_size) for path in objects(server.kept)) == before

    done = said(mine, "mend", "--deep")
    assert {its["done"] for its in done["faults"]} == {"sent again from this machine"}
    assert not broken(server.kept) and len(objects(server.kept)) == 4
    does(bare, "dvc", "pull")
    assert same(mine, bare)
    assert said(bare, "check", "--deep")["faults"] == []


@pytest.mark.system
@pytest.mark.slow
@pytest.mark.parametrize("server", list(KINDS), indirect=True)
def test_removal_lets_another_machines_plain_push_mend(
    mine: Path, server: Server, tmp_path: Path, said: Said
) -> None:
    """DVC takes all that a folder's list names for pushed; so the list goes as well."""
    connect(mine, server)
    does(mine, "dvc", "push")
    spoil(objects(server.kept)[0], b"half")
    bare = clone(mine, tmp_path / "bare")
    connect(bare, server)
    time.sleep(1.2 if server.kind == "s3" else 0)
    dry = said(bare, "mend", "--remove", "--dry-run", code=1)
    assert [its["done"] for its in dry["faults"]] == [
        "no sound copy on this machine, would be taken out"]
    assert len(objects(server.kept)) == 4
    found = said(bare, "mend", "--remove", code=1)
    assert "1 lists of folders were taken out too" in " ".join(found["advice"])
    assert len(objects(server.kept)) == 3 and not broken(server.kept)
    assert not list(server.kept.rglob("*.dir"))
    time.sleep(1.2 if server.kind == "s3" else 0)
    assert "2 files pushed" in does(mine, "dvc", "push")
    assert said(mine, "check", "--deep")["faults"] == []


@pytest.mark.system
@pytest.mark.slow
@pytest.mark.parametrize("server", ["webdav"], indirect=True)
def test_half_an_object_that_a_broken_push_left_is_found_and_mended(
    mine: Path, server: Server, tmp_path: Path, said: Said, run: Run
) -> None:
    with line(server) as (way, far):
        connect(mine, far)
        way.mend(ENOUGH)
        assert "failed to push" in fails(mine, "dvc", "push")
        assert broken(server.kept / "held")  # wsgidav writes in place
        way.mend()
        does(mine, "dvc", "push")
        half = broken(server.kept / "held")
        assert half  # and DVC takes it for whole
        assert sorted(states(said(mine, "check", code=1)).values()) == ["damaged"] * len(half)

        # A line that breaks while it is mended: said, and the same command goes on.
        way.mend(sum((server.kept / "held" / name).stat().st_size for name in half) + ENOUGH // 5)
        code, out, err = run(mine, "mend")
        assert (code, out) == (3, "") and "the same command goes on from there" in err, err
        assert broken(server.kept / "held")
        way.mend()
        said(mine, "mend")
        assert not broken(server.kept / "held")
        other = clone(mine, tmp_path / "other")
        connect(other, far)
        does(other, "dvc", "pull")
        assert same(mine, other)


@pytest.mark.system
def test_what_does_not_answer_ends_with_3_and_a_wrong_name_with_2(
    mine: Path, tmp_path: Path, run: Run
) -> None:
    for kind in ("webdav", "folder"):
        with KINDS[kind](tmp_path / kind) as server:
            pass
        connect(mine, server)
        for command in ("check", "mend"):
            code, out, err = run(mine, command)
            assert (code, out) == (3, "") and err.startswith("error: remote shared"), err
    with KINDS["webdav"](tmp_path / "closed") as server:
        connect(mine, replace(server, secret={"password": "not-it"}))
        assert run(mine, "check")[0] == 3  # refused is not missing
    code, _, err = run(mine, "check", "--remote", "none")
    assert code == 2 and "expected one of: shared" in err
    (mine / ".dvc" / "config.local").unlink()
    code, _, err = run(mine, "check")
    assert code == 2 and "name one with --remote" in err


def test_a_damaged_copy_is_never_sent(mine: Path, tmp_path: Path) -> None:
    with KINDS["folder"](tmp_path / "server") as server:
        connect(mine, server)
        does(mine, "dvc", "push")
        gone = objects(server.kept)[0]
        name = place_of(mine, gone)
        gone.unlink()
        (cached,) = [path for path in objects(mine / ".dvc" / "cache") if path.name == gone.name]
        spoil(cached, b"x" * cached.stat().st_size)
        # The file in the workspace is as good as the cache's; without it there is none.
        (action,) = mend(root=mine, dry_run=True).actions.values()
        assert action == "would be sent again from this machine"
        spoil(mine / name, b"edited")
        found = mend(root=mine)
        assert [its.place for its in found.left] == [name] and not gone.exists()


# ---------------------------------------------------------------- the remote that git tracks


@pytest.fixture
def published(tmp_path: Path) -> Path:
    """A repository with a bundled corpus, its remote and the list of that, as `make bundle` leaves
    them."""
    folder = tmp_path / "published"
    (folder / "data" / "handbook").mkdir(parents=True)
    (folder / "data" / "handbook" / "a.md").write_text(OURS)
    (folder / "data" / "handbook" / "b.md").write_text(OURS * 2)
    start(folder)
    config = (ROOT / ".dvc" / "config").read_text(encoding="utf-8")
    (folder / ".dvc" / "config").write_text(config)
    (folder / ".gitignore").write_text("/data\n/artifacts\n/mlruns\n/reports\n")
    does(folder, "dvc", "add", "-q", "data")
    does(folder, "dvc", "push", "-q")
    recipe = (ROOT / "Makefile").read_text(encoding="utf-8")
    script = recipe[recipe.index("cd remote && {"):recipe.index("\tdu -sh remote")]
    does(folder, "sh", "-c", script.replace("\\\n", "\n"))
    commit(folder)
    return folder


def add_private(folder: Path) -> None:
    (folder / "data" / "notes").mkdir()
    (folder / "data" / "notes" / "n.md").write_text(PRIVATE)
    does(folder, "dvc", "add", "-q", "data")


def holds(folder: Path, text: str) -> bool:
    return any(text in path.read_text(errors="replace")
               for path in (folder / "remote" / "files").rglob("*") if path.is_file())


def test_what_a_colleague_pushes_to_the_bundled_remote_git_does_not_take(
    published: Path, tmp_path: Path
) -> None:
    add_private(published)
    commit(published)
    other = clone(published, tmp_path / "other")  # its default remote is `bundled` again
    does(published, "cp", "-a", str(published / ".dvc" / "cache"), str(other / ".dvc" / "cache"))
    does(other, "dvc", "checkout", "-q")
    does(other, "dvc", "push")
    assert holds(other, PRIVATE)
    does(other, "git", "add", "-A")
    assert not does(other, "git", "status", "--porcelain")
    # What was bundled is there for a clone of that clone all the same.
    third = clone(other, tmp_path / "third")
    assert holds(third, OURS) and not holds(third, PRIVATE)

    found = check("bundled", root=other)
    assert {its.place: its.state for its in found.left} == {
        "data": "foreign", "data/notes/n.md": "foreign"}
    assert all("git ignores it" in its.said for its in found.left)
    does(other, "git", "add", "-f", "remote")
    assert all("git has it" in its.said for its in check("bundled", root=other).left)
    assert mend("bundled", remove=True, root=other).fine
    assert holds(other, OURS) and not holds(other, PRIVATE)
    assert check("bundled", deep=True, root=other).fine


def test_a_mend_of_the_bundled_remote_sends_the_bundled_corpus_alone(published: Path) -> None:
    add_private(published)
    for path in [*objects(published / "remote"), *(published / "remote").rglob("*.dir")]:
        path.unlink()
    found = mend("bundled", root=published)
    assert holds(published, OURS * 2) and not holds(published, PRIVATE)
    assert found.fine and len(found.actions) == 3  # two files, and the list that names no other
    # Without the remote's own list it is the bundled corpora's files, by their folders.
    (published / "remote" / bundled.LIST).unlink()
    objects(published / "remote")[0].unlink()
    found = mend("bundled", root=published)
    assert found.fine and len(found.actions) == 1 and len(found.seen.named) == 2
    assert not holds(published, PRIVATE)


def test_whoever_would_push_private_text_into_the_repository_is_warned(
    published: Path, tmp_path: Path
) -> None:
    assert bundled.warning(published, ["handbook"]) is None
    add_private(published)
    text = bundled.warning(published, ["handbook"])
    assert text and "would put notes into it" in text and text.startswith("WARNING")
    assert bundled.warning(published, ["handbook", "other"])
    # The command that it names ends it.
    command = bundled.OWN.replace("/path/outside/the/repository", str(tmp_path / "elsewhere"))
    assert command != bundled.OWN and command in text.replace(
        "/path/outside/the/repository", str(tmp_path / "elsewhere"))
    does(published, *command.split())
    assert bundled.warning(published, ["handbook", "other"]) is None
    assert bundled.warning(tmp_path, ["other"]) is None  # no DVC there


def test_the_stage_that_always_runs_warns_too(published: Path) -> None:
    assert set(a_project(published).corpora) - bundled.BUNDLED
    command = [sys.executable, str(ROOT / "stages" / "track.py"), "--root", "."]
    done = call(published, *command, **TRACKING)
    assert done.returncode == 0 and "WARNING: do not `dvc push` yet" in done.stderr, done.stderr
    does(published, *bundled.OWN.split())
    done = call(published, *command, **TRACKING)
    assert done.returncode == 0 and "WARNING: do not" not in done.stderr


def test_this_repositorys_remote_holds_the_bundled_corpus_and_nothing_else() -> None:
    """Fails before private text, or another run's, is published."""
    folder = ROOT / "remote"
    files = {path.relative_to(folder).as_posix() for path in (folder / "files").rglob("*")
             if path.is_file()}
    taken = settings.exposed(folder, ROOT)
    if taken is not None:
        files &= {path.relative_to(folder).as_posix() for path in taken}
    listed = bundled.listed(folder)
    assert listed and len(listed) > 50
    assert files == {f"files/md5/{oid[:2]}/{oid[2:]}" for oid in listed}
    found = check("bundled", deep=True, root=ROOT)
    assert [(its.place, its.said) for its in found.left] == []
    corpora = {bundled.corpus_of(its.place) for its in found.seen.named.values()}
    assert corpora <= {*bundled.BUNDLED, None}


# ---------------------------------------------------------------- habits


def test_a_bar_is_for_a_terminal(mine: Path, tmp_path: Path, run: Run) -> None:
    with KINDS["folder"](tmp_path / "server") as server:
        connect(mine, server)
        does(mine, "dvc", "push")
        ours, theirs = pty.openpty()
        fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 100, 0, 0))
        done = subprocess.Popen([PROGRAM, "remote", "check", "--deep"], cwd=mine, stderr=theirs,
                                stdout=subprocess.PIPE)
        os.close(theirs)
        shown = b""
        try:
            while part := os.read(ours, 65536):
                shown += part
        except OSError:  # the other end is closed
            pass
        os.close(ours)
        assert done.wait(60) == 0 and b"hash the remote: 100%" in shown
        assert b"%|" not in done.stdout.read()  # type: ignore[union-attr]
        assert "%|" not in "".join(run(mine, "check", "--deep")[1:])
