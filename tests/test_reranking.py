"""Rerankers: tiny models of random weights, made here and run for real."""

from __future__ import annotations

import runpy
import shutil
from collections.abc import Callable, Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import yaml

from spanwise import layout, params, schemas
from spanwise.documents.records import load_documents
from spanwise.errors import InputError, ParamsError, Unavailable
from spanwise.params import Params, RerankerSettings
from spanwise.reranking import kept
from spanwise.reranking.kept import Candidate, judge, key
from spanwise.reranking.scoring import load

from . import reporting_world as world
from .conftest import ROOT

WORDS = [*world._NOUNS, *world._VERBS, "the", "at", "step", "what", "does", "of", "manual", "need",
         "who", "painted", "it", "part", "topic", *map(str, range(100)), ".", "?", "[", "]", "›"]
KINDS = ["cross-encoder", pytest.param("flag", marks=pytest.mark.skipif(
    find_spec("FlagEmbedding") is None, reason="FlagEmbedding is not installed: extra `rerank`"
))]


def make_model(folder: Path, **config: Any) -> Path:
    """A BERT of random weights with a head for pairs, and a vocabulary of whole words."""
    import torch
    from transformers import BertConfig, BertForSequenceClassification, BertTokenizerFast

    vocabulary = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *WORDS]
    BertTokenizerFast(vocab={word: n for n, word in enumerate(vocabulary)}).save_pretrained(folder)
    torch.manual_seed(5)
    BertForSequenceClassification(BertConfig(**{
        "vocab_size": len(vocabulary), "hidden_size": 32, "num_hidden_layers": 2,
        "num_attention_heads": 2, "intermediate_size": 37, "max_position_embeddings": 128,
        "num_labels": 1, "initializer_range": 0.6, **config,
    })).save_pretrained(folder)
    return folder


def with_head(folder: Path, weight: float, bias: float) -> Path:
    """The model with a head of these numbers alone."""
    from safetensors.torch import load_file, save_file

    found = load_file(folder / "model.safetensors")
    found["classifier.weight"].fill_(weight)
    found["classifier.bias"].fill_(bias)
    save_file(found, folder / "model.safetensors", metadata={"format": "pt"})
    return folder


def settings_of(folder: Path | str, kind: str = "cross-encoder", **more: Any) -> RerankerSettings:
    return RerankerSettings.model_validate({"model": str(folder), "kind": kind,
                                            "max_length": 128, **more})


def logits(folder: Path, pairs: list[tuple[str, str]]) -> list[float]:
    """What the model says of each pair by itself, by transformers alone."""
    import torch
    from transformers import AutoModelForSequenceClassification, AutoTokenizer

    tokenizer = AutoTokenizer.from_pretrained(folder)
    head = AutoModelForSequenceClassification.from_pretrained(folder).eval()
    said = []
    with torch.no_grad():
        for question, text in pairs:
            read = tokenizer(question, text, truncation="only_second", max_length=128,
                             return_tensors="pt")
            said.append(head(**read).logits.item())
    return said


def sentence(seed: int, length: int) -> str:
    return " ".join(np.random.default_rng(seed).choice(WORDS, length))


PAIRS = [(sentence(n % 7, 6), sentence(100 + n, 5 + n % 60)) for n in range(80)]


def candidates(settings: RerankerSettings, pairs: list[tuple[str, str]]) -> dict[str, Candidate]:
    return {key(settings, *pair): Candidate(*pair, f"question {n}, chunk c{n}")
            for n, pair in enumerate(pairs)}


@pytest.fixture(scope="module")
def tiny(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_model(tmp_path_factory.mktemp("models") / "tiny")


# ---------------------------------------------------------------- scores of pairs


@pytest.mark.parametrize("kind", KINDS)
def test_scores_are_the_models_own_logits(tiny: Path, kind: str) -> None:
    found = load(settings_of(tiny, kind)).score(PAIRS)
    assert found.dtype == np.float64 and found.std() > 0.05
    assert np.abs(found - logits(tiny, PAIRS)).max() < 1e-5


@pytest.mark.parametrize("kind", KINDS)
def test_bits_depend_on_neither_order_nor_neighbours_nor_workers(
    tiny: Path, tmp_path: Path, kind: str
) -> None:
    settings = settings_of(tiny, kind)
    some, _ = judge(candidates(settings, PAIRS), settings, tmp_path / "a", processes=1)
    other = candidates(settings, [*PAIRS[::-3], (PAIRS[0][0], "lamp")])
    again, computed = judge(other, settings, tmp_path / "b", processes=2)
    shared = some.keys() & again.keys()
    assert len(shared) == computed - 1 > 20
    assert all(some[k] == again[k] for k in shared)


@pytest.mark.parametrize("kind", KINDS)
def test_batches_agree_within_the_stated_tolerance(tiny: Path, kind: str) -> None:
    alone = settings_of(tiny, kind)
    batched = alone.model_copy(update={"batch_size": 16})  # as on a GPU; unchecked
    assert np.abs(load(batched).score(PAIRS) - load(alone).score(PAIRS)).max() < 1e-4


@pytest.mark.parametrize("kind", KINDS)
def test_what_a_model_does_not_read_is_counted_and_moves_nothing(tiny: Path, kind: str) -> None:
    reranker = load(settings_of(tiny, kind, max_length=24))
    question, text = sentence(1, 6), sentence(2, 15)  # 24 with three special tokens
    texts = [text, f"{text} lamp lamp", text[: text.rindex(" ")]]
    pairs = [(question, one) for one in texts]
    assert reranker.lengths(pairs) == [(24, False), (26, True), (23, False)]
    exact, beyond, shorter = reranker.score(pairs)
    assert exact == beyond != shorter
    if kind == "flag":  # it cuts a question of more than 18 tokens before it sees the text
        assert reranker.lengths([(sentence(3, 19), "lamp")]) == [(23, True)]


def test_interrupted_work_resumes_and_a_finished_one_needs_no_model(
    tiny: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    model = shutil.copytree(tiny, tmp_path / "model")
    settings, folder = settings_of(model), tmp_path / "kept"
    asked = candidates(settings, PAIRS)
    real: Callable[..., Iterator[Any]] = kept._judge_all

    def stops(*arguments: Any) -> Iterator[Any]:
        for number, judged in enumerate(real(*arguments)):
            if number == 1:
                raise KeyboardInterrupt
            yield judged

    monkeypatch.setattr(kept, "_judge_all", stops)
    with pytest.raises(KeyboardInterrupt):
        judge(asked, settings, folder, processes=1)
    monkeypatch.undo()
    _, computed = judge(asked, settings, folder, processes=1)
    assert 0 < computed < len(PAIRS)
    before = (folder / "pairs.parquet").read_bytes()
    shutil.rmtree(model)
    found, computed = judge(asked, settings, folder)
    assert computed == 0 and (folder / "pairs.parquet").read_bytes() == before
    assert [path.name for path in folder.iterdir()] == ["pairs.parquet"]
    few = dict(list(asked.items())[:9])  # what is asked no longer goes
    assert judge(few, settings, folder)[0] == {k: found[k] for k in few}
    assert schemas.read(folder / "pairs.parquet", schemas.PAIRS).num_rows == 9
    with pytest.raises(Unavailable, match="neither on this machine"):
        judge(asked, settings, folder)
    assert schemas.read(folder / "pairs.parquet", schemas.PAIRS).num_rows == 9  # nor is it lost


def test_a_score_that_is_no_number_names_its_place(tmp_path: Path) -> None:
    settings = settings_of(with_head(make_model(tmp_path / "model"), 1.0, float("nan")))
    with pytest.raises(InputError, match="score of question 0, chunk c0 is nan, which ranks nothi"):
        judge(candidates(settings, PAIRS[:1]), settings, tmp_path / "kept", processes=1)


def test_the_key_names_all_that_a_score_depends_on() -> None:
    one = settings_of("a/b")
    other = [one, settings_of("a/c"), settings_of("a/b", "flag"), settings_of("a/b", max_length=64),
             settings_of("a/b", device="cuda", batch_size=8)]
    keys = {key(s, "q", "t") for s in other} | {key(one, "qt", ""), key(one, "q", "u")}
    assert len(keys) == 7
    assert key(settings_of("a/b", top=20), "q", "t") == key(one, "q", "t")


# ---------------------------------------------------------------- refusals


def test_models_that_cannot_rank_are_refused(tiny: Path, tmp_path: Path) -> None:
    from transformers import BertModel

    headless = shutil.copytree(tiny, tmp_path / "headless")
    BertModel.from_pretrained(tiny).save_pretrained(headless)
    # Both libraries would set a head of random numbers on it and rank by that.
    with pytest.raises(ParamsError, match="the model is BertModel, expected one that ends with"):
        load(settings_of(headless))
    two = make_model(tmp_path / "two", num_labels=2)
    with pytest.raises(ParamsError, match="gives 2 scores for a pair, expected one"):
        load(settings_of(two))
    with pytest.raises(ParamsError, match="max_length 512 is above the 128 positions"):
        load(settings_of(tiny, max_length=512))


def test_what_cannot_be_had_says_why(
    tiny: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    broken = shutil.copytree(tiny, tmp_path / "broken")
    (broken / "model.safetensors").write_bytes(b"half a downlo")
    with pytest.raises(Unavailable, match=r"broken cannot be loaded \(\w+\); bring its whole "):
        load(settings_of(broken))
    monkeypatch.setitem(__import__("sys").modules, "FlagEmbedding", None)
    with pytest.raises(Unavailable, match=r"install it with `pip install .*\[rerank\]"):
        load(settings_of(tiny, "flag"))


@pytest.mark.parametrize(("changes", "says"), [
    ({"rerankers": {"none": {"model": "a/b", "kind": "flag"}}}, "it stands for no reranker"),
    ({"rerankers": {"bge": {"model": "a/b", "kind": "flag", "top": 60}}},
     "rerankers.bge.top 60 is above retrieval.depth 50"),
    ({"rerankers": {"bge": {"model": "a/b", "kind": "flag", "batch_size": 8}}},
     "batch_size is 1 on the cpu"),
    ({"rerankers": {"bge": {"model": "a/b", "kind": "magic"}}},
     "expected 'cross-encoder' or 'flag'"),
    ({"primary": {"measure": "mrr", "embedder": "mpnet", "reranker": "bge"}},
     "primary.reranker 'bge' is no entry of rerankers, nor `none`"),
])
def test_settings_that_fit_nothing_are_refused(changes: dict[str, Any], says: str) -> None:
    with pytest.raises(ParamsError, match=says):
        world.settings(**changes)


# ---------------------------------------------------------------- the stages


@pytest.fixture(scope="module")
def studied(tiny: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Path, Params]]:
    """Artifacts of one corpus under the two stages, with a reranker that ranks, one that says the
    same of everything and one that is not there."""
    root = tmp_path_factory.mktemp("study")
    constant = with_head(make_model(root / "constant"), 0.0, 0.25)
    study = world.settings(
        corpora={"harbour": {"reader": "markdown", "path": "data/harbour"}},
        embedders={"minilm": {"model": "small", "pooling": "mean"}},
        rerankers={
            "tiny": {"model": str(tiny), "kind": "cross-encoder", "max_length": 128},
            "same": {"model": str(constant), "kind": "cross-encoder", "max_length": 64, "top": 5},
            "gone": {"model": "nobody/no-such-model", "kind": "flag"},
        },
        primary={"measure": "cov_ndcg@10", "embedder": "minilm", "reranker": "none"},
        inference={"iterations": 20, "seed": 7, "margin": 0.01},
    )
    world.build(root, study, documents=3)
    schemas.write(root / layout.parse("harbour") / "paragraphs.parquet", schemas.PARAGRAPHS,
                  schemas.table(schemas.PARAGRAPHS, []))  # the page needs none, nor do these stages
    text = yaml.safe_dump(study.model_dump(mode="json"), sort_keys=False)
    (root / "params.yaml").write_text(text, encoding="utf-8")
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(root)
        patch.setenv("SPANWISE_WORKERS", "1")
        patch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", True)
        stage("rerank", "harbour", "minilm")
        stage("score", "harbour")
        yield root, study


def stage(name: str, *arguments: str) -> None:
    runpy.run_path(str(ROOT / "stages" / f"{name}.py"))["main"](*arguments)


def lists(root: Path, reranker: str | None) -> dict[tuple[str, str], list[str]]:
    """(condition, question_id) -> chunk ids, best first, with or without a reranker."""
    folder = (layout.reranked("harbour", "minilm", reranker) if reranker
              else layout.cell("retrieve", "harbour", "minilm"))
    found: dict[tuple[str, str], list[str]] = {}
    for row in schemas.read(root / folder / "runs.parquet", schemas.RUNS).to_pylist():
        found.setdefault((row["condition"], row["question_id"]), []).append(row["chunk_id"])
    return found


def test_lists_are_reordered_by_what_the_model_says_of_prefix_and_content(
    tiny: Path, studied: tuple[Path, Params]
) -> None:
    root, study = studied
    before, after = lists(root, None), lists(root, "tiny")
    assert before.keys() == after.keys() and before != after
    assert {"A4", "G4"} < {condition for condition, _ in after}
    bodies = {d.doc_id: d.body for d in load_documents(root / layout.parse("harbour"))}
    labels = {(row["label"], row["chunk_id"]): row for row in schemas.read(
        root / layout.stage("label", "harbour") / "labels.parquet", schemas.LABELS).to_pylist()}
    asked = {row["question_id"]: row["text"] for row in schemas.read(
        root / layout.stage("ask", "harbour") / "questions.parquet", schemas.QUESTIONS).to_pylist()}
    for place in list(before)[::7]:
        label = study.conditions[place[0]].label
        chunks = [labels[label, chunk] for chunk in before[place]]
        texts = [c["prefix"] + bodies[c["doc_id"]][c["start"] : c["end"]] for c in chunks]
        values = logits(tiny, [(asked[place[1]], text) for text in texts])
        order = sorted(zip(values, chunks, strict=True), key=lambda both: -both[0])
        gaps = np.diff([value for value, _ in order])
        assert (np.abs(gaps) > 1e-5).all()  # so that no last bit decides
        assert [chunk["chunk_id"] for _, chunk in order] == after[place]


def test_equal_scores_fall_by_document_and_start_and_below_the_top_there_is_nothing(
    studied: tuple[Path, Params]
) -> None:
    def place(chunk: str) -> tuple[str, int]:
        doc_id, _, span = chunk.rpartition(":")
        return doc_id, int(span.split("-")[0])

    before, after = lists(studied[0], None), lists(studied[0], "same")
    assert after == {of: sorted(chunks[:5], key=place) for of, chunks in before.items()}
    run = layout.reranked("harbour", "minilm", "same") / "trec" / "A4.trec"
    lines = [line.split() for line in (studied[0] / run).read_text().splitlines()]
    assert [(x[0], x[2]) for x in sorted(lines, key=lambda x: (x[0], -float(x[4])))] == [
        (question, chunk) for (condition, question), chunks in sorted(after.items())
        if condition == "A4" for chunk in chunks
    ]


def test_each_cell_has_its_scores_and_an_absent_one_its_reason(
    studied: tuple[Path, Params]
) -> None:
    root, _ = studied
    folder = root / layout.stage("score", "harbour")
    rows = schemas.read(folder / "scores.parquet", schemas.SCORES).to_pylist()
    cells: dict[tuple[str, str], dict[tuple[str, str], Any]] = {}
    for row in rows:
        cell = cells.setdefault((row["embedder"], row["reranker"]), {})
        cell[row["condition"], row["question_id"]] = row
    assert set(cells) == {("minilm", "none"), ("minilm", "tiny"), ("minilm", "same"),
                          ("bm25", "none")}
    plain, tiny = cells["minilm", "none"], cells["minilm", "tiny"]
    assert plain.keys() == tiny.keys()
    # All chunks of so small a corpus are in every list: another order of the same.
    assert all(plain[k]["recall@50"] == tiny[k]["recall@50"] for k in plain)
    assert sum(plain[k]["mrr"] != tiny[k]["mrr"] for k in plain) > len(plain) / 4
    report = layout.read_report(folder / "report.json")
    assert report["absent_cells"].keys() == {"minilm/gone"}
    reason = report["absent_cells"]["minilm/gone"]
    assert reason.startswith("nobody/no-such-model is neither on this machine nor to be had here")
    found = report["reranked"]["minilm/same"]
    assert (found["top"], found["max_length"]) == (5, 64)
    assert found["counts"].keys() == found["conditions"].keys()
    told = found["conditions"]["A3"]
    listed = [chunks for (name, _), chunks in lists(root, "same").items() if name == "A3"]
    assert told["pairs"] == sum(map(len, listed))
    assert 0 < told["beyond_max_length"] < told["pairs"]


def test_a_second_run_says_the_same_and_what_left_params_leaves_the_folder(
    studied: tuple[Path, Params], monkeypatch: pytest.MonkeyPatch
) -> None:
    root, _ = studied

    def refuse(*_: Any) -> None:
        raise AssertionError("a forward pass")

    monkeypatch.setattr(kept, "_judge_all", refuse)
    out = root / layout.cell("rerank", "harbour", "minilm")
    before = {p: p.read_bytes() for p in out.rglob("*") if p.is_file()}
    stage("rerank", "harbour", "minilm")
    assert {p: p.read_bytes() for p in out.rglob("*") if p.is_file()} == before
    settings = root / "params.yaml"
    text = settings.read_text(encoding="utf-8")
    settings.write_text(yaml.safe_dump({**yaml.safe_load(text), "rerankers": {}}), "utf-8")
    stage("rerank", "harbour", "minilm")
    stage("score", "harbour")
    assert [path.name for path in out.iterdir()] == ["report.json"]
    assert layout.read_report(out / "report.json") == {"reranked": {}, "absent": {}}


def test_scores_of_pairs_survive_a_rerun_of_the_stage() -> None:
    stages = yaml.safe_load((ROOT / "dvc.yaml").read_text(encoding="utf-8"))["stages"]
    (out,) = stages["rerank"]["outs"]
    assert next(iter(out.values())) == {"persist": True}
    assert params.load(ROOT / "params.yaml").rerankers == {}
