"""The one client of language models: any OpenAI-compatible server, over plain HTTP.

Whatever a server answers, each request gets one Answer in bounded time. What is retried is what
another try can mend: a broken connection, silence, a server's own trouble, an answer that is no
chat completion. What a model says is never judged here: at temperature 0 the same prompt would
bring the same words, so a caller that dislikes them asks another prompt.
"""

from __future__ import annotations

import os
import queue
import threading
import time
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from spanwise.errors import ParamsError, Unavailable
from spanwise.llm import protocol
from spanwise.llm.model import Answer, Request
from spanwise.llm.protocol import Failure
from spanwise.llm.wire import Broken, Exchange, Reply, check_url
from spanwise.params import Params

_LONGEST_WAIT_S = 30.0
_PROBE_S = 10.0
_CONNECT_S = 5.0


@dataclass(frozen=True, slots=True)
class Settings:
    """Which model is asked, where, and how patiently.

    model:            name that the server knows it by.
    base_url:         of the server, with its `/v1`; None starts a server of our own on loopback.
    api_key_variable: environment variable that holds the key, "" for none.
    concurrency:      requests under way at once; slots of a server of our own.
    timeout_s:        for one try, from connecting to the last byte.
    retries:          further tries of a request; only one of them after a try that ran out of time.
    backoff_s:        the first wait between tries; it doubles, times 0.5 to 1.5 (seeded).
    patience:         requests in a row without an answer before the rest is not asked any more.
    threads:          of a server of our own; 0 for one fewer than the cores.
    seed, temperature, context_tokens: of generation; context_tokens is what prompt and answer may
                      take together. With `model` they are what an answer depends on.
    raises:           ParamsError for an impossible value.
    """

    model: str
    base_url: str | None = None
    api_key_variable: str = ""
    concurrency: int = 1
    timeout_s: float = 600.0
    retries: int = 3
    backoff_s: float = 0.5
    patience: int = 8
    threads: int = 0
    seed: int = 1
    temperature: float = 0.0
    context_tokens: int = 4096

    def __post_init__(self) -> None:
        least = {"concurrency": 1, "retries": 0, "patience": 1, "threads": 0, "seed": 0,
                 "context_tokens": 256}
        for name, bound in least.items():
            if getattr(self, name) < bound:
                raise ParamsError(
                    f"language model {name} {getattr(self, name)}: expected {bound} or more"
                )
        if not (0 < self.timeout_s < 10**6 and 0 < self.backoff_s < 10**6):
            raise ParamsError("language model timeout_s and backoff_s: expected seconds above 0")
        if not 0 <= self.temperature <= 2:
            raise ParamsError(
                f"language model temperature {self.temperature}: expected 0 to 2 (0 repeats itself)"
            )
        if not self.model:
            raise ParamsError("language model without a name")
        if self.base_url is not None:
            check_url(self.base_url)


def settings_of(params: Params) -> Settings:
    """What params.yaml says about the language model and its server."""
    llm, server = params.llm, params.server
    return Settings(
        model=llm.model, base_url=server.base_url, api_key_variable=server.api_key_variable,
        concurrency=server.concurrency, timeout_s=server.timeout_s, retries=server.retries,
        threads=server.threads, seed=llm.seed, temperature=llm.temperature,
        context_tokens=llm.context_tokens,
    )


@dataclass(frozen=True, slots=True)
class Outcome:
    """An answer, and what only the keeper of answers wants to know.

    settled:       the same request would end in the same way again, so the answer may be kept.
    tries:         HTTP requests that it took; 0 if it was not asked any more.
    cached_tokens: of the prompt, that the server did not compute again; 0 where it does not say.
    """

    answer: Answer
    settled: bool
    tries: int
    cached_tokens: int


@dataclass(slots=True)
class Counts:
    """What a client has done so far."""

    requests: int = 0
    tries: int = 0
    errors: int = 0
    prompt_tokens: int = 0
    cached_tokens: int = 0
    completion_tokens: int = 0
    seconds: float = 0.0

    def add(self, outcome: Outcome) -> None:
        """Count one outcome."""
        self.requests += 1
        self.tries += outcome.tries
        self.errors += outcome.answer.error is not None
        self.prompt_tokens += outcome.answer.prompt_tokens
        self.cached_tokens += outcome.cached_tokens
        self.completion_tokens += outcome.answer.completion_tokens


@dataclass(slots=True)
class _Run:
    """One call of `ask`: what its workers share."""

    requests: Sequence[Request]
    tasks: deque[list[int]]
    slots: int | None
    done: queue.Queue[tuple[int, Outcome] | BaseException] = field(default_factory=queue.Queue)
    stop: threading.Event = field(default_factory=threading.Event)
    lock: threading.Lock = field(default_factory=threading.Lock)
    under_way: set[Exchange] = field(default_factory=set)
    in_a_row: int = 0
    gave_up: str | None = None


class Client:
    """Asks one server. `counts` says what it did, `gave_up` why it stopped asking, if it did."""

    def __init__(
        self, settings: Settings, base_url: str | None = None, api_key: str | None = None
    ) -> None:
        """Both arguments stand in for what the settings say; a server of our own needs them.

        raises: ParamsError without an address, or if the named environment variable is not set.
        """
        url = base_url or settings.base_url
        if url is None:
            raise ParamsError("language model without base_url: expected the address of a server")
        check_url(url)
        self.settings = settings
        self.counts = Counts()
        self.gave_up: str | None = None
        self._url = url.rstrip("/")
        if api_key is None and settings.api_key_variable:
            api_key = os.environ.get(settings.api_key_variable, "").strip()
            if not api_key or not (api_key.isascii() and api_key.isprintable()):
                raise ParamsError(
                    f"environment variable {settings.api_key_variable}: expected the key of "
                    f"{self._url}, found {'nothing' if not api_key else 'what is no key'}"
                )
        self._key = api_key or ""

    def ask(
        self, requests: Sequence[Request], answered: Callable[[int, Outcome], None] | None = None
    ) -> list[Answer]:
        """Answers in the order of requests, one each, in bounded time whatever the server does.

        answered: is called in this thread with a request's place as soon as its outcome is there.
        raises:   Unavailable, within seconds, if no server answers at the beginning; one that
                  falls silent later leaves answers with an error, and `gave_up` says why.
                  ParamsError if the server has other models or wants a key;
                  ValueError for a request without a bound on its tokens.
        """
        from tqdm import tqdm

        for request in requests:
            if request.max_tokens < 1:
                raise ValueError(f"max_tokens {request.max_tokens}: expected 1 or more")
        if not requests:
            return []
        self.gave_up = None
        run = _Run(requests, _tasks(requests), self._greet())
        workers = [
            threading.Thread(target=self._work, args=(run, number), daemon=True)
            for number in range(min(self.settings.concurrency, len(run.tasks)))
        ]
        found: dict[int, Answer] = {}
        began, seconds = time.monotonic(), self.counts.seconds
        bar = tqdm(total=len(requests), desc=f"ask {self.settings.model}", unit="request",
                   disable=None)
        with bar:
            try:
                for worker in workers:
                    worker.start()
                here = Counts()
                while len(found) < len(requests):
                    item = run.done.get()
                    if isinstance(item, BaseException):
                        raise item
                    place, outcome = item
                    found[place] = outcome.answer
                    self.counts.add(outcome)
                    here.add(outcome)
                    here.seconds = time.monotonic() - began
                    self.counts.seconds = seconds + here.seconds
                    if answered is not None:
                        answered(place, outcome)
                    bar.set_postfix_str(_speed(here), refresh=False)
                    bar.update()
            finally:
                self.gave_up = run.gave_up
                run.stop.set()
                with run.lock:
                    for exchange in run.under_way:
                        exchange.cut()
                for worker in workers:
                    if worker.ident is not None:
                        worker.join(timeout=_CONNECT_S)
        return [found[place] for place in range(len(requests))]

    def _greet(self) -> int | None:
        """Whether a server is there, has the model and takes the key; its slots, if it has any."""
        try:
            reply = self._exchange("GET", self._url + "/models", None, _PROBE_S, None)
        except Broken as error:
            if error.reached and not error.expired:
                return None  # something is there; what it is, the requests will show
            raise Unavailable(
                f"{self._url}: no language model server answers ({error}); start one, or correct "
                "base_url"
            ) from None
        if reply.status in (401, 403):
            raise ParamsError(
                f"{self._url} wants a key (status {reply.status}); put it into an environment "
                "variable and name that in api_key_variable"
            )
        models = protocol.models(reply)
        if models and self.settings.model not in models:
            raise ParamsError(
                f"{self._url} has the models {', '.join(sorted(models))[:300]}, not "
                f"{self.settings.model!r}: answers would be kept under a wrong name"
            )
        if not protocol.is_llama_cpp(reply) or not self._url.endswith("/v1"):
            return None
        try:
            props = self._exchange(
                "GET", self._url.removesuffix("/v1") + "/props", None, _PROBE_S, None
            )
        except Broken:
            return None
        return protocol.slots(props)

    def _work(self, run: _Run, number: int) -> None:
        slot = None if run.slots is None else number % run.slots
        try:
            while not run.stop.is_set():
                try:
                    task = run.tasks.popleft()
                except IndexError:
                    return
                for place in task:
                    run.done.put((place, self._one(run, place, slot)))
        except BaseException as error:
            run.done.put(error)

    def _one(self, run: _Run, place: int, slot: int | None) -> Outcome:
        """One request with its retries."""
        import numpy as np

        settings = self.settings
        body = protocol.body(
            run.requests[place], settings.model, settings.seed, settings.temperature, slot
        )
        # Its own generator for each place: waits do not depend on the order of threads.
        rng = np.random.default_rng([settings.seed, place])
        tries = expired = 0
        while True:
            with run.lock:
                gave_up = run.gave_up
            if gave_up or run.stop.is_set():
                return _failed(f"not asked any more: {gave_up or 'stopped'}", tries)
            tries += 1
            try:
                reply = self._exchange(
                    "POST", self._url + "/chat/completions", body, settings.timeout_s, run
                )
            except Broken as error:
                expired += error.expired
                failure, wait = Failure(str(error), retry=True, settled=False), 0.0
            else:
                read = protocol.answer(reply)
                if not isinstance(read, Failure):
                    with run.lock:
                        run.in_a_row = 0
                    return Outcome(read[0], True, tries, read[1])
                failure, wait = read, reply.retry_after_s or 0.0
            if not failure.retry or tries > settings.retries or expired > 1:
                self._lost(run, failure)
                return _failed(self._hide(failure.reason), tries, failure.settled)
            jittered = settings.backoff_s * 2.0 ** min(tries - 1, 20) * rng.uniform(0.5, 1.5)
            run.stop.wait(min(_LONGEST_WAIT_S, max(jittered, wait)))

    def _lost(self, run: _Run, failure: Failure) -> None:
        """A request stays without an answer: is it this one, or is the server gone?"""
        with run.lock:
            if failure.settled:
                run.in_a_row = 0
            elif failure.blame:
                run.in_a_row += 1
            tired = run.in_a_row >= self.settings.patience
        reason = None
        if tired:
            reason = f"{self.settings.patience} requests in a row got no answer"
        elif failure.retry:
            try:
                self._exchange("GET", self._url + "/models", None, _PROBE_S, run)
            except Broken as error:
                if not error.reached or error.expired:
                    reason = f"the server is gone ({error})"
        if reason is not None:
            with run.lock:
                run.gave_up = run.gave_up or f"{reason}; the last: {self._hide(failure.reason)}"

    def _exchange(
        self, method: str, url: str, body: bytes | None, seconds: float, run: _Run | None
    ) -> Reply:
        exchange = Exchange(url, seconds, _CONNECT_S)
        headers = {"Content-Type": "application/json"} if body is not None else {}
        if self._key:
            headers["Authorization"] = f"Bearer {self._key}"
        if run is None:
            return exchange.run(method, headers, body)
        with run.lock:
            run.under_way.add(exchange)
        try:
            if run.stop.is_set():
                raise Broken("stopped", True, False)
            return exchange.run(method, headers, body)
        finally:
            with run.lock:
                run.under_way.discard(exchange)

    def _hide(self, text: str) -> str:
        return text.replace(self._key, "***") if self._key else text


def _tasks(requests: Sequence[Request]) -> deque[list[int]]:
    """Places that one worker takes in sequence: a group, or a request that stands alone."""
    groups: dict[tuple[str, int], list[int]] = {}
    for place, request in enumerate(requests):
        groups.setdefault((request.group, -1 if request.group else place), []).append(place)
    return deque(groups.values())


def _failed(reason: str, tries: int, settled: bool = False) -> Outcome:
    return Outcome(Answer("", 0, 0, "error", reason), settled, tries, 0)


def _speed(counts: Counts) -> str:
    seconds = max(counts.seconds, 1e-9)
    read = (counts.prompt_tokens - counts.cached_tokens) / seconds
    written = counts.completion_tokens / seconds
    errors = f", {counts.errors} without answer" if counts.errors else ""
    return f"{read:.0f} tokens/s in, {written:.1f} tokens/s out{errors}"


def generation(settings: Settings) -> Mapping[str, Any]:
    """The settings that an answer depends on, by name; the others only say how it is fetched."""
    return {
        "model": settings.model, "seed": settings.seed, "temperature": settings.temperature,
        "context_tokens": settings.context_tokens,
    }
