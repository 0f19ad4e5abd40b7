"""The notes on threads: held in memory, restored from the store, read and used up by users.

Users see threads through ``runtime.threads``. ``conversation_log`` adds what calls note.

Rules
-----
- A thread is identified by tenant and key. Threads never see each other's notes. Without a thread nothing is noted.
- A thread without notes costs one look-up per turn, and no memory once it is no longer used.
"""

from __future__ import annotations

import logging
import threading
from collections import OrderedDict
from collections.abc import Callable
from typing import TYPE_CHECKING, Any
from weakref import WeakValueDictionary

from failsoft.core.conversation.thread_state import Dangling, Offer, ThreadState
from failsoft.core.model import builtin_faults
from failsoft.core.model.outcome import Outcome
from failsoft.runtime.conversation.repetitions import Repetitions
from failsoft.runtime.conversation.thread_store import ConversationStore, Key
from failsoft.runtime.persistence.store_reads import ask_store

if TYPE_CHECKING:
    from failsoft.runtime.conversation.ports import ConversationServices, OfferedCall, ThreadCall

MOST_THREADS = 10_000  # with notes; beyond this, the thread with the oldest note is forgotten
log = logging.getLogger("failsoft")

BLANK = ThreadState()  # for calls without a thread; never changed


class ThreadNotes:
    """The notes on all threads of a runtime."""

    def __init__(self, rt: ConversationServices) -> None:
        self._rt = rt
        self.renew_after_fork()
        self._states: WeakValueDictionary[Key, ThreadState] = WeakValueDictionary()
        self._kept: OrderedDict[Key, ThreadState] = OrderedDict()  # only threads that have notes
        self._registered: set[str] = set()
        self.repetitions = Repetitions()
        self.pending = None if rt.store is None else ConversationStore(rt.store, rt.time.new_key(), rt.time.wall)
        if self.pending is not None:
            self._restore(self.pending)

    def _restore(self, pending: ConversationStore) -> None:
        """Restore the missing tools that the store has from the previous process."""
        try:
            for key, tool, absence in pending.find_absences(self._rt.time.now()):
                state = self._open(key)
                state.restore_absence(tool, absence)
                self._keep(key, state)
        except (KeyError, TypeError, ValueError):  # not readable: treated as no record
            log.warning("what threads had pending could not be read; it is forgotten", exc_info=True)

    def renew_after_fork(self) -> None:
        self._lock = threading.RLock()  # the garbage collector may end a forgotten turn in a thread that holds it

    def open(self, thread: str | None, tenant: str | None) -> ThreadState:
        """Return a thread's notes. The object stays current."""
        if thread is None:
            return BLANK
        with self._lock:
            return self._open((tenant, thread))

    def _open(self, key: Key) -> ThreadState:
        state = self._states.get(key)
        if state is None:
            state = self._states[key] = ThreadState()
        return state

    def find(self, call: ThreadCall) -> ThreadState | None:
        """Return the thread's notes if there are any. Then the call must be checked against them and noted in them."""
        if not self._kept or call.thread is None:
            return None
        state = self._kept.get((call.tenant, call.thread))
        return state if state is not None and state.has_notes else None

    def _keep(self, key: Key, state: ThreadState) -> None:
        if not (state.has_notes or state.dangling):
            self._kept.pop(key, None)
            return
        self._kept[key] = state
        self._kept.move_to_end(key)
        if len(self._kept) > MOST_THREADS:
            self._kept.popitem(last=False)

    # -- for users ---------------------------------------------------------------------------------------------------

    def list_offers(self, key: Key) -> list[Offer]:
        """List the retry offers, the oldest first."""
        offers: list[Offer] = self.use(key, ThreadState.list_offers)
        if self.pending is None:
            return offers
        known = {offer.tool: offer for offer in offers}
        return list(self.pending.find_offers(key, known, self._rt.time.now()).values())

    async def find_offer(self, key: Key, tool: str) -> Offer | None:
        """Return the offer of a tool without using it up; None if there is none or the store does not answer."""
        none: list[Offer] = []
        offers = self.list_offers(key) if self.pending is None else await ask_store(lambda: self.list_offers(key), none)
        return next((offer for offer in offers if offer.tool == tool), None)

    async def take_offer(self, call: OfferedCall, offer: Offer) -> bool:
        """Use up an offer. False if it is gone, or if the store does not answer."""
        if self.pending is None:
            return self.take_offer_blocking(call, offer)
        late = threading.Event()

        def take() -> bool:
            taken = self.take_offer_blocking(call, offer)
            if taken and late.is_set():  # the caller has stopped waiting, so no retry will run
                self.return_offer(call)
            return taken

        taken = False
        try:
            taken = await ask_store(take, False)
        finally:
            if not taken:
                late.set()
        return taken

    def take_offer_blocking(self, call: OfferedCall, offer: Offer) -> bool:
        """``take_offer`` for callers that block. The store is asked without the lock."""
        if call.thread is None:
            return False
        key = (call.tenant, call.thread)
        kept = self.pending if offer.same is not None else None  # arguments that are not JSON stay in this process
        if kept is not None and not kept.take_offer(key, offer):
            return False
        mine: bool = self.use(key, lambda state, _: state.take_offer(offer))
        return mine or kept is not None

    def return_offer(self, call: OfferedCall) -> None:
        """Restore a used offer whose retry did not run, for the rest of its time."""
        offer, now = call.offer, self._rt.time.now()
        if offer is None or call.thread is None or now >= offer.expires:
            return
        key = (call.tenant, call.thread)
        self.use(key, lambda state, _: state.make_offer(offer))
        if self.pending is not None:
            self.pending.keep_offer(key, offer, offer.expires - now)

    def forget(self, key: Key, tool: str | None) -> None:
        """Forget a thread's notes on a tool, or all of them."""
        self.repetitions.forget(key, tool)
        if self.pending is not None:
            for name in [tool] if tool is not None else [offer.tool for offer in self.list_offers(key)]:
                self.pending.drop_offer(key, name)
            absent: list[str] = self.use(key, lambda state, _: list(state.absent))
            for name in absent if tool is None else [tool]:
                self.pending.drop_absence(key, name)
        self.use(key, lambda state, _: state.forget(tool))

    def list_unavailable(self, key: Key) -> frozenset[str]:
        """Return the tools that are missing in a thread."""
        state = self._kept.get(key)
        if state is None or not state.absent:
            return frozenset()
        with self._lock:
            now = self._rt.time.now()
            return frozenset(tool for tool in state.absent if state.is_unavailable(tool, now))

    def list_unanswered(self, key: Key) -> list[Dangling]:
        """Return the unanswered calls: the model does not know their results."""
        kept: dict[tuple[str, str], Dangling] = self.use(key, lambda state, _: dict(state.dangling))
        calls = {place: call for place, call in kept.items() if not call.told}
        if self.pending is not None and self._rt.ledger is not None:
            for turn_id, call_id, tool in self._rt.ledger.find_open(key):
                fault = builtin_faults.cancelled(started=True)
                lost: Outcome[Any] = Outcome(call_id, tool, "cancelled", fault=fault)
                if (turn_id, call_id) not in kept:
                    calls[turn_id, call_id] = Dangling(call_id, tool, self._rt.texts.explain(lost).model, turn_id)
            calls |= {
                (call.turn_id, call.call_id): call for call in self.pending.find_calls(key, self._rt.texts.explain)
            }
        return list(calls.values())

    def close_dangling(self, key: Key) -> list[Dangling]:
        """Return the unanswered calls and forget them, and those that were refused when they were repeated."""
        calls = self.list_unanswered(key)
        reported: list[Dangling] = self.use(key, lambda state, _: [c for c in state.dangling.values() if c.told])

        def close(state: ThreadState, _: float) -> None:
            for call in (*calls, *reported):
                self._close(key, state, call)

        self.use(key, close)
        if self._rt.ledger is not None:
            self._rt.ledger.forget(key, {(call.turn_id, call.call_id) for call in (*calls, *reported)})
        return calls

    def _close(self, key: Key, state: ThreadState, call: Dangling) -> None:
        state.close_dangling(call)
        if self.pending is not None:
            self.pending.close_call(key, call.turn_id, call.call_id)

    def use(self, key: Key, do: Callable[[ThreadState, float], Any]) -> Any:
        """Read or change the notes of one thread, with the lock held."""
        with self._lock:
            state = self._open(key)
            answer = do(state, self._rt.time.now())
            self._keep(key, state)
        return answer
