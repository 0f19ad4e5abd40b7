"""The waterfall of a turn: ``build`` makes it from events, ``judge`` says where the time went, ``draw`` prints it.

``model`` has the rows, ``terminal`` and ``html`` draw them. May import ``core.model`` and ``core.redact``. Mirrored by
``tests/analysis/waterfall``.
"""

from __future__ import annotations

from failsoft.analysis.waterfall.build import build
from failsoft.analysis.waterfall.model import Row, Segment, Tick
from failsoft.analysis.waterfall.terminal import draw, lay_out
from failsoft.analysis.waterfall.verdict import Share, Verdict, judge
from failsoft.analysis.waterfall.waterfall import Waterfall

__all__ = ["Row", "Segment", "Share", "Tick", "Verdict", "Waterfall", "build", "draw", "judge", "lay_out"]
