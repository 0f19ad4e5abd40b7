"""What a rule is made of."""

from __future__ import annotations

import ast
import json
from collections.abc import Awaitable, Callable, Mapping
from typing import Any

import yaml

Arguments = Mapping[str, Any]
Look = Callable[..., Awaitable[Any]]  # look("get_ticket", ticket_id=7): the read's answer as data
Rule = Callable[[Look, Arguments], Awaitable[bool | None]]


def read_answer(text: object) -> Any:
    """Read the text of an answer as data: JSON, a Python literal or YAML; else it stays a text."""
    if not isinstance(text, str):
        return text
    if text.startswith("Error during execution"):  # BFCL's words for an exception
        raise LookupError(text)
    for read in (json.loads, ast.literal_eval, yaml.safe_load):
        try:
            return read(text)
        except (ValueError, SyntaxError, yaml.YAMLError):
            continue
    return text


def is_error(answer: Any) -> bool:
    """True if a service answered with an error instead of data."""
    first = answer[0] if isinstance(answer, list) and answer else answer
    return isinstance(first, Mapping) and "error" in first


def same(found: Any, wanted: Arguments) -> bool:
    """True if a record has all wanted fields, whatever the types they were written in."""
    return isinstance(found, Mapping) and all(
        found.get(name) == value or str(found.get(name)) == str(value) for name, value in wanted.items()
    )


def listed(read: str, wanted: Callable[[Arguments], Arguments], *, at: str | None = None, **fixed: Any) -> Rule:
    """Look for a record with the wanted fields in a list (or a mapping of records) that a read returns."""

    async def rule(look: Look, arguments: Arguments) -> bool | None:
        answer = await look(read, **fixed)
        if is_error(answer) or not isinstance(answer, list | Mapping):
            return None
        found: Any = answer
        if at is not None:
            found = found[at]
        records = list(found.values()) if isinstance(found, Mapping) else found or []
        return any(same(record, wanted(arguments)) for record in records)

    return rule


def fields(*names: str, **others: str) -> Callable[[Arguments], Arguments]:
    """Take arguments by name; ``theirs="ours"`` where the record has another name than the argument."""
    pairs = {**{name: name for name in names}, **others}
    return lambda arguments: {theirs: arguments[ours] for theirs, ours in pairs.items() if ours in arguments}
