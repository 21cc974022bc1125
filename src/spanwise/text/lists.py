"""Lists that a person writes (manifests, questions) as YAML or JSON lines, read strictly.

A word is never turned into something else behind the writer's back: `version: 1.10` stays `1.10`
and `no` stays `no`. Only true, false, null and plain whole numbers are more than text. A key that
stands twice in one entry is an error, and every entry knows its line.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from spanwise.errors import InputError
from spanwise.text.decoding import read_text

SUFFIXES = frozenset({".yaml", ".yml", ".jsonl"})


@dataclass(frozen=True, slots=True)
class Item:
    """One entry: its fields, and where it stands as messages say it."""

    where: str
    fields: dict[str, Any]


class _Loader(yaml.SafeLoader):
    """Safe YAML with few implicit types and without repeated keys."""

    yaml_implicit_resolvers: dict[str, list[tuple[str, re.Pattern[str]]]] = {}  # noqa: RUF012

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Any, Any]:
        seen: set[str] = set()
        for key, _ in node.value:
            if not isinstance(key, yaml.ScalarNode):
                raise yaml.constructor.ConstructorError(
                    None, None, "a key that is no word", key.start_mark
                )
            if key.value in seen:
                raise yaml.constructor.ConstructorError(
                    None, None, f"the key {key.value!r} stands twice", key.start_mark
                )
            seen.add(key.value)
        return super().construct_mapping(node, deep=deep)


_Loader.add_implicit_resolver(
    "tag:yaml.org,2002:bool", re.compile(r"^(?:true|True|TRUE|false|False|FALSE)$"), list("tTfF")
)
_Loader.add_implicit_resolver(
    "tag:yaml.org,2002:null", re.compile(r"^(?:~|null|Null|NULL|)$"), ["~", "n", "N", ""]
)
_Loader.add_implicit_resolver(
    "tag:yaml.org,2002:int", re.compile(r"^-?(?:0|[1-9][0-9]*)$"), list("-0123456789")
)


def read_list(path: Path, name: str, error: type[InputError]) -> list[Item]:
    """Read one list of mappings, by the file's suffix.

    name:   what messages call the file.
    error:  the error to raise.
    raises: `error` with file, line and entry for what is no such list; DecodingError for bytes
            that are no text.
    """
    text = read_text(path, name).text
    return _json_lines(text, name, error) if path.suffix == ".jsonl" else _yaml(text, name, error)


def _yaml(text: str, name: str, error: type[InputError]) -> list[Item]:
    loader = _Loader(text)
    try:
        node = loader.get_single_node()
        if not isinstance(node, yaml.SequenceNode):
            raise error(f"{name}: expected one list of entries (`- name: value`), found no list")
        items = []
        for number, child in enumerate(node.value, 1):
            where = f"{name}: entry {number} (line {child.start_mark.line + 1})"
            if not isinstance(child, yaml.MappingNode):
                raise error(f"{where}: expected `name: value` pairs")
            fields = loader.construct_object(child, deep=True)
            json.dumps(fields, ensure_ascii=False).encode("utf-8")  # no half surrogates
            items.append(Item(where, fields))
        return items
    except yaml.MarkedYAMLError as problem:
        mark = problem.problem_mark
        line = f"line {mark.line + 1}, column {mark.column + 1}: " if mark else ""
        raise error(f"{name}: {line}{problem.problem or problem}; expected plain YAML") from None
    except (yaml.YAMLError, RecursionError, UnicodeEncodeError) as problem:
        raise error(f"{name}: {problem}; expected plain YAML") from None
    finally:
        loader.dispose()


def _json_lines(text: str, name: str, error: type[InputError]) -> list[Item]:
    items: list[Item] = []
    for number, line in enumerate(text.split("\n"), 1):
        if not line.strip():
            continue
        where = f"{name}: entry {len(items) + 1} (line {number})"
        try:
            found = json.loads(line, object_pairs_hook=_once, parse_constant=_no_constant)
            json.dumps(found, ensure_ascii=False).encode("utf-8")  # no half surrogates
        except (ValueError, RecursionError) as problem:
            raise error(f"{where}: {problem}; expected one JSON object a line") from None
        if not isinstance(found, dict):
            raise error(f"{where}: expected a JSON object, found {type(found).__name__}")
        items.append(Item(where, found))
    return items


def _once(pairs: Sequence[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs):
        names = [key for key, _ in pairs]
        twice = next(key for key in names if names.count(key) > 1)
        raise ValueError(f"the key {twice!r} stands twice")
    return found


def _no_constant(word: str) -> Any:
    raise ValueError(f"{word} is no JSON number")


def unknown_keys(fields: Mapping[str, Any], known: Sequence[str]) -> str | None:
    """What to say of keys that nobody reads, or None."""
    unknown = [key for key in fields if key not in known]
    if not unknown:
        return None
    what = "unknown key " if len(unknown) == 1 else "unknown keys "
    return what + ", ".join(repr(key) for key in unknown) + f"; known are {', '.join(known)}"
