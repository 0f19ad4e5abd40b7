"""The meaning of a program's exit status."""

from __future__ import annotations

import os

import pytest

from failsoft.core.classify.exit_status import EXITS, how_it_ended, judge_exit
from failsoft.core.model.fault import Code


@pytest.mark.parametrize(
    ("status", "code", "classification", "category"),
    [
        (64, Code.INVALID_ARGUMENT, "permanent", "tool_validation"),
        (65, Code.INVALID_ARGUMENT, "permanent", "tool_validation"),
        (66, Code.NOT_FOUND, "permanent", "tool_validation"),
        (67, Code.NOT_FOUND, "permanent", "tool_validation"),
        (68, Code.NOT_FOUND, "permanent", "tool_misconfigured"),
        (69, Code.UNAVAILABLE, "transient", "tool_transient"),
        (70, Code.INTERNAL, "permanent", "internal_contract_bug"),
        (71, Code.RESOURCE_EXHAUSTED, "transient", "tool_transient"),
        (72, Code.FAILED_PRECONDITION, "permanent", "tool_misconfigured"),
        (73, Code.FAILED_PRECONDITION, "permanent", "tool_misconfigured"),
        (74, Code.UNAVAILABLE, "transient", "tool_transient"),
        (75, Code.UNAVAILABLE, "transient", "tool_transient"),
        (76, Code.DATA_LOSS, "transient", "tool_transient"),
        (77, Code.PERMISSION_DENIED, "permanent", "tool_misconfigured"),
        (78, Code.FAILED_PRECONDITION, "permanent", "tool_misconfigured"),
        (124, Code.DEADLINE_EXCEEDED, "transient", "tool_transient"),
        (126, Code.FAILED_PRECONDITION, "permanent", "tool_misconfigured"),
        (127, Code.NOT_FOUND, "permanent", "tool_unavailable"),
        (137, Code.ABORTED, "transient", "tool_transient"),
        (-11, Code.ABORTED, "transient", "tool_transient"),
        (1, Code.UNKNOWN, "transient", "tool_transient"),
    ],
)
def test_the_table(status: int, code: Code, classification: str, category: str) -> None:
    fault = judge_exit("search", status)
    assert (fault.code, fault.classification, fault.category) == (code, classification, category)
    assert str(status) in fault.rule or status in (-11, 137, 1)


def test_the_names_are_the_systems_own() -> None:
    for status, (name, _) in EXITS.items():
        if name.startswith("EX_"):
            assert getattr(os, name) == status


def test_only_a_program_that_asks_for_it_is_surely_without_effect() -> None:
    assert judge_exit("search", 75).effect == "none"
    for status in (1, 69, 70, 71, 74, 76, 124, 137, -9):
        assert judge_exit("search", status).effect == "unknown"


def test_the_message_says_how_it_ended_and_what_it_said() -> None:
    assert judge_exit("search", 75, "no route\n").message == "search ended with exit status 75 (EX_TEMPFAIL): no route"
    assert judge_exit("search", 1).message == "search ended with exit status 1"
    assert judge_exit("search", -15).message == "search was killed by SIGTERM"


def test_the_output_decides_unless_the_exit_status_is_specific() -> None:
    assert judge_exit("curl", 7, "Connection refused").code is Code.UNAVAILABLE
    assert judge_exit("search", 1, "401 Unauthorized").code is Code.UNAUTHENTICATED
    assert judge_exit("search", 65, "Connection refused").code is Code.INVALID_ARGUMENT


@pytest.mark.parametrize("said", ["Connection refused", "401 Unauthorized", "HTTP 429 Too Many Requests", "no route"])
def test_the_output_is_a_log_and_no_evidence_that_nothing_was_done(said: str) -> None:
    assert judge_exit("curl", 7, said).source == "words"


@pytest.mark.parametrize(
    ("code", "classification", "category", "effect"),
    [
        (Code.NOT_FOUND, "permanent", "tool_validation", "none"),
        (Code.PERMISSION_DENIED, "permanent", "tool_misconfigured", "none"),
        (Code.UNAVAILABLE, "transient", "tool_transient", "unknown"),
        (Code.RESOURCE_EXHAUSTED, "transient", "tool_transient", "none"),
    ],
)
def test_the_manifest_comes_first(code: Code, classification: str, category: str, effect: str) -> None:
    for status in (1, 75, 137):
        fault = judge_exit("search", status, "Connection refused", {status: code})
        assert (fault.code, fault.classification, fault.category, fault.effect) == (
            code,
            classification,
            category,
            effect,
        )
        assert fault.rule == f"exit_codes: {status}"


def test_every_code_that_a_manifest_can_give_is_one_or_the_other() -> None:
    for code in Code:
        fault = judge_exit("search", 3, "", {3: code})
        assert (fault.classification == "transient") == (fault.category == "tool_transient")


def test_secrets_in_what_it_said_are_masked() -> None:
    fault = judge_exit("search", 1, "failed with api_key=sk-abcdefghijklmnopqrstuvwxyz012345")
    assert "sk-abc" not in fault.message


@pytest.mark.parametrize(
    ("status", "words"),
    [
        (0, "ended with exit status 0"),
        (-9, "was killed by SIGKILL (perhaps for lack of memory)"),
        (-40, "was killed by signal 40"),
        (None, "ended in an unknown way"),
    ],
)
def test_a_status_in_words(status: int | None, words: str) -> None:
    assert how_it_ended(status) == words
