"""Tools for testing error paths: virtual time, scripted failures, conformance checks for stores, adapters and drivers.

Public, and used by failsoft's own tests. May import ``runtime`` and what is below it. Tested in ``tests/testing``.
"""

from __future__ import annotations

from failsoft.stores.memory import MemoryStore
from failsoft.testing.check_adapter import AdapterDriver, Ask, Seen, adapter_checks, check_adapter
from failsoft.testing.check_breaker_store import check_breaker_store
from failsoft.testing.check_driver import Checked, check_driver
from failsoft.testing.check_store import check_store
from failsoft.testing.faults import FaultPlan, HttpError
from failsoft.testing.virtual import VirtualClock, virtual_time
from failsoft.testing.virtual_loop import Deadlock

__all__ = [
    "AdapterDriver",
    "Ask",
    "Checked",
    "Deadlock",
    "FaultPlan",
    "HttpError",
    "MemoryStore",
    "Seen",
    "VirtualClock",
    "adapter_checks",
    "check_adapter",
    "check_breaker_store",
    "check_driver",
    "check_store",
    "virtual_time",
]
