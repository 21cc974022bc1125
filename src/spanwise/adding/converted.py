"""Files that a person's docling turns into Markdown before a folder is looked at.

What is added is that Markdown. Its text is fixed and tracked from then on: reading it needs no
docling, and another version of it changes nothing. `converted.json` beside it says what each text
was made from, and by what.
"""

from __future__ import annotations

import hashlib
import json
import re
import shutil
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path, PurePosixPath
from typing import Any

from spanwise.adding import docling, looking, stopping
from spanwise.adding.contents import Found
from spanwise.adding.plainer import has_text, plainer
from spanwise.adding.wish import WRITTEN, Wish, counted
from spanwise.corpora.folder import FORMATS
from spanwise.corpora.view import MANIFEST, SPLITS, open_view
from spanwise.errors import CorpusError, InputError, QuestionError
from spanwise.text.lists import read_list

KINDS: dict[str, tuple[str, ...]] = {
    "pdf": (".pdf",), "docx": (".docx",), "pptx": (".pptx",), "xlsx": (".xlsx",),
    "html": (".html", ".htm", ".xhtml"), "odt": (".odt",), "epub": (".epub",),
}
"""What may be asked for, and the suffixes of its files."""
ALL = "all"
RECORD = "converted.json"
_NAMED = 5  # files in a note


@dataclass(frozen=True, slots=True)
class Conversion:
    """What was converted; empty where nothing was asked for.

    texts:  files of the corpus that are not the person's own, by their paths in it.
    failed: why files have no text, by the paths that these would have had.
    facts:  as `--json` prints them.
    """

    texts: Mapping[str, bytes] = field(default_factory=dict)
    failed: Mapping[str, str] = field(default_factory=dict)
    facts: Mapping[str, Any] = field(default_factory=dict)
    notes: tuple[str, ...] = ()

    def enter(self, found: Found) -> None:
        """Enter it into what was found: the record among the files, and why others have no text."""
        found.files += [RECORD] if self.texts else []
        found.left_out |= self.failed
        found.notes += self.notes


@dataclass(slots=True)
class _Made:
    """By the names of files: their Markdown, or why there is none; what they were."""

    texts: dict[str, str] = field(default_factory=dict)
    failed: dict[str, str] = field(default_factory=dict)
    sources: dict[str, dict[str, Any]] = field(default_factory=dict)
    pictures: int = 0


def suffixes_of(given: str | None) -> tuple[str, ...]:
    """The suffixes of the kinds of files that are named, with commas between.

    raises: InputError for an unknown kind.
    """
    names = [name.strip().lower() for name in (given or "").split(",") if name.strip()]
    if given is not None and (not names or set(names) - {*KINDS, ALL}):
        raise InputError(
            f"--docling {given!r}: expected some of {','.join(KINDS)} with commas between, or {ALL}"
        )
    wanted = KINDS if ALL in names else names
    return tuple(suffix for name in wanted for suffix in KINDS[name])


@contextmanager
def seen(wish: Wish) -> Iterator[tuple[Wish, Conversion]]:
    """The wish as the checks are to see it: its folder with Markdown in place of other files.

    wish:   without `docling` it is seen as it is.
    raises: InputError where nothing is to be converted, for files that docling does not convert
            (unless they are to be skipped) and for two files of one text; Unavailable without a
            docling that works. Errors of the block name the person's folder. Whatever ends it,
            SIGTERM too: docling ends with it, and the copies of the person's files go.
    """
    if not wish.docling:
        yield wish, Conversion()
        return
    with stopping.unwinding():
        yield from _seen(wish)


def _seen(wish: Wish) -> Iterator[tuple[Wish, Conversion]]:
    if wish.questions not in (None, WRITTEN) and not Path(wish.questions).is_file():
        raise QuestionError(f"{wish.questions}: no such file; mend the path")  # now, not in an hour
    listing = looking.listed(wish.path)
    targets = _targets(listing, wish)
    its = docling.found()
    with _private_folder() as folder:
        made = _converted(its, listing, targets, folder)
        conversion = _conversion(its, targets, made, listing, wish)
        place = folder / "seen"
        _lay_out(listing, targets, conversion, place)
        path = place if wish.path.is_dir() else place / next(iter(targets.values()))
        try:
            yield replace(wish, path=path), conversion
        except InputError as error:
            said = str(error).replace(str(path), str(wish.path))
            said = said.replace(str(place), str(listing.root))
            if isinstance(error, QuestionError) or "does not occur" in said:
                said += ("\nQuotations are looked for in the Markdown that docling made of "
                         f"{counted(len(made.texts), 'file')}; to see it: "
                         f"{its.program} --to md FILE")
            raise type(error)(said) from None


@contextmanager
def _private_folder() -> Iterator[Path]:
    """A folder that goes when the block ends, also where that is asked for twice."""
    made: list[tempfile.TemporaryDirectory[str]] = []
    try:
        with stopping.held():
            made.append(tempfile.TemporaryDirectory(prefix="spanwise-docling-"))
        yield Path(made[0].name)
    finally:
        with stopping.held("copies of your files are being removed"):
            for folder in made:
                folder.cleanup()


def _targets(listing: looking.Listing, wish: Wish) -> dict[str, str]:
    """The files to convert, and the paths of their Markdown in the corpus."""
    _require_documents(listing, wish)
    names = listing.having(*wish.docling)
    if MANIFEST in listing.files and names:
        names = _opened(listing, wish, names)
    if not names:
        raise InputError(
            f"{wish.path}: no file to convert ({', '.join(wish.docling)}); leave --docling out, or "
            "name the kinds of files that are there"
        )
    targets = {name: PurePosixPath(name).with_suffix(".md").as_posix() for name in names}
    taken = {name: name for name in listing.files if name not in targets}
    for name, target in targets.items():
        if target in taken:
            raise CorpusError(
                f"{wish.path}: {taken[target]} and {name} would both be {target}; rename one"
            )
        taken[target] = name
    return targets


def _require_documents(listing: looking.Listing, wish: Wish) -> None:
    try:
        reader = wish.reader or looking.reader_of(listing)
    except CorpusError:
        return  # no file that is read as it is
    if reader not in looking.OF_DOCUMENTS:
        raise InputError(
            f"{wish.path}: it is for the reader {reader!r}, whose files are no documents that "
            "docling converts; leave --docling out"
        )


def _opened(listing: looking.Listing, wish: Wish, names: Sequence[str]) -> list[str]:
    """Those that the manifest lets be opened; what it closes stays closed."""
    suffixes = tuple({*FORMATS, *wish.docling})
    views = [open_view(listing.root, suffixes, split) for split in SPLITS]
    opened = {entry.path for view in views for entry in view.entries}
    for name in names:
        if name not in opened and PurePosixPath(name).suffix.lower() not in FORMATS:
            raise CorpusError(
                f"{listing.root / name}: {MANIFEST} closes it, and without docling it is no "
                f"document; take it out of the folder and of {MANIFEST}"
            )
    return [name for name in names if name in opened]


def _converted(
    its: docling.Docling, listing: looking.Listing, targets: Mapping[str, str], folder: Path
) -> _Made:
    """Give docling a copy of each file, under a name that cannot be taken for anything else."""
    given, out = folder / "in", folder / "out"
    given.mkdir()
    out.mkdir()
    made = _Made()
    numbered: dict[str, str] = {}
    for number, name in enumerate(targets, 1):
        size = (listing.root / name).stat().st_size
        if size > looking.LARGEST:
            made.failed[name] = (f"{size / 2**20:.0f} MB, expected at most "
                                 f"{looking.LARGEST // 2**20} MB in a document; split it")
            continue
        copy = f"{number:06d}{PurePosixPath(name).suffix.lower()}"
        content = (listing.root / name).read_bytes()
        (given / copy).write_bytes(content)
        made.sources[name] = {"from": name, "sha256": hashlib.sha256(content).hexdigest(),
                              "bytes": len(content)}
        numbered[copy] = name
    failed = docling.convert(its, given, list(numbered), out)
    for copy, name in numbered.items():
        if copy in failed:
            said = re.sub(rf"[^\s'\"]*{re.escape(copy)}", name.replace("\\", r"\\"), failed[copy])
            made.failed[name] = f"docling did not convert it: {said}"
            continue
        _take(made, name, (out / copy).with_suffix(".md").read_bytes())
    return made


def _take(made: _Made, name: str, content: bytes) -> None:
    """Take the Markdown of one file, or say why not."""
    try:
        text = content.decode("utf-8")
    except UnicodeDecodeError:
        made.failed[name] = "the Markdown that docling made of it is no UTF-8; convert it by hand"
        return
    if not has_text(text):
        made.failed[name] = "docling found no text in it; have its text recognised, or take it out"
        return
    made.texts[name], pictures = plainer(text)
    made.pictures += pictures


def _conversion(
    its: docling.Docling, targets: Mapping[str, str], made: _Made, listing: looking.Listing,
    wish: Wish,
) -> Conversion:
    has_manifest = MANIFEST in listing.files
    if made.failed and (has_manifest or not wish.skip):
        mend = (f"Mend them, or close them in {MANIFEST} with `permitted: false`."
                if has_manifest else "Mend them, or leave them out with --skip.")
        problems = [f"{listing.root / name}: {why}" for name, why in made.failed.items()]
        raise looking.of_problems(wish.path, problems, mend)
    if not made.texts:
        raise CorpusError(f"{wish.path}: docling converts none of its files; mend at least one")
    facts = {
        "by": dict(its.versions), "options": list(docling.OPTIONS),
        "files": {targets[name]: made.sources[name] for name in made.texts},
    }
    texts = {targets[name]: text.encode("utf-8") for name, text in made.texts.items()}
    texts[RECORD] = (json.dumps(facts, indent=1, ensure_ascii=False) + "\n").encode("utf-8")
    if has_manifest:
        texts[MANIFEST] = _manifest(listing, targets)
    done = list(made.texts)
    more = f" and {len(done) - _NAMED} more" if len(done) > _NAMED else ""
    notes = [f"converted to Markdown by docling {its.version}: {', '.join(done[:_NAMED])}{more}; "
             "quotations are of that Markdown"]
    notes += [f"pictures that docling left out: {made.pictures}"] if made.pictures else []
    return Conversion(
        texts, {targets[name]: why for name, why in made.failed.items()}, {"converted": facts},
        tuple(notes),
    )


def _manifest(listing: looking.Listing, targets: Mapping[str, str]) -> bytes:
    """The manifest with the paths that converted files have now; an entry a line, which is YAML."""
    items = read_list(listing.root / MANIFEST, MANIFEST, CorpusError)
    lines = (item.fields | {"path": targets.get(path := item.fields["path"], path)}
             for item in items)
    return "".join(f"- {json.dumps(one, ensure_ascii=False)}\n" for one in lines).encode("utf-8")


def _lay_out(
    listing: looking.Listing, targets: Mapping[str, str], conversion: Conversion, place: Path
) -> None:
    """The folder as it will be: what is no document of it is there by name alone."""
    contents: dict[str, bytes | None] = dict.fromkeys(set(listing.files) - set(targets))
    contents |= dict.fromkeys(conversion.failed, b"")
    contents |= {name: text for name, text in conversion.texts.items() if name != RECORD}
    needed = set(looking.wanted(listing, "folder"))
    for name, content in contents.items():
        path = place / name
        path.parent.mkdir(parents=True, exist_ok=True)
        if content is None and name in needed:
            shutil.copyfile(listing.root / name, path)
        else:
            path.write_bytes(content or b"")

