"""Executors without failsoft: no protection, a naive retry, tenacity."""

from __future__ import annotations

from bench.yardstick.benchmarks.base import GoldCall
from bench.yardstick.replay import Session

ATTEMPTS = 3


class Sequential:
    """Makes one call after the other, and stops at the first that raises: as a program without protection does."""

    name = "none: stop at the first failure"

    async def make(self, session: Session, call: GoldCall) -> object:
        return await session.attempt(call)

    async def run(self, session: Session) -> None:
        for call in session.calls:
            session.begin(call)
            try:
                value = await self.make(session, call)
            except Exception:
                session.end("failed")
                return
            session.end("succeeded", value)


class NaiveRetry(Sequential):
    """Repeats at once, whatever the error."""

    name = f"naive retry, {ATTEMPTS} attempts"

    async def make(self, session: Session, call: GoldCall) -> object:
        for _ in range(ATTEMPTS - 1):
            try:
                return await session.attempt(call)
            except Exception:
                continue
        return await session.attempt(call)


class Tenacity(Sequential):
    """Tenacity with exponential, jittered waits."""

    name = f"tenacity, {ATTEMPTS} attempts"

    async def make(self, session: Session, call: GoldCall) -> object:
        from tenacity import AsyncRetrying, stop_after_attempt, wait_random_exponential

        retrying = AsyncRetrying(
            stop=stop_after_attempt(ATTEMPTS), wait=wait_random_exponential(multiplier=1, max=60), reraise=True
        )
        return await retrying(session.attempt, call)
