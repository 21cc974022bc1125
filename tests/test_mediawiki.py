"""MediaWiki: the normaliser, the dump's stream, the filter and the walk, and what is refused."""

from __future__ import annotations

import bz2
import re
import tracemalloc
from collections.abc import Iterator
from pathlib import Path
from xml.sax.saxutils import escape

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from spanwise.corpora.buckets import BUCKETS, bucket_of, categories, is_featured
from spanwise.corpora.dump import pages
from spanwise.corpora.mediawiki import read, read_wikitext, words_at_most
from spanwise.corpora.wikilines import without_quotes
from spanwise.corpora.wikitext import flatten
from spanwise.documents.model import Corpus, Document
from spanwise.errors import CorpusError, MarkupError, ParamsError

from .conftest import corpora_folder

EVERYTHING = {"min_words": 0, "min_depth": 0, "min_sections": 0}


def flat(wikitext: str) -> list[tuple[str, str]]:
    """Kind and text of each paragraph."""
    document = flatten("d", "T", wikitext).document
    return [(p.kind, document.body[p.span.start:p.span.end]) for p in document.paragraphs]


def line(wikitext: str) -> str:
    """The one paragraph that is expected."""
    (paragraph,) = flat(wikitext)
    return paragraph[1]


@pytest.mark.parametrize(("wikitext", "text"), [
    # links
    ("[[A]]s, [[A|b]] [[A#C|c]] [[A#C]] [[:Category:Z]] [[A (x)|'''A''']]",
     "As, b c A#C Category:Z A"),
    ("x [[Category:Q]] y [[fr:Foo]] z [[wikt:word|word]]", "x y z word"),
    ("x [[File:a.jpg|thumb|a [[cap]] {{b|c}}]] y", "x y"),
    ("[http://a.b label] [http://a.b] http://c.d/e", "label http://c.d/e"),
    # references, comments, magic words, entities
    ("Fact.<ref name=a>{{cite book|title=x}}</ref><ref name=a /> Next<!-- no -->.", "Fact. Next."),
    ("__NOTOC__a&nbsp;&mdash; b &lt;b&gt; &amp;amp; x&shy;y", "a — b <b> &amp; xy"),
    ("a <nowiki>''[[b]] {{c}}''</nowiki> <code>d[0]</code>", "a ''[[b]] {{c}}'' d[0]"),
    ("so <math>\\frac{{a}}{b} < 1</math> holds", "so $\\frac{{a}}{b} < 1$ holds"),
    ("10<sup>3</sup> m, the 19<sup>th</sup>, H<sub>2</sub>O<br/>end", "10^3 m, the 19th, H2O end"),
    # templates
    ("{{convert|5|to|10|km2|sqmi|0}}, {{convert|6|ft|2|in|m}}, {{convert|7|C|F|1}}",
     "5 to 10 km², 6 ft 2 in, 7 °C"),
    ("{{nowrap|a {{lang|fr|''b''}}}} {{lang-de|c}} {{val|1.5|e=3|u=km}} {{frac|1|2}}",
     "a b c 1.5×10^3 km 1/2"),
    ("a{{snd}}b{{nbsp}}c {{as of|2010}} {{USS|Foo|BB-1}} {{unknown|text}}",
     "a – b c As of 2010 USS Foo"),
    # what a dropped part leaves behind
    ("Autism ({{IPAc-en|x}}) is; A ({{x}}; born 1950) B (c; {{x}}) d {{cn}}. f() e",
     "Autism is; A (born 1950) B (c) d. f() e"),
    ("{{cite book|title=x}}, as well {{x}}.", "as well."),
    ("{{x}} – {{y}} a film", "a film"),
    ("{{increase}} -.5%", "-.5%"),
    # a paragraph goes on over line breaks and over a line of comments
    ("a\nb\n<!-- c -->\nd", "a b d"),
])
def test_a_line(wikitext: str, text: str) -> None:
    assert line(wikitext) == text


@pytest.mark.parametrize(("wikitext", "text"), [
    ("'''''both''''' and '''bold''' and ''it''", "both and bold and it"),
    ("L'''amour'' fou", "L'amour fou"),  # bold and italics both left open: one sign is text
    ("''L'''amour'' fou", "Lamour fou"),  # bold alone left open: all signs are markup
    ("'''a'' of x'''y '''z", "a of x'y z"),  # of several, that after a one-letter word
    ("a '''b'' of xy'''z '''c", "a b of xy'z c"),  # a longer word rather than a blank
    ("''''four''''", "'four'"),  # a run of four is an apostrophe and bold
    ("rock 'n' roll's", "rock 'n' roll's"),
])
def test_bold_and_italics(wikitext: str, text: str) -> None:
    assert without_quotes(wikitext) == text


def test_blocks() -> None:
    assert flat(
        "Lead.\n* one\n** two\n# first\n# second\n#* in\n# third\n\n; term : what\n: indent\n"
        " pre  line\n   deep\n----\n{{quote|Said.\n\nMore.|Her|Book}} tail\n"
        "<blockquote>\nQuoted.\n</blockquote>\n<source lang=c>\nint a[2] = {{1}};\n</source>\n"
        "<ul><li>x</li>\n<li>y [[z]]</li></ul><poem>\nroses\n are red\n</poem>"
    ) == [
        ("paragraph", "Lead."),
        ("list", "- one\n  - two\n1. first\n2. second\n  - in\n3. third"),
        ("definition", "term : what\nindent"),
        ("fence", "pre  line\n  deep"),
        ("quote", "Said."), ("quote", "More. — Her, Book"), ("paragraph", "tail"),
        ("quote", "Quoted."), ("fence", "int a[2] = {{1}};"),
        ("list", "- x\n- y z"), ("fence", "roses\nare red"),
    ]


def test_tables() -> None:
    assert flat(
        "Before\n{| class=x\n|+ style=y | A '''cap''' [[a|b]]\n! h1 !! scope=col | h2\n|-\n"
        "| a<br/>b || {{n/a|}}\n|-\n| [[File:x.png]] ||\n|-\n| colspan=2 {{yes}}\n|-\n|\n* l1\n"
        "* l2\n| \n{|\n| in || ner\n|-\n| tab\n|}\n|}\nAfter"
    ) == [
        ("paragraph", "Before"),
        # the row of a file and an empty cell has no text and goes
        ("table", "A cap b\nh1 | h2\na b | N/A\nYes\nl1; l2 | in, ner; tab"),
        ("paragraph", "After"),
    ]
    html = "<table><caption>C</caption><tr><th>a</th><td>b</td></tr><tr><td>c</td></tr></table>"
    assert flat(html) == [("table", "C\na | b\nc")]


def test_headings() -> None:
    document = flatten("d", "T", (
        "= one =\nlead\n== ''two'' <ref>x</ref> ==\n=== [[a|three]] ===\ntext\n"
        "====== six ======\n== {{x}} ==\n<h3>html</h3>\nend\n== last =="
    )).document
    assert [(h.level, h.title, h.paragraph) for h in document.headings] == [
        (1, "one", 0), (1, "two", 1), (2, "three", 1), (5, "six", 2), (2, "html", 2), (1, "last", 3)
    ]
    assert document.body == "lead\n\ntext\n\nend"
    assert document.raw is None and document.paragraphs[1].span.start == len("lead\n\n")


@pytest.mark.parametrize(("wikitext", "paragraphs"), [
    ("{|\n| a\n* l1\n|-\n| b || c\n\nafter", [("table", "a; l1\nb | c"), ("paragraph", "after")]),
    ("x {{Infobox|a=b\n\ny [[open", [("paragraph", "x Infobox|a=b"), ("paragraph", "y open")]),
    ("x [[File:a.jpg|thumb|200px|a caption", [("paragraph", "x a caption")]),
    ("x <ref>never closed", [("paragraph", "x never closed")]),
    ("x }} y ]] z |}", [("paragraph", "x y z")]),
    ("'''never closed", [("paragraph", "never closed")]),
])
def test_markup_that_is_never_closed(wikitext: str, paragraphs: list[tuple[str, str]]) -> None:
    assert flat(wikitext) == paragraphs


@pytest.mark.parametrize("wikitext", [
    "{" * 3000, "[[" * 3000, "{|\n|\n" * 200, "<div>" * 1000, "<ref>" * 1000, "'" * 3001,
    "{{a|" * 80 + "x" + "}}" * 80, "*" * 400 + "x", "=" * 500, "[" * 2000 + "]" * 2000,
    "{{quote|" * 50 + "x" + "}}" * 50, "|}\n|-\n| " * 300,
])
def test_hostile_markup_neither_crashes_nor_leaks(wikitext: str) -> None:
    body = flatten("d", "T", wikitext).document.body
    assert not re.search(r"\{\{|\[\[|^\{\||^\|-", body, re.M)


PIECES = st.lists(st.sampled_from([
    "a", " ", "\n", "\n\n", "b c", "[[", "]]", "{{", "}}", "|", "''", "'''", "==", "\n== h ==\n",
    "{|\n", "\n|-\n", "\n|}", "\n| ", "\n! ", "||", "*", "\n* ", "\n# ", "\n; ", ":", "<ref>",
    "</ref>", "<!--", "-->", "<nowiki>", "</nowiki>", "<math>", "</math>", "&nbsp;", "&lt;",
    "quote|", "nowrap|", "convert|5|km", "[http://x.y z]", "File:x.jpg|", "<br>", "<ul>", "<li>",
    "</ul>", "<pre>", "</pre>", "<blockquote>", "</blockquote>", "\ue000", "\ue001", "__TOC__",
    "(", ")", ",", "\u200b",
]), max_size=40).map("".join)


@given(PIECES)
@example("<nowiki>|</nowiki>-\n{{nowrap|}} {{=}}")
@settings(max_examples=400, deadline=None)
def test_spans_are_what_was_emitted(wikitext: str) -> None:
    document = flatten("d", "T", wikitext).document
    texts = [document.body[p.span.start:p.span.end] for p in document.paragraphs]
    assert "\n\n".join(texts) == document.body
    assert all(text.strip() for text in texts)
    assert not re.search("[\ue000\ue001\u200b]", document.body)
    assert all(0 <= h.paragraph <= len(texts) and h.title for h in document.headings)
    assert len(document.body.split()) <= words_at_most(wikitext)


def test_a_single_file() -> None:
    document = read_wikitext("doc", "Title", "== A ==\ntext")
    assert (document.doc_id, document.title, document.body) == ("doc", "Title", "text")
    for empty in ("", "{{stub}}", "== A ==\n[[Category:X]]"):
        with pytest.raises(MarkupError, match="doc: no paragraph remains"):
            read_wikitext("doc", "Title", empty)


# --- categories ---------------------------------------------------------------------------------

def test_categories_and_buckets() -> None:
    text = ("{{Featured article}} [[Category:Battles of X|key]] [[category: Some_thing ]] "
            "<!-- [[Category:No]] --><nowiki>[[Category:No]]</nowiki> [[:Category:Linked]] "
            "[[Category:All articles with dead links]] [[Category:Use dmy dates from May 2012]] "
            "[[Category:Some thing]] [[Category:CS1 errors]] [[Category:Foo stubs]]")
    assert categories(text) == ["Battles of X", "Some thing"]
    assert is_featured(text) and not is_featured("<!-- {{featured article}} -->")
    assert bucket_of(categories(text)) == "history_war"
    assert BUCKETS == ("history_war", "biography", "science_nature", "arts_media",
                       "geography_places", "other")
    assert [bucket_of([name]) for name in (
        "World War II", "1900 births", "Chemical elements", "1950 films", "Rivers of Peru", "Logic",
        "Warsaw", "Bookkeeping", "Dwarf plants",
    )] == ["history_war", "biography", "science_nature", "arts_media", "geography_places", "other",
           "other", "other", "science_nature"]  # whole words only
    # The first bucket in table order wins, whatever the order of the categories.
    assert bucket_of(["1950 films", "1900 births", "Naval officers"]) == "history_war"
    assert bucket_of([]) == "other"


# --- dumps --------------------------------------------------------------------------------------

HEAD = '<mediawiki xmlns="http://www.mediawiki.org/xml/export-{}/" version="{}">'


def page(title: str, text: str, ns: int | None = 0, extra: str = "", revision: int = 7) -> str:
    number = "" if ns is None else f"<ns>{ns}</ns>"
    return (f"<page><title>{escape(title)}</title>{number}<id>1</id>{extra}<revision>"
            f"<id>{revision}</id><contributor><id>9</id></contributor><text>{escape(text)}</text>"
            "</revision></page>")


def dump(path: Path, *page_texts: str, version: str = "0.10", head: str = "") -> Path:
    text = HEAD.format(version, version) + head + "".join(page_texts) + "</mediawiki>"
    path.write_bytes(bz2.compress(text.encode()) if path.suffix == ".bz2" else text.encode())
    return path


def article(words: int, sections: int, *names: str, depth: int = 1) -> str:
    """An article of so many words, in so many sections, the last one so deep."""
    levels = [1] * (sections - 1) + [depth] if sections else []
    headings = "\n".join(f"{'=' * (n + 1)} H {'=' * (n + 1)}" for n in levels)
    links = "".join(f"[[Category:{name}]]" for name in names)
    return "word " * words + "\n" + headings + "\n" + links


@pytest.mark.parametrize("suffix", ["xml", "xml.bz2"])
@pytest.mark.parametrize("version", ["0.3", "0.10", "0.11"])
def test_pages_of_any_schema(tmp_path: Path, suffix: str, version: str) -> None:
    head = ('<siteinfo><namespaces><namespace key="0" /><namespace key="1">Talk</namespace>'
            '<namespace key="14">Category</namespace></namespaces></siteinfo>')
    file = dump(
        tmp_path / f"d.{suffix}", page("A_b &", "x < y"), page("Talk:A", "z", ns=None),
        page("Re", "#REDIRECT [[A b &]]", ns=None),
        page("Red", "x", extra='<redirect title="A b &amp;" />'), page("Dune: Part", "q", ns=None),
        version=version, head=head,
    )
    got = list(pages(file))
    assert [(p.title, p.namespace, p.redirect, p.text, p.revision) for p in got] == [
        ("A b &", 0, False, "x < y", "7"), ("Talk:A", 1, False, "z", "7"),
        ("Re", 0, True, "#REDIRECT [[A b &]]", "7"), ("Red", 0, True, "x", "7"),
        ("Dune: Part", 0, False, "q", "7"),
    ]


def test_of_several_revisions_the_last_counts(tmp_path: Path) -> None:
    body = ("<page><title>A</title><ns>0</ns><id>3</id>"
            "<revision><id>1</id><text>old</text></revision>"
            "<revision><id>2</id><model>wikitext</model><text>new</text></revision></page>"
            '<page><title>B</title><ns>0</ns><revision><id>4</id><text deleted="deleted" />'
            "</revision></page>")
    got = list(pages(dump(tmp_path / "d.xml", body)))
    assert [(p.text, p.revision, p.is_article) for p in got] == [("new", "2", True),
                                                                 (None, "4", False)]


def test_kinds_of_pages_are_counted(tmp_path: Path) -> None:
    got = read(dump(
        tmp_path / "d.xml", page("A", article(20, 3)), page("Talk:A", "x", ns=1),
        page("R", "#redirect [[A]]"), page("Empty", "  "),
        page("M", "x").replace("<text>", "<model>css</model><text>"),
        page("T", "{{only|templates}}"), page("F", "{{Featured Article}} " + article(9, 0)),
    ), options=EVERYTHING)
    assert list(got.counts.items())[:7] == [
        ("pages", 7), ("pages: redirects", 1), ("pages: other namespaces", 1),
        ("pages: without wikitext", 2), ("articles", 3), ("articles: featured", 1),
        ("candidates", 3),
    ]
    assert got.counts["rejected: fewer than 0 words"] == 1  # T has no text at all
    assert [(d.doc_id, d.labels, d.version, d.raw) for d in got.documents] == [
        ("A", ("other",), "7", None), ("F", ("featured", "other"), "7", None)]
    assert (got.questions, got.evidence) == ((), "body")


def test_each_reason_is_counted_at_the_first_that_fails(tmp_path: Path) -> None:
    file = dump(
        tmp_path / "d.xml", page("words", article(9, 1)), page("depth", article(10, 5, depth=2)),
        page("sections", article(10, 3, depth=3)), page("Good one", article(10, 4, depth=3)),
    )
    got = read(file, options={"min_words": 10, "min_depth": 3, "min_sections": 4})
    assert [d.doc_id for d in got.documents] == ["Good%20one"]
    assert [n for name, n in got.counts.items() if name.startswith("rejected")] == [1, 1, 1, 0]
    with pytest.raises(CorpusError, match=r"no article is accepted .*fewer than 11 words: 4"):
        read(file, options={"min_words": 11})


def test_the_walk(tmp_path: Path) -> None:
    titles = [f"T{i:02}" for i in range(40)]
    topics = {t: "Wars" if i % 2 else "Films" for i, t in enumerate(titles)}
    file = dump(tmp_path / "d.xml.bz2", *(page(t, article(5, 1, topics[t])) for t in titles[::-1]))
    options = {**EVERYTHING, "articles": 12, "max_per_bucket": 5, "seed": 3}
    # The walk written down plainly: sorted titles, permuted, five of each topic at most.
    order = [titles[i] for i in np.random.default_rng(3).permutation(40)]
    wanted: list[str] = []
    for title in order:
        if sum(topics[w] == topics[title] for w in wanted) < 5:
            wanted.append(title)
    got = read(file, options=options)
    assert [d.doc_id for d in got.documents] == sorted(wanted) and len(wanted) == 10
    assert got.counts["rejected: bucket full at 5"] == 30
    assert (got.counts["accepted: history_war"], got.counts["accepted: arts_media"]) == (5, 5)
    first = read(file, options={**options, "articles": 4})
    assert [d.doc_id for d in first.documents] == sorted(wanted[:4])
    assert first.counts["not reached"] == 40 - 1 - order.index(wanted[3])
    other = read(file, options={**options, "seed": 4})
    assert [d.doc_id for d in other.documents] != sorted(wanted)


def test_a_walk_in_several_stretches_is_the_same_walk(tmp_path: Path) -> None:
    # With one article wanted, a stretch holds 64 candidates; the only good one comes later.
    titles = [f"T{i:03}" for i in range(200)]
    good = titles[int(np.random.default_rng(20260710).permutation(200)[150])]
    file = dump(tmp_path / "d.xml", *(page(t, article(5, int(t == good))) for t in titles))
    got = read(file, options={**EVERYTHING, "min_sections": 1, "articles": 1})
    assert [d.doc_id for d in got.documents] == [good]
    assert got.counts["rejected: fewer than 1 sections"] == 150
    assert got.counts["not reached"] == 49


def test_featured_only(tmp_path: Path) -> None:
    file = dump(tmp_path / "d.xml", page("A", article(5, 1)),
                page("B", "{{featured article}}" + article(5, 1)))
    got = read(file, options={**EVERYTHING, "featured_only": True})
    assert [d.doc_id for d in got.documents] == ["B"]
    assert (got.counts["articles"], got.counts["candidates"]) == (2, 1)


def test_a_folder_holds_the_parts_of_one_dump(tmp_path: Path) -> None:
    dump(tmp_path / "p1.xml", page("B", "b"))
    dump(tmp_path / "p2.xml.bz2", page("A", "a"))
    assert [d.doc_id for d in read(tmp_path, options=EVERYTHING).documents] == ["A", "B"]
    dump(tmp_path / "p3.xml", page("A", "a"))
    with pytest.raises(CorpusError, match="two pages are titled 'A'"):
        read(tmp_path, options=EVERYTHING)


def test_memory_does_not_grow_with_the_number_of_pages(tmp_path: Path) -> None:
    def peak(n: int) -> int:
        file = dump(tmp_path / f"{n}.xml.bz2", *(page(f"T{i}", f"{i} " * 1500) for i in range(n)))
        size = sum(len(p.text or "") for p in pages(file))  # the pages really are that large
        assert size > n * 3000
        tracemalloc.start()
        try:
            assert sum(1 for _ in pages(file)) == n
            return tracemalloc.get_traced_memory()[1]
        finally:
            tracemalloc.stop()

    peak(20)  # what is allocated once
    few, many = peak(200), peak(2000)
    # 2,000 pages are 15 MB of text; a tenth of it more would already be 1.5 MB.
    assert many < few + 300_000


@pytest.mark.parametrize(("content", "message"), [
    (b"", "an empty file"),
    (b"\x1f\x8bxxxx", "compressed, but not by bzip2"),
    (b"not xml", "line 1, before any page: broken or cut-off XML"),
    (b"<html></html>", "the root is <html>, expected <mediawiki>"),
    (b"<mediawiki></mediawiki>", "without any page"),
    (b"<mediawiki><page><ns>0</ns></page></mediawiki>", "the next page has no title"),
    (b"<mediawiki>\n" + page("A b", "x").encode() + b"\n<page><title>",
     r"line 3, after page 1 \('A b'\): broken or cut-off XML"),
    (b"<mediawiki>\n" + page("A", "x").encode() + b"<page></mediawiki>", "line 2, after page 1"),
    (b"<mediawiki>" + page("A", "x").encode() + b"\xff</mediawiki>", "broken"),
    (b'<!DOCTYPE m [<!ENTITY a "aaaa"><!ENTITY b "&a;&a;">]><mediawiki>&b;</mediawiki>',
     r"a document type \(m\) is declared"),
    (bz2.compress(b"<mediawiki>" + page("A", "x" * 9000).encode())[:-20], "cut off or damaged"),
    (b"BZh9" + b"\0" * 40, "cut off or damaged"),
])
def test_what_is_no_dump_is_refused(tmp_path: Path, content: bytes, message: str) -> None:
    file = tmp_path / "dump.xml"
    file.write_bytes(content)
    with pytest.raises(CorpusError, match=message) as error:
        read(file, options={})
    assert "dump.xml" in str(error.value)


@pytest.mark.parametrize(("options", "message"), [
    ({"words": 3}, "option 'words' is unknown; known"),
    ({"min_words": "3000"}, "min_words is '3000', expected int"),
    ({"min_words": True}, "min_words is True, expected int"),
    ({"featured_only": 1}, "featured_only is 1, expected bool"),
    ({"articles": 0}, "articles is 0, expected 1 or more"),
    ({"min_depth": -1}, "min_depth is -1, expected 0 or more"),
])
def test_options_are_strict(tmp_path: Path, options: dict[str, int | str], message: str) -> None:
    with pytest.raises(ParamsError, match=message):
        read(tmp_path, options=options)


def test_split_and_missing_files(tmp_path: Path) -> None:
    with pytest.raises(CorpusError, match="no sweep split"):
        read(tmp_path, options={}, split="sweep")
    with pytest.raises(CorpusError, match="expected a MediaWiki dump"):
        read(tmp_path, options={})


# --- the real dumps -----------------------------------------------------------------------------

LEFTOVERS = re.compile(
    r"\{\{|\}\}|\[\[|\]\]|\{\||\|\}|^\|-|'''?|</?(?:ref|br|div|span|small|table|t[drh]|li|ul)\b"
    r"|\[http|\bstyle=|\w+span=|__[A-Z]+__|\bthumb\||\b(?:File|Image):|&[a-z]+;|[\ue000\ue001]",
    re.M | re.I,
)


@pytest.fixture(scope="module")
def dump_file() -> Path:
    return next(corpora_folder("wikipedia").glob("*shortened.bz2"))


@pytest.fixture(scope="module")
def whole(dump_file: Path) -> Corpus:
    return read(dump_file, options=EVERYTHING)


def prose(document: Document) -> Iterator[str]:
    """Its paragraphs without formulas and code, whose signs are their own."""
    for paragraph in document.paragraphs:
        if paragraph.kind != "fence":
            text = document.body[paragraph.span.start:paragraph.span.end]
            yield re.sub(r"\$[^$]*\$", "", text)


def test_the_real_dump(whole: Corpus) -> None:
    counts = whole.counts
    assert [counts[n] for n in ("pages", "pages: redirects", "articles", "articles: featured")] == [
        206, 100, 106, 4]
    assert len(whole.documents) == 106
    assert [d.title for d in whole.documents if "featured" in d.labels] == [
        "Aikido", "Amphibian", "Apollo 8", "Autism"]
    assert sum(counts[f"accepted: {bucket}"] for bucket in BUCKETS) == 106
    large = [d for d in whole.documents
             if len(d.body.split()) >= 3000 and len(d.headings) >= 12]
    deep = [d for d in large if max(h.level for h in d.headings) >= 3]
    assert (len(large), len(deep)) == (59, 31)
    buckets = {d.title: next(x for x in d.labels if x != "featured") for d in whole.documents}
    assert [buckets[t] for t in ("American Revolutionary War", "Ayn Rand", "Autism", "Actrius",
                                 "Algeria", "Ambiguity")] == list(BUCKETS)


def test_the_studys_filter_on_the_real_dump(dump_file: Path, whole: Corpus) -> None:
    got = read(dump_file, options={})
    names = list(got.counts)
    funnel = [got.counts[n] for n in names[names.index("candidates"):names.index("accepted") + 1]]
    # candidates = words + depth + sections + bucket + not reached + accepted
    assert funnel == [106, 47, 28, 0, 0, 0, 31] and funnel[0] == sum(funnel[1:])
    known = {d.doc_id: d for d in whole.documents}
    assert all(known[d.doc_id] == d for d in got.documents)


def test_no_markup_is_left_in_the_real_dumps(whole: Corpus) -> None:
    tables = next(corpora_folder("wikipedia").glob("*table-markup*"))
    documents = [*whole.documents, *read(tables, options=EVERYTHING).documents]
    assert len(documents) == 111
    texts = [text for document in documents for text in prose(document)]
    leftovers = [m.group() for text in texts for m in LEFTOVERS.finditer(text)]
    assert sum(map(len, leftovers)) / sum(map(len, texts)) < 1e-5, leftovers
    kinds = [p.kind for d in documents for p in d.paragraphs]
    assert kinds.count("table") >= 90


def test_the_word_bound_holds_on_the_real_dump(dump_file: Path, whole: Corpus) -> None:
    texts = {p.title: p.text or "" for p in pages(dump_file)}
    for document in whole.documents:
        assert len(document.body.split()) <= words_at_most(texts[document.title])


def test_a_known_passage_of_the_real_dump(whole: Corpus) -> None:
    autism = next(d for d in whole.documents if d.title == "Autism")
    assert autism.body.startswith("Autism is a neurodevelopmental disorder characterized by")
    assert [h.title for h in autism.headings if h.level == 1][:3] == [
        "Characteristics", "Causes", "Mechanism"]
