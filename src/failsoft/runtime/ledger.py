"""The effect ledger as users see it: ``rt.ledger``. Its records are in ``persistence.ledger_records``.

Rules
-----
- Everything here reads or changes the store, so it may block: on an event loop, ``await asyncio.to_thread(…)``.
- Errors are ``LedgerError``; its ``problem`` is one of ``unknown_id``, ``ambiguous``, ``running``, ``resolved``,
  ``closed`` (the call has ended since), ``verdict``, ``value``, ``store`` (it does not answer).
- Whoever resolves a case is recorded, in the case and in the event ``EffectResolved``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, get_args

from failsoft.config.settings import require_text_names
from failsoft.core.model.errors import LedgerError
from failsoft.core.model.ledger_entry import EffectState, LedgerEntry, Verdict
from failsoft.core.redact.sanitise import sanitise
from failsoft.observe import events
from failsoft.runtime.persistence.ledger_records import already, require_json, shorten

if TYPE_CHECKING:
    from failsoft.runtime.persistence.ledger_records import LedgerRecords, Running
    from failsoft.runtime.services import Services


_LONGEST_NAME = 200  # characters of who resolved a case


class Ledger:
    """The writes that were begun, and what became of them."""

    def __init__(self, rt: Services) -> None:
        self._rt = rt

    def unknown(
        self, *, thread: str | None = None, tenant: str | None = None, tool: str | None = None
    ) -> list[LedgerEntry]:
        """The open cases, the oldest first: writes that were begun and never ended, or ended with an unknown effect.

        ``thread``, ``tenant`` and ``tool`` select some. Calls that run in this process are not among them.
        """
        return [entry for entry in self.entries(thread=thread, tenant=tenant, tool=tool) if entry.is_open]

    def entries(
        self,
        *,
        thread: str | None = None,
        tenant: str | None = None,
        tool: str | None = None,
        state: EffectState | None = None,
    ) -> list[LedgerEntry]:
        """All entries, the oldest first: running writes, open cases and resolved ones, or those in one ``state``."""
        require_text_names("ledger", thread=thread, tenant=tenant, tool=tool)
        if state is not None and state not in get_args(EffectState):
            raise LedgerError(f"state: {shorten(state)} is not one of {', '.join(get_args(EffectState))}", "state")
        found = self._records.entries(thread, tenant, self._running)
        return [entry for entry in found if tool in (None, entry.tool) and state in (None, entry.state)]

    def get(self, id: str, *, thread: str | None = None, tenant: str | None = None) -> LedgerEntry:
        """The entry with this id, or the one of the call with this id. Raises ``LedgerError`` if there is none."""
        require_text_names("ledger", thread=thread, tenant=tenant)
        if not isinstance(id, str):
            raise LedgerError(f"expected the id of an entry or of a call, got {type(id).__name__}", "unknown_id")
        return self._records.find(id, thread, tenant, self._running)

    def resolve(
        self,
        id: str,
        verdict: Verdict,
        value: Any = None,
        *,
        by: str = "operator",
        thread: str | None = None,
        tenant: str | None = None,
    ) -> LedgerEntry:
        """Close an open case, because you have found out whether the write happened.

        ``"happened"``: the same call (its id, thread, tool and arguments) returns ``value`` from now on and does not
        run; without a value it has succeeded and ``outcome.value_known`` is False. ``"none"``: it may run again. ``id``
        is an entry's, or a call's if only one case is of it. ``by`` says who found out.
        """
        if verdict not in get_args(Verdict):
            raise LedgerError(f'resolve: {shorten(verdict)} is neither "happened" nor "none"', "verdict")
        known = value is not None
        if known and verdict == "none":
            raise LedgerError("resolve: a write that did not happen has no value", "value")
        require_json(value)
        if not isinstance(by, str) or not by:
            raise LedgerError("resolve: by: expected who resolves the case, as a text", "value")
        entry = self.get(id, thread=thread, tenant=tenant)
        if entry.running:
            raise LedgerError(f"{entry.id} is running in this process: wait until it ends, or cancel it", "running")
        if not entry.is_open:
            raise already(entry)
        who = sanitise(by, limit=_LONGEST_NAME)
        closed = self._records.resolve(entry, verdict, value, who, value_known=known)
        self._note_resolved(closed)
        return closed

    def _note_resolved(self, entry: LedgerEntry) -> None:
        """Let this process know that a case is closed, and record the event."""
        rt = self._rt
        rt.books.cases.checks_writes = True
        if entry.thread is not None:
            rt.books.conversations.forget_call((entry.tenant, entry.thread), entry.tool, entry.call_id)
        fields: dict[str, Any] = {
            "message": f"{entry.tool}: {_SAYS[entry.state]}",
            "entry": entry.id,
            "effect": entry.state,
            "by": entry.resolved_by,
            "value_known": entry.value_known,
            "thread": entry.thread,
        }
        tool = rt.toolbox.tools.get(entry.tool, entry.tool)
        rt.log.record_event(events.EFFECT_RESOLVED, tool, entry.call_id, entry.turn_id, fields)
        rt.log.drain_if_due()

    @property
    def _records(self) -> LedgerRecords:
        return self._rt.books.cases.records

    @property
    def _running(self) -> Running | None:
        ledger = self._rt.books.ledger
        return None if ledger is None else ledger.is_running


_SAYS = {"happened": "its unknown effect has happened", "none": "its unknown effect has not happened"}
