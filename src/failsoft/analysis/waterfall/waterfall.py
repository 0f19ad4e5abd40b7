"""A turn's timeline with its verdict and its output as plain data, text and HTML."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from failsoft.analysis.waterfall.model import Timeline, round_ms
from failsoft.analysis.waterfall.terminal import draw
from failsoft.analysis.waterfall.verdict import Verdict, judge


@dataclass(frozen=True, slots=True)
class Waterfall(Timeline):
    """The waterfall of one turn."""

    @property
    def verdict(self) -> Verdict:
        """The breakdown of the turn's time."""
        return judge(self)

    def to_dict(self) -> dict[str, Any]:
        """Return the picture as plain data for ``json.dumps``; times in seconds, to the millisecond."""
        return {
            "turn_id": self.turn_id,
            "duration": round_ms(self.duration),
            "deadline": None if self.deadline is None else round_ms(self.deadline),
            "rows": [row.to_dict() for row in self.rows],
            "verdict": self.verdict.to_dict(),
        }

    def to_html(self) -> str:
        """Return the picture as one HTML file without scripts and external resources; foreign text is escaped."""
        from failsoft.analysis.waterfall.html import to_html  # start-up: few turns are exported

        return to_html(self)

    def __str__(self) -> str:
        """Draw the picture in plain text, 100 columns wide."""
        return draw(self, width=100)
