"""A DVC project of a few files for the tests of remotes: made, pushed, cloned, looked through."""

from __future__ import annotations

import hashlib
import os
import re
import subprocess
import sys
from pathlib import Path

import numpy as np

from .servers import SECRETS, USER, Server

ENVIRONMENT = {
    "AWS_ACCESS_KEY_ID": USER, "AWS_SECRET_ACCESS_KEY": SECRETS["s3"],
    # A broken line is said at once: S3's library alone would try for a minute.
    "AWS_MAX_ATTEMPTS": "1",
}
FILES = 4
SIZE = 300_000
"""Bytes of each file, which no compression makes less of."""


def call(folder: Path, *command: str, **environment: str) -> subprocess.CompletedProcess[str]:
    """A command of the environment that the tests run in, with the keys of the S3 servers."""
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    return subprocess.run(
        command, cwd=folder, capture_output=True, text=True, check=False, timeout=1800,
        stdin=subprocess.DEVNULL,
        env={**os.environ, "PATH": path, "MLFLOW_TRACKING_URI": "", **ENVIRONMENT, **environment},
    )


def does(folder: Path, *command: str, **environment: str) -> str:
    """What a command says; it must succeed, though a busy server may answer at the second try."""
    done = call(folder, *command, **{"AWS_MAX_ATTEMPTS": "4", **environment})
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout + done.stderr


def fails(folder: Path, *command: str, **environment: str) -> str:
    """What a command says; it must fail."""
    done = call(folder, *command, **environment)
    assert done.returncode != 0, done.stdout + done.stderr
    return done.stdout + done.stderr


def connect(project: Path, server: Server, name: str = "shared") -> None:
    """Make a server the default remote, as docs/remotes.md says."""
    settings = {"url": server.url, "verify": "true", **server.options, **server.secret}
    lines = "".join(f"    {key} = {value}\n" for key, value in settings.items())
    (project / ".dvc" / "config.local").write_text(
        f"[core]\n    remote = {name}\n['remote \"{name}\"']\n{lines}"
    )


def small(folder: Path, seed: int = 1) -> Path:
    """A project that tracks `data`: some files of random bytes."""
    (folder / "data").mkdir(parents=True)
    rng = np.random.default_rng(seed)
    for number in range(FILES):
        (folder / "data" / f"{number}.bin").write_bytes(rng.bytes(SIZE))
    start(folder)
    does(folder, "dvc", "add", "-q", "data")
    commit(folder)
    return folder


def start(folder: Path) -> None:
    """What `git init` and `dvc init` leave, with the settings of our own .dvc/config."""
    does(folder, "git", "init", "-q", "-b", "main")
    (folder / ".dvc").mkdir()
    (folder / ".dvc" / "config").write_text(
        "[core]\n    analytics = false\n    check_update = false\n"
    )
    (folder / ".dvc" / ".gitignore").write_text("/config.local\n/tmp\n/cache\n")


def commit(folder: Path) -> None:
    does(folder, "git", "add", "-A")
    does(folder, "git", "-c", "user.name=a", "-c", "user.email=a@b.c", "commit", "-q", "-m", "x")


def clone(project: Path, folder: Path) -> Path:
    """A second person's copy: what git has, and nothing of DVC's."""
    does(project, "git", "clone", "-q", str(project), str(folder))
    return folder


def twin(project: Path, folder: Path) -> Path:
    """A clone that has everything in a cache of its own, and has never pushed."""
    made = clone(project, folder)
    does(project, "cp", "-a", str(project / ".dvc" / "cache"), str(made / ".dvc" / "cache"))
    does(made, "dvc", "checkout", "-q")
    return made


def broken(store: Path) -> list[str]:
    """Objects of a DVC store, a cache or a remote, whose content is not what their name says."""
    return [
        str(path.relative_to(store)) for path in sorted(store.rglob("*"))
        if path.is_file()
        and re.fullmatch(r"[0-9a-f]{32}", name := _name(path))
        and hashlib.md5(path.read_bytes()).hexdigest() != name
    ]


def _name(path: Path) -> str:
    return f"{path.parent.name}{path.name}".removesuffix(".dir")


def objects(store: Path) -> list[Path]:
    """Every object of a DVC store, listings of folders left out."""
    return sorted(path for path in store.rglob("*")
                  if path.is_file() and re.fullmatch(r"[0-9a-f]{30}", path.name))
