"""The turn machine: decide when each call of a turn starts, and how the others end.

Rules
-----
- A call starts when all its dependencies have succeeded, or when ``cascade`` replaces the failed ones by defaults.
- Every call ends exactly once: it finishes, is skipped, is abandoned at the deadline, or is cancelled.
- A call that succeeded without a known value starts the calls that only wait for its end. For calls that need its value
  it counts as failed.
- A skipped call names its root: the call at the start of the chain, which ran and returned no value.
- At the deadline running calls are abandoned and waiting calls are skipped. Calls added later are skipped at once. A
  result that an abandoned call returns later is recorded as late and changes nothing.
- A duplicate id, an unknown dependency or a cycle raises ``TurnError``, and none of the calls is added.
- The same events in the same order return the same commands in the same order.

The machine returns commands so that asyncio can drive it in one process and a workflow engine on many machines. It reads
no clock: the deadline is an event. It is mutable because copying would make a turn of a thousand calls quadratic. It
stores statuses, not outcomes; the driver keeps the values. Drivers derive their calls from ``Node`` to need one object
per call. ``enqueue`` and ``activate`` exist beside ``add`` because most calls find their dependencies already succeeded
when they are dequeued, and then never wait.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from types import MappingProxyType
from typing import Any, Generic, Literal, NoReturn, TypeVar

from failsoft.core.model.errors import TurnError
from failsoft.core.model.misspelt import did_you_mean
from failsoft.core.model.outcome import Status
from failsoft.core.turn.cascade import cascade
from failsoft.core.turn.cycles import find_cycles, format_cycle

CallState = Status | Literal["new", "waiting", "running", "valueless"]  # the last: succeeded, its value is not known
Needs = Mapping[str, Collection[str]]  # call id -> top-level arguments that its value fills; empty: ordering only

_NOTHING: Mapping[str, Any] = MappingProxyType({})
_OPEN = ("running", "waiting", "new")  # most frequent first

Terms = tuple[bool | None, Mapping[str, Any], *tuple[Any, ...]]  # required, defaults, and the driver's own terms


class Node:
    """A call as the machine sees it. Drivers subclass it to keep their own data per call."""

    __slots__ = ("dependants", "fills", "id", "missing", "needs", "state", "substitutes", "terms")

    missing: int  # number of dependencies still missing; set when the call starts to wait

    def __init__(
        self,
        id: str,
        needs: Needs = _NOTHING,
        required: bool | None = None,
        defaults: Mapping[str, Any] = _NOTHING,
    ) -> None:
        self.id = id
        self.needs: tuple[str, ...] = tuple(needs)
        self.fills = needs  # may omit dependencies that only order the calls
        self.terms: Terms = required, defaults
        # The machine owns the attributes below.
        self.state: CallState = "new"
        self.dependants: Chain[Any] = None  # calls that wait for this one, while it is open
        self.substitutes: dict[str, Any] | None = None  # argument -> default that replaces a failed dependency

    @property
    def required(self) -> bool | None:
        return self.terms[0]

    @property
    def defaults(self) -> Mapping[str, Any]:
        """Argument -> value to use if the dependency that fills it fails."""
        return self.terms[1]

    def grounds(self, because: Node | None = None) -> dict[str, Any]:
        """Return the inputs of ``cascade`` for the trace, so that a replay can decide again."""
        terms = {"required": self.required, "defaults": sorted(self.defaults)}
        return terms if because is None else {**terms, "arguments": sorted(self.fills.get(because.id, ()))}


C = TypeVar("C", bound=Node)
Chain = tuple[C, "Chain[C]"] | None  # linked list, newest first: links are cheap and most chains are short


class _About(Generic[C]):
    __slots__: tuple[str, ...] = ("call",)
    __match_args__: tuple[str, ...] = ("call",)

    def __init__(self, call: C) -> None:
        self.call = call


class Start(_About[C]):
    """Run the call. Arguments in its ``substitutes`` are replaced by defaults."""

    __slots__ = ()


class Skip(_About[C]):
    """Record the call as skipped. ``because`` is the failed dependency, ``root`` the first failure in the chain.

    Both are None if the call was added after the turn's deadline.
    """

    __slots__ = ("because", "escalate", "root")
    __match_args__ = ("call", "root", "because", "escalate")

    def __init__(self, call: C, root: C | None, because: C | None, *, escalate: bool) -> None:
        self.call = call
        self.root = root
        self.because = because
        self.escalate = escalate


class Abandon(_About[C]):
    """Record the running call as timed out, and stop waiting for it."""

    __slots__ = ()


class Cancel(_About[C]):
    """Record the call as cancelled, and stop it if it has started."""

    __slots__ = ("started",)
    __match_args__ = ("call", "started")

    def __init__(self, call: C, *, started: bool) -> None:
        self.call = call
        self.started = started


class RecordLate(_About[C]):
    """Record that an abandoned or cancelled call has ended. Its outcome does not change."""

    __slots__ = ()


Command = Start[C] | Skip[C] | Abandon[C] | Cancel[C] | RecordLate[C]
_Miss = tuple[C, C]  # a call, and its dependency that returned no value


class TurnMachine(Generic[C]):
    """The state of one turn. Every method takes an event and returns the commands that follow from it."""

    __slots__ = ("_calls", "_late", "_over", "_roots", "calls", "no_failure_yet", "valueless")

    def __init__(self) -> None:
        self._calls: dict[str, C] = {}
        self.calls: Mapping[str, C] = MappingProxyType(self._calls)  # in the order of submission
        self._roots: dict[C, C] = {}  # skipped call -> its root
        self._late: set[C] = set()  # abandoned or cancelled while running; each may still report once
        self._over: Literal["expired", "cancelled"] | None = None
        self.valueless = 0  # calls that succeeded without a known value
        # False also once the turn is over; while True, a new call needs no check before it is dequeued
        self.no_failure_yet = True

    def add(self, call: C) -> Sequence[Command[C]]:
        """Add one call whose dependencies have been added before."""
        calls = self._calls
        if self._over or call.id in calls:
            return self.add_all((call,))
        try:
            failed = self.activate(call)
        except KeyError:
            self._withdraw(call)
            return self.add_all((call,))  # raises, and says what is wrong
        calls[call.id] = call
        if call.state == "running":
            return (Start(call),)
        return self._judge(failed) if failed else ()

    def enqueue(self, call: C) -> None:
        """Register a call to be activated when it is dequeued. Only while nothing has failed; add dependencies first."""
        id = call.id
        if id in self._calls:
            self.refuse_invalid_graph((call,))
        self._calls[id] = call

    def add_all(self, calls: Sequence[C]) -> Sequence[Command[C]]:
        """Add several calls at once. They may depend on each other in any order."""
        if self._over == "cancelled":
            raise TurnError("the turn has been cancelled: it takes no more calls")
        self.refuse_invalid_graph(calls)
        self._calls.update((call.id, call) for call in calls)
        if self._over == "expired":
            for call in calls:
                call.state = "skipped"
            return [Skip(call, None, None, escalate=False) for call in calls]
        return self._enter_all(calls)

    def succeed(self, call: C) -> Sequence[C]:
        """Record that a running call has succeeded. Returns the calls that can start now."""
        if call.state != "running":
            _refuse_end(call)
        call.state = "succeeded"
        waiting: Chain[C] = call.dependants
        if waiting is None:
            return ()
        call.dependants = None
        ready = []
        while waiting is not None:
            dependant, waiting = waiting
            if dependant.missing > 1:  # true for a skipped call too: its failed dependency stays missing
                dependant.missing -= 1
            else:
                dependant.state = "running"
                ready.append(dependant)
        ready.reverse()
        return ready

    def finish(self, call: C, status: Status, *, value_known: bool = True) -> Sequence[Command[C]]:
        """Record that a call has ended.

        The first failure, or unknown value, activates all enqueued calls; the driver must drop its queue.
        """
        if call in self._late:
            self._late.remove(call)
            return () if status == "cancelled" else (RecordLate(call),)
        if status == "succeeded" and value_known:
            return [Start(ready) for ready in self.succeed(call)]
        if call.state != "running":
            _refuse_end(call)
        call.state = status if value_known else "valueless"
        self.valueless += not value_known
        commands = self._judge(_misses(call))
        if self.no_failure_yet:
            self.no_failure_yet = False
            commands += self._enter_all(self._in_state("new"))  # so that dependants of this call are skipped at once
        return commands

    def expire(self) -> Sequence[Command[C]]:
        """Handle the turn's deadline."""
        if self._over:
            return ()
        self._enter_all(self._in_state("new"))  # nothing has failed yet, so each runs or waits
        self._over, self.no_failure_yet = "expired", False
        commands: list[Command[C]] = []
        for call in self._in_state("running"):
            call.state = "timed_out"
            self._late.add(call)
            commands += [Abandon(call), *self._judge(_misses(call))]
        return commands  # no call is waiting now: each depended on a running call, and those have just been ended

    def cancel(self) -> Sequence[Command[C]]:
        """Cancel the turn."""
        self._over, self.no_failure_yet = "cancelled", False
        running, waiting = self._in_state("running"), self._in_state("waiting", "new")
        self._late.update(running)
        for call in running + waiting:
            call.state = "cancelled"
        return [Cancel(call, started=True) for call in running] + [Cancel(call, started=False) for call in waiting]

    def is_quiet(self) -> bool:
        """True if every abandoned or cancelled call has reported its end."""
        return not self._late

    def activate(self, call: C) -> Sequence[_Miss[C]]:
        """Set a call to running or waiting. Returns its dependencies that have failed; none while nothing has failed."""
        calls = self._calls
        failed: tuple[_Miss[C], ...] = ()
        missing = 0
        for need in call.needs:
            other = calls[need]
            if other.state == "succeeded":
                continue
            missing += 1
            if other.state in _OPEN:
                other.dependants = call, other.dependants
            elif other.state == "valueless" and not call.fills.get(need):
                missing -= 1
            else:
                failed += ((call, other),)
        if missing:
            call.missing, call.state = missing, "waiting"
        else:
            call.state = "running"
        return failed

    def refuse_invalid_graph(self, calls: Sequence[C]) -> None:
        """Raise for duplicate ids, unknown dependencies and cycles."""
        _refuse_invalid_graph(calls, self._calls)

    def _in_state(self, *states: CallState) -> list[C]:
        return [call for call in self._calls.values() if call.state in states]

    def _withdraw(self, call: C) -> None:
        """Undo a failed ``activate``: remove the call from the dependants of its dependencies."""
        for need in call.needs:
            other = self._calls.get(need)
            while other is not None and other.dependants is not None and other.dependants[0] is call:
                other.dependants = other.dependants[1]

    def _enter_all(self, calls: Sequence[C]) -> list[Command[C]]:
        failed = [miss for call in calls for miss in self.activate(call)]
        starts: list[Command[C]] = [Start(call) for call in calls if call.state == "running"]
        return starts + self._judge(failed)  # after all activations: a skip must find every dependant

    def _judge(self, failed: Iterable[_Miss[C]]) -> list[Command[C]]:
        """Decide about calls that miss a value, and about the dependants of those that are skipped."""
        commands: list[Command[C]] = []
        misses = [*failed]
        for call, need in misses:  # the loop appends to the list
            if call.state != "waiting":
                continue  # already skipped, for another dependency
            arguments = call.fills.get(need.id, ())
            if need.state == "valueless" and not arguments:
                commands += self._satisfy(call)
                continue
            decision = "skip" if self._over else cascade(call.required, call.defaults, arguments)
            if decision == "substitute":
                fill = {argument: call.defaults[argument] for argument in arguments}
                call.substitutes = fill if call.substitutes is None else call.substitutes | fill
                commands += self._satisfy(call)
                continue
            call.state = "skipped"
            root = self._roots[call] = self._roots.get(need, need)
            commands.append(Skip(call, root, need, escalate=decision == "escalate"))
            misses += _misses(call)
        return commands

    def _satisfy(self, call: C) -> list[Command[C]]:
        """Count one dependency of a waiting call as satisfied. Start the call if that was the last one."""
        call.missing -= 1
        if call.missing:
            return []
        call.state = "running"
        return [Start(call)]


def _misses(call: C) -> list[_Miss[C]]:
    """Return the calls that wait for a call that returned no value."""
    waiting: Chain[C] = call.dependants
    call.dependants = None
    misses = []
    while waiting is not None:
        dependant, waiting = waiting
        misses.append((dependant, call))
    misses.reverse()
    return misses


def _refuse_end(call: Node) -> NoReturn:
    state = "not in this turn" if call.state == "new" else call.state
    raise TurnError(f"call {call.id!r} cannot finish: it is {state}")


def _refuse_invalid_graph(calls: Sequence[Node], known: Mapping[str, Node]) -> None:
    """Raise for duplicate ids, unknown dependencies and cycles."""
    new = {call.id for call in calls}
    seen: set[str] = set()
    problems: list[str] = []
    ahead = False  # True if a call depends on itself or on a later call; otherwise there is no cycle
    for call in calls:
        if call.id in known or call.id in seen:
            problems.append(f"call id {call.id!r} is taken: give each call its own")
        for need in call.needs:
            if need in known or need in seen:
                continue
            ahead = True
            if need not in new:
                hint = did_you_mean(need, [*known, *new])
                problems.append(f"call {call.id!r} depends on {need!r}, which is not in this turn{hint}")
        seen.add(call.id)
    if problems:
        raise TurnError("\n".join(problems))
    cycles = find_cycles({call.id: call.needs for call in calls}) if ahead else ()
    if cycles:
        raise TurnError("\n".join(f"calls depend on each other in a cycle: {format_cycle(path)}" for path in cycles))
