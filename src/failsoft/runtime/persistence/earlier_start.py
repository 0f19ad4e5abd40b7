"""Wait for the record of a write; if the store does not confirm it, look for an earlier start of the same write.

A store that cannot be written can often still be read: its file is locked by another process, or full. A replay is
recognised there although it cannot be recorded.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

from failsoft.runtime.persistence.ledger_records import LedgerRecords, is_stale
from failsoft.runtime.persistence.store_reads import submit, submit_blocking
from failsoft.runtime.persistence.write_record import WriteRecord

Start = Callable[[Callable[[], None]], WriteRecord]


async def confirm(start: Start, records: LedgerRecords, patience: float) -> WriteRecord:
    """Start recording, and wait for an answer ``patience`` seconds at most, without blocking the event loop."""
    record = await submit(start, patience / 2)
    if record.answer in (None, "unknown"):
        await submit(lambda wake: _look(records, record, wake), patience / 2)
    return record


def confirm_blocking(start: Start, records: LedgerRecords, patience: float) -> WriteRecord:
    """``confirm`` for callers that block."""
    record = submit_blocking(start, patience / 2)
    if record.answer in (None, "unknown"):
        submit_blocking(lambda wake: _look(records, record, wake), patience / 2)
    return record


def _look(records: LedgerRecords, record: WriteRecord, wake: Callable[[], None]) -> None:
    """Read on an OS thread of its own. The answer to the record itself is still waited for."""

    def read() -> None:
        found = records.store.get("pending", record.place)
        if _prevents(found, record, records.wall()):
            record.earlier = found
        if record.earlier is not None or record.answer is not None:
            wake()

    record.wake = wake
    try:
        threading.Thread(target=read, name="failsoft store", daemon=True).start()
    except RuntimeError:  # the interpreter is about to end
        read()


def _prevents(found: Any, record: WriteRecord, now: float) -> bool:
    """True if a record is of an earlier start that prevents this one, or that has its answer."""
    if not isinstance(found, dict) or found in (record.value, record.replaces):
        return False
    return "resolved" in found or not is_stale(found, now)
