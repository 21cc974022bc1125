"""Whole set-ups, and single corpora: put into params.yaml, whose comments stay."""

from __future__ import annotations

import io
import json
import re
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from spanwise import params, schemas
from spanwise.errors import ParamsError
from spanwise.params import Params

FOLDER = Path("profiles")

REPLACED = ("corpora", "embedders", "rerankers")
"""Mappings that a profile replaces whole; of every other part it changes the keys that it names."""

SOURCES = {
    "markdown": ".md files with manifest.yaml and questions.yaml (or .jsonl)",
    "text": ".txt files with manifest.yaml and questions.yaml (or .jsonl)",
    "qasper": "QASPER's official .json files",
    "mediawiki": "a MediaWiki XML dump (.xml or .xml.bz2)",
    "chroma": "Chroma's evaluation set: corpora/*.md and questions_df.csv",
    "folder": ".md, .txt, .rst, .html, .pdf and .docx files with questions.yaml (or .jsonl)",
    "beir": "BEIR's corpus.jsonl, queries.jsonl and qrels/*.tsv",
    "snippets": "text files and one .json of queries with the spans of their snippets",
}
"""What each reader expects in a corpus' place."""


@dataclass(frozen=True, slots=True)
class Plan:
    """A profile's effect on a file of settings, before anything is written.

    changed: the parts that the profile names.
    notes:   what is dropped, and which data are missing and belong where; a line each.
    text:    the file's new content, which describes a study.
    """

    path: Path
    changed: tuple[str, ...]
    notes: tuple[str, ...]
    text: str

    def difference(self) -> str:
        """What would change, as a unified diff; empty if nothing."""
        from difflib import unified_diff

        before = self.path.read_text(encoding="utf-8").splitlines(keepends=True)
        after = self.text.splitlines(keepends=True)
        return "".join(unified_diff(before, after, str(self.path), f"{self.path} (planned)"))

    def write(self) -> None:
        """Write the file: it appears whole or not at all."""
        schemas.write_text(self.path, self.text)


def plan(
    name: str, force: bool = False, path: Path = Path("params.yaml"), folder: Path = FOLDER
) -> Plan:
    """What a profile would make of params.yaml.

    force:  even if the file has changes that git has not kept; outside a repository nobody asks.
    raises: ParamsError for an unknown profile, a file that is no YAML mapping, an outcome that is
            no study, or uncommitted changes without `force`.
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
    changed = tuple(changes)
    dropped = []
    for part in REPLACED:
        if part in changes:
            dropped += _dropped(part, settings.get(part), changes[part])
            if not settings.get(part):  # what stands behind an empty mapping is kept by its key
                settings.ca.items.pop(part, None)
            settings[part] = changes.pop(part)
    _merge(settings, changes)
    buffer = io.StringIO()
    yaml.dump(settings, buffer)
    outcome = params.from_mapping(_plain(settings), f"{path} with profile {name}")
    if not force and _uncommitted(path):
        raise ParamsError(
            f"{path} has uncommitted changes, which could not be had back; commit them first, "
            "or give --force"
        )
    return Plan(path, changed, (*dropped, *_missing(outcome, path.parent)), buffer.getvalue())


def with_corpus(
    name: str, entry: Mapping[str, str | int | float | bool | Mapping[str, Any]],
    path: Path = Path("params.yaml"),
) -> str:
    """What params.yaml is with one more corpus, written below those that are there.

    Everything else stays as it is, byte for byte; where that cannot be (corpora on one line), the
    file is written anew with its comments.
    raises: ParamsError for a file that is no study, with the corpus or without, and for a name that
            is there already.
    """
    from ruamel.yaml import YAML

    before = params.load(path)
    if name in before.corpora:
        raise ParamsError(
            f"{path}: a corpus {name!r} is there already, at {before.corpora[name].path}; take "
            "another name, or that entry and its folder out"
        )
    yaml = YAML()
    yaml.preserve_quotes = True
    yaml.width = 100
    settings = _read(yaml, path)
    wanted = _plain(settings)
    wanted["corpora"][name] = {
        key: dict(value) if isinstance(value, Mapping) else value for key, value in entry.items()
    }
    params.from_mapping(wanted, f"{path} with corpus {name}")
    text = _below(path.read_bytes().decode("utf-8"), settings, name, entry)
    if _reads_as(text, wanted):
        return text
    settings["corpora"][name] = wanted["corpora"][name]
    buffer = io.StringIO()
    yaml.dump(settings, buffer)
    return buffer.getvalue()


def _below(text: str, settings: Any, name: str, entry: Mapping[str, Any]) -> str:
    """The text with an entry after the last indented line of `corpora`."""
    lines = text.splitlines(keepends=True)
    end_of_line = "\r\n" if "\r\n" in text else "\n"
    start = settings.lc.key("corpora")[0]
    end = min((line for key in settings if (line := settings.lc.key(key)[0]) > start),
              default=len(lines))
    last = max((i for i in range(start, end) if lines[i].strip() and lines[i][0].isspace()),
               default=start)
    indent = " " * settings["corpora"].lc.key(next(iter(settings["corpora"])))[1]
    made = [f"{indent}{name}:"]
    made += [f"{indent * 2}{key}: {_scalar(value)}" for key, value in entry.items()]
    if not lines[last].endswith("\n"):
        lines[last] += end_of_line
    return "".join([*lines[: last + 1], *(line + end_of_line for line in made), *lines[last + 1:]])


def _scalar(value: Any) -> str:
    """A value on one line of YAML."""
    if isinstance(value, Mapping):
        return "{" + ", ".join(f"{key}: {_scalar(inner)}" for key, inner in value.items()) + "}"
    words = ("true", "false", "null", "yes", "no", "on", "off", "y", "n")
    if isinstance(value, str) and re.fullmatch(r"[a-z][\w/.-]*", value) and value not in words:
        return value
    return json.dumps(value, ensure_ascii=False)


def _reads_as(text: str, wanted: Any) -> bool:
    from ruamel.yaml import YAML
    from ruamel.yaml.error import YAMLError

    try:
        return bool(_plain(YAML().load(text)) == wanted)
    except YAMLError:
        return False


def _dropped(part: str, before: Any, after: Any) -> list[str]:
    """A line for each entry of a replaced mapping that does not come back."""
    if not isinstance(before, dict) or not isinstance(after, dict):
        return []  # no mapping is no study, which is said later
    lines = []
    for name, its in before.items():
        if name in after:
            continue
        place = its.get("path") if isinstance(its, dict) else None
        stays = f"; its data stay in {place}" if part == "corpora" and place else ""
        lines.append(f"{part}: {name} is dropped from params.yaml{stays}")
    return lines


def _missing(outcome: Params, root: Path) -> list[str]:
    """A line for each corpus whose data are not there."""
    lines = []
    for name, corpus in outcome.corpora.items():
        place = root / corpus.path
        if not place.exists() or (place.is_dir() and not any(place.iterdir())):
            lines.append(
                f"corpora: {name} has no data yet; put {SOURCES[corpus.reader]} in {corpus.path}"
            )
    return lines


def _uncommitted(path: Path) -> bool:
    """Whether git knows of changes to a file; without git, or outside a repository, it does not."""
    try:
        found = subprocess.run(
            ["git", "status", "--porcelain", "--", path.name], cwd=path.resolve().parent,
            capture_output=True, text=True, check=False,
        )
    except FileNotFoundError:
        return False
    return found.returncode == 0 and bool(found.stdout.strip())


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
