"""What becomes of a call when one that it depends on brings no value (R9).

Rules, in this order
--------------------
1. ``required: false``: skip. The call was never more than welcome.
2. ``defaults`` has every argument that the missing value was to fill: run with the defaults.
3. ``required: true``: escalate and skip. Somebody has to know.
4. Nothing said: skip.

A dependency that fills no argument (a plain ``depends_on``) has nothing that a default could stand in for. With several
failed dependencies each is judged by itself: the call runs when all of them are covered, and the first that is not
skips it.

Why this order and not "a default always wins": it is S-spec 5.1's literal order. An optional call asks for no effort.
"""

from __future__ import annotations

from collections.abc import Collection, Container
from typing import Literal

Verdict = Literal["substitute", "escalate", "skip"]


def cascade(required: bool | None, defaults: Container[str], arguments: Collection[str]) -> Verdict:
    """Judge a call of which a dependency, used in these arguments, has brought no value."""
    if required is False:
        return "skip"
    if arguments and all(argument in defaults for argument in arguments):
        return "substitute"
    return "escalate" if required else "skip"


def used_default(tool: str, label: str) -> str:
    """The trace's words for a call that runs with defaults (S-tests 5.3): it names the tool that ran.

    By the label that somebody has given it, else by its id, as elsewhere in the trace.
    """
    return f"Used default value for {tool if label == tool.replace('_', ' ') else label}"
