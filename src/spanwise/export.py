"""`spanwise export`: a corpus's questions and texts as other people's retrievers read them."""

from __future__ import annotations

from dataclasses import dataclass

from spanwise import layout
from spanwise.chunking.door import as_lines
from spanwise.documents.records import load_documents, load_questions
from spanwise.errors import InputError

REPRESENTATIONS = ("body", "raw")


@dataclass(frozen=True, slots=True)
class Exported:
    """Questions as `spanwise score` reads them, and the texts that their evidence is of.

    questions: JSON lines `question_id doc_id text type base evidence bundles`.
    texts:     JSON lines `doc_id text`.
    notes:     what to bear in mind, a line each.
    """

    questions: str
    texts: str
    notes: tuple[str, ...]


def export(name: str, representation: str | None = None) -> Exported:
    """The questions of a corpus that has been parsed and asked, without those that were excluded.

    representation: the text that offsets count code points of, `raw` (a file's own text, or what
                    its reader lays out) or `body` (without headings), which the study searches
                    [raw where every question has evidence on it].
    raises:         InputError if the corpus has no such text, has not been asked, or was asked
                    about other texts.
    """
    layout.digests(name)  # refuses questions about other texts than those of `parse`
    asked = load_questions(layout.stage("ask", name)).to_pylist()
    rows = [row for row in asked if row["excluded"] is None]
    documents = load_documents(layout.parse(name))
    flat = [d.doc_id for d in documents if d.raw is None]
    flat += [row["question_id"] for row in rows if row["raw_evidence"] is None]
    chosen = representation or ("body" if flat else "raw")
    if chosen not in REPRESENTATIONS:
        raise InputError(f"representation {chosen!r}: expected one of {', '.join(REPRESENTATIONS)}")
    if chosen == "raw" and flat:
        raise InputError(
            f"corpus {name!r}: nothing on raw for {flat[0]!r} ({len(flat)} in all); use "
            "--representation body"
        )
    prefix = "raw_" if chosen == "raw" else ""
    rewordings = sum(row["base"] is not None for row in rows)
    notes = [f"offsets are of {chosen}"]
    if left_out := len(asked) - len(rows):
        notes.append(f"{left_out} questions are excluded from the study and left out")
    if rewordings:
        notes.append(f"{rewordings} are rewordings (`base` names the question), which the study's "
                     "means leave out")
    return Exported(
        as_lines([
            {
                **{key: row[key] for key in ("question_id", "doc_id", "text", "type", "base")},
                **{key: row[prefix + key] for key in ("evidence", "bundles")},
            }
            for row in rows
        ]),
        as_lines([
            {"doc_id": d.doc_id, "text": d.raw if chosen == "raw" else d.body} for d in documents
        ]),
        tuple(notes),
    )
