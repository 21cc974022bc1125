"""an index and questions -> ranked lists of each dense condition, as tables and TREC run files."""

from spanwise import layout, params
from spanwise.documents.records import load_questions
from spanwise.embedding import load, query_text
from spanwise.retrieval.runs import dense, write_runs


def main(name: str, embedder: str) -> None:
    settings = params.load()
    questions = load_questions(layout.stage("ask", name)).to_pylist()
    absent = layout.read_report(layout.stage("label", name) / "report.json")["absent"]
    encoder = settings.embedder(embedder)
    asked = [query_text(encoder, question["text"]) for question in questions]
    vectors = load(asked, encoder, layout.cell("embed", name, embedder))
    conditions = {
        condition: its
        for condition, its in settings.conditions.items()
        if its.retrieval != "bm25" and its.label not in absent
    }
    runs, routing = dense(
        layout.cell("index", name, embedder), conditions, questions, vectors.of(asked),
        settings.retrieval,
    )
    write_runs(layout.cell("retrieve", name, embedder), runs, routing)
    print(f"{len(runs)} ranked chunks for {len(questions)} questions")


if __name__ == "__main__":
    layout.run(main)
