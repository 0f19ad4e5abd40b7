"""Which tools may stand in for one that failed (S-layers, R15, R18, R19).

Rules
-----
- Fallbacks are asked in the order in which they are written; no ``handle_errors`` catches all.
- For a tool that was not even run because its circuit is open, the error that opened the circuit decides.
- A write whose effect is unknown is not done again by other means: a tool declared as not idempotent has no
  alternative then (R11), nor has one that stands in for such a tool, unless it is declared safe. ``fault.effect`` is
  that of the call (``core.effects``). Nothing that has been tried in this call is tried again.
- A tool that somebody else wants instead (a policy, another Error Handler) comes first, listed or not; effects and what
  has been tried count for it too.
"""

from __future__ import annotations

from collections.abc import Container, Iterator

from failsoft.core.fault import Fault
from failsoft.core.options import Fallback, ToolOptions


def bars_others(options: ToolOptions, fault: Fault, primary: ToolOptions | None = None) -> bool:
    """Whether nobody else may do it now: it may have been done, and is not to be done twice.

    ``primary`` is what was asked for, where another tool stands in for it.
    """
    if fault.effect == "none":
        return False
    safe = options.safe_to_repeat
    return safe is False or (safe is None and primary is not None and primary.safe_to_repeat is False)


def alternatives(
    options: ToolOptions,
    fault: Fault,
    *,
    tried: Container[str],
    opened_by: Fault | None = None,
    wanted: str | None = None,
) -> Iterator[Fallback]:
    """The fallbacks of a tool that take its fault, best first."""
    if bars_others(options, fault):
        return
    if wanted is not None and wanted not in tried:
        yield next((fallback for fallback in options.fallbacks if fallback.tool == wanted), Fallback(tool=wanted))
    code = fault.code if opened_by is None else opened_by.code
    for fallback in options.fallbacks:
        if fallback.tool == wanted or fallback.tool in tried:
            continue
        if not fallback.handle_errors or code in fallback.handle_errors:
            yield fallback
