"""docs/reliability.md and docs/remotes.md against the tests and DVC."""

from __future__ import annotations

import ast
import re
import shlex
from pathlib import Path

import pytest

from .conftest import ROOT
from .remotes_world import does, start
from .servers import KINDS, Server

PAGE = (ROOT / "docs" / "remotes.md").read_text(encoding="utf-8")
SURVIVES = (ROOT / "docs" / "reliability.md").read_text(encoding="utf-8")
OPTIONS = {
    "folder": set(), "s3": {"endpointurl", "region"}, "ssh": {"keyfile", "passphrase"},
    "webdav": {"user", "password"},
}
"""What the servers of tests/servers.py are opened with."""


def test_every_line_of_what_survives_is_held_by_a_test_that_is_there() -> None:
    rows = re.findall(r"^\| .+ \| `(\w+)::(\w+)` \|$", SURVIVES, re.M)
    assert len(rows) == len(re.findall(r"^\| ", SURVIVES, re.M)) - 1 > 20  # one is the head
    for name, test in rows:
        tree = ast.parse((ROOT / "tests" / f"{name}.py").read_text(encoding="utf-8"))
        assert test in {n.name for n in tree.body if isinstance(n, ast.FunctionDef)}, test


def test_the_page_names_remotes_as_the_tests_do(tmp_path: Path) -> None:
    blocks = [body for body in re.findall(r"^```\n(.*?)^```$", PAGE, re.S | re.M)
              if body.startswith("dvc remote add")]
    found = {}
    for number, body in enumerate(blocks):
        project = tmp_path / str(number)
        project.mkdir()
        start(project)
        for command in body.splitlines():
            does(project, *shlex.split(command))
        assert not does(project, "git", "status", "--porcelain", ".dvc/config.local")
        local = (project / ".dvc" / "config.local").read_text()
        assert "remote = shared" in local and "verify = true" in local
        kind = (re.search(r"url = (\w+)://", local) or ["", "folder"])[1].removesuffix("s")
        options = set(re.findall(r"^ +(\w+) = ", local, re.M)) - {"url", "verify", "remote"}
        found[kind] = options
    assert found == OPTIONS


@pytest.mark.system
@pytest.mark.parametrize("kind", list(KINDS))
def test_the_servers_of_the_tests_are_opened_so(kind: str, tmp_path: Path) -> None:
    with KINDS[kind](tmp_path / "server") as server:
        assert isinstance(server, Server)
        assert {*server.options, *server.secret} == OPTIONS[kind]
