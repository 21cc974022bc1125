"""documents and trees -> chunks of each segmentation, sizes matched."""

from spanwise import layout, models, params, schemas
from spanwise.chunking.chunks import chunk_corpus
from spanwise.chunking.external import chunk_external
from spanwise.documents.records import load_documents
from spanwise.structure.records import load_trees


def main(name: str) -> None:
    settings = params.load()
    trees = {
        "native": load_trees(layout.parse(name) / "sections.parquet"),
        "induced": load_trees(layout.stage("induce", name) / "sections.parquet"),
    }
    documents, tokenizer = load_documents(layout.parse(name)), models.tokenizer(settings)
    chunks, report = chunk_corpus(documents, trees, tokenizer, settings.chunking)
    others, counts = chunk_external(
        settings.external, documents, trees, tokenizer, settings.chunking,
        report["segmentations"]["fixed"]["mean_tokens"],
    )
    report["segmentations"] |= counts
    rows = [
        {
            "segmentation": c.segmentation, "chunk_id": c.chunk_id, "doc_id": c.doc_id,
            "start": c.start, "end": c.end, "tokens": c.tokens, "path": list(c.path),
            "node": c.node,
        }
        for c in [*chunks, *others]
    ]
    folder = layout.stage("chunk", name)
    schemas.write(folder / "chunks.parquet", schemas.CHUNKS, schemas.table(schemas.CHUNKS, rows))
    layout.write_report(folder / "report.json", report)


if __name__ == "__main__":
    layout.run(main)
