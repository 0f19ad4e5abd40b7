"""Which tools may stand in for one that failed (S-layers, R15, R18, R19).

Rules
-----
- Fallbacks are asked in the order in which they are written; no ``handle_errors`` catches all.
- For a tool that was not even run because its circuit is open, the error that opened the circuit decides.
- A write whose effect is unknown is not done again by other means: a tool that must not be repeated has no alternative
  then, nor has one that was called in its place, unless that only reads. That the replacement could be repeated does not
  help: the next tool is another one. The effect is that of all its attempts in this call. Nothing that has been tried in
  this call is tried again.
- A tool that may be repeated is safe only against itself: an idempotency key means nothing to the next tool. After any tool
  of this call but a read may have acted, no other tool follows that is a write, whatever makes repeating it safe.
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
    """True if a tool with this effect in this call may have done what was asked for: it is not a read."""
    return effect != "none" and known.effect != "read"


def does_it_again(other: KnownEffect) -> bool:
    """True if a tool must not follow one that may have acted: it is a write, or counts as one."""
    return other.effect == "write" or (other.effect == "neither" and other.safe is False)


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
