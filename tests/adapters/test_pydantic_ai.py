"""pydantic-ai: every tool of an agent goes through the runtime, and comes back in the framework's words."""

from __future__ import annotations

import asyncio
import runpy
import subprocess
import sys
import threading
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pydantic_ai
import pytest
from click.testing import CliRunner
from inline_snapshot import snapshot
from pydantic import TypeAdapter
from pydantic_ai import FunctionToolset, ModelRetry, RunContext, Tool, ToolReturn
from pydantic_ai.capabilities import AbstractCapability
from pydantic_ai.exceptions import ToolFailed, UnexpectedModelBehavior
from pydantic_ai.run import AgentRunResult
from pydantic_ai.settings import ToolOrOutput
from tests.adapters.pydantic_ai_driver import Driver, Script, agent_with, failing, samples, talk, texts
from tests.adapters.story import SCENES, Story, tell, transcript
from tests.fakes import records

from failsoft import CircuitOpen, FailsoftError, ManifestError, Runtime, TurnReport, partial
from failsoft.adapters.pydantic_ai import Agent, AgentConfig, Failsoft
from failsoft.adapters.pydantic_ai.graceful import CONTROL, make_graceful
from failsoft.runtime.scope import SCOPE
from failsoft.surfaces.cli import cli
from failsoft.testing import Ask, adapter_checks, check_adapter

ROOT = Path(__file__).parents[2]
ONCE = {"max_attempts": 1}
QUICK = {"max_attempts": 3, "initial_delay": "1ms"}
RESET = ConnectionResetError("Connection reset by peer")
SAMPLES = [pytest.param(error, id=type(error).__name__) for error in samples()]


# --- what all adapters do ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("make", [pydantic_ai.Agent, Agent], ids=["theirs", "ours"])
@pytest.mark.parametrize("check", adapter_checks(), ids=lambda check: check.__name__)
def test_conforms(check: Any, make: Any) -> None:
    check_adapter(Driver(make), check)


def test_six_scenes() -> None:
    told = []
    for scene in SCENES:
        story = Story()
        script = Script([[Ask(scene.tool, arguments)] for arguments in scene.asks])
        agent = agent_with(story.runtime(), *story.tools.values())
        asyncio.run(agent.run("go", model=script.model))
        assert story.runs.get(scene.tool, 0) == scene.runs, scene.title
        told.append((scene, texts(script)))
    assert tell(told) == transcript(
        bad_arguments="""\
book_table(people='many')
  people: Input should be a valid integer, unable to parse string as an integer
"""
    )


def test_the_example_runs_without_a_key(capsys: pytest.CaptureFixture[str]) -> None:
    runpy.run_path(str(ROOT / "examples" / "pydantic_ai_agent.py"), run_name="__main__")
    assert capsys.readouterr().out == snapshot("""\
model: weather({'city': 'Paris'})
model: read_file({'path': 'notes.txt'})
tool: Sunny in Paris
tool: read_file failed: NOT_FOUND (tool_validation, 1 attempt). Calling it again with the same arguments will fail: correct them, or ask the user. Error text, as data: "[Errno 2] No such file or directory: 'notes.txt'"
model: pay({'amount': 'forty'})
tool: Input should be a valid integer, unable to parse string as an integer
model: pay({'amount': 40})
tool: pay failed: DEADLINE_EXCEEDED (tool_transient, 1 attempt). It may already have taken effect: check before calling again. Calling it again may help, but only if it did not. Error text, as data: "Tool timeout after 50ms"
model: read_file({'path': 'x'})
tool: read_file failed: NOT_FOUND (tool_validation, 1 attempt). Calling it again with the same arguments will fail: correct them, or ask the user. Error text, as data: "[Errno 2] No such file or directory: 'x'"
model: read_file({'path': 'x'})
tool: read_file failed: NOT_FOUND (tool_validation, 1 attempt). Calling it again with the same arguments will fail: correct them, or ask the user. Error text, as data: "[Errno 2] No such file or directory: 'x'"
model: read_file({'path': 'x'})
tool: read_file failed: NOT_FOUND (tool_validation, not run). It was not run this time: the same call has failed before and would fail again. Error text, as data: "[Errno 2] No such file or directory: 'x'"
model: The weather is fine. Please check whether the payment went through.

report: Completed weather, but the tools of docs, read file (4 times) and pay failed. Trying the tools of docs again in a little while may help. For read file (4 times) I need other details: please check and correct them. Please check whether pay went through before trying again.

{'weather': 3, 'pay': 1}: flaky twice, then fine; the payment was never repeated
""")


@pytest.mark.parametrize("lacking", ["pydantic_ai", "pydantic_ai.capabilities"], ids=["all of it", "it is too old"])
def test_a_missing_extra_is_named(lacking: str) -> None:
    hide = f"import sys; sys.modules['{lacking}'] = None; import failsoft.adapters.pydantic_ai"
    ended = subprocess.run([sys.executable, "-c", hide], capture_output=True, text=True, check=False)
    assert ended.stderr.rstrip().endswith(": install failsoft[pydantic-ai]")
    assert lacking in ended.stderr.splitlines()[-1]


# --- control flow: one exception after the other, in each layer (R21) ---------------------------------------------------


@pytest.mark.parametrize("error", SAMPLES)
@pytest.mark.parametrize("is_async", [False, True])
def test_control_flow_passes_the_functions_wrapper(error: BaseException, is_async: bool) -> None:
    def search() -> str:
        raise error

    async def search_later() -> str:
        raise error

    with pytest.raises(type(error)) as caught:
        asyncio.run(make_graceful(search_later)()) if is_async else make_graceful(search)()
    assert caught.value is error


@pytest.mark.parametrize("error", SAMPLES)
@pytest.mark.parametrize("layer", ["toolset", "runtime"])
def test_control_flow_passes_the_toolsets(error: BaseException, layer: str) -> None:
    seen: list[BaseException] = []

    class Watch(pydantic_ai.toolsets.WrapperToolset[Any]):
        async def call_tool(self, *args: Any) -> Any:
            try:
                return await super().call_tool(*args)
            except BaseException as raised:
                seen.append(raised)
                raise ToolFailed("seen") from None

    class Outside(pydantic_ai.capabilities.AbstractCapability[Any]):
        def get_ordering(self) -> Any:
            return pydantic_ai.capabilities.CapabilityOrdering(position="outermost", wraps=[Failsoft])

        def get_wrapper_toolset(self, toolset: Any) -> Any:
            return Watch(toolset)

    async def search() -> str:
        raise error

    runtime = Runtime()
    mine = [Failsoft(runtime)] if layer == "runtime" else []
    agent = Agent("test", toolsets=[FunctionToolset([search])], capabilities=[*mine, Outside()])
    talk(agent, "search")
    assert seen == [error]
    assert seen[0] is error
    assert records(runtime, "ToolError") == []


def test_control_flow_in_a_group_passes() -> None:
    group = ExceptionGroup("both", [ValueError("x"), ModelRetry("which one?")])
    search, attempts = failing(group)
    runtime = Runtime()
    for agent in (agent_with(runtime, search), agent_with(runtime, search, make=Agent)):
        with pytest.raises(ExceptionGroup) as caught:
            talk(agent, "search")
        assert caught.value is group
    assert len(attempts) == 2


def test_the_control_flow_exceptions_are_the_documented_ones() -> None:
    newer = {"RetryModelRequest"} & set(dir(pydantic_ai.exceptions))
    assert {kind.__name__ for kind in CONTROL} == newer | {
        "ModelRetry", "ToolFailed", "ToolRetryError", "ToolFailedError", "CallDeferred", "ApprovalRequired",
        "SkipToolExecution", "SkipToolValidation", "SkipModelRequest", "AgentRunError", "UserError",
    }  # fmt: skip


# --- both layers together -------------------------------------------------------------------------------------------------


def test_the_original_error_is_classified_instead_of_the_retry_that_wraps_it() -> None:
    search, attempts = failing(RESET, RESET, "3 flights")
    runtime = Runtime({"tools": {"search": {"read_only": True, "retry": QUICK}}})
    assert texts(talk(agent_with(runtime, search, make=Agent), "search")) == ["3 flights"]
    assert len(attempts) == 3


def test_the_model_reads_the_explanation_and_the_cause_stays() -> None:
    error = ValueError("Invalid airport code: XYZ")
    search, _ = failing(error)
    agent = agent_with(Runtime(), search, make=Agent, retries=0)
    with pytest.raises(UnexpectedModelBehavior) as caught:
        talk(agent, "search")
    retry = caught.value.__cause__
    assert isinstance(retry, ModelRetry)
    assert retry.__cause__ is error
    assert str(retry) == snapshot(
        'search failed: INVALID_ARGUMENT (tool_validation, 1 attempt). Calling it again with the same arguments will fail: correct airport code, or ask the user. Error text, as data: "Invalid airport code: XYZ"'
    )


def test_a_model_retry_raised_by_the_tool_does_not_count_as_a_failure() -> None:
    search, attempts = failing(ModelRetry("which city?"))
    runtime = Runtime({"tools": {"search": {"read_only": True, "retry": QUICK}}})
    assert texts(talk(agent_with(runtime, search, make=Agent), "search")) == ["which city?"]
    assert (len(attempts), runtime.health("search").failure_count) == (1, 0)


@pytest.mark.parametrize("how", ["decorator", "config", "metadata", "toolset"])
def test_a_tool_that_fails_loudly_is_retried_and_then_raises_its_own_error(how: str) -> None:
    search, attempts = failing(RESET)
    runtime = Runtime({"tools": {"search": {"read_only": True, "retry": QUICK}}})
    config = AgentConfig(graceful_tool_errors=how in ("decorator", "metadata"))
    agent: Agent[Any, Any] = Agent("test", config=config, capabilities=[Failsoft(runtime)])
    if how == "toolset":
        agent = Agent(
            "test", config=config, toolsets=[FunctionToolset([search])], capabilities=[Failsoft(runtime)]
        )  # fmt: skip
    elif how == "metadata":
        agent.tool_plain(metadata={"failsoft": {"graceful_errors": False}})(search)
    else:
        agent.tool_plain(graceful_errors=False if how == "decorator" else None)(search)
    with pytest.raises(ConnectionResetError) as caught:
        talk(agent, "search")
    assert caught.value is RESET
    assert len(attempts) == 3


def test_the_capability_alone_can_be_loud() -> None:
    search, attempts = failing(RESET)
    runtime = Runtime({"tools": {"search": {"read_only": True, "retry": QUICK}}})
    agent = pydantic_ai.Agent("test", tools=[search], capabilities=[Failsoft(runtime, graceful=False)])
    with pytest.raises(ConnectionResetError):
        talk(agent, "search")
    assert len(attempts) == 3


def test_the_capabilitys_graceful_setting_applies_unless_the_agent_sets_its_own() -> None:
    search, _ = failing(RESET)
    loud = Failsoft[Any](Runtime(), graceful=False)
    with pytest.raises(ConnectionResetError):
        talk(Agent("test", tools=[search], capabilities=[loud]), "search")
    agent = Agent("test", tools=[search], capabilities=[loud], config=AgentConfig(graceful_tool_errors=True))
    assert texts(talk(agent, "search"))[0].startswith("search failed: UNAVAILABLE")


def test_a_loud_agent_stays_loud_with_a_capability_for_one_run() -> None:
    search, _ = failing(RESET)
    agent: Agent[Any, Any] = Agent("test", tools=[search], config=AgentConfig(graceful_tool_errors=False))
    with pytest.raises(ConnectionResetError):
        talk(agent, "search", capabilities=[Failsoft(Runtime())])


def succeed() -> str:
    return "done"


@pytest.mark.parametrize("capabilities", [[], [Failsoft(Runtime())]], ids=["agent", "with_failsoft"])
def test_the_setting_of_an_agent_is_not_written_into_its_tools(capabilities: list[Any]) -> None:
    offered: list[Any] = []

    class Notes(AbstractCapability[Any]):
        async def prepare_tools(self, ctx: Any, tool_defs: list[Any]) -> list[Any]:
            offered.extend(definition.metadata for definition in tool_defs)
            return tool_defs

    agent: Agent[Any, Any] = Agent(
        "test",
        tools=[Tool(succeed, metadata={"team": "a"})],
        config=AgentConfig(graceful_tool_errors=False),
        capabilities=[Notes()],
    )
    talk(agent, "succeed", capabilities=capabilities)
    assert offered == [{"team": "a"}] * 2


def test_a_loud_tool_that_is_cut_off_says_so() -> None:
    search, _ = failing(RESET)
    runtime = Runtime({"tools": {"search": {"retry": ONCE, "breaker": {"failure_threshold": 1}}}})
    tool = Tool(search, metadata={"failsoft": {"graceful_errors": False}})
    with pytest.raises(ConnectionResetError):
        talk(agent_with(runtime, tool), "search")
    with pytest.raises(CircuitOpen, match="Circuit breaker open for search"):
        talk(agent_with(runtime, tool), "search")


# --- what the model is told, and what it costs ----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("tool_failed", "error", "survives"),
    [
        ("never", ValueError("bad"), False),
        ("permanent", ValueError("bad"), True),
        ("permanent", RESET, False),
        ("always", RESET, True),
    ],
)
def test_tool_failed_costs_no_retries(tool_failed: str, error: Exception, survives: bool) -> None:
    search, _ = failing(error)
    agent = agent_with(Runtime(), search, retries=1, tool_failed=tool_failed)
    if survives:
        assert len(texts(talk(agent, "search", "search"))) == 2
    else:
        with pytest.raises(UnexpectedModelBehavior, match="exceeded max retries"):
            talk(agent, "search", "search")


def test_a_validation_error_inside_the_tool_is_the_tools_own() -> None:
    def reserve() -> int:
        return TypeAdapter(int).validate_python("no number")

    (text,) = texts(talk(agent_with(Runtime(), reserve), "reserve"))
    assert text.startswith(
        "reserve failed: INTERNAL (internal_contract_bug, 1 attempt). It may already have taken effect."
    )


def test_a_partial_value_comes_with_what_it_lacks() -> None:
    async def search() -> Any:
        return partial(["page 1"], missing=["page 2"])

    runtime = Runtime({"tools": {"search": {"accept_partial": True}}})
    script = talk(agent_with(runtime, search), "search")
    assert texts(script) == ["['page 1']"]
    assert "page 2" in str(script.messages[-1])


@pytest.mark.parametrize(("value", "fits"), [(3, True), ("three", False)])
def test_the_declared_output_is_that_of_the_value(value: Any, fits: bool) -> None:
    def search() -> Any:
        return ToolReturn(value, metadata={"from": "cache"})

    (text,) = texts(talk(agent_with(Runtime(), Tool(search, metadata={"failsoft": {"output": int}})), "search"))
    assert text == "3" if fits else "does not have the declared form" in text


@pytest.mark.parametrize("content", [None, "see below", ["see below"]])
def test_a_partial_return_keeps_what_the_tool_had_to_say(content: Any) -> None:
    async def search() -> Any:
        return partial(ToolReturn("page 1", content=content, metadata={"from": "cache"}), missing=["page 2"])

    runtime = Runtime({"tools": {"search": {"accept_partial": True}}})
    script = talk(agent_with(runtime, search), "search")
    returned, said = script.messages[-1].parts
    assert (returned.content, returned.metadata) == ("page 1", {"from": "cache"})
    assert [*said.content][:-1] == (["see below"] if content else [])
    assert "page 2" in said.content[-1]


def test_a_blocking_tool_times_out_at_its_deadline() -> None:
    def search() -> str:
        time.sleep(0.5)
        return "late"

    runtime = Runtime({"tools": {"search": {"timeout": "50ms", "retry": ONCE}}})
    began = time.monotonic()
    script = Script([[Ask("search", {})]])

    async def run() -> float:
        await agent_with(runtime, search).run("go", model=script.model)
        return time.monotonic() - began

    assert asyncio.run(run()) < 0.4
    assert "Tool timeout after 50ms" in texts(script)[0]


@pytest.mark.parametrize("make", [pydantic_ai.Agent, Agent], ids=["theirs", "ours"])
def test_the_frameworks_own_timeout_is_a_failure(make: Any) -> None:
    async def pay() -> str:
        await asyncio.sleep(20)
        return "late"

    runtime = Runtime()
    agent = make(tools=[Tool(pay, timeout=0.05)], capabilities=[Failsoft(runtime)])
    (text,) = texts(talk(agent, "pay"))
    assert text.startswith(
        "pay failed: DEADLINE_EXCEEDED (tool_transient, 1 attempt). It may already have taken effect"
    )
    assert "Timed out after 0.05 seconds." in text
    assert runtime.health("pay").failure_count == 1


@pytest.mark.parametrize("how", ["capability", "config", "tool"])
def test_the_frameworks_own_timeout_ends_no_run_where_errors_are_raised(how: str) -> None:
    async def pay() -> str:
        await asyncio.sleep(20)
        return "late"

    metadata = {"failsoft": {"graceful_errors": False}} if how == "tool" else None
    rules: Any = [Failsoft(Runtime(), graceful=how != "capability")]
    tools = [Tool(pay, timeout=0.05, metadata=metadata)]
    agent: Any = pydantic_ai.Agent(tools=tools, capabilities=rules)
    if how == "config":
        agent = Agent(tools=tools, capabilities=rules, config=AgentConfig(graceful_tool_errors=False))
    (text,) = texts(talk(agent, "pay"))
    assert "Timed out after 0.05 seconds." in text  # pydantic-ai itself tells the model


def test_a_timeout_inside_a_tool_keeps_its_words() -> None:
    search, _ = failing(TimeoutError("the database is slow"))
    agent = pydantic_ai.Agent(tools=[Tool(search, timeout=9.0)], capabilities=[Failsoft(Runtime())])
    (text,) = texts(talk(agent, "search"))
    assert "DEADLINE_EXCEEDED" in text
    assert "the database is slow" in text


def test_a_tool_may_ask_again_after_a_timeout_of_its_own() -> None:
    def search() -> str:
        try:
            raise TimeoutError
        except TimeoutError:
            raise ModelRetry("narrow it down") from None

    assert texts(talk(agent_with(Runtime(), search), "search")) == ["narrow it down"]


# --- agents from a specification -----------------------------------------------------------------------------------------------


def test_an_agent_from_a_specification_is_one_of_ours(tmp_path: Path) -> None:
    def search() -> str:
        raise FileNotFoundError("/tmp/data.txt")

    path = tmp_path / "agent.json"
    path.write_text('{"model": "test"}')
    for agent in (Agent.from_spec({"model": "test"}, tools=[search]), Agent.from_file(path, tools=[search])):
        assert isinstance(agent, Agent)
        agent.tool_plain(name="again")(search)
        agent.tool_plain(name="loud", graceful_errors=False)(search)
        assert texts(talk(agent, ["search", "again"])) == ["FileNotFoundError: /tmp/data.txt"] * 2
        with pytest.raises(FileNotFoundError):
            talk(agent, "loud")


def test_an_agent_from_a_specification_takes_a_config(tmp_path: Path) -> None:
    def search() -> str:
        raise FileNotFoundError("/tmp/data.txt")

    path = tmp_path / "agent.spec"
    path.write_text('{"model": "test"}')
    loud = AgentConfig(graceful_tool_errors=False)
    for agent in (
        Agent.from_spec({"model": "test"}, tools=[search], config=loud),
        Agent.from_file(path, fmt="json", tools=[search], config=loud),
    ):
        with pytest.raises(FileNotFoundError):
            talk(agent, "search")


# --- agents inside tools ----------------------------------------------------------------------------------------------------


def agent_inside(error: Exception) -> tuple[Any, list[int]]:
    """A tool that runs an agent, which pays and then meets an error; and the payments."""
    paid: list[int] = []

    def pay() -> None:
        paid.append(1)

    def ship() -> None:
        raise error

    script = Script([[Ask("pay", {})], [Ask("ship", {})]])
    inside = pydantic_ai.Agent(script.model, tools=[pay, ship])

    async def order() -> str:
        return (await inside.run("go")).output

    return order, paid


@pytest.mark.parametrize("make", [pydantic_ai.Agent, Agent], ids=["theirs", "ours"])
def test_an_agent_inside_a_tool_that_breaks_off_is_not_run_again(make: Any) -> None:
    order, paid = agent_inside(ConnectionRefusedError(111, "Connection refused"))
    (text,) = texts(talk(agent_with(Runtime(), order, make=make), "order"))
    assert text.startswith("order failed: UNAVAILABLE (tool_transient, 1 attempt). It may already have taken effect")
    assert len(paid) == 1


def test_an_agent_inside_a_loud_tool_breaks_off_with_its_own_error() -> None:
    refused = ConnectionRefusedError(111, "Connection refused")
    order, paid = agent_inside(refused)
    with pytest.raises(ConnectionRefusedError) as raised:
        talk(pydantic_ai.Agent("test", tools=[order], capabilities=[Failsoft(Runtime(), graceful=False)]), "order")
    assert raised.value is refused
    assert len(paid) == 1


# --- streams ---------------------------------------------------------------------------------------------------------------


def pages() -> Any:
    yield "page 1"
    raise ConnectionResetError("reset after page 1")


async def apages() -> Any:
    yield "page 1"
    raise ConnectionResetError("reset after page 1")


@pytest.mark.parametrize("stream", [pages, apages])
def test_a_stream_that_breaks_off_is_a_failure(stream: Any) -> None:
    (text,) = texts(talk(Agent(tools=[stream]), stream.__name__))
    assert text == "ConnectionResetError: reset after page 1"
    (text,) = texts(talk(agent_with(Runtime(), stream), stream.__name__))
    assert text.startswith(f"{stream.__name__} failed: UNAVAILABLE")


@pytest.mark.parametrize("capabilities", [[], [Failsoft(Runtime())]], ids=["Agent", "Failsoft"])
def test_a_stream_arrives_whole(capabilities: Any) -> None:
    def count() -> Any:
        yield from range(3)

    assert texts(talk(Agent(tools=[count], capabilities=capabilities), "count")) == ["[0, 1, 2]"]


# --- declaring tools (R11) --------------------------------------------------------------------------------------------------


def test_declared_by_the_decorator() -> None:
    search, attempts = failing(RESET, "3 flights")
    agent: Agent[Any, Any] = Agent("test", capabilities=[Failsoft(Runtime())])
    agent.tool_plain(failsoft={"read_only": True, "retry": QUICK}, metadata={"mine": 1})(search)
    assert texts(talk(agent, "search")) == ["3 flights"]
    assert len(attempts) == 2


def test_declared_by_metadata() -> None:
    search, attempts = failing(RESET, "3 flights")
    tool = Tool(search, metadata={"failsoft": {"idempotent": True, "retry": {"initial_delay": "1ms"}}})
    assert texts(talk(agent_with(Runtime(), tool), "search")) == ["3 flights"]
    assert len(attempts) == 2


def test_two_tools_of_one_name_must_agree() -> None:
    search, _ = failing()
    runtime = Runtime()
    talk(agent_with(runtime, Tool(search, metadata={"failsoft": {"read_only": True}})), "search")
    with pytest.raises(ManifestError, match="search: declared as"):
        talk(agent_with(runtime, search), "search")


@pytest.mark.parametrize("metadata", [None, {"failsoft": {"idempotent": False}}], ids=["no metadata", "metadata"])
def test_an_explicit_declaration_wins_over_metadata(metadata: Any) -> None:
    search, attempts = failing(RESET, "3 flights")
    runtime = Runtime()
    runtime.declare("search", read_only=True, retry=QUICK)
    agent = agent_with(runtime, Tool(search, metadata=metadata))
    assert texts(talk(agent, "search")) == ["3 flights"]
    assert texts(talk(agent, "search")) == ["3 flights"]
    assert len(attempts) == 3


@pytest.mark.parametrize(
    "rules",
    [[], [{"exception": "ValidationError", "as": "permanent", "category": "tool_validation"}]],
    ids=["none", "one"],
)
def test_a_tools_own_classification_comes_before_the_adapters(rules: Any) -> None:
    def search() -> int:
        return TypeAdapter(int).validate_python("no number")

    runtime = Runtime()
    runtime.declare("search", classification=rules)
    (text,) = texts(talk(agent_with(runtime, search), "search"))
    assert ("tool_validation" if rules else "internal_contract_bug") in text


@pytest.mark.parametrize("make", [pydantic_ai.Agent, Agent], ids=["theirs", "ours"])
@pytest.mark.parametrize("is_async", [False, True])
def test_a_guarded_function_goes_through_the_runtime_once(make: Any, is_async: bool) -> None:
    runtime = Runtime()
    attempts = []

    def search() -> str:
        attempts.append(1)
        raise RESET

    async def search_later() -> str:
        return search()

    options: Any = {"id": "search", "read_only": True, "retry": QUICK, "breaker": {"failure_threshold": 99}}
    guarded = runtime.add(search_later if is_async else search, **options)
    reports: list[TurnReport] = []
    agent = agent_with(runtime, Tool(guarded, name="search"), make=make, on_report=reports.append)
    (text,) = texts(talk(agent, "search"))
    assert text.startswith("search failed: UNAVAILABLE (tool_transient, 3 attempts)")
    assert (len(attempts), runtime.health("search").failure_count) == (3, 3)
    assert list(reports[0].outcomes) == ["search-1"]


@pytest.mark.parametrize("is_async", [False, True])
def test_a_guarded_function_of_which_nothing_is_known_counts_as_a_write_in_an_agent(is_async: bool) -> None:
    runtime, attempts = Runtime(), []

    def oracle() -> str:
        attempts.append(1)
        raise RESET

    async def later() -> str:
        return oracle()

    guarded = runtime.add(later if is_async else oracle, id="oracle", retry=QUICK)
    (text,) = texts(talk(agent_with(runtime, Tool(guarded, name="oracle")), "oracle"))
    assert "may already have taken effect" in text
    assert len(attempts) == 1


# --- threads, turns, availability ---------------------------------------------------------------------------------------------


def test_a_run_is_a_turn_of_its_conversations_thread() -> None:
    search, _ = failing(ValueError("bad"), "3 flights")
    reports: list[TurnReport] = []
    runtime = Runtime()
    agent = agent_with(runtime, search, on_report=reports.append)
    script = Script([[Ask("search", {})], [Ask("search", {})]])
    result = asyncio.run(agent.run("go", model=script.model, conversation_id="chat-42"))
    (report,) = reports
    assert (report.thread, report.turn_id) == ("chat-42", result.all_messages()[-1].run_id)
    assert [outcome.status for outcome in report.outcomes.values()] == ["failed", "succeeded"]
    assert {"TurnStarted", "ToolError", "CallSucceeded", "TurnEnded"} <= {event.event_type for event in report.trace}


def test_a_run_that_fails_still_has_a_report() -> None:
    reports: list[TurnReport] = []

    async def search() -> str:
        raise pydantic_ai.UsageLimitExceeded("enough")

    with pytest.raises(pydantic_ai.UsageLimitExceeded):
        talk(agent_with(Runtime(), search, on_report=reports.append), "search")
    assert [outcome.status for outcome in reports[0].outcomes.values()] == ["cancelled"]


def test_a_cancelled_run_can_be_taken_up_and_the_model_learns_what_may_have_happened() -> None:
    """Without failsoft it reads that the call was interrupted before a result was produced, and pays again."""
    paying = asyncio.Event()

    async def look() -> str:
        return "it costs 40"

    async def pay() -> str:
        paying.set()
        await asyncio.sleep(30)
        return "paid"

    runtime = Runtime()
    agent = agent_with(runtime, look, pay)
    script = Script([[Ask("look", {}), Ask("pay", {})]])

    async def cancelled() -> list[Any]:
        with pydantic_ai.capture_run_messages() as messages:
            run = asyncio.ensure_future(agent.run("go", model=script.model, conversation_id="chat-1"))
            await paying.wait()
            await asyncio.sleep(0.01)
            run.cancel()
            await asyncio.wait([run])
        assert run.cancelled()
        return list(messages)

    async def main() -> list[list[Any]]:
        history = await cancelled()
        assert [(one.state, [part.part_kind for part in one.parts]) for one in history[2:]] == [
            ("interrupted", ["tool-return"])
        ]  # as without failsoft: what look has found is not lost
        assert [call.call_id for call in runtime.threads["chat-1"].dangling] == ["call-0-1"]
        told = []
        for prompt in ("and now?", "really?"):
            result = await agent.run(prompt, model=script.model, message_history=history, conversation_id="chat-1")
            history = result.all_messages()
            told.append(
                [part.content for one in script.messages for part in one.parts if part.part_kind == "tool-return"]
            )
        return told

    first, second = asyncio.run(main())
    assert first == second
    assert sorted(first) == [
        "it costs 40",
        "pay was cancelled. It may already have taken effect: check before calling again. "
        "Call it again only if it is still wanted.",
    ]
    assert runtime.threads["chat-1"].dangling == []


@pytest.mark.parametrize(
    ("arguments", "may_have_run"),
    [
        ('{"amount": 4', False),
        ('{"am', False),
        ("{", False),
        ('{"amount": 4}', True),
        ("", True),
        (None, True),
        ({}, True),
    ],
)
def test_a_call_whose_arguments_were_cut_off_cannot_have_run(arguments: Any, may_have_run: bool) -> None:
    async def pay(amount: int = 4) -> str:
        raise AssertionError(amount)

    history: list[Any] = [
        pydantic_ai.ModelRequest(parts=[pydantic_ai.UserPromptPart("pay")]),
        pydantic_ai.ModelResponse(parts=[pydantic_ai.ToolCallPart("pay", arguments, "call-1")], state="interrupted"),
    ]
    script = Script([])
    asyncio.run(agent_with(Runtime(), pay).run("and now?", model=script.model, message_history=history))
    (told,) = [part.content for one in script.messages for part in one.parts if part.part_kind == "tool-return"]
    assert ("may already have taken effect" in told) is may_have_run
    assert ("not run). It had no effect." in told) is not may_have_run


def test_on_report_may_be_a_coroutine_function() -> None:
    heard: list[TurnReport] = []

    async def hear(report: TurnReport) -> None:
        await asyncio.sleep(0)
        heard.append(report)

    search, _ = failing()
    talk(agent_with(Runtime(), search, on_report=hear), "search")
    assert [list(report.results) for report in heard] == [["call-0-0"]]


def test_an_error_in_on_report_is_logged_and_does_not_break_the_run(caplog: pytest.LogCaptureFixture) -> None:
    search, _ = failing()
    assert texts(talk(agent_with(Runtime(), search, on_report=lambda report: 1 / 0), "search")) == ["3 flights"]
    assert "on_report failed" in caplog.text


def test_the_turns_deadline_ends_no_run() -> None:
    async def search() -> str:
        await asyncio.sleep(20)
        return "late"

    agent = agent_with(Runtime(), search, timeout="1s")  # time enough to get to the tool on a busy machine
    first, second = texts(talk(agent, "search", "search"))
    assert first.startswith("search did not finish within the time for this turn.")
    assert second.startswith("search was not run: the time for this turn was up.")


@pytest.mark.parametrize("option", ["max_calls", "max_calls_per_tool"])
def test_a_run_makes_no_more_calls_than_it_may(option: str) -> None:
    ran: list[int] = []

    async def search() -> str:
        ran.append(1)
        return "found"

    first, second = texts(talk(agent_with(Runtime(), search, **{option: 1}), "search", "search"))
    assert (first, len(ran)) == ("found", 1)
    assert "in this turn" in second


def test_a_disabled_tool_is_not_offered() -> None:
    async def other() -> str:
        return "fine"

    async def gone() -> str:
        return "back"

    runtime = Runtime()
    runtime.disable("gone", "maintenance")
    agent = agent_with(runtime, gone, other)
    assert talk(agent, "other").offered[0] == ["other"]
    runtime.enable("gone")
    assert talk(agent, "other").offered[0] == ["gone", "other"]


def test_a_missing_tool_is_offered_no_more_in_this_conversation() -> None:
    async def other() -> str:
        return "fine"

    async def gone() -> str:
        raise RuntimeError("Unknown tool: gone")

    agent = agent_with(Runtime(), gone, other)
    script = talk(agent, "gone", "other", conversation_id="chat-1")
    assert script.offered == [["gone", "other"], ["other"], ["other"]]
    assert talk(agent, "other", conversation_id="chat-1").offered[0] == ["other"]
    assert talk(agent, "other", conversation_id="chat-2").offered[0] == ["gone", "other"]


@pytest.mark.parametrize("backup", ["other", "elsewhere"])  # the latter belongs to another agent
def test_a_missing_tool_stays_offered_while_it_has_a_usable_fallback(backup: str) -> None:
    async def gone() -> str:
        raise RuntimeError("Unknown tool: gone")

    async def other() -> str:
        return "instead"

    runtime = Runtime({"tools": {"gone": {"fallbacks": [backup]}}})
    runtime.declare("elsewhere")
    script = talk(agent_with(runtime, gone, other), "gone", "gone", conversation_id="chat-1")
    assert script.offered[2] == (["gone", "other"] if backup == "other" else ["other"])
    assert ("instead" in texts(script)[1]) is (backup == "other")


@pytest.mark.parametrize(
    ("choice", "stays"), [(["gone"], True), (["gone", "other"], False), (ToolOrOutput(["gone"]), True), ("auto", False)]
)
def test_the_tool_that_the_model_is_made_to_call_stays_offered(choice: Any, stays: bool) -> None:
    async def gone() -> str:
        raise RuntimeError("Unknown tool: gone")

    async def other() -> str:
        return "fine"

    @dataclass
    class Choose(AbstractCapability[Any]):
        def get_model_settings(self) -> Any:
            return lambda _: {"tool_choice": choice}

    agent = pydantic_ai.Agent(tools=[gone, other], capabilities=[Failsoft(Runtime()), Choose()])
    script = talk(agent, "gone")
    assert script.offered == [["gone", "other"], ["gone", "other"] if stays else ["other"]]


def test_a_missing_tool_stays_offered_if_a_tool_call_is_required() -> None:
    async def gone() -> str:
        raise RuntimeError("Unknown tool: gone")

    @dataclass
    class Choose(AbstractCapability[Any]):
        def get_model_settings(self) -> Any:
            return lambda _: {"tool_choice": "required"}

    agent = pydantic_ai.Agent(tools=[gone], capabilities=[Failsoft(Runtime()), Choose()])
    assert talk(agent, "gone").offered == [["gone"]] * 2


def test_the_capability_replaces_a_default_one_instead_of_adding_another() -> None:
    bare, guarded = pydantic_ai.Agent("test"), agent_with(Runtime())
    assert len(guarded.root_capability.capabilities) == len(bare.root_capability.capabilities)


def test_the_capability_is_added_if_there_is_no_default_to_replace() -> None:
    code = (
        "from pydantic_ai import Agent; from pydantic_ai.capabilities import _pending_messages as private\n"
        "del private.PendingMessageDrainCapability\n"
        "from failsoft import Runtime; from failsoft.adapters.pydantic_ai import Failsoft\n"
        "print(Agent('test', capabilities=[Failsoft(Runtime())]).run_sync('go').output)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert "success" in done.stdout, done.stderr


@pytest.mark.parametrize("priority", ["asap", "when_idle"])
@pytest.mark.parametrize("where", ["agent", "run"])
def test_messages_that_a_tool_enqueues_arrive_as_ever(where: str, priority: Any) -> None:
    def remind(ctx: RunContext[None]) -> str:
        ctx.enqueue("and mind the weather", priority=priority)
        return "noted"

    def told(**options: Any) -> list[str]:
        run = {name: options.pop(name) for name in ("run",) if name in options}
        agent = pydantic_ai.Agent("test", tools=[remind], **options)
        script = Script([[Ask("remind", {})]])
        result = asyncio.run(agent.run("go", model=script.model, capabilities=run.get("run")))
        parts = [part for message in result.all_messages() for part in message.parts]
        return [f"{part.part_kind}: {getattr(part, 'content', '')}" for part in parts]

    guard = [Failsoft[Any](Runtime())]
    assert told(capabilities=guard) == told() if where == "agent" else told(run=guard) == told()
    assert any("mind the weather" in text for text in told(capabilities=guard))


def test_per_run_and_streamed() -> None:
    search, attempts = failing(RESET, "3 flights")
    runtime = Runtime({"tools": {"search": {"read_only": True, "retry": QUICK}}})
    agent = pydantic_ai.Agent("test", tools=[search])
    assert texts(talk(agent, "search", capabilities=[Failsoft(runtime)])) == ["3 flights"]
    assert len(attempts) == 2

    async def stream() -> list[Any]:
        script = Script([[Ask("search", {})]])
        async with agent.iter("go", model=script.model, capabilities=[Failsoft(runtime)]) as run:
            return [node async for node in run]

    assert len(asyncio.run(stream())) > 3


# --- mistakes ---------------------------------------------------------------------------------------------------------------

RUNTIME: Any = Runtime()


@pytest.mark.parametrize(
    ("make", "what"),
    [
        (
            lambda: Failsoft("failsoft.yaml"),
            "'failsoft.yaml' is not a Runtime: write Failsoft(rt), where rt = Runtime()",
        ),
        (
            lambda: Failsoft(RUNTIME, tool_failed="permanant"),
            "tool_failed: 'permanant' is not one of never, permanent, always; did you mean permanent?",
        ),
        (lambda: Failsoft(RUNTIME, trusted="github"), "trusted: 'github' is not a list of texts: write {\"github\"}"),
        (lambda: Failsoft(RUNTIME, timeout=30), 'timeout: 30 has no unit: write "30s"'),
        (lambda: Failsoft(RUNTIME, max_calls=0), "max_calls: 0 is not a whole number of at least 1"),
        (lambda: Failsoft(RUNTIME, on_report=[]), "on_report: [] cannot be called: give a function"),
        (
            lambda: Agent(config=False),
            "config: False is not an AgentConfig: write AgentConfig(graceful_tool_errors=False)",
        ),
    ],
)
def test_a_mistake_is_reported_where_it_is_made(make: Any, what: str) -> None:
    with pytest.raises(FailsoftError) as told:
        make()
    assert str(told.value) == what


@pytest.mark.parametrize(
    ("options", "what"),
    [
        ({"readonly": True}, "search: readonly: is not known here; did you mean read_only?"),
        ({"timeout": 30}, 'search: timeout: 30 has no unit: write "30s"'),
        ("read_only", "search: its metadata say 'read_only': write options, as in {\"read_only\": True}"),
    ],
)
def test_a_mistake_in_a_decorators_options_is_reported_with_its_place(options: Any, what: str) -> None:
    def search() -> str: ...

    with pytest.raises(ManifestError) as told:
        Agent().tool_plain(failsoft=options)(search)
    assert str(told.value).endswith(what)
    if isinstance(options, dict):
        assert str(told.value).startswith(f"{__file__}:{search.__code__.co_firstlineno}: ")


def test_metadata_that_are_no_options_are_refused() -> None:
    search, _ = failing()
    with pytest.raises(ManifestError, match="search: its metadata say True: write options"):
        talk(agent_with(Runtime(), Tool(search, metadata={"failsoft": True})))


# --- leaving a run ------------------------------------------------------------------------------------------------------------


class Answering(AbstractCapability[Any]):
    """Answers a cancellation in place of the run."""

    async def wrap_run(self, ctx: Any, *, handler: Any) -> Any:
        try:
            return await handler()
        except asyncio.CancelledError:
            return AgentRunResult("cancelled")


@pytest.mark.parametrize("blocks", [False, True])
@pytest.mark.parametrize("first", [False, True])
def test_a_cancelled_run_does_not_wait_for_its_calls(blocks: bool, first: bool) -> None:
    started, ends = threading.Event(), threading.Event()

    def wait() -> None:
        started.set()
        assert ends.wait(60)

    async def wait_later() -> None:
        started.set()
        await asyncio.sleep(3600)

    reports: list[TurnReport] = []
    guard: list[Any] = [Failsoft(Runtime(), on_report=reports.append)]
    capabilities = [*guard, Answering()] if first else [Answering(), *guard]
    tool = Tool(wait if blocks else wait_later, name="wait")
    agent = pydantic_ai.Agent("test", tools=[tool], capabilities=capabilities)

    async def leave() -> None:
        task = asyncio.create_task(agent.run("go", model=Script([[Ask("wait", {})]]).model))
        assert await asyncio.to_thread(started.wait, 30)
        task.cancel()
        done, _ = await asyncio.wait([task], timeout=30)
        assert done  # although the tool still runs
        ends.set()

    asyncio.run(leave())
    assert [outcome.status for outcome in reports[0].outcomes.values()] == ["cancelled"]


def test_a_run_has_no_deadline_unless_one_is_given() -> None:
    reports: list[Any] = []

    async def left() -> str:
        scope: Any = SCOPE.get()
        return str(scope.turn.timeout)

    for manifest, timeout, limit in (
        ({}, None, "None"),
        ({}, "2h", "7200.0"),
        ({"turn": {"timeout": "1m"}}, None, "60.0"),
    ):
        agent = agent_with(Runtime(manifest), left, on_report=reports.append, timeout=timeout)
        assert texts(talk(agent, "left")) == [limit]
    assert [report.outcomes["call-0-0"].tool for report in reports] == ["left"] * 3


def test_why_explains_a_run(tmp_path: Path) -> None:
    async def search() -> str:
        raise ConnectionResetError("gone")

    file = tmp_path / "trace.jsonl"
    runtime = Runtime({"tools": {"search": {"read_only": True, "retry": QUICK}}}, trace=file)
    talk(agent_with(runtime, search), "search")
    asyncio.run(runtime.close())
    shown = CliRunner().invoke(cli, ["why", "--trace", str(file)])
    assert shown.exit_code == 0, shown.output
    assert "search" in shown.output
