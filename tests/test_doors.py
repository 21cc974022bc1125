"""`spanwise chunk` as a person meets it: every segmentation, representation and format."""

from __future__ import annotations

import json
import re
from itertools import pairwise, product
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from spanwise.chunking.door import FORMATS, REPRESENTATIONS, SEGMENTATIONS, chunk_file
from spanwise.cli import main
from spanwise.text.tokens import words

from .small_files import docx, pdf

FENCE = "```sh\nreset --hold\n\n# no heading\n```"
TABLE = "| part | torque |\n|------|--------|\n| bolt | 12 Nm  |"
MARKDOWN = f"""# The 𝒜-type lamp 😀

Intro 𝒳 text. It has two sentences.

## Reset

Hold the button 😀. Then wait.

{FENCE}

{TABLE}

### Deep

Deep text stands here.

---

## Bare

## Last

- one
- two
"""
TEXT = "First line of it,\nsecond line of it.\n\nAnother 𝒳 paragraph.\n"
WIKITEXT = "Lead '''text''' here.\n\n== One ==\nSome [[link|label]] 😀.\n\n=== Deep ===\n* a\n* b\n"


def paper(name: str) -> dict[str, Any]:
    return {
        "title": f"Paper {name}", "abstract": f"Abstract of {name} 𝒳.", "qas": [],
        "full_text": [
            {"section_name": "Model", "paragraphs": ["The model is small.", "It is fast."]},
            {"section_name": "Model ::: Loss", "paragraphs": ["The loss is plain."]},
        ],
    }


SOURCES = {
    "lamp.md": MARKDOWN, "note.txt": TEXT, "page.wikitext": WIKITEXT,
    "papers.json": json.dumps({"b": paper("b"), "a": paper("a")}),
}
FLATTENED = {"page.wikitext", "papers.json"}


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    for name, text in SOURCES.items():
        (tmp_path / name).write_text(text, encoding="utf-8")
    return tmp_path


@pytest.fixture
def chunk(here: Path, capsys: pytest.CaptureFixture[str]) -> Any:
    """Chunk a file of `here`: its rows and the texts that they index, both as they come out."""
    def run(name: str, *options: str) -> tuple[list[dict[str, Any]], dict[str, str]]:
        out = here / "out" / "text"
        code = main(["chunk", name, "--text-out", str(out), *options])
        shown = capsys.readouterr()
        assert (code, shown.err) == (0, "")
        rows = [json.loads(line) for line in shown.out.splitlines()]
        text = out.read_bytes().decode("utf-8")
        assert [path.name for path in out.parent.iterdir()] == ["text"]
        documents = list(dict.fromkeys(row["doc_id"] for row in rows))
        if len(documents) == 1:
            return rows, {documents[0]: text}
        return rows, {item["doc_id"]: item["text"] for item in map(json.loads, text.splitlines())}
    return run


def units(rows: list[dict[str, Any]], texts: dict[str, str]) -> list[str]:
    return [texts[row["doc_id"]][row["start"] : row["end"]] for row in rows]


@pytest.mark.parametrize(("name", "segmentation", "representation"), [
    case for case in product(SOURCES, SEGMENTATIONS, REPRESENTATIONS)
    if not (case[0] in FLATTENED and case[2] == "raw")
])
def test_every_row_indexes_the_text_that_is_written(
    chunk: Any, name: str, segmentation: str, representation: str
) -> None:
    size = ["--size", "6"] if segmentation in ("fixed", "windows") else []
    rows, texts = chunk(
        name, "--segmentation", segmentation, "--representation", representation, *size
    )
    assert rows and list(texts) == (["a", "b"] if name == "papers.json" else [Path(name).stem])
    for row, unit in zip(rows, units(rows, texts), strict=True):
        assert list(row) == ["doc_id", "start", "end", "tokens", "path", "chunk_id"]
        assert [type(row[key]) for key in row] == [str, int, int, int, list, str]
        assert row["chunk_id"] == f"{row['doc_id']}:{row['start']}-{row['end']}"
        assert row["path"] and all(type(title) is str and title for title in row["path"])
        assert 0 <= row["start"] < row["end"] <= len(texts[row["doc_id"]])
        assert row["tokens"] == len(re.findall(r"\S+", unit)) > 0
    for doc_id, text in texts.items():
        mine = [row for row in rows if row["doc_id"] == doc_id]
        assert mine == sorted(mine, key=lambda row: row["start"])
        if segmentation in ("native", "fixed"):  # they tile
            assert (mine[0]["start"], mine[-1]["end"]) == (0, len(text))
            assert all(a["end"] == b["start"] for a, b in pairwise(mine))
        else:  # they never overlap, and what lies between them is no text
            kept = list(text)
            for row in mine:
                kept[row["start"] : row["end"]] = [" "] * (row["end"] - row["start"])
            rest = "".join(kept).strip()
            assert rest == ("---" if segmentation in ("blocks", "sections") and "---\n" in text
                            and name == "lamp.md" and representation == "raw" else "")
        if name != "note.txt" and segmentation in ("blocks", "sections"):
            assert {len(row["path"]) for row in mine} >= {1, 2, 3}


def test_native_and_fixed_stand_on_body_and_the_others_on_raw(chunk: Any) -> None:
    for segmentation in SEGMENTATIONS:
        _, texts = chunk("lamp.md", "--segmentation", segmentation)
        assert (texts["lamp"] == MARKDOWN) == (segmentation not in ("native", "fixed"))
        assert ("## Reset" in texts["lamp"]) == (texts["lamp"] == MARKDOWN)
    assert chunk("lamp.md")[0] == chunk("lamp.md", "--segmentation", "native")[0]


def test_blocks_keep_fences_and_tables_whole(chunk: Any) -> None:
    rows, texts = chunk("lamp.md", "--segmentation", "blocks")
    assert units(rows, texts) == [
        "# The 𝒜-type lamp 😀", "Intro 𝒳 text. It has two sentences.", "## Reset",
        "Hold the button 😀. Then wait.", FENCE, TABLE, "### Deep", "Deep text stands here.",
        "## Bare", "## Last", "- one\n- two",
    ]
    title = "The 𝒜-type lamp 😀"
    assert [row["path"] for row in rows] == [
        [title], [title], *[[title, "Reset"]] * 4, *[[title, "Reset", "Deep"]] * 2,
        [title, "Bare"], *[[title, "Last"]] * 2,
    ]


def test_sections_run_from_a_heading_to_the_next_one_of_any_level(chunk: Any) -> None:
    rows, texts = chunk("lamp.md", "--segmentation", "sections")
    assert [unit.splitlines()[0] for unit in units(rows, texts)] == [
        "# The 𝒜-type lamp 😀", "## Reset", "### Deep", "## Bare", "## Last"
    ]
    assert units(rows, texts)[1].endswith(TABLE)
    rows, texts = chunk("lamp.md", "--segmentation", "sections", "--representation", "body")
    # A heading without text of its own is no section of body.
    assert [row["path"][1:] for row in rows] == [[], ["Reset"], ["Reset", "Deep"], ["Last"]]


def test_windows_have_a_size_and_share_an_overlap(chunk: Any) -> None:
    rows, _ = chunk("note.txt", "--segmentation", "windows", "--size", "5", "--overlap", "2")
    tokens = [match.span() for match in re.finditer(r"\S+", TEXT)]
    # 11 words, a window each 3: words 0..4, 3..7, 6..10.
    assert len(tokens) == 11
    assert [(row["start"], row["end"]) for row in rows] == [
        (tokens[a][0], tokens[a + 4][1]) for a in (0, 3, 6)
    ]
    assert {row["tokens"] for row in rows} == {5}
    rows, _ = chunk("note.txt", "--segmentation", "windows", "--size", "4")
    assert [row["tokens"] for row in rows] == [4, 4, 3]
    rows, _ = chunk("note.txt", "--segmentation", "windows")
    assert [row["tokens"] for row in rows] == [11]


def test_fixed_chunks_are_near_their_size_and_native_ones_never_above_the_cap(
    here: Path, chunk: Any
) -> None:
    sentence = "One two three four five six seven eight nine ten. "
    (here / "long.md").write_text(
        "# T\n\n" + "## A\n\n" + sentence * 200 + "\n\n## B\n\n" + "word " * 1000 + "\n\n## C\n\n"
        + "x" * 9000 + "\n\n```\n" + "a line of code\n" * 300 + "```\n", encoding="utf-8",
    )
    for representation in REPRESENTATIONS:
        rows, _ = chunk("long.md", "--representation", representation)
        assert max(row["tokens"] for row in rows) <= 350
    (here / "even.txt").write_text(sentence * 300, encoding="utf-8")
    for size in (50, 100, 250, 300, 340, 500, 1000):  # 3,000 tokens, a sentence end each 10
        rows, _ = chunk("even.txt", "--segmentation", "fixed", "--size", str(size))
        counts = [row["tokens"] for row in rows]
        assert sum(counts) == 3000 and abs(sum(counts) / len(counts) - size) <= size / 10
        assert max(counts) - min(counts) <= 20 and max(counts) <= max(350, 1.4 * size)
        assert size > 350 or max(counts) <= 350


def test_the_cap_of_fixed_chunks_is_350_unless_more_is_asked_for(here: Path, chunk: Any) -> None:
    # Ten sentences of 130 tokens. 300: n = round(4.33) = 4, edges 325 -> 260 (a tie: the earlier),
    # 650 -> 520 (260 + 390 is above 350), 975 -> 780 alike; what remains needs an edge more.
    (here / "even.txt").write_text(("word " * 129 + "end. ") * 10, encoding="utf-8")
    rows, _ = chunk("even.txt", "--segmentation", "fixed", "--size", "300")
    assert [row["tokens"] for row in rows] == [260] * 5
    # 400, so the cap is 560: n = round(3.25) = 3, edges 433 -> 390, 867 -> 910.
    rows, _ = chunk("even.txt", "--segmentation", "fixed", "--size", "400")
    assert [row["tokens"] for row in rows] == [390, 520, 390]


@pytest.mark.parametrize("ending", ["\r\n", "\r"])
def test_line_endings_and_a_mark_are_not_part_of_the_text(
    here: Path, chunk: Any, ending: str
) -> None:
    expected = chunk("lamp.md", "--segmentation", "blocks")
    data = "\ufeff" + MARKDOWN.replace("\n", ending)
    (here / "lamp.md").write_bytes(data.encode("utf-8"))
    assert chunk("lamp.md", "--segmentation", "blocks") == expected
    assert expected[1]["lamp"] == MARKDOWN


def test_several_papers_of_one_file_keep_their_own_offsets(here: Path, chunk: Any) -> None:
    rows, texts = chunk("papers.json")
    body = "Abstract of a 𝒳.\n\nThe model is small.\n\nIt is fast.\n\nThe loss is plain."
    assert texts == {"a": body, "b": body.replace("of a", "of b")}
    assert [(r["doc_id"], r["start"], r["end"], r["path"]) for r in rows] == [
        (name, 0, len(body), [f"Paper {name}", "Model"]) for name in "ab"
    ]
    (here / "one.json").write_text(json.dumps({"a": paper("a")}), encoding="utf-8")
    assert chunk("one.json")[1] == {"a": body}


def test_the_format_is_the_names_unless_it_is_given(here: Path, chunk: Any) -> None:
    written = {FORMATS[Path(name).suffix]: (here / name).read_bytes() for name in SOURCES} | {
        "rst": b"Lamp\n====\n\nIt burns.\n", "html": b"<h1>Lamp</h1><p>It burns.</p>",
        "docx": docx(("Heading 1", "Lamp"), ("Normal", "It burns.")),
        "pdf": pdf([[(72, 700, 12, "It burns.")]]),
    }
    for suffix, format_ in FORMATS.items():
        (here / f"x{suffix.upper()}").write_bytes(written[format_])
        (here / "x").write_bytes(written[format_])
        expected = chunk(f"x{suffix.upper()}")
        assert expected == chunk("x", "--format", format_)
        for path in here.glob("x*"):
            path.unlink()


def test_ids_hold_no_white_space(here: Path, chunk: Any) -> None:
    (here / "Apollo 8 – log.md").write_text("text\n", encoding="utf-8")
    rows, _ = chunk("Apollo 8 – log.md")
    assert [(row["doc_id"], row["path"]) for row in rows] == [
        ("Apollo%208%20%E2%80%93%20log", ["Apollo 8 – log"])
    ]


BAD = {
    "latin.md": b"# A\n\nfine\ncaf\xe9 au lait\n",
    "nul.md": b"# A\n\ntext\n\nx\0y\n",
    "utf16.txt": "text".encode("utf-16"),
    "fence.md": b"# A\n\ntext\n\n```sh\nls\n",
    "empty.md": b"", "blank.txt": b" \n\n", "headings.md": b"# A\n\n## B\n",
    "redirect.wikitext": b"{{template}}\n", "name.xyz": b"text", "nosuffix": b"text",
    "list.json": b"[]", "broken.json": b"{", "none.json": b"{}", "latin.json": b'{"\xe9": 1}',
}


@pytest.mark.parametrize(("arguments", "parts"), [
    (["nowhere.md"], ["nowhere.md: no such file"]),
    (["."], [".: a folder, expected one file"]),
    (["latin.md"], ["latin.md: byte e9 at byte offset 13 (line 4) is not UTF-8", "iconv"]),
    (["nul.md"], ["nul.md: NUL byte at byte offset 12 (line 5)", "remove it"]),
    (["utf16.txt"], ["utf16.txt", "UTF-16", "iconv"]),
    (["fence.md"], ["fence.md: line 5: the fence ``` is not closed", "close it"]),
    (["fence.md", "--segmentation", "blocks"], ["fence.md: line 5"]),
    (["empty.md"], ["empty.md: 0 bytes and no text", "fill the file"]),
    (["blank.txt"], ["blank.txt: 3 bytes and no text"]),
    (["headings.md"], ["headings.md: headings at most and no text", "write its text"]),
    (["redirect.wikitext"], ["redirect.wikitext: ", "no paragraph remains"]),
    (["name.xyz"], ["name.xyz: format '.xyz' is unknown; give --format, one of docx, html, "]),
    (["nosuffix"], ["nosuffix: format '' is unknown"]),
    (["note.txt", "--format", "txt"], ["format 'txt' is unknown"]),
    (["list.json"], ["list.json: expected an object, found a list"]),
    (["broken.json"], ["broken.json: line 1, column 2: not JSON"]),
    (["none.json"], ["none.json: an empty object; expected papers by id"]),
    (["latin.json"], ["latin.json: byte 2 is not UTF-8"]),
    (["page.wikitext", "--representation", "raw"], ["page.wikitext", "--representation body"]),
    (["page.wikitext", "--segmentation", "windows"], ["has no raw text; use"]),
    (["papers.json", "--segmentation", "blocks"], ["papers.json", "has no raw text; use"]),
    (["lamp.md", "--segmentation", "chapters"], ["'chapters': expected one of native, fixed"]),
    (["lamp.md", "--representation", "html"], ["'html': expected one of body, raw"]),
    (["lamp.md", "--segmentation", "windows", "--size", "5", "--overlap", "5"],
     ["windows of 5 tokens with an overlap of 5", "below the size"]),
    (["lamp.md", "--segmentation", "windows", "--overlap", "-1"], ["overlap -1"]),
    (["lamp.md", "--size", "0"], ["size 0: expected at least 1"]),
    (["lamp.md", "--size", "many"], ["--size"]),
    (["lamp.md", "--tokenizer", "gpt"], ["model 'gpt': no folder", "owner/name"]),
    (["lamp.md", "--tokenizer", "no owner/na me"], ["model 'no owner/na me'", "owner/name"]),
    (["lamp.md", "--text-out", "lamp.md"], ["--text-out lamp.md is an input"]),
    (["lamp.md", "--text-out", "-"], ["--text-out -: expected a file, not standard output"]),
    (["lamp.md", "--text-out", "folder"], ["--text-out folder is no regular file"]),
    (["lamp.md", "--text-out", "note.txt/x"], ["--text-out note.txt/x: cannot be written"]),
    ([], ["Missing argument"]),
])
def test_a_users_mistake_exits_2_says_what_and_where_and_writes_nothing(
    here: Path, capsys: pytest.CaptureFixture[str], arguments: list[str], parts: list[str]
) -> None:
    for name, data in BAD.items():
        (here / name).write_bytes(data)
    (here / "folder").mkdir()
    before = {path: path.is_file() and path.read_bytes() for path in here.rglob("*")}
    out = [] if "--text-out" in arguments else ["--text-out", "text"]
    assert main(["chunk", *arguments, *out]) == 2
    shown = capsys.readouterr()
    assert shown.out == "" and all(part in shown.err for part in parts), shown.err
    assert {path: path.is_file() and path.read_bytes() for path in here.rglob("*")} == before


def test_a_name_that_is_no_text_is_refused(
    here: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    name = b"caf\xe9.md".decode("utf-8", "surrogateescape")
    try:
        (here / name).write_text("text\n")
    except OSError:
        pytest.skip("this file system keeps no names that are not UTF-8")
    assert main(["chunk", name]) == 2
    assert "the file's name is not UTF-8; rename the file" in capsys.readouterr().err


@pytest.mark.usefixtures("here")
def test_an_overlap_that_is_not_used_is_said(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["chunk", "lamp.md", "--overlap", "5"]) == 0
    shown = capsys.readouterr()
    assert shown.err == "note: only windows overlap; --overlap was not used\n"
    assert main(["chunk", "lamp.md"]) == 0 and capsys.readouterr().out == shown.out


@pytest.mark.usefixtures("here")
@pytest.mark.parametrize("segmentation", SEGMENTATIONS)
def test_a_size_that_is_not_used_is_said(
    capsys: pytest.CaptureFixture[str], segmentation: str
) -> None:
    arguments = ["chunk", "lamp.md", "--segmentation", segmentation]
    assert main([*arguments, "--size", "250"]) == 0
    given_ = capsys.readouterr()
    note = "note: only fixed chunks and windows have a size; --size was not used\n"
    assert given_.err == ("" if segmentation in ("fixed", "windows") else note)
    assert main(arguments) == 0
    assert capsys.readouterr() == (given_.out, "")  # 250 is the size that stands without one


@pytest.mark.parametrize("segmentation", SEGMENTATIONS)
def test_chunks_are_scored_as_they_come_out(
    here: Path, capsys: pytest.CaptureFixture[str], segmentation: str
) -> None:
    overlap = ["--overlap", "3"] if segmentation == "windows" else []
    size = ["--size", "6"] if segmentation in ("fixed", "windows") else []
    assert main(["chunk", "lamp.md", "--segmentation", segmentation, *size, *overlap,
                 "--text-out", "lamp.text"]) == 0
    shown = capsys.readouterr()
    (here / "chunks.jsonl").write_text(shown.out, encoding="utf-8")
    rows = [json.loads(line) for line in shown.out.splitlines()]
    text = (here / "lamp.text").read_text(encoding="utf-8")
    start = text.index("button")
    question = {"question_id": "q", "doc_id": "lamp", "text": "What is held?",
                "evidence": [{"doc_id": "lamp", "start": start, "end": start + 6}],
                "bundles": [[0]]}
    (here / "questions.jsonl").write_text(json.dumps(question) + "\n", encoding="utf-8")
    holds = [row["start"] < start + 6 and row["end"] > start for row in rows]
    (here / "run.trec").write_text("".join(
        f"q Q0 {row['chunk_id']} {rank} {-rank} tag\n" for rank, row in enumerate(rows, 1)
    ), encoding="utf-8")
    assert main(["score", "--questions", "questions.jsonl", "--chunks", "chunks.jsonl",
                 "--run", "run.trec"]) == 0
    (line,) = capsys.readouterr().out.splitlines()
    assert json.loads(line)["mrr"] == pytest.approx(1 / (holds.index(True) + 1))


@given(
    st.lists(
        st.sampled_from([
            "Word 😀. ", "𝒳 y", "\n", "\n\n", "\n\n## H\n\n", "\n\n#### 𝒜\n\n", "- a\n",
            "| a | b |\n|---|---|\n| 1 | 2 |\n", "\n\n***\n\n", "[r]: /u\n", "é\u0301 ",
        ]),
        max_size=25,
    ),
    st.sampled_from(SEGMENTATIONS), st.sampled_from(REPRESENTATIONS), st.integers(1, 9),
)
@settings(max_examples=150, deadline=None)
def test_any_markdown_is_cut_into_slices_of_its_text(
    tmp_path_factory: pytest.TempPathFactory, parts: list[str], segmentation: str,
    representation: str, size: int,
) -> None:
    path = tmp_path_factory.mktemp("any") / "d.md"
    path.write_text("Start\n\n" + "".join(parts), encoding="utf-8")
    rows, texts = chunk_file(path, segmentation, size, 0, words(), representation)
    (text,) = texts.values()
    assert representation == "body" or text == path.read_text(encoding="utf-8")
    for row in rows:
        unit = text[row["start"] : row["end"]]
        assert row["tokens"] == len(unit.split()) > 0
    assert all(a["end"] <= b["start"] for a, b in pairwise(rows))
    if segmentation in ("native", "fixed", "windows"):
        covered = "".join(text[r["start"] : r["end"]] + " " for r in rows)
        assert covered.split() == text.split()
