"""`spanwise sweep`: run trials, and say what they came to."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from spanwise import layout
from spanwise.errors import CorpusError, InputError
from spanwise.params import Params
from spanwise.sweep import looked, results
from spanwise.sweep.own import embedder_of, load
from spanwise.sweep.results import PARAMETERS, Row, Sweep
from spanwise.sweep.trials import Plan, run
from spanwise.sweep.weight import importance

SHOWN = 5
"""Trials that are printed."""

WARNING = (
    "Exploratory. The best trial was chosen on these very questions, so its figure is too high, "
    "and it says nothing of other documents. Sizes are not matched: measures that count chunks "
    "favour long ones, those within a budget of tokens do not. To test it, make it a row of "
    "`conditions`, name a contrast, and register both for a corpus before the primary embedder "
    "runs on it."
)


@dataclass(frozen=True, slots=True)
class Said:
    """What a sweep came to, for a person and for a program, and notes, a line each."""

    found: Sweep
    text: str
    notes: tuple[str, ...] = ()

    def as_json(self) -> str:
        """One JSON object, with the warning that belongs to it."""
        best = self.found.complete[:1]
        return json.dumps(
            {"standing": "exploratory", "warning": WARNING, **asdict(self.found),
             "best": dict(best[0]) if best else None},
            indent=1, ensure_ascii=False, allow_nan=False,
        )


def sweep(
    settings: Params, corpus: str, trials: int | None = None, workers: int = 1,
    embedder: str | None = None,
) -> Said:
    """Run trials until there are `trials` of them, and leave what they came to in `sweeps/`.

    trials:   by default those of params.yaml; finished ones of earlier calls are among them.
    embedder: as `own.embedder_of` has it.
    raises:   ParamsError for the primary cell's embedder; CorpusError or QuestionError if the
              corpus has no documents or questions for sweeps, or one of the study's is among them,
              or if the study has one that a sweep looked at before; Unavailable if a model cannot
              be had.
    """
    from tqdm import tqdm

    settings.corpus(corpus)
    who = embedder_of(settings, embedder)
    own = load(settings, corpus)
    looked.refuse(corpus, CorpusError, "is not swept")
    plan, wanted = Plan(settings, own, who), trials or settings.sweep.trials
    possible(plan)
    # Before the first trial: a sweep that is cut off has looked as well.
    looked.keep(corpus, own.documents)
    # disable=None: drawn on a terminal, and nowhere else.
    with tqdm(total=wanted, desc=f"sweep {corpus}", unit="trial", disable=None) as bar:
        journal = run(plan, wanted, workers, bar.update)
    measure = settings.primary.measure
    while True:
        # Importance takes long, and the lock is lost to whoever waits longer than its grace.
        rows = journal.rows()
        found = Sweep(
            corpus, who, measure, len(own.documents), own.questions.num_rows, dict(own.digests),
            plan.depends(), rows,
            importance(rows, measure, settings.sweep, lexical=plan.lexical),
        )
        with journal.alone():  # else a call that ends at the same time could write fewer over more
            if len(journal.rows()) == len(rows):
                results.write(found)
                break
    notes = []
    if plan.lexical and "induced" in settings.sweep.segmentations:
        notes.append("bm25 runs without vectors: no induced chunks, and no routing")
    if workers > 1:
        notes.append("with several workers the order in which trials end moves what is drawn next")
    return Said(found, shown(found), tuple(notes))


def possible(plan: Plan) -> None:
    """Refuse a sweep that could draw nothing.

    raises: InputError if the ranges of params.yaml leave no segmentation to BM25.
    """
    if plan.lexical and set(plan.settings.sweep.segmentations) == {"induced"}:
        raise InputError(
            "sweep.segmentations is [induced], which bm25 cannot cut; add fixed or native in "
            "params.yaml, or name an embedder"
        )


def show(settings: Params, corpus: str, embedder: str | None = None) -> list[Said]:
    """What earlier calls left, by embedder: one's alone, or everything.

    raises: InputError if there is nothing, or nothing of that embedder.
    """
    settings.corpus(corpus)
    there = results.read_all(Path(), corpus)
    wanted = [found for found in there if embedder in (None, found.embedder)]
    if not wanted:
        place = results.path(corpus, embedder) if embedder else layout.swept(corpus)
        named = ", ".join(found.embedder for found in there)
        option = f" --embedder {embedder}" if embedder else ""
        raise InputError(f"{place}: not there; " + (
            f"there is {named}: `spanwise sweep {corpus} --show --embedder {there[0].embedder}`"
            if there else f"run `spanwise sweep {corpus}{option}`"
        ))
    among = looked.parsed(corpus)
    notes = (f"{looked.told(among)}; {looked.MEND.format(corpus)}",) if among else ()
    return [Said(found, shown(found), notes) for found in wanted]


def as_json(said: Sequence[Said]) -> str:
    """One sweep as a JSON object.

    raises: InputError if there are several: a program says which one it wants.
    """
    if len(said) > 1:
        names = ", ".join(one.found.embedder for one in said)
        raise InputError(f"--json prints one sweep, and there are several ({names}); add "
                         f"--embedder {said[0].found.embedder}")
    return said[0].as_json()


def shown(found: Sweep) -> str:
    """A sweep for a person: the best trials, what weighs, what failed, and the warning."""
    lines = [
        f"{found.corpus}, {found.embedder}: {len(found.trials)} trials, {len(found.failed)} "
        f"failed; mean {found.measure} over {found.n_questions} questions of "
        f"{found.n_documents} documents",
    ]
    if found.complete:
        lines += ["", "best trials:"]
        lines += [
            f"  {row[found.measure]:.4f}  #{row['number']:<4} {said(row)}"
            for row in found.complete[:SHOWN]
        ]
        lines += ["", "what moves it (share of the variance that parameters explain):"]
        lines += [f"  {line}" for line in _weights(found)]
    for reason, number in _reasons(found).items():
        lines.append(f"{number} failed: {reason}")
    lines += ["", WARNING, "", f"{results.path(found.corpus, found.embedder)} holds every trial; "
              "`dvc repro report` puts it on the page."]
    return "\n".join(lines)


def said(row: Row) -> str:
    """A trial's parameters in one line.

    >>> said({"segmentation": "native", "cap_tokens": 220, "depth": 2, "window_tokens": None})
    'native, cap_tokens 220, depth 2'
    """
    return ", ".join(
        str(row[name]) if name in ("segmentation", "retrieval") else f"{name} {row[name]}"
        for name in PARAMETERS if row.get(name) is not None
    )


def _weights(found: Sweep) -> list[str]:
    lines: list[str] = []
    for part in dict.fromkeys(row["part"] for row in found.importance):
        mine = [row for row in found.importance if row["part"] == part]
        told = mine[0]["reason"] or ", ".join(
            f"{row['parameter']} {row['importance']:.2f}" for row in mine
        )
        lines.append(f"{part} ({mine[0]['trials']} trials): {told}")
    return lines


def _reasons(found: Sweep) -> Mapping[str, int]:
    reasons: dict[str, Any] = {}
    for row in found.failed:
        reasons[row["reason"]] = reasons.get(row["reason"], 0) + 1
    return reasons

