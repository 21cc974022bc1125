"""`spanwise add --docling`: files that another program turns into Markdown, kept and recorded.

What a docling of one's own does to real files is tested where `SPANWISE_DOCLING` names one. What
may go wrong between two programs is tested always, with a small one that does as its files say.
"""

from __future__ import annotations

import hashlib
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
import yaml
from markdown_it import MarkdownIt

from spanwise.adding import docling
from spanwise.adding.converted import KINDS, suffixes_of
from spanwise.adding.plainer import plainer
from spanwise.corpora.readers import read_split

from . import small_files, test_add
from .test_add import Add, digest, refused

clone, project, bare, add = test_add.clone, test_add.project, test_add.bare, test_add.add

TALKER = r"""#!/bin/sh
if [ "$1" = --version ]; then
  echo "Docling version: 2.9.1"; echo "Docling Core version: 2.8.0"; echo "Python: 3.11"; exit
fi
while [ $# -gt 0 ]; do
  case $1 in --output) out=$2; shift 2;; --*) shift 2;; *) break;; esac
done
say() { [ -n "$TALKER_QUIET" ] || echo "2026-01-01 10:00:00,000	INFO	docling.$1" >&2; }
echo "$*" >> "$TALKER_PID.calls"
code=0
for name; do
  text=$(cat "$name")
  md=$out/${name%.*}.md
  say "pipeline.base_pipeline: Processing document $name"
  case $text in
    bad) echo "2026-01-01 10:00:00,000	INFO	docling: on it" >&2
         echo "2026-01-01 10:00:00,100	WARNING	docling.cli: /tmp/$name is not valid." >&2;;
    crash) printf 'Traceback (most recent call last):\n  File "x.py", line 1\n' >&2
           echo "MemoryError: $name" >&2; exit 1;;
    hub) echo "ConnectError: no hub" >&2; exit 1;;
    hang) sleep 60 & echo $! > "$TALKER_PID"; wait;;
    half) printf 'It is ' > "$md"; sleep 60 & wait;;
    cut) say "document_converter: Finished converting document $name in 0.1 sec."
         printf 'It is ' > "$md"; exit 1;;
    part) printf 'Page 1.\n' > "$md"
          log="2026-01-01 10:00:00,100	WARNING	docling.cli.main:"
          echo "$log Document /tmp/$name was only partially converted." >&2;;
    worse) code=1;;
    silent) ;;
    empty) echo "<!-- image -->" > "$out/${name%.*}.md";;
    latin) printf '\351\n' > "$out/${name%.*}.md";;
    env) echo "[$PYTHONPATH] $OMP_NUM_THREADS" > "$out/${name%.*}.md";;
    *) say "document_converter: Finished converting document $name in 0.1 sec."
       printf '## Part\n\n<!-- image -->\n\n%s\n' "$text" > "$md";;
  esac
done
exit $code
"""


@pytest.fixture
def talker(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A program that answers as docling does, and does with each file what its text says."""
    path = program(tmp_path / "talker", TALKER)
    monkeypatch.setenv(docling.PROGRAM, str(path))
    monkeypatch.setenv("TALKER_PID", str(tmp_path / "pid"))
    monkeypatch.delenv(docling.SECONDS, raising=False)
    return path


def program(path: Path, text: str) -> Path:
    path.write_text(text, encoding="utf-8")
    path.chmod(0o755)
    return path


def folder_of(tmp_path: Path, **files: str) -> Path:
    """A folder of files, `_` in a name for its dot."""
    folder = tmp_path / "papers"
    for name, text in files.items():
        path = folder / name.replace("_", ".")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    return folder


@pytest.mark.usefixtures("bare")
def test_without_a_docling_it_is_said_how_to_have_one(
    add: Add, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = folder_of(tmp_path, a_pdf="x")
    monkeypatch.delenv(docling.PROGRAM, raising=False)
    monkeypatch.setenv("PATH", str(tmp_path / "nothing"))
    said = refused(add, "papers", folder, "--docling", "pdf", code=3)
    assert "no program `docling` on the PATH" in said and "bin/pip install docling" in said
    monkeypatch.setenv(docling.PROGRAM, str(tmp_path / "gone"))
    assert f"names {tmp_path / 'gone'}, which is no program" in refused(
        add, "papers", folder, "--docling", "pdf", code=3)
    broken = program(tmp_path / "broken", "#!/no/such/interpreter\n")
    monkeypatch.setenv(docling.PROGRAM, str(broken))
    assert "it does not start" in refused(add, "papers", folder, "--docling", "pdf", code=3)
    other = program(tmp_path / "other", "#!/bin/sh\necho pandoc 3.1\n")
    monkeypatch.setenv(docling.PROGRAM, str(other))
    assert "no docling: to --version it says pandoc 3.1" in refused(
        add, "papers", folder, "--docling", "pdf")


@pytest.mark.usefixtures("bare", "talker")
def test_what_cannot_be_asked_for(
    add: Add, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = folder_of(tmp_path, a_pdf="x", b_txt="y")
    for kinds in ("word", "", "pdf,word"):
        assert "expected some of pdf,docx" in refused(add, "papers", folder, "--docling", kinds)
    assert ",".join(KINDS) in "".join(add("--help")[1].split())
    assert "gone.csv: no such file" in refused(
        add, "papers", folder, "--docling", "pdf", "--questions", "gone.csv")
    assert "no file to convert (.docx)" in refused(add, "papers", folder, "--docling", "docx")
    assert "for the reader 'beir'" in refused(
        add, "papers", folder, "--docling", "pdf", "--reader", "beir")
    (folder / "a.docx").write_text("z", encoding="utf-8")
    assert "a.docx and a.pdf would both be a.md" in refused(
        add, "papers", folder, "--docling", "docx,pdf")
    monkeypatch.setenv(docling.SECONDS, "soon")
    assert "SPANWISE_DOCLING_SECONDS is 'soon'" in refused(
        add, "papers", folder, "--docling", "pdf")


@pytest.mark.usefixtures("bare", "talker")
def test_each_file_that_fails_is_named_with_its_last_words_and_may_be_left_out(
    add: Add, tmp_path: Path
) -> None:
    folder = folder_of(tmp_path, a_pdf="bad", b_pdf="crash", c_pdf="It is 3 m.", d_pdf="empty",
                       e_pdf="latin", f_pptx="silent", g_txt="Plain.")
    said = refused(add, "papers", folder, "--docling", "all")
    assert "5 files cannot be taken" in said and "leave them out with --skip" in said
    for one in ("a.pdf: docling did not convert it: a.pdf is not valid.\n",
                "b.pdf: docling did not convert it: MemoryError: b.pdf\n",
                "d.pdf: docling found no text in it", "e.pdf: the Markdown that docling made of it",
                "f.pptx: docling did not convert it: it wrote no Markdown and said nothing (exit "):
        assert f"{folder}/{one}" in said
    asked = tmp_path / "asked.csv"
    asked.write_text("question,document,quote\nHow long?,c.pdf,3 m\nWhat?,a,x\n", "utf-8")
    before = digest(Path.cwd())
    code, out, err = add("papers", folder, "--docling", "all", "--skip", "--questions", asked,
                         "--dry-run", "--json")
    assert (code, digest(Path.cwd())) == (0, before), err
    facts = json.loads(out)
    assert set(facts["left out"]) == {"a.md", "b.md", "d.md", "e.md", "f.md"}
    assert (facts["files"], facts["documents"], facts["questions"]) == (3, 2, 1)
    assert list(facts["converted"]["files"]) == ["c.md"]
    assert "note: converted to Markdown by docling 2.9.1: c.pdf; quotations are" in err
    assert "note: left out: a.md: docling did not convert it: a.pdf is not valid." in err
    assert "note: left out: 1 question" in err


@pytest.mark.usefixtures("bare", "talker")
def test_a_docling_that_never_works_is_told_once(add: Add, tmp_path: Path) -> None:
    folder = folder_of(tmp_path, **{f"{name}_pdf": "hub" for name in "abcdefgh"})
    said = refused(add, "papers", folder, "--docling", "pdf", "--skip", code=3)
    assert "in the same way with one file after the other: ConnectError: no hub\n" in said
    assert "--to md FILE` works" in said
    alone = refused(add, "papers", folder / "a.pdf", "--docling", "pdf")
    assert f"{folder}/a.pdf: docling did not convert it: ConnectError: no hub" in alone


@pytest.mark.usefixtures("bare", "talker")
def test_a_file_that_takes_too_long_is_stopped_and_costs_no_other_its_turn(
    add: Add, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = folder_of(tmp_path, a_pdf="One.", b_pdf="hang", c_pdf="Three.")
    monkeypatch.setenv(docling.SECONDS, "1")
    said = refused(add, "papers", folder, "--docling", "pdf")
    assert f"{folder}/b.pdf: docling did not convert it: not done within 1 s; give it" in said
    assert "files cannot be taken" not in said  # c.pdf was
    (folder / "c.pdf").unlink()
    assert "not done within 1 s" in refused(add, "papers", folder, "--docling", "pdf")
    state = Path("/proc", (tmp_path / "pid").read_text("ascii").strip(), "stat")
    assert not state.exists() or " Z " in state.read_text("ascii")  # ended, perhaps not reaped yet


@pytest.mark.usefixtures("bare", "talker")
@pytest.mark.parametrize("quiet", ["", "1"])
def test_markdown_that_may_be_cut_is_not_taken(
    add: Add, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, quiet: str
) -> None:
    """A docling that ended badly has said what it had done, unless it logs only warnings."""
    monkeypatch.setenv("TALKER_QUIET", quiet)
    monkeypatch.setenv(docling.SECONDS, "1")
    folder = folder_of(tmp_path, a_pdf="One.", b_pdf="half", c_pdf="Three.", d_pdf="part",
                       e_pdf="cut", f_pdf="Six.", g_pdf="worse")
    said = refused(add, "papers", folder, "--docling", "pdf")
    assert "4 files cannot be taken" in said
    for one in ("b.pdf: docling did not convert it: not done within 1 s",
                "d.pdf: docling did not convert it: Document d.pdf was only partially converted.",
                "e.pdf: docling did not convert it: it wrote Markdown that may be cut, and did not "
                "end well (exit code 1)", "g.pdf: docling did not convert it: it wrote no"):
        assert f"{folder}/{one}" in said
    calls = (tmp_path / "pid.calls").read_text("utf-8").splitlines()
    # What was reported is not converted again: b is found in the first call, e ends the second.
    again = [call for call in calls if "000001.pdf" in call]
    assert len(again) == (2 if quiet else 1)
    assert (calls[1].split()[0] == "000003.pdf") == (not quiet)
    made = plan(folder, skip=True)
    assert {name: text.decode().split("\n\n")[-1] for name, text in made.texts.items()
            if name != "converted.json"} == {
        "a.md": "One.\n", "c.md": "Three.\n", "f.md": "Six.\n"}


@pytest.mark.usefixtures("talker")
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_plan_that_is_stopped_leaves_neither_docling_nor_copies(
    bare: Path, tmp_path: Path, number: signal.Signals
) -> None:
    folder = folder_of(tmp_path, a_pdf="hang")
    (tmp_path / "temp").mkdir()
    before = digest(bare)
    process = subprocess.Popen(
        [sys.executable, "-m", "spanwise.cli", "add", "papers", str(folder), "--docling", "pdf"],
        cwd=bare, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
        env=os.environ | {"PYTHONPATH": str(test_add.ROOT / "src"), "TMPDIR": f"{tmp_path}/temp"},
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler),
    )
    pid = tmp_path / "pid"
    while process.poll() is None and not (pid.exists() and pid.read_text("ascii").strip()):
        time.sleep(0.01)
    assert [path.read_text("utf-8") for path in (tmp_path / "temp").rglob("*.pdf")] == ["hang"]
    process.send_signal(number)
    process.send_signal(number)
    said, _ = process.communicate(timeout=60)
    assert process.returncode != 0 and b"Traceback" not in said, said
    assert number == signal.SIGINT or process.returncode == 128 + signal.SIGTERM
    state = Path("/proc", pid.read_text("ascii").strip(), "stat")
    assert not state.exists() or " Z " in state.read_text("ascii")
    assert not list((tmp_path / "temp").glob("spanwise-docling-*"))
    assert digest(bare) == before


@pytest.mark.usefixtures("bare", "talker")
def test_a_quotation_that_is_not_found_names_the_markdown_it_was_looked_for_in(
    add: Add, tmp_path: Path
) -> None:
    folder = folder_of(tmp_path, a_pdf="It is 3 m.")
    asked = tmp_path / "asked.csv"
    asked.write_text("question,document,quote\nHow long?,a.pdf,4 m\n", encoding="utf-8")
    for path in (folder, folder / "a.pdf"):
        said = refused(add, "papers", path, "--docling", "pdf", "--questions", asked)
        assert '`quote` "4 m" does not occur in a' in said
        assert "Quotations are looked for in the Markdown that docling made of 1 file; to" in said
    (folder / "b.md").write_text("```\nopen\n", encoding="utf-8")
    said = refused(add, "papers", folder, "--docling", "pdf")
    assert f"{folder}/b.md" in said and "Quotations" not in said


@pytest.mark.usefixtures("bare", "talker")
def test_what_the_manifest_closes_is_not_given_to_docling(add: Add, tmp_path: Path) -> None:
    folder = folder_of(tmp_path, a_pdf="Open.", b_pdf="crash", c_PDF="Swept.")
    (folder / "manifest.yaml").write_text(
        "- {path: a.pdf, document: first, version: 1.10}  # mine\n"
        "- {path: b.pdf, permitted: false}\n- {path: c.PDF, split: sweep}\n", encoding="utf-8")
    made = plan(folder)
    assert made.files == ("a.md", "b.pdf", "c.md", "manifest.yaml", "converted.json")
    assert yaml.safe_load(made.texts["manifest.yaml"]) == [
        {"path": "a.md", "document": "first", "version": "1.10"},
        {"path": "b.pdf", "permitted": False}, {"path": "c.md", "split": "sweep"},
    ]
    assert made.reader == "folder" and made.facts["documents"] == 2
    (folder / "manifest.yaml").write_text(
        "- path: a.pdf\n- {path: b.pdf, permitted: false}\n- path: c.PDF\n"
        "- {path: d.pptx, permitted: false}\n", encoding="utf-8")
    (folder / "d.pptx").write_text("secret", encoding="utf-8")
    assert "d.pptx: manifest.yaml closes it" in refused(
        add, "papers", folder, "--docling", "pdf,pptx")
    (folder / "d.pptx").unlink()
    (folder / "manifest.yaml").write_text(
        "- path: a.pdf\n- path: b.pdf\n- path: c.PDF\n", encoding="utf-8")
    said = refused(add, "papers", folder, "--docling", "pdf", "--skip")
    assert "b.pdf: docling did not" in said and "close them in manifest.yaml" in said


def plan(path: Path, *kinds: str, skip: bool = False) -> test_add.door.Plan:
    suffixes = suffixes_of(",".join(kinds or ("all",)))
    wish = test_add.door.Wish("papers", path, skip=skip, docling=suffixes)
    return test_add.door.plan(wish)


@pytest.mark.usefixtures("bare")
def test_it_has_its_own_modules_and_our_number_of_threads(
    talker: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PYTHONPATH", "/ours")
    monkeypatch.setenv("SPANWISE_WORKERS", "3")
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    monkeypatch.delenv(docling.PROGRAM)
    talker.rename(tmp_path / "docling")
    assert plan(folder_of(tmp_path, a_pdf="env")).texts["a.md"] == b"[] 3\n"


@pytest.mark.slow
@pytest.mark.usefixtures("talker")
def test_markdown_and_its_record_are_added_and_read_without_docling(
    project: Path, add: Add, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = folder_of(tmp_path, a_pdf="R&amp;D is 3 m.", b_md="Plain.\n")
    (folder / "sub dir").mkdir()
    (folder / "sub dir" / "-x.html").write_text("Named so.", encoding="utf-8")
    code, _, err = add("papers", folder, "--docling", "pdf,html")
    assert code == 0, err
    data = project / "data" / "papers"
    record = json.loads((data / "converted.json").read_bytes())
    assert record == {
        "by": {"Docling": "2.9.1", "Docling Core": "2.8.0"}, "options": list(docling.OPTIONS),
        "files": {
            md: {"from": name, "sha256": hashlib.sha256((folder / name).read_bytes()).hexdigest(),
                 "bytes": (folder / name).stat().st_size}
            for md, name in (("a.md", "a.pdf"), ("sub dir/-x.md", "sub dir/-x.html"))
        },
    }
    assert digest(data).keys() == {"a.md", "b.md", "sub dir/-x.md", "converted.json"}
    assert (data / "a.md").read_text("utf-8") == "## Part\n\nR&D is 3 m.\n"
    assert "note: pictures that docling left out: 2" in err
    assert test_add.dvc("status", "data.dvc", at=project).strip().endswith("up to date.")
    monkeypatch.setenv(docling.PROGRAM, str(tmp_path / "gone"))
    corpus = read_split("markdown", data, options={})
    assert [(d.doc_id, [h.title for h in d.headings]) for d in corpus.documents] == [
        ("a", ["Part"]), ("b", []), ("sub%20dir/-x", ["Part"])]


@pytest.mark.parametrize(("given", "plain"), [
    ("R&amp;D costs &lt; 5 and p &lt;0.05, so a -&gt; b", "R&D costs < 5 and p <0.05, so a -> b"),
    ("&amp;lt; and &amp;#60; stay", "&amp;lt; and &amp;#60; stay"),
    ("&lt;b&gt; stays, &lt;!-- too, &lt;1@x.org&gt; as well", None),
    ("&gt; no quotation\n\n1. &gt; nor here\n- &gt; nor here", None),
    ("snake\\_case\\_name, \\_this\\_ and \\_\\_init\\_\\_", "snake_case_name, \\_this\\_ and "
     "\\_\\_init\\_\\_"),
    ("`a\\_b &amp; c` and a\\_b", "`a\\_b &amp; c` and a_b"),
    ("```\na\\_b &amp; c\n<!-- image -->\n```\n\nR&amp;D",
     "```\na\\_b &amp; c\n<!-- image -->\n```\n\nR&D"),
    ("| a | b &#124; c &amp; d |\n|---|---|\n| &lt; 1 | x &gt; 2 |",
     "| a | b &#124; c & d |\n|---|---|\n| < 1 | x > 2 |"),
    ("## Paint &amp; varnish", "## Paint & varnish"),
    ("```` text\n```\na &amp; b\n```\n````\nR&amp;D", "```` text\n```\na &amp; b\n```\n````\nR&D"),
    ("~~~\n```\na &amp; b\n~~~\nR&amp;D", "~~~\n```\na &amp; b\n~~~\nR&D"),
    ("```\n``` x\na &amp; b\n      ```\na &amp; b\n   `````  \nR&amp;D",
     "```\n``` x\na &amp; b\n      ```\na &amp; b\n   `````  \nR&D"),
    ("- ```\n  a &amp; b\n  ```\n\n1.  a\n\n    ~~~\n    a &amp; b\n    ~~~\n\nR&amp;D",
     "- ```\n  a &amp; b\n  ```\n\n1.  a\n\n    ~~~\n    a &amp; b\n    ~~~\n\nR&D"),
    ("> ```\n> a &amp; b\n> ```\n\nR&amp;D", "> ```\n> a &amp; b\n> ```\n\nR&D"),
    ("```a`b``` is R&amp;D\n\nR&amp;D", "```a`b``` is R&D\n\nR&D"),
    ("`` a ` b &amp; c `` and R&amp;D", "`` a ` b &amp; c `` and R&D"),
])
def test_plainer_letters_are_the_same_page(given: str, plain: str | None) -> None:
    text, pictures = plainer(given)
    assert (text, pictures) == ((plain or given) + "\n", 0)
    page = MarkdownIt("commonmark").enable("table")
    assert page.render(text) == page.render(given)


def test_places_of_pictures_go_with_their_blank_line() -> None:
    assert plainer("<!-- image -->\n\nA.\n\n<!-- image -->\n\n- b\n    <!-- image -->\n\nC.") == (
        "A.\n\n- b\n\nC.\n", 3)


def test_a_table_right_below_a_list_is_one() -> None:
    """docling 2 writes it so where a DOCX has nothing between them."""
    text, _ = plainer("- red lead\n    - tar\n    | Part | Coats |\n|------|-------|\n| Deck | 2 |")
    assert text == "- red lead\n    - tar\n\n| Part | Coats |\n|------|-------|\n| Deck | 2 |\n"
    fenced = "```\nx\n| a |\n|---|\n```\n"
    assert plainer(fenced) == (fenced, 0)


@pytest.mark.system
@pytest.mark.slow
@pytest.mark.skipif(
    not os.environ.get(docling.PROGRAM),
    reason="no docling: it cannot be installed beside us, so neither our set-up nor CI has one; "
           f"set {docling.PROGRAM} to one of your own (DOCX and HTML need none of its models)",
)
@pytest.mark.usefixtures("bare")
def test_a_real_docling_keeps_headings_tables_and_words(tmp_path: Path, add: Add) -> None:
    folder = tmp_path / "papers"
    folder.mkdir()
    (folder / "ferry.docx").write_bytes(small_files.docx(
        ("Title", "The ferry"), ("Heading 1", "Hull & keel"), ("Normal", "The keel weighs 410 kg."),
        ("List Bullet", "red lead"), ("table", "Part|Coats\nDeck|2"),
        ("Heading 2", "snake_case < 5"), ("Normal", "It dries in 12 hours.")))
    (folder / "page.html").write_text(
        "<h1>Harbour</h1><p>The limit is 5 knots.<h2>Moorings</h2><img src=x.png><p>Red buoys.",
        encoding="utf-8")
    (folder / "no.docx").write_bytes(b"zip?")
    said = refused(add, "papers", folder, "--docling", "docx,html")
    assert f"{folder}/no.docx: docling did not convert it: " in said
    assert "000" not in said
    (folder / "no.docx").unlink()
    made = plan(folder, "docx", "html")
    assert made.reader == "markdown" and set(made.texts) == {
        "ferry.md", "page.md", "converted.json"}
    assert json.loads(made.texts["converted.json"])["by"]["Docling"]
    for name, text in made.texts.items():
        (folder / name).write_bytes(text)
    ferry, page = read_split("markdown", folder, options={}).documents
    assert ferry.title == "The ferry"
    assert [h.title for h in ferry.headings] == ["Hull & keel", "snake_case < 5"]
    assert [p.kind for p in ferry.paragraphs] == ["paragraph", "list", "table", "paragraph"]
    for words in ("The keel weighs 410 kg.", "Hull & keel", "snake_case < 5", "red lead"):
        assert words in (ferry.raw or "")
    assert (page.title, [h.title for h in page.headings]) == ("Harbour", ["Moorings"])
    assert "image" not in (page.raw or "")
