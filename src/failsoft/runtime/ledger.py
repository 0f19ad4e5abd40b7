"""The effect ledger as users see it: ``rt.ledger``. Its records are in ``persistence.ledger_records``.

Rules
-----
- Every method reads or changes the store, so it may block. On an event loop, use ``await asyncio.to_thread(…)``.
- Errors are ``LedgerError``; its ``problem`` is one of ``unknown_id``, ``ambiguous``, ``running``, ``resolved``,
  ``closed`` (the call has ended since), ``verdict``, ``value``, ``state``, ``store`` (it does not answer), and of
  ``verify`` ``no_tool``, ``no_verify``, ``no_arguments``.
- The name of the person who resolves a case is recorded, in the case and in the event ``EffectResolved``.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, get_args

from failsoft.config.settings import require_text_names
from failsoft.core.conversation.thread_state import mark
from failsoft.core.effects.verification import doubt_none, longest_call
from failsoft.core.model import builtin_faults
from failsoft.core.model.errors import FailsoftError, LedgerError
from failsoft.core.model.ledger_entry import EffectState, LedgerEntry, Verdict
from failsoft.core.redact.sanitise import sanitise
from failsoft.observe import events
from failsoft.runtime.call.event_fields import verified_fields
from failsoft.runtime.call.model import Call
from failsoft.runtime.call.steps import Verify
from failsoft.runtime.call.verify import verify
from failsoft.runtime.execution.blocking_loop import is_on_loop, run_here
from failsoft.runtime.persistence.ledger_records import already, is_json, require_json, shorten

if TYPE_CHECKING:
    from failsoft.runtime.persistence.ledger_records import LedgerRecords, Running
    from failsoft.runtime.services import Services
    from failsoft.runtime.tools.tool import Tool


_LONGEST_NAME = 200  # characters of the name in ``by``


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
            given = "an entry: write entry.id" if isinstance(id, LedgerEntry) else type(id).__name__
            raise LedgerError(f"expected the id of an entry or of a call, got {given}", "unknown_id")
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
        is the id of an entry, or of a call that has only one case. ``by`` says who found out.
        """
        if verdict not in get_args(Verdict):
            raise LedgerError(f'resolve: {shorten(verdict)} is neither "happened" nor "none"', "verdict")
        known = value is not None
        if known and verdict == "none":
            raise LedgerError("resolve: a write that did not happen has no value", "value")
        require_json(value)
        if not isinstance(by, str) or not by:
            raise LedgerError("resolve: by: expected who resolves the case, as a text", "value")
        entry = self._find_open(id, thread, tenant)
        return self._close(entry, verdict, value, sanitise(by, limit=_LONGEST_NAME))

    async def verify(
        self,
        id: str,
        *,
        arguments: Mapping[str, Any] | None = None,
        thread: str | None = None,
        tenant: str | None = None,
    ) -> LedgerEntry:
        """Ask the tool's ``verify`` about an open case now, and close the case if it finds out what happened.

        The entry that is returned is still open if it does not; the event ``EffectVerified`` says why. ``none`` is not
        believed while an attempt of the call may still act, here or in the process that began it. The arguments are
        those that ``Runtime(record_arguments=True)`` has kept, or those given here, if they are the call's own.
        """
        entry = self._find_open(id, thread, tenant)
        tool, call = self._make_question(entry, arguments)
        began = self._rt.time.now()
        fault = builtin_faults.begun_before()._replace(message=entry.error or builtin_faults.begun_before().message)
        reply = await verify(self._rt, call, Verify(tool, fault))
        longest = longest_call(tool.options, is_command=tool.command is not None)
        verified = doubt_none(reply.verified, self._records.why_may_act(entry, longest))
        fields = verified_fields(verified, 0, 0.0, self._rt.time.now() - began)
        self._rt.log.record_event(events.EFFECT_VERIFIED, tool, entry.call_id, entry.turn_id, fields)
        answer = verified.answer
        if answer == "unknown":
            self._rt.log.drain_if_due()
            return entry
        value = verified.value if verified.value_known else None
        kept = value if answer == "happened" and is_json(value) else None
        return self._close(entry, answer, kept, "verify")

    def verify_sync(self, id: str, **arguments: Any) -> LedgerEntry:
        """``verify`` for code that has no event loop; refused where one is running."""
        if is_on_loop():
            raise FailsoftError(
                "verify_sync would block the running event loop: use `await rt.ledger.verify(...)` here"
            )
        return run_here(self.verify(id, **arguments))

    def _find_open(self, id: str, thread: str | None, tenant: str | None) -> LedgerEntry:
        entry = self.get(id, thread=thread, tenant=tenant)
        if entry.running:
            raise LedgerError(f"{entry.id} is running in this process: wait until it ends, or cancel it", "running")
        if not entry.is_open:
            raise already(entry)
        return entry

    def _close(self, entry: LedgerEntry, verdict: Verdict, value: Any, by: str) -> LedgerEntry:
        closed = self._records.resolve(entry, verdict, value, by, value_known=value is not None)
        self._note_resolved(closed)
        return closed

    def _make_question(self, entry: LedgerEntry, given: Mapping[str, Any] | None) -> tuple[Tool, Call]:
        """Return the tool and the call that ``verify`` is asked about; raise if it cannot be asked."""
        tool = self._rt.toolbox.tools.get(entry.tool)
        if tool is None:
            raise LedgerError(f"{entry.id} cannot be verified: {entry.tool} is not registered here", "no_tool")
        if tool.options.verify is None:
            raise LedgerError(
                f"{entry.id} cannot be verified: {entry.tool} has no verify: give it one, or resolve the case",
                "no_verify",
            )
        arguments = entry.arguments if given is None else dict(given)
        if arguments is None:
            raise LedgerError(
                f"{entry.id} cannot be verified: its arguments were not recorded. Give them, or record those of later "
                "writes: Runtime(record_arguments=True)",
                "no_arguments",
            )
        if given is None and entry.arguments_masked:
            raise LedgerError(f"{entry.id} cannot be verified: secrets in its arguments were masked", "no_arguments")
        if given is not None and mark(entry.tool, (), arguments) != entry.fingerprint:
            raise LedgerError(f"{entry.id} cannot be verified: these are not the arguments of its call", "no_arguments")
        if tool.options.key_parameter not in {None, *arguments} and entry.idempotency_key is None:
            raise LedgerError(f"{entry.id} cannot be verified: its idempotency key is not known", "no_arguments")
        call = Call(
            entry.call_id, tool, (), arguments, self._rt.time.now(), thread=entry.thread, tenant=entry.tenant,
            key=entry.idempotency_key,
        )  # fmt: skip
        return tool, call

    def _note_resolved(self, entry: LedgerEntry) -> None:
        """Update this process's notes on a case that is closed, and record the event."""
        rt = self._rt
        rt.books.cases.checks_writes = True
        if entry.thread is not None:
            rt.books.conversations.close_case((entry.tenant, entry.thread), entry)
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
