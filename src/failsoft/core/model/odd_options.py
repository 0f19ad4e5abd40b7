"""Options of a tool that are legal but probably not intended, each with a correction."""

from __future__ import annotations

import builtins
from collections.abc import Callable, Iterator, Mapping
from inspect import CO_ASYNC_GENERATOR, CO_COROUTINE, CO_GENERATOR
from itertools import pairwise
from types import FunctionType
from typing import Any

from failsoft.core.model.durations import text
from failsoft.core.model.misspelt import find_meant
from failsoft.core.model.options import QUEUE, Override, RetryOptions, ToolOptions

Oddity = tuple[str, str]  # the field, and the reason

_KEYWORDS = frozenset(
    "type properties required items additionalProperties enum const anyOf oneOf allOf not minimum maximum minLength maxLength "
    "minItems maxItems pattern format title description default examples prefixItems patternProperties uniqueItems".split()
)
_NEARLY = 0.9  # "ValeuError" is a misspelt "ValueError", "NotFoundError" is not a misspelt "FileNotFoundError"
_SHORT = 0.1  # seconds; a shorter open time is probably a mistake


def find_odd_options(options: ToolOptions) -> Iterator[Oddity]:
    """Find options that have no effect, or not the effect that a reader expects."""
    if options.id != options.id.strip():
        yield "id", f"{options.id!r:.80} begins or ends with a blank, which models and plans will not write"
    if not options.label.strip() and options.id.strip("_ "):
        yield "label", f"{options.label!r:.80} is blank: people see it as the tool's name"
    if options.queue != QUEUE and options.concurrency is None:
        yield "queue", "has no effect without concurrency: give one, or drop queue"
    yield from _find_odd_retry(options.retry)
    yield from _find_odd_fallbacks(options)
    if options.breaker.timeout < _SHORT:
        yield "breaker.timeout", _too_short(options.breaker.timeout)
    if isinstance(options.failed_if, FunctionType) and _returns_nothing(options.failed_if):
        yield (
            "failed_if",
            f"{options.failed_if.__name__} never returns anything, so no value is a failure: add a return",
        )
    if isinstance(options.output, Mapping):
        yield from _find_odd_schema(options.output)
    for number, entry in enumerate(options.classification):
        if isinstance(entry, Override) and entry.exception is not None and (why := _doubt_exception(entry.exception)):
            yield f"classification[{number}].exception", why
        for earlier in options.classification[:number]:
            if isinstance(entry, Override) and isinstance(earlier, Override) and _covers(earlier, entry):
                yield (
                    f"classification[{number}]",
                    "is never reached: an earlier entry matches everything that this one matches",
                )
                break


def count_attempts(retry: RetryOptions) -> int:
    """The most attempts that one call can make."""
    if retry.rules is not None:
        return 1 + sum(rule.max_attempts - 1 for rule in retry.rules)
    return retry.max_attempts


def _find_odd_retry(retry: RetryOptions) -> Iterator[Oddity]:
    if retry.initial_delay > retry.max_delay:
        message = f"{text(retry.initial_delay)} is cut to the max_delay of {text(retry.max_delay)}: raise max_delay too"
        yield "retry.initial_delay", message
    if 0 < retry.jitter_percent < 1:
        yield "retry.jitter_percent", f"{retry.jitter_percent:g} is less than one percent; write 10 for ten percent"
    first = min(retry.initial_delay, retry.max_delay)
    if count_attempts(retry) > 1 and first > retry.max_total_time:
        message = f"{text(retry.max_total_time)} is shorter than the delay of the first retry, {text(first)}: no retry is made"
        yield "retry.max_total_time", message
    listed = set()
    for number, rule in enumerate(retry.rules or ()):
        for code in rule.handle_errors:
            if code in listed:
                yield f"retry.rules[{number}]", f"an earlier rule lists {code} already"
            listed.add(code)


def _find_odd_fallbacks(options: ToolOptions) -> Iterator[Oddity]:
    for number, fallback in enumerate(options.fallbacks):
        field = f"fallbacks[{number}]"
        for earlier in options.fallbacks[:number]:
            same = set(fallback.handle_errors) <= set(earlier.handle_errors) and fallback.handle_errors
            if earlier.tool == fallback.tool and (same or not earlier.handle_errors):
                yield field, f"{fallback.tool} has been tried before for these errors: drop one of the two"
                break
        if fallback.cooldown is not None and fallback.cooldown.timeout < _SHORT:
            yield f"{field}.cooldown", _too_short(fallback.cooldown.timeout)


def _find_odd_schema(schema: Mapping[str, Any]) -> Iterator[Oddity]:
    for key in schema:
        meant = None if key in _KEYWORDS else find_meant(key, _KEYWORDS)
        if meant is not None:
            yield "output", f"{key!r} is not a keyword of JSON Schema, so it checks nothing; did you mean {meant!r}?"


def _doubt_exception(name: str) -> str:
    """Say why no exception has this name; empty if one may have it."""
    from difflib import SequenceMatcher  # few tools name an exception

    if not all(part.isidentifier() or part == "<locals>" for part in name.split(".")):
        return f"{name!r:.80} is not the name of a class, so it never matches: write one like 'TimeoutError'"
    known = {found for found, one in vars(builtins).items() if isinstance(one, type) and issubclass(one, BaseException)}
    plain = name.removeprefix("builtins.")
    meant = None if "." in plain or plain in known else find_meant(plain, known)
    if meant is None or SequenceMatcher(None, plain.lower(), meant.lower()).ratio() < _NEARLY:
        return ""
    return f"{name!r:.80} is probably misspelt, and never matches then; did you mean {meant!r}?"


def _too_short(timeout: float) -> str:
    return f'the circuit stays open for only {text(timeout)}: write a unit, like "20s" (a bare number is milliseconds)'


def _covers(one: Override, other: Override) -> bool:
    """True if every error that ``other`` matches is matched by ``one``."""
    names = ("http_status", "code", "exception", "pattern", "matches")
    return all(getattr(one, name) in (None, getattr(other, name)) for name in names)


def _returns_nothing(function: Callable[..., Any]) -> bool:
    """True if a function looks at its argument, but cannot return anything but None, and does not raise.

    A lambda says what it returns, and a function that ignores its argument is a placeholder.
    """
    code = function.__code__
    if function.__name__ == "<lambda>" or code.co_flags & (CO_GENERATOR | CO_COROUTINE | CO_ASYNC_GENERATOR):
        return False
    from dis import get_instructions  # most tools have no such function

    steps = [step for step in get_instructions(code) if step.opname != "CACHE"]
    if any(step.opname == "RAISE_VARARGS" for step in steps):
        return False
    if not any(step.opname.startswith(("LOAD_FAST", "LOAD_DEREF")) for step in steps):
        return False
    for before, step in pairwise(steps):
        if step.opname == "RETURN_VALUE" and not (before.opname == "LOAD_CONST" and before.argval is None):
            return False
    return all(step.argval is None for step in steps if step.opname == "RETURN_CONST")
