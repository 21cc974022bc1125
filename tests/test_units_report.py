"""The report's part on exact evidence units: its figures, slices and files."""

from __future__ import annotations

import csv
import json
import re
import shutil
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest

from spanwise import layout, schemas
from spanwise.errors import InputError
from spanwise.reporting import report
from spanwise.reporting.gather import CorpusRecord, gather, units_record
from spanwise.reporting.page import page as whole_page
from spanwise.reporting.units import JUDGES, part
from spanwise.reporting.units_verdict import difference
from spanwise.units import compare

from . import reporting_world as world
from .reference_reporting import Page

SETTINGS = world.settings()
NAMES = {"blocks": "blocks", "sections": "sections", "12-token windows": "windows"}
"""A segmentation as the page has it -> as tables have it."""
CAUSES = ("boundary", "cutoff", "truncation", "ranking")


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Of two corpora, `toy` has the study."""
    made = tmp_path_factory.mktemp("units")
    world.build(made, SETTINGS, title=world.HOSTILE)
    report(made, SETTINGS)
    return made


@pytest.fixture(scope="module")
def html(root: Path) -> str:
    return (root / "reports" / "report.html").read_text(encoding="utf-8")


@pytest.fixture(scope="module")
def toy(root: Path) -> CorpusRecord:
    return gather(root, "toy", SETTINGS)


@pytest.fixture(scope="module")
def means(root: Path) -> list[dict[str, Any]]:
    path = root / layout.stage("units-infer", "toy") / "means.parquet"
    return list(schemas.read(path, schemas.UNIT_MEANS).to_pylist())


class Tables(HTMLParser):
    """caption -> rows of a page's tables: (heading of its group, its own heading, its cells)."""

    def __init__(self, text: str) -> None:
        super().__init__(convert_charrefs=True)
        self.found: dict[str, list[tuple[str, str, list[str]]]] = {}
        self._caption = self._group = ""
        self._row: list[tuple[str, str]] = []
        self._text: list[str] = []
        self.feed(text)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """What a cell or a caption holds is gathered until it ends."""
        if tag in ("caption", "th", "td"):
            self._text = []
            self._scope = dict(attrs).get("scope") or tag
        elif tag == "tr":
            self._row = []

    def handle_data(self, data: str) -> None:
        """Texts of small elements inside a cell are part of it."""
        self._text.append(data)

    def handle_endtag(self, tag: str) -> None:
        """A row whose only heading spans it opens a group."""
        if tag == "caption":
            self._caption = " ".join(" ".join(self._text).split())
            assert self._caption not in self.found
            self.found[self._caption] = []
        elif tag in ("th", "td"):
            self._row.append((self._scope, " ".join(" ".join(self._text).split())))
        elif tag == "tr" and self._row:
            first, texts = self._row[0], [text for _, text in self._row[1:]]
            if first[0] == "rowgroup":
                self._group = first[1]
            elif first[0] == "row":
                self.found[self._caption].append((self._group, first[1], texts))

    def starting(self, words: str) -> list[tuple[str, str, list[str]]]:
        """The rows of the one table whose caption starts so."""
        (caption,) = [caption for caption in self.found if caption.startswith(words)]
        return self.found[caption]


@pytest.fixture(scope="module")
def tables(toy: CorpusRecord) -> Tables:
    return Tables(part(toy, SETTINGS))


def one(means: list[dict[str, Any]], *key: Any) -> dict[str, Any]:
    """The row of a key, found the slow way."""
    names = ("retriever", "segmentation", "slice", "basis", "amount")
    (row,) = [r for r in means if tuple(r[n] for n in names) == key]
    return row


# ---------------------------------------------------------------- figures on the page


@pytest.mark.parametrize("slice_", ["development", "reworded"])
def test_equal_units_are_the_tables_figures(
    tables: Tables, means: list[dict[str, Any]], slice_: str
) -> None:
    rows = tables.starting(f"At equal units, {slice_} slice")
    assert [(group, name) for group, name, _ in rows] == [
        (r, s) for r in ("bm25", "minilm", "mpnet") for s in NAMES]
    for retriever, name, cells in rows:
        found = [one(means, retriever, NAMES[name], slice_, "units", k) for k in (1, 2, 3)]
        assert cells == [f"{r[m]:.3f}" for r in found for m in ("sufficient", "covered")]


@pytest.mark.parametrize("slice_", ["development", "reworded"])
def test_what_was_returned_is_the_mean_over_all_needs(
    root: Path, tables: Tables, slice_: str
) -> None:
    path = root / layout.stage("units-score", "toy") / "outcomes.parquet"
    outcomes = schemas.read(path, schemas.OUTCOMES).to_pylist()
    needs = {r["need_id"] for r in outcomes if r["slice"] == slice_}
    (caption,) = [c for c in tables.found if c.startswith(f"What was returned, {slice_} slice")]
    assert f"means over all {len(needs)} needs, those without an answer included" in caption
    for retriever, name, cells in tables.found[caption]:
        for i, (k, size) in enumerate(
            (k, size) for size in ("characters", "tokens") for k in (1, 2, 3)
        ):
            mine = [r for r in outcomes if (r["retriever"], r["segmentation"], r["slice"]) == (
                retriever, NAMES[name], slice_) and (r["basis"], r["amount"]) == ("units", k)]
            assert len(mine) == len(needs)
            text = f"{sum(r[size] for r in mine) / len(mine):,.1f}"
            ended = sum(r["ended"] for r in mine)
            assert cells[i] == (f"{text} {ended} ended" if ended else text)


@pytest.mark.parametrize(("counted", "words", "amounts"), [
    ("characters", "code points", (200, 400, 800)), ("tokens", "tokens", (30, 60, 120, 240))])
@pytest.mark.parametrize("slice_", ["development", "reworded"])
def test_equal_amounts_keep_whole_units_and_cut_ones_apart(
    tables: Tables, means: list[dict[str, Any]], slice_: str, counted: str, words: str,
    amounts: tuple[int, ...],
) -> None:
    rows = tables.starting(f"At equal {words}, {slice_} slice")
    kinds = {"whole units": "", "last unit cut short": "-cut"}
    assert len(rows) == 3 * 2 * 3
    for group, name, cells in rows:
        retriever, kind = group.split(" · ")
        basis = counted + kinds[kind]
        assert cells == held(
            [one(means, retriever, NAMES[name], slice_, basis, a) for a in amounts], counted)


def held(rows: list[dict[str, Any]], counted: str) -> list[str]:
    """What a table of budgets says of some means."""
    cells = []
    for r in rows:
        ended = f" {r['ended']} ended" if r["ended"] else ""
        cells += [f"{r['sufficient']:.3f}", f"{r['covered']:.3f}", f"{r[counted]:,.1f}{ended}"]
    return cells


@pytest.mark.parametrize("slice_", ["development", "reworded"])
def test_each_need_is_given_as_much_as_its_first_sections_have(
    root: Path, tables: Tables, means: list[dict[str, Any]], slice_: str
) -> None:
    rows = tables.starting(f"At the same amount of text, need by need, {slice_} slice")
    assert [(r, NAMES[s]) for r, s, _ in rows] == [
        (r, s) for r in ("bm25", "minilm", "mpnet") for s in NAMES.values()]
    for retriever, name, cells in rows:
        assert cells == held(
            [one(means, retriever, NAMES[name], slice_, "matched", k) for k in (1, 2, 3)],
            "characters")
        if name == "sections":
            for k, text in zip((1, 2, 3), cells[2::3], strict=True):
                its = one(means, retriever, name, slice_, "units", k)
                assert text.startswith(f"{its['characters']:,.1f}")
    path = root / layout.stage("units-score", "toy") / "outcomes.parquet"
    outcomes = schemas.read(path, schemas.OUTCOMES).to_pylist()
    given = {
        (r["retriever"], r["need_id"], r["amount"]): r["characters"] for r in outcomes
        if (r["segmentation"], r["basis"]) == ("sections", "units")}
    matched = [r for r in outcomes if r["basis"] == "matched"]
    assert len(matched) == 3 * len(given) and not all(r["ended"] for r in matched)
    for r in matched:
        its = given[r["retriever"], r["need_id"], r["amount"]]
        assert r["characters"] == its or (r["ended"] and r["characters"] < its)


@pytest.mark.parametrize("slice_", ["development", "reworded"])
def test_causes_sum_to_the_misses_that_were_judged(
    root: Path, tables: Tables, slice_: str
) -> None:
    path = root / layout.stage("units-score", "toy") / "outcomes.parquet"
    outcomes = schemas.read(path, schemas.OUTCOMES).to_pylist()
    seen = set()
    for retriever, name, cells in tables.starting(f"Misses at 3 units by cause, {slice_} slice"):
        mine = [r for r in outcomes if (r["retriever"], r["segmentation"], r["slice"]) == (
            retriever, NAMES[name], slice_) and (r["basis"], r["amount"]) == ("units", 3)]
        for measure, told_ in (("sufficient", cells[:5]), ("covered", cells[5:])):
            missed = [r for r in mine if r[measure] == 0]
            counts = [sum(r[f"{measure}_cause"] == c for r in missed) for c in CAUSES]
            assert [int(n) for n in told_] == [len(missed), *counts]
            assert sum(counts) == len(missed)
            seen |= {c for c, n in zip(CAUSES, counts, strict=True) if n}
    assert seen == set(CAUSES) or slice_ == "reworded"  # or the sum shows little


@pytest.mark.parametrize("slice_", ["development", "reworded"])
def test_what_no_number_of_units_can_hold_is_told(
    root: Path, toy: CorpusRecord, slice_: str
) -> None:
    path = root / layout.stage("units-score", "toy") / "outcomes.parquet"
    outcomes = [r for r in schemas.read(path, schemas.OUTCOMES).to_pylist()
                if (r["slice"], r["basis"]) == (slice_, "units")]
    text = Page(part(toy, SETTINGS)).text()
    (said,) = re.findall(
        rf"of (\d+) needs? with an answer in the {slice_} slice these can never be covered: "
        r"(.*?)\. No single unit holds a bundle of these: (.*?)\.", text)
    assert int(said[0]) == len({r["need_id"] for r in outcomes if r["covered"] is not None})
    for measure, of in zip(("covered", "sufficient"), said[1:], strict=True):
        counts = re.findall(r"(\d+) in ([\w -]+?)(?:,| and|$)", of)
        told_ = {NAMES[name]: int(n) for n, name in counts}
        for retriever in ("bm25", "minilm", "mpnet"):
            for k in (1, 2, 3):  # neither of them can make a difference
                assert told_ == {name: sum(
                    r[f"{measure}_cause"] == "boundary" for r in outcomes if (
                        r["retriever"], r["segmentation"], r["amount"]) == (retriever, name, k)
                ) for name in NAMES.values()}
    assert "Blank lines between units lie in no unit" in text
    for cause in CAUSES:
        assert f"<dt>{cause}</dt>" in part(toy, SETTINGS)


def test_what_encoders_never_saw_is_told_for_each_segmentation(
    root: Path, tables: Tables
) -> None:
    rows = tables.starting("What lies beyond the encoder's window")
    for embedder in ("minilm", "mpnet"):
        path = root / layout.cell("units-retrieve", "toy", embedder) / "report.json"
        told_ = layout.read_report(path)["beyond_window"]
        mine = {NAMES[name]: cells for group, name, cells in rows if group == (
            f"{embedder} · window of 16 tokens, special ones included, as params.yaml asks")}
        assert mine == {n: [f"{v:,}" for v in counts.values()] for n, counts in told_.items()}
        assert int(mine["sections"][1]) > 0
    assert not any(group.startswith("bm25") for group, _, _ in rows)


def test_comparisons_in_view_and_all_of_them(root: Path, toy: CorpusRecord, tables: Tables) -> None:
    path = root / layout.stage("units-infer", "toy") / "comparisons.parquet"
    rows = schemas.read(path, schemas.UNIT_COMPARISONS).to_pylist()
    shown = [("units", 3), ("matched", 3), ("characters", 400), ("characters-cut", 400),
             ("tokens", 60), ("tokens-cut", 60)]
    assert re.findall(r"<th[^>]*>Pair</th>.*?</tr>", part(toy, SETTINGS))[0].count(
        "characters of 3 sections, need by need") == 1
    listed = tables.starting("Bundle coverage, development slice")
    assert len(listed) == 3 * 3 + 3 * 2  # pairs of segmentations, and each embedder minus BM25
    for group, pair, cells in listed:
        shared, kind = group.split(" · ")
        a, b = (NAMES.get(name, name) for name in pair.split(" − "))
        shared = NAMES.get(shared, shared)
        arms = ((f"{shared}/{a}", f"{shared}/{b}") if "segmentation" in kind
                else (f"{a}/{shared}", f"{b}/{shared}"))
        for cell, (basis, amount) in zip(cells, shown, strict=False):
            found = [r for r in rows if (r["slice"], r["basis"], r["amount"], r["measure"]) == (
                "development", basis, amount, "covered") and (r["a"], r["b"]) == arms]
            if basis == "matched" and "segmentation" not in kind:
                assert not found and not re.search(r"\d", cell)  # their amounts are not equal
                continue
            (row,) = found
            delta, low, high = (
                float(n.replace("−", "-")) for n in re.findall(r"[+−]?\d\.\d{3}", cell)[:3])
            assert (delta, low, high) == pytest.approx(
                (row["delta"], row["ci_low"], row["ci_high"]), abs=6e-4)
            assert "Holm p " in cell
        assert cells[6:] == [str(row[c]) for c in ("n_questions", "n_documents", "excluded")]
    every = sum(
        len(texts) for caption, of in tables.found.items() if " at equal " in caption
        for _, _, texts in of)
    # Matched, no embedder stands against BM25.
    assert every == len(rows) == 2 * 2 * ((3 + 2 * 3 + 2 * 4) * 15 + 3 * 9)
    assert f"The page holds {len(rows):,} comparisons of this corpus; " in Page(
        part(toy, SETTINGS)).text()
    clear = [r for r in rows if r["p_holm"] is not None and r["p_holm"] < 0.05
             and r["ci_low"] * r["ci_high"] > 0 and r["ci_low"] < r["ci_high"]
             and r["dz"] is not None]
    twice = [r for r in clear if (r["basis"], r["amount"]) in shown and r["slice"] == "development"]
    bold = re.findall(r'class="n top">([^<]*)<small>', part(toy, SETTINGS))
    assert 0 < len(clear) < len(rows) and len(bold) == len(clear) + len(twice)


def test_a_pair_reads_the_same_from_either_side(toy: CorpusRecord) -> None:
    assert toy.units is not None
    for a, b in (("sections", "blocks"), ("windows", "sections")):
        arms = (f"mpnet/{a}", f"mpnet/{b}")
        one_way = difference(toy.units, SETTINGS, arms, "units", 3)
        other = difference(toy.units, SETTINGS, arms[::-1], "units", 3)
        assert one_way.delta == -other.delta and one_way.low == -(other.high or 0)
        assert one_way.delta == pytest.approx(
            toy.units.means["mpnet", a, "development", "units", 3]["covered"]
            - toy.units.means["mpnet", b, "development", "units", 3]["covered"])


def test_connected_comparisons_stand_beside_the_others_and_change_none(
    root: Path, toy: CorpusRecord, tables: Tables
) -> None:
    assert toy.units is not None
    path = root / layout.stage("units-score", "toy") / "outcomes.parquet"
    outcomes = schemas.read(path, schemas.OUTCOMES).to_pylist()
    documents = {r["need_id"]: [r["doc_id"]] for r in outcomes}
    documents["doc-0-q0"] = ["doc-0", "doc-1"]
    rows = compare.comparisons(
        outcomes, ["minilm", "mpnet"], "bm25", SETTINGS.inference, documents)
    again = [r for r in rows if r["family"] == "connected"]
    rows.sort(key=lambda r: r["family"] != "connected")  # where the first of two would be taken
    units = units_record(toy.units.about, list(toy.units.means.values()), rows,
                         toy.units.windows, toy.units.retrievers())
    text = part(replace(toy, units=units), SETTINGS)
    found = Tables(text)
    new = {c: of for c, of in found.found.items() if c not in tables.found}
    assert {c: of for c, of in found.found.items() if c not in new} == tables.found
    assert [c.split(",")[0] for c in new] == [
        "Sensitivity: bundle coverage", "Sensitivity: single-unit sufficiency"]
    for of, measure in zip(new.values(), ("covered", "sufficient"), strict=True):
        assert len(of) == 3 * 3
        for group, pair, cells in of:
            retriever = group.split(" · ")[0]
            names = [f"{retriever}/{NAMES[name]}" for name in pair.split(" − ")]
            for cell, basis in zip(cells, ("units", "matched"), strict=False):
                (row,) = [r for r in again if (r["a"], r["b"]) == tuple(names) and (
                    r["basis"], r["amount"], r["measure"]) == (basis, 3, measure)]
                assert cell.split()[0] == f"{row['delta']:+.3f}".replace("-", "−").replace(
                    "+0.000", "0.000")
            assert cells[2:] == ["24", "7", "8"]  # of eight documents two are one cluster
    assert "<th scope=\"col\" class=\"n\">Clusters</th>" in text
    assert "Sensitivity" not in part(toy, SETTINGS)
    apart = f"The page holds {len(rows) - len(again):,} comparisons of this corpus, and "
    assert apart + "36 of them once more with connected" in Page(text).text()  # as many as shown
    verdict = Page(part(toy, SETTINGS)).text().split("The segmentation that leads")[0]
    assert Page(text).text().startswith(verdict)


def test_slices_are_never_in_one_table(tables: Tables) -> None:
    for caption in tables.found:
        of = [s for s in ("development slice", "reworded slice") if s in caption]
        assert len(of) == 1 or caption.startswith("What lies beyond")
    # Each of 8 documents has three needs of its own, one rewording, one without an answer.
    (caption,) = [c for c in tables.found if c.startswith("At equal units, development")]
    assert caption.endswith(
        "24 needs with an answer; 8 without one, apart, for nothing could hold it")
    (caption,) = [c for c in tables.found if c.startswith("At equal units, reworded")]
    assert caption.endswith("8 needs with an answer, none without")


def test_the_part_stands_where_it_was_asked_for_and_nowhere_else(html: str, root: Path) -> None:
    page = Page(html)
    assert "units-toy" in page.ids and "units-harbour" not in page.ids
    assert "Exact evidence units" not in page.text("c-harbour")
    assert html.index('id="units-toy"') > html.index('id="c-toy.depth"')
    assert html.index('id="units-toy"') < html.rindex("The questions behind the figures")
    alone = whole_page([gather(root, "harbour", SETTINGS)], SETTINGS)
    assert "vidence unit" not in alone and "units-retrieve" not in alone
    assert "Exact evidence units" in page.text("methods")
    for table in page.tables:
        assert len(table["caption"]) == 1
    text = page.text("units-toy")
    assert "units-retrieve · mpnet" in page.text("c-toy")
    assert "exploratory" in text and "confirmatory" not in text


def test_who_judged_is_said(toy: CorpusRecord) -> None:
    text = Page(part(toy, SETTINGS)).text()
    assert JUDGES["authored"] in text
    assert "written by the same hand as the corpus" in text
    assert "The wordings are by the same hand too" in text
    assert "agreement between the slices is no second confirmation" in text
    assert "headings, is cut in 3 ways: 64 blocks, 32 sections" in text
    assert "windows (of 12 tokens, 4 shared with the next)" in text
    others = replace(toy, demonstration=False, reports=[("ask", {"origin": "harvested"})])
    said = Page(part(others, SETTINGS)).text()
    assert JUDGES["harvested"] in said and "same hand" not in said


def test_lists_that_ended_early_are_told(toy: CorpusRecord) -> None:
    assert toy.units is not None
    assert "counted beside the mean, as ended" in Page(part(toy, SETTINGS)).text()
    full = {key: {**row, "ended": 0} for key, row in toy.units.means.items()}
    said = Page(part(replace(toy, units=replace(toy.units, means=full)), SETTINGS)).text()
    assert "No list was over before its budget was full." in said and " ended" not in said


# ---------------------------------------------------------------- escaping, files


def test_hostile_names_change_nothing_of_the_page(toy: CorpusRecord) -> None:
    assert toy.units is not None
    names = {"sections": world.HOSTILE, "bm25": '<img src=x onerror="1">&lt;'}

    def renamed(value: Any) -> Any:
        if isinstance(value, str):
            return "/".join(names.get(p, p) for p in value.split("/"))
        if isinstance(value, dict):
            return {renamed(k): renamed(v) for k, v in value.items()}
        return value

    retrievers = [renamed(name) for name in toy.units.retrievers()]
    hostile = units_record(
        renamed(toy.units.about), [renamed(r) for r in toy.units.means.values()],
        [renamed(r) for r in toy.units.comparisons.values()],
        {world.HOSTILE if name == "mpnet" else name: renamed(its)
         for name, its in toy.units.windows.items()}, retrievers,
    )
    text = part(replace(toy, units=hostile), SETTINGS)
    assert Page(text).shape == Page(part(toy, SETTINGS)).shape
    assert world.HOSTILE not in text and "<img" not in text and "<script" not in text
    assert world.HOSTILE in Page(text).text()


def test_metrics_hold_the_development_slice(root: Path, means: list[dict[str, Any]]) -> None:
    metrics = json.loads((root / "reports" / "metrics.json").read_text())
    assert "units" not in metrics["harbour"]
    told_ = metrics["toy"]["units"]
    assert (told_["standing"], told_["slice"]) == ("exploratory", "development")
    mine = [r for r in means if r["slice"] == "development"]
    for r in mine:
        found = told_[r["retriever"]][r["segmentation"]][r["basis"]][str(r["amount"])]
        assert found == {key: r[key] for key in ("sufficient", "covered", "characters", "tokens")}
    assert len(mine) == sum(
        len(amounts) for retriever, its in told_.items() if isinstance(its, dict)
        for bases in its.values() for amounts in bases.values())


def test_files_hold_every_row_of_the_tables(root: Path, means: list[dict[str, Any]]) -> None:
    def rows(name: str) -> list[dict[str, str]]:
        with (root / "reports" / name).open(encoding="utf-8") as file:
            return list(csv.DictReader(file))

    found = rows("tables/units-means.csv")
    assert len(found) == len(means) and {(r["corpus"], r["standing"]) for r in found} == {
        ("toy", "exploratory")}
    for r in found:
        its = one(means, r["retriever"], r["segmentation"], r["slice"], r["basis"],
                  int(r["amount"]))
        for key in ("covered", "characters", "ended", "covered_ranking"):
            if its[key] is None:
                assert r[key] == ""
            else:
                assert float(r[key]) == pytest.approx(its[key], rel=1e-11)
    path = root / layout.stage("units-infer", "toy") / "comparisons.parquet"
    pairs = schemas.read(path, schemas.UNIT_COMPARISONS)
    assert len(rows("tables/units-comparisons.csv")) == pairs.num_rows
    drawn = rows("plots/units.csv")
    assert list(drawn[0]) == [
        "corpus", "retriever", "segmentation", "amount", "covered", "sufficient", "line"]
    assert [(r["retriever"], r["segmentation"], int(r["amount"])) for r in drawn] == [
        (r, s, a) for r in ("bm25", "minilm", "mpnet") for s in NAMES.values()
        for a in (200, 400, 800)]
    for r in drawn:
        its = one(means, r["retriever"], r["segmentation"], "development", "characters-cut",
                  int(r["amount"]))
        assert (float(r["covered"]), float(r["sufficient"])) == pytest.approx(
            (its["covered"], its["sufficient"]), rel=1e-11)
        assert (r["corpus"], r["line"]) == ("toy", f"{r['retriever']} {r['segmentation']}")


def test_a_missing_artifact_of_the_study_is_named(root: Path, tmp_path: Path) -> None:
    shutil.copytree(root / "artifacts", tmp_path / "artifacts")
    means_ = tmp_path / layout.stage("units-infer", "toy") / "means.parquet"
    means_.unlink()
    with pytest.raises(InputError, match=r"units-infer/toy/means.parquet: no such table"):
        gather(tmp_path, "toy", SETTINGS)
    (tmp_path / layout.cell("units-retrieve", "toy", "mpnet") / "report.json").unlink()
    with pytest.raises(InputError, match=r"units-retrieve/toy/mpnet/report.json: not there"):
        gather(tmp_path, "toy", SETTINGS)
    (tmp_path / layout.stage("units", "harbour") / "report.json").unlink()
    with pytest.raises(InputError, match=r"units/harbour/report.json: not there"):
        gather(tmp_path, "harbour", SETTINGS)
