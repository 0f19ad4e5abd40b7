"""The audit: one event for every change of state that a request makes, with the name of the token."""

from __future__ import annotations

from typing import Any

from failsoft.core.redact.sanitise import sanitise
from failsoft.observe import events
from failsoft.runtime.call.emit import CallLog
from failsoft.surfaces.daemon.tokens import Grant


class Audit:
    """Records the actions of operators."""

    def __init__(self, log: CallLog) -> None:
        self._log = log

    def record(
        self, grant: Grant, action: str, target: str, *, tenant: str | None = None, address: str | None = None,
        turn_id: str | None = None, **details: Any,
    ) -> None:  # fmt: skip
        """Record an action. Texts are sanitised; arguments of tools are not recorded."""
        fields: dict[str, Any] = {
            "message": sanitise(f"{grant.name}: {action} {target}"),
            "actor": grant.name,
            "action": action,
            "target": sanitise(target),
        }
        owner = grant.tenant if tenant is None else tenant
        if owner is not None:
            fields["tenant"] = owner
        if address is not None:
            fields["address"] = address
        fields |= {name: sanitise(value) if isinstance(value, str) else value for name, value in details.items()}
        self._log.record_event(events.OPERATOR_ACTED, None, None, turn_id, fields)
