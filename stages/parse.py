"""data/<corpus> -> trusted view: documents, paragraph tables, native trees, questions."""

from spanwise import layout, params, schemas
from spanwise.corpora.apart import both
from spanwise.documents.records import anchor_table, digests, document_tables, question_table
from spanwise.errors import CorpusError
from spanwise.structure.model import verify
from spanwise.structure.native import closed_up, native_tree
from spanwise.structure.records import section_table

TABLES = {
    "documents": schemas.DOCUMENTS, "paragraphs": schemas.PARAGRAPHS,
    "sections": schemas.SECTIONS, "questions": schemas.QUESTIONS, "anchors": schemas.ANCHORS,
}


def main(name: str) -> None:
    settings = params.load().corpus(name)
    report, written = {}, {}
    for split, corpus in both(settings).items():
        trees = [native_tree(document) for document in corpus.documents]
        for document, tree in zip(corpus.documents, trees, strict=True):
            if violations := verify(tree, document.paragraphs):
                raise CorpusError(f"{document.doc_id}: native tree: {'; '.join(violations)}")
        questions, mapping = question_table(corpus)
        tables = document_tables(corpus.documents)
        tables |= {
            "sections": section_table(trees), "questions": questions,
            "anchors": anchor_table(corpus),
        }
        written[split] = tables
        report[split] = {
            **corpus.counts, "questions listed": questions.num_rows, **mapping,
            "native sections": tables["sections"].num_rows, **closed_up(corpus.documents),
            "digests": digests(tables),
        }
    for split, tables in written.items():  # only now: what is wrong in one split leaves no other
        for table, found in tables.items():
            schemas.write(layout.parse(name, split) / f"{table}.parquet", TABLES[table], found)
    layout.write_report(layout.stage("parse", name) / "report.json", report)


if __name__ == "__main__":
    layout.run(main)
