"""What a trial may be. Trials become the models that params.yaml is made of, so none is
impossible."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any, Protocol

from spanwise.params import ChunkingSettings, Condition, SweepSettings

RETRIEVALS = ["flat", "routed"]


class Trial(Protocol):
    """The part of an Optuna trial that is used here."""

    def suggest_categorical(self, name: str, choices: list[str]) -> Any: ...
    def suggest_int(self, name: str, low: int, high: int, *, step: int = 1) -> int: ...


@dataclass(frozen=True, slots=True)
class Setting:
    """One trial's settings; sizes in tokens, None where the segmentation has no such size.

    sections: that routing keeps; None where retrieval is flat.
    """

    segmentation: str
    window_tokens: int | None = None
    overlap_tokens: int | None = None
    cap_tokens: int | None = None
    floor_tokens: int | None = None
    depth: int = 0
    retrieval: str = "flat"
    sections: int | None = None

    def condition(self) -> Condition:
        """What the trial is as a row of the conditions table."""
        return Condition.model_validate({
            "segmentation": self.segmentation, "prefix": "path" if self.depth else "none",
            "depth": self.depth, "retrieval": self.retrieval,
        })

    def limits(self) -> ChunkingSettings:
        """The limits of structural chunks."""
        return ChunkingSettings.model_validate(
            {"cap_tokens": self.cap_tokens, "floor_tokens": self.floor_tokens}
        )

    def sizes(self) -> dict[str, Any]:
        """All that its chunks depend on: neither prefix nor retrieval."""
        return {
            name: value for name, value in asdict(self).items()
            if name not in ("depth", "retrieval", "sections") and value is not None
        }


def draw(trial: Trial, space: SweepSettings, *, lexical: bool) -> Setting:
    """Draw a setting; which parameters it has follows from its segmentation and its retrieval.

    lexical: BM25 ranks: no vectors, so no induced chunks, which are cut by them, and no routing.
    """
    segmentation = trial.suggest_categorical("segmentation", segmentations(space, lexical=lexical))

    def size(name: str) -> int:
        low, high, step = bounds(space, name)
        return trial.suggest_int(name, low, high, step=step)

    if segmentation == "fixed":
        return Setting(segmentation, size("window_tokens"), size("overlap_tokens"))
    cap, floor = size("cap_tokens"), size("floor_tokens")
    depth = size("depth")
    retrieval = "flat" if lexical else trial.suggest_categorical("retrieval", RETRIEVALS)
    sections = size("sections") if retrieval == "routed" else None
    return Setting(segmentation, None, None, cap, floor, depth, retrieval, sections)


def bounds(space: SweepSettings, name: str) -> tuple[int, int, int]:
    """Lowest value, highest value that steps reach, and step of a parameter that is a number."""
    low, high = getattr(space, {"depth": "depths"}.get(name, name))
    step = space.step_tokens if name.endswith("_tokens") else 1
    return low, high - (high - low) % step, step


def segmentations(space: SweepSettings, *, lexical: bool) -> list[str]:
    """Those that are tried, in the order of params.yaml."""
    return [one for one in space.segmentations if not (lexical and one == "induced")]


def as_row(setting: Setting) -> Mapping[str, Any]:
    """The setting as columns of SWEEP_TRIALS."""
    return asdict(setting)
