"""The keywords of calls. All overloads share this list."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any, TypedDict

from failsoft.core.model.misspelt import did_you_mean

if TYPE_CHECKING:
    from failsoft.core.model.durations import Duration
    from failsoft.core.model.options import RetryOptions


class CallKeywords(TypedDict, total=False):
    """The options of one call."""

    id: str
    thread: str | None
    tenant: str | None
    timeout: Duration
    retry: RetryOptions | Mapping[str, Any]
    idempotency_key: str


_INSTEAD = {
    **dict.fromkeys(("max_attempts", "retries", "max_retries", "attempts"), '; write retry={"max_attempts": 3}'),
    **dict.fromkeys(
        ("required", "defaults", "depends_on"), "; it is about other calls of a turn: write it in turn.call(…)"
    ),
    **dict.fromkeys(("fallback", "fallbacks", "read_only", "idempotent"), "; it is an option of the tool: @rt.tool(…)"),
    **dict.fromkeys(("args", "arguments", "kwargs", "params"), "; arguments come second: call(tool, {'city': …})"),
}


def refuse_options(unknown: Iterable[str], known: type) -> None:
    """Raise for options that a call does not have."""
    for name in unknown:
        names = list(known.__annotations__)
        instead = (
            _INSTEAD.get(name) or did_you_mean(name, names) or f"; a tool's arguments are one mapping: {{{name!r}: …}}"
        )
        raise TypeError(f"a call has no option {name!r}; there are {', '.join(names)}{instead}")
