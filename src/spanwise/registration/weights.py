"""Digests of an encoder's weights: what a model's name alone does not fix.

They are compared by `spanwise register check` alone. No result may depend on whether weights
happen to lie on the machine that computes it.
"""

from __future__ import annotations

import hashlib
from collections import defaultdict
from collections.abc import Mapping
from pathlib import Path

ELSEWHERE = ("onnx", "openvino")
"""Folders with the same weights for other programs."""


def digests(folder: Path) -> dict[str, str]:
    """Relative path -> SHA-256 of each file of weights in a model's folder, sorted.

    Where a folder has them as safetensors, its other files of weights are not loaded and left out.
    """
    kinds: dict[Path, dict[str, list[Path]]] = defaultdict(lambda: defaultdict(list))
    for path in folder.rglob("*"):
        inside = path.relative_to(folder)
        # Only what is loaded: a pytorch_model.bin, also in parts; training_args.bin holds none.
        kind = path.suffix if path.suffix == ".safetensors" or (
            path.match("pytorch_model*.bin")
        ) else None
        if kind and path.is_file() and inside.parts[0] not in ELSEWHERE:
            kinds[path.parent][kind].append(path)
    loaded = [
        path for found in kinds.values() for path in found.get(".safetensors") or found[".bin"]
    ]
    return {
        path.relative_to(folder).as_posix(): _sha256(path) for path in sorted(loaded)
    }


def differences(registered: Mapping[str, str], here: Mapping[str, str]) -> list[str]:
    """Every file of weights that is not as it was registered."""
    found = []
    for name in sorted(registered.keys() | here.keys()):
        was, now = registered.get(name), here.get(name)
        if was is None:
            found.append(f"weights {name}: here, not registered")
        elif now is None:
            found.append(f"weights {name}: registered, not here")
        elif was != now:
            found.append(f"weights {name}: registered {was[:12]}, here {now[:12]}")
    return found


def _sha256(path: Path) -> str:
    with path.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()
