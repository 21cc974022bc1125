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
    for embedder in [*settings.embedders, layout.LEXICAL]:
        folder = layout.cell("retrieve", name, embedder)
        runs = schemas.read(folder / "runs.parquet", schemas.RUNS)
        made, counts[embedder] = scorer.score(embedder, "none", runs)
        rows += made
        if embedder == layout.LEXICAL:
            first = {name: scorer.gold_first(name, runs) for name in counts[embedder]}
        else:
            routing = schemas.read(folder / "routing.parquet", schemas.ROUTING)
            recall[embedder] = scorer.mean_recall(routing)
    folder = layout.stage("score", name)
    schemas.write(folder / "scores.parquet", schemas.SCORES, schemas.table(schemas.SCORES, rows))
    layout.write_report(
        folder / "report.json",
        {"counts": counts, "section_recall": recall, "bm25_gold_first": first},
    )


if __name__ == "__main__":
    layout.run(main)
