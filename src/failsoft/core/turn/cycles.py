"""Cycles in a graph of names: calls that depend on calls, tools that fall back to tools.

A cycle is its path with the first name repeated at the end, to be printed as ``a → b → a``. The search is not recursive,
because a chain of ten thousand calls is legal.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

_MOST = 10  # names per line


def find_cycles(edges: Mapping[str, Iterable[str]]) -> list[tuple[str, ...]]:
    """Return at most one cycle per starting point; empty if and only if there is none. Unknown names are ignored."""
    done: set[str] = set()
    return [cycle for root in edges if root not in done and (cycle := _walk(root, edges, done))]


def _walk(root: str, edges: Mapping[str, Iterable[str]], done: set[str]) -> tuple[str, ...] | None:
    """Visit every name that ``root`` reaches. Returns the first cycle found."""
    cycle: tuple[str, ...] | None = None
    path = {root: None}  # the names from root to the current one; a dict keeps order and is fast to search
    pending = [iter(edges[root])]
    while pending:
        name = next(pending[-1], None)
        if name is None:
            pending.pop()
            done.add(path.popitem()[0])
        elif name in path:
            names = list(path)
            cycle = cycle or (*names[names.index(name) :], name)
        elif name not in done:
            path[name] = None
            pending.append(iter(edges.get(name, ())))
    return cycle


def format_cycle(cycle: Sequence[str]) -> str:
    """Format a cycle as one line. Names in the middle of a long cycle are omitted."""
    omitted = len(cycle) - _MOST
    names = cycle if omitted <= 0 else (*cycle[: _MOST - 2], f"… {omitted} more …", *cycle[-2:])
    return " → ".join(names)
