"""Circuits as records of a store: their form, and a breaker store for stores without one of their own."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from failsoft.core.model.fault import Fault
from failsoft.core.model.options import LARGEST_WINDOW
from failsoft.core.resilience.circuit_breaker import BreakerState
from failsoft.stores.ports import KeptCircuit, Records, Watcher

STATES = ("closed", "open", "half_open")


def pack(circuit: KeptCircuit, version: int) -> dict[str, Any]:
    """Return the record of a circuit."""
    fault = circuit.opened_by
    return {
        **circuit.state._asdict(),
        "version": version,
        "opened_by": None if fault is None else fault.to_dict(),
    }


def unpack(record: Any) -> tuple[KeptCircuit, int] | None:
    """Read a record; None if it is not one of a circuit.

    Records of version 0.1.0 have counted failures and the end of the open time. Such a circuit admits a probe at once.
    """
    try:
        fault = record.get("opened_by")
        state = BreakerState(
            record.get("state", "open" if "until" in record else "closed"),
            max(0, int(record["failures"])),
            int(record.get("successes", 0)),
            int(record.get("generation", 1 if "until" in record else 0)),
            float(record.get("since", 0.0)),
            int(record.get("probe", 0)),
            None if record.get("lease") is None else float(record["lease"]),
            _read_recent(record.get("recent", "")),
        )
        if state.state not in STATES:
            return None
        return KeptCircuit(state, None if fault is None else Fault.from_dict(fault)), max(
            1, int(record.get("version", 1))
        )
    except (AttributeError, KeyError, TypeError, ValueError, OverflowError):
        return None


def _read_recent(value: Any) -> str:
    """Read the results in a breaker's window; "" if they are invalid."""
    return value[-LARGEST_WINDOW:] if isinstance(value, str) and not value.strip("+-") else ""


def version_of(record: Any) -> int:
    """The version of the circuit in a record; 0 if there is none."""
    found = unpack(record)
    return 0 if found is None else found[1]


def next_version(version: int, wall: float) -> int:
    """The version after ``version``. A new record starts with the time: versions grow although records expire."""
    return version + 1 if version else max(1, int(wall))


class RecordBreakers:
    """Circuits in a store that has records only. Two processes may overwrite each other; changes are not reported."""

    def __init__(self, records: Records, wall: Callable[[], float]) -> None:
        self._records = records
        self._wall = wall

    def load(self, key: str) -> tuple[KeptCircuit, int] | None:
        return unpack(self._records.get("breaker", key))

    def swap(self, key: str, version: int, circuit: KeptCircuit, *, ttl: float) -> int:
        if version_of(self._records.get("breaker", key)) != version:
            return 0
        following = next_version(version, self._wall())
        self._records.put("breaker", key, pack(circuit, following), ttl=ttl)
        return following

    def watch(self, watcher: Watcher) -> Callable[[], None]:
        for key, record in self._records.find("breaker"):
            found = unpack(record)
            if found is not None:
                watcher(key, *found)
        return _nothing


def _nothing() -> None:
    """Do nothing: nothing is watched."""
