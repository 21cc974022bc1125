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
