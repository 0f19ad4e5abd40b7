"""Errors of further libraries as data: rebuilt without the libraries, as far as a classifier may look at them.

A record holds what the exception was: its class and its bases by name, its text, its arguments, the attributes that a
classifier reads, and the exceptions that it came from. The labels are those of ``errors.jsonl``.
"""

from __future__ import annotations

import builtins
import json
from enum import Enum
from pathlib import Path
from typing import Any

FILE = Path(__file__).with_name("further.jsonl")


def load() -> list[dict[str, Any]]:
    """All records, each with its labels."""
    with FILE.open(encoding="utf-8") as lines:
        return [json.loads(line) for line in lines]


def rebuild(record: dict[str, Any]) -> BaseException | str:
    """The error of a record."""
    return record["text"] if "error" not in record else _rebuild(record["error"])


class Thing:
    """A response, or another object with attributes."""

    def __init__(self, attributes: dict[str, Any]) -> None:
        vars(self).update({name: _value(value) for name, value in attributes.items()})


def _rebuild(made: dict[str, Any]) -> BaseException:
    error = _class_of(made["types"], made.get("text"))(*[_value(value) for value in made["args"]])
    for name, value in made.get("attributes", {}).items():
        try:
            setattr(error, name, _value(value))
        except (AttributeError, TypeError):  # read-only in the built-in base, which has it from the arguments
            continue
    if "status" in made:  # gRPC
        status = Enum("StatusCode", [made["status"]])[made["status"]]  # type: ignore[misc]  # made of data
        error.code = lambda: status  # type: ignore[attr-defined]
    if "cause" in made:
        error.__cause__ = _rebuild(made["cause"])
    if "context" in made:
        error.__context__ = _rebuild(made["context"])
    error.__suppress_context__ = made.get("suppressed", False)
    return error


def _class_of(types: list[str], text: str | None) -> Any:
    """The class that the names describe, the most derived first; the last ones are built in."""
    cls: Any = None
    for name in reversed(types):
        module, _, simple = name.rpartition(".")
        if module == "builtins":
            base = getattr(builtins, simple)
            cls = base if cls is None or issubclass(base, cls) else cls
        else:
            cls = type(simple, (cls,), {"__module__": module})
    if text is not None:  # the class wrote it in its own way
        cls.__str__ = lambda _: text
    return cls


def _value(value: Any) -> Any:
    if isinstance(value, list):
        return [_value(one) for one in value]
    if isinstance(value, dict):
        if "=error" in value:
            return _rebuild(value["=error"])
        if "=object" in value:
            return Thing(value["=object"])
        if "=bytes" in value:
            return value["=bytes"].encode()
        return {key: _value(one) for key, one in value.items()}
    return value
