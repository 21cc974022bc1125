"""Outlines from a language model: what it is shown, what its answers become, titles for the hybrid.

Answers come from plain functions in a server's place, so that any answer whatsoever can be tried.
Answers that a real model gave lie in tests/fixtures/outline.
"""

from __future__ import annotations

import itertools
import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from spanwise.documents.model import Builder, Document
from spanwise.errors import ParamsError
from spanwise.llm.model import Answer, Ask, Request
from spanwise.llm.showing import SHOWN_CHARACTERS, shorten, texts, windows
from spanwise.structure import answers, hybrid
from spanwise.structure.model import Tree, make, verify
from spanwise.structure.outline import (
    SHORTEST_WINDOW,
    SYSTEM,
    Outlined,
    OutlineSettings,
    induce_outlines,
    plan,
    requests,
    schema,
    tally,
)
from spanwise.structure.repair import Row

RECORDED = sorted((Path(__file__).parent / "fixtures" / "outline").glob("*.json"))

WIDE = OutlineSettings(8192, lambda text: len(text.split()))
NARROW = OutlineSettings(SHORTEST_WINDOW, lambda text: len(text.split()))


def document(*paragraphs: str, doc_id: str = "d") -> Document:
    builder = Builder(doc_id, "T")
    for text in paragraphs:
        builder.paragraph(text)
    return builder.build()


SIX = document(*(f"Paragraph number {number}." for number in range(6)))


def answer(text: str, finish: str = "stop", error: str | None = None) -> Answer:
    return Answer(text, 10, 10, finish, error)


def outline(*sections: tuple[str, int, int, int]) -> str:
    names = ("title", "level", "first", "last")
    return json.dumps({"sections": [dict(zip(names, one, strict=True)) for one in sections]})


LEGAL = outline(("Tides", 1, 0, 1), ("Gauges", 2, 2, 3), ("Lamps", 1, 4, 5))
OVERLAP = outline(("Tides", 1, 0, 2), ("Gauges", 2, 2, 3), ("Lamps", 1, 4, 5))
FEW = outline(("Tides", 1, 0, 1))  # two of six paragraphs


class Script:
    """An `ask` that gives prepared answers, a list for each round, and keeps what it was asked."""

    def __init__(self, *rounds: Sequence[Answer]) -> None:
        self.rounds, self.asked = list(rounds), list[list[Request]]()

    def __call__(self, requests: Sequence[Request]) -> list[Answer]:
        self.asked.append(list(requests))
        return list(self.rounds[len(self.asked) - 1])


def always(reply: Callable[[Request], Answer]) -> Ask:
    return lambda requests: [reply(request) for request in requests]


def six(*texts: str) -> tuple[Outlined, Script]:
    """What becomes of the document SIX if the model gives these answers, and what it was asked."""
    ask = Script(*([answer(text)] for text in texts))
    (found,) = induce_outlines([SIX], ask, WIDE)
    assert len(ask.asked) == len(texts)
    return found, ask


def sections(found: Outlined) -> list[tuple[str, int, int, int]]:
    assert found.tree is not None
    return [(s.title, s.level, s.first, s.last) for s in found.tree.sections]


# what is shown


def test_a_long_paragraph_keeps_its_beginning_and_its_end() -> None:
    text = " ".join(f"w{number:03}" for number in range(100))  # 499 characters
    shown = shorten(text, 200)
    assert shown.startswith("w000 w001") and shown.endswith("w098 w099") and " … " in shown
    assert 180 < len(shown) <= 200
    assert len(shown.split(" … ")[0]) > len(shown.split(" … ")[1])
    assert shorten("two\n lines", 200) == "two lines"


@given(st.text(max_size=300), st.integers(20, 250))
def test_shortened_text_is_one_line_of_beginning_and_end(text: str, limit: int) -> None:
    whole, shown = " ".join(text.split()), shorten(text, limit)
    assert len(shown) <= limit and "\n" not in shown
    if len(whole) <= limit:
        assert shown == whole
    else:
        assert any(
            whole.startswith(shown[:i]) and whole.endswith(shown[i + 3 :])
            for i in range(len(shown)) if shown[i : i + 3] == " … "
        )


def test_the_prompt_has_every_paragraph_under_its_number_and_no_outline_to_copy() -> None:
    (request,) = requests(SIX, plan(SIX, WIDE), WIDE)
    for number, text in enumerate(texts(SIX)):
        assert f"\n[{number}] {text}\n" in request.prompt
    assert request.system == SYSTEM and request.group == "d"
    assert answers.rows(SYSTEM + request.prompt) == []  # a prompt that is repeated is no answer
    assert '"T"' not in request.prompt  # the document's title is not shown


def test_a_document_that_does_not_fit_is_shortened_then_divided() -> None:
    word = "tide "
    fits = plan(document(*[word * 30] * 12), NARROW)
    assert fits.windows == ((0, 12),) and fits.shortened == 0
    shortened = plan(document(*[word * 300] * 10), NARROW)
    assert shortened.windows == ((0, 10),) and shortened.shortened == 10
    long = plan(document(*[word * 300] * 90), NARROW)
    assert len(long.windows) > 1 and long.shortened == 90
    assert max(map(len, long.shown)) <= SHOWN_CHARACTERS[-1]


def test_every_request_with_its_correction_fits_the_window() -> None:
    made = document(*[f"Long paragraph {number}. " + "tide gauge " * 80 for number in range(120)])
    shapeless = " ".join(["nonsense"] * 2000)
    ask = Script(
        [answer(shapeless, "length")] * len(plan(made, NARROW).windows),
        [answer("")] * len(plan(made, NARROW).windows),
    )
    (found,) = induce_outlines([made], ask, NARROW)
    assert found.outcome == "unusable" and found.windows > 2
    for request in [*ask.asked[0], *ask.asked[1]]:
        used = sum(map(NARROW.count, (request.system, request.prompt))) + request.max_tokens
        assert used <= NARROW.window_tokens


def test_a_window_that_is_too_short_is_refused() -> None:
    with pytest.raises(ParamsError, match="too short"):
        OutlineSettings(SHORTEST_WINDOW - 1, len)


@given(st.lists(st.integers(1, 60), min_size=1, max_size=80), st.integers(0, 300))
def test_windows_cover_all_paragraphs_and_overlap(tokens: list[int], size: int) -> None:
    found = windows(tokens, lambda n: size - n)
    assert found[0][0] == 0 and found[-1][1] == len(tokens)
    for (first, stop), (second, further) in itertools.pairwise(found):
        assert first < second <= stop < further
        assert stop - second >= min(3, stop - first - 1)
    for first, stop in found:
        length = stop - first
        forced = length <= 4 or sum(tokens[first : stop - 1]) <= size - (length - 1)
        assert sum(tokens[first:stop]) <= size - length or forced


def test_the_schema_leaves_no_section_out_of_bounds() -> None:
    section = schema(22)["properties"]["sections"]["items"]
    assert section["required"] == ["title", "level", "first", "last"]
    assert section["properties"]["last"] == {"type": "integer", "minimum": 0, "maximum": 21}


# what is read


@pytest.mark.parametrize(
    "text",
    [
        LEGAL,
        f"Here is the outline:\n```json\n{LEGAL}\n```\nI hope that it helps [really].",
        f"Draft: {FEW}\nFinal: {LEGAL}",
        json.dumps(json.loads(LEGAL)["sections"]),
        "\n".join(json.dumps(one) for one in json.loads(LEGAL)["sections"]),
        '[["Tides", 1, 0, 1], ["Gauges", 2, 2, 3], ["Lamps", 1, 4, 5]]',
        LEGAL.replace(": 2", ': "2"').replace(": 5", ": 5.0").replace("Tides", "## **Tides** \\n"),
        LEGAL.replace("title", " Title"),
        LEGAL[:-2],
        LEGAL[:-2] + ', {"title": "Boats", "lev',
    ],
)
def test_whatever_stands_around_it_an_outline_is_read(text: str) -> None:
    assert answers.rows(text) == [
        Row("Tides", 1, 0, 1), Row("Gauges", 2, 2, 3), Row("Lamps", 1, 4, 5)
    ]


@pytest.mark.parametrize(
    "text",
    ["", "I'm sorry, I cannot help with that.", "{", "[[[[", "null", "[1, 2]", '{"sections": []}',
     '{"sections": "none"}', "[" * 5000, '{"a":' * 5000, "\ud800{"],
)
def test_what_holds_no_section_gives_none(text: str) -> None:
    assert answers.rows(text) == []


def test_values_of_a_wrong_type_are_absent_not_guessed() -> None:
    text = (
        '{"title": ["A"], "level": true, "first": NaN, "last": "1 to 3"}'
        '{"title": 7, "level": 1e999, "first": null, "last": ' + "9" * 5000 + "}"
        '{"title": "C", "level": {}, "first": 2.5, "last": 99999999999}'
    )
    assert answers.rows(text) == [Row("", None, None, None), Row("C", None, None, None)]


def test_titles_hold_nothing_that_cannot_be_stored() -> None:
    (row,) = answers.rows('{"title": "A\\ud800\\u0000 b\\u2028c", "first": 0}')
    assert row.title == "A b c"
    assert row.title.encode("utf-8")


# what becomes of an answer


def test_a_legal_answer_is_taken_as_given() -> None:
    found, ask = six(LEGAL)
    assert found.outcome == "given" and found.violations == () and found.asked_again == 0
    assert sections(found) == [("Tides", 1, 0, 1), ("Gauges", 2, 2, 3), ("Lamps", 1, 4, 5)]
    assert len(ask.asked) == 1


def test_violations_are_shown_once_and_a_legal_second_answer_is_taken() -> None:
    found, ask = six(OVERLAP, LEGAL)
    assert found.outcome == "corrected" and found.asked_again == 1
    (violation,) = found.violations
    assert "overlap, it starts at paragraph 2, not 3" in violation
    ((before,), (again,)) = ask.asked
    assert again.prompt.startswith(before.prompt)  # the server's prompt cache holds it
    assert violation in again.prompt and "0: 'Tides', level 1, paragraphs 0..2" in again.prompt
    assert (again.schema, again.group) == (before.schema, before.group)


def test_what_stays_wrong_is_repaired_if_near_valid() -> None:
    found, _ = six(OVERLAP, OVERLAP)
    assert found.outcome == "repaired" and "overlap" in found.violations[0]
    assert sections(found) == [("Tides", 1, 0, 1), ("Gauges", 2, 2, 3), ("Lamps", 1, 4, 5)]


def test_the_nearer_of_two_answers_is_repaired() -> None:
    found, _ = six(OVERLAP, "I am sorry.")
    assert found.outcome == "repaired" and len(sections(found)) == 3
    found, _ = six(FEW, OVERLAP)
    assert found.outcome == "repaired" and len(sections(found)) == 3


def test_what_is_not_near_valid_is_unusable_with_its_violations() -> None:
    found, _ = six(FEW, FEW)
    assert found.tree is None and found.outcome == "unusable"
    assert found.violations == ("gap: paragraphs 2..5 are in no section",)


@pytest.mark.parametrize(
    "text", ["", "I'm sorry, but I can't help with that.", "Voici le plan : 1. Marées"]
)
def test_an_answer_without_an_outline_is_asked_again_once(text: str) -> None:
    found, ask = six(text, text)
    assert found.outcome == "unusable"
    assert found.violations == ("the answer holds no sections",)
    assert (text or "(nothing)") in ask.asked[1][0].prompt


def test_a_repeated_prompt_is_unusable() -> None:
    found = induce_outlines([SIX], always(lambda r: answer(r.prompt)), WIDE)[0]
    # The correction repeats the prompt too, and with it nothing that could be read as an outline.
    assert found.outcome == "unusable" and found.tree is None


def test_titles_in_another_script_are_shown_then_replaced() -> None:
    foreign = outline(("潮汐", 1, 0, 1), ("Gauges", 2, 2, 3), ("灯", 1, 4, 5))
    found, ask = six(foreign, foreign)
    assert "not in the language of the text" in ask.asked[1][0].prompt
    assert found.outcome == "repaired" and found.retitled == 2
    assert [s[0] for s in sections(found)] == ["Part 1", "Gauges", "Part 3"]


def test_a_cut_off_answer_keeps_its_whole_sections_and_is_told_so() -> None:
    cut = LEGAL[: LEGAL.index(', {"title": "Lamps"')] + ', {"title": "La'
    ask = Script([answer(cut, "length")], [answer(cut, "length")])
    (found,) = induce_outlines([SIX], ask, WIDE)
    assert "cut off" in ask.asked[1][0].prompt
    assert found.outcome == "repaired"
    assert sections(found) == [("Tides", 1, 0, 1), ("Gauges", 2, 2, 5)]


def test_a_request_without_an_answer_is_not_repeated() -> None:
    ask = Script([answer("", "error", "connection refused")])
    (found,) = induce_outlines([SIX], ask, WIDE)
    assert found.outcome == "unusable" and found.asked_again == 0
    assert found.violations == ("no answer: connection refused",)


def test_a_correction_without_an_answer_leaves_the_first_one() -> None:
    ask = Script([answer(OVERLAP)], [answer("", "error", "timeout")])
    assert induce_outlines([SIX], ask, WIDE)[0].outcome == "repaired"
    ask = Script([answer(FEW)], [answer("", "error", "timeout")])
    (found,) = induce_outlines([SIX], ask, WIDE)
    assert found.violations == (
        "gap: paragraphs 2..5 are in no section", "no answer: timeout"
    )


def test_all_documents_share_two_rounds() -> None:
    others = [document(*texts(SIX), doc_id=name) for name in "abc"]
    empty = Builder("empty", "T").build()
    ask = Script([answer(LEGAL), answer(OVERLAP), answer("")], [answer(LEGAL), answer("no")])
    found = induce_outlines([*others, empty], ask, WIDE)
    assert [one.doc_id for one in found] == ["a", "b", "c", "empty"]
    assert [one.outcome for one in found] == ["given", "corrected", "unusable", "given"]
    assert [[r.group for r in one] for one in ask.asked] == [["a", "b", "c"], ["b", "c"]]
    assert found[3].tree == Tree("empty", ()) and found[3].windows == 0
    counts = tally(found)
    assert [counts[n] for n in ("documents", "usable as given", "corrected", "repaired",
                                "unusable", "windows asked again")] == [4, 2, 1, 0, 1, 2]


def test_no_documents_make_no_request() -> None:
    ask = Script()
    assert induce_outlines([], ask, WIDE) == [] and ask.asked == []


def fives(request: Request) -> Answer:
    """A legal outline of any window: a section for every five paragraphs, the second one nested."""
    assert request.schema is not None
    items = request.schema["properties"]["sections"]["items"]["properties"]
    last = items["last"]["maximum"]
    made = [
        (f"Topic {first}", 1 + first // 5 % 2, first, min(first + 4, last))
        for first in range(0, last + 1, 5)
    ]
    return answer(outline(*made))


def test_a_long_document_is_joined_from_windows() -> None:
    made = document(*[f"Paragraph {number}. " + "tide " * 100 for number in range(90)])
    (found,) = induce_outlines([made], always(fives), NARROW)
    assert found.tree is not None and found.windows > 2 and found.outcome == "given"
    assert verify(found.tree, made.paragraphs) == []
    assert {s.level for s in found.tree.sections} == {1, 2}
    assert 0 <= found.agreed < found.windows
    assert found.retitled > 0  # every window begins with a `Topic 0`
    assert induce_outlines([made], always(fives), NARROW) == [found]


def test_one_unusable_window_makes_the_document_unusable() -> None:
    made = document(*["tide " * 100] * 90)
    count = len(plan(made, NARROW).windows)

    def reply(request: Request) -> Answer:
        return answer("no") if f"Part {count} of {count}" in request.prompt else fives(request)

    (found,) = induce_outlines([made], always(reply), NARROW)
    assert found.tree is None and found.asked_again == 1
    assert found.violations == (f"part {count} of {count}: the answer holds no sections",)


# any answer whatsoever

json_values = st.recursive(
    st.one_of(st.none(), st.booleans(), st.integers(), st.floats(), st.text(max_size=8),
              st.integers(0, 6).map(str)),
    lambda inner: st.one_of(
        st.lists(inner, max_size=4),
        st.dictionaries(st.sampled_from(["title", "level", "first", "last", "sections", "x"]),
                        inner, max_size=5),
    ),
    max_leaves=12,
)
near = st.lists(
    st.fixed_dictionaries({
        "title": st.sampled_from(["A", "B", "", "潮", "\ud800", "long " * 30]),
        "level": st.integers(-1, 6), "first": st.integers(-1, 7), "last": st.integers(-1, 7),
    }),
    max_size=8,
).map(lambda rows: {"sections": rows})


@st.composite
def any_text(draw: st.DrawFn) -> str:
    """Plain text, or JSON of any shape with text around it, often cut off."""
    value: Any = draw(st.one_of(json_values, near))
    text = json.dumps(value, ensure_ascii=draw(st.booleans()))
    around = st.sampled_from(["", "```json\n", "Sure! [1] {", "} ]", "Sorry."])
    text = draw(around) + text + draw(around)
    text = text[: draw(st.integers(0, len(text)))] if draw(st.booleans()) else text
    return draw(st.sampled_from([text, draw(st.text(max_size=30))]))


@given(st.lists(st.tuples(any_text(), st.sampled_from(["stop", "length"])), min_size=2,
                max_size=2))
@settings(deadline=None, max_examples=300)
def test_any_answer_becomes_a_legal_tiling_or_a_counted_failure(
    given_texts: list[tuple[str, str]],
) -> None:
    replies = [answer(text, finish) for text, finish in given_texts]
    asked: list[int] = []

    def ask(requests: Sequence[Request]) -> list[Answer]:
        asked.append(len(requests))
        return [replies[len(asked) - 1]]

    (found,) = induce_outlines([SIX], ask, WIDE)
    assert asked in ([1], [1, 1])
    counts = tally([found])
    assert sum(counts[n] for n in ("usable as given", "corrected", "repaired", "unusable")) == 1
    assert (found.tree is None) == (found.outcome == "unusable")
    assert (found.violations == ()) == (found.outcome == "given")
    if found.tree is not None:
        assert verify(found.tree, SIX.paragraphs) == []
        owners = [i for i in range(6) for s in found.tree.sections if s.first <= i <= s.last]
        assert owners == list(range(6))
        assert all(any(c.isalnum() for c in s.title) for s in found.tree.sections)
        assert "".join(s.title for s in found.tree.sections).encode("utf-8")
    asked.clear()
    assert induce_outlines([SIX], ask, WIDE) == [found]


LONG = document(*[f"Paragraph {number}. " + "tide gauge " * 60 for number in range(60)])


@given(st.randoms(use_true_random=False))
@settings(deadline=None, max_examples=60)
def test_any_windows_become_a_legal_tiling_or_a_counted_failure(random: Any) -> None:
    def reply(request: Request) -> Answer:
        assert request.schema is not None
        items = request.schema["properties"]["sections"]["items"]["properties"]
        last = items["last"]["maximum"]
        cuts = sorted(random.sample(range(last + 1), random.randint(1, 8)))
        noise = random.choice([0, 0, 0, 1, 3])
        made = [
            (random.choice("ABCDEFGH") * random.randint(0, 3), random.randint(1, 4), a,
             b - 1 + random.randint(-noise, noise))
            for a, b in zip(cuts, [*cuts[1:], last + 1], strict=True)
        ]
        return answer(outline(*made))

    (found,) = induce_outlines([LONG], always(reply), NARROW)
    assert found.windows > 1
    assert (found.tree is None) == (found.outcome == "unusable")
    if found.tree is not None:
        assert verify(found.tree, LONG.paragraphs) == []


# recorded from a real model


@pytest.mark.parametrize("path", RECORDED, ids=lambda path: path.stem)
def test_recorded_answers_become_what_they_became(path: Path) -> None:
    recorded = json.loads(path.read_text(encoding="utf-8"))
    made = document(*recorded["paragraphs"], doc_id=recorded["doc_id"])
    ask = Script(*(
        [answer(one["text"], one["finish"], one.get("error")) for one in replies]
        for replies in recorded["rounds"]
    ))
    wide = OutlineSettings(recorded["window_tokens"], lambda text: len(text.split()))
    (found,) = induce_outlines([made], ask, wide)
    assert len(ask.asked) == len(recorded["rounds"])
    assert found.outcome == recorded["outcome"]
    if recorded["sections"] is None:
        assert found.tree is None
    else:
        assert sections(found) == [tuple(one) for one in recorded["sections"]]
        assert found.tree is not None and verify(found.tree, made.paragraphs) == []


# titles for the segmenter's sections

SEGMENTED = make("d", SIX.paragraphs, [
    ("Tide", 1, 0, -1), ("Tide gauge", 2, 0, 1), ("Marks", 2, 2, 3), ("Lamp", 1, 4, 5),
])


def titled(*texts: str) -> tuple[hybrid.Titled, Script]:
    ask = Script([answer(text) for text in texts])
    (found,) = hybrid.title_sections([SIX], [SEGMENTED], ask, WIDE)
    return found, ask


def test_the_hybrid_keeps_boundaries_and_levels_and_takes_the_models_titles() -> None:
    found, ask = titled(*(json.dumps({"title": t}) for t in ("Sea", "Reading", "Datum", "Light")))
    assert [s.title for s in found.tree.sections] == ["Sea", "Reading", "Datum", "Light"]
    assert [(s.level, s.first, s.last, s.start, s.end) for s in found.tree.sections] == [
        (s.level, s.first, s.last, s.start, s.end) for s in SEGMENTED.sections
    ]
    assert found.kept == {} and found.numbered == 0
    (asked,) = ask.asked
    shown = [[n for n in range(6) if f"number {n}." in request.prompt] for request in asked]
    assert shown == [[0, 1, 2, 3], [0, 1], [2, 3], [4, 5]]  # a bare heading: its subsections'
    assert {request.group for request in asked} == {"d"}
    assert answers.title(asked[0].system + asked[0].prompt) == ""


def test_the_segmenters_title_stays_where_the_model_gives_none() -> None:
    found, _ = titled(
        "I am sorry.", '{"title": "潮汐"}', '{"title": "Sea"}', '{"title": "' + "x" * 90 + '"}'
    )
    assert [s.title for s in found.tree.sections] == ["Tide", "Tide gauge", "Sea", "Lamp"]
    assert found.kept == {
        "no title": 1, "a title that is not in the language of the text": 1,
        "a title of more than 80 characters": 1,
    }
    assert hybrid.tally([found, found])["segmenter's title kept: no title"] == 2


def test_titles_are_unique_above_and_beside() -> None:
    found, _ = titled('{"title": "Lamp"}', '{"title": "Sea"}', '{"title": "sea"}', "")
    assert [s.title for s in found.tree.sections] == ["Lamp", "Sea", "Marks", "Lamp (2)"]
    assert found.numbered == 1 and sum(found.kept.values()) == 2


def test_titles_without_an_answer_are_counted() -> None:
    ask = Script([answer("", "error", "connection refused")] * 4)
    (found,) = hybrid.title_sections([SIX], [SEGMENTED], ask, WIDE)
    assert found == hybrid.Titled(SEGMENTED, {"no answer": 4})


def test_a_long_section_is_shown_in_part() -> None:
    made = document(*[f"Number {n}. " + "tide " * 300 for n in range(200)])
    tree = make("d", made.paragraphs, [("Tide", 1, 0, 199)])
    ask = Script([answer('{"title": "Sea"}')])
    hybrid.title_sections([made], [tree], ask, NARROW)
    prompt = ask.asked[0][0].prompt
    assert NARROW.count(prompt) < hybrid.TEXT_TOKENS + 100
    shown = [n for n in range(200) if f"Number {n}. " in prompt]
    assert len(shown) > 20 and shown == list(range(0, 200, shown[1]))


@given(st.lists(any_text(), min_size=4, max_size=4))
@settings(deadline=None)
def test_any_answers_leave_a_legal_tree_with_titles(texts: list[str]) -> None:
    found, _ = titled(*texts)
    assert verify(found.tree, SIX.paragraphs) == []
    titles = [s.title for s in found.tree.sections]
    assert all(any(c.isalnum() for c in t) for t in titles)
    kept = sum(a == b.title for a, b in zip(titles, SEGMENTED.sections, strict=True))
    assert kept <= sum(found.kept.values()) + 4
    assert "".join(titles).encode("utf-8")
