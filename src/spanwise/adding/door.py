"""`spanwise add`: every check first, then all of it, or nothing."""

from __future__ import annotations

import json
import os
import re
import shutil
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from spanwise import params, profiles, schemas
from spanwise.adding import contents, converted, looking, tracked, undone
from spanwise.adding.wish import WRITTEN, Wish, counted, options_of
from spanwise.corpora.readers import READERS, WITH_SPLITS, read_split
from spanwise.corpora.view import SPLITS
from spanwise.errors import CorpusError, InputError, ParamsError

__all__ = ["QUESTIONS", "WRITTEN", "Plan", "Wish", "carry_out", "options_of", "plan"]

QUESTIONS = "questions.jsonl"


@dataclass(frozen=True, slots=True)
class Plan:
    """What will be done, checked, before anything is written.

    files:     of the corpus, to copy, relative to `source`.
    texts:     those among them to write instead, which docling made.
    questions: what questions.jsonl will hold, or None.
    before:    params.yaml as it was read.
    text:      params.yaml with the corpus.
    facts:     counts and names, as `--json` prints them.
    """

    wish: Wish
    root: Path
    source: Path
    reader: str
    files: tuple[str, ...]
    texts: Mapping[str, bytes]
    questions: str | None
    remote: tracked.Remote
    before: bytes
    text: str
    facts: Mapping[str, Any]
    notes: tuple[str, ...]

    def as_json(self, done: bool) -> str:
        """The facts as one JSON object."""
        return json.dumps({**self.facts, "done": done}, indent=1, ensure_ascii=False)

    def shown(self, done: bool) -> str:
        """What was done, or would be, and the next command."""
        facts = self.facts
        place = f"data/{self.wish.name}"
        asked_ = facts["questions"]
        verb = "is" if done else "would be"
        are = "are" if done and len(self.files) != 1 else verb
        lines = [
            f"{self.wish.name}: {counted(len(self.files), 'file')} {are} in {place}, read by "
            f"`{self.reader}`: {counted(facts['documents'], 'document')}, "
            f"{counted(asked_, 'question')}",
            f"params.yaml {'has' if done else 'would have'} the corpus; data.dvc "
            f"{'tracks' if done else 'would track'} the folder",
            f"dvc push {'goes' if done else 'would go'} to {self.remote.name}: {self.remote.url}"
            + (f" ({verb} the default in {tracked.LOCAL})" if self.remote.made else ""),
        ]
        if not asked_ and self.wish.questions != WRITTEN:
            name = self.wish.name
            lines += ["", "It has no questions yet. For the language model to write them, put",
                      f"    questions: {WRITTEN}",
                      f"below corpora.{name} in params.yaml, see what will be asked, and have it "
                      "asked:",
                      f"    dvc repro parse@{name}",
                      f"    spanwise ask {name} --dry-run",
                      f"    dvc repro ask@{name}",
                      "Or write them yourself:",
                      f"    dvc repro parse@{name}",
                      f"    spanwise ask {name} --worksheet {name}.yaml"]
        lines += ["", "For a confirmatory result register before the first run "
                  "(docs/own-corpus.md, section 5)."]
        return "\n".join([*lines, f"next: {facts['next']}"])


def plan(wish: Wish, root: Path | None = None) -> Plan:
    """Check everything that can be checked without writing.

    root:   the project [the current folder].
    raises: InputError, of the kind that fits, with the place and the mend; also while another
            corpus is being added.
    """
    root = root or Path.cwd()
    tracked.require_project(root)
    params_path = root / "params.yaml"
    with undone.none_running(root):
        before = params_path.read_bytes()
        try:
            settings = params.load(params_path)
        except ParamsError as error:
            mend = "mend it; `git diff params.yaml` shows what changed"
            raise ParamsError(f"{error}\n{mend}") from None
        undone.require_none_left(root, settings.corpora)
        _require_name(wish.name, root, settings)
    _require_outside(root, wish.path)
    remote = tracked.remote(root, wish.remote)
    with converted.seen(wish) as (seen, conversion):
        listing = looking.listed(seen.path)
        reader = wish.reader or looking.reader_of(listing)
        if reader not in READERS:
            raise InputError(f"--reader {reader!r}: expected one of {', '.join(READERS)}")
        found = contents.read(listing, reader, seen)
    conversion.enter(found)
    entry: dict[str, Any] = {"reader": reader, "path": f"data/{wish.name}"}
    for key in ("demonstration", "contexts", "units"):
        entry |= {key: True} if getattr(wish, key) else {}
    entry["inducer"] = wish.inducer
    entry |= {"questions": WRITTEN} if wish.questions == WRITTEN else {}
    entry |= {"options": dict(wish.options)} if wish.options else {}
    text = profiles.with_corpus(wish.name, entry, params_path)
    facts = {
        "corpus": wish.name, "reader": reader, "path": f"data/{wish.name}",
        "files": len(found.files), "documents": len(found.documents),
        "words": sum(len(document.body.split()) for document in found.documents),
        "questions": len(found.questions), "left out": dict(found.left_out),
        "duplicates": dict(found.duplicates),
        "remote": {"name": remote.name, "url": remote.url, "new default": remote.made},
        "next": "dvc repro" if found.questions or wish.questions == WRITTEN
        else f"dvc repro parse@{wish.name}",
        **conversion.facts,
    }
    return Plan(
        wish, root, wish.path if wish.path.is_dir() else wish.path.parent, reader,
        tuple(found.files), conversion.texts, found.question_lines, remote, before, text, facts,
        tuple(contents.notes(found, listing)),
    )


def _require_name(name: str, root: Path, settings: params.Params) -> None:
    if not re.fullmatch(r"[a-z0-9][a-z0-9-]*", name):
        raise ParamsError(
            f"corpus {name!r}: names are lower-case letters, digits and hyphens, e.g. notes-2"
        )
    if name in settings.corpora:
        raise ParamsError(
            f"a corpus {name!r} is in params.yaml already, at {settings.corpora[name].path}; take "
            "another name, or that entry and its folder out"
        )
    if os.path.lexists(root / tracked.DATA / name):
        raise CorpusError(
            f"data/{name} is there already, and no corpus of params.yaml: it was put there by hand "
            f"or an earlier `spanwise add` was killed; move it away, run `dvc add {tracked.DATA}`, "
            "and add it anew"
        )


def _require_outside(root: Path, path: Path) -> None:
    here, place = root.resolve(), path.resolve()
    data = here / tracked.DATA
    if place.is_relative_to(data):
        raise CorpusError(
            f"{path}: it lies in the project's data/, into which it is to be copied; move it out "
            "first"
        )
    if path.is_dir() and here.is_relative_to(place):
        raise CorpusError(f"{path}: the project itself lies in it; name the documents' folder")


def carry_out(made: Plan) -> None:
    """Copy, track and enter a corpus; what goes wrong in the middle leaves all as it was.

    raises: InputError if what was copied is not what was checked, or params.yaml has changed;
            Unavailable where DVC fails.
    """
    root, name = made.root, made.wish.name
    with undone.scratch(root, name) as folder:
        tracked.pull(root)
        if os.path.lexists(root / tracked.DATA / name):  # it came with the pull
            _require_name(name, root, params.load(root / "params.yaml"))
        staged = folder / name
        _stage(made, staged)
        target = root / tracked.DATA / name
        settings = root / "params.yaml"
        with undone.restored(root, {settings: made.text.encode()}, target, staged):
            if made.remote.made:
                tracked.use(root, made.remote)
            target.parent.mkdir(exist_ok=True)
            staged.rename(target)
            tracked.add(root)
            _require_unchanged(made)  # DVC took its time
            schemas.write_text(settings, made.text)


def _stage(made: Plan, staged: Path) -> None:
    """Copy the files, and read them once more as the stage `parse` will read them."""
    staged.mkdir(mode=0o755)
    for name in made.files:
        place = staged / name
        place.parent.mkdir(parents=True, exist_ok=True)
        if name in made.texts:
            place.write_bytes(made.texts[name])
        else:
            shutil.copyfile(made.source / name, place)
    if made.questions is not None:
        (staged / QUESTIONS).write_text(made.questions, encoding="utf-8", newline="\n")
    try:  # a set has been read whole, which takes minutes for a dump
        for split in SPLITS if made.reader in WITH_SPLITS else ():
            read_split(made.reader, staged, options=made.wish.options, split=split)
    except InputError as error:
        said = str(error).replace(str(staged), str(made.wish.path))
        raise type(error)(said) from None
    _require_unchanged(made)


def _require_unchanged(made: Plan) -> None:
    if (made.root / "params.yaml").read_bytes() != made.before:
        raise ParamsError("params.yaml has changed meanwhile; run `spanwise add` again")
