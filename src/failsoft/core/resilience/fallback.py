"""Which tools may stand in for one that failed (S-layers, R15, R18, R19).

Rules
-----
- Fallbacks are asked in the order in which they are written; no ``handle_errors`` catches all.
- For a tool that was not even run because its circuit is open, the error that opened the circuit decides.
- A write whose effect is unknown is not done again by other means: a tool that must not be repeated has no alternative
  then, nor has one that was called in its place, unless that only reads. That the replacement could be repeated does not
  help: the next tool is another one. The effect is that of all its attempts in this call. Nothing that has been tried in
  this call is tried again.
- A tool that may be repeated is safe only against itself: an idempotency key means nothing to the next tool. Once a write
  may have acted, no other write follows in this call. A write is a tool that must not be repeated, has a key, or is
  recognised as one. A tool of which nothing is known has fallbacks as specified.
- A tool that somebody else wants instead (a policy, another Error Handler) comes first, listed or not; effects and what
  has been tried count for it too.
"""

from __future__ import annotations

from collections.abc import Container, Iterator

from failsoft.core.effects.tool_effect import KnownEffect
from failsoft.core.model.fault import Effect, Fault
from failsoft.core.model.options import Fallback, ToolOptions


def forbids_fallback(effect: Effect, known: KnownEffect, primary: KnownEffect) -> bool:
    """True if no other tool may do the job: it may have been done, and must not be done twice.

    ``effect`` is what the failed tool did in this call, ``known`` what is known of it; ``primary``, of the tool that was
    asked for.
    """
    if effect == "none":
        return False
    return known.safe is False or (primary.safe is False and known.effect != "read")


def may_have_acted(effect: Effect, known: KnownEffect) -> bool:
    """True if a tool that is declared or recognised as a write, or counts as one, may have acted in this call."""
    return effect != "none" and known.effect != "read" and known.safe is not None


def does_it_again(known: KnownEffect, options: ToolOptions, description: str = "") -> bool:
    """True if a fallback must not follow a tool that may have acted: it would do the same thing a second time.

    A tool that is only declared idempotent may be a read in all but name: its name and description decide.
    """
    if known.effect == "read":
        return False
    if known.safe is False or options.idempotency_key is not None:
        return True
    from failsoft.core.effects.recognition import recognise  # start-up: the tables are needed after a failure only

    return known.effect == "write" and recognise(options.id, description).effect == "write"


def alternatives(
    options: ToolOptions,
    fault: Fault,
    *,
    tried: Container[str],
    opened_by: Fault | None = None,
    wanted: str | None = None,
) -> Iterator[Fallback]:
    """The fallbacks of a tool that take its fault, best first; whether there may be any is for ``forbids_fallback``."""
    if wanted is not None and wanted not in tried:
        yield next((fallback for fallback in options.fallbacks if fallback.tool == wanted), Fallback(tool=wanted))
    code = fault.code if opened_by is None else opened_by.code
    for fallback in options.fallbacks:
        if fallback.tool == wanted or fallback.tool in tried:
            continue
        if not fallback.handle_errors or code in fallback.handle_errors:
            yield fallback
