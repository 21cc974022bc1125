"""DVC's remotes: which there are, and whether private text could be pushed into the repository."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from spanwise.doctor.cache import CACHE, REMOTE, UNKNOWN, Store, pulling
from spanwise.doctor.findings import NOTE, OK, PROBLEM, Finding
from spanwise.doctor.pipeline import Pipeline
from spanwise.params import Params
from spanwise.remotes import bundled
from spanwise.remotes.settings import configured, folder_of, in_git, shown

__all__ = ["absent", "cache_of", "configured", "look", "stores"]

_OWN = f"{bundled.OWN}, or `spanwise add` for a new corpus"


def cache_of(config: Mapping[str, Any], root: Path) -> Path:
    """The folder of the local cache."""
    named = config.get("cache", {}).get("dir")
    return Path(named) if named else root / ".dvc" / "cache"


def look(params: Params, config: Mapping[str, Any], root: Path = Path()) -> list[Finding]:
    """A line for each remote, and for the default one."""
    remotes: Mapping[str, Mapping[str, Any]] = config.get("remote", {})
    default = config.get("core", {}).get("remote")
    found = [_remote(name, its, _modify(root, name)) for name, its in sorted(remotes.items())]
    private = bundled.private(root, params.corpora)
    if default is None:
        found.append(Finding("remote", NOTE, "there is no default one: `dvc push` goes nowhere",
                             _OWN))
    elif default not in remotes:
        found.append(Finding("remote", PROBLEM, f"the default {default!r} is none of "
                             f"{', '.join(sorted(remotes)) or 'none'}", _OWN))
    elif private and (folder := folder_of(remotes[default])) and in_git(folder, root):
        found.append(Finding(
            "remote", PROBLEM, f"the default {default!r} is a folder of this repository, and "
            f"`dvc push` would put {', '.join(private)} into it, for everyone who has the "
            "repository", _OWN,
        ))
    else:
        found.append(Finding("remote", OK, f"{default!r} is the default"))
    return found


def _modify(root: Path, name: str) -> str:
    """The command that changes a remote, where its settings stand."""
    path = root / ".dvc" / "config.local"
    local = path.is_file() and f"'remote \"{name}\"'" in path.read_text(encoding="utf-8")
    return f"dvc remote modify {'--local ' if local else ''}{name}"


def _remote(name: str, its: Mapping[str, Any], modify: str) -> Finding:
    place = f"remote {name}"
    folder = folder_of(its)
    if folder is None:
        # A password may stand in an address; it is nobody's to print.
        url = shown(str(its.get("url", "")))
        return Finding(place, OK, f"{url}; `spanwise remote check --remote {name}` asks it")
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


def stores(config: Mapping[str, Any], root: Path = Path()) -> list[Store]:
    """The cache and all remotes; what can be looked into comes first."""
    remotes: Mapping[str, Mapping[str, Any]] = config.get("remote", {})
    folders = {name: folder_of(its) for name, its in sorted(remotes.items())}
    return [
        Store(CACHE, "", cache_of(config, root)),
        *(Store(REMOTE, name, folder) for name, folder in folders.items() if folder is not None),
        *(Store(UNKNOWN, name) for name, folder in folders.items() if folder is None),
    ]


def absent(pipeline: Pipeline, config: Mapping[str, Any]) -> list[Finding]:
    """A line for each place that has, or may have, outputs which are not in the folder.

    Outputs that are nowhere are no finding: `dvc repro` makes them, and the forecast counts them.
    """
    remotes, default = config.get("remote", {}), config.get("core", {}).get("remote")
    asked = ", ".join(sorted(name for name, its in remotes.items() if folder_of(its) is None))
    gone: dict[tuple[str, str], list[tuple[str, str | None]]] = {}
    for path, corpus, kind, remote in pipeline.missing:
        gone.setdefault((kind, "" if kind == UNKNOWN else remote), []).append((path, corpus))
    found = []
    for (kind, remote), listed in sorted(gone.items()):
        where, mend = {
            CACHE: ("DVC's cache has them", "dvc checkout --allow-missing"),
            REMOTE: (f"remote {remote!r} has them",
                     pulling((corpus for _, corpus in listed), remote * (remote != default))),
            UNKNOWN: (f"{asked} may have them and was not asked", "dvc pull --allow-missing"),
        }[kind]
        found.append(Finding(
            "outputs", NOTE, f"{len(listed)} that were made before are not in the folder, e.g. "
            f"{min(listed)[0]}; {where}, and without them they are made again", mend,
        ))
    return found
