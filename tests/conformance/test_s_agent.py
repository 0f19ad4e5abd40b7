"""S-agent, statement by statement: tools of a pydantic-ai agent fail gracefully."""

from __future__ import annotations

import asyncio
import functools
import inspect
import logging
from collections.abc import Callable
from typing import Any

import pytest
from pydantic_ai import FunctionToolset, ModelRetry, RunContext, Tool
from pydantic_ai.exceptions import UnexpectedModelBehavior
from pydantic_ai.models.test import TestModel
from tests.adapters.pydantic_ai_driver import Script

from failsoft.adapters.pydantic_ai import Agent, AgentConfig
from failsoft.testing import Ask

OFF = AgentConfig(graceful_tool_errors=False)
ERROR = ValueError("Must not be silently converted")


def fail(data: str) -> str:
    """Always fails."""
    raise ERROR


async def fail_later(data: str) -> str:
    """Always fails, a little later."""
    raise ERROR


def hear(agent: Agent[Any, Any], *tools: str) -> list[str]:
    """The model's texts about the tools' failures."""
    script = Script([[Ask(tool, {"data": "x"}) for tool in tools]])
    asyncio.run(agent.run("go", model=script.model))
    return [seen.text for seen in script.seen[0]]


# --- Decision 1, 2: converted to ModelRetry, by default ------------------------------------------------------------------


def test_context_a_missing_file_does_not_end_the_run() -> None:
    agent = Agent("test")

    @agent.tool_plain
    def read_file(data: str) -> str:
        raise FileNotFoundError(2, "No such file or directory", "/tmp/data.txt")

    assert hear(agent, "read_file") == ["FileNotFoundError: [Errno 2] No such file or directory: '/tmp/data.txt'"]


@pytest.mark.parametrize("tool", [fail, fail_later])
def test_decision_1_the_model_receives_the_error(tool: Callable[..., Any]) -> None:
    agent = Agent("test")
    agent.tool_plain(tool)
    assert hear(agent, tool.__name__) == ["ValueError: Must not be silently converted"]


def test_decision_2_enabled_by_default() -> None:
    assert AgentConfig().graceful_tool_errors is True
    assert Agent("test").config == AgentConfig()


def test_configuration_disabled_for_all_tools() -> None:
    agent = Agent("test", config=OFF)
    agent.tool_plain(fail)
    with pytest.raises(ValueError, match="silently") as caught:
        hear(agent, "fail")
    assert caught.value is ERROR


# --- Decision 3: per tool ---------------------------------------------------------------------------------------------------


def both(agent: Agent[Any, Any], decorator: str, **options: Any) -> Any:
    """Register a failing tool with either decorator."""
    if decorator == "tool_plain":
        return agent.tool_plain(**options)(fail)

    def fail_in_context(ctx: RunContext[Any], data: str) -> str:
        raise ERROR

    return agent.tool(name="fail", **options)(fail_in_context)


@pytest.mark.parametrize("decorator", ["tool", "tool_plain"])
def test_decision_3_opt_out(decorator: str) -> None:
    agent = Agent("test")
    both(agent, decorator, graceful_errors=False)
    with pytest.raises(ValueError, match="silently") as caught:
        hear(agent, "fail")
    assert caught.value is ERROR


@pytest.mark.parametrize("decorator", ["tool", "tool_plain"])
def test_decision_3_opt_in(decorator: str) -> None:
    agent = Agent("test", config=OFF)
    both(agent, decorator, graceful_errors=True)
    assert hear(agent, "fail") == ["ValueError: Must not be silently converted"]


@pytest.mark.parametrize("how", ["decorator", "tools", "toolset"])
def test_decision_3_opt_out_of_what_another_agent_has_decorated(how: str) -> None:
    shared = Agent("test").tool_plain(fail)
    if how == "decorator":
        agent = Agent("test")
        agent.tool_plain(graceful_errors=False)(shared)
    elif how == "tools":
        agent = Agent("test", tools=[shared], config=OFF)
    else:
        agent = Agent("test", toolsets=[FunctionToolset([shared])], config=OFF)
    with pytest.raises(ValueError, match="silently") as caught:
        hear(agent, "fail")
    assert caught.value is ERROR


# --- Decision 4, 5 and the wrapper ---------------------------------------------------------------------------------------------


async def call(fn: Callable[..., Any]) -> BaseException:
    """The exception raised by a decorated function."""
    try:
        result = fn("x")
        if inspect.isawaitable(result):
            await result
    except BaseException as error:
        return error
    raise AssertionError("it did not fail")


def raised_by(fn: Callable[..., Any]) -> BaseException:
    return asyncio.run(call(fn))


def test_decision_4_model_retry_passes_unchanged() -> None:
    mine = ModelRetry("which file?")
    mine.__cause__ = cause = KeyError("x")

    def ask(data: str) -> str:
        raise mine

    decorated = Agent("test").tool_plain(ask)
    assert raised_by(decorated) is mine
    assert mine.__cause__ is cause


@pytest.mark.parametrize("tool", [fail, fail_later])
def test_decision_5_the_chain_is_kept(tool: Callable[..., Any]) -> None:
    error = raised_by(Agent("test").tool_plain(tool))
    assert type(error) is ModelRetry
    assert error.message == str(error) == "ValueError: Must not be silently converted"
    assert error.__cause__ is ERROR


class QuotaError(Exception):
    pass


@pytest.mark.parametrize(
    ("error", "text"),
    [
        (QuotaError("5 of 5 used"), "QuotaError: 5 of 5 used"),
        (KeyError("price"), "KeyError: 'price'"),
        (QuotaError(), "QuotaError: "),
        (OSError(28, "No space left on device"), "OSError: [Errno 28] No space left on device"),
        (QuotaError("two\r\nlines\x1b[31m and \u202e marks"), "QuotaError: two\r\nlines\x1b[31m and \u202e marks"),
        (QuotaError("x" * 20_000), f"QuotaError: {'x' * 20_000}"),
    ],
)
def test_wrapper_formats_type_and_message(error: Exception, text: str) -> None:
    def tool(data: str) -> str:
        raise error

    assert str(raised_by(Agent("test").tool_plain(tool))) == text


@pytest.mark.parametrize("filling", ["", "x " * 8_000])
def test_wrapper_masks_a_secret_anywhere_in_the_text(filling: str) -> None:
    def tool(data: str) -> str:
        raise QuotaError(f"{filling}wrong key sk-live-4fK2mZ81qLw0Xb7RtY5uVh3N in request 7")

    text = str(raised_by(Agent("test").tool_plain(tool)))
    assert text == f"QuotaError: {filling}wrong key [redacted] in request 7"


def test_wrapper_survives_an_error_without_a_text() -> None:
    class Broken(Exception):
        def __str__(self) -> str:
            raise RuntimeError("no text")

    def tool(data: str) -> str:
        raise Broken

    assert str(raised_by(Agent("test").tool_plain(tool))).startswith("Broken: ")


@pytest.mark.parametrize("kind", [KeyboardInterrupt, SystemExit, GeneratorExit])
def test_wrapper_leaves_what_is_no_exception(kind: type[BaseException]) -> None:
    error = kind()

    def tool(data: str) -> str:
        raise error

    assert raised_by(Agent("test").tool_plain(tool)) is error


def test_wrapper_logs_at_debug_only(caplog: pytest.LogCaptureFixture) -> None:
    decorated = Agent("test").tool_plain(fail)
    with caplog.at_level(logging.INFO):
        raised_by(decorated)
        assert caplog.records == []
    with caplog.at_level(logging.DEBUG, logger="failsoft"):
        raised_by(decorated)
    (record,) = caplog.records
    assert (record.levelname, record.name) == ("DEBUG", "failsoft")
    assert record.getMessage() == "fail failed; the model is told: ValueError: Must not be silently converted"


@pytest.mark.parametrize("tool", [fail, fail_later])
def test_wrapper_keeps_metadata(tool: Callable[..., Any]) -> None:
    decorated = Agent("test").tool_plain(tool)
    assert decorated is not tool
    for name in functools.WRAPPER_ASSIGNMENTS:
        assert getattr(decorated, name) == getattr(tool, name)
    assert inspect.signature(decorated) == inspect.signature(tool)
    assert inspect.iscoroutinefunction(decorated) == inspect.iscoroutinefunction(tool)


def test_wrapper_keeps_the_schema_and_the_description() -> None:
    def search(city: str, nights: int = 1) -> str:
        """Find a hotel.

        Args:
            city: Where.
            nights: How long.
        """
        return city

    shown = []
    for graceful in (True, False):
        agent, model = Agent("test"), TestModel(call_tools=[])
        agent.tool_plain(graceful_errors=graceful)(search)
        asyncio.run(agent.run("go", model=model))
        assert model.last_model_request_parameters is not None
        (tool,) = model.last_model_request_parameters.function_tools
        shown.append((tool.name, tool.description, tool.parameters_json_schema))
    assert shown[0] == shown[1]


def test_decorated_functions_can_be_called() -> None:
    agent = Agent("test", deps_type=int)

    @agent.tool
    def add(ctx: RunContext[int], x: int) -> int:
        return x + 1

    @agent.tool_plain()
    def double(x: int) -> int:
        return x * 2

    @agent.tool_plain(graceful_errors=False)
    def half(x: int) -> float:
        return x / 2

    assert (add(None, 1), double(2), half(3)) == (2, 4, 1.5)  # type: ignore[arg-type]  # it looks at no context


# --- wherever the tools come from ---------------------------------------------------------------------------------------------


def of_constructor() -> Agent[Any, Any]:
    return Agent("test", tools=[fail])


def of_tool_object() -> Agent[Any, Any]:
    tool = Tool(fail, max_retries=4, description="mine")
    agent = Agent("test", tools=[tool])
    assert tool.function is fail, "the user's own object stays as it is"
    return agent


def of_toolset() -> Agent[Any, Any]:
    return Agent("test", toolsets=[FunctionToolset([fail])])


def of_dynamic_toolset() -> Agent[Any, Any]:
    agent = Agent("test")
    agent.toolset(lambda ctx: FunctionToolset([fail]))
    return agent


def of_partial() -> Agent[Any, Any]:
    return Agent("test", tools=[functools.update_wrapper(functools.partial(fail), fail)])


def of_method() -> Agent[Any, Any]:
    class House:
        def fail(self, data: str) -> str:
            raise ERROR

    return Agent("test", tools=[House().fail])


ORIGINS = [of_constructor, of_tool_object, of_toolset, of_dynamic_toolset, of_partial, of_method]


@pytest.mark.parametrize("make", ORIGINS)
def test_tools_from_everywhere_are_graceful(make: Callable[[], Agent[Any, Any]]) -> None:
    assert hear(make(), "fail") == ["ValueError: Must not be silently converted"]


@pytest.mark.parametrize(
    "options",
    [{"tools": [fail]}, {"tools": [Tool(fail)]}, {"toolsets": [FunctionToolset([fail])]}],
    ids=["function", "tool object", "toolset"],
)
def test_tools_from_everywhere_obey_the_agent(options: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match="silently"):
        hear(Agent("test", config=OFF, **options), "fail")


@pytest.mark.parametrize("where", ["tools", "toolsets"])
def test_a_tools_own_metadata_opt_out(where: str) -> None:
    tool = Tool(fail, metadata={"failsoft": {"graceful_errors": False}})
    agent = Agent("test", tools=[tool]) if where == "tools" else Agent("test", toolsets=[FunctionToolset([tool])])
    with pytest.raises(ValueError, match="silently"):
        hear(agent, "fail")


# --- Consequences, neutral: exhaustion is pydantic-ai's ---------------------------------------------------------------------------


def test_consequences_exhausted_retries_end_as_pydantic_ai_has_it() -> None:
    agent = Agent("test")
    agent.tool_plain(fail)
    script = Script([[Ask("fail", {"data": "x"})]] * 3)
    with pytest.raises(UnexpectedModelBehavior, match="exceeded max retries count of 1") as caught:
        asyncio.run(agent.run("go", model=script.model))
    retry = caught.value.__cause__
    assert isinstance(retry, ModelRetry)
    assert retry.__cause__ is ERROR


def test_a_tools_own_timeout_keeps_its_words() -> None:
    """With ``timeout=`` pydantic-ai takes any TimeoutError for its own."""
    agent = Agent("test")

    @agent.tool_plain(timeout=60)
    async def slow(data: str) -> str:
        raise TimeoutError("the database is busy")

    assert hear(agent, "slow") == ["TimeoutError: the database is busy"]
