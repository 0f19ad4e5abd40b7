"""Wait for the record of a write; if the store does not confirm it, look for an earlier start of the same write.

A store that cannot be written can often still be read: its file is locked by another process, or full. A replay is
recognised there although it cannot be recorded. One OS thread reads for all calls, so a store that hangs costs one
thread, however many writes wait.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from typing import Any

from failsoft.runtime.persistence.ledger_records import LedgerRecords, is_stale
from failsoft.runtime.persistence.store_reads import submit, submit_blocking
from failsoft.runtime.persistence.write_answers import is_freed, read_answer
from failsoft.runtime.persistence.write_record import WriteRecord

Start = Callable[[Callable[[], None]], WriteRecord]


class EarlierStarts:
    """Confirms records in a store, or finds earlier starts there."""

    def __init__(self, records: LedgerRecords) -> None:
        self._records = records
        self._lock = threading.Lock()
        self._wanted: deque[WriteRecord] = deque()
        self._reading = False  # a thread is reading

    async def confirm(self, start: Start, patience: float) -> WriteRecord:
        """Start recording, and wait for an answer ``patience`` seconds at most, without blocking the event loop."""
        record = await submit(start, patience / 2)
        if record.answer in (None, "unknown"):
            try:
                await submit(lambda wake: self._look(record, wake), patience / 2)
            finally:
                self._forget(record)
        return record

    def confirm_blocking(self, start: Start, patience: float) -> WriteRecord:
        """``confirm`` for callers that block."""
        record = submit_blocking(start, patience / 2)
        if record.answer in (None, "unknown"):
            try:
                submit_blocking(lambda wake: self._look(record, wake), patience / 2)
            finally:
                self._forget(record)
        return record

    def _look(self, record: WriteRecord, wake: Callable[[], None]) -> None:
        """Start reading the place of a record, while waiting for the answer to the record itself."""
        record.wake = wake
        with self._lock:
            self._wanted.append(record)
            reading, self._reading = self._reading, True
        if reading:
            return
        try:
            threading.Thread(target=self._read, name="failsoft store", daemon=True).start()
        except RuntimeError:  # the interpreter is about to end
            self._read()

    def _forget(self, record: WriteRecord) -> None:
        """Drop the record of a call that no longer waits."""
        with self._lock, suppress(ValueError):
            self._wanted.remove(record)

    def _read(self) -> None:
        while (record := self._next()) is not None:
            found = self._records.store.get("pending", record.place)
            with suppress(Exception):  # the stored record may be anything
                if _prevents(found, record, self._records.wall()):
                    record.earlier = found
            if record.earlier is not None or record.answer is not None:
                record.wake()

    def _next(self) -> WriteRecord | None:
        with self._lock:
            self._reading = bool(self._wanted)
            return self._wanted.popleft() if self._wanted else None


def _prevents(found: Any, record: WriteRecord, now: float) -> bool:
    """True if a record of an earlier start prevents this one, or has its answer."""
    if not isinstance(found, dict) or found in (record.value, record.replaces):
        return False
    return not is_freed(found) and (read_answer(found) is not None or not is_stale(found, now))
