"""Guarded proxies of the user's objects: agents, tools and MCP servers.

Rules
-----
- A proxy's class is a generated subclass of the user's class, so ``isinstance`` works.
- The proxy of a tool or a server *shares* the original's ``__dict__``. A change to one is a change to the other. Only
  the members that the subclass overrides differ.
- The proxy of an agent has its own state, like a clone.
- Proxies can be copied and pickled if the originals can. Copies have the same guard.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol, TypeVar

T = TypeVar("T")


class ProxyGuard(Protocol):
    """The part of an agent's guard that all proxies use."""

    proxy_classes: dict[tuple[type, type], type]


class GuardedProxy:
    """Base of all proxy classes."""

    own: tuple[str, ...] = ()  # attributes not shared with the original
    _guard: ProxyGuard
    _overrides: type[GuardedProxy]  # the class with the overridden members
    _original_class: type  # the original's class

    def __reduce_ex__(self, _: Any) -> tuple[Any, ...]:
        return new_proxy, (self._guard, self._overrides, self._original_class), {**vars(self)}


def make_proxy(
    original: T, guard: ProxyGuard, overrides: type[GuardedProxy], state: Mapping[str, Any] | None = None
) -> T:
    """Make the proxy of an object, with its state or other state. A proxy of a proxy wraps the original."""
    proxy: T = new_proxy(
        guard, overrides, original._original_class if isinstance(original, GuardedProxy) else type(original)
    )
    proxy.__dict__ = vars(original) if state is None else {**state}
    return proxy


def new_proxy(guard: ProxyGuard, overrides: type[GuardedProxy], original_class: type) -> Any:
    """Create a proxy without state."""
    found = guard.proxy_classes.get((overrides, original_class))
    if found is None:
        names = {
            "__module__": original_class.__module__, "__qualname__": original_class.__qualname__, "__doc__": original_class.__doc__,
            "__slots__": overrides.own, "__hash__": original_class.__hash__, "_guard": guard, "_overrides": overrides, "_original_class": original_class,
        }  # fmt: skip
        found = guard.proxy_classes[overrides, original_class] = type(original_class)(
            original_class.__name__, (overrides, original_class), names
        )
    return object.__new__(found)


def without_guard(proxy: Any) -> Any:
    """Return an object of the original's class that shares the proxy's state; any other object unchanged."""
    if not isinstance(proxy, GuardedProxy):
        return proxy
    bare: Any = object.__new__(proxy._original_class)
    bare.__dict__ = vars(proxy)
    return bare
