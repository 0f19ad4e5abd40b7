"""Whether a call may have acted: the one place that decides between "nothing happened" and "nobody knows".

``classify`` says what an error says. The call adds what it knows: whether its tool was entered, what calls inside it
did, and whether it makes more than one request.

Rules, in this order
--------------------
1. A tool that was never entered (bad arguments, a shut gate, no slot, no thread) did nothing.
2. An error that leaves its effect open, or says that it happened, is believed.
3. A tool that makes several requests (``requests="many"``) is never believed to have done nothing: the refusal of the
   last request says nothing about the first.
4. Nor is one whose inner calls may have acted.
5. "Nothing happened" stands if the other side turned the request away (``remote``) or the tool's author or failsoft
   itself says so (``stated``). A local exception comes after whatever the tool had done by then, and so may words. An
   error that contradicts itself (``disputed``) is not believed either.
"""

from __future__ import annotations

from failsoft.core.model.effect import BELIEVED
from failsoft.core.model.fault import Effect, Fault


def effect_of_call(fault: Fault, *, entered: bool, acted_inside: bool = False, many: bool = False) -> Effect:
    """The effect of an attempt that ended in ``fault``."""
    if not entered:
        return "none"
    if fault.effect != "none":
        return fault.effect
    if many or acted_inside:
        return "unknown"
    return "none" if fault.source in BELIEVED else "unknown"
