"""A server of our own: llama.cpp's, on loopback, in a process that ends with its block.

It runs apart from us, so that a crash inside it is a lost server and not a lost run. A key made
for this one run keeps other programs of the machine, and pages in a browser, from using it.
"""

from __future__ import annotations

import importlib.util
import json
import os
import secrets
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import spanwise
from spanwise import models
from spanwise.errors import Unavailable
from spanwise.llm.client import Client, Settings

_START_S = 180.0
_STOP_S = 20.0
_PROMPTS_MIB = 1024
"""Memory for prompts that left their slot: a document that comes again is not read again."""


@contextmanager
def served(settings: Settings) -> Iterator[Client]:
    """A client of a server that is started now and stopped when the block ends.

    It has one slot for each request under way, each with room for context_tokens.
    raises: ParamsError if the model is none that can run here; Unavailable if the extra `llm` is
            missing, or if the model cannot be had, is not the known one, or does not start.
    """
    models.known_gguf(settings.model)
    # A gigabyte is not fetched for a server that cannot be started.
    if importlib.util.find_spec("xllamacpp") is None:
        raise Unavailable(
            f"{settings.model}: the package `xllamacpp`, which would run it here, is not "
            "installed; install the extra: `pip install -c constraints.txt -e '.[llm]'`, or "
            + models.WITHOUT_GGUF
        )
    path = models.ensure_gguf(settings.model)
    key = secrets.token_urlsafe(24)
    with tempfile.TemporaryDirectory(prefix="spanwise-llm-") as folder:
        process = _start(
            {"path": str(path), "name": settings.model, "key": key,
             "slots": settings.concurrency, "context_tokens": settings.context_tokens,
             "threads": settings.threads or _threads()},
            Path(folder),
        )
        try:
            address = _wait(process, settings.model, Path(folder))
            yield Client(settings, address + "/v1", key)
        finally:
            _stop(process)


def _threads() -> int:
    """One fewer than the cores: llama.cpp's threads wait for each other after every layer, so one
    that must share its core holds up all (measured on two busy cores: 2 threads wrote 2.3 tokens/s
    and read 22, 1 thread wrote 12.4 and read 27)."""
    allowed = getattr(os, "sched_getaffinity", None)
    return max(1, (len(allowed(0)) if allowed else os.cpu_count() or 1) - 1)


def _start(order: dict[str, Any], folder: Path) -> subprocess.Popen[bytes]:
    """The order goes through standard input: arguments and environments can be read by others."""
    home = str(Path(spanwise.__file__).parents[1])
    inherited = os.environ.get("PYTHONPATH")
    environment = {**os.environ, "PYTHONPATH": home + (os.pathsep + inherited if inherited else "")}
    with (folder / "log").open("wb") as log:
        process = subprocess.Popen(
            [sys.executable, "-m", "spanwise.llm.local", str(folder / "address")],
            stdin=subprocess.PIPE, stdout=log, stderr=log, env=environment,
        )
    assert process.stdin is not None
    with suppress(BrokenPipeError):  # it ended already; the log says why
        process.stdin.write(json.dumps(order).encode("ascii") + b"\n")
        process.stdin.flush()
    return process


def _wait(process: subprocess.Popen[bytes], model: str, folder: Path) -> str:
    """The server's address, once it has loaded the model."""
    deadline = time.monotonic() + _START_S
    while not (folder / "address").exists():
        if process.poll() is not None or time.monotonic() > deadline:
            lines = (folder / "log").read_text(encoding="utf-8", errors="replace").splitlines()
            last = "\n  ".join(line[:200] for line in lines[-5:]) or "it wrote nothing"
            raise Unavailable(
                f"{model}: the local server did not start "
                f"({'it ended' if process.poll() is not None else f'{_START_S:g} s passed'}); "
                f"its last words:\n  {last}"
            )
        time.sleep(0.05)
    return (folder / "address").read_text(encoding="ascii")


def _stop(process: subprocess.Popen[bytes]) -> None:
    """Closing its input asks it to end; it is made to end only where it does not."""
    assert process.stdin is not None
    with suppress(BrokenPipeError):
        process.stdin.close()
    for harder in (process.terminate, process.kill):
        try:
            process.wait(_STOP_S)
            return
        except subprocess.TimeoutExpired:
            harder()
    process.wait()


def _serve(address_file: Path) -> None:
    """The server's process: serves until standard input ends, so also when its parent dies."""
    # Ctrl-C reaches the whole group; the parent decides when the server ends.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    order = json.loads(sys.stdin.readline())
    import xllamacpp

    wanted = xllamacpp.CommonParams()
    wanted.model.path = order["path"]
    wanted.model_alias = {order["name"]}
    wanted.hostnames, wanted.port = ["127.0.0.1"], 0
    wanted.api_keys, wanted.cors_origins, wanted.ui = [order["key"]], "", False
    wanted.n_parallel = order["slots"]
    wanted.n_ctx = order["slots"] * order["context_tokens"]  # it is shared out among the slots
    wanted.fit_params = False  # never a smaller context than was asked for
    wanted.cache_ram_mib = _PROMPTS_MIB
    wanted.cpuparams.n_threads = wanted.cpuparams_batch.n_threads = order["threads"]
    server = xllamacpp.Server(wanted)
    scratch = address_file.with_suffix(".new")
    scratch.write_text(server.listening_address, encoding="ascii")
    scratch.replace(address_file)
    while sys.stdin.readline():
        pass
    del server


if __name__ == "__main__":
    _serve(Path(sys.argv[1]))
