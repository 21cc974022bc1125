"""The study of exact evidence units: slices, identities, needs, outcomes and comparisons."""

from __future__ import annotations

import math
import re
from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import combinations, pairwise, product
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
import yaml
from hypothesis import assume, example, given, settings
from hypothesis import strategies as st
from markdown_it import MarkdownIt
from mdit_py_plugins.front_matter import front_matter_plugin
from numpy.typing import NDArray

from spanwise import models, params, schemas
from spanwise.chunking.units import windows
from spanwise.corpora.markdown import read_document, read_if_any
from spanwise.corpora.readers import READERS, read_split
from spanwise.documents.model import Corpus, Document, document_id, sha256
from spanwise.documents.records import anchor_table, question_table
from spanwise.errors import InputError, MarkupError, ParamsError, UnitError
from spanwise.params import Bm25Settings, InferenceSettings, UnitsSettings, WindowSettings
from spanwise.spans import Evidence
from spanwise.statistics.bootstrap import Sample, resample
from spanwise.statistics.contrasts import holm, record
from spanwise.statistics.linearised import FEW
from spanwise.structure.native import native_tree
from spanwise.text.tokens import words
from spanwise.units.compare import SEGMENTATION_PAIRS, comparisons, means
from spanwise.units.cutting import SEGMENTATIONS, cut
from spanwise.units.identity import Parent, collection, moved, parents, passage_id, resolve
from spanwise.units.needs import Need, anchored, load
from spanwise.units.outcomes import BASES, MEASURES, Held, Judge, beyond, tables
from spanwise.units.ranking import dense, lexical, texts
from spanwise.units.reach import CAUSES

from .conftest import ROOT
from .test_markdown import MARKDOWN

Row = dict[str, Any]
Characters = set[tuple[str, int]]

WORDS = words()
BM25 = Bm25Settings(k1=1.2, b=0.75)


def few(**changes: Any) -> UnitsSettings:
    """Settings for very small corpora."""
    found = {"cutoffs": [1], "characters": [10], "tokens": [5], "depth": 8}
    return UnitsSettings(**{"windows": WindowSettings(size_tokens=5, overlap_tokens=2), **found,
                            **changes})


def units_of(
    documents: Sequence[Document], representation: str = "raw", its: UnitsSettings | None = None
) -> tuple[dict[str, Parent], dict[str, list[Row]]]:
    """The parents of some Markdown documents, and the rows of each segmentation."""
    known = parents(documents, representation)
    trees = {document.doc_id: native_tree(document) for document in documents}
    made = cut(documents, known, trees, "markdown", WORDS, its or few())
    return known, {name: found.to_pylist() for name, found in made.items()}


def said(rows: Sequence[Row], text: str) -> list[str]:
    return [text[row["start"] : row["end"]] for row in rows]


# ---------------------------------------------------------------- reconstruction


def lines_of(text: str, *kinds: str) -> list[range]:
    """Lines of the text's top-level blocks of some kinds, by the parser alone."""
    parser = MarkdownIt("commonmark", {"maxNesting": 400}).enable("table").use(front_matter_plugin)
    return [
        range(*token.map) for token in parser.parse(text)
        if token.level == 0 and token.type in kinds and token.map
    ]


def owed(text: str) -> set[int]:
    """Characters that are neither white space nor in front matter or a rule."""
    silent = {n for lines in lines_of(text, "front_matter", "hr") for n in lines}
    line, found = 0, set()
    for i, character in enumerate(text):
        if not character.isspace() and line not in silent:
            found.add(i)
        line += character == "\n"
    return found


def starts_of_headings(text: str) -> list[int]:
    edges = [0, *(m.end() for m in re.finditer("\n", text))]
    found = []
    for lines in lines_of(text, "heading_open"):
        full = [n for n in lines if text[edges[n] :].split("\n", 1)[0].strip()]
        found.append(edges[full[0]])
    return found


def times(rows: Sequence[Row], length: int) -> list[int]:
    """In how many units each character lies."""
    found = [0] * length
    for row in rows:
        for i in range(row["start"], row["end"]):
            found[i] += 1
    return found


def check_windows(rows: Sequence[Row], text: str, size: int, overlap: int) -> None:
    tokens = [match.span() for match in re.finditer(r"\S+", text)]
    held = [
        [i for i, (start, end) in enumerate(tokens) if row["start"] <= start and end <= row["end"]]
        for row in rows
    ]
    for row, inside in zip(rows, held, strict=True):
        assert (row["start"], row["end"]) == (tokens[inside[0]][0], tokens[inside[-1]][1])
        assert row["tokens"] == len(inside)
    assert all(len(inside) == size for inside in held[:-1]) and len(held[-1]) <= size
    for one, other in pairwise(held):
        assert one[-overlap:] == other[:overlap] if overlap else one[-1] + 1 == other[0]
    assert {i for inside in held for i in inside} == set(range(len(tokens)))


@given(st.one_of(MARKDOWN, st.text(max_size=60)), st.integers(1, 7), st.data())
@settings(max_examples=150, deadline=None)
@example("---\ntitle: T\n---\nbefore\n***\n# A\n\n***\n\n```\n\n# no\n\n```\n***\n", 3, None)
@example("| a |\n|---|\n| b |\n\n~~~\n| x |\n|---|\n\n~~~\n## One\n## Two\ntext", 2, None)
def test_every_unit_is_its_slice_of_the_parent(
    text: str, size: int, data: st.DataObject | None
) -> None:
    text = text.replace("\r", "").replace("\x00", "")
    overlap = data.draw(st.integers(0, size - 1)) if data else size - 1
    try:
        document = read_if_any("d", text)
    except MarkupError:
        document = None
    assume(document is not None)
    assert document is not None
    its = few(windows=WindowSettings(size_tokens=size, overlap_tokens=overlap))
    for representation in ("raw", "body"):
        known, found = units_of([document], representation, its)
        parent = known["d"].text
        assert tuple(found) == SEGMENTATIONS
        for name, rows in found.items():
            assert said(rows, parent) == texts(rows, known) == [resolve(r, known) for r in rows]
            assert [row["text_sha256"] for row in rows] == [sha256(t) for t in said(rows, parent)]
            assert [row["tokens"] for row in rows] == [len(t.split()) for t in said(rows, parent)]
            assert {(row["segmentation"], row["representation"], row["parent_sha256"])
                    for row in rows} == {(name, representation, sha256(parent))}
        wanted = owed(parent) if representation == "raw" else {
            i for i, character in enumerate(parent) if not character.isspace()
        }
        for name in ("blocks", "sections"):
            often = times(found[name], len(parent))
            assert max(often) == 1  # none overlaps another
            assert wanted <= {i for i, n in enumerate(often) if n}
        blank = {i for i, character in enumerate(parent) if character.isspace()}
        inside = {i for i, n in enumerate(times(found["blocks"], len(parent))) if n}
        assert inside - blank == wanted
        check_windows(found["windows"], parent, size, overlap)
        first = found["blocks"][0]["start"]
        starts = [row["start"] for row in found["sections"]]
        if representation == "raw":
            assert starts == sorted({first, *starts_of_headings(text)})
        else:
            spans = [paragraph.span for paragraph in document.paragraphs]
            assert [(r["start"], r["end"]) for r in found["blocks"]] == [
                (span.start, span.end) for span in spans
            ]
            assert starts == sorted({
                spans[at].start for at in (0, *(h.paragraph for h in document.headings))
                if at < len(spans)
            })
        ends = [row["end"] for row in found["sections"]]
        assert ends == [max(r["end"] for r in found["blocks"] if a <= r["start"] < b)
                        for a, b in pairwise([*starts, len(parent) + 1])]


MANUAL = """\
---
title: Pump
---
Before any heading.

# Pump

## Handheld only
Hold the blue button.

***

### Codes

| code | cause |
|------|-------|
| E1   | water |
| E2   | sand  |

#### Command

```
reset soft


confirm 4471
```

~~~
| not a | table |
|-------|-------|

| x | y |
~~~
"""
TABLE = "| code | cause |\n|------|-------|\n| E1   | water |\n| E2   | sand  |"
FENCE = "```\nreset soft\n\n\nconfirm 4471\n```"
TILDES = "~~~\n| not a | table |\n|-------|-------|\n\n| x | y |\n~~~"


def test_blocks_and_sections_of_a_manual() -> None:
    """Fences keep blank lines, a table its header, rule and rows; a table in a fence is a fence."""
    known, found = units_of([read_document("pump", MANUAL)])
    text = known["pump"].text
    assert text == MANUAL
    assert said(found["blocks"], text) == [
        "Before any heading.", "# Pump", "## Handheld only", "Hold the blue button.", "### Codes",
        TABLE, "#### Command", FENCE, TILDES,
    ]
    assert said(found["sections"], text) == [
        "Before any heading.", "# Pump", "## Handheld only\nHold the blue button.",
        f"### Codes\n\n{TABLE}", f"#### Command\n\n{FENCE}\n\n{TILDES}",
    ]


def test_units_of_body_hold_no_heading() -> None:
    known, found = units_of([read_document("pump", MANUAL)], "body")
    text = known["pump"].text
    assert said(found["blocks"], text) == [
        "Before any heading.", "Hold the blue button.", TABLE, FENCE, TILDES,
    ]
    assert said(found["sections"], text) == [
        "Before any heading.", "Hold the blue button.", TABLE, f"{FENCE}\n\n{TILDES}",
    ]


def test_windows_cut_across_everything() -> None:
    _, found = units_of([read_document("d", "# A\n\n```\none\n\ntwo\n```\nthree four")])
    # Tokens: # A ``` one two ``` three four; five of them, two shared with the window before.
    assert said(found["windows"], "# A\n\n```\none\n\ntwo\n```\nthree four") == [
        "# A\n\n```\none\n\ntwo", "one\n\ntwo\n```\nthree four",
    ]


def test_a_fence_that_is_not_closed_fails_with_its_line(tmp_path: Path) -> None:
    (tmp_path / "a.md").write_text("# A\n\ntext\n\n```\nhold 5\n", encoding="utf-8")
    with pytest.raises(MarkupError, match=r"a\.md: line 5: the fence ``` is not closed"):
        READERS["markdown"](tmp_path, options={})
    broken = replace(read_document("a", "# A\n\ntext\n"), raw="# A\n\ntext\n\n~~~~\nhold 5\n~~~\n")
    with pytest.raises(MarkupError, match="a: line 5: the fence ~~~~ is not closed"):
        units_of([broken])


def test_sources_with_other_line_endings_give_the_same_units(tmp_path: Path) -> None:
    question = yaml.safe_dump([{"id": "q", "document": "pump", "question": "Q",
                                "anchors": [{"quote": TABLE}, {"quote": FENCE}]}])
    outcomes = []
    for name, ending in (("lf", "\n"), ("crlf", "\r\n"), ("cr", "\r")):
        folder = tmp_path / name
        folder.mkdir()
        (folder / "pump.md").write_bytes(MANUAL.replace("\n", ending).encode())
        (folder / "questions.yaml").write_text(question, encoding="utf-8")
        corpus = READERS["markdown"](folder, options={})
        known, found = units_of(corpus.documents)
        assert known["pump"].text == MANUAL
        outcomes.append((known, found, anchor_table(corpus).to_pylist()))
    assert outcomes[0] == outcomes[1] == outcomes[2]
    assert [row["quote"] for row in outcomes[1][2]] == [TABLE, FENCE]


def test_more_units_asked_for_than_there_are() -> None:
    document = read_document("d", "# A\n\none\n\n## B\n\ntwo three four five six seven eight\n")
    # Twelve words: the first five, and three windows more for the other seven, in steps of three.
    assert {name: len(rows) for name, rows in units_of([document])[1].items()} == {
        "blocks": 4, "sections": 2, "windows": 4,
    }
    units_of([document], its=few(cutoffs=[1, 2]))
    with pytest.raises(ParamsError) as caught:
        units_of([document], its=few(cutoffs=[1, 3]))
    for part in ("units.cutoffs", "first 3 units", "2 sections", "lower it in params.yaml"):
        assert part in str(caught.value)


@pytest.mark.parametrize(("size", "overlap"), [(12, 12), (12, 13), (1, 1)])
def test_windows_that_never_move_on(size: int, overlap: int) -> None:
    mapping = yaml.safe_load((ROOT / "params.yaml").read_text(encoding="utf-8"))
    mapping["units"]["windows"] = {"size_tokens": size, "overlap_tokens": overlap}
    with pytest.raises(ParamsError) as caught:
        params.from_mapping(mapping)
    for part in ("units.windows", f"overlap_tokens {overlap} is not below size_tokens {size}",
                 "lower the overlap"):
        assert part in str(caught.value)
    with pytest.raises(InputError, match="below the size"):
        windows("some words", WORDS, size, overlap)


# ---------------------------------------------------------------- identity

PUMP = "# Pump\n\n## Handheld only\n\nHold the button.\n\n## Router only\n\nHold the button.\n"


def manual(text: str = PUMP, **changes: Any) -> Document:
    return read_document("pump", text, **{"source": "manuals", "version": "3", **changes})


def anchor_row(known: Mapping[str, Parent], doc_id: str, start: int, end: int) -> Row:
    parent = known[doc_id]
    return {
        "question_id": "q", "index": 0, "source": parent.source, "doc_id": doc_id,
        "version": parent.version, "representation": parent.representation,
        "parent_sha256": parent.digest, "start": start, "end": end,
        "quote": parent.text[start:end], "bundles": [0],
    }


def trace_row(row: Row) -> Row:
    """What TRACES keeps of a unit."""
    kept = {name: value for name, value in row.items() if name not in ("tokens", "text_sha256")}
    return {**kept, "retriever": "bm25", "need_id": "q", "rank": 1, "score": 1.0, "met": [],
            "part": []}


def references() -> list[tuple[str, Row, dict[str, Parent]]]:
    """A unit, an anchor and a line of a trace: all of the first instruction."""
    known, found = units_of([manual()])
    unit = next(r for r in found["blocks"] if r["start"] == PUMP.index("Hold"))
    anchor = anchor_row(known, "pump", unit["start"], unit["end"])
    return [("unit", unit, known), ("anchor", anchor, known), ("trace", trace_row(unit), known)]


REFERENCES = references()
OTHER = PUMP.rindex("Hold") - PUMP.index("Hold")
"""How far on the same words stand again."""


@pytest.mark.parametrize(("row", "known"), [r[1:] for r in REFERENCES],
                         ids=[r[0] for r in REFERENCES])
def test_a_reference_resolves_to_its_slice(row: Row, known: dict[str, Parent]) -> None:
    assert resolve(row, known) == "Hold the button."
    assert moved(row, known) is None


@pytest.mark.parametrize(("row", "known"), [r[1:] for r in REFERENCES],
                         ids=[r[0] for r in REFERENCES])
@pytest.mark.parametrize(
    ("changes", "part"),
    [
        ({"source": "blog"}, "source"), ({"version": "2"}, "version"),
        ({"representation": "body"}, "representation"), ({"parent_sha256": "0" * 64}, "sha256"),
        ({"doc_id": "meter"}, "trusted view"), ({"start": -1}, r"\[-1, 42\)"),
        ({"start": 26, "end": 26}, r"\[26, 26\)"),
        ({"end": len(PUMP) + 1}, rf"\[26, {len(PUMP) + 1}\)"),
    ],
)
def test_a_reference_to_anything_else_is_refused(
    row: Row, known: dict[str, Parent], changes: Row, part: str
) -> None:
    with pytest.raises(UnitError, match=part):
        resolve(row | changes, known)
    assert moved(row | changes, known) is not None


@pytest.mark.parametrize(("row", "known"), [r[1:] for r in REFERENCES],
                         ids=[r[0] for r in REFERENCES])
def test_a_span_that_moved_inside_its_parent_is_refused(
    row: Row, known: dict[str, Parent]
) -> None:
    with pytest.raises(UnitError):
        resolve(row | {"start": row["start"] + 1}, known)
    with pytest.raises(UnitError):
        resolve(row | {"end": row["end"] - 1}, known)


@pytest.mark.parametrize("row", [REFERENCES[0][1], REFERENCES[2][1]], ids=["unit", "trace"])
def test_a_unit_is_where_its_id_says(row: Row) -> None:
    """The same words stand again under another heading; they are another unit."""
    known = REFERENCES[0][2]
    again = {"start": row["start"] + OTHER, "end": row["end"] + OTHER}
    assert known["pump"].text[again["start"] : again["end"]] == resolve(row, known)
    with pytest.raises(UnitError):
        resolve(row | again, known)
    with pytest.raises(UnitError):
        resolve(row | {"passage_id": row["passage_id"].replace("@3:", "@2:")}, known)


def test_a_wrong_quotation_or_digest_of_the_slice_is_refused() -> None:
    (_, unit, known), (_, anchor, _), _ = REFERENCES
    with pytest.raises(UnitError, match=r"stands 'Hold the button\.'"):
        resolve(anchor | {"quote": "Hold the button!"}, known)
    with pytest.raises(UnitError, match="refused"):
        resolve(unit | {"text_sha256": sha256("Hold the button!")}, known)


@pytest.mark.parametrize(("row", "known"), [r[1:] for r in REFERENCES],
                         ids=[r[0] for r in REFERENCES])
@pytest.mark.parametrize(
    ("text", "version"),
    [(PUMP + "\nMore.\n", "4"), (PUMP + "\nMore.\n", "3"), (PUMP.replace("Router", "Logger"), "4"),
     (PUMP, "4")],
)
def test_an_edited_body_refuses_the_old_reference_though_the_words_still_stand_there(
    row: Row, known: dict[str, Parent], text: str, version: str
) -> None:
    now = parents([manual(text, version=version)], "raw")
    assert now["pump"].text[row["start"] : row["end"]] == resolve(row, known)
    with pytest.raises(UnitError, match="refused"):
        resolve(row, now)


def test_a_document_without_that_representation() -> None:
    with pytest.raises(UnitError, match="pump: it has no raw text"):
        parents([replace(manual(), raw=None)], "raw")


def test_the_collection_is_all_parents_and_nothing_else() -> None:
    """What a list depends on is every text that competed, not only those that it names."""
    meter = read_document("meter", "# Meter\n\nThe lamp is amber.\n")
    its = collection(parents([manual(), meter], "raw"))
    assert its == collection(parents([meter, manual()], "raw"))
    others = {
        "added": [manual(), meter, read_document("blog", "A day.\n")],
        "withdrawn": [manual()],
        "edited": [manual(), read_document("meter", "# Meter\n\nThe lamp is ambra.\n")],
        "its white space": [manual(), read_document("meter", "# Meter\n\nThe lamp is amber. \n")],
        "another version": [manual(version="4"), meter],
        "renamed": [manual(), read_document("metre", "# Meter\n\nThe lamp is amber.\n")],
        # The same two texts under each other's names.
        "exchanged": [read_document("meter", PUMP, version="1"),
                      read_document("pump", "# Meter\n\nThe lamp is amber.\n", version="3")],
    }
    found = {name: collection(parents(documents, "raw")) for name, documents in others.items()}
    assert len({its, *found.values()}) == 1 + len(others)
    assert collection(parents([manual(), meter], "body")) != its


def test_ids_differ_between_segmentations_versions_and_documents() -> None:
    text = "One paragraph.\n"
    ids, places = [], set()
    for version in ("3", "3.1", "4@3"):
        for doc_id in ("pump", "meter"):
            _, found = units_of([read_document(doc_id, text, version=version)])
            for rows in found.values():
                ids += [row["passage_id"] for row in rows]
                places |= {(row["start"], row["end"]) for row in rows}
    assert places == {(0, 14)} and len(set(ids)) == len(ids) == 18


NAMES = st.lists(st.text(alphabet="a:1-/% ", min_size=1, max_size=3), min_size=3, max_size=4)


@settings(deadline=None)
@given(NAMES, st.sampled_from(SEGMENTATIONS), st.integers(0, 12), st.integers(13, 20))
def test_no_two_units_share_an_id(parts: list[str], name: str, start: int, end: int) -> None:
    """Wherever the same letters are parted into a document's name and a version."""
    ids = []
    for size in range(1, len(parts)):
        doc_id, version = document_id("@".join(parts[:size])), "@".join(parts[size:])
        ids.append(passage_id(name, Parent("", doc_id, version, "raw", "", ""), start, end))
    assert len(set(ids)) == len(ids)
    assert not any(re.search(r"\s", found) for found in ids)


# ---------------------------------------------------------------- needs

FILES = {
    "pump.md": PUMP,
    "meter.md": "# Meter\n\nThe lamp is amber.\n\nHold the button.\n",
}
QUESTIONS: list[Row] = [
    {"id": "alternatives", "type": "multihop", "document": "pump", "question": "Which button?",
     "anchors": [{"quote": "Handheld only"}, {"quote": "Hold the button.", "occurrence": 1},
                 {"quote": "Hold the button.", "document": "meter"}],
     "bundles": [[0, 1], [2]]},
    {"id": "overlapping", "document": "meter", "question": "What colour?",
     "anchors": [{"quote": "The lamp is amber"}, {"quote": "lamp is amber."}],
     "bundles": [[0], [1]]},
    {"id": "nothing", "type": "no-answer", "document": "meter", "question": "Who?"},
    {"id": "reworded", "base": "alternatives", "question": "What is to be held?"},
    {"id": "nothing-again", "base": "nothing", "question": "By whom?"},
]


def corpus_of(folder: Path, files: Mapping[str, str], questions: Sequence[Row]) -> Corpus:
    folder.mkdir(exist_ok=True)
    for name, text in files.items():
        (folder / name).write_text(text, encoding="utf-8")
    (folder / "questions.yaml").write_text(yaml.safe_dump(list(questions)), encoding="utf-8")
    return READERS["markdown"](folder, options={})


def asked(
    corpus: Corpus,
) -> tuple[dict[str, Parent], pa.Table, pa.Table, dict[str, int], dict[str, Need]]:
    """What `anchored` makes of a corpus, and the needs by id."""
    rows = question_table(corpus)[0].to_pylist()
    known, anchors, needs, counts = anchored(anchor_table(corpus), rows, corpus.documents)
    return known, anchors, needs, counts, {n.need_id: n for n in load(anchors, needs)}


def test_needs_of_a_corpus(tmp_path: Path) -> None:
    known, anchors, _, counts, needs = asked(corpus_of(tmp_path, FILES, QUESTIONS))
    first = needs["alternatives"]
    assert (first.doc_id, first.type, first.slice) == ("pump", "multihop", "development")
    assert [known[a.doc_id].text[a.start : a.end] for a in first.anchors] == [
        "Handheld only", "Hold the button.", "Hold the button.",
    ]
    assert [a.doc_id for a in first.anchors] == ["pump", "pump", "meter"]
    assert first.bundles == ((0, 1), (2,))
    # Overlapping anchors of alternative bundles stay as given: neither has become wider.
    assert [known["meter"].text[a.start : a.end] for a in needs["overlapping"].anchors] == [
        "The lamp is amber", "lamp is amber.",
    ]
    assert needs["overlapping"].bundles == ((0,), (1,))
    for name in ("nothing", "nothing-again"):
        assert (needs[name].anchors, needs[name].bundles) == ((), ())
    again = needs["reworded"]
    assert (again.slice, again.text) == ("reworded", "What is to be held?")
    assert (again.anchors, again.bundles, again.doc_id, again.type) == (
        first.anchors, first.bundles, first.doc_id, first.type
    )
    assert counts == {
        "development": 3, "development without an answer": 1, "reworded": 2,
        "reworded without an answer": 1, "anchors": 5, "needs with alternative bundles": 3,
    }
    # A rewording adds no anchor of its own, and every one resolves.
    assert set(anchors["question_id"].to_pylist()) == {"alternatives", "overlapping"}
    assert [resolve(row, known) for row in anchors.to_pylist()] == anchors["quote"].to_pylist()


def test_an_anchor_of_another_version_refuses_the_whole_study(tmp_path: Path) -> None:
    corpus = corpus_of(tmp_path, FILES, QUESTIONS)
    old, questions = anchor_table(corpus), question_table(corpus)[0].to_pylist()
    edited = [
        replace(d, raw=(d.raw or "") + "\nMore.\n") if d.doc_id == "meter" else d
        for d in corpus.documents
    ]
    with pytest.raises(UnitError, match=r"anchor 2 of alternatives: meter has parent_sha256"):
        anchored(old, questions, edited)
    with pytest.raises(UnitError, match="trusted view"):
        anchored(old, questions, [d for d in corpus.documents if d.doc_id == "pump"])


def test_evidence_on_body_stands_for_anchors_where_people_gave_none(tmp_path: Path) -> None:
    corpus = corpus_of(tmp_path, FILES, QUESTIONS)
    questions = question_table(corpus)[0].to_pylist()
    none = schemas.table(schemas.ANCHORS, [])
    known, anchors, needs, _ = anchored(none, questions, corpus.documents)
    assert {parent.representation for parent in known.values()} == {"body"}
    by_id = {need.need_id: need for need in load(anchors, needs)}
    for question in questions:
        need = by_id[question["question_id"]]
        assert [list(bundle) for bundle in need.bundles] == question["bundles"]
        assert list(need.anchors) == [Evidence(**item) for item in question["evidence"]]
    assert {row["representation"] for row in anchors.to_pylist()} == {"body"}
    assert set(anchors["question_id"].to_pylist()) == {"alternatives", "overlapping"}


@pytest.mark.parametrize("questions", [[], [QUESTIONS[2], QUESTIONS[4]]])
def test_a_corpus_without_anchors_is_refused(tmp_path: Path, questions: list[Row]) -> None:
    (tmp_path / "questions.yaml").unlink(missing_ok=True)
    corpus = corpus_of(tmp_path, FILES, questions) if questions else READERS["markdown"](
        corpus_folder(tmp_path), options={}
    )
    with pytest.raises(UnitError, match=r"set `units: false`.*or give its questions evidence"):
        asked(corpus)


def corpus_folder(folder: Path) -> Path:
    for name, text in FILES.items():
        (folder / name).write_text(text, encoding="utf-8")
    return folder


# ---------------------------------------------------------------- outcomes

WORLD = {
    "pump.md": (
        "# Pump\n\nThe pump has a valve and a lamp.\n\n## Handheld only\n\n"
        "Hold the blue button for ten seconds until the lamp goes out. Then wait.\n\n"
        "## Router only\n\nHold the grey button for thirty seconds until the lamp goes out.\n\n"
        "```\nreset soft\n\nconfirm 4471\n```\n"
    ),
    "meter.md": (
        "Readings before anything else.\n\n# Meter\n\n## Codes\n\n"
        "| code | cause |\n|------|-----|\n| E1 | water behind the plate |\n"
        "| E2 | sand in the valve |\n\n## Care\n\n"
        "Rinse the meter in clean water. Dry it with a cloth.\n\nStore it upright.\n"
    ),
    "blog.md": (
        "# A day\n\nHold the blue button for ten seconds until the lamp goes out. Then wait.\n\n"
        "We rinsed the meter twice and drank tea.\n\n## Evening\n\nThe valve froze in the night.\n"
    ),
}
ASKED: list[Row] = [
    {"id": "scope", "document": "pump", "question": "Which button on the handheld, until when?",
     "anchors": [{"quote": "Handheld only"},
                 {"quote": "Hold the blue button for ten seconds until the lamp goes out."}]},
    {"id": "wait", "document": "pump", "question": "How long is the grey button held, then what?",
     "anchors": [{"quote": "thirty seconds"}, {"quote": "Then wait."},
                 {"quote": "ten seconds until the lamp goes out. Then", "document": "blog"}],
     "bundles": [[0, 1], [2]]},
    {"id": "command", "document": "pump", "question": "What is sent for a soft reset?",
     "anchors": [{"quote": "reset soft\n\nconfirm 4471"}]},
    {"id": "code", "document": "meter", "question": "What does code E2 say of the valve?",
     "anchors": [{"quote": "| code | cause |"}, {"quote": "| E2 | sand in the valve |"}]},
    {"id": "rinse", "document": "meter", "question": "How is the meter rinsed and dried?",
     "anchors": [{"quote": "Rinse the meter in clean water."}, {"quote": "meter in clean"}],
     "bundles": [[0], [1]]},
    {"id": "silent", "document": "blog", "question": "Zyxomma quux?",
     "anchors": [{"quote": "drank tea"}]},
    {"id": "frozen", "document": "blog", "question": "When did the valve freeze?",
     "anchors": [{"quote": "Evening\n\nThe valve froze"}]},
    {"id": "none", "type": "no-answer", "document": "blog", "question": "Who repaired the lamp?"},
    {"id": "none-silent", "type": "no-answer", "document": "meter", "question": "Xylem quark?"},
    {"id": "scope-2", "base": "scope", "question": "My handheld: what do I hold, how long?"},
    {"id": "code-2", "base": "code", "question": "The meter shows E2."},
    {"id": "frozen-2", "base": "frozen", "question": "The night the valve failed?"},
    {"id": "none-2", "base": "none", "question": "By whom was the lamp mended?"},
]
JUDGED = few(cutoffs=[1, 2, 3, 6], characters=[15, 60, 150, 5000], tokens=[3, 12, 30, 900])
RETRIEVERS = ("bm25", "one", "two")


@dataclass
class World:
    """A corpus, what three retrievers found in it, and what became of that."""

    known: dict[str, Parent]
    needs: dict[str, Need]
    units: dict[str, list[Row]]
    runs: dict[str, pa.Table]
    seen: dict[str, dict[str, int]]
    outcomes: list[Row]
    traces: list[Row]

    def listed(self, row: Row, segmentation: str = "") -> list[Row]:
        """The units that one need's list names, best first; of the row's segmentation or another's.
        """
        return self._lists.get(
            (row["retriever"], segmentation or row["segmentation"], row["need_id"]), []
        )

    @cached_property
    def _lists(self) -> dict[tuple[str, str, str], list[Row]]:
        by_id = {unit["passage_id"]: unit for rows in self.units.values() for unit in rows}
        found: dict[tuple[str, str, str], list[Row]] = defaultdict(list)
        for retriever, table in self.runs.items():
            for run in sorted(table.to_pylist(), key=lambda run: run["rank"]):
                at = (retriever, run["segmentation"], run["need_id"])
                found[at].append(by_id[run["passage_id"]])
        return dict(found)


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> World:
    corpus = corpus_of(tmp_path_factory.mktemp("world"), WORLD, ASKED)
    known, _, _, _, needs = asked(corpus)
    trees = {document.doc_id: native_tree(document) for document in corpus.documents}
    made = cut(corpus.documents, known, trees, "markdown", WORDS, JUDGED)
    units = {name: table.to_pylist() for name, table in made.items()}
    questions = [(need.need_id, need.text) for need in needs.values()]
    runs = {"bm25": lexical(units, known, questions, BM25, JUDGED.depth)}
    seen: dict[str, dict[str, int]] = {"bm25": {}}
    rng = np.random.default_rng(20260710)
    for name in RETRIEVERS[1:]:
        matrices = {segmentation: unit_vectors(rng, len(rows)) for segmentation, rows in
                    units.items()}
        queries = unit_vectors(rng, len(questions))
        runs[name] = dense(units, matrices, questions, queries, JUDGED.depth)
        seen[name] = {
            unit["passage_id"]: int(rng.integers(0, unit["end"] - unit["start"] + 1))
            for rows in units.values() for unit in rows
        }
    judge = Judge(list(needs.values()), known, WORDS, JUDGED)
    outcomes, traces = [], []
    for name in RETRIEVERS:
        one, other = judge.retriever(
            name, {place: Held(rows, seen[name]) for place, rows in units.items()}, runs[name]
        )
        outcomes += one
        traces += other
    return World(known, needs, units, runs, seen, outcomes, traces)


def unit_vectors(rng: np.random.Generator, number: int) -> NDArray[np.float32]:
    drawn = rng.normal(size=(number, 6))
    made: NDArray[np.float32] = (
        drawn / np.linalg.norm(drawn, axis=1, keepdims=True)
    ).astype(np.float32)
    return made


Piece = tuple[str, int, int]


def characters(pieces: Sequence[Piece]) -> Characters:
    return {(doc_id, i) for doc_id, start, end in pieces for i in range(start, end)}


def holds(pieces: Sequence[Piece], need: Need) -> bool:
    held = characters(pieces)
    wanted = [characters([(a.doc_id, a.start, a.end)]) for a in need.anchors]
    return any(all(wanted[i] <= held for i in bundle) for bundle in need.bundles)


def place(unit: Row) -> Piece:
    return unit["doc_id"], unit["start"], unit["end"]


def of_sections(world: World, row: Row) -> int:
    """Characters of the first sections that the need of an outcome has, as many as its amount."""
    return sum(
        len(world.known[unit["doc_id"]].text[unit["start"] : unit["end"]])
        for unit in world.listed(row, "sections")[: row["amount"]]
    )


def returned(world: World, row: Row) -> list[Piece]:
    """What an outcome's budget returns, piece by piece."""
    listed, basis, amount = world.listed(row), row["basis"], row["amount"]
    if basis == "units":
        return [place(unit) for unit in listed[:amount]]
    if basis == "matched":
        basis, amount = "characters-cut", of_sections(world, row)
    kind, _, cutting = basis.partition("-")
    pieces: list[Piece] = []
    for unit in listed:
        doc_id, start, end = place(unit)
        text = world.known[doc_id].text[start:end]
        size = len(text) if kind == "characters" else len(text.split())
        if size > amount:
            if cutting and amount:
                edges = [match.end() for match in re.finditer(r"\S+", text)]
                till = amount if kind == "characters" else edges[amount - 1]
                pieces.append((doc_id, start, start + till))
            break
        pieces.append(place(unit))
        amount -= size
    return pieces


def test_every_outcome_is_that_of_sets_of_characters(world: World) -> None:
    for row in world.outcomes:
        need = world.needs[row["need_id"]]
        pieces = returned(world, row)
        given_back = [world.known[d].text[a:b] for d, a, b in pieces]
        assert row["units"] == len(pieces)
        assert row["characters"] == sum(map(len, given_back))
        assert row["tokens"] == sum(len(text.split()) for text in given_back)
        assert (row["doc_id"], row["slice"], row["type"]) == (need.doc_id, need.slice, need.type)
        if not need.bundles:
            assert (row["sufficient"], row["covered"]) == (None, None)
            continue
        assert row["sufficient"] == any(holds([piece], need) for piece in pieces)
        assert row["covered"] == holds(pieces, need)
    assert len(world.outcomes) == 3 * 3 * len(ASKED) * 4 * len(BASES)
    tables(world.outcomes, world.traces)  # and they fit their schemas
    # The world is no trivial one: on each basis some needs are met, and some are not.
    for basis in BASES:
        for measure in MEASURES:
            assert {row[measure] for row in world.outcomes if row["basis"] == basis} == {
                0.0, 1.0, None
            }


def test_cut_budgets_return_the_same_amount_unless_the_list_ends(world: World) -> None:
    ended = set()
    for row in world.outcomes:
        if row["basis"].endswith("-cut"):
            amount = row[row["basis"].removesuffix("-cut")]
            assert amount <= row["amount"]
            assert row["ended"] == (amount < row["amount"])
            ended.add(row["ended"])
    assert ended == {True, False}


SAME = ("sufficient", "covered", "units", "characters", "tokens", "ended")


def outcomes_at(world: World, basis: str, segmentation: str) -> dict[tuple[str, str, int], Row]:
    return {
        (row["retriever"], row["need_id"], row["amount"]): row for row in world.outcomes
        if (row["basis"], row["segmentation"]) == (basis, segmentation)
    }


def test_matched_gives_each_need_the_characters_of_its_own_first_sections(world: World) -> None:
    sections = outcomes_at(world, "units", "sections")
    ended, cut_short = set(), 0
    for segmentation in ("blocks", "windows"):
        whole = outcomes_at(world, "units", segmentation)
        matched = outcomes_at(world, "matched", segmentation)
        assert matched.keys() == sections.keys()
        for at, row in matched.items():
            given_to = sections[at]["characters"]
            assert given_to == of_sections(world, row)
            assert row["characters"] <= given_to
            assert row["ended"] == (row["characters"] < given_to)
            ended.add(row["ended"])
            cut_short += row["characters"] not in {
                whole[(*at[:2], k)]["characters"] for k in JUDGED.cutoffs
            }
    assert ended == {True, False} and cut_short > 50
    # The amounts are each need's own, and each retriever's.
    assert len({row["characters"] for (_, _, k), row in sections.items() if k == 1}) > 5


def test_matched_sections_are_sections_at_equal_units_without_causes(world: World) -> None:
    whole = outcomes_at(world, "units", "sections")
    matched = outcomes_at(world, "matched", "sections")
    assert matched.keys() == whole.keys() and len(whole) == 3 * len(ASKED) * 4
    for at, row in matched.items():
        assert row == whole[at] | {
            "basis": "matched", "ended": False, "sufficient_cause": None, "covered_cause": None,
        }
        # As any other segmentation would be, given just that many characters.
        assert returned(world, row) == [place(unit) for unit in world.listed(row)[: at[2]]]


def test_nothing_is_matched_without_sections_to_match(world: World) -> None:
    judge = Judge(list(world.needs.values()), world.known, WORDS, JUDGED)
    held = {name: Held(world.units[name], {}) for name in ("blocks", "windows")}
    rows, _ = judge.retriever("bm25", held, world.runs["bm25"])
    assert {row["segmentation"] for row in rows} == {"blocks", "windows"}
    assert {row["basis"] for row in rows} == set(BASES) - {"matched"}
    assert [row for row in rows if row["segmentation"] == "blocks"] == [
        row for row in world.outcomes
        if (row["retriever"], row["segmentation"]) == ("bm25", "blocks")
        and row["basis"] != "matched"
    ]


def test_the_order_of_segmentations_makes_no_difference(world: World) -> None:
    judge = Judge(list(world.needs.values()), world.known, WORDS, JUDGED)
    found = []
    for order in (("blocks", "sections", "windows"), ("windows", "blocks", "sections")):
        held = {name: Held(world.units[name], world.seen["one"]) for name in order}
        found.append(tables(*judge.retriever("one", held, world.runs["one"])))
    assert found[0] == found[1]


def test_a_list_that_fills_its_cutoff_has_not_ended(world: World) -> None:
    for row in world.outcomes:
        if row["basis"] == "units":
            assert row["ended"] == (row["units"] < row["amount"]), row


def possible(places: Sequence[Piece], need: Need, k: int | None = None) -> bool:
    """Whether any k of some places hold a bundle, by every choice of them; all, by default."""
    if k is None:
        return holds(places, need)
    wanted = characters([(a.doc_id, a.start, a.end) for a in need.anchors])
    able = [piece for piece in places if characters([piece]) & wanted]
    return any(
        holds(some, need) for n in range(1, k + 1) for some in combinations(able, n)
    )


def test_each_miss_has_exactly_one_cause(world: World) -> None:
    found = defaultdict(set)
    for row in world.outcomes:
        need = world.needs[row["need_id"]]
        rows, seen = world.units[row["segmentation"]], world.seen[row["retriever"]]
        whole = [place(unit) for unit in rows]
        begun = [
            (unit["doc_id"], unit["start"], min(unit["end"], unit["start"] + count))
            for unit in rows
            if (count := seen.get(unit["passage_id"], unit["end"] - unit["start"]))
        ]
        for measure in MEASURES:
            if row["basis"] != "units" or row[measure] != 0:
                assert row[f"{measure}_cause"] is None
                continue
            one, most = (1, 1) if measure == "sufficient" else (None, row["amount"])
            expected = (
                "boundary" if not possible(whole, need, one)
                else "cutoff" if not possible(whole, need, most)
                else "truncation" if not possible(begun, need, most) else "ranking"
            )
            assert row[f"{measure}_cause"] == expected, row
            found[row["retriever"], measure].add(expected)
    # A single unit is within any cutoff, and BM25 sees every character.
    for retriever, measure in product(RETRIEVERS, MEASURES):
        never = {"truncation"} if retriever == "bm25" else set()
        never |= {"cutoff"} if measure == "sufficient" else set()
        assert found[retriever, measure] == set(CAUSES) - never


def test_traces_are_the_frozen_top_of_each_list(world: World) -> None:
    grouped = defaultdict(list)
    for row in world.traces:
        grouped[row["retriever"], row["segmentation"], row["need_id"]].append(row)
    for (retriever, segmentation, name), rows in grouped.items():
        listed = world.listed(
            {"retriever": retriever, "segmentation": segmentation, "need_id": name}
        )
        assert [row["rank"] for row in rows] == list(range(1, len(rows) + 1))
        assert [row["passage_id"] for row in rows] == [
            unit["passage_id"] for unit in listed[: JUDGED.cutoffs[-1]]
        ]
        scores = [row["score"] for row in rows]
        assert scores == sorted(scores, reverse=True)
        anchors = world.needs[name].anchors
        for row, unit in zip(rows, listed, strict=False):
            assert resolve(row, world.known) == resolve(unit, world.known)
            inside = [
                len(characters([place(row)]) & characters([(a.doc_id, a.start, a.end)]))
                for a in anchors
            ]
            sizes = [a.end - a.start for a in anchors]
            assert row["met"] == [i for i, n in enumerate(inside) if n == sizes[i]]
            assert row["part"] == [i for i, n in enumerate(inside) if 0 < n < sizes[i]]
    # A list without a hit has no line, and still an outcome.
    assert ("bm25", "blocks", "silent") not in grouped
    assert len(grouped) == 9 * len(ASKED) - 3 * 2


def test_the_same_words_in_another_document_satisfy_no_anchor(world: World) -> None:
    """The blog repeats the handheld's instruction word for word, and stands for nothing of it."""
    instruction = "Hold the blue button for ten seconds until the lamp goes out."
    lines = [
        row for row in world.traces
        if row["need_id"] == "scope" and row["doc_id"] == "blog"
        and instruction in resolve(row, world.known)
    ]
    assert lines and all(row["met"] == row["part"] == [] for row in lines)


def test_lists_by_vectors_are_sorted_cosines(world: World) -> None:
    """Every unit of a segmentation competes, `depth` are kept."""
    for name in RETRIEVERS[1:]:
        for segmentation, rows in world.units.items():
            for need_id in world.needs:
                at = {"retriever": name, "segmentation": segmentation, "need_id": need_id}
                assert len(world.listed(at)) == min(JUDGED.depth, len(rows))
    units = {"blocks": world.units["blocks"][:3]}
    matrix = np.array([[1, 0], [0, 1], [0.6, 0.8]], dtype=np.float32)
    query = np.array([[0.8, 0.6]], dtype=np.float32)
    # Cosines .8, .6 and .48 + .48 = .96.
    made = dense(units, {"blocks": matrix}, [("q", "Q")], query, 2).to_pylist()
    assert [(row["rank"], row["passage_id"], row["score"]) for row in made] == [
        (1, units["blocks"][2]["passage_id"], pytest.approx(0.96, abs=1e-6)),
        (2, units["blocks"][0]["passage_id"], pytest.approx(0.8, abs=1e-6)),
    ]


def test_what_is_searched_is_resolved_first(world: World) -> None:
    edited = {**world.known, "pump": replace(world.known["pump"], digest=sha256("another"))}
    with pytest.raises(UnitError, match="parent_sha256"):
        lexical(world.units, edited, [("q", "lamp")], BM25, 5)


def test_a_passage_that_is_no_unit_is_refused(world: World) -> None:
    judge = Judge(list(world.needs.values()), world.known, WORDS, JUDGED)
    its = world.runs["bm25"].filter(
        pa.compute.equal(world.runs["bm25"]["segmentation"], "windows")
    )
    with pytest.raises(InputError, match="is no unit of this segmentation"):
        judge.judge("bm25", "blocks", Held(world.units["blocks"], {}), its, {})


def test_what_the_encoder_never_saw(world: World) -> None:
    for name in RETRIEVERS[1:]:
        found = beyond(world.units, world.seen[name], list(world.needs.values()))
        for segmentation, rows in world.units.items():
            lost = [
                characters([(u["doc_id"], u["start"] + world.seen[name][u["passage_id"]],
                             u["end"])])
                for u in rows
            ]
            wanted = [
                characters([(a.doc_id, a.start, a.end)])
                for need in world.needs.values() if need.slice == "development"
                for a in need.anchors
            ]
            assert found[segmentation] == {
                "units": len(rows), "units truncated": sum(map(bool, lost)),
                "characters never seen": sum(map(len, lost)),
                "anchor characters never seen": sum(len(a & b) for a in lost for b in wanted),
            }


# ---------------------------------------------------------------- means and comparisons


def test_means_are_those_of_each_slice(world: World) -> None:
    made = schemas.table(schemas.UNIT_MEANS, means(world.outcomes)).to_pylist()
    assert len(made) == 3 * 3 * 2 * 4 * len(BASES)
    for row in made:
        mine = [
            o for o in world.outcomes
            if all(o[key] == row[key]
                   for key in ("retriever", "segmentation", "slice", "basis", "amount"))
        ]
        able = [o for o in mine if world.needs[o["need_id"]].bundles]
        # Nine development needs, two of them without an answer; four reworded, one without.
        expected = (9, 7) if row["slice"] == "development" else (4, 3)
        assert (row["n_needs"], row["n_answerable"]) == (len(mine), len(able)) == expected
        for measure in MEASURES:
            assert row[measure] == pytest.approx(
                sum(o[measure] for o in able) / len(able), abs=1e-12
            )
            for cause in CAUSES:
                expected_misses = sum(o[f"{measure}_cause"] == cause for o in mine)
                assert row[f"{measure}_{cause}"] == (
                    expected_misses if row["basis"] == "units" else None
                )
        for size in ("units", "characters", "tokens"):
            assert row[size] == pytest.approx(sum(o[size] for o in mine) / len(mine), abs=1e-12)
        assert row["ended"] == sum(o["ended"] for o in mine)
        if row["basis"] == "units":
            misses = sum(row[f"covered_{cause}"] for cause in CAUSES)
            assert misses == round(row["n_answerable"] * (1 - row["covered"]))


def test_the_returned_text_audit(world: World) -> None:
    """Code points of up to k units, overlaps counted again, over all needs; an empty list is 0."""
    lengths: dict[tuple[str, str, str, int], int] = defaultdict(int)
    for row in world.traces:
        lengths[row["retriever"], row["segmentation"], row["need_id"], row["rank"]] = len(
            resolve(row, world.known)
        )
    for row in means(world.outcomes):
        if row["basis"] == "units":
            names = [n.need_id for n in world.needs.values() if n.slice == row["slice"]]
            returned_text = [
                sum(lengths[row["retriever"], row["segmentation"], name, rank]
                    for rank in range(1, row["amount"] + 1))
                for name in names
            ]
            assert row["characters"] == pytest.approx(sum(returned_text) / len(names), abs=1e-9)
    silent = [
        o for o in world.outcomes
        if o["retriever"] == "bm25" and o["need_id"] in ("silent", "none-silent")
    ]
    assert silent and {(o["units"], o["characters"], o["tokens"]) for o in silent} == {(0, 0, 0)}
    # Their lists are over before any budget is full, but for what no section returned either.
    for o in silent:
        assert o["ended"] == (o["basis"] != "matched")
    # Needs without an answer return text, and it counts.
    assert any(o["characters"] > 0 and o["covered"] is None for o in world.outcomes)


def test_overlapping_windows_count_again() -> None:
    document = read_document("d", "one two three four five six seven")
    its = few(windows=WindowSettings(size_tokens=4, overlap_tokens=2))
    known, units = units_of([document], its=its)
    # "one two three four", "three four five six", "five six seven": 18 + 19 + 14 code points.
    assert said(units["windows"], known["d"].text)[1:] == ["three four five six", "five six seven"]
    need = Need("q", "d", "seven", "no-answer", "development", (), ())
    runs = schemas.table(schemas.UNIT_RUNS, [
        {"segmentation": "windows", "need_id": "q", "rank": rank,
         "passage_id": unit["passage_id"], "score": 1.0}
        for rank, unit in enumerate(units["windows"], start=1)
    ])
    judge = Judge([need], known, WORDS, few(cutoffs=[1, 3], characters=[37, 100]))
    rows, _ = judge.judge("bm25", "windows", Held(units["windows"], {}), runs, {})
    at = {(row["basis"], row["amount"]): row for row in rows}
    assert (at["units", 3]["characters"], at["units", 3]["tokens"]) == (18 + 19 + 14, 4 + 4 + 3)
    # 37 code points hold the first two whole, and nothing of the third.
    assert (at["characters", 37]["units"], at["characters", 37]["characters"]) == (2, 37)


INFERENCE = InferenceSettings(iterations=300, seed=11, margin=0.01)


def documents_of(world: World) -> dict[str, list[str]]:
    """Of each need its own document and those of its anchors."""
    return {
        name: sorted({need.doc_id, *(anchor.doc_id for anchor in need.anchors)})
        for name, need in world.needs.items()
    }


def clusters(groups: Collection[Collection[str]]) -> dict[str, frozenset[str]]:
    """Of each document all that it is joined to, by growing sets until none grows."""
    found = {name: frozenset(group) for group in groups for name in group}
    while True:
        grown = {
            name: mine.union(*(group for group in groups if mine & set(group)))
            for name, mine in found.items()
        }
        if grown == found:
            return found
        found = grown


def compared(
    world: World, documents: Mapping[str, Sequence[str]], embedders: Sequence[str] = RETRIEVERS[1:]
) -> list[Row]:
    rows = comparisons(world.outcomes, embedders, "bm25", INFERENCE, documents)
    made: list[Row] = schemas.table(schemas.UNIT_COMPARISONS, rows).to_pylist()
    return made


def test_comparisons_are_the_statistics_of_the_paired_deltas(world: World) -> None:
    made = compared(world, documents_of(world))
    value = {
        (o["retriever"], o["segmentation"], o["slice"], o["basis"], o["amount"], o["need_id"]): o
        for o in world.outcomes
    }
    joined = clusters(documents_of(world).values())
    families = defaultdict(list)
    for row in made:
        at = (row["slice"], row["basis"], row["amount"])
        (r, s), (other_r, other_s) = row["a"].split("/"), row["b"].split("/")
        if row["family"] == "retriever":
            assert other_r == "bm25" and r in ("one", "two")
            assert s == other_s
            # What is matched differs between retrievers: each has its own first sections.
            assert row["basis"] != "matched"
        else:
            assert row["family"] in ("segmentation", "connected")
            assert r == other_r and (s, other_s) in SEGMENTATION_PAIRS
        within = s if row["family"] == "retriever" else r
        families[(*at, row["measure"], row["family"], within)].append(row)
        names = sorted(n.need_id for n in world.needs.values() if n.slice == row["slice"])
        able = [name for name in names if world.needs[name].bundles]
        pairs = [
            (value[(r, s, *at, name)][row["measure"]],
             value[(other_r, other_s, *at, name)][row["measure"]]) for name in able
        ]
        deltas = [a - b for a, b in pairs]
        documents = [world.needs[name].doc_id for name in able]
        if row["family"] == "connected":
            documents = ["+".join(sorted(joined[doc_id])) for doc_id in documents]
        sample = Sample(deltas, documents)
        (drawn,) = resample([sample], INFERENCE.iterations, INFERENCE.seed)
        its = record(sample, drawn, FEW)  # documents are few here: Student's interval
        assert its.interval == "linearised"
        assert (row["delta"], row["ci_low"], row["ci_high"], row["p"], row["n_documents"]) == (
            drawn.mean, *its.ci, its.p, drawn.n_documents
        )
        assert row["mean_a"] == pytest.approx(math.fsum(a for a, _ in pairs) / len(pairs))
        assert row["mean_b"] == pytest.approx(math.fsum(b for _, b in pairs) / len(pairs))
        assert (row["n_questions"], row["excluded"]) == (len(able), len(names) - len(able))
        end = " (connected)" if row["family"] == "connected" else ""
        assert row["name"] == f"{row['a']} - {row['b']}{end}"
        assert (row["reason"] is None) is (row["p"] is not None)
    for family in families.values():
        assert len(family) == (2 if family[0]["family"] == "retriever" else 3)
        assert [row["p_holm"] for row in family] == pytest.approx(
            holm([row["p"] for row in family], len(family))
        )
    # 2 slices, 4 amounts of each of 6 bases and 2 measures: 3 pairs for each of 3 retrievers, and
    # over 5 bases 2 for 3 segmentations; the former again for one slice and 2 bases.
    assert len(BASES) == 6
    assert len(made) == 2 * 4 * 2 * (6 * 3 * 3 + 5 * 3 * 2) + 4 * 2 * 2 * 3 * 3
    assert len({(row["p"], row["delta"]) for row in made}) > 20


def test_connected_clusters_are_fewer_and_the_difference_is_the_same(world: World) -> None:
    """One need has anchors in the pump's manual and in the blog: what is one may move together."""
    made = compared(world, documents_of(world))
    plain = {
        (row["slice"], row["basis"], row["amount"], row["measure"], row["name"]): row
        for row in made if row["family"] == "segmentation"
    }
    again = [row for row in made if row["family"] == "connected"]
    assert {(row["slice"], row["basis"]) for row in again} == {
        ("development", "units"), ("development", "matched"),
    }
    assert {(row["a"], row["b"]) for row in again} == {
        (row["a"], row["b"]) for row in plain.values()
    }
    moved_by_it = 0
    for row in again:
        name = row["name"].removesuffix(" (connected)")
        first = plain[row["slice"], row["basis"], row["amount"], row["measure"], name]
        for figure in ("delta", "mean_a", "mean_b", "n_questions", "excluded", "dz"):
            assert row[figure] == first[figure]
        # pump, meter and blog; pump and blog are one.
        assert (row["n_documents"], first["n_documents"]) == (2, 3)
        moved_by_it += (row["ci_low"], row["ci_high"]) != (first["ci_low"], first["ci_high"])
    assert moved_by_it > 10


@pytest.mark.parametrize("joining", [
    # Through a third document that no other need is about.
    {"scope": ["pump", "leaflet"], "code": ["leaflet", "meter"]},
    # By needs that are about neither, in any order.
    {"code": ["meter", "pump"]}, {"frozen-2": ["pump", "meter"]}, {"none": ["meter", "pump"]},
])
def test_clusters_are_joined_by_whatever_need_shares_them(
    world: World, joining: dict[str, list[str]]
) -> None:
    apart = {name: [need.doc_id] for name, need in world.needs.items()}
    rows = [row for row in compared(world, apart | joining) if row["family"] == "connected"]
    assert rows and {row["n_documents"] for row in rows} == {2}
    together = apart | joining | {"wait": ["pump", "blog"]}
    rows = [row for row in compared(world, together) if row["family"] == "connected"]
    assert {row["n_documents"] for row in rows} == {1}
    assert {(row["ci_low"], row["ci_high"], row["p"], row["p_holm"]) for row in rows} == {
        (None, None, None, None)
    }
    assert all(row["reason"].startswith("one document") for row in rows)


def test_where_no_need_crosses_documents_nothing_is_repeated(world: World) -> None:
    apart = {name: [need.doc_id] for name, need in world.needs.items()}
    made = compared(world, apart)
    assert {row["family"] for row in made} == {"segmentation", "retriever"}
    # And what is there is not moved by what is repeated.
    both = compared(world, documents_of(world))
    assert made == [row for row in both if row["family"] != "connected"]


def test_the_slices_stand_apart(world: World) -> None:
    """What becomes of the reworded needs moves nothing of the development ones."""
    kept = [row for row in world.outcomes if row["slice"] == "development"]
    turned = kept + [
        row | {measure: None if row[measure] is None else 1 - row[measure] for measure in MEASURES}
        for row in world.outcomes if row["slice"] == "reworded"
    ]

    def differences(rows: Sequence[Row]) -> list[Row]:
        return comparisons(rows, ["one", "two"], "bm25", INFERENCE, documents_of(world))

    for table in (means, differences):
        both = [row for row in table(turned) if row["slice"] == "development"]
        assert both == table(kept)
        assert {row["slice"] for row in table(world.outcomes)} == {"development", "reworded"}


def test_bm25_alone_has_no_family_of_retrievers(world: World) -> None:
    lexical_only = [row for row in world.outcomes if row["retriever"] == "bm25"]
    rows = comparisons(lexical_only, ["one"], "bm25", INFERENCE, documents_of(world))
    assert {row["family"] for row in rows} == {"segmentation", "connected"}


# ---------------------------------------------------------------- the scoped reset


@pytest.fixture(scope="module")
def handbook() -> World:
    """The bundled corpus with BM25 and all the settings of params.yaml."""
    study = params.load(ROOT / "params.yaml")
    corpus_settings = study.corpus("handbook")
    folder = ROOT / corpus_settings.path
    if not folder.exists():
        pytest.skip("data/handbook is not there: run `make pull`")
    corpus = read_split(corpus_settings.reader, folder, options=corpus_settings.options)
    known, _, _, _, needs = asked(corpus)
    trees = {document.doc_id: native_tree(document) for document in corpus.documents}
    tokenizer = models.tokenizer(study)
    made = cut(corpus.documents, known, trees, corpus_settings.reader, tokenizer, study.units)
    units = {name: table.to_pylist() for name, table in made.items()}
    runs = lexical(units, known, [("s-d01", needs["s-d01"].text)], study.retrieval.bm25,
                   study.units.depth)
    judge = Judge([needs["s-d01"]], known, tokenizer, study.units)
    outcomes, traces = judge.retriever(
        "bm25", {segmentation: Held(rows, {}) for segmentation, rows in units.items()}, runs
    )
    return World(known, needs, units, {"bm25": runs}, {"bm25": {}}, outcomes, traces)


def top(world: World, segmentation: str) -> tuple[list[Row], Row]:
    """The first three lines of the trace, and the outcome at three units."""
    lines = [row for row in world.traces if row["segmentation"] == segmentation and row["rank"] < 4]
    (outcome,) = [
        row for row in world.outcomes
        if (row["segmentation"], row["basis"], row["amount"]) == (segmentation, "units", 3)
    ]
    return lines, outcome


def test_scoped_reset_blocks_hold_it_together_and_none_alone(handbook: World) -> None:
    lines, outcome = top(handbook, "blocks")
    assert (outcome["sufficient"], outcome["covered"]) == (0.0, 1.0)
    assert outcome["sufficient_cause"] == "boundary" and outcome["covered_cause"] is None
    assert sorted(row["met"] for row in lines) == [[], [0], [1]]
    held = {tuple(row["met"]): resolve(row, handbook.known) for row in lines}
    assert held[0,] == "### Handheld R17 only"
    assert held[1,].startswith("Put the slide switch") and held[1,].endswith("take a reading.")


def test_scoped_reset_a_section_suffices_in_the_first_result(handbook: World) -> None:
    lines, outcome = top(handbook, "sections")
    assert (outcome["sufficient"], outcome["covered"]) == (1.0, 1.0)
    assert lines[0]["met"] == [0, 1]
    assert resolve(lines[0], handbook.known).startswith("### Handheld R17 only\n\nPut the slide")


def test_scoped_reset_windows_cut_the_instruction(handbook: World) -> None:
    lines, outcome = top(handbook, "windows")
    assert (outcome["sufficient"], outcome["covered"]) == (0.0, 0.0)
    assert outcome["sufficient_cause"] == "boundary" and outcome["covered_cause"] in CAUSES
    assert all(1 not in row["met"] for row in lines) and any(1 in row["part"] for row in lines)
    anchor = handbook.needs["s-d01"].anchors[1]
    whole = characters([(anchor.doc_id, anchor.start, anchor.end)])
    assert 0 < len(characters([place(row) for row in lines]) & whole) < len(whole)


def test_windows_have_the_size_and_overlap_of_the_settings_in_tokens_of_the_text(
    handbook: World,
) -> None:
    study = params.load(ROOT / "params.yaml")
    tokenizer, its = models.tokenizer(study), study.units.windows
    for doc_id, parent in handbook.known.items():
        edges = tokenizer.offsets(parent.text)
        rows = [row for row in handbook.units["windows"] if row["doc_id"] == doc_id]
        firsts = [int(np.flatnonzero(edges[:, 0] == row["start"])[0]) for row in rows]
        lasts = [int(np.flatnonzero(edges[:, 1] == row["end"])[-1]) for row in rows]
        sizes = [last - first + 1 for first, last in zip(firsts, lasts, strict=True)]
        assert set(sizes[:-1]) <= {its.size_tokens} and sizes[-1] <= its.size_tokens
        assert lasts[-1] == len(edges) - 1 and firsts[0] == 0
        assert all(last - first + 1 == its.overlap_tokens
                   for last, first in zip(lasts, firsts[1:], strict=False))


def test_every_unit_of_the_handbook_is_its_slice(handbook: World) -> None:
    for rows in handbook.units.values():
        found = texts(rows, handbook.known)
        assert [sha256(text) for text in found] == [row["text_sha256"] for row in rows]
        assert len({row["passage_id"] for row in rows}) == len(rows)
