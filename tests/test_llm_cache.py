"""Kept answers: nothing twice, nothing lost, nothing damaged believed."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from spanwise.errors import ParamsError, Unavailable
from spanwise.llm.cache import answering, forget, key
from spanwise.llm.client import Settings
from spanwise.llm.model import Answer, Request

from .conftest import ROOT
from .llm_world import SCHEMA, World, ask_for, completion, dies, echo, says, stalls, world

NOWHERE = "http://127.0.0.1:9/v1"
QUESTIONS = [ask_for(f"q{n} – ‹漢字›") for n in range(6)]


def at(url: str, **more: Any) -> Settings:
    return Settings("m", url, **{"retries": 1, "backoff_s": 0.001, "timeout_s": 5, **more})


def fill(folder: Path, requests: list[Request] = QUESTIONS) -> list[Answer]:
    """Answers of a well-behaved server, kept in a folder."""
    with world(echo) as server, answering(at(server.url), folder) as answers:
        return answers.ask(requests)


def test_a_second_run_makes_no_request_and_leaves_the_same_bytes(tmp_path: Path) -> None:
    first = fill(tmp_path)
    kept = (tmp_path / "answers.jsonl").read_bytes()
    with answering(at(NOWHERE), tmp_path) as answers:
        assert answers.ask(QUESTIONS) == first
        assert answers.client is None
        assert answers.report() == {
            "model": "m", "distinct_requests": 6, "without_answer": 0, "cut_at_the_limit": 0,
            "prompt_tokens": 42, "completion_tokens": 18,
        }
    assert (tmp_path / "answers.jsonl").read_bytes() == kept
    assert [path.name for path in tmp_path.iterdir()] == ["answers.jsonl"]


def test_the_bytes_depend_on_neither_order_nor_batches(tmp_path: Path) -> None:
    fill(tmp_path / "a")
    with world(echo) as server, answering(at(server.url, concurrency=3), tmp_path / "b") as answers:
        for request in QUESTIONS[::-1]:
            answers.ask([request, QUESTIONS[0]])
    assert len(server.asked) == len(QUESTIONS)
    a, b = ((tmp_path / name / "answers.jsonl").read_bytes() for name in "ab")
    assert a == b
    keys = [json.loads(line)["key"] for line in a.splitlines()]
    assert keys == sorted(keys) == sorted(key(at(NOWHERE), request) for request in QUESTIONS)


def test_only_new_requests_are_asked_each_once_and_old_ones_go(tmp_path: Path) -> None:
    fill(tmp_path)
    with world(echo) as server, answering(at(server.url), tmp_path) as answers:
        found = answers.ask([ask_for("new"), QUESTIONS[1], ask_for("new", group="other")])
    assert server.prompts() == ["new"] and found[0] == found[2]
    with world(echo) as server, answering(at(server.url), tmp_path) as answers:
        answers.ask(QUESTIONS[:2])  # the second is kept, the first was pruned
    assert server.prompts() == [QUESTIONS[0].prompt]


def test_a_run_that_is_killed_loses_nothing(tmp_path: Path) -> None:
    code = (
        "import sys; from pathlib import Path; from tests.test_llm_cache import *\n"
        "with answering(at(sys.argv[1]), Path(sys.argv[2])) as answers: answers.ask(QUESTIONS)"
    )
    with world(*[echo] * 4, stalls) as server:
        process = subprocess.Popen(
            [sys.executable, "-c", code, server.url, str(tmp_path)], cwd=ROOT,
            env={**os.environ, "PYTHONPATH": str(ROOT / "src")}, stderr=subprocess.DEVNULL,
        )
        deadline = time.monotonic() + 60
        while len(server.asked) < 5 and time.monotonic() < deadline:
            time.sleep(0.02)
        process.send_signal(signal.SIGKILL)
        process.wait()
    assert [path.name for path in tmp_path.iterdir()] == ["part-000000.jsonl"]
    with world(echo) as server, answering(at(server.url), tmp_path) as answers:
        found = answers.ask(QUESTIONS)
    assert server.prompts() == [request.prompt for request in QUESTIONS[4:]]
    assert found == fill(tmp_path / "whole")
    assert (tmp_path / "answers.jsonl").read_bytes() == (
        tmp_path / "whole" / "answers.jsonl").read_bytes()
    assert not list(tmp_path.glob("part-*"))


def test_a_run_that_stops_prunes_nothing(tmp_path: Path) -> None:
    first = fill(tmp_path)

    def stopped() -> None:
        with world(echo) as server, answering(at(server.url), tmp_path) as answers:
            answers.ask([ask_for("new")])
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        stopped()
    with answering(at(NOWHERE), tmp_path) as answers:
        assert answers.ask([*QUESTIONS, ask_for("new")])[:-1] == first


def test_a_damaged_answer_is_reported_and_asked_again(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    first = fill(tmp_path)
    path = tmp_path / "answers.jsonl"
    whole = path.read_bytes()
    path.write_bytes(whole.replace(b"Q3", b"Q4"))
    with world(echo) as server, answering(at(server.url), tmp_path) as answers:
        assert answers.ask(QUESTIONS) == first
    assert server.prompts() == [QUESTIONS[3].prompt]
    (line,) = answers.damaged
    assert "answers.jsonl, line " in line and "its digest does not fit" in line
    assert f"{line}; it is asked again" in capsys.readouterr().err
    assert path.read_bytes() == whole
    path.write_bytes(whole[:-30])  # a torn end
    with (pytest.raises(Unavailable, match="no language model server answers"),
          answering(at(NOWHERE), tmp_path) as answers):
        answers.ask(QUESTIONS)


@pytest.fixture(scope="module")
def kept(tmp_path_factory: pytest.TempPathFactory) -> tuple[bytes, dict[str, Answer]]:
    folder = tmp_path_factory.mktemp("kept")
    answers = fill(folder)
    keys = [key(at(NOWHERE), request) for request in QUESTIONS]
    return (folder / "answers.jsonl").read_bytes(), dict(zip(keys, answers, strict=True))


@settings(deadline=None)
@given(st.data())
def test_no_damage_whatever_brings_a_wrong_answer(
    kept: tuple[bytes, dict[str, Answer]], tmp_path_factory: pytest.TempPathFactory,
    data: st.DataObject,
) -> None:
    whole, first = kept
    cut = sorted(data.draw(st.tuples(*[st.integers(0, len(whole))] * 2)))
    damaged = whole[: cut[0]] + data.draw(st.binary(max_size=5)) + whole[cut[1] :]
    folder = tmp_path_factory.mktemp("damaged")
    (folder / "answers.jsonl").write_bytes(damaged)
    with answering(at(NOWHERE), folder) as answers:
        held = answers._held
        assert held.items() <= first.items()
        lost = len(first) - len(held)
        swallowed = damaged.count(b"\n") < whole.count(b"\n")
        assert lost == 0 or answers.damaged or swallowed


def test_passing_errors_are_told_and_not_kept_and_lasting_ones_are(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    def picky(handler: Any, body: dict[str, Any]) -> None:
        plays: dict[str, Callable[..., None]] = {
            "broken": says({}, 500), "filtered": says(completion("x", "content_filter")),
            "long": says({"error": {"type": "exceed_context_size_error"}}, 400),
        }
        plays.get(body["messages"][-1]["content"], echo)(handler, body)

    asked = [ask_for(p) for p in ("broken", "long", "filtered", "good")]
    with world(picky) as server, answering(at(server.url), tmp_path) as answers:
        first = answers.ask(asked)
        assert answers.ask(asked) == first  # within one run a request has one answer
        assert answers.report()["without_answer"] == 3
    assert server.prompts().count("broken") == 2  # one retry
    said = capsys.readouterr().err
    assert "2 of 4 requests to m got no lasting answer" in said and "`dvc repro -f`" in said
    with world(echo) as server, answering(at(server.url), tmp_path) as answers:
        second = answers.ask(asked)
    assert server.prompts() == ["broken", "long"]
    assert second == [Answer("BROKEN", 7, 3, "stop"), Answer("LONG", 7, 3, "stop"), *first[2:]]
    assert "lasting" not in capsys.readouterr().err


def test_a_server_that_dies_stops_the_run_and_what_it_answered_is_kept(tmp_path: Path) -> None:
    def asks(server: World) -> None:
        with answering(at(server.url), tmp_path) as answers:
            answers.ask(QUESTIONS)

    with world(echo, echo, dies) as server, pytest.raises(Unavailable) as raised:
        asks(server)
    assert "4 of 6 requests have no answer: the server is gone" in str(raised.value)
    with world(echo) as server:
        asks(server)
    assert server.prompts() == [request.prompt for request in QUESTIONS[2:]]


def test_the_key_names_all_that_an_answer_depends_on() -> None:
    base = Request("system", "prompt", SCHEMA, 10, "group")
    here = at(NOWHERE)
    others = [
        (here, Request("other", "prompt", SCHEMA, 10)), (here, Request("system", "?", SCHEMA, 10)),
        (here, Request("system", "prompt", None, 10)), (here, Request("system", "prompt", {}, 10)),
        (here, Request("system", "prompt", SCHEMA, 11)), (here, Request("", "systemprompt", {}, 1)),
        (at(NOWHERE, seed=2), base), (at(NOWHERE, temperature=0.5), base),
        (at(NOWHERE, context_tokens=512), base), (Settings("n", NOWHERE), base),
    ]
    keys = {key(*other) for other in others} | {key(here, base)}
    assert len(keys) == len(others) + 1
    same = at("http://elsewhere/v1", concurrency=9, timeout_s=1, retries=7)
    assert key(same, Request("system", "prompt", dict(reversed(SCHEMA.items())), 10)) == key(
        here, base)


def test_a_key_is_wanted_only_where_an_answer_is_missing(tmp_path: Path) -> None:
    first = fill(tmp_path)
    locked = at(NOWHERE, api_key_variable="SPANWISE_TEST_NO_SUCH_KEY")
    with answering(locked, tmp_path) as answers:
        assert answers.ask(QUESTIONS) == first
    with (pytest.raises(ParamsError, match="SPANWISE_TEST_NO_SUCH_KEY: expected the key"),
          answering(locked, tmp_path) as answers):
        answers.ask([ask_for("new")])


def test_forgotten_answers_are_gone_and_nothing_else_is(tmp_path: Path) -> None:
    fill(tmp_path)
    for name in ("part-000003.jsonl", "report.json"):
        (tmp_path / name).write_bytes(b"")
    forget(tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["report.json"]
    forget(tmp_path / "nowhere")


def test_nothing_asked_leaves_an_empty_store(tmp_path: Path) -> None:
    fill(tmp_path)
    with answering(at(NOWHERE), tmp_path) as answers:
        assert answers.ask([]) == []
    assert (tmp_path / "answers.jsonl").read_bytes() == b""


def test_a_model_that_cannot_run_here_is_refused_only_when_it_is_needed(tmp_path: Path) -> None:
    ours = Settings("nobody/no-such-model", None)
    with answering(ours, tmp_path) as answers:
        assert answers.ask([]) == []
    with (pytest.raises(ParamsError, match="none of those that can run here"),
          answering(ours, tmp_path) as answers):
        answers.ask(QUESTIONS)
