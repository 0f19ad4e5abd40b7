"""A conversation that survives its tools: one is missing, then misconfigured, then flaky, then fine.

    python examples/chat_thread.py

User and model are scripted, so no key is needed. The bot shows failsoft's text for users, and the model reads
failsoft's text for models. The thread remembers what may be tried again; the bot itself keeps no state.
"""

from __future__ import annotations

import asyncio
import textwrap
from collections.abc import Callable
from typing import Any

from failsoft import Outcome, Runtime

THREAD = "chat-42"
AGAIN = "again"  # the model reads it as a request to repeat the last call

Wish = tuple[str, dict[str, Any]] | str

rt = Runtime()
settings: dict[str, str] = {}
statuses = iter([503, 503, 503, 200])  # the hotel service's next answers


@rt.tool(read_only=True)
async def weather(city: str) -> str:
    return f"It is sunny in {city}."


async def hotel_search(city: str) -> str:
    if "api_key" not in settings:
        raise RuntimeError("401 Unauthorized: missing api key")
    status = next(statuses)
    if status != 200:
        raise RuntimeError(f"{status} Service Unavailable")
    return f"The Lutetia in {city} has a room."


def install_hotel_search() -> None:
    rt.add(hotel_search, read_only=True, retry={"max_attempts": 3, "initial_delay": "10ms"})


def give_it_a_key() -> None:
    settings["api_key"] = "a key"
    install_hotel_search()  # registered again: its setup has changed, so it may be tried again


# What the user says and the call that the model makes of it, with the operator's actions in between.
SCRIPT: list[tuple[str, Wish] | Callable[[], None]] = [
    ("Find me a hotel in Paris.", ("hotel_search", {"city": "Paris"})),
    ("Pity. What is the weather like there?", ("weather", {"city": "Paris"})),
    install_hotel_search,
    ("Can you look for hotels now?", ("hotel_search", {"city": "Paris"})),
    ("Then do that through a sub-agent.", AGAIN),
    give_it_a_key,
    ("I hear it works now. A hotel in Paris, please.", ("hotel_search", {"city": "Paris"})),
    ("Yes, try again.", AGAIN),
    ("And once more, to be sure.", AGAIN),
]


async def run(wish: Wish) -> Outcome[Any]:
    """Run one turn of the conversation."""
    async with rt.turn(thread=THREAD) as turn:
        if isinstance(wish, str):
            return await rt.threads[THREAD].retry("hotel_search")
        tool, arguments = wish
        aside(f"the model calls {tool}({arguments})")
        return await turn.call(tool, arguments)


def aside(text: str) -> None:
    """Print something that the user does not see."""
    print(textwrap.fill(text, 110, initial_indent=" " * 8, subsequent_indent=" " * 10))


async def main() -> None:
    for line in SCRIPT:
        if not isinstance(line, tuple):
            line()
            print(f"  * The operator decides to {line.__name__.replace('_', ' ')}.\n")
            continue
        said, wish = line
        print(f"User:   {said}")
        outcome = await run(wish)
        if outcome.status == "succeeded":
            print(f"Bot:    {outcome.value}\n")
            continue
        explanation = outcome.explanation
        aside(f"the model reads: {explanation.model}")
        print(f"Bot:    {explanation.user}")
        if outcome.escalated:
            for part in f"the operator reads: {explanation.operator}".splitlines():
                aside(part)
        print()
    await rt.close()


if __name__ == "__main__":
    asyncio.run(main())
