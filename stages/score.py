"""ranked lists -> one row for each question and condition, all measures."""

from spanwise import layout, params, schemas
from spanwise.documents.records import load_questions
from spanwise.measures.study import Scorer


def main(name: str) -> None:
    settings = params.load()
    chunked = layout.read_report(layout.stage("chunk", name) / "report.json")
    questions = load_questions(layout.stage("ask", name), chunked["unusable_induced_trees"])
    scorer = Scorer(
        questions,
        schemas.read(layout.stage("chunk", name) / "chunks.parquet", schemas.CHUNKS),
        schemas.read(layout.stage("label", name) / "labels.parquet", schemas.LABELS),
        settings.conditions,
    )
    rows, counts, recall, first = [], {}, {}, {}
    reranked, absent = {}, {}
    for embedder in [*settings.embedders, layout.LEXICAL]:
        folder = layout.cell("retrieve", name, embedder)
        runs = schemas.read(folder / "runs.parquet", schemas.RUNS)
        made, counts[embedder] = scorer.score(embedder, params.WITHOUT, runs)
        rows += made
        if embedder == layout.LEXICAL:
            first = {name: scorer.gold_first(name, runs) for name in counts[embedder]}
        else:
            routing = schemas.read(folder / "routing.parquet", schemas.ROUTING)
            recall[embedder] = scorer.mean_recall(routing)
            told = layout.read_report(layout.cell("rerank", name, embedder) / "report.json")
            for reranker in settings.rerankers:
                cell = f"{embedder}/{reranker}"
                if reranker in told["absent"]:
                    absent[cell] = told["absent"][reranker]
                    continue
                runs = schemas.read(
                    layout.reranked(name, embedder, reranker) / "runs.parquet", schemas.RUNS
                )
                made, found = scorer.score(embedder, reranker, runs)
                rows += made
                reranked[cell] = {**told["reranked"][reranker], "counts": found}
    folder = layout.stage("score", name)
    schemas.write(folder / "scores.parquet", schemas.SCORES, schemas.table(schemas.SCORES, rows))
    layout.write_report(
        folder / "report.json",
        {
            "counts": counts, "section_recall": recall, "bm25_gold_first": first,
            "reranked": reranked, "absent_cells": absent,
        },
    )


if __name__ == "__main__":
    layout.run(main)
