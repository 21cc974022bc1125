"""Questions for samples, by a model or by people, through the same two rounds of the filter.

A first wording is held against the gold spans, then paraphrased by a second call that never sees
them; the paraphrase is what ships, and it must pass again. A question is rejected too if it is
`underspecified` and yet names what it should hint at, or if another question has the same words.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from spanwise.llm.model import Answer, Ask, Request
from spanwise.writing.funnel import Outcome, Record
from spanwise.writing.leakage import Limits, Verdict, judge
from spanwise.writing.prompts import (
    paraphrase_request,
    problem_of,
    question_request,
    read_answer,
    tidy,
)
from spanwise.writing.sampling import Sample
from spanwise.writing.words import named, names, title_names, words

ATTEMPTS = 2
"""How often a wording is asked for: an answer of no use is shown to the model once."""

_AGAIN: Mapping[str, Outcome] = {
    "rouge-l": "rouge-l again", "4-gram": "4-gram again", "named": "named again",
}


def write(
    samples: Sequence[Sample], ask: Ask, limits: Limits | None = None, attempts: int = ATTEMPTS
) -> list[Record]:
    """Have a model write a question for every sample.

    ask:      answers requests in their order.
    attempts: >= 1 wordings asked for, as long as answers are of no use.
    returns:  one record for each sample, in their order; a request without an answer, a malformed
              answer and a rejected question are records too.
    raises:   ValueError if two samples are the same, or if an answer is lacking.
    """
    limits = limits or Limits()
    _check_ids(samples)
    texts = _asked(
        samples, ask, attempts, lambda s, problem: question_request(s, problem),
        lambda s, answer: read_answer(answer, s),
    )
    records = [
        _first(sample, *text, limits) for sample, text in zip(samples, texts, strict=True)
    ]
    passed = [record for record in records if record.outcome == "survived"]
    questions = {record.sample.sample_id: record.question for record in passed}
    texts = _asked(
        [record.sample for record in passed], ask, attempts,
        lambda s, problem: paraphrase_request(s, questions[s.sample_id], problem),
        lambda s, answer: read_answer(answer, s, questions[s.sample_id]),
    )
    done = {
        record.sample.sample_id: _second(record, *text, limits)
        for record, text in zip(passed, texts, strict=True)
    }
    return _distinct([done.get(record.sample.sample_id, record) for record in records])


def collect(
    entries: Sequence[tuple[Sample, str, str]], limits: Limits | None = None
) -> list[Record]:
    """Take (sample, question, paraphrase) from people, "" where one is not filled in.

    returns: one record for each entry, in their order.
    raises:  ValueError if two samples are the same.
    """
    limits = limits or Limits()
    _check_ids([sample for sample, _, _ in entries])
    records = []
    for sample, question, paraphrase in entries:
        record = _first(sample, *_read(question, sample, "not filled in"), limits)
        if record.survived:
            text = _read(paraphrase, sample, "no paraphrase is filled in", record.question)
            record = _second(record, *text, limits)
        records.append(record)
    return _distinct(records)


def _read(
    text: str, sample: Sample, missing: str, question: str | None = None
) -> tuple[str, str, bool]:
    text = tidy(text)
    if not text:
        return "", missing, False
    problem = problem_of(text, sample, question)
    return ("", problem, True) if problem else (text, "", True)


def _asked(
    samples: Sequence[Sample], ask: Ask, attempts: int,
    request: Callable[[Sample, str | None], Request],
    read: Callable[[Sample, Answer], tuple[str, str]],
) -> list[tuple[str, str, bool]]:
    """(text, problem, answered) for each sample; one of text and problem is empty."""
    found: list[tuple[str, str, bool]] = [("", "", False)] * len(samples)
    waiting = list(range(len(samples)))
    for _ in range(attempts):
        if not waiting:
            break
        requests = [request(samples[i], found[i][1] or None) for i in waiting]
        answers = ask(requests)
        if len(answers) != len(requests):
            raise ValueError(f"{len(requests)} requests, but {len(answers)} answers")
        for i, answer in zip(waiting, answers, strict=True):
            if answer.error is not None:  # the client has retried: asking once more is of no use
                # What an earlier attempt said stays an answer, of no use as it was.
                found[i] = found[i] if found[i][2] else ("", "no answer", False)
            else:
                found[i] = (*read(samples[i], answer), True)
        waiting = [
            i for i, answer in zip(waiting, answers, strict=True)
            if found[i][1] and answer.error is None
        ]
    return found


def _first(
    sample: Sample, text: str, problem: str, answered: bool, limits: Limits
) -> Record:
    """The first round; `survived` means that a paraphrase may be asked for."""
    if problem:
        outcome: Outcome = "malformed" if answered else "unanswered"
        return Record(sample, "", "", None, None, outcome, problem)
    verdict, outcome, detail = _judged(sample, text, limits)
    return Record(sample, text, "", verdict, None, outcome, detail)


def _second(record: Record, text: str, problem: str, answered: bool, limits: Limits) -> Record:
    sample, question, first = record.sample, record.question, record.first
    if problem:
        outcome: Outcome = "malformed again" if answered else "not paraphrased"
        return Record(sample, question, "", first, None, outcome, problem)
    verdict, outcome, detail = _judged(sample, text, limits)
    outcome = _AGAIN.get(outcome, outcome)
    return Record(sample, question, text, first, verdict, outcome, detail)


def _judged(sample: Sample, text: str, limits: Limits) -> tuple[Verdict, Outcome, str]:
    verdict = judge(text, sample.texts, limits)
    if verdict.reason is not None:
        return verdict, verdict.reason, verdict.shared or ""
    if sample.type == "underspecified":
        known = names(" ".join(sample.texts)) | title_names(sample.title)
        if found := named(text, known):
            return verdict, "named", " ".join(found)
    return verdict, "survived", ""


def _distinct(records: Sequence[Record]) -> list[Record]:
    """The first of all survivors with the same words stays, the others are marked `repeated`."""
    seen: set[tuple[str, ...]] = set()
    found = []
    for record in records:
        key = tuple(words(record.paraphrase))
        if record.survived and key in seen:
            record = Record(
                record.sample, record.question, record.paraphrase, record.first, record.again,
                "repeated", "another question has the same words",
            )
        elif record.survived:
            seen.add(key)
        found.append(record)
    return found


def _check_ids(samples: Sequence[Sample]) -> None:
    seen: set[str] = set()
    for sample in samples:
        if sample.sample_id in seen:
            raise ValueError(f"sample {sample.sample_id!r} occurs twice")
        seen.add(sample.sample_id)
