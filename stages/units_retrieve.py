"""units and needs -> ranked lists by vectors, and what the encoder saw of each unit."""

from spanwise import layout, params, schemas
from spanwise.documents.records import load_documents
from spanwise.embedding import embed, load, query_text
from spanwise.units.identity import parents
from spanwise.units.needs import read as needs_of
from spanwise.units.outcomes import beyond
from spanwise.units.ranking import dense, load_units, texts


def main(name: str, embedder: str) -> None:
    settings = params.load()
    folder, out = layout.stage("units", name), layout.cell("units-retrieve", name, embedder)
    report = layout.read_report(folder / "report.json")
    if not report["asked"]:
        layout.write_report(out / "report.json", {"asked": False})
        return
    encoder = settings.embedder(embedder)
    needs = needs_of(folder)
    known = parents(load_documents(layout.parse(name)), report["representation"])
    units = load_units(folder)
    passages = {segmentation: texts(found, known) for segmentation, found in units.items()}
    queries = [query_text(encoder, need.text) for need in needs]
    asked = load(queries, encoder, layout.cell("embed", name, embedder))
    vectors, computed = embed(
        [text for found in passages.values() for text in found], encoder,
        layout.unit_vectors(name, embedder),
    )
    print(f"{computed} of {len(vectors.rows)} vectors were computed now")
    runs = dense(
        units, {segmentation: vectors.of(found) for segmentation, found in passages.items()},
        [(need.need_id, need.text) for need in needs], asked.of(queries), settings.units.depth,
    )
    seen = {
        unit["passage_id"]: int(vectors.seen[vectors.rows[text]])
        for segmentation, found in passages.items()
        for unit, text in zip(units[segmentation], found, strict=True)
    }
    schemas.write(out / "runs.parquet", schemas.UNIT_RUNS, runs)
    schemas.write(out / "seen.parquet", schemas.SEEN, schemas.table(schemas.SEEN, [
        {"segmentation": segmentation, "passage_id": unit["passage_id"],
         "seen": seen[unit["passage_id"]]}
        for segmentation, found in units.items() for unit in found
    ]))
    layout.write_report(
        out / "report.json",
        {
            "asked": True, "ranked_by": encoder.model_dump(),
            "distinct_texts": len(vectors.rows),
            "window_tokens": encoder.max_seq_length, "beyond_window": beyond(units, seen, needs),
        },
    )


if __name__ == "__main__":
    layout.run(main)
