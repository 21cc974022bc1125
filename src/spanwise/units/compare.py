"""Outcomes -> means, and differences paired by need and clustered by document. All exploratory.

The development and the reworded slice stand apart: reworded needs share their bases' anchors, so
that the one is no confirmation of the other.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from spanwise.params import InferenceSettings
from spanwise.statistics.clusters import connected
from spanwise.statistics.contrasts import Column, Contrast, Paired, holm, infer, pair
from spanwise.statistics.linearised import FEW
from spanwise.units.needs import SLICES
from spanwise.units.outcomes import BASES, MEASURES
from spanwise.units.reach import CAUSES

SEGMENTATION_PAIRS = (("sections", "blocks"), ("sections", "windows"), ("windows", "blocks"))
"""What is compared under each retriever."""

Rows = Sequence[Mapping[str, Any]]


def means(outcomes: Rows) -> list[dict[str, Any]]:
    """Rows of UNIT_MEANS. What was returned is averaged over all needs, no-answer ones included."""
    groups: dict[tuple[Any, ...], list[Mapping[str, Any]]] = defaultdict(list)
    keys = ("retriever", "segmentation", "slice", "basis", "amount")
    for row in outcomes:
        groups[tuple(row[key] for key in keys)].append(row)
    made = []
    for key, rows in groups.items():
        answerable = [row for row in rows if row["covered"] is not None]
        made.append(
            {
                **dict(zip(keys, key, strict=True)), "n_needs": len(rows),
                "n_answerable": len(answerable),
                **{
                    measure: _mean([row[measure] for row in answerable]) if answerable else None
                    for measure in MEASURES
                },
                **{
                    size: _mean([row[size] for row in rows])
                    for size in ("units", "characters", "tokens")
                },
                "ended": sum(row["ended"] for row in rows),
                **{
                    f"{measure}_{cause}": sum(row[f"{measure}_cause"] == cause for row in rows)
                    if key[3] == "units" else None
                    for measure in MEASURES for cause in CAUSES
                },
            }
        )
    return made


def comparisons(
    outcomes: Rows, embedders: Sequence[str], lexical: str, settings: InferenceSettings,
    documents: Mapping[str, Sequence[str]],
) -> list[dict[str, Any]]:
    """Rows of UNIT_COMPARISONS.

    documents: of each need's anchors, and its own.

    Families: `segmentation`, the pairs under one retriever; `retriever`, each embedder minus BM25
    over one segmentation, where both are given the same; `connected`, the former of the development
    slice once more with documents that share a need's anchors as one cluster, where there are any.
    Holm's correction is within one family of one measure, amount and slice: the pairs of a
    retriever, or of a segmentation.
    """
    columns: dict[tuple[str, str, int, str], dict[tuple[str, str], dict[str, Any]]] = defaultdict(
        lambda: defaultdict(dict)
    )
    for row in outcomes:
        for measure in MEASURES:
            at = (row["slice"], row["basis"], row["amount"], measure)
            columns[at][row["retriever"], row["segmentation"]][row["need_id"]] = (
                row["doc_id"], row[measure]
            )
    joined = connected(documents.values())
    crossing = any(joined[doc] != doc for doc in joined)
    order = {name: place for place, name in enumerate((*SLICES, *BASES, *MEASURES))}
    families: list[_Family] = []
    for at in sorted(columns, key=lambda k: (order[k[0]], order[k[1]], k[2], order[k[3]])):
        found = columns[at]
        retrievers = [r for r in (lexical, *embedders) if any(key[0] == r for key in found)]
        for retriever in retrievers:
            pairs = [((retriever, a), (retriever, b)) for a, b in SEGMENTATION_PAIRS]
            families.append(_Family(at, "segmentation", pairs, found))
            if crossing and at[0] == SLICES[0] and at[1] in ("units", "matched"):
                families.append(_Family(at, "connected", pairs, {
                    key: {
                        need: (joined.get(doc, doc), value) for need, (doc, value) in column.items()
                    }
                    for key, column in found.items()
                }))
        if at[1] == "matched":  # each retriever's own sections set the amounts
            continue
        for segmentation in dict.fromkeys(key[1] for key in found):
            pairs = [
                ((embedder, segmentation), (lexical, segmentation))
                for embedder in retrievers if embedder != lexical
            ]
            families.append(_Family(at, "retriever", pairs, found))
    # All at once: pairs over the same documents share their draws.
    drawn = infer(
        [paired for family in families for paired in family.paired()],
        settings.iterations, settings.seed, few=FEW,
    )
    made: list[dict[str, Any]] = []
    for family in families:
        mine, drawn = drawn[: len(family.pairs)], drawn[len(family.pairs) :]
        made += family.rows(mine)
    return made


@dataclass(frozen=True, slots=True)
class _Family:
    """Pairs that one correction is over."""

    at: tuple[str, str, int, str]
    name: str
    pairs: Sequence[tuple[tuple[str, str], tuple[str, str]]]
    columns: Mapping[tuple[str, str], Column]

    def paired(self) -> list[Paired]:
        return [
            pair(
                f"{'/'.join(a)} - {'/'.join(b)}"
                + (" (connected)" if self.name == "connected" else ""),
                self.columns[a], self.columns[b],
            )
            for a, b in self.pairs
        ]

    def rows(self, drawn: Sequence[Contrast]) -> list[dict[str, Any]]:
        slice_, basis, amount, measure = self.at
        figures = ("mean_a", "mean_b", "delta", "ci_low", "ci_high", "p", "dz")
        adjusted = holm([found.p for found in drawn], len(drawn))
        return [
            {
                "slice": slice_, "basis": basis, "amount": amount, "measure": measure,
                "name": found.name, "family": self.name, "a": "/".join(a), "b": "/".join(b),
                "n_questions": found.n_questions, "n_documents": found.n_documents,
                "excluded": sum(found.excluded.values()), "reason": found.reason,
                **{figure: getattr(found, figure) for figure in figures}, "p_holm": p_holm,
            }
            for (a, b), found, p_holm in zip(self.pairs, drawn, adjusted, strict=True)
        ]


def _mean(values: Sequence[float]) -> float:
    return math.fsum(values) / len(values)
