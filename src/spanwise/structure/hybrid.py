"""The segmenter's boundaries and levels, with titles from a language model.

One request for each section, from its text alone. Where the model gives no usable title the
segmenter's own stays, counted.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from spanwise.documents.model import Document
from spanwise.llm.model import Answer, Ask, Request
from spanwise.llm.showing import SHOWN_CHARACTERS, shorten, texts
from spanwise.structure import answers, repair
from spanwise.structure.model import Tree
from spanwise.structure.outline import OutlineSettings
from spanwise.structure.repair import Line
from spanwise.text.scripts import scripts_of

TEXT_TOKENS = 1200
"""Of a section's text the model sees at most this much: enough to name its topic."""

_TITLE_TOKENS = 64
_FRAME_TOKENS = 256  # instructions, above what they take

SYSTEM = "You give a section of a document its title. You answer with one JSON object only."

_PROMPT = """\
The text of one section:

{text}

Give the section a title: two to six words, in the language of the text, naming what this section \
is about, as an author's heading would.
Answer: {{"title": ...}}"""

SCHEMA: Mapping[str, Any] = {
    "type": "object",
    "properties": {
        "title": {"type": "string", "minLength": 1, "maxLength": repair.TITLE_CHARACTERS}
    },
    "required": ["title"],
    "additionalProperties": False,
}


@dataclass(frozen=True, slots=True)
class Titled:
    """What became of one document.

    tree:     the segmenter's, with other titles.
    kept:     sections that kept the segmenter's title, by what the model gave instead of one.
    numbered: titles of the segmenter's that got a number, the model having given them elsewhere.
    shortened: sections of which the model did not see every word.
    """

    tree: Tree
    kept: Mapping[str, int]
    numbered: int = 0
    shortened: int = 0


def title_sections(
    documents: Sequence[Document], trees: Sequence[Tree], ask: Ask, settings: OutlineSettings
) -> list[Titled]:
    """The trees with titles from the model; boundaries, levels and offsets stay as they are.

    documents, trees: of equal length, tree by document, each tree legal.
    """
    shown = [_section_texts(d, tree, settings) for d, tree in zip(documents, trees, strict=True)]
    asked = [
        Request(SYSTEM, _PROMPT.format(text=text), SCHEMA, _TITLE_TOKENS, document.doc_id)
        for document, one in zip(documents, shown, strict=True) for text, _ in one if text
    ]
    found = iter(ask(asked) if asked else [])
    answered = [[next(found) if text else None for text, _ in one] for one in shown]
    return [
        replace(_titled(document, tree, one), shortened=sum(cut for _, cut in texts_of))
        for document, tree, one, texts_of in zip(documents, trees, answered, shown, strict=True)
    ]


def _section_texts(
    document: Document, tree: Tree, settings: OutlineSettings
) -> list[tuple[str, bool]]:
    """What the model sees of each section, and whether words are missing in it.

    Its own paragraphs, or those of its subsections where it has none, shortened as an outline's are
    until they fit; where the shortest form does not fit either, every second, third, ... paragraph
    of it. "" for a heading with no text below.
    """
    whole = texts(document)
    room = min(TEXT_TOKENS, settings.window_tokens - _FRAME_TOKENS - _TITLE_TOKENS)
    found = []
    for index, section in enumerate(tree.sections):
        last = section.last
        if last < section.first:
            for later in tree.sections[index + 1 :]:
                if later.level <= section.level:
                    break
                last = later.last
        paragraphs = whole[section.first : last + 1]
        text = _fitting(paragraphs, room, settings)
        found.append((text, text.split() != " ".join(paragraphs).split()))
    return found


def _fitting(paragraphs: Sequence[str], room: int, settings: OutlineSettings) -> str:
    text = ""
    for limit in SHOWN_CHARACTERS:
        text = "\n".join(shorten(paragraph, limit) for paragraph in paragraphs)
        if settings.count(text) <= room:
            return text
    for step in range(2, len(paragraphs) + 1):
        text = "\n".join(shorten(p, SHOWN_CHARACTERS[-1]) for p in paragraphs[::step])
        if settings.count(text) <= room:
            break
    return text


def _titled(document: Document, tree: Tree, found: Sequence[Answer | None]) -> Titled:
    """Take each title that is usable and not taken above or beside; else the segmenter's."""
    scripts = scripts_of(document.body)
    kept: Counter[str] = Counter()

    def choose(index: int, own: str, taken: set[str]) -> str:
        answer = found[index]
        if answer is None or answer.error is not None:
            kept["no text to ask about" if answer is None else "no answer"] += 1
            return own
        title = answers.title(answer.text)
        if (fault := repair.title_fault(title, taken, scripts)) is not None:
            kept[fault] += 1
            return own
        return title

    lines: list[Line] = [(s.title, s.level, s.first, s.last) for s in tree.sections]
    chosen = repair.choose_titles(lines, choose)
    mended, numbered = repair.mend_titles(
        [(title, *line[1:]) for title, line in zip(chosen, lines, strict=True)], scripts
    )
    sections = tuple(
        replace(section, title=line[0])
        for section, line in zip(tree.sections, mended, strict=True)
    )
    return Titled(Tree(tree.doc_id, sections), dict(sorted(kept.items())), numbered)


def tally(results: Sequence[Titled]) -> Mapping[str, int]:
    """Counts for the report: sections, and those that kept the segmenter's title, by reason."""
    kept: Counter[str] = Counter()
    for one in results:
        kept.update(one.kept)
    return {
        "sections": sum(len(one.tree.sections) for one in results),
        **{f"segmenter's title kept: {reason}": n for reason, n in sorted(kept.items())},
        "segmenter's titles that got a number": sum(one.numbered for one in results),
        "sections shown shortened": sum(one.shortened for one in results),
    }
