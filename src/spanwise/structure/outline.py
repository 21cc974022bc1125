"""An inducer that asks a language model: numbered paragraphs without headings, an outline back.

Each answer is verified; what it breaks is shown to the model once; what is still wrong is repaired
by rules if it is near-valid, else the document is unusable. A document that does not fit the
model's context window is asked about in overlapping windows, whose outlines are joined. Model and
verification share one numbering: paragraphs count from 0.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import Any, Literal

from spanwise.documents.model import Document, Paragraph
from spanwise.errors import ParamsError
from spanwise.llm.model import Answer, Ask, Request
from spanwise.llm.showing import SHOWN_CHARACTERS, shorten, texts, windows
from spanwise.structure import answers, repair
from spanwise.structure.model import MAX_LEVEL, Tree, make, verify
from spanwise.structure.repair import Line, Repaired, Row
from spanwise.text.scripts import scripts_of

SHORTEST_WINDOW = 2048
"""In tokens. Below, instructions and answers leave no room for paragraphs."""

_MARGIN = 0.85  # of the window is filled: another tokenizer counted up to 9 % fewer tokens
_PARAGRAPH_TOKENS = 32  # of answer: a section takes some 42, three of four paragraphs begin one
_VIOLATIONS = 8  # shown to the model, each cut at _VIOLATION_CHARACTERS
_VIOLATION_CHARACTERS = 160
_VIOLATION_TOKENS = 48

SYSTEM = (
    "You restore the outline of a document whose headings were taken out. "
    "You answer with one JSON object and nothing else."
)

_PROMPT = """\
{what} Its {count} paragraphs, each behind its number:

{paragraphs}

Divide paragraphs 0 to {last} into sections, as an author would by headings.
- A section begins where the topic changes. Sections differ in length: some have one paragraph, \
some have many.
- "first" and "last" are the numbers of a section's first and last paragraph. The first section \
begins at 0; every other one begins right after the last paragraph of the section before it; the \
final one ends at {last}. So each paragraph is in exactly one section.
- "level" is 1 for a main topic. A section has level 2 only if its topic is a part of that of the \
level 1 section before it, and so on to {levels}. An introduction has no parts. The first section \
has level 1; no level is more than one above the level before it.
- "title" names the topic of the section in two to six words, in the language of the text. No two \
sections have the same title.
Answer: {{"sections": [{{"title": ..., "level": ..., "first": ..., "last": ...}}, ...]}}"""

_CORRECTION = """

You have answered this before:
{answer}
That breaks the rules:
{violations}
Answer again with the whole outline, free of these errors."""

Outcome = Literal["given", "corrected", "repaired", "unusable"]
_OUTCOMES: tuple[Outcome, ...] = ("given", "corrected", "repaired", "unusable")


@dataclass(frozen=True, slots=True)
class OutlineSettings:
    """How documents are shown.

    window_tokens: what the server takes for one request, prompt and answer together.
    count:         a text's number of tokens by any tokenizer; 15 % of the window stay free for its
                   error.
    """

    window_tokens: int
    count: Callable[[str], int]

    def __post_init__(self) -> None:
        if self.window_tokens < SHORTEST_WINDOW:
            raise ParamsError(
                f"a context window of {self.window_tokens} tokens is too short to induce an "
                f"outline: at least {SHORTEST_WINDOW}"
            )


@dataclass(frozen=True, slots=True)
class Outlined:
    """What became of one document.

    tree:       None if unusable.
    outcome:    `given`: the first answer was legal; `corrected`: the second one was; `repaired`:
                rules made it legal; of a document in windows, the worst of its windows.
    violations: of the answers that were not legal: for `corrected` the first, for `repaired` the
                one that was repaired, for `unusable` both. Empty for `given`.
    windows:    how many the document was asked about in; 0 if it has no paragraphs.
    asked_again: windows that went through the correction round.
    shortened:  paragraphs of which the model saw beginning and end alone.
    retitled:   titles that rules changed.
    agreed:     joins at a boundary that both windows have, of `windows` - 1.
    """

    doc_id: str
    tree: Tree | None
    outcome: Outcome
    violations: tuple[str, ...] = ()
    windows: int = 1
    asked_again: int = 0
    shortened: int = 0
    retitled: int = 0
    agreed: int = 0


@dataclass(frozen=True, slots=True)
class Plan:
    """How a document is asked about: its paragraphs as shown, and the windows [first, stop)."""

    shown: tuple[str, ...]
    windows: tuple[tuple[int, int], ...]
    shortened: int


@dataclass(frozen=True, slots=True)
class _Verdict:
    """An answer about one window, read and verified."""

    rows: list[Row]
    violations: list[str]
    repaired: Repaired


@dataclass(frozen=True, slots=True)
class _Settled:
    """A window's lines, numbered from its own first paragraph, and how they came about."""

    lines: tuple[Line, ...]
    outcome: Outcome
    violations: list[str]


def schema(count: int) -> dict[str, Any]:
    """JSON schema of an outline over `count` paragraphs; no section is out of bounds."""
    number = {"type": "integer", "minimum": 0, "maximum": count - 1}
    fields = {
        "title": {"type": "string", "minLength": 1, "maxLength": repair.TITLE_CHARACTERS},
        "level": {"type": "integer", "minimum": 1, "maximum": MAX_LEVEL},
        "first": number,
        "last": number,
    }
    section = {
        "type": "object", "properties": fields, "required": list(fields),
        "additionalProperties": False,
    }
    # An outline can have more sections than paragraphs only where headings have no text.
    sections = {"type": "array", "items": section, "minItems": 1, "maxItems": count}
    return {
        "type": "object", "properties": {"sections": sections}, "required": ["sections"],
        "additionalProperties": False,
    }


def plan(document: Document, settings: OutlineSettings) -> Plan:
    """How a document is shown: whole where it fits, else shortened, else in windows as well."""
    whole = texts(document)
    frame = settings.count(SYSTEM) + settings.count(_prompt(["0"], 0, 2)) + settings.count(
        _CORRECTION
    )
    free = int(settings.window_tokens * _MARGIN) - frame - _VIOLATIONS * _VIOLATION_TOKENS

    def room(paragraphs: int) -> int:
        """Tokens that so many paragraphs may take: the rest holds the answer, and the earlier
        answer where it is corrected."""
        return free - answer_tokens(paragraphs, settings) * 3 // 2

    shown: list[str] = []
    tokens: list[int] = []
    for limit in SHOWN_CHARACTERS:
        shown = [shorten(text, limit) for text in whole]
        tokens = [settings.count(f"[{index}] {line}") for index, line in enumerate(shown)]
        if sum(tokens) <= room(len(shown)):
            break
    shortened = sum(line != " ".join(t.split()) for line, t in zip(shown, whole, strict=True))
    return Plan(tuple(shown), tuple(windows(tokens, room)), shortened)


def answer_tokens(paragraphs: int, settings: OutlineSettings) -> int:
    """Longest answer about so many paragraphs: three sections for four of them, at most a quarter
    of the window."""
    return min(64 + _PARAGRAPH_TOKENS * paragraphs, settings.window_tokens // 4)


def _prompt(shown: Sequence[str], part: int, parts: int) -> str:
    what = "A document." if parts == 1 else f"Part {part + 1} of {parts} of a long document."
    return _PROMPT.format(
        what=what, count=len(shown), last=len(shown) - 1, levels=MAX_LEVEL,
        paragraphs="\n".join(f"[{index}] {line}" for index, line in enumerate(shown)),
    )


def requests(document: Document, plan: Plan, settings: OutlineSettings) -> list[Request]:
    """The first round's request for each window."""
    return [
        Request(
            SYSTEM, _prompt(plan.shown[first:stop], part, len(plan.windows)), schema(stop - first),
            answer_tokens(stop - first, settings), document.doc_id,
        )
        for part, (first, stop) in enumerate(plan.windows)
    ]


def correction(
    request: Request, answer: Answer, rows: Sequence[Row], violations: Sequence[str],
    settings: OutlineSettings,
) -> Request:
    """The second and last request: the first prompt, the answer as it was read, what it breaks."""
    lines = [
        f"{index}: {row.title[: repair.TITLE_CHARACTERS]!r}, level {row.level}, paragraphs "
        f"{row.first}..{row.last}"
        for index, row in enumerate(rows)
    ] or [answers.clean(shorten(answer.text, SHOWN_CHARACTERS[-1])) or "(nothing)"]
    kept = list(accumulate(settings.count(line) for line in lines))
    fitting = max(1, sum(tokens <= request.max_tokens // 2 for tokens in kept))
    wrong = [f"- {one[:_VIOLATION_CHARACTERS]}" for one in violations]
    return Request(
        request.system,
        request.prompt + _CORRECTION.format(
            answer="\n".join(_first(lines, fitting)),
            violations="\n".join(_first(wrong, _VIOLATIONS)),
        ),
        request.schema, request.max_tokens, request.group,
    )


def _first(lines: Sequence[str], limit: int) -> list[str]:
    more = len(lines) - limit
    return [*lines[:limit], f"(and {more} more)"] if more > 0 else list(lines)


def _judge(answer: Answer, paragraphs: Sequence[Paragraph], scripts: frozenset[str]) -> _Verdict:
    if answer.error is not None:
        return _Verdict([], [f"no answer: {answer.error}"], Repaired((), 0.0, 0.0))
    rows = repair.own(answers.rows(answer.text))
    found = repair.violations(rows, paragraphs, scripts)
    if found and answer.finish == "length":
        found.append("the answer was cut off before its end: use fewer sections, shorter titles")
    return _Verdict(rows, found, repair.repair(rows, paragraphs))


def _settle(first: _Verdict, second: _Verdict | None) -> _Settled:
    """A legal answer, the second one too; else the nearer of the two, repaired if it is
    near-valid: more paragraphs left where it put them, then fewer violations, then the second."""
    if not first.violations:
        return _Settled(first.repaired.lines, "given", [])
    if second is not None and not second.violations:
        return _Settled(second.repaired.lines, "corrected", first.violations)
    near = [v for v in (second, first) if v is not None and v.repaired.near_valid]
    if not near:
        both = [*first.violations, *(second.violations if second is not None else ())]
        return _Settled((), "unusable", list(dict.fromkeys(both)))
    best = max(near, key=lambda v: (v.repaired.paragraphs, -len(v.violations)))
    return _Settled(best.repaired.lines, "repaired", best.violations)


def induce_outlines(
    documents: Sequence[Document], ask: Ask, settings: OutlineSettings
) -> list[Outlined]:
    """An outline for each document, in their order.

    All documents' first requests go to `ask` in one call, then all corrections in another; there is
    no third. A request that got no answer at all is not repeated: `ask` has retried already.
    """
    plans = [plan(document, settings) for document in documents]
    scripts = [scripts_of(document.body) for document in documents]
    asked = [requests(d, p, settings) for d, p in zip(documents, plans, strict=True)]
    places = [(d, w) for d, one in enumerate(asked) for w in range(len(one))]

    def judged(which: Sequence[tuple[int, int]], found: Sequence[Answer]) -> list[_Verdict]:
        return [
            _judge(answer, documents[d].paragraphs[slice(*plans[d].windows[w])], scripts[d])
            for (d, w), answer in zip(which, found, strict=True)
        ]

    answered = ask([asked[d][w] for d, w in places]) if places else []
    first = dict(zip(places, judged(places, answered), strict=True))
    again = [
        (place, answer) for place, answer in zip(places, answered, strict=True)
        if first[place].violations and answer.error is None
    ]
    corrections = [
        correction(asked[d][w], answer, first[d, w].rows, first[d, w].violations, settings)
        for (d, w), answer in again
    ]
    which = [place for place, _ in again]
    second = dict(
        zip(which, judged(which, ask(corrections) if corrections else []), strict=True)
    )
    return [
        _whole(
            document, plans[d],
            [_settle(first[d, w], second.get((d, w))) for w in range(len(asked[d]))],
            sum((d, w) in second for w in range(len(asked[d]))), scripts[d],
        )
        for d, document in enumerate(documents)
    ]


def _whole(
    document: Document, plan: Plan, settled: Sequence[_Settled], asked_again: int,
    scripts: frozenset[str],
) -> Outlined:
    """Join a document's windows, mend its titles, and verify once more what came of it."""
    parts = len(settled)
    outcome: Outcome = max((s.outcome for s in settled), key=_OUTCOMES.index, default="given")
    named = tuple(
        v if parts == 1 else f"part {number + 1} of {parts}: {v}"
        for number, s in enumerate(settled) for v in s.violations
    )
    tree, agreed, retitled = None, 0, 0
    if outcome != "unusable":
        joined: list[Line] = []
        for (offset, _), one in zip(plan.windows, settled, strict=True):
            lines = [(t, lv, first + offset, last + offset) for t, lv, first, last in one.lines]
            joined, both = repair.join(joined, lines) if joined else (lines, False)
            agreed += both
        joined, retitled = repair.mend_titles(joined, scripts)
        tree = make(document.doc_id, document.paragraphs, joined)
        if wrong := verify(tree, document.paragraphs):  # never yet; trees are trusted afterwards
            tree, outcome, named = None, "unusable", (*named, *wrong)
    return Outlined(
        document.doc_id, tree, outcome, named, parts, asked_again, plan.shortened, retitled, agreed
    )


def tally(results: Sequence[Outlined]) -> Mapping[str, int]:
    """Counts for the report, zeros included."""
    outcomes = Counter(one.outcome for one in results)
    return {
        "documents": len(results),
        "usable as given": outcomes["given"],
        "corrected": outcomes["corrected"],
        "repaired": outcomes["repaired"],
        "unusable": outcomes["unusable"],
        "documents in windows": sum(one.windows > 1 for one in results),
        "windows": sum(one.windows for one in results),
        "windows asked again": sum(one.asked_again for one in results),
        "joins at a boundary of both windows": sum(one.agreed for one in results),
        "paragraphs shown shortened": sum(one.shortened for one in results),
        "titles changed by rules": sum(one.retitled for one in results),
    }
