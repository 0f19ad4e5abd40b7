"""The runtime's words: templates and languages from the manifest, and a callable that phrases the user's text."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Mapping
from typing import Any

import pytest
from tests.fakes import DOWN, INVALID, ONCE, Scripted, Takes, records, virtual

from failsoft import Runtime
from failsoft.runtime.call import user_text

USUAL = "I couldn’t reach search right now. It may work if we try again in a little while."


def failing(explain: Any = None, **options: Any) -> Runtime:
    rt = Runtime(explain=explain, **options)
    rt.add(Scripted(DOWN), id="search", retry=ONCE)
    return rt


# --- who phrases the user's text ---------------------------------------------------------------------------------------


async def kind_async(facts: Mapping[str, Any]) -> str:
    return f"Sorry about {facts['label']}."


def kind_sync(facts: Mapping[str, Any]) -> str:
    return f"Sorry about {facts['label']}."


class KindObject:
    async def __call__(self, facts: Mapping[str, Any]) -> str:
        return f"Sorry about {facts['label']}."


@pytest.mark.parametrize("explain", [kind_async, kind_sync, KindObject(), lambda facts: kind_async(facts)])
@virtual
async def test_the_callable_phrases_the_users_text_and_no_other(explain: Any) -> None:
    rt, usual = failing(explain), failing()
    outcome = await rt.call("search")
    assert outcome.explanation.user == "Sorry about search."
    plain = (await usual.call("search")).explanation
    assert outcome.explanation[1:] == plain[1:]
    assert plain.user == USUAL
    assert records(rt, "ExplainFailed") == []


def test_the_callable_phrases_texts_for_blocking_callers() -> None:
    for explain in (kind_async, kind_sync):
        rt = Runtime(explain=explain)

        @rt.tool(timeout=None, retry=ONCE)
        def search() -> None:
            raise DOWN

        assert rt.call_sync("search").explanation.user == "Sorry about search."
        assert rt.call_sync("nowhere").explanation.user == "Sorry about nowhere."


@virtual
async def test_the_callable_receives_facts_that_are_safe_to_share() -> None:
    seen: list[Mapping[str, Any]] = []

    async def explain(facts: Mapping[str, Any]) -> str:
        seen.append(facts)
        return "Hello."

    rt = Runtime(explain=explain)

    @rt.tool(label="hotel finder", idempotent=False)
    async def hotels(city: str) -> None:
        raise ValueError(f"Invalid city: {city}, token sk-proj-{'a1' * 20}")

    await rt.call("hotels", {"city": "Nowhere"}, id="H")
    (facts,) = seen
    assert facts == {
        "call_id": "H",
        "tool": "hotels",
        "label": "hotel finder",
        "status": "failed",
        "text": "For hotel finder I need a valid city. "
        "It may have gone through all the same: please check before trying again.",
        "attempts": 1,
        "inside": None,
        "code": "INVALID_ARGUMENT",
        "category": "tool_validation",
        "retryable": False,
        "retry_after": None,
        "effect": "unknown",
        "wanted": ["city"],
        "message": "Invalid city: Nowhere, token [redacted]",
    }


@pytest.mark.parametrize(
    ("given", "why"),
    [
        (None, "it returned NoneType, not a text"),
        (42, "it returned int, not a text"),
        ("", "it returned an empty text"),
        (" \x1b[2J\n", "it returned an empty text"),
        ("x" * 1001, "it returned 1001 characters: at most 1000 are shown"),
        (RuntimeError("the model is down, key sk-proj-" + "a1" * 20), "the model is down, key [redacted]"),
        (asyncio.CancelledError(), "gave no answer within 2s"),
    ],
)
@virtual
async def test_the_default_text_is_used_if_the_callable_fails_or_returns_nonsense(given: Any, why: str) -> None:
    async def explain(facts: Mapping[str, Any]) -> Any:
        if isinstance(given, BaseException):
            raise given
        return given

    rt = failing(explain)
    outcome = await rt.call("search")
    assert outcome.explanation.user == USUAL
    (record,) = records(rt, "ExplainFailed")
    assert (record["message"], record["error"]) == ("The default text stands", why)


@virtual
async def test_the_phrased_text_is_sanitised() -> None:
    outcome = await failing(lambda facts: f"Call us:\x1b[31m sk-proj-{'a1' * 20} ").call("search")
    assert outcome.explanation.user == "Call us: [redacted]"


@pytest.mark.parametrize("stubborn", [False, True])
@virtual
async def test_a_slow_callable_is_replaced_by_the_default_text(stubborn: bool) -> None:
    async def explain(facts: Mapping[str, Any]) -> str:
        try:
            await asyncio.sleep(100)
        except asyncio.CancelledError:
            if not stubborn:
                raise
            await asyncio.sleep(50)
        return "At last."

    rt = failing(explain)
    before = asyncio.get_running_loop().time()
    outcome = await rt.call("search")
    assert asyncio.get_running_loop().time() - before == pytest.approx(2, abs=0.5)
    assert outcome.explanation.user == USUAL
    await asyncio.sleep(60)
    assert outcome.explanation.user == USUAL


def test_a_function_that_blocks_does_not_block_the_loop(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(user_text, "PATIENCE", 0.05)

    def explain(facts: Mapping[str, Any]) -> str:
        time.sleep(0.5)
        return "At last."

    async def main() -> None:
        started = time.monotonic()
        assert (await failing(explain).call("search")).explanation.user == USUAL
        assert time.monotonic() - started < 0.4

    asyncio.run(main())


@virtual
async def test_phrasing_takes_at_most_half_of_the_turns_remaining_time() -> None:
    async def explain(facts: Mapping[str, Any]) -> str:
        await asyncio.sleep(100)
        return "At last."

    rt = failing(explain)
    async with rt.turn(timeout="1s") as turn:
        turn.call("search", id="S")
        turn.call("nowhere", id="N")
    assert [outcome.status for outcome in turn.report.outcomes.values()] == ["failed", "failed"]
    assert not turn.report.timed_out


@virtual
async def test_unknown_tools_are_phrased_in_turns_and_out_of_them() -> None:
    rt = Runtime(explain=kind_async)
    assert (await rt.call("nowhere")).explanation.user == "Sorry about nowhere."
    async with rt.turn() as turn:
        turn.call("nowhere", id="N")
        turn.call("nowhere", id="M", depends_on=["N"])
    assert turn.report.outcomes["N"].explanation.user == "Sorry about nowhere."
    assert turn.report.outcomes["M"].status == "skipped"


@virtual
async def test_a_failure_inside_is_phrased_once_by_the_outermost_call() -> None:
    seen: list[tuple[str, str | None]] = []

    async def explain(facts: Mapping[str, Any]) -> str:
        seen.append((facts["tool"], facts["inside"]))
        return "Sorry."

    rt = failing(explain)

    @rt.tool
    async def trip() -> Any:
        async with rt.turn() as turn:
            handle = turn.call("search")
        return await handle.value()

    assert (await rt.call("trip", thread="chat-42")).explanation.user == "Sorry."
    assert seen == [("trip", "search")]


@virtual
async def test_on_escalation_receives_the_phrased_text() -> None:
    told: list[str] = []
    rt = Runtime(explain=kind_async, on_escalation=lambda outcome: told.append(outcome.explanation.user))
    rt.add(Scripted(INVALID), id="search")
    await rt.call("search")
    await rt.call("nowhere")
    await rt.close()
    assert told == ["Sorry about search.", "Sorry about nowhere."]


@virtual
async def test_a_caller_that_leaves_while_it_is_phrased_has_left() -> None:
    rt = failing(kind_sync)
    rt._engine.texts.phraser = lambda facts: asyncio.sleep(1, "Sorry.")
    task = asyncio.create_task(rt.call("search"))
    await asyncio.sleep(0.5)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert len(records(rt, "CallCancelled")) == 1


# --- templates and languages -------------------------------------------------------------------------------------------

GERMAN = {
    "user.tool_transient": "{Label} antwortet gerade nicht.",
    "user.timed_out": "{Label} wurde nicht rechtzeitig fertig.",
    "hotels/user": "Die Hotelsuche geht gerade nicht.",
    "turn.failed": "{labels} ging nicht",
    "turn.completed": "Fertig: {labels}",
    "turn.but": "{completed}, aber {rest}",
    "ask.tool_transient": "{labels} geht {when} vielleicht wieder.",
    "when": "bald",
}
MANIFEST = {
    "language": "de",
    "explanations": {"de": GERMAN, "en": {"user.tool_transient": "No luck with {label}."}},
    "tools": {"search": {"label": "Suche"}},
}


@virtual
async def test_texts_come_from_the_manifest_by_tool_category_and_language() -> None:
    rt = failing(manifest=MANIFEST)
    rt.add(Scripted(DOWN), id="hotels", retry=ONCE)
    rt.add(Scripted("fine"), id="weather", label="Wetter")
    rt.add(Scripted(Takes(100)), id="slow", label="langsam")
    outcome = await rt.call("search")
    assert outcome.explanation.user == "Suche antwortet gerade nicht."
    assert outcome.explanation.model.startswith("search failed: UNAVAILABLE")  # what the catalogue leaves out
    assert (await rt.call("hotels")).explanation.user == "Die Hotelsuche geht gerade nicht."
    async with rt.turn(timeout="1s") as turn:
        turn.call("search")
        turn.call("weather")
        handle = turn.call("slow")
    assert (
        turn.report.message
        == "Fertig: Wetter, aber langsam timed out, and Suche ging nicht. Suche geht bald vielleicht wieder."
    )
    assert (await handle).explanation.user == "Langsam wurde nicht rechtzeitig fertig."


@virtual
async def test_an_outcome_can_be_explained_in_another_language() -> None:
    rt = failing(manifest=MANIFEST)
    outcome = await rt.call("search")
    assert rt.explain(outcome, "en").user == "No luck with Suche."
    assert rt.explain(outcome, "de-AT").user == rt.explain(outcome).user == outcome.explanation.user
    with pytest.raises(ValueError, match="no texts for the language 'fr': there are de, en"):
        rt.explain(outcome, "fr")


@virtual
async def test_explanations_warn_of_effects_of_writes_only() -> None:
    rt = Runtime()
    rt.add(Scripted(TimeoutError("Read timed out")), id="pay", idempotent=False)
    rt.add(Scripted(TimeoutError("Read timed out")), id="look", read_only=True, retry=ONCE)
    pay, look = await rt.call("pay"), await rt.call("look")
    assert pay.explanation.user.endswith("It may have gone through all the same: please check before trying again.")
    assert "It may already have taken effect" in pay.explanation.model
    assert "effect" not in look.explanation.model


@pytest.mark.parametrize("length", [0, 400, 500, 5_000, 100_000])
@virtual
async def test_the_models_text_is_short_whatever_happens(length: int) -> None:
    rt = Runtime(manifest={"explanations": {"en": {"model.failed": "{tool} {data} " + "x" * length}}})
    rt.add(Scripted(ValueError('"\\\n' * length)), id="t" * 200, label="l" * length or "l")
    outcome = await rt.call("t" * 200)
    assert len(outcome.explanation.model) <= 500
