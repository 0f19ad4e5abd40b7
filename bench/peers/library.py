"""What a case can ask of a library: its parts.

A library has a part when its class has a method of that name. What is missing is reported as "no such part".

For ``async def`` tools:

- ``retry(tool, attempts)``: repeats what fails, waiting as little as it can
- ``backoff(tool, attempts, first, longest)``: repeats it with exponential waits between ``first`` and ``longest``
- ``breaker(tool, failures, window)``: cuts it off after so many failures for so many seconds
- ``timeout(tool, seconds)``, and ``timeout_block(seconds)`` as an async context manager
- ``retry_timeout(tool, attempts, seconds)``: both, for a tool whose effect must not happen twice
- ``everything(tool)``: all of these that the library has, together
- ``hooked(tool, hook)``: with a hook or listener that is told of failures
- ``decorator(tool)``: the form that takes any callable; ``decorates`` says whether it retries or breaks

``_sync`` behind a name is the same for blocking tools. Beyond single calls:

- ``isolated(function, seconds)``: a module-level function in a process of its own, as an async callable
- ``batch(tools, calls)``: several calls at once; gives ``(id, value)`` pairs, a failure being an exception
- ``plan(needs)``: calls by id with the ids they need; gives the ids that the library accounts for, or refuses
- ``acknowledge(folder)``: an async callable that returns once an event is recorded; ``kept(folder)`` reads them
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NamedTuple

Fn = Callable[..., Any]


class Option(NamedTuple):
    """A documented setting that may avoid a fault: its description, and the parts that use it (None: not used)."""

    words: str
    parts: dict[str, Fn | None]


class Library:
    """One library, as installed."""

    name: str  # of the distribution
    home: str  # URL of its documentation
    decorates = "retry"
    notes: dict[str, str] = {}  # noqa: RUF012 - remarks for the reader, by case name

    if TYPE_CHECKING:

        def __getattr__(self, part: str) -> Any: ...

    def options(self) -> dict[str, Option]:
        """Return the options, by the name of their case."""
        return {}

    def take(self, option: Option) -> None:
        """Use the option from now on."""
        for part, made in option.parts.items():
            setattr(self, part, made)

    def has(self, part: str) -> bool:
        return any(callable(getattr(self, name, None)) for name in part.split("|"))
