"""One interface to rerankers: FlagEmbedding's FlagReranker and any sentence-transformers
CrossEncoder."""

from __future__ import annotations

import io
import json
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, redirect_stderr
from pathlib import Path
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from spanwise import models
from spanwise.errors import ParamsError, Unavailable
from spanwise.params import RerankerSettings

Pair = tuple[str, str]
"""(question, text)."""

AGAIN = "then run `dvc repro --force --single-item rerank` and `dvc repro`"
"""Nothing that DVC watches changes when a model arrives."""


class Reranker(Protocol):
    """A loaded model."""

    def score(self, pairs: Sequence[Pair]) -> NDArray[np.float64]:
        """(n,) raw scores, not squeezed into [0, 1]: higher is more relevant.

        On a CPU each pair goes through a forward pass of its own, so its bits depend on nothing
        else; on a GPU `batch_size` pairs of like length share one.
        """

    def lengths(self, pairs: Sequence[Pair]) -> list[tuple[int, bool]]:
        """Tokens of each pair with its special ones, and whether the model reads fewer."""


def folder_of(settings: RerankerSettings) -> Path:
    """The folder of a reranker's model, fetched if need be.

    raises: Unavailable, within seconds, with a reason that is the same on every machine.
    """
    try:
        return models.ensure(settings.model)
    except (Unavailable, ParamsError) as error:
        print(error, file=sys.stderr)  # names folders of this machine, which no report may
        raise Unavailable(
            f"{settings.model} is neither on this machine nor to be had here; copy its folder into "
            f"the models' store or name a folder in params.yaml, {AGAIN}"
        ) from error


def load(settings: RerankerSettings, folder: Path | None = None) -> Reranker:
    """Load a reranker.

    folder: of its model, where it is known already.
    raises: Unavailable if the model or its library is not there; ParamsError if the model gives no
            single score for a pair, or the settings ask for what it or the machine lacks.
    """
    folder = folder or folder_of(settings)
    _scores_pairs(settings, folder)
    if settings.device == "cuda":
        import torch

        if not torch.cuda.is_available():
            raise ParamsError(
                f"reranker {settings.model}: params.yaml says device cuda, and no such device is "
                "here; set device: cpu and batch_size: 1"
            )
    return KINDS[settings.kind](settings, folder)


def _scores_pairs(settings: RerankerSettings, folder: Path) -> None:
    """Refuse a model without a head of its own: the libraries would give it a random one."""
    about = json.loads((folder / "config.json").read_text(encoding="utf-8"))
    heads = tuple(about.get("architectures") or ("none",))
    wanted = ["ForSequenceClassification"]
    if settings.kind == "cross-encoder":
        wanted.append("ForCausalLM")
    if not heads[0].endswith(tuple(wanted)):
        raise ParamsError(
            f"reranker {settings.model}: the model is {heads[0]}, expected one that ends with "
            f"{' or '.join(wanted)}: it has no head that scores pairs; name another"
        )


def _fits(settings: RerankerSettings, model: Any) -> None:
    """Refuse a window that is longer than the model's table of positions."""
    for name, module in model.named_modules():
        if name.endswith("position_embeddings") and hasattr(module, "num_embeddings"):
            # RoBERTa counts positions from behind its padding token.
            taken = 0 if module.padding_idx is None else module.padding_idx + 1
            longest = module.num_embeddings - taken
            if settings.max_length > longest:
                raise ParamsError(
                    f"reranker {settings.model}: max_length {settings.max_length} is above the "
                    f"{longest} positions that the model has"
                )


def _single(settings: RerankerSettings, number: int) -> None:
    if number != 1:
        raise ParamsError(
            f"reranker {settings.model}: the model gives {number} scores for a pair, expected one; "
            "name another"
        )


@contextmanager
def _loading(settings: RerankerSettings) -> Iterator[None]:
    """Make whatever a library says of a broken folder one reason."""
    try:
        yield
    except Exception as error:
        print(error, file=sys.stderr)
        raise Unavailable(
            f"{settings.model} cannot be loaded ({type(error).__name__}); bring its whole folder "
            f"again, {AGAIN}"
        ) from error


class CrossEncoderReranker:
    """A CrossEncoder of sentence-transformers; its own activation is left out, because a sigmoid
    makes clear answers tie. It cuts the longer of question and text."""

    def __init__(self, settings: RerankerSettings, folder: Path) -> None:
        import torch
        from sentence_transformers import CrossEncoder

        with _loading(settings):
            loaded: Any = CrossEncoder(
                str(folder), device=settings.device, max_length=settings.max_length,
                local_files_only=True, activation_fn=torch.nn.Identity(),
            )
        _single(settings, loaded.num_labels)
        _fits(settings, loaded)
        self.settings, self.model = settings, loaded

    def score(self, pairs: Sequence[Pair]) -> NDArray[np.float64]:
        found: NDArray[np.float64] = self.model.predict(
            list(pairs), batch_size=self.settings.batch_size, show_progress_bar=False
        ).astype(np.float64)
        return found

    def lengths(self, pairs: Sequence[Pair]) -> list[tuple[int, bool]]:
        whole = {"text": {"truncation": False}}
        found = [
            self.model.preprocess([pair], processing_kwargs=whole)["input_ids"].shape[1]
            for pair in pairs
        ]
        return [(tokens, tokens > self.settings.max_length) for tokens in found]


class FlagRerankerModel:
    """FlagEmbedding's FlagReranker, in single precision and without its sigmoid. It cuts a question
    at three quarters of the window, then the text."""

    def __init__(self, settings: RerankerSettings, folder: Path) -> None:
        try:
            from FlagEmbedding import FlagReranker
        except ImportError as error:
            raise Unavailable(
                "kind flag needs FlagEmbedding, which cannot be imported here "
                f"({type(error).__name__}: {error.name}); install it with `pip install -c "
                f"constraints.txt -e '.[rerank]'`, {AGAIN}"
            ) from error
        with _loading(settings):
            loaded: Any = FlagReranker(
                str(folder), use_fp16=False, normalize=False, devices=settings.device,
                batch_size=settings.batch_size, max_length=settings.max_length,
            )
        _single(settings, loaded.model.config.num_labels)
        _fits(settings, loaded.model)
        self.settings, self.model = settings, loaded

    def score(self, pairs: Sequence[Pair]) -> NDArray[np.float64]:
        if not pairs:
            return np.zeros(0)
        with redirect_stderr(io.StringIO()):  # two progress bars for each call
            found = self.model.compute_score(list(pairs))
        return np.array(found, dtype=np.float64)

    def lengths(self, pairs: Sequence[Pair]) -> list[tuple[int, bool]]:
        tokenize, limit = self.model.tokenizer, self.settings.max_length
        found = []
        for question, text in pairs:
            asked = len(tokenize(question, add_special_tokens=False)["input_ids"])
            tokens = len(tokenize(question, text)["input_ids"])
            found.append((tokens, tokens > limit or asked > limit * 3 // 4))
        return found


KINDS: dict[str, Callable[[RerankerSettings, Path], Reranker]] = {
    "cross-encoder": CrossEncoderReranker,
    "flag": FlagRerankerModel,
}
"""How a model is run, by the `kind` that params.yaml gives it."""
