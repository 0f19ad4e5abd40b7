from __future__ import annotations

import pytest

from failsoft.core.redact.printable import visible


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("fine, ä 漢 🎉", "fine, ä 漢 🎉"),
        ("\x1b[31mred\x07", "\\x1b[31mred\\x07"),
        ("two\nlines\tand\u2028more", "two lines and more"),
        ("\u202egnp.exe", "\\u202egnp.exe"),
        ("\ud800", "\\ud800"),
    ],
)
def test_control_characters_are_made_visible(text: str, shown: str) -> None:
    assert visible(text) == shown
    assert visible(text).isprintable()
