"""The waterfall of a turn: ``build`` makes it from events, ``judge`` says where the time went, ``draw`` shows it."""

from __future__ import annotations

from failsoft.core.waterfall.build import build
from failsoft.core.waterfall.layout import draw, lay_out
from failsoft.core.waterfall.model import Row, Segment, Tick, Waterfall
from failsoft.core.waterfall.verdict import Share, Verdict, judge

__all__ = ["Row", "Segment", "Share", "Tick", "Verdict", "Waterfall", "build", "draw", "judge", "lay_out"]
