"""The tools of a runtime, by id and by guarded function, and the health that each has as a fallback."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Iterable
from types import CoroutineType
from typing import TYPE_CHECKING, Any

from failsoft.core.model.misspelt import did_you_mean
from failsoft.core.redact.printable import quote
from failsoft.core.resilience.breaker_window import failure_rate
from failsoft.core.resilience.circuit_breaker import show_state
from failsoft.errors import FailsoftError
from failsoft.runtime.tools.health import HealthView, ToolHealth
from failsoft.runtime.tools.unknown_tool import UnknownTool

if TYPE_CHECKING:
    from failsoft.core.model.options import Fallback
    from failsoft.runtime.persistence.circuits import Circuits
    from failsoft.runtime.tools.tool import Tool

MOST_WARNED = 100  # warnings that are logged once
log = logging.getLogger("failsoft")


class Toolbox:
    """All tools of a runtime. ``lock`` guards their health."""

    def __init__(self, now: Callable[[], float]) -> None:
        self.tools: dict[str, Tool] = {}
        self.index: dict[Any, Tool] = {}  # by id and by guarded function
        self.labels: dict[str, str] = {}  # by tool id, where the tool's options have one
        self.disabled: dict[str, str | None] = {}  # the reason, by tool id; None: enabled despite its options
        self.circuits: Circuits | None = None  # kept and shared; None: they stay in this process
        self._now = now
        self._warned: set[str] = set()
        self._fallback_health: dict[tuple[str, str], ToolHealth] = {}
        self._slowed: list[Tool] = []  # tools that leave the fast path while there are instruments
        self.renew_lock()

    def renew_lock(self) -> None:
        """Use a new lock: in a forked child the old one may be held by a thread that does not exist there."""
        self.lock = threading.RLock()  # the garbage collector may end a forgotten call in a thread that holds it

    def find(self, tool: str | Callable[..., Any]) -> Tool:
        """The tool, by its id or its guarded function; an ``UnknownTool`` if no tool has that name."""
        try:
            found = self.index.get(tool)
        except TypeError:  # an object without a hash
            found = None
        if found is not None:
            return found
        if not isinstance(tool, str):
            raise FailsoftError(_explain_no_tool(tool, [each.id for each in self.tools.values() if each.fn is tool]))
        return UnknownTool(tool)

    def find_labels(self, tools: Iterable[str]) -> dict[str, Any]:
        """The event field with the labels of these tools; no field if none of them has a label."""
        labels = {id: self.labels[id] for id in {*tools} & self.labels.keys()}
        return {"labels": labels} if labels else {}

    def warn_of_typo(self, name: str, *, always: bool = False) -> None:
        """Log once that no tool has this name, if one has a similar name, or ``always``."""
        hint = did_you_mean(name, self.tools)
        if hint or always:
            self.warn_once(name, "there is no tool %s%s", quote(name), hint)

    def warn_once(self, key: str, message: str, *values: object) -> None:
        """Log a warning once per ``key``."""
        if key not in self._warned and len(self._warned) < MOST_WARNED:
            self._warned.add(key)
            log.warning(message, *values)

    def health_of(self, primary: Tool, tool: Tool, via: Fallback | None) -> ToolHealth:
        """Return a tool's health. A fallback with its own cooldown has a separate health for each primary."""
        if via is None or via.cooldown is None:
            return tool.health
        key = (primary.id, tool.id)
        with self.lock:
            health = self._fallback_health.get(key)
            if health is None:
                health = self._fallback_health[key] = ToolHealth(via.cooldown)
                if self.circuits is not None:
                    self.circuits.register(health, *key)
            return health

    def slow_down(self, tool: Tool) -> None:
        """Take a tool off the fast path until ``speed_up``."""
        if tool.fast_eligible:
            self._slowed.append(tool)
            tool.fast_eligible, tool.cached_refusal = False, None
            tool.renew_ticket()

    def speed_up(self) -> None:
        """Let the tools that were slowed down use the fast path again."""
        while self._slowed:
            tool = self._slowed.pop()
            tool.fast_eligible = True
            tool.renew_ticket()

    def fallback_health(self) -> dict[tuple[str, str], ToolHealth]:
        """The health of fallbacks that have their own, by primary and fallback."""
        return dict(self._fallback_health)

    def health_as_fallback(self, tool_id: str, primary_id: str) -> ToolHealth | None:
        """The health that a tool has as the fallback of another; None if there is no such tool."""
        primary = self.tools.get(primary_id)
        listed = () if primary is None else primary.options.fallbacks
        via = next((fallback for fallback in listed if fallback.tool == tool_id), None)
        if primary is None or via is None:
            known = ", ".join(fallback.tool for fallback in listed) or "none"
            raise FailsoftError(f"{tool_id} is not a fallback of {primary_id}: its fallbacks are {known}")
        tool = self.tools.get(tool_id)
        return None if tool is None else self.health_of(primary, tool, via)

    def health_view(self, tool: Tool, health: ToolHealth | None = None) -> HealthView:
        """A tool's circuit; ``health`` is the one that it has as a fallback, in place of its own."""
        now = self._now()
        health = health or tool.health
        with self.lock:
            return HealthView(
                show_state(health.observe(now)),
                health.state.failures,
                tool.unavailable_fault is None,
                health.open_for(now),
                failure_rate(health.state.recent),
            )


def _explain_no_tool(found: object, guarded_as: list[str]) -> str:
    """Explain to a programmer why an object is not a tool. ``guarded_as``: the tools that it is the function of."""
    if guarded_as:
        return (
            f"this is the function that rt.add() was given, without its guard: give the tool's name, {guarded_as[0]!r}, or "
            "the function that rt.add() returned"
        )
    if isinstance(found, CoroutineType):
        name = found.__qualname__
        found.close()  # otherwise Python warns as well
        return f'{name}(…) was called already: give the tool and its arguments apart, like call({name}, {{"x": 1}})'
    if callable(found) and hasattr(found, "__failsoft__"):
        return (
            f"{getattr(found, '__name__', found)!s:.80} is a tool of another Runtime (@failsoft.tool has its own): decorate it with "
            "@rt.tool of this one, rt.add() it here, or make the call with the other"
        )
    if callable(found):
        return f"{found!r} is not a tool of this Runtime: decorate it with @rt.tool, or rt.add() it"
    return (
        f"{found!r:.80} is not a tool of this Runtime, but a value of type {type(found).__name__}: give the tool's name or its "
        'function, and its arguments apart, like call(search, {"x": 1}) instead of call(search(1))'
    )
