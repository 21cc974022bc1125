"""Models that params.yaml names: whether they are here, fit their settings, and can be reached."""

from __future__ import annotations

import importlib.util
import json
import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from spanwise import models
from spanwise.doctor.findings import NOTE, OK, PROBLEM, Finding, size
from spanwise.errors import ParamsError, SpanwiseError
from spanwise.params import EmbedderSettings, Params, RerankerSettings

SERVER_S = 2.0
"""Seconds that a server has to answer."""

_SHAPES = {
    "MiniLM-L6": (6, 384), "MiniLM-L12": (12, 384), "small": (12, 384), "base": (12, 768),
    "large": (24, 1024), "m3": (24, 1024),
}
_VOCABULARY = 30_522


@dataclass(frozen=True, slots=True)
class Shape:
    """An encoder's size, from its config.json, else guessed by its name.

    weights: bytes that one process holds.
    """

    layers: int
    width: int
    inner: int
    weights: int
    known: bool

    def operations(self, tokens: float, texts: int) -> float:
        """Floating-point operations for so many tokens in so many texts of like length.

        For each token and layer 2 (4 w^2 + 2 w f) in products with weights, and 4 w n for
        attention over a text of n tokens.
        """
        each = tokens / texts if texts else 0.0
        products = 2 * (4 * self.width**2 + 2 * self.width * self.inner)
        return tokens * self.layers * (products + 4 * self.width * each)


def found(model: str) -> Path | None:
    """As `models.find`; an id that is none is not here."""
    try:
        return models.find(model)
    except ParamsError:
        return None


def shape(model: str) -> Shape:
    """The size of an encoder."""
    folder = found(model)
    config = _json(folder / "config.json") if folder else {}
    layers, width = config.get("num_hidden_layers"), config.get("hidden_size")
    if folder and isinstance(layers, int) and isinstance(width, int):
        inner = config.get("intermediate_size", 4 * width)
        weights = max((p.stat().st_size for p in folder.glob("*.safetensors")), default=0)
        return Shape(layers, width, inner, weights or _bytes(layers, width), True)
    layers, width = next((s for part, s in _SHAPES.items() if part in model), (12, 768))
    return Shape(layers, width, 4 * width, _bytes(layers, width), False)


def _bytes(layers: int, width: int) -> int:
    return 4 * (12 * layers * width**2 + _VOCABULARY * width)


def _json(path: Path) -> Mapping[str, Any]:
    try:
        said = json.loads(path.read_bytes())
    except (OSError, ValueError):
        return {}
    return said if isinstance(said, dict) else {}


def encoders(params: Params, wanted: Mapping[str, int]) -> list[Finding]:
    """A line for each embedder, reranker, and for the tokenizer.

    wanted: embedder -> texts that it has to embed yet. A model that is missing and wanted is a
            problem; one whose vectors are all kept is not.
    """
    listed = [_embedder(name, its, wanted.get(name, 0)) for name, its in params.embedders.items()]
    listed += [_reranker(name, its) for name, its in params.rerankers.items()]
    return [*listed, _tokenizer(params)]


def _embedder(name: str, its: EmbedderSettings, wanted: int) -> Finding:
    place, folder = f"embedder {name}", found(its.model)
    if folder is None:
        what = f"{its.model} is not on this machine"
        if not wanted:
            return Finding(place, NOTE, f"{what}; nothing that was read here is left for it",
                           f"spanwise models fetch {name}")
        return Finding(place, PROBLEM, f"{what}, and it has about {wanted} texts to embed",
                       f"spanwise models fetch {name}")
    wrong = [*_settings(folder, its), *_device(its.device)]
    if wrong:
        return Finding(place, PROBLEM, f"{its.model}: {'; '.join(wrong)}",
                       f"correct embedders.{name} in params.yaml")
    return Finding(place, OK, f"{its.model}: {folder} ({size(shape(its.model).weights)})")


def _settings(folder: Path, its: EmbedderSettings) -> Iterator[str]:
    longest = _json(folder / "config.json").get("max_position_embeddings")
    if isinstance(longest, int) and its.max_seq_length > longest:
        yield f"max_seq_length {its.max_seq_length} is above the {longest} positions that it has"
    pooling = _json(folder / "1_Pooling" / "config.json")
    modes = {"mean": "pooling_mode_mean_tokens", "cls": "pooling_mode_cls_token"}
    own = [mode for mode, key in modes.items() if pooling.get(key)]
    if len(own) == 1 and own[0] != its.pooling:
        yield f"pooling {its.pooling!r}, the model itself says {own[0]!r}"
    if not list(folder.glob("*.safetensors")) and not list(folder.glob("*.bin")):
        yield f"{folder} holds no weights"


def _device(device: str) -> Iterator[str]:
    if device == "cuda" and not Path("/dev/nvidiactl").exists():
        import torch  # seconds, so only where it is asked for and nothing simpler tells

        if not torch.cuda.is_available():
            yield "device cuda, and no such device is here: device cpu, batch_size 1"


def _reranker(name: str, its: RerankerSettings) -> Finding:
    place, folder = f"reranker {name}", found(its.model)
    if its.kind == "flag" and importlib.util.find_spec("FlagEmbedding") is None:
        return Finding(place, PROBLEM, f"{its.model} takes FlagEmbedding, which is not installed: "
                       "its cells would be absent", "pip install -c constraints.txt -e '.[rerank]'")
    if folder is None:
        return Finding(
            place, PROBLEM, f"{its.model} is not on this machine: without it its cells are absent",
            f"hf download {its.model}; offline: copy its folder to "
            f"{models.store() / its.model.replace('/', '--')}, or name a folder in params.yaml",
        )
    if wrong := list(_device(its.device)):
        return Finding(place, PROBLEM, f"{its.model}: {wrong[0]}",
                       f"correct rerankers.{name} in params.yaml")
    return Finding(place, OK, f"{its.model}: {folder} ({size(shape(its.model).weights)})")


def _tokenizer(params: Params) -> Finding:
    name = params.tokens.tokenizer
    if name == "words":
        return Finding("tokenizer", OK, "words: runs of anything but white space")
    folder = found(params.embedders[name].model)
    if folder is None:
        return Finding("tokenizer", NOTE, f"{name}'s comes with its model, which is not here: "
                       "chunks that are to be cut anew wait for it, and sizes below are rough",
                       f"spanwise models fetch {name}")
    if not (folder / "tokenizer.json").is_file():
        return Finding("tokenizer", PROBLEM, f"{folder} has no tokenizer.json",
                       "name another embedder, or `words`, in tokens.tokenizer")
    return Finding("tokenizer", OK, f"{name}'s, {folder / 'tokenizer.json'}")


def language_model(params: Params, asked: Mapping[str, int]) -> list[Finding]:
    """Whether the language model can answer.

    asked: what it is to do yet -> how often, e.g. `contexts of notes`; empty where nothing is left.
    """
    left = ", ".join(f"{what}: {n}" for what, n in asked.items() if n)
    bad = PROBLEM if left else NOTE
    tail = f"; it is wanted for {left}" if left else "; nothing is left for it to write"
    if params.server.base_url is not None:
        return [_server(params, bad, tail)]
    place, model = "language model", params.llm.model
    if importlib.util.find_spec("xllamacpp") is None:
        return [Finding(place, bad, f"{model}: nothing here runs it (server.base_url is null, and "
                        f"xllamacpp is not installed){tail}",
                        "pip install -c constraints.txt -e '.[llm]', or set server.base_url")]
    try:
        models.known_gguf(model)
    except SpanwiseError as error:
        return [Finding(place, bad, f"{error}{tail}", models.WITHOUT_GGUF)]
    file = models.find_gguf(model)
    if file is None:
        return [Finding(place, bad, f"{model} is not on this machine "
                        f"({size(models.GGUFS[model].size)}){tail}", "spanwise models fetch llm")]
    starts = "; `dvc repro` starts llama.cpp here for it" if left else ""
    return [Finding(place, OK, f"{model}: {file}{tail}{starts}")]


def _server(params: Params, bad: str, tail: str) -> Finding:
    from spanwise.llm.wire import Broken, Exchange, check_url

    place, url = "server", (params.server.base_url or "").rstrip("/")
    try:
        check_url(url)
    except ParamsError as error:
        return Finding(place, PROBLEM, str(error), "correct server.base_url in params.yaml")
    variable = params.server.api_key_variable
    key = os.environ.get(variable, "") if variable else ""
    if variable and not key:
        return Finding(place, bad, f"{variable}, which holds the key of {url}, is not set{tail}",
                       f"export {variable}=...")
    try:
        reply = Exchange(f"{url}/models", SERVER_S, SERVER_S).run(
            "GET", {"Authorization": f"Bearer {key}"} if key else {}
        )
    except Broken as error:
        return Finding(place, bad, f"{url} does not answer ({error}){tail}",
                       "start it, correct server.base_url, or set it to null to run llama.cpp here")
    if reply.status in (401, 403):
        return Finding(place, bad, f"{url} refuses the key (status {reply.status}){tail}",
                       "put it into an environment variable that server.api_key_variable names")
    if reply.status != 200:
        return Finding(place, NOTE, f"{url} answers, but not for /models (status {reply.status})"
                       f"{tail}")
    served = _served(reply.body)
    if served and params.llm.model not in served:
        return Finding(place, bad, f"{url} serves {', '.join(served[:5])}, not {params.llm.model}"
                       f"{tail}", "correct llm.model, or have the server serve it under this name")
    return Finding(place, OK, f"{url} answers and serves {params.llm.model}{tail}" if served
                   else f"{url} answers{tail}")


def _served(body: bytes) -> list[str]:
    try:
        return [str(its["id"]) for its in json.loads(body)["data"]]
    except (ValueError, KeyError, TypeError):
        return []
