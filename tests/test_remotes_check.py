"""`spanwise remote check` and `mend` against real servers."""

from __future__ import annotations

import fcntl
import json
import os
import pty
import struct
import subprocess
import termios
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from spanwise.cli import main
from spanwise.remotes.door import mend

from .remotes_world import (
    ENVIRONMENT,
    broken,
    clone,
    connect,
    does,
    fails,
    objects,
    small,
    twin,
)
from .servers import KINDS, SECRETS, Server, line
from .test_commands import PROGRAM
from .test_remotes import ENOUGH, same


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return small(tmp_path_factory.mktemp("small") / "project")


@pytest.fixture
def mine(project: Path, tmp_path: Path) -> Path:
    """A machine of one test's own that has everything and has never pushed."""
    return twin(project, tmp_path / "mine")


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
    assert "1 lists of folders were taken out too, a copy of each is kept" in " ".join(
        found["advice"])
    assert len(objects(server.kept)) == 3 and not broken(server.kept)
    assert not list(server.kept.rglob("*.dir"))
    # The last copy of the list is not lost: who has nothing else still gets what is sound. It is
    # not sent before the rest is, or DVC would take all that it names for pushed.
    held = said(bare, "mend", code=1)
    assert "not sent while what it names is not all there" in {
        its["done"] for its in held["faults"]}
    assert not list(server.kept.rglob("*.dir"))
    assert "3 files fetched" in does(bare, "dvc", "fetch")
    assert len(objects(bare / ".dvc" / "cache")) == 3
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


def test_an_object_that_is_cut_in_the_cache_and_in_the_remote_alike_is_found(
    mine: Path, tmp_path: Path, said: Said
) -> None:
    """A copy of the cache that a crash cut is what a push sends."""
    with KINDS["folder"](tmp_path / "server") as server:
        connect(mine, server)
        does(mine, "dvc", "push")
        far = objects(server.kept)
        cached = {path.name: path for path in objects(mine / ".dvc" / "cache")}
        names = [place_of(mine, path) for path in far]
        # A damaged copy in the cache alone is no fault of the remote's, nor a reason to fetch more.
        spoil(cached[far[1].name], b"x" * 1000)
        found = said(mine, "check")
        assert (found["faults"], found["hashed"]) == ([], 1)
        spoil(far[0], far[0].read_bytes()[:1000])
        spoil(cached[far[0].name], far[0].read_bytes())
        found = said(mine, "check", code=1)
        assert states(found) == {names[0]: "damaged"} and found["hashed"] == 2
        assert said(mine, "mend")["fine"]  # from the file in the workspace
        # Where the cache's sizes add up, what is missing costs no hashing.
        far[2].unlink()
        spoil(cached[far[0].name], far[0].read_bytes())
        spoil(cached[far[1].name], far[1].read_bytes())
        found = said(mine, "check", code=1)
        assert states(found) == {names[2]: "missing"} and found["hashed"] == 0


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
