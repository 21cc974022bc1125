"""scores -> means, contrasts and their bootstrap draws, held against the registration."""

from collections import Counter

from spanwise import layout, params, registration, schemas
from spanwise.documents.records import load_questions
from spanwise.statistics.families import inferred
from spanwise.statistics.study import Study, means


def main(name: str) -> None:
    settings = params.load()
    chunked = layout.read_report(layout.stage("chunk", name) / "report.json")
    questions = load_questions(
        layout.stage("ask", name), chunked["unusable_induced_trees"]
    ).to_pylist()
    asked = layout.read_report(layout.stage("ask", name) / "report.json")
    digests = registration.digests_of(name)
    scored = layout.read_report(layout.stage("score", name) / "report.json")
    standing = registration.standing(
        settings, name, digests, documents=registration.documents_of(name)
    )
    study = Study(
        settings,
        schemas.read(layout.stage("score", name) / "scores.parquet", schemas.SCORES),
        layout.read_report(layout.stage("label", name) / "report.json")["absent"],
        standing.word,
        {
            q["question_id"]: sorted({q["doc_id"], *(e["doc_id"] for e in q["evidence"])})
            for q in questions
            if q["excluded"] is None and q["base"] is None
        },
        frozenset(q["question_id"] for q in questions if q["excluded"] is not None),
    )
    folder = layout.stage("infer", name)
    found = inferred(study)
    for table, schema, rows in (
        ("means", schemas.MEANS, means(study)),
        ("contrasts", schemas.CONTRASTS, found.contrasts),
        ("replicates", schemas.REPLICATES, found.replicates),
        ("checks", schemas.CHECKS, found.checks),
        ("mixed", schemas.MIXED, found.mixed),
    ):
        schemas.write(folder / f"{table}.parquet", schema, schemas.table(schema, rows))
    why = Counter(q["excluded"] for q in questions if q["excluded"] is not None)
    why["rewording"] = sum(q["base"] is not None and q["excluded"] is None for q in questions)
    layout.write_report(
        folder / "report.json",
        {
            "corpus": name, "demonstration": settings.corpus(name).demonstration,
            "standing": standing.word, "differences": list(standing.differences),
            "registered_at": standing.parent_commit, "questions": len(questions),
            "origin": asked["origin"],
            "primary_questions": len(questions) - sum(why.values()),
            "exclusions": dict(sorted(why.items())),
            "bm25_gold_first": scored["bm25_gold_first"], "digests": digests,
        },
    )


if __name__ == "__main__":
    layout.run(main)
