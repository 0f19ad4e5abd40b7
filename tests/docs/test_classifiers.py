"""Functions that classify errors: each mistake is refused when the tool is made, or logged once when it shows."""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Any

import pytest

from failsoft import Code, ManifestError, Override, Runtime
from failsoft.observe.sinks.log import flush as flush_log
from failsoft.runtime.registry import _log_misuse as misuse_log


@pytest.fixture(autouse=True)
def _each_mistake_is_new() -> None:
    misuse_log.cache_clear()


def get_it() -> None:
    raise ValueError("quota")


async def decide_later(error: object) -> str:
    return "transient"


def of_two(error: object, tool: object) -> str:
    return "transient"


REFUSED: list[tuple[Any, str]] = [
    (ValueError, 'Override(exception="ValueError", as_="transient")'),
    (decide_later, "is async and would not be awaited"),
    (of_two, "give a function of one argument"),
    ("ValueError", "is not"),
]


@pytest.mark.parametrize(("function", "right"), REFUSED)
def test_what_is_no_function_of_an_error(function: Any, right: str) -> None:
    with pytest.raises(ValueError, match="matches:") as refused:
        Override(matches=function, as_="transient")
    assert right in str(refused.value)
    if callable(function):
        with pytest.raises(ManifestError, match="classification:") as also:
            Runtime().add(get_it, classification=[function])
        assert right in str(also.value)


def said(answer: Callable[[Any], Any] | Override, caplog: pytest.LogCaptureFixture) -> str:
    rt = Runtime()
    rt.add(get_it, read_only=True, retry={"max_attempts": 2}, classification=[answer])
    with caplog.at_level(logging.WARNING, "failsoft"):
        rt.call_sync("get_it")
        flush_log(5)
    found = [record.getMessage() for record in caplog.records if record.levelno == logging.WARNING]
    return "\n".join(text for text in found if "circuit" not in text)


@pytest.mark.parametrize(
    ("answer", "wrong"),
    [
        (lambda error: isinstance(error, ValueError), "returned True, and is ignored: return"),
        (lambda error: error.status_code >= 500 and "transient", "raised AttributeError, and is ignored"),
        (lambda error: "temporary", "returned 'temporary', and is ignored: return"),
        (lambda error: Override(exception="ValueError", as_="transient"), "and is ignored: return"),
        (Override(matches=lambda error: error.status_code == 7, as_="transient"), "raised AttributeError"),
    ],
)
def test_an_answer_that_cannot_be_used(answer: Any, wrong: str, caplog: pytest.LogCaptureFixture) -> None:
    assert wrong in said(answer, caplog)


@pytest.mark.parametrize(
    "answer",
    [
        lambda error: isinstance(error, ValueError) and "transient",
        lambda error: isinstance(error, KeyError) and "transient",
        lambda error: None,
        lambda error: Code.UNAVAILABLE,
        lambda error: "NotFound",
        lambda error: "tool_misconfigured",
        Override(matches=lambda error: isinstance(error, ValueError), as_="transient"),
    ],
)
def test_an_answer_that_can_be_used(answer: Any, caplog: pytest.LogCaptureFixture) -> None:
    assert said(answer, caplog) == ""
