"""Answers kept on disk: each distinct request once, whatever was interrupted or damaged since.

A folder holds `answers.jsonl`, sorted by key and pruned to what was asked, so that the same
requests leave the same bytes. While work goes on, finished answers are appended to a part beside
it, one line each. Every line carries its own SHA-256: one that does not fit is reported and asked
again. Requests that failed for no lasting reason are told at the end and not kept: the next run
asks them again.
"""

from __future__ import annotations

import hashlib
import json
import os
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext
from io import FileIO
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from spanwise import schemas
from spanwise.errors import Unavailable
from spanwise.llm.client import Client, Outcome, Settings, generation
from spanwise.llm.model import Answer, Request

VERSION = 1
"""Raised by hand whenever the same request and settings would be sent in another form."""

FILE = "answers.jsonl"
_PARTS = "part-*.jsonl"
_ENTRY: dict[str, type | tuple[type, ...]] = {
    "key": str, "text": str, "prompt_tokens": int, "completion_tokens": int, "finish": str,
    "error": (str, type(None)), "sha256": str,
}


def key(settings: Settings, request: Request) -> str:
    """What an answer is kept by: the digest of version, generation settings and request.

    The group is no part of it: it says where a request is computed, not what is asked.
    """
    settled = json.dumps(
        [VERSION, dict(generation(settings)), request.system, request.prompt,
         None if request.schema is None else dict(request.schema), request.max_tokens],
        sort_keys=True, allow_nan=False,
    )
    return hashlib.sha256(settled.encode("ascii")).hexdigest()


@contextmanager
def answering(settings: Settings, folder: Path) -> Iterator[Answers]:
    """The way in for every other room: `ask` of what this yields is an `Ask`.

    No server is looked for, and no key, until an answer is missing. Without a base_url it is one of
    our own, which runs until the block ends. Where the block ends well, the folder is pruned to
    what was asked inside it; where it does not, everything stays.
    """

    def opened() -> AbstractContextManager[Client]:
        if settings.base_url is not None:
            return nullcontext(Client(settings))
        from spanwise.llm.local import served

        return served(settings)

    with Answers(settings, folder, opened) as answers:
        yield answers


def forget(folder: Path) -> None:
    """Remove the kept answers of a folder whose stage asks no model any more."""
    for path in [folder / FILE, *folder.glob(_PARTS)]:
        path.unlink(missing_ok=True)


class Answers:
    """Asks what is not kept yet, once for each distinct request.

    damaged: where a kept answer was found damaged, one line each.
    client:  of the server, once one was needed; None if everything was there.
    """

    def __init__(
        self, settings: Settings, folder: Path, opened: Callable[[], AbstractContextManager[Client]]
    ) -> None:
        self.settings, self.folder = settings, folder
        self.damaged: list[str] = []
        self.client: Client | None = None
        self._opened, self._open = opened, ExitStack()
        self._asked: dict[str, None] = {}
        self._failed: dict[str, Answer] = {}
        self._part: FileIO | None = None
        self._parts = sorted(folder.glob(_PARTS))
        self._held: dict[str, Answer] = {}
        for path in [folder / FILE, *self._parts]:
            if path.exists():
                self._read(path)
        for line in self.damaged:
            print(f"{line}; it is asked again if it is needed", file=sys.stderr)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        try:
            self._open.close()
        finally:
            if self._part is not None:
                os.fsync(self._part.fileno())
                self._part.close()
        if kind is None:
            wanted = sorted(k for k in self._asked if k in self._held)
            schemas.write_text(
                self.folder / FILE, "".join(_line(k, self._held[k]) for k in wanted)
            )
            for path in self._parts:
                path.unlink(missing_ok=True)
            self._tell_failed()

    def ask(self, requests: Sequence[Request]) -> list[Answer]:
        """Answers in the order of requests; what is not kept is asked of the server.

        Requests that failed before in this block are not tried again: one Answer for one request.
        raises: Unavailable if something is missing and no server answers, or if it falls silent
                before the end; what was answered until then is kept. ParamsError as Client.ask.
        """
        keys = [key(self.settings, request) for request in requests]
        self._asked.update(dict.fromkeys(keys))
        missing: dict[str, Request] = {}
        for k, request in zip(keys, requests, strict=True):
            if k not in self._held and k not in self._failed:
                missing.setdefault(k, request)
        if missing:
            self._fetch(missing)
        return [self._held[k] if k in self._held else self._failed[k] for k in keys]

    def kept(self, request: Request) -> Answer | None:
        """The answer that is kept, or None; nothing is asked."""
        return self._held.get(key(self.settings, request))

    def report(self) -> dict[str, Any]:
        """Counts of what was asked in this block, the same whether it was kept or computed."""
        found = [self._held.get(k) or self._failed[k] for k in self._asked
                 if k in self._held or k in self._failed]
        return {
            "model": self.settings.model,
            "distinct_requests": len(self._asked),
            "without_answer": sum(a.error is not None for a in found),
            "cut_at_the_limit": sum(a.finish == "length" for a in found),
            "prompt_tokens": sum(a.prompt_tokens for a in found),
            "completion_tokens": sum(a.completion_tokens for a in found),
        }

    def _fetch(self, missing: Mapping[str, Request]) -> None:
        if self.client is None:
            self.client = self._open.enter_context(self._opened())
        keys = list(missing)

        def answered(place: int, outcome: Outcome) -> None:
            if outcome.settled:
                self._keep(keys[place], outcome.answer)
            else:
                self._failed[keys[place]] = outcome.answer

        self.client.ask(list(missing.values()), answered)
        if self.client.gave_up is not None:
            lost = sum(k not in self._held for k in keys)
            raise Unavailable(
                f"{lost} of {len(keys)} requests have no answer: {self.client.gave_up}; what was "
                "answered is kept: see to the server and run again"
            )

    def _tell_failed(self) -> None:
        """A stage that ends well is not run again by itself: say how, if answers are missing."""
        if self._failed:
            first = next(iter(self._failed.values())).error
            print(
                f"{len(self._failed)} of {len(self._asked)} requests to {self.settings.model} got "
                "no lasting answer; force the stage with `dvc repro -f` to have them asked again. "
                f"The first: {first}", file=sys.stderr,
            )

    def _keep(self, k: str, answer: Answer) -> None:
        if self._part is None:
            self._part = self._new_part()
        # One write for one line: a run that is killed leaves whole lines and at most one torn.
        self._part.write(_line(k, answer).encode("utf-8"))
        self._held[k] = answer

    def _new_part(self) -> FileIO:
        self.folder.mkdir(parents=True, exist_ok=True)
        number = 0
        while True:
            path = self.folder / f"part-{number:06}.jsonl"
            try:
                opened = path.open("xb", buffering=0)
            except FileExistsError:
                number += 1
                continue
            self._parts.append(path)
            return opened

    def _read(self, path: Path) -> None:
        for number, line in enumerate(path.read_bytes().split(b"\n"), start=1):
            if not line:
                continue
            try:
                k, answer = _entry(line)
            except (ValueError, RecursionError) as error:
                self.damaged.append(f"{path}, line {number}: a damaged answer ({error})")
            else:
                self._held[k] = answer


def _line(k: str, answer: Answer) -> str:
    entry = {
        "key": k, "text": answer.text, "prompt_tokens": answer.prompt_tokens,
        "completion_tokens": answer.completion_tokens, "finish": answer.finish,
        "error": answer.error,
    }
    return json.dumps({**entry, "sha256": _digest(entry)}, ensure_ascii=False) + "\n"


def _entry(line: bytes) -> tuple[str, Answer]:
    """raises: ValueError if the line is not what `_line` wrote."""
    found = json.loads(line.decode("utf-8"))
    if not isinstance(found, dict) or list(found) != list(_ENTRY):
        raise ValueError("not the expected fields")
    if not all(isinstance(found[name], kind) for name, kind in _ENTRY.items()):
        raise ValueError("a field of another type")
    digest = found.pop("sha256")
    if _digest(found) != digest:
        raise ValueError("its digest does not fit")
    return found.pop("key"), Answer(**found)


def _digest(entry: Mapping[str, Any]) -> str:
    return hashlib.sha256(json.dumps(entry, sort_keys=True).encode("ascii")).hexdigest()
