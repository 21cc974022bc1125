"""`spanwise doctor`: every check in order, as text and as JSON."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import cache
from pathlib import Path
from typing import Any

from spanwise.doctor import cache as objects
from spanwise.doctor import (
    corpora,
    cutting,
    estimates,
    machine,
    pipeline,
    remotes,
    splitters,
    truncation,
    weights,
    work,
)
from spanwise.doctor.findings import NOTE, OK, PROBLEM, Finding
from spanwise.doctor.work import Estimate
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
    root = Path()
    try:
        config = remotes.configured(root)
    except ValueError as error:
        config, dvc = {}, [Finding("dvc", PROBLEM, f"its settings cannot be read: {error}",
                                   "correct .dvc/config or .dvc/config.local")]
    else:
        dvc = _dvc(params, config, root, deep, dry_run)
    stores = remotes.stores(config, root) if config else []
    ran = pipeline.read(params, stores, root, None if deep else corpora.LARGE)
    looks = [corpora.look(params, name, deep, ran) for name in params.corpora]
    rate: Callable[[int], float] = cache(machine.rate)
    made = [
        estimates.estimate(params, seen, here, rate, ran) for seen, _ in looks if seen.documents
    ]
    memory, hungriest = work.hungriest(made)
    found += machine.fits(here, memory, work.disk(made, params), hungriest)
    found += weights.encoders(params, _wanted(params, made))
    found += weights.language_model(params, _asked(made))
    found += splitters.look(params)
    found += [*dvc, *remotes.absent(ran, config or {})]
    by_name = {its.name: its for its in made}
    for seen, said in looks:
        found += said
        if seen.documents:
            found += truncation.look(params, seen)
            found += cutting.look(params, seen, by_name[seen.name])
            found.append(by_name[seen.name].finding())
        found += corpora.registered(params, seen)
    unread = {seen.name: said[0].mend for seen, said in looks if not seen.documents}
    line = work.summary(made, unread, ran, estimates.ending(ran, here))
    return Diagnosis((*found, line), tuple(made))


def _wanted(params: Params, made: Sequence[Estimate]) -> dict[str, int]:
    """Embedder -> texts that are left for it."""
    left = dict.fromkeys(params.embedders, 0)
    for one in (one for its in made for one in its.work if one.due):
        stage, _, embedder = one.stage.partition(" ")
        if stage in ("embed", "units-retrieve"):
            left[embedder] += one.left
        elif stage == "induce" and embedder != "(llm)":
            left[params.inducers.segmenter.embedder] += one.left
    return left


def _asked(made: Sequence[Estimate]) -> dict[str, int]:
    """What the language model is to do yet -> how often."""
    return {
        f"{one.unit} of {its.name}" if one.stage != "induce (hybrid)" else f"titles of {its.name}":
        one.left
        for its in made for one in its.work
        if one.due and one.stage in ("ask", "label", "induce (hybrid)", "induce (llm)")
    }


def _dvc(
    params: Params, config: Mapping[str, Any] | None, root: Path, deep: bool, dry_run: bool
) -> list[Finding]:
    if config is None:
        return [Finding("dvc", PROBLEM, "no .dvc here: `dvc repro` cannot run",
                        "go to the project's root, or `git init && dvc init`")]
    found = remotes.look(params, config, root)
    if not (root / "dvc.yaml").is_file():
        found.append(Finding("dvc", PROBLEM, "no dvc.yaml here, which names the stages: `dvc "
                             "repro` has nothing to run", "git checkout dvc.yaml"))
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
        said = found.said.replace("\n", f"\n{'':<10}")
        lines[-1] += f"{found.place}: {said}"
        lines += [f"{'':<10}{line}" for line in found.lines]
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
