"""The remote inside the repository: what it is for, and whose text it must not get.

Git publishes what lies in it. `remote/.gitignore` names each object that belongs there and ignores
all others, so that a `dvc push` to it, on whosever machine, leaves nothing that `git add` takes.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import Path, PurePosixPath

from spanwise.layout import ARTIFACTS
from spanwise.remotes import settings

BUNDLED = frozenset({"handbook"})
"""Corpora that the repository itself brings, and that its own remote is for."""

LIST = ".gitignore"
OWN = "dvc remote add --local -d mine /path/outside/the/repository"
"""The command that names a remote of one's own; docs/remotes.md has it for each kind."""


def private(root: Path, corpora: Iterable[str]) -> list[str]:
    """Corpora of params.yaml or of data/ that the repository does not bring, sorted."""
    there = {path.name for path in (root / "data").glob("*/")}
    return sorted({*corpora, *there} - BUNDLED)


def warning(root: Path, corpora: Iterable[str]) -> str | None:
    """What to say where a plain `dvc push` would put private text into the repository, or None."""
    try:
        config = settings.configured(root)
    except ValueError:
        return None  # DVC itself says what is wrong with its settings
    if config is None:
        return None
    name = config.get("core", {}).get("remote")
    folder = settings.folder_of(config.get("remote", {}).get(name, {}))
    names = private(root, corpora)
    if not names or folder is None or not settings.in_git(folder, root):
        return None
    return (
        f"WARNING: do not `dvc push` yet. The default remote {name!r} is a folder of this "
        f"repository, for {', '.join(sorted(BUNDLED))} alone, and a push would put "
        f"{', '.join(names)} into it. Name one of your own first (docs/remotes.md, section 1):\n"
        f"    {OWN}"
    )


def listed(folder: Path) -> frozenset[str] | None:
    """The objects that a bundled remote's list names; None where it has no list."""
    path = folder / LIST
    if not path.is_file():
        return None
    found = re.findall(r"^!/files/md5/([0-9a-f]{2})/([0-9a-f]{30}(?:\.dir)?)$",
                       path.read_text(encoding="utf-8"), re.MULTILINE)
    return frozenset(first + rest for first, rest in found)


def corpus_of(place: str) -> str | None:
    """The corpus that a file or an output of the project is of; None where it is of all of them.

    >>> corpus_of("data/notes/a.md"), corpus_of("artifacts/index/handbook-2/m.json")
    ('notes', 'handbook-2')
    >>> corpus_of("data"), corpus_of("reports")
    (None, None)
    """
    parts = PurePosixPath(place).parts
    if len(parts) > 1 and parts[0] == "data":
        return parts[1]
    if len(parts) > 2 and parts[0] == str(ARTIFACTS):
        return parts[2]
    return None
