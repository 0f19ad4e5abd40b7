"""A turn's timeline together with what can be asked of it: the verdict, plain data, text, a page."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from failsoft.analysis.waterfall.model import Timeline, round_ms
from failsoft.analysis.waterfall.terminal import draw
from failsoft.analysis.waterfall.verdict import Verdict, judge


@dataclass(frozen=True, slots=True)
class Waterfall(Timeline):
    """A whole turn."""

    @property
    def verdict(self) -> Verdict:
        """Where the time went."""
        return judge(self)

    def to_dict(self) -> dict[str, Any]:
        """The picture as plain data that ``json.dumps`` takes; times in seconds, to the millisecond."""
        return {
            "turn_id": self.turn_id,
            "duration": round_ms(self.duration),
            "deadline": None if self.deadline is None else round_ms(self.deadline),
            "rows": [row.to_dict() for row in self.rows],
            "verdict": self.verdict.to_dict(),
        }

    def to_html(self) -> str:
        """The picture as one HTML file: nothing is fetched, nothing runs, text from outside stays text."""
        from failsoft.analysis.waterfall.html import to_html  # start-up: few turns are exported

        return to_html(self)

    def __str__(self) -> str:
        """The picture in plain text, 100 columns wide."""
        return draw(self, width=100)
