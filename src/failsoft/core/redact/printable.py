"""Text from outside on one line, with whatever would act on a terminal or turn a line around made visible."""

from __future__ import annotations


def visible(text: str) -> str:
    """The text as it can be shown anywhere."""
    if text.isprintable():
        return text
    return "".join(
        char if char.isprintable() else " " if char.isspace() else ascii(char)[1:-1].lower() for char in text
    )
