"""Write the tables of docs/ that the code can answer: ``python -m tools.tables_page``.

Each table comes from calling the functions that decide at run time, over all cases.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product
from pathlib import Path
from typing import cast, get_args

from tools.pages import DOCS, fill, table, write

from failsoft.core.classify import classify
from failsoft.core.classify.kinds import KINDS
from failsoft.core.effects.tool_effect import KnownEffect
from failsoft.core.model.fault import Category, Code, Effect, Fault
from failsoft.core.model.options import BreakerOptions, RetryOptions
from failsoft.core.resilience import circuit_breaker
from failsoft.core.resilience.backoff import delay
from failsoft.core.resilience.circuit_breaker import BreakerState, Refusal, Ticket, admit, observe, record
from failsoft.core.resilience.error_handler import ErrorReport, decide
from failsoft.core.resilience.fallback import forbids_fallback, may_have_acted
from failsoft.core.resilience.retry import Attempts, Retry, plan_retry
from failsoft.core.resilience.retry_budget import FULL, Budget, spend
from failsoft.core.turn.cascade import cascade
from failsoft.testing import faults

# --- is it safe to retry? --------------------------------------------------------------------------------------------

DECLARED: tuple[tuple[str, bool | None], ...] = (
    ("a read, `idempotent: true` or an `idempotency_key`", True),
    ("neither declared nor recognised", None),
    ("a write", False),
)
EFFECTS = {"none": "nothing has happened", "unknown": "it may have happened", "happened": "it has happened"}


def ask(fault: Fault, safe: bool | None) -> str:
    """Return what ``plan_retry`` decides for a first failure."""
    plan = plan_retry(RetryOptions(), fault, Attempts(1, 0.0, 0.0, 0.1), safe=safe, jitter=0.0, now=0.0)
    return "**retry**" if isinstance(plan, Retry) else f"no: {plan.why}"


def transient(code: Code, effect: Effect) -> Fault:
    return Fault(code, "transient", "tool_transient", effect, "", "", "")


def retries() -> str:
    """Tabulate all codes, effects and declarations; codes with equal results share their rows."""
    alike: dict[tuple[tuple[str, ...], ...], list[Code]] = {}
    for code in Code:
        answers = tuple(answer(transient(code, effect)) for effect in get_args(Effect))
        alike.setdefault(answers, []).append(code)
    rows: list[tuple[str, ...]] = []
    for answers, group in sorted(alike.items(), key=lambda item: -len(item[1])):
        who = "any code but CANCELLED" if len(group) == len(Code) - 1 else ", ".join(group)
        if len({*answers}) == 1:
            rows.append((f"transient, {who}", "whatever has happened", *answers[0]))
        else:
            rows += [
                (f"transient, {who}", EFFECTS[effect], *one)
                for effect, one in zip(get_args(Effect), answers, strict=True)
            ]
    for category in get_args(Category):
        if category != "tool_transient":
            codes = [code for code in Code if code is not Code.CANCELLED]
            faults = [
                Fault(code, "permanent", category, effect, "", "", "")
                for code, effect in product(codes, get_args(Effect))
            ]
            (one,) = {answer(fault) for fault in faults}
            rows.append((f"permanent, `{category}`", "whatever has happened", *one))
    return table(("the error is", "and", *(title for title, _ in DECLARED)), rows)


def answer(fault: Fault) -> tuple[str, ...]:
    return tuple(ask(fault, safe) for _, safe in DECLARED)


PRIMARIES = {
    "a read": KnownEffect("read", "declared", "", safe=True),
    "`idempotent: true` or an `idempotency_key`": KnownEffect("write", "declared", "", safe=True),
    "neither declared nor recognised": KnownEffect("neither", "unknown", "", safe=None),
    "another write": KnownEffect("write", "declared", "", safe=False),
}


def stand_ins() -> str:
    """Tabulate whether a fallback may replace a failed tool."""
    rows = []
    for effect, meaning in EFFECTS.items():
        rows.append((meaning, *(which_may_follow(cast("Effect", effect), known) for known in PRIMARIES.values())))
    return table(("of the attempt is known that", *PRIMARIES), rows)


def which_may_follow(effect: Effect, known: KnownEffect) -> str:
    """List the fallbacks allowed after a tool with this effect."""
    if forbids_fallback(effect, known, known):
        return "no"
    return "**yes**, unless it writes" if may_have_acted(effect, known) else "**yes**"


def effects() -> str:
    """List the kinds of transient error that may have had an effect."""
    words = {
        "none": "surely nothing: never sent, turned away or rolled back",
        "unknown": "unknown: it was sent, and its result is not known",
    }
    rows = []
    for effect, meaning in words.items():
        kinds = [name for name, kind in KINDS.items() if kind.classification == "transient" and kind.effect == effect]
        rows.append((meaning, ", ".join(f"`{name}`" for name in kinds)))
    return table(("what has happened", "kinds of error"), rows)


def waits() -> str:
    """Tabulate the delays between attempts, with the defaults."""
    options = RetryOptions()
    rows = []
    for number in range(1, options.max_attempts):
        low, high = (delay(options, number, jitter=jitter) for jitter in (0.0, 1.0))
        middle = (low + high) / 2
        rows.append((number, number + 1, f"{middle * 1000:.0f} ms", f"{low * 1000:.0f} to {high * 1000:.0f} ms"))
    return table(("after failed attempt", "before attempt", "wait", "with jitter"), rows)


# --- breaker ---------------------------------------------------------------------------------------------------------

OPTIONS = BreakerOptions(failure_threshold=3)
NOW, LEASE = 1000.0, 10.0


def situations() -> Iterator[tuple[str, BreakerState, Ticket, float]]:
    """Yield distinct states: name, state, the ticket of a running call, the time."""
    closed = BreakerState()
    yield "closed", closed, Ticket(0, None), NOW
    last = closed._replace(failures=OPTIONS.failure_threshold - 1)
    yield f"closed, {last.failures} of {OPTIONS.failure_threshold} failures", last, Ticket(0, None), NOW
    opened = record(last, OPTIONS, Ticket(0, None), "failure", now=NOW)
    yield "open", opened, Ticket(0, None), NOW + 1
    later = NOW + OPTIONS.timeout
    yield "open, its time is over", opened, Ticket(0, None), later
    probing, ticket = admit(opened, OPTIONS, now=later, lease=LEASE)
    assert isinstance(ticket, Ticket)
    yield "half_open, a probe is out", probing, ticket, later + 1
    yield "half_open, the probe's lease is over", probing, ticket, later + LEASE + 1


def name_of(state: BreakerState, now: float) -> str:
    seen = observe(state, OPTIONS, now=now)
    if seen == "closed" and state.failures:
        return f"closed, {state.failures} of {OPTIONS.failure_threshold} failures"
    return seen


def breaker_table() -> str:
    """Tabulate every state against every input."""
    rows = []
    for name, state, ticket, now in situations():
        after, answer = admit(state, OPTIONS, now=now, lease=LEASE)
        if isinstance(answer, Refusal):
            call = f"refused for {answer.retry_after:g} s"
        else:
            call = "let through" if answer.probe is None else f"let through as the probe → {after.state}"
        cells = []
        for result in get_args(circuit_breaker.Result):
            end = record(state, OPTIONS, ticket, result, now=now)
            if end is state:
                cells.append("as before")
            elif end._replace(lease=0) == state._replace(lease=0):
                cells.append("the slot is free again")
            else:
                cells.append(f"→ {name_of(end, now)}")
        rows.append((name, call, *cells))
    titles = (
        "state",
        "a call comes",
        "one that was let through succeeds",
        "fails, transient",
        "fails, permanent; or is cancelled",
    )
    return table(titles, rows)


def breaker_diagram() -> str:
    """Draw the transitions between the three states, found by trying."""
    words = {"success": "a probe succeeds", "failure": "failure_threshold failures in a row", "neutral": ""}
    edges: dict[tuple[str, str], str] = {}
    for _, state, ticket, now in situations():
        before = state.state
        if observe(state, OPTIONS, now=now) != before:
            edges[before, observe(state, OPTIONS, now=now)] = "timeout is over"
        for result in get_args(circuit_breaker.Result):
            after = record(state, OPTIONS, ticket, result, now=now).state
            if after != before:
                edges[before, after] = words[result] if before == "closed" or result == "success" else "a probe fails"
    lines = [f"    {one} --> {other}: {why}" for (one, other), why in edges.items()]
    return "\n".join(["```mermaid", "stateDiagram-v2", "    [*] --> closed", *lines, "```"])


# --- the Error Handler -----------------------------------------------------------------------------------------------

FAILED = transient(Code.UNAVAILABLE, "none")
BAD_KEY = Fault(Code.UNAUTHENTICATED, "permanent", "tool_misconfigured", "none", "", "", "")


def report(fault: Fault = FAILED, **facts: object) -> ErrorReport:
    usual: dict[str, object] = {
        "attempt": 5, "retry_count": 4, "breaker_state": "closed", "retry_delay": None,
        "no_retry": "max attempts reached (5)", "alternatives": (),
    }  # fmt: skip
    return ErrorReport(fault, "search", "search-1", **{**usual, **facts})  # type: ignore[arg-type]


def decisions() -> str:
    """Tabulate a ladder of situations. Each includes all below it, so the order of the rules shows."""
    ladder: list[tuple[str, Fault, dict[str, object]]] = [
        ("a retry is possible", FAILED, {"retry_delay": 0.1, "attempt": 1, "retry_count": 0}),
        ("no retry is possible, and a fallback takes the error", FAILED, {"alternatives": ("cached_search",)}),
        ("no fallback, and a partial result is acceptable", FAILED, {"has_partial": True}),
        (
            "no partial result, and an open circuit refused the call",
            FAILED,
            {"breaker_state": "open", "no_retry": "circuit open", "admitted": False},
        ),
        ("the tool was run, and the turn's time is up", FAILED, {"turn_left": 0.0, "admitted": True}),
        ("time left, and the call is optional (`required: false`)", FAILED, {"required": False}),
        ("transient, and nothing of all this", FAILED, {}),
        ("permanent, and a fallback takes the error", BAD_KEY, {"alternatives": ("cached_search",)}),
        ("permanent, and the call is optional", BAD_KEY, {"required": False}),
        ("permanent, and nothing of all this", BAD_KEY, {}),
    ]
    rows = []
    for number, (words, fault, _) in enumerate(ladder):
        facts: dict[str, object] = {}
        for _, other, more in reversed(ladder[number:]):
            if other is fault:
                facts |= more
        made = decide(report(fault, **facts))
        rows.append((words, f"`{made.strategy}`", made.reason))
    return table(("situation", "decision", "reason, as in the trace"), rows)


# --- turns -----------------------------------------------------------------------------------------------------------


def cascades() -> str:
    """Tabulate what happens to a dependant."""
    words = {"skip": "skipped", "substitute": "runs with the default", "escalate": "escalated and skipped"}
    said = {True: "`required: true`", False: "`required: false`", None: "nothing said"}
    rows = [
        (words_, *(words[cascade(required, defaults, {"flights"})] for defaults in ({"flights": []}, {})))
        for required, words_ in said.items()
    ]
    return table(("the call says", "`defaults` has the argument", "no default"), rows)


# --- budget ----------------------------------------------------------------------------------------------------------


def budget() -> str:
    """Tabulate how many retries the budget allows in some situations, by spending it."""

    def paid(calls: int, every: float, successes: int = 0) -> int:
        state, count = Budget(), 0
        for number in range(calls):
            state, ok = spend(state, now=number * every, successes=successes)
            count += ok
        return count

    rows = [
        (f"{FULL:g} retries at once", f"{paid(int(FULL), 0.0)} are made"),
        ("1,000 retries wanted at once", f"{paid(1000, 0.0)} are made"),
        ("one wanted every second for an hour, nothing succeeds", f"{paid(3600, 1.0)} of 3600 are made"),
        ("one wanted every 10 s for an hour, nothing succeeds", f"{paid(360, 10.0)} of 360 are made"),
        ("one wanted every second for an hour, 10 successes between two", f"{paid(3600, 1.0, 10)} of 3600 are made"),
    ]
    return table(("situation", "retries"), rows)


# --- taxonomy --------------------------------------------------------------------------------------------------------

MOVES = {
    "tool_unavailable": (
        "no one during this conversation",
        "The tool is not installed, not registered, or not reachable.",
    ),
    "tool_misconfigured": ("the operator", "Credentials, quota, address, configuration."),
    "tool_transient": ("no one: wait", "The same call may work later, without any change."),
    "tool_validation": ("the model or the user", "The arguments, or what they refer to."),
    "internal_contract_bug": ("the developer", "The tool's own code, or a broken contract."),
}


def categories() -> str:
    rows = []
    for category in get_args(Category):
        who, meaning = MOVES[category]
        kinds = [kind for kind in KINDS.values() if kind.category == category]
        (classification,) = {kind.classification for kind in kinds}
        rows.append((f"`{category}`", classification, who, meaning))
    return table(("category", "classification", "who must act", "meaning"), rows)


def codes() -> str:
    rows = []
    for code in Code:
        kinds = {name: kind for name, kind in KINDS.items() if kind.code is code}
        passing = [name for name, kind in kinds.items() if kind.classification == "transient"]
        staying = [name for name, kind in kinds.items() if kind.classification == "permanent"]
        rows.append((f"`{code}`", *(", ".join(f"`{name}`" for name in names) for names in (passing, staying))))
    return table(("code", "transient kinds", "permanent kinds"), rows)


# --- testing ---------------------------------------------------------------------------------------------------------


def steps() -> str:
    """The words of a ``FaultPlan``, and how their errors are classified."""
    rows: list[tuple[str, ...]] = [
        ("`ok`", "the tool itself is called", ""),
        ("`slow(0.6)`", "the same, 0.6 s later", ""),
        ("`hang`", "it never answers", ""),
    ]
    for word in [*faults._RAISED, *faults._STATUSES, "503", "429(retry_after=2)"]:
        step = faults.FaultPlan(word)._take((), {})
        assert step.make is not None
        error = step.make()
        known = classify(error)
        again = "" if known.retry_after is None else f", after {known.retry_after:g} s"
        rows.append(
            (
                f"`{word}`",
                f"`{type(error).__name__}: {getattr(error, 'strerror', None) or error}`",
                f"`{known.code}`, {known.classification}, effect {known.effect}{again}",
            )
        )
    rows.append(("any HTTP status from 400 to 599", "`HttpError`", "as a client's error with that status"))
    return table(("step", "what happens", "classified as"), rows)


def pages() -> dict[Path, str]:
    """Return every page with such tables."""
    parts = {
        "is-it-safe-to-retry.md": {
            "retries": retries(),
            "effects": effects(),
            "stand-ins": stand_ins(),
            "waits": waits(),
        },
        "concepts/breaker.md": {"diagram": breaker_diagram(), "moves": breaker_table()},
        "concepts/order.md": {"decisions": decisions()},
        "concepts/turns.md": {"cascades": cascades()},
        "concepts/budget.md": {"budget": budget()},
        "how-to/testing.md": {"steps": steps()},
        "concepts/taxonomy.md": {"categories": categories(), "codes": codes()},
    }
    return {DOCS / page: fill(DOCS / page, made) for page, made in parts.items()}


if __name__ == "__main__":
    write(pages())
