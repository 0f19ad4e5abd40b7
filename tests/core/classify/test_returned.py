"""Returned failures: which values are failures, and that reading them is bounded whatever they do."""

from __future__ import annotations

import asyncio
import pickle
from collections.abc import Mapping
from dataclasses import dataclass
from types import CoroutineType
from typing import Any

import pytest
from langchain_core.messages import ToolMessage
from mcp.types import CallToolResult, TextContent

from failsoft import CallFailed, Fault, NothingDone, Outcome, classify, partial
from failsoft.core.classify import returned as module
from failsoft.core.classify.returned import (
    PLAIN_TYPES,
    ReturnedFailure,
    find_returned,
    is_plain,
    match_pattern,
    read_flag,
    text_of,
    value_inside,
)
from failsoft.core.model.failed_if import read_failed_if

OK = {"ok": False, "message": "error"}


class _Hostile:
    """Every method fails."""

    def _fail(self, *_: Any) -> Any:
        raise RuntimeError("hostile")

    __eq__ = __repr__ = __str__ = __bool__ = __len__ = __iter__ = __hash__ = _fail

    def __getattr__(self, name: str) -> Any:
        raise RuntimeError(name)


def Hostile() -> Any:
    return _Hostile()


class HostileMapping(Mapping[str, Any]):
    def __getitem__(self, key: str) -> Any:
        raise RuntimeError(key)

    def __iter__(self) -> Any:
        raise RuntimeError

    def __len__(self) -> int:
        raise RuntimeError


@dataclass
class Answer:
    ok: Any
    error: str = "no stock"


def match(written: Any, *values: Any) -> str | None:
    found = match_pattern(read_failed_if(written), values)
    return None if found is None else str(found)


def result(text: str, **said: Any) -> CallToolResult:
    return CallToolResult(content=[TextContent(type="text", text=text)], **said)


# --- by type ------------------------------------------------------------------------------------------------------------


def test_an_exception_is_returned_as_itself() -> None:
    error = NothingDone("not yet")
    assert find_returned(error) is error


def test_a_failed_outcome_is_its_failure_and_a_successful_one_its_value() -> None:
    failed: Outcome[Any] = Outcome("1", "pay", "failed", fault=classify("quota exceeded"))
    assert isinstance(find_returned(failed), CallFailed)
    assert value_inside(failed) is failed
    done: Outcome[Any] = Outcome("1", "pay", "succeeded", 5)
    assert (find_returned(done), value_inside(done)) == (None, 5)
    assert isinstance(find_returned(Outcome("2", "pay", "succeeded", failed)), CallFailed)
    assert value_inside(Outcome("2", "pay", "succeeded", done)) == 5
    part: Outcome[Any] = Outcome("1", "pay", "succeeded", [1], missing=["page 2"])
    assert value_inside(part) == partial([1], missing=["page 2"])


@pytest.mark.parametrize(
    ("value", "flag"),
    [
        (result("All good", is_error=True), True),
        (result("Error 503", is_error=False), False),
        (result("Error 503"), None),
        (ToolMessage("fine", tool_call_id="1", status="error"), True),
        (ToolMessage("Error", tool_call_id="1", status="success"), False),
        (ToolMessage("Error", tool_call_id="1"), None),
        ({"isError": True}, None),
    ],
)
def test_results_of_protocols_say_themselves_whether_they_failed(value: Any, flag: bool | None) -> None:
    assert read_flag(value) is flag


def test_a_class_of_the_same_name_from_elsewhere_says_nothing() -> None:
    class CallToolResult:
        is_error = True

    assert read_flag(CallToolResult()) is None
    assert is_plain(CallToolResult)


def test_types_are_remembered_up_to_a_limit_and_awaitables_are_not(monkeypatch: pytest.MonkeyPatch) -> None:
    class Waiting:
        def __await__(self) -> Any: ...

    assert is_plain(Waiting)
    assert Waiting not in PLAIN_TYPES
    monkeypatch.setattr(module, "MOST_TYPES", 0)
    kind = type("Made", (), {})
    assert is_plain(kind)
    assert kind not in PLAIN_TYPES


def test_coroutines_tasks_and_faults_are_looked_at() -> None:
    for kind in (CoroutineType, asyncio.Task, asyncio.Future, Fault):
        assert not is_plain(kind)


# --- by a pattern -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("written", "value", "said"),
    [
        (OK, {"ok": False, "error": "no stock"}, "no stock"),
        (OK, {"ok": True, "error": "no stock"}, None),
        (OK, {"ok": 0, "error": "no stock"}, None),
        (OK, {"error": "no stock"}, None),
        (OK, Answer(ok=False), "no stock"),
        (OK, '{"ok": false, "error": "no stock"}', "no stock"),
        (OK, {"ok": False, "error": {"message": "no stock", "code": 3}}, "no stock"),
        (OK, {"ok": False}, '{"ok": false}'),
        (OK, {"ok": False, "detail": "no stock"}, "no stock"),
        (
            {"result.ok": False},
            {"result": {"ok": False, "message": "no"}},
            '{"result": {"ok": false, "message": "no"}}',
        ),
        ({"result.ok": False, "message": "m"}, {"result.ok": False, "m": "exact key"}, "exact key"),
        ({"errors.0.code": 7, "message": "errors.0.text"}, {"errors": [{"code": 7, "text": "no"}]}, "no"),
        ({"status": ["error", "failed"]}, {"status": "failed", "message": "no"}, "no"),
        ({"code": 1}, {"code": 1.0, "msg": "no"}, "no"),
        ({"code": 1}, {"code": True}, None),
        ({"done": None}, {"done": None, "reason": "no"}, "no"),
        ({"a": 1, "b": 2}, {"a": 1}, None),
        ({"text": "^Error"}, "Error: no stock", "Error: no stock"),
        ({"text": "^Error"}, "No Error", None),
        ({"text": "^Error"}, {"a": "Error"}, None),
        (OK, {"ok": False, "error": 7}, "7"),
        (OK, {"ok": False, "error": float("nan")}, '"nan"'),
        (OK, [1, 2], None),
        (OK, None, None),
        (OK, "{" * 5000, None),
        (OK, "[" * 200_000, None),
    ],
)
def test_a_pattern_matches_values(written: Any, value: Any, said: str | None) -> None:
    assert match(written, value) == said


def test_a_structured_flag_wins_over_text() -> None:
    both = {"ok": False, "message": "error", "text": "Error"}
    assert match(both, {"ok": True, "error": "Error 503"}) is None
    assert match(both, '{"ok": true, "error": "Error 503"}') is None
    assert match(both, '{"ok": false, "error": "All good"}') == "All good"
    assert match(both, "Error 503") == "Error 503"
    assert match({"text": "Error"}, result("Error 503", is_error=False)) is None
    assert match({"text": "Error"}, result("Error 503")) == "Error 503"


def test_the_structured_content_of_a_result_is_read() -> None:
    value = CallToolResult(content=[], structured_content={"ok": False, "error": "no stock"})
    assert match(OK, value) == "no stock"


@pytest.mark.parametrize("value", [None, "", "  ", result(""), ToolMessage("", tool_call_id="1")])
def test_every_value_has_a_text(value: Any) -> None:
    assert text_of(value).strip()


def test_a_hostile_value_is_no_failure_and_has_a_text() -> None:
    for value in (Hostile(), {"ok": Hostile()}, HostileMapping(), [Hostile()]):
        assert match(OK, value) is None
        assert read_flag(value) is None
        assert find_returned(value) is None
        assert text_of(value).strip()


def test_a_number_too_long_to_print_is_shown_in_short() -> None:
    assert match(OK, {"ok": False, "error": 10**5000})


def test_codes_in_the_value_are_evidence() -> None:
    fault = classify(
        ReturnedFailure("sorry", {"ok": False, "error": {"code": 429, "message": "sorry", "retry_after": 3}})
    )
    assert (fault.code, fault.http_status, fault.retry_after) == ("RESOURCE_EXHAUSTED", 429, 3)


def test_a_failure_survives_pickling_without_its_value() -> None:
    again = pickle.loads(pickle.dumps(ReturnedFailure("no stock", {"lock": object})))
    assert (str(again), again.returned) == ("no stock", None)


@pytest.mark.parametrize("error", ["no seat", {"code": 503}, ["bad"], 7, True, Hostile])
def test_a_star_matches_any_value_that_is_there(error: Any) -> None:
    said = error() if error is Hostile else error
    assert match_pattern(read_failed_if({"error": "*"}), [{"error": said}]) is not None


@pytest.mark.parametrize(
    "value", [{}, {"error": None}, {"error": ""}, {"error": False}, {"error": 0}, {"error": []}, "*"]
)
def test_a_star_does_not_match_what_is_absent_or_empty(value: Any) -> None:
    assert match_pattern(read_failed_if({"error": "*"}), [value]) is None
