"""`spanwise compare`: files of scores in, contrasts out."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

from spanwise.errors import InputError
from spanwise.statistics.contrasts import Column, Contrast, infer, pair, render_p

FIELDS = (
    "name", "n_questions", "n_documents", "delta", "ci_low", "ci_high", "p", "dz", "p_holm",
)


def named_pairs(files: Sequence[Path], pairs: Sequence[str]) -> list[tuple[str, Path, Path]]:
    """The contrasts a person asked for: A and B by place, then each NAME=A,B.

    raises: InputError for one file alone, a pair of another form, a repeated name or none at all.
    """
    if len(files) not in (0, 2):
        raise InputError(
            f"{len(files)} file(s) of scores; give two, A and B, or use --pair NAME=A,B"
        )
    found = [(f"{files[0].stem}-{files[1].stem}", files[0], files[1])] if files else []
    for text in pairs:
        name, equals, rest = text.partition("=")
        parts = rest.split(",")
        if not (name.strip() and equals and len(parts) == 2 and all(parts)):
            raise InputError(f"--pair {text!r}: expected NAME=A,B with two files of scores")
        found.append((name.strip(), Path(parts[0]), Path(parts[1])))
    if not found:
        raise InputError("nothing to compare: give two files of scores, or --pair NAME=A,B")
    names = [name for name, _, _ in found]
    for name in names:
        if names.count(name) > 1:
            raise InputError(f"two contrasts are named {name!r}; use --pair NAME=A,B to name them")
    return found


def compare_files(
    pairs: Sequence[tuple[str, Path, Path]], measure: str, iterations: int, seed: int
) -> list[Contrast]:
    """One family of contrasts of one measure; a file in several pairs is read once.

    raises: InputError that names file and line, the question two files disagree about, or two
            files without a question in common.
    """
    from spanwise.measures.files import read_scores

    columns: dict[Path, Column] = {}
    for name, a, b in pairs:
        for path in (a, b):
            if path not in columns:
                columns[path] = read_scores(path, measure)
        if columns[a].keys().isdisjoint(columns[b]):
            raise InputError(
                f"{name}: {a} and {b} have no question in common (their first are "
                f"{next(iter(columns[a]))!r} and {next(iter(columns[b]))!r}); score both runs with "
                "the same questions"
            )
    return infer([pair(name, columns[a], columns[b]) for name, a, b in pairs], iterations, seed)


def as_json(contrasts: Sequence[Contrast]) -> str:
    """A list of objects; what is undefined is null."""
    rows = [
        {**{name: getattr(c, name) for name in FIELDS}, "excluded": sum(c.excluded.values())}
        for c in contrasts
    ]
    return json.dumps(rows, ensure_ascii=False, indent=2, allow_nan=False)


def notes(contrasts: Sequence[Contrast]) -> list[str]:
    """Why questions are excluded and intervals missing, one line each."""
    lines = []
    for c in contrasts:
        lines += [f"{c.name}: {n} excluded, {reason}" for reason, n in c.excluded.items() if n]
        if c.reason:
            lines.append(f"{c.name}: {c.reason}")
    return lines


def as_table(contrasts: Sequence[Contrast], measure: str, iterations: int) -> str:
    """The contrasts as a table, with what was excluded and why below it."""
    width = max(len("contrast"), *(len(c.name) for c in contrasts))
    lines = [
        f"{measure}, A - B; {iterations} draws of documents; 95% intervals; Holm over "
        f"{len(contrasts)}",
        f"{'contrast':<{width}}{'n':>7}{'docs':>6}{'delta':>9}{'low':>9}{'high':>9}{'p':>10}"
        f"{'dz':>8}{'p Holm':>10}{'excluded':>10}",
    ]
    for c in contrasts:
        lines.append(
            f"{c.name:<{width}}{c.n_questions:>7}{c.n_documents:>6}{_signed(c.delta):>9}"
            f"{_signed(c.ci_low):>9}{_signed(c.ci_high):>9}{render_p(c.p, iterations):>10}"
            f"{_signed(c.dz, 3):>8}{render_p(c.p_holm, iterations, len(contrasts)):>10}"
            f"{sum(c.excluded.values()):>10}"
        )
    return "\n".join([*lines, *notes(contrasts)])


def _signed(value: float | None, digits: int = 4) -> str:
    return "-" if value is None else f"{value:+.{digits}f}"
