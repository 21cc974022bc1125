"""Contexts: what the model is shown, what its answers become, and how they stand before chunks."""

from __future__ import annotations

import json
from collections.abc import Sequence
from itertools import groupby
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from spanwise import models, params
from spanwise.contexts import Asked, request, tally, trim, write_contexts
from spanwise.documents.model import Builder, Document
from spanwise.errors import ParamsError
from spanwise.labelling import NO_CONTEXTS, enough, label, texts, wanting
from spanwise.llm.model import Answer, Request
from spanwise.llm.showing import counter
from spanwise.params import Condition, ContextSettings, PlaceboSettings
from spanwise.spans import Span
from spanwise.text.tokens import words

from .conftest import ROOT

SIZES = ContextSettings(least_tokens=6, most_tokens=14)
GOOD = "This passage of the log tells how the tide gauge was read."
LONG = f"{GOOD} It then says more about the quay than anyone had asked for that day."
BODY = "Marit read the gauge at dawn and wrote the height into the book by the door of the hut."


def document(*paragraphs: str, doc_id: str = "d") -> Document:
    builder = Builder(doc_id, "Log")
    for text in paragraphs:
        builder.paragraph(text)
    return builder.build()


def chunks_of(made: Document) -> list[Asked]:
    return [Asked(made, paragraph.span) for paragraph in made.paragraphs]


def says(text: str) -> str:
    return json.dumps({"context": text})


class Script:
    """An `ask` that gives each round's prepared text to every request, and keeps what it got."""

    def __init__(self, *rounds: str | None, finish: str = "stop") -> None:
        self.rounds, self.finish = list(rounds), finish
        self.asked: list[list[Request]] = []

    def __call__(self, requests: Sequence[Request]) -> list[Answer]:
        self.asked.append(list(requests))
        text = self.rounds[len(self.asked) - 1]
        if text is None:
            return [Answer("", 0, 0, "error", "silence") for _ in requests]
        return [Answer(text, 9, 9, self.finish) for _ in requests]


def write(script: Script, made: Document | None = None, window: int = 4096) -> list:  # type: ignore[type-arg]
    asked = chunks_of(made or document(BODY))
    return write_contexts(asked, script, SIZES, window, words())


def test_the_document_comes_first_and_the_chunk_last_in_one_group_for_each_document() -> None:
    script = Script(says(GOOD))
    made = [document(f"{BODY} {n}", f"Second {n}.", doc_id=n) for n in "ab"]
    write_contexts([c for d in made for c in chunks_of(d)], script, SIZES, 4096, words())
    (asked,) = script.asked
    assert [one.group for one in asked] == ["a", "a", "b", "b"]
    for one, chunk in zip(asked, [c for d in made for c in chunks_of(d)], strict=True):
        shared, _, rest = one.prompt.partition("\n\n---\n")
        assert shared == f'Document "Log":\n\n{chunk.document.body}'
        assert chunk.passage in rest


def test_a_good_answer_is_taken_and_nothing_is_asked_twice() -> None:
    script = Script(says(GOOD))
    (context,) = write(script)
    assert (context.text, context.tokens, context.outcome) == (GOOD, 12, "given")
    assert not context.problem and not context.trimmed and len(script.asked) == 1


USELESS = {
    "": "it holds no text",
    "{": "it holds no text",
    "No JSON here.": "it holds no text",
    says(""): "it holds no text",
    says("…"): "it holds no text",
    '{"context": 7}': "it holds no text",
    says("I'm sorry, but I cannot help with that request at all."): "it is a refusal",
    says("这段文字说明了潮汐测量的读数方法和时间"): "it is in another script",
    says(f"It is about this: {BODY}"): "it repeats the passage",
    says("Too short."): "it has fewer than 6 tokens",
}


@pytest.mark.parametrize("answer", USELESS)
def test_an_answer_of_no_use_is_asked_for_once_more_with_what_was_wrong(answer: str) -> None:
    script = Script(answer, says(GOOD))
    (context,) = write(script)
    assert (context.text, context.outcome) == (GOOD, "again")
    assert USELESS[answer] in script.asked[1][0].prompt
    assert script.asked[1][0].prompt.startswith(script.asked[0][0].prompt.partition("---")[0])


def test_after_the_second_answer_of_no_use_there_is_no_context_and_it_is_counted() -> None:
    script = Script("prose", says("I cannot do this."))
    (context,) = write(script)
    assert (context.text, context.tokens, context.outcome) == ("", 0, "unusable")
    counts = tally([context])
    assert counts["without a context"] == 1 and counts["without a context: it is a refusal"] == 1


def test_a_request_without_an_answer_is_not_repeated() -> None:
    script = Script(None)
    (context,) = write(script)
    assert context.outcome == "unusable" and context.problem == "no answer: silence"
    assert len(script.asked) == 1


def test_the_longer_of_two_short_texts_is_kept_and_counted() -> None:
    (context,) = write(Script(says("Of the tide gauge."), says("Short.")))
    assert (context.text, context.outcome) == ("Of the tide gauge.", "given")
    assert tally([context])["shorter than asked for"] == 1


def test_prose_around_the_object_and_a_torn_end_are_passed_over() -> None:
    (context,) = write(Script(f"Sure: {says(GOOD)} I hope it helps."))
    assert context.text == GOOD
    torn = says(LONG)[:-12]
    (context,) = write(Script(torn, finish="length"))
    assert context.text == GOOD and context.trimmed


def test_a_long_text_ends_with_a_sentence_or_else_with_a_word() -> None:
    assert trim(LONG, SIZES, words()) == GOOD
    endless = " ".join(f"word{n}" for n in range(30))
    assert trim(endless, SIZES, words()) == " ".join(f"word{n}" for n in range(14))
    early = f"Short one. {endless}"  # its only sentence end leaves too little
    assert len(trim(early, SIZES, words()).split()) == 14


@given(st.text(max_size=300), st.sampled_from(["stop", "length"]))
@settings(max_examples=200, deadline=None)
def test_any_answer_becomes_a_context_within_the_limit_or_a_counted_failure(
    text: str, finish: str
) -> None:
    for answer in (text, says(text)):
        script = Script(answer, answer, finish=finish)
        (context,) = write(script)
        assert len(script.asked) <= 2
        assert context.tokens == len(context.text.split()) <= SIZES.most_tokens
        assert bool(context.text) == (context.outcome != "unusable")
        assert context.text or context.problem


def test_a_long_document_is_shown_in_parts_around_the_chunk_that_neighbours_share() -> None:
    made = document(*(f"Paragraph {n} " + "of many words that fill it up " * 20 for n in range(40)))
    script = Script(says(GOOD))
    contexts = write(script, made, window=2048)
    asked = script.asked[0]
    parts = [one.prompt.partition("\n\n---\n")[0] for one in asked]
    for one, part, chunk in zip(asked, parts, chunks_of(made), strict=True):
        assert part.startswith('Part of the document "Log":')
        assert chunk.passage in part
        assert len(f"{one.system} {one.prompt}".split()) + one.max_tokens <= 2048
    assert 1 < len({*parts}) == len([*groupby(parts)]) < 40 / 2
    middle = parts[20].index(chunks_of(made)[20].passage)
    assert 0.1 < middle / len(parts[20]) < 0.9  # a chunk stands inside its part, not at its edge
    assert tally(contexts)["written from a part of the document"] == 40


def test_a_paragraph_longer_than_the_window_is_shortened_and_no_room_is_an_error() -> None:
    made = document("word " * 5000, BODY)
    asked = [Asked(made, Span(0, 500)), Asked(made, made.paragraphs[1].span)]
    script = Script(says(GOOD))
    write_contexts(asked, script, SIZES, 2048, words())
    assert all(len(one.prompt.split()) < 2048 for one in script.asked[0])
    with pytest.raises(ParamsError, match=r"raise llm\.context_tokens"):
        write_contexts([Asked(made, made.paragraphs[0].span)], script, SIZES, 2048, words())


def test_a_document_seen_in_part_is_counted_also_where_one_part_is_all() -> None:
    made = document("word " * 5000, BODY)
    asked = [Asked(made, made.paragraphs[1].span)]
    (context,) = write_contexts(asked, Script(says(GOOD)), SIZES, 4096, words())
    assert context.partly


def test_words_are_no_tokens_of_a_model() -> None:
    assert counter(words())("salt water") == 4 > words().count("salt water")


@pytest.mark.parametrize(("written", "said"), [(9, None), (8, "8 of 10 chunks, below 90%")])
def test_too_few_contexts_are_no_condition(written: int, said: str | None) -> None:
    found = enough({("fixed", str(n)): GOOD if n < written else "" for n in range(10)})
    assert found is None if said is None else said in str(found)


def test_nothing_to_write_asks_nothing() -> None:
    script = Script()
    assert write_contexts([], script, SIZES, 4096, words()) == [] and script.asked == []


LABELS = {
    "fixed-none-0": Condition(segmentation="fixed", prefix="none", depth=0, retrieval="flat"),
    "fixed-context-0": Condition(segmentation="fixed", prefix="context", depth=0, retrieval="flat"),
}
ROW = {"segmentation": "fixed", "chunk_id": "d:0-10", "doc_id": "d", "start": 0, "end": 10,
       "tokens": 2, "path": ["Log"], "node": 0}


def test_a_context_stands_before_its_chunk_without_brackets_and_is_charged() -> None:
    made, placebo = document(BODY), PlaceboSettings(depth=3, seed=1)
    ((place, (asked, span)),) = wanting([ROW], [made], LABELS).items()
    assert asked is made and span == Span(0, 10)
    table, report = label([ROW], [made], LABELS, words(), placebo, {place: GOOD})
    rows = {row["label"]: row for row in table.to_pylist()}
    assert rows["fixed-context-0"]["prefix"] == f"{GOOD}\n\n"
    assert rows["fixed-context-0"]["prefix_tokens"] == 12 and rows["fixed-none-0"]["prefix"] == ""
    assert f"{GOOD}\n\nMarit read" in texts(table, [made]) and report["absent"] == {}


def test_a_chunk_without_a_context_is_searched_bare_and_no_contexts_leave_the_label_out() -> None:
    made, placebo = document(BODY), PlaceboSettings(depth=3, seed=1)
    table, _ = label([ROW], [made], LABELS, words(), placebo, {("fixed", "d:0-10"): ""})
    assert len({row["text_sha256"] for row in table.to_pylist()}) == 1
    table, report = label([ROW], [made], LABELS, words(), placebo, None)
    assert report["absent"] == {"fixed-context-0": NO_CONTEXTS} and table.num_rows == 1


def test_the_schema_bounds_the_answer() -> None:
    one = request(chunks_of(document(BODY))[0], BODY, SIZES)
    assert one.schema is not None
    assert one.schema["properties"]["context"]["maxLength"] == 56
    assert one.max_tokens > SIZES.most_tokens


RECORDED = json.loads(
    (Path(__file__).parent / "fixtures" / "contexts" / "recorded.json").read_text(encoding="utf-8")
)


@pytest.mark.parametrize("one", RECORDED, ids=lambda one: f"{one['document']}:{one['start']}")
def test_what_a_real_model_answered_is_read_as_it_was(one: dict[str, Any]) -> None:
    """Answers of the local model about the bundled corpus, one of each kind that occurred."""
    made = Document(one["document"], one["title"], one["body"], (), ())
    answers = [Answer(a["text"], 0, 0, a["finish"]) for a in one["answers"]]
    given, sizes = params.load(ROOT / "params.yaml"), ContextSettings()
    (context,) = write_contexts(
        [Asked(made, Span(one["start"], one["end"]))], lambda _: [answers.pop(0)], sizes, 4096,
        models.tokenizer(given),
    )
    assert not answers
    assert (context.text, context.tokens) == (one["context"], one["tokens"])
    assert (context.outcome, context.problem) == (one["outcome"], one["problem"])
