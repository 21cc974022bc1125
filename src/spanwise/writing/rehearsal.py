"""What having questions written would take: nothing is asked, and nothing is written."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path

from spanwise.llm.cache import Answers, key
from spanwise.llm.client import Client, Settings
from spanwise.llm.model import Answer, Request
from spanwise.params import WritingSettings
from spanwise.writing.asking import Parsed, drawn, limits
from spanwise.writing.prompts import RULES
from spanwise.writing.rounds import write
from spanwise.writing.sampling import TYPES

REQUEST_S = 10.0
"""Seconds of a wording on two cores with a model of 1.5 billion parameters."""


@dataclass(frozen=True, slots=True)
class Rehearsal:
    """What would be asked for one corpus's questions.

    passages: samples drawn, by type; a multihop one shows two passages. documents: they are of.
    missing:  samples that could not be drawn, by type.
    kept:     distinct requests whose answers are kept already.
    to_ask:   requests to come: a wording for each sample that has none, and a paraphrase for each
              that has none or will need one. A wording of no use is asked for once more, and one
              that does not pass is not paraphrased, so it is no bound.
    seconds:  of those, on two cores; None where another machine answers.
    """

    model: str
    server: str | None
    passages: dict[str, int]
    documents: int
    missing: dict[str, int]
    kept: int
    to_ask: int
    seconds: float | None


def rehearse(
    found: Parsed, settings: WritingSettings, model: Settings, folder: Path
) -> Rehearsal:
    """Go through both rounds with the answers that are kept.

    folder: of the kept answers; it is read alone.
    raises: QuestionError if no document has a span to ask about.
    """
    spans = drawn(found, settings)
    answers = Answers(model, folder, _never)
    kept: set[str] = set()
    missing: dict[str, Request] = {}

    def ask(requests: Sequence[Request]) -> list[Answer]:
        given = []
        for request in requests:
            answer, its = answers.kept(request), key(model, request)
            if answer is None:
                missing[its] = request
                answer = Answer("", 0, 0, "error", "not asked: a dry run")
            else:
                kept.add(its)
            given.append(answer)
        return given

    write(spans.samples, ask, limits(settings))
    worded = sum(request.system.startswith(RULES) for request in missing.values())
    to_ask = len(missing) + worded  # each of these is paraphrased later
    return Rehearsal(
        model.model, model.base_url,
        {kind: sum(s.type == kind for s in spans.samples) for kind in TYPES},
        len({s.doc_id for s in spans.samples}),
        {kind: spans.missing[kind] for kind in TYPES}, len(kept), to_ask,
        None if model.base_url is not None and to_ask else REQUEST_S * to_ask,
    )


def _never() -> AbstractContextManager[Client]:
    raise AssertionError("a rehearsal asks nothing")
