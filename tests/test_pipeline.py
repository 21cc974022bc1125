"""The whole pipeline by `dvc repro` on a toy corpus, with the real weak embedder."""

from __future__ import annotations

import hashlib
import math
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
import yaml

from spanwise import params, schemas

from . import reference_statistics
from .conftest import ROOT
from .reference_pipeline import Artifacts

pytestmark = pytest.mark.slow

TOPICS = {
    "tides": [
        "tide", "gauge", "water", "harbour", "moon",
        "height", "level", "metre", "pier", "stone",
    ],
    "lamps": [
        "lamp", "amber", "blink", "battery", "switch",
        "guard", "bulb", "glass", "beam", "signal",
    ],
    "boats": [
        "boat", "keel", "winch", "rope", "anchor",
        "deck", "mast", "harbour", "sail", "engine",
    ],
    "moss": [
        "moss", "bog", "spore", "stem", "acid",
        "water", "lichen", "peat", "rain", "stone",
    ],
}
SECTIONS = ("Reading", "Care", "Limits")


def sentence(words: list[str], start: int) -> str:
    picked = [words[(start * 3 + i * i) % len(words)] for i in range(9)]
    return f"In case {start} the {' '.join(picked)}."


def write_corpus(folder: Path, reverse: bool) -> None:
    """Four documents of three sections, eight sentences each; twelve questions about one sentence,
    one whose two bundles lie in two documents, one reworded, one about a heading alone, one that
    nothing answers."""
    folder.mkdir(parents=True)
    questions: list[dict[str, Any]] = []
    manifest = []
    for number, (stem, words) in enumerate(TOPICS.items()):
        parts = [f"# About {stem}\n"]
        for place, title in enumerate(SECTIONS):
            sentences = [sentence(words, 10 * place + n) for n in range(8)]
            parts += [f"## {title}\n", "### Detail\n", " ".join(sentences) + "\n"]
            questions.append({
                "id": f"{stem}-{place}", "type": "factoid", "document": stem,
                "question": f"What of the {words[place]} and the {words[place + 3]} in case "
                            f"{10 * place + 2}?",
                "anchors": [{"quote": sentences[2]}],
            })
        (folder / f"{stem}.md").write_text("\n".join(parts), encoding="utf-8")
        manifest.append({"path": f"{stem}.md", "source": "toy", "document": stem,
                         "version": str(number + 1), "current": True, "permitted": True,
                         "split": "study"})
    (folder / "secret.md").write_text("# Secret\n\nquillfeather text\n", encoding="utf-8")
    manifest.append({"path": "secret.md", "source": "toy", "document": "secret", "version": "1",
                     "current": True, "permitted": False, "split": "study"})
    questions.append({"id": "reworded", "base": "tides-0", "question": "Say it otherwise?"})
    questions.append({
        "id": "both", "type": "multihop", "document": "tides",
        "question": "What of the moon, and what of the spore?", "bundles": [[0, 1], [0, 2]],
        "anchors": [{"quote": sentence(TOPICS["tides"], 5)},
                    {"quote": sentence(TOPICS["moss"], 13), "document": "moss"},
                    {"from": "In case 24 the", "to": sentence(TOPICS["moss"], 25),
                     "document": "moss"}],
    })
    questions.append({"id": "heading", "type": "structural", "document": "boats",
                      "question": "What is it about?", "anchors": [{"quote": "About boats"}]})
    questions.append({"id": "nothing", "type": "no-answer", "document": "moss",
                      "question": "Who?"})
    if reverse:
        questions.reverse()
        manifest.reverse()
    (folder / "manifest.yaml").write_text(yaml.safe_dump(manifest), encoding="utf-8")
    (folder / "questions.yaml").write_text(yaml.safe_dump(questions), encoding="utf-8")


def make_project(folder: Path, *, reverse: bool = False) -> Path:
    for name in ("src", "stages", "questions", "sweeps"):
        shutil.copytree(ROOT / name, folder / name,
                        ignore=shutil.ignore_patterns("__pycache__", "*.egg-info"))
    for name in ("dvc.yaml", ".dvcignore"):
        shutil.copy(ROOT / name, folder / name)
    settings = yaml.safe_load((ROOT / "params.yaml").read_text(encoding="utf-8"))
    settings["corpora"] = {"toy": {"reader": "markdown", "path": "data/toy", "units": True}}
    settings["embedders"] = {"minilm": settings["embedders"]["minilm"]}
    settings["primary"]["embedder"] = "minilm"
    settings["inference"]["iterations"] = 200
    settings["chunking"] = {"cap_tokens": 60, "floor_tokens": 20}
    settings["inducers"]["segmenter"]["section_tokens"] = 50
    (folder / "params.yaml").write_text(yaml.safe_dump(settings, sort_keys=False))
    (folder / "registration.json").write_text('{"entries": []}\n')
    write_corpus(folder / "data" / "toy", reverse)
    for command in (["git", "init", "-q"], ["dvc", "init", "-q"]):
        run(folder, *command)
    return folder


def run(folder: Path, *command: str, **environment: str) -> str:
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    done = subprocess.run(
        command, cwd=folder, capture_output=True, text=True, check=False,
        env={**os.environ, "PATH": path, "MLFLOW_TRACKING_URI": "", **environment},
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def ran(output: str) -> list[str]:
    return re.findall(r"Running stage '([^']+)'", output)


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = make_project(tmp_path_factory.mktemp("project"))
    run(folder, "dvc", "repro", SPANWISE_WORKERS="2")
    return folder


def rows(project: Path, table: str, schema: schemas.Schema) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = schemas.read(project / "artifacts" / table, schema).to_pylist()
    return found


def test_from_documents_to_contrasts(project: Path) -> None:
    found = {
        row["name"]: row
        for row in rows(project, "infer/toy/contrasts.parquet", schemas.CONTRASTS)
        if row["measure"] == "cov_ndcg@10" and row["family"] == "contrast"
    }
    assert set(found) == {"C1", "C2", "C3", "C4"}
    assert found["C1"]["status"] == "absent" and "no contexts" in found["C1"]["reason"]
    for name in ("C2", "C3", "C4"):
        row = found[name]
        assert row["status"] == "estimated" and row["standing"] == "exploratory"
        assert (row["n_questions"], row["n_documents"]) == (13, 4)
        assert row["ci_low"] <= row["delta"] <= row["ci_high"]
        assert row["interval"] == "linearised"  # four documents
        if row["p"] is None:
            assert row["se"] == 0 and "do not vary" in row["reason"]
        else:
            assert row["p_holm"] >= row["p"]
    scored = rows(project, "score/toy/scores.parquet", schemas.SCORES)
    assert {r["condition"] for r in scored} == {
        "A0", "A2", "A3-d1", "A3-d2", "A3", "A4", "P", "G2", "G3", "G4", "BM25"
    }
    nothing = [r for r in scored if r["question_id"] == "nothing"]
    assert nothing and all(r["cov_ndcg@10"] is None for r in nothing)
    assert (project / "reports" / "report.html").exists()
    assert (project / "reports" / "metrics.json").exists()


@pytest.fixture(scope="module")
def again(project: Path) -> Artifacts:
    return Artifacts(project, "toy", "minilm")


def test_evidence_on_body_is_that_on_raw_character_by_character(again: Artifacts) -> None:
    for question in again.questions.values():
        spans = [
            {(e["doc_id"], i) for i in range(e["start"], e["end"])} for e in question["evidence"]
        ]
        found = [set().union(*(spans[i] for i in bundle)) for bundle in question["bundles"]]
        assert found == again.evidence(question), question["question_id"]
    assert again.questions["heading"]["excluded"] == "evidence only in headings"
    assert len(again.questions["both"]["bundles"]) == 2


def test_placebos_are_all_paths_of_their_depth_given_to_other_documents(again: Artifacts) -> None:
    import json

    own: dict[tuple[str, tuple[str, ...]], set[str]] = {}
    for row in again.labels["induced-placebo-3"]:
        path = tuple(again.chunks["induced", row["chunk_id"]]["path"][:4])
        own.setdefault((row["doc_id"], path), set()).add(row["prefix"])
    given = sorted(prefix for held in own.values() for prefix in held)
    assert given == sorted(f"[{' › '.join(path)}]\n\n" for _, path in own)
    assert all(next(iter(held)).count(" › ") + 1 == len(path) for (_, path), held in own.items())
    at_home = sum(next(iter(held)).startswith((f"[{path[0]} › ", f"[{path[0]}]"))
                  for (_, path), held in own.items())
    report = json.loads((again.project / "artifacts/label/toy/report.json").read_text())
    assert at_home == report["placebo"]["induced"]["residual"]


def test_every_ranking_is_the_sorted_list_of_cosines(again: Artifacts) -> None:
    compared = 0
    for name, its in again.params.conditions.items():
        if its.retrieval == "bm25" or its.prefix == "context":
            continue
        for question in again.questions.values():
            listed, kept, recall = again.ranking(name, question)
            assert again.runs[name, question["question_id"]] == listed
            if its.retrieval == "routed":
                routed = again.routing[name, question["question_id"]]
                assert (routed["kept"], routed["section_recall"]) == (kept, recall)
            compared += 1
    assert compared == 10 * len(again.questions)


def test_every_score_is_that_of_sets_of_characters(again: Artifacts) -> None:
    for (condition, name), scored in again.scores.items():
        for measure, value in again.measures(condition, again.questions[name]).items():
            assert scored[measure] == (None if value is None else pytest.approx(value, abs=1e-12))
    assert len(again.scores) == 11 * len(again.questions)


def test_contrasts_follow_from_the_scores_and_the_draws(
    again: Artifacts, project: Path
) -> None:
    import statistics

    import numpy as np
    from scipy.stats import t

    steps = len(params.load(project / "params.yaml").steps)
    beside = {(row["family"], row["name"]): row
              for row in again.rows("infer", "checks", schemas.CHECKS)}
    home = {q["question_id"]: q["doc_id"] for q in again.primary}
    draws: dict[tuple[str, str], list[float]] = {}
    for row in again.rows("infer", "replicates", schemas.REPLICATES):
        draws.setdefault((row["name"], row["measure"]), []).append(row["delta"])
    for measure in ("cov_ndcg@10", "recall@50", "coverage@512", "sufficient@3"):
        mine = [c for c in again.contrasts if c["measure"] == measure
                and c["status"] == "estimated" and c["family"] in ("contrast", "connected", "step")]
        for row in mine:
            paired = again.deltas(row["a"], row["b"], measure)
            deltas = list(paired.values())
            assert row["delta"] == pytest.approx(statistics.fmean(deltas), abs=1e-12)
            spread = statistics.stdev(deltas)
            assert row["dz"] == (pytest.approx(statistics.fmean(deltas) / spread) if spread > 1e-9
                                 else None)
            if row["family"] == "connected":
                continue
            # Four documents: Student's interval with three degrees of freedom is of record.
            by_document: dict[str, list[float]] = {}
            for question, delta in paired.items():
                by_document.setdefault(home[question], []).append(delta)
            size = len(deltas) / len(by_document)
            apart = [(sum(d) - row["delta"] * len(d)) / size for d in by_document.values()]
            error = math.sqrt(sum(u * u for u in apart) / (4 * 3))
            half = float(t.ppf(0.975, 3)) * error
            ends = [row["ci_low"], row["ci_high"]]
            assert ends == pytest.approx([row["delta"] - half, row["delta"] + half], abs=1e-12)
            if error > 1e-12:
                assert row["p"] == pytest.approx(2 * float(t.sf(abs(row["delta"]) / error, 3)))
            if measure == "cov_ndcg@10":
                drawn, its = draws[row["name"], measure], beside[row["family"], row["name"]]
                ends = [its["percentile_low"], its["percentile_high"]]
                assert ends == pytest.approx(np.percentile(drawn, [2.5, 97.5]), abs=1e-12)
                tails = [sum(d <= 0 for d in drawn), sum(d >= 0 for d in drawn)]
                assert its["percentile_p"] == pytest.approx(min(1.0, 2 * min(tails) / len(drawn)))
        for family, m in (("contrast", 4), ("connected", 4), ("step", steps)):
            held = [row for row in mine if row["family"] == family and row["p"] is not None]
            assert [row["p_holm"] for row in held] == pytest.approx(
                reference_statistics.holm([row["p"] for row in held], m)
            )
    # tides and moss share a question's evidence: three clusters of four documents, same delta.
    by_family = {(c["family"], c["name"]): c for c in again.contrasts
                 if c["measure"] == "cov_ndcg@10"}
    assert by_family["connected", "C2"]["n_documents"] == 3
    assert by_family["connected", "C2"]["delta"] == by_family["contrast", "C2"]["delta"]
    assert by_family["connected", "C2"]["standing"] == "exploratory"
    slopes = [
        np.polyfit(range(4), [again.scores[c, q["question_id"]]["cov_ndcg@10"]
                              for c in ("A2", "A3-d1", "A3-d2", "A3")], 1)[0]
        for q in again.primary
    ]
    assert by_family["dose", "depth-induced"]["delta"] == pytest.approx(np.mean(slopes), abs=1e-12)


def test_a_question_about_a_document_without_a_tree_says_that_it_left(
    project: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import json

    from spanwise.show import find

    shutil.copytree(project / "artifacts", tmp_path / "artifacts")
    path = tmp_path / "artifacts/chunk/toy/report.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | {"unusable_induced_trees": ["moss"]}))
    monkeypatch.chdir(tmp_path)
    study = params.load(project / "params.yaml")
    for name in ("moss-0", "both"):  # its own document, and one that evidence lies in
        question = find(study, name).question
        assert question["excluded"] == "document without a usable induced tree"
    assert find(study, "tides-0").question["excluded"] is None


def test_nothing_of_an_excluded_body_is_anywhere(project: Path) -> None:
    scanned = 0
    for path in [*(project / "artifacts").rglob("*"), *(project / "reports").rglob("*"),
                 *(project / "mlruns").rglob("*"), project / "dvc.lock"]:
        if path.is_file():
            text = path.read_bytes()
            if path.suffix == ".parquet":  # compressed: its rows are what it says
                text = repr(pq.read_table(path, partitioning=None).to_pylist()).encode()
                scanned += 1
            assert b"quillfeather" not in text, path
    assert scanned > 30
    documents = rows(project, "parse/toy/study/documents.parquet", schemas.DOCUMENTS)
    assert [d["doc_id"] for d in documents] == sorted(TOPICS)


def test_the_recorded_run_file_scores_as_the_pipeline_did(project: Path) -> None:
    """`spanwise score` and the stage agree to the last bit, through files of another form."""
    import json

    questions = [
        {"question_id": q["question_id"], "doc_id": q["doc_id"], "text": q["text"],
         "evidence": q["evidence"], "bundles": q["bundles"]}
        for q in rows(project, "ask/toy/questions.parquet", schemas.QUESTIONS)
        if q["excluded"] is None
    ]
    prefix = {r["chunk_id"]: r["prefix_tokens"]
              for r in rows(project, "label/toy/labels.parquet", schemas.LABELS)
              if r["label"] == "induced-path-3"}
    chunks = [
        {k: c[k] for k in ("chunk_id", "doc_id", "start", "end", "tokens")}
        | {"prefix_tokens": prefix[c["chunk_id"]]}
        for c in rows(project, "chunk/toy/chunks.parquet", schemas.CHUNKS)
        if c["segmentation"] == "induced"
    ]
    for name, listed in (("q", questions), ("c", chunks)):
        lines = "".join(json.dumps(item) + "\n" for item in listed)
        (project / f"{name}.jsonl").write_text(lines, encoding="utf-8")
    expected = {
        r["question_id"]: r for r in rows(project, "score/toy/scores.parquet", schemas.SCORES)
    }
    for condition in ("A3", "A4"):
        expected = {
            r["question_id"]: r for r in rows(project, "score/toy/scores.parquet", schemas.SCORES)
            if r["condition"] == condition
        }
        out = run(
            project, "spanwise", "score", "--questions", "q.jsonl", "--chunks", "c.jsonl", "--run",
            f"artifacts/retrieve/toy/minilm/trec/{condition}.trec",
        )
        scored = [json.loads(line) for line in out.splitlines()]
        assert len(scored) == len(questions)
        for row in scored:
            for measure in row.keys() - {"question_id", "doc_id"}:
                assert row[measure] == expected[row["question_id"]][measure], (condition, measure)


def test_a_second_repro_only_tracks_and_adds_nothing(project: Path) -> None:
    output = run(project, "dvc", "repro")
    assert ran(output) == ["track"]
    assert re.search(r"added 0 runs, kept [1-9]", output)


def test_a_new_arm_embeds_only_texts_not_seen_before(project: Path) -> None:
    path = project / "params.yaml"
    before = path.read_text()
    settings = yaml.safe_load(before)
    settings["conditions"]["G3-d1"] = {
        "segmentation": "native", "prefix": "path", "depth": 1, "retrieval": "flat"
    }
    path.write_text(yaml.safe_dump(settings, sort_keys=False))
    output = run(project, "dvc", "repro", "label@toy", "embed@toy-minilm")
    labels = rows(project, "label/toy/labels.parquet", schemas.LABELS)
    old = {r["text_sha256"] for r in labels if r["label"] != "native-path-1"}
    new = {r["text_sha256"] for r in labels if r["label"] == "native-path-1"} - old
    computed = re.search(r"(\d+) of \d+ vectors were computed now", output)
    assert computed and int(computed.group(1)) == len(new) > 0
    path.write_text(before)
    run(project, "dvc", "repro", "embed@toy-minilm")


def test_results_are_the_same_bytes_with_other_workers_and_in_another_order(
    project: Path, tmp_path: Path
) -> None:
    other = make_project(tmp_path, reverse=True)
    run(other, "dvc", "repro", "infer@toy", "units-infer@toy", SPANWISE_WORKERS="1")
    compared = 0
    for path in sorted((other / "artifacts").rglob("*")):
        inside = path.relative_to(other)
        if path.suffix in (".parquet", ".trec", ".json") and "parse" not in inside.parts:
            assert path.read_bytes() == (project / inside).read_bytes(), inside
            compared += 1
    assert compared > 20


def test_show_marks_the_evidence_and_fresh_retrieval_agrees(project: Path) -> None:
    output = run(project, "spanwise", "show", "tides-0", "--fresh", "--condition", "A3",
                 "--condition", "A4", "--condition", "A1", "--top", "50")
    assert "⟦In case 2 the" in output
    assert output.count("agrees with the record") == 2
    assert "absent: no contexts were asked for" in output


def test_what_units_hold_is_what_sets_of_characters_say(project: Path) -> None:
    """Every figure at equal units again, from the documents' text, the runs and the anchors."""
    texts = {d["doc_id"]: d["raw"]
             for d in rows(project, "parse/toy/study/documents.parquet", schemas.DOCUMENTS)}
    anchors: dict[str, list[set[tuple[str, int]]]] = {}
    for row in rows(project, "units/toy/anchors.parquet", schemas.ANCHORS):
        assert texts[row["doc_id"]][row["start"] : row["end"]] == row["quote"]
        anchors.setdefault(row["question_id"], []).append(
            {(row["doc_id"], i) for i in range(row["start"], row["end"])}
        )
    places: dict[str, set[tuple[str, int]]] = {}
    for name in ("blocks", "sections", "windows"):
        for row in rows(project, f"units/toy/{name}.parquet", schemas.UNITS):
            text = texts[row["doc_id"]][row["start"] : row["end"]]
            assert row["text_sha256"] == hashlib.sha256(text.encode()).hexdigest()
            places[row["passage_id"]] = {(row["doc_id"], i)
                                         for i in range(row["start"], row["end"])}
    lists: dict[tuple[str, str, str], list[str]] = {}
    for retriever in ("bm25", "minilm"):
        for row in rows(project, f"units-retrieve/toy/{retriever}/runs.parquet",
                        schemas.UNIT_RUNS):
            key = (retriever, row["segmentation"], row["need_id"])
            lists.setdefault(key, []).append(row["passage_id"])
    needs = {n["need_id"]: n for n in rows(project, "units/toy/needs.parquet", schemas.NEEDS)}
    assert needs["reworded"]["anchored_by"] == "tides-0" and needs["nothing"]["bundles"] == []
    assert needs["both"]["bundles"] == [[0, 1], [0, 2]]
    compared = 0
    for row in rows(project, "units-score/toy/outcomes.parquet", schemas.OUTCOMES):
        if row["basis"] != "units":
            continue
        need = needs[row["need_id"]]
        top = lists.get((row["retriever"], row["segmentation"], row["need_id"]), [])
        top = top[: row["amount"]]
        assert row["characters"] == sum(len(places[passage]) for passage in top)
        wanted = [set().union(*(anchors[need["anchored_by"]][i] for i in bundle))
                  for bundle in need["bundles"]]
        if not wanted:
            assert row["covered"] is row["sufficient"] is row["covered_cause"] is None
            continue
        union = set().union(*(places[passage] for passage in top))
        assert row["covered"] == any(bundle <= union for bundle in wanted)
        assert row["sufficient"] == any(bundle <= places[p] for bundle in wanted for p in top)
        assert (row["covered_cause"] is None) == bool(row["covered"])
        assert (row["sufficient_cause"] is None) == bool(row["sufficient"])
        compared += 1
    assert compared == 2 * 3 * 4 * (len(needs) - 1)


def test_a_trace_is_a_record_that_says_when_it_is_stale(project: Path) -> None:
    only = ["--condition", "blocks", "--condition", "sections", "--embedder", "minilm"]
    frozen = run(project, "spanwise", "show", "both", *only)
    assert "frozen trace of a development need" in frozen and "bundles 0 + 1 or 0 + 2" in frozen
    assert "STALE" not in frozen and "retrieved now" not in frozen and "windows" not in frozen
    assert "anchor 0 whole" in frozen
    fresh = run(project, "spanwise", "show", "both", *only, "--fresh")
    assert fresh.count("retrieved now: agrees with the record") == 4
    reworded = run(project, "spanwise", "show", "reworded", *only)
    assert "frozen trace of a reworded need" in reworded
    path = project / "data" / "toy" / "tides.md"
    before = path.read_text(encoding="utf-8")
    path.write_text(f"# About tides\n\nNew.\n{before.partition(chr(10))[2]}", encoding="utf-8")
    try:
        stale = run(project, "spanwise", "show", "both", *only)
    finally:
        path.write_text(before, encoding="utf-8")
    assert "STALE: tides has parent_sha256" in stale
    assert "(refused: its document is another text now)" in stale
