"""The texts of an explanation as data. ``core.explain`` writes them; outcomes, offers and escalations carry them."""

from __future__ import annotations

from typing import Any, NamedTuple


class Explanation(NamedTuple):
    """Three texts about one failure."""

    user: str  # calm, stable, without internals
    model: str  # what failed, whether it may have taken effect, whether calling again can help
    operator: str  # everything, and what to do

    def to_dict(self) -> dict[str, Any]:
        """Return the texts as plain data."""
        return self._asdict()
