"""The tools of the simulated day. They fail as they are told, and keep their own books of what reached them.

A tool's steps (what one attempt does):

- ``ok``: takes a while, acts, answers. ``slow`` the same, later.
- ``refused``, ``busy`` (503), ``rate`` (429 with a time), ``invalid``, ``auth``, ``missing``: raised before anything is
  done, and the error says so.
- ``lost`` (connection reset), ``error500``: it has acted, and the answer is an error. ``garbled``: it has acted, and
  stumbles over the answer it got.
- ``hang``: never answers, never acts. ``late``: acts, then never answers. ``stubborn``: swallows its cancellation and
  acts after it. ``blocks``: an async tool that keeps the event loop past its deadline, and has acted.
- ``part``: a partial result.
"""

from __future__ import annotations

import asyncio
import errno
import random
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from tests.soak.ledger import Attempt, Ledger
from tests.soak.trouble import Outage, Trouble

from failsoft import Fallback, Runtime, partial
from failsoft.errors import CallFailed
from failsoft.testing import HttpError, VirtualClock

FOREVER = 1e6
HABIT = 0.9  # how much of an outage's attempts fail as the outage does
REFUSED = ("refused", "busy", "rate")
READ = (*REFUSED, "lost", "error500", "hang", "hang")
WRITE = (*REFUSED, "lost", "error500", "hang", "late", "stubborn")
NEVER = {"failure_threshold": 1_000_000}  # a breaker that stays out of the way


@dataclass(frozen=True)
class Spec:
    """What a tool is: what failsoft is told of it, and what is true."""

    options: Mapping[str, Any]
    outages: tuple[str, ...]  # the ways in which it can be out of order
    faults: Mapping[str, float]  # what goes wrong on a good day, and how often
    sync: bool = False
    writes: bool = False  # the truth, whatever was declared: doing it twice does harm
    keyed: bool = False  # the service itself does the same key once only

    @property
    def timeout(self) -> float:
        said = self.options.get("timeout", "30s")
        return FOREVER if said is None else float(said.removesuffix("s"))


def _quick(**more: Any) -> dict[str, Any]:
    return {"timeout": "5s", **more}


SPECS: dict[str, Spec] = {
    "search": Spec(
        _quick(read_only=True, fallbacks=["search_backup", {"tool": "cache", "handle_errors": ["UNAVAILABLE"]}]),
        READ, {"lost": 0.04, "busy": 0.03, "slow": 0.05, "hang": 0.01, "invalid": 0.02},
    ),
    "search_backup": Spec(
        _quick(read_only=True, breaker={"failure_threshold": 3, "timeout": "20s", "success_threshold": 2}),
        READ, {"error500": 0.05, "slow": 0.1},
    ),
    "cache": Spec({"read_only": True, "timeout": None}, ("busy", "lost"), {"lost": 0.02, "garbled": 0.01}, sync=True),
    "weather": Spec(
        _quick(idempotent=True, breaker={"count": "calls", "failure_threshold": 3}),
        (*READ, "stubborn"), {"stubborn": 0.02, "blocks": 0.004, "rate": 0.02, "lost": 0.05},
    ),
    "prices": Spec({"read_only": True, "timeout": None}, ("busy", "lost", "refused"), {"error500": 0.05}, sync=True),
    "feed": Spec(
        {"read_only": True, "timeout": "2s", "breaker": NEVER, "required": False}, ("busy", "refused"), {"busy": 0.05},
    ),
    "quota": Spec(_quick(read_only=True), ("rate", "busy"), {"rate": 0.1}),
    "limited": Spec(_quick(read_only=True, concurrency=2, queue=2), ("hang", "lost"), {"lost": 0.05, "slow": 0.4}),
    "pieces": Spec(_quick(read_only=True), ("busy", "part"), {"part": 0.2, "lost": 0.03}),
    "guide": Spec(_quick(read_only=True), ("busy",), {"missing": 0.05, "auth": 0.03, "invalid": 0.05}),
    "book": Spec(
        _quick(idempotent=False), WRITE,
        {"lost": 0.03, "refused": 0.05, "late": 0.02, "stubborn": 0.01, "invalid": 0.03}, writes=True,
    ),
    "pay": Spec(
        _quick(idempotent=False, fallbacks=["pay_other", "pay_third"]), WRITE,
        {"lost": 0.03, "busy": 0.05, "late": 0.02, "blocks": 0.004, "garbled": 0.02}, writes=True,
    ),
    "pay_other": Spec(_quick(idempotent=False), WRITE, {"error500": 0.1, "refused": 0.1}, writes=True),
    "pay_third": Spec(
        {"idempotent": False, "timeout": None}, ("busy", "lost"), {"lost": 0.05}, sync=True, writes=True,
    ),
    "mail": Spec({"idempotent": False, "timeout": None}, ("busy", "lost"), {"lost": 0.03}, sync=True, writes=True),
    "charge": Spec(
        _quick(idempotency_key="key"), WRITE, {"lost": 0.1, "late": 0.03}, writes=True, keyed=True,
    ),
    "stuck": Spec({"read_only": True}, (), {"invalid": 1.0}),
    "trip": Spec(_quick(read_only=True, timeout="20s"), (), {}),
    "order": Spec(_quick(idempotent=False, timeout="20s"), (), {}, writes=True),
}  # fmt: skip
INSIDE = {"trip": ("search", "prices"), "order": ("prices", "pay")}  # guarded tools that call guarded tools


class World:
    """All tools of one day, and their ledger."""

    def __init__(self, seed: int, clock: VirtualClock, trouble: Trouble) -> None:
        self.ledger = Ledger()
        self.healed = False  # nothing goes wrong any more
        self._clock = clock
        self._outages = trouble.outages
        self._sources = {name: random.Random(f"{seed}/{name}") for name in SPECS}
        self.functions: dict[str, Callable[..., Any]] = {}

    def register(self, rt: Runtime, declared: Mapping[str, Mapping[str, Any]]) -> None:
        """Make the tools known to a runtime; ``declared`` is said about them beside the truth, for tests of tests."""
        for name, spec in SPECS.items():
            options = {**spec.options, **declared.get(name, {})}
            if "fallbacks" in options:
                options["fallbacks"] = [_fallback(one) for one in options["fallbacks"]]
            self.functions[name] = rt.add(self._make(name, spec), id=name, **options)

    def now(self) -> float:
        return self._clock.time()

    def is_out(self, tool: str) -> Outage | None:
        now = self.now()
        return next((outage for outage in self._outages[tool] if outage.begin <= now < outage.end), None)

    def _make(self, name: str, spec: Spec) -> Callable[..., Any]:
        if name in INSIDE:

            async def outer(token: str) -> dict[str, str]:
                return await self._outer(name, token)

            return outer
        if spec.sync:
            return lambda token, **_: self._sync(name, token)
        if spec.keyed:

            async def keyed(token: str, key: str, **_: Any) -> Any:
                self.ledger.keys[token].add(key)
                return await self._async(name, token, key)

            return keyed

        async def plain(token: str = "-", **_: Any) -> Any:
            return await self._async(name, token)

        return plain

    # -- one attempt ---------------------------------------------------------------------------------------------------

    def _begin(self, name: str, token: str) -> Attempt:
        source = self._sources[name]
        step = "ok"
        outage = self.is_out(name)
        if self.healed:
            pass
        elif outage is not None and source.random() < HABIT:
            step = outage.step
        else:
            drawn = source.random()
            for fault, share in SPECS[name].faults.items():
                drawn -= share
                if drawn < 0:
                    step = fault
                    break
        attempt = Attempt(name, token, step, self.now())
        self.ledger.attempts.append(attempt)
        return attempt

    def _end(self, attempt: Attempt, result: str) -> None:
        attempt.result, attempt.ended = result, self.now()

    def _act(self, attempt: Attempt, key: str | None = None) -> None:
        if key is None or all(tool != key for tool, _ in self.ledger.effects[attempt.token]):
            self.ledger.effects[attempt.token].append((key or attempt.tool, self.now()))

    def _sync(self, name: str, token: str) -> dict[str, str]:
        attempt = self._begin(name, token)
        try:
            _raise_before(attempt)
            self._clock.sleep(self._sources[name].uniform(0.001, 0.2))
            self._act(attempt)
            _raise_after(attempt)
        except Exception:
            self._end(attempt, "error")
            raise
        self._end(attempt, "value")
        return {"token": token, "by": name}

    async def _async(self, name: str, token: str, key: str | None = None) -> Any:
        attempt = self._begin(name, token)
        try:
            _raise_before(attempt)
            await asyncio.sleep(self._sources[name].uniform(0.0, 3.0 if attempt.step == "slow" else 0.4))
            await self._misbehave(attempt, key)
            self._act(attempt, key)
            _raise_after(attempt)
        except asyncio.CancelledError:
            self._end(attempt, "cancelled")
            raise
        except Exception:
            self._end(attempt, "error")
            raise
        self._end(attempt, "value")
        made = {"token": token, "by": name}
        return partial(made, missing=["rest"]) if attempt.step == "part" else made

    async def _misbehave(self, attempt: Attempt, key: str | None) -> None:
        if attempt.step == "late":
            self._act(attempt, key)
        if attempt.step in ("hang", "late"):
            await asyncio.sleep(FOREVER)
        if attempt.step == "blocks":
            self._clock.sleep(SPECS[attempt.tool].timeout + 1.0)
        if attempt.step == "stubborn":
            try:
                await asyncio.sleep(FOREVER)
            except asyncio.CancelledError:
                await asyncio.sleep(3.0)

    async def _outer(self, name: str, token: str) -> dict[str, str]:
        attempt = self._begin(name, token)
        try:
            for inner in INSIDE[name]:
                await self._inner(inner, attempt)
        except asyncio.CancelledError:
            self._end(attempt, "cancelled")
            raise
        except Exception:
            self._end(attempt, "error")
            raise
        self._end(attempt, "value")
        return {"token": token, "by": name}

    async def _inner(self, inner: str, attempt: Attempt) -> None:
        """A guarded function, called by a tool."""
        asked = self.ledger.ask(inner, "inner", self.now(), parent=attempt.token)
        try:
            called = self.functions[inner](token=asked.token)
            asked.told.append(await called if asyncio.iscoroutine(called) else called)
        except CallFailed as error:
            asked.told.append(error.outcome)
            raise
        except asyncio.CancelledError as error:
            asked.told.append(error)
            raise


def _fallback(said: Any) -> Any:
    return Fallback(**said) if isinstance(said, dict) else said


def _raise_before(attempt: Attempt) -> None:
    match attempt.step:
        case "refused":
            raise ConnectionRefusedError(errno.ECONNREFUSED, "Connection refused")
        case "busy":
            raise HttpError(503)
        case "rate":
            raise HttpError(429, 1.5)
        case "invalid":
            raise ValueError("Invalid input")
        case "auth":
            raise HttpError(401)
        case "missing":
            raise RuntimeError("tool 'guide' not found")


def _raise_after(attempt: Attempt) -> None:
    match attempt.step:
        case "lost":
            raise ConnectionResetError(errno.ECONNRESET, "Connection reset by peer")
        case "error500":
            raise HttpError(500)
        case "garbled":
            raise KeyError("result")
