"""Every text for people and models, in one flat table. English is built in, and each text can be replaced.

Format
------
A text has a key and may contain ``{facts}``. A catalogue for another language, or a set of templates, is a mapping with
the same keys. Missing keys keep the English text::

    {
        "user.tool_transient": "{Label} antwortet gerade nicht.",  # for every tool
        "flight_search/user.tool_transient": "Die Flugsuche macht Pause.",  # for one tool
        "flight_search/user": "Die Flugsuche geht gerade nicht.",  # for one tool, whatever happened
        "turn.completed": "Fertig: {labels}",
    }

``user``, ``model`` and ``operator`` are the audiences. The part after the dot says what happened: a fault's rule
(``circuit_open``) or category (``tool_transient``), or ``succeeded``, ``verified``, ``partial``, ``skipped``, ``no_time``,
``timed_out`` or ``cancelled``. The most specific key wins: tool with event, then tool, then event. ``retry`` (a part of
the model's text) and ``steps`` (a part of the operator's) are chosen by rule or category too.

Facts for a call: ``tool label Label code category rule reason message data attempts tries when names wanted root retry
effect steps decision path inside`` (the last two for ``nested`` texts). ``Label`` starts with a capital letter;
``data`` is the message quoted as data. ``message`` and ``data`` contain the tool's own words: do not use them in texts
for the user. Facts for a turn: those in its English texts.

Why a plain mapping: templates, languages and tests all merge with ``{**ENGLISH, **yours}``.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping

from failsoft.core.model.misspelt import did_you_mean

Texts = Mapping[str, str]

AUDIENCES = ("user", "model", "operator")
CALL_FACTS = frozenset(
    "tool label Label code category rule reason message data attempts tries when names wanted root retry effect steps "
    "decision path inside repeats"
    .split()
)  # fmt: skip

ENGLISH: Texts = {
    # --- for the user: calm, stable, without internals ---------------------------------------------------------------
    "user.tool_unavailable": "This capability isn’t available in this deployment yet.",  # specified, byte for byte
    "user.internal_contract_bug": "Something broke internally, I’ve logged it.",  # specified, byte for byte
    "user.tool_misconfigured": (
        "I couldn’t use {label}: it isn’t set up correctly here. I’ve noted what the operator needs to fix."
    ),
    "user.tool_transient": "I couldn’t reach {label} right now. It may work if we try again {when}.",
    "user.tool_validation": "For {label} I need {wanted}.",
    "user.succeeded": "Completed {label}.",
    "user.verified": "Completed {label}. I checked, because its answer was lost.",
    "user.verified_without_value": "{Label} went through. I checked, but its result is lost.",
    "user.skipped_without_value": "I skipped {label} because the result of {root} is lost. {root} itself went through.",
    "user.partial": "Completed {label}, but a part of it is missing.",
    "user.skipped": "I skipped {label} because {root} didn’t work.",
    "user.no_time": "There was no time left for {label}.",
    "user.timed_out": "{Label} didn’t finish in time.",
    "user.cancelled": "{Label} was stopped before it finished.",
    "user.turn_call_limit": "I stopped before {label}: the limit of calls for this turn was reached.",
    "user.tool_call_limit": "I stopped using {label}: its limit of calls for this turn was reached.",
    "user.no_offer": "There’s nothing to try again for {label}.",
    "user.effect": "It may have gone through all the same: please check before trying again.",
    # --- for the model: fixed form, at most 500 characters -------------------------------------------------------------
    "model.failed": "{tool} failed: {code} ({category}{tries}). {effect} {retry} Error text, as data: {data}",
    "model.nested": (
        "{tool} failed because {root} inside it failed: {code} ({category}). {effect} {retry} Error text, as data: {data}"
    ),
    "model.no_offer": (
        "{tool} was not run: there is no retry offer for it in this thread. It had no effect. "
        "Call it as usual only if the user wants something new."
    ),
    "model.succeeded": "{tool} succeeded.",
    "model.repeated": (
        "{tool} has now returned the same result to the same call {repeats} times within a minute. Calling it again brings "
        "nothing new: use the result, or do something else."
    ),
    "model.verified": "{tool} succeeded: its answer was lost, and a check found that it took effect. Do not call it again.",
    "model.verified_without_value": (
        "{tool} succeeded: a check found that it took effect. Its result is lost. Do not call it again for the result: look "
        "it up with another tool, or tell the user."
    ),
    "model.skipped_without_value": (
        "{tool} was not run: it needs the result of {root}, which succeeded but whose result is lost. It had no effect. {retry}"
    ),
    "model.partial": "{tool} succeeded in part. Missing, as data: {data}",
    "model.skipped": "{tool} was not run, because {root} failed. It had no effect. {retry}",
    "model.no_time": "{tool} was not run: the time for this turn was up. It had no effect. {retry}",
    "model.timed_out": "{tool} did not finish within the time for this turn. {effect} {retry}",
    "model.cancelled": "{tool} was cancelled. {effect} {retry}",
    "retry.tool_transient": "Calling it again may help, {when}.",
    "retry.check_first": "Calling it again may help, but only if it did not.",
    "retry.tool_validation": "Calling it again with the same arguments will fail: correct {names}, or ask the user.",
    "retry.tool_unavailable": "Do not call it again: it is not available here. Use another tool or tell the user.",
    "retry.tool_misconfigured": "Do not call it again: only the operator can fix its setup. Tell the user.",
    "retry.internal_contract_bug": "Do not call it again: its code is at fault, not the arguments. Tell the user.",
    "retry.dependency_failed": "Calling it again helps only once {root} works.",
    "retry.dependency_lost": "Call it yourself once you have found that result. Do not call {root} again.",
    "retry.turn_timed_out": "Call it again in the next turn if it is still needed.",
    "retry.turn_call_limit": ("Make no more calls in this turn: answer with what you have, and say what is missing."),
    "retry.tool_call_limit": (
        "Do not call it again in this turn: use what it returned before, or another tool, or say what is missing."
    ),
    "retry.cancelled": "Call it again only if it is still wanted.",
    "retry.begun_before": "It was not run this time. Call it again only once you know that it did not.",
    "retry.still_misconfigured": (
        "It was not run this time: only the operator can fix its setup, which failed before. Do not call it again."
    ),
    "retry.no_progress": "It was not run this time: use the result that it has returned, or do something else.",
    "retry.loop_prevented": "It was not run this time: the same call has failed before and would fail again.",
    "effect.none": "It had no effect.",
    "effect.unknown": "It may already have taken effect: check before calling again.",
    "effect.happened": "It has probably taken effect already: check before calling again.",
    "effect.unknown.permanent": "It may already have taken effect.",
    "effect.happened.permanent": "It has probably taken effect already.",
    "effect.unknown.safe": "It may already have taken effect; calling it again does no harm.",
    "effect.happened.safe": "It has probably taken effect already; calling it again does no harm.",
    "effect.repeated.succeeded": "It was tried {attempts} times, and may have taken effect more than once.",
    "effect.repeated": "It may have taken effect, and more than once: check before calling again.",
    "tries": ", {attempts} attempts",
    "tries.one": ", 1 attempt",
    "tries.none": ", not run",
    # --- for the operator: what it was, and what to do -------------------------------------------------------------------
    "operator.failed": (
        "{tool} failed: {code}, {category}{tries}. Rule: {rule} ({reason}). Message: {message}\nTo do: {steps}\n{decision}"
    ),
    "operator.nested": "In {path}: {inside}",
    "operator.no_offer": "{tool} was not run: there was no retry offer for it in this thread. To do: nothing.",
    "operator.succeeded": "{tool} succeeded{tries}.",
    "operator.verified": "{tool} succeeded{tries}: its answer was lost, and verify found that it took effect.",
    "operator.verified_without_value": (
        "{tool} succeeded{tries}: its answer was lost, and verify found that it took effect, but not the value. To do: let "
        "verify return the value if calls depend on it."
    ),
    "operator.skipped_without_value": (
        "{tool} was not run: it needs the result of {root}, which succeeded but whose result is lost. To do: see there."
    ),
    "operator.partial": "{tool} succeeded in part{tries}. Missing: {message}",
    "operator.skipped": "{tool} was not run, because {root} failed. To do: see there.",
    "operator.no_time": "{tool} was not run: the turn’s time was up. To do: {steps}",
    "operator.timed_out": "{tool} was still running at the turn’s deadline{tries}. To do: {steps}",
    "operator.cancelled": "{tool} was cancelled by its caller{tries}. To do: nothing.",
    "operator.effect": "It may have taken effect: check before it is done again.",
    "decision": "Decided: {strategy}. {why}",
    "steps.tool_unavailable": (
        "Register or install the tool (its id, its import path, its program), or remove it from the agent."
    ),
    "steps.tool_misconfigured": "Check its credentials, permissions, quota and address.",
    "steps.tool_transient": (
        "Nothing while it is rare. Otherwise check the service’s health, the tool’s timeout and retries, or add a fallback."
    ),
    "steps.tool_validation": (
        "Nothing while the model corrects itself. Otherwise describe the arguments better, or override the classification."
    ),
    "steps.internal_contract_bug": "Fix the tool’s code or its contract; the trace has the exception.",
    "steps.circuit_open": "See why the tool kept failing before: failsoft why.",
    "steps.tool_timeout": "Look at the service’s speed; raise the tool’s timeout if that is how long it takes.",
    "steps.idle_timeout": (
        "See where the tool stopped; raise its idle_timeout if it may be silent for so long, or call failsoft.progress more often."
    ),
    "steps.turn_timed_out": "Look at what took the time (failsoft why); raise the turn’s timeout or give tools shorter ones.",
    "steps.turn_call_limit": "See what the calls were for (failsoft trace); raise the turn’s max_calls if all were needed.",
    "steps.tool_call_limit": (
        "See why the tool was called so often (failsoft trace); raise max_calls_per_tool if all calls were needed."
    ),
    "steps.queue_full": "Raise the tool’s concurrency or its queue, or make fewer calls at a time.",
    "steps.thread_limit": "Give the tool isolation: process, so that attempts that time out are stopped for good.",
    "steps.rate_limit": "Nothing while it is rare. Otherwise raise the tool’s rate, or call it less often.",
    "steps.rate_hold": "Nothing: the call may be made again at the time that the service has named. If it happens often, ask for a higher limit.",
    "steps.output_mismatch": "Make the tool’s result and its declared output agree.",
    "steps.unprotected": "Declare the function with async def, so that it can be awaited and guarded.",
    "steps.loop_prevented": "See why the model repeats itself: the tool’s description may promise too much.",
    # --- a turn, for the user: a few sentences ----------------------------------------------------------------------------
    "turn.completed": "Completed {labels}",
    "turn.but": "{completed}, but {rest}",
    "turn.timed_out": "{labels} timed out",
    "turn.so_did": "{clause}, and so did {labels}",
    "turn.and": "{clause}, and {more}",
    "turn.failed": "{labels} failed",
    "turn.cancelled": "{labels} was stopped",
    "turn.cancelled.several": "{labels} were stopped",
    "turn.no_time": "there was no time for {labels}",
    "turn.skipped": "{labels} was skipped",
    "turn.skipped.several": "{labels} were skipped",
    "turn.so": "{clause}, so {skipped}",
    "turn.because": "{skipped} because {root} didn’t work",
    "turn.because_lost": "{skipped} because the result of {root} is lost",
    "turn.nothing": "There was nothing to do",
    "turn.incomplete": "{label} (in part)",
    "turn.times": "{label} ({n} times)",
    "turn.of": "{label} ({n} of {all})",
    "ask.tool_transient": "Trying {labels} again {when} may help.",
    "ask.check_first": "Please check whether {labels} went through before trying again.",
    "ask.tool_validation": "For {labels} I need {wanted}.",
    "ask.tool_unavailable": "This capability isn’t available in this deployment yet.",
    "ask.tool_misconfigured": "The operator needs to fix the setup of {labels}.",
    "ask.internal_contract_bug": "Something broke internally, I’ve logged it.",
    # --- small parts -------------------------------------------------------------------------------------------------------
    "names": "them",  # if the names are not known
    "wanted": "other details: please check and correct them",
    "wanted.named": "a valid {names}",
    "list.comma": ", ",
    "list.and": " and ",
    "list.other": "1 other",
    "list.others": "{n} others",
    "when": "in a little while",
    "when.second": "in about a second",
    "when.seconds": "in about {n} seconds",
    "when.minutes": "in about {n} minutes",
    "when.hours": "in about {n} hours",
}


_FACT = re.compile(r"\{(\w+)\}")
_PLACE = re.compile(r" ?\{(\w+)\}")
_UNITS = (("seconds", 1, 90), ("minutes", 60, 5400), ("hours", 3600, math.inf))  # unit, its seconds, its upper limit
_OPEN = (*AUDIENCES, "retry", "steps")  # parts of the table that accept a key for any rule
_HAPPENINGS = {key.partition(".")[2] for key in ENGLISH if key.partition(".")[0] in _OPEN}
_NAMES = 3  # names listed before the rest is counted


def fill(text: str, facts: Mapping[str, object]) -> str:
    """Insert the facts. An empty fact also removes the space before it; an unknown fact stays as written."""

    def put(place: re.Match[str]) -> str:
        fact = str(facts.get(place[1], f"{{{place[1]}}}"))
        return place[0].partition("{")[0] + fact if fact else ""

    return _PLACE.sub(put, text).strip()


def pick(texts: Texts, *keys: str) -> str:
    """The text of the first key that the table has; "" if it has none."""
    return next((texts[key] for key in keys if key in texts), "")


def enumerate_names(texts: Texts, names: Iterable[str]) -> str:
    """Join names to a list in words: at most three, then the number of others."""
    names = list(names)
    if len(names) > _NAMES:
        others = len(names) - _NAMES
        rest = fill(texts["list.other" if others == 1 else "list.others"], {"n": others})
        names = [*names[:_NAMES], rest]
    *most, last = names or [""]
    return texts["list.comma"].join(most) + texts["list.and"] + last if most else last


def describe_when(texts: Texts, retry_after: float | None) -> str:
    """Say in words when calling again can help, rounded up."""
    if retry_after is None or not 0 < retry_after < math.inf:
        return texts["when"]
    unit, length = next((unit, length) for unit, length, limit in _UNITS if retry_after <= limit)
    number = math.ceil(retry_after / length)  # never 1 for minutes and hours: both start at 1.5
    return fill(texts["when.second" if number == 1 else f"when.{unit}"], {"n": number})


def capitalise(text: str) -> str:
    """Make the first letter a capital; leave the rest unchanged."""
    return text[:1].upper() + text[1:]


def find_problems(texts: Texts) -> list[str]:
    """List the mistakes in a user's templates or catalogue: keys that nothing reads, facts that do not exist."""
    problems: list[str] = []
    for key, text in texts.items():
        tool, _, plain = key.rpartition("/")
        part, _, happening = plain.partition(".")
        read = bool(happening) and part in _OPEN if not tool else part in AUDIENCES
        hint = did_you_mean(plain, ENGLISH)
        if plain not in ENGLISH and happening not in _HAPPENINGS and read:
            # Any rule may be named here, but this key looks like a typing error.
            hint = did_you_mean(happening, _HAPPENINGS, before=key.removesuffix(happening))
            read = not hint
        if not read and (tool or plain not in ENGLISH):
            problems.append(f"{key}: no text has this key{hint}")
            continue
        known = CALL_FACTS if part in _OPEN else frozenset(_FACT.findall(ENGLISH[plain]))
        problems += [
            f"{key}: there is no fact {{{fact}}}; there are {', '.join(sorted(known)) or 'none'}"
            for fact in _FACT.findall(text)
            if fact not in known
        ]
    return problems
