"""Questions by a writer: bad answers, two rounds, the funnel, and balanced finals."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Sequence

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from spanwise.documents.model import Builder, Document
from spanwise.llm.model import Answer, Request
from spanwise.spans import Span
from spanwise.writing.balance import balance
from spanwise.writing.funnel import STEPS, Record, distribution, funnel, report
from spanwise.writing.leakage import Limits, Verdict
from spanwise.writing.prompts import paraphrase_request, problem_of, question_request, read_answer
from spanwise.writing.rounds import collect, write
from spanwise.writing.sampling import TYPES, Sample, Type, draw

from . import reference_questions as twin

TEXT = "The commander of the ship Pequod, Captain Ahab, lost a leg to the white whale near Japan."
OTHER = "The harbour of Nantucket was rebuilt after the great fire of that summer in grey stone."
GOOD = "Which limb had the old whaler been robbed of?"
BETTER = "Of what limb did an animal rob a sailor?"


def document(doc_id: str = "d") -> Document:
    builder = Builder(doc_id, "The Pequod")
    builder.paragraph(TEXT)
    builder.paragraph(OTHER)
    return builder.build()


def sample(kind: Type = "factoid", doc_id: str = "d", start: int = 0) -> Sample:
    first = Span(start, len(TEXT))
    second = Span(len(TEXT) + 2, len(TEXT) + 2 + len(OTHER))
    return draw(document(doc_id), kind, (first, second) if kind == "multihop" else (first,))


def reply(text: str, finish: str = "stop") -> Answer:
    return Answer(json.dumps({"question": text}), 10, 10, finish)


def scripted(*rounds: Sequence[Answer]) -> tuple[Callable[..., list[Answer]], list[list[Request]]]:
    """A writer that says these answers, and what it was asked."""
    asked: list[list[Request]] = []
    left = list(rounds)

    def ask(requests: Sequence[Request]) -> list[Answer]:
        asked.append(list(requests))
        return list(left.pop(0))

    return ask, asked


NONE = Answer("", 0, 0, "error", "the server was gone after 3 attempts")


@pytest.mark.parametrize(
    ("answer", "problem"),
    [
        (Answer("", 1, 0, "stop"), "it is empty"),
        (Answer("{", 1, 1, "stop"), "it has no JSON object with a question"),
        (Answer("Here you are: what is it?", 1, 1, "stop"),
         "it has no JSON object with a question"),
        (Answer('{"query": "Which limb was it?"}', 1, 1, "stop"),
         "it has no JSON object with a question"),
        (Answer('["question"]', 1, 1, "stop"), "it has no JSON object with a question"),
        (Answer('{"question": 7}', 1, 1, "stop"), "its question is no text"),
        (Answer('{"question": null}', 1, 1, "stop"), "its question is no text"),
        (Answer('{"question": "Which li', 1, 160, "length"), "it was cut off"),
        (Answer("{" * 5000, 1, 1, "stop"), "it has no JSON object with a question"),
        (Answer('{"a":' * 5000, 1, 1, "stop"), "it has no JSON object with a question"),
        (Answer('{"question": ' + "9" * 9999 + "}", 1, 1, "stop"),
         "it has no JSON object with a question"),
        (Answer('{"question": "Which \\ud800 limb was it then?"}', 1, 1, "stop"),
         "it holds control characters"),
        (Answer('{"question": "Which \\u0000 limb was it then?"}', 1, 1, "stop"),
         "it holds control characters"),
        (reply(""), "it is empty"),
        (reply(" ?! "), "it is empty"),
        (reply("Which limb?"), "it has fewer than 4 words"),
        (reply("Which limb " * 31 + "?"), "it has more than 60 words"),
        (reply("I'm sorry, but I cannot help with that question, can I?"), "it is a refusal"),
        (reply("As an AI model I have no legs, have I?"), "it is a refusal"),
        (reply("Ask for one fact that the passage states, will you?"),
         "it repeats the instructions"),
        (reply("What does the passage say about a limb?"), "it mentions the passage"),
        (reply("According to the text, which limb was it?"), "it mentions the passage"),
        (reply("Welches Glied verlor jener Kapitän einst?"), "it is in another language"),
        (reply("船长失去了哪条腿呢？"), "it is in another language"),
        (reply("The old whaler was robbed of a limb."), "it does not end in a question mark"),
    ],
)
def test_answers_of_no_use(answer: Answer, problem: str) -> None:
    assert read_answer(answer, sample()) == ("", problem)


@pytest.mark.parametrize(
    "text",
    [
        json.dumps({"question": GOOD}),
        f'```json\n{{"question": "{GOOD}"}}\n```',
        f'Sure! {{"question": "{GOOD}"}} I hope it helps.',
        f'{{"thought": 1}} {{"question": "{GOOD}", "more": [1]}}',
        f'{{bad}} {{"question": "  \\"{GOOD}\\"\\n"}}',
    ],
)
def test_prose_and_fences_around_the_answer_are_passed_over(text: str) -> None:
    assert read_answer(Answer(text, 1, 1, "stop"), sample()) == (GOOD, "")


def test_a_paraphrase_is_another_wording() -> None:
    unchanged = reply(GOOD.upper().replace("?", " ?"))
    assert read_answer(unchanged, sample(), GOOD) == ("", "it is the question unchanged")
    assert read_answer(reply(BETTER), sample(), GOOD) == (BETTER, "")


def test_a_passage_in_another_language_may_be_asked_about_in_it() -> None:
    builder = Builder("d", "Das Schiff")
    builder.paragraph("Kapitän Ahab verlor einst durch jenen weißen Wal beinahe beide Beine.")
    one = draw(builder.build(), "factoid", (Span(0, 60),))
    assert problem_of("Welches Tier nahm dem Seemann seine Glieder?", one) == ""


def test_requests_show_what_is_needed_and_no_more() -> None:
    for kind in TYPES:
        request = question_request(sample(kind))
        assert TEXT in request.prompt and "The Pequod" in request.prompt
        assert (OTHER in request.prompt) == (kind == "multihop")
        assert request.prompt.index(TEXT) < request.prompt.index("Ask ")  # the long part first
        assert request.schema is not None and request.schema["required"] == ["question"]
        again = paraphrase_request(sample(kind), GOOD)
        assert GOOD in again.prompt and TEXT not in again.prompt + again.system
        assert ("vaguely" in again.system) == (kind == "underspecified")
    # Temperature 0 gives the same answer to the same request: a second attempt is another one.
    assert question_request(sample(), "it is empty").prompt != question_request(sample()).prompt


def test_every_way_to_end() -> None:
    kinds: list[tuple[Type, int]] = [("factoid", i) for i in range(10)]
    samples = [sample(kind, start=i) for kind, i in kinds]
    samples += [sample("underspecified"), sample("underspecified", start=1), sample("multihop")]
    copied = "Who lost a leg to the white whale near Japan, tell me, who?"
    rouge = "Commander of ship Pequod, Ahab, lost leg to white whale Japan?"
    run = "Which among all these men had once lost a leg to it?"
    first = [
        NONE,  # 0 unanswered
        reply("no"),  # 1 malformed, twice
        reply(rouge),  # 2 rouge-l
        reply(run),  # 3 4-gram
        reply(GOOD),  # 4 not paraphrased
        reply(GOOD),  # 5 malformed again
        reply(GOOD),  # 6 rouge-l again
        reply(GOOD),  # 7 4-gram again
        reply(GOOD),  # 8 survived
        reply(GOOD),  # 9 repeated
        reply("Which limb had Ahab been robbed of?"),  # 10 named
        reply(GOOD),  # 11 named again
        reply("no"),  # 12 malformed once, then survived
    ]
    retried = [reply("no"), reply("Which town burnt before that sailor was maimed?")]
    second = [
        NONE, reply(GOOD), reply(copied), reply(run), reply(BETTER), reply(BETTER),
        reply("Of what was the Captain robbed?"), reply("Where was there a blaze, and who limped?"),
    ]
    ask, asked = scripted(first, retried, second, [reply("")])
    records = write(samples, ask)
    assert [r.outcome for r in records] == [
        "unanswered", "malformed", "rouge-l", "4-gram", "not paraphrased", "malformed again",
        "rouge-l again", "4-gram again", "survived", "repeated", "named", "named again", "survived",
    ]
    assert [len(requests) for requests in asked] == [13, 2, 8, 1]
    assert [r.detail for r in records[:6]] == [
        "no answer", "it has fewer than 4 words", "", "lost a leg to", "no answer", "it is empty",
    ]
    assert [r.detail for r in records[10:]] == ["Ahab", "Captain", ""]
    assert "it has fewer than 4 words" in asked[1][0].prompt
    finals = {records[8].sample.sample_id}
    found = funnel(records, finals)
    assert [found[step]["factoid"] for step in STEPS] == [
        10, 10, 9, 1, 1, 1, 0, 6, 5, 1, 1, 1, 0, 1, 1, 1,
    ]
    assert [found[step]["all"] for step in STEPS] == [
        13, 13, 12, 1, 1, 1, 1, 8, 7, 1, 1, 1, 1, 1, 2, 1,
    ]
    told = report(records, finals)
    assert told["unusable answers"] == {
        "it has fewer than 4 words": 1, "it is empty": 1, "no answer": 2,
    }
    again = records[8].again
    assert again is not None
    assert told["rouge_l of finals"]["all"]["p50"] == again.rouge_l
    assert told["rouge_l of finals"]["multihop"] == {
        "n": 0, "mean": None, **{f"p{q}": None for q in (0, 5, 25, 50, 75, 95, 100)}
    }


def test_what_ships_is_the_paraphrase_with_all_its_spans() -> None:
    (record,) = collect([(sample("multihop"), "Which town burnt before that sailor was maimed?",
                          "Where was there a blaze, and who limped?")])
    question = record.as_question()
    assert question.text == "Where was there a blaze, and who limped?"
    assert question.question_id == record.sample.sample_id and question.type == "multihop"
    assert question.evidence == record.sample.evidence and question.bundles == ((0, 1),)
    with pytest.raises(ValueError, match="ended as 'unanswered': it does not ship"):
        collect([(sample(), "", "")])[0].as_question()


def test_people_pass_the_same_rounds() -> None:
    entries = [
        (sample(start=0), GOOD, BETTER), (sample(start=1), GOOD, ""), (sample(start=2), "", BETTER),
        (sample(start=3), " What ", ""), (sample(start=4), GOOD, GOOD),
        (sample(start=5), "Who lost a leg to that beast?", BETTER),
        (sample(start=6), "Which animal hurt this man?", "Did the white whale near it win?"),
    ]
    assert [r.outcome for r in collect(entries)] == [
        "survived", "not paraphrased", "unanswered", "malformed", "malformed again", "4-gram",
        "4-gram again",
    ]


def test_a_broken_writer_is_asked_a_bounded_number_of_times() -> None:
    calls: list[int] = []

    def garbage(requests: Sequence[Request]) -> list[Answer]:
        calls.append(len(requests))
        return [Answer("{]", 1, 1, "stop")] * len(requests)

    records = write([sample(start=i) for i in range(5)], garbage, attempts=3)
    assert calls == [5, 5, 5] and {r.outcome for r in records} == {"malformed"}
    with pytest.raises(ValueError, match="1 requests, but 0 answers"):
        write([sample()], lambda requests: [])  # noqa: ARG005
    with pytest.raises(ValueError, match="occurs twice"):
        write([sample(), sample()], garbage)
    assert write([], garbage) == []


ANSWERS = st.one_of(
    st.text(), st.text().map(lambda t: json.dumps({"question": t})),
    st.sampled_from([GOOD, BETTER, TEXT, "What?", "Was it the white whale near Japan?"]).map(
        lambda t: json.dumps({"question": t})
    ),
    st.recursive(st.none() | st.integers() | st.text(max_size=5), st.lists, max_leaves=5).map(
        lambda v: json.dumps({"question": v})
    ),
)


@given(st.data())
@settings(deadline=None)
def test_any_answers_end_in_a_counted_funnel(data: st.DataObject) -> None:
    def ask(requests: Sequence[Request]) -> list[Answer]:
        return [
            NONE if data.draw(st.integers(0, 5)) == 0
            else Answer(data.draw(ANSWERS), 1, 1, data.draw(st.sampled_from(["stop", "length"])))
            for _ in requests
        ]

    kinds = data.draw(st.lists(st.sampled_from(TYPES), max_size=6))
    samples = [sample(kind, start=i) for i, kind in enumerate(kinds)]
    records = write(samples, ask)
    assert [r.sample for r in records] == samples
    finals = {r.sample.sample_id for r in balance(records, cap=1)}
    rows = funnel(records, finals)
    for kind in (*TYPES, "all"):
        n = {step: row[kind] for step, row in rows.items()}
        left = n["answered"] - n["malformed"]
        left -= sum(n[s] for s in STEPS if s.startswith("rejected: ") and "repeats" not in s)
        assert left == n["paraphrases asked"]
        left = n["paraphrased"] - n["paraphrases malformed"]
        left -= sum(n[s] for s in STEPS if s.startswith("rejected again"))
        assert left - n["rejected: repeats another question"] == n["survivors"]
        assert n["finals"] <= n["survivors"] <= n["sampled"] == n["asked"]
    for record in records:
        assert record.survived == (
            record.again is not None and record.again.reason is None
            and record.outcome not in ("named again", "repeated")
        )
        if record.survived:
            assert record.again is not None and record.again.rouge_l <= 0.35


def test_the_funnel_knows_samples_that_have_no_record() -> None:
    records = collect([(sample(), GOOD, BETTER)])
    found = funnel(records, sampled={"factoid": 3, "multihop": 2})
    assert [found[step]["all"] for step in ("sampled", "answered", "survivors")] == [5, 1, 1]
    with pytest.raises(ValueError, match="0 factoid samples, but 1 records"):
        funnel(records, sampled={})
    with pytest.raises(ValueError, match="'other' is final and did not survive"):
        funnel(records, {"other"})


def test_limits_reach_both_rounds() -> None:
    loose = Limits(rouge_l=1, ngram=50)
    entry = (sample(), "Who lost a leg to that beast?", "Did the white whale near it win?")
    assert collect([entry], loose)[0].survived
    assert not collect([entry])[0].survived


def test_distribution_on_paper() -> None:
    found = distribution([0.0, 0.1, 0.2, 0.3])
    assert found["n"] == 4 and found["mean"] == pytest.approx(0.15)
    # Linear between neighbours: p25 lies .75 of the way from the first to the second.
    assert [found[f"p{q}"] for q in (0, 25, 50, 100)] == pytest.approx([0, 0.075, 0.15, 0.3])


def survivors(having: Sequence[int], kind: Type = "factoid") -> list[Record]:
    passed = Verdict(0.1, None, None)
    return [
        Record(sample(kind, f"doc{d}", start), GOOD, BETTER, passed, passed, "survived")
        for d, count in enumerate(having)
        for start in range(count)
    ]


@given(st.lists(st.integers(0, 6), min_size=1, max_size=6), st.integers(1, 12), st.integers(0, 99))
@settings(deadline=None)
def test_finals_are_spread_over_documents(having: list[int], cap: int, seed: int) -> None:
    records = survivors(having)
    found = balance(records, cap, seed)
    counts = Counter(r.sample.doc_id for r in found)
    given_by = [counts[f"doc{d}"] for d in range(len(having))]
    assert sorted(given_by, reverse=True) == twin.fair_shares(sorted(having, reverse=True), cap)
    assert sum(given_by) == min(cap, sum(having))
    assert found == balance(records[::-1], cap, seed)
    assert [r.sample.sample_id for r in found] == sorted({r.sample.sample_id for r in found})


def test_each_type_has_its_own_cap_and_losers_stay_out() -> None:
    records = survivors([3, 3]) + survivors([1], "multihop")
    lost = collect([(sample("structural"), "", "")])
    found = balance(records + lost, cap=4, seed=1)
    assert Counter(r.sample.type for r in found) == {"factoid": 4, "multihop": 1}
    drawn = {
        tuple(r.sample.sample_id for r in balance(records, cap=2, seed=seed)) for seed in range(20)
    }
    assert len(drawn) > 1
    with pytest.raises(ValueError, match="cap is 0"):
        balance(records, cap=0)
