"""Conformance suite for adapters: checks that a framework with failsoft handles tools as failsoft does.

    class Driver:                                     # a dozen lines per framework
        control_flow = [ModelRetry("which one?")]     # one of each exception that the framework uses as control flow

        async def run(self, runtime, tools, steps): ...

    @pytest.mark.parametrize("check", adapter_checks(), ids=lambda check: check.__name__)
    def test_adapter(check):
        check_adapter(Driver(), check)

Rules
-----
- A driver runs one agent with a scripted model. In each step the model asks for some calls at once; after the last step
  it says that it is done. The driver returns what the model was given for each call, step by step.
- ``tools`` are annotated async functions, by name. They reach the framework like any user's function.
- Without a runtime, the driver runs the bare framework. Control flow must behave the same with failsoft.
- The checks declare tools in the runtime's manifest, which works for every framework.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextvars import ContextVar
from typing import Any, NamedTuple, Protocol

from failsoft.runtime.runtime import Runtime

SECRET = "sk-live-4fK2mZ81qLw0Xb7RtY5uVh3N"  # noqa: S105 - not a real key
WHO: ContextVar[str] = ContextVar("who")

ONCE = {"max_attempts": 1}
THRICE = {"max_attempts": 3, "initial_delay": "1ms"}


class Ask(NamedTuple):
    """One call that the model asks for."""

    tool: str
    args: Mapping[str, Any]


class Seen(NamedTuple):
    """The result of one call, as the model was given it."""

    tool: str
    text: str


Tools = Mapping[str, Callable[..., Awaitable[Any]]]
Steps = Sequence[Sequence[Ask]]


class AdapterDriver(Protocol):
    """The framework and adapter under test."""

    control_flow: Sequence[BaseException]

    async def run(self, runtime: Runtime | None, tools: Tools, steps: Steps) -> Sequence[Sequence[Seen]]:
        """Run one agent: with a runtime through the adapter, without one on the bare framework."""


Check = Callable[[AdapterDriver], Awaitable[None]]


def adapter_checks() -> tuple[Check, ...]:
    """Return all checks, to run each as a test."""
    return _CHECKS


def check_adapter(driver: AdapterDriver, *checks: Check) -> None:
    """Run the given checks, or all. ``AssertionError`` names the check that failed, and why."""
    for check in checks or _CHECKS:
        try:
            asyncio.run(_bounded(check(driver)))
        except AssertionError as error:
            raise AssertionError(f"{check.__name__}: {error}") from error


async def _bounded(check: Awaitable[None]) -> None:
    async with asyncio.timeout(30):
        await check


class Scripted:
    """A tool that plays one step per attempt and repeats the last: an exception, a function to await, or a value."""

    def __init__(self, *steps: Any) -> None:
        self._steps = steps
        self.cities: list[str] = []

    @property
    def attempts(self) -> int:
        return len(self.cities)

    def tool(self, name: str) -> Callable[..., Awaitable[str]]:
        async def tool(city: str) -> str:
            """Look something up in a city."""
            step = self._steps[min(self.attempts, len(self._steps) - 1)]
            self.cities.append(city)
            if callable(step):
                step = await step()
            if isinstance(step, BaseException):
                raise step
            return str(step)

        tool.__name__ = tool.__qualname__ = name
        return tool


def ask(*tools: str) -> list[Ask]:
    return [Ask(tool, {"city": "Paris"}) for tool in tools]


async def play(driver: AdapterDriver, runtime: Runtime | None, steps: Steps, **scripts: Scripted) -> list[list[Seen]]:
    """Run the script and check that the driver reports every call, in order."""
    reported = await driver.run(runtime, {name: script.tool(name) for name, script in scripts.items()}, steps)
    result = [list(step) for step in reported]
    asked = [[call.tool for call in step] for step in steps]
    answered = [[seen.tool for seen in step] for step in result]
    assert answered == asked, f"the model asked for {asked} and got answers for {answered}"
    return result


async def answer_to(driver: AdapterDriver, runtime: Runtime | None, script: Scripted, name: str = "search") -> str:
    """Return what the model reads about one call."""
    [[seen]] = await play(driver, runtime, [ask(name)], **{name: script})
    return seen.text


def has(text: str, *parts: str) -> None:
    for part in parts:
        assert part in text, f"the model did not read {part!r}: {text!r}"


def manifest(**tools: Mapping[str, Any]) -> Runtime:
    return Runtime({"tools": tools})


# --- the checks ------------------------------------------------------------------------------------------------------


async def a_value_arrives(driver: AdapterDriver) -> None:
    script = Scripted("3 flights")
    has(await answer_to(driver, Runtime(), script), "3 flights")
    assert script.cities == ["Paris"], f"the tool's argument was {script.cities}"


async def the_model_reads_the_classification(driver: AdapterDriver) -> None:
    for error, parts in (
        (ValueError("Invalid airport code: XYZ"), ("INVALID_ARGUMENT", "tool_validation", "Invalid airport code: XYZ")),
        (
            RuntimeError("Authentication failed (401)"),
            ("UNAUTHENTICATED", "tool_misconfigured", "Do not call it again"),
        ),
        (KeyError("price"), ("INTERNAL", "internal_contract_bug")),
    ):
        script = Scripted(error)
        has(await answer_to(driver, Runtime(), script), "search failed", *parts)
        assert script.attempts == 1, f"{error!r} is permanent, and was tried {script.attempts} times"


async def a_broken_tool_may_have_acted(driver: AdapterDriver) -> None:
    """Only for frameworks that validate arguments: a later validation error is not the model's fault."""

    async def misread() -> str:
        from pydantic import TypeAdapter

        return str(TypeAdapter(int).validate_python("no number"))

    script = Scripted(misread, "paid twice")
    text = await answer_to(driver, manifest(pay={"retry": THRICE}), script, "pay")
    assert script.attempts == 1, "a validation error inside the tool was retried"
    has(text, "pay failed: INTERNAL (internal_contract_bug", "may already have taken effect")


async def a_safe_retry_happens(driver: AdapterDriver) -> None:
    script = Scripted(ConnectionResetError("reset"), TimeoutError("slow"), "3 flights")
    has(await answer_to(driver, manifest(search={"read_only": True, "retry": THRICE}), script), "3 flights")
    assert script.attempts == 3, f"it took {script.attempts} attempts"


async def an_unsafe_retry_does_not_happen(driver: AdapterDriver) -> None:
    script = Scripted(TimeoutError("the answer was lost"), "paid twice")
    text = await answer_to(driver, manifest(pay={"retry": THRICE}), script, "pay")
    assert script.attempts == 1, "a tool not declared idempotent was repeated with its effect unknown"
    has(text, "pay failed: DEADLINE_EXCEEDED", "may already have taken effect")


async def a_harmless_retry_happens(driver: AdapterDriver) -> None:
    refused = ConnectionRefusedError(111, "Connection refused")  # no effect: safe for any tool
    script = Scripted(refused, "paid")
    has(await answer_to(driver, manifest(pay={"retry": THRICE}), script, "pay"), "paid")


async def a_hanging_tool_is_stopped(driver: AdapterDriver) -> None:
    script = Scripted(lambda: asyncio.sleep(20, "late"))
    text = await answer_to(driver, manifest(search={"timeout": "30ms", "retry": ONCE}), script)
    has(text, "search failed: DEADLINE_EXCEEDED", "Tool timeout after 30ms")


async def another_tool_stands_in(driver: AdapterDriver) -> None:
    runtime = manifest(search={"fallbacks": ["backup"], "retry": ONCE}, backup={})
    first, second = Scripted(RuntimeError("Service unavailable (503)")), Scripted("from the backup")
    [[seen]] = await play(driver, runtime, [ask("search")], search=first, backup=second)
    has(seen.text, "from the backup")
    assert second.cities == ["Paris"], f"the fallback's argument was {second.cities}"


async def a_failing_tool_is_cut_off(driver: AdapterDriver) -> None:
    runtime = manifest(search={"retry": ONCE, "breaker": {"failure_threshold": 1}})
    script = Scripted(RuntimeError("Service unavailable (503)"))
    await answer_to(driver, runtime, script)
    text = await answer_to(driver, runtime, script)
    assert script.attempts == 1, "the tool was run while its circuit was open"
    has(text, "search failed: UNAVAILABLE", "not run")


async def siblings_survive(driver: AdapterDriver) -> None:
    bad = Scripted(ValueError("Invalid airport code: XYZ"))
    good = Scripted(lambda: asyncio.sleep(0.02, "3 hotels"))
    [seen] = await play(driver, Runtime(), [ask("hotels", "flights", "hotels")], flights=bad, hotels=good)
    has(seen[0].text, "3 hotels")
    has(seen[1].text, "INVALID_ARGUMENT")
    has(seen[2].text, "3 hotels")


async def secrets_are_masked(driver: AdapterDriver) -> None:
    script = Scripted(RuntimeError(f"Authentication failed (401) for key {SECRET}"))
    text = await answer_to(driver, Runtime(), script)
    assert SECRET not in text, f"the model read a secret: {text!r}"
    has(text, "Authentication failed")


async def control_flow_passes(driver: AdapterDriver) -> None:
    assert driver.control_flow, "the driver lists no control-flow exceptions: every framework has some"
    for error in driver.control_flow:
        runtime = manifest(search={"read_only": True, "retry": THRICE})
        script = Scripted(error)
        bare = await _end(answer_to(driver, None, Scripted(error)))
        guarded = await _end(answer_to(driver, runtime, script))
        error_name = type(error).__name__
        assert guarded == bare, f"{error_name}: the bare framework ends with {bare!r}, failsoft with {guarded!r}"
        assert script.attempts == 1, f"{error_name}: the tool was run {script.attempts} times"
        errors = [event for event in runtime.events() if event.event_type == "ToolError"]
        assert not errors, f"{error_name}: control flow was treated as an error"
        assert runtime.health("search").failure_count == 0, f"{error_name}: control flow was counted as a failure"


async def _end(run: Awaitable[str]) -> str | tuple[type[BaseException], str]:
    """Return the end of a run: a text for the model, or an exception."""
    try:
        return await run
    except asyncio.CancelledError:
        raise
    except BaseException as error:  # any exception the framework ends with
        return type(error), str(error)


async def a_cancelled_run_is_no_verdict(driver: AdapterDriver) -> None:
    runtime, entered = manifest(search={"breaker": {"failure_threshold": 1}}), asyncio.Event()
    ends: list[str] = []

    async def wait() -> str:
        entered.set()
        try:
            await asyncio.sleep(20)
        except asyncio.CancelledError:
            ends.append("cancelled")
            raise
        return "late"

    run = asyncio.ensure_future(answer_to(driver, runtime, Scripted(wait)))
    await entered.wait()
    run.cancel()
    end = await asyncio.wait([run])
    assert end[0], "the run did not end"
    assert run.cancelled() or isinstance(run.exception(), BaseException), "a cancelled run has no result"
    assert ends == ["cancelled"], "the tool was not cancelled with its run"
    health = runtime.health("search")
    assert (health.state, health.failure_count) == ("closed", 0), "a cancelled call was counted as a failure"
    has(await answer_to(driver, runtime, Scripted("3 flights")), "3 flights")


async def context_variables_reach_the_tool(driver: AdapterDriver) -> None:
    runtime = manifest(search={"read_only": True, "retry": THRICE})

    async def look() -> str:
        await asyncio.sleep(0.001)
        return f"I am {WHO.get()}"

    async def one(who: str) -> str:
        WHO.set(who)
        return await answer_to(driver, runtime, Scripted(ConnectionResetError("reset"), look))

    answered = await asyncio.gather(*(asyncio.create_task(one(who)) for who in ("Ada", "Ben", "Cy")))
    for who, text in zip(("Ada", "Ben", "Cy"), answered, strict=True):
        has(text, f"I am {who}")


_CHECKS: tuple[Check, ...] = (
    a_value_arrives,
    the_model_reads_the_classification,
    a_broken_tool_may_have_acted,
    a_safe_retry_happens,
    an_unsafe_retry_does_not_happen,
    a_harmless_retry_happens,
    a_hanging_tool_is_stopped,
    another_tool_stands_in,
    a_failing_tool_is_cut_off,
    siblings_survive,
    secrets_are_masked,
    control_flow_passes,
    a_cancelled_run_is_no_verdict,
    context_variables_reach_the_tool,
)
