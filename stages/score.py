"""ranked lists -> one row for each question and condition, all measures."""

from spanwise import layout, params, schemas
from spanwise.measures.study import Scorer, mean_recall


def main(name: str) -> None:
    settings = params.load()
    questions = schemas.read(layout.parse(name) / "questions.parquet", schemas.QUESTIONS)
    scorer = Scorer(
        questions,
        schemas.read(layout.stage("chunk", name) / "chunks.parquet", schemas.CHUNKS),
        schemas.read(layout.stage("label", name) / "labels.parquet", schemas.LABELS),
        settings.conditions,
    )
    rows, counts, recall, first = [], {}, {}, {}
    for embedder in [*settings.embedders, layout.LEXICAL]:
        folder = layout.cell("retrieve", name, embedder)
        runs = schemas.read(folder / "runs.parquet", schemas.RUNS)
        made, counts[embedder] = scorer.score(embedder, "none", runs)
        rows += made
        if embedder == layout.LEXICAL:
            first = {name: scorer.gold_first(name, runs) for name in counts[embedder]}
        else:
            routing = schemas.read(folder / "routing.parquet", schemas.ROUTING)
            recall[embedder] = mean_recall(routing)
    folder = layout.stage("score", name)
    schemas.write(folder / "scores.parquet", schemas.SCORES, schemas.table(schemas.SCORES, rows))
    layout.write_report(
        folder / "report.json",
        {"counts": counts, "section_recall": recall, "bm25_gold_first": first},
    )


if __name__ == "__main__":
    layout.run(main)
