"""The effect of a call: decide between "nothing happened" and "unknown".

``classify`` reports what an error says. A call also knows whether its tool was entered, what its inner calls did, and
whether the tool makes more than one request.

Rules, in this order
--------------------
1. A tool that was never entered (bad arguments, refused, no slot, no thread) did nothing.
2. An error whose effect is unknown or happened is believed.
3. A tool that makes several requests (``requests="many"``) may have acted: the last refusal says nothing about the first
   request.
4. A tool whose inner calls may have acted may have acted too.
5. "Nothing happened" is believed if the other side refused the request (``remote``), or if the tool's author or failsoft
   says so (``stated``). A local exception or a text is not enough: the tool may have acted before. Nor is an error that
   contradicts itself (``disputed``).
"""

from __future__ import annotations

from failsoft.core.model.effect import BELIEVED
from failsoft.core.model.fault import Effect, Fault


def effect_of_call(fault: Fault, *, entered: bool, acted_inside: bool = False, many: bool = False) -> Effect:
    """Return the effect of an attempt that ended in ``fault``."""
    if not entered:
        return "none"
    if fault.effect != "none":
        return fault.effect
    if many or acted_inside:
        return "unknown"
    return "none" if fault.source in BELIEVED else "unknown"
