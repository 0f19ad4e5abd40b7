"""S13: tracing with OpenTelemetry, beside the instrumentation of a framework.

Spans go to a ``BatchSpanProcessor`` whose exporter drops them: what is left is what making them costs. *Call* is one call of
S1's tool, × a bare call inside one span made by hand, as a framework's instrumentation makes it. *Run* is S11's run of an
agent, × the same run with the framework's own instrumentation and without failsoft.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache, partial
from typing import Any

from bench.harness import Peer, Plan, Table, add_instructions, compare
from bench.s11_adapters import STEPS, THREAD, look


@cache
def provider() -> Any:
    from opentelemetry.sdk.trace import TracerProvider
    from opentelemetry.sdk.trace.export import BatchSpanProcessor, SpanExporter, SpanExportResult

    class Dropping(SpanExporter):
        def export(self, _: Any) -> SpanExportResult:
            return SpanExportResult.SUCCESS

    made = TracerProvider(shutdown_on_exit=False)
    made.add_span_processor(BatchSpanProcessor(Dropping()))
    return made


def by_hand(spans: int) -> Callable[..., Any]:
    tracer = provider().get_tracer("by hand")
    named = {"gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": "look"}

    async def one(city: str) -> str:
        with tracer.start_as_current_span("execute_tool look", attributes=named):
            return await look(city)

    async def two(city: str) -> str:
        outer = tracer.start_as_current_span("execute_tool look", attributes=named)
        with outer, tracer.start_as_current_span("attempt look", attributes=named):
            return await look(city)

    return one if spans == 1 else two


def guarded(*, traced: bool) -> Callable[..., Any]:
    from failsoft import Runtime
    from failsoft.otel import OpenTelemetry

    rt = Runtime(instruments=[OpenTelemetry(tracer_provider=provider())] if traced else [])
    return rt.add(look, read_only=True)


def pydantic_ai(kind: str) -> Callable[..., Any]:
    from pydantic_ai import Agent
    from pydantic_ai.capabilities import Instrumentation
    from pydantic_ai.messages import ModelMessage, ModelResponse, TextPart, ToolCallPart
    from pydantic_ai.models.function import FunctionModel
    from pydantic_ai.models.instrumented import InstrumentationSettings

    from failsoft import Runtime
    from failsoft.adapters.pydantic_ai import Failsoft
    from failsoft.otel import OpenTelemetry

    def answer(messages: list[ModelMessage], _: Any) -> ModelResponse:
        step = sum(isinstance(message, ModelResponse) for message in messages)
        if step == len(STEPS):
            return ModelResponse([TextPart("done")])
        return ModelResponse([ToolCallPart("look", {"city": "Paris"}) for _ in range(STEPS[step])])

    own = Instrumentation(InstrumentationSettings(tracer_provider=provider()))
    traced = [OpenTelemetry(tracer_provider=provider())]
    capabilities: dict[str, list[Any]] = {
        "own": [own],
        "both": [own, Failsoft(Runtime(instruments=traced))],
        "untraced": [own, Failsoft(Runtime())],
        "failsoft": [Failsoft(Runtime(instruments=traced))],
        "none": [],
    }
    agent = Agent(FunctionModel(answer), tools=[look], capabilities=capabilities[kind])
    return lambda _: agent.run("go", conversation_id=THREAD)


CALL = [
    Peer("one span by hand", partial(by_hand, 1), counted=True),
    Peer("failsoft with OpenTelemetry", partial(guarded, traced=True), counted=True),
    Peer("two spans by hand", partial(by_hand, 2), counted=True),
    Peer("failsoft, not traced", partial(guarded, traced=False), counted=True),
    Peer("bare", lambda: look),
]
RUN = [
    Peer("pydantic-ai, own instrumentation", partial(pydantic_ai, "own")),
    Peer("own instrumentation, failsoft with OpenTelemetry", partial(pydantic_ai, "both")),
    Peer("own instrumentation, failsoft not traced", partial(pydantic_ai, "untraced")),
    Peer("failsoft with OpenTelemetry alone", partial(pydantic_ai, "failsoft")),
    Peer("pydantic-ai, nothing traced", partial(pydantic_ai, "none")),
]
PEERS = CALL
AWAITS = True


def run(plan: Plan) -> list[Table]:
    tables = []
    for name, title, peers in (
        ("S13", "One traced call, × a bare call inside one span made by hand", CALL),
        ("S13 run", "A traced run of an agent with three calls, × pydantic-ai with its own instrumentation", RUN),
    ):
        rows, skipped = compare(peers, plan)
        if plan.instr and peers is CALL:
            add_instructions(rows, __name__, peers)
        rows = [{**row, "us": row["ns"] / 1000} for row in rows]
        tables.append(Table(name, title, ["peer", "us", "ratio", "best", "instr", "instr_ratio"], rows, skipped))
    return tables
