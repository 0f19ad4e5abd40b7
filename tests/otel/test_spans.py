"""One span per call, a child for each attempt, turns as parents, by the names of the conventions."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from typing import Any

import pytest
from opentelemetry import trace
from opentelemetry.context import attach
from opentelemetry.sdk.trace.sampling import ALWAYS_OFF
from opentelemetry.trace import SpanKind, StatusCode
from tests.fakes import DOWN, INVALID, ONCE, RESET, Scripted, Takes, virtual
from tests.otel.collected import Collected, attributes, events

from failsoft import CallFailed, Runtime, Verified, partial
from failsoft.errors import ManifestError
from failsoft.otel import OpenTelemetry


def current_name() -> str:
    return str(getattr(trace.get_current_span(), "name", "-"))


async def see() -> str:
    """See the current span."""
    return current_name()


async def see_later() -> str:
    await asyncio.sleep(0.001)
    return current_name()


def see_blocking() -> str:
    return current_name()


TOOLS: dict[str, tuple[Callable[..., Any], dict[str, Any]]] = {
    "async": (see, {}),
    "async, suspended": (see_later, {}),
    "async, one at a time": (see_later, {"concurrency": 1}),
    "in a worker thread": (see_blocking, {}),
    "in the caller": (see_blocking, {"timeout": None}),
}


@pytest.mark.parametrize("tool", TOOLS)
@pytest.mark.parametrize("route", ["by name", "guarded", "blocking", "in a turn", "in a turn's body"])
def test_every_route_makes_one_span_per_call_and_one_per_attempt(tool: str, route: str) -> None:
    fn, options = TOOLS[tool]
    collected = Collected()
    rt = collected.runtime()
    guarded = rt.add(fn, id="see", read_only=True, **options)

    async def play() -> Any:
        if route == "by name":
            return (await rt.call("see")).value
        if route == "guarded":
            value = guarded()
            return await value if asyncio.iscoroutine(value) else value
        async with rt.turn(id="turn") as turn:
            if route == "in a turn":
                return (await turn.call("see")).value
            return (await rt.call("see")).value

    value = rt.call_sync("see").value if route == "blocking" else asyncio.run(play())
    assert value == "attempt see"
    turn = ["- > failsoft.turn"] if route.startswith("in a turn") else []
    assert collected.tree() == [
        *turn,
        f"{'failsoft.turn' if turn else '-'} > execute_tool see",
        "execute_tool see > attempt see",
    ]
    assert current_name() == "-"


@pytest.mark.parametrize("read", ["to its end", "in part", "until it fails"])
@pytest.mark.parametrize("kind", ["async", "blocking"])
def test_spans_made_by_a_stream_are_children_of_its_attempt(kind: str, read: str) -> None:
    collected = Collected()
    rt = collected.runtime()

    def blocking() -> Any:
        for at in range(3):
            if at == 2 and read == "until it fails":
                raise ValueError
            with collected.tracer.start_as_current_span("page"):
                pass
            yield current_name()

    async def stream() -> Any:
        for name in blocking():
            yield name

    async def play() -> None:
        items = guarded()
        with suppress(ValueError):
            if kind == "async":
                async for name in items:
                    seen.append((name, current_name()))
                    if read == "in part" and len(seen) == 2:
                        break
            else:
                for name in items:
                    seen.append((name, current_name()))
                    if read == "in part" and len(seen) == 2:
                        break
        assert current_name() == "-"

    guarded = rt.add(stream if kind == "async" else blocking, id="search", read_only=True)
    seen: list[tuple[str, str]] = []
    asyncio.run(play())
    count = 3 if read == "to its end" else 2
    assert seen == [("attempt search", "-")] * count
    assert collected.tree() == [
        "- > execute_tool search",
        "execute_tool search > attempt search",
        *["attempt search > page"] * count,
    ]


@pytest.mark.parametrize("kind", ["async", "blocking", "in the caller", "stream"])
def test_a_context_that_a_tool_forgets_to_detach_ends_with_its_attempt(kind: str) -> None:
    collected = Collected()
    rt = collected.runtime()

    def forget() -> None:
        attach(trace.set_span_in_context(collected.tracer.start_span("forgotten")))

    async def forget_later() -> None:
        await asyncio.sleep(0)
        forget()

    async def stream() -> Any:
        with collected.tracer.start_as_current_span("whole"):
            yield 1
            yield 2

    options: dict[str, Any] = {"timeout": None} if kind == "in the caller" else {}
    fn = {"async": forget_later, "stream": stream}.get(kind, forget)
    guarded = rt.add(fn, id="search", read_only=True, **options)

    async def play() -> list[str]:
        if kind != "stream":
            await rt.call("search")
            return [current_name()]
        return [current_name() async for _ in guarded()] + [current_name()]

    assert set(asyncio.run(play())) == {"-"}
    if kind not in ("async", "stream"):
        rt.call_sync("search")
        assert current_name() == "-"


@virtual
async def test_the_span_of_a_call_has_the_attributes_of_the_conventions() -> None:
    collected = Collected()
    rt = collected.runtime()
    rt.add(see, read_only=True)
    await rt.call("see", id="call_1", thread="t-1", tenant="acme")
    span = collected.one("execute_tool see")
    assert span.kind is SpanKind.INTERNAL
    assert span.status.status_code is StatusCode.UNSET
    assert span.instrumentation_scope is not None
    assert span.instrumentation_scope.name == "failsoft"
    assert attributes(span) == {
        "gen_ai.operation.name": "execute_tool",
        "gen_ai.tool.name": "see",
        "gen_ai.tool.type": "function",
        "gen_ai.tool.call.id": "call_1",
        "gen_ai.tool.description": "See the current span.",
        "gen_ai.conversation.id": "t-1",
        "failsoft.call.id": "call_1",
        "failsoft.tenant": "acme",
        "failsoft.outcome": "succeeded",
        "failsoft.attempts": 1,
    }
    assert attributes(collected.one("attempt see")) == {"gen_ai.tool.name": "see", "failsoft.attempt.number": 1}


@virtual
async def test_the_span_of_a_call_covers_all_retries_and_each_attempt_says_what_was_decided() -> None:
    collected = Collected()
    rt = collected.runtime()
    rt.add(Scripted(RESET, DOWN, "found"), id="search", read_only=True)
    await rt.call("search")
    assert collected.tree() == ["- > execute_tool search"] + 3 * ["execute_tool search > attempt search"]
    first, second, third = collected.spans("attempt search")
    assert [attributes(span)["failsoft.attempt.number"] for span in (first, second, third)] == [1, 2, 3]
    told = attributes(first)
    assert told["failsoft.error.class"] == "transient"
    assert told["failsoft.breaker.state"] == "closed"
    assert told["failsoft.decision"] == "retry"
    assert told["failsoft.retry.delay"] > 0
    assert told["error.type"] == told["failsoft.error.code"] == "UNAVAILABLE"
    assert first.status.status_code is StatusCode.ERROR
    assert "error.type" not in attributes(third)
    (exception,) = first.events
    assert exception.name == "gen_ai.execute_tool.exception"
    assert set(exception.attributes or {}) == {"exception.type", "exception.message", "exception.stacktrace"}
    assert (exception.attributes or {})["exception.type"] == "ConnectionResetError"
    call = collected.one("execute_tool search")
    assert events(call) == ["failsoft.retry_succeeded"]
    assert attributes(call)["failsoft.attempts"] == 3
    assert call.start_time <= first.start_time
    assert third.end_time <= call.end_time


@virtual
async def test_a_failed_call_has_an_error_type_a_status_and_its_exception() -> None:
    collected = Collected()
    rt = collected.runtime()
    search = rt.add(Scripted(INVALID), id="search")
    with pytest.raises(CallFailed):
        await search()
    span = collected.one("execute_tool search")
    told = attributes(span)
    assert told["error.type"] == told["failsoft.error.code"] == "INVALID_ARGUMENT"
    assert told["failsoft.error.category"] == "tool_validation"
    assert told["failsoft.outcome"] == "failed"
    assert told["failsoft.escalated"] is True
    assert span.status.status_code is StatusCode.ERROR
    assert events(span) == ["failsoft.escalated", "gen_ai.execute_tool.exception"]


@virtual
async def test_secrets_in_errors_reach_no_span() -> None:
    collected = Collected()
    rt = collected.runtime()
    rt.add(Scripted(ConnectionError("password=hunter2-hunter2")), id="search", read_only=True, retry=ONCE)
    await rt.call("search")
    assert "hunter2" not in "".join(span.to_json() for span in collected.spans())


@virtual
async def test_an_attempt_of_a_fallback_names_the_primary_and_links_to_its_failure() -> None:
    collected = Collected()
    rt = collected.runtime()
    rt.add(Scripted(DOWN), id="search", read_only=True, retry=ONCE, fallbacks=["cache"])
    rt.add(Scripted("cached"), id="cache", read_only=True)
    await rt.call("search")
    assert collected.tree() == [
        "- > execute_tool search",
        "execute_tool search > attempt search",
        "execute_tool search > attempt cache",
    ]
    fallback = collected.one("attempt cache")
    assert attributes(fallback)["failsoft.fallback.from"] == "search"
    (link,) = fallback.links
    assert link.context == collected.one("attempt search").context
    assert dict(link.attributes or {}) == {"failsoft.link": "fallback"}
    call = collected.one("execute_tool search")
    assert attributes(call)["failsoft.via"] == "cache"
    assert "failsoft.fallback_used" in events(call)


@virtual
async def test_refusals_and_transitions_of_a_circuit_are_events_of_the_call() -> None:
    collected = Collected()
    rt = collected.runtime()
    breaker = {"failure_threshold": 1, "timeout": "60s"}
    rt.add(Scripted(DOWN, "well"), id="search", read_only=True, retry=ONCE, breaker=breaker)
    await rt.call("search")
    await rt.call("search")
    await asyncio.sleep(61)
    await rt.call("search")
    opened, refused, closed = collected.spans("execute_tool search")
    assert "failsoft.circuit_opened" in events(opened)
    assert events(refused) == ["failsoft.call_refused"]
    assert attributes(refused)["failsoft.attempts"] == 0
    assert refused.status.status_code is StatusCode.ERROR
    (event,) = refused.events
    assert (event.attributes or {})["failsoft.breaker.state"] == "open"
    assert events(closed) == ["failsoft.circuit_half_opened", "failsoft.circuit_closed"]
    assert len(collected.spans("attempt search")) == 2


@virtual
async def test_calls_inside_a_tool_are_children_of_its_attempt() -> None:
    collected = Collected()
    rt = collected.runtime()
    rt.add(see, read_only=True)

    async def outer() -> Any:
        async with rt.turn() as turn:
            turn.call("see")
        return (await rt.call("see")).value

    rt.add(outer, read_only=True)
    await rt.call("outer")
    assert collected.tree() == [
        "- > execute_tool outer",
        "execute_tool outer > attempt outer",
        "attempt outer > failsoft.turn",
        "failsoft.turn > execute_tool see",
        "execute_tool see > attempt see",
        "attempt outer > execute_tool see",
        "execute_tool see > attempt see",
    ]


@virtual
async def test_calls_of_a_turn_that_run_side_by_side_keep_their_spans_apart() -> None:
    collected = Collected()
    rt = collected.runtime()
    rt.add(see_later, id="see", read_only=True)
    with collected.tracer.start_as_current_span("request"):
        async with rt.turn(id="turn", thread="t-1") as turn:
            for _ in range(5):
                turn.call("see")
    assert [*turn.report.results.values()] == ["attempt see"] * 5
    tree = collected.tree()
    assert tree[:2] == ["- > request", "request > failsoft.turn"]
    assert tree.count("failsoft.turn > execute_tool see") == 5
    assert tree.count("execute_tool see > attempt see") == 5
    parents = {span.parent.span_id for span in collected.spans("attempt see") if span.parent is not None}
    assert len(parents) == 5
    assert attributes(collected.one("failsoft.turn")) == {
        "failsoft.turn.id": "turn",
        "gen_ai.conversation.id": "t-1",
        "failsoft.turn.calls": 5,
        "failsoft.turn.failed": 0,
    }


@virtual
async def test_a_skipped_call_is_an_event_of_its_turn_and_has_no_span() -> None:
    collected = Collected()
    rt = collected.runtime()
    rt.add(Scripted(INVALID), id="first", read_only=True)
    rt.add(see, read_only=True)
    async with rt.turn() as turn:
        first = turn.call("first")
        turn.call("see", depends_on=[first])
    assert collected.executed() == {"execute_tool first": 1}
    span = collected.one("failsoft.turn")
    assert events(span) == ["failsoft.call_skipped"]
    assert attributes(span)["failsoft.turn.failed"] == 2


@virtual
async def test_a_turn_that_is_broken_off_ends_its_span_with_the_error() -> None:
    collected = Collected()
    rt = collected.runtime()
    with suppress(KeyError):
        async with rt.turn():
            raise KeyError("body")
    span = collected.one("failsoft.turn")
    assert attributes(span)["error.type"] == "KeyError"
    assert span.status.status_code is StatusCode.ERROR


@virtual
async def test_a_cancelled_call_ends_its_spans_without_an_error() -> None:
    collected = Collected()
    rt = collected.runtime()
    rt.add(Scripted(Takes(100)), id="search", read_only=True)
    task = asyncio.ensure_future(rt.call("search"))
    await asyncio.sleep(1)
    task.cancel()
    with suppress(asyncio.CancelledError):
        await task
    assert collected.tree() == ["- > execute_tool search", "execute_tool search > attempt search"]
    span = collected.one("execute_tool search")
    assert attributes(span)["failsoft.outcome"] == "cancelled"
    assert span.status.status_code is StatusCode.UNSET


@pytest.mark.parametrize("route", ["awaited", "blocking", "cancelled"])
def test_the_span_of_an_abandoned_attempt_ends_at_the_deadline_and_not_with_the_tool(route: str) -> None:
    held, freed = threading.Event(), threading.Event()

    def hang() -> None:
        held.wait(20)
        freed.set()

    collected = Collected()
    rt = collected.runtime()
    limit = "20s" if route == "cancelled" else "20ms"
    rt.add(hang, timeout=limit, read_only=True, retry=ONCE)

    async def cancelled() -> None:
        task = asyncio.ensure_future(rt.call("hang"))
        await asyncio.sleep(0.05)
        task.cancel()
        with suppress(asyncio.CancelledError):
            await task

    if route == "blocking":
        rt.call_sync("hang")
    else:
        asyncio.run(cancelled() if route == "cancelled" else rt.call("hang"))  # type: ignore[arg-type]
    before = [span.to_json() for span in collected.spans()]
    assert collected.tree() == ["- > execute_tool hang", "execute_tool hang > attempt hang"]
    attempt = collected.one("attempt hang")
    assert attempt.end_time - attempt.start_time < 10_000_000_000
    if route != "cancelled":
        assert attributes(attempt)["failsoft.attempt.abandoned"] is True
        assert attributes(attempt)["error.type"] == "DEADLINE_EXCEEDED"
    held.set()
    assert freed.wait(20)
    time.sleep(0.01)
    assert [span.to_json() for span in collected.spans()] == before


@pytest.mark.parametrize("cancels", [False, True])
@pytest.mark.parametrize("kind", ["async", "blocking", "stubborn"])
def test_the_spans_of_a_call_that_its_turn_leaves_end_at_the_turns_deadline(kind: str, *, cancels: bool) -> None:
    held = threading.Event()

    async def slow() -> None:
        await asyncio.sleep(60)

    async def stubborn() -> None:
        while not held.is_set():
            with suppress(asyncio.CancelledError):
                await asyncio.sleep(0.01)

    def blocking() -> None:
        held.wait(60)

    async def play() -> None:
        async with rt.turn(timeout="30ms", on_timeout="cancel" if cancels else "leave") as turn:
            turn.call("search", id="left")
        assert turn.report.outcomes["left"].status == "timed_out"
        before.extend(span.to_json() for span in collected.spans())
        held.set()
        await rt.close()

    before: list[str] = []
    collected = Collected()
    rt = collected.runtime()
    rt.add({"async": slow, "blocking": blocking, "stubborn": stubborn}[kind], id="search", read_only=True)
    asyncio.run(play())
    assert collected.tree() == [
        "- > failsoft.turn",
        "failsoft.turn > execute_tool search",
        "execute_tool search > attempt search",
    ]
    assert [span.to_json() for span in collected.spans()] == before
    call, attempt = collected.one("execute_tool search"), collected.one("attempt search")
    assert attributes(call)["failsoft.outcome"] == "timed_out"
    assert attributes(attempt)["failsoft.attempt.abandoned"] is True
    for span in (call, attempt):
        assert attributes(span)["error.type"] == "DEADLINE_EXCEEDED"
        assert span.status.status_code is StatusCode.ERROR
        assert span.end_time <= collected.one("failsoft.turn").end_time


@virtual
async def test_a_timeout_of_an_async_tool_is_an_error_of_its_attempt() -> None:
    collected = Collected()
    rt = collected.runtime()
    rt.add(Scripted(Takes(100)), id="search", timeout="2s", read_only=True, retry=ONCE)
    await rt.call("search")
    attempt = collected.one("attempt search")
    assert attributes(attempt)["error.type"] == "DEADLINE_EXCEEDED"
    assert events(attempt) == ["gen_ai.execute_tool.exception"]
    assert "failsoft.tool_timeout" in events(collected.one("execute_tool search"))


@virtual
async def test_arguments_and_results_are_recorded_only_on_request_and_sanitised() -> None:
    def pay(account: str, password: str) -> dict[str, Any]:
        return {"token": "sk-abcdefghijklmnopqrstuvwxyz0123456789", "account": account}

    for wanted in (False, True):
        collected = Collected()
        rt = collected.runtime(record_arguments=wanted, record_results=wanted)
        guarded = rt.add(pay, read_only=True, timeout=None)
        guarded("DE 12", password="hunter2-hunter2")
        told = attributes(collected.one("execute_tool pay"))
        assert "hunter2" not in str(told)
        assert "abcdefghij" not in str(told)
        if wanted:
            assert told["gen_ai.tool.call.arguments"] == '{"account": "DE 12", "password": "[redacted]"}'
            assert '"account": "DE 12"' in told["gen_ai.tool.call.result"]
        else:
            assert not told.keys() & {"gen_ai.tool.call.arguments", "gen_ai.tool.call.result"}


@virtual
async def test_a_partial_result_is_told() -> None:
    collected = Collected()
    rt = collected.runtime()
    rt.add(Scripted(partial([1], missing="page 2")), id="search", read_only=True, accept_partial=True)
    await rt.call("search")
    assert attributes(collected.one("execute_tool search"))["failsoft.partial"] is True


@virtual
async def test_the_global_provider_is_used_also_if_it_is_set_later(monkeypatch: pytest.MonkeyPatch) -> None:
    rt = Runtime(instruments=[OpenTelemetry()])
    rt.add(see, read_only=True)
    assert (await rt.call("see")).value == "-"
    collected = Collected()
    monkeypatch.setattr(trace, "_TRACER_PROVIDER", collected.provider)
    assert (await rt.call("see")).value == "attempt see"
    assert collected.tree() == ["- > execute_tool see", "execute_tool see > attempt see"]


@virtual
async def test_a_call_that_is_not_sampled_runs_as_usual() -> None:
    collected = Collected()
    collected.provider.sampler = ALWAYS_OFF
    rt = collected.runtime(record_arguments=True, record_results=True)
    rt.add(Scripted(RESET, "found"), id="search", read_only=True)
    assert (await rt.call("search")).value == "found"
    assert collected.spans() == []


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"tracer_provider": 3}, "tracer_provider: expected a TracerProvider of OpenTelemetry, got 3"),
        ({"record_arguments": "yes"}, "record_arguments: expected True or False, got 'yes'"),
        ({"record_results": 1}, "record_results: expected True or False, got 1"),
    ],
)
def test_options_of_another_type_are_refused(options: dict[str, Any], message: str) -> None:
    with pytest.raises(ManifestError) as refused:
        OpenTelemetry(**options)
    assert str(refused.value) == message


@virtual
async def test_a_call_of_a_tool_that_does_not_exist_has_a_span_whose_name_is_bounded() -> None:
    collected = Collected()
    rt = collected.runtime()
    rt.add(see, read_only=True)
    await rt.call("invented")
    async with rt.turn() as turn:
        turn.call("invented")
    first, second = collected.spans("execute_tool _unknown")
    for span in (first, second):
        assert attributes(span)["gen_ai.tool.name"] == "invented"
        assert attributes(span)["failsoft.error.category"] == "tool_unavailable"
        assert events(span) == ["failsoft.call_refused"]
    assert collected.tree() == [
        "- > execute_tool _unknown",
        "- > failsoft.turn",
        "failsoft.turn > execute_tool _unknown",
    ]


@pytest.mark.parametrize("kind", ["async", "blocking"])
@virtual
async def test_verify_has_a_span_of_its_own_with_a_link_to_the_attempt(kind: str) -> None:
    seen: list[str] = []

    async def check(arguments: Any, key: Any, fault: Any) -> Verified:
        seen.append(current_name())
        return Verified.happened("booked")

    def check_blocking(arguments: Any, key: Any, fault: Any) -> Verified:
        seen.append(current_name())
        return Verified.happened("booked")

    collected = Collected()
    rt = collected.runtime()
    rt.add(Scripted(RESET), id="book", idempotent=False, verify=check if kind == "async" else check_blocking)
    outcome = await rt.call("book")
    assert outcome.via == "verify"
    assert seen == ["verify book"]
    assert collected.tree() == [
        "- > execute_tool book",
        "execute_tool book > attempt book",
        "execute_tool book > verify book",
    ]
    (link,) = collected.one("verify book").links
    assert link.context == collected.one("attempt book").context
    call = collected.one("execute_tool book")
    assert "failsoft.effect_verified" in events(call)
    assert attributes(call)["failsoft.via"] == "verify"


# --- hostile values -----------------------------------------------------------------------------------------------------


class Unreadable:
    """Cannot be shown."""

    def __getattr__(self, name: str) -> Any:
        raise RuntimeError("no")

    def __repr__(self) -> str:
        raise RuntimeError("no")


@virtual
async def test_values_that_cannot_be_shown_or_sent_end_no_span_early() -> None:
    collected = Collected()
    rt = collected.runtime(record_arguments=True, record_results=True)
    unreadable = Unreadable()

    async def search(**arguments: Any) -> Any:
        return unreadable

    rt.add(search, read_only=True)
    odd = {"text": "\ud800", "long": "x" * 100_000, "self": unreadable}
    await rt.call("search", odd, id="call \ud800", thread="t \ud800 " + "y" * 100_000, tenant="\udfff")
    assert collected.tree() == ["- > execute_tool search", "execute_tool search > attempt search"]
    for span in collected.spans():
        for value in attributes(span).values():
            assert not isinstance(value, str) or len(value.encode()) <= 8192 * 4


@virtual
async def test_control_flow_of_a_framework_is_no_error() -> None:
    class Interrupt(Exception):
        pass

    async def search(_: dict[str, Any]) -> None:
        raise Interrupt

    collected = Collected()
    rt = collected.runtime()
    with pytest.raises(Interrupt):
        await rt.run("search", {}, {"search": search}, control=(Interrupt,))
    assert collected.tree() == ["- > execute_tool search", "execute_tool search > attempt search"]
    for span in collected.spans():
        assert span.status.status_code is StatusCode.UNSET
        assert events(span) == []
    assert attributes(collected.one("execute_tool search"))["failsoft.outcome"] == "control_flow"


def test_many_os_threads_at_once_keep_their_spans_apart() -> None:
    collected = Collected()
    rt = collected.runtime()
    rt.add(see_blocking, id="see", read_only=True)
    values: list[Any] = []

    def play() -> None:
        for _ in range(20):
            values.append(rt.call_sync("see").value)

    threads = [threading.Thread(target=play) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert values == ["attempt see"] * 160
    tree = collected.tree()
    assert tree.count("- > execute_tool see") == 160
    assert tree.count("execute_tool see > attempt see") == 160
    assert len({span.parent.span_id for span in collected.spans("attempt see") if span.parent is not None}) == 160


@virtual
async def test_runs_that_are_freed_in_many_os_threads_lose_no_call() -> None:
    class Run:
        pass

    collected = Collected()
    rt = collected.runtime()
    rt.add(see_blocking, id="see", read_only=True, timeout=None)

    def play() -> None:
        for _ in range(50):
            rt.agent_run(Run())
            assert rt.call_sync("see").status == "succeeded"

    await asyncio.gather(*(asyncio.to_thread(play) for _ in range(4)))
    await rt.close()
    assert len(collected.spans("failsoft.turn")) == 200
