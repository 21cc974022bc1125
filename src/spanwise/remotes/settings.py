"""DVC's settings, and whether git would take what lies in a remote."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import Any


def configured(root: Path) -> Mapping[str, Any] | None:
    """DVC's settings of all levels, relative paths resolved; None where `root` has no `.dvc`.

    raises: ValueError with DVC's complaint if a file of settings cannot be used.
    """
    if not (root / ".dvc").is_dir():
        return None
    from dvc.config import Config, ConfigError

    try:
        found: Mapping[str, Any] = Config(dvc_dir=str((root / ".dvc").resolve()))
        return found
    except ConfigError as error:
        raise ValueError(str(error)) from None


def folder_of(remote: Mapping[str, Any]) -> Path | None:
    """The folder of a remote that is one on this machine."""
    url = str(remote.get("url", ""))
    if re.match(r"[A-Za-z][\w+.-]+://", url):
        return Path(url.removeprefix("file://")) if url.startswith("file://") else None
    return Path(url) if url else None


def shown(text: str) -> str:
    """An address, or words that hold some, without the user, password and query in it.

    A query may be a key: that of a store's signed address is.

    >>> shown("failed: https://me:pa#s/s@host:80/store?sig=a@b")
    'failed: https://host:80/store?...'
    """
    # A password may hold what ends a host; a number after the colon is a port.
    user = r"(://)(?:[^/\s]*@|[^/\s:@]+:(?!\d+[/\s])[^\s?]*@)"
    query = r"(://[^\s?'\"<>]*\?|\?(?=[^\s'\"<>=]*=))[^\s'\"<>]+"
    return re.sub(query, lambda its: f"{its[1]}...", re.sub(user, r"\1", text))


def in_git(folder: Path, root: Path) -> bool:
    """Whether a folder is one of the repository's that git would take objects from."""
    if not folder.resolve().is_relative_to(_top(root)):
        return False
    # Where DVC 3 puts objects, DVC 2 did, and what stages ran with.
    places = [str(folder.resolve() / name) for name in ("files", "00/0", "runs/00/0")]
    try:
        said = subprocess.run(["git", "check-ignore", *places], cwd=root, capture_output=True,
                              check=False)
    except FileNotFoundError:
        return True
    return len(said.stdout.splitlines()) < len(places)


def exposed(folder: Path, root: Path) -> set[Path] | None:
    """Files of a folder, resolved, that git has or `git add` would take; None without git."""
    try:
        said = subprocess.run(
            ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard", "--",
             str(folder.resolve())],
            cwd=root, capture_output=True, check=False,
        )
    except FileNotFoundError:
        return None
    if said.returncode:
        return None
    here = root.resolve()
    return {here / name.decode(errors="surrogateescape")
            for name in said.stdout.split(b"\0") if name}


def _top(root: Path) -> Path:
    """The folder that git tracks, of which the project may be a part; without git the project."""
    here = root.resolve()
    return next((place for place in (here, *here.parents) if (place / ".git").exists()), here)
