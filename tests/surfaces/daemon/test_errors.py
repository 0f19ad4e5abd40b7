"""POST /v1/errors and /v1/outcomes: decisions about errors of executors elsewhere."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from tests.fakes import real

from failsoft import Decision, ErrorReport, Fault, decide
from failsoft.core.model.fault import Code
from failsoft.surfaces.daemon import error_reading, reported_tools

MANIFEST = {
    "tools": {
        "flight_search": {"fallbacks": ["flight_search_backup"], "retry": {"jitter_percent": 0}},
        "flight_search_backup": {"read_only": True},
        "pay": {"idempotent": False},
    }
}


@real
async def test_a_text_is_enough_to_get_a_decision(open_daemon: Any) -> None:
    async with open_daemon() as asked:
        answer = await asked.post("/v1/errors", {"tool": "flight_search", "error": "Connection timeout"}, "reporter")
        assert answer.status_code == 200
        data = answer.json()
        assert (data["strategy"], data["reason"]) == ("retry", "Transient error + circuit closed + retries available")
        assert 0.09 <= data["delay"] <= 0.11
        assert data["circuit"]["state"] == "closed"
        assert data["fault"]["classification"] == "transient"


@real
async def test_details_decide_more_exactly_than_words(open_daemon: Any) -> None:
    async with open_daemon() as asked:
        details = {"message": "slow down", "status": 429, "headers": {"Retry-After": "3"}, "type": "HTTPError"}
        data = (await asked.post("/v1/errors", {"tool": "get_price", "error": details})).json()
        assert (data["strategy"], data["delay"], data["fault"]["http_status"]) == ("retry", 3.0, 429)
        refused = {"message": "fetch failed", "code": "ECONNREFUSED"}
        data = (await asked.post("/v1/errors", {"tool": "get_price", "error": refused})).json()
        assert data["fault"]["code"] == "UNAVAILABLE"


@real
async def test_attempts_of_a_call_are_counted_until_none_remains(open_daemon: Any) -> None:
    async with open_daemon({"tools": {"get_x": {"retry": {"max_attempts": 3, "jitter_percent": 0}}}}) as asked:
        made = [
            (await asked.post("/v1/errors", {"tool": "get_x", "error": "503", "call_id": "c1"})).json()
            for _ in range(3)
        ]
        assert [each["attempt"] for each in made] == [1, 2, 3]
        assert [each["strategy"] for each in made] == ["retry", "retry", "escalate"]
        assert [each["delay"] for each in made] == [0.1, 0.2, None]


@real
async def test_attempts_that_were_not_reported_count_for_a_list_of_retries(open_daemon: Any) -> None:
    listed = {"retries": [{"max_attempts": 3, "handle_errors": ["UNAVAILABLE"]}]}
    async with open_daemon({"tools": {"get_x": {"error_handling": listed}}}) as asked:
        for attempt, expected in ((2, "retry"), (3, "escalate")):
            report = {"tool": "get_x", "error": "503", "call_id": f"c{attempt}", "attempt": attempt}
            assert (await asked.post("/v1/errors", report)).json()["strategy"] == expected


@real
async def test_a_report_sent_again_is_counted_once(open_daemon: Any) -> None:
    async with open_daemon() as asked:
        body = {"tool": "get_x", "error": "Connection timeout", "call_id": "c1", "attempt": 1}
        first, second = [(await asked.post("/v1/errors", body)).json() for _ in range(2)]
        assert first == second
        assert first["circuit"]["failure_count"] == 1


@real
async def test_a_write_of_unknown_effect_is_not_repeated_and_has_no_fallback(open_daemon: Any) -> None:
    async with open_daemon(MANIFEST) as asked:
        body = {"tool": "pay", "error": "Connection reset by peer", "alternatives": ["other_bank"]}
        data = (await asked.post("/v1/errors", body)).json()
        assert data["strategy"] == "escalate"
        assert "effect is unknown" in data["reason"]


@pytest.mark.parametrize(
    ("said", "strategy"), [({"read_only": True}, "retry"), ({"idempotent": True}, "retry"), ({}, "escalate")]
)
@real
async def test_an_executor_may_say_that_its_tool_can_be_repeated(
    open_daemon: Any, said: dict[str, Any], strategy: str
) -> None:
    async with open_daemon() as asked:
        data = (
            await asked.post("/v1/errors", {"tool": "frobnicate", "error": "Connection reset by peer", **said})
        ).json()
        assert data["strategy"] == strategy


@real
async def test_the_manifests_word_comes_before_the_executors(open_daemon: Any) -> None:
    async with open_daemon(MANIFEST) as asked:
        body = {"tool": "pay", "error": "Connection reset by peer", "idempotent": True}
        assert (await asked.post("/v1/errors", body)).json()["strategy"] == "escalate"


@real
async def test_failures_open_the_circuit_and_a_success_closes_it(open_daemon: Any) -> None:
    manifest = {"tools": {"get_x": {"breaker": {"failure_threshold": 2, "timeout": "1ms"}, "fallbacks": ["get_y"]}}}
    async with open_daemon(manifest) as asked:
        first = (await asked.post("/v1/errors", {"tool": "get_x", "error": "503", "call_id": "a"})).json()
        second = (await asked.post("/v1/errors", {"tool": "get_x", "error": "503", "call_id": "b"})).json()
        assert (first["strategy"], second["strategy"], second["tool"]) == ("retry", "alternative_tool", "get_y")
        assert "circuit open" in second["reason"]
        await asyncio.sleep(0.01)  # longer than the circuit stays open
        done = await asked.post("/v1/outcomes", {"tool": "get_x", "status": "succeeded"})
        assert done.json()["circuit"]["state"] == "closed"
        changes = [event for event in asked.daemon.rt.events() if event.event_type.startswith("Circuit")]
        assert [(event.event_type, event.message) for event in changes] == [
            ("CircuitOpened", "Circuit breaker opened for get_x"),
            ("CircuitHalfOpened", "Circuit breaker half-opened for get_x"),
            ("CircuitClosed", "Circuit breaker closed for get_x"),
        ]


@real
async def test_an_outcome_feeds_trace_metrics_and_recovery_memory(open_daemon: Any) -> None:
    async with open_daemon({"tools": {"get_x": {}}}) as asked:
        await asked.post("/v1/errors", {"tool": "get_x", "error": "503", "call_id": "a", "turn_id": "t"})
        body = {"tool": "get_x", "status": "succeeded", "call_id": "a", "turn_id": "t", "attempts": 2, "duration": 1.5}
        assert (await asked.post("/v1/outcomes", body)).status_code == 200
        messages = [event.message for event in asked.daemon.rt.events()]
        assert "Tool succeeded on retry 2" in messages
        metrics = asked.daemon.rt.metrics("get_x")
        assert (metrics["error_count"], metrics["retry_count"], metrics["success_count"]) == (1, 1, 1)
        assert metrics["retry_success_rate"] == 100.0
        (family,) = asked.daemon.rt.memory.families()
        assert family["tallies"]["retry"][:2] == [1, 1]


@real
async def test_a_fallback_that_worked_is_remembered(open_daemon: Any) -> None:
    async with open_daemon(MANIFEST) as asked:
        body = {"tool": "flight_search", "error": "Resource not found (404)", "call_id": "a"}
        data = (await asked.post("/v1/errors", body)).json()
        assert (data["strategy"], data["tool"]) == ("alternative_tool", "flight_search_backup")
        done = {"tool": "flight_search", "via": "flight_search_backup", "status": "succeeded", "call_id": "a"}
        await asked.post("/v1/outcomes", {**done, "attempts": 2})
        (family,) = asked.daemon.rt.memory.families()
        assert family["tallies"]["tool:flight_search_backup"][:2] == [1, 1]


@real
async def test_policies_of_the_daemon_decide(open_daemon: Any) -> None:
    manifest = {**MANIFEST, "policies": [{"name": "be calm", "when": {"tool": "flight_*"}, "then": "fail_gracefully"}]}
    async with open_daemon(manifest) as asked:
        data = (await asked.post("/v1/errors", {"tool": "flight_search", "error": "401"})).json()
        assert data["strategy"] == "fail_gracefully"
        assert data["reason"].startswith("Policy 'be calm'")


def make_report(**more: Any) -> ErrorReport:
    fault = Fault(Code.UNAVAILABLE, "transient", "tool_transient", "none", "down", "it comes back", "test")
    return ErrorReport(fault, "search", "search-1", 1, 0, "closed", 0.1, "", ())._replace(**more)


@pytest.mark.parametrize(
    "report",
    [
        make_report(),
        make_report(retry_delay=None, no_retry="max attempts reached (5)", attempt=5, retry_count=4),
        make_report(retry_delay=None, no_retry="circuit open", alternatives=("backup",)),
        make_report(retry_delay=None, has_partial=True),
        make_report(retry_delay=None, required=False),
    ],
)
@real
async def test_a_complete_report_gets_the_decision_that_the_built_in_handler_makes(
    open_daemon: Any, report: ErrorReport
) -> None:
    async with open_daemon() as asked:
        answer = await asked.post("/v1/errors", {"report": report.to_dict()})
        assert answer.status_code == 200, answer.text
        assert Decision.from_dict(answer.json()) == decide(report)


@pytest.mark.parametrize(
    ("change", "pointer"),
    [
        ({"attempt": "one"}, "/report/attempt"),
        ({"fault": {}}, "/report/fault/code"),
        ({"breaker_state": "ajar"}, "/report/breaker_state"),
    ],
)
@real
async def test_a_report_that_makes_no_sense_is_refused_with_its_place(
    open_daemon: Any, change: dict[str, Any], pointer: str
) -> None:
    async with open_daemon() as asked:
        answer = await asked.post("/v1/errors", {"report": {**make_report().to_dict(), **change}})
        assert answer.status_code == 422
        assert pointer in [one["pointer"] for one in answer.json()["errors"]]


@real
async def test_secrets_in_errors_reach_neither_the_answer_nor_the_store(open_daemon: Any) -> None:
    secret = "sk-proj-" + "a1B2" * 10
    async with open_daemon() as asked:
        for error in (
            f"401 bad key {secret}",
            {"message": f"bad key {secret}", "status": 401, "body": {"key": secret}},
        ):
            answer = await asked.post("/v1/errors", {"tool": "get_x", "error": error})
            assert secret not in answer.text
        report = make_report().to_dict()
        report["fault"]["message"] = report["no_retry"] = f"key {secret}"
        assert secret not in (await asked.post("/v1/errors", {"report": report})).text
        assert secret not in str(asked.daemon.store.read())


@real
async def test_errors_of_one_tenant_touch_no_other(open_daemon: Any) -> None:
    async with open_daemon({"tools": {"get_x": {"breaker": {"failure_threshold": 1}}}}) as asked:
        opened = (await asked.post("/v1/errors", {"tool": "get_x", "error": "503"}, "acme")).json()
        assert opened["circuit"]["state"] == "open"
        other = (await asked.post("/v1/outcomes", {"tool": "get_x", "status": "failed"}, "bolt")).json()
        assert other["circuit"]["state"] == "closed"
        refused = await asked.post("/v1/errors", {"tool": "get_x", "error": "503", "tenant": "acme"}, "bolt")
        assert refused.status_code == 403


@real
async def test_the_number_of_reported_tools_is_limited(open_daemon: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reported_tools, "MOST_TOOLS", 3)
    monkeypatch.setattr(reported_tools, "MOST_TOOLS_IN_ALL", 5)
    async with open_daemon() as asked:
        for tenant in ("a", "b", "c"):
            for number in range(5):
                said = {"tool": f"get_{number}", "error": "503", "tenant": tenant}
                assert (await asked.post("/v1/errors", said)).json()["strategy"] == "retry"
        assert [len(asked.daemon.book.tools(tenant)) for tenant in ("a", "b", "c")] == [3, 2, 0]


@real
async def test_an_error_that_comes_again_is_classified_as_before(open_daemon: Any) -> None:
    said = {"tool": "get_x", "error": {"message": "Service unavailable", "status": 503}}
    async with open_daemon() as asked:
        first, again = [(await asked.post("/v1/errors", said)).json()["fault"] for _ in range(2)]
        assert first == again
        other = {"tool": "get_x", "error": {"message": "Service unavailable", "status": 401}}
        assert (await asked.post("/v1/errors", other)).json()["fault"]["code"] == "UNAUTHENTICATED"
        not_entered = {**said, "entered": False}
        assert (await asked.post("/v1/errors", not_entered)).json()["fault"]["effect"] == "none"
        assert (await asked.post("/v1/errors", {**said, "tool": "pay"})).json()["fault"]["effect"] == first["effect"]


@real
async def test_no_error_that_contains_a_secret_is_remembered(open_daemon: Any) -> None:
    secret = "sk-proj-" + "a8Zk2" * 8
    async with open_daemon() as asked:
        for text in (f"key {secret} refused", "key refused"):
            error = {"message": text, "status": 401}
            assert secret not in (await asked.post("/v1/errors", {"tool": "get_x", "error": error})).text
        assert [key[0] for key in asked.daemon.desk.reader._known] == ["key refused"]


@real
async def test_a_tool_with_rules_of_its_own_gets_them_for_an_error_that_is_known(open_daemon: Any) -> None:
    rules = {"classification": [{"http_status": 503, "as": "permanent"}]}
    error = {"message": "Service unavailable", "status": 503}
    async with open_daemon({"tools": {"get_y": rules}}) as asked:
        plain = (await asked.post("/v1/errors", {"tool": "get_x", "error": error})).json()
        ruled = (await asked.post("/v1/errors", {"tool": "get_y", "error": error})).json()
        assert plain["fault"]["classification"] == "transient"
        assert ruled["fault"]["classification"] == "permanent"


@real
async def test_remembered_classifications_are_limited_in_size_and_the_used_ones_stay(
    open_daemon: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(error_reading, "MOST_KNOWN", 2)
    async with open_daemon() as asked:
        for error in ("first", "second", "first", "third", "x " * 2_000):
            details = {"message": error, "status": 503}
            await asked.post("/v1/errors", {"tool": "get_x", "error": details})
        assert [key[0] for key in asked.daemon.desk.reader._known] == ["first", "third"]
