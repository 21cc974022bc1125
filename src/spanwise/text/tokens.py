"""Token counts and token edges with exact code-point offsets, by one tokenizer for the whole study.

Special tokens are never counted. Every embedder shares the tokenizer, so that all of them share
chunks and budgets.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from spanwise.errors import InputError

_WORD = re.compile(r"\S+")


@dataclass(frozen=True, slots=True)
class Tokenizer:
    """A named function from a text to its token offsets.

    offsets: text -> (n, 2) int64, half-open code points, in order.
    """

    name: str
    offsets: Callable[[str], NDArray[np.int64]]

    def count(self, text: str) -> int:
        """Number of tokens, without special tokens."""
        return len(self.offsets(text))


def _array(offsets: list[tuple[int, int]]) -> NDArray[np.int64]:
    return np.asarray(offsets, dtype=np.int64).reshape(-1, 2)


def words() -> Tokenizer:
    r"""Runs of anything but white space, `\S+`."""
    return Tokenizer("words", lambda text: _array([m.span() for m in _WORD.finditer(text)]))


def from_folder(name: str, folder: Path) -> Tokenizer:
    """The fast tokenizer of a model, from its `tokenizer.json`.

    raises: InputError if the folder has none.
    """
    from tokenizers import Tokenizer as Fast

    path = folder / "tokenizer.json"
    if not path.exists():
        raise InputError(f"{path}: no fast tokenizer there; name another tokenizer in params.yaml")
    fast = Fast.from_file(str(path))
    fast.no_truncation()
    fast.no_padding()

    def offsets(text: str) -> NDArray[np.int64]:
        return _array(fast.encode(text, add_special_tokens=False).offsets)

    return Tokenizer(name, offsets)
