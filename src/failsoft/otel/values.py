"""Attribute values: plain, sanitised, short."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from failsoft.core.model.json_values import plain
from failsoft.core.redact.sanitise import LIMIT, sanitise
from failsoft.observe.exception_text import exception_text
from failsoft.otel import names


def json_text(value: Any) -> str:
    """A value as JSON, with secrets masked; long texts are cut."""
    try:
        return sanitise(json.dumps(plain(value), ensure_ascii=False))
    except Exception as error:  # the value's own methods may raise anything
        return f"<{type(value).__name__} that cannot be shown: {type(error).__name__}>"


def without_none(attributes: Mapping[str, Any]) -> dict[str, Any]:
    """The attributes that have a value, in a form that every exporter can send."""
    return {name: _sendable(value) for name, value in attributes.items() if value is not None}


def _sendable(value: Any) -> Any:
    """Cut a long text and replace lone surrogates: one of them would cost an exporter its whole batch."""
    if not isinstance(value, str) or (len(value) <= LIMIT and value.isascii()):
        return value
    return value[:LIMIT].encode(errors="replace").decode()


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
