"""Every corpus, read as `parse` and `ask` would read it, and what its size means."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from spanwise import layout
from spanwise.doctor.findings import NOTE, OK, PROBLEM, Finding, duration, size
from spanwise.doctor.pipeline import Pipeline
from spanwise.documents.model import Corpus, Document
from spanwise.documents.records import digest, document_tables, load_questions, question_table
from spanwise.errors import CorpusError, InputError, RegistrationError, SpanwiseError
from spanwise.params import CorpusSettings, Params
from spanwise.remotes.bundled import BUNDLED
from spanwise.remotes.settings import configured, folder_of, in_git

LARGE = 128 * 2**20
"""Bytes of a corpus beyond which reading is no matter of seconds, so only `--deep` reads it."""

_SD = 0.3
"""Standard deviation of a question's difference that sizes are reckoned with, before there are any:
a guess. The report has what was found."""

_NAMED = 5
_NO_PIPELINE = Pipeline()


@dataclass(frozen=True, slots=True)
class Seen:
    """A corpus as it was read.

    documents: of the study, sorted; none where they cannot be read.
    questions: rows of the QUESTIONS table that are asked; None where they are to be written yet or
               cannot be read.
    unchanged: what later stages left belongs to these very documents.
    stale:     stages, e.g. `chunk@notes`, that will leave something else when they run again.
    """

    name: str
    settings: CorpusSettings
    documents: Sequence[Document] = ()
    questions: Sequence[Mapping[str, Any]] | None = None
    unchanged: bool = False
    stale: frozenset[str] = frozenset()

    def holds(self, stage: str, cell: str = "") -> bool:
        """Whether what a stage (of a cell, e.g. an embedder's) left is what it would leave now."""
        named = "-".join(filter(None, (f"{stage}@{self.name}", cell)))
        return self.unchanged and named not in self.stale

    @property
    def primary(self) -> list[Mapping[str, Any]]:
        """Questions that are compared: answerable ones that are no rewordings."""
        return [q for q in self.questions or () if q["excluded"] is None and q["base"] is None]


def look(
    params: Params, name: str, deep: bool = False, pipeline: Pipeline = _NO_PIPELINE
) -> tuple[Seen, list[Finding]]:
    """Read one corpus and say what is wrong with it."""
    seen, found = _look(params, name, deep, pipeline)
    return replace(seen, stale=pipeline.stale(name)), found


def _look(
    params: Params, name: str, deep: bool, pipeline: Pipeline
) -> tuple[Seen, list[Finding]]:
    place, its = f"corpus {name}", params.corpus(name)
    path, nothing = Path(its.path), Seen(name, params.corpus(name))
    if not path.exists():
        back = "`dvc pull data.dvc` brings it back if it was added; "
        if not _shared(Path()):
            back = ("if a colleague added it, name your team's remote first (docs/remotes.md, "
                    "section 1), then `dvc pull data.dvc`; else ")
        return nothing, [Finding(
            place, PROBLEM, f"{path} is not there, so nothing can be said of it",
            "make pull" if name in BUNDLED and Path("Makefile").is_file() else
            f"{back if Path('data.dvc').exists() else ''}put it there, or take corpora.{name} out "
            "of params.yaml",
        )]
    if closed := _closed(its, path):
        return nothing, [Finding(place, PROBLEM, f"{closed} cannot be read",
                                 "let it be read: chmod u+r")]
    large = sum(p.stat().st_size for p in _files(its, path))
    if large > LARGE and not deep:
        return nothing, [Finding(place, NOTE, f"{path} has {size(large)} and was not read",
                                 "`spanwise doctor --deep` reads it, which takes a while")]
    begun = time.perf_counter()
    try:
        corpus, questions = _read(its, path)
    except (SpanwiseError, OSError) as error:
        broken = Finding(place, PROBLEM, str(error), f"correct it in {path} as it says; then "
                         "`spanwise doctor` again")
        documents = _documents_alone(its, path)
        known = bool(documents) and _unchanged(name, documents, pipeline)
        return Seen(name, its, documents, None, known), [broken, *_same(place, documents)]
    took = time.perf_counter() - begun
    seen = Seen(name, its, corpus.documents, None, _unchanged(name, corpus.documents, pipeline))
    asked, found = _asked(params, seen, questions)
    seen = Seen(name, its, corpus.documents, asked, seen.unchanged)
    words = sum(len(d.body.split()) for d in corpus.documents)
    said = f"{len(corpus.documents)} documents, {words} words"
    if asked is not None:
        said += f", {len(asked)} questions, {len(seen.primary)} of them compared"
    return seen, [
        Finding(place, OK, f"{path}: {said}; read in {duration(took)}"), *found,
        *_same(place, corpus.documents), *_size(params, seen),
    ]


def _shared(root: Path) -> bool:
    """Whether the default remote may have what the repository does not bring."""
    try:
        config = configured(root) or {}
    except ValueError:
        return True  # a finding of its own
    default = config.get("remote", {}).get(config.get("core", {}).get("remote"))
    folder = folder_of(default) if default else None
    return default is not None and not (folder and in_git(folder, root))


def _files(its: CorpusSettings, path: Path) -> list[Path]:
    from spanwise.corpora.readers import document_files

    return document_files(its.reader, path)


def _closed(its: CorpusSettings, path: Path) -> Path | None:
    """The first file or folder that may not be opened."""
    if path.is_dir() and not os.access(path, os.R_OK | os.X_OK):
        return path
    return next((p for p in _files(its, path) if not os.access(p, os.R_OK)), None)


def _read(its: CorpusSettings, path: Path) -> tuple[Corpus, list[dict[str, Any]]]:
    """Both splits, as `parse` reads them; the study's with its questions as rows."""
    from spanwise.corpora.apart import both

    found = both(its.model_copy(update={"path": str(path)}))
    corpus = found["study"]
    question_table(found["sweep"])
    if not corpus.documents:
        raise CorpusError(f"{path}: no document in it; expected at least one")
    return corpus, question_table(corpus)[0].to_pylist()


def _documents_alone(its: CorpusSettings, path: Path) -> Sequence[Document]:
    """The documents where only the questions are wrong."""
    from spanwise.corpora.readers import read_documents

    try:
        return read_documents(its.reader, path)
    except (SpanwiseError, OSError):
        return ()


def _unchanged(name: str, documents: Sequence[Document], pipeline: Pipeline) -> bool:
    """Whether what later stages left belongs to these documents.

    `parse` says so where it has run in this folder; before that, a clone with restored outputs has
    dvc.lock alone, which has the digest of the files that were parsed.
    """
    report = layout.stage("parse", name) / "report.json"
    if not report.exists():
        return name in pipeline.same_data
    try:
        kept = layout.read_report(report)
        known = kept["study"]["digests"]["documents"]
    except (InputError, json.JSONDecodeError, KeyError, TypeError):
        return False
    columns = ["doc_id", "title", "body_sha256", "raw_sha256"]
    return bool(digest(document_tables(documents)["documents"].select(columns)) == known)


def _asked(
    params: Params, seen: Seen, own: list[dict[str, Any]]
) -> tuple[Sequence[Mapping[str, Any]] | None, list[Finding]]:
    """The questions of the study, and what is wrong with them."""
    from spanwise.writing import asking

    place, source = f"questions {seen.name}", seen.settings.questions
    folder = layout.stage("ask", seen.name)
    if source is None:
        if own:
            return own, []
        return own, [Finding(
            place, PROBLEM, f"{seen.settings.path} brings none, so nothing can be compared",
            f"add questions to the folder (docs/own-corpus.md), or `questions: written` to corpora."
            f"{seen.name} in params.yaml",
        )]
    parsed = asking.Parsed(seen.name, _as_table(own), seen.documents, {})
    try:
        asking.require_none(parsed, params)
        if source != "written":
            made = asking.authored(parsed, Path(source), params.writing)
            return made.questions.to_pylist(), []
    except (SpanwiseError, OSError) as error:
        return None, [Finding(place, PROBLEM, str(error), f"mend corpora.{seen.name}.questions or "
                              "the file; then `spanwise doctor` again")]
    if seen.unchanged and (folder / "questions.parquet").exists():
        try:
            return load_questions(folder).to_pylist(), []
        except SpanwiseError as error:
            return None, [Finding(place, PROBLEM, str(error), f"dvc repro ask@{seen.name}")]
    return None, [Finding(place, NOTE, "they are to be written by the language model",
                          f"dvc repro parse@{seen.name} ask@{seen.name}")]


def _as_table(rows: list[dict[str, Any]]) -> Any:
    from spanwise import schemas

    return schemas.table(schemas.QUESTIONS, rows)


def _same(place: str, documents: Sequence[Document]) -> list[Finding]:
    """Documents that are the same text under several names."""
    from spanwise.corpora.folder import same_texts

    groups = same_texts(documents)
    if not groups:
        return []
    listed = [" = ".join([first, *others]) for first, others in groups.items()]
    more = f" and {len(listed) - _NAMED} more" if len(listed) > _NAMED else ""
    return [Finding(
        place, NOTE, f"documents of the same text: {'; '.join(listed[:_NAMED])}{more}. A copy "
        "takes ranks and never counts as evidence, so every condition scores lower",
        "delete the copies, or list them in manifest.yaml with `permitted: false`",
    )]


def _size(params: Params, seen: Seen) -> list[Finding]:
    """What so many documents and questions can show."""
    from spanwise.statistics.linearised import FEW
    from spanwise.statistics.power import ALPHA, POWER, difference, fewest

    if seen.questions is None:
        return []
    place, primary = f"size {seen.name}", seen.primary
    documents, family = len({q["doc_id"] for q in primary}), len(params.contrasts)
    if not primary:
        return [] if not seen.questions else [Finding(
            place, PROBLEM, "no question is answerable and no rewording, so nothing is compared",
            "write questions with evidence",
        )]
    if documents == 1:
        return [Finding(place, NOTE, f"all {len(primary)} questions are about one document: there "
                        "is no interval and no p", "ask about more documents")]
    found = []
    needed = next(g for g in range(1, 64) if 2 / 2**g <= ALPHA / family)
    if documents < needed:
        found.append(Finding(
            place, NOTE, f"{documents} documents with questions: by sign flips p is at least "
            f"{2 / 2**documents:.2g}, and Holm's first step over {family} contrasts "
            f"({ALPHA / family:.2g}) is out of reach below {needed}", "ask about more documents",
        ))
    if documents < FEW:
        found.append(Finding(
            place, NOTE, f"{documents} documents with questions, fewer than {FEW}: the interval of "
            "record is Student's, wider than resampling would give", "ask about more documents",
        ))
    each, margin, alpha = len(primary) / documents, params.inference.margin, ALPHA / family

    def power_of(size: int) -> float:
        return difference(margin, _SD / (size * each) ** 0.5, size - 1, alpha)

    wanted, now = fewest(power_of), power_of(documents)
    status = OK if now >= POWER else NOTE
    takes = "more than can be asked" if wanted is None else (
        f"about {_round(wanted * each)} questions about {_round(wanted)} documents"
    )
    found.append(Finding(
        place, status, f"if two conditions differ by the margin (±{margin:g}), {len(primary)} "
        f"questions about {documents} documents find it with probability {now:.2f}; a probability "
        f"of {POWER:g} takes {takes} (if a question's differences have the standard deviation "
        f"{_SD} and those of one document are independent: a guess until the report)",
        "" if status == OK else "ask more, or expect the verdict `underpowered` unless the "
        "difference is far larger than the margin",
    ))
    return found


def _round(number: float) -> int:
    """To two digits: an estimate."""
    places = max(0, len(str(int(number))) - 2)
    return int(round(number, -places))


def registered(params: Params, seen: Seen) -> list[Finding]:
    """Whether what runs on a corpus is what was registered."""
    from spanwise.registration import standing
    from spanwise.registration.door import digests_of, documents_of
    from spanwise.registration.named import ran_already

    place = f"registration {seen.name}"
    try:
        digests, documents = digests_of(seen.name), documents_of(seen.name)
    except (InputError, json.JSONDecodeError, KeyError, TypeError):
        return [Finding(place, OK, "what is set up is held against what was registered once "
                        "`parse` and `ask` have run: `dvc repro parse ask`, then `spanwise "
                        "register check`")]
    try:
        found = standing(params, seen.name, digests, documents=documents)
    except RegistrationError as error:
        return [Finding(place, PROBLEM, str(error), "git checkout registration.json")]
    if not found.differences:
        return [Finding(place, OK, "what is set up is what was registered: confirmatory in the "
                        "primary cell; `spanwise register check` asks git for the order")]
    if found.parent_commit is None:
        embedder = params.primary.embedder
        try:
            late = ran_already(seen.name, digests, embedder) is not None
        except RegistrationError as error:
            return [Finding(place, NOTE, str(error), "")]
        return [Finding(
            place, NOTE, f"{found.differences[0]}: results are exploratory" + (
                f", and stay so, for {embedder} has run" if late else ""
            ),
            "" if late else f"before {embedder} runs: spanwise register, and commit "
            "registration.json",
        )]
    rest = len(found.differences) - 1
    return [Finding(
        place, NOTE,
        f"exploratory: {found.differences[0]}" + (f"; and {rest} more" if rest else ""),
        "spanwise register check",
    )]
