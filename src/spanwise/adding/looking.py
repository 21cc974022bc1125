"""What lies in a folder: a corpus's files, the reader they are for, and what must not be there."""

from __future__ import annotations

import json
import os
import re
import stat
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from spanwise.corpora.folder import FORMATS
from spanwise.corpora.readers import SUFFIXES
from spanwise.corpora.view import MANIFEST
from spanwise.errors import CorpusError, DecodingError
from spanwise.text.decoding import read_text

LARGEST = 64 * 2**20
"""Bytes of one document; dumps and sets of questions may be larger."""

OF_DOCUMENTS = frozenset({"markdown", "text", "folder"})
"""Readers whose files are documents, each by itself."""

_QUESTIONS = re.compile(r"questions\.(?:yaml|yml|jsonl)|questions/[^/]+\.(?:yaml|yml|jsonl)")
_DUMPS = (".xml", ".xml.bz2")
_BESIDE = re.compile("readme|licen[cs]e|copying|changelog|notice", re.IGNORECASE)
"""What lies beside the files of a set and is none of its documents."""
_EVIL = re.compile("[\x00-\x1f\x7f\x80-\x9f\u2028\u2029]")
_NAMED = 3  # files that are left out, in a message
SHOWN = 20


@dataclass(frozen=True, slots=True)
class Listing:
    """The files of a place.

    root:  the folder that paths are relative to.
    files: paths with `/`, sorted, hidden ones left out.
    """

    root: Path
    files: tuple[str, ...]

    def having(self, *suffixes: str) -> list[str]:
        return [name for name in self.files if name.lower().endswith(suffixes)]


def listed(path: Path) -> Listing:
    """The files of a folder, or the one file.

    raises: CorpusError that lists every link and every name with a control character or bytes that
            are no UTF-8, and for a place that is not there or cannot be opened.
    """
    if not os.path.lexists(path):
        raise CorpusError(f"{path}: no such file or folder; mend the path")
    if path.is_file():
        problem = _problem(path, path.parent, path.name)
        if problem and not path.is_symlink():  # who names a link means its file
            raise CorpusError(problem)
        return Listing(path.parent, (path.name,))
    if not path.is_dir():
        raise CorpusError(f"{path}: no folder and no regular file; expected one of them")
    problems: list[str] = []
    files = sorted(_files(path, problems))
    if problems:
        raise of_problems(path, problems)
    if not files:
        raise CorpusError(f"{path}: no file in it (hidden ones do not count); expected documents")
    return Listing(path, tuple(files))


def of_problems(path: Path, problems: Sequence[str], mend: str = "") -> CorpusError:
    """What is wrong with files, at least one, as one error."""
    mend = f"\n{mend}" if mend else ""
    if len(problems) == 1:
        return CorpusError(problems[0] + mend)
    more = f"\n  and {len(problems) - SHOWN} more" if len(problems) > SHOWN else ""
    shown = "\n".join(f"  {problem}" for problem in problems[:SHOWN])
    return CorpusError(f"{path}: {len(problems)} files cannot be taken:\n{shown}{more}{mend}")


def _files(root: Path, problems: list[str]) -> Iterator[str]:
    def refused(error: OSError) -> None:
        problems.append(f"{error.filename}: cannot be opened ({error.strerror}); let it be read")

    for folder, names, files in os.walk(root, onerror=refused):
        names[:] = sorted(name for name in names if not name.startswith("."))
        for name in [*names, *files]:
            path = Path(folder) / name
            if name.startswith("."):
                continue
            relative = path.relative_to(root).as_posix()
            if problem := _problem(path, root, name):
                problems.append(problem)
            elif name in files:
                yield relative


def _problem(path: Path, root: Path, name: str) -> str | None:
    """What is wrong with a name or the kind of a file, or None."""
    try:
        name.encode("utf-8")
    except UnicodeEncodeError:
        return f"{str(path)!a}: the name is not UTF-8; rename it"
    if bad := _EVIL.search(name):
        return f"{str(path)!a}: the name holds U+{ord(bad.group()):04X}; rename it"
    if path.is_symlink():
        if not path.resolve().is_relative_to(root.resolve()):
            return f"{path}: a link that leaves the folder; put what it links to there"
        if path.is_dir() or path.suffix.lower() in FORMATS:
            return f"{path}: a link to another place in the folder; put the file itself there"
        return None
    mode = path.lstat().st_mode
    if not (stat.S_ISREG(mode) or stat.S_ISDIR(mode)):
        return f"{path}: no regular file; take it out"
    return None


def reader_of(listing: Listing) -> str:
    """The reader that a place is for, by its files.

    raises: CorpusError where it is for none, with what would be, and where a .json that could hold
            the queries about text files is no JSON.
    """
    files = set(listing.files)
    if {"corpus.jsonl", "queries.jsonl"} <= files:
        return "beir"
    if "questions_df.csv" in files and any(name.startswith("corpora/") for name in files):
        return "chroma"
    documents = listing.having(*FORMATS)
    top = [name for name in listing.having(".json") if "/" not in name]
    if documents and len(top) == 1 and _is_snippets(listing.root / top[0]):
        return "snippets"
    beside = all(_BESIDE.match(name.rpartition("/")[2]) for name in documents)
    if documents and not (beside and (top or listing.having(*_DUMPS))):
        for reader in ("markdown", "text"):
            if len(listing.having(*SUFFIXES[reader])) == len(documents):
                return reader
        return "folder"
    if listing.having(*_DUMPS):
        return "mediawiki"
    if top:
        return "qasper"
    raise CorpusError(
        f"{listing.root}: no file that a reader knows; expected documents ({', '.join(FORMATS)}), "
        "a MediaWiki dump (.xml, .xml.bz2), QASPER's .json, a Chroma or BEIR set, or text files "
        "with one .json of queries and snippets"
    )


def _is_snippets(path: Path) -> bool:
    from spanwise.corpora.snippets import is_set

    if is_set(path):
        return True
    try:  # what was cut off would otherwise be a corpus without its queries
        json.loads(read_text(path, allow_blank=True).text)
    except DecodingError:
        raise
    except (ValueError, RecursionError) as error:
        raise CorpusError(
            f"{path}: no JSON ({error}), so nobody can tell whether it holds queries; mend it, or "
            "say who reads the folder, e.g. --reader folder"
        ) from None
    return False


def wanted(listing: Listing, reader: str) -> list[str]:
    """The files that a reader needs."""
    if reader in OF_DOCUMENTS:
        own = [name for name in listing.files if name == MANIFEST or _QUESTIONS.fullmatch(name)]
        return sorted({*listing.having(*SUFFIXES[reader]), *own})
    if reader == "beir":
        return [name for name in listing.files if name in ("corpus.jsonl", "queries.jsonl")
                or re.fullmatch(r"qrels/[^/]+\.tsv", name)]
    if reader == "chroma":
        return [name for name in listing.files if name == "questions_df.csv"
                or re.fullmatch(r"corpora/[^/]+\.md", name)]
    top = [name for name in listing.having(".json") if "/" not in name]
    if reader == "snippets":
        return sorted({*listing.having(*SUFFIXES[reader]), *top})
    return top if reader == "qasper" else listing.having(".xml", ".bz2")


def not_taken(listing: Listing, taken: Sequence[str]) -> str | None:
    """What to say of files that no reader opens, or None."""
    rest = sorted(set(listing.files) - set(taken))
    if not rest:
        return None
    named = ", ".join(repr(name) for name in rest[:_NAMED])
    more = f" and {len(rest) - _NAMED} more" if len(rest) > _NAMED else ""
    are, it = ("1 file is", "it") if len(rest) == 1 else (f"{len(rest)} files are", "them")
    return f"{are} not copied, for the reader does not open {it}: {named}{more}"
