"""Cycles among things that refer to each other by name: calls that wait for calls, tools that stand in for tools.

Each cycle comes as its path, first name repeated at the end, so that it can be said as ``a → b → a``. Not recursive: a
chain of ten thousand calls is legal.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

_MOST = 10  # names in a line


def find_cycles(edges: Mapping[str, Iterable[str]]) -> list[tuple[str, ...]]:
    """The cycles, at most one from each starting point; empty exactly when there is none. Unknown names lead nowhere."""
    done: set[str] = set()
    return [cycle for root in edges if root not in done and (cycle := _walk(root, edges, done))]


def _walk(root: str, edges: Mapping[str, Iterable[str]], done: set[str]) -> tuple[str, ...] | None:
    """Visit all that can be reached from ``root``; the first cycle met on the way."""
    cycle: tuple[str, ...] | None = None
    path = {root: None}  # the names from root to here: a dict, for its order and its quick lookup
    ways = [iter(edges[root])]
    while ways:
        name = next(ways[-1], None)
        if name is None:
            ways.pop()
            done.add(path.popitem()[0])
        elif name in path:
            names = list(path)
            cycle = cycle or (*names[names.index(name) :], name)
        elif name not in done:
            path[name] = None
            ways.append(iter(edges.get(name, ())))
    return cycle


def say_cycle(cycle: Sequence[str]) -> str:
    """The path in one line; of a long one, both ends."""
    left_out = len(cycle) - _MOST
    names = cycle if left_out <= 0 else (*cycle[: _MOST - 2], f"… {left_out} more …", *cycle[-2:])
    return " → ".join(names)
