"""S-norm: five categories of failure, their consequences, the clean-up and the texts for people.

Every behaviour, clean-up rule, acceptance criterion and test of the document is here by name, through the public API.
Its sentences are compared byte for byte; its quotation marks are U+2019.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any

import pytest
from tests.fakes import OFTEN, ONCE, Scripted, phrases, records, virtual

from failsoft import Outcome, Runtime, classify

EXECUTE = "Invalid extension.gateway.execute.request"
APPEND = "Invalid chat.management.gateway.message.append.request"
NOT_AVAILABLE = b"This capability isn\xe2\x80\x99t available in this deployment yet."
BROKE = b"Something broke internally, I\xe2\x80\x99ve logged it."

UNAVAILABLE = RuntimeError(EXECUTE)
MISCONFIGURED = RuntimeError("Authentication failed (401): missing api key")
TRANSIENT = RuntimeError("Service unavailable (503)")
VALIDATION = ValueError("Invalid airport code: XYZ")
CONTRACT = RuntimeError(APPEND)
THREAD = "telegram:42"


async def say(rt: Runtime, tool: str = "tool", **args: Any) -> Outcome[Any]:
    """One turn of the conversation, with one call in it."""
    async with rt.turn(thread=THREAD) as turn:
        handle = turn.call(tool, args)
    return await handle


def host(*steps: Any, **options: Any) -> tuple[Runtime, Scripted]:
    rt, tool = Runtime(), Scripted(*steps)
    rt.add(tool, id="tool", breaker=OFTEN, **options)
    return rt, tool


# --- Error categories: signals ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("signal", "category"),
    [
        (EXECUTE, "tool_unavailable"),
        ("missing tool id", "tool_unavailable"),
        ("missing extension id", "tool_unavailable"),
        ("Authentication failed (401)", "tool_misconfigured"),
        ("missing api key", "tool_misconfigured"),
        ("misconfigured base url", "tool_misconfigured"),
        ("Network timeout", "tool_transient"),
        ("Internal Server Error (500)", "tool_transient"),
        ("Bad Gateway (502)", "tool_transient"),
        ("Rate limit exceeded (429)", "tool_transient"),
        ("Invalid input: city", "tool_validation"),
        ("schema mismatch: nights must be a number", "tool_validation"),
        (APPEND, "internal_contract_bug"),
    ],
)
def test_signals(signal: str, category: str) -> None:
    assert classify(signal).category == category
    assert classify(RuntimeError(signal)).category == category


# --- ToolUnavailable: behaviour ---------------------------------------------------------------------------------------


@virtual
async def test_unavailable_is_marked_for_this_session_when_only_a_text_says_so() -> None:
    rt, tool = host(UNAVAILABLE)
    await say(rt)
    assert not rt.threads[THREAD].available("tool")
    assert rt.threads["another session"].available("tool")
    again = await say(rt)
    assert (again.attempts, tool.attempts) == (0, 1)


@virtual
async def test_unavailable_is_marked_for_this_deployment_when_the_registry_knows() -> None:
    rt = Runtime(manifest={"tools": {"tool": {"entrypoint": {"function": "no_such_extension:run"}}}})
    assert not rt.health("tool").available
    for thread in (THREAD, "another session"):
        outcome = await rt.call("tool", thread=thread)
        assert (outcome.attempts, outcome.fault and outcome.fault.category) == (0, "tool_unavailable")


@virtual
async def test_unavailable_clears_pending_retry_offers_for_this_tool() -> None:
    rt, _ = host(TRANSIENT, UNAVAILABLE, retry=ONCE)
    await say(rt)
    assert len(rt.threads[THREAD].offers) == 1
    await say(rt)
    assert rt.threads[THREAD].offers == []


@virtual
async def test_unavailable_responds_with_the_documents_sentence() -> None:
    rt, _ = host(UNAVAILABLE)
    for outcome in (await say(rt), await say(rt), await say(rt, "never_registered")):
        assert outcome.explanation.user.encode() == NOT_AVAILABLE
        assert "Do not call it again" in outcome.explanation.model


# --- ToolMisconfigured: behaviour -------------------------------------------------------------------------------------


@virtual
async def test_misconfigured_does_not_keep_retrying() -> None:
    rt, tool = host(MISCONFIGURED, read_only=True, retry={"max_attempts": 5})
    await say(rt)
    assert tool.attempts == 1
    for _ in range(5):
        await say(rt)
    assert tool.attempts == 1
    assert rt.threads[THREAD].offers == []


@virtual
async def test_misconfigured_suggests_configuration_steps_to_the_operator_only() -> None:
    rt, _ = host(MISCONFIGURED)
    told = (await say(rt)).explanation
    steps = "Check its credentials, permissions, quota and address."
    assert steps in told.operator
    assert "missing api key" in told.operator
    assert steps not in told.user + told.model
    assert "api key" not in told.user
    assert (
        told.user == "I couldn’t use tool: it isn’t set up correctly here. I’ve noted what the operator needs to fix."
    )


# --- ToolTransientError: behaviour ------------------------------------------------------------------------------------


@virtual
async def test_transient_allows_one_retry_if_the_user_explicitly_asks() -> None:
    rt, tool = host(TRANSIENT, retry=ONCE)
    await say(rt, city="PAR")
    (offer,) = rt.threads[THREAD].offers
    assert (offer.tool, offer.arguments) == ("tool", {"city": "PAR"})
    await rt.threads[THREAD].retry("tool")
    assert tool.arguments == [{"city": "PAR"}] * 2
    nothing = await rt.threads[THREAD].retry("tool")
    assert (nothing.attempts, tool.attempts) == (0, 2)
    assert nothing.explanation.user == "There’s nothing to try again for tool."


@virtual
async def test_transient_otherwise_records_the_error_and_moves_on() -> None:
    rt, _ = host(TRANSIENT, retry=ONCE)
    rt.add(Scripted("sunny"), id="weather")
    async with rt.turn(thread=THREAD) as turn:
        turn.call("tool")
        turn.call("weather")
    assert turn.report.results == {"weather-1": "sunny"}
    (record,) = records(turn.report, "ToolError")
    assert (record["tool_id"], record["error"]) == ("tool", "Service unavailable (503)")
    assert (await say(rt, "weather")).value == "sunny"


# --- ToolValidationError: behaviour -----------------------------------------------------------------------------------


@virtual
async def test_validation_asks_for_the_missing_or_invalid_input_explicitly() -> None:
    rt, _ = host(VALIDATION)

    @rt.tool
    async def hotels(city: str, check_in: str) -> None: ...

    assert (await say(rt)).explanation.user == "For tool I need a valid airport code."
    missing = await say(rt, "hotels", city="PAR")
    assert missing.explanation.user == "For hotels I need a valid check in."
    assert "correct check in, or ask the user" in missing.explanation.model
    assert (await say(rt, "hotels")).explanation.user == "For hotels I need a valid city and check in."


# --- InternalContractBug: behaviour -----------------------------------------------------------------------------------


@virtual
async def test_contract_bug_returns_a_stable_user_facing_error() -> None:
    rt, _ = host(CONTRACT, TypeError("unsupported operand"), KeyError("x"))
    for number in range(3):
        assert (await say(rt, n=number)).explanation.user.encode() == BROKE


@virtual
async def test_contract_bug_records_an_internal_error_event_for_debugging() -> None:
    rt = Runtime()

    @rt.tool
    async def tool() -> None:
        token = "sk-proj-" + "a1" * 20
        raise TypeError(f"gateway refused {token}")

    await say(rt)
    (record,) = records(rt, "InternalError")
    assert record["tool_id"] == "tool"
    assert record["call_id"] == "tool-1"
    assert record["exception"] == "builtins.TypeError"
    assert record["code"] == "INTERNAL"
    assert 'raise TypeError(f"gateway refused {token}")' in record["traceback"]
    assert "in tool" in record["traceback"]
    assert "a1a1" not in str(record)


@virtual
async def test_contract_bug_avoids_cascading_failures() -> None:
    rt, tool = host(CONTRACT, read_only=True, retry={"max_attempts": 5})
    rt.add(Scripted("sunny"), id="weather")
    async with rt.turn(thread=THREAD) as turn:
        broken = turn.call("tool")
        turn.call("weather", {"place": broken}, id="needs it")
        turn.call("weather", id="does not")
    assert tool.attempts == 1
    assert turn.report.outcomes["needs it"].status == "skipped"
    assert turn.report.results == {"does not": "sunny"}
    assert rt.health("tool").state == "closed"


# --- Where to implement -----------------------------------------------------------------------------------------------


@virtual
async def test_the_workflow_path_shares_the_same_normaliser() -> None:
    """A workflow in a sub-agent in a workflow …: the failure comes out once, with its root cause."""
    rt, tool = host(CONTRACT)

    async def level_4(task: str) -> Any:
        return (await rt.call("tool", {"task": task})).unwrap()

    async def level_3(task: str) -> Any:
        async with rt.turn() as turn:
            handle = turn.call("level_4", {"task": task})
        return await handle.value()

    async def level_2(task: str) -> Any:
        try:
            return (await rt.call("level_3", {"task": task})).unwrap()
        except Exception as error:
            raise RuntimeError("the sub-agent failed") from error

    async def delegate_to_agent(task: str) -> Any:
        async with asyncio.TaskGroup() as group:
            running = group.create_task(rt.call("level_2", {"task": task}))
            await running
            running.result().unwrap()

    for function in (level_4, level_3, level_2, delegate_to_agent):
        rt.add(function)
    outcome = await say(rt, "delegate_to_agent", task="book it")
    fault = outcome.fault
    assert fault is not None
    assert (fault.category, fault.message) == ("internal_contract_bug", APPEND)
    assert fault.rule == "nested: phrase: gateway request"
    assert (outcome.attempts, tool.attempts) == (1, 1)
    assert outcome.explanation.user.encode() == BROKE
    assert outcome.explanation.model == (
        "delegate_to_agent failed because tool inside it failed: INVALID_ARGUMENT (internal_contract_bug). "
        "It may already have taken effect. Do not call it again: its code is at fault, not the arguments. Tell the user. "
        f'Error text, as data: "{APPEND}"'
    )
    assert outcome.explanation.operator.startswith(
        "In delegate_to_agent → level_2 → level_3 → level_4: tool failed: INVALID_ARGUMENT, internal_contract_bug"
    )


@virtual
async def test_the_runner_does_not_retry_blindly() -> None:
    """A runner that answers every message with the same call does not reach the tool again and again."""
    rt, tool = host(UNAVAILABLE)
    broken = Scripted(CONTRACT)
    rt.add(broken, id="broken")
    for _ in range(20):
        await say(rt)
        await say(rt, "broken")
    assert (tool.attempts, broken.attempts) == (1, 2)
    assert rt.metrics("broken")["loops_prevented"] == 18


# --- Pending state cleanup rules --------------------------------------------------------------------------------------


@pytest.mark.parametrize("hard", [UNAVAILABLE, MISCONFIGURED, CONTRACT])
@virtual
async def test_cleanup_clears_pending_state_of_that_tool_in_that_thread(hard: Exception) -> None:
    rt, _ = host(TRANSIENT, TRANSIENT, hard, retry=ONCE)
    rt.add(Scripted(TRANSIENT), id="weather", retry=ONCE)
    await rt.call("tool", thread="another")
    await say(rt)
    await say(rt, "weather")
    await say(rt, again=True)
    assert [offer.tool for offer in rt.threads[THREAD].offers] == ["weather"]
    assert [offer.tool for offer in rt.threads["another"].offers] == ["tool"]
    assert "Retry offer cleared for tool" in phrases(rt)


@pytest.mark.parametrize("hard", [UNAVAILABLE, MISCONFIGURED, CONTRACT])
@virtual
async def test_cleanup_clears_pending_state_of_the_workflow_around_it(hard: Exception) -> None:
    rt, _ = host(TRANSIENT, hard, retry=ONCE)

    @rt.tool
    async def workflow() -> Any:
        return (await rt.call("tool")).unwrap()

    await say(rt, "workflow")
    assert [offer.tool for offer in rt.threads[THREAD].offers] == ["workflow"]
    await say(rt, "workflow")
    assert rt.threads[THREAD].offers == []


@pytest.mark.parametrize("hard", [UNAVAILABLE, MISCONFIGURED, CONTRACT])
@virtual
async def test_cleanup_do_that_through_a_sub_agent_is_no_retry_of_that_tool(hard: Exception) -> None:
    rt, tool = host(TRANSIENT, hard, retry=ONCE)
    agent = Scripted("done another way")
    rt.add(agent, id="sub_agent")
    await say(rt, city="PAR")
    await say(rt, city="PAR")
    for name in ("tool", "sub_agent"):
        outcome = await rt.threads[THREAD].retry(name)
        assert outcome.fault is not None
        assert (outcome.fault.rule, outcome.attempts) == ("no_offer", 0)
    assert (tool.attempts, agent.attempts) == (2, 0)
    assert (await say(rt, "sub_agent")).value == "done another way"  # a call of its own is what it looks like


# --- Acceptance criteria ----------------------------------------------------------------------------------------------


@virtual
async def test_acceptance_missing_tools_produce_a_graceful_response_and_do_not_loop() -> None:
    rt = Runtime()
    rt.add(Scripted("sunny"), id="weather")
    for _ in range(10):
        async with rt.turn(thread=THREAD) as turn:
            turn.call("extension_that_is_not_there")
            turn.call("weather")
        assert turn.report.message.encode() == (
            b"Completed weather, but extension that is not there failed. " + NOT_AVAILABLE
        )
    assert [record["attempts"] for record in records(rt, "CallSucceeded")] == [1] * 10
    assert records(rt, "ToolError") == []


@virtual
async def test_acceptance_contract_errors_do_not_crash_the_bot() -> None:
    rt, _ = host(CONTRACT, "fine")
    first = await say(rt, message="hello")
    assert first.explanation.user.encode() == BROKE
    assert (await say(rt, message="still there?")).value == "fine"


@pytest.mark.parametrize("hard", [UNAVAILABLE, MISCONFIGURED, CONTRACT])
@virtual
async def test_acceptance_pending_state_does_not_linger_after_a_hard_failure_class(hard: Exception) -> None:
    rt, _ = host(TRANSIENT, hard, TRANSIENT, retry=ONCE)
    await say(rt)
    await rt.threads[THREAD].retry("tool")
    assert rt.threads[THREAD].offers == []


# --- Tests ------------------------------------------------------------------------------------------------------------


def test_tool_unavailable_classified_correctly_from_gateway_error_string() -> None:
    fault = classify(EXECUTE)
    assert (fault.category, fault.classification, fault.retryable) == ("tool_unavailable", "permanent", False)
    assert classify(APPEND).category == "internal_contract_bug"


@virtual
async def test_pending_state_cleared_for_that_lane() -> None:
    rt, _ = host(TRANSIENT, TRANSIENT, UNAVAILABLE, retry=ONCE)
    await rt.call("tool", thread=THREAD, tenant="acme")
    await rt.call("tool", thread=THREAD, tenant="bolt")
    await rt.call("tool", thread=THREAD, tenant="acme")
    assert rt.threads(THREAD, tenant="acme").offers == []
    assert len(rt.threads(THREAD, tenant="bolt").offers) == 1


@virtual
async def test_user_facing_response_produced_via_orchestrator() -> None:
    async def orchestrator(facts: Mapping[str, Any]) -> str:
        return f"I can’t do {facts['label']} here ({facts['category']})."

    rt = Runtime(explain=orchestrator)
    rt.add(Scripted(UNAVAILABLE), id="tool")
    assert (await say(rt)).explanation.user == "I can’t do tool here (tool_unavailable)."
    assert (await say(rt, "nowhere")).explanation.user == "I can’t do nowhere here (tool_unavailable)."


@virtual
async def test_the_default_stands_when_the_orchestrator_fails() -> None:
    def orchestrator(facts: Mapping[str, Any]) -> str:
        raise ConnectionError("no orchestrator")

    rt = Runtime(explain=orchestrator)
    rt.add(Scripted(UNAVAILABLE), id="tool")
    assert (await say(rt)).explanation.user.encode() == NOT_AVAILABLE


@virtual
async def test_the_turn_says_what_each_category_asks_for() -> None:
    rt = Runtime()
    errors = {"gone": UNAVAILABLE, "key": MISCONFIGURED, "down": TRANSIENT, "code": VALIDATION, "bug": CONTRACT}
    for tool, error in errors.items():
        rt.add(Scripted(error), id=tool, read_only=True)
    async with rt.turn() as turn:
        for tool in errors:
            turn.call(tool)
    asked = ["fix the setup of key.", "Trying down again", "For code I need a valid airport code."]
    for sentence in (NOT_AVAILABLE.decode(), BROKE.decode(), *asked):
        assert sentence in turn.report.message
