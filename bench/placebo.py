"""A/A: the pipeline from labels to inference, placebo against placebo. What it finds is false.

    python -m bench.placebo --root . [--corpus handbook] [--seeds 200] [--wrong path|questions]
    python -m bench.placebo --root . --embedder minilm --seeds 10 --cache FOLDER

Every seed gives two independent assignments of foreign paths to the same chunks. Their texts are
ranked (BM25 over prefix and content, or an embedder's vectors), scored and inferred by the
project's own functions. At .05 a twentieth must be significant, p-values must be uniform and the
mean difference zero; exit code 1 if one of the three has a probability below .01.

--wrong shows that the check can fail: `path` puts true paths in place of the second assignment,
`questions` resamples questions as if each were a document of its own.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from spanwise import schemas
from spanwise.documents.model import Document
from spanwise.index import Shelf, propose_faiss
from spanwise.labelling import label, texts
from spanwise.measures.study import Scorer
from spanwise.params import Condition, Params, PlaceboSettings
from spanwise.retrieval.flat import flat
from spanwise.retrieval.runs import lexical
from spanwise.statistics.contrasts import Column, Contrast, infer, pair
from spanwise.statistics.linearised import FEW
from spanwise.statistics.study import Study, primary
from spanwise.text.tokens import Tokenizer

NAME = "P"
LEVEL = 0.05
UNLIKELY = 0.01
"""Each of the three tests fails below this probability."""

Rank = Callable[[pa.Table], pa.Table]
"""A LABELS table of one label -> RUNS of condition NAME."""


@dataclass(frozen=True)
class World:
    """What the stages before labels have left of one corpus.

    chunks: the CHUNKS table; questions: the QUESTIONS table, excluded ones marked.
    """

    settings: Params
    documents: Sequence[Document]
    chunks: pa.Table
    questions: pa.Table
    tokenizer: Tokenizer

    @property
    def mine(self) -> pa.Table:
        """The chunks that get placebos, by (doc_id, start)."""
        kept = self.chunks.filter(pc.equal(self.chunks["segmentation"], self._arm.segmentation))
        return kept.sort_by([("doc_id", "ascending"), ("start", "ascending")])

    @property
    def _arm(self) -> Condition:
        arms = [c for c in self.settings.conditions.values() if c.prefix == "placebo"]
        return arms[0]

    def assigned(self, seed: int | None) -> pa.Table:
        """LABELS under one placebo assignment, or under the true paths (None)."""
        arm = self._arm if seed is not None else self._arm.model_copy(update={"prefix": "path"})
        placebo = self.settings.prefixes.placebo
        if seed is not None:
            placebo = PlaceboSettings(depth=placebo.depth, seed=seed)
        table, _ = label(
            self.mine.to_pylist(), self.documents, {arm.label: arm}, self.tokenizer, placebo, None
        )
        # Scored as condition NAME whatever its prefix says.
        at = table.column_names.index("label")
        return table.set_column(at, "label", pa.array([self._arm.label] * len(table)))

    def scores(self, labels: pa.Table, runs: pa.Table) -> Column:
        """The primary measure of the primary questions."""
        rows, _ = Scorer(self.questions, self.chunks, labels, {NAME: self._arm}).score(
            "placebo", "none", runs
        )
        excluded = frozenset(
            q["question_id"]
            for q in self.questions.select(["question_id", "excluded"]).to_pylist()
            if q["excluded"] is not None
        )
        study = Study(
            self.settings, schemas.table(schemas.SCORES, rows), {}, "exploratory", {}, excluded
        )
        measure = self.settings.primary.measure
        return {r["question_id"]: (r["doc_id"], r[measure]) for r in primary(study, rows)}

    def by_terms(self, labels: pa.Table) -> pa.Table:
        """BM25 over prefix and content."""
        rows = lexical(
            NAME, self.mine.to_pylist(), texts(labels, self.documents),
            self.questions.to_pylist(), self.settings.retrieval.bm25, self.settings.retrieval.depth,
        )
        return schemas.table(schemas.RUNS, rows)

    def by_vectors(self, embedder: str, tables: Sequence[pa.Table], cache: Path) -> Rank:
        """An embedder's ranking; the distinct texts of all tables are embedded at once."""
        from spanwise.embedding import embed, query_text

        encoder = self.settings.embedder(embedder)
        queries = [query_text(encoder, text) for text in self.questions["text"].to_pylist()]
        wanted = [text for table in tables for text in texts(table, self.documents)]
        vectors, _ = embed([*wanted, *queries], encoder, cache)
        nodes = self.mine["node"].to_numpy()

        def rank(labels: pa.Table) -> pa.Table:
            on = Shelf(
                NAME, tuple(labels["chunk_id"].to_pylist()), tuple(labels["doc_id"].to_pylist()),
                labels["start"].to_numpy(), labels["end"].to_numpy(), nodes,
                vectors.of(texts(labels, self.documents)),
            )
            lists = flat(
                on, vectors.of(queries), self.settings.retrieval.depth, propose_faiss(on)
            )
            return schemas.table(schemas.RUNS, [
                {"condition": NAME, "question_id": question, "rank": place + 1,
                 "chunk_id": on.chunk_ids[row], "score": float(ranking.scores[place])}
                for question, ranking in zip(
                    self.questions["question_id"].to_pylist(), lists, strict=True
                )
                for place, row in enumerate(ranking.rows.tolist())
            ])

        return rank


def derived(seed: int) -> tuple[int, int]:
    """Two seeds of placebos for one seed of the run."""
    first, second = np.random.SeedSequence([20_260_710, seed]).generate_state(2)
    return int(first), int(second)


def contrast(world: World, a: Column, b: Column, seed: int, wrong: str | None = None) -> Contrast:
    """The project's inference of a - b."""
    if wrong == "questions":
        a, b = (
            {question: (question, value) for question, (_, value) in column.items()}
            for column in (a, b)
        )
    settings = world.settings.inference
    return infer([pair("A/A", a, b)], settings.iterations, seed, few=FEW)[0]


def run(
    world: World, seeds: Sequence[int], wrong: str | None = None,
    ranker: Callable[[Sequence[pa.Table]], Rank] | None = None,
) -> list[Contrast]:
    """One contrast for each seed. ranker: of all tables that will be ranked; BM25 by default."""
    pairs = [
        (world.assigned(first), world.assigned(None if wrong == "path" else second))
        for first, second in map(derived, seeds)
    ]
    rank = ranker([table for two in pairs for table in two]) if ranker else world.by_terms
    made = []
    for seed, (first, second) in zip(seeds, pairs, strict=True):
        a, b = (world.scores(labels, rank(labels)) for labels in (first, second))
        made.append(contrast(world, a, b, seed, wrong))
    return made


@dataclass(frozen=True)
class Check:
    """Three tests of what must hold without any difference; each a probability.

    share: significant at LEVEL; error: its Monte Carlo error if LEVEL is true.
    rate:  exact binomial test of the share against LEVEL.
    shape: Kolmogorov-Smirnov test of the p-values against the uniform distribution.
    zero:  t test of the mean difference over seeds against 0.
    """

    n: int
    share: float
    error: float
    rate: float
    shape: float
    mean: float
    zero: float

    @property
    def failed(self) -> list[str]:
        """Which tests are below UNLIKELY."""
        return [name for name in ("rate", "shape", "zero") if getattr(self, name) < UNLIKELY]


def check(p: Sequence[float], deltas: Sequence[float]) -> Check:
    """Judge runs without a difference. p: p-values; deltas: mean differences."""
    from scipy.stats import binomtest, kstest, ttest_1samp

    n, hits = len(p), sum(value < LEVEL for value in p)
    return Check(
        n, hits / n, (LEVEL * (1 - LEVEL) / n) ** 0.5, float(binomtest(hits, n, LEVEL).pvalue),
        float(kstest(p, "uniform").pvalue), float(np.mean(deltas)),
        float(ttest_1samp(deltas, 0.0).pvalue),
    )


def load(corpus: str) -> World:
    """The artifacts of the project in the working directory."""
    from spanwise import layout, models, params
    from spanwise.documents.records import load_documents, load_questions

    settings = params.load()
    chunked = layout.read_report(layout.stage("chunk", corpus) / "report.json")
    return World(
        settings, load_documents(layout.parse(corpus)),
        schemas.read(layout.stage("chunk", corpus) / "chunks.parquet", schemas.CHUNKS),
        load_questions(layout.stage("ask", corpus), chunked["unusable_induced_trees"]),
        models.tokenizer(settings),
    )


def main(arguments: list[str] | None = None) -> int:
    """Run, print, judge."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--root", type=Path, default=Path(), help="project with artifacts/")
    parser.add_argument("--corpus", default="handbook")
    parser.add_argument("--seeds", type=int, default=200)
    parser.add_argument("--wrong", choices=["path", "questions"])
    parser.add_argument("--embedder", help="vectors in place of BM25")
    parser.add_argument("--cache", type=Path, help="folder of vectors, for --embedder")
    options = parser.parse_args(arguments)
    if options.embedder and options.cache is None:
        parser.error("--embedder needs --cache")
    cache = (options.cache or Path()).resolve()
    os.chdir(options.root)
    world = load(options.corpus)

    def vectors(tables: Sequence[pa.Table]) -> Rank:
        return world.by_vectors(options.embedder, tables, cache)

    found = run(world, range(options.seeds), options.wrong, vectors if options.embedder else None)
    told = [c for c in found if c.p is not None and c.delta is not None]
    judged = check([c.p or 0.0 for c in told], [c.delta or 0.0 for c in told])
    print(_said(options, found, judged))
    return 1 if judged.failed else 0


def _said(options: Any, found: Sequence[Contrast], judged: Check) -> str:
    p = [c.p for c in found if c.p is not None]
    tenths = np.histogram(p, bins=10, range=(0, 1))[0].tolist()
    lines: Mapping[str, str] = {
        "corpus": f"{options.corpus}, {found[0].n_questions} questions, "
                  f"{found[0].n_documents} documents, {options.embedder or 'BM25'}, "
                  f"interval {found[0].interval}, wrong: {options.wrong or 'nothing'}",
        "seeds": f"{judged.n} with a p of {len(found)}",
        f"significant at {LEVEL}": f"{judged.share:.3f}, expected {LEVEL} +- {judged.error:.3f} "
                                   f"(binomial test {judged.rate:.3g})",
        "p-values by tenths": f"{tenths} (Kolmogorov-Smirnov {judged.shape:.3g})",
        "mean difference": f"{judged.mean:+.5f} (t test {judged.zero:.3g})",
        "the same, linearised": _linearised(found),
        "verdict": f"fails: {', '.join(judged.failed)}" if judged.failed else "holds",
    }
    return "\n".join(f"{name}: {text}" for name, text in lines.items())


def _linearised(found: Sequence[Contrast]) -> str:
    """What the linearised error with t(G - 1) would have said: the other rule of record."""
    from scipy.stats import t

    p = [
        2 * float(t.sf(abs(c.delta) / c.se, c.n_documents - 1))
        for c in found
        if c.se and c.delta is not None
    ]
    other = check(p, [c.delta or 0.0 for c in found])
    return (
        f"{other.share:.3f} significant (binomial test {other.rate:.3g}; Kolmogorov-Smirnov "
        f"{other.shape:.3g})"
    )


if __name__ == "__main__":
    sys.exit(main())
