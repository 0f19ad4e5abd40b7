"""Read-back rules for the fake benchmark: notes can be read, payments cannot be told from the balance."""

from __future__ import annotations

from bench.yardstick.readback.rule import Arguments, Look, Rule


async def noted(look: Look, arguments: Arguments) -> bool | None:
    return arguments["text"] in await look("read_notes")


RULES: dict[str, Rule] = {"add_note": noted, "frobnicate": noted}
