"""labelled chunks and questions -> one vector for each distinct text."""

from spanwise import layout, params, schemas
from spanwise.documents.records import load_documents, load_questions
from spanwise.embedding import embed, query_text
from spanwise.labelling import texts
from spanwise.window import beyond


def main(name: str, embedder: str) -> None:
    settings = params.load().embedder(embedder)
    labels = schemas.read(layout.stage("label", name) / "labels.parquet", schemas.LABELS)
    questions = load_questions(layout.stage("ask", name)).to_pylist()
    passages = texts(labels, load_documents(layout.parse(name)))
    queries = [query_text(settings, question["text"]) for question in questions]
    vectors, computed = embed(
        [*passages, *queries], settings, layout.cell("embed", name, embedder)
    )
    print(f"{computed} of {len(vectors.rows)} vectors were computed now")
    layout.write_report(
        layout.cell_report("embed", name, embedder),
        {
            "distinct_texts": len(vectors.rows),
            "dimension": vectors.matrix.shape[1],
            "window_tokens": settings.max_seq_length,
            "beyond_window": beyond(labels.to_pylist(), passages, vectors, questions),
        },
    )


if __name__ == "__main__":
    layout.run(main)
