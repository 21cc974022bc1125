"""What a place holds, read before anything is written; what is wrong with it, all at once."""

from __future__ import annotations

import shlex
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from spanwise import profiles
from spanwise.adding import asked, looking
from spanwise.adding.wish import WRITTEN, Wish, counted
from spanwise.corpora.folder import read_file, same_texts
from spanwise.corpora.readers import SUFFIXES, read_split
from spanwise.corpora.view import MANIFEST, SPLITS, Entry, open_view
from spanwise.documents.model import Document, Question, document_id
from spanwise.errors import CorpusError, InputError, QuestionError
from spanwise.questions.authored import read_questions, resolve

FEW_DOCUMENTS, FEW_QUESTIONS = 5, 50
"""Below, a verdict is not to be expected: intervals come from resampling documents."""
_UNREAD = "it cannot be read"


@dataclass(slots=True)
class Found:
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


def read(listing: looking.Listing, reader: str, wish: Wish) -> Found:
    """Read all of a place as its reader will.

    raises: InputError, of the kind that fits, with everything that is wrong with its files and its
            questions.
    """
    of_documents = reader in looking.OF_DOCUMENTS
    return _documents(listing, reader, wish) if of_documents else _set(listing, reader, wish)


def _documents(listing: looking.Listing, reader: str, wish: Wish) -> Found:
    """A folder whose files are documents, each read now."""
    files = looking.wanted(listing, reader)
    try:
        entries, closed = _entries(listing, reader, files)
    except InputError as error:
        raise _placed(error, listing) from None
    has_manifest = MANIFEST in files
    opened: dict[str, Document] = {}
    places: dict[str, str] = {}
    left_out = dict(closed)
    problems: dict[str, str] = {}
    lost: Counter[str] = Counter()
    for entry in entries:
        try:
            opened[entry.doc_id] = _one(listing.root / entry.path, entry, lost)
            places[entry.doc_id] = entry.path
        except InputError as error:
            problems[entry.path] = str(_placed(error, listing))
            left_out[entry.doc_id] = _UNREAD
    documents = list(opened.values())
    found = Found([], documents, [], lost=lost)
    found.left_out = {place: said.splitlines()[0] for place, said in problems.items()}
    if not documents and not problems:
        raise CorpusError(
            f"{wish.path}: no document is left; expected at least one "
            f"{'/'.join(SUFFIXES[reader])} file with text"
        )
    _refuse_together(found, listing, files, problems, left_out, wish)
    if has_manifest:  # who lists both means both
        found.duplicates = {
            places[kept]: [places[name] for name in others]
            for kept, others in same_texts(documents).items()
        }
    else:
        found.dropped = _drop_duplicates(found, places)
    found.files = [name for name in files if name not in found.dropped | set(problems)]
    return found


def _refuse_together(
    found: Found, listing: looking.Listing, files: Sequence[str], problems: Mapping[str, str],
    left_out: Mapping[str, str], wish: Wish,
) -> None:
    """Take the questions in, or raise what is wrong with files and with questions as one error."""
    has_manifest = MANIFEST in files
    refused: list[InputError] = []
    if problems and (has_manifest or not wish.skip):
        mend = (f"Mend them, or close them in {MANIFEST} with `permitted: false`."
                if has_manifest else "Mend them, or leave them out with --skip.")
        refused.append(looking.of_problems(wish.path, list(problems.values()), mend))
    if found.documents:
        try:
            _ask(found, listing, files, left_out, wish)
        except InputError as error:
            refused.append(error)
    elif not refused:
        refused.append(CorpusError(f"{wish.path}: no document is left; mend at least one"))
    if len(refused) == 1:
        raise refused[0]
    if refused:
        raise CorpusError("\n".join(map(str, refused)))


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
    found: Found, listing: looking.Listing, files: Sequence[str], left_out: Mapping[str, str],
    wish: Wish,
) -> None:
    """The questions that came with the folder, or those of a file."""
    own, counts = (read_questions(listing.root, found.documents, left_out)
                   if len(files) > 1 or wish.path.is_dir() else ([], {}))
    unread = f"questions left out: {_UNREAD}"
    if wish.questions is None:
        if wish.skip and (lost := counts.get(unread)):
            raise QuestionError(
                f"{wish.path}: {counted(lost, 'question')} of the folder's own need a file that "
                "cannot be read; mend that file, or take the questions out"
            )
        found.questions = own
        return
    if own:
        raise QuestionError(
            f"{wish.path} brings {counted(len(own), 'question')} of its own; leave --questions "
            "out, or take them out of the folder"
        )
    if wish.questions == WRITTEN:
        return
    errors: list[QuestionError] = []
    names = [*(document.doc_id for document in found.documents), *left_out]
    items, notes = asked.entries(Path(wish.questions), names, errors)
    found.questions, counts = resolve(items, found.documents, left_out, errors)
    found.notes += notes
    if lost := counts.get(unread):  # `parse` would know nothing of their documents
        kept = {question.question_id for question in found.questions}
        items = [item for item in items if str(item.fields["id"]) in kept]
        found.notes.append(f"left out: {counted(lost, 'question')}, about files that are")
    found.question_lines = asked.lines(items)


def _drop_duplicates(found: Found, places: Mapping[str, str]) -> set[str]:
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


def _set(listing: looking.Listing, reader: str, wish: Wish) -> Found:
    """A set in a form of its own, read whole by its reader."""
    files = looking.wanted(listing, reader)
    if not files:
        raise CorpusError(f"{wish.path}: not what --reader {reader} expects: "
                          f"{profiles.SOURCES[reader]}")
    try:
        corpus = read_split(reader, wish.path, options=wish.options)
    except InputError as error:
        raise _placed(error, listing) from None
    if wish.questions not in (None, WRITTEN) or (wish.questions and corpus.questions):
        has = "brings its own questions" if corpus.questions else "is a dump"
        raise QuestionError(
            f"--questions {wish.questions}: what the {reader} reader reads {has}; leave the option "
            f"out{'' if corpus.questions else f', or say --questions {WRITTEN}'}"
        )
    found = Found(files, corpus.documents, corpus.questions)
    found.lost.update({what: count for what, count in corpus.counts.items()
                       if "left out" in what or "not there" in what})
    found.duplicates = same_texts(corpus.documents)
    return found


def _placed(error: InputError, listing: looking.Listing) -> InputError:
    """An error about a file of the place, with its whole path, also in a command to paste."""
    said = str(error)
    for name in listing.files:
        path = str(listing.root / name)
        if said.startswith((f"{name}: ", f"{path}: ")):
            said = path + said.removeprefix(path).removeprefix(name)
            for written in (name, path):
                said = said.replace(f"-t UTF-8 {written},", f"-t UTF-8 {shlex.quote(path)},")
                said = said.replace(f"-t UTF-8 {written}\n", f"-t UTF-8 {shlex.quote(path)}\n")
    return type(error)(said)


def notes(found: Found, listing: looking.Listing) -> Iterator[str]:
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
        yield (f"{counted(len(found.documents), 'document')}: intervals come from resampling "
               "documents, so expect no verdict")
    if 0 < len(found.questions) < FEW_QUESTIONS:
        few = len(found.questions)
        yield f"{counted(few, 'question')} {'is' if few == 1 else 'are'} few: expect `underpowered`"
