"""What must hold on every day, whatever went wrong. Each check gives the violations that it found, in words.

All of them hold the trace against the world's own ledger: who asked, what he was told, which attempts reached a tool,
and which effects they had.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator
from itertools import pairwise
from typing import Any

from tests.soak.day import Lived
from tests.soak.ledger import Asked, Attempt
from tests.soak.world import SPECS

from failsoft import Outcome

ENDS = {
    "CallSucceeded": "succeeded",
    "CallFailed": "failed",
    "LoopPrevented": "refused",
    "CallCancelled": "cancelled",
    "CallSkipped": "skipped",
    "CallLeft": "timed_out",
}
FINAL = ("escalate", "fail_gracefully")  # of a call that was never run, the decision about it is the end
STATUSES = {"succeeded", "failed", "cancelled", "skipped", "timed_out"}
Key = tuple[str | None, str, bool]  # turn, call, whether it was made by another one: those have numbers of their own
EPSILON = 0.002  # seconds: timestamps have milliseconds
BUSY = 0.5  # seconds for which blocking tools may keep a deadline from being noticed


def find_violations(lived: Lived) -> dict[str, list[str]]:
    """All checks, by name; those that found nothing too."""
    return {check.__name__: [*check(lived)] for check in CHECKS}


# -- no lost call ------------------------------------------------------------------------------------------------------


def lost_calls(lived: Lived) -> Iterator[str]:
    """Every call that was submitted has one outcome, and one end in the trace that says the same."""
    ends = _find_ends(lived.events)
    for key, found in ends.items():
        if len(found) != 1:
            yield f"call {key} ends {len(found)} times in the trace: {[kind for _, kind in found]}"
    unnamed: Counter[tuple[str, str]] = Counter()
    for asked in lived.ledger.asked.values():
        if len(asked.told) != 1:
            yield f"{asked.how} call {asked.token} of {asked.tool} was told {len(asked.told)} outcomes"
            continue
        status, key = _status(asked), _key(lived, asked)
        if key is None:
            unnamed[asked.tool, status] += 1
            continue
        found = ends.pop(key, None) or ends.pop((*key[:2], False), [])  # made by one that took the short way
        if [kind for _, kind in found] != [status]:
            yield f"{asked.how} call {key} of {asked.tool} was told {status!r}; the trace says {found}"
    for event in lived.events:
        if event["call_id"] is None and event["event_type"] == "CallRefused":
            unnamed[event["tool_id"], "refused"] -= 1
    unnamed.subtract(Counter(end for found in ends.values() for end in found))
    for (tool, status), count in unnamed.items():
        if count:
            yield f"{tool}: {abs(count)} calls {status} that {'the trace' if count > 0 else 'nobody'} knows of"


def _find_ends(events: list[dict[str, Any]]) -> dict[Key, list[tuple[str, str]]]:
    """For each call the ends that the trace has for it, as (tool that was asked for, status)."""
    by_call: defaultdict[Key, list[dict[str, Any]]] = defaultdict(list)
    for event in events:
        if event["call_id"] is not None:
            by_call[event["turn_id"], event["call_id"], "parent_id" in event].append(event)
    ends = {}
    for key, all_of_it in by_call.items():
        hard = [event for event in all_of_it if event["event_type"] in ENDS]
        left = bool(hard) and hard[0]["event_type"] == "CallLeft"
        if len(hard) > 1 and (left or all_of_it[-1]["event_type"] == "LateResult"):
            del hard[1]  # its turn went on without it; what became of it then is told as well (R7)
        if not hard:
            hard = [event for event in all_of_it if event.get("decision") in FINAL]
        first = all_of_it[0]["tool_id"]
        ends[key] = [(event.get("primary", first), ENDS.get(event["event_type"], "refused")) for event in hard]
    return ends


def _status(asked: Asked) -> str:
    told = asked.told[0]
    if isinstance(told, Outcome):
        return "refused" if told.status == "failed" and not told.attempts else told.status
    return "cancelled" if isinstance(told, BaseException) else "succeeded"


def _key(lived: Lived, asked: Asked) -> Key | None:
    """How the trace calls it, if anybody outside can know."""
    if asked.call_id is not None:
        return asked.turn_id, asked.call_id, False
    told = asked.told[0]
    if not isinstance(told, Outcome) or told.id.endswith("-0"):  # the refusal that all callers of an open circuit share
        return None
    parent = None if asked.parent is None else lived.ledger.asked[asked.parent]
    if parent is None:
        return asked.turn_id, told.id, False
    return None if parent.tokenless else (parent.turn_id, told.id, True)  # in a turn or, tried again, in none


def wrong_values(lived: Lived) -> Iterator[str]:
    """A value goes to the call that it was made for, and an outcome counts the attempts that were made."""
    attempts = lived.ledger.by_token()
    for asked in lived.ledger.asked.values():
        for told in asked.told:
            value = told.value if isinstance(told, Outcome) else told
            if isinstance(value, dict) and value["token"] != asked.token and not asked.tokenless:
                yield f"{asked.token} was given the value of {value['token']}"
            if isinstance(told, Outcome) and told.status in ("succeeded", "failed") and not asked.tokenless:
                made = len(attempts.get(asked.token, []))
                if told.attempts != made:
                    yield f"{asked.token} of {asked.tool}: {told.attempts} attempts were told, {made} were made"


# -- no double effect --------------------------------------------------------------------------------------------------


def double_effects(lived: Lived) -> Iterator[str]:
    """An unsafe write happens at most once, and is not retried after an attempt that may have made it."""
    ledger = lived.ledger
    effects: defaultdict[str, list[tuple[str, float]]] = defaultdict(list)
    for token, found in ledger.effects.items():
        asked = ledger.asked.get(token)
        if asked is not None and SPECS[asked.tool].writes:
            effects[_outermost(lived, asked)] += found
    for token, found in effects.items():
        if len(found) > 1:
            steps = [(attempt.tool, attempt.step) for attempt in ledger.by_token()[token]]
            yield f"{token} of {ledger.asked[token].tool} took effect {len(found)} times: {found}; attempts: {steps}"
    for token, attempts in ledger.by_token().items():
        for one, other in pairwise(attempts):
            spec = SPECS[one.tool]
            if spec.writes and not spec.keyed and not one.is_clean:
                yield f"{token}: {one.tool} ended in {one.step!r}, and {other.tool} was tried after it"
    for token, keys in ledger.keys.items():
        if len(keys) > 1:
            yield f"{token} was tried with {len(keys)} idempotency keys"


def _outermost(lived: Lived, asked: Asked) -> str:
    parent = None if asked.parent is None else lived.ledger.asked[asked.parent]
    return asked.token if parent is None or not SPECS[parent.tool].writes else _outermost(lived, parent)


# -- no stuck circuit --------------------------------------------------------------------------------------------------


def stuck_circuits(lived: Lived) -> Iterator[str]:
    """A circuit refuses only after a failure within its open time, or beside a probe; well tools are used again."""
    for tool, (statuses, state) in lived.last.items():
        if statuses != ["succeeded", "succeeded"] or state != "closed":
            yield f"{tool} is well again, but its last calls {statuses} and its circuit is {state}"
    attempts = lived.ledger.by_tool()
    for event, at in zip(lived.events, lived.times, strict=True):
        refused = event["event_type"] == "CallRefused" and event.get("rule", "circuit_open") == "circuit_open"
        if refused and not any(_justifies(attempt, at) for attempt in attempts.get(event["tool_id"], ())):
            yield f"{event['tool_id']} was refused at {at:.3f} for no reason (event {event['seq']})"


def _justifies(attempt: Attempt, at: float) -> bool:
    """Whether a circuit may be open at this time on account of this attempt."""
    if attempt.started > at + EPSILON:
        return False
    spec = SPECS[attempt.tool]
    ended = attempt.started + spec.timeout + BUSY
    if attempt.ended is not None and attempt.step != "stubborn":
        ended = attempt.ended
    if at <= ended + EPSILON:
        return True  # it is the probe, or one of those that kept it waiting
    opens = float(spec.options.get("breaker", {}).get("timeout", "30s").removesuffix("s"))
    return _failed(attempt, ended - attempt.started, spec.timeout) and at <= ended + opens + EPSILON


def _failed(attempt: Attempt, lasted: float, timeout: float) -> bool:
    """In a way that counts against the tool: not a permanent error, and not because its caller left."""
    if attempt.result == "cancelled":
        return lasted >= 2.0 - EPSILON  # no tool has a shorter timeout
    if attempt.result == "value":
        return lasted >= timeout - EPSILON or attempt.step == "part"  # too late
    return attempt.step not in ("invalid", "auth", "missing", "garbled")


# -- the retry budget --------------------------------------------------------------------------------------------------


def overspent_budgets(lived: Lived) -> Iterator[str]:
    """R25: 90 tokens a tool at most; a retry costs one, a success brings 0.1, ten seconds bring one."""
    tokens: defaultdict[str, float] = defaultdict(lambda: 90.0)
    counted: defaultdict[str, float] = defaultdict(float)
    for event, at in zip(lived.events, lived.times, strict=True):
        tool = event["tool_id"]
        if event["event_type"] == "CallSucceeded":
            tokens[tool] += 0.1
        elif event["event_type"] == "ToolError" and event["decision"] == "retry":
            tokens[tool] = min(90.0, tokens[tool] + 0.1 * (at - counted[tool]))
            counted[tool] = at
            if tokens[tool] < 1 - EPSILON:
                yield f"{tool} was retried at {at:.3f} with {tokens[tool]:.3f} tokens (event {event['seq']})"
            tokens[tool] -= 1
    for token, attempts in lived.ledger.by_token().items():
        for tool, count in Counter(attempt.tool for attempt in attempts).items():
            if count > 5 and tool != "stuck" and not lived.ledger.asked[token].tokenless:
                yield f"{token}: {count} attempts of {tool} in one call"


# -- turns -------------------------------------------------------------------------------------------------------------


def disordered_turns(lived: Lived) -> Iterator[str]:
    """A turn's report has every call that was submitted, in that order, each at an end."""
    for turn in lived.ledger.turns:
        reported = turn.reported or []
        same = len(reported) == len(turn.submitted) and all(
            not id or id == other for id, other in zip(turn.submitted, reported, strict=True)
        )
        if not same:
            yield f"{turn.id}: submitted {turn.submitted}, reported {turn.reported}"
        if {*turn.statuses} != {*reported} or not {*turn.statuses.values()} <= STATUSES:
            yield f"{turn.id}: statuses {turn.statuses}"


def unkept_turns(lived: Lived) -> Iterator[str]:
    """The store holds everything it has acknowledged."""
    for turn in lived.ledger.turns:
        if turn.acknowledged and turn.id not in lived.stored:
            yield f"{turn.id} was acknowledged, and the store does not have its end"


CHECKS = (
    lost_calls,
    wrong_values,
    double_effects,
    stuck_circuits,
    overspent_budgets,
    disordered_turns,
    unkept_turns,
)
