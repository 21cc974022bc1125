"""Signals that ask this process to end: they unwind it, and wait while something must be whole."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from types import FrameType

_ASKED = (signal.SIGTERM, signal.SIGHUP)
"""What is sent to a process; the keyboard sends SIGINT, which unwinds already."""


@contextmanager
def unwinding() -> Iterator[None]:
    """Let SIGTERM and SIGHUP unwind the block as Ctrl-C does; the exit code is 128 + the signal.

    One that is ignored, as under nohup, stays so.
    """
    def stop(number: int, _: FrameType | None) -> None:
        raise SystemExit(128 + number)

    with _handled(_ASKED, stop):
        yield


@contextmanager
def held(doing: str = "") -> Iterator[None]:
    """Hold back what asks to end, Ctrl-C too, until the block has ended; then it has its effect.

    doing: what goes on meanwhile, told to whoever asks.
    """
    asked: list[int] = []

    def wait(number: int, _: FrameType | None) -> None:
        asked.append(number)
        if doing:
            with suppress(OSError):  # print() may be in the middle of another line
                os.write(2, f"\nnote: {doing}; wait until it has ended\n".encode())

    try:
        with _handled((signal.SIGINT, *_ASKED), wait):
            yield
    finally:
        if asked:
            signal.raise_signal(asked[0])


@contextmanager
def _handled(
    numbers: Sequence[signal.Signals], handler: Callable[[int, FrameType | None], None]
) -> Iterator[None]:
    before = {}
    try:
        with suppress(ValueError):  # a thread other than the first may set no handler
            for number in numbers:
                # None is one of a library in C, which could not be set again.
                if signal.getsignal(number) not in (signal.SIG_IGN, None):
                    before[number] = signal.signal(number, handler)
        yield
    finally:
        for number, known in before.items():
            signal.signal(number, known)
