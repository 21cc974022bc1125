"""DVC's remotes against real servers: lines that break, objects that are damaged, and the mend."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from .remotes_world import broken, call, clone, connect, does, fails, objects, small, twin
from .servers import KINDS, Server, line

pytestmark = [pytest.mark.system, pytest.mark.slow]

ENOUGH = 500_000
"""Bytes that pass before a line breaks: more than one file, and less than all four."""


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


def same(one: Path, other: Path) -> bool:
    names = sorted(path.name for path in (one / "data").iterdir())
    return names == sorted(path.name for path in (other / "data").iterdir()) and all(
        (one / "data" / name).read_bytes() == (other / "data" / name).read_bytes() for name in names
    )


def damaged(said: str) -> list[str]:
    """Objects that `dvc pull -v` names as damaged, as they lie in a remote."""
    return re.findall(r"corrupted cache file '[^']*/(files/md5/\w\w/\w+)'", said)


@pytest.mark.parametrize("server", ["s3", "ssh"], indirect=True)
def test_a_line_that_breaks_leaves_whole_objects_and_a_second_try_completes(
    mine: Path, server: Server, tmp_path: Path
) -> None:
    with line(server) as (way, far):
        connect(mine, far)
        way.mend(ENOUGH)
        assert "failed to push" in fails(mine, "dvc", "push")
        assert way.cuts and not broken(server.kept)
        assert len(objects(server.kept)) < 4
        way.mend()
        assert "pushed" in does(mine, "dvc", "push")
        assert len(objects(server.kept)) == 4 and not broken(server.kept)

        other = clone(mine, tmp_path / "other")
        connect(other, far)
        way.mend(ENOUGH)
        assert "failed to pull" in fails(other, "dvc", "pull")
        assert not broken(other / ".dvc" / "cache") and not (other / "data").exists()
        way.mend()
        does(other, "dvc", "pull")
        assert same(mine, other)


@pytest.mark.parametrize("server", ["webdav"], indirect=True)
def test_webdav_may_keep_half_an_object_which_a_pull_finds(
    mine: Path, server: Server, tmp_path: Path
) -> None:
    """wsgidav writes in place, and DVC takes what is there for whole; `verify` refuses it."""
    with line(server) as (way, far):
        connect(mine, far)
        way.mend(ENOUGH)
        assert "failed to push" in fails(mine, "dvc", "push")
        way.mend()
        does(mine, "dvc", "push")
        half = broken(server.kept / "held")

        other = clone(mine, tmp_path / "other")
        connect(other, far)
        way.mend(ENOUGH)
        fails(other, "dvc", "pull")
        way.mend()
        done = call(other, "dvc", "pull", "-v")
        assert bool(done.returncode) == bool(half)
        assert not broken(other / ".dvc" / "cache")
        if half:
            found = damaged(fails(other, "dvc", "pull", "-v"))
            assert sorted(found) == sorted(half)
            does(mine, "spanwise", "remote", "mend")
            does(other, "dvc", "pull")
        assert same(mine, other)


@pytest.mark.parametrize("server", list(KINDS), indirect=True)
def test_a_damaged_object_is_refused_named_and_pushed_again(
    mine: Path, server: Server, tmp_path: Path
) -> None:
    connect(mine, server)
    does(mine, "dvc", "push")
    victim = objects(server.kept)[0]
    content = bytearray(victim.read_bytes())
    content[1000] ^= 1
    victim.chmod(0o644)
    victim.write_bytes(content)

    other = clone(mine, tmp_path / "other")
    connect(other, server)
    said = fails(other, "dvc", "pull", "-v")
    assert damaged(said) == broken(server.kept / "held")
    assert not broken(other / ".dvc" / "cache") and not (other / "data").exists()
    # What the page warns of: DVC believes that it is there.
    assert "up to date" in does(mine, "dvc", "push")

    assert "1 damaged: 1 mended, 0 left" in does(mine, "spanwise", "remote", "mend", "--deep")
    does(other, "dvc", "pull")
    assert same(mine, other) and not broken(server.kept)


@pytest.mark.parametrize("server", ["folder"], indirect=True)
def test_without_verify_a_damaged_object_would_be_taken_in(
    mine: Path, server: Server, tmp_path: Path
) -> None:
    """Why every remote here sets it; the test above could not fail otherwise."""
    connect(mine, server)
    does(mine, "dvc", "push")
    victim = objects(server.kept)[0]
    victim.chmod(0o644)
    victim.write_bytes(b"x" * victim.stat().st_size)
    other = clone(mine, tmp_path / "other")
    connect(other, server)
    config = other / ".dvc" / "config.local"
    config.write_text(config.read_text().replace("verify = true", "verify = false"))
    does(other, "dvc", "pull")
    assert not same(mine, other)


def test_a_server_that_is_not_there_is_said(mine: Path, tmp_path: Path) -> None:
    with KINDS["webdav"](tmp_path / "server") as server:
        pass
    connect(mine, server)
    said = fails(mine, "dvc", "push")
    assert "ERROR" in said and "Traceback" not in said
