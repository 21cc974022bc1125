"""docs/ against the code: tables, rooms, imports, commands and examples are what they say."""

from __future__ import annotations

import ast
import doctest
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import typer
import yaml

from spanwise import params, registration
from spanwise.cli import app

from .conftest import ROOT
from .imports import PACKAGE, imported

DOCS = ROOT / "docs"
METHOD = (DOCS / "method.md").read_text(encoding="utf-8")
MAP = (DOCS / "architecture.md").read_text(encoding="utf-8")
COMMON = ("errors", "spans", "schemas", "params")


def section(text: str, heading: str) -> str:
    """What stands below a heading, up to the next one of any level."""
    found = re.search(rf"^#+ {re.escape(heading)}\n(.*?)(?=^#+ |\Z)", text, re.S | re.M)
    assert found, f"no heading {heading!r}"
    return found[1]


def table(text: str, heading: str, number: int = 0) -> list[dict[str, str]]:
    """The rows of the n-th table below a heading, by the words of its head."""
    tables: list[list[list[str]]] = [[]]
    for line in section(text, heading).split("\n"):
        if line.startswith("|"):
            cells = re.split(r"(?<!\\)\|", line.strip()[1:-1])
            tables[-1].append([cell.strip() for cell in cells])
        elif tables[-1]:
            tables.append([])
    head, rule, *rows = tables[number]
    assert set("".join(rule)) <= {"-", ":"}, heading
    assert rows
    return [dict(zip(head, row, strict=True)) for row in rows]


def spans(cell: str) -> list[str]:
    """The code spans of a cell."""
    return re.findall(r"`([^`]+)`", cell)


def one(cell: str) -> str:
    (found,) = spans(cell)
    return found


def room(path: Path) -> str:
    return path.relative_to(PACKAGE).parts[0].removesuffix(".py")


def real_rooms() -> set[str]:
    found = {room(path) for path in PACKAGE.rglob("*.py")}
    return found - {"__init__"}


def entered() -> dict[str, set[str]]:
    """Room -> the rooms that any of its files imports from."""
    found: dict[str, set[str]] = {name: set() for name in real_rooms()}
    for path in PACKAGE.rglob("*.py"):
        if room(path) != "__init__":
            found[room(path)] |= {room(other) for other in imported(path)} - {room(path)}
    return found


def commands(group: Any = None, name: str = "spanwise") -> Iterator[tuple[str, set[str]]]:
    """Every command with its options, by what typer itself made of them."""
    group = group or typer.main.get_command(app)
    for word, command in group.commands.items():
        if hasattr(command, "commands"):
            yield from commands(command, f"{name} {word}")
        else:
            options = {
                option
                for parameter in command.params if parameter.param_type_name == "option"
                for option in parameter.opts
            }
            yield f"{name} {word}", options - {"--help"}


# docs/method.md


def test_the_conditions_are_those_of_params() -> None:
    written = {
        row["condition"]: {
            "segmentation": row["segmentation"], "prefix": row["prefix"],
            "depth": int(row["depth"]), "retrieval": row["retrieval"],
        }
        for row in table(METHOD, "10. Conditions and contrasts")
    }
    settings = params.load(ROOT / "params.yaml")
    assert written == {name: its.model_dump() for name, its in settings.conditions.items()}
    assert list(written) == list(settings.conditions)


def test_the_contrasts_and_steps_are_those_of_params() -> None:
    rows = table(METHOD, "10. Conditions and contrasts", 1)
    settings = params.load(ROOT / "params.yaml")
    for family, found in (("contrast", settings.contrasts), ("step", settings.steps)):
        written = {row["contrast"]: row["minus"] for row in rows if row["family"] == family}
        assert written == {name: f"{a} − {b}" for name, (a, b) in found.items()}
    assert {row["family"] for row in rows} == {"contrast", "step"}


def test_the_settings_are_those_of_params() -> None:
    settings = yaml.safe_load((ROOT / "params.yaml").read_text(encoding="utf-8"))
    rows = table(METHOD, "17. Settings and commands")
    written = {one(row["setting"]): row["value"] for row in rows}
    for name, value in written.items():
        found: Any = settings
        for part in name.split("."):
            found = found[part]
        assert str(found) == value, name
    parts = ("tokens", "chunking", "inducers", "prefixes", "llm", "writing", "retrieval", "primary",
             "inference")
    assert set(written) == {name for part in parts for name in _leaves(settings[part], part)}


def _leaves(value: Any, name: str) -> Iterator[str]:
    if isinstance(value, dict):
        for key, inner in value.items():
            yield from _leaves(inner, f"{name}.{key}")
    else:
        yield name


def test_every_measure_is_defined_in_order() -> None:
    assert tuple(one(row["measure"]) for row in table(METHOD, "13. Measures")) == params.MEASURES


def test_the_exclusions_are_the_registered_ones() -> None:
    listed = re.findall(r"^- (.+)$", section(METHOD, "16. Exclusions"), re.M)
    assert tuple(listed) == registration.EXCLUSIONS


@pytest.mark.parametrize("name", sorted(path.name for path in DOCS.glob("*.md")))
def test_examples_give_what_they_say(name: str) -> None:
    result = doctest.testfile(str(DOCS / name), module_relative=False, encoding="utf-8")
    assert result.failed == 0
    if name == "method.md":
        assert result.attempted > 5


# commands


def test_the_table_of_commands_has_each_with_its_options() -> None:
    written = {
        one(row["command"]): set(spans(row["options"])) for row in table(METHOD, "Commands")
    }
    assert written == dict(commands())


def test_every_command_is_named_for_a_reader() -> None:
    pages = [ROOT / "README.md", *DOCS.glob("*.md")]
    text = "\n".join(page.read_text(encoding="utf-8") for page in pages)
    for name, _ in commands():
        assert re.search(rf"(`|^|\$ ){re.escape(name)}\b", text, re.M), name


@pytest.mark.parametrize("page", [ROOT / "README.md", *sorted(DOCS.glob("*.md"))],
                         ids=lambda page: page.name)
def test_no_page_names_a_command_that_does_not_exist(page: Path) -> None:
    known = {name for name, _ in commands()}
    groups = {name.rsplit(" ", 1)[0] for name in known} | {"spanwise"}
    text = page.read_text(encoding="utf-8")
    calls = re.findall(r"`spanwise((?: [a-z][a-z-]*)+)", text)
    for block in re.findall(r"^```.*?^```", text, re.S | re.M):
        calls += re.findall(r"^(?:\$ )?spanwise((?: [a-z][a-z-]*)+)", block, re.M)
    for call in calls:
        words = ["spanwise", *call.split()]
        starts = {" ".join(words[:size]) for size in range(1, len(words) + 1)}
        assert starts & known or (starts <= groups), call


# docs/architecture.md


def test_the_stages_are_those_of_dvc_in_order() -> None:
    stages = yaml.safe_load((ROOT / "dvc.yaml").read_text(encoding="utf-8"))["stages"]
    assert [one(row["stage"]) for row in table(MAP, "The data's way")] == list(stages)


def test_every_room_stands_on_the_map_and_nothing_else_does() -> None:
    rows, shared = table(MAP, "The rooms"), table(MAP, "Common rooms")
    assert tuple(one(row["room"]) for row in shared) == COMMON
    assert sorted(one(row["room"]) for row in rows + shared) == sorted(real_rooms())
    assert all(row["what it is for"] for row in rows + shared)


def test_the_map_draws_every_import_and_no_other() -> None:
    written = {one(row["room"]): set(spans(row["enters"])) for row in table(MAP, "The rooms")}
    found = {
        name: others - set(COMMON) for name, others in entered().items() if name not in COMMON
    }
    assert written == found


def test_rooms_enter_those_above_them() -> None:
    order = [one(row["room"]) for row in table(MAP, "The rooms")]
    below = {
        (one(row["room"]), other)
        for place, row in enumerate(table(MAP, "The rooms"))
        for other in spans(row["enters"])
        if other not in order[:place]
    }
    assert below == set()


def test_common_rooms_enter_none_but_each_other() -> None:
    found = entered()
    assert all(found[name] <= set(COMMON) for name in COMMON)


def test_each_library_is_kept_by_the_room_that_the_map_names() -> None:
    importers: dict[str, set[str]] = {}
    for path in PACKAGE.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            names: list[str] = []
            if isinstance(node, ast.Import):
                names = [alias.name for alias in node.names]
            elif isinstance(node, ast.ImportFrom) and node.module:
                names = [node.module]
            for name in names:
                importers.setdefault(name.split(".")[0], set()).add(room(path))
    for row in table(MAP, "Libraries that one room keeps to itself"):
        library = one(row["library"])
        assert importers.get(library) == {one(row["the only room that imports it"])}, library


@pytest.mark.parametrize("page", sorted(DOCS.glob("*.md")), ids=lambda page: page.name)
def test_links_between_pages_lead_somewhere(page: Path) -> None:
    for target in re.findall(r"\]\(([^)#:]+)(?:#[^)]*)?\)", page.read_text(encoding="utf-8")):
        assert (page.parent / target).exists(), target


def test_the_site_has_every_page_once() -> None:
    def pages(part: Any) -> Iterator[str]:
        if isinstance(part, str):
            yield part
        else:
            for inner in part.values() if isinstance(part, dict) else part:
                yield from pages(inner)

    site = yaml.safe_load((ROOT / "mkdocs.yml").read_text(encoding="utf-8"))
    assert sorted(pages(site["nav"])) == sorted(page.name for page in DOCS.glob("*.md"))
