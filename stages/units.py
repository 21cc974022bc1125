"""documents and questions -> units with their manifests, information needs with anchors."""

from spanwise import layout, params, schemas
from spanwise.documents.records import load_documents, load_questions
from spanwise.models import tokenizer
from spanwise.structure.records import load_trees
from spanwise.units.cutting import cut, cut_by
from spanwise.units.identity import collection
from spanwise.units.needs import anchored


def main(name: str) -> None:
    settings = params.load()
    corpus = settings.corpus(name)
    folder = layout.stage("units", name)
    if not corpus.units:
        layout.write_report(folder / "report.json", {"asked": False})
        return
    documents = load_documents(layout.parse(name))
    known, anchors, needs, counts = anchored(
        schemas.read(layout.parse(name) / "anchors.parquet", schemas.ANCHORS),
        load_questions(layout.stage("ask", name)).to_pylist(), documents,
    )
    trees = load_trees(layout.parse(name) / "sections.parquet")
    manifests = cut(documents, known, trees, corpus.reader, tokenizer(settings), settings.units)
    for segmentation, found in manifests.items():
        schemas.write(folder / layout.units_table(segmentation), schemas.UNITS, found)
    schemas.write(folder / "anchors.parquet", schemas.ANCHORS, anchors)
    schemas.write(folder / "needs.parquet", schemas.NEEDS, needs)
    layout.write_report(
        folder / "report.json",
        {
            "asked": True, "representation": anchors["representation"][0].as_py(),
            "cut_by": cut_by(settings), "collection": collection(known),
            "documents": len(documents), **counts,
            "units": {segmentation: found.num_rows for segmentation, found in manifests.items()},
        },
    )


if __name__ == "__main__":
    layout.run(main)
