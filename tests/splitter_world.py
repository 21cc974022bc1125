"""A splitter of one's own, for tests: a module on the path that comes from no distribution."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from spanwise.params import ExternalSettings

OWN = '''
"""A splitter of one's own."""
__version__ = "3"
CUTS = []

class Halves:
    def __init__(self, share=0.5):
        if not 0 < share < 1:
            raise ValueError(f"share {share}")
        self.share = share
    def chunk(self, text):
        at = int(len(text) * self.share)
        return [{"start": 0, "end": at}, {"start": at, "end": len(text)}]
    @classmethod
    def of(cls, share):
        return cls(share)
    def thirds(self, text):
        at = len(text) // 3
        return [(0, at), (at, 2 * at), (2 * at, len(text))]
    def most(self, text):
        return [(0, len(text) // 2), (0, len(text) * 9 // 10)]

def lines(text, keep=False):
    return [line for line in text.split("\\n") if line.strip() or keep]

def broken(text):
    raise RuntimeError("no model")

def given(text, cuts):
    return cuts

def lazily(text):
    yield 0, 1
    raise RuntimeError("half way")
'''


@contextmanager
def importable(folder: Path) -> Iterator[None]:
    """The module `own_splitter`, in `folder`, can be imported inside the block."""
    (folder / "own_splitter.py").write_text(OWN)
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(folder)
        yield


def entry(callable_: str, gives: str = "spans", **more: Any) -> ExternalSettings:
    """An entry of `external` that names something of the module."""
    return ExternalSettings.model_validate(
        {"package": "own_splitter", "callable": callable_, "version": "3", "gives": gives, **more}
    )
