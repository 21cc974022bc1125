"""docs/tutorial.md, block by block, in a clone: what it quotes is what the commands say."""

from __future__ import annotations

import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

import pytest

from spanwise import params

from .conftest import ROOT

pytestmark = pytest.mark.slow

PAGE = (ROOT / "docs" / "tutorial.md").read_text(encoding="utf-8")
BLOCKS = [
    (command, quoted or "")
    for command, quoted in re.findall(
        r"^```sh\n(.*?)^```$(?:\n\n?(?:[^\n`]+\n){0,2}```text\n(.*?)^```$)?", PAGE, re.S | re.M
    )
]
SERVES = "make ui\n"
TRACKED = (
    "src", "stages", "questions", "sweeps", "profiles", "remote", "mlruns/.gitignore",
    ".dvc/config", ".dvc/.gitignore", ".dvcignore", ".gitignore", "dvc.yaml", "dvc.lock",
    "data.dvc", "params.yaml", "registration.json", "Makefile", "pyproject.toml", "constraints.txt",
)


def found_in(quoted: str, output: str) -> str | None:
    """The first quoted line that the output does not have behind those before it.

    A line of three dots stands for any lines; white space at the ends does not count.
    """
    lines = iter([line.strip() for line in output.splitlines()])
    for line in quoted.splitlines():
        if line.strip() not in ("...", "") and line.strip() not in lines:
            return line
    return None


@pytest.fixture
def clone(tmp_path: Path) -> Path:
    """What git tracks of the project, as it is now, with its first commit."""
    folder = tmp_path / "spanwise"
    for name in TRACKED:
        place = folder / name
        place.parent.mkdir(parents=True, exist_ok=True)
        if (ROOT / name).is_dir():
            shutil.copytree(ROOT / name, place,
                            ignore=shutil.ignore_patterns("__pycache__", "*.egg-info"))
        else:
            shutil.copy(ROOT / name, place)
    # The environment of the tests stands for the one that `make setup` makes, and is newer.
    (folder / ".venv").mkdir()
    (folder / ".venv" / "bin").symlink_to(Path(sys.executable).parent)
    (folder / ".venv" / "base").touch()
    sh(folder, "git init -q -b main && git add -A && git commit -q -m clone")
    return folder


def environment() -> dict[str, str]:
    kept = {k: v for k, v in os.environ.items() if k != "MLFLOW_TRACKING_URI"}
    person = {f"GIT_{who}_{what}": value for who in ("AUTHOR", "COMMITTER")
              for what, value in (("NAME", "Reader"), ("EMAIL", "reader@example.org"))}
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    return {**kept, **person, "PATH": path, "CI": "1"}


def sh(folder: Path, command: str) -> str:
    done = subprocess.run(
        ["bash", "-e", "-c", command], cwd=folder, env=environment(), stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=1800, check=False,
    )
    assert done.returncode == 0, f"{command}\n{done.stdout}"
    return done.stdout


def served(folder: Path) -> str:
    """What `make ui` says until its page answers; then Ctrl-C, as the page says."""
    log_file = folder.parent / "said"
    with log_file.open("w", encoding="utf-8") as log:
        server = subprocess.Popen(
            ["make", "ui"], cwd=folder, env=environment(), stdin=subprocess.DEVNULL, stdout=log,
            stderr=subprocess.STDOUT, start_new_session=True,
        )
        try:
            deadline = time.monotonic() + 180
            while "/#/experiments/" not in (said := log_file.read_text("utf-8")):
                assert server.poll() is None and time.monotonic() < deadline, said
                time.sleep(0.5)
        finally:
            os.killpg(server.pid, signal.SIGINT)
            server.wait(60)
    return said


def test_the_page_can_be_read_in_ten_minutes() -> None:
    assert 9 <= len(BLOCKS) <= 16 and PAGE.count("```sh") == len(BLOCKS)
    assert sum(bool(quoted) for _, quoted in BLOCKS) == PAGE.count("```text") >= 4
    prose = re.sub(r"^```.*?^```$", "", PAGE, flags=re.S | re.M)
    assert len(prose.split()) < 1200  # at 200 words a minute, beside the waiting


def test_every_block_of_the_page_does_what_it_says(clone: Path) -> None:
    with socket.socket() as free:  # `make ui` wants port 5000
        if free.connect_ex(("127.0.0.1", 5000)) == 0:
            pytest.skip("something serves on port 5000 here")
    for command, quoted in BLOCKS:
        output = served(clone) if command == SERVES else sh(clone, command)
        missing = found_in(quoted, output)
        assert missing is None, f"{command}\nnot said: {missing}\n\n{output}"
    # The way back, which is the last block, has led there.
    assert list(params.load(clone / "params.yaml").corpora) == list(
        params.load(ROOT / "params.yaml").corpora
    )
    assert sh(clone, "git status --porcelain") == ""
    assert (clone / "data" / "handbook").is_dir() and not (clone / "data" / "workshop").exists()
