"""Calls of remote executors with several tools: the daemon decides as a runtime does."""

from __future__ import annotations

import asyncio
import random
from itertools import chain, repeat
from typing import Any

import pytest
from tests.fakes import real

from failsoft import Runtime
from failsoft.surfaces.daemon import reported_tools

DOWN = {"message": "Service down", "status": 503}
NOT_FOUND = {"message": "not found", "status": 404}
TIMEOUT = "Connection timeout after 30s"


async def fail(asked: Any, tool: str, error: Any = NOT_FOUND, call: str = "c", **more: Any) -> tuple[str, str | None]:
    """Report an error; return the strategy and the tool of the answer."""
    said = {"tool": tool, "call_id": call, "error": error, **more}
    answer = (await asked.post("/v1/errors", said)).raise_for_status().json()
    return answer["strategy"], answer["tool"]


@real
async def test_the_remaining_fallbacks_follow_a_fallback_that_fails(open_daemon: Any) -> None:
    tools = {"get_a": {"fallbacks": ["get_b", "get_c"]}, "get_b": {"fallbacks": ["get_d"]}}
    async with open_daemon({"tools": tools}) as asked:
        assert await fail(asked, "get_a") == ("alternative_tool", "get_b")
        assert await fail(asked, "get_b") == ("alternative_tool", "get_d")
        assert await fail(asked, "get_d") == ("alternative_tool", "get_c")
        assert await fail(asked, "get_c") == ("escalate", None)


@real
async def test_they_follow_for_an_executor_without_ids_too(open_daemon: Any) -> None:
    async with open_daemon({"tools": {"get_a": {"fallbacks": ["get_b", "get_c"], "required": False}}}) as asked:
        said = {"tool": "get_b", "error": NOT_FOUND, "tried": ["get_a"]}
        assert (await asked.post("/v1/errors", said)).json()["tool"] == "get_c"
        said = {"tool": "get_c", "error": NOT_FOUND, "tried": ["get_a", "get_b"]}
        assert (await asked.post("/v1/errors", said)).json()["strategy"] == "fail_gracefully"


@real
async def test_no_write_follows_one_that_may_have_acted_also_not_after_a_read(open_daemon: Any) -> None:
    tools = {
        "send_mail": {"idempotent": True, "fallbacks": ["get_a"], "retry": {"max_attempts": 1}},
        "get_a": {"fallbacks": ["post_mail"]},
        "post_mail": {"idempotent": False},
    }
    async with open_daemon({"tools": tools}) as asked:
        assert await fail(asked, "send_mail", TIMEOUT) == ("alternative_tool", "get_a")
        assert await fail(asked, "get_a") == ("escalate", None)
        assert await fail(asked, "get_a", call="other") == ("alternative_tool", "post_mail")


@real
async def test_the_called_tool_says_whether_the_call_is_required(open_daemon: Any) -> None:
    tools = {
        "get_a": {"fallbacks": ["get_b"]},
        "get_b": {"required": False},
        "get_c": {"required": False, "fallbacks": ["get_d"]},
    }
    async with open_daemon({"tools": tools}) as asked:
        await fail(asked, "get_a")
        assert (await fail(asked, "get_b"))[0] == "escalate"
        await fail(asked, "get_c", call="other")
        assert (await fail(asked, "get_d", call="other"))[0] == "fail_gracefully"


@real
async def test_a_wait_that_the_service_asked_for_does_not_count_as_time_of_retries(open_daemon: Any) -> None:
    busy = {"message": "slow down", "status": 429, "retry_after": 12}
    async with open_daemon() as asked:
        assert (await fail(asked, "get_a", busy))[0] == "retry"
        assert (await fail(asked, "get_a", DOWN, since_first_failure=12.1))[0] == "retry"
        answer = (await asked.post("/v1/errors", {"tool": "get_a", "call_id": "c", "error": busy})).json()
        assert answer["strategy"] != "retry"
        assert "max_hint_wait is 20s" in answer["reason"]


@real
async def test_a_fallback_has_its_own_retries(open_daemon: Any) -> None:
    once = {"tool": "get_b", "retry": {"max_attempts": 1}}
    async with open_daemon({"tools": {"get_a": {"fallbacks": [once, "get_c"]}}}) as asked:
        await fail(asked, "get_a")
        assert await fail(asked, "get_b", DOWN) == ("alternative_tool", "get_c")
        assert (await fail(asked, "get_b", DOWN, "other"))[0] == "retry"


@real
async def test_a_breaker_that_counts_calls_counts_one_whose_fallback_succeeded(open_daemon: Any) -> None:
    breaker = {"failure_threshold": 1, "count": "calls"}
    tools = {"get_a": {"fallbacks": ["get_b"], "breaker": breaker, "retry": {"max_attempts": 2}}}
    async with open_daemon({"tools": tools}) as asked:

        async def state() -> str:
            found: str = (await asked.get("/v1/tools/get_a")).json()["circuit"]["state"]
            return found

        assert (await fail(asked, "get_a", DOWN))[0] == "retry"
        assert await state() == "closed"
        assert (await fail(asked, "get_a", DOWN))[0] == "alternative_tool"
        assert await state() == "open"
        await asked.post("/v1/outcomes", {"tool": "get_a", "via": "get_b", "call_id": "c", "status": "succeeded"})
        assert await state() == "open"
        opened = [event for event in asked.daemon.rt.events() if event.event_type == "CircuitOpened"]
        assert len(opened) == 1


@real
async def test_the_cooldown_of_a_fallback_concerns_one_primary_only(open_daemon: Any) -> None:
    cooled = {"tool": "get_b", "cooldown": {"min_consecutive_failures": 1}}
    tools = {"get_a": {"fallbacks": [cooled, "get_c"]}, "get_x": {"fallbacks": ["get_b"]}}
    async with open_daemon({"tools": tools}) as asked:
        for tenant in ("acme", "bolt"):
            await fail(asked, "get_a", tenant=tenant)
            await fail(asked, "get_b", {**DOWN, "message": "gone"}, tenant=tenant, attempt=9)
            assert await fail(asked, "get_a", call="2", tenant=tenant) == ("alternative_tool", "get_c")
            assert await fail(asked, "get_x", call="3", tenant=tenant) == ("alternative_tool", "get_b")


@real
async def test_the_calls_of_one_tenant_do_not_push_out_those_of_another(
    open_daemon: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(reported_tools, "MOST_CALLS", 5)
    async with open_daemon() as asked:
        said = {"tool": "get_a", "error": DOWN}
        for number in range(2):
            answer = (await asked.post("/v1/errors", {**said, "call_id": "c"}, "bolt")).json()
            assert answer["attempt"] == number + 1
            for flooded in range(10):
                await asked.post("/v1/errors", {**said, "call_id": f"{number}-{flooded}"}, "acme")
        again = (await asked.post("/v1/errors", {**said, "call_id": "1-9"}, "acme")).json()
        forgotten = (await asked.post("/v1/errors", {**said, "call_id": "1-0"}, "acme")).json()
        assert (again["attempt"], forgotten["attempt"]) == (2, 1)


# --- the same programs in process and through HTTP -----------------------------------------------------------------------


class ApiError(Exception):
    """An error with what an executor can say about it."""

    def __init__(self, message: str, status: int | None = None, code: str | None = None) -> None:
        super().__init__(message)
        self.status_code, self.code = status, code

    def said(self) -> dict[str, Any]:
        return {"message": str(self), "type": "ApiError", "status": self.status_code, "code": self.code}


ERRORS = [ApiError("no", status) for status in (400, 401, 404, 408, 409, 500, 502, 503, 504)] + [
    ApiError("gone", None, "ECONNREFUSED"), ApiError("reset", None, "ECONNRESET"), ApiError("odd"), ApiError(TIMEOUT),
]  # fmt: skip
NAMES = ("alpha", "beta", "gamma")
FACTS = (
    "tool_id",
    "code",
    "classification",
    "effect",
    "attempt",
    "retry_count",
    "circuit_breaker_state",
    "decision",
    "reason",
)


def draw_manifest(draw: random.Random) -> dict[str, Any]:
    """Draw the options of three tools and perhaps a policy."""
    quick = {"initial_delay": "1ms", "jitter_percent": 0}

    def fallback(name: str) -> Any:
        made: dict[str, Any] = {"tool": name}
        if draw.random() < 0.3:
            made["handle_errors"] = draw.sample(["UNAVAILABLE", "DEADLINE_EXCEEDED", "NOT_FOUND", "UNKNOWN"], 2)
        if draw.random() < 0.3:
            made["retry"] = {**quick, "max_attempts": draw.randint(1, 3)}
        if draw.random() < 0.3:
            made["cooldown"] = {"min_consecutive_failures": draw.randint(1, 2)}
        return made

    tools = {}
    for number, name in enumerate(NAMES):
        tool: dict[str, Any] = {"retry": {**quick, "max_attempts": draw.randint(1, 4)}}
        tool |= draw.choice([{"read_only": True}, {"idempotent": True}, {"idempotent": False}])
        if draw.random() < 0.5:
            tool["breaker"] = {"failure_threshold": draw.randint(1, 4), "count": draw.choice(["attempts", "calls"])}
        later = NAMES[number + 1 :]
        tool["fallbacks"] = [fallback(name) for name in draw.sample(later, draw.randint(0, len(later)))]
        if draw.random() < 0.3:
            tool["required"] = draw.choice([True, False])
        tools[name] = tool
    manifest: dict[str, Any] = {"tools": tools}
    if draw.random() < 0.4:
        when = draw.choice([{"code": "UNAVAILABLE"}, {"classification": "permanent"}, {"attempt": 2}])
        then = draw.choice([{"strategy": "fail_gracefully"}, {"strategy": "retry"}, {"strategy": "alternative_tool"}])
        manifest["policies"] = [{"name": "p", "when": when, "then": then}]
    return manifest


Script = dict[str, list[ApiError | None]]


def decisions_of(rt: Runtime) -> list[Any]:
    found = [event.to_dict() for event in rt.events() if event.event_type == "ToolError"]
    return [tuple(each.get(name) for name in FACTS) for each in found]


async def play_in_process(manifest: Any, script: Script, calls: int) -> list[Any]:
    """Call the first tool some times, until its circuit opens; return what ran, and the decisions."""
    rt, ran = Runtime(manifest), []

    def make(name: str) -> Any:
        steps = chain(script[name], repeat(None))

        async def tool() -> None:
            ran.append(name)
            if (error := next(steps)) is not None:
                raise error

        return tool

    for name in NAMES:
        rt.add(make(name), id=name)
    for _ in range(calls):
        async with rt.turn(timeout="60s") as turn:
            turn.call("alpha", id="c")
        ran.append(turn.report.outcomes["c"].status)
        if rt.health("alpha").state != "closed":
            break
    made = decisions_of(rt)
    await rt.close()
    return [ran, made]


async def play_through_http(asked: Any, script: Script, calls: int) -> list[Any]:
    """The same with an executor that asks the daemon."""
    ran: list[str] = []
    steps = {name: chain(script[name], repeat(None)) for name in NAMES}
    for number in range(calls):
        tool, ids = "alpha", {"call_id": f"c{number}", "turn_id": "t"}
        status = ""
        while not status:
            ran.append(tool)
            if (error := next(steps[tool])) is None:
                status = "succeeded"
                break
            said = {"tool": tool, "error": error.said(), "turn_left": 59.0, **ids}
            answer = (await asked.post("/v1/errors", said)).raise_for_status().json()
            if answer["strategy"] == "retry":
                await asyncio.sleep(answer["delay"])
            elif answer["strategy"] == "alternative_tool":
                tool = answer["tool"]
            else:
                status = "failed"
        via = {"via": tool} if status == "succeeded" else {}
        ended = await asked.post("/v1/outcomes", {"tool": "alpha", "status": status, **ids, **via})
        ran.append(status)
        if (await asked.get("/v1/tools/alpha")).json()["circuit"]["state"] != "closed":
            break
        assert ended.status_code == 200
    return [ran, decisions_of(asked.daemon.rt)]


@pytest.mark.parametrize("seed", range(25))
@real
async def test_an_executor_gets_the_decisions_that_a_runtime_makes(open_daemon: Any, seed: int) -> None:
    draw = random.Random(seed)
    manifest = draw_manifest(draw)
    script = {name: [draw.choice([*ERRORS, None]) for _ in range(12)] for name in NAMES}
    expected = await play_in_process(manifest, script, 3)
    async with open_daemon(manifest) as asked:
        assert await play_through_http(asked, script, 3) == expected
