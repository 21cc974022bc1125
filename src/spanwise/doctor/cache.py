"""The local DVC cache, object by object: DVC itself never looks at one twice.

An object's file name is the MD5 of its content; a folder is a `.dir` object, a JSON list of the
objects in it. What does not match was damaged on this disk and is worth nothing.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from spanwise.doctor.findings import NOTE, OK, PROBLEM, Finding, size
from spanwise.remotes.bundled import BUNDLED, corpus_of

HERE, CACHE, REMOTE, UNKNOWN, NOWHERE = "here", "cache", "remote", "unknown", "nowhere"
"""Where an output is: in the folder; in DVC's local cache; in a remote that is a folder of this
machine; perhaps in a remote that would have to be asked; in none of them."""

_NAME = re.compile(r"[0-9a-f]{30}(?:\.dir)?")

def pulling(corpora: Iterable[str | None], remote: str = "") -> str:
    """The command that brings outputs of these corpora; None stands for an output of all of them.

    remote: named where it is not the default one. What is bundled is not in a person's own.
    """
    wanted = set(corpora) or {None}
    commands = ["make pull"] if wanted & BUNDLED else []
    if wanted - BUNDLED:
        commands.append(f"dvc pull {f'-r {remote} ' if remote else ''}--allow-missing")
    return "; ".join(commands)


def _mend(corpora: Iterable[str | None]) -> str:
    return f"`{pulling(corpora)}` fetches what a remote has; `dvc repro` makes the rest again"


@dataclass(frozen=True, slots=True)
class Store:
    """A place for outputs: the cache or a remote.

    kind:   CACHE; REMOTE, which is looked into; or UNKNOWN, which is not asked.
    name:   of a remote.
    folder: that holds `files/md5`; None if UNKNOWN.
    """

    kind: str
    name: str = ""
    folder: Path | None = None

    def has(self, digest: str) -> bool:
        """Whether an object is there, the files of a folder included; True where nobody knows."""
        if self.folder is None:
            return True
        path = self.folder / "files" / "md5" / digest[:2] / digest[2:]
        try:
            inside = _entries(path).values() if digest.endswith(".dir") else [digest]
        except (OSError, ValueError):
            return False
        return all((self.folder / "files" / "md5" / one[:2] / one[2:]).is_file() for one in inside)


def objects(cache: Path) -> list[Path]:
    """The objects of a cache, sorted; files that are still being written are none."""
    return sorted(
        path for path in (cache / "files" / "md5").glob("[0-9a-f][0-9a-f]/*")
        if _NAME.fullmatch(path.name) and path.is_file()
    )


def name_of(path: Path) -> str:
    return path.parent.name + path.name


def fault(path: Path) -> str | None:
    """What is wrong with an object, or None.

    raises: PermissionError if it may not be read, which says nothing of its content.
    """
    try:
        digest = _md5(path)
        if digest != name_of(path).removesuffix(".dir"):
            return f"its content has the MD5 {digest}"
        if path.suffix == ".dir":
            _entries(path)
    except PermissionError:
        raise
    except OSError as error:
        return f"it cannot be read ({error.strerror or error})"
    except ValueError as error:
        return f"it is no list of files ({error})"
    return None


def _md5(path: Path) -> str:
    with path.open("rb") as stream:
        return hashlib.file_digest(stream, "md5").hexdigest()


def _same(ours: Path, theirs: Path) -> bool:
    """Whether two files have the same content; False where one cannot be read."""
    try:
        return ours.is_file() and _md5(ours) == _md5(theirs)
    except OSError:
        return False


def _entries(path: Path) -> dict[str, str]:
    """relative path -> MD5 of a `.dir` object. raises: ValueError, OSError."""
    listed = json.loads(path.read_bytes())
    if not isinstance(listed, list):
        raise ValueError("expected a JSON list")
    try:
        return {entry["relpath"]: entry["md5"] for entry in listed}
    except (KeyError, TypeError) as error:
        raise ValueError(f"an entry without `relpath` and `md5`: {error}") from None


def outputs(root: Path) -> dict[str, str]:
    """Path -> MD5 of every output that dvc.lock and the .dvc files of the root name."""
    import yaml

    found: dict[str, str] = {}
    for path in [root / "dvc.lock", *sorted(root.glob("*.dvc"))]:
        if not path.is_file():
            continue
        try:
            said = yaml.load(path.read_bytes(), getattr(yaml, "CSafeLoader", yaml.SafeLoader))
        except (yaml.YAMLError, UnicodeDecodeError):
            continue  # DVC itself says what is wrong with it
        if not isinstance(said, Mapping):
            continue
        stages = said.get("stages")
        parts: list[Any] = list(stages.values()) if isinstance(stages, Mapping) else [said]
        for part in parts:
            outs = part.get("outs") if isinstance(part, Mapping) else None
            for out in outs or []:
                if isinstance(out, Mapping) and isinstance(out.get("md5"), str):
                    found[str(out.get("path"))] = out["md5"]
    return found


def _named(cache: Path, outs: Mapping[str, str]) -> dict[str, str]:
    """MD5 -> the file that has it, inside folders too."""
    found = {digest: place for place, digest in sorted(outs.items(), reverse=True)}
    for place, digest in sorted(outs.items()):
        if digest.endswith(".dir"):
            try:
                listed = _entries(cache / "files" / "md5" / digest[:2] / digest[2:])
            except (OSError, ValueError):
                continue
            for relative, inner in listed.items():
                found.setdefault(inner, f"{place}/{relative}")
    return found


def check(cache: Path, root: Path = Path(), dry_run: bool = False) -> Iterator[Finding]:
    """Hash every object anew and remove those that are damaged, so that DVC brings them again.

    cache:   its folder, which holds `files/md5`.
    dry_run: they are named and left.
    """
    from tqdm import tqdm

    listed = objects(cache)
    total = sum(path.stat().st_size for path in listed)
    damaged: dict[Path, str] = {}
    closed: list[Path] = []
    with tqdm(total=total, desc="hash the cache", unit="B", unit_scale=True, disable=None) as bar:
        for path in listed:
            try:
                if why := fault(path):
                    damaged[path] = why
            except PermissionError:
                closed.append(path)
            bar.update(path.stat().st_size)
    names = _named(cache, outputs(root)) if damaged else {}
    for path, why in damaged.items():
        of = names.get(name_of(path), "an output of an older run")
        said = f"{of}: object {path} is damaged: {why}"
        # DVC would take it for the good file, so no pull would mend it.
        mend = (f"delete {root / of}, which has the same damage; then " if _same(root / of, path)
                else "") + _mend([corpus_of(of)])
        if dry_run:
            yield Finding("cache", PROBLEM, said, f"run it without --dry-run to remove it; {mend}")
            continue
        try:
            path.unlink()
        except OSError as error:
            yield Finding("cache", PROBLEM, f"{said}; it cannot be removed ({error.strerror})",
                          f"delete it; {mend}")
        else:
            yield Finding("cache", PROBLEM, f"{said}; it was removed", mend)
    for path in closed:
        yield Finding("cache", PROBLEM, f"object {path} may not be read, and was left",
                      "let it be read: chmod u+r; then `spanwise doctor --deep` again")
    if not listed:
        yield Finding("cache", NOTE, f"{cache}: no object in it",
                      _mend({corpus_of(place) for place in outputs(root)}))
    else:
        good = len(listed) - len(damaged) - len(closed)
        yield Finding("cache", OK, f"{good} of {len(listed)} objects ({size(total)}) are what "
                      "their names say")
