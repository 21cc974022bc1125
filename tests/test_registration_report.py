"""What the page says of the registration: no order in time, other names, corpora left out."""

from __future__ import annotations

import csv
import json
from pathlib import Path
from typing import Any

import pytest

from spanwise.errors import RegistrationError
from spanwise.registration import protocol
from spanwise.reporting import report

from . import reporting_world as world
from .reference_reporting import Page

SETTINGS = world.settings()
DIGESTS = {"documents": "d1", "questions": "d2"}
"""Those that the world's corpora have results of."""


def entry(*corpora: str, **changed: Any) -> dict[str, Any]:
    """An entry from before digests: corpora as the world's own, under names of choice."""
    made = protocol(SETTINGS, {"harbour": DIGESTS})
    (its,) = made["corpora"].values()
    made["corpora"] = dict.fromkeys(corpora, its | changed)
    for key in ("statistics", "exploratory"):
        del made[key]
    return {"reason": "before", "parent_commit": "abc", "protocol": made}


def written(root: Path, *entries: dict[str, Any]) -> tuple[Page, list[dict[str, str]]]:
    """The page, and the lines of standing.csv, with a registration of these entries."""
    (root / "registration.json").write_text(json.dumps({"entries": entries}), encoding="utf-8")
    report(root, SETTINGS)
    with (root / "reports" / "tables" / "standing.csv").open(encoding="utf-8") as stream:
        return (
            Page((root / "reports" / "report.html").read_text(encoding="utf-8")),
            list(csv.DictReader(stream)),
        )


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("world")
    world.build(made, SETTINGS)
    return made


def test_a_registered_corpus_without_results_is_on_the_page_and_in_the_table(root: Path) -> None:
    other = {"documents": "d7", "questions": "q7"}
    page, stands = written(
        root, entry("harbour", "toy"), entry("lost", **other, demonstration=True),
    )
    line = "Registered, without results here: lost (entry 2)."
    assert line in page.text("verdict")
    assert stands[-1] == {
        "corpus": "lost", "standing": "absent", "demonstration": "yes", "registered": "yes",
        "difference": "registered in entry 2, without results here",
    }
    page, stands = written(root, entry("harbour", "toy"))
    assert "without results here" not in page.text("verdict")
    assert {row["corpus"] for row in stands} == {"harbour", "toy"}


def test_another_name_is_a_fact_beside_the_verdict_and_no_loss(root: Path) -> None:
    page, stands = written(root, entry("port"))
    for corpus in ("harbour", "toy"):
        assert "Registered as port (entry 1)." in page.text(f"verdict-{corpus}")
    assert "without results here" not in page.text("verdict")
    assert "port" not in {row["corpus"] for row in stands}


def test_the_page_asserts_no_order_that_it_does_not_check(root: Path) -> None:
    page, _ = written(root, entry("harbour", "toy"))
    told = page.text("methods")
    assert "It does not see which came first" in told and "spanwise register check" in told
    assert "before the strong embedder" not in page.text()


def test_a_broken_registration_stops_the_report(root: Path) -> None:
    (root / "registration.json").write_text("{", encoding="utf-8")
    with pytest.raises(RegistrationError, match="git checkout"):
        report(root, SETTINGS)
