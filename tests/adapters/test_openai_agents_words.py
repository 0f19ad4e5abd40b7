"""OpenAI Agents SDK: the user's settings of tools, errors and agents still apply under the guard."""

from __future__ import annotations

import asyncio
import copy
import dataclasses
import gc
import pickle
import subprocess
import sys
from pathlib import Path
from typing import Any
from unittest.mock import AsyncMock

import pytest
from agents import (
    Agent,
    AgentHooks,
    FunctionTool,
    RunConfig,
    RunHooks,
    Runner,
    ToolsToFinalOutputResult,
    WebSearchTool,
    function_tool,
)
from agents import tool as sdk_tool
from agents.exceptions import ModelBehaviorError, ToolTimeoutError, UserError
from agents.mcp import MCPServer
from agents.run import AgentRunner, get_default_agent_runner, set_default_agent_runner
from agents.tool import default_tool_error_function
from agents.tool_context import ToolContext
from tests.adapters.test_openai_agents import QUIET, Scripted, Server, answers, ask, text

from failsoft import CallFailed, Runtime
from failsoft.adapters.openai_agents import guard_agent, private
from failsoft.analysis.why import explain_turn
from failsoft.errors import FailsoftError

QUICK = {"max_attempts": 3, "initial_delay": "1ms", "max_delay": "2ms"}


def payer(paid: list[str], name: str = "pay", says: str = "paid", **options: Any) -> FunctionTool:
    async def pay() -> str:
        """Pay."""
        paid.append(says)
        return says

    return function_tool(pay, name_override=name, **options)


def guarded(tools: list[Any], *steps: Any, rt: Runtime | None = None, **options: Any) -> Agent[Any]:
    guard = {name: options.pop(name) for name in ("graceful", "thread") if name in options}
    model = options.pop("model", None) or Scripted(*steps)
    return guard_agent(Agent(name="agent", model=model, tools=tools, **options), rt or Runtime(), **guard)


def run(agent: Agent[Any], **options: Any) -> Any:
    return asyncio.run(Runner.run(agent, "go", run_config=options.pop("config", QUIET), **options))


# --- T44: tools are the user's own ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("when", ["before", "between runs", "in the run"])
def test_a_changed_needs_approval_is_asked(when: str) -> None:
    paid: list[str] = []
    pay = payer(paid)

    class Changes(RunHooks[Any]):
        async def on_llm_end(self, *_: Any) -> None:
            pay.needs_approval = True

    agent = guarded([pay], [("pay", {})], [("pay", {})])
    if when == "between runs":
        run(agent)
        assert paid == ["paid", "paid"]
        agent.model.played, paid[:] = 0, []  # type: ignore[union-attr]
    if when != "in the run":
        pay.needs_approval = True
    result = run(agent, hooks=Changes() if when == "in the run" else None)
    assert (len(result.interruptions), paid) == (1, [])


@pytest.mark.parametrize("how", ["the tool", "the guarded tool", "a function", "its list"])
def test_a_tool_that_is_disabled_meanwhile_does_not_run(how: str) -> None:
    paid: list[str] = []
    enabled = [True]
    pay = payer(paid, is_enabled=(lambda *_: enabled[0]) if how == "a function" else True)
    agent = guarded([pay], [("pay", {})])

    class Disables(RunHooks[Any]):
        async def on_llm_end(self, *_: Any) -> None:
            if how == "the tool":
                pay.is_enabled = False
            elif how == "the guarded tool":
                agent.tools[0].is_enabled = False  # type: ignore[union-attr]
            elif how == "a function":
                enabled[0] = False
            else:
                agent.tools = [payer([], "other", is_enabled=False)]

    if how == "its list":  # the SDK itself runs it then: it was offered
        run(agent, hooks=Disables())
        assert paid == ["paid"]
        return
    with pytest.raises(ModelBehaviorError, match="currently disabled"):
        run(agent, hooks=Disables())
    assert paid == []


def test_a_disabled_tool_replaces_no_other() -> None:
    paid: list[str] = []

    @function_tool
    async def lookup() -> str:
        """Look something up."""
        spare.is_enabled = False
        raise ConnectionRefusedError("refused")

    spare = payer(paid, "spare")
    rt = Runtime({"tools": {"lookup": {"fallbacks": ["spare"], "retry": {"max_attempts": 1}}}})
    assert ask(rt, [lookup, spare]).startswith("lookup failed")
    assert paid == []


@pytest.mark.parametrize("raises", [False, True])
@pytest.mark.parametrize("awaits", [False, True])
def test_a_tool_that_a_function_disables_meanwhile_replaces_no_other(awaits: bool, raises: bool) -> None:
    paid: list[str] = []
    enabled, agents = [True], list[Any]()

    def is_enabled(_: Any, agent: Any) -> bool:
        agents.append(agent)
        if raises and not enabled[0]:
            enabled[0] = True
            raise LookupError("nobody knows")
        return enabled[0]

    async def is_enabled_later(context: Any, agent: Any) -> bool:
        return is_enabled(context, agent)

    @function_tool
    async def lookup() -> str:
        """Look something up."""
        enabled[0] = lasts[0]
        raise ConnectionRefusedError("refused")

    spare = payer(paid, "spare", is_enabled=is_enabled_later if awaits else is_enabled)
    rt = Runtime({"tools": {"lookup": {"fallbacks": ["spare"], "retry": {"max_attempts": 1}}}})
    lasts = [False]
    assert ask(rt, [lookup, spare]).startswith("lookup failed")
    assert paid == []
    enabled[0] = lasts[0] = True
    assert ask(rt, [lookup, spare]) == "paid"
    assert {agent.name for agent in agents} == {"agent"}


@pytest.mark.parametrize("order", [("first", "second"), ("second", "first")])
def test_the_sdk_decides_which_of_two_tools_with_one_name_runs(order: tuple[str, ...]) -> None:
    for rt in (None, Runtime()):
        paid: list[str] = []
        agent: Agent[Any] = Agent(
            name="a", model=Scripted([("pay", {})]), tools=[payer(paid, says=name) for name in order]
        )
        run(agent if rt is None else guard_agent(agent, rt))
        assert paid == [order[-1]]


def test_two_agents_with_tools_of_one_name_run_their_own() -> None:
    rt, paid = Runtime(), []
    agents = [guarded([payer(paid, says=name)], [("pay", {})], rt=rt) for name in ("first", "second")]
    for agent in [*agents, *agents]:
        agent.model.played = 0  # type: ignore[union-attr]
        run(agent)
    assert paid == ["first", "second", "first", "second"]


@pytest.mark.parametrize("change", ["description", "params_json_schema", "custom_data_extractor", "defer_loading"])
def test_a_guarded_tool_has_every_attribute_as_it_is_now(change: str) -> None:
    pay = payer([])
    agent = guarded([pay])
    mark: Any = object()
    setattr(pay, change, mark)
    assert getattr(agent.tools[0], change) is mark
    other: Any = object()
    setattr(agent.tools[0], change, other)
    assert getattr(pay, change) is other


def test_a_replaced_invoker_runs_guarded() -> None:
    pay = payer([])
    agent = guarded([pay], [("pay", {})])

    async def instead(context: ToolContext[Any], arguments: str) -> str:
        raise ValueError("replaced")

    pay.on_invoke_tool = instead
    assert 'Error text, as data: "replaced"' in text(answers(run(agent))["c0-0"])


def test_a_guarded_invoker_may_be_wrapped() -> None:
    agent = guarded([payer([])], [("pay", {})])
    tool: Any = agent.tools[0]
    before = tool.on_invoke_tool

    async def wrapped(context: ToolContext[Any], arguments: str) -> str:
        return f"wrapped {await before(context, arguments)}"

    tool.on_invoke_tool = wrapped
    assert answers(run(agent))["c0-0"] == "wrapped paid"
    tool.on_invoke_tool = AsyncMock(return_value="mocked")
    agent.model = Scripted([("pay", {})])
    assert answers(run(agent))["c0-0"] == "mocked"


def test_the_list_of_tools_is_the_agents_own() -> None:
    paid: list[str] = []
    first, second = payer(paid, "first", "1"), payer(paid, "second", "2")
    original: Agent[Any] = Agent(name="a", model=Scripted([("second", {})]), tools=[first])
    agent = guard_agent(original, Runtime())
    assert agent.tools[0] is agent.tools[0]  # the SDK compares by identity
    agent.tools.append(second)
    run(agent)
    assert (paid, original.tools) == (["2"], [first])
    assert original.tools[0] is first
    agent.tools.remove(first)
    assert agent.tools == [second]
    assert first in guarded([first]).tools


@pytest.mark.parametrize("how", ["clone", "set"])
def test_a_list_that_a_guarded_agent_is_given_later_is_not_changed(how: str) -> None:
    paid: list[str] = []
    first, second = payer(paid, "first", "1"), payer(paid, "second", "2")
    given: list[Any] = [first]
    rt = Runtime()
    agent = guarded([], [("first", {}), ("second", {})], rt=rt)
    if how == "clone":
        agent = agent.clone(tools=given)
    else:
        agent.tools = given
    given.append(second)
    run(agent)
    assert given[0] is first  # an agent without a guard may have this list, too
    assert given[1] is second
    assert sorted(paid) == ["1", "2"]
    assert sorted(tool for [turn] in [turns(rt)] for tool, _ in rows(turn)) == ["first", "second"]  # both guarded


def test_the_list_of_tools_follows_the_agents_that_was_guarded() -> None:
    first, second, third, fourth = (payer([], name) for name in ("first", "second", "third", "fourth"))
    original: Agent[Any] = Agent(name="a", tools=[first, second])
    agent = guard_agent(original, Runtime())
    guarded_tools = [*agent.tools]
    original.tools.remove(first)
    original.tools.insert(0, third)
    assert agent.tools == [third, second]
    assert agent.tools[1] is guarded_tools[1]  # the SDK knows it by identity
    agent.tools.append(first)
    original.tools.append(fourth)
    original.tools.remove(third)
    assert agent.tools == agent.clone(name="b").tools == [second, first, fourth]
    assert original.tools == [second, fourth]


def test_a_guarded_tool_equals_what_its_original_equals() -> None:
    pay, other, web = payer([]), payer([], "other"), WebSearchTool()
    first, second = guarded([pay, other]).tools
    for mine, bare in ((first, pay), (second, other)):
        for them in (pay, other, copy.copy(pay), web, "pay", None):
            assert (mine == them, them == mine) == (bare == them, them == bare)
    assert first != second
    assert first == guarded([pay]).tools[0]
    assert copy.copy(first) not in (second, other, web, None)


def test_a_guarded_agent_equals_what_its_original_equals() -> None:
    pay = payer([])
    agent, same, other = Agent("A", tools=[pay]), Agent("A", tools=[pay]), Agent("B", tools=[pay])
    mine = guard_agent(agent, Runtime())
    for them in (agent, same, other, "A", None):
        assert (mine == them, them == mine) == (agent == them, them == agent)
    assert mine == guard_agent(same, Runtime()) != guard_agent(other, Runtime())
    agent.tools.append(payer([], "other"))
    assert (mine == agent, mine == same) == (True, False)
    with pytest.raises(TypeError, match="unhashable"):
        hash(mine)


def test_guarded_agents_of_a_class_that_compares_by_identity() -> None:
    @dataclasses.dataclass(eq=False)
    class Own(Agent[Any]):
        __hash__ = object.__hash__
        __eq__ = object.__eq__

    agent = Own("A")
    mine = guard_agent(agent, Runtime())
    assert len({mine, agent, mine}) == 2
    assert agent not in (mine, guard_agent(agent, Runtime()))


def test_a_tool_is_found_in_the_list_of_a_guarded_agent() -> None:
    pay, other = payer([]), payer([], "other")
    agent = guarded([pay, other])
    assert [agent.tools.index(pay), agent.tools.index(other)] == [0, 1]
    assert payer([], "third") not in agent.tools
    agent.tools.remove(other)
    assert [tool.name for tool in agent.tools] == ["pay"]


def test_a_tool_with_a_class_of_its_own() -> None:
    @dataclasses.dataclass
    class Special(FunctionTool):
        level: int = 0

        def raise_level(self) -> int:
            self.level += 1
            return self.level

    async def invoke(context: ToolContext[Any], arguments: str) -> Any:
        return f"level {special.level}"

    special = Special("special", "x", {"type": "object", "properties": {}}, invoke)
    agent = guarded([special], [("special", {})])
    tool: Any = agent.tools[0]
    assert isinstance(tool, Special)
    assert (tool.raise_level(), special.level) == (1, 1)
    assert answers(run(agent))["c0-0"] == "level 1"


def test_the_function_of_a_tool_is_found() -> None:
    @function_tool
    def pay() -> str:
        """Pay."""
        return "paid"

    assert guarded([pay]).tools[0].__wrapped__ is pay.__wrapped__  # type: ignore[union-attr]


# --- the user's own tools, by identity ---------------------------------------------------------------------------------------


class Seen:
    """Hooks that record the tools they are called with."""

    def __init__(self) -> None:
        self.tools: list[Any] = []

    async def on_tool_start(self, context: Any, agent: Any, tool: Any) -> None:
        self.tools.append(tool)

    async def on_tool_end(self, context: Any, agent: Any, tool: Any, result: Any) -> None:
        self.tools.append(tool)


class RunSees(Seen, RunHooks[Any]):
    pass


class AgentSees(Seen, AgentHooks[Any]):
    pass


async def streamed(agent: Agent[Any], *, config: RunConfig = QUIET, **options: Any) -> Any:
    result = Runner.run_streamed(agent, "go", run_config=config, **options)
    async for _ in result.stream_events():
        pass
    return result


@pytest.mark.parametrize("streams", [False, True])
@pytest.mark.parametrize("whose", ["the run's", "the agent's", "the agent's, set in the run", "set by hand"])
def test_hooks_get_the_users_own_tool(whose: str, streams: bool) -> None:
    pay = payer([])
    of_run, of_agent = RunSees(), AgentSees()
    hooks: Any = of_run if whose in ("the run's", "set by hand") else of_agent
    agent = guarded([pay], [("pay", {})])
    if whose == "the agent's":
        agent.hooks = of_agent
    elif whose == "the agent's, set in the run":

        class Sets(RunHooks[Any]):
            async def on_agent_start(self, *_: Any) -> None:
                agent.hooks = of_agent

        of_run = Sets()  # type: ignore[assignment]
    elif whose == "set by hand":
        of_run.on_tool_start = AsyncMock()  # type: ignore[method-assign]
    asyncio.run(streamed(agent, hooks=of_run)) if streams else run(agent, hooks=of_run)
    told = [*hooks.tools]
    if whose == "set by hand":
        told.append(of_run.on_tool_start.await_args.args[2])  # type: ignore[attr-defined]
    assert len(told) == 2
    assert all(tool is pay for tool in told)


class Slots(RunHooks[Any]):
    __slots__ = ("tools",)
    __init__, on_tool_start = Seen.__init__, Seen.on_tool_start  # type: ignore[assignment]


class Final(RunSees):
    def __init_subclass__(cls) -> None:
        raise TypeError("no subclasses")


@pytest.mark.parametrize("kind", [Slots, Final])
def test_hooks_of_any_class_get_the_users_own_tool(kind: Any) -> None:
    pay, hooks = payer([]), kind()
    run(guarded([pay], [("pay", {})]), hooks=hooks)
    assert hooks.tools[0] is pay


def test_the_hooks_of_an_agent_stay_the_users_own() -> None:
    hooks = AgentSees()
    seen: list[Any] = []

    @function_tool
    async def look() -> str:
        """Look."""
        seen.extend([isinstance(agent.hooks, AgentSees), agent.clone()])
        return "seen"

    agent = guarded([look], [("look", {})], hooks=hooks)
    run(agent)
    assert agent.hooks is hooks
    assert seen[0]
    assert seen[1].hooks is hooks


def test_a_function_that_decides_on_results_gets_the_users_own_tools() -> None:
    pay = payer([])
    seen: list[Any] = []

    def decide(context: Any, results: list[Any]) -> ToolsToFinalOutputResult:
        seen.extend(result.tool for result in results)
        return ToolsToFinalOutputResult(is_final_output=True, final_output=results[0].output)

    agent = guarded([pay], [("pay", {})], tool_use_behavior=decide)
    assert run(agent).final_output == "paid"
    assert [tool is pay for tool in seen] == [True]
    assert agent.tool_use_behavior is decide


@pytest.mark.parametrize("awaits", [False, True])
def test_an_extractor_of_custom_data_gets_the_users_own_tool(awaits: bool) -> None:
    told: list[Any] = []

    def extract(context: Any) -> dict[str, Any]:
        told.append(context.tool)
        return {"said": context.output}

    async def aextract(context: Any) -> dict[str, Any]:
        return extract(context)

    pay = payer([])
    agent = guarded([pay], [("pay", {})])
    pay.custom_data_extractor = aextract if awaits else extract
    assert agent.tools[0].custom_data_extractor is pay.custom_data_extractor  # type: ignore[union-attr]
    result = run(agent)
    assert [item.custom_data for item in result.new_items if item.type == "tool_call_output_item"] == [{"said": "paid"}]
    assert len(told) == 1
    assert told[0] is pay


def test_hooks_of_bare_agents_are_not_touched() -> None:
    pay, hooks = payer([]), RunSees()
    guarded([pay])
    run(Agent(name="bare", model=Scripted([("pay", {})]), tools=[pay]), hooks=hooks)
    assert all(tool is pay for tool in hooks.tools)
    with pytest.raises(TypeError, match="Run hooks must be instances of RunHooks"):
        run(Agent(name="bare", model=Scripted()), hooks=AgentSees())


# --- what the user has said about failures --------------------------------------------------------------------------------------


def broken(error: Exception, **options: Any) -> FunctionTool:
    async def lookup() -> str:
        """Look something up."""
        raise error

    return function_tool(lookup, **options)


@pytest.mark.parametrize("awaits", [True, False])
def test_a_failure_function_of_the_users_has_the_last_word(awaits: bool) -> None:
    seen: list[Exception] = []

    def say(_: Any, error: Exception) -> str:
        seen.append(error)
        return f"sorry: {error}"

    async def say_later(context: Any, error: Exception) -> str:
        return say(context, error)

    error = ConnectionError("503 Service Unavailable")
    rt = Runtime({"tools": {"lookup": {"read_only": True, "retry": QUICK}}})
    told = ask(rt, broken(error, failure_error_function=say_later if awaits else say))
    assert told == "sorry: 503 Service Unavailable"
    assert seen == [error]
    assert rt.metrics("lookup")["retry_count"] == 2  # failsoft has done its part before


def test_an_explicitly_set_default_failure_function_is_used() -> None:
    tool = broken(ValueError("secret"), failure_error_function=default_tool_error_function)
    assert ask(Runtime(), tool) == "An error occurred while running the tool. Please try again."


def test_no_failure_function_raises_the_tools_own_error() -> None:
    error = ValueError("no such city")
    with pytest.raises(UserError, match="Error running tool lookup: no such city") as raised:
        ask(Runtime(), broken(error, failure_error_function=None))
    assert raised.value.__cause__ is error


def test_the_failure_function_receives_a_refusal_as_call_failed() -> None:
    seen: list[Exception] = []
    tool = broken(ConnectionError("503"), failure_error_function=lambda _, error: seen.append(error) or "sorry")  # type: ignore[func-returns-value]
    rt = Runtime({"tools": {"lookup": {"retry": {"max_attempts": 1}, "breaker": {"failure_threshold": 1}}}})
    assert [ask(rt, tool) for _ in range(2)] == ["sorry", "sorry"]
    assert [type(error) for error in seen] == [ConnectionError, CallFailed]


@pytest.mark.parametrize("where", ["agent", "server"])
def test_failure_functions_for_mcp_tools(where: str) -> None:
    def say(_: Any, error: Exception) -> str:
        return f"sorry: {error}"

    server = Server(ConnectionRefusedError("refused"))
    options: dict[str, Any] = {"mcp_servers": [server]}
    if where == "agent":
        options["mcp_config"] = {"failure_error_function": say}
    else:
        server._failure_error_function = say
    agent = guarded([], [("search_docs", {"query": "x"})], **options)
    assert text(answers(run(agent))["c0-0"]).startswith("sorry: ")


def test_failures_of_mcp_tools_are_phrased_by_failsoft_by_default() -> None:
    agent = guarded([], [("search_docs", {"query": "x"})], mcp_servers=[Server(ConnectionRefusedError("refused"))])
    assert text(answers(run(agent))["c0-0"]).startswith("search_docs failed")


def test_the_runs_error_formatter_has_the_last_word() -> None:
    tool = broken(ValueError("no such city"))
    config = RunConfig(tracing_disabled=True, tool_error_formatter=lambda args: f"formatted {args.error}")
    assert ask(Runtime(), tool, config=config) == "formatted no such city"
    for returns in (None, 3, ValueError("the formatter broke")):

        async def formatter(_: Any, returns: Any = returns) -> Any:
            if isinstance(returns, Exception):
                raise returns
            return returns

        config = RunConfig(tracing_disabled=True, tool_error_formatter=formatter)
        said = ask(Runtime(), tool, config=config)
        assert said.startswith("lookup failed: ")
        assert "correct them, or ask the user." in said
        assert ("no such city" in said) is (returns is None)  # a formatter that breaks may be there to hide it


def hanging(**options: Any) -> FunctionTool:
    async def hang() -> str:
        """Hang."""
        await asyncio.sleep(20)
        return "late"

    return function_tool(hang, timeout=0.02, **options)


def test_a_timeout_is_raised_if_the_tool_asks_for_it() -> None:
    with pytest.raises(ToolTimeoutError) as raised:
        ask(Runtime(), hanging(timeout_behavior="raise_exception"))
    assert (raised.value.tool_name, raised.value.timeout_seconds) == ("hang", 0.02)
    assert raised.value.__cause__ is not None


def test_a_guarded_tool_tells_its_timeout_and_keeps_it_in_a_replaced_copy() -> None:
    (tool,) = guarded([hanging()]).tools
    assert isinstance(tool, FunctionTool)
    assert tool.timeout_seconds == 0.02
    renamed = dataclasses.replace(tool, name="wait")
    assert (renamed.name, renamed.timeout_seconds) == ("wait", 0.02)
    assert "Tool timeout after 20ms" in ask(Runtime(), renamed)


@pytest.mark.parametrize("awaits", [True, False])
def test_a_timeout_function_of_the_users_has_the_last_word(awaits: bool) -> None:
    async def later(_: Any, error: Exception) -> str:
        return f"slow: {error}"

    tool = hanging(timeout_error_function=later if awaits else lambda _, error: f"slow: {error}")
    assert ask(Runtime(), tool) == "slow: Tool 'hang' timed out after 0.02 seconds."


def test_a_failure_function_is_not_asked_about_the_sdks_timeouts() -> None:
    assert ask(Runtime(), hanging(failure_error_function=lambda *_: "sorry")).startswith("hang failed")
    limited = Runtime({"tools": {"hang": {"timeout": "20ms"}}})
    tool = hanging(failure_error_function=lambda *_: "sorry")
    tool.timeout_seconds = None
    assert ask(limited, tool) == "sorry"  # the limit is not one of the SDK's


def test_a_timeout_that_is_changed_later_holds() -> None:
    tool = hanging()
    agent = guarded([tool], [("hang", {})], [("hang", {})])
    tool.timeout_seconds = 0.01
    assert "Tool timeout after 10ms" in text(answers(run(agent))["c0-0"])
    tool.timeout_seconds = 0.03
    agent.model.played = 0  # type: ignore[union-attr]
    assert "Tool timeout after 30ms" in text(answers(run(agent))["c0-0"])


def test_failures_can_be_raised() -> None:
    error = ValueError("no such city")
    with pytest.raises(UserError) as raised:
        run(guarded([broken(error)], [("lookup", {})], graceful=False))
    assert raised.value.__cause__ is error
    tool = broken(error, failure_error_function=lambda *_: "sorry")
    assert text(answers(run(guarded([tool], [("lookup", {})], graceful=False)))["c0-0"]) == "sorry"
    with pytest.raises(FailsoftError, match="graceful='no': expected True or False"):
        guarded([], graceful="no")


# --- copies ----------------------------------------------------------------------------------------------------------------------


async def invoke_by_hand(context: ToolContext[Any], arguments: str) -> str:
    raise ValueError("no such city")


def picklable() -> Agent[Any]:
    schema = {"type": "object", "properties": {}, "additionalProperties": False}
    tool = FunctionTool("lookup", "Look something up.", schema, invoke_by_hand)
    return Agent(name="a", model=Scripted([("lookup", {})]), tools=[tool], mcp_servers=[PlainServer("x")])


class PlainServer(Server):
    """A server that can be pickled."""

    async def list_tools(self, *_: Any, **__: Any) -> Any:
        return []


@pytest.mark.parametrize("duplicate", [copy.copy, copy.deepcopy, lambda it: pickle.loads(pickle.dumps(it))])
def test_guarded_agents_can_be_copied_and_pickled(duplicate: Any) -> None:
    rt = Runtime()
    made = duplicate(guard_agent(duplicate(picklable()), rt))
    assert isinstance(made, Agent)
    assert text(answers(run(made))["c0-0"]).startswith("lookup failed")
    assert rt.metrics("lookup")["error_count"] == 1  # it is the same runtime


@pytest.mark.parametrize("duplicate", [copy.copy, copy.deepcopy, lambda it: pickle.loads(pickle.dumps(it))])
def test_guarded_tools_and_servers_can_be_copied_and_pickled(duplicate: Any) -> None:
    agent = guard_agent(picklable(), Runtime())
    tool = duplicate(agent.tools[0])
    tool.description = "changed"
    assert (agent.tools[0].description, tool.name) == ("Look something up.", "lookup")  # type: ignore[union-attr]
    agent.tools[:] = [tool]
    assert text(answers(run(agent))["c0-0"]).startswith("lookup failed")
    [server] = agent.mcp_servers
    assert isinstance(server, MCPServer)
    assert isinstance(duplicate(server), MCPServer)


def test_a_copied_function_tool_fails_as_its_own_settings_say() -> None:
    agent = guarded([broken(ValueError("x"))], [("lookup", {})])
    tool = copy.copy(agent.tools[0])
    sdk_tool.set_function_tool_failure_error_function(tool, lambda *_: "sorry")  # type: ignore[arg-type]
    agent.tools = [tool]
    assert answers(run(agent))["c0-0"] == "sorry"
    renamed = dataclasses.replace(tool, name="other")  # type: ignore[type-var, misc]
    agent.tools, agent.model = [renamed], Scripted([("other", {})])
    assert answers(run(agent))["c0-0"] == "sorry"


def test_unpickling_without_the_runtime_is_an_error() -> None:
    kept = pickle.dumps(guard_agent(Agent[Any](name="a"), Runtime()))
    gc.collect()
    with pytest.raises(FailsoftError, match="guard the agent again"):
        pickle.loads(kept)


def test_the_list_of_servers_is_the_users_own() -> None:
    servers: list[Any] = []
    agent = guarded([], [("search_docs", {"query": "x"})], mcp_servers=servers)
    servers.append(Server("found it"))  # as a manager of servers does when one comes back
    assert text(answers(run(agent))["c0-0"]) == "found it"
    assert agent.mcp_servers is servers


# --- turns -----------------------------------------------------------------------------------------------------------------------


def turns(rt: Runtime) -> list[Any]:
    ids = dict.fromkeys(event.turn_id for event in rt.events())
    return [
        explain_turn(str(id), [event.to_dict() for event in rt.events() if event.turn_id == id]) for id in ids if id
    ]


def rows(turn: Any) -> list[tuple[str, str | None]]:
    return [(row.tool, row.parent) for row in turn.waterfall.rows]


@pytest.mark.parametrize("how", ["run", "run_sync", "streamed"])
def test_a_run_is_a_turn(how: str) -> None:
    rt = Runtime()

    model = Scripted([("pay", {}), ("lookup", {})], [("pay", {})])
    agent = guarded([payer([]), broken(ValueError("x"))], model=model, rt=rt)
    config = RunConfig(tracing_disabled=True, group_id="chat-1")
    if how == "run":
        result: Any = run(agent, config=config)
    elif how == "run_sync":
        loop = asyncio.new_event_loop()
        asyncio.set_event_loop(loop)
        result = Runner.run_sync(agent, "go", run_config=config)
        asyncio.set_event_loop(None)
        loop.close()
    else:
        result = asyncio.run(streamed(agent, config=config))
    assert result.final_output == "done"
    [turn] = turns(rt)
    assert turn.ended
    assert sorted(rows(turn)) == [("lookup", None), ("pay", None), ("pay", None)]
    types = [event.event_type for event in rt.events()]
    assert (types.count("TurnStarted"), types.count("TurnEnded")) == (1, 1)


def test_a_run_that_breaks_off_is_a_turn_that_has_ended() -> None:
    rt = Runtime()
    with pytest.raises(UserError):
        run(guarded([broken(ValueError("x"), failure_error_function=None)], [("lookup", {})], rt=rt))
    [turn] = turns(rt)
    assert (turn.ended, rows(turn)) == (True, [("lookup", None)])


def test_runs_side_by_side_are_turns_of_their_own() -> None:
    rt = Runtime()

    async def go() -> None:
        agents = [guarded([payer([])], [("pay", {})], [("pay", {})], rt=rt) for _ in range(5)]
        await asyncio.gather(*(Runner.run(agent, "go", run_config=QUIET) for agent in agents))

    asyncio.run(go())
    assert [(turn.ended, len(turn.waterfall.rows)) for turn in turns(rt)] == [(True, 2)] * 5


def test_an_agent_inside_a_tool_is_part_of_the_call() -> None:
    rt = Runtime()
    inner = guarded([payer([])], [("pay", {})], rt=rt)
    run(guarded([inner.as_tool("clerk", "Pays.")], [("clerk", {"input": "x"})], rt=rt))
    [turn] = turns(rt)
    assert rows(turn) == [("clerk", None), ("pay", "c0-0")]


def test_agents_that_hand_off_share_the_turn() -> None:
    rt = Runtime()
    model = Scripted([], [], [("pay", {})])
    model.played = 2  # call ids are counted
    second = guard_agent(Agent[Any](name="second", model=model, tools=[payer([])]), rt)
    first = guarded(
        [broken(ValueError("x"))], [("lookup", {})], [("transfer_to_second", {})], rt=rt, handoffs=[second]
    )  # fmt: skip
    run(first)
    [turn] = turns(rt)
    assert rows(turn) == [("lookup", None), ("pay", None)]


def test_calls_made_inside_a_turn_belong_to_it() -> None:
    rt = Runtime()

    async def go() -> None:
        async with rt.turn(id="mine"):
            await Runner.run(guarded([payer([])], [("pay", {})], rt=rt), "go", run_config=QUIET)

    asyncio.run(go())
    assert [turn.turn_id for turn in turns(rt)] == ["mine"]


# --- names that are not public -----------------------------------------------------------------------------------------------------


def test_the_private_names_we_use_exist() -> None:
    """A failure here means that a new version has changed them: see private.py."""
    pay = payer([])
    assert private.Invoker is sdk_tool._FailureHandlingFunctionToolInvoker
    assert private.is_made_by_sdk(pay.on_invoke_tool)
    assert private.function_of(pay.on_invoke_tool) is pay.__wrapped__
    assert callable(pay.on_invoke_tool._on_handled_error)  # type: ignore[attr-defined]
    assert sdk_tool._DEFAULT_FAILURE_HANDLED_ATTR == private._HANDLED
    assert pay._use_default_failure_error_function is True
    context = ToolContext(None, tool_name="pay", tool_call_id="c", tool_arguments="{}")
    assert context._function_tool_arguments is None
    assert isinstance(get_default_agent_runner(), AgentRunner)


def test_another_runner_runs_guarded_agents_too() -> None:
    rt = Runtime()
    agent = guarded([payer([])], [("pay", {})], rt=rt)
    before = get_default_agent_runner()
    set_default_agent_runner(None)
    try:
        run(agent)
    finally:
        set_default_agent_runner(before)
    [turn] = turns(rt)
    assert rows(turn) == [("pay", None)]


def test_without_the_private_names_tools_run_all_the_same() -> None:
    program = """
import sys, types, importlib.util
name = "failsoft.adapters.openai_agents.private"
path = importlib.util.find_spec("failsoft").submodule_search_locations[0] + "/adapters/openai_agents/private.py"
source = open(path).read()
for gone in ("_FailureHandlingFunctionToolInvoker", "_on_handled_error", "get_default_agent_runner"):
    assert gone in source
    source = source.replace(gone, gone + "_gone")
sys.modules[name] = module = types.ModuleType(name)
exec(compile(source, path, "exec"), vars(module))
from tests.adapters.test_openai_agents_words import *
assert private is module and private.Invoker is object
assert ask(Runtime(), payer([])) == "paid"
rt = Runtime()
assert ask(rt, broken(ValueError("x"))).startswith("lookup failed")
assert ask(Runtime(), broken(ValueError("x"), failure_error_function=lambda *_: "sorry")) == "sorry"
assert [turn.waterfall.rows[0].tool for turn in turns(rt)] == ["lookup"]
"""
    ended = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=False, timeout=60,
        cwd=Path(__file__).parents[2],
    )  # fmt: skip
    assert ended.returncode == 0, ended.stderr
