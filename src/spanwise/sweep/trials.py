"""Trials, drawn one after the other by Optuna's TPE and kept in a journal.

What trial n is follows from the seed, n and the trials that are finished, so a sweep with one
worker repeats itself exactly, whether it was interrupted or not. With several the order in which
they finish decides as well. Several calls may work on one journal at once.
"""

from __future__ import annotations

import hashlib
import os
import platform
import warnings
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import count
from multiprocessing import get_context
from pathlib import Path
from typing import TYPE_CHECKING, Any

from spanwise import embedding, layout
from spanwise.errors import CorpusError, RunError
from spanwise.params import MEASURES, Params, SweepSettings
from spanwise.sweep import bench as benches
from spanwise.sweep.bench import Bench, Outcome
from spanwise.sweep.kept import key
from spanwise.sweep.own import Own
from spanwise.sweep.results import COMPLETE, FAILED
from spanwise.sweep.space import Setting, as_row, draw

if TYPE_CHECKING:
    from optuna import Study, Trial
    from optuna.samplers import BaseSampler
    from optuna.trial import FrozenTrial

VERSION = 1
"""Raised by hand whenever the same settings would give other figures."""

ATTEMPTS = 16
"""Draws at a place before a setting that is there already is taken once more."""

# Attributes of a trial in the journal.
_PLACE, _SETTING, _OUTCOME, _REASON, _OWNER = "place", "setting", "outcome", "reason", "owner"


@dataclass(frozen=True, slots=True)
class Plan:
    """A sweep to be run, and all that its figures depend on."""

    settings: Params
    own: Own
    embedder: str

    @property
    def lexical(self) -> bool:
        """Whether BM25 ranks."""
        return self.embedder == layout.LEXICAL

    def depends(self) -> dict[str, Any]:
        """All that a trial's figures, and which trials there are, depend on; not their number."""
        its = self.settings
        segmenter = its.inducers.segmenter
        ranker = its.retrieval.bm25 if self.lexical else its.embedder(self.embedder)
        return {
            "versions": [VERSION, benches.VERSION, embedding.VERSION],
            "digests": dict(self.own.digests),
            "measure": its.primary.measure,
            "embedder": ranker.model_dump(),
            "tokenizer": its.tokens.tokenizer,
            "cap_tokens": its.chunking.cap_tokens,
            "depth": its.retrieval.depth,
            **({} if self.lexical else {
                "segmenter": segmenter.model_dump(),
                "segmenter's embedder": its.embedder(segmenter.embedder).model_dump(),
            }),
            "space": its.sweep.model_dump(exclude={"trials", "embedder"}),
        }

    def name(self) -> str:
        """The study's name in the journal: other documents or ranges are another study."""
        return f"{self.own.corpus}/{self.embedder}/{key(self.depends())[:16]}"


class Journal:
    """The trials of one plan on disk."""

    def __init__(self, plan: Plan) -> None:
        import optuna
        from optuna.storages import JournalStorage
        from optuna.storages.journal import JournalFileBackend, JournalFileOpenLock

        self.plan = plan
        folder = benches.folder_of(plan.own.corpus, plan.embedder)
        folder.mkdir(parents=True, exist_ok=True)
        optuna.logging.set_verbosity(optuna.logging.ERROR)
        file = str(folder / "journal.log")
        storage = JournalStorage(JournalFileBackend(file, JournalFileOpenLock(file)))
        self._lock = JournalFileOpenLock(str(folder / "claim"))
        with self.alone():
            self._study: Study = optuna.create_study(
                storage=storage, study_name=plan.name(), direction="maximize", load_if_exists=True
            )
            # A process that is restarted in a container may have the number of the one that died.
            self._give_up(os.getpid())

    @contextmanager
    def alone(self) -> Iterator[None]:
        """While no other process claims a trial or writes what was found."""
        self._lock.acquire()
        try:
            yield
        finally:
            self._lock.release()

    def _give_up(self, mine: int | None = None) -> None:
        """Free the trials whose process is gone: they are drawn again.

        mine: a process that is there and yet has no trial at work.
        """
        from optuna.trial import TrialState

        for trial in self._study.get_trials(deepcopy=False, states=(TrialState.RUNNING,)):
            # One without an owner was cut off while it was drawn: only one process draws at a time.
            node, pid = trial.user_attrs.get(_OWNER, (platform.node(), None))
            if node == platform.node() and (pid in (None, mine) or not _alive(pid)):
                self._study.tell(trial.number, state=TrialState.FAIL)

    def counted(self) -> dict[int, FrozenTrial]:
        """Place -> its trial: those that are judged, failed with a reason, or at work."""
        from optuna.trial import TrialState

        return {
            trial.user_attrs[_PLACE]: trial
            for trial in self._study.get_trials(deepcopy=False)
            if _PLACE in trial.user_attrs
            and (trial.state != TrialState.FAIL or _REASON in trial.user_attrs)
        }

    def claim(self, trials: int) -> tuple[Trial, Setting] | None:
        """Draw the next trial; None once there are as many as wanted, in whatever process.

        A setting that is there already is drawn anew, by chance in the end: it would say nothing.
        Trials of processes that died since are freed first, so none is lacking in the end.
        """
        from optuna.exceptions import ExperimentalWarning

        space = self.plan.settings.sweep
        with self.alone(), warnings.catch_warnings():
            warnings.simplefilter("ignore", ExperimentalWarning)
            self._give_up()
            taken = self.counted()
            if len(taken) >= trials:
                return None
            place = next(i for i in count() if i not in taken)
            known = [other.user_attrs[_SETTING] for other in taken.values()]
            for attempt in range(ATTEMPTS):
                # A sampler of its own: no state is lost with a process.
                self._study.sampler = _sampler(space, place, attempt)
                trial = self._study.ask()
                trial.set_user_attr(_OWNER, [platform.node(), os.getpid()])
                setting = draw(trial, space, lexical=self.plan.lexical)
                if as_row(setting) not in known or attempt == ATTEMPTS - 1:
                    break
                self.free(trial)
            trial.set_user_attr(_SETTING, dict(as_row(setting)))
            trial.set_user_attr(_PLACE, place)
            return trial, setting

    def finish(self, trial: Trial, found: Outcome | str) -> None:
        """Enter a trial's outcome, or the reason why it has none."""
        from optuna.trial import TrialState

        measure = self.plan.settings.primary.measure
        if isinstance(found, Outcome) and found.means[measure] is None:
            found = f"{measure} is undefined for every question"
        if isinstance(found, str):
            trial.set_user_attr(_REASON, found)
            self._study.tell(trial, state=TrialState.FAIL)
            return
        trial.set_user_attr(_OUTCOME, {
            "chunks": found.chunks, "mean_tokens": found.mean_tokens, "means": dict(found.means),
        })
        self._study.tell(trial, found.means[measure])

    def free(self, trial: Trial) -> None:
        """Give a trial up that was not judged: it is drawn again."""
        from optuna.trial import TrialState

        self._study.tell(trial, state=TrialState.FAIL)

    def rows(self) -> list[dict[str, Any]]:
        """Finished trials as rows of SWEEP_TRIALS, in the order of their places."""
        from optuna.trial import TrialState

        return [
            _row(place, trial.user_attrs) for place, trial in sorted(self.counted().items())
            if trial.state in (TrialState.COMPLETE, TrialState.FAIL)
        ]


def _row(place: int, held: Mapping[str, Any]) -> dict[str, Any]:
    outcome = held.get(_OUTCOME)
    means = outcome["means"] if outcome else dict.fromkeys(MEASURES)
    return {
        "number": place, "state": COMPLETE if outcome else FAILED, "reason": held.get(_REASON),
        **held[_SETTING], "chunks": outcome["chunks"] if outcome else None,
        "mean_tokens": outcome["mean_tokens"] if outcome else None, **means,
    }


def run(plan: Plan, trials: int, workers: int, tell: Callable[[int], object]) -> Journal:
    """Draw and judge trials until there are as many as wanted.

    workers: processes; with one, all happens here.
    tell:    called with the number of trials that are there, then with 1 after each new one.
    raises:  Unavailable if a model cannot be had; the trials at work are drawn again next time.
    """
    journal = Journal(plan)
    tell(len(journal.rows()))
    if workers == 1:
        bench = Bench(plan.settings, plan.own, plan.embedder)
        while claimed := journal.claim(trials):
            trial, setting = claimed
            try:
                found = judged(bench, setting)
            except BaseException:
                journal.free(trial)
                raise
            journal.finish(trial, found)
            tell(1)
        return journal
    encode = max(1, embedding.workers() // workers)
    running: dict[Future[Outcome | str], Trial] = {}
    with ProcessPoolExecutor(
        workers, mp_context=get_context("spawn"), initializer=_start, initargs=(plan, encode),
    ) as pool:
        try:
            while True:
                while len(running) < workers and (claimed := journal.claim(trials)):
                    trial, setting = claimed
                    running[pool.submit(_work, setting)] = trial
                if not running:
                    return journal
                for done in wait(running, return_when=FIRST_COMPLETED).done:
                    found = done.result()
                    journal.finish(running.pop(done), found)
                    tell(1)
        except BaseException:
            pool.shutdown(wait=False, cancel_futures=True)
            for trial in running.values():
                journal.free(trial)
            raise


def judged(bench: Bench, setting: Setting) -> Outcome | str:
    """What a setting comes to, or why it cannot be judged on these documents."""
    try:
        return bench.judge(setting)
    except (CorpusError, RunError) as error:
        return str(error)


_bench: Bench | None = None


def _start(plan: Plan, processes: int) -> None:
    global _bench
    _bench = Bench(plan.settings, plan.own, plan.embedder, processes)


def _work(setting: Setting) -> Outcome | str:
    assert _bench is not None
    return judged(_bench, setting)


def _sampler(space: SweepSettings, place: int, attempt: int) -> BaseSampler:
    """The sampler of one attempt at a place: one that learns, then one that does not."""
    from optuna.samplers import RandomSampler, TPESampler

    text = f"{space.seed}\0{place}\0{attempt}"
    seed = int.from_bytes(hashlib.sha256(text.encode()).digest()[:4])
    if attempt >= ATTEMPTS // 2:
        return RandomSampler(seed=seed)
    return TPESampler(
        n_startup_trials=space.startup, multivariate=True, group=True, constant_liar=True,
        seed=seed,
    )


def _alive(pid: int) -> bool:
    """Whether a process of this machine is there and at work."""
    if not Path("/proc/self/stat").exists():  # where nothing can be asked it counts as there
        return True
    try:
        state = Path(f"/proc/{pid}/stat").read_bytes().rpartition(b")")[2].split()[0]
    except (OSError, IndexError):
        return False
    return state not in (b"Z", b"X")  # one that died and that nobody has asked about yet
