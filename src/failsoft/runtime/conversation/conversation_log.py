"""The notes on threads (conversations), as calls use them: retry offers, missing tools, repeated failures, unanswered calls.

Used by calls that fail, and by calls in a thread that has notes. ``core.conversation.thread_state`` decides.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

from failsoft.core.conversation.thread_state import (
    DANGLES_FOR,
    HARD,
    OFFER_LASTS,
    Dangling,
    Failure,
    Offer,
    ThreadState,
    blames_setup,
    call_fingerprint,
    find_reach,
    mark,
)
from failsoft.core.model import builtin_faults
from failsoft.core.model.outcome import Outcome
from failsoft.observe import events
from failsoft.runtime.conversation.thread_notes import ThreadNotes
from failsoft.runtime.conversation.thread_store import Key
from failsoft.runtime.tools.health import LEASE, LONGEST_PROBE

if TYPE_CHECKING:
    from failsoft.core.model.fault import Fault
    from failsoft.core.model.ledger_entry import LedgerEntry
    from failsoft.runtime.conversation.ports import NamedCall, OfferedCall, ThreadCall
    from failsoft.runtime.tools.tool import Tool


class ConversationLog(ThreadNotes):
    """The notes on all threads of a runtime: read and written by calls."""

    # -- before a call runs ------------------------------------------------------------------------------------------

    def is_unavailable(self, call: ThreadCall, tool: Tool) -> bool:
        """True if the tool is missing in the call's thread."""
        state = self.find(call)
        return state is not None and state.is_unavailable(tool.id, self._rt.time.now())

    def admit(self, call: ThreadCall, tool: Tool) -> Fault | None:
        """Return the fault that refuses a call: its tool is missing in its thread, or the call may have acted already."""
        state = self.find(call)
        if state is None:
            return None
        with self._lock:
            if state.dangling and tool is call.tool and self._was_abandoned(call, state):
                return builtin_faults.cancelled(started=True)
            lease = min(tool.timeout, LONGEST_PROBE) + LEASE
            return state.admit(tool.id, self._rt.time.now(), lease=lease, call=_identify(call))

    def _was_abandoned(self, call: ThreadCall, state: ThreadState) -> bool:
        """True if this call is a repetition of one that was interrupted and must not run twice."""
        unanswered = state.find_unanswered(call.id, call.tool.id, _same(call), self._rt.time.now())
        if unanswered is None or call.thread is None:
            return False
        if not unanswered.told:
            state.add_unanswered(unanswered._replace(told=True))
            if self.pending is not None:
                self.pending.close_call((call.tenant, call.thread), unanswered.turn_id, unanswered.call_id)
        return True

    def forget_unanswered(self, call: ThreadCall) -> None:
        """Forget that this call was made before and not answered: an operator has found out what became of it."""
        if call.thread is not None:
            self.forget_call((call.tenant, call.thread), call.tool.id, call.id)

    def close_case(self, key: Key, entry: LedgerEntry) -> None:
        """Forget the notes on a write that was resolved; an offer to make it again ends if it has happened."""
        self.forget_call(key, entry.tool, entry.call_id)
        if entry.state != "happened" or not entry.fingerprint:
            return
        for offer in self.list_offers(key):
            if (offer.tool, offer.same) == (entry.tool, entry.fingerprint):
                self.use(key, partial(_drop_offer, offer))
                if self.pending is not None:
                    self.pending.drop_offer(key, offer.tool)

    def forget_call(self, key: Key, tool: str, call_id: str) -> None:
        """Forget the unanswered calls of a thread that have this tool and this id."""

        def close(state: ThreadState, _: float) -> None:
            for one in [one for one in state.dangling.values() if (one.tool, one.call_id) == (tool, call_id)]:
                self._close(key, state, one)

        self.use(key, close)

    def find_loop(self, call: ThreadCall) -> Failure | None:
        """Return the failure that this call has already had twice. Inner calls never count as a loop."""
        state = self.find(call)
        if state is None or not state.failures or call.is_inner:
            return None
        with self._lock:
            return state.find_loop(_same(call), self._rt.time.now())

    def count_refused_repeats(self, call: ThreadCall) -> int:
        """Return how often the call has had the same result if its tool's ``max_repeats`` refuses it, else 0."""
        if call.thread is None or call.tool.options.max_repeats is None or call.is_inner:
            return 0
        key, now = (call.tenant, call.thread), self._rt.time.now()
        return self.repetitions.count_if_refused(key, call, now)

    # -- after it ----------------------------------------------------------------------------------------------------

    def note_attempt(self, call: ThreadCall, tool: Tool, fault: Fault | None, *, ran: bool) -> None:
        """Note from the end of an attempt whether its tool is available."""
        reach = None if fault is None else find_reach(fault)
        if reach == "deployment" and fault is not None:
            tool.mark_unavailable(builtin_faults.tool_marked_unavailable(tool.id, fault.message))
        elif call.thread is not None and (reach or (ran and (self.find(call) or (fault and blames_setup(fault))))):
            key = (call.tenant, call.thread)
            with self._lock:
                state = self._open(key)
                before, now = state.absent.get(tool.id), self._rt.time.now()
                state.note_attempt(tool.id, fault, now, call=_identify(call))
                self._keep(key, state)
                absence = state.absent.get(tool.id)
                if self.pending is not None and absence is not before:
                    if absence is None:
                        self.pending.drop_absence(key, tool.id)
                    else:
                        self.pending.keep_absence(key, tool.id, absence, now)

    def note_success(self, call: ThreadCall) -> None:
        """Note the success of a call in a thread that has notes."""
        state = self.find(call)
        if state is None or call.thread is None or call.is_inner:
            return
        with self._lock:
            late = call.abandoned  # the value is not delivered, so the call's offer stays
            done = state.note_success(call.tool.id, "" if late else _same(call))
            self._keep((call.tenant, call.thread), state)
            if done and self.pending is not None:
                self.pending.drop_offer((call.tenant, call.thread), call.tool.id)

    def note_value(self, call: ThreadCall, value: Any) -> int:
        """Note the value of a call that succeeded.

        Return how often it has been the same if that is no progress, else 0.
        """
        if call.thread is None or call.is_inner or call.abandoned:
            return 0
        key, tool, now = (call.tenant, call.thread), call.tool, self._rt.time.now()
        repeats, news = self.repetitions.note(key, call, value, now)
        if news:
            message = f"No progress: {tool.id} has returned the same result to the same call {repeats} times"
            fields = {"message": message, "repeats": repeats, "thread": call.thread}
            self._rt.log.emit(events.NO_PROGRESS, tool, call, fields)
        return repeats

    def note_failure(self, call: OfferedCall, outcome: Outcome[Any]) -> None:
        """Note the final failure of a call: make a retry offer, or clear the one there is."""
        fault = outcome.fault
        if call.thread is None or fault is None or call.abandoned or fault.rule == builtin_faults.NO_OFFER:
            return
        if call.offer_taken and not outcome.attempts and fault.category not in HARD:
            self.return_offer(call)
        tool, key, now = call.tool, (call.tenant, call.thread), self._rt.time.now()
        happened = None
        with self._lock:
            state = self._open(key)
            if fault.category in HARD:
                if state.clear_offer(tool.id):
                    happened = events.OFFER_CLEARED, "Retry offer cleared for"
                if self.pending is not None:
                    self.pending.drop_offer(key, tool.id)
            if not call.is_inner and fault.classification == "permanent":
                same = _same(call)
                if same is not None:
                    bare = fault._replace(cause=None)
                    failure = Failure(
                        tool.id, (now,), bare, outcome.explanation, outcome.decision, outcome.escalated, outcome.told
                    )  # fmt: skip
                    state.note_failure(same, failure)
            elif not call.is_inner and fault.retryable and call.offer is None:
                offer = self._offer(call, outcome, now)
                state.make_offer(offer)
                if self.pending is not None:
                    self.pending.keep_offer(key, offer)
                happened = events.RETRY_OFFERED, "Retry offered for"
            self._keep(key, state)
        if happened is not None:
            self._rt.log.emit(happened[0], tool, call, {"message": f"{happened[1]} {tool.id}", "thread": call.thread})

    def _offer(self, call: OfferedCall, outcome: Outcome[Any], now: float) -> Offer:
        return Offer(
            call.tool.id,
            dict(call.kwargs),
            outcome.explanation,
            self._rt.time.wall(),
            now + OFFER_LASTS,
            call.args,
            call.timeout,
            call.retry,
            call.key,
            _same(call),
            call.by_agent,
        )

    def note_cut_off(self, call: OfferedCall, outcome: Outcome[Any]) -> None:
        """Note a call that was cut off at the turn's deadline: a retry is offered if repeating it is safe."""
        if call.thread is None or call.is_inner or call.tool.safe_to_repeat is not True:
            return
        if call.offer is not None:
            if call.offer_taken and not outcome.attempts:
                self.return_offer(call)
            return
        key = (call.tenant, call.thread)
        offer = self._offer(call, outcome, self._rt.time.now())
        self.use(key, lambda state, _: state.make_offer(offer))
        if self.pending is not None:
            self.pending.keep_offer(key, offer)
        self._rt.log.emit(
            events.RETRY_OFFERED, call.tool, call,
            {"message": f"Retry offered for {call.tool.id}", "thread": call.thread},
        )  # fmt: skip

    def note_abandoned(self, call: ThreadCall) -> None:
        """Note a call whose caller was cancelled if it must not run twice: a framework may repeat it after a restart."""
        if call.thread is None or call.is_inner or not call.may_have_acted_now or _mark(call) is None:
            return
        fault = builtin_faults.cancelled(started=True)
        outcome: Outcome[Any] = Outcome(
            call.id, call.tool.id, "cancelled", fault=fault, explanation=self._rt.texts.explain
        )
        self.note_unanswered((call.tenant, call.thread), "" if call.turn is None else call.turn.id, outcome, call)

    def note_unanswered(self, key: Key, turn_id: str, outcome: Outcome[Any], made: ThreadCall | None = None) -> None:
        """Note a call that was ended with its turn or its caller. ``made`` is the call if its tool was running."""
        same = _mark(made) if made is not None and made.may_have_acted_now else None
        expires = self._rt.time.now() + DANGLES_FOR
        call = Dangling(outcome.id, outcome.tool, outcome.explanation.model, turn_id, same, expires=expires)
        with self._lock:
            state = self._open(key)
            state.add_unanswered(call)
            self._keep(key, state)
        if self.pending is not None:
            self.pending.mark_abandoned(key, call)

    def note_registered(self, tool_id: str) -> None:
        """Note that a tool was registered. If it was registered before, forget that it was missing."""
        self.repetitions.forget(tool=tool_id)
        with self._lock:
            if tool_id not in self._registered:
                self._registered.add(tool_id)
                return  # first registration: notes from the previous process stay
            for key, state in list(self._kept.items()):
                if self.pending is not None and tool_id in state.absent:
                    self.pending.drop_absence(key, tool_id)
                state.note_registered(tool_id)
                self._keep(key, state)


def _drop_offer(offer: Offer, state: ThreadState, _: float) -> None:
    state.take_offer(offer)


def _mark(call: NamedCall) -> str | None:
    return mark(call.tool.id, call.args, call.kwargs) if call.tool.is_write and call.caller_id is not None else None


def _identify(call: NamedCall) -> object:
    """Make a key for a call. Its id alone is not enough: every turn numbers its calls from 1."""
    return None if call.turn is None else call.turn.id, call.id, call.started


def _same(call: NamedCall) -> str | None:
    return call_fingerprint(call.tool.id, call.args, call.kwargs)
