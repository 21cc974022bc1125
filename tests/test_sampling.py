"""Gold spans that are drawn, not reported."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from spanwise.corpora.markdown import read_document
from spanwise.documents.model import Builder, Document, sha256
from spanwise.errors import QuestionError
from spanwise.spans import Evidence, Span, unite
from spanwise.structure.model import Tree
from spanwise.structure.native import native_tree
from spanwise.text.sentences import sentences
from spanwise.writing.sampling import (
    TYPES,
    Sample,
    SampleSettings,
    draw,
    on_raw,
    sample,
    sample_document,
)
from spanwise.writing.words import names

from .conftest import corpora_folder

SMALL = SampleSettings(per_type=2, seed=7, words=(4, 60), section_words=(10, 200))


def written(seed: int, doc_id: str = "d") -> Document:
    """A document of six top-level sections, every sentence another one."""
    builder = Builder(doc_id, "The Harbour")
    number = 0
    for section in range(6):
        builder.heading(1, f"Section number {section} has a long heading with many words")
        for part in range(4):
            if part == 2:
                builder.heading(2, f"Below {section}")
            lines = []
            for _ in range(1 + (seed + part) % 4):
                number += 1
                lines.append(f"Then ship {number} of Captain Ahab{number} came to quay {seed}.")
            builder.paragraph(" ".join(lines))
        builder.paragraph("- an item that is no prose at all\n- and another one", "list")
    return builder.build()


def check(document: Document, tree: Tree, found: list[Sample], limits: SampleSettings) -> None:
    """Everything that a sample promises, the slow way."""
    top_of = {}
    for section, top in zip(tree.sections, tree.tops(), strict=True):
        for index in range(section.first, section.last + 1):
            top_of[index] = top
    covered: Counter[int] = Counter()
    for one in found:
        assert one.doc_id == document.doc_id and one.title == document.title
        assert one.evidence == tuple(Evidence(one.doc_id, s.start, s.end) for s in one.spans)
        tops = []
        for span, text, digest in zip(one.spans, one.texts, one.digests, strict=True):
            assert document.body[span.start : span.end] == text
            assert sha256(text) == digest
            assert document.body.count(text) == 1
            covered.update(range(span.start, span.end))
            inside = [i for i, p in enumerate(document.paragraphs) if p.span.overlap(span)]
            tops.append({top_of[i] for i in inside})
            if one.type == "structural":
                own = [i for i, top in top_of.items() if top == top_of[inside[0]]]
                assert inside == own and tree.sections[top_of[inside[0]]].title
                assert span.start == document.paragraphs[own[0]].span.start
                assert span.end == document.paragraphs[own[-1]].span.end
                least, most = limits.section_words
            else:
                (index,) = inside
                assert document.paragraphs[index].kind == "paragraph"
                assert text == text.strip() and 1 <= len(sentences(text)) <= 3
                assert text.rstrip("\"'”’)]")[-1] in ".!?…" and not text[0].islower()
                least, most = limits.words
            assert least <= len(text.split()) <= most
        if one.type == "multihop":
            assert len(tops) == 2 and tops[0] != tops[1]
        if one.type == "underspecified":
            assert names(one.texts[0])
    assert max(covered.values(), default=0) <= 1, "two spans overlap"
    assert len({one.sample_id for one in found}) == len(found)
    counts = Counter(one.type for one in found)
    assert all(n <= limits.per_type for n in counts.values())


@given(st.integers(0, 200), st.integers(0, 50), st.integers(1, 4))
@settings(deadline=None, max_examples=60)
def test_every_promise_holds(text: int, seed: int, per_type: int) -> None:
    document = written(text)
    limits = replace(SMALL, seed=seed, per_type=per_type)
    check(document, native_tree(document), sample_document(document, native_tree(document), limits),
          limits)


PIECES = st.sampled_from(
    ["Now the Red Fox came home early.", "it goes on in small letters here.", "A heading",
     "Is this the White Whale again?", "No. 5 was lost.", "Then:", "The end of all came.", " \t "]
)
PARAGRAPHS = st.lists(st.lists(PIECES, min_size=1, max_size=5).map(" ".join), max_size=8)


@given(st.lists(st.tuples(st.integers(1, 3), PARAGRAPHS), max_size=5), st.integers(0, 9))
@settings(deadline=None)
def test_any_document_is_sampled_or_gives_less(
    sections: list[tuple[int, list[str]]], seed: int
) -> None:
    builder = Builder("d", "T")
    for level, paragraphs in sections:
        builder.heading(level, "Some heading")
        for text in paragraphs:
            if text.strip():
                builder.paragraph(text)
    document = builder.build()
    limits = replace(SMALL, seed=seed)
    check(document, native_tree(document), sample_document(document, native_tree(document), limits),
          limits)


def test_a_roomy_document_gives_all_that_is_wanted() -> None:
    document = written(3)
    found = sample([document], {"d": native_tree(document)}, SMALL)
    assert Counter(s.type for s in found.samples) == dict.fromkeys(TYPES, 2)
    assert found.missing == dict.fromkeys(TYPES, 0)
    assert [s.type for s in found.samples] == sorted(
        (s.type for s in found.samples), key=TYPES.index
    )


def test_a_document_gives_the_same_whatever_stands_beside_it() -> None:
    documents = [written(3, name) for name in "abc"]
    trees = {d.doc_id: native_tree(d) for d in documents}
    alone = sample(documents[1:2], trees, SMALL).samples
    assert [s for s in sample(documents, trees, SMALL).samples if s.doc_id == "b"] == list(alone)
    assert sample(documents[1:2], trees, replace(SMALL, seed=8)).samples != alone
    # Equal texts under two ids are drawn apart from each other.
    spans = {tuple(s.spans for s in sample_document(d, trees[d.doc_id], SMALL)) for d in documents}
    assert len(spans) == 3


def test_what_a_document_cannot_give_is_counted() -> None:
    builder = Builder("flat", "Flat")
    for i in range(6):
        builder.paragraph(f"The boat went out {i} times and it came back with the Red Fox.")
    flat = builder.build()  # no heading: one section without a title
    found = sample([flat], {"flat": native_tree(flat)}, SMALL)
    assert found.missing == {"factoid": 0, "underspecified": 0, "multihop": 2, "structural": 2}
    empty = Builder("empty", "Empty").build()
    assert sample([empty], {"empty": native_tree(empty)}, SMALL).samples == ()


def test_without_names_nothing_is_underspecified() -> None:
    builder = Builder("d", "D")
    for i in range(8):
        builder.paragraph(f"The boat went out {i} times and it came back in the evening.")
    document = builder.build()
    found = sample_document(document, native_tree(document), SMALL)
    assert Counter(s.type for s in found) == {"factoid": 2}


def test_pairs_share_a_name_that_the_title_does_not_have() -> None:
    builder = Builder("d", "Harbour of Nantucket")
    texts = ["In Nantucket they built the ship Pequod.", "In Nantucket they sold oil and rope.",
             "Some say that the ship Pequod sank.", "From Nantucket no man came back again."]
    for i, text in enumerate(texts):
        builder.heading(1, f"Part {i}")
        builder.paragraph(text)
    document = builder.build()
    for seed in range(20):
        found = sample_document(
            document, native_tree(document), replace(SMALL, seed=seed, per_type=1)
        )
        (pair,) = [s for s in found if s.type == "multihop"]
        assert pair.texts == (texts[0], texts[2])


@pytest.mark.parametrize(
    "text",
    ["Notable people and their houses by the sea", "The three of them were the following:",
     "and so it went on for seven long years.", "Short one.", "x " * 80 + "end."],
)
def test_what_is_no_passage_is_not_drawn(text: str) -> None:
    builder = Builder("d", "D")
    builder.paragraph(text)
    document = builder.build()
    assert sample_document(document, native_tree(document), SMALL) == []


def test_a_text_that_stands_twice_is_not_drawn() -> None:
    builder = Builder("d", "D")
    for _ in range(2):
        builder.paragraph("The Red Fox came home in the evening.")
    document = builder.build()
    assert sample_document(document, native_tree(document), SMALL) == []


def test_ids_and_digests_come_from_content() -> None:
    document = written(3)
    one = draw(document, "multihop", (Span(0, 4), Span(10, 15)))
    assert one.sample_id == "d:multihop:0-4+10-15"
    assert one.texts == (document.body[0:4], document.body[10:15])
    assert one.digests[0] == sha256("Then")


@pytest.mark.parametrize(
    ("kind", "spans"),
    [("factoid", (Span(0, 4), Span(5, 9))), ("multihop", (Span(0, 4),)), ("structural", ()),
     ("multihop", (Span(5, 9), Span(0, 4))), ("multihop", (Span(0, 6), Span(5, 9)))],
)
def test_impossible_samples_do_not_exist(kind: str, spans: tuple[Span, ...]) -> None:
    with pytest.raises(ValueError, match="spans"):
        draw(written(3), kind, spans)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "wrong", [{"per_type": 0}, {"words": (5, 4)}, {"words": (0, 4)}, {"section_words": (9, 1)}]
)
def test_impossible_settings_do_not_exist(wrong: dict[str, object]) -> None:
    with pytest.raises(ValueError, match="expected"):
        replace(SMALL, **wrong)


def test_a_tree_of_another_document_is_refused() -> None:
    document, other = written(3), written(3, "other")
    with pytest.raises(QuestionError, match="its tree is of 'other'"):
        sample_document(document, native_tree(other), SMALL)
    with pytest.raises(QuestionError, match="with 0 paragraphs, expected 30"):
        sample_document(document, Tree("d", ()), SMALL)
    with pytest.raises(QuestionError, match="'d': it has no native tree"):
        sample([document], {}, SMALL)


def test_raw_spans_lead_back_to_the_same_body() -> None:
    parts = [
        f"## Part {i}\n\nThe ship Pequod came home {i} times.\n\n### Deep {i}\n\nIt left with "
        f"Captain Ahab and {i} men.\n" for i in range(8)
    ]
    document = read_document("d", "# Whales\n\n" + "\n".join(parts))
    found = sample_document(document, native_tree(document), SMALL)
    assert Counter(s.type for s in found) == dict.fromkeys(TYPES, 2)
    for one in found:
        for span in one.spans:
            raw = on_raw(document, span)
            assert document.to_body(raw)[0] == span
            assert document.raw is not None
            headings = document.raw[raw.start : raw.end].count("#")
            assert (headings > 0) == (one.type == "structural")
    with pytest.raises(QuestionError, match="stands nowhere in raw"):
        on_raw(written(3), Span(0, 4))


def test_real_articles() -> None:
    from spanwise.corpora.mediawiki import read

    (dump,) = Path(corpora_folder("wikipedia")).glob("*shortened.bz2")
    documents = read(dump, options={"articles": 12}).documents
    trees = {d.doc_id: native_tree(d) for d in documents}
    limits = SampleSettings()
    found = sample(documents, trees, limits)
    for document in documents:
        own = [s for s in found.samples if s.doc_id == document.doc_id]
        check(document, trees[document.doc_id], own, limits)
        united, _ = unite([e for s in own for e in s.evidence], [])
        assert len(united) == sum(len(s.spans) for s in own)
    assert sum(found.missing.values()) < 0.05 * len(found.samples)
