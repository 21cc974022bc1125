"""What a sweep found, as one JSON file a person can read and git can keep; it has no clock time."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from spanwise import layout, schemas
from spanwise.errors import InputError
from spanwise.params import MEASURES

COMPLETE, FAILED = "complete", "failed"

PARAMETERS = (
    "segmentation", "window_tokens", "overlap_tokens", "cap_tokens", "floor_tokens", "depth",
    "retrieval", "sections",
)
"""Columns of SWEEP_TRIALS that say what a trial was."""

_ABOUT = ("corpus", "embedder", "measure", "n_documents", "n_questions", "digests", "settings")

Row = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Sweep:
    """One sweep of one corpus with one embedder. All of it is exploratory.

    measure:    that was sought to be high: the primary one of the study.
    digests:    of its documents and its questions.
    settings:   all that its figures depend on.
    trials:     rows of SWEEP_TRIALS, in the order in which they were drawn.
    importance: rows of SWEEP_IMPORTANCE.
    """

    corpus: str
    embedder: str
    measure: str
    n_documents: int
    n_questions: int
    digests: Mapping[str, str]
    settings: Mapping[str, Any]
    trials: Sequence[Row]
    importance: Sequence[Row]

    @property
    def complete(self) -> list[Row]:
        """The trials that have figures, the best first, the earlier on ties."""
        done = [row for row in self.trials if row["state"] == COMPLETE]
        return sorted(done, key=lambda row: (-row[self.measure], row["number"]))

    @property
    def failed(self) -> list[Row]:
        """The trials that could not be judged, in order."""
        return [row for row in self.trials if row["state"] == FAILED]


def path(corpus: str, embedder: str) -> Path:
    """Where a sweep's results lie."""
    return layout.swept(corpus) / f"{embedder}.json"


def write(found: Sweep, root: Path = Path()) -> None:
    """Write a sweep's results; the file appears whole or not at all."""
    _hold(found, "the sweep's results")
    about = {"standing": "exploratory", **{name: getattr(found, name) for name in _ABOUT}}
    trials, weights = list(map(dict, found.trials)), list(map(dict, found.importance))
    text = json.dumps(about, indent=1, ensure_ascii=False, allow_nan=False)[:-2]
    for name, rows in (("trials", trials), ("importance", weights)):
        lines = (json.dumps(row, ensure_ascii=False, allow_nan=False) for row in rows)
        text += f',\n "{name}": [\n  ' + ",\n  ".join(lines) + "\n ]"
    schemas.write_text(root / path(found.corpus, found.embedder), text + "\n}\n")


def read_all(root: Path, corpus: str) -> list[Sweep]:
    """Every sweep of a corpus, by embedder; none where nobody swept.

    raises: InputError if a file is not what `write` leaves.
    """
    return [_read(file) for file in sorted((root / layout.swept(corpus)).glob("*.json"))]


def _read(file: Path) -> Sweep:
    mend = "delete it and run `spanwise sweep` again"
    try:
        held = json.loads(file.read_text(encoding="utf-8"))
        found = Sweep(
            **{name: held[name] for name in (*_ABOUT, "trials", "importance")}
        )
        if (found.corpus, found.embedder) != (file.parent.name, file.stem):
            raise InputError(f"it is of {found.corpus}/{found.embedder}")
        return _hold(found, str(file))
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise InputError(f"{file}: no results of a sweep ({error}); {mend}") from None


def _hold(found: Sweep, where: str) -> Sweep:
    """Hold both tables against their schemas, and every complete trial against its measure."""
    schemas.table(schemas.SWEEP_TRIALS, found.trials)
    schemas.table(schemas.SWEEP_IMPORTANCE, found.importance)
    if found.measure not in MEASURES:
        raise InputError(f"{where}: measure {found.measure!r}")
    for row in found.trials:
        if (row["state"] == COMPLETE) != (row[found.measure] is not None):
            raise InputError(f"{where}: trial {row['number']} is {row['state']}")
        if (row["state"] == FAILED) != (row["reason"] is not None):
            raise InputError(f"{where}: trial {row['number']} has no reason, or one too many")
    return found
