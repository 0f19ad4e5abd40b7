"""OpenAI Agents SDK: custom tools, which take text instead of JSON arguments."""

from __future__ import annotations

import asyncio
import copy
import dataclasses
import pickle
from typing import Any

import pytest
from agents import Agent, CustomTool, RunHooks, Runner, ToolOutputText, Usage
from agents.items import ModelResponse
from openai.types.responses import ResponseCustomToolCall
from tests.adapters.test_openai_agents import QUIET, Scripted, answers

from failsoft import Runtime, partial
from failsoft.adapters.openai_agents import guard_agent


class Writes(Scripted):
    """Makes these calls of custom tools, one per step: (tool, text)."""

    def __init__(self, *calls: tuple[str, str]) -> None:
        super().__init__(*[[call] for call in calls])

    async def get_response(self, system_instructions: Any, *_: Any, tools: Any = (), **options: Any) -> Any:
        if self.played >= len(self.steps):
            return await super().get_response(system_instructions, tools=tools)
        self.offered.append([tool.name for tool in tools])
        number, self.played = self.played, self.played + 1
        ((name, text),) = self.steps[number]
        call = ResponseCustomToolCall(type="custom_tool_call", name=name, call_id=f"c{number}-0", input=text)
        return ModelResponse(output=[call], usage=Usage(), response_id=None)


def custom(invoke: Any, name: str = "edit", **options: Any) -> CustomTool:
    return CustomTool(name=name, description="Edit a text.", on_invoke_tool=invoke, **options)


def ask(rt: Runtime | None, tool: CustomTool, *texts: str, graceful: bool = True, hooks: Any = None) -> list[Any]:
    calls = [(tool.name, text) for text in texts or ("hello",)]
    agent: Agent[Any] = Agent(name="a", model=Writes(*calls), tools=[tool])
    guarded = agent if rt is None else guard_agent(agent, rt, graceful=graceful)
    return [*answers(asyncio.run(Runner.run(guarded, "go", run_config=QUIET, hooks=hooks))).values()]


def refuse(_: Any, text: str) -> Any:
    raise TimeoutError(f"no answer about {text}")


async def arefuse(_: Any, text: str) -> Any:
    raise TimeoutError(f"no answer about {text}")


@pytest.mark.parametrize("invoke", [refuse, arefuse])
def test_a_failure_is_explained_and_recorded(invoke: Any) -> None:
    rt = Runtime()
    (said,) = ask(rt, custom(invoke))
    assert said.startswith(
        "edit failed: DEADLINE_EXCEEDED (tool_transient, 1 attempt). It may already have taken effect"
    )
    assert rt.metrics("edit")["error_count"] == 1


@pytest.mark.parametrize("invoke", [refuse, arefuse])
def test_without_graceful_the_model_reads_what_it_read_before(invoke: Any) -> None:
    assert ask(Runtime(), custom(invoke), graceful=False) == ask(None, custom(invoke)) == ["no answer about hello"]


def test_a_read_is_repeated() -> None:
    tried: list[str] = []

    def look(_: Any, text: str) -> Any:
        tried.append(text)
        if len(tried) == 1:
            raise ConnectionResetError
        return {"found": text}

    rt = Runtime({"tools": {"look": {"read_only": True, "retry": {"initial_delay": "1ms"}}}})
    assert ask(rt, custom(look, "look")) == ["{'found': 'hello'}"]
    assert tried == ["hello", "hello"]


def test_the_third_identical_call_that_failed_is_not_made() -> None:
    tried: list[str] = []

    def fail(_: Any, text: str) -> str:
        tried.append(text)
        raise ValueError("no such line")

    async def run() -> list[Any]:
        agent: Agent[Any] = Agent(name="a", model=Writes(*[("edit", "x")] * 3), tools=[custom(fail)])
        guarded = guard_agent(agent, Runtime(), thread=lambda _: "chat")
        return [*answers(await Runner.run(guarded, "go", run_config=QUIET)).values()]

    assert "It was not run this time" in asyncio.run(run())[2]
    assert tried == ["x", "x"]


def test_approvals_hooks_and_custom_data_get_the_own_tool() -> None:
    seen: list[Any] = []

    class Hooks(RunHooks[Any]):
        async def on_tool_start(self, _: Any, __: Any, tool: Any) -> None:
            seen.append(tool)

    tool = custom(
        lambda _, text: text.upper(), needs_approval=True, on_approval=lambda *_: {"approve": True},
        custom_data_extractor=lambda context: seen.append(context.tool),
    )  # fmt: skip
    assert ask(Runtime(), tool, hooks=Hooks()) == ["HELLO"]
    assert [each is tool for each in seen] == [True, True]
    tool.on_approval = lambda *_: {"approve": False, "reason": "no"}
    assert ask(Runtime(), tool) == ["no"]


def echo(_: Any, text: str) -> str:
    return text


def test_it_shares_attributes_and_can_be_copied() -> None:
    tool = custom(echo)
    agent = guard_agent(Agent[Any](name="a", tools=[tool]), Runtime())
    guarded: Any = agent.tools[0]
    assert guarded == tool
    assert isinstance(guarded, CustomTool)
    assert guarded.on_invoke_tool is not echo
    tool.needs_approval = True
    assert guarded.needs_approval is True
    for made in (
        copy.copy(guarded),
        copy.deepcopy(guarded),
        pickle.loads(pickle.dumps(guarded)),
        dataclasses.replace(guarded),
    ):
        assert made == tool
        assert vars(made)["on_invoke_tool"] is echo
        assert made.on_invoke_tool is not echo


def test_a_function_that_goes_through_a_runtime_itself_counts_once() -> None:
    rt = Runtime()

    @rt.tool(read_only=True, retry={"max_attempts": 1})
    async def edit(context: Any, text: str) -> str:
        raise ValueError("no")

    (said,) = ask(rt, custom(edit))
    assert rt.metrics("edit")["error_count"] == 1
    assert said.startswith("edit failed: INVALID_ARGUMENT (")
    assert ask(rt, custom(edit), graceful=False) == ["edit: no"]


def test_a_function_that_goes_through_a_runtime_itself_has_the_models_call_id_and_the_runs_turn() -> None:
    rt = Runtime()

    @rt.tool
    async def edit(context: Any, text: str) -> str:
        raise ConnectionResetError

    ask(rt, custom(edit))
    (failed,) = [event for event in rt.events() if event.event_type == "CallFailed"]
    (started,) = [event for event in rt.events() if event.event_type == "TurnStarted"]
    assert (failed.call_id, failed.turn_id) == ("c0-0", started.turn_id)
    assert failed.fields["effect"] == "unknown"


@pytest.mark.parametrize("value", [{"a": 1}, ToolOutputText(text="a"), "a"])
def test_what_a_partial_value_lacks_follows_the_text_that_the_sdk_would_show(value: Any) -> None:
    (bare,) = ask(None, custom(lambda *_: value))
    (told,) = ask(
        Runtime({"tools": {"edit": {"accept_partial": True}}}), custom(lambda *_: partial(value, missing=["b"]))
    )
    assert told == f"{bare}\nedit succeeded in part. Missing, as data: \"['b']\""


def test_a_tool_made_with_a_guarded_tools_function_runs_its_calls_once() -> None:
    rt = Runtime()
    first: Any = guard_agent(Agent[Any](name="a", tools=[custom(arefuse)]), rt).tools[0]
    ask(rt, custom(first.on_invoke_tool))
    assert rt.metrics("edit")["error_count"] == 1


def test_the_function_of_a_guarded_tool_is_one_hashable_object() -> None:
    guarded: Any = guard_agent(Agent[Any](name="a", tools=[custom(echo)]), Runtime()).tools[0]
    assert {guarded.on_invoke_tool} == {guarded.on_invoke_tool}


def test_an_agent_that_breaks_off_inside_is_not_run_again() -> None:
    runs: list[int] = []

    class Broken(Scripted):
        async def get_response(self, *_: Any, **__: Any) -> Any:
            runs.append(1)
            raise ConnectionRefusedError

    async def ask_agent(_: Any, text: str) -> Any:
        return (await Runner.run(Agent(name="inner", model=Broken()), text, run_config=QUIET)).final_output

    ask(Runtime(), custom(ask_agent))
    assert len(runs) == 1
