"""QASPER: documents, headings, evidence, the funnel, and what is refused."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from spanwise.corpora.qasper import read
from spanwise.documents.model import Builder, Corpus, Document
from spanwise.errors import CorpusError, ParamsError, QuestionError
from spanwise.questions.harvest import Matcher
from spanwise.spans import Evidence

from .conftest import corpora_folder
from .reference_harvest import best_run, headings_of

A = "Attention is computed over every pair of words in the sentence, at a quadratic cost."
B = "We train for ten epochs with a batch of thirty-two sentences\nand a falling learning rate."
C = "The development set has four thousand questions, which two annotators answered each."
D = "Errors come from long sentences, where the parser often attaches a phrase too high."


def answer(*evidence: str, **fields: Any) -> dict[str, Any]:
    """One annotator's answer in the official layout."""
    plain = {"unanswerable": False, "extractive_spans": [], "yes_no": None, "free_form_answer": ""}
    return {"answer": {**plain, "evidence": list(evidence), "highlighted_evidence": [], **fields}}


def question(name: str, *answers: dict[str, Any]) -> dict[str, Any]:
    """One question in the official layout."""
    return {"question": f"What about {name}?", "question_id": name, "answers": list(answers)}


def paper(*questions: dict[str, Any], **fields: Any) -> dict[str, Any]:
    """A paper of five sections, one of them without text and one without a name."""
    return {
        "title": "A  study", "abstract": "We study things. ",
        "full_text": [
            {"section_name": "Model", "paragraphs": [A + " ", "", " \n"]},
            {"section_name": "Training ::: Schedule", "paragraphs": [B]},
            {"section_name": "Training ::: Data", "paragraphs": [C]},
            {"section_name": None, "paragraphs": [D]},
            {"section_name": "Conclusion", "paragraphs": []},
        ],
        "qas": list(questions), **fields,
    }


def corpus(tmp_path: Path, papers: dict[str, Any]) -> Corpus:
    file = tmp_path / "papers.json"
    file.write_text(json.dumps(papers), encoding="utf-8")
    return read(file, options={})


def test_a_paper_becomes_a_document(tmp_path: Path) -> None:
    got = corpus(tmp_path, {"1901.00001": paper()})
    (document,) = got.documents
    assert (document.doc_id, document.title, document.raw) == ("1901.00001", "A study", None)
    assert document.body == "\n\n".join(["We study things.", A, B, C, D])
    # The abstract is paragraph 0, before any heading; the parent `Training`, which has no entry of
    # its own, is a heading once; the nameless section goes on with `Data`.
    assert [(h.level, h.title, h.paragraph) for h in document.headings] == [
        (1, "Model", 1), (1, "Training", 2), (2, "Schedule", 2), (2, "Data", 3),
        (1, "Conclusion", 5),
    ]
    assert got.evidence == "body"
    assert got.counts["paragraphs without text"] == 2
    assert got.counts["sections without a name"] == 1
    assert got.counts["parents repeated as headings"] == 1


def test_funnel_counts_every_question_once(tmp_path: Path) -> None:
    got = corpus(tmp_path, {"p": paper(
        question("q1", answer(unanswerable=True), answer(unanswerable=True)),
        question("q2", answer(free_form_answer="x"), answer(A, unanswerable=True)),
        question("q3", answer("FLOAT SELECTED: Table 2: Scores.", extractive_spans=["x"])),
        question("q4", answer("Nothing of the sort stands anywhere in this paper at all, sorry.")),
        question("q5", answer(A, C, free_form_answer="x"), answer(C, yes_no=False),
                 answer("FLOAT SELECTED: Figure 1.", A, yes_no=True)),
        question("q6", answer(A, free_form_answer="x"), answer(A, unanswerable=True)),
    )})
    by_id = {q.question_id: q for q in got.questions}
    assert [by_id[f"q{i}"].excluded for i in range(1, 7)] == [
        "unanswerable", "no-evidence", "tables-or-figures", "unmatched", None, None
    ]
    assert [by_id[f"q{i}"].type for i in range(1, 7)] == [
        # q5: one abstractive, two boolean; q4: an answer without form
        "unanswerable", "abstractive", "extractive", "unknown", "boolean", "abstractive"
    ]
    assert all(not q.evidence and not q.bundles for q in got.questions if q.excluded)
    names = list(got.counts)
    funnel = names[names.index("questions"):names.index("kept") + 1]
    assert [got.counts[name] for name in funnel] == [6, 0, 1, 1, 1, 1, 2]
    # Items of answerable annotators: q3 one float, q4 one lost, q5 A C | C | float A, q6 A.
    assert {name: n for name, n in got.counts.items() if name.startswith("evidence items")} == {
        "evidence items": 8, "evidence items: tables or figures": 2, "evidence items: exact": 5,
        "evidence items: fuzzy": 0, "evidence items: section": 0, "evidence items: unmatched": 1,
        "evidence items: first of several places": 0,
    }
    body = got.documents[0].body
    a, c = (Evidence("p", body.index(t), body.index(t) + len(t)) for t in (A, C))
    assert by_id["q5"].evidence == (a, c)  # the union of three annotators
    assert by_id["q5"].bundles == ((0, 1), (1,), (0,))  # one each, in their order
    assert got.counts["bundles"] == 4
    assert got.counts["bundles that also cite tables or figures"] == 1


def test_type_ties_go_to_the_first_annotator(tmp_path: Path) -> None:
    got = corpus(tmp_path, {"p": paper(
        question("q", answer(A, yes_no=True), answer(A, extractive_spans=["x"])))})
    assert got.questions[0].type == "boolean"


def document(*parts: str) -> Document:
    """Paragraphs; a part that begins with `# ` is a heading."""
    builder = Builder("d", "T")
    for part in parts:
        mark, _, title = part.partition(" ")
        if mark and not mark.strip("#"):
            builder.heading(len(mark), title)
        else:
            builder.paragraph(part)
    return builder.build()


@pytest.mark.parametrize(("item", "how", "texts"), [
    (f" {A}\n", "exact", (A,)),
    (B.replace("\n", " "), "fuzzy", (B,)),  # a line break inside the paragraph
    (f"{A}\n{B}", "fuzzy", (A, B)),  # two paragraphs in one item
    (B[:60].replace("\n", "  "), "fuzzy", (B[:60],)),  # a part, not the whole paragraph
    (C.replace("four thousand", "4 thousand"), "fuzzy", (C,)),
    ("Training ::: Data", "section", (C, D)),
    ("Data", "section", (C, D)),
    ("Training", "section", (B, C, D)),  # no text of its own: all of its subsections
    # 110 of the section's 168 characters: in it, but 2 x 110 / 278 = 79 % like its two paragraphs
    (f"{C} {D}"[20:130], "section", (C, D)),
])
def test_matching(item: str, how: str, texts: tuple[str, ...]) -> None:
    doc = document(
        "Abstract.", "# Model", A, "# Training", "## Schedule", B, "## Data", C, D, "# End"
    )
    match = Matcher(doc).match(item)
    assert match is not None
    assert (match.how, doc.body[match.span.start:match.span.end]) == (how, "\n\n".join(texts))


def test_no_match_for_blank_short_or_foreign_text() -> None:
    matcher = Matcher(document("# Model", A, "# End", B))
    assert [matcher.match(item) for item in ("", " \n", "every pair of", D)] == [None] * 4


def test_of_equal_paragraphs_the_first_is_taken_and_said() -> None:
    match = Matcher(document(A, B, A)).match(A)
    assert match is not None and (match.span.start, match.ambiguous) == (0, True)


WORDS = st.sampled_from(["the", "model", "a", "data", "set", "loss", "train", "parse", "sentence"])
PARAGRAPHS = st.lists(
    st.lists(WORDS, min_size=1, max_size=12).map(" ".join), min_size=1, max_size=6
)


@given(PARAGRAPHS, st.data())
@settings(max_examples=300, deadline=None)
def test_runs_of_paragraphs_agree_with_the_slow_twin(texts: list[str], data: st.DataObject) -> None:
    doc = document(*texts)
    first = data.draw(st.integers(0, len(texts) - 1))
    last = data.draw(st.integers(first + 1, len(texts)))
    item = "\n ".join(texts[first:last])
    cut = data.draw(st.integers(0, len(item)))
    item = item[:cut] + data.draw(st.sampled_from(["", "x", "the "])) + item[cut:]
    got = Matcher(doc)._paragraphs(" ".join(item.split()))
    assert (got and got.span) == best_run(doc, item)


@given(st.lists(st.lists(st.sampled_from("AB"), min_size=1, max_size=3).map(tuple), max_size=8))
def test_trails_agree_with_the_slow_twin(trails: list[tuple[str, ...]]) -> None:
    from spanwise.corpora.qasper import _headings

    builder, opened, counts = Builder("d", "T"), (), Counter[str]()
    for trail in trails:
        opened = _headings(builder, " ::: ".join(trail), opened, counts)
    headings = [(h.level, h.title) for h in builder.build().headings]
    assert headings == headings_of(trails)
    assert counts["parents repeated as headings"] == len(headings) - len(trails)


@pytest.mark.parametrize(("name", "headings"), [
    ("", []), (" ::: ", []), (" :::  ::: X", [(1, "X")]), ("A ::: ", [(1, "A")]),
    ("A :::  ::: B", [(1, "A"), (2, "B")]),
])
def test_empty_parts_of_a_trail_close_up(name: str, headings: list[tuple[int, str]]) -> None:
    from spanwise.corpora.qasper import _headings

    builder = Builder("d", "T")
    _headings(builder, name, (), Counter())
    assert [(h.level, h.title) for h in builder.build().headings] == headings


def test_a_folder_is_one_corpus_and_a_paper_stands_in_it_once(tmp_path: Path) -> None:
    (tmp_path / "a.json").write_text(json.dumps({"p2": paper(question("b", answer(A)))}))
    (tmp_path / "b.json").write_text(json.dumps({"p1": paper(question("a", answer(A)))}))
    got = read(tmp_path, options={})
    assert [d.doc_id for d in got.documents] == ["p1", "p2"]
    assert [q.question_id for q in got.questions] == ["a", "b"]
    (tmp_path / "c.json").write_text(json.dumps({"p2": paper()}))
    with pytest.raises(CorpusError, match=r"c\.json: paper p2: it stands in .*a\.json as well"):
        read(tmp_path, options={})


def test_a_paper_without_text_is_counted_with_its_questions(tmp_path: Path) -> None:
    empty = paper(question("q1", answer(A)), abstract=None, full_text=[])
    got = corpus(tmp_path, {"p": paper(question("q2", answer(A))), "void": empty})
    assert [d.doc_id for d in got.documents] == ["p"]
    assert got.counts["papers without text"] == 1
    assert (got.counts["questions"], got.counts["questions of papers without text"]) == (2, 1)
    with pytest.raises(CorpusError, match="no paper with text"):
        corpus(tmp_path, {"void": empty})


@pytest.mark.parametrize(("content", "message"), [
    (b"[1, 2]", r"expected an object, found a list"),
    (b"{}", r"an empty object"),
    (b'{"p": 3}', r"paper p: expected an object, found a number"),
    (b'{"p": {"title": "x"}}', r"paper p: no 'abstract' among its keys \['title'\]"),
    (b'{"p": {"title": "x", "abstract": "y", "full_text": []}}', r"paper p: no 'qas'"),
    (b'{"p": \n {"title" 1}}', r"line 2, column 11: not JSON"),
    (b'{"p": "\xff"}', r"byte 7 is not UTF-8"),
    (b'{"p": {}, "p": {}}', r"the key 'p' occurs twice"),
    (json.dumps({"p": paper(title="a\0b")}).encode(), r"paper p: title: character 1 is U\+0000"),
    (json.dumps({"p": paper(title="\ud800")}).encode(), r"title: character 0 is U\+D800"),
    (json.dumps({"p": paper(qas=[{"question": "x?"}])}).encode(), r"qas\[0\]: no 'question_id'"),
    (json.dumps({"p": paper({**question("q"), "answers": [{"answer": []}]})}).encode(),
     r"paper p: qas\[0\]: answers\[0\]: expected an object, found a list"),
    (json.dumps({"p": paper(question("q", answer(unanswerable="no")))}).encode(),
     r"answers\[0\]: unanswerable: expected true or false, found a string"),
])
def test_what_is_not_qasper_is_refused(tmp_path: Path, content: bytes, message: str) -> None:
    (tmp_path / "x.json").write_bytes(content)
    with pytest.raises(CorpusError, match=message) as error:
        read(tmp_path / "x.json", options={})
    assert "x.json" in str(error.value)


def test_repeated_question_unknown_option_and_split_are_refused(tmp_path: Path) -> None:
    with pytest.raises(QuestionError, match="question_id 'q' occurs twice, first in p1"):
        corpus(tmp_path, {"p1": paper(question("q")), "p2": paper(question("q"))})
    with pytest.raises(ParamsError, match="seed"):
        read(tmp_path, options={"seed": 1})
    with pytest.raises(CorpusError, match="sweep"):
        read(tmp_path, options={}, split="sweep")
    (tmp_path / "empty").mkdir()
    with pytest.raises(CorpusError, match=r"expected a \.json file or a folder"):
        read(tmp_path / "empty", options={})


def test_the_real_subset() -> None:
    got = read(corpora_folder("qasper") / "qasper-subset-112.json", options={})
    assert (len(got.documents), len(got.questions)) == (112, 291)
    names = list(got.counts)
    funnel = [got.counts[n] for n in names[names.index("questions"):names.index("kept") + 1]]
    assert funnel == [291, 0, 6, 1, 7, 2, 275]
    assert sum(funnel[2:]) == 291
    found = {how: got.counts[f"evidence items: {how}"]
             for how in ("exact", "fuzzy", "section", "unmatched")}
    assert found == {"exact": 489, "fuzzy": 4, "section": 11, "unmatched": 2}
    assert sum(found.values()) == 506 and found["exact"] / 506 >= 0.93  # 96.6 %
    documents = {d.doc_id: d for d in got.documents}
    for q in got.questions:
        assert (q.excluded is None) == bool(q.evidence) == bool(q.bundles)
        assert {i for bundle in q.bundles for i in bundle} == set(range(len(q.evidence)))
        for e in q.evidence:
            assert documents[e.doc_id].body[e.start:e.end].strip()


def test_exact_evidence_of_the_real_subset_is_the_text_of_its_span() -> None:
    file = corpora_folder("qasper") / "qasper-subset-112.json"
    documents = {d.doc_id: d for d in read(file, options={}).documents}
    checked = 0
    for paper_id, content in json.loads(file.read_text(encoding="utf-8")).items():
        doc, matcher = documents[paper_id], Matcher(documents[paper_id])
        for qa in content["qas"]:
            for item in (e for a in qa["answers"] for e in a["answer"]["evidence"]):
                match = matcher.match(item)
                if match is not None and match.how == "exact":
                    assert doc.body[match.span.start:match.span.end] == item.strip()
                    checked += 1
    assert checked == 489
