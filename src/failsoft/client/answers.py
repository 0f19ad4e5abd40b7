"""Readers of the daemon's answers, shared by the blocking and the async client."""

from __future__ import annotations

from collections.abc import Callable
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


def list_in(name: str) -> Callable[[dict[str, Any]], list[dict[str, Any]]]:
    """Read the list in an answer."""

    def read(answer: dict[str, Any]) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = _field(answer, name)
        return found

    return read


def _field(answer: object, name: str) -> Any:
    if not isinstance(answer, dict) or name not in answer:
        raise DaemonError(f"the answer has no {name!r}")
    return answer[name]
