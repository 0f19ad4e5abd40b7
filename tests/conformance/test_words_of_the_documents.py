"""The documents' own sentences as error texts, and the spellings in which they are likely to come."""

from __future__ import annotations

import pytest
from tests.fakes import Scripted, records, virtual

from failsoft import Code, Runtime, classify


class Carrying(Exception):
    """An error that carries its code or status in an attribute."""

    def __init__(self, attribute: str, value: object) -> None:
        super().__init__("boom")
        setattr(self, attribute, value)


@pytest.mark.parametrize(
    "text",
    [
        "Tool doesn't exist or is disabled",
        "Tool doesn't exist",
        "Tool doesn’t exist",
        "Tool 'maps' doesn't exist",
        "extension doesn't exist",
        "tool disabled",
        "Tool disabled: maps",
        "This tool is currently disabled",
        "Tool maps has been disabled",
    ],
)
def test_s_spec_1_2_tool_not_found_tool_does_not_exist_or_is_disabled(text: str) -> None:
    fault = classify(text)
    assert (fault.classification, fault.category, fault.retryable) == ("permanent", "tool_unavailable", False)


def test_s_spec_1_2_a_tool_that_is_disabled_for_the_time_being_comes_back() -> None:
    assert classify("Tool maps is temporarily disabled").classification == "transient"


@pytest.mark.parametrize(
    "text",
    [
        "tool id missing",
        "extension id missing",
        "toolId missing",
        "missing toolid",
        "missing required extension id",
        "no tool id",
    ],
)
def test_s_norm_signal_missing_tool_id_missing_extension_id(text: str) -> None:
    assert classify(RuntimeError(text)).category == "tool_unavailable"


@pytest.mark.parametrize("text", ["tool call failed: city is missing", "missing required field: city"])
def test_s_norm_a_missing_input_is_no_missing_tool(text: str) -> None:
    assert classify(RuntimeError(text)).category == "tool_validation"


@pytest.mark.parametrize("text", ["missing config", "config missing", "config is missing", "missing configuration"])
def test_s_norm_misconfigured_missing_config(text: str) -> None:
    assert classify(text).category == "tool_misconfigured"


@pytest.mark.parametrize(
    "text",
    [
        "Rate limit or quota exceeded",
        "RESOURCE_EXHAUSTED: Rate limit or quota exceeded",
        "ErrorStatusCode.ResourceExhausted: Rate limit or quota exceeded",
        "rpc error: code = ResourceExhausted desc = Rate limit or quota exceeded",
    ],
)
def test_s_layers_resource_exhausted_rate_limit_or_quota_exceeded_is_retryable(text: str) -> None:
    fault = classify(text)
    assert (fault.code, fault.retryable) == (Code.ResourceExhausted, True)


def test_s_layers_a_quota_that_is_used_up_is_not() -> None:
    assert not classify("You exceeded your current quota, please check your plan and billing details").retryable


@pytest.mark.parametrize("code", list(Code))
def test_s_layers_a_code_in_brackets_before_its_message(code: Code) -> None:
    assert classify(f"[{code.value}] upstream said no").code == code


@pytest.mark.parametrize("name", ["Internal", "Aborted", "DataLoss", "OutOfRange", "DeadlineExceeded", "Unavailable"])
def test_s_layers_a_code_alone_in_the_documents_spelling(name: str) -> None:
    assert classify(name).code == Code[name]


@pytest.mark.parametrize("attribute", ["code", "status", "error_code", "errorCode", "status_code"])
@pytest.mark.parametrize("code", list(Code))
def test_s_layers_a_code_that_the_error_carries(code: Code, attribute: str) -> None:
    for spelling in (code, code.value, next(name for name, one in Code.__members__.items() if one is code)):
        assert classify(Carrying(attribute, spelling)).code == code


@pytest.mark.parametrize(("status", "classification"), [(400, "permanent"), (404, "permanent"), (503, "transient")])
def test_s_spec_1_3_a_status_in_camel_case(status: int, classification: str) -> None:
    fault = classify(Carrying("statusCode", status))
    assert (fault.http_status, fault.classification) == (status, classification)


@pytest.mark.parametrize("text", ["Value out of range", "value 17 out of range", "value 17 is out of range"])
def test_s_layers_out_of_range_names_its_value(text: str) -> None:
    assert classify(text).code is Code.OutOfRange


def test_s_tests_4_3_the_text_of_a_tool_timeout_has_the_reason_of_a_tool_timeout() -> None:
    fault = classify("Tool timeout after 30s")
    assert (fault.classification, fault.retryable, fault.reason) == ("transient", True, "Timeout is temporary")


@virtual
async def test_s_norm_misconfigured_base_url_is_not_tried_again_with_other_arguments() -> None:
    rt, maps = Runtime(), Scripted(RuntimeError("misconfigured base url"))
    rt.add(maps, id="maps")
    for city in ("Rome", "Paris", "Oslo"):
        outcome = await rt.call("maps", {"city": city}, thread="chat")
        assert outcome.fault is not None
        assert outcome.fault.category == "tool_misconfigured"
    assert maps.attempts == 1


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("nights is not a number", "nights"),
        ("invalid type for field nights: expected int", "nights"),
        ("expected number for nights", "nights"),
        ("city not provided", "city"),
        ("city was not supplied", "city"),
        ("Bad input: city", "city"),
        ("Invalid input: departure_date", "departure date"),
        ("schema mismatch: nights", "nights"),
        ("Schema mismatch: field 'nights' expected integer", "nights"),
        ("schema mismatch for field nights", "nights"),
        ("type mismatch for nights", "nights"),
        ("Invalid value 'many' for nights", "nights"),
        ("nights: expected integer, got string", "nights"),
        ("nights is out of range", "nights"),
        ("Value out of range: nights", "nights"),
        ("Validation failed for field nights", "nights"),
        ("Invalid request parameters: nights", "nights"),
        ("Bad request: missing city", "city"),
    ],
)
@virtual
async def test_s_norm_validation_asks_for_the_input_that_the_error_names(text: str, name: str) -> None:
    rt = Runtime()
    rt.add(Scripted(RuntimeError(text)), id="maps")
    async with rt.turn() as turn:
        call = turn.call("maps")
    outcome = await call
    assert outcome.explanation.user == f"For maps I need a valid {name}."
    assert f"a valid {name}" in turn.report.message


@virtual
async def test_s_tests_6_2_the_reason_of_a_retry_is_true_for_a_permanent_error_that_is_listed() -> None:
    listed = {"retries": [{"maxAttempts": 3, "handleErrors": ["NotFound"]}]}
    rt, maps = Runtime({"tools": {"maps": {"errorHandling": listed}}}), Scripted(RuntimeError("Not found (404)"), "ok")
    rt.add(maps, id="maps")
    async with rt.turn() as turn:
        turn.call("maps")
    (error,) = [event for event in records(turn.report) if event["event_type"] == "ToolError"]
    assert (error["decision"], error["classification"]) == ("retry", "permanent")
    assert error["reason"] == "Permanent error listed for retries + circuit closed + retries available"


@pytest.mark.parametrize(
    ("text", "category"),
    [
        ("Invalid extension.gateway.execute.request", "tool_unavailable"),
        ("Invalid chat.management.gateway.message.append.request", "internal_contract_bug"),
        ("missing api key", "tool_misconfigured"),
        ("Invalid airport code: XYZ", "tool_validation"),
    ],
)
@pytest.mark.parametrize("detail", [1, "flight_search", {"toolId": "maps"}, None])
def test_s_norm_signals_in_an_exception_of_several_arguments(text: str, category: str, detail: object) -> None:
    assert classify(RuntimeError(text, detail)).category == category


def test_s_norm_a_signal_quoted_among_other_words_does_not_count() -> None:
    assert classify("the user wrote 'tool not found', so I stopped").category != "tool_unavailable"


@pytest.mark.parametrize("form", ["{}", "{}.", "[flight_search] {}", "flight_search failed - {}", "HTTP {}", "({})"])
@pytest.mark.parametrize(("status", "retryable"), [(400, False), (401, False), (403, False), (404, False), (503, True)])
def test_s_spec_1_3_a_status_in_a_text(status: int, form: str, retryable: bool) -> None:
    fault = classify(form.format(status))
    assert (fault.http_status, fault.retryable) == (status, retryable)


@pytest.mark.parametrize("text", ["Invalid input: XYZ", "Invalid input: hello world", "Invalid input: 12345"])
@virtual
async def test_s_norm_validation_does_not_take_a_value_for_a_name(text: str) -> None:
    rt = Runtime()
    rt.add(Scripted(RuntimeError(text)), id="maps")
    outcome = await rt.call("maps")
    assert outcome.explanation.user == "For maps I need other details: please check and correct them."


@pytest.mark.parametrize("text", ["no reason given", "Unknown failure: reason not specified", "Cause not given"])
def test_s_spec_1_3_an_error_that_gives_no_reason_is_unknown_and_transient(text: str) -> None:
    fault = classify(text)
    assert (fault.code, fault.classification) == (Code.Unknown, "transient")


@pytest.mark.parametrize("status", [400, 404, 422, 500])
@virtual
async def test_s_norm_a_contract_bug_is_one_whatever_status_the_gateway_gives_it(status: int) -> None:
    rt, gateway = (
        Runtime(),
        Scripted(RuntimeError(f"Invalid chat.management.gateway.message.append.request ({status})")),
    )
    rt.add(gateway, id="send_message")
    outcome = await rt.call("send_message", thread="chat")
    assert outcome.fault is not None
    assert (outcome.fault.category, gateway.attempts) == ("internal_contract_bug", 1)
    assert outcome.fault.effect == ("unknown" if status == 500 else "none")
    assert outcome.explanation.user == "Something broke internally, I’ve logged it."
    assert not rt.threads["chat"].offers


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("Partial timeout", Code.DEADLINE_EXCEEDED),
        ("Tool returned partial results before timeout", Code.DEADLINE_EXCEEDED),
        ("the deadline of 20s passed before the answer came", Code.DEADLINE_EXCEEDED),
        ("rate limits", Code.RESOURCE_EXHAUSTED),
    ],
)
def test_s_spec_1_1_the_words_of_the_transient_errors(text: str, code: Code) -> None:
    fault = classify(text)
    assert (fault.code, fault.classification, fault.category) == (code, "transient", "tool_transient")


@pytest.mark.parametrize("form", ["grpc: {}", "codes.{}", "failed: {}", "code: {}", "the node failed with {}: no more"])
@pytest.mark.parametrize("code", [Code.INTERNAL, Code.ABORTED, Code.OUT_OF_RANGE, Code.DATA_LOSS])
def test_s_layers_a_code_in_running_text_in_both_spellings(form: str, code: Code) -> None:
    for name in (code.name, "".join(part.capitalize() for part in code.name.split("_"))):
        assert classify(form.format(name)).code is code


@pytest.mark.parametrize(
    "text", ["date out of range", "the page number is out of range", "amount out of allowed range"]
)
def test_s_layers_out_of_range_names_what_is_out_of_range(text: str) -> None:
    assert classify(text).code is Code.OUT_OF_RANGE


@pytest.mark.parametrize("form", ["http_status={}", "upstream answered {}", "the proxy replied with {}", "{} error"])
@pytest.mark.parametrize("status", [400, 401, 404, 429, 503])
def test_s_spec_1_3_a_status_that_an_answer_had(form: str, status: int) -> None:
    assert classify(form.format(status)).http_status == status


@pytest.mark.parametrize(
    "text",
    ["STRIPE_SECRET_KEY must be set", "api_key client option must be set", "The access token has to be provided"],
)
def test_s_norm_a_credential_that_is_not_set_is_misconfigured(text: str) -> None:
    assert classify(text).category == "tool_misconfigured"


def test_s_norm_an_answer_that_breaks_a_contract_is_an_internal_bug_too() -> None:
    text = "Invalid chat.management.gateway.message.append.response"
    assert classify(text).category == "internal_contract_bug"
