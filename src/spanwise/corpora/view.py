"""The trusted view of a folder: which files of a corpus may be opened at all.

The manifest decides before anything is read. Of a file that is left out (not permitted, an older
version, of another split) the body is never opened; it counts, and its document's name is kept so
that questions about it can be counted too.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Any

from spanwise.documents.model import document_id
from spanwise.errors import CorpusError
from spanwise.text.lists import Item, read_list, unknown_keys

MANIFEST = "manifest.yaml"
SPLITS = ("study", "sweep")
NOT_PERMITTED, OLDER, OTHER_SPLIT = "not permitted", "older version", "another split"
_KEYS = ("path", "source", "document", "version", "current", "permitted", "split")


@dataclass(frozen=True, slots=True)
class Entry:
    """One file of a corpus folder.

    path:     relative to the folder, with `/`.
    doc_id:   the document's stable id over its versions.
    """

    path: str
    doc_id: str
    source: str = ""
    version: str = "1"
    current: bool = True
    permitted: bool = True
    split: str = "study"

    def left_out(self, split: str) -> str | None:
        """Why the file stays closed, the weightiest reason first; None if it may be opened."""
        if not self.permitted:
            return NOT_PERMITTED
        if not self.current:
            return OLDER
        return OTHER_SPLIT if self.split != split else None


@dataclass(frozen=True, slots=True)
class View:
    """What may be opened, and what was left out.

    entries:  permitted, current entries of the wanted split, by doc_id.
    left_out: why nothing of a document may be opened, by doc_id: what keeps its current version
              closed, or `older version` where it has no current one.
    counts:   files by reason, as reports print them.
    """

    root: Path
    entries: tuple[Entry, ...]
    left_out: Mapping[str, str]
    counts: Mapping[str, int]


def open_view(root: Path, suffixes: Sequence[str], split: str = "study") -> View:
    """The trusted view of a corpus folder.

    root:     the folder. `manifest.yaml` in it lists every file: `path`, and where they differ from
              what stands in brackets `source` [""], `document` [the path without its suffix],
              `version` ["1"], `current` [true], `permitted` [true], `split` [study]. Without a
              manifest every file counts as such.
    suffixes: the file names that are documents, e.g. (".md",); other files are ignored, hidden
              ones (a leading dot) too.
    split:    study or sweep.
    raises:   CorpusError for a manifest that is no such list, names a file that is missing, of
              another kind or outside the folder (also through a link), misses a file of the
              folder, names a path or a version twice, or has two current versions of one document.
    """
    if split not in SPLITS:
        raise CorpusError(f"split {split!r}: expected one of {', '.join(SPLITS)}")
    if not root.is_dir():
        raise CorpusError(f"{root}: no such folder; expected one of {'/'.join(suffixes)} files")
    files = _files(root, suffixes)
    for name in ("manifest.yml", "manifest.json", "manifest.jsonl"):
        if (root / name).exists():
            raise CorpusError(f"{root / name}: would be ignored; name it {MANIFEST}")
    if os.path.lexists(root / MANIFEST):
        entries = _listed(root, files, suffixes)
    else:
        entries = [Entry(path, _doc_id(path, path)) for path in files]
        _refuse_twice([entry.doc_id for entry in entries], [entry.path for entry in entries])
    opened = [entry for entry in entries if entry.left_out(split) is None]
    known = {entry.doc_id for entry in opened}
    left_out = {entry.doc_id: OLDER for entry in entries if entry.doc_id not in known}
    for entry in entries:
        if entry.current and (reason := entry.left_out(split)):
            left_out[entry.doc_id] = reason
    reasons = Counter(entry.left_out(split) for entry in entries)
    counts = {"files": len(entries)} | {
        f"files left out: {reason}": reasons[reason]
        for reason in (NOT_PERMITTED, OLDER, OTHER_SPLIT)
        if reasons[reason]
    }
    opened.sort(key=lambda entry: entry.doc_id)
    return View(root, tuple(opened), dict(sorted(left_out.items())), counts)


def _files(root: Path, suffixes: Sequence[str]) -> list[str]:
    """Relative paths of the documents in the folder, sorted; links that leave it are refused."""
    found = []
    inside = root.resolve()
    for folder, names, files in os.walk(root):
        names[:] = sorted(name for name in names if not name.startswith("."))
        for name in names:
            if (linked := Path(folder) / name).is_symlink():
                raise CorpusError(f"{linked}: a linked folder; put the folder itself there")
        for name in files:
            path = Path(folder) / name
            if name == MANIFEST and Path(folder) != root:
                raise CorpusError(
                    f"{path}: a manifest below the corpus folder {root} would be ignored; "
                    f"move its entries into {root / MANIFEST}"
                )
            if name.startswith(".") or path.suffix.lower() not in suffixes:
                continue
            if path.is_symlink():  # also inside: a link could open what the manifest closes
                leaves = not path.resolve().is_relative_to(inside)
                raise CorpusError(
                    f"{path}: a link {'that leaves the folder' if leaves else 'to another file'}, "
                    "expected the file itself; put it there (files that DVC linked: "
                    "`dvc config cache.type copy`, then `dvc checkout --relink`)"
                )
            found.append(path.relative_to(root).as_posix())
    return sorted(found)


def _listed(root: Path, files: Sequence[str], suffixes: Sequence[str]) -> list[Entry]:
    name = str(root / MANIFEST)
    items = read_list(root / MANIFEST, name, CorpusError)
    entries = [_entry(item, suffixes) for item in items]
    present = set(files)
    for item, entry in zip(items, entries, strict=True):
        if entry.path not in present:
            raise CorpusError(
                f"{item.where}: {entry.path!r} is no file of {root}; "
                "mend the path or take the entry out"
            )
    _refuse_twice(
        [entry.path for entry in entries], [item.where for item in items], "path"
    )
    if missing := sorted(present - {entry.path for entry in entries}):
        raise CorpusError(
            f"{name}: {len(missing)} files of the folder are not listed, e.g. {missing[0]!r}; "
            "add an entry for each (with `permitted: false` where it must stay closed)"
        )
    _refuse_twice(
        [f"{entry.doc_id} version {entry.version}" for entry in entries],
        [item.where for item in items],
        "document",
    )
    current: dict[str, str] = {}
    for item, entry in zip(items, entries, strict=True):
        if entry.current and entry.doc_id in current:
            raise CorpusError(
                f"{item.where}: document {entry.doc_id!r} has a second current version, the first "
                f"is {current[entry.doc_id]}; leave `current: true` on one of them"
            )
        if entry.current:
            current[entry.doc_id] = item.where
    return entries


def _entry(item: Item, suffixes: Sequence[str]) -> Entry:
    fields = item.fields
    if wrong := unknown_keys(fields, _KEYS):
        raise CorpusError(f"{item.where}: {wrong}")
    path = _word(item, "path")
    if not path:
        raise CorpusError(f"{item.where}: no `path`; every entry names its file")
    parts = PurePosixPath(path)
    if parts.is_absolute() or ".." in parts.parts or "\\" in path or str(parts) != path:
        raise CorpusError(
            f"{item.where}: path {path!r} must lie inside the corpus folder: relative, with `/`, "
            "without `..`"
        )
    if parts.suffix.lower() not in suffixes:
        raise CorpusError(
            f"{item.where}: {path!r} is no {'/'.join(suffixes)} file, which this reader opens"
        )
    split = _word(item, "split", "study")
    if split not in SPLITS:
        raise CorpusError(f"{item.where}: split {split!r}, expected one of {', '.join(SPLITS)}")
    return Entry(
        path,
        document_id(name) if (name := _word(item, "document")) else _doc_id(path, item.where),
        _word(item, "source"),
        _word(item, "version", "1"),
        _yes(item, "current"),
        _yes(item, "permitted"),
        split,
    )


def _word(item: Item, key: str, default: str = "") -> str:
    value: Any = item.fields.get(key)
    if value is None:
        return default
    if isinstance(value, bool) or not isinstance(value, str | int) or not str(value).strip():
        raise CorpusError(f"{item.where}: `{key}` is {value!r}, expected one word or line of text")
    return str(value)


def _yes(item: Item, key: str) -> bool:
    value: Any = item.fields.get(key, True)
    if not isinstance(value, bool):
        raise CorpusError(f"{item.where}: `{key}` is {value!r}, expected true or false")
    return value


def _doc_id(path: str, where: str) -> str:
    try:
        return document_id(str(PurePosixPath(path).with_suffix("")))
    except UnicodeEncodeError:
        raise CorpusError(
            f"{where!a}: the file's name is not UTF-8; rename the file"
        ) from None


def _refuse_twice(keys: Sequence[str], places: Sequence[str], what: str = "document") -> None:
    seen: dict[str, str] = {}
    for key, place in zip(keys, places, strict=True):
        if key in seen:
            raise CorpusError(
                f"{place}: {what} {key!r} is also {seen[key]}; each stands once, take one out"
            )
        seen[key] = place
