"""A frozen trace stands until anything that it is a record of is another, and then it says so.

The stages' own scripts run on a small corpus, but for the encoder: its lists are made of seeded
vectors. Then files and settings change under them.
"""

from __future__ import annotations

import re
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml

from spanwise import layout, params, schemas
from spanwise.documents.records import load_documents
from spanwise.retrieval.runs import write_runs
from spanwise.show import as_json, show
from spanwise.units.ranking import lexical, load_units
from spanwise.units.trace import Trace, lines, read

from .test_units_trusted_view import (
    ALLOWED,
    MARKERS,
    QUESTIONS,
    STAGES,
    hidden,
    question,
    run,
    write,
)

Entry = dict[str, Any]

LEAFLET = hidden("secret")
"""Permitted when the stages run. Its markers show whether anything of it is printed."""
IN_UNITS = [f"zqsecret{place}" for place in ("heading", "body", "table", "fence", "item", "link")]
SPARE = "# Spare\n\nNothing of the kind.\n"
"""A document that some lists do not name."""

MANIFEST: list[Entry] = [
    {"path": "pump.md", "source": "manuals", "version": 3},
    {"path": "meter.md", "source": "manuals"},
    {"path": "leaflet.md", "source": "manuals"},
    {"path": "spare.md", "source": "manuals"},
]
ASKED: list[Entry] = [
    *QUESTIONS[:6],
    question("leaflet", "leaflet", f"Hold the blue {MARKERS['secret'][2]} button."),
    {"id": "leaflet-2", "base": "leaflet", "question": "And the blue one?"},
    {"id": "both", "document": "pump", "question": "And the code E1 of the blue button?",
     "anchors": [{"quote": "Handheld only"},
                 {"quote": f"the {MARKERS['secret'][5]} valve", "document": "leaflet"}],
     "bundles": [[0, 1], [0]]},
    {"id": "silent", "document": "spare", "question": "Zyxomma quux?",
     "anchors": [{"quote": "Nothing of the kind."}]},
]
NEEDS = [str(entry["id"]) for entry in ASKED]
ANOTHER = "the collection is another one now: documents came, went or were edited"


@pytest.fixture(scope="module")
def settled(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A project whose stages ran; to be copied."""
    root = tmp_path_factory.mktemp("settled") / "project"
    root.mkdir()
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(root)
        write(root, {
            "leaflet.md": LEAFLET, "spare.md": SPARE, "manifest.yaml": yaml.safe_dump(MANIFEST),
            "questions.yaml": yaml.safe_dump(ASKED),
        })
        run(STAGES)
    return root


@pytest.fixture
def project(settled: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    root = tmp_path / "project"
    shutil.copytree(settled, root)
    monkeypatch.chdir(root)
    return root


def put(root: Path, name: str, content: str | bytes | list[Entry]) -> None:
    """Write one file of the corpus; a list as YAML."""
    if isinstance(content, list):
        content = yaml.safe_dump(content)
    path = root / "data" / "toy" / name
    path.write_bytes(content if isinstance(content, bytes) else content.encode())


def listed(path: str, **fields: Any) -> list[Entry]:
    """The manifest with other fields of one file; without any, it is left out."""
    return [
        entry | fields if entry["path"] == path else entry
        for entry in MANIFEST if entry["path"] != path or fields
    ]


def asked(name: str, **fields: Any) -> list[Entry]:
    """The questions with other fields of one; without any, it is left out."""
    return [
        entry | fields if entry["id"] == name else entry
        for entry in ASKED if entry["id"] != name or fields
    ]


def setting(root: Path, place: str, value: Any) -> None:
    path = root / "params.yaml"
    mapping = yaml.safe_load(path.read_text(encoding="utf-8"))
    *above, last = place.split(".")
    inside = mapping
    for name in above:
        inside = inside[name]
    assert inside.get(last) != value
    inside[last] = value
    path.write_text(yaml.safe_dump(mapping), encoding="utf-8")


def trace(name: str) -> Trace:
    found = read(params.load(), "toy", name, "minilm")
    assert found is not None
    return found


def printed(found: Trace, top: int = 99) -> str:
    return "\n".join(lines(found, (), top, {}))


def named(found: Trace) -> set[str]:
    """The documents that a trace has anything of."""
    return {row["doc_id"] for rows in (found.anchors, *found.lists.values()) for row in rows}


@pytest.mark.usefixtures("project")
def test_a_trace_stands_and_shows_the_slices_that_it_refers_to() -> None:
    texts = {d.doc_id: d.raw or "" for d in load_documents(layout.parse("toy"))}
    for name in NEEDS:
        found = trace(name)
        assert found.stale == ()
        shown = printed(found)
        assert "STALE" not in shown and "refused" not in shown
        assert len(found.lists) == (3 if name == "silent" else 6)
        for row in (row for rows in found.lists.values() for row in rows):
            said = " ".join(texts[row["doc_id"]][row["start"] : row["end"]].split())
            assert f"{row['passage_id']}" in shown and said[:150] in shown
    everything = "\n".join(printed(trace(name)) for name in NEEDS).lower()
    assert ALLOWED in everything
    # What finds nothing of the leaflet below finds each part of it here.
    assert all(marker in everything for marker in IN_UNITS if marker != "zqsecretlink")


# ---------------------------------------------------------------- other documents


ELSEWHERE: dict[str, Callable[[Path], None]] = {
    "edited": lambda root: put(root, "spare.md", SPARE + "\nMore.\n"),
    "a heading": lambda root: put(root, "spare.md", SPARE.replace("# Spare", "# Other")),
    "a blank line": lambda root: put(root, "spare.md", SPARE + "\n"),
    "withdrawn": lambda root: put(root, "manifest.yaml", listed("spare.md", permitted=False)),
    "another split": lambda root: put(root, "manifest.yaml", listed("spare.md", split="sweep")),
    "another version": lambda root: put(root, "manifest.yaml", listed("spare.md", version=2)),
    "renamed": lambda root: put(root, "manifest.yaml", listed("spare.md", document="other")),
}


def gone(root: Path) -> None:
    (root / "data/toy/spare.md").unlink()
    put(root, "manifest.yaml", listed("spare.md"))


def added(root: Path) -> None:
    put(root, "new.md", "# New\n\nHold the blue button.\n")
    put(root, "manifest.yaml", [*MANIFEST, {"path": "new.md"}])


def permitted_since(root: Path) -> None:
    put(root, "new.md", "# New\n\nHold the blue button.\n")
    put(root, "manifest.yaml", [*MANIFEST, {"path": "new.md", "permitted": False}])
    assert trace("care").stale == ()
    put(root, "manifest.yaml", [*MANIFEST, {"path": "new.md", "permitted": True}])


ELSEWHERE |= {"gone": gone, "added": added, "permitted since": permitted_since}


@pytest.mark.parametrize("change", ELSEWHERE.values(), ids=ELSEWHERE.keys())
def test_a_document_that_no_list_names_makes_every_list_stale(
    project: Path, change: Callable[[Path], None]
) -> None:
    """It competes with all that was retrieved, so that the lists are of another collection."""
    put(project, "questions.yaml", asked("silent"))  # the one question about it is left out
    untouched = [name for name in NEEDS if "spare" not in named(trace(name))]
    assert len(untouched) >= 3
    assert all(trace(name).stale == () for name in untouched)
    before = {name: printed(trace(name)) for name in untouched}
    change(project)
    for name in untouched:
        found = trace(name)
        assert found.stale == (ANOTHER,)
        first, *rest = before[name].split("\n")
        # Nothing else of it is another: every reference still resolves.
        assert printed(found) == "\n".join([first, f"STALE: {ANOTHER}; run `dvc repro`", *rest])
    put(project, "manifest.yaml", MANIFEST)
    put(project, "spare.md", SPARE)
    (project / "data/toy/new.md").unlink(missing_ok=True)
    assert all(trace(name).stale == () for name in untouched)


@pytest.mark.parametrize(("change", "why"), [
    (lambda root: put(root, "leaflet.md", LEAFLET + "\nMore.\n"), "leaflet has parent_sha256 '"),
    (lambda root: put(root, "manifest.yaml", listed("leaflet.md", version="2")),
     "leaflet has version '2' now, not '1'"),
    (lambda root: put(root, "manifest.yaml", listed("leaflet.md", source="blog")),
     "leaflet has source 'blog' now, not 'manuals'"),
    (lambda root: put(root, "manifest.yaml", listed("leaflet.md", permitted=False)),
     "document 'leaflet' is not in the trusted view"),
], ids=["edited", "version", "source", "withdrawn"])
def test_a_text_that_is_refused_says_why(
    project: Path, change: Callable[[Path], None], why: str
) -> None:
    before = trace("both")
    texts = {d.doc_id: d.raw or "" for d in load_documents(layout.parse("toy"))}
    change(project)
    found = trace("both")
    shown = printed(found)
    assert any(reason.startswith(why) for reason in found.stale)
    rows = [row for rows in (found.anchors, *found.lists.values()) for row in rows]
    refused = [row for row in rows if row["doc_id"] == "leaflet"]
    assert 0 < len(refused) < len(rows)
    assert shown.count(f"(refused: {why}") == shown.count("(refused:") == len(refused)
    # What is not of it stays, and so does the record itself.
    for row in rows:
        if row["doc_id"] != "leaflet":
            said = " ".join(texts[row["doc_id"]][row["start"] : row["end"]].split())
            assert said[:150] in shown
    assert (found.anchors, found.lists, found.outcomes) == (
        before.anchors, before.lists, before.outcomes
    )


def test_an_anchor_is_refused_where_no_list_names_its_document(project: Path) -> None:
    path = layout.stage("units-score", "toy") / "traces.parquet"
    rows = schemas.read(path, schemas.TRACES).to_pylist()
    others = [row for row in rows if row["doc_id"] != "spare"]
    assert len(others) < len(rows)
    schemas.write(path, schemas.TRACES, schemas.table(schemas.TRACES, others))
    put(project, "spare.md", SPARE + "\nMore.\n")
    found = trace("silent")
    assert [row["doc_id"] for row in found.anchors] == ["spare"] and found.stale[0] == ANOTHER
    (why,) = found.stale[1:]
    assert why.startswith("spare has parent_sha256 '")
    assert printed(found).count("(refused: spare has parent_sha256 '") == 1
    assert "Nothing of the kind." not in printed(found)


# ---------------------------------------------------------------- nothing of what was withdrawn


def newer(root: Path) -> None:
    """The file is an older version now; questions about it quote what the newer one still has."""
    put(root, "leaflet.v2.md", f"Hold the blue {MARKERS['secret'][2]} button.\n\n"
                               f"the {MARKERS['secret'][5]} valve\n")
    put(root, "manifest.yaml", [
        *listed("leaflet.md", document="leaflet", current=False),
        {"path": "leaflet.v2.md", "document": "leaflet", "source": "manuals", "version": 2},
    ])


def file_gone(root: Path) -> None:
    (root / "data/toy/leaflet.md").unlink()
    put(root, "manifest.yaml", listed("leaflet.md"))


def closed_and_no_text(root: Path) -> None:
    """Whatever stands in it now is not opened either."""
    put(root, "leaflet.md", b"\xff\xfe")
    put(root, "manifest.yaml", listed("leaflet.md", permitted=False))


WITHDRAWN: dict[str, Callable[[Path], None]] = {
    "not permitted": lambda root: put(
        root, "manifest.yaml", listed("leaflet.md", permitted=False)
    ),
    "no current version": lambda root: put(
        root, "manifest.yaml", listed("leaflet.md", current=False)
    ),
    "older than another": newer,
    "another split": lambda root: put(root, "manifest.yaml", listed("leaflet.md", split="sweep")),
    "gone": file_gone,
    "not permitted and no text": closed_and_no_text,
}


@pytest.mark.parametrize("change", WITHDRAWN.values(), ids=WITHDRAWN.keys())
def test_nothing_of_a_withdrawn_document_is_printed(
    project: Path, change: Callable[[Path], None]
) -> None:
    change(project)
    for name in NEEDS:
        found = trace(name)
        assert ANOTHER in found.stale
        fresh = {key: [row["passage_id"] for row in rows] for key, rows in found.lists.items()}
        for now in ({}, fresh):
            shown = "\n".join(lines(found, (), 99, now)).lower()
            assert not [marker for marker in MARKERS["secret"] if marker in shown]
            assert "leaflet" not in named(found) or "(refused: " in shown
    # The documents beside it are shown as before.
    everything = "\n".join(printed(trace(name)) for name in NEEDS).lower()
    assert ALLOWED in everything and "rinse the meter." in everything


# ---------------------------------------------------------------- questions


@pytest.mark.parametrize(("content", "why"), [
    ("- {id: [", "line 1, column "), ("only words", "found no list"), (b"\xff\xfe\x00", ""),
    ([*ASKED, {"id": "button", "type": "no-answer", "document": "pump", "question": "Again?"}],
     "the id is also"),
    (asked("care", document="pomp"), "document 'pomp' is no document of this corpus"),
    (asked("button", anchors=[]), "no anchors; give the evidence"),
], ids=["no YAML", "no list", "no text", "twice", "no such document", "no anchors"])
def test_a_question_file_that_cannot_be_read_is_a_line_and_no_error(
    project: Path, content: str | bytes | list[Entry], why: str
) -> None:
    before = {name: printed(trace(name)) for name in NEEDS}
    put(project, "questions.yaml", content)
    for name in NEEDS:
        found = trace(name)
        (said,) = found.stale
        assert said.startswith("the corpus's questions cannot be read now: ") and why in said
        assert "\n" not in said
        first, *rest = before[name].split("\n")
        assert printed(found) == "\n".join([first, f"STALE: {said}; run `dvc repro`", *rest])
    put(project, "questions.yaml", ASKED)
    assert trace("care").stale == ()


def test_a_quotation_that_no_longer_stands_is_not_printed(project: Path) -> None:
    """Its words are those of the former text; which entry is to be mended is said without them."""
    put(project, "leaflet.md", LEAFLET.replace(MARKERS["secret"][2], "red"))
    for name in NEEDS:
        found = trace(name)
        assert any(why.startswith("the corpus's questions cannot be read") for why in found.stale)
        assert MARKERS["secret"][2] not in printed(found).lower()


@pytest.mark.parametrize(("need", "questions", "why"), [
    ("care", asked("care"), "care is no question of the corpus any more"),
    ("care", asked("care", question="How is it kept?"),
     "care asks something else now: 'How is it kept?'"),
    ("again", asked("again", question="Another wording?"),
     "again asks something else now: 'Another wording?'"),
    ("care", asked("care", anchors=[{"quote": "Rinse the meter."}]),
     "care has other anchors or bundles now"),
    ("both", asked("both", bundles=[[0, 1]]), "both has other anchors or bundles now"),
    # A rewording has its base's anchors.
    ("again", asked("button", anchors=[{"quote": "Handheld only"}]),
     "again has other anchors or bundles now"),
    ("none", asked("none", type="factoid", anchors=[{"quote": "Router only"}]),
     "none has other anchors or bundles now"),
])
def test_a_question_that_is_another_now_makes_its_own_trace_stale(
    project: Path, need: str, questions: list[Entry], why: str
) -> None:
    put(project, "questions.yaml", questions)
    assert trace(need).stale == (why,)
    assert trace("code").stale == ()
    assert f"STALE: {why}; run `dvc repro`" in printed(trace(need)).split("\n")


def test_questions_that_are_gone_altogether(project: Path) -> None:
    (project / "data/toy/questions.yaml").unlink()
    assert trace("care").stale == ("care is no question of the corpus any more",)


@pytest.mark.usefixtures("project")
def test_a_need_that_is_on_no_record_has_no_trace() -> None:
    assert read(params.load(), "toy", "unheard", "minilm") is None


# ---------------------------------------------------------------- settings


@pytest.mark.parametrize(("place", "value"), [
    ("units.windows.size_tokens", 7), ("units.windows.overlap_tokens", 1),
    ("units.cutoffs", [1, 2]), ("units.cutoffs", [1, 2, 3, 4]), ("units.characters", [40, 500]),
    ("units.tokens", [8]), ("units.depth", 7), ("tokens.tokenizer", "minilm"),
])
def test_any_setting_of_the_study_makes_it_stale(project: Path, place: str, value: Any) -> None:
    setting(project, place, value)
    (why,) = trace("care").stale
    assert why.startswith("the study was set up by {") and "params.yaml says {" in why
    assert f"STALE: {why}; run `dvc repro`" in printed(trace("care")).split("\n")
    # Both are said in full, so that one sees what is another.
    was, now = re.findall(r"\{'windows'.*?'tokenizer': '\w+'\}", why)
    assert was != now and str(value) in now


@pytest.mark.parametrize(("place", "value", "why"), [
    ("retrieval.bm25.k1", 1.5, r"bm25 ranked by .*'k1': 1\.2.*, params\.yaml says .*'k1': 1\.5.*"),
    ("embedders.minilm.max_seq_length", 128, r"minilm ranked by .*, params\.yaml says .*128.*"),
])
def test_a_retriever_with_other_settings_makes_it_stale(
    project: Path, place: str, value: Any, why: str
) -> None:
    setting(project, place, value)
    (said,) = trace("care").stale
    assert re.fullmatch(why, said)


@pytest.mark.parametrize(("place", "value"), [
    ("inference.seed", 5), ("retrieval.depth", 20), ("chunking.cap_tokens", 300),
    ("primary.measure", "mrr"),
])
def test_what_no_list_rests_on_leaves_it_standing(project: Path, place: str, value: Any) -> None:
    setting(project, place, value)
    assert trace("care").stale == ()


# ---------------------------------------------------------------- what is retrieved now


def now_at(depth: int, name: str) -> list[str]:
    """The sections that BM25 retrieves for a need, `depth` deep."""
    found = trace(name)
    table = lexical(
        load_units(layout.stage("units", "toy")), found.known, [(name, found.need.text)],
        params.load().retrieval.bm25, depth,
    )
    return [row["passage_id"] for row in table.to_pylist() if row["segmentation"] == "sections"]


def verdict(name: str, fresh: list[str]) -> str:
    """What a trace says of BM25's sections when these are retrieved now."""
    key = ("sections", "bm25")
    (line,) = [
        line for line in lines(trace(name), ("sections",), 3, {key: fresh})
        if "retrieved now" in line
    ]
    return line.strip()


AGREES = "retrieved now: agrees with the record"
DIFFERS = "retrieved now: DIFFERS from the record; run `dvc repro`"


@pytest.mark.usefixtures("project")
@pytest.mark.parametrize("depth", [3, 6])
def test_lists_are_compared_as_deep_as_both_are(depth: int) -> None:
    record = [row["passage_id"] for row in trace("button").lists["sections", "bm25"]]
    assert len(record) == 3  # the largest cutoff, of six sections and more
    fresh = now_at(depth, "button")
    assert len(fresh) == min(depth, len(now_at(99, "button"))) and len(now_at(99, "button")) > 3
    assert fresh[:3] == record[:depth]
    assert verdict("button", fresh) == AGREES


@pytest.mark.usefixtures("project")
def test_a_list_that_differs_anywhere_in_that_depth_differs() -> None:
    record = now_at(3, "button")
    other = next(found for found in now_at(99, "button") if found not in record)
    for place in range(3):
        fresh = [*record[:place], other, *record[place + 1 :]]
        assert verdict("button", fresh) == DIFFERS
        assert verdict("button", fresh[: place + 1]) == DIFFERS
        assert verdict("button", [*fresh, other]) == DIFFERS
    assert verdict("button", record[::-1]) == verdict("button", record[1:]) == DIFFERS
    # Nothing agrees with nothing alone.
    assert verdict("button", []) == verdict("silent", record) == DIFFERS
    assert now_at(3, "silent") == [] and verdict("silent", []) == AGREES


# ---------------------------------------------------------------- beside the ablation


@pytest.fixture(scope="module")
def ablated(settled: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The project with an ablation; its dense lists are all chunks in order."""
    root = tmp_path_factory.mktemp("ablated") / "project"
    shutil.copytree(settled, root)
    path = root / "params.yaml"
    mapping = yaml.safe_load(path.read_text(encoding="utf-8"))
    mapping["conditions"] = {
        **{name: mapping["conditions"][name] for name in WITH_OWN_TEXT},
        "P": {"segmentation": "native", "prefix": "placebo", "depth": 3, "retrieval": "flat"},
    }
    mapping |= {"contrasts": {"C1": ["G3", "G2"]}, "steps": {}}
    path.write_text(yaml.safe_dump(mapping), encoding="utf-8")
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(root)
        induced = layout.stage("induce", "toy")
        induced.mkdir(parents=True)
        shutil.copy(layout.parse("toy") / "sections.parquet", induced)
        run(["chunk", "label", "retrieve_bm25"])
        chunks = schemas.read(layout.stage("chunk", "toy") / "chunks.parquet", schemas.CHUNKS)
        native = [row for row in chunks.to_pylist() if row["segmentation"] == "native"]
        write_runs(layout.cell("retrieve", "toy", "minilm"), [
            {"condition": condition, "question_id": name, "rank": rank,
             "chunk_id": row["chunk_id"], "score": 1 / rank}
            for condition, its in params.load().conditions.items() if its.retrieval != "bm25"
            for name in NEEDS for rank, row in enumerate(native, start=1)
        ], [])
        # What the stage `rerank` writes where there is no reranker.
        layout.write_report(layout.cell("rerank", "toy", "minilm") / "report.json",
                            {"reranked": {}, "absent": {}}, quiet=True)
        run(["score"])
    return root


WITH_OWN_TEXT = ("BM25", "G2", "G3")
"""Conditions whose prefixes, where they have any, are of the chunk's own document."""


@pytest.fixture
def both_studies(ablated: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    root = tmp_path / "project"
    shutil.copytree(ablated, root)
    monkeypatch.chdir(root)
    return root


def all_of(*conditions: str) -> str:
    """What `spanwise show` says of every need, in small letters."""
    return "\n".join(
        show(params.load(), name, None, conditions, 99, False) for name in NEEDS
    ).lower()


def all_data(*conditions: str) -> str:
    """The same for a program."""
    return "\n".join(
        as_json(params.load(), name, None, conditions, 99, False) for name in NEEDS
    ).lower()


@pytest.mark.usefixtures("both_studies")
def test_show_shows_the_leaflet_while_it_stands() -> None:
    own = all_of(*WITH_OWN_TEXT)
    # Headings stand in prefixes alone here, the title too.
    assert "[zqsecrettitle › the zqsecretheading button]" in own
    assert {m for m in MARKERS["secret"] if m in own} >= {
        f"zqsecret{place}" for place in ("title", "heading", "body", "table", "fence")
    }
    assert "⟦the zqsecretitem valve⟧" in own and ALLOWED in own and "refused" not in own
    data = all_data(*WITH_OWN_TEXT, "blocks")
    assert "⟦the zqsecretitem valve⟧" in data and "zqsecretheading" in data
    assert "its document is" not in data
    # As another document's placebo its title shows too.
    pump = re.findall(r"  pump:\S+  (.*)", all_of("P"))
    assert pump and any(m in prefix for prefix in pump for m in MARKERS["secret"])


@pytest.mark.parametrize("change", WITHDRAWN.values(), ids=WITHDRAWN.keys())
def test_show_shows_nothing_of_a_withdrawn_document(
    both_studies: Path, change: Callable[[Path], None]
) -> None:
    change(both_studies)
    shown = all_of(*WITH_OWN_TEXT, "blocks", "sections", "windows")
    assert not [marker for marker in MARKERS["secret"] if marker in shown]
    data = all_data(*WITH_OWN_TEXT, "P", "blocks", "sections", "windows")
    assert not [marker for marker in MARKERS["secret"] if marker in data] and ALLOWED in data
    assert ALLOWED in shown and "[pump › router only]" in shown
    rows = re.findall(r"  leaflet:\S+  (.*)\n +(.*)", shown)
    assert len(rows) > 2 * len(NEEDS)  # in G2 and G3 for every need
    assert {prefix for prefix, _ in rows} == {"(refused)"}
    assert all(text.startswith("(refused: its document is ") for _, text in rows)


def test_show_shows_nothing_of_an_edited_document(both_studies: Path) -> None:
    put(both_studies, "leaflet.md", LEAFLET + "\nMore.\n")
    shown = all_of(*WITH_OWN_TEXT)
    assert not [marker for marker in MARKERS["secret"] if marker in shown]
    assert "(refused: its document is another text now)" in shown and ALLOWED in shown


@pytest.mark.parametrize("place", ["heading", "title"])
def test_show_shows_no_heading_that_is_another_now(both_studies: Path, place: str) -> None:
    put(both_studies, "leaflet.md", LEAFLET.replace(f"zqsecret{place}", "plain"))
    assert f"zqsecret{place}" not in all_of("G3")


@pytest.mark.parametrize("change", WITHDRAWN.values(), ids=WITHDRAWN.keys())
def test_show_shows_no_placebo_of_a_withdrawn_document(
    both_studies: Path, change: Callable[[Path], None]
) -> None:
    """A placebo is the path of another document, and may be that of the one withdrawn."""
    change(both_studies)
    shown = all_of("P")
    assert not [marker for marker in MARKERS["secret"] if marker in shown]
