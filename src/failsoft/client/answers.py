"""Readers of the daemon's answers, shared by the blocking and the async client."""

from __future__ import annotations

from typing import Any

from failsoft.client.connection import DaemonError
from failsoft.client.requests import Circuit


def read_circuit(answer: dict[str, Any]) -> Circuit:
    """Read the circuit in an answer."""
    circuit: Circuit = _field(answer, "circuit")
    return circuit


def read_accepted(answer: dict[str, Any]) -> int:
    """Read how many events were stored."""
    return int(_field(answer, "accepted"))


def read_list(answer: dict[str, Any], name: str) -> list[dict[str, Any]]:
    """Read the list in an answer."""
    found: list[dict[str, Any]] = _field(answer, name)
    return found


def _field(answer: object, name: str) -> Any:
    if not isinstance(answer, dict) or name not in answer:
        raise DaemonError(f"the answer has no {name!r}")
    return answer[name]
