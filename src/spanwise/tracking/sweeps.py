"""What each MLflow run of a sweep holds: one run a trial, every one of them exploratory.

They stand in an experiment of their own, `spanwise/sweep/<corpus>`, so that no search among the
study's runs finds one.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from spanwise.params import MEASURES, WITHOUT, Params
from spanwise.sweep.results import PARAMETERS, Sweep, read_all
from spanwise.tracking.record import Run, as_text, digest_of, flatten, metric_name, unique

SWEEP = "sweep/"
"""Before the corpus in an experiment's name."""


def read_sweeps(root: Path, params: Params, corpus: str) -> list[Run]:
    """The runs of every sweep of a corpus that lies in `sweeps/`; none where nobody swept.

    raises: InputError if a file is no results of a sweep.
    """
    demonstration = params.corpora[corpus].demonstration
    return [run for found in read_all(root, corpus) for run in _runs(found, demonstration)]


def _runs(found: Sweep, demonstration: bool) -> list[Run]:
    cell = f"{found.corpus}/{found.embedder}/{WITHOUT}"
    shared = flatten({"sweep": {
        name: value for name, value in found.settings.items() if name != "digests"
    }})
    common = {
        "kind": "trial", "standing": "exploratory", "corpus": found.corpus, "cell": cell,
        "embedder": found.embedder, "reranker": WITHOUT, "measure": found.measure,
        "primary": as_text(False), "demonstration": as_text(demonstration),
        "sweep_digest": digest_of(found.settings), "corpus_digest": digest_of(found.digests),
    }
    best = [row["number"] for row in found.complete[:1]]
    return [
        Run(
            "trial", cell, f"{found.embedder} trial {row['number']}",
            {**shared, **{name: as_text(row[name]) for name in PARAMETERS
                          if row[name] is not None}},
            _figures(cell, row, found),
            {
                **common, "trial": str(row["number"]), "state": row["state"],
                "best_here": as_text(row["number"] in best),
                **({"reason": row["reason"]} if row["reason"] is not None else {}),
            },
            {},
        )
        for row in found.trials
    ]


def _figures(cell: str, row: Any, found: Sweep) -> dict[str, float]:
    """A trial's means and sizes; of one that failed, the number of the questions alone."""
    held = [(metric_name(name), row[name]) for name in MEASURES]
    held += [("chunks", row["chunks"]), ("mean_tokens", row["mean_tokens"]),
             ("n_questions", found.n_questions), ("n_documents", found.n_documents)]
    return unique(cell, ((name, value) for name, value in held if value is not None))
