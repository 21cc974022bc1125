"""Which rooms a stage enters: the transitive imports of its script, read from the source."""

from __future__ import annotations

import ast
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
SOURCE = ROOT / "src"
PACKAGE = SOURCE / "spanwise"


def _module_file(name: str) -> Path | None:
    path = SOURCE.joinpath(*name.split("."))
    if path.with_suffix(".py").exists():
        return path.with_suffix(".py")
    return path / "__init__.py" if (path / "__init__.py").exists() else None


def imported(path: Path) -> set[Path]:
    """Files of the package that one file imports, inside functions too, with their packages."""
    found: set[Path] = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        names: list[str] = []
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            names = [node.module, *(f"{node.module}.{alias.name}" for alias in node.names)]
        for name in names:
            parts = name.split(".")
            if parts[0] != "spanwise":
                continue
            for size in range(2, len(parts) + 1):
                if file := _module_file(".".join(parts[:size])):
                    found.add(file)
    return found


def room(path: Path) -> str:
    """The room a file belongs to, as a path from the root: a module, or a package's folder."""
    inside = path.relative_to(PACKAGE)
    top = PACKAGE / inside.parts[0]
    return str(top.relative_to(ROOT))


def rooms(script: Path) -> list[str]:
    """Every room that a script enters, through others too, sorted. A room is entered as a whole."""
    seen: set[Path] = set()
    found: set[str] = set()
    waiting = [script]
    while waiting:
        path = waiting.pop()
        if path in seen:
            continue
        seen.add(path)
        for file in imported(path):
            waiting.append(file)
            found.add(room(file))
    return sorted(found)
