"""The answers of the ledger: records of writes that were resolved as happened or none, or made by a replay."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from failsoft.core.model.ledger_entry import LedgerAnswer, Verdict


def make_answer(
    record: Mapping[str, Any], verdict: Verdict, value: Any = None, *, value_known: bool = False
) -> dict[str, Any]:
    """Make the record that takes the place of a write's own once it is known what became of the write."""
    kept = {name: record[name] for name in ("run", "turn", "at", "n", "key") if name in record}
    return {**kept, "resolved": verdict, "value": value, "value_known": value_known}


def make_replay_answer(record: Mapping[str, Any], verdict: Verdict) -> dict[str, Any]:
    """Make the record that a replay leaves in its place for ``DANGLES_FOR`` seconds."""
    return {**make_answer(record, verdict), "replayed": True}


def is_freed(record: Mapping[str, Any]) -> bool:
    """True if the record is of a write that was resolved as none: it may run."""
    return record.get("resolved") == "none"


def read_answer(record: Mapping[str, Any]) -> LedgerAnswer | None:
    """Return the value in the record of a write that has happened; None if it is not such a record."""
    if record.get("resolved") != "happened":
        return None
    return LedgerAnswer(record.get("value"), bool(record.get("value_known")), bool(record.get("replayed")))
