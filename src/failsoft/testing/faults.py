"""Scripted failures: a tool that fails as specified, call by call.

Rules
-----
- A plan is a script, ``FaultPlan("timeout, 503*2, 429(retry_after=2), slow(0.6), ok")``. Every call of a wrapped tool
  takes the next step. The last step repeats, unless ``then`` replaces it.
- A step is a word (below) or an HTTP status from 400 to 599. In a list it may also be an exception, an exception class
  or a callable, which is called instead of the tool with the tool's arguments.
- ``FaultPlan.seeded(1, {"timeout": 0.1, "503": 0.05})`` draws steps at random: the same seed gives the same steps.
- One plan may wrap several tools. They take steps in the order of their calls, from any thread.

Why words: "timeout" in a test is easier to read than the exception behind it.
"""

from __future__ import annotations

import asyncio
import errno
import functools
import inspect
import logging
import math
import random
import re
import socket
import sys
import threading
import weakref
from collections.abc import Callable, Iterable, Iterator, Mapping
from http import HTTPStatus
from itertools import chain, repeat
from types import FrameType
from typing import Any, NamedTuple, ParamSpec, Self, TypeVar

from failsoft.runtime.execution import clock as clocks
from failsoft.runtime.tools.function_kind import unguarded

log = logging.getLogger("failsoft")

P = ParamSpec("P")
R = TypeVar("R")

Make = Callable[[], BaseException]
Spec = str | BaseException | type[BaseException] | Callable[..., Any]

_WORD = re.compile(r"\s*(?P<word>\w+)\s*(?:\((?P<argument>[^()]*)\))?\s*(?:\*\s*(?P<times>\d+))?\s*")
_COMMA = re.compile(r",(?![^()]*\))")  # not inside brackets

_RAISED: dict[str, Make] = {
    "timeout": lambda: TimeoutError("Connection timeout"),
    "refused": lambda: ConnectionRefusedError(errno.ECONNREFUSED, "Connection refused"),
    "reset": lambda: ConnectionResetError(errno.ECONNRESET, "Connection reset by peer"),
    "dns": lambda: socket.gaierror(socket.EAI_NONAME, "Name or service not known"),
    "invalid": lambda: ValueError("Invalid input"),
    "boom": lambda: RuntimeError("boom"),
}
_STATUSES = {"auth": 401, "rate_limit": 429}
_KNOWN = ", ".join(sorted([*_RAISED, *_STATUSES, "hang", "ok", "slow(0.5)", "429(retry_after=2)"]))


def _warn_if_discarded(planned: Callable[..., Any], caller: FrameType, taken: list[Taken]) -> None:
    """Warn if the statement that wrapped a tool discarded the result: calls then reach the tool without faults."""
    frame, line, name = id(caller), caller.f_lineno, planned.__name__

    def dropped() -> None:
        now = sys._getframe(2)  # behind the finalizer
        if not taken and id(now) == frame and now.f_lineno == line:
            log.warning(
                "FaultPlan.wrap(%s) returned a function that was dropped: register it, rt.add(plan.wrap(%s))",
                name,
                name,
            )

    weakref.finalize(planned, dropped).atexit = False


class HttpError(Exception):
    """An error response as an HTTP client would raise it: ``status_code``, and ``headers`` with ``retry-after``."""

    def __init__(self, status_code: int, retry_after: float | None = None) -> None:
        if not isinstance(status_code, int):
            raise TypeError(f"HttpError: {status_code!r:.80} is not a status: write a number, like 503")
        try:
            phrase = HTTPStatus(status_code).phrase
        except ValueError:
            phrase = "Client Error" if status_code < 500 else "Server Error"
        super().__init__(f"{status_code} {phrase}")
        self.status_code = status_code
        self.headers = {} if retry_after is None else {"retry-after": f"{retry_after:g}"}

    def __reduce__(self) -> tuple[Any, ...]:
        after = self.headers.get("retry-after")
        return type(self), (self.status_code, None if after is None else float(after))


class Step(NamedTuple):
    """The behaviour of one call: wait ``delay`` (forever if None), then raise, or call ``instead`` or the tool."""

    name: str
    delay: float | None = 0.0
    make: Make | None = None
    instead: Callable[..., Any] | None = None


class Taken(NamedTuple):
    """One recorded call of a plan."""

    step: str
    at: float  # on the test's clock, which may be virtual
    args: tuple[Any, ...]
    kwargs: dict[str, Any]


class FaultPlan:
    """A script of failures. ``calls`` counts the calls; ``log`` lists their steps, times and arguments."""

    def __init__(self, script: str | Iterable[Spec], *, then: Spec | None = None) -> None:
        if not isinstance(script, Iterable):
            raise TypeError(f'a FaultPlan is a text or a list of steps, not {script!r:.80}: write "timeout, 503, ok"')
        specs = _COMMA.split(script) if isinstance(script, str) and script.strip() else list(script)
        steps = [step for spec in specs for step in _read(spec)]
        if not steps:
            raise ValueError('a FaultPlan needs at least one step: write "timeout, 503, ok"')
        last = steps[-1:] if then is None else _read(then)
        self._begin(chain(steps, repeat(last[-1])))

    @classmethod
    def seeded(cls, seed: int, rates: Mapping[str, float]) -> Self:
        """Draw a random step for each call: each step of ``rates`` with its probability, ``ok`` otherwise."""
        if not (all(rate >= 0 for rate in rates.values()) and math.fsum(rates.values()) <= 1):
            raise ValueError(f"rates are probabilities with a sum of at most 1: {dict(rates)}")
        plan = cls.__new__(cls)
        plan._begin(_draw(random.Random(seed), [(_read(spec)[-1], rate) for spec, rate in rates.items()]))
        return plan

    def _begin(self, steps: Iterator[Step]) -> None:
        self._steps = steps
        self._lock = threading.Lock()
        self._released = threading.Event()
        self._hung: set[asyncio.Future[None]] = set()
        self.log: list[Taken] = []

    @property
    def calls(self) -> int:
        """Number of calls so far."""
        return len(self.log)

    def wrap(self, tool: Callable[P, R]) -> Callable[P, R]:
        """Put this plan in front of a tool. The signature is kept; ``async def`` stays ``async def``.

        A guarded function loses its guard: register the result with ``rt.add``. The result runs in this process,
        whatever the tool's ``isolation``.
        """
        if not callable(tool):
            raise TypeError(f"wrap: {tool!r:.80} cannot be called: give the tool's function")
        guarded, tool = tool, unguarded(tool)
        if inspect.isgeneratorfunction(tool) or inspect.isasyncgenfunction(tool):
            raise TypeError(f"a FaultPlan wraps functions and coroutine functions, not the generator {tool!r}")
        planned = self._wrap_async(tool) if _is_async(tool) else self._wrap_sync(tool)
        functools.update_wrapper(planned, guarded).__dict__.pop("__failsoft__", None)  # the wrapper is not guarded
        planned.stays_here = True  # type: ignore[attr-defined]  # worker processes do not have the plan
        _warn_if_discarded(planned, sys._getframe(1), self.log)
        return planned

    def release(self) -> None:
        """Let hanging calls continue, as if they had been slow. Call it from the event loop's thread."""
        self._released.set()
        while self._hung:
            waiter = self._hung.pop()
            if not (waiter.done() or waiter.get_loop().is_closed()):
                waiter.set_result(None)

    def _take(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Step:
        with self._lock:
            step = next(self._steps)
            self.log.append(Taken(step.name, clocks.current().monotonic(), args, kwargs))
        return step

    def _wrap_sync(self, tool: Callable[..., Any]) -> Callable[..., Any]:
        def planned(*args: Any, **kwargs: Any) -> Any:
            step = self._take(args, kwargs)
            if step.delay is None:
                self._released.wait()
            elif step.delay:
                clocks.current().sleep(step.delay)
            if step.make is not None:
                raise step.make()
            return (step.instead or tool)(*args, **kwargs)

        return planned

    def _wrap_async(self, tool: Callable[..., Any]) -> Callable[..., Any]:
        async def planned(*args: Any, **kwargs: Any) -> Any:
            step = self._take(args, kwargs)
            if step.delay is None:
                await self._hang()
            elif step.delay:
                await asyncio.sleep(step.delay)
            if step.make is not None:
                raise step.make()
            result = (step.instead or tool)(*args, **kwargs)
            return await result if inspect.isawaitable(result) else result

        return planned

    async def _hang(self) -> None:
        waiter = asyncio.get_running_loop().create_future()
        self._hung.add(waiter)
        try:
            await waiter
        finally:
            self._hung.discard(waiter)


def _is_async(tool: Callable[..., Any]) -> bool:
    while isinstance(tool, functools.partial):
        tool = tool.func
    return inspect.iscoroutinefunction(tool) or inspect.iscoroutinefunction(getattr(tool, "__call__", None))  # noqa: B004


def _draw(source: random.Random, rates: list[tuple[Step, float]]) -> Iterator[Step]:
    while True:
        draw = source.random()
        for step, rate in rates:
            draw -= rate
            if draw < 0:
                yield step
                break
        else:
            yield Step("ok")


def _read(spec: Spec) -> list[Step]:
    if isinstance(spec, str):
        return _read_word(spec)
    if isinstance(spec, BaseException):
        return [Step(type(spec).__name__, make=lambda: spec.with_traceback(None))]
    if isinstance(spec, type) and issubclass(spec, BaseException):
        return [Step(spec.__name__, make=spec)]
    if callable(spec):
        return [Step(getattr(spec, "__name__", type(spec).__name__), instead=spec)]
    raise ValueError(f"{spec!r} is not a step: give a word ({_KNOWN}), an exception or a callable")


def _read_word(text: str) -> list[Step]:
    match = _WORD.fullmatch(text)
    step = None if match is None else _find(match["word"], match["argument"])
    if match is None or step is None:
        raise ValueError(f"{text.strip()!r} is not a step: write one of {_KNOWN}, or an HTTP status from 400 to 599")
    times = int(match["times"] or 1)
    if not times:
        raise ValueError(f"{text.strip()!r} never happens: write a number of 1 or more, or leave the step out")
    return [step] * times


def _find(word: str, argument: str | None) -> Step | None:
    argument = None if argument is None else argument.replace(" ", "")
    name = word if argument is None else f"{word}({argument})"
    if word == "slow":
        delay = _number(argument)
        return None if delay is None else Step(name, delay=delay)
    if word.isdecimal() or word in _STATUSES:
        status = _STATUSES.get(word) or int(word)
        after = None if argument is None else _number(argument.removeprefix("retry_after="))
        if not 400 <= status < 600 or (argument is not None and after is None):
            return None
        return Step(name, make=functools.partial(HttpError, status, after))
    if argument is not None:
        return None
    if word in {"ok", "hang"}:
        return Step(name, delay=None if word == "hang" else 0.0)
    return Step(name, make=_RAISED[word]) if word in _RAISED else None


def _number(text: str | None) -> float | None:
    try:
        number = float(text or "")
    except ValueError:
        return None
    return number if 0 <= number < 1e9 else None
