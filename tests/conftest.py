"""What several test files share."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]


def corpora_folder(name: str) -> Path:
    """The folder of one real corpus, from SPANWISE_CORPORA or beside the project; else skip."""
    base = Path(os.environ.get("SPANWISE_CORPORA", ROOT.parent / "shared" / "data"))
    if not (base / name).exists():
        pytest.skip(f"no real corpus {name!r}: set SPANWISE_CORPORA to a folder that has it")
    return base / name


@pytest.fixture(scope="session")
def blank(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An empty database as MLflow makes it, to be copied: its hundred tables take a while."""
    from .tracking_world import client_of

    path = tmp_path_factory.mktemp("blank") / "mlflow.db"
    client_of(f"sqlite:///{path}").search_experiments()
    return path
