"""chunks and questions -> ranked lists of each lexical condition."""

import pyarrow.compute as pc

from spanwise import layout, params, schemas
from spanwise.documents.records import load_documents, load_questions
from spanwise.retrieval.runs import lexical, write_runs


def main(name: str) -> None:
    settings = params.load()
    questions = load_questions(layout.stage("ask", name)).to_pylist()
    table = schemas.read(layout.stage("chunk", name) / "chunks.parquet", schemas.CHUNKS)
    bodies = {d.doc_id: d.body for d in load_documents(layout.parse(name))}
    runs = []
    for condition, its in settings.conditions.items():
        if its.retrieval == "bm25":
            chunks = table.filter(pc.equal(table["segmentation"], its.segmentation)).to_pylist()
            contents = [bodies[c["doc_id"]][c["start"] : c["end"]] for c in chunks]
            runs += lexical(
                condition, chunks, contents, questions, settings.retrieval.bm25,
                settings.retrieval.depth,
            )
    write_runs(layout.cell("retrieve", name, layout.LEXICAL), runs, [])
    print(f"{len(runs)} ranked chunks for {len(questions)} questions")


if __name__ == "__main__":
    layout.run(main)
