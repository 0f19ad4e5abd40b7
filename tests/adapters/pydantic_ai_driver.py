"""A scripted model for the adapter's tests that keeps the messages it received, for every version of pydantic-ai."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from typing import Any

import pydantic_ai
from pydantic_ai import exceptions, messages
from pydantic_ai.messages import ModelMessage, ModelRequest, ModelResponse, TextPart, ToolCallPart
from pydantic_ai.models.function import AgentInfo, FunctionModel
from pydantic_ai.tools import DeferredToolRequests

from failsoft import Runtime
from failsoft.adapters.pydantic_ai import Failsoft
from failsoft.testing import Ask, Seen

Steps = Sequence[Sequence[Ask]]


class Script:
    """A model that asks for the calls of one step after the other, and then says that it is done."""

    def __init__(self, steps: Steps) -> None:
        self.steps = steps
        self.messages: list[ModelMessage] = []
        self.offered: list[list[str]] = []
        self.instructions: list[str] = []

    @property
    def model(self) -> FunctionModel:
        return FunctionModel(self._answer)

    def _answer(self, messages: list[ModelMessage], info: AgentInfo) -> ModelResponse:
        self.messages = messages
        self.offered.append([tool.name for tool in info.function_tools])
        self.instructions.append(str(getattr(messages[-1], "instructions", "") or ""))
        number = sum(isinstance(message, ModelResponse) for message in messages)
        if number >= len(self.steps):
            return ModelResponse([TextPart("done")])
        calls = enumerate(self.steps[number])
        return ModelResponse([ToolCallPart(ask.tool, dict(ask.args), f"call-{number}-{i}") for i, ask in calls])

    @property
    def seen(self) -> list[list[Seen]]:
        """The answers the model received for each call, step by step."""
        told = {}
        for message in self.messages:
            for part in message.parts if isinstance(message, ModelRequest) else ():
                if getattr(part, "tool_call_id", None):
                    told[part.tool_call_id] = text_of(part)
        return [
            [Seen(ask.tool, told[f"call-{number}-{i}"]) for i, ask in enumerate(step) if f"call-{number}-{i}" in told]
            for number, step in enumerate(self.steps)
        ]


def talk(agent: pydantic_ai.Agent[Any, Any], *asks: str | list[str], **options: Any) -> Script:
    """Run an agent whose model asks for these tools, step by step."""
    steps = [[Ask(tool, {}) for tool in ([step] if isinstance(step, str) else step)] for step in asks]
    script = Script(steps)
    asyncio.run(agent.run("go", model=script.model, **options))
    return script


def texts(script: Script) -> list[str]:
    return [seen.text for step in script.seen for seen in step]


def failing(*errors: Any) -> tuple[Callable[[], Any], list[int]]:
    """A tool that raises these errors, one per attempt, and then has a value; and its attempts."""
    attempts: list[int] = []

    async def search() -> str:
        attempts.append(len(attempts))
        error = errors[min(len(attempts), len(errors)) - 1] if errors else "3 flights"
        if isinstance(error, BaseException):
            raise error
        return str(error)

    return search, attempts


def agent_with(runtime: Runtime, *tools: Any, make: Any = pydantic_ai.Agent, **options: Any) -> Any:
    known = ("graceful", "tool_failed", "trusted", "timeout", "max_calls", "max_calls_per_tool", "on_report")
    rules = {name: options.pop(name) for name in known if name in options}
    return make("test", tools=tools, capabilities=[Failsoft(runtime, **rules)], **{"retries": 9, **options})


def text_of(part: Any) -> str:
    """A tool's result or a retry, in whichever form this version has it."""
    content = part.content
    if isinstance(content, list) and content and isinstance(content[0], dict) and "msg" in content[0]:
        return "; ".join(f"{'.'.join(map(str, one['loc']))}: {one['msg']}" for one in content)  # bad arguments
    return content if isinstance(content, str) else str(content)


def samples() -> list[BaseException]:
    """One of each exception with which pydantic-ai steers itself."""
    part = messages.ToolReturnPart("search", "a part", "call-0-0")
    retried: Any
    if hasattr(messages, "RetryInfo"):  # since 2.60
        retried = messages.ToolReturnPart("search", "again", "call-0-0", outcome="retried")
    else:
        retried = messages.RetryPromptPart("again", tool_name="search", tool_call_id="call-0-0")
    made: list[BaseException] = [
        exceptions.ModelRetry("which city?"),
        exceptions.ToolFailed("there is no such city"),
        exceptions.ToolFailedError(part),
        exceptions.CallDeferred(),
        exceptions.ApprovalRequired(),
        exceptions.SkipToolExecution("from a hook"),
        exceptions.SkipToolValidation({}),
        exceptions.SkipModelRequest(ModelResponse([TextPart("skipped")])),
        exceptions.UsageLimitExceeded("the sub-agent's limit"),
        exceptions.UnexpectedModelBehavior("the sub-agent's model"),
        exceptions.ModelHTTPError(503, "the sub-agent's provider"),
        exceptions.UserError("a mistake in the set-up"),
        exceptions.ToolRetryError(retried),
    ]
    if hasattr(exceptions, "RetryModelRequest"):
        made.append(exceptions.RetryModelRequest())
    return made


class Driver:
    """How ``check_adapter`` runs a pydantic-ai agent."""

    def __init__(self, make: Callable[..., pydantic_ai.Agent[Any, Any]] = pydantic_ai.Agent) -> None:
        self.make = make
        self.control_flow = samples()

    async def run(self, runtime: Runtime | None, tools: Any, steps: Steps) -> list[list[Seen]]:
        script = Script(steps)
        agent = self.make(
            script.model,
            output_type=[str, DeferredToolRequests],
            tools=list(tools.values()),
            retries=9,
            capabilities=[] if runtime is None else [Failsoft(runtime)],
        )
        result = await agent.run("go")
        if isinstance(result.output, DeferredToolRequests):
            return [[Seen(ask.tool, f"deferred: {result.output!r}") for ask in step] for step in steps]
        return script.seen
