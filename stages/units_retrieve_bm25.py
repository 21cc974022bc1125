"""units and needs -> ranked lists by BM25."""

from spanwise import layout, params, schemas
from spanwise.documents.records import load_documents
from spanwise.units.identity import parents
from spanwise.units.ranking import lexical, load_units


def main(name: str) -> None:
    settings = params.load()
    folder = layout.stage("units", name)
    out = layout.cell("units-retrieve", name, layout.LEXICAL)
    report = layout.read_report(folder / "report.json")
    if report["asked"]:
        needs = schemas.read(folder / "needs.parquet", schemas.NEEDS)
        asked = list(zip(needs["need_id"].to_pylist(), needs["text"].to_pylist(), strict=True))
        known = parents(load_documents(layout.parse(name)), report["representation"])
        runs = lexical(
            load_units(folder), known, asked, settings.retrieval.bm25, settings.units.depth
        )
        schemas.write(out / "runs.parquet", schemas.UNIT_RUNS, runs)
    layout.write_report(
        out / "report.json",
        {"asked": report["asked"], "ranked_by": settings.retrieval.bm25.model_dump()},
    )


if __name__ == "__main__":
    layout.run(main)
