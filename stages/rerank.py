"""ranked lists -> the top of each dense condition, reordered by each reranker."""

from spanwise import layout, params, schemas
from spanwise.documents.records import load_documents, load_questions
from spanwise.errors import Unavailable
from spanwise.labelling import texts
from spanwise.reranking.cells import Retrieved, clear, forget, rerank, write


def main(name: str, embedder: str) -> None:
    settings = params.load()
    out = layout.cell("rerank", name, embedder)
    reranked, absent = {}, {}
    forget(out, settings.rerankers)
    if settings.rerankers:
        labels = schemas.read(layout.stage("label", name) / "labels.parquet", schemas.LABELS)
        questions = load_questions(layout.stage("ask", name)).to_pylist()
        found = Retrieved(
            schemas.read(layout.cell("retrieve", name, embedder) / "runs.parquet", schemas.RUNS),
            labels, texts(labels, load_documents(layout.parse(name))),
            {question["question_id"]: question["text"] for question in questions},
            settings.conditions,
        )
    for reranker, its in settings.rerankers.items():
        folder = layout.reranked(name, embedder, reranker)
        try:
            runs, counts, computed = rerank(found, its, folder)
        except Unavailable as reason:  # the cell is absent, and says why
            clear(folder)
            absent[reranker] = str(reason)
            continue
        write(folder, runs)
        reranked[reranker] = {"top": its.top, "max_length": its.max_length, **counts}
        print(f"{computed} of {counts['distinct_pairs']} pairs were scored now by {reranker}")
    layout.write_report(out / "report.json", {"reranked": reranked, "absent": absent})


if __name__ == "__main__":
    layout.run(main)
