"""pydantic-ai: successful runs are exactly the same as without failsoft, feature by feature."""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass, field
from typing import Any

import pydantic_ai
import pytest
from pydantic import BaseModel
from pydantic_ai import FunctionToolset, ModelRetry, RunContext, Tool, ToolReturn
from pydantic_ai.capabilities import AbstractCapability
from pydantic_ai.exceptions import CallDeferred, UsageLimitExceeded
from pydantic_ai.messages import ModelMessage, ModelMessagesTypeAdapter, ModelResponse, TextPart, ToolCallPart
from pydantic_ai.models.function import AgentInfo, DeltaToolCall, FunctionModel
from pydantic_ai.tools import DeferredToolRequests, DeferredToolResults, ToolDefinition, ToolDenied
from pydantic_ai.usage import UsageLimits

from failsoft import Runtime
from failsoft.adapters.pydantic_ai import Agent, Failsoft

Call = tuple[str, dict[str, Any]]


def model(*steps: list[Call]) -> FunctionModel:
    """Asks for the calls of one step after the other, and says that it is done."""

    def answer(messages: list[ModelMessage], info: AgentInfo) -> ModelResponse:
        number = sum(isinstance(message, ModelResponse) for message in messages)
        if number < len(steps):
            calls = enumerate(steps[number])
            return ModelResponse([ToolCallPart(name, args, f"c{number}-{i}") for i, (name, args) in calls])
        if info.output_tools:
            return ModelResponse([ToolCallPart(info.output_tools[0].name, {"city": "Rome"}, "final")])
        return ModelResponse([TextPart("done")])

    async def stream(messages: list[ModelMessage], info: AgentInfo) -> AsyncIterator[Any]:
        for index, part in enumerate(answer(messages, info).parts):
            if isinstance(part, ToolCallPart):
                arguments = part.args_as_json_str()
                yield {index: DeltaToolCall(name=part.tool_name, json_args=arguments, tool_call_id=part.tool_call_id)}
            else:
                yield getattr(part, "content", "")

    return FunctionModel(answer, stream_function=stream)


def bare(*args: Any, **options: Any) -> Any:
    return pydantic_ai.Agent(*args, **options)


def guarded(*args: Any, **options: Any) -> Any:
    extra = [*options.pop("capabilities", ()), Failsoft(Runtime())]
    return pydantic_ai.Agent(*args, capabilities=extra, **options)


def graceful(*args: Any, **options: Any) -> Any:
    return Agent(*args, **options)


def both(*args: Any, **options: Any) -> Any:
    return Agent(*args, capabilities=[*options.pop("capabilities", ()), Failsoft(Runtime())], **options)


Make = Callable[..., Any]
Scene = Callable[[Make], Any]
SCENES: list[Scene] = []


def scene(fn: Scene) -> Scene:
    SCENES.append(fn)
    return fn


def history(messages: list[ModelMessage]) -> str:
    """Messages as text, without the parts that differ from run to run."""
    text = ModelMessagesTypeAdapter.dump_json(messages).decode()
    text = re.sub(r'"(timestamp|run_id|conversation_id)":"[^"]*"', r'"\1":""', text)
    return re.sub(r"pyd_ai_[0-9a-f]+", "generated", text)


@dataclass
class Deps:
    name: str
    seen: list[Any] = field(default_factory=list)


async def add(ctx: RunContext[Deps], a: int, b: int = 1) -> int:
    """Add two numbers."""
    ctx.deps.seen.append((ctx.tool_name, ctx.retry, ctx.tool_call_id, ctx.run_step))
    return a + b


def shout(text: str) -> str:
    """Say it louder."""
    return text.upper()


@scene
async def dependencies_and_context(make: Make) -> Any:
    agent, deps = (
        make(model([("add", {"a": 1}), ("add", {"a": 2, "b": 3})], [("add", {"a": 4})]), deps_type=Deps, tools=[add]),
        Deps("Ann"),
    )
    result = await agent.run("go", deps=deps)
    return history(result.all_messages()), deps.seen, result.usage.tool_calls


@scene
async def blocking_functions(make: Make) -> Any:
    return history((await make(model([("shout", {"text": "hey"})]), tools=[shout]).run("go")).all_messages())


@scene
async def bad_arguments_and_unknown_tools(make: Make) -> Any:
    agent = make(
        model([("shout", {"text": 5})], [("nothing", {})], [("shout", {"text": "x"})]), tools=[shout], retries=3
    )
    return history((await agent.run("go")).all_messages())


@scene
async def retries_that_a_tool_asks_for(make: Make) -> Any:
    seen: list[int] = []

    async def guess(ctx: RunContext[None], n: int) -> str:
        seen.append(ctx.retry)
        if n < 3:
            raise ModelRetry(f"more than {n}")
        return "right"

    agent = make(model([("guess", {"n": 1})], [("guess", {"n": 2})], [("guess", {"n": 3})]), tools=[guess], retries=3)
    return history((await agent.run("go")).all_messages()), seen


@scene
async def output_tools(make: Make) -> Any:
    class Answer(BaseModel):
        city: str

    result = await make(model([("shout", {"text": "x"})]), tools=[shout], output_type=Answer).run("go")
    return history(result.all_messages()), result.output.city


@scene
async def output_functions_and_validators(make: Make) -> Any:
    def final(city: str) -> str:
        return f"to {city}"

    agent = make(model([("shout", {"text": "x"})]), tools=[shout], output_type=final)
    agent.output_validator(lambda value: value + "!")
    return (await agent.run("go")).output


@scene
async def approvals(make: Make) -> Any:
    ran: list[str] = []

    def delete(path: str) -> str:
        ran.append(path)
        return "deleted"

    steps = model([("delete", {"path": "a"}), ("delete", {"path": "b"}), ("shout", {"text": "x"})])
    agent = make(steps, tools=[Tool(delete, requires_approval=True), shout], output_type=[str, DeferredToolRequests])
    asked = await agent.run("go")
    first, second = (call.tool_call_id for call in asked.output.approvals)
    results = DeferredToolResults(approvals={first: True, second: ToolDenied("not that one")})
    after = await agent.run(message_history=asked.all_messages(), deferred_tool_results=results)
    return history(asked.all_messages()), history(after.all_messages()), ran


@scene
async def approval_that_a_toolset_asks_for(make: Make) -> Any:
    toolset = FunctionToolset([shout]).approval_required(lambda ctx, definition, args: args["text"] == "x")
    agent = make(
        model([("shout", {"text": "x"}), ("shout", {"text": "y"})]),
        toolsets=[toolset],
        output_type=[str, DeferredToolRequests],
    )
    asked = await agent.run("go")
    results = DeferredToolResults(approvals={call.tool_call_id: True for call in asked.output.approvals})
    after = await agent.run(message_history=asked.all_messages(), deferred_tool_results=results)
    return len(asked.output.approvals), history(after.all_messages())


@scene
async def calls_that_others_run(make: Make) -> Any:
    def later() -> str:
        raise CallDeferred

    agent = make(
        model([("later", {}), ("shout", {"text": "x"})]), tools=[later, shout], output_type=[str, DeferredToolRequests]
    )
    asked = await agent.run("go")
    results = DeferredToolResults(calls={call.tool_call_id: "came later" for call in asked.output.calls})
    after = await agent.run(message_history=asked.all_messages(), deferred_tool_results=results)
    return len(asked.output.calls), history(after.all_messages())


@scene
async def streaming(make: Make) -> Any:
    agent = make(model([("shout", {"text": "x"}), ("shout", {"text": "y"})]), tools=[shout])
    async with agent.run_stream("go") as stream:
        output = await stream.get_output()
    return output, history(stream.all_messages())


@scene
async def events_and_steps(make: Make) -> Any:
    events: list[str] = []

    async def handle(ctx: Any, stream: Any) -> None:
        async for event in stream:
            events.append(type(event).__name__)

    agent = make(model([("shout", {"text": "x"}), ("shout", {"text": "y"})]), tools=[shout])
    await agent.run("go", event_stream_handler=handle)
    nodes = []
    async with agent.iter("go") as run:
        async for node in run:
            nodes.append(type(node).__name__)
    return sorted(events), nodes, run.result.output


@scene
async def usage_limits(make: Make) -> Any:
    agent = make(model(*[[("shout", {"text": "x"})]] * 5), tools=[shout])
    with pytest.raises(UsageLimitExceeded) as caught:
        await agent.run("go", usage_limits=UsageLimits(request_limit=2))
    with pytest.raises(UsageLimitExceeded) as calls:
        await agent.run("go", usage_limits=UsageLimits(tool_calls_limit=1))
    return str(caught.value), str(calls.value)


@scene
async def toolsets_of_all_kinds(make: Make) -> Any:
    tools = FunctionToolset([shout])

    async def allow(ctx: RunContext[Any], definitions: list[ToolDefinition]) -> list[ToolDefinition]:
        return [definition for definition in definitions if definition.name != "hidden"]

    toolset = tools.prefixed("my").filtered(lambda ctx, definition: True).prepared(allow)
    agent = make(model([("my_shout", {"text": "x"})]), toolsets=[toolset])

    @agent.toolset
    def more(ctx: RunContext[Any]) -> Any:
        return FunctionToolset([shout]).renamed({"louder": "shout"})

    return history((await agent.run("go")).all_messages())


@scene
async def results_with_more_than_a_value(make: Make) -> Any:
    def picture() -> Any:
        return ToolReturn("a cat", content=["look:", "meow"], metadata={"size": 3})

    return history((await make(model([("picture", {})]), tools=[picture]).run("go")).all_messages())


@scene
async def one_after_the_other(make: Make) -> Any:
    order: list[str] = []

    async def slow(n: int) -> int:
        order.append(f"begin {n}")
        for _ in range(30 * (3 - n)):  # the last call ends first, however slow the machine is
            await asyncio.sleep(0)
        order.append(f"end {n}")
        return n

    calls = [("slow", {"n": n}) for n in range(3)]
    await make(model(calls), tools=[Tool(slow, sequential=True)]).run("go")
    sequential = [*order]
    order.clear()
    await make(model(calls), tools=[slow]).run("go")
    return sequential, order


@scene
async def hooks_around_what_goes_well(make: Make) -> Any:
    seen: list[str] = []

    class Noting(AbstractCapability[Any]):
        async def before_tool_execute(self, ctx: Any, *, call: Any, tool_def: Any, args: Any) -> Any:
            seen.append("before")
            return {**args, "text": "changed"}

        async def after_tool_execute(self, ctx: Any, *, call: Any, tool_def: Any, args: Any, result: Any) -> Any:
            seen.append(f"after {result}")
            return f"<{result}>"

        async def wrap_tool_execute(self, ctx: Any, *, call: Any, tool_def: Any, args: Any, handler: Any) -> Any:
            seen.append("wrap")
            return await handler(args)

    agent = make(model([("shout", {"text": "x"})]), tools=[shout], capabilities=[Noting()])
    return history((await agent.run("go")).all_messages()), sorted(seen)


@scene
async def tools_changed_for_a_run(make: Make) -> Any:
    async def prepare(ctx: RunContext[Deps], definition: ToolDefinition) -> ToolDefinition | None:
        return definition if ctx.deps.name == "Ann" else None

    agent = make(model([("add", {"a": 1})]), deps_type=Deps, tools=[Tool(add, prepare=prepare)], retries=2)
    texts = [history((await agent.run("go", deps=Deps(name))).all_messages()) for name in ("Ann", "Bob")]
    with agent.override(tools=[shout], model=model([("shout", {"text": "over"})])):
        texts.append(history((await agent.run("go", deps=Deps("Cid"))).all_messages()))
    return texts


@scene
async def a_history_that_goes_on(make: Make) -> Any:
    agent = make(model([("shout", {"text": "x"})]), tools=[shout])
    first = await agent.run("go")
    second = await agent.run("and now?", message_history=first.all_messages())
    return history(second.all_messages()), len(second.new_messages())


@scene
async def an_agent_inside_a_tool(make: Make) -> Any:
    inner = make(model([("shout", {"text": "in"})]), tools=[shout])

    async def ask(ctx: RunContext[Any]) -> str:
        return str((await inner.run("go", usage=ctx.usage)).output)

    result = await make(model([("ask", {})]), tools=[ask]).run("go")
    return history(result.all_messages())


@pytest.mark.parametrize("make", [guarded, graceful, both])
@pytest.mark.parametrize("play", SCENES, ids=lambda play: play.__name__)
def test_successful_runs_are_the_same_as_without_failsoft(play: Scene, make: Make) -> None:
    assert asyncio.run(play(make)) == asyncio.run(play(bare))
