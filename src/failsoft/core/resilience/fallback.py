"""Fallbacks: decide which tools may replace one that failed.

Rules
-----
- Fallbacks are considered in the order in which they are written. One without ``handle_errors`` handles every error.
- If the tool was refused because its circuit is open, the error that opened the circuit is matched.
- No fallback follows a tool that must not be repeated and may have acted. This also applies to a fallback that replaced
  such a tool, unless the fallback only reads. The effect counted is that of all attempts in this call. No tool is tried
  twice in one call.
- "Safe to repeat" covers only the tool itself: another tool does not share its idempotency key. Once a write may
  have acted, no other write follows in this call. A write is a tool that must not be repeated, has a key, or is
  recognised as one. A tool with an unknown effect may have fallbacks.
- A tool named by a policy or a custom Error Handler comes first, listed or not. The rules on effects and on tools
  already tried apply to it too.
"""

from __future__ import annotations

from collections.abc import Container, Iterator

from failsoft.core.effects.tool_effect import KnownEffect
from failsoft.core.model.fault import Effect, Fault
from failsoft.core.model.options import Fallback, ToolOptions


def forbids_fallback(effect: Effect, known: KnownEffect, primary: KnownEffect) -> bool:
    """True if no other tool may be used, because the work may be done already and must not be done twice.

    ``effect`` is the failed tool's effect in this call, ``known`` what is known of that tool, ``primary`` what is known
    of the tool that was called.
    """
    if effect == "none":
        return False
    return known.safe is False or (primary.safe is False and known.effect != "read")


def may_have_acted(effect: Effect, known: KnownEffect) -> bool:
    """True if a tool that is declared or recognised as a write, or counts as one, may have acted in this call."""
    return effect != "none" and known.effect != "read" and known.safe is not None


def would_act_again(known: KnownEffect, options: ToolOptions, description: str = "") -> bool:
    """True if a fallback must not follow a tool that may have acted: it would do the same thing a second time.

    For a tool that is only declared idempotent, its name and description decide whether it reads.
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
    """Yield the fallbacks that handle the fault, best first. ``forbids_fallback`` decides whether any may be used."""
    if wanted is not None and wanted not in tried:
        yield next((fallback for fallback in options.fallbacks if fallback.tool == wanted), Fallback(tool=wanted))
    code = fault.code if opened_by is None else opened_by.code
    for fallback in options.fallbacks:
        if fallback.tool == wanted or fallback.tool in tried:
            continue
        if not fallback.handle_errors or code in fallback.handle_errors:
            yield fallback
