"""Whole set-ups, and single corpora: put into params.yaml, whose comments stay."""

from __future__ import annotations

import io
import json
import re
import subprocess
from collections.abc import Mapping, Sequence
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
    "markdown": ".md files with questions.yaml (or .jsonl)",
    "text": ".txt files with questions.yaml (or .jsonl)",
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

    def as_json(self, written: bool) -> str:
        """The plan as one JSON object."""
        return json.dumps({
            "changed": list(self.changed), "notes": list(self.notes),
            "difference": self.difference(), "written": written,
        }, indent=1, ensure_ascii=False)

    def write(self) -> None:
        """Write the file: it appears whole or not at all."""
        schemas.write_text(self.path, self.text)


def plan(
    name: str, force: bool = False, path: Path = Path("params.yaml"), folder: Path = FOLDER,
    corpora: Sequence[str] = (),
) -> Plan:
    """What a profile would make of params.yaml. Lines that it does not change stay as they are.

    force:   even if the file has changes that git has not kept; outside a repository nobody asks.
    corpora: of the outcome, that alone stay; none for all.
    raises:  ParamsError for an unknown profile or corpus, a file that is no YAML mapping, an
             outcome that is no study, or uncommitted changes without `force`.
    """
    if not path.exists():
        raise ParamsError(f"{path}: not found; run spanwise in the project's root")
    known = sorted(file.stem for file in folder.glob("*.yaml"))
    if name not in known:
        there = ", ".join(known) or "none"
        raise ParamsError(f"no profile {name!r} in {folder}/; there are {there}")
    settings, changes = _read(path), _read(folder / f"{name}.yaml")
    before = path.read_text(encoding="utf-8")
    changed = tuple(changes)
    dropped = []
    if corpora:
        all_of = changes if "corpora" in changes else settings
        dropped += _keep_corpora(all_of.get("corpora"), corpora, path, name)
        changed = ("corpora", *(part for part in changed if part != "corpora"))
    for part in REPLACED:
        if part in changes and _plain(changes[part]) == _plain(settings.get(part)):
            changes.pop(part)  # what is there already keeps its comments
        elif part in changes:
            dropped += _dropped(part, settings.get(part), changes[part])
            if not settings.get(part):  # what stands behind an empty mapping is kept by its key
                settings.ca.items.pop(part, None)
            settings[part] = changes.pop(part)
    _merge(settings, changes)
    outcome = params.from_mapping(_plain(settings), f"{path} with profile {name}")
    if not force and _uncommitted(path):
        raise ParamsError(
            f"{path} has uncommitted changes, which could not be had back; commit them first, "
            "or give --force"
        )
    notes = (*dropped, *_missing(outcome, path.parent))
    return Plan(path, changed, notes, _as_laid_out(before, settings))


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
    before = params.load(path)
    if name in before.corpora:
        raise ParamsError(
            f"{path}: a corpus {name!r} is there already, at {before.corpora[name].path}; take "
            "another name, or that entry and its folder out"
        )
    settings = _read(path)
    wanted = _plain(settings)
    wanted["corpora"][name] = {
        key: dict(value) if isinstance(value, Mapping) else value for key, value in entry.items()
    }
    params.from_mapping(wanted, f"{path} with corpus {name}")
    text = _below(path.read_bytes().decode("utf-8"), settings, name, entry)
    if _reads_as(text, wanted):
        return text
    settings["corpora"][name] = wanted["corpora"][name]
    return _as_laid_out(path.read_text(encoding="utf-8"), settings)


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


def _as_laid_out(before: str, settings: Any) -> str:
    """The settings as a text in which lines that did not change stand as they stood.

    ruamel keeps comments, but not columns. What it makes of the former text tells which lines of
    the new one are changes and which differ in their layout alone.
    """
    from difflib import SequenceMatcher

    made = _dumped(settings)
    old, plain, new = (
        text.splitlines(keepends=True) for text in (before, _dumped(_yaml().load(before)), made)
    )
    if len(old) != len(plain):
        return made
    lines: list[str] = []
    for kind, i, j, a, b in SequenceMatcher(None, plain, new, autojunk=False).get_opcodes():
        lines += old[i:j] if kind == "equal" else new[a:b]
    text = "".join(lines)
    for part in re.findall(r"\n\n(\w+):", before):  # ruamel keeps a blank line by what it follows
        text = re.sub(rf"(?<!\n)\n{part}:", f"\n\n{part}:", text)
    return text if _reads_as(text, _plain(settings)) else made


def _keep_corpora(found: Any, wanted: Sequence[str], path: Path, profile: str) -> list[str]:
    """Take all other corpora out of a mapping, a line for each.

    raises: ParamsError for a corpus that is not there.
    """
    there = list(found) if isinstance(found, dict) else []
    if unknown := [name for name in wanted if name not in there]:
        raise ParamsError(
            f"no corpus {unknown[0]!r} in {path} with profile {profile}; there are "
            f"{', '.join(there) or 'none'}: add yours with `spanwise add NAME PATH` first"
        )
    lines = _dropped("corpora", found, dict.fromkeys(wanted))
    for name in there:
        if name not in wanted:
            del found[name]
    return lines


def _yaml() -> Any:
    from ruamel.yaml import YAML

    yaml = YAML()
    yaml.preserve_quotes = True
    yaml.width = 10_000  # no line is folded
    return yaml


def _dumped(settings: Any) -> str:
    buffer = io.StringIO()
    _yaml().dump(settings, buffer)
    return buffer.getvalue()


def _reads_as(text: str, wanted: Any) -> bool:
    from ruamel.yaml.error import YAMLError

    try:
        return bool(_plain(_yaml().load(text)) == wanted)
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


def _read(path: Path) -> Any:
    """A YAML mapping with its comments."""
    from ruamel.yaml.error import YAMLError

    try:
        found = _yaml().load(path.read_text(encoding="utf-8"))
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
