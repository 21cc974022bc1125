"""The OpenAI chat protocol as bytes: a request's body, and what a server's answer amounts to."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from typing import Any

from spanwise.llm.model import Answer, Request
from spanwise.llm.wire import Reply

_TOO_LONG = ("exceed_context_size", "context_length_exceeded", "maximum context length",
             "maximum model length")
_MORE_ROOM = (
    "the server has less room than this prompt and its answer need: start it with room for "
    "llm.context_tokens of params.yaml (vLLM: --max-model-len), or lower llm.context_tokens to "
    "what it has"
)
_AGAIN = (408, 409, 425, 429)


@dataclass(frozen=True, slots=True)
class Failure:
    """No answer.

    reason:  what was found.
    retry:   another try may mend it.
    settled: the same request would fail in the same way again, on any server.
    blame:   it speaks against the server: so many in a row end the asking.
    """

    reason: str
    retry: bool
    settled: bool
    blame: bool = True


def body(
    request: Request, model: str, seed: int, temperature: float, slot: int | None
) -> bytes:
    """The body of a chat completion. slot: of a llama.cpp server; other servers know none."""
    messages = [{"role": "system", "content": request.system}] if request.system else []
    messages.append({"role": "user", "content": request.prompt})
    asked: dict[str, Any] = {
        "model": model, "messages": messages, "max_tokens": request.max_tokens,
        "temperature": temperature, "seed": seed, "stream": False,
    }
    if request.schema is not None:
        asked["response_format"] = {
            "type": "json_schema",
            "json_schema": {"name": "answer", "strict": True, "schema": dict(request.schema)},
        }
    if slot is not None:
        asked |= {"id_slot": slot, "cache_prompt": True}
    return json.dumps(asked, allow_nan=False).encode("ascii")


def answer(reply: Reply) -> tuple[Answer, int] | Failure:
    """The answer and the tokens of its prompt that the server had kept, or why there is none."""
    if not 200 <= reply.status < 300:
        said = " ".join(reply.body[:2000].decode("utf-8", "replace").split())[:300]
        reason = f"status {reply.status}: {said or 'no message'}"
        if reply.status in (400, 413, 422) and any(sign in said for sign in _TOO_LONG):
            # How much room there is depends on how the server was started: another may have it.
            return Failure(f"{_MORE_ROOM} ({reason})", retry=False, settled=False, blame=False)
        return Failure(reason, retry=reply.status >= 500 or reply.status in _AGAIN, settled=False)
    try:
        found = _json(reply)
        choice = found["choices"][0]
        text, finish = choice["message"].get("content"), choice["finish_reason"]
        if text is not None and not isinstance(text, str):
            raise TypeError("content is no text")
    except (ValueError, LookupError, TypeError, AttributeError, RecursionError) as error:
        return Failure(
            f"no chat completion ({type(error).__name__}): {reply.body[:100]!r}",
            retry=True, settled=False,
        )
    if finish == "content_filter":
        return Failure("the server withheld its answer: content_filter", False, settled=True)
    if finish not in ("stop", "length"):
        return Failure(f"the answer ended with {str(finish)[:60]!r}", retry=True, settled=False)
    usage = found.get("usage")
    # Half a surrogate pair is no text and could not be kept as UTF-8.
    whole = re.sub("[\ud800-\udfff]", "\ufffd", text or "")
    given = Answer(
        whole, _count(usage, "prompt_tokens"), _count(usage, "completion_tokens"), finish
    )
    details = usage.get("prompt_tokens_details") if isinstance(usage, dict) else None
    return given, min(_count(details, "cached_tokens"), given.prompt_tokens)


def models(reply: Reply) -> set[str]:
    """Every name that a server's list of models gives; empty if it is no such list."""
    names: set[str] = set()
    for entry in _listed(reply):
        also = entry.get("aliases")
        for name in [entry.get("id"), *(also if isinstance(also, list) else [])]:
            if isinstance(name, str):
                names.add(re.sub("[\ud800-\udfff]", "\ufffd", name))
    return names


def is_llama_cpp(reply: Reply) -> bool:
    """True if a list of models is llama.cpp's, whose slots can be named."""
    return any(entry.get("owned_by") == "llamacpp" for entry in _listed(reply))


def slots(reply: Reply) -> int | None:
    """How many slots llama.cpp says that it has, or None."""
    try:
        return _count(_json(reply), "total_slots") or None
    except (ValueError, RecursionError):
        return None


def _listed(reply: Reply) -> list[dict[str, Any]]:
    if reply.status != 200:
        return []
    try:
        found = _json(reply)
    except (ValueError, RecursionError):
        return []
    data = found.get("data") if isinstance(found, dict) else None
    return [entry for entry in data if isinstance(entry, dict)] if isinstance(data, list) else []


def _json(reply: Reply) -> Any:
    return json.loads(reply.body.decode("utf-8"))


def _count(found: Any, name: str) -> int:
    """A number of tokens; 0 where the server says none, or nonsense."""
    value = found.get(name) if isinstance(found, dict) else None
    if not isinstance(value, int) or isinstance(value, bool):
        return 0
    return value if 0 <= value < 2**31 else 0
