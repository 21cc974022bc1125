"""The stage `induce` with each inducer: what is asked of a server, kept, and counted."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import yaml

from spanwise import models
from spanwise.documents.model import Builder, Document
from spanwise.errors import Unavailable
from spanwise.params import Params, from_mapping
from spanwise.structure.induction import induce
from spanwise.structure.records import load_trees

from .conftest import ROOT
from .llm_world import Handler, Play, completion, dies, says, world

SUBJECTS = ("tides", "keys", "boats", "gauges")


def corpus() -> list[Document]:
    """Two documents of four paragraphs."""
    made = []
    for doc_id in ("a", "b"):
        builder = Builder(doc_id, f"Notes {doc_id}")
        for subject in SUBJECTS:
            builder.paragraph(f"This part of {doc_id} is about {subject}. " * 12)
        made.append(builder.build())
    return made


def settings_for(url: str) -> Params:
    given: dict[str, Any] = yaml.safe_load((ROOT / "params.yaml").read_text(encoding="utf-8"))
    given["llm"]["model"] = "m"
    given["server"] = {"base_url": url, "retries": 0, "timeout_s": 5}
    given["inducers"]["segmenter"]["section_tokens"] = 60
    return from_mapping(given)


def outlines(handler: Handler, body: dict[str, Any]) -> None:
    """One section for each paragraph; of document b nothing that can be used."""
    prompt = body["messages"][-1]["content"]
    sections = [{"title": s, "level": 1, "first": i, "last": i} for i, s in enumerate(SUBJECTS)]
    found = "I cannot do that." if "part of b" in prompt else json.dumps({"sections": sections})
    handler.reply(completion(found))


def titles(handler: Handler, body: dict[str, Any]) -> None:
    """The subject of the section that is shown."""
    prompt = body["messages"][-1]["content"]
    named = [s for s in SUBJECTS if s in prompt]
    handler.reply(completion(json.dumps({"title": f"All about {' and '.join(named)}"})))


def run(inducer: str, url: str, folder: Path) -> dict[str, Any]:
    given = settings_for(url)
    return induce(corpus(), inducer, given, models.tokenizer(given), folder)


def test_llm_trees_are_the_models_and_an_unusable_one_is_counted(tmp_path: Path) -> None:
    with world(outlines) as server:
        report = run("llm", server.url, tmp_path)
        assert len(server.asked) == 3  # one of them is the correction of b
    trees = load_trees(tmp_path / "sections.parquet")
    assert [s.title for s in trees["a"].sections] == list(SUBJECTS) and "b" not in trees
    assert (report["inducer"], report["usable"]) == ("llm", 1) and list(report["unusable"]) == ["b"]
    assert report["mean_sections"] == 4
    assert report["outlines"]["usable as given"] == report["outlines"]["unusable"] == 1
    assert report["outlines"]["distinct_requests"] == 3 and report["outlines"]["model"] == "m"


def test_hybrid_keeps_the_segmenters_boundaries_and_takes_the_models_titles(tmp_path: Path) -> None:
    run("segmenter", "http://127.0.0.1:9/v1", tmp_path / "plain")
    with world(titles) as server:
        report = run("hybrid", server.url, tmp_path / "hybrid")
    plain = load_trees(tmp_path / "plain" / "sections.parquet")
    trees = load_trees(tmp_path / "hybrid" / "sections.parquet")
    for doc_id, tree in trees.items():
        mine, other = tree.sections, plain[doc_id].sections
        assert [(s.level, s.first, s.last) for s in mine] == [
            (s.level, s.first, s.last) for s in other
        ]
        assert any(s.title.startswith("All about") for s in mine)
    assert report["titles"]["sections"] == sum(len(t.sections) for t in trees.values())
    assert not report["unusable"]


@pytest.mark.parametrize(("inducer", "play"), [("llm", outlines), ("hybrid", titles)])
def test_a_second_run_needs_no_server_and_leaves_the_same_bytes(
    inducer: str, play: Play, tmp_path: Path
) -> None:
    with world(play) as server:
        first = run(inducer, server.url, tmp_path)
    before = {path.name: path.read_bytes() for path in tmp_path.iterdir()}
    assert "answers.jsonl" in before
    assert run(inducer, server.url, tmp_path) == first
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == before


def test_another_inducer_takes_nothing_of_the_one_before(tmp_path: Path) -> None:
    closed = "http://127.0.0.1:9/v1"
    run("segmenter", closed, tmp_path / "plain")
    plain = load_trees(tmp_path / "plain" / "sections.parquet")
    with world(titles) as server:
        run("hybrid", server.url, tmp_path / "switched")
    report = run("segmenter", closed, tmp_path / "switched")
    assert load_trees(tmp_path / "switched" / "sections.parquet") == plain
    assert report["inducer"] == "segmenter"
    kept = [{path.name for path in (tmp_path / name).iterdir()} for name in ("plain", "switched")]
    assert kept[0] == kept[1]


def test_a_document_without_paragraphs_is_unusable(tmp_path: Path) -> None:
    given = settings_for("http://127.0.0.1:9/v1")
    empty = Builder("empty", "Nothing").build()
    report = induce([empty], "segmenter", given, models.tokenizer(given), tmp_path)
    assert report["usable"] == 0 and report["unusable"] == {"empty": ["it has no paragraphs"]}


def test_a_server_that_dies_ends_the_run_and_what_it_said_is_kept(tmp_path: Path) -> None:
    with world(titles, titles, dies) as server, pytest.raises(Unavailable, match="run again"):
        run("hybrid", server.url, tmp_path)
    assert not (tmp_path / "sections.parquet").exists()
    with world(titles) as server:
        report = run("hybrid", server.url, tmp_path)
        assert len(server.asked) == report["titles"]["distinct_requests"] - 2


def test_a_model_that_talks_nonsense_costs_the_titles_and_not_the_run(tmp_path: Path) -> None:
    with world(says(completion("{{{ not JSON"))) as server:
        report = run("hybrid", server.url, tmp_path)
    assert report["usable"] == 2
    assert report["titles"]["segmenter's title kept: no title"] == report["titles"]["sections"]
