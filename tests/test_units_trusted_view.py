"""The study of units sees the trusted view alone: what was left out moves no byte of what it says.

The stages' own scripts run, but for the encoder: its lists are made of seeded vectors here.
"""

from __future__ import annotations

import hashlib
import json
import runpy
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest
import yaml
from numpy.typing import NDArray

from spanwise import layout, params, schemas
from spanwise.documents.records import load_documents
from spanwise.errors import ParamsError
from spanwise.units.identity import parents
from spanwise.units.ranking import dense, load_units, texts
from spanwise.units.trace import Trace, lines, read

from .conftest import ROOT

STAGES = ("parse", "ask", "units", "units_retrieve_bm25", "encode", "units_score", "units_infer")

REASONS = ("secret", "older", "sweep")
PLACES = ("title", "heading", "body", "table", "fence", "item", "link")
MARKERS = {reason: [f"zq{reason}{place}" for place in PLACES] for reason in REASONS}
ALLOWED = "zqpermitted"
"""Stands in a permitted document: what finds the others has to find it."""

PUMP = (
    f"# Pump\n\nThe pump {ALLOWED} has a valve.\n\n## Handheld only\n\nHold the blue button.\n\n"
    "## Router only\n\nHold the grey button.\n\n```\nreset soft\n\nconfirm\n```\n"
)
METER = (
    "# Meter\n\n## Codes\n\n| code | cause |\n|------|-------|\n| E1 | water |\n\n## Care\n\n"
    "Rinse the meter.\n\nStore it dry.\n"
)
MANIFEST = """\
- {path: pump.md, source: manuals, version: 3}
- {path: pump.v2.md, source: manuals, document: pump, version: 2, current: false}
- {path: meter.md, source: manuals, version: 1}
- {path: notes.md, source: notes, permitted: false}
- {path: tuning.md, source: notes, split: sweep}
"""


def hidden(reason: str, more: str = "") -> str:
    """A document with a marker wherever a body has a place for one."""
    title, heading, body, table, fence, item, link = MARKERS[reason]
    return (
        f"---\ntitle: {title}\n---\n# The {heading} button\n\nHold the blue {body} button. {more}"
        f"\n\n| code | {table} |\n|------|-------|\n| E1 | {table} |\n\n```{fence}\nreset {fence}\n"
        f"\nconfirm\n```\n\n- the {item} valve\n\n[r]: /{link}\n"
    )


def question(name: str, document: str, *quotes: str) -> dict[str, object]:
    return {"id": name, "document": document, "question": f"What of the {name} valve, code E1?",
            "anchors": [{"quote": quote} for quote in quotes]}


QUESTIONS: list[dict[str, object]] = [
    question("button", "pump", "Handheld only", "Hold the blue button."),
    question("code", "meter", "| E1 | water |"),
    question("care", "meter", "Rinse the meter.\n\nStore it dry."),
    {"id": "none", "type": "no-answer", "document": "pump", "question": "Who made the valve?"},
    {"id": "again", "base": "button", "question": "And the valve?"},
    {"id": "again-2", "base": "code", "question": "And the code?"},
    # About documents that were left out: counted, and not a word of them is kept.
    question("closed", "notes", MARKERS["secret"][2]),
    question("tuned", "tuning", MARKERS["sweep"][2]),
    {"id": "closed-2", "base": "closed", "question": f"And {MARKERS['secret'][1]}?"},
    {"id": "both", "document": "pump", "question": f"And the {MARKERS['secret'][3]}?",
     "anchors": [{"quote": "Handheld only"},
                 {"quote": MARKERS["secret"][4], "occurrence": 1, "document": "notes"}]},
]


def write(folder: Path, files: dict[str, str | bytes], *, units: bool = True,
          cutoffs: Sequence[int] = (1, 2, 3)) -> None:
    mapping = yaml.safe_load((ROOT / "params.yaml").read_text(encoding="utf-8"))
    mapping["corpora"] = {"toy": {"reader": "markdown", "path": "data/toy", "units": units}}
    mapping["embedders"] = {"minilm": mapping["embedders"]["minilm"]}
    mapping["primary"]["embedder"] = "minilm"
    mapping["tokens"] = {"tokenizer": "words"}
    mapping["inference"]["iterations"] = 50
    mapping["units"] = {
        "windows": {"size_tokens": 6, "overlap_tokens": 2}, "cutoffs": list(cutoffs),
        "characters": [40, 400], "tokens": [8, 80], "depth": 6,
    }
    (folder / "params.yaml").write_text(yaml.safe_dump(mapping), encoding="utf-8")
    found: dict[str, str | bytes] = {
        "pump.md": PUMP, "meter.md": METER, "manifest.yaml": MANIFEST,
        "questions.yaml": yaml.safe_dump(QUESTIONS), **files,
    }
    for name, content in found.items():
        path = folder / "data" / "toy" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content if isinstance(content, bytes) else content.encode())


LEFT_OUT: dict[str, str | bytes] = {
    "notes.md": hidden("secret"), "pump.v2.md": hidden("older"), "tuning.md": hidden("sweep"),
}


def encode(name: str) -> None:
    """The stage `units_retrieve` with seeded vectors in the encoder's place."""
    settings = params.load()
    folder, out = layout.stage("units", name), layout.cell("units-retrieve", name, "minilm")
    units = load_units(folder)
    known = parents(load_documents(layout.parse(name)), "raw")
    passages = [text for rows in units.values() for text in texts(rows, known)]
    schemas.write_text(out / "passages.txt", "\n".join(passages))  # all that it would be given
    rng = np.random.default_rng(7)

    def vectors(number: int) -> NDArray[np.float32]:
        drawn = rng.normal(size=(number, 5))
        made: NDArray[np.float32] = (
            drawn / np.linalg.norm(drawn, axis=1, keepdims=True)
        ).astype(np.float32)
        return made

    needs = schemas.read(folder / "needs.parquet", schemas.NEEDS)
    asked = list(zip(needs["need_id"].to_pylist(), needs["text"].to_pylist(), strict=True))
    matrices = {segmentation: vectors(len(rows)) for segmentation, rows in units.items()}
    runs = dense(units, matrices, asked, vectors(len(asked)), settings.units.depth)
    schemas.write(out / "runs.parquet", schemas.UNIT_RUNS, runs)
    schemas.write(out / "seen.parquet", schemas.SEEN, schemas.table(schemas.SEEN, [
        {"segmentation": segmentation, "passage_id": unit["passage_id"],
         "seen": min(20, unit["end"] - unit["start"])}
        for segmentation, rows in units.items() for unit in rows
    ]))
    ranked_by = settings.embedder("minilm").model_dump()
    layout.write_report(out / "report.json", {"asked": True, "ranked_by": ranked_by}, quiet=True)


def run(stages: Sequence[str]) -> None:
    for stage in stages:
        main: Callable[[str], None] = (
            encode if stage == "encode"
            else runpy.run_path(str(ROOT / "stages" / f"{stage}.py"))["main"]
        )
        main("toy")


def written() -> dict[str, bytes]:
    """Every file of the artifacts by its path."""
    return {
        path.as_posix(): path.read_bytes()
        for path in sorted(layout.ARTIFACTS.rglob("*")) if path.is_file()
    }


def readable(name: str, data: bytes) -> str:
    """A file's bytes and, of a table, its rows and its metadata, in small letters."""
    text = data.decode("utf-8", errors="replace")
    if name.endswith(".parquet"):
        table = pq.read_table(name, partitioning=None)
        text += json.dumps(table.to_pylist(), ensure_ascii=False) + str(pq.read_metadata(name))
    return text.lower()


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_no_marker_of_what_was_left_out_is_anywhere(
    project: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    write(project, LEFT_OUT)
    run(STAGES)
    shown = capsys.readouterr()
    printed = (shown.out + shown.err).lower()
    assert "files left out: not permitted: 1" in printed  # and it did print
    found = {name: readable(name, data) for name, data in written().items()}
    assert {Path(name).name for name in found} >= {
        "blocks.parquet", "sections.parquet", "windows.parquet", "anchors.parquet",
        "needs.parquet", "runs.parquet", "outcomes.parquet", "traces.parquet", "means.parquet",
        "comparisons.parquet", "report.json", "passages.txt",
    }
    for reason, markers in MARKERS.items():
        for marker in markers:
            assert marker not in printed
            # The other split is parsed beside this one, into a folder that nothing here reads.
            assert not [
                name for name, text in found.items()
                if marker in text and not (reason == "sweep" and name.startswith(SWEEP))
            ], marker
    # What finds none of these finds the others.
    finds = {name for name, text in found.items() if ALLOWED in text}
    assert {layout.parse("toy").as_posix() + "/documents.parquet"} < finds
    assert MARKERS["sweep"][2] in found[f"{SWEEP}/documents.parquet"]


SWEEP = layout.parse("toy", "sweep").as_posix()


def test_what_was_left_out_moves_no_byte(project: Path) -> None:
    """Another secret, another older version, another split: all else is the same to the byte."""
    write(project, LEFT_OUT)
    run(STAGES)
    before = written()
    more = "The pump, the valve and the meter. " * 20
    write(project, {
        "notes.md": b"\xff\xfe no text at all", "pump.v2.md": "Hold it.\n\n```\nnever closed\n",
        "tuning.md": hidden("sweep", more) + "\n# Another\n\n" + more,
    })
    run(STAGES)
    after = written()
    assert before.keys() == after.keys()
    report = (layout.stage("parse", "toy") / "report.json").as_posix()
    differs = {name for name in before if before[name] != after[name]}
    assert differs <= {report, *(name for name in before if name.startswith(SWEEP))}
    assert f"{SWEEP}/documents.parquet" in differs
    assert json.loads(before[report])["study"] == json.loads(after[report])["study"]


def test_what_was_permitted_does(project: Path) -> None:
    """The same comparison sees an edit of a permitted body in every table that knows of it."""
    write(project, LEFT_OUT)
    run(STAGES)
    before = written()
    write(project, LEFT_OUT | {"pump.md": PUMP + "\nThe blue valve is shut.\n"})
    run(STAGES)
    after = written()
    for stage, table in (("units", "blocks"), ("units", "windows"), ("units", "anchors"),
                         ("units-score", "traces"), ("units-infer", "means")):
        name = (layout.stage(stage, "toy") / f"{table}.parquet").as_posix()
        assert before[name] != after[name], name


def test_questions_about_what_was_left_out_are_counted(project: Path) -> None:
    write(project, LEFT_OUT)
    run(STAGES[:3])
    parsed = layout.read_report(layout.stage("parse", "toy") / "report.json")["study"]
    assert parsed["questions left out: not permitted"] == 3
    assert parsed["questions left out: another split"] == 1
    report = layout.read_report(layout.stage("units", "toy") / "report.json")
    expected = {
        "asked": True, "representation": "raw", "documents": 2, "development": 4,
        "development without an answer": 1, "reworded": 2, "reworded without an answer": 0,
        "anchors": 4, "needs with alternative bundles": 0,
        # pump has 7 blocks, 3 sections and 27 words, meter 6, 3 and 23; windows of 6 words step on
        # by 4: the first six words and, of the other 21 and 17, six and five more windows.
        "units": {"blocks": 7 + 6, "sections": 3 + 3, "windows": 7 + 6},
        # All that a list rests on: the settings of the study, and each text that was permitted.
        "cut_by": {
            "windows": {"size_tokens": 6, "overlap_tokens": 2}, "cutoffs": [1, 2, 3],
            "characters": [40, 400], "tokens": [8, 80], "depth": 6, "tokenizer": "words",
        },
        "collection": hashlib.sha256("".join(
            f"{name}\0{version}\0{hashlib.sha256(text.encode()).hexdigest()}\0"
            for name, version, text in (("meter", "1", METER), ("pump", "3", PUMP))
        ).encode()).hexdigest(),
    }
    assert {name: report[name] for name in expected} == expected


def test_documents_that_share_a_need_are_one_cluster_and_what_was_left_out_joins_none(
    project: Path,
) -> None:
    files: dict[str, str | bytes] = {
        name: f"# {name}\n\nThe {name} valve has a code, E1.\n"
        for name in ("lamp.md", "plug.md", "gate.md")
    }
    asked = [
        *QUESTIONS,
        question("lamp", "lamp", "The lamp.md valve"), question("plug", "plug", "a code"),
        question("gate", "gate", "a code"),
        {"id": "two", "document": "lamp", "question": "What code has the valve?", "anchors": [
            {"quote": "a code"}, {"quote": "a code", "document": "plug"}]},
        # Of the notes nothing may be opened, so that this one is left out whole.
        {"id": "closed-too", "document": "gate", "question": "And the code?", "anchors": [
            {"quote": "a code"}, {"quote": "a code", "document": "meter"},
            {"quote": MARKERS["secret"][2], "document": "notes"}]},
    ]
    manifest = MANIFEST + "".join(f"- {{path: {name}}}\n" for name in files)
    write(project, LEFT_OUT | files | {
        "manifest.yaml": manifest, "questions.yaml": yaml.safe_dump(asked),
    })
    run(STAGES)
    table = schemas.read(
        layout.stage("units-infer", "toy") / "comparisons.parquet", schemas.UNIT_COMPARISONS
    )
    found: dict[str, set[tuple[int, int]]] = {}
    for row in table.to_pylist():
        if row["slice"] == "development":
            found.setdefault(row["family"], set()).add((row["n_questions"], row["n_documents"]))
    # Needs of pump (1), meter (2), lamp (2), plug (1) and gate (1); lamp and plug are one.
    assert found == {"segmentation": {(7, 5)}, "retriever": {(7, 5)}, "connected": {(7, 4)}}


def test_a_corpus_that_is_not_asked_for_has_no_units(project: Path) -> None:
    write(project, LEFT_OUT, units=False)
    run([stage for stage in STAGES if stage != "encode"])
    for stage in ("units", "units-score", "units-infer"):
        folder = layout.stage(stage, "toy")
        assert [path.name for path in folder.iterdir()] == ["report.json"]
        assert layout.read_report(folder / "report.json") == {"asked": False}
    cell = layout.cell("units-retrieve", "toy", layout.LEXICAL)
    assert [path.name for path in cell.iterdir()] == ["report.json"]
    assert layout.read_report(cell / "report.json")["asked"] is False


def test_more_units_than_there_are_leave_nothing_half(project: Path) -> None:
    write(project, LEFT_OUT, cutoffs=(1, 6))
    run(STAGES[:3])  # six sections
    mapping = yaml.safe_load((project / "params.yaml").read_text(encoding="utf-8"))
    mapping["units"] |= {"cutoffs": [1, 7], "depth": 7}
    (project / "params.yaml").write_text(yaml.safe_dump(mapping), encoding="utf-8")
    before = written()
    with pytest.raises(ParamsError, match=r"units\.cutoffs: the first 7 units .* 6 sections"):
        run(["units"])
    assert written() == before


def test_a_trace_stands_until_its_text_is_another_however_its_bundles_are_written(
    project: Path,
) -> None:
    turned = [QUESTIONS[0] | {"bundles": [[1, 0]]}, *QUESTIONS[1:]]
    write(project, LEFT_OUT | {"questions.yaml": yaml.safe_dump(turned)})
    run(STAGES)
    settings = params.load()

    def trace(name: str) -> Trace:
        found = read(settings, "toy", name, "minilm")
        assert found is not None
        return found

    for name in ("button", "again", "none", "care"):
        assert trace(name).stale == (), name
        shown = "\n".join(lines(trace(name), (), 3, {})).lower()
        assert not [m for markers in MARKERS.values() for m in markers if m in shown]
    assert "rinse the meter." in shown
    # An edit of what was left out leaves it standing; one of the text that it is of does not.
    write(project, {"notes.md": b"\xff", "pump.v2.md": b"\xff"})
    assert trace("care").stale == ()
    write(project, {"meter.md": METER + "\nMore.\n"})
    assert any("meter has parent_sha256" in why for why in trace("care").stale)
    assert "Rinse" not in "\n".join(lines(trace("care"), (), 3, {}))
