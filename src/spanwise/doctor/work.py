"""What is left to compute, how sure that is, and how a person is told."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from spanwise import models
from spanwise.doctor import weights
from spanwise.doctor.cache import CACHE, HERE, UNKNOWN, pulling
from spanwise.doctor.findings import NOTE, OK, Finding, duration, size
from spanwise.doctor.pipeline import NEW, Pipeline, Stage
from spanwise.params import Params

SURE, AT_MOST, ELSEWHERE, ASK, AGAIN = "sure", "at most", "elsewhere", "ask a remote", "again"
"""How much of what is left has to be computed: all of it; less, where some of what is kept still
serves; nothing, once it is brought from the cache or a remote; nobody knows before a remote was
asked; nothing but what is kept, though the stage starts again."""

_TEXTS = "the texts changed, and how much of what is kept still serves is unknown until parsed"
_OWN = ("what it depends on changed, and how much of what is kept still serves is unknown until it "
        "runs")

OTHERS = "start-up and tables"
"""In the place of a stage: starting each of them, and what they do without a model."""

LONG_S = 3600.0


@dataclass(frozen=True, slots=True)
class Work:
    """One stage of one corpus.

    of, left: texts, pairs or requests in all, and those not kept yet.
    seconds:  for those left; None where it cannot be said (a GPU, a server).
    memory:   bytes, all processes together; disk: bytes that are written, DVC's copies included.
    sure:     SURE, AT_MOST, ELSEWHERE, ASK or AGAIN.
    bring:    the command that spares it, where it is ELSEWHERE or ASK.
    until:    the stage that runs again before it, and tells how much is left: AT_MOST.
    why:      else, why it is AT_MOST.
    """

    stage: str
    unit: str
    of: int
    left: int
    seconds: float | None
    memory: int = 0
    disk: int = 0
    sure: str = SURE
    bring: str = ""
    until: str = ""
    why: str = ""

    @property
    def due(self) -> bool:
        """It is computed unless a person brings something that is known to be elsewhere."""
        return bool(self.left) and self.sure in (SURE, AT_MOST)

    def line(self) -> str:
        """What is left, the time and the memory it takes."""
        if self.sure == AGAIN:
            return f"{self.stage}: starts again, and all {self.of} {self.unit} are kept"
        if not self.left:
            return f"{self.stage}: nothing, all {self.of} {self.unit} are done"
        takes = f"about {duration(self.seconds)}" if self.seconds is not None else (
            "time not known here: a server or a GPU sets the pace"
        )
        if self.memory:
            takes += f", {size(self.memory)} of memory"
        many = f"{self.left} of {self.of} {self.unit}"
        if self.sure == ELSEWHERE:
            return f"{self.stage}: nothing after `{self.bring}`; without it {many}, {takes}"
        if self.sure == ASK:
            return (f"{self.stage}: unknown until `{self.bring}`, which brings it if a remote has "
                    f"it; else {many}, {takes}")
        if self.until:
            return f"{self.stage}: until `{self.until}` has run: at most about {many}, {takes}"
        if self.sure == AT_MOST:
            return f"{self.stage}: at most {many}, {takes}: {self.why}"
        return f"{self.stage}: {many}, {takes}"


@dataclass(slots=True)
class Estimate:
    """All of one corpus.

    counted: sizes were counted in what earlier stages left; else they were reckoned from the text.
    tokens:  of the documents, by the study's tokenizer; chunks: of each segmentation.
    until:   the stage that runs again and makes other chunks; "" where none does.
    """

    name: str
    counted: bool
    tokens: int
    chunks: dict[str, int]
    work: list[Work] = field(default_factory=list)
    until: str = ""

    def finding(self) -> Finding:
        """Sizes, and a line for each stage. Nothing left is said as such."""
        how = "counted" if self.counted else "reckoned from the text"
        if self.until:
            how = f"reckoned from the text until `{self.until}` has run"
        chunks = ", ".join(f"{n} {name}" for name, n in self.chunks.items())
        return Finding(
            f"work {self.name}", OK, f"{self.tokens} tokens; chunks: {chunks} ({how}). Left to do:",
            lines=tuple(one.line() for one in self.work if one.of),
        )


def held_against(
    work: Work, stage: Stage | None, changed: bool, until: str = "", anew: bool = False
) -> Work:
    """The work of a stage, after what dvc.lock says of it.

    changed: the documents are others than those that what is kept was made for.
    until:   an earlier stage that runs again and tells how much is left; "" where none does.
    anew:    nothing of what is kept serves.
    """
    if stage is None or not work.of:
        return work
    if stage.done:
        return replace(work, left=0, seconds=0.0, memory=0, disk=0)
    if not work.left:
        return replace(work, sure=AGAIN)
    if stage.elsewhere:
        bring = "dvc checkout --allow-missing" if stage.where == CACHE else pulling(
            ["" if stage.where == UNKNOWN else stage.corpus]
        )
        return replace(work, sure=ASK if stage.where == UNKNOWN else ELSEWHERE, bring=bring)
    # What persists is kept by digests of single texts, so a changed corpus asks for a part alone.
    kept = stage.persist and stage.changed != NEW and stage.where == HERE
    if until and stage.changed != NEW:
        return replace(work, sure=AT_MOST, until=until)
    if kept and not anew and (changed or stage.stale):
        return replace(work, sure=AT_MOST, why=_TEXTS if changed else _OWN)
    return work


def summary(
    estimates: Sequence[Estimate], unread: Mapping[str, str], pipeline: Pipeline, ending: float
) -> Finding:
    """All corpora in one line.

    unread: corpora of which no document could be read, and what mends that; for them nothing can
            be forecast.
    ending: seconds of the stages that all corpora share.
    """
    if not estimates:
        first = "; ".join(dict.fromkeys(filter(None, unread.values())))
        return Finding("time", NOTE, f"nothing can be forecast: {', '.join(unread)} could not be "
                       "read", f"{first}; then `spanwise doctor` again")
    work = [(its.name, one) for its in estimates for one in its.work if one.left]
    seconds = ending + sum(one.seconds or 0.0 for _, one in work if one.due)
    most = any(one.sure == AT_MOST for _, one in work)
    said = f"{'at most' if most else 'about'} {duration(seconds)} in all"
    mends: list[str] = []
    if not any(stage.runs for stage in pipeline.stages if stage.corpus) and pipeline.stages:
        said += ": nothing is left but the last stages, which look whether anything is new"
    for sure, when in ((ELSEWHERE, "without"), (ASK, "if nothing comes of")):
        for bring in sorted({one.bring for _, one in work if one.sure == sure}):
            more = [one.seconds for _, one in work if (one.sure, one.bring) == (sure, bring)]
            said += f"; {duration(sum(filter(None, more)))} more {when} `{bring}`"
            mends.append(f"first {bring}")
    if guessed := sorted({f"{one.stage} of {name}" for name, one in work
                          if one.due and one.seconds is None}):
        said += f"; and {', '.join(guessed)}, whose time is not known here"
    if unread:
        said += f"; nothing can be forecast for {', '.join(unread)}, which could not be read"
    if seconds > LONG_S:
        mends.append("nothing is lost if it is interrupted: `dvc repro` goes on")
    return Finding("time", NOTE if mends or unread else OK,
                   f"{said}. Within a factor of two, if the machine stays as busy as it is now",
                   "; ".join(mends))


def hungriest(estimates: Sequence[Estimate]) -> tuple[int, str]:
    """Bytes of memory of the stage that takes most, and its name."""
    return max(
        ((one.memory, f"{one.stage} of {its.name}")
         for its in estimates for one in its.work if one.due), default=(0, ""),
    )


def disk(estimates: Sequence[Estimate], params: Params) -> int:
    """Bytes of everything that is written, models that are to be fetched included."""
    due = [one for its in estimates for one in its.work if one.due]
    fetched = [its.model for its in params.embedders.values() if weights.found(its.model) is None]
    total = sum(one.disk for one in due) + sum(weights.shape(one).weights for one in fetched)
    known = models.GGUFS.get(params.llm.model)
    if known and params.server.base_url is None and models.find_gguf(params.llm.model) is None:
        total += known.size if any(one.memory >= known.size for one in due) else 0
    return total
