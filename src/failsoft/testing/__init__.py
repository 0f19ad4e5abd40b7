"""What failsoft is tested with, for those who test with failsoft: virtual time and scripted failures."""

from __future__ import annotations

from failsoft.testing.driver import Deadlock
from failsoft.testing.faults import FaultPlan, HttpError
from failsoft.testing.virtual import VirtualClock, virtual_time

__all__ = ["Deadlock", "FaultPlan", "HttpError", "VirtualClock", "virtual_time"]
