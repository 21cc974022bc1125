"""Gold spans for questions that have yet to be written: drawn here, never reported by a writer.

Of each document, for each of four types:
    factoid         one span: one to three sentences inside one paragraph
    underspecified  the same, with something that looks like a proper name in it
    multihop        two such spans in different top-level sections, with a name in common if any
                    pair has one
    structural      a whole top-level section, from its first paragraph to its last

Decisions:
- Spans index `body`, which has no headings. Sentences come from running prose alone, and a span
  opens like a sentence and closes like one: a bold line that stands for a heading is never drawn.
- A paragraph lends its sentences once, and nothing is drawn from a section that is asked about as a
  whole: no two spans of a document overlap. Text that stands twice in its document is not drawn.
- A structural section has a title, more prose than anything else, and a length that a writer can
  take in. Sections are drawn first, but only while the rest can serve the other types.
- What a document gives depends on the seed and that document alone.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal, get_args

import numpy as np

from spanwise.documents.model import Document, Paragraph, sha256
from spanwise.errors import QuestionError
from spanwise.spans import Evidence, Span
from spanwise.structure.model import Tree
from spanwise.text.sentences import sentence_ends
from spanwise.writing.words import names, title_names

Type = Literal["factoid", "underspecified", "multihop", "structural"]
TYPES: tuple[Type, ...] = get_args(Type)
SENTENCES = (1, 2, 3)
_SPANS = {"factoid": 1, "underspecified": 1, "multihop": 2, "structural": 1}
_PROSE = "paragraph"
_CLOSES = re.compile(r"[.!?…。！？؟।][\"'”’»›)\]*_]*\Z")
_OPENS = re.compile(r"[\"'“‘«‹(\[*_]*[^\W_]")


@dataclass(frozen=True, slots=True)
class SampleSettings:
    """What is drawn.

    per_type:      samples of each type for each document.
    seed:          of all draws.
    words:         least and most words (white-space separated) of a span of sentences.
    section_words: the same of a structural section.
    """

    per_type: int = 3
    seed: int = 20260710
    words: tuple[int, int] = (12, 120)
    section_words: tuple[int, int] = (100, 1000)

    def __post_init__(self) -> None:
        if self.per_type < 1:
            raise ValueError(f"per_type is {self.per_type}, expected 1 or more")
        for name, (least, most) in (("words", self.words), ("section_words", self.section_words)):
            if not 1 <= least <= most:
                raise ValueError(f"{name} is ({least}, {most}), expected 1 <= least <= most")


@dataclass(frozen=True, slots=True)
class Sample:
    """Gold spans that a question is to be written for.

    title: the document's; section titles are left out, for a question that borrows one would favour
           the conditions that embed them.
    spans: ascending spans of body. texts: what stands there.
    """

    doc_id: str
    title: str
    type: Type
    spans: tuple[Span, ...]
    texts: tuple[str, ...]

    def __post_init__(self) -> None:
        if len(self.spans) != _SPANS[self.type] or len(self.texts) != len(self.spans):
            raise ValueError(f"{self.type} has {_SPANS[self.type]} spans, got {len(self.spans)}")
        if any(a.end > b.start for a, b in zip(self.spans, self.spans[1:], strict=False)):
            raise ValueError(f"spans of a sample ascend without overlap, got {self.spans}")

    @property
    def sample_id(self) -> str:
        """From content, e.g. `Apollo:multihop:120-480+900-1100`; the question's id as well."""
        return f"{self.doc_id}:{self.type}:" + "+".join(f"{s.start}-{s.end}" for s in self.spans)

    @property
    def digests(self) -> tuple[str, ...]:
        """SHA-256 of each text."""
        return tuple(sha256(text) for text in self.texts)

    @property
    def evidence(self) -> tuple[Evidence, ...]:
        """The spans as a question has them."""
        return tuple(Evidence(self.doc_id, s.start, s.end) for s in self.spans)


@dataclass(frozen=True, slots=True)
class Sampled:
    """What was drawn of a corpus.

    samples: by document, then type, then place.
    missing: samples of each type that documents could not give.
    """

    samples: tuple[Sample, ...]
    missing: Mapping[Type, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class _Window:
    """Sentences of one paragraph that may be drawn: `top` is the section index of its top level."""

    span: Span
    top: int
    names: frozenset[str]


def sample(
    documents: Sequence[Document], trees: Mapping[str, Tree], settings: SampleSettings
) -> Sampled:
    """Draw the spans of a corpus.

    trees:  native trees by document id.
    raises: QuestionError if a document has no tree or one of other paragraphs.
    """
    drawn: list[Sample] = []
    for document in documents:
        if document.doc_id not in trees:
            raise QuestionError(
                f"document {document.doc_id!r}: it has no native tree; sections are needed to tell "
                "which spans lie apart"
            )
        drawn += sample_document(document, trees[document.doc_id], settings)
    wanted = settings.per_type * len(documents)
    missing = {kind: wanted - sum(s.type == kind for s in drawn) for kind in TYPES}
    return Sampled(tuple(drawn), missing)


def sample_document(document: Document, tree: Tree, settings: SampleSettings) -> list[Sample]:
    """Draw the spans of one document; fewer than wanted where it cannot give more.

    returns: at most `per_type` samples of each type, by type in the order of TYPES, then place.
    raises:  QuestionError if the tree is not one of these paragraphs.
    """
    where = _tops(document, tree)
    rng = np.random.default_rng([settings.seed, *hashlib.sha256(document.doc_id.encode()).digest()])
    windows = list(_windows(document, where, settings, rng))
    windows = [windows[i] for i in rng.permutation(len(windows))]
    sections = _sections(document, tree, where, windows, settings, rng)
    chosen: dict[Type, list[tuple[Span, ...]]] = {kind: [] for kind in TYPES}
    chosen["structural"] = [(span,) for span in sections.values()]
    free = [w for w in windows if w.top not in sections]
    title = title_names(document.title)
    for _ in range(settings.per_type):  # the rarest first, in turn, so that no type takes all
        if pair := _pair(free, title):
            free = [w for w in free if w not in pair]
            first, second = sorted(w.span for w in pair)
            chosen["multihop"].append((first, second))
        if one := next((w for w in free if w.names), None):
            free.remove(one)
            chosen["underspecified"].append((one.span,))
        if free:
            chosen["factoid"].append((free.pop(0).span,))
    return [
        draw(document, kind, spans) for kind in TYPES for spans in sorted(chosen[kind])
    ]


def draw(document: Document, kind: Type, spans: tuple[Span, ...]) -> Sample:
    """A sample of these spans, with their texts."""
    texts = tuple(document.body[span.start : span.end] for span in spans)
    return Sample(document.doc_id, document.title, kind, spans, texts)


def on_raw(document: Document, span: Span) -> Span:
    """The span of `raw` from the first to the last code point of a span of `body`.

    Headings between its paragraphs come to lie inside it; `to_body` is its inverse.
    raises: QuestionError if the document has no raw text, or an edge lies in no paragraph.
    """
    return Span(_raw_offset(document, span.start), _raw_offset(document, span.end - 1) + 1)


def _raw_offset(document: Document, offset: int) -> int:
    for paragraph in document.paragraphs:
        if paragraph.raw is not None and paragraph.span.start <= offset < paragraph.span.end:
            return offset - paragraph.span.start + paragraph.raw.start
    raise QuestionError(
        f"document {document.doc_id!r}: offset {offset} of body stands nowhere in raw; "
        "give the question evidence on body"
    )


def _tops(document: Document, tree: Tree) -> list[int]:
    """The top-level section of each paragraph. Shape (paragraphs,)."""
    where = [
        top
        for section, top in zip(tree.sections, tree.tops(), strict=True)
        for _ in range(section.first, section.last + 1)
    ]
    if tree.doc_id != document.doc_id or len(where) != len(document.paragraphs):
        raise QuestionError(
            f"document {document.doc_id!r}: its tree is of {tree.doc_id!r} with {len(where)} "
            f"paragraphs, expected {len(document.paragraphs)}; read the corpus again"
        )
    return where


def _windows(
    document: Document, where: Sequence[int], settings: SampleSettings, rng: np.random.Generator
) -> Iterator[_Window]:
    """One window of sentences of every paragraph that has any, drawn among all it has."""
    for paragraph, top in zip(document.paragraphs, where, strict=True):
        if paragraph.kind != _PROSE:
            continue
        sizes = [list(_stretches(document.body, paragraph, n, settings)) for n in SENTENCES]
        if sizes := [spans for spans in sizes if spans]:
            spans = sizes[int(rng.integers(len(sizes)))]
            span = spans[int(rng.integers(len(spans)))]
            yield _Window(span, top, names(document.body[span.start : span.end]))


def _stretches(
    body: str, paragraph: Paragraph, count: int, settings: SampleSettings
) -> Iterator[Span]:
    """Every run of `count` sentences of a paragraph that may be drawn."""
    text = body[paragraph.span.start : paragraph.span.end]
    edges = [0, *sentence_ends(text, paragraph.kind)]
    least, most = settings.words
    for start, end in zip(edges, edges[count:], strict=False):
        piece = text[start:end]
        found = piece.strip()
        if not least <= len(found.split()) <= most or not _is_sentence(found):
            continue
        if body.count(found) > 1:
            continue
        first = paragraph.span.start + start + len(piece) - len(piece.lstrip())
        yield Span(first, first + len(found))


def _is_sentence(text: str) -> bool:
    opening = _OPENS.match(text)
    return opening is not None and not opening.group()[-1].islower() and bool(_CLOSES.search(text))


def _sections(
    document: Document, tree: Tree, where: Sequence[int], windows: Sequence[_Window],
    settings: SampleSettings, rng: np.random.Generator,
) -> dict[int, Span]:
    """Whole top-level sections by index, as long as enough is left for the other types."""
    paragraphs: dict[int, list[Paragraph]] = {}
    for paragraph, top in zip(document.paragraphs, where, strict=True):
        paragraphs.setdefault(top, []).append(paragraph)
    fit = [
        top for top, own in paragraphs.items()
        if tree.sections[top].title and _is_readable(document.body, own, settings)
    ]
    spans = {top: Span(paragraphs[top][0].span.start, paragraphs[top][-1].span.end) for top in fit}
    chosen: dict[int, Span] = {}
    for place in rng.permutation(len(fit)):
        top = fit[int(place)]
        span = spans[top]
        left = [w for w in windows if w.top not in chosen and w.top != top]
        # The first section needs a round of the other types beside it, the next ones all rounds.
        rounds = settings.per_type if chosen else 1
        enough = len(left) >= 4 * rounds and len({w.top for w in left}) > 1
        if enough and document.body.count(document.body[span.start : span.end]) == 1:
            chosen[top] = span
        if len(chosen) == settings.per_type:
            break
    return chosen


def _is_readable(body: str, own: Iterable[Paragraph], settings: SampleSettings) -> bool:
    total = prose = 0
    for paragraph in own:
        words = len(body[paragraph.span.start : paragraph.span.end].split())
        total += words
        prose += words if paragraph.kind == _PROSE else 0
    least, most = settings.section_words
    return least <= total <= most and 2 * prose > total


def _pair(free: Sequence[_Window], title: frozenset[str]) -> tuple[_Window, _Window] | None:
    """The first two windows of different top-level sections that share a name, else any two.

    A name that the document's title has links everything, so it links nothing.
    """
    apart = [(a, b) for i, a in enumerate(free) for b in free[i + 1 :] if a.top != b.top]
    linked = (pair for pair in apart if (pair[0].names & pair[1].names) - title)
    return next(linked, apart[0] if apart else None)
