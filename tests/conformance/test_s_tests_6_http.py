"""S-spec 6 and S-tests 6 through HTTP: an executor that only speaks JSON, and all cases of the runtime."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, get_args

import httpx
import pytest
from tests.conformance import test_s_spec_6, test_s_tests_6_integration
from tests.fakes import DOWN, INVALID, RATE_LIMIT, TIMEOUT, real

from failsoft import Decision, ErrorReport, Runtime, decide
from failsoft.core.model.decision import Strategy
from failsoft.surfaces.daemon.access import AccessOptions
from failsoft.surfaces.daemon.app import build_app
from failsoft.surfaces.daemon.daemon import Daemon
from failsoft.surfaces.daemon.tokens import TokenBook, open_tokens

MANIFEST = {
    "tools": {
        "flight_search": {"fallbacks": ["flight_search_backup"], "retry": {"initial_delay": "1ms"}},
        "flight_search_backup": {"read_only": True},
        "hotel_search": {"retry": {"initial_delay": "1ms"}},
    }
}


def connect(path: Path, manifest: Any) -> tuple[Daemon, httpx.AsyncClient]:
    """Open a daemon and a client for it."""
    (token,) = open_tokens(path)
    daemon = Daemon(manifest)
    app = build_app(daemon, TokenBook(path), AccessOptions(rate=1e9))
    headers = {"authorization": f"Bearer {token.secret}"}
    client = httpx.AsyncClient(transport=httpx.ASGITransport(app=app), base_url="http://127.0.0.1", headers=headers)
    return daemon, client


class Executor:
    """An executor as one in another language would be: it runs tools, reports errors, and does as it is told."""

    def __init__(self, client: httpx.AsyncClient, tools: dict[str, list[Any]]) -> None:
        self.client = client
        self.tools = tools  # what each attempt does: raises, or returns
        self.decisions: list[dict[str, Any]] = []

    async def run(self, tool: str, call_id: str, turn_id: str = "turn-1") -> tuple[str, Any]:
        called, attempts = tool, 0
        tried: list[str] = []
        while True:
            attempts += 1
            steps = self.tools[tool]
            step = steps.pop(0) if len(steps) > 1 else steps[0]
            if not isinstance(step, Exception):
                await self._end(called, call_id, turn_id, "succeeded", attempts, via=tool)
                return "succeeded", step
            error = {"message": str(step), "type": type(step).__name__}
            said = {
                "tool": tool,
                "call_id": call_id,
                "turn_id": turn_id,
                "error": error,
                "turn_left": 60.0,
                "tried": tried,
            }
            answer = (await self.client.post("/v1/errors", json=said)).raise_for_status().json()
            self.decisions.append(answer)
            if answer["strategy"] == "retry":
                await asyncio.sleep(answer["delay"])
            elif answer["strategy"] == "alternative_tool":
                tried.append(tool)
                tool = answer["tool"]
            else:
                await self._end(called, call_id, turn_id, "failed", attempts)
                return answer["strategy"], None

    async def _end(self, tool: str, call_id: str, turn_id: str, status: str, attempts: int, **more: Any) -> None:
        said = {"tool": tool, "call_id": call_id, "turn_id": turn_id, "status": status, "attempts": attempts, **more}
        (await self.client.post("/v1/outcomes", json=said)).raise_for_status()

    async def trace(self) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = (await self.client.get("/v1/turns/turn-1")).raise_for_status().json()["trace"]
        return found


Play = Callable[..., Any]


@pytest.fixture
def play(tmp_path: Path) -> Play:
    """Give a function that runs a story with an executor."""

    def run(tools: dict[str, list[Any]], story: Callable[[Executor], Any], manifest: Any = MANIFEST) -> None:
        async def whole() -> None:
            daemon, client = connect(tmp_path / "tokens.json", manifest)
            async with client:
                await story(Executor(client, tools))
            await daemon.close()

        asyncio.run(whole())

    return run


def test_6_1_the_handler_has_error_tool_attempts_and_turn(play: Play) -> None:
    async def story(executor: Executor) -> None:
        await executor.run("flight_search", "flights")
        first, second = [event for event in await executor.trace() if event["event_type"] == "ToolError"]
        assert "Connection timeout after 30s" in first["error"]
        assert (first["tool_id"], first["call_id"], first["turn_id"]) == ("flight_search", "flights", "turn-1")
        assert (first["attempt"], second["attempt"], first["retry_count"], second["retry_count"]) == (1, 2, 0, 1)
        assert first["turn_left"] == 60.0

    play({"flight_search": [TIMEOUT, TIMEOUT, "flights"]}, story)


def test_6_2_a_transient_error_is_retried(play: Play) -> None:
    async def story(executor: Executor) -> None:
        await executor.run("flight_search", "flights")
        (decision,) = executor.decisions
        assert (decision["fault"]["classification"], decision["circuit"]["state"]) == ("transient", "closed")
        assert (decision["retry_count"], decision["strategy"]) == (0, "retry")
        assert decision["reason"] == "Transient error + circuit closed + retries available"

    play({"flight_search": [TIMEOUT, "flights"]}, story)


def test_6_3_a_retry_succeeds(play: Play) -> None:
    async def story(executor: Executor) -> None:
        assert await executor.run("flight_search", "flights") == ("succeeded", "flights")
        assert "Tool succeeded on retry 2" in [event.get("message") for event in await executor.trace()]

    play({"flight_search": [TIMEOUT, "flights"]}, story)


def test_6_4_an_alternative_tool_is_used(play: Play) -> None:
    async def story(executor: Executor) -> None:
        assert await executor.run("flight_search", "flights") == ("succeeded", "by other means")
        assert "Used alternative tool" in [event.get("message") for event in await executor.trace()]

    play({"flight_search": [INVALID], "flight_search_backup": ["by other means"]}, story)


def test_6_5_a_permanent_error_is_escalated(play: Play) -> None:
    async def story(executor: Executor) -> None:
        assert await executor.run("hotel_search", "hotels") == ("escalate", None)
        (decision,) = executor.decisions
        assert decision["reason"] == "Permanent error (no retry)"
        assert "Escalated" in [event["event_type"] for event in await executor.trace()]

    play({"hotel_search": [INVALID]}, story)


def test_6_6_the_trace_has_every_decision(play: Play) -> None:
    async def story(executor: Executor) -> None:
        await executor.run("flight_search", "flights")
        await executor.run("hotel_search", "hotels")
        errors = [event for event in await executor.trace() if event["event_type"] == "ToolError"]
        assert [(event["classification"], event["decision"]) for event in errors] == [
            ("transient", "retry"), ("permanent", "alternative_tool"), ("transient", "retry"), ("transient", "retry"),
        ]  # fmt: skip
        assert {event["circuit_breaker_state"] for event in errors} == {"closed"}
        ended = [event["call_id"] for event in await executor.trace() if event["event_type"] == "CallSucceeded"]
        assert ended == ["flights", "hotels"]
        turn = (await executor.client.get("/v1/turns/turn-1")).json()
        assert {row["id"] for row in turn["waterfall"]["rows"]} == {"flights", "hotels"}

    tools = {
        "flight_search": [DOWN, INVALID], "flight_search_backup": ["found"], "hotel_search": [TIMEOUT, RATE_LIMIT, "rooms"],
    }  # fmt: skip
    play(tools, story)


# --- the cases of the runtime, through HTTP ------------------------------------------------------------------------------


class OverHttp:
    """An Error Handler that asks a daemon through HTTP.

    With a handler of the case: that one decides, on the report as the wire has carried it.
    """

    def __init__(self, tokens: Path, handler: Any = None) -> None:
        self.daemon, self.client = connect(tokens, None)
        self.handler = handler
        self.asked = 0

    async def handle(self, report: ErrorReport) -> Any:
        self.asked += 1
        answer = await self.client.post("/v1/errors", json={"report": report.to_dict()})
        decision = Decision.from_dict(answer.raise_for_status().json())
        if self.handler is None:
            return decision
        assert decision == Decision.from_dict(over_wire(decide(report).to_dict())), "the same decision as in process"
        wish = await self.handler.handle(ErrorReport.from_dict(over_wire(report.to_dict())))
        is_sound = isinstance(wish, Decision) and wish.strategy in get_args(Strategy)
        return Decision.from_dict(over_wire(wish.to_dict())) if is_sound else wish


def over_wire(value: Any) -> Any:
    """Return a value as JSON carries it."""
    return json.loads(json.dumps(value))


def list_cases(module: Any) -> Iterator[Any]:
    """Every test of a module, with each set of its parameters."""
    for name, test in vars(module).items():
        if not name.startswith("test_") or name in OTHERWISE:
            continue
        sets: list[tuple[str, dict[str, Any]]] = [("", {})]
        for mark in getattr(test, "pytestmark", ()):
            names, values = mark.args
            names = (names,) if isinstance(names, str) else names
            sets = [
                (f"{id}-{number}", {**given, **dict(zip(names, value if len(names) > 1 else (value,), strict=True))})
                for id, given in sets
                for number, value in enumerate(values)
            ]
        for id, given in sets:
            yield pytest.param(module, name, given, id=f"{name}{id}")


OTHERWISE = ("test_blocking_callers_have_the_same_handler",)  # tests/client has blocking callers of a real daemon
CASES = [case for module in (test_s_tests_6_integration, test_s_spec_6) for case in list_cases(module)]


@pytest.mark.parametrize(("module", "name", "given"), CASES)
def test_the_case_in_process_holds_through_http(
    module: Any, name: str, given: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made: list[OverHttp] = []

    def make(*args: Any, **options: Any) -> Runtime:
        made.append(OverHttp(tmp_path / "tokens.json", options.pop("error_handler", None)))
        return Runtime(*args, error_handler=made[-1], **options)

    monkeypatch.setattr(module, "Runtime", make)
    getattr(module, name)(**given)
    assert sum(each.asked for each in made)


@real
async def test_nobody_is_asked_without_a_failure(tmp_path: Path) -> None:
    handler = OverHttp(tmp_path / "tokens.json")
    rt = Runtime(error_handler=handler)
    rt.add(lambda: 1, id="one")
    assert (await rt.call("one")).value == 1
    assert handler.asked == 0
    await handler.daemon.close()
    await handler.client.aclose()
