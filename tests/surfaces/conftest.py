"""Whatever terminal the tests are started from, commands print as they do into a pipe."""

from __future__ import annotations

import pytest


@pytest.fixture(autouse=True)
def nobodys_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("COLUMNS", "LINES", "FORCE_COLOR", "NO_COLOR", "FAILSOFT_STORE"):
        monkeypatch.delenv(name, raising=False)
