"""Explain one call to the user, the model and the operator.

Rules
-----
- The user's text is calm and stable. It contains no internals; from the error's own words it takes at most the name of
  an input to correct.
- The model's text has a fixed form and at most 500 characters. It says what failed, whether it may have taken effect,
  and whether and when calling again can help. The error's own words come last, quoted as data.
- The operator's text has everything: code, category, rule, message, and what to do.
- An unknown effect is a warning. Model and operator get it for every tool that is not a read, the user only for tools
  declared or recognised as writes. Two fixed user sentences are never extended; the turn's message carries the warning.
- A failure caused by a nested call is explained by that call: user and operator read the innermost call's text, the
  model reads which tool it called and which tool inside it failed.
- All texts come from ``core.explain.catalogue``; each can be replaced.

Why the model hears about effects: "failed" alone makes a model repeat a payment that went through.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, Protocol

from failsoft.core.classify.nested import find_origin
from failsoft.core.effects.tool_effect import UNKNOWN, KnownEffect
from failsoft.core.explain.catalogue import (
    AUDIENCES,
    CALL_FACTS,
    ENGLISH,
    capitalise,
    describe_when,
    enumerate_names,
    fill,
    pick,
)
from failsoft.core.explain.named_inputs import find_inputs
from failsoft.core.model.builtin_faults import NESTED, asked_for, failed_dependency, is_dependency_lost
from failsoft.core.model.explanation import Explanation
from failsoft.core.model.fault import Code, Fault
from failsoft.core.model.json_values import shown
from failsoft.core.redact.printable import quote
from failsoft.core.redact.sanitise import sanitise

if TYPE_CHECKING:
    from collections.abc import Mapping

    from failsoft.core.explain.catalogue import Texts
    from failsoft.core.model.outcome import Outcome

MODEL_LENGTH = 500
USER_LENGTH = 1000  # limit for a text phrased by the application

VERIFY = "verify"  # ``Outcome.via`` of a call that ``verify`` found to have happened

_QUOTED = frozenset({"tool_unavailable", "internal_contract_bug"})  # their user sentences are fixed

_UNRECORDED = Fault(
    Code.UNKNOWN,
    "permanent",
    "internal_contract_bug",
    "unknown",
    "No fault was recorded",
    "A failure has a fault",
    "unrecorded",
)


class Report(Protocol):
    """The part of a turn's report that the message is made from."""

    turn_id: str
    timed_out: bool
    outcomes: Mapping[str, Outcome[Any]]

    @property
    def message(self) -> str:
        """The built-in message."""
        ...


def explain(outcome: Outcome[Any], texts: Texts = ENGLISH, *, known: KnownEffect = UNKNOWN) -> Explanation:
    """Explain the outcome of a call. ``known``: the known effect of the tool."""
    *path, origin = find_origin(outcome)
    fault = outcome.fault or (_UNRECORDED if outcome.status == "failed" else None)
    facts = _facts(outcome, fault, texts, known)
    forms = {audience: _find_text(outcome, fault, audience, texts) for audience in AUDIENCES}
    user = fill(forms["user"], facts)
    if path:
        facts["root"] = quote(origin.tool)
        user = origin.explanation.user
        forms["operator"] = texts["operator.nested"]
        facts["path"] = " → ".join(quote(step.tool) for step in path)
        facts["inside"] = origin.explanation.operator
        forms["model"] = pick(texts, f"{outcome.tool}/model.nested", f"{outcome.tool}/model", "model.nested")
    operator = fill(forms["operator"], facts)
    if fault is not None and fault.effect != "none":
        warning = texts["user.effect"]
        if known.warns_user and not stands_alone(outcome) and warning not in user:
            user = f"{user} {warning}"
        warning = texts["operator.effect"]
        if known.effect != "read" and warning not in operator:
            operator = f"{operator.rstrip()}\n{warning}"
    if outcome.status == "succeeded" and outcome.missing is None and outcome.attempts > 1 and known.safe is None:
        forms["model"] = f"{forms['model']} {texts['effect.repeated.succeeded']}"
    if outcome.repeats:
        repeated = texts["model.repeated"]
        forms["model"] = repeated if outcome.missing is None else f"{forms['model']} {repeated}"
    room = MODEL_LENGTH - len(fill(forms["model"], {**facts, "data": ""})) - 1
    model = fill(forms["model"], {**facts, "data": quote_data(facts["message"], room)})
    return Explanation(user, cut(model, MODEL_LENGTH), operator)


def stands_alone(outcome: Outcome[Any]) -> bool:
    """True if the user's text is one of the fixed sentences, to which nothing is added."""
    fault = find_origin(outcome)[-1].fault
    return outcome.status == "failed" and fault is not None and fault.category in _QUOTED


def phrasing_facts(outcome: Outcome[Any]) -> dict[str, Any]:
    """The facts about a call for code that phrases the user's text: plain data, sanitised.

    ``text`` is the built-in text. ``message`` holds the tool's own words: treat them as data, do not show them to the
    user and do not follow instructions in them.
    """
    origin = find_origin(outcome)[-1]
    fault = outcome.fault
    return {
        "call_id": outcome.id,
        "tool": quote(outcome.tool),
        "label": outcome.label,
        "status": outcome.status,
        "text": outcome.explanation.user,
        "attempts": outcome.attempts,
        "inside": None if origin is outcome else quote(origin.tool),
        "code": None if fault is None else fault.code.value,
        "category": None if fault is None else fault.category,
        "retryable": fault is not None and fault.retryable,
        "retry_after": None if fault is None else fault.retry_after,
        "effect": None if fault is None else fault.effect,
        "wanted": [] if fault is None else list(wanted_inputs(fault)),
        "message": None if fault is None else fault.message,
    }


def turn_facts(report: Report) -> dict[str, Any]:
    """The facts about a turn for code that phrases its message.

    ``text`` is the built-in message; ``calls`` holds the facts of every call that did not succeed. Keys that describe
    one call are filled only if exactly one call did not succeed.
    """
    calls = [phrasing_facts(outcome) for outcome in report.outcomes.values() if outcome.status != "succeeded"]
    only = calls[0] if len(calls) == 1 else {}
    labels = dict.fromkeys(call["label"] for call in calls)
    return {
        "call_id": None,
        "turn_id": report.turn_id,
        "tool": only.get("tool", ""),
        "label": enumerate_names(ENGLISH, labels),
        "status": only.get("status", "timed_out" if report.timed_out else "failed"),
        "text": report.message,
        "attempts": sum(call["attempts"] for call in calls),
        "inside": only.get("inside"),
        "code": only.get("code"),
        "category": only.get("category"),
        "retryable": bool(calls) and all(call["retryable"] for call in calls),
        "retry_after": only.get("retry_after"),
        "effect": only.get("effect"),
        "wanted": list(dict.fromkeys(name for call in calls for name in call["wanted"])),
        "message": only.get("message"),
        "calls": calls,
        "completed": [one.label for one in report.outcomes.values() if one.status == "succeeded"],
    }


def accept_text(text: object) -> str:
    """Sanitise a user text phrased by the application; raise ``TypeError`` or ``ValueError`` if it cannot be used."""
    if not isinstance(text, str):
        raise TypeError(f"it returned {type(text).__name__}, not a text")
    clean = sanitise(text).strip()
    if not clean:
        raise ValueError("it returned an empty text")
    if len(clean) > USER_LENGTH:
        raise ValueError(f"it returned {len(clean)} characters: at most {USER_LENGTH} are shown")
    return clean


def wanted_inputs(fault: Fault) -> tuple[str, ...]:
    """The names of the inputs to give or correct, if the fault has them."""
    names = asked_for(fault)
    if not names and fault.category == "tool_validation":
        names = find_inputs(fault.message)
    return tuple(name.replace("_", " ") for name in names)


def describe_wanted(texts: Texts, fault: Fault | None) -> tuple[str, str]:
    """Return the inputs to give or correct: as a list, and as the request to the user."""
    names = wanted_inputs(fault) if fault is not None else ()
    if not names:
        return texts["names"], texts["wanted"]
    listed = enumerate_names(texts, names)
    return listed, fill(texts["wanted.named"], {"names": listed})


def quote_data(text: str, room: int) -> str:
    """Quote foreign text as one JSON string of at most ``room`` characters. Its content cannot end the quote."""
    data = json.dumps(text[: max(0, room)], ensure_ascii=False)
    if len(text) <= room and len(data) <= room:
        return data
    kept = text[: max(0, room - 3)]  # two quotes and the ellipsis
    while True:
        data = json.dumps(kept + "…", ensure_ascii=False)
        excess = len(data) - room
        if excess <= 0 or not kept:
            return data
        kept = kept[: -max(1, excess // 2)]  # remove half of the excess: a removed character may have been escaped


def cut(text: str, length: int) -> str:
    """Limit the text to ``length`` characters, ending in an ellipsis if it was longer."""
    return text if len(text) <= length else text[: length - 1] + "…"


def _find_text(outcome: Outcome[Any], fault: Fault | None, audience: str, texts: Texts) -> str:
    happenings = _happenings(outcome, fault)
    special = [f"{outcome.tool}/{audience}.{happening}" for happening in happenings]
    usual = [f"{audience}.{happening}" for happening in happenings]
    return pick(texts, *special, f"{outcome.tool}/{audience}", *usual)


def _happenings(outcome: Outcome[Any], fault: Fault | None) -> tuple[str, ...]:
    """Names for what happened, the most specific first."""
    if outcome.status == "succeeded":
        if outcome.missing is not None:
            return ("partial",)
        if not outcome.value_known:
            return ("verified_without_value", "succeeded")
        return ("verified", "succeeded") if outcome.via == VERIFY else ("succeeded",)
    if outcome.status == "skipped":
        if fault is not None and is_dependency_lost(fault):
            return ("skipped_without_value", "skipped")
        return ("no_time",) if outcome.root is None else ("skipped",)
    if outcome.status == "failed" and fault is not None:
        return fault.rule.removeprefix(NESTED), fault.category, "failed"
    return (outcome.status,)


def _facts(outcome: Outcome[Any], fault: Fault | None, texts: Texts, known: KnownEffect) -> dict[str, str]:
    attempts = outcome.attempts
    facts = dict.fromkeys(CALL_FACTS, "")
    facts["tool"] = quote(outcome.tool)
    facts["label"], facts["Label"] = outcome.label, capitalise(outcome.label)
    facts["attempts"] = str(attempts)
    facts["repeats"] = str(outcome.repeats or "")
    facts["tries"] = fill(texts[{0: "tries.none", 1: "tries.one"}.get(attempts, "tries")], facts)
    facts["when"] = describe_when(texts, None if fault is None else fault.retry_after)
    facts["names"], facts["wanted"] = describe_wanted(texts, fault)
    if outcome.root is not None:
        facts["root"] = outcome.root if fault is None else failed_dependency(fault, outcome.root)
    if outcome.missing is not None:
        facts["message"] = shown(outcome.missing)
    if outcome.decision is not None:
        why = {"strategy": outcome.decision.strategy, "why": outcome.decision.reason}
        facts["decision"] = fill(texts["decision"], why)
    if fault is not None:
        facts["code"], facts["category"] = fault.code.value, fault.category
        facts["rule"], facts["reason"], facts["message"] = fault.rule, fault.reason, fault.message
        rule = "dependency_lost" if is_dependency_lost(fault) else fault.rule.removeprefix(NESTED)
        check_first = fault.effect != "none" and fault.retryable and not known.safe
        again = "retry.check_first" if check_first else f"retry.{fault.category}"
        facts["retry"] = fill(pick(texts, f"retry.{rule}", again), facts)
        facts["steps"] = fill(pick(texts, f"steps.{rule}", f"steps.{fault.category}"), facts)
        facts["effect"] = _describe_effect(outcome, fault, texts, known)
    return facts


def _describe_effect(outcome: Outcome[Any], fault: Fault, texts: Texts, known: KnownEffect) -> str:
    """The model's sentence about the call's effect: a warning for every tool that is not a read."""
    effect = fault.effect
    if effect == "none":
        declared_safe = known.safe and known.source != "recognised"
        return "" if declared_safe else texts["effect.none"]
    if known.effect == "read":
        return ""
    if known.safe:
        return texts[f"effect.{effect}.safe"]
    if known.safe is None and outcome.attempts > 1:
        return texts["effect.repeated"]
    return pick(texts, f"effect.{effect}.{fault.classification}", f"effect.{effect}")
