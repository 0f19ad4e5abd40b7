"""Printable text: show text from outside on one line, with control and direction characters made visible or replaced."""

from __future__ import annotations

from failsoft.core.redact.sanitise import sanitise

_NAME_LENGTH = 80


def visible(text: str) -> str:
    """Return the text in a form that is safe to show anywhere."""
    if text.isprintable():
        return text
    return "".join(
        char if char.isprintable() else " " if char.isspace() else ascii(char)[1:-1].lower() for char in text
    )


def quote(name: object) -> str:
    """Make a name from outside one short, sanitised piece of text."""
    shown = " ".join(sanitise(name).split())
    return shown if len(shown) <= _NAME_LENGTH else shown[: _NAME_LENGTH - 1] + "…"
