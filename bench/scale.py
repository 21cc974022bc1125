"""How seconds and memory grow with a corpus: every stage, over corpora of several sizes.

    python -m bench.scale [--documents 100 1000] [--words 1500] [--lexical] [--keep FOLDER]

Seeded Markdown with three levels of headings, two questions a document with one anchored
quotation each. Each stage is its own process, as under `dvc repro`; its seconds are of the
processor (its workers' too), its memory is the largest resident set of one process. The encoder has
no layer and 384 dimensions, so `embed` and `induce` measure everything but a model: a real one adds
its texts divided by its texts a second. `--lexical` leaves out every stage that needs vectors.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from multiprocessing import get_context
from pathlib import Path
from typing import NamedTuple

import numpy as np
import yaml
from bench.report import Prose

ROOT = Path(__file__).resolve().parents[1]
CORPUS, ENCODER = "harbour", "made"
BLAS = {"OMP_NUM_THREADS": "1", "SPANWISE_OFFLINE": "1"}


class Cost(NamedTuple):
    """What a stage took: processor seconds, seconds by the clock, bytes of its largest process."""

    cpu: float
    wall: float
    bytes: int


class Stage(NamedTuple):
    script: str
    arguments: tuple[str, ...]
    vectors: bool


STAGES = (
    Stage("parse", (CORPUS,), False),
    Stage("induce", (CORPUS,), True),
    Stage("ask", (CORPUS,), False),
    Stage("chunk", (CORPUS,), True),
    Stage("label", (CORPUS,), True),
    Stage("embed", (CORPUS, ENCODER), True),
    Stage("index", (CORPUS, ENCODER), True),
    Stage("retrieve", (CORPUS, ENCODER), True),
    Stage("retrieve_bm25", (CORPUS,), True),
    Stage("rerank", (CORPUS, ENCODER), True),
    Stage("score", (CORPUS,), True),
    Stage("infer", (CORPUS,), True),
    Stage("units", (CORPUS,), False),
    Stage("units_retrieve", (CORPUS, ENCODER), True),
    Stage("units_retrieve_bm25", (CORPUS,), False),
    Stage("units_score", (CORPUS,), True),
    Stage("units_infer", (CORPUS,), True),
    Stage("report", (), True),
)


def corpus(folder: Path, documents: int, words: int) -> None:
    """Write documents with headings three levels deep, and questions whose quotations are exact."""
    prose = Prose(int(words / 36 * 6))
    folder.mkdir(parents=True)
    asked = []
    for number in range(documents):
        rng = np.random.default_rng([7, number])
        lines: list[str] = []
        for level in (1, 2, 3, 3, 2, 3, 3, 2, 3):
            title = " ".join(prose.words[rng.integers(0, 4000, 3)]).capitalize()
            lines += [f"{'#' * level} {title}", *(prose(rng) for _ in range(4))]
        text = "\n\n".join(lines) + "\n"
        (folder / f"d{number:06}.md").write_text(text, encoding="utf-8")
        for which in range(2):
            paragraph = lines[1 + 5 * int(rng.integers(0, 9)) + int(rng.integers(0, 4))]
            sentence = next(s for s in paragraph.split(". ") if text.count(s) == 1)
            asked.append(json.dumps({
                "id": f"q{number}-{which}", "document": f"d{number:06}", "type": "factoid",
                "question": " ".join(sentence.split()[:6]) + "?", "anchors": [{"quote": sentence}],
            }))
    (folder / "questions.jsonl").write_text("\n".join(asked) + "\n", encoding="utf-8")


def encoder(folder: Path) -> None:
    """A sentence encoder without a layer: embeddings of whole words, at random, and their mean."""
    import torch
    from sentence_transformers import SentenceTransformer
    from sentence_transformers.sentence_transformer.modules import Pooling, Transformer
    from transformers import BertConfig, BertModel, BertTokenizerFast

    words = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", ".", "?", "#", *Prose(100).words]
    plain = folder.with_name(f"{folder.name}-plain")
    BertTokenizerFast(vocab={word: n for n, word in enumerate(words)}).save_pretrained(plain)
    torch.manual_seed(5)
    BertModel(BertConfig(
        vocab_size=len(words), hidden_size=384, num_hidden_layers=0, num_attention_heads=6,
        intermediate_size=384, max_position_embeddings=512,
    )).save_pretrained(plain)
    modules = [Transformer(str(plain)), Pooling(384, pooling_mode="mean")]
    SentenceTransformer(modules=modules).save(str(folder))


def project(folder: Path, documents: int, words: int) -> None:
    """A project of one corpus and one encoder beside the code of this checkout."""
    settings = yaml.safe_load((ROOT / "params.yaml").read_text(encoding="utf-8"))
    # In a process of its own: what a child's memory is measured by begins with its parent's.
    maker = get_context("spawn").Process(target=encoder, args=(folder / ENCODER,))
    maker.start()
    maker.join()
    settings["corpora"] = {CORPUS: {
        "reader": "markdown", "path": f"data/{CORPUS}", "inducer": "segmenter", "units": True,
    }}
    made = {"model": str(folder / ENCODER), "pooling": "mean", "query_prompt": ""}
    settings["embedders"] = {ENCODER: made}
    settings["tokens"]["tokenizer"] = ENCODER
    settings["inducers"]["segmenter"]["embedder"] = ENCODER
    settings["primary"]["embedder"] = ENCODER
    (folder / "params.yaml").write_text(yaml.safe_dump(settings, sort_keys=False), encoding="utf-8")
    (folder / "registration.json").write_text('{"entries": []}\n', encoding="utf-8")
    (folder / "questions").mkdir()
    corpus(folder / "data" / CORPUS, documents, words)


def run(folder: Path, stage: Stage) -> Cost:
    """Run one stage in a process of its own."""
    began = time.perf_counter()
    process = subprocess.Popen(
        [sys.executable, str(ROOT / "stages" / f"{stage.script}.py"), *stage.arguments],
        cwd=folder, env={**os.environ, **BLAS, "PYTHONPATH": str(ROOT / "src")},
        stdout=subprocess.DEVNULL,
    )
    _, status, used = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        sys.exit(f"{stage.script}: exit code {process.returncode}")
    unit = 1 if sys.platform == "darwin" else 1024
    return Cost(used.ru_utime + used.ru_stime, time.perf_counter() - began, used.ru_maxrss * unit)


def measured(folder: Path, lexical: bool) -> Iterator[tuple[str, Cost]]:
    for stage in STAGES:
        if not (lexical and stage.vectors):
            yield stage.script, run(folder, stage)


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--documents", type=int, nargs="+", default=[100, 1000])
    parser.add_argument("--words", type=int, default=1500, help="of a document, about")
    parser.add_argument("--lexical", action="store_true", help="only stages without vectors")
    parser.add_argument("--keep", type=Path, help="leave the projects in this folder")
    asked = parser.parse_args(arguments)
    with tempfile.TemporaryDirectory() as scratch:
        for documents in asked.documents:
            folder = (asked.keep or Path(scratch)) / str(documents)
            folder.mkdir(parents=True)
            project(folder, documents, asked.words)
            print(f"{documents} documents\n{'stage':<22}{'cpu s':>10}{'wall s':>10}{'MB':>8}")
            for name, cost in measured(folder, asked.lexical):
                row = f"{name:<22}{cost.cpu:>10.1f}{cost.wall:>10.1f}{cost.bytes / 1e6:>8.0f}"
                print(row, flush=True)


if __name__ == "__main__":
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    main()
