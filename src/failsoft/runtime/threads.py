"""Threads: what each conversation may retry, which tools it has to do without, what it left dangling.

``Notebook`` is the engine's side: calls that fail, and calls in a thread that has notes, come here. ``Threads`` is what
users hold as ``rt.threads``. The decisions are ``core.threads``'.

Rules
-----
- A thread is a key and a tenant; two of them never see each other's notes. No thread: nothing is remembered.
- A thread without notes costs a look-up a turn, and a thread that is done with costs nothing.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable
from typing import TYPE_CHECKING, Any
from weakref import WeakValueDictionary

from failsoft.core import own_faults
from failsoft.core.outcome import Decision, Outcome
from failsoft.core.threads import (
    HARD,
    OFFER_LASTS,
    Dangling,
    Failure,
    Offer,
    ThreadState,
    find_reach,
    fingerprint,
)
from failsoft.observe import events
from failsoft.runtime.health import LEASE, LONGEST_PROBE

if TYPE_CHECKING:
    from failsoft.core.fault import Fault
    from failsoft.runtime.call import Call
    from failsoft.runtime.engine import Engine
    from failsoft.runtime.tool import Tool

Key = tuple[str | None, str]  # tenant, thread

MOST_THREADS = 10_000  # that have notes; the ones that were longest without a new one are forgotten first
BLANK = ThreadState()  # of calls without a thread; nobody writes in it


class Notebook:
    """The notes on all threads of a runtime."""

    def __init__(self, rt: Engine) -> None:
        self._rt = rt
        self._lock = threading.Lock()
        self._states: WeakValueDictionary[Key, ThreadState] = WeakValueDictionary()
        self._kept: OrderedDict[Key, ThreadState] = OrderedDict()  # those that have notes

    def renew_after_fork(self) -> None:
        self._lock = threading.Lock()

    def open(self, thread: str | None, tenant: str | None) -> ThreadState:
        """A thread's notes, to be looked at for as long as one likes."""
        if thread is None:
            return BLANK
        with self._lock:
            return self._open((tenant, thread))

    def _open(self, key: Key) -> ThreadState:
        state = self._states.get(key)
        if state is None:
            state = self._states[key] = ThreadState()
        return state

    def _find(self, call: Call) -> ThreadState | None:
        """The thread's notes, if there are any."""
        state = None if call.thread is None else self._kept.get((call.tenant, call.thread))
        return state if state is not None and state.wary else None

    def _keep(self, key: Key, state: ThreadState) -> None:
        if not (state.wary or state.dangling):
            self._kept.pop(key, None)
            return
        self._kept[key] = state
        self._kept.move_to_end(key)
        if len(self._kept) > MOST_THREADS:
            self._kept.popitem(last=False)

    # -- before a call runs ------------------------------------------------------------------------------------------

    def is_absent(self, call: Call, tool: Tool) -> bool:
        """Would the thread turn a call of this tool away?"""
        state = self._find(call)
        return state is not None and state.is_absent(tool.id, self._rt.now())

    def admit(self, call: Call, tool: Tool) -> Fault | None:
        """Turn a call away whose tool is missing in its thread."""
        state = self._find(call)
        if state is None:
            return None
        with self._lock:
            return state.admit(tool.id, self._rt.now(), lease=min(tool.timeout, LONGEST_PROBE) + LEASE)

    def find_loop(self, call: Call) -> Failure | None:
        """The failure that this call has had twice already; a call further in is nobody's loop."""
        state = self._find(call)
        if state is None or not state.failures or call.inner:
            return None
        with self._lock:
            return state.find_loop(_same(call), self._rt.now())

    # -- after it ----------------------------------------------------------------------------------------------------

    def note_attempt(self, call: Call, tool: Tool, fault: Fault | None, *, ran: bool) -> None:
        """An attempt has ended: is its tool there?"""
        reach = None if fault is None else find_reach(fault)
        if reach == "deployment" and fault is not None:
            tool.mark_unavailable(own_faults.tool_marked_unavailable(tool.id, fault.message))
        elif call.thread is not None and (reach or (ran and self._find(call))):
            key = (call.tenant, call.thread)
            with self._lock:
                state = self._open(key)
                state.note_attempt(tool.id, fault, self._rt.now())
                self._keep(key, state)

    def note_success(self, call: Call) -> None:
        """A call of a thread that has notes has succeeded."""
        state = self._find(call)
        if state is None or call.thread is None or call.inner:
            return
        with self._lock:
            state.note_success(call.tool.id, _same(call))
            self._keep((call.tenant, call.thread), state)

    def note_failure(self, call: Call, outcome: Outcome[Any]) -> None:
        """A call of a thread has failed for good: an offer is made, or cleared."""
        fault = outcome.fault
        if call.thread is None or fault is None or call.left_behind:
            return
        tool, key, now = call.tool, (call.tenant, call.thread), self._rt.now()
        happened = None
        with self._lock:
            state = self._open(key)
            if fault.category in HARD and state.clear_offer(tool.id):
                happened = events.OFFER_CLEARED, "Retry offer cleared for"
            if not call.inner and fault.classification == "permanent":
                same = _same(call)
                if same is not None:
                    bare = fault._replace(cause=None)
                    failure = Failure(
                        tool.id, (now,), bare, outcome.explanation, outcome.decision, outcome.escalated
                    )  # fmt: skip
                    state.note_failure(same, failure)
            elif not call.inner and fault.retryable and not call.asked:
                state.make_offer(self._offer(call, outcome, now))
                happened = events.RETRY_OFFERED, "Retry offered for"
            self._keep(key, state)
        if happened is not None:
            self._rt.emit(happened[0], tool, call, {"message": f"{happened[1]} {tool.id}", "thread": call.thread})

    def _offer(self, call: Call, outcome: Outcome[Any], now: float) -> Offer:
        return Offer(
            call.tool.id,
            dict(call.kwargs),
            outcome.explanation,
            self._rt.clock.wall(),
            now + OFFER_LASTS,
            call.args,
            call.timeout,
            call.retry,
            call.key,
            _same(call),
        )

    def note_dangling(self, thread: str, tenant: str | None, outcome: Outcome[Any]) -> None:
        """A call has ended with its turn, and not by itself."""
        key = (tenant, thread)
        with self._lock:
            state = self._open(key)
            state.leave_dangling(Dangling(outcome.id, outcome.tool, outcome.explanation.model))
            self._keep(key, state)

    def forget_tool(self, tool_id: str) -> None:
        """A tool has been registered (again): what threads know of it is out of date."""
        with self._lock:
            for key, state in list(self._kept.items()):
                state.forget(tool_id)
                self._keep(key, state)

    # -- for users ---------------------------------------------------------------------------------------------------

    def use(self, key: Key, do: Callable[[ThreadState, float], Any]) -> Any:
        """Look at, or change, the notes of one thread."""
        with self._lock:
            state = self._open(key)
            answer = do(state, self._rt.now())
            self._keep(key, state)
        return answer


class Threads:
    """``rt.threads["chat-42"]``; with a tenant ``rt.threads("chat-42", tenant="acme")``."""

    def __init__(self, rt: Engine) -> None:
        self._rt = rt

    def __getitem__(self, thread: str) -> Thread:
        return Thread(self._rt, thread, None)

    def __call__(self, thread: str, *, tenant: str | None = None) -> Thread:
        return Thread(self._rt, thread, tenant)


class Thread:
    """One conversation, as far as its tools are concerned."""

    __slots__ = ("_key", "_rt")

    def __init__(self, rt: Engine, thread: str, tenant: str | None) -> None:
        self._rt = rt
        self._key: Key = (tenant, thread)

    @property
    def offers(self) -> list[Offer]:
        """What may be tried again if the user asks for it, the oldest first."""
        offers: list[Offer] = self._use(ThreadState.list_offers)
        return offers

    async def retry(self, tool: str | Callable[..., Any]) -> Outcome[Any]:
        """The user wants it tried again: make the offered call once more. Without an offer the outcome says so."""
        rt = self._rt
        rt.refuse_if_closed()
        found = rt.find(tool)
        if isinstance(found, str):
            return self._nothing(found, None)
        offer: Offer | None = self._use(lambda state, now: state.take_offer(found.id, now))
        if offer is None:
            return self._nothing(found.id, found)
        call = rt.open_call(found, offer.args, dict(offer.arguments))
        call.tenant, call.thread = self._key
        call.timeout, call.retry, call.key, call.asked = offer.timeout, offer.retry, offer.key, True
        fields = {"message": f"Retry offer taken for {found.id}", "thread": call.thread}
        rt.emit(events.OFFER_TAKEN, found, call, fields)
        return await rt.run(call)

    def _nothing(self, name: str, tool: Tool | None) -> Outcome[Any]:
        rt = self._rt
        fault = own_faults.no_offer(name)
        shown = own_faults.quote(name)
        outcome: Outcome[Any] = Outcome(
            rt.trace.number(),
            shown,
            "failed",
            fault=fault,
            decision=Decision("fail_gracefully", fault.reason),
            label="" if tool is None else tool.label,
            explanation=rt.explain,
        )
        fields = {"error": fault.message, "code": fault.code.value, "category": fault.category, "rule": fault.rule}
        rt.trace.record((events.CALL_REFUSED, rt.now(), tool, outcome.id, None, fields))
        rt.settle()
        return outcome

    def clear(self, tool: str | None = None) -> None:
        """Forget offers, loops and missing tools of this thread: of one tool, or of all."""
        self._use(lambda state, _: state.forget(tool))

    def available(self, tool: str) -> bool:
        """Can the tool be used here, as far as is known? Adapters offer the model no other one."""
        found = self._rt.tools.get(tool)
        if found is None or found.unavailable is not None:
            return False
        absent: bool = self._use(lambda state, now: state.is_absent(tool, now))
        return not absent

    @property
    def unavailable(self) -> tuple[str, ...]:
        """The registered tools that cannot be used here."""
        return tuple(id for id in list(self._rt.tools) if not self.available(id))

    @property
    def dangling(self) -> list[Dangling]:
        """The calls of turns that were cancelled or crashed: the model does not know what became of them."""
        calls: list[Dangling] = self._use(lambda state, _: list(state.dangling.values()))
        return calls

    def close_dangling(self) -> list[Dangling]:
        """The same, and forget them: tell the model each one's text as the result of the call."""

        def close(state: ThreadState, _: float) -> list[Dangling]:
            calls, state.dangling = list(state.dangling.values()), {}
            return calls

        calls: list[Dangling] = self._use(close)
        return calls

    def _use(self, do: Callable[[ThreadState, float], Any]) -> Any:
        return self._rt.notebook.use(self._key, do)

    def __repr__(self) -> str:
        tenant, thread = self._key
        return f"<Thread {thread!r}{'' if tenant is None else f' of {tenant!r}'}>"


def _same(call: Call) -> str | None:
    return fingerprint(call.tool.id, call.args, call.kwargs)
