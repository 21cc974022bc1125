"""outcomes of units -> means, and differences paired by need and clustered by document."""

from spanwise import layout, params, schemas
from spanwise.units.compare import comparisons, means
from spanwise.units.needs import read as needs_of


def main(name: str) -> None:
    settings = params.load()
    scored, out = layout.stage("units-score", name), layout.stage("units-infer", name)
    asked = layout.read_report(scored / "report.json")["asked"]
    if asked:
        documents = {
            need.need_id: sorted({need.doc_id, *(anchor.doc_id for anchor in need.anchors)})
            for need in needs_of(layout.stage("units", name))
        }
        outcomes = schemas.read(scored / "outcomes.parquet", schemas.OUTCOMES).to_pylist()
        for file, schema, rows in (
            ("means.parquet", schemas.UNIT_MEANS, means(outcomes)),
            ("comparisons.parquet", schemas.UNIT_COMPARISONS, comparisons(
                outcomes, list(settings.embedders), layout.LEXICAL, settings.inference,
                documents,
            )),
        ):
            schemas.write(out / file, schema, schemas.table(schema, rows))
    layout.write_report(out / "report.json", {"asked": asked})


if __name__ == "__main__":
    layout.run(main)
