"""`spanwise add`: every check first, then all of it, or nothing."""

from __future__ import annotations

import json
import os
import re
import shutil
import tempfile
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from spanwise import params, profiles, schemas
from spanwise.adding import asked, looking, tracked
from spanwise.corpora.folder import read_file, same_texts
from spanwise.corpora.readers import READERS, SUFFIXES, WITH_SPLITS, read_split
from spanwise.corpora.view import MANIFEST, SPLITS, Entry, open_view
from spanwise.documents.model import Corpus, Document, Question, document_id
from spanwise.errors import CorpusError, InputError, ParamsError, QuestionError
from spanwise.questions.authored import read_questions, resolve

QUESTIONS = "questions.jsonl"
WRITTEN = "written"
FEW_DOCUMENTS, FEW_QUESTIONS = 5, 50
"""Below, a verdict is not to be expected: intervals come from resampling documents."""


@dataclass(frozen=True, slots=True)
class Wish:
    """What a person asks for.

    questions: a question file, `written` for the language model, or None.
    skip:      leave out files that cannot be read, instead of refusing the folder.
    """

    name: str
    path: Path
    questions: str | None = None
    reader: str | None = None
    inducer: str = "segmenter"
    demonstration: bool = False
    units: bool = False
    contexts: bool = False
    options: Mapping[str, int | float | str | bool] = field(default_factory=dict)
    remote: str | None = None
    skip: bool = False


@dataclass(frozen=True, slots=True)
class Plan:
    """What will be done, checked, before anything is written.

    files:     to copy, relative to `source`.
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
        lines = [
            f"{self.wish.name}: {len(self.files)} files {'are' if done else 'would be'} in {place}"
            f", read by `{self.reader}`: {facts['documents']} documents, {asked_} questions",
            f"params.yaml {'has' if done else 'would have'} the corpus; data.dvc "
            f"{'tracks' if done else 'would track'} the folder",
            f"dvc push {'goes' if done else 'would go'} to {self.remote.name}: {self.remote.url}"
            + (f" ({verb} the default in {tracked.LOCAL})" if self.remote.made else ""),
        ]
        if not asked_ and self.wish.questions != WRITTEN:
            lines += ["", "It has no questions yet. Have them written by the language model,",
                      f"    questions: {WRITTEN}",
                      f"below corpora.{self.wish.name} in params.yaml; or write them yourself:",
                      f"    dvc repro parse@{self.wish.name}",
                      f"    spanwise ask {self.wish.name} --worksheet {self.wish.name}.yaml"]
        lines += ["", "For a confirmatory result register before the first run "
                  "(docs/own-corpus.md, section 5)."]
        return "\n".join([*lines, f"next: {facts['next']}"])


def options_of(given: Sequence[str]) -> dict[str, int | float | str | bool]:
    """Options of a reader from KEY=VALUE.

    raises: InputError for what has no `=`.
    """
    found: dict[str, int | float | str | bool] = {}
    for one in given:
        key, equals, value = one.partition("=")
        if not equals or not re.fullmatch(r"[a-z]\w*", key):
            raise InputError(f"--option {one!r}: expected KEY=VALUE, e.g. articles=200")
        try:
            decoded = json.loads(value)
        except ValueError:
            decoded = value
        found[key] = decoded if isinstance(decoded, int | float | str) else value
    return found


def plan(wish: Wish, root: Path | None = None) -> Plan:
    """Check everything that can be checked without writing.

    root:   the project [the current folder].
    raises: InputError, of the kind that fits, with the place and the mend.
    """
    root = root or Path.cwd()
    tracked.require_project(root)
    params_path = root / "params.yaml"
    before = params_path.read_bytes()
    _require_name(wish.name, root, params.load(params_path))
    _require_outside(root, wish.path)
    listing = looking.listed(wish.path)
    reader = wish.reader or looking.reader_of(listing)
    if reader not in READERS:
        raise InputError(f"--reader {reader!r}: expected one of {', '.join(READERS)}")
    found = _documents(listing, reader, wish) if reader in looking.OF_DOCUMENTS else (
        _set(listing, reader, wish))
    entry: dict[str, Any] = {"reader": reader, "path": f"data/{wish.name}"}
    for key in ("demonstration", "contexts", "units"):
        entry |= {key: True} if getattr(wish, key) else {}
    entry["inducer"] = wish.inducer
    entry |= {"questions": WRITTEN} if wish.questions == WRITTEN else {}
    entry |= {"options": dict(wish.options)} if wish.options else {}
    text = profiles.with_corpus(wish.name, entry, params_path)
    remote = tracked.remote(root, wish.remote)
    facts = {
        "corpus": wish.name, "reader": reader, "path": f"data/{wish.name}",
        "files": len(found.files), "documents": len(found.documents),
        "words": sum(len(document.body.split()) for document in found.documents),
        "questions": len(found.questions), "left out": dict(found.left_out),
        "duplicates": dict(found.duplicates),
        "remote": {"name": remote.name, "url": remote.url, "new default": remote.made},
        "next": "dvc repro" if found.questions or wish.questions == WRITTEN
        else f"dvc repro parse@{wish.name}",
    }
    return Plan(
        wish, root, listing.root, reader, tuple(found.files), found.question_lines, remote,
        before, text, facts, tuple(_notes(found, listing)),
    )


@dataclass(slots=True)
class _Found:
    """What a place holds."""

    files: list[str]
    documents: Sequence[Document]
    questions: Sequence[Question]
    question_lines: str | None = None
    left_out: dict[str, str] = field(default_factory=dict)
    duplicates: dict[str, list[str]] = field(default_factory=dict)
    dropped: set[str] = field(default_factory=set)
    lost: Counter[str] = field(default_factory=Counter)
    notes: list[str] = field(default_factory=list)


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


def _documents(listing: looking.Listing, reader: str, wish: Wish) -> _Found:
    """A folder whose files are documents, each read now."""
    files = looking.wanted(listing, reader)
    entries, closed = _entries(listing, reader, files)
    has_manifest = MANIFEST in files
    read: dict[str, Document] = {}
    places: dict[str, str] = {}
    left_out = dict(closed)
    problems: dict[str, str] = {}
    lost: Counter[str] = Counter()
    for entry in entries:
        try:
            read[entry.doc_id] = _one(listing.root / entry.path, entry, lost)
            places[entry.doc_id] = entry.path
        except InputError as error:
            problems[entry.path] = str(error)
            left_out[entry.doc_id] = "it cannot be read"
    if problems and (has_manifest or not wish.skip):
        mend = (f"Mend them, or close them in {MANIFEST} with `permitted: false`."
                if has_manifest else "Mend them, or leave them out with --skip.")
        looking.raise_problems(wish.path, list(problems.values()), mend)
    if not read:
        raise CorpusError(
            f"{wish.path}: no document is left; expected at least one "
            f"{'/'.join(SUFFIXES[reader])} file with text"
        )
    documents = list(read.values())
    found = _Found([], documents, [], lost=lost)
    found.left_out = {place: said.splitlines()[0] for place, said in problems.items()}
    _ask(found, listing, files, left_out, wish)
    if has_manifest:  # who lists both means both
        found.duplicates = {
            places[kept]: [places[name] for name in others]
            for kept, others in same_texts(documents).items()
        }
    else:
        found.dropped = _drop_duplicates(found, places)
    found.files = [name for name in files if name not in found.dropped | set(problems)]
    return found


def _entries(
    listing: looking.Listing, reader: str, files: Sequence[str]
) -> tuple[list[Entry], dict[str, str]]:
    """What may be opened, of both splits, and why other documents may not."""
    if len(listing.files) == 1 and "/" not in listing.files[0] and MANIFEST not in files:
        name = listing.files[0]  # one file, whose neighbours are nobody's business
        return [Entry(name, document_id(Path(name).stem))], {}
    views = [open_view(listing.root, SUFFIXES[reader], split) for split in SPLITS]
    entries = [entry for view in views for entry in view.entries]
    opened = {entry.doc_id for entry in entries}
    study = {entry.doc_id for entry in views[0].entries}
    closed = {name: why for name, why in views[0].left_out.items() if name not in study}
    return entries, {name: why for name, why in closed.items() if name not in opened}


def _one(path: Path, entry: Entry, lost: Counter[str]) -> Document:
    size = path.stat().st_size
    if size > looking.LARGEST:
        raise CorpusError(
            f"{path}: {size / 2**20:.0f} MB, expected at most {looking.LARGEST // 2**20} MB in a "
            "document; split it"
        )
    document, counts, _ = read_file(path, entry.doc_id, entry.source, entry.version)
    lost.update(counts)
    if document is None:
        raise CorpusError(f"{path}: no text in it; write its text, or take it out")
    return document


def _ask(
    found: _Found, listing: looking.Listing, files: Sequence[str], left_out: Mapping[str, str],
    wish: Wish,
) -> None:
    """The questions that came with the folder, or those of a file."""
    own, _ = (read_questions(listing.root, found.documents, left_out)
              if len(files) > 1 or wish.path.is_dir() else ([], {}))
    if wish.questions is None:
        found.questions = own
        return
    if own:
        raise QuestionError(
            f"{wish.path} brings {len(own)} questions of its own; leave --questions out, or take "
            "them out of the folder"
        )
    if wish.questions == WRITTEN:
        return
    path = Path(wish.questions)
    names = [document.doc_id for document in found.documents]
    items, notes = asked.entries(path, names)
    found.questions, _ = resolve(items, found.documents, left_out)
    found.question_lines = asked.lines(items)
    found.notes += notes


def _drop_duplicates(found: _Found, places: Mapping[str, str]) -> set[str]:
    """Of documents with one text the first stays, or the one that questions are about; the files
    of the others."""
    about = {name for question in found.questions
             for name in (question.doc_id, *(item.doc_id for item in question.evidence))}
    dropped: set[str] = set()
    for first, others in same_texts(found.documents).items():
        group = [first, *others]
        wanted = [name for name in group if name in about]
        if len(wanted) > 1:
            raise QuestionError(
                f"{places[wanted[0]]} and {places[wanted[1]]} have the same text, and questions "
                "are about both: one would be wrong where the other is found; ask about one of them"
            )
        kept = wanted[0] if wanted else first
        gone = [name for name in group if name != kept]
        found.duplicates[places[kept]] = [places[name] for name in gone]
        dropped |= set(gone)
    found.documents = [d for d in found.documents if d.doc_id not in dropped]
    return {places[name] for name in dropped}


def _set(listing: looking.Listing, reader: str, wish: Wish) -> _Found:
    """A set in a form of its own, read whole by its reader."""
    files = looking.wanted(listing, reader)
    if not files:
        raise CorpusError(f"{wish.path}: not what --reader {reader} expects: "
                          f"{profiles.SOURCES[reader]}")
    corpus = _read(reader, wish.path, wish.options)
    if wish.questions not in (None, WRITTEN) or (wish.questions and corpus.questions):
        has = "brings its own questions" if corpus.questions else "is a dump"
        raise QuestionError(
            f"--questions {wish.questions}: what the {reader} reader reads {has}; leave the option "
            f"out{'' if corpus.questions else f', or say --questions {WRITTEN}'}"
        )
    found = _Found(files, corpus.documents, corpus.questions)
    found.duplicates = same_texts(corpus.documents)
    return found


def _read(reader: str, path: Path, options: Mapping[str, Any]) -> Corpus:
    return read_split(reader, path, options=options)


def _notes(found: _Found, listing: looking.Listing) -> Iterator[str]:
    yield from found.notes
    for path, why in found.left_out.items():
        yield f"left out: {path}: {why.removeprefix(f'{listing.root / path}: ')}"
    for kept, others in found.duplicates.items():
        alone = f"; {kept} alone is taken" if set(others) <= found.dropped else ""
        yield f"the same text: {kept} and {', '.join(others)}{alone}"
    for what, count in sorted(found.lost.items()):
        if count:
            yield f"{what}: {count}"
    if said := looking.not_taken(listing, [*found.files, *found.left_out, *found.dropped]):
        yield said
    if len(found.documents) < FEW_DOCUMENTS:
        yield (f"{len(found.documents)} documents: intervals come from resampling documents, so "
               "expect no verdict")
    if 0 < len(found.questions) < FEW_QUESTIONS:
        yield f"{len(found.questions)} questions are few: expect `underpowered`"


def carry_out(made: Plan) -> None:
    """Copy, track and enter a corpus; what goes wrong in the middle leaves all as it was.

    raises: InputError if what was copied is not what was checked, or params.yaml has changed;
            Unavailable where DVC fails.
    """
    root, name = made.root, made.wish.name
    tracked.pull(root)
    if os.path.lexists(root / tracked.DATA / name):  # it came with the pull
        _require_name(name, root, params.load(root / "params.yaml"))
    kept = [root / tracked.LOCAL, root / tracked.POINTER, root / "params.yaml", root / ".gitignore"]
    target = root / tracked.DATA / name
    with _staged(made) as staged, _restored(kept, target):
        if made.remote.made:
            tracked.use(root, made.remote)
        target.parent.mkdir(exist_ok=True)
        staged.rename(target)
        tracked.add(root)
        schemas.write_text(root / "params.yaml", made.text)


@contextmanager
def _staged(made: Plan) -> Iterator[Path]:
    """The files in a scratch folder, read once more as the stage `parse` will read them."""
    scratch = made.root / ".dvc" / "tmp"
    scratch.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory(dir=scratch, prefix="adding-") as folder:
        staged = Path(folder) / made.wish.name
        staged.mkdir(mode=0o755)
        for name in made.files:
            place = staged / name
            place.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(made.source / name, place)
        if made.questions is not None:
            (staged / QUESTIONS).write_text(made.questions, encoding="utf-8", newline="\n")
        try:  # a set has been read whole, which takes minutes for a dump
            for split in SPLITS if made.reader in WITH_SPLITS else ():
                read_split(made.reader, staged, options=made.wish.options, split=split)
        except InputError as error:
            said = str(error).replace(str(staged), str(made.wish.path))
            raise type(error)(said) from None
        if (made.root / "params.yaml").read_bytes() != made.before:
            raise ParamsError("params.yaml has changed meanwhile; run `spanwise add` again")
        yield staged


@contextmanager
def _restored(paths: Sequence[Path], target: Path) -> Iterator[None]:
    """If the block fails, for whatever reason: files as they were, and the target gone."""
    before = {path: path.read_bytes() if path.is_file() else None for path in paths}
    try:
        yield
    except BaseException:
        shutil.rmtree(target, ignore_errors=True)
        for path, content in before.items():
            if content is None:
                path.unlink(missing_ok=True)
            elif path.read_bytes() != content:
                path.write_bytes(content)
        raise
