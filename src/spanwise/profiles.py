"""Whole set-ups: a profile's parts replace those of params.yaml, whose comments stay."""

from __future__ import annotations

import io
from pathlib import Path
from typing import Any

from spanwise import params, schemas
from spanwise.errors import ParamsError

FOLDER = Path("profiles")

REPLACED = ("corpora", "embedders")
"""Mappings that a profile replaces whole; of every other part it changes the keys that it names."""


def apply(name: str, path: Path = Path("params.yaml"), folder: Path = FOLDER) -> list[str]:
    """Apply a profile to params.yaml, which is written only if the outcome describes a study.

    returns: the parts that changed.
    raises:  ParamsError for an unknown profile, a file that is no YAML mapping, or an outcome that
             is no study.
    """
    from ruamel.yaml import YAML

    if not path.exists():
        raise ParamsError(f"{path}: not found; run spanwise in the project's root")
    known = sorted(file.stem for file in folder.glob("*.yaml"))
    if name not in known:
        there = ", ".join(known) or "none"
        raise ParamsError(f"no profile {name!r} in {folder}/; there are {there}")
    yaml = YAML()
    yaml.preserve_quotes = True
    yaml.width = 100
    settings, changes = _read(yaml, path), _read(yaml, folder / f"{name}.yaml")
    changed = list(changes)
    for part in REPLACED:
        if part in changes:
            settings[part] = changes.pop(part)
    _merge(settings, changes)
    buffer = io.StringIO()
    yaml.dump(settings, buffer)
    params.from_mapping(_plain(settings), f"{path} with profile {name}")
    schemas.write_text(path, buffer.getvalue())
    return changed


def _read(yaml: Any, path: Path) -> Any:
    """A YAML mapping with its comments."""
    from ruamel.yaml.error import YAMLError

    try:
        found = yaml.load(path.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, YAMLError) as error:
        raise ParamsError(f"{path}: no YAML in UTF-8: {error}") from None
    if not isinstance(found, dict):
        raise ParamsError(f"{path}: expected a mapping of parts, found {type(found).__name__}")
    return found


def _merge(settings: Any, changes: Any) -> None:
    for key, value in changes.items():
        if isinstance(value, dict) and isinstance(settings.get(key), dict):
            _merge(settings[key], value)
        else:
            settings[key] = value


def _plain(value: Any) -> Any:
    """The parsed tree as plain Python values, which the strict models expect."""
    if isinstance(value, dict):
        return {str(key): _plain(inner) for key, inner in value.items()}
    if isinstance(value, list):
        return [_plain(inner) for inner in value]
    for kind in (bool, int, float, str):
        if isinstance(value, kind):
            return kind(value)
    return value
