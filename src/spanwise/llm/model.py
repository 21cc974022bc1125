"""What is asked of a language model and what comes back: all that other rooms know of one."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class Request:
    """One question to the model.

    system:     fixed instructions; left out of the conversation if empty.
    prompt:     what is asked: long shared text first, the varying part last, so that the server's
                prompt cache can be used again.
    schema:     JSON schema of the answer, or None for plain text.
    max_tokens: of the answer, above 0: no answer is endless.
    group:      requests of one group run one after the other on one server slot (one document);
                a request without a group stands alone.
    """

    system: str
    prompt: str
    schema: Mapping[str, Any] | None
    max_tokens: int
    group: str = ""


@dataclass(frozen=True, slots=True)
class Answer:
    """What came back for one request.

    text:              as the server sent it; "" where there is an error.
    prompt_tokens:     as the server counted, 0 where it does not say.
    completion_tokens: as the server counted, 0 where it does not say.
    finish:            stop | length (cut at max_tokens or the context's end) | error.
    error:             why there is no answer after all retries, None if and only if there is one.
    """

    text: str
    prompt_tokens: int
    completion_tokens: int
    finish: str
    error: str | None = None


Ask = Callable[[Sequence[Request]], list[Answer]]
"""Answers in the order of requests. One bad answer never raises."""
