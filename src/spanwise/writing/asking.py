"""One corpus's questions, whoever wrote them: its own, a language model's, or a question file's.

Written questions pass both rounds of the filter and are balanced by type; the funnel, the ROUGE-L
of what ships and where the questions come from stand in the report beside them.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pyarrow as pa

from spanwise import layout, schemas
from spanwise.documents.model import Corpus, Document, Question
from spanwise.documents.records import digest, load_documents, load_questions, question_table
from spanwise.errors import ParamsError, QuestionError
from spanwise.llm.model import Ask
from spanwise.params import Params, WritingSettings
from spanwise.spans import Evidence
from spanwise.structure.model import Tree
from spanwise.structure.records import load_trees
from spanwise.writing.balance import balance
from spanwise.writing.funnel import Record, report
from spanwise.writing.leakage import Limits
from spanwise.writing.rounds import write
from spanwise.writing.sampling import Sampled, SampleSettings, on_raw, sample
from spanwise.writing.worksheet import Sheet, read_sheet

HARVESTED = frozenset({"qasper"})
"""Readers whose questions came with quoted evidence that was found again in the text."""

_NO_SPAN = (
    "no document has a span to ask about; expected running prose in paragraphs of whole sentences, "
    "with spaces between the words (scripts without them yield no spans)"
)

_MENDS = {
    "written": "ask another language model, or let people write: `spanwise ask {0} --worksheet F`",
    "authored": "what is wrong with each wording is told by `spanwise ask {0} --worksheet {1}`",
}
"""What to do where no question passed, by origin."""


@dataclass(frozen=True, slots=True)
class Parsed:
    """What `parse` left of one corpus's study split.

    own:   the QUESTIONS table that its format brought, without a row where it brought none.
    trees: native ones, by document id.
    """

    name: str
    own: pa.Table
    documents: Sequence[Document]
    trees: Mapping[str, Tree]


@dataclass(frozen=True, slots=True)
class Asked:
    """A corpus's questions: the QUESTIONS table and the report that the stage leaves beside it."""

    questions: pa.Table
    report: Mapping[str, Any]


def parsed(name: str) -> Parsed:
    """Read what `parse` left.

    raises: InputError if it has not run.
    """
    folder = layout.parse(name)
    return Parsed(
        name, load_questions(folder), load_documents(folder),
        load_trees(folder / "sections.parquet"),
    )


def ask(found: Parsed, params: Params, folder: Path) -> Asked:
    """The questions that params.yaml calls for.

    folder: keeps the language model's answers, so that the same question is never put to it twice;
            they go where none is asked.
    raises: ParamsError if the corpus has questions of its own and others are called for, or if the
            question file is not there; QuestionError if the file contradicts the corpus, or if no
            question passed; Unavailable if the language model cannot be reached.
    """
    from spanwise.llm.cache import answering, forget
    from spanwise.llm.client import settings_of

    corpus = params.corpus(found.name)
    if corpus.questions is not None:
        require_none(found, params)
    if corpus.questions != "written":
        made = without_model(found, params)
        forget(folder)  # not before: a mistaken setting that is refused costs no answer
        return made
    with answering(settings_of(params), folder) as answers:
        made = written(found, params.writing, answers.ask)
        return replace(made, report={**made.report, "language model": answers.report()})


def make(name: str, params: Params, quiet: bool = False) -> Asked:
    """Ask for a corpus's questions and leave them, with their report, where the next stages look.

    quiet:  the report is not printed.
    raises: as `parsed` and `ask`.
    """
    folder = layout.stage("ask", name)
    about = layout.read_report(layout.stage("parse", name) / "report.json")
    made = ask(parsed(name), params, folder)
    # By this later readers notice that `parse` has left other documents since.
    digests = {**made.report["digests"], "documents": about["study"]["digests"]["documents"]}
    made = replace(made, report={**made.report, "digests": digests})
    schemas.write(folder / "questions.parquet", schemas.QUESTIONS, made.questions)
    layout.write_report(folder / "report.json", made.report, quiet=quiet)
    return made


def without_model(found: Parsed, params: Params) -> Asked:
    """The questions that the corpus brings, or those of its question file; nothing is written.

    raises: as `authored`.
    """
    corpus = params.corpus(found.name)
    if corpus.questions is not None:
        return authored(found, Path(corpus.questions), params.writing)
    given = "harvested" if corpus.reader in HARVESTED else "given"
    return _asked(given if found.own.num_rows else "none", found.own, {})


def require_none(found: Parsed, params: Params) -> None:
    """Refuse a corpus that has questions of its own.

    raises: ParamsError that names both sources.
    """
    corpus = params.corpus(found.name)
    if not found.own.num_rows:
        return
    brings = f"corpora.{found.name}: {corpus.path} brings {found.own.num_rows} questions of its own"
    if corpus.questions is None:
        raise ParamsError(f"{brings}, expected none where questions are to be written; enter its "
                          "documents without them as another corpus")
    raise ParamsError(
        f"{brings}, and `questions: {corpus.questions}` asks for others; a corpus has one source "
        "of questions: take that line out of params.yaml, or the questions out of the corpus"
    )


def drawn(found: Parsed, settings: WritingSettings) -> Sampled:
    """The spans that questions are to be written for, one at least.

    raises: QuestionError if no document has any.
    """
    spans = sample(found.documents, found.trees, SampleSettings(settings.per_type, settings.seed))
    if not spans.samples:
        raise QuestionError(f"corpus {found.name}: {_NO_SPAN}")
    return spans


def written(found: Parsed, settings: WritingSettings, ask: Ask) -> Asked:
    """Have a language model write the questions.

    raises: QuestionError if no span can be drawn or no question passed.
    """
    spans = drawn(found, settings)
    records = write(spans.samples, ask, limits(settings))
    about = {"could not be drawn": dict(spans.missing)}
    return _of_records("written", found, records, settings, None, about)


def authored(found: Parsed, path: Path, settings: WritingSettings) -> Asked:
    """Take the questions of a question file.

    raises: ParamsError if there is no such file; QuestionError if it contradicts the corpus or no
            question passed.
    """
    if not path.is_file():
        raise ParamsError(
            f"corpora.{found.name}.questions: {path} is not there; make it with `spanwise ask "
            f"{found.name} --worksheet FILE.yaml`, or correct the name"
        )
    sheet = read_sheet(path, found.documents)
    about = {
        "question file": {
            "name": path.as_posix(), "corpus": sheet.source.corpus, "source": sheet.source.name,
            "source_sha256": sheet.source.sha256,
        },
        "left out: about documents that are not in the corpus": sum(sheet.left_out.values()),
    }
    records = sheet.records(limits(settings))
    return _of_records("authored", found, records, settings, sheet, about)


def limits(settings: WritingSettings) -> Limits:
    """The filter's limits as params.yaml has them."""
    return Limits(settings.rouge_l, settings.ngram)


def judged(
    records: Sequence[Record], settings: WritingSettings, sheet: Sheet | None
) -> tuple[list[Record], dict[str, Any]]:
    """The records that become questions, and the funnel with the ROUGE-L of what ships.

    sheet: where the records come from, which knows of samples that nobody filled in.
    """
    finals = balance(records, settings.cap, settings.seed)
    ids = {record.sample.sample_id for record in finals}
    return finals, report(records, ids, None if sheet is None else sheet.totals())


def _of_records(
    origin: str, found: Parsed, records: Sequence[Record], settings: WritingSettings,
    sheet: Sheet | None, about: Mapping[str, Any],
) -> Asked:
    finals, told = judged(records, settings, sheet)
    if not finals:
        ends = Counter(record.outcome for record in records)
        how = ", ".join(f"{end}: {n}" for end, n in sorted(ends.items())) or "none was drawn"
        mend = _MENDS[origin].format(found.name, about.get("question file", {}).get("name"))
        raise QuestionError(
            f"corpus {found.name}: none of {told['funnel']['sampled']['all']} samples became a "
            f"question ({how}); {mend}"
        )
    questions = [record.as_question() for record in finals]
    return _asked(origin, _table(found.documents, questions), {**about, **told})


def _asked(origin: str, questions: pa.Table, about: Mapping[str, Any]) -> Asked:
    types = Counter(questions["type"].to_pylist())
    return Asked(questions, {
        "origin": origin, "questions": questions.num_rows,
        "questions by type": dict(sorted(types.items())),
        "digests": {"questions": digest(questions)}, **about,
    })


def _table(documents: Sequence[Document], questions: Sequence[Question]) -> pa.Table:
    """Their table: evidence on body, and on raw as well where every paragraph stands in a file."""
    if any(p.raw is None for document in documents for p in document.paragraphs):
        return question_table(Corpus(tuple(documents), tuple(questions), "body"))[0]
    known = {document.doc_id: document for document in documents}
    moved = [
        replace(question, evidence=tuple(
            Evidence(e.doc_id, (span := on_raw(known[e.doc_id], e.span)).start, span.end)
            for e in question.evidence
        ))
        for question in questions
    ]
    return question_table(Corpus(tuple(documents), tuple(moved), "raw"))[0]
