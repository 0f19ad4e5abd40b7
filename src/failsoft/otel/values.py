"""Attribute values: plain, sanitised, short."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from failsoft.core.model.json_values import plain
from failsoft.core.redact.sanitise import sanitise
from failsoft.observe.exception_text import exception_text
from failsoft.otel import names


def json_text(value: Any) -> str:
    """A value as JSON, with secrets masked; long texts are cut."""
    return sanitise(json.dumps(plain(value), ensure_ascii=False))


def without_none(attributes: Mapping[str, Any]) -> dict[str, Any]:
    """The attributes that have a value."""
    return {name: value for name, value in attributes.items() if value is not None}


def type_name(error: BaseException) -> str:
    """The full name of an exception's class."""
    kind = type(error)
    return kind.__qualname__ if kind.__module__ == "builtins" else f"{kind.__module__}.{kind.__qualname__}"


def exception_fields(error: BaseException) -> dict[str, Any]:
    """The attributes of an exception event, sanitised."""
    return {
        names.EXCEPTION_TYPE: type_name(error),
        names.EXCEPTION_MESSAGE: sanitise(error),
        names.EXCEPTION_STACKTRACE: exception_text(error),
    }
