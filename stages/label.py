"""chunks -> chunks with their prefixes."""

from spanwise import layout, models, params, schemas
from spanwise.documents.records import load_documents
from spanwise.labelling import label


def main(name: str) -> None:
    settings = params.load()
    chunks = schemas.read(layout.stage("chunk", name) / "chunks.parquet", schemas.CHUNKS)
    table, report = label(
        chunks.to_pylist(), load_documents(layout.parse(name)), settings.labels(),
        models.tokenizer(settings), settings.prefixes.placebo,
    )
    folder = layout.stage("label", name)
    schemas.write(folder / "labels.parquet", schemas.LABELS, table)
    layout.write_report(folder / "report.json", report)


if __name__ == "__main__":
    layout.run(main)
