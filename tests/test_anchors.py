"""Anchors, and the questions that people write with them."""

from __future__ import annotations

import json
from pathlib import Path
from unicodedata import combining, normalize

import pytest
import yaml
from hypothesis import assume, given
from hypothesis import strategies as st

from spanwise.corpora.markdown import read_document
from spanwise.corpora.readers import READERS
from spanwise.documents.model import Document, Question, sha256
from spanwise.errors import AnchorError, DecodingError, QuestionError
from spanwise.questions.anchors import Anchor, hold, locate, nearest, occurrences, parse
from spanwise.questions.authored import read_questions
from spanwise.questions.equivalent import named, places, same
from spanwise.spans import Evidence, Span

from . import reference_text as twin

PUMP = (
    "# Pump\n\n## Handheld\n\nHold the blue button for ten seconds.\nThen wait.\n\n"
    "## Router\n\nHold the grey button for thirty seconds.\nThen wait.\n"
)
KEY = "The key hangs on hook 14.\n\nIt is brass. It is old.\n"


@pytest.fixture
def documents() -> list[Document]:
    return [read_document("key", KEY), read_document("pump", PUMP)]


def said(anchor: object, text: str = PUMP) -> str:
    with pytest.raises(AnchorError) as caught:
        locate(parse(anchor), text, "pump")
    return str(caught.value)


@pytest.mark.parametrize(
    ("anchor", "expected"),
    [
        ({"quote": "blue button"}, "blue button"),
        ({"quote": "## Handheld"}, "## Handheld"),
        ({"quote": "seconds.\nThen wait.\n\n## R"}, "seconds.\nThen wait.\n\n## R"),
        ({"quote": "seconds.\r\nThen", "occurrence": 1}, "seconds.\nThen"),
        ({"from": "Hold the blue", "to": "Then wait."},
         "Hold the blue button for ten seconds.\nThen wait."),
        ({"from": "Hold the", "to": "seconds.", "occurrence": 2},
         "Hold the grey button for thirty seconds."),
        # `to` may be the end of `from`, but one that ends inside of it is not meant.
        ({"from": "thirty seconds.", "to": "seconds."}, "thirty seconds."),
        ({"from": "Handheld\n\nHold the", "to": "h"},
         "Handheld\n\nHold the blue button for ten seconds.\nTh"),
        ({"start": 2, "end": 6}, "Pump"),
    ],
)
def test_golden(anchor: object, expected: str) -> None:
    found = locate(parse(anchor), PUMP, "pump")
    assert PUMP[found.start : found.end] == expected


def test_an_occurrence_is_counted_from_one() -> None:
    first, second = (PUMP.index("Then"), PUMP.rindex("Then"))
    assert locate(parse({"quote": "Then", "occurrence": 1}), PUMP, "p") == Span(first, first + 4)
    assert locate(parse({"quote": "Then", "occurrence": 2}), PUMP, "p") == Span(second, second + 4)


def test_a_quotation_that_does_not_occur_shows_the_nearest_text_ready_to_paste() -> None:
    message = said({"quote": "Hold the gray buton for thirty second."})
    assert "does not occur in pump" in message
    assert "line 10" in message
    pasted = yaml.safe_load(message.split("\n", 1)[1])
    assert pasted == {"quote": "Hold the grey button for thirty seconds."}
    assert locate(parse(pasted), PUMP, "pump").start == PUMP.index("Hold the grey")


def test_the_nearest_text_says_which_occurrence_it_is() -> None:
    message = said({"quote": "Then  wait"})
    pasted = yaml.safe_load(message.split("\n", 1)[1])
    assert pasted["quote"] == "Then wait."
    place = locate(parse(pasted), PUMP, "pump")
    assert f"line {PUMP[: place.start].count(chr(10)) + 1}," in message


@pytest.mark.parametrize(
    ("anchor", "parts"),
    [
        # "Then wait." opens lines 6 and 11.
        ({"quote": "Then wait."},
         ["2 times", "line 6 (offset ", "line 11 (offset ", "occurrence: 1"]),
        ({"quote": "Then wait.", "occurrence": 3}, ["2 times in pump, not 3"]),
        ({"from": "Hold the", "to": "wait."}, ["`from`", "2 times"]),
        ({"from": "Router", "to": "blue"}, ["`to`", "after `from` (line 8)"]),
        ({"from": "gone away", "to": "x"}, ["`from`", "does not occur"]),
        ({"quote": "zzz qqq"}, ["does not occur"]),
        ({"start": 5, "end": 5}, ["empty"]),
        ({"start": 5, "end": 10**6}, ["beyond pump", f"{len(PUMP)} code points"]),
        ({"start": -1, "end": 5}, ["`start` is -1"]),
        ({"start": 1.5, "end": 5}, ["1.5"]),
        ({"start": 1}, ["`end` is None"]),
        ({"quote": "Then", "occurrence": 0}, ["`occurrence` is 0"]),
        ({"quote": "Then", "occurrence": True}, ["True"]),
        ({"quote": " \n"}, ["`quote`"]),
        ({"quote": "a", "to": "b"}, ["unknown key 'to'"]),
        ({"quote": "a", "from": "b", "to": "c"}, ["exactly one"]),
        ({"to": "b"}, ["exactly one"]),
        ("Then", ["'Then'"]),
    ],
)
def test_anchors_that_name_no_one_place(anchor: object, parts: list[str]) -> None:
    message = said(anchor)
    for part in parts:
        assert part in message


@pytest.mark.parametrize(("text", "anchor", "expected"), [
    ("cafe\u0301 open", {"quote": "caf\u00e9"}, "cafe\u0301"),
    ("caf\u00e9 open", {"quote": "cafe\u0301 o"}, "caf\u00e9 o"),
    ("\ud55c\uae00", {"quote": "\u1112\u1161\u11ab"}, "\ud55c"),  # a syllable, its letters
    # What stands there exactly comes first; else the places are counted as ever.
    ("e\u0301 \u00e9", {"quote": "\u00e9"}, "\u00e9"),
    ("e\u0301a e\u0301b", {"quote": "\u00e9", "occurrence": 2}, "e\u0301"),
    ("x e\u0301 y u\u0308.", {"from": "\u00e9", "to": "\u00fc"}, "e\u0301 y u\u0308"),
    # The end is the next one, though a later one is exact; and one inside `from` hides none.
    ("in a cafe\u0301, a caf\u00e9", {"from": "in", "to": "caf\u00e9"}, "in a cafe\u0301"),
    ("\u00e9 in x e\u0301", {"from": "\u00e9 in", "to": "\u00e9"}, "\u00e9 in x e\u0301"),
    ("x e\u0301 y", {"start": 2, "end": 4, "quote": "\u00e9"}, "e\u0301"),
])
def test_words_are_the_same_up_to_normalization(text: str, anchor: object, expected: str) -> None:
    found = locate(parse(anchor), text, "d")
    assert text[found.start : found.end] == expected
    assert found.start == (text.rindex if "occurrence" in str(anchor) else text.index)(expected)


@pytest.mark.parametrize(("text", "anchor", "says"), [
    ("e\u0301a e\u0301b", {"quote": "\u00e9"}, "occurs 2 times in d: line 1 (offset 0), line 1"),
    ("\u1e69", {"quote": "s\u0307"}, "does not occur"),  # a letter is not parted from its dots
    ("\u1112\u1161\u11ab", {"quote": "\ud558"}, "does not occur"),  # nor a syllable
    ("\ufb01x", {"quote": "fi"}, "does not occur"),  # compatible is not equivalent
])
def test_what_is_not_the_same_or_not_one(text: str, anchor: object, says: str) -> None:
    with pytest.raises(AnchorError) as caught:
        locate(parse(anchor), text, "d")
    assert says in str(caught.value)


MARKED = "ae\u0301\u0323\u00e9\u1eb9\u1112\u1161\u11ab\ud55c \n"


@given(st.text(MARKED, min_size=1, max_size=12), st.sampled_from(["NFC", "NFD"]), st.data())
def test_every_place_is_equivalent_and_whole(text: str, form: str, data: st.DataObject) -> None:
    start = data.draw(st.integers(0, len(text) - 1))
    end = data.draw(st.integers(start + 1, len(text)))
    quote = normalize(form, text[start:end])  # type: ignore[arg-type]
    found = places(text, quote)
    for span in found:
        assert same(text[span.start : span.end], quote)
    cuts = [at for at in (start, end) if at < len(text)]
    whole = not any(combining(text[at]) for at in cuts) and all(
        normalize(to, text[:at]) + normalize(to, text[at:]) == normalize(to, text)  # type: ignore[arg-type]
        for at in cuts for to in ("NFC", "NFD")
    )
    assert found or not whole


def test_a_document_is_meant_by_the_only_equivalent_name(documents: list[Document]) -> None:
    assert named("u\u0308", ["%C3%BC"]) == "%C3%BC" == named("%C3%BC", ["%C3%BC"])
    assert named("\u00fc", ["u%CC%88", "%C3%BC"]) == "%C3%BC"
    assert named("\u1eb9\u0301", ["e%CC%81%CC%A3", "%C3%A9%CC%A3"]) is None  # two, none exactly so
    assert named("pumpe", [document.doc_id for document in documents]) is None


@given(st.text(alphabet="ab😀\n", max_size=30), st.text(alphabet="ab😀", min_size=1, max_size=3))
def test_occurrences(text: str, quote: str) -> None:
    assert occurrences(text, quote) == twin.occurrences(text, quote)


@given(st.text(alphabet="ab😀 \n", max_size=40), st.data())
def test_any_slice_can_be_quoted(text: str, data: st.DataObject) -> None:
    assume(text.strip())
    start = data.draw(st.integers(0, len(text) - 1))
    end = data.draw(st.integers(start + 1, len(text)))
    assume(text[start:end].strip())
    nth = twin.occurrences(text, text[start:end]).index(start) + 1
    assert locate(Anchor(quote=text[start:end], occurrence=nth), text, "d") == Span(start, end)


@given(st.text(max_size=40), st.text(min_size=1, max_size=60))
def test_the_nearest_text_is_always_a_span_of_it(text: str, quote: str) -> None:
    assume(text)
    span, score = nearest(text, quote)
    assert span.end <= len(text)
    assert 0 <= score <= 100


QUESTIONS = """\
- id: q-2
  type: multihop
  document: pump
  question: How is the
    meter reset?
  anchors:
    - quote: "## Handheld"
    - quote: blue button
    - {quote: hook 14, document: key}
  bundles: [[0, 1], [2]]
- {id: q-3, base: q-2, question: "In other words?"}
- {id: q-1, document: key, question: "Where?", anchors: [{start: 4, end: 7}]}
- {id: q-4, type: no-answer, document: key, question: "Why?"}
- {id: q-5, base: q-4, question: "For what reason?"}
- {id: s-1, document: tuning, question: "Tune?", anchors: [{quote: never opened}]}
- {id: s-2, base: s-1, question: "How to tune?"}
- {id: s-3, document: key, question: "Both?", anchors: [{quote: brass}, {quote: x, document: old}]}
"""
LEFT_OUT = {"tuning": "another split", "old": "older version"}


def test_questions_of_a_folder(tmp_path: Path, documents: list[Document]) -> None:
    (tmp_path / "questions.yaml").write_text(QUESTIONS)
    questions, counts = read_questions(tmp_path, documents, LEFT_OUT)
    handheld, blue, hook = PUMP.index("## Handheld"), PUMP.index("blue"), KEY.index("hook")
    evidence = (
        Evidence("pump", handheld, handheld + 11), Evidence("pump", blue, blue + 11),
        Evidence("key", hook, hook + 7),
    )
    bundles = ((0, 1), (2,))
    assert questions == [
        Question("q-1", "key", "Where?", "untyped", (Evidence("key", 4, 7),), ((0,),)),
        Question("q-2", "pump", "How is the meter reset?", "multihop", evidence, bundles),
        Question("q-3", "pump", "In other words?", "multihop", evidence, bundles, base="q-2"),
        Question("q-4", "key", "Why?", "no-answer", excluded="no-answer"),
        Question("q-5", "key", "For what reason?", "no-answer", base="q-4", excluded="no-answer"),
    ]
    assert counts == {
        "questions": 5, "questions that are rewordings": 2, "questions without an answer": 2,
        "questions left out: another split": 2, "questions left out: older version": 1,
    }


def test_several_files_and_json_lines_read_alike(
    tmp_path: Path, documents: list[Document]
) -> None:
    entries = yaml.safe_load(QUESTIONS)
    one = tmp_path / "one"
    one.mkdir()
    (one / "questions.yaml").write_text(QUESTIONS)
    many = tmp_path / "many"
    (many / "questions").mkdir(parents=True)
    lines = "\n\n".join(json.dumps(entry) for entry in entries[3:])
    (many / "questions" / "b.jsonl").write_text(lines)
    (many / "questions" / "a.yaml").write_text(yaml.safe_dump(entries[:3]))
    (many / "questions" / "notes.txt").write_text("not read")
    assert read_questions(one, documents, LEFT_OUT) == read_questions(many, documents, LEFT_OUT)
    assert read_questions(tmp_path, documents, LEFT_OUT) == ([], {})


A = "anchors: [{quote: brass}]"


@pytest.mark.parametrize(
    ("entries", "parts"),
    [
        (f"- {{id: a, document: key, question: Q, {A}}}\n"
         f"- {{id: a, document: key, question: R, {A}}}",
         ["entry 2 (line 2), a", "entry 1 (line 1)", "unique"]),
        (f"- {{id: a b, document: key, question: Q, {A}}}", ["'a b'", "white space"]),
        (f"- {{document: key, question: Q, {A}}}", ["no `id`"]),
        (f"- {{id: a, document: key, {A}}}", ["entry 1 (line 1), a", "no `question`"]),
        (f"- {{id: a, document: key, question: ' ', {A}}}", ["`question` is ' '"]),
        (f"- {{id: a, question: Q, {A}}}", ["no `document`"]),
        (f"- {{id: a, document: pumpe, question: Q, {A}}}", ["'pumpe'", "nearest name is 'pump'"]),
        ("- {id: a, document: key, question: Q, anchors: [{quote: brass, document: x}]}", ["'x'"]),
        (f"- {{id: a, document: key, question: Q, answer: B, {A}}}", ["unknown key 'answer'"]),
        (f"- {{id: a, type: a b, document: key, question: Q, {A}}}", ["type 'a b'"]),
        ("- {id: a, document: key, question: Q}", ["no anchors", "no-answer"]),
        ("- {id: a, document: key, question: Q, anchors: []}", ["no anchors"]),
        ("- {id: a, document: key, question: Q, anchors: {quote: brass}}", ["no list"]),
        (f"- {{id: a, type: no-answer, document: key, question: Q, {A}}}", ["no-answer with"]),
        ("- {id: a, base: b, question: Q}", ["'b' is no question"]),
        (f"- {{id: a, base: b, question: Q}}\n- {{id: b, base: c, question: Q}}\n"
         f"- {{id: c, document: key, question: Q, {A}}}",
         ["entry 1 (line 1), a", "'b' is itself a rewording", "'c'"]),
        (f"- {{id: c, document: key, question: Q, {A}}}\n"
         "- {id: a, base: c, type: t, question: Q}",
         ["unknown key 'type'", "rewording"]),
        (f"- {{id: a, document: key, question: Q, bundles: [[1]], {A}}}", ["anchor 1", "0 to 0"]),
        (f"- {{id: a, document: key, question: Q, bundles: [0], {A}}}", ["list of lists"]),
        (f"- {{id: a, document: key, question: Q, bundles: [[]], {A}}}", ["list of lists"]),
        (f"- {{id: a, document: key, question: Q, bundles: [[true]], {A}}}", ["anchor True"]),
        ("- {id: a, document: key, question: Q, bundles: [[0]], "
         "anchors: [{quote: brass}, {quote: old}]}", ["anchor 1 stands in no bundle"]),
    ],
)
def test_entries_that_are_wrong(
    tmp_path: Path, documents: list[Document], entries: str, parts: list[str]
) -> None:
    (tmp_path / "questions.yaml").write_text(entries + "\n")
    with pytest.raises(QuestionError) as caught:
        read_questions(tmp_path, documents, LEFT_OUT)
    for part in ("questions.yaml", *parts):
        assert part in str(caught.value)


def test_all_wrong_entries_are_shown_together(tmp_path: Path, documents: list[Document]) -> None:
    lines = [
        f"- {{id: q-{n}, document: key, question: Q, anchors: [{{quote: gone{n}}}]}}"
        for n in range(23)
    ]
    (tmp_path / "questions.yaml").write_text("\n".join(lines))
    with pytest.raises(AnchorError) as caught:  # anchors alone
        read_questions(tmp_path, documents, {})
    message = str(caught.value)
    assert "23 entries" in message
    assert "entry 20 (line 20), q-19, anchor 0" in message
    assert "q-20" not in message
    assert "and 3 more" in message
    (tmp_path / "questions.yaml").write_text("\n".join([*lines[:2], "- {id: x, question: Q}"]))
    with pytest.raises(QuestionError) as mixed:
        read_questions(tmp_path, documents, {})
    assert not isinstance(mixed.value, AnchorError)
    assert all(name in str(mixed.value) for name in ("3 entries", "q-0", "q-1", "entry 3"))


def test_files_that_are_no_lists(tmp_path: Path, documents: list[Document]) -> None:
    path = tmp_path / "questions.yaml"
    path.write_text("- {id: a\n")
    with pytest.raises(QuestionError, match=r"questions\.yaml: line 2"):
        read_questions(tmp_path, documents, {})
    path.write_bytes(b"- id: \xff\n")
    with pytest.raises(DecodingError, match="byte offset 6"):
        read_questions(tmp_path, documents, {})


PINNED = read_document("pump", PUMP, source="manuals", version="3.10")
DIGEST = sha256(PUMP)
FORMS: list[dict[str, object]] = [
    {"quote": "blue button"}, {"from": "Hold the blue", "to": "Then"}, {"start": 2, "end": 6},
    {"start": 2, "end": 6, "quote": "Pump"},
]


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize(
    "pins",
    [{}, {"source": "manuals"}, {"version": "3.10"}, {"sha256": DIGEST},
     {"source": "manuals", "version": "3.10", "sha256": DIGEST}],
)
def test_pins_that_hold_change_nothing(
    form: dict[str, object], pins: dict[str, str]
) -> None:
    anchor = parse(form | pins)
    assert anchor.pins == pins
    hold(anchor, PINNED)
    assert locate(anchor, PUMP, "pump") == locate(parse(form), PUMP, "pump")


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize(
    ("pin", "wrong"),
    [("source", "Manuals"), ("version", "3.1"), ("version", "3"), ("sha256", sha256(PUMP + "\n")),
     ("sha256", DIGEST[:12])],
)
def test_a_pin_that_no_longer_holds_refuses_the_anchor(
    form: dict[str, object], pin: str, wrong: str
) -> None:
    right = {"source": "manuals", "version": "3.10", "sha256": DIGEST}
    with pytest.raises(AnchorError) as caught:
        hold(parse(form | right | {pin: wrong}), PINNED)
    for part in (f"pinned to {pin} {wrong!r} of pump", f"{right[pin]!r} now", "anew"):
        assert part in str(caught.value)


@pytest.mark.parametrize("pin", ["source", "version", "sha256"])
@pytest.mark.parametrize("value", ["", " ", None, True, ["3"]])
def test_pins_that_are_no_text(pin: str, value: object) -> None:
    assert f"`{pin}`" in said({"quote": "blue", pin: value})


@pytest.mark.parametrize(
    ("anchor", "parts"),
    [
        ({"start": 2, "end": 6, "quote": "pump"},
         ['"pump" does not stand at [2, 6) of pump', 'quote: "Pump"', "mend the span"]),
        # The words stand, but one further on: the span is not moved there.
        ({"start": 3, "end": 7, "quote": "Pump"}, ["[3, 7)", '"ump\\n"']),
        ({"start": 2, "end": 7, "quote": "Pump"}, ['"Pump\\n"']),
        ({"start": 2, "end": 9**9, "quote": "Pump"}, ["beyond pump"]),
        ({"start": 2, "quote": "Pump"}, ["`end` is None"]),
        ({"end": 6, "quote": "Pump"}, ["unknown key 'end'"]),
        ({"start": 2, "end": 6, "quote": " "}, ["`quote`"]),
        ({"start": 2, "end": 6, "quote": "Pump", "occurrence": 1}, ["unknown key 'occurrence'"]),
        ({"start": 2, "end": 6, "from": "Pump", "to": "Hand"}, ["exactly one"]),
        ({"start": 2, "end": 6, "quote": "Pump", "from": "x"}, ["exactly one"]),
        ({"quote": "Pump", "digest": DIGEST}, ["unknown key 'digest'"]),
    ],
)
def test_a_span_that_does_not_hold_its_quotation(anchor: object, parts: list[str]) -> None:
    message = said(anchor)
    for part in parts:
        assert part in message


@given(st.text(alphabet="ab😀 \n", min_size=1, max_size=20), st.data())
def test_a_quoted_span_is_that_slice_and_no_other(text: str, data: st.DataObject) -> None:
    start = data.draw(st.integers(0, len(text) - 1))
    end = data.draw(st.integers(start + 1, len(text)))
    quote = data.draw(st.one_of(
        st.just(text[start:end]), st.text(alphabet="ab😀 \n", min_size=1, max_size=4)
    ))
    assume(quote.strip())
    anchor = parse({"start": start, "end": end, "quote": quote})
    if text[start:end] == quote:
        assert locate(anchor, text, "d") == Span(start, end)
    else:
        with pytest.raises(AnchorError, match="does not stand at"):
            locate(anchor, text, "d")


def test_pins_of_a_folder_are_those_of_each_anchors_document(tmp_path: Path) -> None:
    """A file with other line endings has the digest of its text; `3.10` stays a word."""
    (tmp_path / "pump.md").write_bytes(PUMP.replace("\n", "\r\n").encode())
    (tmp_path / "pump.v2.md").write_text("# Pump\n\nPress the red button.\n")
    (tmp_path / "key.md").write_text(KEY)
    (tmp_path / "manifest.yaml").write_text(
        "- {path: pump.md, source: manuals, document: pump, version: 3.10}\n"
        "- {path: pump.v2.md, source: manuals, document: pump, version: 2, current: false}\n"
        "- {path: key.md, source: notes, version: 7}\n"
    )
    start = PUMP.index("Hold the blue")
    quote = "Hold the blue button for ten seconds.\nThen wait."
    crlf = quote.replace("\n", "\\r\\n")
    span = f'start: {start}, end: {start + len(quote)}, quote: "{crlf}"'
    entries = (
        "- id: q\n  document: pump\n  question: How?\n  anchors:\n"
        f"    - {{{span}, source: manuals, version: 3.10, sha256: {DIGEST}}}\n"
        f"    - {{quote: hook 14, document: key, source: notes, version: 7, "
        f"sha256: {sha256(KEY)}}}\n"
    )
    path = tmp_path / "questions.yaml"
    path.write_text(entries)
    (question,) = READERS["markdown"](tmp_path, options={}).questions
    hook = KEY.index("hook")
    assert question.evidence == (
        Evidence("pump", start, start + len(quote)), Evidence("key", hook, hook + 7)
    )
    # The pins of the one document do not hold for the other, nor those of the older version.
    path.write_text(
        entries.replace("version: 7", "version: 3.10").replace("version: 3.10, sha256: " + DIGEST,
                                                               "version: 2, sha256: " + DIGEST)
        + "- id: red\n  document: pump\n  question: Which?\n  anchors:\n"
        "    - {quote: Press the red button., version: 2}\n"
    )
    with pytest.raises(AnchorError) as caught:
        READERS["markdown"](tmp_path, options={})
    for part in ("q, anchor 0: it is pinned to version '2' of pump, which has '3.10' now",
                 "q, anchor 1: it is pinned to version '3.10' of key, which has '7' now",
                 "red, anchor 0: it is pinned to version '2' of pump"):
        assert part in str(caught.value)
