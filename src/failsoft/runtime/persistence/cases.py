"""The open cases of a runtime: in the effect ledger if there is a store, else in memory."""

from __future__ import annotations

from typing import TYPE_CHECKING

from failsoft.runtime.persistence.store_reads import ask_store

if TYPE_CHECKING:
    from failsoft.core.model.fault import Fault
    from failsoft.core.model.ledger_entry import Recalled
    from failsoft.runtime.execution.time_source import TimeSource
    from failsoft.runtime.persistence.effect_ledger import EffectLedger
    from failsoft.runtime.persistence.ledger_records import LedgerRecords
    from failsoft.runtime.persistence.memory_cases import MemoryCases
    from failsoft.runtime.persistence.write_record import Write


class Cases:
    """Leaves open cases, and finds out what became of them."""

    def __init__(self, time: TimeSource, ledger: EffectLedger | None, *, record_arguments: bool) -> None:
        self._time = time
        self._ledger = ledger
        self._record_arguments = record_arguments
        self._memory: MemoryCases | None = None  # made when the first case is left
        self.checks_writes = ledger is not None  # look up a write with an id: it may have been recorded or resolved

    @property
    def records(self) -> LedgerRecords:
        """The records of the effect ledger: in the store, or in memory."""
        return self._open_memory() if self._ledger is None else self._ledger.records

    def _open_memory(self) -> MemoryCases:
        if self._memory is None:
            from failsoft.runtime.persistence.memory_cases import MemoryCases  # only for open cases

            self._memory = MemoryCases(self._time.wall, self._time.new_key, keeps_arguments=self._record_arguments)
        return self._memory

    async def end_unknown(self, call: Write, fault: Fault, *, runs_on: bool) -> None:
        """Leave an open case: a write has ended with an unknown effect. ``runs_on``: an attempt of it may still act."""
        if self._ledger is None:
            self._open_memory().keep(call, fault, runs_on=runs_on)
        else:
            await self._ledger.end_unknown(call, fault, runs_on=runs_on)

    def end_unknown_blocking(self, call: Write, fault: Fault, *, runs_on: bool) -> None:
        """``end_unknown`` for callers that block."""
        if self._ledger is None:
            self._open_memory().keep(call, fault, runs_on=runs_on)
        else:
            self._ledger.end_unknown_blocking(call, fault, runs_on=runs_on)

    def end_unknown_soon(self, call: Write, fault: Fault) -> None:
        """``end_unknown`` for callers that have left."""
        if self._ledger is None:
            self._open_memory().keep(call, fault, runs_on=True)
        else:
            self._ledger.end_unknown_soon(call, fault)

    async def recall(self, call: Write) -> Recalled:
        """Look up a write that is not going to run; None if nothing is known of it, or the store does not answer."""
        if self._ledger is None:
            return self.recall_blocking(call)
        return await ask_store(lambda: self.recall_blocking(call), None)

    def recall_blocking(self, call: Write) -> Recalled:
        """``recall`` for callers that block."""
        if self._ledger is not None:
            return self._ledger.recall(call)
        return None if self._memory is None else self._memory.recall_call(call)
