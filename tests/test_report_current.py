"""The report where artifacts do not belong together, where nothing is cut, and where an interval
ends where no difference can lie.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from spanwise import layout, schemas
from spanwise.errors import InputError
from spanwise.reporting.build import report_finished
from spanwise.reporting.diagnose import cuts, diagnose, uncut
from spanwise.reporting.figures import (
    Mark,
    PlotRow,
    Scale,
    difference_scale,
    strip,
    unusable,
)
from spanwise.reporting.gather import CorpusRecord, gather
from spanwise.reporting.plots import grouped, spread
from spanwise.reporting.summary import short
from spanwise.reporting.terminal import verdicts
from spanwise.reporting.units_plots import HEIGHT, _whiskers
from spanwise.show import door
from spanwise.show.found import find, readable
from spanwise.units.needs import Need
from spanwise.units.trace import Trace

from . import reporting_world as world

SETTINGS = world.settings()


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("world")
    world.build(made, SETTINGS, documents=3)
    return made


@pytest.fixture(scope="module")
def harbour(root: Path) -> CorpusRecord:
    return gather(root, "harbour", SETTINGS)


@pytest.fixture
def project(root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    shutil.copytree(root / "artifacts", tmp_path / "artifacts")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def digest(stage: str, name: str, value: str) -> None:
    """Another digest in a stage's report on `toy`."""
    path = layout.stage(stage, "toy") / "report.json"
    told = json.loads(path.read_text(encoding="utf-8"))
    (told["study"] if stage == "parse" else told)["digests"][name] = value
    path.write_text(json.dumps(told), encoding="utf-8")


def without(path: Path, schema: object, column: str, value: str) -> None:
    """The same table without the rows that hold a value."""
    table = schemas.read(path, schema)  # type: ignore[arg-type]
    rows = [row for row in table.to_pylist() if row[column] != value]
    assert len(rows) < table.num_rows
    schemas.write(path, schema, schemas.table(schema, rows))  # type: ignore[arg-type]


def parsed_since() -> None:
    digest("parse", "documents", "other")
    without(layout.parse("toy") / "documents.parquet", schemas.DOCUMENTS, "doc_id", "doc-1")


def parsed_unseen() -> None:
    """A document is gone that every digest still tells of."""
    without(layout.parse("toy") / "documents.parquet", schemas.DOCUMENTS, "doc_id", "doc-1")


def asked_since() -> None:
    digest("ask", "questions", "other")


def chunked_since() -> None:
    path = layout.stage("chunk", "toy") / "chunks.parquet"
    rows = schemas.read(path, schemas.CHUNKS).to_pylist()
    first = next(row for row in rows if row["segmentation"] == "induced")
    without(path, schemas.CHUNKS, "chunk_id", first["chunk_id"])


def left_by_another_version() -> None:
    path = layout.stage("infer", "toy") / "report.json"
    told = json.loads(path.read_text(encoding="utf-8"))
    del told["digests"]
    path.write_text(json.dumps(told), encoding="utf-8")


@pytest.mark.parametrize(("change", "line"), [
    (parsed_since, "toy: parse has left other documents since; run `dvc repro`"),
    (parsed_unseen, "toy: ask ran on other documents: there is no doc-1 now; run `dvc repro`"),
    (asked_since, "toy: ask has left other questions since; run `dvc repro`"),
    (chunked_since, "toy: chunk has left other chunks since "),
    (left_by_another_version, "toy: its artifacts have no 'digests': "),
])
def test_artifacts_that_do_not_belong_together_are_left_out(
    project: Path, change: Callable[[], None], line: str
) -> None:
    change()
    records, left_out = report_finished(project, SETTINGS)
    assert [record.name for record in records] == ["harbour"]
    assert left_out["toy"].startswith(line) and "run `dvc repro`" in left_out["toy"]
    page = (project / "reports" / "report.html").read_text(encoding="utf-8")
    assert line.partition("`")[0].split(" '")[0] in page


def test_a_condition_that_params_yaml_has_no_more_is_no_key_error(project: Path) -> None:
    arms = {name: its for name, its in SETTINGS.conditions.items() if name != "A4"}
    without_a4 = SETTINGS.model_copy(update={
        "conditions": arms,
        "contrasts": {n: c for n, c in SETTINGS.contrasts.items() if "A4" not in c},
        "steps": {n: c for n, c in SETTINGS.steps.items() if "A4" not in c},
    })
    with pytest.raises(InputError, match=r"params\.yaml has no condition A4 now; run `dvc repro`"):
        gather(project, "harbour", without_a4)


@pytest.mark.usefixtures("project")
@pytest.mark.parametrize("change", [parsed_since, asked_since, left_by_another_version])
def test_show_says_what_ran_since(change: Callable[[], None]) -> None:
    alone = SETTINGS.model_copy(update={"corpora": {"toy": SETTINGS.corpora["toy"]}})
    assert find(alone, "doc-1-q0").question["doc_id"] == "doc-1"
    change()
    with pytest.raises(InputError, match=r"toy: (parse|ask|its artifacts) .*run `dvc repro`"):
        find(alone, "doc-1-q0")


@pytest.mark.usefixtures("project")
def test_show_names_a_text_that_is_gone() -> None:
    alone = SETTINGS.model_copy(update={"corpora": {"toy": SETTINGS.corpora["toy"]}})
    parsed_unseen()
    found = replace(find(alone, "doc-1-q0"), refused={})
    with pytest.raises(InputError, match="other documents since, and no doc-1; run `dvc repro`"):
        found.text("doc-1", 0, 5)


def whole(record: CorpusRecord, cut: int) -> CorpusRecord:
    """The corpus with one chunk for each document, but for the first `cut` documents."""
    left = sorted(record.documents)[:cut]
    return replace(record, chunks={
        name: {
            key: row for key, row in rows.items()
            if row["doc_id"] in left or row["start"] == min(
                other["start"] for other in rows.values() if other["doc_id"] == row["doc_id"])
        } for name, rows in record.chunks.items()
    })


def test_a_corpus_in_which_nothing_is_cut_says_so_first(harbour: CorpusRecord) -> None:
    said = "Nothing is cut: 2 of 3 documents are one chunk in every segmentation"
    cell, place = ("mpnet", "none"), Path("reports/report.html")
    for record, is_so in ((harbour, False), (whole(harbour, 2), False), (whole(harbour, 1), True)):
        sure = short(record, SETTINGS, cell, []).partition("How sure")[2]
        assert (said in sure) == is_so
        told = " ".join(verdicts([record], SETTINGS, place).split())
        assert (said in told) == is_so == ("lower chunking.cap_tokens" in told)
    assert uncut(harbour) == (0, 3) and not cuts(harbour)[0].flagged
    (found,) = [c for c in diagnose(whole(harbour, 2), SETTINGS) if "nothing cuts" in c.what]
    assert found.flagged and found.found == "1 of 3 documents is one chunk in every segmentation"
    # One segmentation that cuts a document is enough.
    chunks = {**whole(harbour, 0).chunks, "native": harbour.chunks["native"]}
    assert uncut(replace(harbour, chunks=chunks)) == (0, 3)


def test_an_axis_of_differences_ends_where_they_do(harbour: CorpusRecord) -> None:
    assert difference_scale([0.1], [(-2.5, 0.4)]).low == -1.0
    # 0.1 to 0.4 and 6% of that; an interval of everything has no part in it.
    assert difference_scale([0.1], [(0.2, 0.4), (-2.5, 2.1)]).high == pytest.approx(0.418)
    assert difference_scale([1.02], []).high >= 1.02  # never clipped
    rows = [
        dict(row) | ({"ci_low": -2.529, "ci_high": 2.16} if row["name"] == "C2" else {})
        for row in harbour.contrasts if row["family"] == "contrast" and row["delta"] is not None
    ]
    by_name = {row["name"]: row for row in rows}
    _, on = grouped(SETTINGS, {"all": by_name}, lambda key, row: PlotRow(key, value=spread(row)))
    assert -1 <= on.low < on.high <= 1
    said = spread(next(row for row in rows if row["name"] == "C2"))
    assert "[−2.529, +2.160]" in said and "no usable interval" in said
    assert not unusable(-1.2, 0.9) and not unusable(None, None)


def test_a_whisker_beyond_the_axis_ends_in_an_arrow_head() -> None:
    on = Scale(-1, 1)
    inside = strip([Mark(0.0, -0.5, 0.5)], on, grid=False)
    assert "beyond" not in inside and 'x1="25%" x2="75%"' in inside
    over = strip([Mark(0.0, -0.5, 2.0)], on, grid=False)
    assert over.count("reach beyond") == 1 and 'x1="25%" x2="100%"' in over
    assert '<svg x="100%"' in over
    both = strip([Mark(0.0, -3.0, 2.0)], on, grid=False)
    assert both.count("reach beyond") == 2 and 'x1="0%" x2="100%"' in both
    upright = _whiskers({"ci_low": -2.0, "ci_high": 0.5}, on, "ink")
    assert upright.count("reach beyond") == 1
    # A quarter of the way down is .5, and the panel's foot is where the axis ends.
    assert f'y1="{HEIGHT}" y2="{HEIGHT / 4:g}"' in upright


@pytest.mark.parametrize(("raw", "read"), [
    ("B%C3%BCro%20und%20Team/plan:0-9", "Büro und Team/plan:0-9"), ("plain/doc", "plain/doc"),
    ("100%", "100%"), ("%FF", "%FF"), ("a%1B%5B31m", "a%1B%5B31m"), ("a%0Ab", "a%0Ab"),
    ("a%E2%80%AEb", "a%E2%80%AEb"),
])
def test_ids_are_read_as_people_write_them(raw: str, read: str) -> None:
    assert readable(raw) == read


def test_show_prints_ids_as_people_write_them() -> None:
    chunk = {"rank": 1, "score": 0.5, "chunk_id": "B%C3%BCro/plan:0-9", "prefix": "",
             "holds_evidence": True, "text": "See B%C3%BCro."}
    condition = {"condition": "A0", "segmentation": "fixed", "prefix": "none", "depth": 0,
                 "retrieval": "flat", "score": None, "state": "ran", "first_evidence_rank": 1,
                 "agrees_now": None, "chunks": [chunk]}
    lines = list(door._lines(condition, {"evidence": [], "measure": "mrr"}))
    # The text is the document's own and stays.
    assert lines[-2:] == [" * 1  0.5000  Büro/plan:0-9  (no prefix)", "        See B%C3%BCro."]
    need = Need("q", "B%C3%BCro/plan", "What?", "factoid", "development", (), ())
    trace = Trace(need, [{"doc_id": "B%C3%BCro/plan"}], {}, {}, 1, {}, ())
    assert door._readable("anchor 0  B%C3%BCro/plan@1:0-9  100%25", trace) == (
        "anchor 0  Büro/plan@1:0-9  100%25")


def test_a_table_says_once_what_all_its_rows_say(harbour: CorpusRecord) -> None:
    from spanwise.reporting.contrast_tables import contrasts

    steps = contrasts(harbour, SETTINGS, "step")
    assert "; in every row 9 questions, 3 documents, none excluded" in steps
    assert ">Questions<" not in steps and ">Excluded<" not in steps
    first = next(i for i, row in enumerate(harbour.contrasts)
                 if row["family"] == "step" and row["delta"] is not None
                 and row["measure"] == SETTINGS.primary.measure)
    rows = list(harbour.contrasts)
    rows[first] = dict(rows[first]) | {"n_questions": 5, "excluded": 1}
    mixed = contrasts(replace(harbour, contrasts=rows), SETTINGS, "step")
    assert ">Questions<" in mixed and ">Excluded<" in mixed and ">Documents<" not in mixed
    body = mixed.partition("<tbody")[2]
    assert '<td class="n">5</td><td class="n">1</td></tr>' in body
    assert '<td class="n">9</td><td class="n">0</td></tr>' in body
