"""Twenty agents at work: what they do, when, and what they write down about it.

Each has its own random source, so what it wants to do depends on nothing but the seed.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Awaitable, Callable
from typing import Any

from tests.soak.ledger import Asked, TurnSeen
from tests.soak.trouble import SPELL, WORK, Trouble
from tests.soak.world import INSIDE, SPECS, World

from failsoft import CallFailed, Runtime, Turn

TOOLS = [name for name in SPECS if name != "stuck"]
SAFE = [name for name in TOOLS if not SPECS[name].writes]
PAUSE = 24.0  # seconds between two actions, on average, while it is busy


class Broken(Exception):
    """The body of a turn has failed."""


class Agent:
    """One agent."""

    def __init__(self, number: int, seed: int, rt: Runtime, world: World) -> None:
        self.random = random.Random(f"{seed}/agent {number}")
        self.rt = rt
        self.world = world
        self.ledger = world.ledger
        self.tenant = "acme" if number % 3 == 0 else None
        self.thread = f"chat-{number}"
        acts: list[tuple[Callable[[], Awaitable[None]], int]] = [
            (self.call, 22), (self.call_by_name, 12), (self.call_function, 18), (self.take_turn, 26),
            (self.leave_call, 8), (self.leave_turn, 5), (self.run_plan, 5), (self.ask_again, 3), (self.blunder, 4),
            (self.loop, 1), (self.rush, 1),
        ]  # fmt: skip
        self._acts, self._weights = [act for act, _ in acts], [weight for _, weight in acts]

    async def live(self, trouble: Trouble) -> None:
        """Be busy in the busy spells, and do something now and then between them."""
        for begin, after in zip(trouble.spells, [*trouble.spells[1:], WORK], strict=True):
            await self._until(begin + self.random.uniform(0, 30))
            while self.world.now() < begin + SPELL:
                await self.act()
                await asyncio.sleep(self.random.expovariate(1 / PAUSE))
            await self._until(self.random.uniform(self.world.now(), max(self.world.now(), after)))
            await self.act()

    async def _until(self, when: float) -> None:
        await asyncio.sleep(max(0.0, when - self.world.now()))

    async def act(self) -> None:
        await self.random.choices(self._acts, self._weights)[0]()

    def _ask(self, how: str, tool: str | None = None, **more: Any) -> Asked:
        return self.ledger.ask(tool or self.random.choice(TOOLS), how, self.world.now(), **more)

    # -- single calls --------------------------------------------------------------------------------------------------

    async def call(self, tool: str | None = None) -> None:
        """By name and without another word: the shortest way there is."""
        asked = self._ask("plain", tool)
        asked.told.append(await self.rt.call(asked.tool, {"token": asked.token}))

    async def call_by_name(self) -> None:
        asked = self._ask("by name")
        asked.call_id = asked.token
        more: dict[str, Any] = {"thread": self.thread} if self.random.random() < 0.6 else {}
        if self.random.random() < 0.2 and not SPECS[asked.tool].sync:  # with a timeout that one would get a thread
            more["timeout"] = "2s"
        if self.random.random() < 0.2:
            more["retry"] = {"max_attempts": 2, "initial_delay": "1s"}
        outcome = await self.rt.call(
            asked.tool, {"token": asked.token}, id=asked.token, tenant=self.tenant, **more
        )  # fmt: skip
        asked.told.append(outcome)

    async def call_function(self) -> None:
        """As plain code does."""
        await self._function(self._ask("function"))

    async def _function(self, asked: Asked) -> None:
        try:
            called = self.world.functions[asked.tool](token=asked.token)
            asked.told.append(await called if asyncio.iscoroutine(called) else called)
        except CallFailed as error:
            asked.told.append(error.outcome)
        except asyncio.CancelledError as error:
            asked.told.append(error)
            raise

    async def leave_call(self) -> None:
        """Start a call and lose interest."""
        asked = self._ask("by name")
        asked.call_id = asked.token
        running = asyncio.ensure_future(self.rt.call(asked.tool, {"token": asked.token}, id=asked.token))
        await asyncio.sleep(self.random.uniform(0, 1.5))
        running.cancel()
        try:
            asked.told.append(await running)
        except asyncio.CancelledError as error:
            asked.told.append(error)

    async def rush(self) -> None:
        """Far too many calls at once: for the retry budget, and for a queue."""
        tool = self.random.choice(("feed", "feed", "limited"))
        await asyncio.gather(*(self.call(tool) for _ in range(40 if tool == "feed" else 8)))

    async def blunder(self) -> None:
        """Mistakes of a model: a tool that does not exist, arguments that do not fit."""
        if self.random.random() < 0.5:
            asked = self._ask("by name", "serach")
            args: dict[str, Any] = {"token": asked.token}
        else:
            asked = self._ask("by name", self.random.choice([*INSIDE]))
            args = {"token": asked.token, "colour": "red"}
        asked.call_id = asked.token
        asked.told.append(await self.rt.call(asked.tool, args, id=asked.token))

    async def loop(self) -> None:
        """A model that does not take no for an answer."""
        for _ in range(4):
            asked = self._ask("loop", "stuck", tokenless=True)
            asked.call_id = asked.token
            outcome = await self.rt.call(
                "stuck", {"city": self.thread}, id=asked.token, thread=self.thread, tenant=self.tenant
            )
            asked.told.append(outcome)
            await asyncio.sleep(self.random.uniform(0, 10))

    async def ask_again(self) -> None:
        """Retry on the user's request, if an offer permits it."""
        thread = self.rt.threads(self.thread, tenant=self.tenant)
        thread.close_dangling()
        for offer in thread.offers:
            if offer.tool in SAFE:
                self.ledger.asked[offer.arguments["token"]].tokenless = True  # its attempts are two calls' now
                asked = self._ask("offer", offer.tool, tokenless=True)
                asked.told.append(await thread.retry(offer.tool))
                return

    # -- turns ---------------------------------------------------------------------------------------------------------

    async def take_turn(self) -> None:
        choose = self.random
        turn = self.rt.turn(
            timeout=choose.choice(("2s", "6s", "20s", "60s")),
            thread=choose.choice((None, self.thread)),
            tenant=self.tenant,
            on_timeout=choose.choice(("leave", "cancel")),
        )
        seen = TurnSeen(turn.id, [])
        self.ledger.turns.append(seen)
        submitted: list[Asked] = []
        try:
            async with turn:
                await self._body(turn, seen, submitted)
                if choose.random() < 0.08:
                    raise Broken
        except Broken:
            pass
        finally:
            self._read(turn, seen, submitted)

    async def _body(self, turn: Turn, seen: TurnSeen, submitted: list[Asked]) -> None:
        choose = self.random
        handles: list[Any] = []
        for _ in range(choose.randint(1, 6)):
            if choose.random() < 0.15:
                asked = self._ask("adopted", turn_id=turn.id)
                submitted.append(asked)
                seen.submitted.append("")  # it does not say
                await self._function(asked)
                continue
            asked = self._ask("turn", turn_id=turn.id)
            more: dict[str, Any] = {}
            args: dict[str, Any] = {"token": asked.token}
            if choose.random() < 0.5:
                more["id"] = asked.token
            if handles and choose.random() < 0.5:
                other = choose.choice(handles)
                if asked.tool in INSIDE or asked.tool == "charge" or choose.random() < 0.3:
                    more["depends_on"] = [other]
                else:
                    args["given"] = [other]
                    if choose.random() < 0.4:
                        more["defaults"] = {"given": None}
            if choose.random() < 0.3:
                more["required"] = choose.random() < 0.5
            handle = turn.call(asked.tool, args, **more)
            asked.call_id = handle.id
            handles.append(handle)
            submitted.append(asked)
            seen.submitted.append(handle.id)
            if choose.random() < 0.3:
                await asyncio.sleep(choose.uniform(0, 2))
            if choose.random() < 0.2:
                await choose.choice(handles)

    def _read(self, turn: Turn, seen: TurnSeen, submitted: list[Asked]) -> None:
        """Keep the report for later."""
        outcomes = turn.report.outcomes
        seen.reported = [*outcomes]
        seen.acknowledged = turn.acknowledged
        for id, outcome in outcomes.items():
            seen.statuses[id] = outcome.status
        for asked, id in zip(submitted, outcomes, strict=False):
            if asked.how == "adopted":
                asked.call_id = id
                if isinstance(asked.told[0], asyncio.CancelledError):  # its caller left; the report knows the end
                    asked.told.clear()
                    asked.told.append(outcomes[id])
            elif asked.call_id in outcomes:
                asked.told.append(outcomes[asked.call_id])

    async def leave_turn(self) -> None:
        """The user closes the window in the middle of a turn."""
        running = asyncio.ensure_future(self.take_turn())
        await asyncio.sleep(self.random.uniform(0, 4))
        running.cancel()
        await asyncio.wait([running])

    async def run_plan(self) -> None:
        first, second, third = (self._ask("plan") for _ in range(3))
        calls = [{"id": asked.token, "tool": asked.tool, "args": {"token": asked.token}} for asked in (first, second)]
        calls.append(
            {"id": third.token, "tool": third.tool, "args": {"token": third.token}, "depends_on": [first.token]}
        )
        report = await self.rt.run_plan({"timeout": "10s", "thread": self.thread, "calls": calls[::-1]})
        seen = TurnSeen(report.turn_id, [asked.token for asked in (third, second, first)], [*report.outcomes])
        self.ledger.turns.append(seen)
        for asked in (first, second, third):
            asked.call_id, asked.turn_id = asked.token, report.turn_id
            outcome = report.outcomes[asked.token]
            seen.statuses[asked.token] = outcome.status
            asked.told.append(outcome)
