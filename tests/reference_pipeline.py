"""The pipeline's results again, slowly, from its own raw artifacts: characters, sorts and loops."""

from __future__ import annotations

from collections import defaultdict
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from spanwise import embedding, params, schemas

from . import reference_measures as twin

Row = dict[str, Any]


class Artifacts:
    """The tables of one corpus and one embedder, as rows."""

    def __init__(self, project: Path, corpus: str, embedder: str) -> None:
        self.project, self.corpus = project, corpus
        self.params = params.load(project / "params.yaml")
        self.embedder = self.params.embedders[embedder]
        self.documents = {
            d["doc_id"]: d for d in self.rows("parse", "study/documents", schemas.DOCUMENTS)
        }
        self.paragraphs = self.rows("parse", "study/paragraphs", schemas.PARAGRAPHS)
        self.questions = {
            q["question_id"]: q for q in self.rows("ask", "questions", schemas.QUESTIONS)
        }
        self.chunks = {
            (c["segmentation"], c["chunk_id"]): c
            for c in self.rows("chunk", "chunks", schemas.CHUNKS)
        }
        self.labels: dict[str, list[Row]] = defaultdict(list)
        for row in self.rows("label", "labels", schemas.LABELS):
            self.labels[row["label"]].append(row)
        dim = 384
        self.vectors = {
            v["key"]: np.array(v["vector"], dtype=np.float64)
            for v in self.rows("embed", f"{embedder}/vectors", schemas.vectors(dim))
        }
        self.runs: dict[tuple[str, str], list[str]] = defaultdict(list)
        for cell in (embedder, "bm25"):
            for row in self.rows("retrieve", f"{cell}/runs", schemas.RUNS):
                self.runs[row["condition"], row["question_id"]].append(row["chunk_id"])
        self.routing = {
            (r["condition"], r["question_id"]): r
            for r in self.rows("retrieve", f"{embedder}/routing", schemas.ROUTING)
        }
        self.scores = {
            (s["condition"], s["question_id"]): s
            for s in self.rows("score", "scores", schemas.SCORES)
        }
        self.contrasts = self.rows("infer", "contrasts", schemas.CONTRASTS)

    def rows(self, stage: str, table: str, schema: schemas.Schema) -> list[Row]:
        path = self.project / "artifacts" / stage / self.corpus / f"{table}.parquet"
        found: list[Row] = schemas.read(path, schema).to_pylist()
        return found

    @property
    def primary(self) -> list[Row]:
        """Answerable questions that reword none."""
        return [q for q in self.questions.values() if q["excluded"] is None and not q["base"]]

    def evidence(self, question: Row) -> list[set[tuple[str, int]]]:
        """The characters of body of each bundle, from those of raw, one character at a time."""
        place = {
            (p["doc_id"], p["raw_start"] + i): p["start"] + i
            for p in self.paragraphs for i in range(p["end"] - p["start"])
        }
        bundles = []
        for bundle in question["raw_bundles"]:
            held: set[tuple[str, int]] = set()
            for span in (question["raw_evidence"][i] for i in bundle):
                there = [
                    place[span["doc_id"], i] for i in range(span["start"], span["end"])
                    if (span["doc_id"], i) in place
                ]
                if there:  # from the first to the last character that is left
                    held |= {(span["doc_id"], i) for i in range(min(there), max(there) + 1)}
            if held and held not in bundles:
                bundles.append(held)
        return bundles

    def vector(self, text: str) -> NDArray[np.float64]:
        return self.vectors[embedding.key(self.embedder, text)]

    def ranking(self, condition: str, question: Row) -> tuple[list[str], list[str], float | None]:
        """Chunk ids best first, kept sections best first, and section recall, by brute force."""
        its = self.params.conditions[condition]
        shelf = sorted(
            self.labels[its.label], key=lambda row: (row["doc_id"], row["start"], row["end"])
        )
        query = self.vector(question["text"])
        vectors = [
            self.vector(r["prefix"]
                        + self.documents[r["doc_id"]]["body"][r["start"] : r["end"]].strip())
            for r in shelf
        ]
        near = [round(float((v * query).sum()), 6) for v in vectors]
        order = sorted(range(len(shelf)), key=lambda i: (-near[i], i))
        depth = self.params.retrieval.depth
        if its.retrieval == "flat":
            return [shelf[i]["chunk_id"] for i in order[:depth]], [], None
        members: dict[tuple[str, int], list[int]] = defaultdict(list)
        for i, row in enumerate(shelf):
            node = self.chunks[its.segmentation, row["chunk_id"]]["node"]
            members[row["doc_id"], node].append(i)
        closeness = {}
        for section, rows in members.items():
            mean = np.mean([vectors[i] for i in rows], axis=0)
            closeness[section] = round(float((mean / np.linalg.norm(mean) * query).sum()), 6)
        kept = sorted(closeness, key=lambda s: (-closeness[s], s))[: self.params.retrieval.sections]
        inside = {i for section in kept for i in members[section]}
        order = [*(i for i in order if i in inside), *(i for i in order if i not in inside)]
        gold = {(e["doc_id"], i) for e in question["evidence"]
                for i in range(e["start"], e["end"])}
        held = {(shelf[i]["doc_id"], c) for i in inside
                for c in range(shelf[i]["start"], shelf[i]["end"])}
        recall = float(bool(gold & held)) if gold else None
        return (
            [shelf[i]["chunk_id"] for i in order[:depth]], [f"{d}#{n}" for d, n in kept], recall
        )

    def measures(self, condition: str, question: Row) -> dict[str, float | None]:
        """Every measure of the recorded ranking, by the twin's sets of characters."""
        its = self.params.conditions[condition]
        prefix = {row["chunk_id"]: row["prefix_tokens"] for row in self.labels[its.label]}
        pieces = {
            chunk_id: twin.Piece(c["doc_id"], c["start"], c["end"], chunk_id, c["tokens"],
                                 prefix[chunk_id])
            for (segmentation, chunk_id), c in self.chunks.items()
            if segmentation == its.segmentation
        }
        gold = [twin.Piece(e["doc_id"], e["start"], e["end"]) for e in question["evidence"]]
        wanted = set().union(*(g.characters for g in gold)) if gold else set()
        # A chunk that touches no evidence is neither relevant nor part of an ideal order.
        able = [piece for piece in pieces.values() if piece.characters & wanted]
        ranked = [pieces[c] for c in self.runs[condition, question["question_id"]]]
        return twin.measures(ranked, able, gold, question["bundles"])

    def deltas(self, a: str, b: str, measure: str) -> dict[str, float]:
        return {
            q["question_id"]: self.scores[a, q["question_id"]][measure]
            - self.scores[b, q["question_id"]][measure]
            for q in self.primary
        }
