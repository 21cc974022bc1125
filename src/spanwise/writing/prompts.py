"""What a writer is asked for each type of question, and what counts as a usable answer.

The same words ask a model and a person. Prompts show no section title: a question that borrowed one
would favour the conditions that embed titles. They hold no example either, because small models
copy examples. A paraphrase is asked for without the passages, so that it cannot copy them.
"""

from __future__ import annotations

import json
import re
import unicodedata
from collections.abc import Mapping
from typing import Any

from spanwise.llm.model import Answer, Request
from spanwise.writing.leakage import shared_run
from spanwise.writing.sampling import Sample, Type
from spanwise.writing.words import english, words

WORDS = (4, 60)
"""Fewest and most words of a question."""

ASKS: dict[Type, str] = {
    "factoid": (
        "Ask for one fact that the passage states. Name what the question is about, so that it "
        "can be understood by someone who sees neither the passage nor its title."
    ),
    "underspecified": (
        "Ask for one fact that the passage states, but name what it is about only vaguely, by its "
        "role or kind. Use no proper name, neither from the passage nor from the title."
    ),
    "multihop": (
        "Ask one question that can be answered only by someone who has read both passages: it "
        "brings together one fact of each. Name what the question is about."
    ),
    "structural": (
        "Ask one broad question whose full answer takes all of what is said here: how something "
        "came about, which kinds or parts of it there are, or what speaks for and against it. One "
        "fact must not answer it. Name what the question is about."
    ),
}

RULES = (
    "Write one question in the language of the passage. Use your own words: never four words in a "
    "row from the passage, and synonyms wherever they fit. Ask about the subject itself, without a "
    "word about the passage, the text, the article or its topic. Do not answer."
)

_PARAPHRASE = (
    "Reword a question. The new question asks for exactly the same thing, but it begins with "
    "another word, takes synonyms and turns the order of its parts around. It is one sentence, in "
    "the same language, and ends in a question mark."
)
_VAGUE = " What is named vaguely stays vague: add no proper name."

_REPLY = ' Reply with JSON alone: {"question": "..."}'

SCHEMA: Mapping[str, Any] = {
    "type": "object",
    "properties": {"question": {"type": "string"}},
    "required": ["question"],
    "additionalProperties": False,
}
_MAX_TOKENS = 160
_REPEATED_WORDS = 7

_ASKS = re.compile(r"[?？؟⸮;][\"'”’»›)\]]*\Z")  # a Greek question mark is a semicolon
_REFUSAL = re.compile(
    r"(?:i['’]?m sorry|i am sorry|sorry\b|i (?:cannot|can['’]t|can not|am unable)|as an ai\b|"
    r"unfortunately\b)", re.IGNORECASE,
)
_MENTION = re.compile(
    r"\b(?:the|this|these|those|both|each|given|provided) (?:given |provided |two )?"
    r"(?:passages?|excerpts?)\b"
    r"|\b(?:according to|described in|mentioned in|stated in|in|from) (?:the|this) "
    r"(?:text|article|paragraph|section|document)\b", re.IGNORECASE,
)


def question_request(sample: Sample, problem: str | None = None) -> Request:
    """Ask for a question; `problem` says why the last answer was of no use."""
    parts = [f"Title: {sample.title}"]
    for number, text in enumerate(sample.texts, 1):
        label = f"Passage {number}" if len(sample.texts) > 1 else "Passage"
        parts.append(f"{label}:\n{text}")
    parts.append(ASKS[sample.type] + _mend(problem))
    return Request(RULES + _REPLY, "\n\n".join(parts), SCHEMA, _MAX_TOKENS)


def paraphrase_request(sample: Sample, question: str, problem: str | None = None) -> Request:
    """Ask for the question in other words; `problem` says why the last answer was of no use."""
    vague = _VAGUE if sample.type == "underspecified" else ""
    prompt = f"Question: {question}{_mend(problem)}"
    return Request(_PARAPHRASE + vague + _REPLY, prompt, SCHEMA, _MAX_TOKENS)


def _mend(problem: str | None) -> str:
    return f"\n\nA first try was of no use: {problem}. Write quite another one." if problem else ""


def read_answer(answer: Answer, sample: Sample, question: str | None = None) -> tuple[str, str]:
    """A model's answer as (question, problem): one of the two is empty.

    question: what was to be paraphrased, or None where a question was asked for.
    """
    text, problem = _unwrapped(answer)
    if not problem:
        text = tidy(text)
        problem = problem_of(text, sample, question)
    return ("", problem) if problem else (text, "")


def tidy(text: str) -> str:
    """White space closed up, and quotation marks around the whole taken off."""
    text = " ".join(text.split())
    for left, right in ('""', "“”", "«»"):
        if len(text) > 1 and text[0] == left and text[-1] == right:
            text = text[1:-1].strip()
    return text


def problem_of(text: str, sample: Sample, question: str | None = None) -> str:
    """Why a wording is no question to be filtered, or "" if it is one.

    question: the wording that this one paraphrases, or None.
    """
    found = words(text)
    least, most = WORDS
    passage = " ".join(sample.texts)
    instructions = " ".join((RULES, _PARAPHRASE, ASKS[sample.type]))
    if not found:
        return "it is empty"
    if any(unicodedata.category(sign) in ("Cc", "Cs", "Co", "Cn") for sign in text):
        return "it holds control characters"
    if _REFUSAL.match(text):
        return "it is a refusal"
    if len(found) < least:
        return f"it has fewer than {least} words"
    if len(found) > most:
        return f"it has more than {most} words"
    if shared_run(text, instructions, _REPEATED_WORDS):
        return "it repeats the instructions"
    if _MENTION.search(text):
        return "it mentions the passage"
    if english(passage) and not english(text):
        return "it is in another language"
    if not _ASKS.search(text):
        return "it does not end in a question mark"
    if question is not None and found == words(question):
        return "it is the question unchanged"
    return ""


def _unwrapped(answer: Answer) -> tuple[str, str]:
    """The string under `question` of the answer's JSON object, and what is wrong with the answer.

    Prose or a fence around the object is passed over; of several objects the first with the key
    counts.
    """
    if answer.finish == "length":
        return "", "it was cut off"
    for found in _objects(answer.text):
        if "question" in found:
            value = found["question"]
            return (value, "") if isinstance(value, str) else ("", "its question is no text")
    return "", "it has no JSON object with a question" if answer.text.strip() else "it is empty"


def _objects(text: str) -> list[dict[str, Any]]:
    decoder = json.JSONDecoder()
    found: list[dict[str, Any]] = []
    at = text.find("{")
    while at >= 0:
        try:
            value, end = decoder.raw_decode(text, at)
        except (ValueError, RecursionError):
            at = text.find("{", at + 1)
            continue
        found.append(value)
        at = text.find("{", end)
    return found
