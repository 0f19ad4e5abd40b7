"""Cascade: decide what happens to a call when one of its dependencies returns no value.

Rules, in this order
--------------------
1. ``required: false``: skip.
2. ``defaults`` has a value for every argument that the dependency would have filled: run with the defaults.
3. ``required: true``: escalate and skip.
4. Otherwise: skip.

A dependency that fills no argument (a plain ``depends_on``) cannot be replaced by a default. Several failed dependencies
are judged separately: the call runs if defaults replace all of them, and is skipped for the first that they do not.

Rule 1 comes before the defaults because an optional call is worth no extra effort.
"""

from __future__ import annotations

from collections.abc import Collection, Container
from typing import Literal

CascadeDecision = Literal["substitute", "escalate", "skip"]


def cascade(required: bool | None, defaults: Container[str], arguments: Collection[str]) -> CascadeDecision:
    """Decide about a call whose failed dependency would have filled ``arguments``."""
    if required is False:
        return "skip"
    if arguments and all(argument in defaults for argument in arguments):
        return "substitute"
    return "escalate" if required else "skip"


def used_default(tool: str, label: str) -> str:
    """Return the trace's text for a call that runs with defaults. It names the tool by its label, else by its id."""
    return f"Used default value for {tool if label == tool.replace('_', ' ') else label}"
