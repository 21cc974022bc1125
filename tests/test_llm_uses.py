"""What the real local model is asked for, on a small text: every answer becomes something legal."""

from __future__ import annotations

from spanwise.contexts import Asked, write_contexts
from spanwise.documents.model import Builder, Document
from spanwise.llm.client import Client
from spanwise.params import ContextSettings
from spanwise.structure import hybrid
from spanwise.structure.model import make, verify
from spanwise.structure.native import native_tree
from spanwise.structure.outline import OutlineSettings, induce_outlines
from spanwise.text.tokens import words
from spanwise.writing.rounds import write
from spanwise.writing.sampling import SampleSettings, sample_document

from .llm_world import local_client  # noqa: F401

PARAGRAPHS = (
    "The tide gauge at Garth stands on the north quay. It measures the height of the sea every six "
    "minutes and keeps a month of readings in its own memory.",
    "A diver cleans the still pipe of the gauge in March and in September, because mussels close "
    "the holes through which the water comes in.",
    "Keys of the station hang in a steel box by the door. Whoever takes one signs the book, and "
    "Marit Oye counts the keys on the last evening of each week.",
    "A lost key is told to the harbour office within one day. The lock is changed if the key does "
    "not come back within a week.",
)
WINDOW = 1024


def document() -> Document:
    builder = Builder("garth", "Station at Garth")
    for number, text in enumerate(PARAGRAPHS):
        if number % 2 == 0:
            builder.heading(1, ("The gauge", "The keys")[number // 2])
        builder.paragraph(text)
    return builder.build()


def test_contexts_are_within_their_limit(local_client: Client) -> None:  # noqa: F811
    made, sizes = document(), ContextSettings(least_tokens=20, most_tokens=60)
    found = write_contexts(
        [Asked(made, p.span) for p in made.paragraphs[:2]], local_client.ask, sizes, WINDOW, words()
    )
    assert any(one.text for one in found)
    for one in found:
        assert one.tokens == len(one.text.split()) <= 60 and (one.text or one.problem)


def test_titles_keep_the_boundaries(local_client: Client) -> None:  # noqa: F811
    made = document()
    tree = make("garth", made.paragraphs, [("Part 1", 1, 0, 1), ("Part 2", 1, 2, 3)])
    (titled,) = hybrid.title_sections(
        [made], [tree], local_client.ask, OutlineSettings(2048, words().count)
    )
    assert [(s.level, s.first, s.last) for s in titled.tree.sections] == [(1, 0, 1), (1, 2, 3)]
    assert verify(titled.tree, made.paragraphs) == []
    assert sum(titled.kept.values()) < 2  # at least one title is the model's


def test_an_outline_is_legal_or_counted(local_client: Client) -> None:  # noqa: F811
    made = document()
    (outlined,) = induce_outlines(
        [made], local_client.ask, OutlineSettings(2048, words().count)
    )
    if outlined.tree is None:
        assert outlined.outcome == "unusable" and outlined.violations
    else:
        assert verify(outlined.tree, made.paragraphs) == []


def test_questions_go_through_both_rounds(local_client: Client) -> None:  # noqa: F811
    made = document()
    limits = SampleSettings(per_type=1, words=(8, 60), section_words=(30, 200))
    samples = sample_document(made, native_tree(made), limits)[:2]
    records = write(samples, local_client.ask)
    assert len(records) == len(samples) == 2
    for record in records:
        assert record.outcome != "unanswered"
        assert record.survived == bool(record.again and record.again.reason is None)
