"""QASPER's official JSON: papers with their own section trees, and real readers' questions.

source: Dasigi et al., 2021, "A Dataset of Information-Seeking Questions and Answers Anchored in
        Research Papers". A file is an object of papers by id, each with `title`, `abstract`,
        `full_text` (sections named by ` ::: ` trails) and `qas`.

Decisions:
- The abstract is a preamble, before any heading. It is a field of the file and no entry of the
  paper's section list; a heading `Abstract` would be a section that no author wrote.
- A trail's parent without an entry of its own becomes a heading once, before its first child. An
  empty part of a trail closes up; a section without any name continues the section before it.
- A paragraph is kept as it stands but for white space at its ends; line breaks inside it stay.
- A question's type is that of most of its answerable annotators, on a tie the first one's; an
  answer without spans, text or yes/no has no type, and a question with only such is `unknown`.
- "Numeric-only" questions are read as those whose only evidence is tables or figures.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from spanwise.documents.model import Builder, Corpus, Document, Question, document_id
from spanwise.errors import CorpusError, ParamsError, QuestionError
from spanwise.questions.harvest import Matcher
from spanwise.spans import Evidence

FLOAT = "FLOAT SELECTED"
"""What an evidence item starts with when it is a table's or a figure's caption."""

_FUNNEL = {
    "unanswerable": "unanswerable by all annotators",
    "no-evidence": "no evidence",
    "tables-or-figures": "evidence only in tables or figures",
    "unmatched": "no text evidence found in the paper",
}
_COUNTS = (
    "papers", "papers without text", "paragraphs without text", "sections without a name",
    "parents repeated as headings", "questions", "questions of papers without text",
    *_FUNNEL.values(), "kept",
    "evidence items", "evidence items: tables or figures", "evidence items: exact",
    "evidence items: fuzzy", "evidence items: section", "evidence items: unmatched",
    "evidence items: first of several places", "bundles",
    "bundles that also cite tables or figures", "bundles short of an unmatched item",
)


def read(
    path: Path, *, options: Mapping[str, int | float | str | bool], split: str = "study"
) -> Corpus:
    """Read one QASPER file, or all .json files of a folder as one corpus.

    options: there are none.
    split:   `study`; the format has no other.
    returns: documents by paper id; evidence in `body`; every question. Those that leave the
             ablation have no evidence and `excluded` = unanswerable, no-evidence, tables-or-figures
             or unmatched. Each answerable annotator whose text evidence was found is one bundle.
    raises:  CorpusError for what is not QASPER and for a paper id that occurs twice, QuestionError
             for a question id that does (each names file, paper, key); ParamsError for an option.
    """
    if options:
        raise ParamsError(f"options {sorted(options)}: the qasper reader knows none")
    if split != "study":
        raise CorpusError(f"{path}: QASPER has no {split} split, only study")
    counts: Counter[str] = Counter(dict.fromkeys(_COUNTS, 0))
    documents: dict[str, Document] = {}
    questions: dict[str, Question] = {}
    papers: dict[str, Path] = {}
    for file in _files(path):
        for paper_id, paper in _load(file).items():
            where = f"{file}: paper {paper_id}"
            if paper_id in papers:
                raise CorpusError(
                    f"{where}: it stands in {papers[paper_id]} as well; keep one of the two"
                )
            papers[paper_id] = file
            counts["papers"] += 1
            document = _document(paper_id, _typed(paper, dict, where), where, file.name, counts)
            asked = _list(paper, "qas", where)
            if document is None:
                counts["papers without text"] += 1
                counts["questions"] += len(asked)
                counts["questions of papers without text"] += len(asked)
                continue
            documents[document.doc_id] = document
            matcher = Matcher(document)
            for i, qa in enumerate(asked):
                at = f"{where}: qas[{i}]"
                question = _question(document.doc_id, _typed(qa, dict, at), at, matcher, counts)
                if question.question_id in questions:
                    other = questions[question.question_id].doc_id
                    raise QuestionError(
                        f"{at}: question_id {question.question_id!r} occurs twice, first in "
                        f"{other}; ids must be unique"
                    )
                questions[question.question_id] = question
    if not documents:
        raise CorpusError(f"{path}: no paper with text in it; expected QASPER's official JSON")
    return Corpus(
        tuple(documents[key] for key in sorted(documents)),
        tuple(questions[key] for key in sorted(questions)),
        "body",
        dict(counts),
    )


def _files(path: Path) -> list[Path]:
    if path.is_file():
        return [path]
    files = sorted(path.glob("*.json"))
    if not files:
        raise CorpusError(f"{path}: expected a .json file or a folder of them, found none")
    return files


def _load(file: Path) -> dict[str, Any]:
    def once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        result = dict(pairs)
        if len(result) < len(pairs):
            twice = next(key for key, n in Counter(key for key, _ in pairs).items() if n > 1)
            raise CorpusError(f"{file}: the key {twice!r} occurs twice in one object; keep one")
        return result

    try:
        data = json.loads(file.read_bytes().decode("utf-8-sig"), object_pairs_hook=once)
    except UnicodeDecodeError as error:
        raise CorpusError(f"{file}: byte {error.start} is not UTF-8; save it as UTF-8") from error
    except json.JSONDecodeError as error:
        raise CorpusError(
            f"{file}: line {error.lineno}, column {error.colno}: not JSON ({error.msg})"
        ) from error
    except RecursionError as error:
        raise CorpusError(f"{file}: nested too deeply to be QASPER's JSON") from error
    papers: dict[str, Any] = _typed(data, dict, str(file))
    if not papers:
        raise CorpusError(f"{file}: an empty object; expected papers by id")
    return papers


def _typed(value: Any, kind: type, where: str) -> Any:
    if not isinstance(value, kind):
        raise CorpusError(
            f"{where}: expected {_NAMES[kind]}, found {_NAMES.get(type(value), 'null')}; "
            "is this QASPER's official JSON?"
        )
    return value


_NAMES: dict[type, str] = {
    dict: "an object", list: "a list", str: "a string", bool: "true or false",
    int: "a number", float: "a number",
}


def _get(obj: Mapping[str, Any], key: str, where: str) -> Any:
    if key not in obj:
        raise CorpusError(
            f"{where}: no {key!r} among its keys {sorted(obj)}; is this QASPER's official JSON?"
        )
    return obj[key]


def _list(obj: Mapping[str, Any], key: str, where: str) -> list[Any]:
    return list(_typed(_get(obj, key, where), list, f"{where}: {key}"))


def _text(value: Any, where: str) -> str:
    """A string or null as clean text: LF, no NUL, nothing that UTF-8 cannot hold."""
    if value is None:
        return ""
    text = str(_typed(value, str, where)).replace("\r\n", "\n").replace("\r", "\n")
    bad = re.search("[\0\ud800-\udfff]", text)
    if bad is not None:
        raise CorpusError(
            f"{where}: character {bad.start()} is U+{ord(bad.group()):04X}, which is no text; "
            "remove it"
        )
    return text.strip()


def _document(
    paper_id: str, paper: dict[str, Any], where: str, source: str, counts: Counter[str]
) -> Document | None:
    """The paper as a document, or None if it holds no text at all."""
    if not paper_id.strip():
        raise CorpusError(f"{where}: an empty paper id")
    title = _text(_get(paper, "title", where), f"{where}: title")
    builder = Builder(document_id(paper_id), " ".join(title.split()) or paper_id)
    abstract = _text(_get(paper, "abstract", where), f"{where}: abstract")
    if abstract:
        builder.paragraph(abstract)
    opened: tuple[str, ...] = ()
    for i, value in enumerate(_list(paper, "full_text", where)):
        at = f"{where}: full_text[{i}]"
        section = _typed(value, dict, at)
        name = _text(_get(section, "section_name", at), f"{at}: section_name")
        opened = _headings(builder, name, opened, counts)
        for j, item in enumerate(_list(section, "paragraphs", at)):
            text = _text(item, f"{at}: paragraphs[{j}]")
            if text:
                builder.paragraph(text)
            else:
                counts["paragraphs without text"] += 1
    return None if builder.empty else builder.build(source=source)


def _headings(
    builder: Builder, name: str, opened: tuple[str, ...], counts: Counter[str]
) -> tuple[str, ...]:
    """Emit the headings that a section's trail opens; return the trail that is open afterwards."""
    parts = [" ".join(part.split()) for part in name.split(":::")]
    trail = tuple(part for part in parts if part)
    if not trail:
        counts["sections without a name"] += 1
        return opened
    if not parts[-1]:
        counts["sections without a name"] += 1
        if trail == opened:  # an unnamed part of what is open already
            return opened
    shared = 0
    while shared < len(trail) - 1 and trail[: shared + 1] == opened[: shared + 1]:
        shared += 1
    for level in range(shared, len(trail)):
        builder.heading(level + 1, trail[level])
    counts["parents repeated as headings"] += len(trail) - 1 - shared
    return trail


@dataclass(frozen=True, slots=True)
class _Answer:
    """One annotator: whether they could answer, in which form, and their evidence items."""

    answerable: bool
    type: str | None
    texts: tuple[str, ...]
    floats: int


def _answers(qa: Mapping[str, Any], where: str) -> Iterator[_Answer]:
    for i, item in enumerate(_list(qa, "answers", where)):
        at = f"{where}: answers[{i}]"
        answer = _typed(_get(_typed(item, dict, at), "answer", at), dict, at)
        items = [
            _text(e, f"{at}: evidence[{j}]") for j, e in enumerate(_list(answer, "evidence", at))
        ]
        texts = tuple(e for e in items if e and not e.startswith(FLOAT))
        floats = sum(e.startswith(FLOAT) for e in items)
        unanswerable = bool(_typed(_get(answer, "unanswerable", at), bool, f"{at}: unanswerable"))
        yield _Answer(not unanswerable, _answer_type(answer, at), texts, floats)


def _answer_type(answer: Mapping[str, Any], where: str) -> str | None:
    """The form of one answer, judged in the order of the official evaluator."""
    if _list(answer, "extractive_spans", where):
        return "extractive"
    if _text(_get(answer, "free_form_answer", where), f"{where}: free_form_answer"):
        return "abstractive"
    yes_no = _get(answer, "yes_no", where)
    if yes_no is None:
        return None
    _typed(yes_no, bool, f"{where}: yes_no")
    return "boolean"


def _question(
    doc_id: str, qa: Mapping[str, Any], where: str, matcher: Matcher, counts: Counter[str]
) -> Question:
    question_id = _text(_get(qa, "question_id", where), f"{where}: question_id")
    text = " ".join(_text(_get(qa, "question", where), f"{where}: question").split())
    if not question_id or not text or re.search(r"\s", question_id):
        raise QuestionError(
            f"{where}: question_id {question_id!r}, question {text!r}: neither may be empty, and "
            "ids hold no white space"
        )
    counts["questions"] += 1
    answers = list(_answers(qa, where))
    able = [answer for answer in answers if answer.answerable]
    types = Counter(answer.type for answer in able if answer.type)
    kind = types.most_common(1)[0][0] if types else "unknown"  # ties: the first one met
    evidence, bundles = _harvest(doc_id, able, matcher, counts)
    excluded = None
    if answers and not able:
        excluded, kind = "unanswerable", "unanswerable"
    elif not any(answer.texts or answer.floats for answer in able):
        excluded = "no-evidence"
    elif not any(answer.texts for answer in able):
        excluded = "tables-or-figures"
    elif not evidence:
        excluded = "unmatched"
    counts["kept" if excluded is None else _FUNNEL[excluded]] += 1
    return Question(question_id, doc_id, text, kind, evidence, bundles, None, excluded)


def _harvest(
    doc_id: str, able: list[_Answer], matcher: Matcher, counts: Counter[str]
) -> tuple[tuple[Evidence, ...], tuple[tuple[int, ...], ...]]:
    """All found evidence, without repeats, in order of the paper, and each annotator's bundle."""
    found: list[list[Evidence]] = []
    for answer in able:
        counts["evidence items"] += len(answer.texts) + answer.floats
        counts["evidence items: tables or figures"] += answer.floats
        spans: list[Evidence] = []
        for item in answer.texts:
            match = matcher.match(item)
            counts[f"evidence items: {match.how if match else 'unmatched'}"] += 1
            if match is not None:
                counts["evidence items: first of several places"] += match.ambiguous
                spans.append(Evidence(doc_id, match.span.start, match.span.end))
        if spans:
            found.append(spans)
            counts["bundles"] += 1
            counts["bundles that also cite tables or figures"] += bool(answer.floats)
            counts["bundles short of an unmatched item"] += len(spans) < len(answer.texts)
    evidence = tuple(sorted({span for spans in found for span in spans}))
    index = {span: i for i, span in enumerate(evidence)}
    bundles = dict.fromkeys(tuple(sorted({index[s] for s in spans})) for spans in found)
    return evidence, tuple(bundles)
