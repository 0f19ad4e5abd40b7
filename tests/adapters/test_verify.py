"""``verify`` finds out about lost writes in all adapters (R53), however the tool is declared and whoever runs it."""

from __future__ import annotations

import asyncio
import inspect
import threading
from collections.abc import Callable
from typing import Any, NamedTuple

import pydantic_ai as theirs
import pytest
from agents import function_tool
from langchain_core.messages import HumanMessage
from langchain_core.tools import StructuredTool, ToolException
from tests.adapters.pydantic_ai_driver import Script
from tests.adapters.test_langchain import agent as langchain_agent
from tests.adapters.test_langchain import told
from tests.adapters.test_openai_agents import answers, arun, text

from failsoft import Runtime, Verified
from failsoft.adapters.plain import run_tool_calls
from failsoft.adapters.pydantic_ai import Agent, Failsoft
from failsoft.testing import Ask

ARGUMENTS = {"amount": 120}
QUICK: dict[str, Any] = {
    "verify_delay": "1ms",
    "verify_timeout": "30s",
    "retry": {"max_attempts": 3, "initial_delay": "1ms"},
}


def quick(answer: Any) -> dict[str, Any]:
    """Options without pauses; only a ``verify`` that hangs is given little time."""
    return QUICK | ({"verify_timeout": "50ms"} if answer == "hang" else {})


LOST = "The answer was lost"
TOLD_UNKNOWN = "It may already have taken effect: check before calling again."
TOLD_DONE = "pay succeeded: a check found that it took effect. Its result is lost."


class Scene:
    """A write whose answer is lost at the first run, and its ``verify``, which gives one answer for ever."""

    def __init__(self, answer: Any, *, blocking: bool = False) -> None:
        self.answer = answer
        self.runs = 0
        self.asked: list[tuple[Any, Any]] = []
        self.release = threading.Event()  # ends a verify that hangs
        self.pay: Any = self._pay_blocking if blocking else self._pay
        self.verify: Any = self._verify_blocking if blocking else self._verify

    def _act(self, amount: int) -> str:
        self.runs += 1
        if self.runs == 1:
            raise ConnectionResetError(LOST)
        return f"paid {amount}"

    def _judge(self, arguments: Any, fault: Any) -> Any:
        self.asked.append((dict(arguments), fault.code))
        if isinstance(self.answer, BaseException):
            raise self.answer
        return self.answer

    async def _pay(self, amount: int) -> str:
        """Pay."""
        return self._act(amount)

    def _pay_blocking(self, amount: int) -> str:
        """Pay."""
        return self._act(amount)

    async def _verify(self, arguments: Any, _key: Any, fault: Any) -> Any:
        if self.answer == "hang":
            await asyncio.sleep(60)
        return self._judge(arguments, fault)

    def _verify_blocking(self, arguments: Any, _key: Any, fault: Any) -> Any:
        if self.answer == "hang":
            self.release.wait(60)
        return self._judge(arguments, fault)


class Tools(NamedTuple):
    """The functions of one agent, and the options in their metadata where the framework has any."""

    pay: Any
    others: tuple[Any, ...] = ()
    options: dict[str, Any] = {}  # noqa: RUF012 - never changed


Ran = Callable[[Runtime, Tools], str]  # what the model has read about its call of pay


def plain(rt: Runtime, tools: Tools) -> str:
    for function in (tools.pay, *tools.others):
        if (name := _name(function)) not in rt.tools:
            rt.add(function, id=name, **(tools.options if function is tools.pay else {}))
    call = {"id": "c", "type": "function", "function": {"name": "pay", "arguments": '{"amount": 120}'}}
    return str(asyncio.run(run_tool_calls(rt, [call], thread="chat"))[0]["content"])


def langchain(rt: Runtime, tools: Tools, *, sync: bool = False) -> str:
    def make(function: Any) -> StructuredTool:
        given = {"func" if _blocks(function) else "coroutine": function}
        metadata = {"failsoft": tools.options} if tools.options and function is tools.pay else None
        return StructuredTool.from_function(
            **given, name=_name(function), description=function.__doc__, metadata=metadata
        )

    run = langchain_agent(rt, [make(function) for function in (tools.pay, *tools.others)], [("pay", ARGUMENTS)])
    messages = {"messages": [HumanMessage("go")]}
    (message,) = told(run.invoke(messages) if sync else asyncio.run(run.ainvoke(messages)))
    assert message.name == "pay"
    return str(message.content)


def langchain_sync(rt: Runtime, tools: Tools) -> str:
    return langchain(rt, tools, sync=True)


def openai_agents(rt: Runtime, tools: Tools) -> str:
    made = [function_tool(function, name_override=_name(function)) for function in (tools.pay, *tools.others)]
    return text(answers(asyncio.run(arun(rt, made, [("pay", ARGUMENTS)])))["c0-0"])


def pydantic_ai(rt: Runtime, tools: Tools, make: Any = theirs.Agent) -> str:
    script = Script([[Ask("pay", ARGUMENTS)]])
    metadata = {"failsoft": tools.options} if tools.options else None
    made = [theirs.Tool(tools.pay, name="pay", metadata=metadata)]
    made += [theirs.Tool(function, name=_name(function)) for function in tools.others]
    asyncio.run(make("test", tools=made, capabilities=[Failsoft(rt)]).run("go", model=script.model))
    ((seen,),) = script.seen
    return seen.text


def pydantic_ai_ours(rt: Runtime, tools: Tools) -> str:
    return pydantic_ai(rt, tools, Agent)


def _name(function: Any) -> str:
    return str(function.__name__).removeprefix("_").removesuffix("_blocking")


def _blocks(function: Any) -> bool:
    return not inspect.iscoroutinefunction(function)


ASYNC = [plain, langchain, openai_agents, pydantic_ai, pydantic_ai_ours]
RUNS = [*[(run, False) for run in ASYNC], *[(run, True) for run in (*ASYNC, langchain_sync)]]
EVERYWHERE = pytest.mark.parametrize(
    ("run", "blocking"), RUNS, ids=[f"{run.__name__}-{'def' if blocks else 'async'}" for run, blocks in RUNS]
)


def verified(rt: Runtime) -> list[str]:
    return [event.to_dict()["answer"] for event in rt.events() if event.event_type == "EffectVerified"]


CASES = [
    pytest.param(Verified.happened("receipt 7"), 1, "happened", "receipt 7", id="happened with a value"),
    pytest.param(Verified.happened(), 1, "happened", TOLD_DONE, id="happened"),
    pytest.param(Verified.none(), 2, "none", "paid 120", id="none"),
    pytest.param(Verified.unknown("no access"), 1, "unknown", TOLD_UNKNOWN, id="unknown"),
    pytest.param(RuntimeError("no access"), 1, "unknown", TOLD_UNKNOWN, id="raises"),
    pytest.param("hang", 1, "unknown", TOLD_UNKNOWN, id="hangs"),
    pytest.param("nonsense", 1, "unknown", TOLD_UNKNOWN, id="nonsense"),
]


def check(scene: Scene, rt: Runtime, said: str, runs: int, answer: str, words: str) -> None:
    scene.release.set()
    assert words in said
    assert (words == said) is (answer != "unknown" and words != TOLD_DONE)
    assert (scene.runs, verified(rt)) == (runs, [answer])
    assert said.startswith("pay failed") is (answer == "unknown")


@EVERYWHERE
@pytest.mark.parametrize(("answer", "runs", "recorded", "words"), CASES)
def test_the_models_answer_follows_from_what_verify_found_out(
    run: Ran, blocking: bool, answer: Any, runs: int, recorded: str, words: str
) -> None:
    scene, rt = Scene(answer, blocking=blocking), Runtime()
    options = {"verify": scene.verify, **quick(answer)}
    if run is plain:
        said = run(rt, Tools(scene.pay, options=options))
    else:
        rt.declare("pay", **options)
        said = run(rt, Tools(scene.pay))
    check(scene, rt, said, runs, recorded, words)
    assert scene.asked == ([] if answer == "hang" else [(ARGUMENTS, "UNAVAILABLE")])


@EVERYWHERE
@pytest.mark.parametrize(("answer", "runs", "recorded", "words"), CASES)
def test_a_function_that_a_runtime_guards_is_verified_inside_every_framework(
    run: Ran, blocking: bool, answer: Any, runs: int, recorded: str, words: str
) -> None:
    scene, rt = Scene(answer, blocking=blocking), Runtime()
    guarded = rt.tool(id="pay", verify=scene.verify, **quick(answer))(scene.pay)
    check(scene, rt, run(rt, Tools(guarded)), runs, recorded, words)


METADATA = [langchain, langchain_sync, pydantic_ai, pydantic_ai_ours]


@pytest.mark.parametrize("run", METADATA)
@pytest.mark.parametrize(("answer", "runs", "recorded", "words"), CASES[:4])
def test_the_tools_metadata_can_declare_verify(run: Ran, answer: Any, runs: int, recorded: str, words: str) -> None:
    scene, rt = Scene(answer, blocking=run is langchain_sync), Runtime()
    said = run(rt, Tools(scene.pay, options={"verify": scene.verify, **quick(answer)}))
    check(scene, rt, said, runs, recorded, words)


# --- a tool of the framework reads back ----------------------------------------------------------------------------------

READ_BACK = {
    "tool": "get_payment",
    "arguments": {"amount": "$amount"},
    "happened_if": {"status": "paid"},
    "none_if": {"$failed": "NOT_FOUND"},
    "value": "$match.receipt",
}
READINGS = [
    pytest.param({"status": "paid", "receipt": "R-7"}, 1, "happened", "R-7", id="happened with a value"),
    pytest.param({"status": "paid"}, 1, "happened", TOLD_DONE, id="happened"),
    pytest.param(RuntimeError("Payment not found (404)"), 2, "none", "paid 120", id="none"),
    pytest.param({"status": "pending"}, 1, "unknown", TOLD_UNKNOWN, id="unknown"),
    pytest.param(PermissionError("the reader may not"), 1, "unknown", TOLD_UNKNOWN, id="fails"),
    pytest.param("hang", 1, "unknown", TOLD_UNKNOWN, id="hangs"),
]


def reader(scene: Scene, *, blocking: bool) -> Any:
    def read(amount: int) -> Any:
        scene.asked.append(({"amount": amount}, None))
        if isinstance(scene.answer, BaseException):
            raise scene.answer
        return scene.answer

    async def get_payment(amount: int) -> Any:
        """Get a payment."""
        if scene.answer == "hang":
            await asyncio.sleep(60)
        return read(amount)

    def get_payment_blocking(amount: int) -> Any:
        """Get a payment."""
        if scene.answer == "hang":
            scene.release.wait(60)
        return read(amount)

    return get_payment_blocking if blocking else get_payment


def read_back(run: Ran, scene: Scene, *, blocking: bool, declared: bool = False) -> tuple[Runtime, str]:
    """Run pay with a tool of the same agent that reads back, declared in the manifest or in code."""
    options: dict[str, Any] = {"verify": READ_BACK, **quick(scene.answer)}
    reading: dict[str, Any] = {"read_only": True, "retry": {"max_attempts": 1}}
    rt = Runtime({"tools": {"get_payment": reading} | ({} if declared else {"pay": options})})
    if declared and run is not plain:
        rt.declare("pay", **options)
    given = options if declared and run is plain else {}
    return rt, run(rt, Tools(scene.pay, (reader(scene, blocking=blocking),), given))


@EVERYWHERE
@pytest.mark.parametrize(("answer", "runs", "recorded", "words"), READINGS)
def test_a_tool_of_the_same_agent_reads_back(
    run: Ran, blocking: bool, answer: Any, runs: int, recorded: str, words: str
) -> None:
    scene = Scene(answer, blocking=blocking)
    rt, said = read_back(run, scene, blocking=blocking)
    check(scene, rt, said, runs, recorded, words)
    assert scene.asked == ([] if answer == "hang" else [(ARGUMENTS, None)])
    assert "the reader may not" not in said


@EVERYWHERE
def test_code_can_declare_the_tool_that_reads_back(run: Ran, blocking: bool) -> None:
    scene = Scene({"status": "paid", "receipt": "R-7"}, blocking=blocking)
    rt, said = read_back(run, scene, blocking=blocking, declared=True)
    check(scene, rt, said, 1, "happened", "R-7")


def test_a_blocking_graph_reads_back_inside_a_running_loop() -> None:
    scene = Scene({"status": "paid", "receipt": "R-7"}, blocking=True)

    async def main() -> tuple[Runtime, str]:
        return read_back(langchain_sync, scene, blocking=True)

    check(scene, *asyncio.run(main()), 1, "happened", "R-7")


@pytest.mark.parametrize(
    "answer", [{"status": "pending"}, PermissionError("the reader may not")], ids=["reads", "fails"]
)
def test_the_users_failure_function_gets_the_error_of_the_write_not_of_the_reader(answer: Any) -> None:
    scene, heard = Scene(answer), []
    rt = Runtime({"tools": {"pay": {"verify": READ_BACK, **QUICK}, "get_payment": {"read_only": True}}})

    def on_failure(_: Any, error: Exception) -> str:
        heard.append(str(error))
        return "sorry"

    pay = function_tool(scene.pay, name_override="pay", failure_error_function=on_failure)
    reads = function_tool(reader(scene, blocking=False), name_override="get_payment")
    result = asyncio.run(arun(rt, [pay, reads], [("pay", ARGUMENTS)]))
    assert text(answers(result)["c0-0"]) == "sorry"
    assert heard == [LOST]


@pytest.mark.parametrize("sync", [False, True], ids=["async", "sync"])
def test_the_readers_error_handler_does_not_answer_for_the_write(sync: bool) -> None:
    scene = Scene(ToolException("the reader may not"), blocking=sync)
    rt = Runtime({"tools": {"pay": {"verify": READ_BACK, **QUICK}, "get_payment": {"read_only": True}}})
    how = "func" if sync else "coroutine"
    pay = StructuredTool.from_function(**{how: scene.pay}, name="pay", description="Pay.")
    reads = StructuredTool.from_function(
        **{how: reader(scene, blocking=sync)}, name="get_payment", description="Get.", handle_tool_error="handled"
    )
    run = langchain_agent(rt, [pay, reads], [("pay", ARGUMENTS)])
    messages = {"messages": [HumanMessage("go")]}
    (message,) = told(run.invoke(messages) if sync else asyncio.run(run.ainvoke(messages)))
    assert (message.name, message.status, verified(rt)) == ("pay", "error", ["unknown"])
    assert TOLD_UNKNOWN in str(message.content)


def test_a_reader_that_needs_approval_is_not_run() -> None:
    scene = Scene({"status": "paid"})
    rt = Runtime({"tools": {"pay": {"verify": READ_BACK, **QUICK}, "get_payment": {"read_only": True}}})
    pay = function_tool(scene.pay, name_override="pay")
    reads = function_tool(reader(scene, blocking=False), name_override="get_payment", needs_approval=True)
    said = text(answers(asyncio.run(arun(rt, [pay, reads], [("pay", ARGUMENTS)])))["c0-0"])
    check(scene, rt, said, 1, "unknown", TOLD_UNKNOWN)
    assert scene.asked == []
