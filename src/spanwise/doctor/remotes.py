"""DVC's remotes: which there are, and whether private text could be pushed into the repository."""

from __future__ import annotations

import os
import re
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from spanwise.doctor.cache import outputs
from spanwise.doctor.findings import NOTE, OK, PROBLEM, Finding
from spanwise.params import Params

BUNDLED = frozenset({"handbook"})
"""Corpora that the repository itself brings, and that its own remote is for."""

_OWN = ("dvc remote add --local -d mine /path/outside/the/repository, or `spanwise add` for a new "
        "corpus")


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


def cache_of(config: Mapping[str, Any], root: Path) -> Path:
    """The folder of the local cache."""
    named = config.get("cache", {}).get("dir")
    return Path(named) if named else root / ".dvc" / "cache"


def look(params: Params, config: Mapping[str, Any], root: Path = Path()) -> list[Finding]:
    """A line for each remote, for the default one, and for outputs that are not here."""
    remotes: Mapping[str, Mapping[str, Any]] = config.get("remote", {})
    default = config.get("core", {}).get("remote")
    found = [_remote(name, its, _modify(root, name)) for name, its in sorted(remotes.items())]
    there = {path.name for path in (root / "data").glob("*/")}
    private = sorted((params.corpora.keys() | there) - BUNDLED)
    if default is None:
        found.append(Finding("remote", NOTE, "there is no default one: `dvc push` goes nowhere",
                             _OWN))
    elif default not in remotes:
        found.append(Finding("remote", PROBLEM, f"the default {default!r} is none of "
                             f"{', '.join(sorted(remotes)) or 'none'}", _OWN))
    elif private and (folder := _folder(remotes[default])) and _tracked(folder, root):
        found.append(Finding(
            "remote", PROBLEM, f"the default {default!r} is a folder of this repository, and "
            f"`dvc push` would put {', '.join(private)} into it, for everyone who has the "
            "repository", _OWN,
        ))
    else:
        found.append(Finding("remote", OK, f"{default!r} is the default"))
    # What the repository brings lies in its own remote, whatever a person's default is.
    other = next((name for name, its in remotes.items() if name != default
                  and (folder := _folder(its)) and _tracked(folder, root)), None)
    return [*found, *_absent(root, other)]


def _modify(root: Path, name: str) -> str:
    """The command that changes a remote, where its settings stand."""
    path = root / ".dvc" / "config.local"
    local = path.is_file() and f"'remote \"{name}\"'" in path.read_text(encoding="utf-8")
    return f"dvc remote modify {'--local ' if local else ''}{name}"


def _folder(remote: Mapping[str, Any]) -> Path | None:
    url = str(remote.get("url", ""))
    if re.match(r"[A-Za-z][\w+.-]+://", url):
        return Path(url.removeprefix("file://")) if url.startswith("file://") else None
    return Path(url) if url else None


def _tracked(folder: Path, root: Path) -> bool:
    """Whether git would take what lies in a folder."""
    if not folder.resolve().is_relative_to(root.resolve()):
        return False
    try:
        said = subprocess.run(
            ["git", "check-ignore", "-q", str(folder.resolve() / "files")], cwd=root,
            capture_output=True, check=False,
        )
    except FileNotFoundError:
        return True
    return said.returncode != 0


def _remote(name: str, its: Mapping[str, Any], modify: str) -> Finding:
    place = f"remote {name}"
    folder = _folder(its)
    if folder is None:
        # A password may stand in an address; it is nobody's to print.
        url = re.sub(r"//[^/@]*@", "//", str(its.get("url", "")))
        return Finding(place, OK, f"{url}; `dvc status -c -r {name}` asks whether it answers")
    if not folder.exists():
        return Finding(
            place, NOTE, f"{folder} is not there: nothing can be pulled from it",
            f"mount or mend it: `{modify} url PATH`; a push makes it anew",
        )
    if not folder.is_dir() or not os.access(folder, os.R_OK | os.X_OK):
        return Finding(place, PROBLEM, f"{folder} cannot be read as a folder",
                       f"let it be read, or `{modify} url PATH`")
    if not its.get("verify"):
        return Finding(place, NOTE, f"{folder}; what it sends is not verified, so a damaged object "
                       "would be taken in", f"{modify} verify true")
    writable = "" if os.access(folder, os.W_OK) else ", which cannot be written to"
    return Finding(place, OK, f"{folder}{writable}")


def _absent(root: Path, other: str | None) -> list[Finding]:
    """Outputs of what ran that are not in the workspace.

    other: the remote to ask where it is not the default one.
    """
    gone = sorted(path for path in outputs(root) if not (root / path).exists())
    if not gone:
        return []
    return [Finding(
        "outputs", NOTE, f"{len(gone)} that dvc.lock or a .dvc file names are not here, the first "
        f"{gone[0]}; below, what they hold counts as missing",
        f"dvc pull {f'-r {other} ' if other else ''}--allow-missing",
    )]
