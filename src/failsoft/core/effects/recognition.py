"""Recognition: guess from its name and description whether a tool reads or writes.

Rules
-----
- The name decides if it can (``names``); otherwise the description does (``descriptions``), then the thing that the name
  is about (``nouns``): "weather", "order_status".
- The first verb of a name decides. Later words can change its meaning: "get_or_create", "check_in", "list_add".
- In a dotted, slashed or server-prefixed name the last part comes first: ``mcp__github__create_issue``.
- A read whose description admits a side effect is neither. So is every tool that no rule decides.

A write mistaken for a read may be done twice; a read mistaken for a write is only not repeated. In doubt, a tool is not a
read.
"""

from __future__ import annotations

import re
from typing import NamedTuple

from failsoft.core.effects import patterns
from failsoft.core.effects.descriptions import (
    begins_with_verb_of,
    by_description,
    by_opening,
    coordinated_write,
    found,
    only_looks_up,
)
from failsoft.core.effects.names import Named, ToolEffect, by_name
from failsoft.core.effects.nouns import by_thing

__all__ = ["Recognised", "ToolEffect", "recognise"]


class Recognised(NamedTuple):
    """The recognised effect of a tool, and the word that shows it."""

    effect: ToolEffect
    reason: str


_NAME_LIMIT = 200
_DESCRIPTION_LIMIT = 600
_SECTION = re.compile(
    r"\n[ \t]{0,40}(?:(?:Args|Arguments|Parameters|Returns|Raises|Yields|Examples?|Notes?)[ \t]{0,8}:?[ \t]{0,8}\n|:[a-z])"
)
_URL = re.compile(r"https?://[^\s)\]>]+")
_LINK = re.compile(r"\[([^\]\[]{1,120})\]\(\)")  # what stays of a link without its address
_UNDECIDED = Recognised("neither", "its name and description do not say")


def recognise(name: str, description: str = "") -> Recognised:
    """Recognise the effect of a tool with this name and description."""
    description = _SECTION.split(description[: _DESCRIPTION_LIMIT * 4], maxsplit=1)[0]
    description = " ".join(_LINK.sub(r"\1", _URL.sub("", description)).split())[:_DESCRIPTION_LIMIT]
    arithmetic = found(patterns.SAYS_ARITHMETIC, description)
    if arithmetic:
        return Recognised("read", f'its description says "{arithmetic.strip()}"')
    named = by_name(name[:_NAME_LIMIT])
    if named is None:
        judged = by_description(description) or by_thing(name[:_NAME_LIMIT], description)
        return Recognised(judged.effect, judged.reason) if judged else _UNDECIDED
    opening = _contradiction(named, name, description) if named.weak else None
    if opening is not None:
        return Recognised(opening.effect, opening.reason)
    if named.effect == "read":
        admitted = (
            found(patterns.CONFESSIONS, description)
            or coordinated_write(description)
            or found(patterns.SAYS_CHANGE, description)
        )
        if admitted:
            return Recognised("neither", f'{named.reason}, but its description says "{admitted}"')
    return Recognised(named.effect, named.reason)


def _contradiction(named: Named, name: str, description: str) -> Named | None:
    """Return what the description says against a word of the name that may be a noun."""
    opening = by_opening(description)
    if named.effect == "write":
        return opening if opening and opening.effect == "read" and only_looks_up(description) else None
    if opening is None and begins_with_verb_of(name, description):
        return Named("neither", "its name and description begin with a verb that no table knows")
    return opening if opening and opening.effect == "write" else None
