"""chuk-tool-processor: `ToolProcessor` with a registry of tools, `process` for calls as models write them.

Its tools are classes with an `async def execute`, so every tool here is wrapped in one. A result with `error` becomes
an exception with that text: what a planner would read.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from bench.peers.library import Fn, Library, Option


class ToolError(Exception):
    """The text of a result's `error`."""


def _as_tool(function: Fn) -> type:
    class Tool:
        async def execute(self, **arguments: Any) -> Any:
            return await function(**arguments)

    return Tool


class Blocking:
    """A blocking function as a tool that a worker process can load."""

    def __init__(self, function: Fn) -> None:
        self.function = function

    async def execute(self) -> Any:
        return self.function()


def _processor(tools: dict[str, Any], **settings: Any) -> Any:
    from chuk_tool_processor import ToolProcessor

    settings = {"enable_caching": False, "enable_retries": False, "default_timeout": 30.0, **settings}
    made: list[Any] = []

    async def get() -> Any:
        from chuk_tool_processor import create_registry

        if not made:
            registry = create_registry()
            for name, tool in tools.items():
                await registry.register_tool(tool, name=name)
            if isinstance(settings.get("strategy"), type):
                settings["strategy"] = settings["strategy"](registry, default_timeout=settings["default_timeout"])
            made.append(ToolProcessor(registry=registry, **settings))
        return made[0]

    return get


def _guard(tool: Any, **settings: Any) -> Fn:
    get = _processor({"search": _as_tool(tool)}, **settings)

    async def call() -> Any:
        processor = await get()
        (result,) = await processor.process([{"tool": "search", "arguments": {}}])
        if result.error is not None:
            raise ToolError(result.error)
        return result.result

    return call


def _retries(attempts: int, base: float = 0.0001, longest: float = 0.0002, **more: Any) -> dict[str, Any]:
    from chuk_tool_processor.execution.wrappers.retry import RetryConfig

    config = RetryConfig(max_retries=attempts - 1, base_delay=base, max_delay=longest, **more)
    return {"enable_retries": True, "retry_config": config}


def _breaks(failures: int, window: float) -> dict[str, Any]:
    return {
        "enable_circuit_breaker": True,
        "circuit_breaker_threshold": failures,
        "circuit_breaker_timeout": window,
    }


class ChukToolProcessor(Library):
    name = "chuk-tool-processor"
    home = "https://github.com/chrishayuk/chuk-tool-processor"
    notes = {  # noqa: RUF012
        "T6": "a blocking function within `async def execute`, in its `SubprocessStrategy`; it takes no blocking tools",
        "T6 left": "as in T6",
        "T17": "its `SensitiveDataGuard` redacts arguments and results that are given to it, not the texts of errors",
    }

    def retry(self, tool: Fn, attempts: int, **more: Any) -> Fn:
        return _guard(tool, **_retries(attempts, **more))

    def backoff(self, tool: Fn, attempts: int, first: float, longest: float) -> Fn:
        return _guard(tool, **_retries(attempts, first, longest))

    def breaker(self, tool: Fn, failures: int, window: float) -> Fn:
        return _guard(tool, **_breaks(failures, window))

    def timeout(self, tool: Fn, seconds: float) -> Fn:
        return _guard(tool, default_timeout=seconds)

    def retry_timeout(self, tool: Fn, attempts: int, seconds: float, **more: Any) -> Fn:
        return _guard(tool, default_timeout=seconds, **_retries(attempts, **more))

    def everything(self, tool: Fn) -> Fn:
        # "Production Configuration", with the cache off: every call must be made
        return _guard(tool, default_timeout=5.0, **_retries(3), **_breaks(5, 60))

    def hooked(self, tool: Fn, hook: Fn) -> Fn:
        # on_tool_start of stream_run
        from chuk_tool_processor import ToolCall

        get = _processor({"search": _as_tool(tool)})

        async def started(call: Any) -> None:
            hook(call)

        async def call() -> Any:
            processor = await get()
            await processor.initialize()
            streamed = processor.strategy.stream_run([ToolCall(tool="search")], on_tool_start=started)
            results = [result async for result in streamed]
            if results[0].error is not None:
                raise ToolError(results[0].error)
            return results[0].result

        return call

    def isolated(self, function: Fn, seconds: float) -> Fn:
        # SubprocessStrategy: "crash isolation"; one processor for all tools, as in an application
        from chuk_tool_processor.execution.strategies.subprocess_strategy import SubprocessStrategy

        from bench.peers import tools

        if not hasattr(self, "_shared"):
            names = (tools.echo, tools.sleep_3, tools.sleep_60, tools.crash)
            self._shared = _processor({one.__name__: Blocking(one) for one in names}, strategy=SubprocessStrategy)
        get = self._shared

        async def call() -> Any:
            processor = await get()
            (result,) = await processor.process([{"tool": function.__name__, "arguments": {}}], timeout=seconds)
            if result.error is not None:
                raise ToolError(result.error)
            return result.result

        return call

    async def batch(
        self, tools: dict[str, Fn], calls: list[tuple[str, str, dict[str, Any]]], **settings: Any
    ) -> list[tuple[str | None, Any]]:
        # "60-Second Example": caching and retries on; calls as OpenAI's models write them
        import json

        settings = {"enable_caching": True, **_retries(2), **settings}
        order = settings.pop("return_order", None)
        get = _processor({name: _as_tool(tool) for name, tool in tools.items()}, **settings)
        processor = await get()
        asked = [
            {"id": id, "type": "function", "function": {"name": tool, "arguments": json.dumps(arguments)}}
            for id, tool, arguments in calls
        ]
        results = await processor.process({"tool_calls": asked}, **({"return_order": order} if order else {}))
        return [
            (result.call_id, result.result if result.error is None else ToolError(result.error)) for result in results
        ]

    async def batch_text(self, tools: dict[str, Fn], calls: list[tuple[str, str, dict[str, Any]]]) -> None:
        # "Anthropic XML format"
        import json

        get = _processor({name: _as_tool(tool) for name, tool in tools.items()})
        processor = await get()
        await processor.process(
            "\n".join(f"<tool name=\"{tool}\" args='{json.dumps(args)}'/>" for _, tool, args in calls)
        )

    async def plan(self, needs: dict[str, list[str]]) -> list[str]:
        # "DAG Scheduling with Dependencies"
        from chuk_tool_processor import GreedyDagScheduler, SchedulingConstraints, ToolCallSpec

        specs = [ToolCallSpec(call_id=id, tool_name="search", depends_on=tuple(other)) for id, other in needs.items()]
        plan = GreedyDagScheduler().plan(specs, SchedulingConstraints())
        return [id for stage in plan.stages for id in stage]

    def acknowledge(self, folder: str) -> Fn:
        # FileTraceSink
        from chuk_tool_processor.models.execution_span import ExecutionSpan
        from chuk_tool_processor.observability.trace_sink import FileTraceSink

        sink = FileTraceSink(folder)

        async def record(number: int) -> None:
            await sink.record_span(ExecutionSpan(tool_name="search", tool_call_id=f"call-{number}"))

        return record

    def kept(self, folder: Path) -> set[int]:
        import re

        text = "".join(path.read_text() for path in folder.rglob("*") if path.is_file())
        return {int(number) for number in re.findall(r"call-(\d+)", text)}

    def options(self) -> dict[str, Option]:
        def batched(**settings: Any) -> Fn:
            return lambda tools, calls: ChukToolProcessor().batch(tools, calls, **settings)

        return {
            "T5": Option(
                '`RetryConfig(skip_retry_on_error_substrings=["Timeout"])` (then no timeout is repeated)',
                {
                    "retry_timeout": lambda tool, attempts, seconds: ChukToolProcessor().retry_timeout(
                        tool, attempts, seconds, skip_retry_on_error_substrings=["Timeout"]
                    )
                },
            ),
            "T9": Option(
                '`RetryConfig(skip_retry_on_error_substrings=["unexpected keyword"])`',
                {
                    "retry": lambda tool, attempts: ChukToolProcessor().retry(
                        tool, attempts, skip_retry_on_error_substrings=["unexpected keyword"]
                    )
                },
            ),
            "T10": Option('`return_order="submission"`, which goes past retries and breaker', {"batch": batched(return_order="submission")}),
            "T18": Option(
                "its breaker within the retries",
                {"retry": lambda tool, attempts: _guard(tool, **_retries(attempts), **_breaks(5, 60))},
            ),
        }  # fmt: skip
