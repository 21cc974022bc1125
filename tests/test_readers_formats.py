"""HTML, reStructuredText, DOCX and PDF: what they are laid out as, and what is refused."""

from __future__ import annotations

import io
import re
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from spanwise.corpora import docx, folder, html, linear, pdf, readers, rst
from spanwise.documents.model import Document
from spanwise.errors import CorpusError, DecodingError, InputError
from spanwise.structure.model import verify
from spanwise.structure.native import native_tree

from . import small_files

Read = Callable[..., tuple[Document | None, Any]]


def read(reader: Read, content: Any, **more: Any) -> Document:
    document, _ = reader("x", content, stem="stem", **more)
    assert document is not None
    return document


def told(document: Document) -> list[tuple[str, str]]:
    """Headings (`h2`) and paragraphs with their kinds, in order."""
    found: list[tuple[int, int, str, str]] = [
        (h.paragraph, 0, f"h{h.level}", h.title) for h in document.headings
    ]
    found += [(n, 1, p.kind, document.body[p.span.start : p.span.end])
              for n, p in enumerate(document.paragraphs)]
    return [(kind, text) for _, _, kind, text in sorted(found, key=lambda row: row[:2])]


def holds(document: Document) -> None:
    """Each paragraph is its slice of raw, raw's blocks are all of raw, and the tree is one."""
    assert document.raw is not None
    for p in document.paragraphs:
        assert p.raw is not None
        assert document.raw[p.raw.start : p.raw.end] == document.body[p.span.start : p.span.end]
    blocks = [document.raw[b.span.start : b.span.end] for b in linear.raw_blocks(document)]
    assert "\n\n".join(blocks) == document.raw
    assert verify(native_tree(document), document.paragraphs) == []


PAGE = """<!doctype html><html><head><title>Boat — Site</title><style>p {}</style></head><body>
<nav><a href=/>Home</a></nav><h1>The <em>Boat</em></h1> loose
<p>Keel:&nbsp;410&#160;kg<!-- no -->, b<b>ol</b>ted<br>twice.</p><script>var x</script>
<div><h3>Hull</h3><ul><li>a<ul><li>b</li></ul>c</li><li><p>d</p><p>e</p></ul>
<table><caption>T</caption><tr><th>A<td>1<tr><td>B<td></table></div>
<pre>
x = 1

  y
</pre><blockquote><p>said</p></blockquote><table><tr><td><h3>Card</h3>in it</table>end
</body></html>"""


def test_html_is_what_a_browser_shows() -> None:
    document = read(html.read_if_any, PAGE.encode())
    holds(document)
    assert document.title == "The Boat"  # the sole h1 is no heading
    assert told(document) == [
        ("paragraph", "loose"), ("paragraph", "Keel: 410 kg, bolted\ntwice."), ("h3", "Hull"),
        ("list", "- a c\n  - b\n- d e"), ("table", "T\nA | 1\nB |"), ("fence", "x = 1\n  y"),
        ("quote", "said"), ("h3", "Card"), ("paragraph", "in it"), ("paragraph", "end"),
    ]
    assert (document.raw or "").startswith("The Boat\n\nloose")


def test_a_heading_does_not_hold_the_link_to_itself() -> None:
    page = ('<h1>Boat</h1><h2>Hull <a class="headerlink" href="#hull">¶</a> and keel</h2>'
            '<ul><li>oak<a class="big headerlink">¶</a> or elm</ul><p><a class="link">Told</a>.')
    document = read(html.read_if_any, page.encode())
    assert told(document) == [("h2", "Hull and keel"), ("list", "- oak or elm"),
                              ("paragraph", "Told.")]


@pytest.mark.parametrize(("head", "charset"), [
    ('<meta charset="windows-1251">', "cp1251"),
    ('<meta http-equiv="Content-Type" content="text/html; charset=Shift_JIS">', "shift_jis"),
    ("<meta charset=iso-8859-1>", "cp1252"),  # as browsers do
    ("", "utf-8"), ("<meta charset=latin1>", "utf-8-sig"), ("", "utf-16"),
])
def test_html_is_read_in_the_charset_that_it_declares(head: str, charset: str) -> None:
    words = {"cp1251": "Привет", "shift_jis": "日本語", "cp1252": "“né”"}.get(charset, "né 日本")
    document = read(html.read_if_any, f"<html>{head}<p>{words}</p>".encode(charset))
    assert document.body == words


@pytest.mark.parametrize(("page", "says"), [
    (b"<p>\xe9</p>", r"a\.html: byte e9 at byte offset 3 \(line 1\) is no utf-8.*declare"),
    (b"<meta charset=nonsense><p>x", "the charset 'nonsense' that it declares is unknown"),
    (b"<meta charset=utf-8>\n<p>\xff</p>", r"line 2\) is no utf-8"),
    (b"<p>a\x00b", "NUL"),
    (b"<div>" * 3000 + b"x", "nested 200 deep"),
])
def test_html_that_would_be_guessed_is_refused(page: bytes, says: str) -> None:
    with pytest.raises(InputError, match=says):
        html.read_if_any("x", page, stem="x", where="a.html")


@settings(max_examples=60, deadline=None)
@given(st.lists(st.sampled_from([
    "<p>", "</p>", "<h2>", "</h2>", "<ul>", "<li>", "</ul>", "<table>", "<tr>", "<td>", "</table>",
    "<pre>", "</pre>", "<b>", "</b>", "<br>", "<blockquote>", "</blockquote>", "<dl>", "<dd>", "w1",
    "w2\n\n", " w3 ", "<nav>", "</nav>",
]), max_size=25))
def test_whatever_the_markup_spans_hold(parts: list[str]) -> None:
    document, _ = html.read_if_any("x", "".join(parts).encode(), stem="x")
    if document is not None:
        holds(document)


RST = """
====
Boat
====

Intro with *stress*, ``code``, `a link <http://x.org>`_ and :ref:`the hull <hull>`.

.. toctree::
   :maxdepth: 2

   one

.. _hull:

Hull
----

.. versionadded:: 3.2
   By :class:`Foo`.

.. note:: Mind the |dog|.

.. include:: /etc/passwd

.. code-block:: python

   x = 1

   y = 2

- a
- b

  - c

=== ===
A   B
1   two
=== ===

    A quote.

Keel
~~~~

Weighs 410 kg [1]_.

.. |dog| replace:: cat
.. [1] A footnote.
.. image:: x.png
"""


def test_rst_keeps_what_docutils_does_not_know() -> None:
    document, counts = rst.read_if_any("x", RST, stem="s")
    assert document is not None
    holds(document)
    assert document.title == "Boat"
    assert told(document) == [
        ("paragraph", "Intro with stress, code, a link and the hull."), ("paragraph", "one"),
        ("h2", "Hull"), ("paragraph", "3.2 By Foo."), ("paragraph", "Mind the cat."),
        ("fence", ".. include:: /etc/passwd"), ("fence", "x = 1\ny = 2"),
        ("list", "- a\n- b\n  - c"), ("table", "A | B\n1 | two"), ("quote", "A quote."),
        ("h3", "Keel"), ("paragraph", "Weighs 410 kg 1."), ("footnote", "1 A footnote."),
    ]
    assert counts == {"reStructuredText images left out": 1}
    assert "root:" not in (document.raw or "")


@pytest.mark.parametrize(("text", "kept"), [
    ("Fine.\n\n.. image::\n\nMore.\n", ".. image::"),
    ("A\n=\n\nx\n\nB\n-\n\nC\n~\n\nD\n=\n\nE\n~\n\nw\n", "E\n~"),  # it skips a level
])
def test_what_rst_cannot_read_stays_as_written_and_counts(text: str, kept: str) -> None:
    document, counts = rst.read_if_any("x", text, stem="x")
    assert document is not None
    assert ("fence", kept) in told(document)
    assert counts["reStructuredText blocks kept as they are written"] == 1


def test_docx_headings_lists_tables_and_title() -> None:
    document = read(docx.read_if_any, small_files.docx(
        ("Title", "The\nBoat"), ("Normal", "Intro."), ("Heading 1", "Hull"),
        ("List Bullet", "a"), ("List Bullet", "b"), ("Heading 2", "Keel"),
        ("Normal", "It  weighs\n410 kg."), ("table", "A|1\nB|2"), ("Quote", "said"),
    ))
    holds(document)
    assert document.title == "The Boat"
    assert told(document) == [
        ("paragraph", "Intro."), ("h1", "Hull"), ("list", "- a\n- b"), ("h2", "Keel"),
        ("paragraph", "It weighs\n410 kg."), ("table", "A | 1\nB | 2"), ("quote", "said"),
    ]


def test_docx_counts_what_was_put_in_and_not_what_was_taken_out() -> None:
    data = small_files.docx(("Normal", "kept"))
    stream = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(data)) as old, zipfile.ZipFile(stream, "w") as new:
        for name in old.namelist():
            content = old.read(name)
            if name == "word/document.xml":
                content = content.replace(
                    b"<w:r><w:t>kept</w:t></w:r>",
                    b"<w:r><w:t>kept</w:t></w:r><w:ins w:id='1'><w:r><w:t> in</w:t></w:r></w:ins>"
                    b"<w:del w:id='2'><w:r><w:delText> out</w:delText></w:r></w:del>",
                )
                assert b"<w:ins" in content
            new.writestr(name, content)
    assert read(docx.read_if_any, stream.getvalue()).body == "kept in"


@pytest.mark.parametrize(("data", "says"), [
    (b"not a zip", "no DOCX that can be opened"), (b"", "no DOCX"),
    (b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1", "encrypted file or one of old Word"),
    (small_files.docx(("Normal", "x"))[:-400], "no DOCX"),
])
def test_what_is_no_docx_is_refused(data: bytes, says: str) -> None:
    with pytest.raises(CorpusError, match=rf"a\.docx: .*{says}"):
        docx.read_if_any("x", data, stem="x", where="a.docx")


PAGES: list[list[small_files.Line]] = [
    [(72, 720, 18, "1 Introduction"), (72, 690, 11, "The keel (410 kg) is bolted with"),
     (72, 676, 11, "nine bolts."), (72, 650, 11, "A second paragraph that is not"),
     (72, 636, 11, "finished on this page but")],
    [(72, 720, 11, "goes on here."), (72, 690, 14, "Painting"), (72, 665, 11, "Sand first.")],
    [],
]


def test_pdf_paragraphs_by_layout_and_headings_by_outline() -> None:
    data = small_files.pdf(PAGES, [("Introduction", 0, 740), ("Painting", 1, 705)], "The Boat")
    document, counts = pdf.read_if_any("x", data, stem="s")
    assert document is not None
    holds(document)
    assert document.title == "The Boat"
    assert told(document) == [
        ("h1", "Introduction"), ("paragraph", "The keel (410 kg) is bolted with nine bolts."),
        ("paragraph",
         "A second paragraph that is not finished on this page but goes on here."),
        ("h1", "Painting"), ("paragraph", "Sand first."),
    ]
    assert counts == {"PDF pages without text": 1}


def test_pdf_without_an_outline_has_no_headings() -> None:
    document = read(pdf.read_if_any, small_files.pdf(PAGES))
    assert (document.title, document.headings) == ("stem", ())
    assert document.body.startswith("1 Introduction\n\nThe keel")


@pytest.mark.parametrize(("data", "says"), [
    (small_files.pdf([[], []]), r"no text on its pages \(2\), so it is a scan.*ocrmypdf"),
    (small_files.pdf(PAGES, encrypted=True), "encrypted and wants a password"),
    (b"%PDF-1.4 nonsense", "no PDF that can be opened"),
])
def test_pdf_without_words_to_read_is_refused(data: bytes, says: str) -> None:
    with pytest.raises(CorpusError, match=rf"a\.pdf: .*{says}"):
        pdf.read_if_any("x", data, stem="x", where="a.pdf")


def mixed(root: Path) -> Path:
    """A folder with a document of each format."""
    files: dict[str, bytes] = {
        "a.md": b"# A\n\nIn Markdown.\n\n---\n\n## Sub\n\nMore.\n", "b.txt": b"Plain.\n\nText.\n",
        "c d.rst": b"C\n=\n\nIn rst.\n", "e/é.html": PAGE.encode(),
        "f.pdf": small_files.pdf(PAGES), "g.docx": small_files.docx(("Normal", "In Word.")),
        "blank.htm": b"<p> </p>",
    }
    for name, content in files.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_bytes(content)
    (root / "questions.yaml").write_text(
        "- {id: q1, document: f, question: Which, anchors: [{quote: nine bolts}]}\n"
        "- {id: q2, document: e/é, question: Which, anchors: [{quote: 410 kg}]}\n"
        "- {id: q3, document: blank, question: Which, anchors: [{quote: x}]}\n", encoding="utf-8",
    )
    return root


def test_a_folder_mixes_formats_under_one_view(tmp_path: Path) -> None:
    corpus = readers.read_split("folder", mixed(tmp_path), options={})
    by_id = {document.doc_id: document for document in corpus.documents}
    assert list(by_id) == ["a", "b", "c%20d", "e/%C3%A9", "f", "g"]
    assert {d.doc_id: d.labels for d in corpus.documents}["f"] == ("pdf",)
    for question, words in zip(corpus.questions, ("nine bolts", "410 kg"), strict=True):
        (span,) = question.evidence
        assert (by_id[span.doc_id].raw or "")[span.start : span.end] == words
    assert corpus.counts["files left out: no text"] == 1
    assert corpus.counts["questions left out: no text"] == 1
    assert corpus.counts["PDF pages without text"] == 1
    assert [d.doc_id for d in readers.read_documents("folder", tmp_path)] == list(by_id)


def test_blocks_of_a_mixed_folder_are_those_of_each_format(tmp_path: Path) -> None:
    corpus = readers.read_split("folder", mixed(tmp_path), options={})
    for document in corpus.documents:
        text = document.raw or ""
        blocks = readers.raw_blocks("folder", text, document.doc_id, document)
        if document.doc_id == "a":  # a rule is no block
            assert [(b.kind, text[b.span.start : b.span.end]) for b in blocks] == [
                ("heading", "# A"), ("paragraph", "In Markdown."), ("heading", "## Sub"),
                ("paragraph", "More."),
            ]
        elif document.labels != ("text",):
            heads = {text[b.span.start : b.span.end] for b in blocks if b.kind == "heading"}
            assert {h.title for h in document.headings} <= heads


def test_two_formats_of_one_name_are_refused(tmp_path: Path) -> None:
    (tmp_path / "a.md").write_text("x\n", encoding="utf-8")
    (tmp_path / "a.txt").write_text("y\n", encoding="utf-8")
    with pytest.raises(CorpusError, match=r"document 'a' is also a\.md"):
        readers.read_split("folder", tmp_path, options={})


def test_formats_are_named_once() -> None:
    assert tuple(folder.FORMATS) == readers.SUFFIXES["folder"]
    assert set(folder.LIBRARIES) <= set(folder.FORMATS.values())


def test_a_missing_library_is_named_with_its_extra(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import sys

    monkeypatch.setitem(sys.modules, "pypdfium2", None)
    (tmp_path / "a.pdf").write_bytes(small_files.pdf(PAGES))
    with pytest.raises(CorpusError, match=re.escape("-e '.[formats]'")):
        folder.read_file(tmp_path / "a.pdf", "a")


def test_bytes_that_are_no_text_are_refused_with_their_place(tmp_path: Path) -> None:
    (tmp_path / "a.rst").write_bytes(b"ok\n\n\xff")
    with pytest.raises(DecodingError, match=r"byte ff at byte offset 4 \(line 3\)"):
        folder.read_file(tmp_path / "a.rst", "a")


@pytest.mark.parametrize("segmentation", ["native", "blocks", "sections"])
@pytest.mark.parametrize("representation", ["body", "raw"])
def test_chunk_cuts_what_is_laid_out_and_prints_its_text(
    tmp_path: Path, segmentation: str, representation: str
) -> None:
    from spanwise.chunking import door
    from spanwise.text.tokens import words

    page = tmp_path / "a.html"
    page.write_text(PAGE, encoding="utf-8")
    rows, texts = door.chunk_file(page, segmentation, 250, 0, words(), representation)
    parts = [texts["a"][row["start"] : row["end"]] for row in rows]
    assert "".join("".join(parts).split()) == "".join(texts["a"].split())
    assert ("Hull" in texts["a"]) == (representation == "raw")
    if segmentation == "sections":
        assert [row["path"][1:] for row in rows][-1] == ["Card"]
