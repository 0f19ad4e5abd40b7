"""S-layers, statement by statement: retries by code, ordered fallbacks, cooldown; durations, error codes, telemetry."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest
from tests.fakes import Scripted, records, virtual

from failsoft import Code, ManifestError, Runtime, classify

RETRIES = [{"maxAttempts": 3, "handleErrors": ["Unavailable", "DeadlineExceeded", "Internal"]}]
FALLBACK = {"nodeId": "fallback_completion", "handleErrors": ["Unavailable", "Internal", "DeadlineExceeded"]}
COOLDOWN = {"minConsecutiveFailures": 2, "cooldownDuration": "10s"}
ADVANCED = {  # the document's last example, as it stands there
    "retries": [
        {"maxAttempts": 2, "handleErrors": ["ErrorStatusCode.Unavailable"]},
        {"maxAttempts": 3, "handleErrors": ["ErrorStatusCode.DeadlineExceeded"]},
    ],
    "fallbacks": [
        {
            "nodeId": "primary_fallback",
            "handleErrors": ["ErrorStatusCode.Unavailable", "ErrorStatusCode.Internal"],
            "cooldown": {"minConsecutiveFailures": 3, "cooldownDuration": "20s"},
        },
        {"nodeId": "secondary_fallback", "handleErrors": []},
    ],
    "cooldown": {"minConsecutiveFailures": 2, "cooldownDuration": 30000},
}
RETRYABLE = "UNAVAILABLE DEADLINE_EXCEEDED INTERNAL RESOURCE_EXHAUSTED UNKNOWN ABORTED DATA_LOSS".split()
FINAL = "INVALID_ARGUMENT NOT_FOUND PERMISSION_DENIED UNAUTHENTICATED FAILED_PRECONDITION OUT_OF_RANGE".split()


class StatusError(Exception):
    """An error that says its own code."""

    def __init__(self, code: str) -> None:
        super().__init__(code)
        self.code = code


def fails(*codes: str, then: Any = None) -> Scripted:
    """A tool that fails with these codes, one an attempt; then it gives a value, or keeps failing with the last."""
    steps: list[Any] = [StatusError(code) for code in codes]
    return Scripted(*steps, *([] if then is None else [then]))


def runtime(handling: dict[str, Any], **tools: Scripted) -> Runtime:
    """``completion`` with this error handling, and other tools beside it."""
    rt = Runtime({"tools": {"completion": {"errorHandling": handling, "readOnly": True}}})
    for id, tool in tools.items():
        rt.add(tool, id=id)
    return rt


def state(rt: Runtime, tool: str = "completion") -> str:
    return rt.health(tool).state


# --- 1. retries -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("code", ["UNAVAILABLE", "DEADLINE_EXCEEDED", "INTERNAL"])
@virtual
async def test_basic_retry_up_to_3_times_on_unavailable_deadline_exceeded_internal(code: str) -> None:
    completion = fails(code)
    outcome = await runtime({"retries": RETRIES}, completion=completion).call("completion")
    assert (outcome.status, outcome.attempts, completion.attempts) == ("failed", 3, 3)


@pytest.mark.parametrize("code", FINAL)
@virtual
async def test_basic_retry_non_retryable_errors_fail_immediately(code: str) -> None:
    completion = fails(code)
    outcome = await runtime({"retries": RETRIES}, completion=completion).call("completion")
    assert (outcome.status, completion.attempts, outcome.duration) == ("failed", 1, 0)


@virtual
async def test_basic_retry_happens_within_a_single_execution() -> None:
    completion = fails("UNAVAILABLE", "UNAVAILABLE", then="blue")
    rt = runtime({"retries": RETRIES}, completion=completion)
    outcome = await rt.call("completion")
    assert (outcome.value, outcome.attempts) == ("blue", 3)


@virtual
async def test_basic_retry_is_not_stateful() -> None:
    completion = fails("UNAVAILABLE", "UNAVAILABLE", "blue", "UNAVAILABLE", "UNAVAILABLE")
    completion.steps = (*completion.steps[:2], "blue", *completion.steps[3:], "green")
    rt = runtime({"retries": RETRIES}, completion=completion)
    assert [(await rt.call("completion")).value for _ in range(2)] == ["blue", "green"]  # each has its own three


@virtual
async def test_basic_retry_no_listed_code_no_retry() -> None:
    completion = fails("RESOURCE_EXHAUSTED")  # retryable by default, but there is a list and it is not on it
    await runtime({"retries": RETRIES}, completion=completion).call("completion")
    assert completion.attempts == 1


@virtual
async def test_basic_retry_a_list_beats_the_classification() -> None:
    completion = fails("NOT_FOUND", then="there now")
    handling = {"retries": [{"maxAttempts": 2, "handleErrors": ["NotFound"]}]}
    assert (await runtime(handling, completion=completion).call("completion")).value == "there now"


# --- 2. fallbacks -----------------------------------------------------------------------------------------------------


@virtual
async def test_fallback_routing_when_the_primary_fails() -> None:
    backup = Scripted("a joke")
    rt = runtime({"fallbacks": [FALLBACK], "retries": RETRIES}, completion=fails("INTERNAL"))
    rt.add(backup, id="fallback_completion")
    outcome = await rt.call("completion")
    assert (outcome.value, outcome.via, backup.attempts) == ("a joke", "fallback_completion", 1)


@virtual
async def test_fallback_routing_all_retries_come_first() -> None:
    completion = fails("INTERNAL")
    rt = runtime({"fallbacks": [FALLBACK], "retries": RETRIES}, completion=completion)
    rt.add(Scripted("a joke"), id="fallback_completion")
    assert (await rt.call("completion")).attempts == 4
    assert completion.attempts == 3


@pytest.mark.parametrize(("code", "routed"), [("UNAVAILABLE", True), ("DEADLINE_EXCEEDED", True), ("NOT_FOUND", False)])
@virtual
async def test_fallback_routing_is_by_error_code(code: str, routed: bool) -> None:
    rt = runtime({"fallbacks": [FALLBACK]}, completion=fails(code), fallback_completion=Scripted("a joke"))
    assert (await rt.call("completion")).via == ("fallback_completion" if routed else None)


@virtual
async def test_fallback_routing_results_come_under_the_primary_id() -> None:
    rt = runtime({"fallbacks": [FALLBACK]}, completion=fails("INTERNAL"), fallback_completion=Scripted("a joke"))
    outcome = await rt.call("completion", {}, id="the joke")
    assert (outcome.id, outcome.tool, outcome.value) == ("the joke", "completion", "a joke")
    async with rt.turn() as turn:
        turn.call("completion")
    assert turn.report.results == {"completion-1": "a joke"}


@virtual
async def test_fallback_routing_passes_the_same_arguments_on() -> None:
    backup = Scripted("a joke")
    rt = runtime({"fallbacks": [FALLBACK]}, completion=fails("INTERNAL"), fallback_completion=backup)
    await rt.call("completion", {"prompt": "Tell me a joke"})
    assert backup.arguments == [{"prompt": "Tell me a joke"}]


@virtual
async def test_fallback_routing_health_persists_across_executions() -> None:
    handling = {"fallbacks": [{**FALLBACK, "cooldown": COOLDOWN}]}
    backup = fails("NOT_FOUND", "UNAVAILABLE", "UNAVAILABLE")
    rt = runtime(handling, completion=fails("INTERNAL"))
    rt.add(backup, id="fallback_completion", retry={"maxAttempts": 1})
    for _ in range(5):
        await rt.call("completion")
    assert backup.attempts == 3  # one that does not count, two that do; then it is left out


@virtual
async def test_fallback_routing_unknown_tools_are_skipped() -> None:
    handling = {"fallbacks": [{"nodeId": "nowhere"}, {"nodeId": "there"}]}
    rt = runtime(handling, completion=fails("INVALID_ARGUMENT"), there=Scripted("here"))
    assert (await rt.call("completion")).via == "there"


# --- 3. circuit breaker, cooldown -------------------------------------------------------------------------------------


@virtual
async def test_cooldown_opens_after_n_consecutive_failures_of_executions() -> None:
    completion = fails("UNAVAILABLE")
    rt = runtime({"cooldown": COOLDOWN, "retries": RETRIES}, completion=completion)
    await rt.call("completion")
    assert (state(rt), completion.attempts) == ("closed", 3)  # three attempts, one execution
    await rt.call("completion")
    assert (state(rt), completion.attempts) == ("open", 6)


@virtual
async def test_cooldown_counts_only_consecutive_failures() -> None:
    completion = Scripted(StatusError("UNAVAILABLE"), "blue", StatusError("UNAVAILABLE"))
    rt = runtime({"cooldown": COOLDOWN}, completion=completion)
    once = {"maxAttempts": 1}
    for _ in range(3):
        await rt.call("completion", {}, retry=once)
    assert (state(rt), rt.health("completion").failure_count) == ("closed", 1)


@virtual
async def test_cooldown_skips_the_node_and_routes_to_its_fallback() -> None:
    completion, backup = fails("UNAVAILABLE"), Scripted("by other means")
    rt = runtime({"cooldown": COOLDOWN, "fallbacks": [FALLBACK]}, completion=completion, fallback_completion=backup)
    once = {"maxAttempts": 1}
    values = [(await rt.call("completion", {}, retry=once)).value for _ in range(4)]
    assert values == ["by other means"] * 4
    assert (completion.attempts, backup.attempts) == (2, 4)


@virtual
async def test_cooldown_without_a_fallback_refuses_at_once_and_says_when() -> None:
    completion = fails("UNAVAILABLE")
    rt = runtime({"cooldown": COOLDOWN}, completion=completion)
    for _ in range(2):
        await rt.call("completion", {}, retry={"maxAttempts": 1})
    outcome = await rt.call("completion")
    assert outcome.fault is not None
    assert (completion.attempts, outcome.attempts, outcome.duration) == (2, 0, 0)
    assert outcome.fault.retry_after == pytest.approx(10)


@virtual
async def test_closed_the_node_executes_normally() -> None:
    rt = runtime({"cooldown": COOLDOWN}, completion=Scripted("blue"))
    assert (await rt.call("completion")).value == "blue"
    assert state(rt) == "closed"


@virtual
async def test_open_becomes_half_open_when_the_cooldown_expires() -> None:
    rt = runtime({"cooldown": COOLDOWN, "retries": RETRIES}, completion=fails("UNAVAILABLE"))
    for _ in range(2):
        await rt.call("completion")
    await asyncio.sleep(9.9)
    assert state(rt) == "open"
    await asyncio.sleep(0.2)
    assert state(rt) == "half_open"


@virtual
async def test_half_open_one_attempt_is_allowed() -> None:
    started = asyncio.Event()
    go_on = asyncio.Event()
    runs = 0

    async def completion() -> str:
        nonlocal runs
        runs += 1
        if runs <= 2:
            raise StatusError("UNAVAILABLE")
        started.set()
        await go_on.wait()
        return "blue"

    rt = Runtime()
    rt.add(completion, errorHandling={"cooldown": COOLDOWN}, retry={"maxAttempts": 1})
    for _ in range(2):
        await rt.call("completion")
    await asyncio.sleep(10)
    probe = asyncio.ensure_future(rt.call("completion"))
    await started.wait()
    others = [await rt.call("completion") for _ in range(5)]
    assert {outcome.status for outcome in others} == {"failed"}
    assert runs == 3
    go_on.set()
    assert (await probe).value == "blue"


@virtual
async def test_half_open_a_failed_attempt_is_not_repeated() -> None:
    retries = [{"maxAttempts": 4, "handleErrors": ["Unavailable"]}]
    completion = fails("UNAVAILABLE")
    rt = runtime({"cooldown": COOLDOWN, "retries": retries}, completion=completion)
    for _ in range(2):
        await rt.call("completion")
    assert (state(rt), completion.attempts) == ("open", 8)
    await asyncio.sleep(10)
    assert (await rt.call("completion")).status == "failed"
    assert (state(rt), completion.attempts) == ("open", 9)


@virtual
async def test_half_open_success_resets_to_closed() -> None:
    completion = fails("UNAVAILABLE", "UNAVAILABLE", then="blue")
    rt = runtime({"cooldown": COOLDOWN}, completion=completion)
    for _ in range(2):
        await rt.call("completion", {}, retry={"maxAttempts": 1})
    await asyncio.sleep(10)
    assert (await rt.call("completion")).value == "blue"
    assert (state(rt), rt.health("completion").failure_count) == ("closed", 0)


@virtual
async def test_half_open_failure_goes_back_to_open() -> None:
    completion = fails("UNAVAILABLE")
    rt = runtime({"cooldown": COOLDOWN}, completion=completion)
    for _ in range(2):
        await rt.call("completion", {}, retry={"maxAttempts": 1})
    await asyncio.sleep(10)
    await rt.call("completion", {}, retry={"maxAttempts": 1})
    assert (state(rt), completion.attempts) == ("open", 3)
    assert rt.health("completion").retry_after == pytest.approx(10)  # the full time again


# --- 4. combined ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("code", "attempts"), [("UNAVAILABLE", 2), ("DEADLINE_EXCEEDED", 3), ("INTERNAL", 1)])
@virtual
async def test_combined_different_retry_strategies_per_error_type(code: str, attempts: int) -> None:
    completion = fails(code)
    await runtime(ADVANCED, completion=completion).call("completion")
    assert completion.attempts == attempts


@virtual
async def test_combined_each_retry_strategy_has_its_own_count() -> None:
    completion = fails("DEADLINE_EXCEEDED", "UNAVAILABLE", "DEADLINE_EXCEEDED", "UNAVAILABLE")
    await runtime(ADVANCED, completion=completion).call("completion")
    assert completion.attempts == 4  # the second UNAVAILABLE is that entry's last


@virtual
async def test_combined_the_fallback_chain_is_ordered() -> None:
    primary, secondary = fails("INVALID_ARGUMENT"), Scripted("second")
    rt = runtime(ADVANCED, completion=fails("INTERNAL"), primary_fallback=primary, secondary_fallback=secondary)
    outcome = await rt.call("completion")
    assert (primary.attempts, secondary.attempts, outcome.via) == (1, 1, "secondary_fallback")
    used = [record["alternative"] for record in records(rt, "FallbackUsed")]
    assert used == ["primary_fallback", "secondary_fallback"]


@virtual
async def test_combined_empty_handle_errors_catch_all() -> None:
    primary = Scripted("first")
    rt = runtime(
        ADVANCED, completion=fails("NOT_FOUND"), primary_fallback=primary, secondary_fallback=Scripted("second")
    )
    assert (await rt.call("completion")).via == "secondary_fallback"
    assert primary.attempts == 0


@virtual
async def test_combined_a_fallback_has_its_own_cooldown() -> None:
    primary = fails("UNAVAILABLE")
    rt = runtime(ADVANCED, completion=fails("INTERNAL"), secondary_fallback=Scripted("second"))
    rt.add(primary, id="primary_fallback", retry={"maxAttempts": 1})
    for _ in range(5):
        assert (await rt.call("completion")).via == "secondary_fallback"
    assert primary.attempts == 3
    assert state(rt, "primary_fallback") == "closed"  # it rests as this tool's fallback, not for others
    await asyncio.sleep(19)
    await rt.call("completion")
    assert primary.attempts == 3
    await asyncio.sleep(2)
    await rt.call("completion")
    assert primary.attempts == 4


@virtual
async def test_combined_a_fallback_has_its_own_error_handling() -> None:
    handling = {
        "fallbacks": [
            {"nodeId": "second", "errorHandling": {"retries": [{"maxAttempts": 4, "handleErrors": ["Aborted"]}]}}
        ]
    }
    second = fails("ABORTED")
    rt = runtime(handling, completion=fails("INVALID_ARGUMENT"))
    rt.add(second, id="second", retry={"maxAttempts": 2}, breaker={"failureThreshold": 100})
    await rt.call("completion")
    assert second.attempts == 4
    await rt.call("second")
    assert second.attempts == 6  # by itself it is as it says itself


@virtual
async def test_combined_a_fallback_brings_its_own_fallbacks() -> None:
    rt = runtime({"fallbacks": [{"nodeId": "second"}]}, completion=fails("INVALID_ARGUMENT"), third=Scripted("third"))
    rt.add(fails("INVALID_ARGUMENT"), id="second", errorHandling={"fallbacks": [{"nodeId": "third"}]})
    assert (await rt.call("completion")).via == "third"


@virtual
async def test_combined_in_cooldown_the_error_that_opened_the_circuit_chooses_the_fallback() -> None:
    primary = Scripted("first")
    rt = runtime(
        ADVANCED, completion=fails("DEADLINE_EXCEEDED"), primary_fallback=primary, secondary_fallback=Scripted("second")
    )
    vias = [(await rt.call("completion")).via for _ in range(3)]
    assert state(rt) == "open"
    assert vias == ["secondary_fallback"] * 3  # the refusal itself is UNAVAILABLE, which the first would take
    assert primary.attempts == 0


@virtual
async def test_combined_during_cooldown_the_fallback_is_used_directly() -> None:
    completion = fails("UNAVAILABLE")
    rt = runtime(ADVANCED, completion=completion, primary_fallback=Scripted("first"))
    for _ in range(2):
        await rt.call("completion")
    outcome = await rt.call("completion")
    assert (outcome.via, outcome.attempts, outcome.duration) == ("primary_fallback", 1, 0)
    assert completion.attempts == 4


@virtual
async def test_combined_health_is_tracked_across_executions_and_turns() -> None:
    rt = runtime(ADVANCED, completion=fails("UNAVAILABLE"))
    for _ in range(2):
        async with rt.turn() as turn:
            turn.call("completion")
    assert state(rt) == "open"


# --- durations --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "number"), [("500ms", 500), ("10s", 10_000), ("5m", 300_000), ("2h", 7_200_000), ("1m", 60_000)]
)
@virtual
async def test_duration_text_and_number_are_equivalent(text: str, number: int) -> None:
    for written in (text, number):
        handling = {"cooldown": {"minConsecutiveFailures": 1, "cooldownDuration": written}}
        rt = runtime(handling, completion=fails("INTERNAL"))
        await rt.call("completion", {}, retry={"maxAttempts": 1})
        assert rt.health("completion").retry_after == pytest.approx(number / 1000)


@pytest.mark.parametrize("wrong", ["10", "", "10 parsecs", -1, 0, float("nan"), True, None])
def test_duration_anything_else_is_refused(wrong: object) -> None:
    handling = {"cooldown": {"minConsecutiveFailures": 1, "cooldownDuration": wrong}}
    with pytest.raises(ManifestError, match="cooldownDuration"):
        runtime(handling)


# --- error codes ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("code", RETRYABLE)
@virtual
async def test_error_codes_retryable_by_default(code: str) -> None:
    tool = fails(code, then="blue")
    rt = Runtime()
    rt.add(tool, id="completion", readOnly=True)
    assert (await rt.call("completion")).value == "blue"
    assert classify(StatusError(code)).retryable


@pytest.mark.parametrize("code", FINAL)
@virtual
async def test_error_codes_not_retryable_by_default(code: str) -> None:
    tool = fails(code, then="blue")
    rt = Runtime()
    rt.add(tool, id="completion", readOnly=True)
    assert (await rt.call("completion")).status == "failed"
    assert not classify(StatusError(code)).retryable


@pytest.mark.parametrize("code", [*RETRYABLE, *FINAL])
def test_error_codes_are_an_enum_in_either_spelling(code: str) -> None:
    camel = code.title().replace("_", "")
    assert Code(camel) is Code(f"ErrorStatusCode.{camel}") is Code(code) is Code[code]
    for written in (camel, code, Code[code]):
        assert classify(StatusError(written)).code is Code[code]
        Runtime().add(Scripted(), id="x", errorHandling={"retries": [{"maxAttempts": 2, "handleErrors": [written]}]})


# --- how it is written ------------------------------------------------------------------------------------------------

SNAKE = {
    "retries": [
        {"max_attempts": 2, "handle_errors": ["UNAVAILABLE"]},
        {"max_attempts": 3, "handle_errors": [Code.DEADLINE_EXCEEDED]},
    ],
    "fallbacks": [
        {
            "tool": "primary_fallback",
            "handle_errors": ["UNAVAILABLE", "INTERNAL"],
            "cooldown": {"min_consecutive_failures": 3, "cooldown_duration": 20_000},
        },
        {"tool": "secondary_fallback"},
    ],
    "cooldown": {"min_consecutive_failures": 2, "cooldown_duration": "30s"},
}
YAML = """
tools:
  completion:
    errorHandling:
      retries:
        - {maxAttempts: 2, handleErrors: [Unavailable]}
        - {maxAttempts: 3, handleErrors: [DeadlineExceeded]}
      fallbacks:
        - nodeId: primary_fallback
          handleErrors: [Unavailable, Internal]
          cooldown: {minConsecutiveFailures: 3, cooldownDuration: '20s'}
        - nodeId: secondary_fallback
          handleErrors: []
      cooldown:
        minConsecutiveFailures: 2
        cooldownDuration: 30000
"""


def test_camel_case_snake_case_yaml_and_python_say_the_same(tmp_path: Path) -> None:
    manifest = tmp_path / "failsoft.yaml"
    manifest.write_text(YAML)
    made = []
    for rt, options in (
        (Runtime(), {"errorHandling": ADVANCED}),
        (Runtime(), {"error_handling": SNAKE}),
        (Runtime({"tools": {"completion": {"errorHandling": ADVANCED}}}), {}),
        (Runtime(manifest), {}),
    ):
        tool: Any = rt.add(Scripted("blue"), id="completion", **options)
        made.append(tool.__failsoft__.options)
    assert made[1:] == made[:1] * 3
    assert made[0].breaker.count == "calls"


def test_fallback_cycles_are_refused_within_code() -> None:
    rt = Runtime()
    rt.add(Scripted(), id="one", fallbacks=["two"])
    rt.add(Scripted(), id="two", fallbacks=["three"])
    with pytest.raises(ManifestError, match="three → one → two → three|one → two → three → one"):
        rt.add(Scripted(), id="three", fallbacks=["one"])
    assert rt.tools == ("one", "two")


def test_fallback_cycles_are_refused_between_code_and_manifest() -> None:
    rt = Runtime({"tools": {"one": {"fallbacks": ["two"]}}})
    with pytest.raises(ManifestError, match="one → two → one|two → one → two"):
        rt.add(Scripted(), id="two", fallbacks=["one"])


def test_a_tool_is_not_its_own_fallback() -> None:
    with pytest.raises(ManifestError, match="one → one"):
        Runtime().add(Scripted(), id="one", fallbacks=["one"])


# --- best practices, monitoring -----------------------------------------------------------------------------------------


@virtual
async def test_best_practice_not_idempotent_operations_are_not_retried_while_their_effect_is_unknown() -> None:
    tool = fails("DEADLINE_EXCEEDED")
    rt = Runtime()
    rt.add(tool, id="pay", idempotent=False, errorHandling={"retries": RETRIES, "fallbacks": [{"nodeId": "other"}]})
    rt.add(Scripted("paid twice"), id="other")
    outcome = await rt.call("pay")
    assert (outcome.status, tool.attempts) == ("failed", 1)
    assert outcome.fault is not None
    assert outcome.fault.effect == "unknown"


@virtual
async def test_monitoring_retry_attempts_success_rates_fallbacks_and_recovery_times() -> None:
    completion = fails("UNAVAILABLE", "UNAVAILABLE", "blue", then=StatusError("INTERNAL"))
    completion.steps = (*completion.steps[:2], "blue", StatusError("INTERNAL"))
    rt = runtime({"retries": [{"maxAttempts": 3, "handleErrors": ["Unavailable"]}], "fallbacks": [FALLBACK]})
    rt.add(completion, id="completion")
    rt.add(Scripted("a joke"), id="fallback_completion")
    await rt.call("completion")
    await rt.call("completion")
    figures = rt.metrics("completion")
    assert (figures["retry_count"], figures["retry_success_rate"], figures["fallback_count"]) == (2, 50.0, 1)
    assert figures["recovery_seconds"] == pytest.approx(0.15, rel=0.1)  # 0.3 by retries, 0 by the fallback


@virtual
async def test_monitoring_circuit_breaker_transitions_can_be_listened_to() -> None:
    heard: list[str] = []
    rt = runtime({"cooldown": COOLDOWN}, completion=fails("UNAVAILABLE", "UNAVAILABLE", then="blue"))
    rt.subscribe(lambda event: heard.append(event.event_type) if "Circuit" in event.event_type else None)
    for _ in range(2):
        await rt.call("completion", {}, retry={"maxAttempts": 1})
    await asyncio.sleep(10)
    await rt.call("completion")
    await rt.flush()
    assert heard == ["CircuitOpened", "CircuitHalfOpened", "CircuitClosed"]
