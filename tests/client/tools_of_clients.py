"""Tools of the daemon in ``test_clients``."""

from __future__ import annotations

import asyncio


async def search(city: str) -> list[str]:
    return [f"a flight to {city}"]


async def slow() -> None:
    await asyncio.sleep(30)


async def pay(amount: int) -> None:
    raise ConnectionResetError(f"connection reset while paying {amount}")
