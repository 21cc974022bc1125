"""The client of language models against servers that die, stall, refuse and talk nonsense."""

from __future__ import annotations

import json
import socket
import threading
import time
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from spanwise.errors import ParamsError, Unavailable
from spanwise.llm.answers import json_object
from spanwise.llm.client import Client, Outcome, Settings
from spanwise.llm.model import Answer, Request

from .llm_world import (
    SCHEMA,
    Play,
    World,
    ask_for,
    completion,
    dies,
    echo,
    hangs_up,
    says,
    sends,
    stalls,
    trickles,
    world,
)


def client(server: World, **more: Any) -> Client:
    quick: dict[str, Any] = {"timeout_s": 5, "retries": 2, "backoff_s": 0.001, **more}
    return Client(Settings("m", server.url, **quick))


def one(*plays: Play, **more: Any) -> tuple[Answer, list[dict[str, Any]]]:
    """The answer to one request that meets these plays, and what the server was asked."""
    with world(*plays) as server:
        (answer,) = client(server, **more).ask([ask_for("why?")])
        return answer, server.asked


def test_the_body_is_the_protocols() -> None:
    with world(echo) as server:
        request = Request("Be brief.", "why?", SCHEMA, 12)
        (answer,) = client(server, seed=5).ask([request])
    assert answer == Answer("WHY?", 7, 3, "stop")
    assert server.asked == [{
        "model": "m", "max_tokens": 12, "temperature": 0.0, "seed": 5, "stream": False,
        "messages": [{"role": "system", "content": "Be brief."},
                     {"role": "user", "content": "why?"}],
        "response_format": {"type": "json_schema", "json_schema": {
            "name": "answer", "strict": True, "schema": SCHEMA}},
    }]


def test_no_system_and_no_schema_are_left_out_of_the_body() -> None:
    with world(echo) as server:
        client(server).ask([Request("", "é\ud800", None, 1)])
    (body,) = server.asked
    assert body["messages"] == [{"role": "user", "content": "é\ud800"}]
    assert "response_format" not in body and "id_slot" not in body


def test_the_key_is_sent_and_never_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("A_KEY", "sesame")

    def tells(handler: Any, _: Any) -> None:
        handler.reply({"error": handler.headers["Authorization"]}, 404)

    answer, _ = one(tells, api_key_variable="A_KEY")
    assert answer.error == 'status 404: {"error": "Bearer ***"}'
    monkeypatch.delenv("A_KEY")
    with pytest.raises(ParamsError, match="environment variable A_KEY: expected the key"):
        Client(Settings("m", "http://127.0.0.1:9/v1", api_key_variable="A_KEY"))


@pytest.mark.parametrize("bad", [
    says({"error": {"message": "busy"}}, 429, {"Retry-After": "0"}),
    says({"error": {"message": "broken"}}, 500), hangs_up,
    sends(b"HTTP/1.1 200 OK\r\nContent-Length: 99\r\n\r\n{\"choices\": [{"),
    sends(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nffff\r\n{\"choices\""),
    sends(b"\x00\xff garbage"), sends(b""), sends(b"HTTP/1.1 200 OK\r\n\r\n{"),
    says("no completion"), says({"choices": []}), says([]), says(None),
    says(completion("x", finish="abort")), says(completion("x", finish=None)),
    says({"choices": [{"message": {"content": 3}, "finish_reason": "stop"}]}),
    sends(b"HTTP/1.1 200 OK\r\n\r\n" + b"[" * 100_000),
    sends(b"HTTP/1.1 200 OK\r\n\r\n\xff\xfe"),
])
def test_a_passing_trouble_is_mended_by_another_try(bad: Play) -> None:
    answer, asked = one(bad, bad, echo)
    assert answer == Answer("WHY?", 7, 3, "stop")
    assert len(asked) == 3 and asked[0] == asked[1] == asked[2]


def test_a_lasting_trouble_ends_after_the_retries() -> None:
    answer, asked = one(says({"error": "broken"}, 500), retries=3)
    assert answer == Answer("", 0, 0, "error", 'status 500: {"error": "broken"}')
    assert len(asked) == 4


def test_what_another_try_cannot_mend_is_not_retried() -> None:
    for status in (400, 404, 422, 302):
        answer, asked = one(says({}, status))
        assert answer.finish == "error" and len(asked) == 1


@pytest.mark.parametrize("message", [
    {"type": "exceed_context_size_error"},
    {"message": "This model's maximum context length is 512 tokens. However, you requested 600"},
])
def test_a_prompt_beyond_the_servers_context_is_for_another_run(message: dict[str, str]) -> None:
    outcomes: list[Outcome] = []
    with world(says({"error": message}, 400)) as server:
        client(server).ask([ask_for("why?")], lambda _, outcome: outcomes.append(outcome))
    (outcome,) = outcomes
    assert not outcome.settled and outcome.tries == 1
    assert "llm.context_tokens" in str(outcome.answer.error)


def test_prompts_beyond_the_context_neither_end_the_asking_nor_hide_a_server_that_fails() -> None:
    too_long = says({"error": {"type": "exceed_context_size_error"}}, 400)
    with world(*[too_long] * 5, echo) as server:
        asks = client(server, patience=2)
        answers = asks.ask([ask_for(f"q{n}") for n in range(6)])
    assert asks.gave_up is None and answers[-1].text == "Q5"
    with world(*[says({}, 500), too_long] * 9) as server:
        asks = client(server, patience=3, retries=0)
        asks.ask([ask_for(f"q{n}") for n in range(18)])
    assert len(server.asked) == 5 and asks.gave_up


def test_the_words_of_a_model_come_back_as_they_are() -> None:
    for text in ('Sure!\n```json\n{"lamp": 3}\n```', "I cannot help.", "", "漢字 \u2028 \x00"):
        answer, asked = one(says(completion(text)))
        assert (answer.text, answer.error, len(asked)) == (text, None, 1)
    assert one(says(completion(None, "length")))[0] == Answer("", 7, 3, "length")
    assert one(says(completion("half \ud83d")))[0].text == "half \ufffd"
    strange = completion("x", usage={"prompt_tokens": "many", "completion_tokens": -1})
    assert one(says(strange))[0] == Answer("x", 0, 0, "stop")


@pytest.mark.parametrize("slow", [stalls, trickles])
def test_silence_is_cut_off_and_tried_once_more(slow: Play) -> None:
    began = time.monotonic()
    answer, asked = one(slow, timeout_s=0.4, retries=9)
    assert answer.error == "no whole answer within 0.4 s" and len(asked) == 2
    assert time.monotonic() - began < 4
    assert one(slow, echo, timeout_s=0.4)[0].text == "WHY?"


def test_a_server_that_dies_leaves_each_request_an_answer_and_wastes_no_time() -> None:
    with world(echo, echo, dies) as server:
        asks = client(server, backoff_s=0.01)
        began = time.monotonic()
        answers = asks.ask([ask_for(f"q{n}") for n in range(200)])
    assert time.monotonic() - began < 10
    assert [a.text for a in answers[:2]] == ["Q0", "Q1"]
    assert len(answers) == 200 and all(a.finish == "error" for a in answers[2:])
    assert asks.gave_up and "the server is gone" in asks.gave_up
    assert asks.counts.requests == 200 and asks.counts.errors == 198


def test_patience_ends_where_nothing_is_answered_any_more() -> None:
    with world(echo, says({}, 500)) as server:
        asks = client(server, retries=1, patience=3)
        answers = asks.ask([ask_for(f"q{n}") for n in range(50)])
    assert len(server.asked) == 1 + 3 * 2
    assert asks.gave_up and asks.gave_up.startswith("3 requests in a row got no answer")
    assert [a.error is None for a in answers] == [True] + [False] * 49


def test_one_bad_request_does_not_end_the_others() -> None:
    def picky(handler: Any, body: dict[str, Any]) -> None:
        bad = body["messages"][-1]["content"].startswith("bad")
        says({}, 500)(handler, body) if bad else echo(handler, body)

    with world(picky) as server:
        asks = client(server, patience=2, concurrency=3)
        prompts = ["bad" if n % 3 == 0 else f"q{n}" for n in range(30)]
        answers = asks.ask([ask_for(p, group="all") for p in prompts])
    assert [a.text for a in answers] == ["" if p == "bad" else p.upper() for p in prompts]
    assert asks.gave_up is None


def test_groups_run_in_sequence_and_the_limit_holds() -> None:
    order: list[str] = []
    lock = threading.Lock()

    def slowly(handler: Any, body: dict[str, Any]) -> None:
        time.sleep(0.02)
        with lock:
            order.append(body["messages"][-1]["content"])
        echo(handler, body)

    with world(slowly) as server:
        server.slots = 2
        prompts = [f"{group}{n}" for n in range(4) for group in "abc"] + ["x", "y"]
        answers = client(server, concurrency=3).ask(
            [ask_for(p, group=p[0] if p[0] in "abc" else "") for p in prompts]
        )
    assert [a.text for a in answers] == [p.upper() for p in prompts]
    for group in "abc":
        assert [p for p in order if p[0] == group] == [f"{group}{n}" for n in range(4)]
    assert 1 < server.most <= 3
    slots = {b["messages"][-1]["content"][0]: set() for b in server.asked}  # type: ignore[var-annotated]
    for body in server.asked:
        slots[body["messages"][-1]["content"][0]].add(body["id_slot"])
    assert all(len(slots[group]) == 1 for group in "abc")
    assert set().union(*slots.values()) == {0, 1}


def test_no_server_is_told_within_seconds() -> None:
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    began = time.monotonic()
    with pytest.raises(Unavailable, match=f"127.0.0.1:{port}/v1: no language model server answers"):
        Client(Settings("m", f"http://127.0.0.1:{port}/v1")).ask([ask_for("why?")])
    assert time.monotonic() - began < 5


def test_a_server_with_other_models_or_a_locked_one_is_refused() -> None:
    with world(echo) as server:
        with pytest.raises(ParamsError, match="has the models m, not 'other'"):
            Client(Settings("other", server.url)).ask([ask_for("why?")])
        server.models_play = says({}, 401)
        with pytest.raises(ParamsError, match="wants a key"):
            client(server).ask([ask_for("why?")])
        for odd in (says({"data": [3, {"id": None}]}), says("?"), sends(b"\xff"), says({}, 500)):
            server.models_play = odd
            assert client(server).ask([ask_for("why?")])[0].text == "WHY?"


@pytest.mark.parametrize("wrong", [
    {"concurrency": 0}, {"retries": -1}, {"timeout_s": 0}, {"timeout_s": float("nan")},
    {"temperature": 3}, {"model": ""}, {"base_url": "ftp://host/v1"}, {"base_url": "host:80"},
    {"base_url": "http://user:key@host/v1"}, {"base_url": "http://host/v 1"}, {"seed": -1},
    {"base_url": "http://host:99999/v1"}, {"base_url": "http://[::1/v1"}, {"base_url": ""},
])
def test_impossible_settings_are_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(ParamsError):
        Settings(**{"model": "m", **wrong})


def test_nothing_is_endless() -> None:
    with world(echo) as server:
        with pytest.raises(ValueError, match="max_tokens 0"):
            client(server).ask([ask_for("why?", max_tokens=0)])
        assert client(server).ask([]) == [] and server.asked == []


def test_an_interruption_ends_at_once() -> None:
    def stop(*_: object) -> None:
        raise KeyboardInterrupt

    with world(echo, stalls) as server:
        began = time.monotonic()
        with pytest.raises(KeyboardInterrupt):
            client(server, timeout_s=60, concurrency=4).ask(
                [ask_for(f"q{n}") for n in range(9)], stop
            )
        assert time.monotonic() - began < 5
        assert not [t for t in threading.enumerate() if t.name.endswith("(_work)")]


@pytest.fixture(scope="module")
def anything() -> Iterator[World]:
    with world(echo) as server:
        yield server


_json = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(
        st.sampled_from(["choices", "message", "content", "finish_reason", "usage", "x"]), inner,
        max_size=3),
    max_leaves=8,
)
_shaped = st.fixed_dictionaries({"choices": st.lists(st.fixed_dictionaries({
    "message": st.fixed_dictionaries({"content": _json}),
    "finish_reason": st.sampled_from(["stop", "length", "content_filter", "x", None]) | _json,
}), max_size=2), "usage": _json})
_bodies = st.binary(max_size=40) | (_json | _shaped).map(lambda found: json.dumps(found).encode())


@settings(max_examples=80, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(body=_bodies, status=st.integers(200, 599), raw=st.booleans(), number=st.integers(1, 3))
def test_whatever_a_server_answers_each_request_gets_one_answer_in_bounded_time(
    anything: World, body: bytes, status: int, raw: bool, number: int
) -> None:
    anything.plays = [
        sends(body) if raw else lambda handler, _: handler.send_bytes(body, status)
    ]
    asks = client(anything, retries=1, timeout_s=1, concurrency=2)
    began = time.monotonic()
    answers = asks.ask([ask_for(f"q{n}") for n in range(number)])
    assert time.monotonic() - began < number * 2 * (1 + 0.1) + 2
    assert len(answers) == number
    for answer in answers:
        assert (answer.error is None) == (answer.finish in ("stop", "length"))
        assert answer.error is None or (answer.finish == "error" and answer.text == "")
        f"{answer.text}{answer.error}".encode()
        assert min(answer.prompt_tokens, answer.completion_tokens) >= 0


@given(st.dictionaries(st.text(max_size=5), st.integers() | st.text(max_size=5), max_size=3),
       st.text(alphabet=st.characters(blacklist_characters="{", blacklist_categories=["Cs"]),
               max_size=20), st.text(max_size=20))
def test_an_object_is_found_in_any_prose(
    found: dict[str, Any], before: str, after: str
) -> None:
    assert json_object(before + json.dumps(found) + after) == found


def test_what_is_no_object_is_none() -> None:
    for text in ("", "[]", "{", "{x}", '{"a": NaN}', "no", "{" * 50_000, '{"a":' * 50_000):
        assert json_object(text) is None
    assert json_object('{"a": [{"b": 1}, {"b"', ["a"]) is None
    assert json_object('{"a": [{"b": 1}, {"b"') == {"b": 1}
