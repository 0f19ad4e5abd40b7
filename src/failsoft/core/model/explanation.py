"""The texts of an explanation, as data. ``core.explain`` writes them; an outcome, an offer and an escalation carry them."""

from __future__ import annotations

from typing import Any, NamedTuple


class Explanation(NamedTuple):
    """One failure in three texts."""

    user: str  # calm, stable, nothing from inside
    model: str  # what failed, whether it may have taken effect, whether calling again can help
    operator: str  # everything, and what to do

    def to_dict(self) -> dict[str, Any]:
        """The texts as plain data."""
        return self._asdict()
