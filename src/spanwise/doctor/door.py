"""`spanwise doctor`: every check in order, as text and as JSON."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from functools import cache
from pathlib import Path

from spanwise.doctor import cache as objects
from spanwise.doctor import (
    corpora,
    estimates,
    machine,
    remotes,
    splitters,
    truncation,
    weights,
)
from spanwise.doctor.estimates import Estimate
from spanwise.doctor.findings import NOTE, OK, PROBLEM, Finding
from spanwise.params import Params


@dataclass(frozen=True, slots=True)
class Diagnosis:
    """What was found, and what is left to compute."""

    findings: tuple[Finding, ...]
    estimates: tuple[Estimate, ...]

    @property
    def problems(self) -> int:
        return sum(found.status == PROBLEM for found in self.findings)


def examine(params: Params, deep: bool = False, dry_run: bool = False) -> Diagnosis:
    """Run every check in the folder of params.yaml; no model runs, and nothing is fetched.

    deep:    every object of the local DVC cache is hashed anew and removed if it is damaged, and
             large corpora are read.
    dry_run: damaged objects are named and left.
    """
    here, found = machine.look()
    looks = [corpora.look(params, name, deep) for name in params.corpora]
    rate: Callable[[int], float] = cache(machine.rate)
    made = [estimates.estimate(params, seen, here, rate) for seen, _ in looks if seen.documents]
    line, memory, hungriest, disk = estimates.summary(made, params)
    found += machine.fits(here, memory, disk, hungriest)
    found += weights.encoders(params, _wanted(params, made))
    found += weights.language_model(params, _asked(made))
    found += splitters.look(params)
    found += _dvc(params, deep, dry_run)
    by_name = {its.name: its for its in made}
    for seen, said in looks:
        found += said
        if seen.documents:
            found += truncation.look(params, seen)
            found.append(by_name[seen.name].finding())
        found += corpora.registered(params, seen)
    return Diagnosis((*found, line), tuple(made))


def _wanted(params: Params, made: Sequence[Estimate]) -> dict[str, int]:
    """Embedder -> texts that are left for it."""
    left = dict.fromkeys(params.embedders, 0)
    for work in (one for its in made for one in its.work):
        stage, _, embedder = work.stage.partition(" ")
        if stage in ("embed", "units-retrieve"):
            left[embedder] += work.left
        elif stage == "induce" and embedder != "(llm)":
            left[params.inducers.segmenter.embedder] += work.left
    return left


def _asked(made: Sequence[Estimate]) -> dict[str, int]:
    """What the language model is to do yet -> how often."""
    return {
        f"{one.unit} of {its.name}" if one.stage != "induce (hybrid)" else f"titles of {its.name}":
        one.left
        for its in made for one in its.work
        if one.stage in ("ask", "label", "induce (hybrid)", "induce (llm)")
    }


def _dvc(params: Params, deep: bool, dry_run: bool) -> list[Finding]:
    root = Path()
    try:
        config = remotes.configured(root)
    except ValueError as error:
        return [Finding("dvc", PROBLEM, f"its settings cannot be read: {error}",
                        "correct .dvc/config or .dvc/config.local")]
    if config is None:
        return [Finding("dvc", PROBLEM, "no .dvc here: `dvc repro` cannot run",
                        "go to the project's root, or `git init && dvc init`")]
    found = remotes.look(params, config, root)
    if deep:
        found += objects.check(remotes.cache_of(config, root), root, dry_run)
    return found


def as_text(diagnosis: Diagnosis, colour: bool = False) -> str:
    """A line for each check, its mend below it, and a last line that counts."""
    marks = {OK: "\x1b[32m", NOTE: "\x1b[33m", PROBLEM: "\x1b[31m"}
    lines = []
    for found in diagnosis.findings:
        word = f"{found.status:<8}"
        lines.append(
            f"{marks[found.status]}{word}\x1b[0m" if colour else word
        )
        lines[-1] += f"{found.place}: {found.said}"
        if found.mend:
            lines.append(f"{'':<8}  -> {found.mend}")
    notes = sum(found.status == NOTE for found in diagnosis.findings)
    lines.append(f"{len(diagnosis.findings)} checks: {_many(diagnosis.problems, 'problem')}, "
                 f"{_many(notes, 'note')}")
    return "\n".join(lines)


def _many(number: int, word: str) -> str:
    return f"{number} {word}" if number == 1 else f"{number} {word}s"


def as_json(diagnosis: Diagnosis) -> str:
    """`problems`; `checks` as place, status, said, mend; `estimates` in seconds and bytes."""
    return json.dumps(
        {
            "problems": diagnosis.problems,
            "checks": [asdict(found) for found in diagnosis.findings],
            "estimates": {
                its.name: {k: v for k, v in asdict(its).items() if k != "name"}
                for its in diagnosis.estimates
            },
        },
        indent=1, ensure_ascii=False, allow_nan=False,
    )
