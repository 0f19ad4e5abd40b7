"""The trace goes on in worker processes and in programs."""

from __future__ import annotations

import asyncio
import json
import sys
from typing import Any

import pytest
from opentelemetry import trace
from opentelemetry.sdk.trace import TracerProvider
from tests.otel.collected import Collected, attributes

from failsoft import Runtime


def make_span() -> dict[str, Any]:
    """Make a span in a worker process, with a provider of its own, and return where it belongs."""
    with TracerProvider().get_tracer("worker").start_as_current_span("inside") as span:
        parent = getattr(span, "parent", None)
    return {"trace": span.get_span_context().trace_id, "parent": parent and parent.span_id}


async def make_span_async() -> dict[str, Any]:
    await asyncio.sleep(0)
    return make_span()


def read_span() -> int:
    return trace.get_current_span().get_span_context().span_id


def fail_once(path: str) -> dict[str, Any]:
    with open(path, "a+") as notes:  # noqa: PTH123
        notes.write("x")
        notes.seek(0)
        if len(notes.read()) == 1:
            raise ConnectionError("503 Service Unavailable")
    return make_span()


@pytest.mark.parametrize("blocking", [False, True])
@pytest.mark.parametrize("tool", [make_span, make_span_async])
def test_a_span_made_in_a_worker_process_is_a_child_of_the_attempt(tool: Any, blocking: bool) -> None:
    collected = Collected()
    rt = collected.runtime()
    rt.add(tool, id="inside", isolation="process", read_only=True)
    outcome = rt.call_sync("inside") if blocking else asyncio.run(rt.call("inside"))  # type: ignore[arg-type]
    attempt = collected.one("attempt inside")
    assert outcome.value == {"trace": attempt.context.trace_id, "parent": attempt.context.span_id}, outcome
    assert collected.tree() == ["- > execute_tool inside", "execute_tool inside > attempt inside"]
    asyncio.run(rt.close())


def test_each_attempt_in_a_worker_process_is_its_own_parent(tmp_path: Any) -> None:
    collected = Collected()
    rt = collected.runtime()
    rt.add(fail_once, isolation="process", read_only=True)
    outcome = rt.call_sync("fail_once", {"path": str(tmp_path / "notes")})
    _, second = collected.spans("attempt fail_once")
    assert outcome.value["parent"] == second.context.span_id
    asyncio.run(rt.close())


def test_a_worker_process_sees_no_trace_of_an_earlier_call() -> None:
    collected = Collected()
    rt = collected.runtime()
    remove = rt.instrument(collected.instrument())
    rt.add(read_span, isolation="process", read_only=True)
    assert rt.call_sync("read_span").value != 0
    remove()
    bare = Runtime()
    bare.add(read_span, isolation="process", read_only=True)
    assert bare.call_sync("read_span").value == 0
    asyncio.run(rt.close())
    asyncio.run(bare.close())


@pytest.mark.parametrize("blocking", [False, True])
def test_a_program_gets_the_attempt_as_traceparent(blocking: bool) -> None:
    show = "import json, os; print(json.dumps({n: v for n, v in os.environ.items() if n.startswith('TRACE')}))"
    manifest = {"tools": {"show": {"entrypoint": {"command": [sys.executable, "-c", show]}, "read_only": True}}}
    collected = Collected()
    rt = Runtime(manifest, instruments=[collected.instrument()])
    outcome = rt.call_sync("show") if blocking else asyncio.run(rt.call("show"))  # type: ignore[arg-type]
    attempt = collected.one("attempt show")
    assert collected.tree() == ["- > execute_tool show", "execute_tool show > attempt show"]
    value = outcome.value if isinstance(outcome.value, dict) else json.loads(outcome.value)
    assert value == {"TRACEPARENT": f"00-{attempt.context.trace_id:032x}-{attempt.context.span_id:016x}-03"}
    asyncio.run(rt.close())


def test_an_attempt_whose_process_is_killed_ends_its_span() -> None:
    hang = "import time; time.sleep(60)"
    manifest = {
        "tools": {
            "hang": {
                "entrypoint": {"command": [sys.executable, "-c", hang]},
                "read_only": True,
                "timeout": "300ms",
                "retry": {"max_attempts": 1},
            }
        }
    }
    collected = Collected()
    rt = Runtime(manifest, instruments=[collected.instrument()])
    assert rt.call_sync("hang").status == "failed"
    assert attributes(collected.one("attempt hang"))["error.type"] == "DEADLINE_EXCEEDED"
    asyncio.run(rt.close())
