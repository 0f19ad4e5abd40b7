"""Changes of the effect ledger's records in the store."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from failsoft.core.model.ledger_entry import LedgerAnswer
from failsoft.runtime.persistence.ledger_records import KEPT_FOR, LedgerRecords, case_key, entry_id, is_stale, make_case
from failsoft.runtime.persistence.write_answers import is_freed, read_answer

if TYPE_CHECKING:
    from failsoft.runtime.persistence.write_record import Answer, Change, WriteRecord
    from failsoft.stores.failsafe import FailsafeStore


def make_change(store: FailsafeStore, change: Change, patience: float) -> None:
    """Make a change that a call has asked for, and wake whoever waits for it."""
    try:
        store.swap("pending", change.changes, ttl=change.ttl, timeout=patience)
    except TimeoutError:
        change.otherwise()
    change.wake()


def put_all(store: FailsafeStore, change: Change) -> None:
    """Let the store make a change later, because it does not answer in time."""
    for key, (_, value) in change.changes.items():
        if value is None:
            store.delete("pending", key)
        else:
            store.put("pending", key, value, ttl=change.ttl)


def replace(store: FailsafeStore, records: LedgerRecords, record: WriteRecord, patience: float) -> Answer:
    """Put a record in the place of the one that its call was verified against, if that is still there."""
    changes = {record.place: (record.replaces, record.value)}
    try:
        if store.swap("pending", changes, ttl=KEPT_FOR, timeout=patience):
            return "kept"
    except TimeoutError:
        return "unknown"
    known = records.recall(record.place)
    return known if isinstance(known, LedgerAnswer) else "begun"  # another replay was faster


def take_over(
    store: FailsafeStore, records: LedgerRecords, record: WriteRecord, found: dict[str, Any], patience: float
) -> Answer:
    """Answer for a call whose place is taken: by the same write, resolved or not, or by one that is over."""
    known = read_answer(found)
    if known is not None:
        return known
    stale = is_stale(found, records.wall())
    record.is_replay |= is_freed(found)
    if not stale and not record.is_replay and found != record.replaces:
        return "begun"
    changes: dict[str, tuple[Any, Any]] = {record.place: (found, record.value)}
    if stale and not record.is_replay:  # the stale record stays as an open case
        case = make_case(record.place, found)
        changes[case_key(record.place, entry_id(record.place, case))] = (None, case)
    try:
        return "kept" if store.swap("pending", changes, ttl=KEPT_FOR, timeout=patience) else "begun"
    except TimeoutError:
        return "unknown"
