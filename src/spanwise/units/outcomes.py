"""Ranked lists -> what each need got, at equal units, equal characters and equal tokens."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from spanwise import schemas
from spanwise.errors import InputError
from spanwise.measures.places import Unit, shared
from spanwise.params import UnitsSettings
from spanwise.spans import Evidence
from spanwise.text.tokens import Tokenizer
from spanwise.units.identity import Parent
from spanwise.units.needs import Need
from spanwise.units.reach import Bought, Reach, buy, cause, reach

BASES = ("units", "characters", "tokens", "characters-cut", "tokens-cut", "matched")
"""What is held equal. The first three return whole units; `-cut` returns the beginning of the unit
that does not fit as well, so that all segmentations return the same amount of text, unless a list
is over before. `matched` gives each need as many characters as its first sections have."""

REFERENCE = "sections"
"""Whose amount the others are given under `matched`: the only units without a bound on length."""

MEASURES = ("sufficient", "covered")


class Held:
    """All units of one segmentation by passage id, and what a retriever's encoder saw of each."""

    def __init__(self, rows: Sequence[Mapping[str, Any]], seen: Mapping[str, int]) -> None:
        """rows: of UNITS. seen: passage id -> code points; empty for BM25, which sees all."""
        self.rows = {row["passage_id"]: row for row in rows}
        self.units = {
            passage: Unit(row["doc_id"], row["start"], row["end"], row["tokens"])
            for passage, row in self.rows.items()
        }
        self._within: dict[str, tuple[list[Unit], list[Unit]]] = defaultdict(lambda: ([], []))
        for passage, unit in self.units.items():
            whole, begun = self._within[unit.doc_id]
            whole.append(unit)
            if count := seen.get(passage, unit.end - unit.start):
                begun.append(Unit(unit.doc_id, unit.start, min(unit.end, unit.start + count)))

    def unit(self, passage: str) -> Unit:
        """Where a unit lies.

        raises: InputError if the segmentation has no such unit.
        """
        if passage not in self.units:
            raise InputError(
                f"{passage} was retrieved and is no unit of this segmentation; run `dvc repro`"
            )
        return self.units[passage]

    def within(self, anchors: Sequence[Evidence]) -> tuple[list[Unit], list[Unit]]:
        """The units that hold any of some anchors, and what the encoder saw of each."""
        found: tuple[list[Unit], list[Unit]] = ([], [])
        for doc_id in sorted({anchor.doc_id for anchor in anchors}):
            mine = [anchor for anchor in anchors if anchor.doc_id == doc_id]
            for kept, units in zip(found, self._within[doc_id], strict=True):
                kept += [unit for unit in units if any(shared(unit, anchor) for anchor in mine)]
        return found


class Judge:
    """Judges the lists of one corpus."""

    def __init__(
        self, needs: Sequence[Need], known: Mapping[str, Parent], tokenizer: Tokenizer,
        settings: UnitsSettings,
    ) -> None:
        self.needs, self.known, self.settings = needs, known, settings
        self.tokenizer = tokenizer
        self._kept: dict[str, NDArray[np.int64]] = {}

    def retriever(
        self, name: str, held: Mapping[str, Held], runs: pa.Table
    ) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
        """Rows of OUTCOMES and of TRACES for one retriever over all segmentations.

        held: segmentation -> its units.
        """
        outcomes: list[dict[str, Any]] = []
        traces: list[dict[str, Any]] = []
        amounts: dict[tuple[str, int], int] = {}
        for segmentation in sorted(held, key=lambda s: s != REFERENCE):
            its = runs.filter(pc.equal(runs["segmentation"], segmentation))
            judged, frozen = self.judge(name, segmentation, held[segmentation], its, amounts)
            outcomes += judged
            traces += frozen
            if segmentation == REFERENCE:
                amounts = {
                    (row["need_id"], row["amount"]): row["characters"]
                    for row in judged if row["basis"] == "units"
                }
                outcomes += [
                    {**row, "basis": "matched", "ended": False, "covered_cause": None,
                     "sufficient_cause": None}
                    for row in judged if row["basis"] == "units"
                ]
        return outcomes, traces

    def judge(
        self, retriever: str, segmentation: str, held: Held, runs: pa.Table,
        amounts: Mapping[tuple[str, int], int],
    ) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
        """The rows of one segmentation.

        amounts: (need_id, cutoff) -> code points to return under `matched`; empty leaves it out.
        """
        lists: dict[str, list[tuple[str, float]]] = defaultdict(list)
        for row in runs.to_pylist():  # sorted by need and rank
            lists[row["need_id"]].append((row["passage_id"], row["score"]))
        outcomes, traces = [], []
        for need in self.needs:
            ranked = lists.get(need.need_id, [])
            units = [held.unit(passage) for passage, _ in ranked]
            head = {"retriever": retriever, "segmentation": segmentation, "need_id": need.need_id}
            about = {**head, "doc_id": need.doc_id, "slice": need.slice, "type": need.type}
            for row in self._outcomes(need, held, [p for p, _ in ranked], units, amounts):
                outcomes.append({**about, **row})
            deepest = self.settings.cutoffs[-1]
            top = zip(ranked[:deepest], units[:deepest], strict=True)
            for rank, ((passage, score), unit) in enumerate(top, start=1):
                row = dict(held.rows[passage])
                del row["tokens"], row["text_sha256"]
                met, part = _held(unit, need)
                traces.append(
                    {**row, **head, "rank": rank, "score": score, "met": met, "part": part}
                )
        return outcomes, traces

    def _outcomes(
        self, need: Need, held: Held, passages: Sequence[str], units: Sequence[Unit],
        matched: Mapping[tuple[str, int], int],
    ) -> Iterator[dict[str, Any]]:
        found = reach(units, need.anchors, need.bundles) if need.bundles else None
        sizes = {
            "units": [1] * len(units), "characters": [u.end - u.start for u in units],
            "tokens": [u.tokens or 0 for u in units],
        }
        places = held.within(need.anchors) if found else ([], [])
        budgets = {
            "units": self.settings.cutoffs, "characters": self.settings.characters,
            "tokens": self.settings.tokens, "matched": self.settings.cutoffs if matched else [],
        }
        for basis in BASES:
            amounts = budgets[basis.removesuffix("-cut")]
            counted = "characters" if basis == "matched" else basis.removesuffix("-cut")
            cutting = basis == "matched" or basis.endswith("-cut")

            def prefix(place: int, size: int, counted: str = counted) -> int:
                return size if counted == "characters" else self._end(passages[place], units[place],
                                                                      size)

            for amount in amounts:
                budget = matched[need.need_id, amount] if basis == "matched" else amount
                bought = buy(
                    units, sizes[counted], budget, need.anchors, need.bundles, found,
                    prefix if cutting else None,
                )
                yield {
                    "basis": basis, "amount": amount, "sufficient": bought.sufficient,
                    "covered": bought.covered, "units": bought.whole + bool(bought.rest),
                    "characters": sum(sizes["characters"][: bought.whole]) + bought.rest,
                    "tokens": self._tokens(bought, passages, units, sizes["tokens"]),
                    "ended": bought.ended, **_causes(basis, amount, need, found, places),
                }

    def _end(self, passage: str, unit: Unit, tokens: int) -> int:
        """Code points that the first tokens of a unit reach over."""
        edges = self._edges(passage, unit)
        return int(edges[min(tokens, len(edges)) - 1, 1]) if len(edges) else 0

    def _tokens(
        self, bought: Bought, passages: Sequence[str], units: Sequence[Unit], sizes: Sequence[int]
    ) -> int:
        """Tokens of what was returned; of a unit that was cut short, those that begin in it."""
        total = sum(sizes[: bought.whole])
        if bought.rest:
            edges = self._edges(passages[bought.whole], units[bought.whole])
            total += int((edges[:, 0] < bought.rest).sum())
        return total

    def _edges(self, passage: str, unit: Unit) -> NDArray[np.int64]:
        if passage not in self._kept:
            text = self.known[unit.doc_id].text[unit.start : unit.end]
            self._kept[passage] = self.tokenizer.offsets(text)
        return self._kept[passage]


def _held(unit: Unit, need: Need) -> tuple[list[int], list[int]]:
    """Anchors that a unit holds whole, and those that it holds some of."""
    met: list[int] = []
    part: list[int] = []
    for i, anchor in enumerate(need.anchors):
        if (found := shared(unit, anchor)) is not None:
            (met if len(found) == anchor.end - anchor.start else part).append(i)
    return met, part


def _causes(
    basis: str, amount: int, need: Need, found: Reach | None,
    places: tuple[Sequence[Unit], Sequence[Unit]],
) -> dict[str, str | None]:
    """One cause of each miss at equal units; null where met, without an answer, or a budget."""
    causes: dict[str, str | None] = {f"{measure}_cause": None for measure in MEASURES}
    if basis != "units" or found is None:
        return causes
    for measure in MEASURES:
        reached = getattr(found, measure)
        if reached is None or reached > amount:
            causes[f"{measure}_cause"] = cause(
                amount, need.anchors, need.bundles, *places, alone=measure == "sufficient"
            )
    return causes


def beyond(
    units: Mapping[str, Sequence[Mapping[str, Any]]], seen: Mapping[str, int],
    needs: Sequence[Need],
) -> dict[str, dict[str, int]]:
    """For each segmentation, what the encoder never saw: units, characters, anchor characters.

    Anchor characters are summed over the development needs and the units that hold them, so that
    an anchor in two windows counts in each.
    """
    found = {}
    for name, rows in units.items():
        lost = [
            Unit(row["doc_id"], row["start"] + seen[row["passage_id"]], row["end"])
            for row in rows
            if row["start"] + seen[row["passage_id"]] < row["end"]
        ]
        wanted = [a for need in needs if need.slice == "development" for a in need.anchors]
        found[name] = {
            "units": len(rows), "units truncated": len(lost),
            "characters never seen": sum(unit.end - unit.start for unit in lost),
            "anchor characters never seen": sum(
                len(part) for unit in lost for anchor in wanted if (part := shared(unit, anchor))
            ),
        }
    return found


def tables(
    outcomes: Sequence[Mapping[str, Any]], traces: Sequence[Mapping[str, Any]]
) -> dict[str, tuple[schemas.Schema, pa.Table]]:
    """Both tables with their schemas, by file name."""
    return {
        "outcomes.parquet": (schemas.OUTCOMES, schemas.table(schemas.OUTCOMES, outcomes)),
        "traces.parquet": (schemas.TRACES, schemas.table(schemas.TRACES, traces)),
    }
