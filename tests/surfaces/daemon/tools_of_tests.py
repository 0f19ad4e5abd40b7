"""Tools for manifests of the daemon's tests."""

from __future__ import annotations

import asyncio
from typing import Any


async def get_weather(city: str) -> dict[str, Any]:
    """Weather of a city."""
    return {"city": city, "sky": "clear"}


async def get_slowly(seconds: float = 30.0) -> str:
    """Something that takes long."""
    await asyncio.sleep(seconds)
    return "done"


async def get_nothing() -> None:
    """Always down."""
    raise RuntimeError("Service unavailable (503)")


async def pay() -> None:
    """Pay, and lose the answer."""
    raise ConnectionResetError("Connection reset by peer")


def get_out() -> None:
    """End the process."""
    raise SystemExit(3)


def get_interrupted() -> None:
    """Pretend that someone pressed Ctrl-C."""
    raise KeyboardInterrupt


def get_denied() -> str:
    raise PermissionError("Authentication failed (401)")
