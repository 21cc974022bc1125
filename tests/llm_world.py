"""A server that misbehaves on order, and the real local one, for the tests of `llm`."""

from __future__ import annotations

import json
import os
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest

from spanwise import models
from spanwise.errors import Unavailable
from spanwise.llm.client import Client, Settings
from spanwise.llm.model import Request

QWEN = "qwen2.5-coder-1.5b-instruct-q4_k_m"
SCHEMA = {
    "type": "object", "properties": {"lamp": {"type": "integer"}}, "required": ["lamp"],
    "additionalProperties": False,
}

Play = Callable[["Handler", dict[str, Any]], None]


def ask_for(prompt: str, group: str = "", max_tokens: int = 20) -> Request:
    return Request("Answer briefly.", prompt, None, max_tokens, group)


def completion(text: str | None, finish: Any = "stop", **more: Any) -> dict[str, Any]:
    return {
        "choices": [{"index": 0, "message": {"role": "assistant", "content": text},
                     "finish_reason": finish}],
        "usage": {"prompt_tokens": 7, "completion_tokens": 3, "total_tokens": 10}, **more,
    }


class Handler(BaseHTTPRequestHandler):
    """Plays what its server was told to; /models is answered truly."""

    server: World
    protocol_version = "HTTP/1.1"
    counted = False

    def log_message(self, *_: object) -> None:
        """Nothing: the tests look at what was asked."""

    def do_GET(self) -> None:
        if self.server.models_play is not None:
            self.server.models_play(self, {})
        elif self.path == "/v1/models":
            owner = "llamacpp" if self.server.slots else "vllm"
            self.reply({"object": "list", "data": [{"id": "m", "owned_by": owner}]})
        elif self.path == "/props" and self.server.slots:
            self.reply({"total_slots": self.server.slots})
        else:
            self.reply({}, 404)

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        self.counted = True
        with self.server.lock:
            self.server.asked.append(body)
            self.server.under_way += 1
            self.server.most = max(self.server.most, self.server.under_way)
            plays = self.server.plays
            play = plays.pop(0) if len(plays) > 1 else plays[0]
        try:
            play(self, body)
        finally:
            self.leave()

    def leave(self) -> None:
        """A request is over before its answer is out: the next one may follow at once."""
        with self.server.lock:
            self.server.under_way -= self.counted
            self.counted = False

    def reply(self, found: Any, status: int = 200, headers: dict[str, str] | None = None) -> None:
        self.send_bytes(json.dumps(found).encode(), status, headers)

    def send_bytes(
        self, body: bytes, status: int = 200, headers: dict[str, str] | None = None
    ) -> None:
        self.leave()
        self.send_response(status)
        for name, value in {"Content-Length": str(len(body)), **(headers or {})}.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(body)

    def raw(self, data: bytes) -> None:
        """Bytes as they are, then the end of the connection."""
        self.wfile.write(data)
        self.close_connection = True


class World(ThreadingHTTPServer):
    """plays: what the next requests meet, in order; the last one stays."""

    daemon_threads = True

    def __init__(self, *plays: Play) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.plays: list[Play] = list(plays)
        self.models_play: Play | None = None
        self.slots = 0
        self.asked: list[dict[str, Any]] = []
        self.under_way = self.most = 0
        self.lock = threading.Lock()
        self.over = threading.Event()

    def handle_error(self, *_: Any) -> None:
        """A client that hangs up is what these tests are about."""

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}/v1"

    def prompts(self) -> list[str]:
        return [body["messages"][-1]["content"] for body in self.asked]


@contextmanager
def world(*plays: Play) -> Iterator[World]:
    """A running server; it is gone when the block ends."""
    server = World(*plays)
    thread = threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True)
    thread.start()
    try:
        yield server
    finally:
        server.over.set()
        server.shutdown()
        server.server_close()
        thread.join()


def echo(handler: Handler, body: dict[str, Any]) -> None:
    """A well-behaved answer: the prompt in capitals."""
    handler.reply(completion(body["messages"][-1]["content"].upper()))


def says(found: Any, status: int = 200, headers: dict[str, str] | None = None) -> Play:
    return lambda handler, _: handler.reply(found, status, headers)


def sends(data: bytes) -> Play:
    return lambda handler, _: handler.raw(data)


def stalls(handler: Handler, _: dict[str, Any]) -> None:
    handler.server.over.wait(10)
    handler.close_connection = True


def trickles(handler: Handler, _: dict[str, Any]) -> None:
    """A byte every 50 ms for 10 s: a limit for each read alone would wait for all of them."""
    handler.send_response(200)
    handler.send_header("Content-Length", "1000000")
    handler.end_headers()
    for _ in range(200):
        if handler.server.over.wait(0.05):
            break
        handler.wfile.write(b" ")
    handler.close_connection = True


def hangs_up(handler: Handler, _: dict[str, Any]) -> None:
    handler.connection.shutdown(socket.SHUT_RDWR)
    handler.close_connection = True


def dies(handler: Handler, _: dict[str, Any]) -> None:
    """The server breaks off in the middle of an answer, and nothing listens any more."""
    handler.server.socket.close()
    whole = json.dumps(completion("never whole")).encode()
    handler.send_response(200)
    handler.send_header("Content-Length", str(len(whole)))
    handler.end_headers()
    handler.wfile.write(whole[: len(whole) // 2])
    handler.wfile.flush()
    hangs_up(handler, {})


def have_qwen() -> None:
    """Leave the test out, or fail where it must run, if the local model cannot be had."""
    try:
        import xllamacpp  # noqa: F401

        models.ensure_gguf(QWEN)
        return
    except ImportError:
        reason = "xllamacpp is not installed (pip install -c constraints.txt -e '.[llm]')"
    except Unavailable as error:
        reason = str(error)
    if os.environ.get("SPANWISE_REQUIRE_LLM") == "1":
        pytest.fail(f"SPANWISE_REQUIRE_LLM=1, and {reason}")
    pytest.skip(reason)


@pytest.fixture(scope="session")
def local_client() -> Iterator[Client]:
    """A client of the real local server: two slots of 1024 tokens, one server for the session."""
    have_qwen()
    from spanwise.llm.local import served

    with served(Settings(QWEN, concurrency=2, context_tokens=1024, timeout_s=300)) as client:
        yield client
