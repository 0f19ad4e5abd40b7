"""Which tools may stand in for one that failed (S-layers, R15, R18, R19).

Rules
-----
- Fallbacks are asked in the order in which they are written; no ``handle_errors`` catches all.
- For a tool that was not even run because its circuit is open, the error that opened the circuit decides.
- A write whose effect is unknown is not done again by other means: a tool declared or recognised as a write has no
  alternative then, nor has one that was called in its place, unless it is known to be safe. ``fault.effect`` is that of
  the call (``core.effects``). Nothing that has been tried in this call is tried again.
- A tool that somebody else wants instead (a policy, another Error Handler) comes first, listed or not; effects and what
  has been tried count for it too.
"""

from __future__ import annotations

from collections.abc import Container, Iterator

from failsoft.core.fault import Fault
from failsoft.core.options import Fallback, ToolOptions


def bars_others(fault: Fault, safe: bool | None, primary: bool | None = None) -> bool:
    """True if no other tool may do the job: it may have been done, and must not be done twice.

    ``safe``: whether the failed tool may be repeated; None where nothing is known. ``primary``: the same of the tool that
    was asked for, if another one failed in its place.
    """
    if fault.effect == "none":
        return False
    return safe is False or (safe is None and primary is False)


def alternatives(
    options: ToolOptions,
    fault: Fault,
    *,
    safe: bool | None,
    tried: Container[str],
    opened_by: Fault | None = None,
    wanted: str | None = None,
) -> Iterator[Fallback]:
    """The fallbacks of a tool that take its fault, best first."""
    if bars_others(fault, safe):
        return
    if wanted is not None and wanted not in tried:
        yield next((fallback for fallback in options.fallbacks if fallback.tool == wanted), Fallback(tool=wanted))
    code = fault.code if opened_by is None else opened_by.code
    for fallback in options.fallbacks:
        if fallback.tool == wanted or fallback.tool in tried:
            continue
        if not fallback.handle_errors or code in fallback.handle_errors:
            yield fallback
