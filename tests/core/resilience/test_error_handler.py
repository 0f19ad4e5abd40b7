from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from failsoft.core.model.decision import Decision
from failsoft.core.model.fault import Code, Fault
from failsoft.core.resilience.error_handler import PERMANENT, RETRY, ErrorReport, decide, decision_fields, rebuild
from failsoft.core.resilience.policy import Policy, Then, When
from failsoft.core.resilience.recovery_memory import Evidence, Tally
from failsoft.observe.events import Event

DOWN = Fault(Code.UNAVAILABLE, "transient", "tool_transient", "none", "down", "it is down", "test")
WRONG = Fault(Code.INVALID_ARGUMENT, "permanent", "tool_validation", "none", "bad airport", "it stays bad", "test")
EXHAUSTED = ErrorReport(DOWN, "search", "search-1", 3, 2, "closed", None, "max attempts reached (3)", ())


def report(fault: Fault = DOWN, **changes: object) -> ErrorReport:
    return EXHAUSTED._replace(fault=fault, **changes)


# --- the order (R23) --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("facts", "decision"),
    [
        (
            {"retry_delay": 0.1, "alternatives": ("b",), "has_partial": True},
            Decision("retry", "Transient error + circuit closed + retries available", 0.1),
        ),
        (
            {"alternatives": ("b", "c"), "has_partial": True},
            Decision(
                "alternative_tool", "Transient error (max attempts reached (3)); alternative available", None, "b"
            ),
        ),
        (
            {"has_partial": True, "required": False},
            Decision("partial_success", "Transient error (max attempts reached (3)); a partial result is acceptable"),
        ),
        (
            {
                "attempt": 0,
                "breaker_state": "open",
                "fault": DOWN._replace(retry_after=12.0),
                "no_retry": "circuit open",
            },
            Decision("fail_gracefully", "Transient error (circuit open); no alternative", 12.0),
        ),
        (
            {"breaker_state": "half_open", "no_retry": "circuit open"},
            Decision("fail_gracefully", "Transient error (circuit open); no alternative"),
        ),
        ({"breaker_state": "open", "no_retry": "circuit open"}, Decision("escalate", "Transient error (circuit open)")),
        (
            {"breaker_state": "half_open", "no_retry": "circuit open", "admitted": True},
            Decision("escalate", "Transient error (circuit open)"),
        ),
        (
            {"breaker_state": "open", "no_retry": "circuit open", "admitted": False},
            Decision("fail_gracefully", "Transient error (circuit open); no alternative"),
        ),
        (
            {"attempt": 0, "fault": DOWN._replace(retry_after=3.0), "no_retry": "held back"},
            Decision("fail_gracefully", "Transient error (held back); no alternative", 3.0),
        ),
        ({"turn_left": 0.0}, Decision("fail_gracefully", "The turn's time is up")),
        (
            {"required": False},
            Decision("fail_gracefully", "Transient error (max attempts reached (3)); the call is optional"),
        ),
        ({}, Decision("escalate", "Transient error (max attempts reached (3))")),
        ({"fault": WRONG}, Decision("escalate", "Permanent error (no retry)")),
        ({"fault": WRONG, "breaker_state": "open"}, Decision("escalate", "Permanent error (no retry)")),
        (
            {"fault": WRONG, "alternatives": ("b",)},
            Decision("alternative_tool", "Permanent error (no retry); alternative available", None, "b"),
        ),
    ],
)
def test_the_order_of_strategies(facts, decision):
    assert decide(EXHAUSTED._replace(**facts)) == decision


# --- policies ---------------------------------------------------------------------------------------------------------


def policy(**then: object) -> Policy:
    return Policy(name="house rule", then=Then(**then))


@pytest.mark.parametrize("strategy", ["escalate", "fail_gracefully"])
def test_a_policy_can_forbid_retries_and_alternatives(strategy):
    made = decide(report(retry_delay=0.1, alternatives=("b",), policy=policy(strategy=strategy)))
    assert made.strategy == strategy
    assert made.reason == "Policy 'house rule': retries available"


def test_a_policy_can_ask_for_a_retry_with_its_delay():
    made = decide(report(retry_delay=5.0, alternatives=("b",), policy=policy(delay="5s")))
    assert (made.strategy, made.delay) == ("retry", 5.0)
    assert "house rule" in made.reason


def test_a_policy_can_ask_for_an_alternative_before_retries():
    book = policy(strategy="alternative_tool")
    assert decide(report(retry_delay=0.1, alternatives=("b", "c"), policy=book))[0::3] == ("alternative_tool", "b")
    named = policy(tool="c")
    assert decide(report(retry_delay=0.1, alternatives=("b", "c"), policy=named))[0::3] == ("alternative_tool", "c")


def test_a_policy_can_ask_for_the_partial_result():
    made = decide(report(retry_delay=0.1, has_partial=True, policy=policy(strategy="partial_success")))
    assert made.strategy == "partial_success"


@pytest.mark.parametrize(
    ("then", "asked"),
    [
        ({"strategy": "retry"}, "retry"),
        ({"tool": "d"}, "alternative_tool"),
        ({"strategy": "partial_success"}, "partial_success"),
    ],
)
def test_a_policy_that_cannot_be_followed_is_noted_and_the_default_order_applies(then, asked):
    made = decide(report(alternatives=("b",), policy=policy(**then)))
    assert (made.strategy, made.tool) == ("alternative_tool", "b")
    assert made.reason.endswith(f"policy 'house rule' asks for {asked}, which is not possible")


def test_an_alternative_that_is_not_there_is_not_followed():
    made = decide(report(policy=policy(strategy="alternative_tool")))
    assert made.strategy == "escalate"


def test_a_policy_with_only_a_message_decides_nothing():
    assert decide(report(policy=policy(message="Please call us."))) == decide(report())


# --- the memory is quoted ---------------------------------------------------------------------------------------------

KNOWN = Evidence(6, (("retry", Tally(6, 0, 0, 0.3)), ("tool:b", Tally(6, 6, 6, 0.1))))


def test_evidence_is_quoted():
    made = decide(report(alternatives=("b",), evidence=KNOWN))
    assert made.reason.endswith("; alternative available; the fallback worked 6 of 6 times")
    made = decide(report(WRONG, evidence=KNOWN))
    assert made.reason == f"{PERMANENT}; seen in 6 episodes; retries worked 0 of 6 times; b worked 6 of 6 times"


def test_evidence_about_another_tool_is_not_quoted():
    assert decide(report(alternatives=("c",), evidence=KNOWN)).reason.endswith("alternative available")


def test_a_retry_keeps_the_documents_words():
    assert decide(report(retry_delay=0.1, evidence=KNOWN)).reason == RETRY


# --- into an event and back -------------------------------------------------------------------------------------------

BOOK = (policy(strategy="escalate"), Policy(name="wait", when=When(attempt=2), then=Then(delay="1s")))
faults = st.builds(
    Fault,
    st.sampled_from(Code),
    st.sampled_from(["transient", "permanent"]),
    st.sampled_from(["tool_transient", "tool_validation"]),
    st.sampled_from(["none", "unknown", "happened"]),
    st.text(max_size=20),
    st.just("why"),
    st.just("rule"),
    st.none() | st.floats(0, 100),
    st.none() | st.integers(400, 599),
    st.sampled_from(["remote", "local", "words", "disputed", "stated"]),
    st.sampled_from(["remote", "words", "stated"]),
    st.none(),
)
reports = st.builds(
    ErrorReport,
    faults,
    st.just("search"),
    st.just("search-1"),
    st.integers(0, 5),
    st.integers(0, 4),
    st.sampled_from(["closed", "open", "half_open"]),
    st.none() | st.floats(0, 5),
    st.just("max attempts reached (3)"),
    st.lists(st.sampled_from("bcd"), max_size=2, unique=True).map(tuple),
    st.booleans(),
    st.sampled_from([None, True, False]),
    st.sampled_from([None, "turn-1"]),
    st.none() | st.floats(0, 10),
    st.sampled_from([None, "chat"]),
    st.sampled_from([None, "acme"]),
    st.sampled_from([None, *BOOK]),
    st.sampled_from([None, KNOWN]),
)


@given(reports)
def test_a_decision_can_be_reproduced_from_its_event(made):
    decision = decide(made)
    fields = decision_fields(made, decision)
    event = Event(1, "ToolError", 0.0, "search", "search-1", made.turn_id, fields)
    record = json.loads(json.dumps(event.to_dict()))
    again = rebuild(record, BOOK)
    assert again == made._replace(no_retry="" if made.retry_delay is not None else made.no_retry)
    assert decide(again) == decision


def test_default_values_are_left_out_of_the_event():
    fields = decision_fields(EXHAUSTED, decide(EXHAUSTED))
    assert not {"alternatives", "has_partial", "thread", "policy", "evidence", "retry_after", "turn_left"} & set(fields)


def test_a_report_is_plain_data_too():
    data = report(policy=BOOK[0], evidence=KNOWN).to_dict()
    assert json.loads(json.dumps(data)) == data | {"alternatives": []}
    assert data["policy"] == "house rule"
    assert data["evidence"]["seen"] == 6
