"""Printable text: show text from outside on one line, with control and direction characters made visible."""

from __future__ import annotations


def visible(text: str) -> str:
    """Return the text in a form that is safe to show anywhere."""
    if text.isprintable():
        return text
    return "".join(
        char if char.isprintable() else " " if char.isspace() else ascii(char)[1:-1].lower() for char in text
    )
