"""The leakage filter, on paper, against a slow twin and against rouge-score."""

from __future__ import annotations

import pickle

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from spanwise.errors import QuestionError
from spanwise.writing.leakage import Limits, judge, rouge_l, shared_run
from spanwise.writing.words import english, named, names, title_names, words

from . import reference_questions as twin

SPAN = "The pump was bought in 1951 by the harbour board, and it drained the old dock in one night."


@pytest.mark.parametrize(
    ("question", "span", "expected"),
    [
        ("the cat sat", "the cat sat", 1.0),  # L = 3: 2*3 / (3 + 3)
        ("the cat sat", "a cat sat down", 4 / 7),  # L = 2 (cat sat): 2*2 / (3 + 4)
        ("sat cat the", "the cat sat", 2 / 6),  # any one word: order counts
        ("Who SAT, cat?", "the cat sat", 2 / 6),  # L = 1, signs and case are nothing
        # L = 3 (pump, in, 1951), m = 19 words of the span, n = 7: 6 / 26.
        ("which pump had they paid in 1951", SPAN, 6 / 26),
        ("what drained docks", SPAN, 2 / 22),  # `docks` is not `dock`: no stemming
        ("don't", "don t", 1.0),  # an apostrophe parts two words
        ("what", "", 0.0),
    ],
)
def test_rouge_l_on_paper(question: str, span: str, expected: float) -> None:
    assert rouge_l(question, span) == pytest.approx(expected, abs=1e-12)


@pytest.mark.parametrize(
    ("question", "span", "expected"),
    [
        ("Who drained the old dock?", SPAN, "drained the old dock"),
        ("Did the board, AND it, pay?", SPAN, None),  # `board and it` is three words
        ("Was the harbour: board, and - it - sold?", SPAN, "the harbour board and"),
        ("Who had the old dock in view?", SPAN, "the old dock in"),
        ("Who drained the dock?", SPAN, None),  # `old` is missing in between
        ("the U.S. navy", "for the U.S. Navy", "the u s navy"),
        ("one two three", "one two three", None),  # three words are no four
    ],
)
def test_runs_on_paper(question: str, span: str, expected: str | None) -> None:
    assert shared_run(question, span) == expected


def worded(common: str, filler: str, total: int) -> str:
    """Seven common words, never four in a row, filled up to a length."""
    a, b, c, d, e, f, g = common.split()
    head = [a, b, c, f"{filler}0", d, e, f, f"{filler}1", g]
    return " ".join([*head, *(f"{filler}{i}" for i in range(2, total - len(head) + 2))])


def test_the_limit_itself_passes() -> None:
    common = "some seven words that stand in both"
    question = worded(common, "q", 13)
    # L = 7, m + n = 27 + 13: 14 / 40 = .35 exactly; one word less: 14 / 39 = .359.
    at_limit = judge(question, [worded(common, "s", 27)])
    above = judge(question, [worded(common, "s", 26)])
    assert (at_limit.rouge_l, at_limit.reason, at_limit.shared) == (pytest.approx(0.35), None, None)
    assert (above.rouge_l, above.reason) == (pytest.approx(14 / 39), "rouge-l")


def test_each_span_is_held_alone_and_the_worst_counts() -> None:
    spans = ["Rain fell on the first day.", "Of March nothing is known."]
    # `the first day of march` runs across the two spans, not inside one: three words at most.
    found = judge("Where was he on that first day of March?", spans)
    # Against the first: on, first, day: 6 / 15 = .4; against the second: of march: 4 / 14.
    assert found.rouge_l == pytest.approx(0.4)
    assert found.reason == "rouge-l" and found.shared is None
    assert judge("Where was he on that first day of March?", spans[1:]).reason is None


def test_rouge_l_is_named_first_and_the_run_is_told_as_well() -> None:
    found = judge("Rain fell on the first day", ["Rain fell on the first day."])
    assert (found.rouge_l, found.reason, found.shared) == (1.0, "rouge-l", "rain fell on the")
    # L = 4, m = 19 and n = 9: 8 / 28 = .286.
    found = judge("Which of them all ever drained the old dock?", [SPAN])
    assert found.rouge_l == pytest.approx(8 / 28)
    assert (found.reason, found.shared) == ("4-gram", "drained the old dock")


def test_limits_are_settings() -> None:
    question = "Which of them all ever drained the old dock?"
    assert judge(question, [SPAN], Limits(rouge_l=0.28)).reason == "rouge-l"
    assert judge(question, [SPAN], Limits(ngram=5)).reason is None
    for wrong in ({"rouge_l": 1.5}, {"rouge_l": -0.1}, {"ngram": 0}):
        with pytest.raises(ValueError, match="limits need"):
            Limits(**wrong)


@pytest.mark.parametrize("blank", ["", "  ", "?!", "…—"])
def test_a_question_without_words_is_refused(blank: str) -> None:
    with pytest.raises(QuestionError, match="it has no word"):
        judge(blank, [SPAN])


def test_no_span_is_no_pass() -> None:
    with pytest.raises(ValueError, match="at least one span"):
        judge("What is it?", [])


VOCABULARY = st.sampled_from(["the", "Pump", "dock", "in", "1951", "x-ray", "don't", "a", "U.S."])
SENTENCE = st.lists(VOCABULARY, min_size=1, max_size=9).map(" ".join)


@given(SENTENCE, SENTENCE, st.integers(1, 5))
def test_against_the_twin(question: str, span: str, size: int) -> None:
    found, wanted = twin.ascii_words(question), twin.ascii_words(span)
    assert words(question) == found
    assert rouge_l(question, span) == pytest.approx(float(twin.rouge_l(found, wanted)), abs=1e-12)
    run = shared_run(question, span, size)
    assert (run is not None) == twin.shares_run(found, wanted, size)
    assert run is None or (f" {run} " in f" {' '.join(found)} ")
    verdict = judge(question, [span], Limits(ngram=size))
    above = twin.rouge_l(found, wanted) * 100 > 35
    assert (verdict.reason is None) == (not above and run is None)
    assert (verdict.reason == "rouge-l") == above


@settings(deadline=None)  # the first call imports the judge
@given(st.text(st.characters(max_codepoint=127)), st.text(st.characters(max_codepoint=127)))
def test_words_and_values_are_rouge_scores_in_ascii(question: str, span: str) -> None:
    judge_of_rouge = pytest.importorskip("rouge_score.rouge_scorer")
    tokens = pytest.importorskip("rouge_score.tokenize")
    own = judge_of_rouge.RougeScorer(["rougeL"]).score(span, question)["rougeL"].fmeasure
    assert words(question) == tokens.tokenize(question, None)
    assert rouge_l(question, span) == own


@settings(deadline=None)
@given(st.text(max_size=40), st.text(max_size=40))
def test_any_text_is_never_below_rouge_score(question: str, span: str) -> None:
    scorer = pytest.importorskip("rouge_score.rouge_scorer").RougeScorer(["rougeL"])
    found = rouge_l(question, span)
    assert scorer.score(span, question)["rougeL"].fmeasure <= found <= 1
    assert found == pytest.approx(rouge_l(span, question), abs=1e-12)  # F1 is symmetric


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("Насос купили в порту в тот год", "letters that rouge-score does not see"),
        ("東京都は日本の首都である", "ideographs, without spaces"),
        ("Η αντλία στέγνωσε την παλιά δεξαμενή", "letters with accents"),
    ],
)
def test_a_copied_text_is_rejected_in_every_script(text: str, why: str) -> None:
    rouge = pytest.importorskip("rouge_score.rouge_scorer").RougeScorer(["rougeL"])
    assert rouge.score(text, text)["rougeL"].fmeasure == 0, why
    found = judge(text, [text])
    assert found.reason == "rouge-l" and found.shared is not None


def test_words_are_the_same_however_they_are_encoded() -> None:
    assert words("Café") == words("Cafe\u0301") == words("ＣＡＦÉ") == ["café"]
    expected = ["the", "ship", "s", "x", "ray"]
    assert words("the ship’s x‑ray") == words("the ship's x-ray") == expected


def test_names_are_told_from_common_words() -> None:
    text = "In May the crew of Apollo 8 left. Frank Borman's men saw the Moon, and NASA paid."
    assert names(text) == {"apollo", "borman", "moon", "nasa"}  # `Frank` opens a sentence
    assert named("When did BORMAN see the moon?", names(text)) == ["BORMAN"]
    assert named("When did the commander see the moon?", names(text)) == []
    assert title_names("The Battle of Hastings") == {"battle", "hastings"}
    assert english("Wer hat das Schiff gesehen?") is False and english("Who saw it?") is True


def test_verdicts_are_plain_values() -> None:
    found = judge("Who saw the ship?", [SPAN])
    assert pickle.loads(pickle.dumps(found)) == found
