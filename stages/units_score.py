"""ranked lists of units -> outcomes at equal units, characters and tokens; frozen traces."""

from spanwise import layout, params, schemas
from spanwise.documents.records import load_documents
from spanwise.models import tokenizer
from spanwise.units.identity import parents
from spanwise.units.needs import read as needs_of
from spanwise.units.outcomes import Held, Judge, tables
from spanwise.units.ranking import load_units


def main(name: str) -> None:
    settings = params.load()
    folder, out = layout.stage("units", name), layout.stage("units-score", name)
    report = layout.read_report(folder / "report.json")
    if not report["asked"]:
        layout.write_report(out / "report.json", {"asked": False})
        return
    needs = needs_of(folder)
    units = load_units(folder)
    judge = Judge(
        needs, parents(load_documents(layout.parse(name)), report["representation"]),
        tokenizer(settings), settings.units,
    )
    outcomes, traces = [], []
    for retriever in (layout.LEXICAL, *settings.embedders):
        cell = layout.cell("units-retrieve", name, retriever)
        runs = schemas.read(cell / "runs.parquet", schemas.UNIT_RUNS)
        seen = {}
        if retriever != layout.LEXICAL:
            rows = schemas.read(cell / "seen.parquet", schemas.SEEN).to_pylist()
            seen = {row["passage_id"]: row["seen"] for row in rows}
        judged, frozen = judge.retriever(
            retriever, {name: Held(found, seen) for name, found in units.items()}, runs
        )
        outcomes += judged
        traces += frozen
    for file, (schema, found) in tables(outcomes, traces).items():
        schemas.write(out / file, schema, found)
    layout.write_report(
        out / "report.json", {"asked": True, "outcomes": len(outcomes), "traced": len(traces)}
    )


if __name__ == "__main__":
    layout.run(main)
