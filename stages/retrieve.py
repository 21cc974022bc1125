"""an index and questions -> ranked lists of each condition, as Parquet and as TREC run files."""

import sys

import pyarrow.compute as pc

from spanwise import layout, params, schemas
from spanwise.corpora.records import load_documents, load_questions
from spanwise.embedding import load, query_text
from spanwise.retrieval.runs import dense, lexical, write_trec


def main(name: str, embedder: str) -> None:
    settings = params.load()
    questions = load_questions(layout.parse(name))
    absent = layout.read_report(layout.stage("label", name) / "report.json")["absent"]
    runs, routing = [], []
    if embedder == layout.LEXICAL:
        table = schemas.read(layout.stage("chunk", name) / "chunks.parquet", schemas.CHUNKS)
        bodies = {d.doc_id: d.body for d in load_documents(layout.parse(name))}
        for condition, its in settings.conditions.items():
            if its.retrieval == "bm25":
                kept = pc.equal(table["segmentation"], its.segmentation)
                chunks = table.filter(kept).to_pylist()
                contents = [bodies[c["doc_id"]][c["start"] : c["end"]] for c in chunks]
                runs += lexical(
                    condition, chunks, contents, questions, settings.retrieval.bm25,
                    settings.retrieval.depth,
                )
    else:
        encoder = settings.embedders[embedder]
        asked = [query_text(encoder, question["text"]) for question in questions]
        vectors = load(asked, encoder, layout.cell("embed", name, embedder))
        conditions = {
            condition: its
            for condition, its in settings.conditions.items()
            if its.retrieval != "bm25" and its.label not in absent
        }
        runs, routing = dense(
            layout.cell("index", name, embedder), conditions, questions, vectors.of(asked),
            settings.retrieval,
        )
    folder = layout.cell("retrieve", name, embedder)
    schemas.write(folder / "runs.parquet", schemas.RUNS, schemas.table(schemas.RUNS, runs))
    schemas.write(
        folder / "routing.parquet", schemas.ROUTING, schemas.table(schemas.ROUTING, routing)
    )
    write_trec(folder / "trec", runs)
    print(f"{len(runs)} ranked chunks for {len(questions)} questions")


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2])
