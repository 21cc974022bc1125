"""Sweeps: their own documents, never the primary cell, nothing of the study touched; repeated,
resumed and shared trials; what is kept by digest; what a person reads."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import pytest
import yaml

from spanwise import embedding, layout, params, schemas
from spanwise.chunking.cuts import measure
from spanwise.chunking.fixed import fixed
from spanwise.cli import main
from spanwise.corpora.apart import both, divide, drawn
from spanwise.documents.model import Corpus, Document, Paragraph, Question, sha256
from spanwise.documents.records import load_documents
from spanwise.errors import CorpusError, InputError, ParamsError, QuestionError
from spanwise.params import MEASURES, Params, SplitSettings
from spanwise.spans import Evidence, Span
from spanwise.sweep import bench, door, kept, looked, own, results, weight
from spanwise.sweep.bench import Bench, overlapped
from spanwise.sweep.space import Setting, draw
from spanwise.text.tokens import words

from .conftest import ROOT

TOPICS = {
    stem: words.split() for stem, words in {
        "tides": "tide gauge water harbour moon height level metre pier stone",
        "lamps": "lamp amber blink battery switch guard bulb glass beam signal",
        "boats": "boat keel winch rope anchor deck mast sail engine hull",
        "moss": "moss bog spore stem acid lichen peat rain fern soil",
    }.items()
}
OWN = ("boats", "moss")


def sentence(words: list[str], start: int) -> str:
    picked = [words[(start * 3 + i * i) % len(words)] for i in range(7)]
    return f"In case {start} the {' '.join(picked)}."


def write_corpus(folder: Path, split: dict[str, str]) -> None:
    """Four documents of three sections, four sentences each; three questions about each document.

    split: document -> split, in a manifest; empty for none.
    """
    folder.mkdir(parents=True)
    questions: list[dict[str, Any]] = []
    for stem, its in TOPICS.items():
        parts = [f"# About {stem}\n"]
        for place, title in enumerate(("Reading", "Care", "Limits")):
            sentences = [sentence(its, 10 * place + n) for n in range(4)]
            parts += [f"## {title}\n", "### Detail\n", " ".join(sentences) + "\n"]
            questions.append({
                "id": f"{stem}-{place}", "type": "factoid", "document": stem,
                "question": f"What of the {its[place]} and {its[place + 3]} in {title.lower()}?",
                "anchors": [{"quote": sentences[2]}],
            })
        (folder / f"{stem}.md").write_text("\n".join(parts), encoding="utf-8")
    if split:
        manifest = [{"path": f"{d}.md", "split": split.get(d, "study")} for d in TOPICS]
        (folder / "manifest.yaml").write_text(yaml.safe_dump(manifest), encoding="utf-8")
    (folder / "questions.yaml").write_text(yaml.safe_dump(questions), encoding="utf-8")


def settings_of(**sweep: Any) -> dict[str, Any]:
    found: dict[str, Any] = yaml.safe_load((ROOT / "params.yaml").read_text(encoding="utf-8"))
    found["corpora"] = {"toy": {"reader": "markdown", "path": "data/toy"}}
    found["tokens"]["tokenizer"] = "words"
    found["chunking"] = {"cap_tokens": 60, "floor_tokens": 20}
    found["inducers"]["segmenter"]["section_tokens"] = 40
    found["sweep"] = {
        "trials": 12, "startup": 4, "seed": 5, "window_tokens": [20, 40], "cap_tokens": [20, 40],
        "overlap_tokens": [0, 10], "floor_tokens": [1, 9], "step_tokens": 4, **sweep,
    }
    return found


def stage(name: str, *arguments: str) -> None:
    """Run a stage script here, as DVC does."""
    done = subprocess.run(
        [sys.executable, str(ROOT / "stages" / f"{name}.py"), *arguments], capture_output=True,
        text=True, check=False,
    )
    assert done.returncode == 0, done.stderr


@pytest.fixture(scope="module")
def parsed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A parsed corpus, to be copied."""
    folder = tmp_path_factory.mktemp("parsed")
    write_corpus(folder / "data" / "toy", dict.fromkeys(OWN, "sweep"))
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        (folder / "params.yaml").write_text(yaml.safe_dump(settings_of()), encoding="utf-8")
        stage("parse", "toy")
    return folder


@pytest.fixture
def project(parsed: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    shutil.copytree(parsed, tmp_path / "project")
    monkeypatch.chdir(tmp_path / "project")
    return tmp_path / "project"


def study() -> Params:
    return params.load()


def rewrite(**sweep: Any) -> Params:
    Path("params.yaml").write_text(yaml.safe_dump(settings_of(**sweep)), encoding="utf-8")
    return params.load()


def digests(root: Path) -> dict[str, str]:
    """Every file of a project but those that a sweep may write."""
    return {
        name: hashlib.sha256(path.read_bytes()).hexdigest() for path in sorted(root.rglob("*"))
        if path.is_file() and not (name := path.relative_to(root).as_posix()).startswith(
            ("artifacts/sweep/", "sweeps/", "mlruns/"))
    }


def test_a_sweep_leaves_its_trials_and_touches_nothing_of_the_study(
    project: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    before = digests(project)
    assert main(["sweep", "toy", "--embedder", "bm25", "--no-track"]) == 0
    out, error = capsys.readouterr()
    assert digests(project) == before
    (found,) = results.read_all(project, "toy")
    assert [row["number"] for row in found.trials] == list(range(12))
    settings = [tuple(row[name] for name in results.PARAMETERS) for row in found.trials]
    assert len(set(settings)) == 12  # none is tried twice
    assert (found.n_documents, found.n_questions) == (2, 6)
    assert {row["segmentation"] for row in found.trials} == {"fixed", "native"}
    assert {row["retrieval"] for row in found.trials} == {"flat"}
    assert "Exploratory" in out and f"{found.complete[0][found.measure]:.4f}" in out
    assert "%|" not in error and "no induced chunks" in error


# ---------------------------------------------------------------- the same again


def bm25(number: int = 12, workers: int = 1) -> results.Sweep:
    return door.sweep(study(), "toy", number, workers, "bm25").found


def test_a_seeded_sweep_repeats_itself_interrupted_or_not(
    project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = bm25()
    file = project / results.path("toy", "bm25")
    written = file.read_bytes()
    (project / "artifacts" / "sweep" / "toy" / "bm25" / "journal.log").unlink()
    real, calls = Bench.judge, []

    def stops(self: Bench, setting: Setting) -> bench.Outcome:
        calls.append(setting)
        if len(calls) in (4, 9):
            raise KeyboardInterrupt
        return real(self, setting)

    monkeypatch.setattr(Bench, "judge", stops)
    for _ in range(2):
        with pytest.raises(KeyboardInterrupt):
            bm25()
    assert bm25() == whole and file.read_bytes() == written
    assert len(calls) == 12 + 2  # the two that were cut off are judged again
    bm25()
    bm25(5)
    assert len(calls) == 12 + 2  # as many as wanted: none is drawn any more
    assert len(bm25(14).trials) == 14
    rewrite(seed=6)
    assert [row["window_tokens"] for row in bm25().trials] != [
        row["window_tokens"] for row in whole.trials
    ]


@pytest.mark.slow
@pytest.mark.usefixtures("project")
def test_several_processes_share_the_trials_and_take_over_from_one_that_died() -> None:
    code = (
        "import os\nfrom spanwise import params\nfrom spanwise.sweep import trials\n"
        "from spanwise.sweep.own import load\n"
        "s = params.load()\n"
        "j = trials.Journal(trials.Plan(s, load(s, 'toy'), 'bm25'))\n"
        "assert j.claim(8)\nos._exit(9)\n"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 9
    found = bm25(8, workers=2)
    assert [row["number"] for row in found.trials] == list(range(8))
    assert {row["state"] for row in found.trials} == {"complete"}
    alone = Bench(study(), own.load(study(), "toy"), "bm25")
    for row in found.trials:  # the figures do not depend on who judged
        setting = Setting(**{name: row[name] for name in results.PARAMETERS})
        assert dict(alone.judge(setting).means) == {m: row[m] for m in MEASURES}


@pytest.mark.slow
def test_a_call_that_goes_on_takes_over_from_one_that_is_killed_beside_it(project: Path) -> None:
    from spanwise.sweep import trials

    code = (
        "import time\nfrom spanwise import params\nfrom spanwise.sweep import trials\n"
        "from spanwise.sweep.own import load\n"
        "s = params.load()\n"
        "j = trials.Journal(trials.Plan(s, load(s, 'toy'), 'bm25'))\n"
        "assert j.claim(4)\nprint('claimed', flush=True)\ntime.sleep(300)\n"
    )
    mine = trials.Journal(trials.Plan(study(), own.load(study(), "toy"), "bm25"))
    with subprocess.Popen(
        [sys.executable, "-c", code], stdout=subprocess.PIPE, text=True, cwd=project
    ) as other:
        assert other.stdout is not None and other.stdout.readline() == "claimed\n"
        claimed = [mine.claim(4) for _ in range(4)]
        assert [one is None for one in claimed] == [False, False, False, True]  # it holds one
        other.kill()
        # Nobody has asked yet how it ended, so its number is not free: it is dead all the same.
        os.waitid(os.P_PID, other.pid, os.WEXITED | os.WNOWAIT)
        again = mine.claim(4)
        assert again is not None and again[0].user_attrs["place"] == 0
        assert mine.claim(4) is None


@pytest.mark.usefixtures("project")
def test_a_trial_that_cannot_be_judged_is_kept_with_its_reason() -> None:
    file = layout.parse("toy", "sweep") / "sections.parquet"
    sections = schemas.read(file, schemas.SECTIONS)
    kept_rows = [row for row in sections.to_pylist() if row["doc_id"] != "moss"]
    schemas.write(file, schemas.SECTIONS, schemas.table(schemas.SECTIONS, kept_rows))
    said = door.sweep(study(), "toy", 12, 1, "bm25")
    failed = {row["segmentation"] for row in said.found.failed}
    assert failed == {"native"} and {r["segmentation"] for r in said.found.complete} == {"fixed"}
    assert {row["reason"] for row in said.found.failed} == {"moss: no usable native tree"}
    assert len(said.found.trials) == 12  # a failed one counts: a sweep ends
    assert f"{len(said.found.failed)} failed: moss: no usable native tree" in said.text


@pytest.mark.usefixtures("project")
def test_a_space_smaller_than_the_sweep_is_tried_whole_and_the_sweep_still_ends() -> None:
    rewrite(segmentations=["native"], cap_tokens=[40, 40], floor_tokens=[9, 9], depths=[0, 2])
    found = bm25(6)
    assert {row["depth"] for row in found.trials[:3]} == {0, 1, 2} and len(found.trials) == 6


# ---------------------------------------------------------------- its own documents


def refused(kind: type[Exception], *words: str, embedder: str | None = "bm25") -> None:
    with pytest.raises(kind) as caught:
        door.sweep(study(), "toy", 1, 1, embedder)
    assert all(word in str(caught.value) for word in words), str(caught.value)
    assert not Path("artifacts/sweep").exists() and not Path("sweeps").exists()


@pytest.mark.usefixtures("project")
def test_the_primary_cell_is_refused_under_any_name() -> None:
    refused(ParamsError, "mpnet", "primary cell", "minilm, bm25", embedder="mpnet")
    other = settings_of()
    other["embedders"]["alias"] = dict(other["embedders"]["mpnet"])
    Path("params.yaml").write_text(yaml.safe_dump(other), encoding="utf-8")
    refused(ParamsError, "'alias' runs sentence-transformers/all-mpnet-base-v2", embedder="alias")
    refused(ParamsError, "no embedder 'none'", embedder="none")
    assert own.embedder_of(study(), None) == "minilm"
    del other["embedders"]["minilm"], other["embedders"]["alias"]
    other["inducers"]["segmenter"]["embedder"] = "mpnet"
    assert own.embedder_of(params.from_mapping(other), None) == "bm25"
    with pytest.raises(ParamsError, match="primary cell's"):
        rewrite(embedder="mpnet")


@pytest.mark.usefixtures("project")
def test_a_document_of_the_study_is_refused_by_name_by_text_and_as_evidence() -> None:
    folder = layout.parse("toy", "sweep")
    mine = schemas.read(folder / "documents.parquet", schemas.DOCUMENTS).to_pylist()
    theirs = schemas.read(layout.parse("toy") / "documents.parquet", schemas.DOCUMENTS).to_pylist()

    def put(rows: list[dict[str, Any]]) -> None:
        table = schemas.table(schemas.DOCUMENTS, rows)
        schemas.write(folder / "documents.parquet", schemas.DOCUMENTS, table)

    put([*mine, theirs[0]])
    refused(CorpusError, f"{theirs[0]['doc_id']!r} is a document of the study", "dvc repro parse")
    put([*mine, {**theirs[0], "doc_id": "copy"}])
    refused(CorpusError, f"'copy' reads like {theirs[0]['doc_id']!r}")
    put(mine[:1])
    refused(CorpusError, "needs 'moss', no document for sweeps")


@pytest.mark.usefixtures("project")
def test_a_corpus_without_documents_or_questions_for_it_says_the_mend() -> None:
    folder = layout.parse("toy", "sweep")
    for name, schema in (("questions", schemas.QUESTIONS), ("documents", schemas.DOCUMENTS)):
        table = schemas.table(schema, [])
        schemas.write(folder / f"{name}.parquet", schema, table)
        if name == "questions":
            refused(QuestionError, "no answerable question is about the 2 documents", "boats, moss")
    schemas.write(folder / "paragraphs.parquet", schemas.PARAGRAPHS,
                  schemas.table(schemas.PARAGRAPHS, []))
    refused(CorpusError, "`sweep: {share: 0.2}` below corpora.toy", "dvc repro parse@toy")
    asks = settings_of()
    asks["corpora"]["toy"]["sweep"] = {"share": 0.5}
    Path("params.yaml").write_text(yaml.safe_dump(asks), encoding="utf-8")
    refused(CorpusError, "parse has drawn none yet; run `dvc repro parse@toy`")


def test_a_seed_draws_whole_documents_that_leave_the_study_with_their_questions(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    write_corpus(tmp_path / "data" / "toy", {})
    asks = settings_of()
    asks["corpora"]["toy"]["sweep"] = {"share": 0.5, "seed": 3}
    Path("params.yaml").write_text(yaml.safe_dump(asks), encoding="utf-8")
    stage("parse", "toy")
    ids = {split: {d.doc_id for d in load_documents(layout.parse("toy", split))}
           for split in ("study", "sweep")}
    assert ids["study"] | ids["sweep"] == set(TOPICS) and len(ids["sweep"]) == 2
    assert not ids["study"] & ids["sweep"]
    counts = layout.read_report(layout.stage("parse", "toy") / "report.json")
    for split, found in ids.items():
        asked = schemas.read(layout.parse("toy", split) / "questions.parquet", schemas.QUESTIONS)
        assert set(asked["doc_id"].to_pylist()) == found
        assert counts[split]["documents"] == 2
        assert counts[split]["questions left out: another split"] == 6
    assert bm25(4).n_documents == 2
    write_corpus(tmp_path / "data" / "other", {"boats": "sweep"})
    toy = study().corpus("toy")
    with pytest.raises(CorpusError, match="manifest names 1 documents of split sweep"):
        both(toy.model_copy(update={"path": "data/other"}))
    with pytest.raises(CorpusError, match="leaves none for the study; lower it"):
        both(toy.model_copy(update={"sweep": SplitSettings(share=0.99)}))


def seen_again(name: str = "toy", **split: Any) -> None:
    """Parse the corpus with another split, and take its questions."""
    asks = settings_of()
    asks["corpora"] = {name: {"reader": "markdown", "path": f"data/{name}", "sweep": split}}
    Path("params.yaml").write_text(yaml.safe_dump(asks), encoding="utf-8")
    stage("parse", name)
    stage("ask", name)


def test_documents_that_a_sweep_has_looked_at_do_not_return_to_the_study_unsaid(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    write_corpus(tmp_path / "data" / "toy", {})
    seen_again(share=0.5, seed=3)
    mine = {d.doc_id for d in load_documents(layout.parse("toy", "sweep"))}
    real = Bench.judge

    def killed(self: Bench, setting: Setting) -> bench.Outcome:
        real(self, setting)
        raise KeyboardInterrupt

    with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
        patch.setattr(Bench, "judge", killed)
        bm25(2)
    # One that was cut off has looked as well.
    kept = looked.path("toy").read_text()
    assert set(json.loads(kept)["documents"]) == {sha256(name) for name in mine}
    assert not any(f'"{name}"' in kept for name in mine)  # git keeps it: no name, only digests
    bm25(2)
    before = looked.path("toy").read_bytes()
    named = sorted(mine)[0]

    other = next(  # a seed that moves a document of the sweep into the study
        seed for seed in range(99)
        if mine & (set(TOPICS) - drawn(list(TOPICS), SplitSettings(share=0.5, seed=seed)))
    )
    for split in ({"share": 0.5, "seed": other}, {}):
        seen_again(**split)
        left = looked.parsed("toy")
        assert left and set(left) <= mine
        capsys.readouterr()
        said = [main(["register", *more]) for more in ([], ["make", "--dry-run"])]
        error = capsys.readouterr().err
        assert said == [2, 2] and "is not registered: " in error
        assert left[0] in error and "put sweep.share and sweep.seed back" in error
        if split:
            with pytest.raises(CorpusError, match=r"is not swept: .* looked at by a sweep"):
                bm25(2)
        assert main(["sweep", "toy", "--show"]) == 0
        assert "looked at by a sweep" in capsys.readouterr().err
    assert left == sorted(mine)  # nothing is drawn: all are back
    shutil.copytree("data/toy", "data/renamed")
    seen_again("renamed")  # the same texts under another name
    assert looked.parsed("renamed") == sorted(mine)
    text = (tmp_path / "data" / "toy" / f"{named}.md").read_text(encoding="utf-8")
    (tmp_path / "data" / "toy" / f"{named}.md").write_text(text + "\nMore.\n", encoding="utf-8")
    seen_again()  # an edited document is the same one, and a manifest keeps it out for good
    assert looked.parsed("toy") == sorted(mine)
    manifest = [{"path": f"{d}.md", "split": "sweep" if d in mine else "study"} for d in TOPICS]
    (tmp_path / "data" / "toy" / "manifest.yaml").write_text(yaml.safe_dump(manifest))
    seen_again()
    assert looked.parsed("toy") == [] and bm25(2).n_documents == 2
    assert set(json.loads(before)["documents"]) == set(
        json.loads(looked.path("toy").read_text())["documents"])
    looked.path("toy").write_text("{}", encoding="utf-8")
    with pytest.raises(InputError, match=r"git checkout -- sweeps/toy\.json"):
        looked.parsed("toy")


def test_a_question_that_needs_documents_of_both_splits_goes_with_neither() -> None:
    ids = [f"d{n}" for n in range(10)]
    chosen = drawn(ids, SplitSettings(share=0.25, seed=1))
    assert len(chosen) == 3  # the nearest whole number, a half rounded up
    more = drawn([*ids, "d10"], SplitSettings(share=0.25, seed=1))
    assert len(chosen - more) <= 1  # a new document displaces no more than it must
    assert drawn(ids, SplitSettings(share=0.25, seed=2)) != chosen
    assert drawn(ids, SplitSettings()) == set()
    first, other = sorted(chosen)[0], sorted(set(ids) - chosen)[0]
    documents = tuple(Document(i, i, "Text.", (Paragraph(Span(0, 5), "paragraph"),)) for i in ids)
    asked = tuple(
        Question(name, doc, "?", "t", tuple(Evidence(e, 0, 4) for e in evidence))
        for name, doc, evidence in (
            ("mine", first, [first]), ("theirs", other, [other]), ("both", other, [first]),
        )
    )
    theirs, mine = divide(Corpus(documents, asked, "body"), SplitSettings(share=0.25, seed=1))
    assert [q.question_id for q in theirs.questions] == ["theirs"]
    assert [q.question_id for q in mine.questions] == ["mine"]
    assert theirs.counts["questions left out: documents of both splits"] == 1


def test_the_questions_of_a_question_file_are_split_with_the_documents(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    write_corpus(tmp_path / "data" / "toy", dict.fromkeys(OWN, "sweep"))
    (tmp_path / "data" / "toy" / "questions.yaml").unlink()
    asks = settings_of()
    asks["corpora"]["toy"]["questions"] = "questions/toy.jsonl"
    Path("params.yaml").write_text(yaml.safe_dump(asks), encoding="utf-8")
    stage("parse", "toy")
    lines: list[dict[str, Any]] = [{
        "format": "spanwise-questions-1", "corpus": "toy", "source": "toy",
        "source_sha256": "0" * 64, "sampled": {stem: {"factoid": 1} for stem in TOPICS},
    }]
    for split in ("study", "sweep"):
        for document in load_documents(layout.parse("toy", split)):
            its = document.paragraphs[0].span
            text = document.body[its.start : its.end]
            lines.append({
                "id": f"{document.doc_id}:factoid:{its.start}-{its.end}", "type": "factoid",
                "document": document.doc_id,
                "spans": [{"start": its.start, "end": its.end,
                           "sha256": hashlib.sha256(text.encode()).hexdigest()}],
                "question": f"Where would somebody look up {document.doc_id}?",
                "paraphrase": f"Which page tells of {document.doc_id}, please?",
            })
    Path("questions").mkdir()
    Path("questions/toy.jsonl").write_text("\n".join(map(json.dumps, lines)), encoding="utf-8")
    found = own.load(study(), "toy").questions.to_pylist()
    assert [question["doc_id"] for question in found] == list(OWN)


# ---------------------------------------------------------------- what a trial is


class Drawn:
    """Stands in a trial's place and draws by a generator, within the bounds that are given."""

    def __init__(self, seed: int) -> None:
        import numpy as np

        self.rng = np.random.default_rng(seed)

    def suggest_categorical(self, name: str, choices: list[str]) -> Any:
        assert name and choices
        return choices[self.rng.integers(len(choices))]

    def suggest_int(self, name: str, low: int, high: int, *, step: int = 1) -> int:
        assert (high - low) % step == 0, name  # Optuna would move the end, and say so each time
        return int(low + step * self.rng.integers((high - low) // step + 1))


def test_no_trial_is_impossible_and_no_range_that_would_make_one_is_taken() -> None:
    space = params.SweepSettings()
    seen = set()
    for seed in range(300):
        setting = draw(Drawn(seed), space, lexical=False)
        seen.add((setting.segmentation, setting.retrieval, bool(setting.depth)))
        setting.condition()
        if setting.segmentation != "fixed":
            setting.limits()
        assert (setting.sections is None) == (setting.retrieval == "flat")
    assert len(seen) == 1 + 2 * 2 * 2
    for wrong, why in (
        ({"floor_tokens": [10, 61]}, "half the lowest of cap_tokens"),
        ({"overlap_tokens": [0, 50]}, "below the lowest window_tokens"),
        ({"depths": [0, 5]}, "4 is the deepest"), ({"cap_tokens": [500, 120]}, "lowest and"),
        ({"segmentations": ["fixed", "fixed"]}, "each once"), ({"embedder": "no"}, "nor `bm25`"),
    ):
        with pytest.raises(ParamsError, match=why):
            params.from_mapping({**settings_of(), "sweep": wrong})


def test_windows_overlap_by_whole_sentences_within_the_limit() -> None:
    text = "One two. Three four. Five six. Seven eight. "
    document = Document("d", "d", text, (Paragraph(Span(0, len(text)), "paragraph"),))
    ruler = measure(document, words(), 100)
    spans, _ = fixed(ruler, len(text), 4, 100)
    assert [text[s.start : s.end] for s in spans] == [
        "One two. Three four. ", "Five six. Seven eight. "]
    for overlap, cap, second in (
        (1, 100, "Five six. "), (2, 100, "Three four. Five six. "), (3, 100, "Three four. Five"),
        (4, 100, "Three four. Five"), (4, 5, "Five six. "),
    ):
        made = overlapped(spans, ruler, overlap, cap)
        assert made[0] == spans[0] and made[1].end == spans[1].end
        assert text[made[1].start : made[1].end].startswith(second)


@pytest.mark.usefixtures("project")
def test_depth_and_routing_cut_nothing_again(monkeypatch: pytest.MonkeyPatch) -> None:
    cut: list[str] = []
    real = Bench.cut

    def counts(self: Bench, document: Document, *more: Any) -> Any:
        cut.append(document.doc_id)
        return real(self, document, *more)

    monkeypatch.setattr(Bench, "cut", counts)
    mine = own.load(study(), "toy")
    made = set()
    for depth in range(4):
        # A new bench each time, as in a new process: what is kept lies on disk.
        judge = Bench(study(), mine, "bm25")
        made.add(json.dumps(asdict(judge.judge(Setting("native", None, None, 40, 9, depth)))))
    assert cut == list(OWN) and len(made) > 1  # cut once; the prefix is searched
    Bench(study(), mine, "bm25").judge(Setting("native", None, None, 40, 5, 0))
    assert cut == [*OWN, *OWN]
    schemas.write(
        layout.parse("toy", "sweep") / "sections.parquet", schemas.SECTIONS,
        schemas.table(schemas.SECTIONS, [
            {**row, "level": row["level"] + 1} if row["level"] == 2 else row
            for row in schemas.read(
                layout.parse("toy", "sweep") / "sections.parquet", schemas.SECTIONS
            ).to_pylist()
        ]),
    )
    Bench(study(), mine, "bm25").judge(Setting("native", None, None, 40, 5, 0))
    assert cut == [*OWN, *OWN, *OWN]  # other trees are other chunks


@pytest.mark.slow
@pytest.mark.usefixtures("project")
def test_by_vectors_each_text_is_encoded_once_and_the_figures_are_the_twins(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    from . import reference_measures as twin

    encoded: list[str] = []
    real: Callable[..., Any] = embedding.embed

    def counts(texts: Any, *more: Any) -> Any:
        encoded.extend(texts)
        return real(texts, *more)

    monkeypatch.setattr(embedding, "embed", counts)
    mine = own.load(study(), "toy")
    flat = Setting("native", None, None, 40, 9, 1)
    outcome = Bench(study(), mine, "minilm").judge(flat)
    assert len(encoded) == len(set(encoded)) == outcome.chunks + 6
    again = Bench(study(), mine, "minilm")
    again.judge(replace(flat, retrieval="routed", sections=1))
    assert again.judge(flat) == outcome and len(encoded) == outcome.chunks + 6

    assert again.vectors is not None
    rows = again.chunks(flat).to_pylist()
    bodies = {d.doc_id: d.body for d in mine.documents}
    passages = [
        f"[{' › '.join(r['path'][:2])}]\n\n{bodies[r['doc_id']][r['start'] : r['end']].strip()}"
        for r in rows
    ]
    matrix = again.vectors.of(passages).astype(float)
    pieces = [
        twin.Piece(r["doc_id"], r["start"], r["end"], r["chunk_id"], r["tokens"],
                   len(" › ".join(r["path"][:2]).split()))
        for r in rows
    ]
    found = []
    for question in mine.questions.to_pylist():
        query = again.vectors.of([question["text"]]).astype(float)[0]
        order = sorted(range(len(rows)), key=lambda i: (-round(float(matrix[i] @ query), 6), i))
        gold = [twin.Piece(e["doc_id"], e["start"], e["end"]) for e in question["evidence"]]
        found.append(twin.measures([pieces[i] for i in order], pieces, gold, question["bundles"]))
    for name in MEASURES:
        expected = sum(f[name] or 0.0 for f in found) / len(found)
        assert outcome.means[name] == pytest.approx(expected, abs=1e-12)
    induced = Bench(study(), mine, "minilm")
    assert induced.judge(Setting("induced", None, None, 40, 9, 0)).chunks > 2
    before = len(encoded)
    kept.induced(mine, study(), induced.tokenizer, induced.folder)
    assert len(encoded) == before  # trees are kept too


# ---------------------------------------------------------------- what weighs


def rows_where(value: Callable[[dict[str, Any]], float], number: int = 40) -> list[dict[str, Any]]:
    """Trials drawn at random whose mean is a function of their setting."""
    space, rows = params.SweepSettings(), []
    for seed in range(number):
        row: dict[str, Any] = {
            "number": seed, "state": "complete", "reason": None, "chunks": 9, "mean_tokens": 30.5,
            **asdict(draw(Drawn(seed), space, lexical=False)), **dict.fromkeys(MEASURES, 0.0),
        }
        row["cov_ndcg@10"] = value(row)
        rows.append(row)
    return rows


def weighed(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return weight.importance(rows, "cov_ndcg@10", params.SweepSettings(), lexical=False)


def test_the_parameter_that_moves_the_measure_weighs_most() -> None:
    rows = rows_where(lambda row: row["depth"] / 4 + (row["window_tokens"] or 0) / 1e3)
    found = weighed(rows)
    assert found == weighed(rows)
    for part in ("structural", "routed", "fixed"):
        mine = [row for row in found if row["part"] == part]
        assert sum(row["importance"] for row in mine) == pytest.approx(1)
        first = "window_tokens" if part == "fixed" else "depth"
        assert mine[0]["parameter"] == first and mine[0]["importance"] > 0.8, mine
    assert not {"sections", "retrieval"} <= {r["parameter"] for r in found if r["part"] == "routed"}


def test_too_few_trials_or_no_difference_have_a_reason_in_place_of_a_weight() -> None:
    few = weighed(rows_where(lambda row: row["depth"] / 4, number=8))
    assert few and {row["importance"] for row in few} == {None}
    assert all("below 10" in row["reason"] for row in few)
    flat = weighed(rows_where(lambda row: 0.0 * row["depth"]))
    same = [row for row in flat if row["part"] == "structural"]
    assert {row["reason"] for row in same} == {"every trial came to the same"}


# ---------------------------------------------------------------- what is left of it


def a_sweep(corpus: str = "toy") -> results.Sweep:
    rows = rows_where(lambda row: row["depth"] / 4)
    rows[3] |= {"state": "failed", "reason": "no <b>tree", "chunks": None, "mean_tokens": None,
                **dict.fromkeys(MEASURES)}
    return results.Sweep(
        corpus, "minilm", "cov_ndcg@10", 10, 83, {"documents": "d", "questions": "q"},
        {"space": {"seed": 1}}, rows, weighed(rows),
    )


def test_results_come_back_as_they_were_and_an_edited_file_is_refused(tmp_path: Path) -> None:
    results.write(a_sweep(), tmp_path)
    file = tmp_path / results.path("toy", "minilm")
    (found,) = results.read_all(tmp_path, "toy")
    assert found == a_sweep() and results.read_all(tmp_path, "other") == []
    assert [row["number"] for row in found.complete[:2]] == sorted(
        row["number"] for row in found.complete if row["depth"] == 3)[:2]
    held = json.loads(file.read_text(encoding="utf-8"))
    assert held["standing"] == "exploratory"
    for change in (
        {"measure": "luck"}, {"corpus": "x"}, {"trials": [{"number": 1}]}, {"importance": None},
        {"trials": [{**held["trials"][0], "state": "failed"}]},
    ):
        file.write_text(json.dumps({**held, **change}), encoding="utf-8")
        with pytest.raises(InputError, match="run `spanwise sweep` again"):
            results.read_all(tmp_path, "toy")


@pytest.mark.usefixtures("project")
def test_show_finds_what_is_there_whoever_ranked(capsys: pytest.CaptureFixture[str]) -> None:
    def said(*more: str) -> tuple[int, str, str]:
        code = main(["sweep", "toy", "--show", *more])
        return code, *capsys.readouterr()

    code, _, error = said()
    assert code == 2 and error == "error: sweeps/toy: not there; run `spanwise sweep toy`\n"
    results.write(replace(a_sweep(), embedder="bm25"))
    text = said()[1]  # params.yaml would have minilm
    assert text.startswith("toy, bm25: 40 trials") and json.loads(said("--json")[1])["best"]
    code, _, error = said("--embedder", "minilm")
    assert code == 2 and "there is bm25: `spanwise sweep toy --show --embedder bm25`" in error
    results.write(a_sweep())
    both = said()[1]
    assert both.startswith(text.rstrip("\n")) and "\ntoy, minilm: 40 trials" in both
    assert said("--embedder", "bm25")[1] == text
    code, out, error = said("--json")
    assert (code, out) == (2, "") and "several (bm25, minilm); add --embedder bm25" in error
    found = json.loads(said("--json", "--embedder", "minilm")[1])
    assert (found["embedder"], found["standing"]) == ("minilm", "exploratory")


def test_the_page_and_its_tables_show_a_sweep_as_exploratory(tmp_path: Path) -> None:
    import csv

    from spanwise.reporting import report

    from . import reporting_world as world

    settings = world.settings()
    world.build(tmp_path, settings)
    report(tmp_path, settings)
    assert "Sweeps" not in (tmp_path / "reports" / "report.html").read_text(encoding="utf-8")
    found = a_sweep("harbour")
    results.write(found, tmp_path)
    report(tmp_path, settings)
    page = (tmp_path / "reports" / "report.html").read_text(encoding="utf-8")
    part = page[page.index("<h3>Sweeps") :].split("<h3>", 2)[1]
    assert part.startswith('Sweeps <span class="tag open">exploratory</span>')
    best = found.complete[0]
    assert f"The best trial is number {best['number']}: {best['segmentation']}" in part
    assert "chosen on these very questions" in part and "register" in part
    assert "1 trial failed: no &lt;b&gt;tree." in part and "fANOVA" in part
    assert page.count("<h3>Sweeps") == 1

    def lines(name: str) -> list[dict[str, str]]:
        return list(csv.DictReader((tmp_path / "reports" / name).open(encoding="utf-8")))

    told = lines("tables/sweep-trials.csv")
    assert len(told) == 40 and {line["standing"] for line in told} == {"exploratory"}
    assert told[3]["reason"] == "no <b>tree" and told[3]["cov_ndcg@10"] == ""
    weights = lines("tables/sweep-importance.csv")
    told_weights = [float(w["importance"]) if w["importance"] else None for w in weights]
    for shown, its in zip(told_weights, found.importance, strict=True):
        weight_ = its["importance"]
        assert shown == (None if weight_ is None else pytest.approx(weight_, rel=1e-11))
    assert all(bool(w["importance"]) != bool(w["reason"]) for w in weights)
    along = [line for line in lines("plots/sweep.csv") if line["parameter"] == "depth"]
    assert len(along) == sum(row["segmentation"] != "fixed" for row in found.complete)
    assert all(float(line["mean"]) == int(line["value"]) / 4 for line in along)


def test_a_study_with_documents_that_a_sweep_looked_at_says_so_on_its_page(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from spanwise.reporting import report

    from . import reporting_world as world

    settings = world.settings()
    world.build(tmp_path, settings)
    monkeypatch.chdir(tmp_path)
    table = schemas.read(layout.parse("toy") / "documents.parquet", schemas.DOCUMENTS)
    row = table.to_pylist()[0]
    paragraphs = (Paragraph(Span(0, 9), "paragraph"),)
    looked.keep("toy", [Document(row["doc_id"], row["title"], row["body"], paragraphs)])
    (harbour, toy) = report(tmp_path, settings)
    told = f"1 document of this study was looked at by a sweep: {row['doc_id']}"
    assert toy.looked_at == [row["doc_id"]] and harbour.looked_at == []
    assert toy.standing == "exploratory" and toy.differences[-1] == told
    page = (tmp_path / "reports" / "report.html").read_text(encoding="utf-8")
    part = page[page.index("<h3>Sweeps") :].split("<h3>", 2)[1]
    assert f"{told}. What was chosen there cannot be confirmed here." in part
    # A protocol that was fixed before anybody looked stays fixed; the page says so all the same.
    table = schemas.read(layout.parse("harbour") / "documents.parquet", schemas.DOCUMENTS)
    row = table.to_pylist()[0]
    looked.keep("harbour", [Document(row["doc_id"], row["title"], row["body"], paragraphs)])
    harbour = report(tmp_path, settings)[0]
    assert harbour.looked_at and harbour.standing == "confirmatory" and not harbour.differences
    page = (tmp_path / "reports" / "report.html").read_text(encoding="utf-8")
    assert page.count("What was chosen there cannot be confirmed here.") == 2


def test_each_trial_is_one_run_apart_from_the_study_and_none_is_added_twice(
    tmp_path: Path, blank: Path
) -> None:
    from spanwise.tracking import track_sweeps

    from .test_tracking import copy_to
    from .tracking_world import client_of

    settings, uri = params.from_mapping(settings_of()), copy_to(tmp_path / "store", blank)
    assert track_sweeps(tmp_path, settings, "toy", uri).added == 0
    client = client_of(uri)
    assert client.get_experiment_by_name("spanwise/sweep/toy") is None
    found = a_sweep()
    results.write(replace(found, trials=found.trials[:5]), tmp_path)
    first = track_sweeps(tmp_path, settings, "toy", uri)
    again = track_sweeps(tmp_path, settings, "toy", uri)
    assert (first.added, first.kept, again.added, again.kept) == (5, 0, 0, 5)
    experiment = client.get_experiment_by_name("spanwise/sweep/toy")
    runs = {r.data.tags["trial"]: r for r in client.search_runs([experiment.experiment_id])}
    assert sorted(runs) == ["0", "1", "2", "3", "4"]
    assert {r.data.tags["standing"] for r in runs.values()} == {"exploratory"}
    assert {r.data.tags["primary"] for r in runs.values()} == {"false"}
    assert client.get_experiment_by_name("spanwise/toy") is None
    for row in found.trials[:5]:
        run = runs[str(row["number"])]
        assert run.data.tags["state"] == row["state"]
        assert run.data.params["segmentation"] == row["segmentation"]
        assert run.data.metrics.get("cov_ndcg_at_10") == row["cov_ndcg@10"]
    assert runs["3"].data.tags["reason"] == "no <b>tree"


@pytest.mark.usefixtures("project")
def test_what_was_found_is_shown_again_and_as_json(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["sweep", "toy", "--embedder", "bm25", "--show"]) == 2
    assert "run `spanwise sweep toy --embedder bm25`" in capsys.readouterr().err
    call = ["sweep", "toy", "--embedder", "bm25", "--trials", "3", "--no-track", "--json"]
    assert main(call) == 0
    told = json.loads(capsys.readouterr().out)
    assert told["standing"] == "exploratory" and "chosen on these very" in told["warning"]
    assert told["best"] == max(told["trials"], key=lambda r: (r["cov_ndcg@10"], -r["number"]))
    assert main(["sweep", "toy", "--embedder", "bm25", "--show", "--json"]) == 0
    assert json.loads(capsys.readouterr().out) == told
    assert main(["sweep", "nobody"]) == 2
    assert "params.yaml has toy" in capsys.readouterr().err
