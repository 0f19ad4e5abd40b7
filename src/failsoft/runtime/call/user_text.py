"""Texts for the user: the catalogue of a runtime, and the user's own function that phrases texts (the *phraser*).

Rules
-----
- A phraser gets facts without secrets (``core.explain.explanation.phrasing_facts``) and returns the text for the user. It
  may be a function or a coroutine function. It has ``PATIENCE`` seconds, in a turn at most half of the remaining time.
- If it fails, is slow, or returns anything but text, the built-in text is used, and an event says so.
- The texts for model and operator are never phrased.
"""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from failsoft.core.redact.sanitise import sanitise
from failsoft.observe import events
from failsoft.runtime.call.own_thread import run_in_own_thread

if TYPE_CHECKING:
    from failsoft.analysis.turn_report import TurnReport
    from failsoft.core.explain.catalogue import Texts
    from failsoft.core.model.outcome import Outcome
    from failsoft.runtime.call.model import CallTurn
    from failsoft.runtime.call.ports import PhraserServices

PATIENCE = 2.0  # seconds


class Catalogue:
    """The texts by language. English fills the gaps of every other language."""

    def __init__(self, languages: Mapping[str, Texts] | None = None, language: str = "en") -> None:
        self._languages = dict(languages or {})
        self._language = language
        self._made: dict[str, Texts] = {}

    def texts(self, language: str | None = None) -> Texts:
        """Return the texts of a language: its own, then those of its base language ("de" for "de-AT"), then English."""
        wanted = language or self._language
        made = self._made.get(wanted)
        if made is None:
            from failsoft.core.explain.catalogue import ENGLISH  # start-up: most runs need no texts

            general = wanted.partition("-")[0]
            if not {wanted, general} & {"en", *self._languages}:
                known = ", ".join(sorted({"en", *self._languages}))
                raise ValueError(f"there are no texts for the language {wanted!r}: there are {known}")
            layers = [self._languages.get(name, {}) for name in dict.fromkeys((general, wanted))]
            made = {**ENGLISH}
            for layer in layers:
                made |= layer
            self._made[wanted] = made
        return made


async def phrase(
    rt: PhraserServices, turn: CallTurn | None, outcome: Outcome[Any], patience: float | None = None
) -> None:
    """Replace the user's text of an outcome with a phrased one, if the phraser returns it in time."""
    from failsoft.core.explain.explanation import phrasing_facts

    if patience is None:
        remaining = None if turn is None else turn.left()
        patience = PATIENCE if remaining is None else max(0.0, min(PATIENCE, remaining / 2))
    text = await _phrase(rt, phrasing_facts(outcome), patience, (outcome.id, None if turn is None else turn.id))
    if text is not None:
        outcome.reword(text)


async def phrase_turn(rt: PhraserServices, report: TurnReport, patience: float) -> str | None:
    """Return the phrased message of a turn, with all texts that policies set; None to use the built-in message."""
    from failsoft.core.explain.explanation import turn_facts

    told = report.told
    if told and len(told) == len([one for one in report.outcomes.values() if one.status != "succeeded"]):
        return None  # a policy has set a text for every failure
    text = await _phrase(rt, turn_facts(report), patience, (None, report.turn_id))
    if text is None:
        return None
    return " ".join([text, *(words for words in dict.fromkeys(told.values()) if words not in text)])


async def _phrase(
    rt: PhraserServices, facts: Mapping[str, Any], patience: float, about: tuple[str | None, str | None]
) -> str | None:
    """Return the sanitised text; None if there is none in time. That is recorded. ``about``: ids of call and turn."""
    from failsoft.core.explain.explanation import accept_text

    asking = asyncio.ensure_future(_ask_phraser(rt, facts))
    try:
        await asyncio.wait([asking], timeout=patience)
        if not asking.done() or asking.cancelled():
            raise TimeoutError(f"gave no answer within {patience:g}s")
        return accept_text(asking.result())
    except Exception as error:
        rt.log.record_event(
            events.EXPLAIN_FAILED, None, *about, {"message": "The default text stands", "error": sanitise(error)}
        )
        return None
    finally:
        asking.cancel()  # do not wait: a phraser that ignores cancellation must not delay the call


async def _ask_phraser(rt: PhraserServices, facts: Mapping[str, Any]) -> Any:
    phraser = rt.texts.phraser
    assert phraser is not None
    if inspect.iscoroutinefunction(phraser) or inspect.iscoroutinefunction(getattr(phraser, "__call__", None)):  # noqa: B004
        return await phraser(facts)  # type: ignore[misc]  # it is a coroutine
    made = await run_in_own_thread(rt.places.thread_pool, lambda: phraser(facts), "phrase it in")
    return await made if inspect.isawaitable(made) else made
