"""Where each stage's outputs lie, and the counts that each stage leaves beside them."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

from spanwise import schemas
from spanwise.errors import InputError, SpanwiseError

ARTIFACTS = Path("artifacts")
LEXICAL = "bm25"
"""Stands in an embedder's place where the lexical condition is kept."""


def parse(corpus: str, split: str = "study") -> Path:
    """Folder of documents, paragraphs, sections and questions of one split."""
    return ARTIFACTS / "parse" / corpus / split


def stage(name: str, corpus: str) -> Path:
    """Folder of a stage that runs once for each corpus."""
    return ARTIFACTS / name / corpus


def cell(name: str, corpus: str, embedder: str) -> Path:
    """Folder of a stage that runs once for each corpus and embedder; its report is beside it."""
    return ARTIFACTS / name / corpus / embedder


def cell_report(name: str, corpus: str, embedder: str) -> Path:
    """The counts of a stage whose folder another program fills: `<embedder>.json` beside it."""
    return ARTIFACTS / name / corpus / f"{embedder}.json"


def reranked(corpus: str, embedder: str, reranker: str) -> Path:
    """Folder of one embedder's lists as a reranker orders them, with the scores it gave."""
    return cell("rerank", corpus, embedder) / reranker


def units_table(segmentation: str) -> str:
    """File name of a segmentation's manifest, in the folder of stage `units`."""
    return f"{segmentation}.parquet"


def unit_vectors(corpus: str, embedder: str) -> Path:
    """Folder of the vectors of units: kept on this machine alone, no output of any stage."""
    return ARTIFACTS / "unit-vectors" / corpus / embedder


def sweep(corpus: str) -> Path:
    """Folder of what a sweep works with, on this machine alone: journals, chunks, vectors."""
    return ARTIFACTS / "sweep" / corpus


def swept(corpus: str) -> Path:
    """Folder of what sweeps found, a file for each embedder; git keeps it."""
    return Path("sweeps") / corpus


def write_report(path: Path, report: Mapping[str, Any], *, quiet: bool = False) -> None:
    """Write a stage's counts as JSON and, unless `quiet`, print them."""
    text = json.dumps(report, indent=1, ensure_ascii=False, allow_nan=False)
    schemas.write_text(path, text + "\n")
    for line in [] if quiet else _lines(report, ""):
        print(line)


def read_report(path: Path, mend: str = "dvc repro") -> dict[str, Any]:
    """Read a stage's counts.

    mend:   the command that makes them.
    raises: InputError if the stage has not run.
    """
    if not path.exists():
        raise InputError(f"{path}: not there; run `{mend}`")
    found: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    return found


def leftovers(corpora: Iterable[str], root: Path = Path()) -> list[str]:
    """Corpora that stages have left artifacts of and that are none of `corpora`, sorted.

    They count among what the stage `report` depends on, so that it would run anew in a clone
    without them.
    """
    own = {"sweep", "unit-vectors"}  # kept on this machine alone, outputs of no stage
    there = {path.name for path in (root / ARTIFACTS).glob("*/*") if path.is_dir()
             and path.parent.name not in own}
    return sorted(there - set(corpora))


def digests(corpus: str, mend: str = "dvc repro") -> dict[str, str]:
    """SHA-256 of a corpus's documents, and of the questions that were asked about these documents.

    mend:   the command that makes both.
    raises: InputError if `parse` or `ask` has not run, or if `parse` has left other documents since
            `ask` ran: evidence would be offsets into texts that are gone.
    """
    parsed = read_report(stage("parse", corpus) / "report.json", mend)
    asked = read_report(stage("ask", corpus) / "report.json", mend)
    found = {
        "documents": parsed["study"]["digests"]["documents"],
        "questions": asked["digests"]["questions"],
    }
    if asked["digests"].get("documents") != found["documents"]:
        raise InputError(
            f"{stage('ask', corpus)}: its questions were asked about other documents than those of "
            f"{parse(corpus)}; run `dvc repro ask@{corpus}`"
        )
    return found


def _lines(report: Mapping[str, Any], indent: str) -> list[str]:
    lines = []
    for name, value in report.items():
        if isinstance(value, Mapping):
            lines += [f"{indent}{name}:", *_lines(value, indent + "  ")]
        else:
            lines.append(f"{indent}{name}: {value}")
    return lines


def run(stage_main: Callable[..., None]) -> None:
    """Run a stage script on its command-line arguments; our own errors are a line, not a trace."""
    try:
        stage_main(*sys.argv[1:])
    except SpanwiseError as error:
        print(f"{Path(sys.argv[0]).stem}: {error}", file=sys.stderr)
        sys.exit(error.exit_code)
