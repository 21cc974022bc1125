"""The report: artifacts of every corpus -> reports/."""

from __future__ import annotations

from pathlib import Path

from spanwise import schemas
from spanwise.params import Params
from spanwise.reporting import files
from spanwise.reporting.gather import CorpusRecord, gather
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
    facts = registered(root, records)
    made = {
        "report.html": page(records, params, facts),
        "metrics.json": files.metrics(records, params),
        **files.named(files.plots(records, params), "plots"),
        **files.named(files.tables(records, params, facts), "tables"),
        **files.sweeps(records),
    }
    for name, text in made.items():
        schemas.write_text(root / REPORTS / name, text)
    return records
