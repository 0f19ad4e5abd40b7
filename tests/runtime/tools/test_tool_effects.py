"""One place knows whether a tool reads or writes, and what follows for repeating it (R37)."""

from __future__ import annotations

import logging
import pickle
from functools import partial
from typing import Any

import pytest
from tests.fakes import DOWN, ONCE, RESET, Scripted, virtual

from failsoft import ManifestError, Runtime


async def get_weather(city: str, days: int = 1) -> str:
    """Get the weather of a city."""
    return f"{city}: {days} days of rain"


async def attempts(rt: Runtime, id: str, **options: Any) -> int:
    tool = Scripted(RESET, "done")
    rt.add(tool, id=id, **options)
    await rt.call(id)
    return tool.attempts


@pytest.mark.parametrize(
    ("undeclared", "read", "write", "neither"), [("recognise", 2, 1, 2), ("as_specified", 2, 2, 2), ("never_repeat", 1, 1, 1)]
)  # fmt: skip
@pytest.mark.parametrize("place", ["argument", "manifest"])
@virtual
async def test_the_undeclared_setting_decides_which_undeclared_tools_are_repeated(
    undeclared: Any, read: int, write: int, neither: int, place: str
) -> None:
    rt = Runtime(undeclared=undeclared) if place == "argument" else Runtime({"undeclared": undeclared})
    assert await attempts(rt, "get_weather") == read
    assert await attempts(rt, "pay_invoice") == write
    assert await attempts(rt, "flaky") == neither


@pytest.mark.parametrize("undeclared", ["recognise", "as_specified", "never_repeat"])
@virtual
async def test_a_declaration_wins_over_everything_that_is_recognised(undeclared: Any) -> None:
    rt = Runtime(undeclared=undeclared)
    assert await attempts(rt, "pay_again", idempotent=True) == 2
    assert await attempts(rt, "pay_freely", read_only=True) == 2
    assert await attempts(rt, "get_ticket", idempotent=False) == 1
    assert await attempts(rt, "pay_with_key", idempotency_key="key") == 2


def test_the_argument_wins_over_the_manifest() -> None:
    rt = Runtime({"undeclared": "as_specified"}, undeclared="recognise")
    rt.add(get_weather)
    assert rt.tools["get_weather"].effect_source == "recognised"


@pytest.mark.parametrize("where", ["argument", "manifest"])
def test_another_word_is_refused(where: str) -> None:
    with pytest.raises(ManifestError, match="undeclared"):
        Runtime(undeclared="sometimes") if where == "argument" else Runtime({"undeclared": "sometimes"})  # type: ignore[arg-type]


@virtual
async def test_a_recognised_write_of_unknown_effect_has_no_alternative() -> None:
    rt = Runtime()
    other = Scripted("paid elsewhere")
    rt.add(Scripted(RESET), id="pay", fallbacks=["pay_elsewhere"])
    rt.add(other, id="pay_elsewhere")
    assert ((await rt.call("pay")).status, other.attempts) == ("failed", 0)
    rt.add(Scripted(DOWN), id="send", retry=ONCE, fallbacks=["pay_elsewhere"])  # it was refused: nothing has happened
    assert ((await rt.call("send")).status, other.attempts) == ("succeeded", 1)
    rt.add(Scripted(RESET), id="get_rates", retry=ONCE, fallbacks=["pay_elsewhere"])
    assert ((await rt.call("get_rates")).status, other.attempts) == ("succeeded", 2)


@pytest.mark.parametrize(
    ("id", "options", "known"),
    [
        ("get_weather", {}, ("read", "recognised", '"get" in its name')),
        ("pay", {}, ("write", "recognised", '"pay" in its name')),
        ("flaky", {}, ("neither", "unknown", "its name and description do not say")),
        ("pay", {"read_only": True}, ("read", "declared", "declared read-only")),
        ("search", {"idempotent": False}, ("write", "declared", "declared not idempotent")),
        ("search", {"idempotent": True}, ("write", "declared", "declared idempotent")),
    ],
)
def test_a_tool_tells_its_effect_and_where_that_is_from(id: str, options: Any, known: tuple[str, str, str]) -> None:
    rt = Runtime()
    rt.add(Scripted("x"), id=id, **options)
    tool = rt.tools[id]
    assert (tool.effect, tool.effect_source, tool.effect_reason) == known
    assert repr(tool) == f"ToolInfo(id={id!r}, effect={known[0]!r}, effect_source={known[1]!r})"


def test_a_docstring_is_asked_where_the_name_says_nothing() -> None:
    rt = Runtime()

    def weather(city: str) -> str:
        """Get the weather.

        Args:
            city: send the name of the city
        """
        return city

    rt.add(weather)
    rt.add(partial(weather, "Rome"), id="roman_weather")
    assert rt.tools["weather"].effect == rt.tools["roman_weather"].effect == "read"
    assert rt.tools["weather"].description.startswith("Get the weather.")


def test_a_class_that_makes_tools_does_not_describe_them() -> None:
    class Deleter:
        """Creates tools that delete everything."""

        def __call__(self) -> None: ...

    rt = Runtime()
    rt.add(Deleter(), id="thing")
    assert rt.tools["thing"].description == ""


def test_the_tools_are_their_ids_still() -> None:
    rt = Runtime()
    rt.add(get_weather)
    rt.add(Scripted("x"), id="pay")
    assert rt.tools == ("get_weather", "pay")
    assert [*rt.tools] == ["get_weather", "pay"]
    assert rt.tools[-1] == "pay"
    assert "pay" in rt.tools
    assert pickle.loads(pickle.dumps(rt.tools)) == ("get_weather", "pay")
    with pytest.raises(KeyError, match="did you mean get_weather"):
        rt.tools["get_wether"]


def test_a_schema_describes_the_arguments() -> None:
    rt = Runtime()
    rt.add(get_weather)
    assert rt.tools["get_weather"].schema == {
        "type": "object",
        "properties": {"city": {"type": "string"}, "days": {"type": "integer", "default": 1}},
        "required": ["city"],
        "additionalProperties": False,
    }
    assert rt.tools["get_weather"].options.id == "get_weather"


def test_a_schema_omits_the_idempotency_key_and_unreadable_annotations() -> None:
    rt = Runtime()

    def pay(amount: Missing, key: str = "") -> None: ...  # type: ignore[name-defined]  # noqa: F821

    rt.add(pay, idempotency_key="key")
    assert rt.tools["pay"].schema == {"type": "object", "properties": {"amount": {}}, "required": ["amount"]}


def test_a_tool_that_says_nothing_is_warned_about_once_when_it_is_registered(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.WARNING, "failsoft")
    rt = Runtime()
    for id in ("get_weather", "pay", "flaky"):
        rt.add(Scripted("x"), id=id)
    rt.add(Scripted("x"), id="declared", idempotent=False)
    rt.add(Scripted("x"), id="never_retried", retry=ONCE)
    (warning,) = [record.getMessage() for record in caplog.records]
    assert warning.startswith("flaky: nothing says whether this tool reads or writes")
    assert "read_only=True" in warning


@virtual
async def test_an_undeclared_tool_is_not_warned_about_again_on_a_retry(caplog: pytest.LogCaptureFixture) -> None:
    rt = Runtime()
    caplog.set_level(logging.WARNING, "failsoft")
    assert await attempts(rt, "flaky") == 2
    assert len([record for record in caplog.records if "read_only=True" in record.getMessage()]) == 1


@pytest.mark.parametrize(
    ("id", "times"), [("get_weather", 2), ("pay", 1), ("flaky", 1)], ids=["read", "write", "neither"]
)
@virtual
async def test_in_a_framework_what_is_no_read_counts_as_a_write(id: str, times: int) -> None:
    rt = Runtime()
    tool = Scripted(RESET, "done")

    async def run(_: dict[str, Any]) -> Any:
        return await tool()

    rt.declare(id)
    await rt.run(id, {}, {id: run})
    assert tool.attempts == times
    assert rt.tools[id].effect == {"get_weather": "read", "pay": "write", "flaky": "neither"}[id]


@virtual
async def test_a_registered_tool_that_says_nothing_counts_as_a_write_in_a_framework() -> None:
    rt = Runtime()
    tool = Scripted(RESET, "done")

    async def run(_: dict[str, Any]) -> Any:
        return await tool()

    rt.add(Scripted("x"), id="flaky")
    await rt.run("flaky", {}, {"flaky": run})
    assert tool.attempts == 1
