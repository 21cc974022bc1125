"""The report: artifacts of every corpus -> reports/."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from spanwise import schemas
from spanwise.params import Params
from spanwise.reporting import files
from spanwise.reporting.gather import CorpusRecord, finished, gather
from spanwise.reporting.page import page
from spanwise.reporting.registered import registered

REPORTS = Path("reports")
PAGE = REPORTS / "report.html"


def report(root: Path, params: Params) -> list[CorpusRecord]:
    """Write reports/report.html, metrics.json, plots/*.csv and tables/*.csv under `root`.

    root:    the project's folder, above `artifacts`.
    returns: what was reported, in params.yaml's order.
    raises:  RegistrationError if registration.json is not one, InputError if an artifact is missing
             or is not what its schema says; then nothing is written.
    """
    records = [gather(root, name, params) for name in params.corpora]
    _write(root, params, records, {})
    return records


def report_finished(root: Path, params: Params) -> tuple[list[CorpusRecord], dict[str, str]]:
    """`report` of the corpora that have run, while others have not; the page names those.

    returns: what was reported, and why each other corpus was left out.
    raises:  as `report`, InputError only if no corpus has run.
    """
    records, left_out = finished(root, params)
    _write(root, params, records, left_out)
    return records, left_out


def _write(
    root: Path, params: Params, records: Sequence[CorpusRecord], left_out: Mapping[str, str]
) -> None:
    facts = replace(registered(root, records), left_out=left_out)
    made = {
        "report.html": page(records, params, facts),
        "metrics.json": files.metrics(records, params),
        **files.named(files.plots(records, params), "plots"),
        **files.named(files.tables(records, params, facts), "tables"),
        **files.sweeps(records),
    }
    for name, text in made.items():
        schemas.write_text(root / REPORTS / name, text)
