"""BEIR's form: `corpus.jsonl`, `queries.jsonl` and `qrels/*.tsv`; a relevant document is evidence.

source: Thakur et al., 2021, "BEIR: A Heterogeneous Benchmark for Zero-shot Evaluation of
        Information Retrieval Models". Judgements are of documents, so the evidence of a question is
        all of a document's text; each relevant document is a bundle of its own, enough by itself.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from spanwise.corpora.text import paragraph_spans
from spanwise.documents.model import Builder, Corpus, Document, Question, document_id
from spanwise.errors import CorpusError, ParamsError, QuestionError
from spanwise.spans import Evidence
from spanwise.text.decoding import read_text
from spanwise.text.lists import Item, read_list

_UNJUDGED = "unjudged"


def read(path: Path, *, options: Mapping[str, Any], split: str = "study") -> Corpus:
    """Read the set.

    path:    the folder.
    options: `qrels`, the judgements that count [test, if there; else the only file of qrels/].
    returns: documents by `_id`, paragraphs between blank lines; evidence on body. Queries without
             a relevant document of the corpus are excluded as `unjudged`, where the judgements
             name them at all; those that they do not name are counted and left out.
    raises:  CorpusError, QuestionError with file and line for what is missing, twice or no such
             object; ParamsError for another option.
    """
    if unknown := set(options) - {"qrels"}:
        raise ParamsError(f"options {sorted(unknown)}: the beir reader knows `qrels`")
    if split != "study":
        raise CorpusError(f"{path}: a BEIR set has no {split} split, only study")
    for name in ("corpus.jsonl", "queries.jsonl"):
        if not (path / name).is_file():
            raise CorpusError(f"{path / name}: not there; expected corpus.jsonl, queries.jsonl and "
                              "qrels/*.tsv")
    counts: Counter[str] = Counter()
    documents = _documents(path / "corpus.jsonl", counts)
    judged = _judgements(_qrels(path, options.get("qrels")))
    questions = _questions(path / "queries.jsonl", judged, documents, counts)
    return Corpus(
        tuple(documents[name] for name in sorted(documents)),
        tuple(sorted(questions, key=lambda question: question.question_id)), "body",
        {"documents": len(documents), "questions": len(questions), **counts},
    )


def _documents(path: Path, counts: Counter[str]) -> dict[str, Document]:
    found: dict[str, Document] = {}
    seen: set[str] = set()
    for item in read_list(path, path.name, CorpusError):
        doc_id = document_id(_word(item, "_id", CorpusError))
        if doc_id in seen:
            raise CorpusError(f"{item.where}: _id {doc_id!r} stands twice; keep one")
        seen.add(doc_id)
        title = item.fields.get("title") or ""
        text = item.fields.get("text")
        if not isinstance(text, str) or not isinstance(title, str):
            raise CorpusError(f"{item.where}: `text` and `title` are to be text")
        text = text.replace("\r\n", "\n").replace("\r", "\n").replace("\x00", " ")
        builder = Builder(doc_id, " ".join(title.split()) or doc_id)
        for span in paragraph_spans(text):
            builder.paragraph(text[span.start : span.end])
        if builder.empty:
            counts["documents left out: no text"] += 1
        else:
            found[doc_id] = builder.build(source=path.parent.name)
    if not found:
        raise CorpusError(f"{path}: no document with text in it")
    return found


def _qrels(path: Path, named: object) -> Path:
    there = sorted((path / "qrels").glob("*.tsv"))
    names = [file.stem for file in there]
    wanted = named if named is not None else "test" if "test" in names or len(names) != 1 else (
        names[0])
    if wanted not in names:
        raise CorpusError(
            f"{path / 'qrels'}: no {wanted}.tsv among {', '.join(names) or 'none'}; name one with "
            "the option `qrels`"
        )
    return path / "qrels" / f"{wanted}.tsv"


def _judgements(path: Path) -> dict[str, list[tuple[int, str]]]:
    """Relevant documents by query, the most relevant first, then by id."""
    lines = read_text(path).text.split("\n")
    found: dict[str, list[tuple[int, str]]] = {}
    if lines[0].split("\t")[:3] != ["query-id", "corpus-id", "score"]:
        raise QuestionError(
            f"{path}: line 1: expected the columns query-id, corpus-id, score, parted by tabs, "
            f"found {lines[0][:80]!r}"
        )
    for number, line in enumerate(lines[1:], 2):
        if not line.strip():
            continue
        fields = line.split("\t")
        if len(fields) != 3 or not fields[2].strip().lstrip("-").isdigit():
            raise QuestionError(
                f"{path}: line {number}: {line[:80]!r}, expected query-id, corpus-id and a whole "
                "score, parted by tabs"
            )
        relevant = found.setdefault(fields[0], [])
        doc_id, score = document_id(fields[1]), int(fields[2])
        if doc_id in (name for _, name in relevant):
            raise QuestionError(f"{path}: line {number}: the pair stands twice; keep one")
        if score > 0:
            relevant.append((score, doc_id))
    return {name: sorted(rows, key=lambda row: (-row[0], row[1])) for name, rows in found.items()}


def _questions(
    path: Path, judged: Mapping[str, list[tuple[int, str]]], documents: Mapping[str, Document],
    counts: Counter[str],
) -> list[Question]:
    questions: dict[str, Question] = {}
    first = min(documents)
    for item in read_list(path, path.name, QuestionError):
        name, text = _word(item, "_id", QuestionError), _word(item, "text", QuestionError)
        if name not in judged:
            counts["questions left out: no judgement"] += 1
            continue
        question_id = document_id(name)
        if question_id in questions:
            raise QuestionError(f"{item.where}: _id {name!r} stands twice; keep one")
        relevant = [doc_id for _, doc_id in judged[name] if doc_id in documents]
        counts["judged documents that are not there"] += len(judged[name]) - len(relevant)
        evidence = tuple(Evidence(doc_id, 0, len(documents[doc_id].body)) for doc_id in relevant)
        questions[question_id] = Question(
            question_id, relevant[0] if relevant else first, " ".join(text.split()), "untyped",
            evidence, tuple((i,) for i in range(len(evidence))),
            excluded=None if evidence else _UNJUDGED,
        )
    if not questions:
        raise QuestionError(f"{path}: the judgements name none of its queries")
    for name in [name for name, count in counts.items() if not count]:
        del counts[name]
    return list(questions.values())


def _word(item: Item, key: str, error: type[CorpusError] | type[QuestionError]) -> str:
    value = item.fields.get(key)
    if isinstance(value, int) and not isinstance(value, bool):
        value = str(value)
    if not isinstance(value, str) or not value.strip():
        raise error(f"{item.where}: `{key}` is {value!r}, expected text")
    return value
