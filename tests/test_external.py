"""Splitters of other packages as segmentations, and their runs scored: every span is held."""

from __future__ import annotations

import importlib.metadata
import json
import math
import re
import runpy
import shlex
import shutil
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from spanwise import layout, params, registration, schemas
from spanwise.chunking.external import chunk_external
from spanwise.chunking.recovery import collapsed
from spanwise.chunking.strings import spans_of
from spanwise.cli import main
from spanwise.corpora.readers import read_split
from spanwise.documents.model import Builder, Document
from spanwise.errors import AmbiguousChunk, ChunkError, ParamsError, SpanwiseError, Unavailable
from spanwise.measures.study import Scorer
from spanwise.params import ChunkingSettings, ExternalSettings
from spanwise.reporting.tables import boundaries
from spanwise.structure.native import native_tree
from spanwise.text.tokens import words

from .conftest import ROOT
from .small_files import docx, pdf
from .splitter_world import entry, importable

NEEDED = "install the extra: pip install -c constraints.txt -e '.[splitters]'"
SETTINGS = ChunkingSettings(cap_tokens=350, floor_tokens=60)
PAGE = "\n".join(
    (ROOT / "docs" / name).read_text(encoding="utf-8")
    for name in ("own-corpus.md", "own-retriever.md")
)
FENCES = [
    (found["line"], found["body"])
    for found in re.finditer(r"^(?P<line>[^\n]*)\n```[a-z]*\n(?P<body>.*?)^```$", PAGE, re.S | re.M)
]

@pytest.fixture(scope="module", autouse=True)
def own(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    with importable(tmp_path_factory.mktemp("packages")):
        yield


def boat() -> Document:
    builder = Builder("boat", "Boat")
    builder.paragraph("Before.")
    builder.heading(1, "Hull")
    builder.paragraph("The keel weighs 410 kg.")
    builder.heading(2, "Paint")
    builder.paragraph("Two coats.")
    return builder.build()


def cut(its: ExternalSettings, document: Document | None = None) -> tuple[list[Any], Any]:
    document = document or boat()
    trees = {document.doc_id: native_tree(document)}
    chunks, report = chunk_external(
        {"x": its}, [document], {"native": trees, "induced": trees}, words(), SETTINGS, 4.0
    )
    return chunks, report["x"]


def test_a_chunk_has_the_path_of_the_section_that_holds_most_of_it() -> None:
    # Body: `Before.` [0, 9) with its blank line, the hull [9, 34), paint [34, 44).
    chunks, report = cut(entry("given", args={"cuts": [[0, 20], [5, 14], [30, 44], [33, 36]]}))
    assert [(c.chunk_id, c.path, c.node) for c in chunks] == [
        ("boat:0-20", ("Boat", "Hull"), 1),             # 9 against 11
        ("boat:5-14", ("Boat", "Hull"), 1),             # 4 against 5
        ("boat:30-44", ("Boat", "Hull", "Paint"), 1),   # 4 against 10
        ("boat:33-36", ("Boat", "Hull", "Paint"), 1),   # 1 against 2
    ]
    # `Before.` The keel | e. The | 10 kg.  Two coats. | g.  T: 3, 2, 4 and 2 tokens; fixed have 4.
    assert report["mean_tokens"] == (3 + 2 + 4 + 2) / 4
    assert report["gap_to_fixed_tokens"] == 4 - 11 / 4 and report["size_within_tolerance"]


@settings(deadline=None)  # the first example imports
@given(st.lists(st.tuples(st.integers(0, 43), st.integers(1, 44)).filter(lambda p: p[0] < p[1]),
                min_size=1, max_size=5))
def test_shares_and_sections_are_those_of_sets_of_characters(spans: list[tuple[int, int]]) -> None:
    document = boat()
    owner = [0] * 9 + [1] * 25 + [2] * 10
    its = entry("given", args={"cuts": [list(span) for span in spans]})
    kept = {(a, b) for a, b in spans if document.body[a:b].strip()}
    if not kept:
        with pytest.raises(ChunkError, match="no chunk holds any of its text"):
            cut(its)
        return
    chunks, report = cut(its)
    assert [(c.start, c.end) for c in chunks] == sorted(kept)
    assert report["blank"] + report["repeated"] + len(kept) == len(spans)
    solid = {i for i, sign in enumerate(document.body) if not sign.isspace()}
    held = Counter(i for a, b in kept for i in range(a, b) if i in solid)
    assert report["coverage_share"] == len(held) / len(solid)
    assert report["overlap_share"] == sum(n > 1 for n in held.values()) / len(held)
    titles = [(), ("Hull",), ("Hull", "Paint")]
    for chunk in chunks:
        most = Counter(owner[chunk.start : chunk.end])
        section = max(most, key=lambda s: (most[s], -s))
        assert chunk.path == ("Boat", *titles[section])


def test_classes_functions_methods_and_strings_are_all_called() -> None:
    body = boat().body
    spans = [(0, 22), (22, 44)]
    assert [(c.start, c.end) for c in cut(entry("Halves"))[0]] == spans
    assert [c.end for c in cut(entry("Halves", args={"share": 0.25}))[0]] == [11, 44]
    strings = cut(entry("lines", "strings"))[0]
    assert [body[c.start : c.end] for c in strings] == [
        "Before.", "The keel weighs 410 kg.", "Two coats."
    ]
    assert [c.end for c in cut(entry("Halves.of", args={"share": 0.25}))[0]] == [11, 44]
    assert [c.end for c in cut(entry("Halves", method="thirds"))[0]] == [14, 28, 44]


@pytest.mark.parametrize(("its", "error", "complaint"), [
    (entry("broken"), ChunkError, "external.x: boat: broken failed: RuntimeError: no model; mend"),
    (entry("lazily"), ChunkError, "lazily failed: RuntimeError: half way"),
    (entry("given", args={"cuts": [[0, 45]]}), ChunkError,
     r"boat, chunk 1 of 1: span \[0, 45\), but the text has 44 code points"),
    (entry("given", args={"cuts": [[0, 5], [7, 7]]}), ChunkError,
     r"chunk 2 of 2: span \[7, 7\)"),
    (entry("given", args={"cuts": [[-1, 5]]}), ChunkError, r"span \[-1, 5\)"),
    (entry("given", args={"cuts": [[0, 5.0]]}), ChunkError, "offsets 0 and 5.0; expected whole"),
    (entry("given", args={"cuts": [[False, True]]}), ChunkError, "offsets False and True"),
    (entry("given", args={"cuts": [{"start_char_idx": None, "end_char_idx": None}]}), ChunkError,
     "offsets None and None, the splitter did not find its own chunk; say `gives: strings`"),
    (entry("given", args={"cuts": ["Before."]}), ChunkError, "'Before.' has no offsets"),
    (entry("given", args={"cuts": [{"start": 0}]}), ChunkError, "dict has no offsets"),
    (entry("given", args={"cuts": [{"start": 0, "end": 3, "text": "Bee"}]}), ChunkError,
     r"its text is 'Bee', but \[0, 3\) of the document reads 'Bef'"),
    (entry("given", args={"cuts": "all of it"}), ChunkError, "gave str, expected a list"),
    (entry("given", args={"cuts": None}), ChunkError, "'NoneType' object is not iterable"),
    (entry("given", args={"cuts": []}), ChunkError, "no chunk holds any of its text"),
    (entry("given", args={"cuts": [[7, 9]]}), ChunkError, "no chunk holds any of its text"),
    (entry("lines", "strings", args={"keep": True}), ChunkError, "chunk 2 of 5 .*holds no text"),
    (entry("given", "strings", args={"cuts": ["Two", "keel"]}), ChunkError, "last place is"),
    (entry("given", "strings", args={"cuts": ["keel", "e", "o"]}), AmbiguousChunk,
     r"external.x: boat, chunk 2 of 3 \('e'\): ambiguous"),
    (entry("given", "strings", args={"cuts": [3]}), ChunkError, "int|NoneType, expected a string"),
    (entry("Halves", args={"share": 2}), ParamsError, "external.x.args: Halves .*share 2"),
    (entry("Halves", args={"size": 2}), ParamsError, "Halves does not take them: TypeError"),
    (entry("Halfs"), ParamsError, "has no 'Halfs'; did you mean 'Halves'"),
    (entry("CUTS"), ParamsError, "'CUTS' cannot be called"),
    (entry("Halves", method="split"), ParamsError, "no method 'split'"),
    (entry("Halves", version="2"), ParamsError,
     r"external.x.version: '2', but own_splitter 3 is installed; say `version: \"3\"`"),
    (entry("Halves", package="no_such_splitter"), Unavailable,
     "`pip install no-such-splitter==3`, or take the entry"),
])
def test_what_a_splitter_does_wrong_is_said_with_its_place(
    its: ExternalSettings, error: type[SpanwiseError], complaint: str
) -> None:
    with pytest.raises(error, match=complaint):
        cut(its)


def test_a_namespace_has_the_version_of_the_distribution_that_a_module_is_in(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for part, version in (("core", "1.0"), ("extra", "2.0")):
        module = tmp_path / "shared_top" / part / "__init__.py"
        module.parent.mkdir(parents=True)
        module.write_text("def cut(text):\n    return [(0, len(text))]\n")
        about = tmp_path / f"shared_top_{part}-{version}.dist-info"
        about.mkdir()
        (about / "METADATA").write_text(f"Name: shared-top-{part}\nVersion: {version}\n")
        (about / "RECORD").write_text(f"shared_top/{part}/__init__.py,,\n")
    monkeypatch.syspath_prepend(tmp_path)
    for part, version in (("core", "1.0"), ("extra", "2.0")):
        chunks, _ = cut(entry("cut", package=f"shared_top.{part}", version=version))
        assert [(c.start, c.end) for c in chunks] == [(0, 44)]
        with pytest.raises(ParamsError, match=f"shared_top.{part} {version} is installed"):
            cut(entry("cut", package=f"shared_top.{part}", version="3.0"))


def study(**changes: Any) -> params.Params:
    settings = yaml.safe_load((ROOT / "params.yaml").read_text(encoding="utf-8"))
    settings["external"] = {"halves": {
        "package": "own_splitter", "callable": "Halves", "version": "3", "gives": "spans",
    }}
    settings["conditions"]["X"] = {
        "segmentation": "halves", "prefix": "none", "depth": 0, "retrieval": "flat"
    }
    for place, value in changes.items():
        found = settings
        *above, last = place.split("__")
        for part in above:
            found = found[part]
        found[last] = value
    return params.from_mapping(settings)


@pytest.mark.parametrize(("changes", "complaint"), [
    ({"conditions__X__segmentation": "halve"},
     "conditions.X.segmentation: expected one of fixed, induced, native, halves .*found 'halve'"),
    ({"external": {"fixed": entry("x").model_dump()}}, "external 'fixed': a segmentation of"),
    ({"external": {"blocks": entry("x").model_dump()}}, "external 'blocks': a segmentation of"),
    ({"external__halves__version": 1.1}, r"external.halves.version: .*valid string, found 1.1"),
    ({"external__halves__gives": "text"}, "external.halves.gives: expected 'spans' or 'strings'"),
    ({"external__halves__overlap": 3}, "whitespace and overlap are of strings"),
    ({"external__halves__package": "../x"}, "external.halves.package: "),
    ({"external__halves__arg": {}}, "external.halves.arg: unknown key; did you mean 'args'"),
])
def test_an_entry_edited_into_nonsense_is_refused(changes: dict[str, Any], complaint: str) -> None:
    with pytest.raises(ParamsError, match=complaint):
        study(**changes)


def test_settings_and_version_are_registered_where_an_arm_uses_them() -> None:
    digests = {"handbook": {"documents": "1", "questions": "2"}}
    idle = registration.protocol(study(), digests)
    assert "external" not in idle and registration.protocol(
        params.load(ROOT / "params.yaml"), digests) == idle
    used = study(contrasts__C1=["X", "A1"])
    made = registration.protocol(used, digests)
    assert made["external"] == {"halves": entry("Halves").model_dump()}
    newer = study(contrasts__C1=["X", "A1"], external__halves__version="4")
    assert registration.protocol(newer, digests)["external"]["halves"]["version"] == "4"


def test_a_later_version_is_a_deviation_from_what_was_registered(tmp_path: Path) -> None:
    digests = {"handbook": {"documents": "1", "questions": "2"}}
    path = tmp_path / "registration.json"
    registration.register(study(contrasts__C1=["X", "A1"]), digests, "0" * 40, "", path)
    same, newer = (
        registration.standing(
            study(contrasts__C1=["X", "A1"], external__halves__version=version), "handbook",
            digests["handbook"], path,
        ) for version in ("3", "4")
    )
    assert (same.word, same.differences) == ("confirmatory", ())
    assert newer.differences == ("external.halves.version: registered 3, ran 4",)


def test_the_page_says_who_cut() -> None:
    its = study()
    assert boundaries(its, its.conditions["X"]) == "halves: by Halves of own_splitter 3"
    assert boundaries(its, its.conditions["A0"]) == "fixed: equal windows"


def test_stages_carry_it_to_scores_beside_the_others(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """From documents to scores without a vector: BM25 over native chunks, halves and lines."""
    settings = yaml.safe_load((ROOT / "params.yaml").read_text(encoding="utf-8"))
    settings["corpora"] = {"toy": {"reader": "markdown", "path": "data/toy"}}
    settings["tokens"]["tokenizer"] = "words"
    settings["external"] = {
        "halves": entry("Halves").model_dump(), "lines": entry("lines", "strings").model_dump(),
    }
    row = {"prefix": "none", "depth": 0, "retrieval": "bm25"}
    settings["conditions"] |= {
        "XB": {"segmentation": "halves", **row}, "LB": {"segmentation": "lines", **row},
        "XP": {"segmentation": "halves", "prefix": "placebo", "depth": 2, "retrieval": "routed"},
    }
    folder = tmp_path / "data" / "toy"
    folder.mkdir(parents=True)
    for name in ("mast", "keel"):
        (folder / f"{name}.md").write_text(
            f"# {name}\n\nThe {name} is old.\n\n## Weight\n\nThe {name} weighs 410 kg.\n"
        )
    (folder / "questions.yaml").write_text(yaml.safe_dump([
        {"id": "q", "document": "keel", "type": "factoid", "question": "Which keel weighs 410?",
         "anchors": [{"quote": "The keel weighs 410 kg."}]},
    ]))
    (tmp_path / "params.yaml").write_text(yaml.safe_dump(settings))
    (tmp_path / "questions").mkdir()
    monkeypatch.chdir(tmp_path)

    def run(name: str) -> None:
        runpy.run_path(str(ROOT / "stages" / f"{name}.py"))["main"]("toy")

    run("parse")
    run("ask")
    layout.stage("induce", "toy").mkdir(parents=True)
    shutil.copy(layout.parse("toy") / "sections.parquet", layout.stage("induce", "toy"))
    for name in ("chunk", "label", "retrieve_bm25"):
        run(name)
    report = layout.read_report(layout.stage("chunk", "toy") / "report.json")
    assert report["segmentations"]["halves"]["chunks"] == 4
    assert report["segmentations"]["lines"]["coverage_share"] == 1
    chunks, labels, runs, questions = (
        schemas.read(layout.ARTIFACTS / place, schema) for place, schema in (
            ("chunk/toy/chunks.parquet", schemas.CHUNKS),
            ("label/toy/labels.parquet", schemas.LABELS),
            ("retrieve/toy/bm25/runs.parquet", schemas.RUNS),
            ("ask/toy/questions.parquet", schemas.QUESTIONS),
        )
    )
    # The first half is mostly the title's, the second mostly `Weight`'s; each has the other's path.
    assert [
        (r["doc_id"], r["start"], r["prefix"]) for r in labels.to_pylist()
        if r["label"] == "halves-placebo-2"
    ] == [
        ("keel", 0, "[mast]\n\n"), ("keel", 20, "[mast › Weight]\n\n"),
        ("mast", 0, "[keel]\n\n"), ("mast", 20, "[keel › Weight]\n\n"),
    ]
    its = params.load()
    scored, _ = Scorer(questions, chunks, labels, its.conditions).score("bm25", "none", runs)
    found = {row["condition"]: (row["cov_ndcg@10"], row["sufficient@3"]) for row in scored}
    # The sentence is whole in the native chunk and in its line. Halves cut it: 21 of its 23
    # characters rank first, the other document's 410 kg second, and the last two characters third.
    halved = (21 / 23 + 2 / 23 / 2) / (21 / 23 + 2 / 23 / math.log2(3))
    assert found == {
        "BM25": (1.0, 1.0), "LB": (1.0, 1.0), "XB": (pytest.approx(halved), 0.0),
    }


# real packages


def langchain(**args: Any) -> ExternalSettings:
    pytest.importorskip("langchain_text_splitters", reason=NEEDED)
    return ExternalSettings.model_validate({
        "package": "langchain_text_splitters", "callable": "RecursiveCharacterTextSplitter",
        "version": importlib.metadata.version("langchain-text-splitters"), "gives": "spans", **args,
    })


def handbook() -> Sequence[Document]:
    return read_split("markdown", ROOT / "data" / "handbook", options={}, split="study").documents


def cut_all(its: ExternalSettings, documents: Sequence[Document]) -> tuple[list[Any], Any]:
    trees = {document.doc_id: native_tree(document) for document in documents}
    chunks, report = chunk_external(
        {"x": its}, documents, {"native": trees, "induced": trees}, words(), SETTINGS, 150.0
    )
    return chunks, report["x"]


@pytest.mark.parametrize(("size", "overlap"), [(1000, 0), (600, 100)])
def test_langchains_own_offsets_are_those_that_its_strings_recover(size: int, overlap: int) -> None:
    documents = handbook()
    args = {"chunk_size": size, "chunk_overlap": overlap}
    known, report = cut_all(langchain(args={**args, "add_start_index": True}), documents)
    found, _ = cut_all(langchain(args=args, gives="strings", overlap=overlap), documents)
    assert found == known and len(known) > 100
    assert report["coverage_share"] == 1.0 and (report["overlap_share"] > 0) == (overlap > 0)


def test_langchain_without_offsets_is_told_how_to_give_them() -> None:
    with pytest.raises(ChunkError, match="give add_start_index: true in `args`"):
        cut(langchain(args={"chunk_size": 20, "chunk_overlap": 0}))


@pytest.mark.parametrize(("name", "args"), [
    ("TokenChunker", {"tokenizer": "character", "chunk_size": 800, "chunk_overlap": 80}),
    ("SentenceChunker", {"chunk_size": 800, "chunk_overlap": 100}),
    ("RecursiveChunker", {"chunk_size": 800}),
])
def test_chonkies_splitters_cut_the_handbook(name: str, args: dict[str, Any]) -> None:
    pytest.importorskip("chonkie", reason=NEEDED)
    its = ExternalSettings.model_validate({
        "package": "chonkie", "callable": name, "args": args, "gives": "spans",
        "version": importlib.metadata.version("chonkie"),
    })
    chunks, report = cut_all(its, handbook())
    assert report["coverage_share"] == 1.0 and report["chunks"] == len(chunks) > 100
    assert (report["overlap_share"] > 0) == ("chunk_overlap" in args)


def test_the_entries_of_the_page_are_a_study_and_cut() -> None:
    settings = yaml.safe_load((ROOT / "params.yaml").read_text(encoding="utf-8"))
    for body in (body for _, body in FENCES if body.startswith("external:")):
        for part, more in yaml.safe_load(body).items():
            settings[part] |= more
    made = params.from_mapping(settings)
    pins = dict(
        line.split("==") for line in (ROOT / "constraints.txt").read_text().splitlines()
        if line.startswith(("langchain-text-splitters=", "chonkie="))
    )
    assert set(made.external) == {"langchain", "sentences", "langchain-overlap"}
    assert {its.version for its in made.external.values()} == set(pins.values())
    documents = handbook()[:3]
    for its in made.external.values():
        pytest.importorskip(its.package, reason=NEEDED)
        assert cut_all(its, documents)[1]["coverage_share"] == 1.0


# `spanwise spans`


@pytest.fixture
def notes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The page's files that its example reads, in an empty folder."""
    for line, body in FENCES:
        if name := re.search(r"`((?:data/notes/\w+\.md)|questions\.jsonl)`:$", line):
            (tmp_path / name[1]).parent.mkdir(parents=True, exist_ok=True)
            (tmp_path / name[1]).write_text(body, encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.usefixtures("notes")
def test_the_pages_example_cuts_ranks_scores_and_compares(
    capsys: pytest.CaptureFixture[str]
) -> None:
    pytest.importorskip("langchain_text_splitters", reason=NEEDED)
    (script,) = [body for line, body in FENCES if line.endswith("`langchain_bm25.py`:")]
    (block,) = [body for _, body in FENCES if body.startswith("python langchain_bm25.py")]
    Path("langchain_bm25.py").write_text(script, encoding="utf-8")
    first, *commands = [shlex.split(line) for line in block.splitlines()]
    assert first == ["python", "langchain_bm25.py", "40"]
    sizes = []
    for command in commands:
        if command[0] == "python":
            sizes.append(command[2])
    assert sizes == ["400"]
    for command in [first, *commands]:
        if command[0] == "python":
            with pytest.MonkeyPatch.context() as patch:
                patch.setattr("sys.argv", command[1:])
                runpy.run_path(command[1], run_name="__main__")
        else:
            assert command[0] == "spanwise" and main(command[1:]) == 0, capsys.readouterr().err
    assert "cov_ndcg@10" in capsys.readouterr().out
    for size in ("40", "400"):
        texts = {p.stem: p.read_text(encoding="utf-8") for p in Path("data/notes").glob("*.md")}
        strings, spans = (
            [json.loads(row) for row in path.read_text(encoding="utf-8").splitlines()]
            for path in (Path(f"strings-{size}.jsonl"), Path(f"chunks-{size}.jsonl"))
        )
        assert [texts[s["doc_id"]][s["start"] : s["end"]] for s in spans] == [
            s["text"] for s in strings
        ]
        assert [s["chunk_id"] for s in spans] == [s["chunk_id"] for s in strings]


@pytest.mark.usefixtures("notes")
@pytest.mark.parametrize(("script", "package"), [
    ("langchain_chunks.py", "langchain_text_splitters"),
    ("llamaindex_chunks.py", "llama_index.core"),  # in no extra: pip install llama-index-core
])
def test_the_pages_offsets_of_other_libraries_are_chunks(
    script: str, package: str, capsys: pytest.CaptureFixture[str]
) -> None:
    (body,) = [body for line, body in FENCES if line.endswith(f"`{script}`:")]
    compile(body, script, "exec")
    pytest.importorskip(package, reason=f"the page's {script} needs {package}")
    Path(script).write_text(body, encoding="utf-8")
    runpy.run_path(script, run_name="__main__")
    Path("chunks.jsonl").write_text(capsys.readouterr().out, encoding="utf-8")
    rows = [json.loads(row) for row in Path("chunks.jsonl").read_text().splitlines()]
    assert rows and {row["doc_id"] for row in rows} == {"hull"}
    text = Path("data/notes/hull.md").read_text(encoding="utf-8")
    held = {place for row in rows for place in range(row["start"], row["end"])}
    assert not "".join(sign for place, sign in enumerate(text) if place not in held).strip()
    question = json.loads(Path("questions.jsonl").read_text().splitlines()[0])
    (given,) = question["evidence"]
    whole = next(r for r in rows if r["start"] <= given["start"] < given["end"] <= r["end"])
    Path("one.trec").write_text(f"{question['question_id']} Q0 {whole['chunk_id']} 0 0.5 x\n")
    assert main(["score", "--questions", "questions.jsonl", "--chunks", "chunks.jsonl",
                 "--run", "one.trec"]) == 0
    first = json.loads(capsys.readouterr().out.splitlines()[0])
    assert first["sufficient@3"] == 1.0


@pytest.mark.usefixtures("notes")
def test_passages_and_a_run_as_pyterrier_writes_them_are_scored(
    capsys: pytest.CaptureFixture[str]
) -> None:
    """Words split at white space, joined by blanks in windows; a run of blanks, ranks from 0."""
    text = Path("data/notes/hull.md").read_text(encoding="utf-8")
    words_of = re.split(r"\s+", text)
    passages = [" ".join(words_of[at : at + 12]) for at in range(0, len(words_of) - 11, 6)]
    Path("passages.jsonl").write_text(lines_of(*(
        {"chunk_id": f"hull%p{n}", "doc_id": "hull", "text": p} for n, p in enumerate(passages)
    )))
    (line,) = [body for _, body in FENCES if body.startswith("spanwise spans passages.jsonl")]
    assert main(shlex.split(line)[1:]) == 0
    rows = [json.loads(row) for row in Path("chunks.jsonl").read_text().splitlines()]
    assert len(rows) > 3 and [collapsed(text[r["start"] : r["end"]]) for r in rows] == [
        collapsed(passage) for passage in passages
    ]
    question = json.loads(Path("questions.jsonl").read_text().splitlines()[0])
    Path("terrier.trec").write_text("".join(
        f"{question['question_id']} Q0 {row['chunk_id']} {rank} {9.5 - rank} pyterrier\n"
        for rank, row in enumerate(rows)
    ))
    capsys.readouterr()
    assert main(["score", "--questions", "questions.jsonl", "--chunks", "chunks.jsonl",
                 "--run", "terrier.trec"]) == 0
    shown = capsys.readouterr()
    assert json.loads(shown.out.splitlines()[0])["cov_ndcg@10"] > 0
    assert "contradict" not in shown.err


def lines_of(*rows: dict[str, Any]) -> str:
    return "".join(json.dumps(row) + "\n" for row in rows)


def test_texts_are_a_folder_json_lines_or_one_file(tmp_path: Path) -> None:
    chunks = tmp_path / "c.jsonl"
    chunks.write_text(lines_of(
        {"doc_id": "a", "text": "two", "page": 4}, {"doc_id": "sub/b", "text": "x", "chunk_id": "n"}
    ))
    folder = tmp_path / "texts"
    (folder / "sub").mkdir(parents=True)
    (folder / "a.md").write_bytes(b"\xef\xbb\xbfone\r\ntwo")
    (folder / "sub" / "b.txt").write_text("x")
    wanted = [
        {"chunk_id": "a:4-7", "doc_id": "a", "start": 4, "end": 7, "page": 4},
        {"chunk_id": "n", "doc_id": "sub/b", "start": 0, "end": 1},
    ]
    assert spans_of(chunks, folder) == wanted
    lines = tmp_path / "t.jsonl"
    lines.write_text(lines_of(
        {"doc_id": "a", "text": "one\ntwo"}, {"doc_id": "sub/b", "text": "x"}
    ))
    assert spans_of(chunks, lines) == wanted
    chunks.write_text(lines_of({"doc_id": "any", "text": "two"}))
    assert spans_of(chunks, folder / "a.md")[0]["chunk_id"] == "any:4-7"


PAGES = {
    "page.html": b"<h1>Hull</h1><p>Sand <b>first</b>.</p><p>Then paint.</p>",
    "page.rst": b"Hull\n====\n\nSand *first*.\n\nThen paint.\n",
    "page.docx": docx(("Heading 1", "Hull"), ("Normal", "Sand first."), ("Normal", "Then paint.")),
    "page.pdf": pdf([[(72, 700, 12, "Sand first."), (72, 500, 12, "Then paint.")]]),
}


@pytest.mark.parametrize("name", PAGES)
def test_spans_of_a_laid_out_file_are_of_the_text_that_chunk_shows(
    name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = tmp_path / "texts"
    folder.mkdir()
    page, chunks, shown = folder / name, tmp_path / "c.jsonl", tmp_path / "shown"
    page.write_bytes(PAGES[name])
    assert main(["chunk", str(page), "--representation", "raw", "--text-out", str(shown)]) == 0
    text = shown.read_text(encoding="utf-8")
    strings = ["Sand first.", "Then paint."]
    chunks.write_text(lines_of(*({"doc_id": "page", "text": string} for string in strings)))
    for texts in (folder, page):
        rows = spans_of(chunks, texts)
        assert [text[row["start"] : row["end"]] for row in rows] == strings
    # The markup and what another program makes of the file are no text of it.
    chunks.write_text(lines_of({"doc_id": "page", "text": "<b>first</b>"}))
    capsys.readouterr()
    assert main(["spans", str(chunks), "--texts", str(folder)]) == 2
    said = capsys.readouterr().err
    assert f"`spanwise chunk {page} --representation raw --text-out TEXT` writes" in said
    assert "iconv" not in said and "c.jsonl: page, chunk 1 of 1 ('<b>first</b>')" in said


@pytest.mark.parametrize(("name", "data", "complaint"), [
    ("a.pptx", b"PK\x03\x04\x00\xff", "no plain text in UTF-8, and none of docx, html, pdf, rst"),
    ("a", b"caf\xe9", "no plain text in UTF-8"),
    ("a.wikitext", b"{{infobox}} A is b.", "wikitext is read as text without its markup"),
    ("a.json", b'{"text": "x"}', "give what was split as JSON lines"),
    ("a.html", b"<p> </p>", "a.html: no text in it"),
    ("a.docx", b"PK\x03\x04\x00\xff", "a.docx"),
    ("a.txt", b"caf\xe9", "not UTF-8 .* iconv"),
])
def test_a_file_that_is_no_text_is_refused_without_bad_advice(
    name: str, data: bytes, complaint: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    chunks = tmp_path / "c.jsonl"
    chunks.write_text(lines_of({"doc_id": "a", "text": "x"}))
    (tmp_path / "texts").mkdir()
    (tmp_path / "texts" / name).write_bytes(data)
    assert main(["spans", str(chunks), "--texts", str(tmp_path / "texts")]) == 2
    said = capsys.readouterr().err
    assert re.search(complaint, said), said
    assert ("iconv" in said) == name.endswith(".txt")


def test_a_wrong_option_is_blamed_on_the_option(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "a.txt").write_text("one two\none")
    chunks = tmp_path / "c.jsonl"
    command = ["spans", str(chunks), "--texts", str(tmp_path / "a.txt")]
    for rows, more, complaint in (
        ([{"doc_id": "a", "text": "one"}], ["--whitespace", "any"], "'--whitespace'"),
        ([{"doc_id": "a", "text": "one"}], ["--overlap", "-1"], "'--overlap'"),
        ([{"doc_id": "a", "text": "two one"}], [], "`--whitespace collapsed`"),
        ([{"doc_id": "a", "text": "one"}], [], "(`--overlap`)"),
    ):
        chunks.write_text(lines_of(*rows))
        assert main([*command, *more]) == 2
        said = capsys.readouterr().err
        assert complaint in said and ("c.jsonl" in said) == (not more), said


@pytest.mark.parametrize(("rows", "complaint"), [
    ([], "0 bytes and no text"),
    ([{"doc_id": "a"}], r"entry 1 \(line 1\): `text` is missing"),
    ([{"text": "x"}], "`doc_id` is missing"),
    ([{"doc_id": "a", "text": 1}], "`text` is int; expected text"),
    ([{"doc_id": "a", "text": "one", "start": 0}], "`start` stands there already"),
    ([{"doc_id": "a", "text": "one", "chunk_id": "x y"}], "expected text without white space"),
    ([{"doc_id": "z", "text": "one"}], "no file is named after document 'z'; expected z.txt"),
    ([{"doc_id": "my c", "text": "one"}], "'my c' is called 'my%20c' here, after my c.md"),
    ([{"doc_id": "b", "text": "one"}], "b.md and b.txt are both named after document 'b'"),
    ([{"doc_id": "a", "text": ""}], r"c.jsonl: a, chunk 1 of 1 \(''\): it holds no text"),
    ([{"doc_id": "a", "text": "four"}], "does not occur in the document's text"),
    ([{"doc_id": "a", "text": "two"}, {"doc_id": "a", "text": "one"}], "order of the text"),
    ([{"doc_id": "a", "text": "o"}], r"ambiguous, it can stand at offset 0 .* or offset 6"),
    ([{"doc_id": "a", "text": "two"}] * 2, r"chunk 'a:4-7' is that of .*line 1"),
])
def test_a_wrong_file_of_chunks_ends_with_its_place(
    rows: list[dict[str, Any]], complaint: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for name, text in (
        ("a.md", "one two"), ("b.md", "one"), ("b.txt", "one"), ("my c.md", "one"),
    ):
        (tmp_path / name).write_text(text)
    path = tmp_path / "c.jsonl"
    path.write_text(lines_of(*rows))
    out = tmp_path / "out.jsonl"
    assert main(["spans", str(path), "--texts", str(tmp_path), "--out", str(out)]) == 2
    said = capsys.readouterr().err
    assert re.search(complaint, said), said
    assert not out.exists()
    path.write_text(lines_of({"doc_id": "a", "text": "two"}))
    assert main(["spans", str(path), "--texts", str(tmp_path), "--out", str(path)]) == 2
    assert "is an input" in capsys.readouterr().err
