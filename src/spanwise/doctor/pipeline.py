"""What dvc.lock says of each stage, held against this folder: which are done, and where the outputs
of the others are. `dvc status` would say more, but takes longer than all of `spanwise doctor`.
"""

from __future__ import annotations

import fnmatch
import hashlib
import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import product
from pathlib import Path
from typing import Any

from spanwise.doctor.cache import CACHE, HERE, NOWHERE, REMOTE, UNKNOWN, Store
from spanwise.params import Params

NEW, SETTINGS, DATA, INPUTS, CODE = "new", "settings", "data", "inputs", "code"
"""Why a stage runs again though its outputs are there: it never ran, or what it depends on is
another now. An output that only code can have changed is expected to stay what it was."""

_BESIDE = frozenset({"contexts", "units", "inducer", "demonstration", "questions"})
"""Settings of a corpus that its documents do not depend on."""


@dataclass(frozen=True, slots=True)
class Stage:
    """One stage of one corpus (and embedder).

    name:    as `dvc repro` takes it, e.g. `embed@notes-minilm`.
    corpus:  None for a stage of the whole study.
    outs:    path -> MD5, as dvc.lock has them; "" where it has none.
    where:   HERE, CACHE, REMOTE, UNKNOWN or NOWHERE, the farthest of its outputs.
    changed: NEW, SETTINGS, DATA, INPUTS or CODE; None if all is as it was when it ran.
    persist: it goes on from its own outputs, and `dvc repro` does not fetch them from the cache.
    settings: dotted names or sections of params.yaml that are others now than when it ran.
    """

    name: str
    corpus: str | None
    outs: Mapping[str, str]
    where: str
    changed: str | None
    persist: bool
    settings: frozenset[str] = frozenset()

    @property
    def stale(self) -> bool:
        """What it left is of other documents, settings or inputs, so nothing is counted in it."""
        return self.changed in (DATA, SETTINGS, INPUTS)

    @property
    def done(self) -> bool:
        """`dvc repro` passes it over."""
        return self.changed is None and self.where == HERE

    @property
    def elsewhere(self) -> bool:
        """Its outputs are not in the folder, and would spare its work if they were brought."""
        useful = self.changed is None or (self.changed == CODE and self.persist)
        return useful and self.where in (CACHE, REMOTE, UNKNOWN)

    @property
    def runs(self) -> bool:
        """It starts, even after what is known to be elsewhere was brought."""
        return self.changed is not None or self.where in (UNKNOWN, NOWHERE)


@dataclass(frozen=True, slots=True)
class Pipeline:
    """All stages in the order of dvc.yaml.

    same_data: corpora whose files are those that `parse` has seen, by dvc.lock.
    missing:   outputs that would spare work if they were brought from where they may be: path,
               corpus, kind of the place, name of the remote.
    """

    stages: tuple[Stage, ...] = ()
    same_data: frozenset[str] = frozenset()
    missing: tuple[tuple[str, str | None, str, str], ...] = ()

    def of(self, corpus: str | None) -> list[Stage]:
        return [stage for stage in self.stages if stage.corpus == corpus]

    def stale(self, corpus: str) -> frozenset[str]:
        """Names of a corpus's stages that left what the next run will replace by something else."""
        return frozenset(stage.name for stage in self.of(corpus) if stage.stale)

    def find(self, name: str) -> Stage | None:
        return next((stage for stage in self.stages if stage.name == name), None)


def read(
    params: Params, stores: Sequence[Store] = (), root: Path = Path(), most: int | None = None
) -> Pipeline:
    """The pipeline of the corpora and embedders of params.yaml; empty without a dvc.yaml.

    stores: the cache, and remotes, in the order in which they are looked into.
    most:   bytes of a folder beyond which it is not hashed, and counts as changed.
    """
    told, lock = _yaml(root / "dvc.yaml"), _yaml(root / "dvc.lock").get("stages") or {}
    seen = _Seen(root, lock, _yaml(root / "params.yaml"), stores, most)
    stages: list[Stage] = []
    for name, its in (told.get("stages") or {}).items():
        for item in _items(its, params):
            full = "@".join([name, "-".join(item.values())]) if item else name
            stages.append(seen.stage(full, _filled(its, item), item.get("corpus"), stages))
    same = frozenset(name for name in params.corpora if seen.same_data(name))
    missing = [
        (path, stage.corpus, place.kind, place.name)
        for stage in stages if stage.elsewhere for path, digest in stage.outs.items()
        if not (root / path).exists() and (place := seen.store(digest)) is not None
    ]
    return Pipeline(tuple(stages), same, tuple(missing))


def _yaml(path: Path) -> Mapping[str, Any]:
    import yaml

    try:
        said = yaml.load(path.read_bytes(), getattr(yaml, "CSafeLoader", yaml.SafeLoader))
    except (OSError, yaml.YAMLError, UnicodeDecodeError):
        return {}  # DVC itself says what is wrong with it
    return said if isinstance(said, dict) else {}


def _items(its: Mapping[str, Any], params: Params) -> Iterator[dict[str, str]]:
    """What a matrix runs over; one empty item for a stage without any. Stages over something else
    are a person's own, and are left out."""
    names = {"corpus": list(params.corpora), "embedder": list(params.embedders)}
    keys = list(its.get("matrix", {}))
    if "foreach" in its or not names.keys() >= set(keys):
        return
    for values in product(*(names[key] for key in keys)):
        yield dict(zip(keys, values, strict=True))


def _filled(value: Any, item: Mapping[str, str]) -> Any:
    """Every `${item.…}` of a stage in its place."""
    if isinstance(value, str):
        return re.sub(r"\$\{item\.(\w+)\}", lambda found: item.get(found[1], found[0]), value)
    if isinstance(value, list):
        return [_filled(one, item) for one in value]
    if isinstance(value, dict):
        return {_filled(key, item): _filled(one, item) for key, one in value.items()}
    return value


@dataclass(slots=True)
class _Seen:
    """A folder with its dvc.lock; each file or folder is hashed once."""

    root: Path
    lock: Mapping[str, Any]
    settings: Mapping[str, Any]
    stores: Sequence[Store]
    most: int | None
    hashes: dict[str, str] = field(default_factory=dict)

    def stage(
        self, name: str, its: Mapping[str, Any], corpus: str | None, earlier: Sequence[Stage]
    ) -> Stage:
        kept = self.lock.get(name) or {}
        listed = {str(out["path"]): str(out.get("md5", "")) for out in kept.get("outs", [])}
        paths = [next(iter(out)) if isinstance(out, dict) else out for out in its.get("outs", [])]
        outs = {path: listed.get(path, "") for path in paths}
        persist = any(
            isinstance(out, dict) and next(iter(out.values())).get("persist")
            for out in its.get("outs", [])
        )
        where = max((self.where(*out) for out in outs.items()), default=HERE, key=_FAR.index)
        if not kept:
            return Stage(name, corpus, outs, where, NEW, persist)
        settings = self.other(its, kept)
        changed = self.changed(its, kept, earlier, settings)
        return Stage(name, corpus, outs, where, changed, persist, settings)

    def other(self, its: Mapping[str, Any], kept: Mapping[str, Any]) -> frozenset[str]:
        """The settings of a stage that dvc.lock has otherwise."""
        now, then = self.named(its.get("params", [])), kept.get("params") or {}
        then = then.get("params.yaml") or {}
        return frozenset(key for key in now.keys() | then.keys()
                         if now.get(key, _NONE) != then.get(key, _NONE))

    def where(self, path: str, digest: str) -> str:
        if (self.root / path).exists():
            return HERE
        place = self.store(digest)
        return NOWHERE if place is None else place.kind

    def store(self, digest: str) -> Store | None:
        """The first place that has an output; an output without a digest was never made."""
        return next((store for store in self.stores if digest and store.has(digest)), None)

    def changed(
        self, its: Mapping[str, Any], kept: Mapping[str, Any], earlier: Sequence[Stage],
        settings: frozenset[str],
    ) -> str | None:
        """The weightiest reason to run it again."""
        made = {path: digest for stage in earlier for path, digest in stage.outs.items()}
        again = {path for stage in earlier for path in stage.outs
                 if stage.changed not in (None, CODE)}
        if its.get("always_changed"):
            return CODE
        known = {str(dep["path"]): str(dep.get("md5", "")) for dep in kept.get("deps", [])}
        reasons = set()
        if settings:
            reasons.add(SETTINGS)
        for path in its.get("deps", []):
            if path.startswith("artifacts/") or path == "reports":
                inside = {out for out in made if out == path or out.startswith(f"{path}/")}
                other = path in made and made[path] != known.get(path)
                if other or inside & again:
                    reasons.add(INPUTS)
            elif self.hash(path) != known.get(path):
                reasons.add(DATA if path.startswith("data/") else CODE)
        if kept.get("cmd") != its.get("cmd"):
            reasons.add(CODE)
        return next((why for why in (DATA, SETTINGS, INPUTS, CODE) if why in reasons), None)

    def named(self, keys: Sequence[str]) -> dict[str, Any]:
        """The settings that a stage depends on, by dotted name, as far as they are there."""
        found = {}
        for key in (key for key in keys if isinstance(key, str)):  # else of another file
            value: Any = self.settings
            for part in key.split("."):
                value = value.get(part, _NONE) if isinstance(value, Mapping) else _NONE
            if value is not _NONE:
                found[key] = value
        return found

    def hash(self, path: str) -> str:
        if path not in self.hashes:
            self.hashes[path] = tree_md5(self.root / path, self.most, self.root)
        return self.hashes[path]

    def same_data(self, corpus: str) -> bool:
        kept = self.lock.get(f"parse@{corpus}") or {}
        then = ((kept.get("params") or {}).get("params.yaml") or {}).get(f"corpora.{corpus}")
        now = (self.settings.get("corpora") or {}).get(corpus)
        if not isinstance(then, Mapping) or not isinstance(now, Mapping):
            return False
        if any(then.get(k) != now.get(k) for k in (then.keys() | now.keys()) - _BESIDE):
            return False
        path = f"data/{corpus}"
        return any(dep["path"] == path and dep.get("md5") == self.hash(path)
                   for dep in kept.get("deps", []))


_FAR = (HERE, CACHE, REMOTE, UNKNOWN, NOWHERE)
_NONE: Any = object()


def tree_md5(path: Path, most: int | None = None, root: Path = Path()) -> str:
    """The MD5 that DVC gives a file or a folder (of the list of its files); "" if it is absent.

    What .dvcignore names is left out, by the names of files and folders alone.
    most: bytes of a folder beyond which it is not hashed: "" too.
    root: the project's, where .dvcignore is.
    """
    if path.is_file():
        return _md5(path)
    if not path.is_dir():
        return ""
    ignored = _ignored(root)
    inside = {inner: inner.relative_to(path) for inner in path.rglob("*") if inner.is_file()}
    if most is not None and sum(inner.stat().st_size for inner in inside) > most:
        return ""
    files = sorted(
        (name.as_posix(), inner) for inner, name in inside.items()
        if not any(fnmatch.fnmatch(part, rule) for part in name.parts for rule in ignored)
    )
    listed = [{"md5": _md5(inner), "relpath": name} for name, inner in files]
    said = json.dumps(listed, sort_keys=True).encode()
    return hashlib.md5(said, usedforsecurity=False).hexdigest() + ".dir"


def _ignored(root: Path) -> list[str]:
    path = root / ".dvcignore"
    lines = path.read_text(encoding="utf-8").splitlines() if path.is_file() else []
    return [line.strip().rstrip("/") for line in lines if line.strip() and line[0] != "#"]


def _md5(path: Path) -> str:
    with path.open("rb") as stream:
        return hashlib.file_digest(stream, "md5").hexdigest()
