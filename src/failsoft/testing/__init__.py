"""What failsoft is tested with, for those who test with failsoft: virtual time, scripted failures, suites for adapters."""

from __future__ import annotations

from failsoft.testing.check_adapter import AdapterDriver, Ask, Seen, adapter_checks, check_adapter
from failsoft.testing.check_store import check_store
from failsoft.testing.faults import FaultPlan, HttpError
from failsoft.testing.virtual import VirtualClock, virtual_time
from failsoft.testing.virtual_loop import Deadlock

__all__ = [
    "AdapterDriver",
    "Ask",
    "Deadlock",
    "FaultPlan",
    "HttpError",
    "Seen",
    "VirtualClock",
    "adapter_checks",
    "check_adapter",
    "check_store",
    "virtual_time",
]
