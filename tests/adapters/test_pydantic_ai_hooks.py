"""pydantic-ai: the user's hooks see the tool's exception, and their answer is final."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextvars import ContextVar
from typing import Any

import pydantic_ai
import pytest
from pydantic_ai import ModelRetry, Tool, exceptions
from pydantic_ai.capabilities import AbstractCapability, Hooks
from pydantic_ai.messages import ModelRequest, ToolReturnPart
from pydantic_ai.tools import DeferredToolRequests, DeferredToolResults
from pydantic_ai.toolsets import FunctionToolset
from tests.adapters.pydantic_ai_driver import Script, failing, talk, texts

from failsoft import CircuitOpen, Runtime
from failsoft.adapters.pydantic_ai import Agent, Failsoft
from failsoft.testing import Ask

ERROR = ValueError("no such airport")


class Watching(AbstractCapability[Any]):
    """Records what each hook sees, and can answer instead of the tool."""

    def __init__(self, *, answer: Any = None, instead: Exception | None = None, twice: bool = False) -> None:
        self.seen: dict[str, list[BaseException]] = {"wrap": [], "error": []}
        self.answer, self.instead, self.twice = answer, instead, twice

    async def wrap_tool_execute(self, ctx: Any, *, call: Any, tool_def: Any, args: Any, handler: Any) -> Any:
        try:
            return await handler(args)
        except Exception as error:
            self.seen["wrap"].append(error)
            if self.twice:
                return await handler(args)
            raise

    async def on_tool_execute_error(self, ctx: Any, *, call: Any, tool_def: Any, args: Any, error: Exception) -> Any:
        self.seen["error"].append(error)
        if self.answer is not None:
            return self.answer
        raise self.instead or error


def plain(*tools: Any, hooks: Any, **options: Any) -> Any:
    return pydantic_ai.Agent("test", tools=tools, capabilities=[hooks, Failsoft(Runtime())], **options)


def graceful(*tools: Any, hooks: Any, **options: Any) -> Any:
    return Agent("test", tools=tools, capabilities=[hooks], **options)


def both(*tools: Any, hooks: Any, **options: Any) -> Any:
    return Agent("test", tools=tools, capabilities=[hooks, Failsoft(Runtime())], **options)


def from_toolset(*tools: Any, hooks: Any, **options: Any) -> Any:
    return Agent("test", toolsets=[FunctionToolset([*tools])], capabilities=[hooks], **options)


def at_run(*tools: Any, hooks: Any, **options: Any) -> Any:
    """An agent whose runs are guarded, not the agent itself."""
    agent = Agent("test", tools=tools, capabilities=[hooks], **options)
    run = agent.run
    agent.run = lambda *a, **k: run(*a, **{**k, "capabilities": [Failsoft(Runtime())]})  # type: ignore[assignment,method-assign,misc]
    return agent


MAKERS = pytest.mark.parametrize("make", [plain, graceful, both, from_toolset, at_run])
Make = Callable[..., Any]


@MAKERS
def test_error_hooks_see_the_very_exception(make: Make) -> None:
    hooks = Watching()
    search, attempts = failing(ERROR)
    script = talk(make(search, hooks=hooks), "search")
    assert hooks.seen == {"wrap": [ERROR], "error": [ERROR]}
    assert "no such airport" in texts(script)[0]
    assert len(attempts) == 1


@MAKERS
def test_hook_functions_see_the_exception(make: Make) -> None:
    seen: list[Exception] = []
    hooks: Any = Hooks()

    @hooks.on.tool_execute_error
    async def note(ctx: Any, *, call: Any, tool_def: Any, args: Any, error: Exception) -> Any:
        seen.append(error)
        raise error

    search, _ = failing(ERROR)
    assert "no such airport" in texts(talk(make(search, hooks=hooks), "search"))[0]
    assert seen == [ERROR]


@MAKERS
def test_the_answer_of_an_error_hook_is_the_tools(make: Make) -> None:
    search, _ = failing(ERROR)
    assert texts(talk(make(search, hooks=Watching(answer="nothing found")), "search")) == ["nothing found"]


@MAKERS
def test_an_exception_raised_by_an_error_hook_reaches_the_caller(make: Make) -> None:
    search, _ = failing(ERROR)
    with pytest.raises(LookupError, match="mine"):
        talk(make(search, hooks=Watching(instead=LookupError("mine"))), "search")


@MAKERS
def test_a_retry_requested_by_an_error_hook_reaches_the_model(make: Make) -> None:
    search, _ = failing(ERROR)
    script = talk(make(search, hooks=Watching(instead=ModelRetry("which airport?"))), "search")
    assert "which airport?" in texts(script)[0]


@MAKERS
def test_a_hook_may_run_the_tool_again(make: Make) -> None:
    hooks = Watching(twice=True)
    search, attempts = failing(ERROR, "3 flights")
    assert texts(talk(make(search, hooks=hooks), "search")) == ["3 flights"]
    assert (hooks.seen["wrap"], len(attempts)) == ([ERROR], 2)


@MAKERS
def test_one_exception_object_of_several_calls_side_by_side(make: Make) -> None:
    hooks = Watching()
    search, _ = failing(ERROR)
    script = talk(make(search, hooks=hooks), ["search", "search"])
    assert all("no such airport" in text for text in texts(script))
    assert hooks.seen["error"] == [ERROR] * 2


@MAKERS
def test_hooks_of_an_agent_inside_a_tool_see_their_own(make: Make) -> None:
    inner_hooks, outer_hooks = Watching(), Watching()
    search, _ = failing(ERROR)
    inner = make(search, hooks=inner_hooks)

    async def ask() -> str:
        script = Script([[Ask("search", {})]])
        await inner.run("go", model=script.model)
        return texts(script)[0]

    script = talk(make(ask, hooks=outer_hooks), "ask")
    assert "no such airport" in texts(script)[0]
    assert (inner_hooks.seen["error"], outer_hooks.seen["error"]) == ([ERROR], [])


@MAKERS
def test_error_hooks_do_not_see_control_flow_exceptions(make: Make) -> None:
    hooks = Watching()
    search, _ = failing(ModelRetry("which city?"), exceptions.ToolFailed("there is none"))
    assert texts(talk(make(search, hooks=hooks), "search", "search")) == ["which city?", "there is none"]
    assert hooks.seen["error"] == []


def test_a_hook_sees_that_the_circuit_is_open() -> None:
    hooks = Watching()
    runtime = Runtime({"tools": {"search": {"retry": {"max_attempts": 1}, "breaker": {"failure_threshold": 1}}}})
    search, attempts = failing(ConnectionResetError("gone"))
    agent = pydantic_ai.Agent("test", tools=[search], capabilities=[hooks, Failsoft(runtime)])
    talk(agent, "search", "search")
    assert [type(error) for error in hooks.seen["error"]] == [ConnectionResetError, CircuitOpen]
    assert len(attempts) == 1


# --- what the model's retries cost ----------------------------------------------------------------------------------------


def outcomes(script: Script) -> list[str]:
    parts = [part for message in script.messages if isinstance(message, ModelRequest) for part in message.parts]
    return [getattr(part, "outcome", "retried") for part in parts if getattr(part, "tool_call_id", None)]


def test_failures_do_not_spend_the_models_retries() -> None:
    search, attempts = failing(ERROR)
    agent = pydantic_ai.Agent("test", tools=[search], retries=0, capabilities=[Failsoft(Runtime())])
    script = talk(agent, "search", "search", "search", "search")
    assert outcomes(script) == ["failed"] * 4
    assert len(attempts) == 2  # then the thread knows what comes of it


def test_failures_spend_the_models_retries_if_tool_failed_is_never() -> None:
    search, _ = failing(ERROR)
    agent = pydantic_ai.Agent(
        "test", tools=[search], retries=1, capabilities=[Failsoft(Runtime(), tool_failed="never")]
    )
    with pytest.raises(exceptions.UnexpectedModelBehavior, match="exceeded max retries"):
        talk(agent, "search", "search", "search")


@pytest.mark.parametrize("make", [graceful, both, at_run])
def test_our_own_agent_keeps_model_retry(make: Make) -> None:
    search, _ = failing(ERROR)
    with pytest.raises(exceptions.UnexpectedModelBehavior, match="exceeded max retries") as caught:
        talk(make(search, hooks=Watching(), retries=1), "search", "search", "search")
    assert isinstance(caught.value.__cause__, ModelRetry)
    assert caught.value.__cause__.__cause__ is ERROR


# --- tools that change after the agent was made -----------------------------------------------------------------------------


def paying(make: Make) -> tuple[Any, Tool[Any], list[int]]:
    paid: list[int] = []

    async def pay() -> str:
        paid.append(1)
        return "paid"

    tool: Tool[Any] = Tool(pay)
    return make(tool, hooks=Watching(), output_type=[str, DeferredToolRequests]), tool, paid


@MAKERS
def test_approval_that_is_required_later_is_asked_for(make: Make) -> None:
    agent, tool, paid = paying(make)
    talk(agent, "pay")
    assert paid == [1]
    tool.requires_approval = True
    script = Script([[Ask("pay", {})]])
    asked = asyncio.run(agent.run("go", model=script.model))
    assert isinstance(asked.output, DeferredToolRequests)
    assert ([call.tool_name for call in asked.output.approvals], paid) == (["pay"], [1])
    results = DeferredToolResults(approvals={call.tool_call_id: True for call in asked.output.approvals})
    history = asked.all_messages()
    asyncio.run(agent.run(message_history=history, deferred_tool_results=results, model=script.model))
    assert paid == [1, 1]


@MAKERS
def test_later_changes_to_a_tool_take_effect(make: Make) -> None:
    agent, tool, paid = paying(make)
    tool.description = "moves money"
    tool.sequential = True
    tool.metadata = {"failsoft": {"graceful_errors": False}}
    tool.prepare = lambda ctx, definition: None  # type: ignore[assignment]
    script = talk(agent, "pay")
    assert (script.offered[0], paid) == ([], [])
    assert "pay" in texts(script)[0]  # it is unknown


def test_a_tool_object_stays_the_users_own() -> None:
    def search() -> str:
        raise ERROR

    tool = Tool(search)
    Agent("test", tools=[tool])
    assert tool.function is search
    with pytest.raises(ValueError, match="no such airport"):
        tool.function()  # type: ignore[call-arg]


@MAKERS
def test_answers_name_their_tool(make: Make) -> None:
    search, _ = failing(ERROR)
    script = talk(make(search, hooks=Watching()), "search")
    parts: list[Any] = [p for m in script.messages if isinstance(m, ModelRequest) for p in m.parts]
    assert [p.tool_name for p in parts if isinstance(p, ToolReturnPart) or hasattr(p, "tool_name")] == ["search"]


SET_BY_TOOL: ContextVar[str] = ContextVar("set_by_tool", default="nothing")


class Looking(AbstractCapability[Any]):
    """Notes the context variable after the tool has run."""

    def __init__(self) -> None:
        self.seen: list[str] = []

    async def wrap_tool_execute(self, ctx: Any, *, call: Any, tool_def: Any, args: Any, handler: Any) -> Any:
        try:
            return await handler(args)
        finally:
            self.seen.append(SET_BY_TOOL.get())


@pytest.mark.parametrize("fails", [False, True])
@pytest.mark.parametrize("made", [plain, graceful, both])
def test_hooks_see_the_context_variables_that_an_async_tool_set(made: Callable[..., Any], fails: bool) -> None:
    async def get_it() -> str:
        SET_BY_TOOL.set("by the tool")
        if fails:
            raise ERROR
        return "x"

    hooks = Looking()
    talk(made(get_it, hooks=hooks), "get_it")
    assert hooks.seen == ["by the tool"]


@pytest.mark.parametrize("made", [plain, both])
def test_a_cancellation_of_a_tools_own_keeps_its_text(made: Callable[..., Any]) -> None:
    async def get_it() -> str:
        raise asyncio.CancelledError("the user closed the window")

    with pytest.raises(asyncio.CancelledError, match="the user closed the window"):
        talk(made(get_it, hooks=Looking()), "get_it")
