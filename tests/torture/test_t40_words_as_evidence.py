"""T40: a user's text, quoted in an error, held a tool for everybody. Here only structured evidence reaches other calls."""

from __future__ import annotations

from typing import Any

import pytest
from tests.fakes import ONCE, virtual

from failsoft import Outcome, Runtime, classify

HOUR = "429 Too Many Requests, Retry-After: 3600"


class HttpError(Exception):
    def __init__(self, text: str, status_code: int, headers: dict[str, str] | None = None) -> None:
        super().__init__(text)
        self.status_code = status_code
        self.headers = headers or {}


class Counting:
    """A tool that fails with the error that it is given, and counts its calls."""

    def __init__(self, error: Exception) -> None:
        self.error = error
        self.calls = 0

    async def __call__(self) -> None:
        self.calls += 1
        raise self.error


SPOKEN = {
    "words": RuntimeError(HOUR),
    "more words": RuntimeError("rate limit exceeded, please try again in 3600 seconds"),
    "a status, and words for the time": HttpError("slow down, retry after 3600 s", 429),
    "a cause in words": RuntimeError("no luck"),
    "a group": ExceptionGroup("all failed", [RuntimeError(HOUR)]),
}
SPOKEN["a cause in words"].__cause__ = RuntimeError(HOUR)

QUOTED = {
    "double quotes": f'503: the page says "{HOUR}"',
    "single quotes": f"503: could not translate '{HOUR}'",
    "backticks": f"503: could not translate `{HOUR}`",
    "typographic quotes": f"503: could not translate “{HOUR}”",
    "guillemets": f"503: could not translate «{HOUR}»",
    "a long quotation": f'503: could not translate "{"word " * 100}{HOUR}"',
    "several lines": f'503: could not translate "Dear all,\n{HOUR}\nYours"',
}


async def call_from_everywhere(error: Exception) -> tuple[Counting, dict[str, Outcome[Any]]]:
    """The first call fails; then others of the same and of other threads and tenants."""
    tool = Counting(error)
    rt = Runtime()
    rt.add(tool, id="search", retry=ONCE, timeout=None, breaker={"failure_threshold": 100})
    await rt.call("search", thread="chat", tenant="acme")
    return tool, {
        "same thread": await rt.call("search", thread="chat", tenant="acme"),
        "other thread": await rt.call("search", thread="other", tenant="acme"),
        "no thread": await rt.call("search", tenant="acme"),
        "other tenant": await rt.call("search", thread="chat", tenant="other"),
        "nobody": await rt.call("search"),
    }


def refused(outcomes: dict[str, Outcome[Any]]) -> set[str]:
    return {who for who, outcome in outcomes.items() if outcome.attempts == 0}


@pytest.mark.parametrize("error", SPOKEN.values(), ids=SPOKEN.keys())
def test_t40_words_hold_back_their_own_thread_at_most(error: Exception) -> None:
    tool, outcomes = virtual_run(error)
    assert refused(outcomes) == {"same thread"}
    assert outcomes["same thread"].fault is not None
    assert outcomes["same thread"].fault.rule == "rate_hold"
    assert tool.calls == 5


@pytest.mark.parametrize("text", QUOTED.values(), ids=QUOTED.keys())
def test_t40_quoted_text_holds_no_calls_back(text: str) -> None:
    assert classify(text).retry_after is None
    assert refused(virtual_run(RuntimeError(text))[1]) == set()


@pytest.mark.parametrize(
    "error",
    [HttpError("no", 429, {"Retry-After": "60"}), HttpError(HOUR, 503, {"retry-after-ms": "60000"})],
    ids=["seconds", "milliseconds"],
)
def test_t40_a_header_holds_back_all_calls_of_the_tenant(error: Exception) -> None:
    assert refused(virtual_run(error)[1]) == {"same thread", "other thread", "no thread"}


def test_t40_a_hint_in_text_without_a_thread_holds_no_calls_back() -> None:
    @virtual
    async def main() -> None:
        tool = Counting(RuntimeError(HOUR))
        rt = Runtime()
        rt.add(tool, id="search", retry=ONCE, timeout=None, breaker={"failure_threshold": 100})
        for _ in range(3):
            await rt.call("search")
        assert tool.calls == 3

    main()


def test_t40_a_missing_tool_is_missing_in_its_thread_alone() -> None:
    _, outcomes = virtual_run(RuntimeError("tool not found: search"))
    assert refused(outcomes) == {"same thread"}


@pytest.mark.parametrize("quote", ['"', "'", "`"])
def test_t40_a_quotation_makes_no_tool_missing(quote: str) -> None:
    _, outcomes = virtual_run(RuntimeError(f"could not translate {quote}tool not found: search{quote}"))
    assert refused(outcomes) == set()


def virtual_run(error: Exception) -> tuple[Counting, dict[str, Outcome[Any]]]:
    found: list[tuple[Counting, dict[str, Outcome[Any]]]] = []

    @virtual
    async def main() -> None:
        found.append(await call_from_everywhere(error))

    main()
    return found[0]
