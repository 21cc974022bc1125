"""Situating contexts: a few sentences by a language model that stand before a chunk.

The document comes first in the prompt and the chunk last, and the requests of one document follow
each other on one slot of the server, so that it reads the document once. A document that does not
fit is shown in overlapping parts; each chunk is asked about with the part that it lies deepest in,
and neighbours share one. An answer of no use is asked for once more, with what was wrong; a chunk
whose second answer is of no use either has no context, counted.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from spanwise.documents.model import Document
from spanwise.errors import ParamsError
from spanwise.llm.answers import json_object
from spanwise.llm.model import Answer, Ask, Request
from spanwise.llm.showing import counter, shorten, texts, windows
from spanwise.params import ContextSettings
from spanwise.spans import Span
from spanwise.text.scripts import letters_of, scripts_of
from spanwise.text.sentences import sentence_ends
from spanwise.text.tokens import Tokenizer

SYSTEM = (
    "You situate a passage in its document, so that a search for it finds it. "
    "You answer with one JSON object and nothing else."
)

_PROMPT = """\
{what}

{part}

---
One passage of this document:

{passage}

---
Write two short sentences, {least} to {most} words together, in the language of the document: what \
this passage in particular is about, and which part of the document it is. Do not quote it.{problem}
Answer: {{"context": "This passage of \\"{title}\\" ..."}}"""

_AGAIN = " A first answer was of no use: {problem}. Write quite another one."

_MARGIN = 0.85  # of the window is filled: another tokenizer counted up to 9 % fewer tokens
_CHARACTERS = 4  # of a token, nearly: bounds the answer by its schema
_ANSWER_TOKENS = 48  # beyond the context itself: its JSON, and what another tokenizer counts more
_COPIED = 12  # words in a row that stand in the passage too
_REFUSAL = re.compile(
    r"(?:i['’]?m sorry|i am sorry|sorry\b|i (?:cannot|can['’]t|am unable)|as an ai\b)",
    re.IGNORECASE,
)
_OPEN = re.compile(r'"context"\s*:\s*("(?:[^"\\]|\\.)*)', re.DOTALL)

Outcome = Literal["given", "again", "unusable"]


@dataclass(frozen=True, slots=True)
class Context:
    """What became of one chunk.

    text:    the context, "" if unusable.
    tokens:  of the text, by the study's tokenizer.
    outcome: the first answer was of use, or the second one, or neither.
    problem: of the last answer that was not good: `unusable` has one always, others where a short
             text was the best there was.
    trimmed: the answer was longer than allowed and lost its end.
    partly:  the model saw a part of the document.
    """

    text: str
    tokens: int
    outcome: Outcome
    problem: str = ""
    trimmed: bool = False
    partly: bool = False


@dataclass(frozen=True, slots=True)
class Asked:
    """One chunk to be given a context: its document and its span of body."""

    document: Document
    span: Span

    @property
    def passage(self) -> str:
        """The chunk's text without the white space around it."""
        return self.document.body[self.span.start : self.span.end].strip()


def write_contexts(
    chunks: Sequence[Asked], ask: Ask, sizes: ContextSettings, window_tokens: int,
    tokenizer: Tokenizer,
) -> list[Context]:
    """A context for each chunk, in their order.

    All first requests go to `ask` in one call, then all second ones in another; there is no third.
    A request that got no answer at all is not repeated: `ask` has retried already.

    chunks:        grouped by document, ascending, so that neighbours can share what is read.
    window_tokens: what the server takes for one request, prompt and answer together.
    raises:        ParamsError if a chunk leaves no room for its document.
    """
    shown = _shown(chunks, sizes, window_tokens, tokenizer)
    asked = [
        request(chunk, part, sizes) for chunk, (part, _) in zip(chunks, shown, strict=True)
    ]
    found = ask(asked) if asked else []
    scripts = {c.document.doc_id: scripts_of(c.document.body) for c in chunks}
    first = [
        _judge(chunk, answer, scripts[chunk.document.doc_id], sizes, tokenizer)
        for chunk, answer in zip(chunks, found, strict=True)
    ]
    again = [
        i for i, context in enumerate(first) if context.problem and found[i].error is None
    ]
    retried = [
        request(chunks[i], shown[i][0], sizes, first[i].problem) for i in again
    ]
    second = {
        i: _judge(chunks[i], answer, scripts[chunks[i].document.doc_id], sizes, tokenizer)
        for i, answer in zip(again, ask(retried) if retried else [], strict=True)
    }
    return [
        _settle(context, second.get(i), shown[i][1]) for i, context in enumerate(first)
    ]


def request(
    chunk: Asked, part: str, sizes: ContextSettings, problem: str = ""
) -> Request:
    """What is asked about one chunk, the document or its part first."""
    title = chunk.document.title
    whole = f'Document "{title}":' if part == chunk.document.body else (
        f'Part of the document "{title}":'
    )
    # Some three words for four tokens; the aim lies inside the limits, not on them.
    least, most = sizes.least_tokens * 7 // 10, sizes.most_tokens // 2
    schema = {
        "type": "object",
        "properties": {
            "context": {
                "type": "string", "minLength": sizes.least_tokens * _CHARACTERS,
                "maxLength": sizes.most_tokens * _CHARACTERS,
            }
        },
        "required": ["context"],
        "additionalProperties": False,
    }
    prompt = _PROMPT.format(
        what=whole, part=part, passage=chunk.passage, least=least, most=most, title=title,
        problem=_AGAIN.format(problem=problem) if problem else "",
    )
    return Request(
        SYSTEM, prompt, schema, sizes.most_tokens * 3 // 2 + _ANSWER_TOKENS, chunk.document.doc_id
    )


def _shown(
    chunks: Sequence[Asked], sizes: ContextSettings, window_tokens: int, tokenizer: Tokenizer
) -> list[tuple[str, bool]]:
    """For each chunk what the model sees of its document, and whether that is less than all."""
    count = counter(tokenizer)
    frames: Counter[str] = Counter()  # what a document's longest request takes without it
    for chunk in chunks:
        frame = request(chunk, "", sizes, "x" * 80)
        tokens = count(frame.system) + count(frame.prompt) + frame.max_tokens
        frames[chunk.document.doc_id] = max(frames[chunk.document.doc_id], tokens)
    parts: dict[str, list[tuple[float, float, str]]] = {}
    found = []
    for chunk in chunks:
        document = chunk.document
        if document.doc_id not in parts:
            room = int(window_tokens * _MARGIN) - frames[document.doc_id]
            parts[document.doc_id] = _parts(document, room, count)
        mine = parts[document.doc_id]
        best = max(
            mine, key=lambda one: min(chunk.span.start - one[0], one[1] - chunk.span.end)
        )
        found.append((best[2], best[2] != document.body))
    return found


def _parts(
    document: Document, room: int, count: Callable[[str], int]
) -> list[tuple[float, float, str]]:
    """Overlapping parts of a document as (start, end, text); the document's own edges are endless,
    so that a chunk at its end lies deepest in the last part."""
    if count(document.body) <= room:
        return [(float("-inf"), float("inf"), document.body)]
    if room < 256:
        raise ParamsError(
            f"document {document.doc_id!r}: {room} tokens are left for it beside a chunk and its "
            "context; raise llm.context_tokens"
        )
    shown = []
    for text in texts(document):
        # A paragraph that would fill a part alone is shown by its beginning and end.
        limit = 2 * room
        while count(text) > room // 2:
            text, limit = shorten(text, limit), limit // 2
        shown.append(text)
    tokens = [count(text) + 2 for text in shown]
    runs = windows(tokens, lambda _: room)
    return [
        (
            float("-inf") if first == 0 else document.paragraphs[first].span.start,
            float("inf") if stop == len(shown) else document.paragraphs[stop - 1].span.end,
            "\n\n".join(shown[first:stop]),
        )
        for first, stop in runs
    ]


def _judge(
    chunk: Asked, answer: Answer, scripts: frozenset[str], sizes: ContextSettings,
    tokenizer: Tokenizer,
) -> Context:
    """An answer read, held against what a context should be, and trimmed."""
    if answer.error is not None:
        return Context("", 0, "unusable", f"no answer: {answer.error}")
    read = _read(answer)
    torn = answer.finish == "length" or len(read) == sizes.most_tokens * _CHARACTERS
    text = " ".join(read.split())
    if problem := _useless(text, chunk.passage, scripts):
        return Context("", 0, "unusable", problem)
    kept = trim(text, sizes, tokenizer, torn)
    tokens = tokenizer.count(kept)
    short = f"it has fewer than {sizes.least_tokens} tokens" if tokens < sizes.least_tokens else ""
    return Context(kept, tokens, "given", short, kept != text)


def _read(answer: Answer) -> str:
    """The string under `context`; of an answer that was cut off, as far as it goes."""
    found = json_object(answer.text, ["context"])
    if found is not None:
        return found["context"] if isinstance(found["context"], str) else ""
    opened = _OPEN.search(answer.text)
    if opened is None:
        return ""
    for end in range(len(opened[1]), max(1, len(opened[1]) - 8), -1):  # a torn escape at the end
        try:
            read = json.loads(opened[1][:end] + '"', strict=False)
        except ValueError:
            continue
        return str(read)
    return ""


def _useless(text: str, passage: str, scripts: frozenset[str]) -> str:
    """Why a text is no context, or ""."""
    if not any(sign.isalnum() for sign in text):
        return "it holds no text"
    if _REFUSAL.match(text):
        return "it is a refusal"
    letters = letters_of(text)
    if scripts and letters and sum(letters[s] for s in scripts) < 0.9 * letters.total():
        return "it is in another script"
    words, inside = _words(text), f" {' '.join(_words(passage))} "
    for start in range(len(words) - _COPIED + 1):
        if f" {' '.join(words[start : start + _COPIED])} " in inside:
            return "it repeats the passage"
    return ""


def _words(text: str) -> list[str]:
    return re.findall(r"\w+", text.casefold())


def trim(text: str, sizes: ContextSettings, tokenizer: Tokenizer, torn: bool = False) -> str:
    """A text of at most `most_tokens`: up to the last sentence end that leaves `least_tokens`, else
    up to the last word that fits.

    torn: the text was cut off, so its last word may be half a word.
    """
    offsets = tokenizer.offsets(text)
    if len(offsets) <= sizes.most_tokens and not torn:
        return text
    fits = len(offsets) <= sizes.most_tokens
    limit = len(text) - 1 if fits else int(offsets[sizes.most_tokens, 0])
    for end in reversed([e for e in sentence_ends(text) if e <= limit]):
        if tokenizer.count(text[:end]) < sizes.least_tokens:
            break
        return text[:end].strip()
    at = text.rfind(" ", 0, limit + 1)
    return text[: at if at > 0 else limit].rstrip()


def _settle(first: Context, second: Context | None, partly: bool) -> Context:
    """The first answer if it is good, else the second, else a short one, else none."""
    best = first
    if second is not None:
        outcome: Outcome = "again" if second.text else "unusable"
        second = Context(second.text, second.tokens, outcome, second.problem, second.trimmed)
        better = bool(second.text) and (not second.problem or second.tokens > first.tokens)
        best = second if better or not first.text else first
    return Context(best.text, best.tokens, best.outcome, best.problem, best.trimmed, partly)


def tally(contexts: Sequence[Context]) -> Mapping[str, Any]:
    """Counts for the report, zeros included, and the mean length."""
    outcomes = Counter(one.outcome for one in contexts if one.text and not one.problem)
    # An error's own words are a server's, and many: they are told as one reason.
    without = Counter(one.problem.partition(":")[0] for one in contexts if not one.text)
    with_text = [one.tokens for one in contexts if one.text]
    return {
        "chunks": len(contexts),
        "of use at once": outcomes["given"],
        "of use when asked again": outcomes["again"],
        "shorter than asked for": sum(bool(one.text and one.problem) for one in contexts),
        "without a context": without.total(),
        **{f"without a context: {why}": n for why, n in sorted(without.items())},
        "trimmed": sum(one.trimmed for one in contexts),
        "written from a part of the document": sum(one.partly for one in contexts),
        "mean tokens": sum(with_text) / max(1, len(with_text)),
    }
