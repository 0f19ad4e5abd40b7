"""Guarded twins of the user's objects: agents, tools and MCP servers.

Rules
-----
- A twin is of a subclass that is made for it, and so an instance of the user's own class.
- The twin of a tool or a server *shares* the state of the original, its ``__dict__``. Nothing can go stale: what is
  changed on one is changed on the other. Only what the subclass defines is different.
- The twin of an agent has state of its own, like a clone.
- Twins can be copied and pickled where the originals can. Copies have the same guard.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeVar

if TYPE_CHECKING:
    from collections.abc import Mapping

    from failsoft.adapters.openai_agents.guard import Guard

T = TypeVar("T")


class Twin:
    """What the classes of all twins have."""

    own: tuple[str, ...] = ()  # attributes that the original does not share
    _guard: Guard
    _differs: type[Twin]  # the class that says what is different
    _kind: type  # the original's class

    def __reduce_ex__(self, _: Any) -> tuple[Any, ...]:
        return new_twin, (self._guard, self._differs, self._kind), {**vars(self)}


def make_twin(original: T, guard: Guard, differs: type[Twin], state: Mapping[str, Any] | None = None) -> T:
    """The twin of an object, with its state or with other state. Of another guard's twin, a twin of its original."""
    twin: T = new_twin(guard, differs, original._kind if isinstance(original, Twin) else type(original))
    twin.__dict__ = vars(original) if state is None else {**state}
    return twin


def new_twin(guard: Guard, differs: type[Twin], kind: type) -> Any:
    """A twin without state."""
    found = guard.kinds.get((differs, kind))
    if found is None:
        names = {
            "__module__": kind.__module__, "__qualname__": kind.__qualname__, "__doc__": kind.__doc__,
            "__slots__": differs.own, "_guard": guard, "_differs": differs, "_kind": kind,
        }  # fmt: skip
        found = guard.kinds[differs, kind] = type(kind)(kind.__name__, (differs, kind), names)
    return object.__new__(found)
