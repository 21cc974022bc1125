"""vectors -> a LanceDB table, and the digest of its rows."""

import pyarrow as pa

from spanwise import layout, params, schemas
from spanwise.documents.records import load_documents
from spanwise.embedding import load
from spanwise.index import build, rows
from spanwise.labelling import texts


def main(name: str, embedder: str) -> None:
    settings = params.load()
    labels = schemas.read(layout.stage("label", name) / "labels.parquet", schemas.LABELS)
    chunks = schemas.read(layout.stage("chunk", name) / "chunks.parquet", schemas.CHUNKS)
    found = texts(labels, load_documents(layout.parse(name)))
    vectors = load(found, settings.embedder(embedder), layout.cell("embed", name, embedder))
    about = {(c["segmentation"], c["chunk_id"]): c for c in chunks.to_pylist()}
    known = settings.labels()
    entries = [
        {
            "label": row["label"], "chunk_id": row["chunk_id"], "doc_id": row["doc_id"],
            "start": row["start"], "end": row["end"],
            "node": about[known[row["label"]].segmentation, row["chunk_id"]]["node"],
            "path": about[known[row["label"]].segmentation, row["chunk_id"]]["path"],
            "conditions": [
                condition
                for condition, its in settings.conditions.items()
                if its.label == row["label"] and its.retrieval != "bm25"
            ],
        }
        for row in labels.to_pylist()
    ]
    made = build(
        layout.cell("index", name, embedder), rows(pa.Table.from_pylist(entries), vectors.of(found))
    )
    layout.write_report(layout.cell_report("index", name, embedder), made)


if __name__ == "__main__":
    layout.run(main)
