"""The turn machine: which call may start when, and what becomes of the rest.

Rules
-----
- A call starts when all that it needs has ended well, or when ``cascade`` lets a default stand in for what has not.
- Every call ends exactly once: it finishes, is skipped, is left behind at the deadline, or is cancelled. None vanishes.
- A skipped call names its root: the call at the beginning of the chain, which really ran and brought no value.
- At the deadline what runs is left behind, what waits is skipped, and what is added later is skipped at once (R7).
  What a left call brings afterwards is reported as late and changes nothing.
- Refused, by name and with nothing half added: an id that is taken, a dependency that does not exist, a cycle.
- The same events in the same order give the same commands in the same order.

Why a machine that returns commands: asyncio drives it on one host, a workflow engine drives it on many. It reads no
clock; that the deadline has come is an event like others. Why it is mutable: a thousand calls must not copy a thousand
entries each. Why a status and not an outcome: the machine never looks at values, so its driver keeps them. Why a driver
may derive its calls from ``Node``: one object a call instead of two, and no looking up from one to the other. Why
``take`` and ``enter`` beside ``add``: when its turn comes, most of what a call needs has ended well, and it never waits.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from types import MappingProxyType
from typing import Any, Generic, Literal, NoReturn, TypeVar

from failsoft.core.model.builtin_faults import did_you_mean
from failsoft.core.model.errors import TurnError
from failsoft.core.model.outcome import Status
from failsoft.core.turn.cascade import cascade
from failsoft.core.turn.cycles import find_cycles, say_cycle

State = Status | Literal["new", "waiting", "running"]
Needs = Mapping[str, Collection[str]]  # call id -> the top-level arguments that its value fills; none: a plain order

_NOTHING: Mapping[str, Any] = MappingProxyType({})
_OPEN = ("running", "waiting", "new")  # the likelier ones first

Terms = tuple[bool | None, Mapping[str, Any], *tuple[Any, ...]]  # required, defaults, and what a driver adds


class Node:
    """A call as the machine knows it. Drivers derive their own kind, with what they keep for each call."""

    __slots__ = ("dependants", "fills", "id", "missing", "needs", "state", "substitutes", "terms")

    missing: int  # how many of its needs it waits for; there once it waits

    def __init__(
        self,
        id: str,
        needs: Needs = _NOTHING,
        required: bool | None = None,
        defaults: Mapping[str, Any] = _NOTHING,
    ) -> None:
        self.id = id
        self.needs: tuple[str, ...] = tuple(needs)
        self.fills = needs  # may leave out those that are a plain order
        self.terms: Terms = required, defaults
        # The rest is the machine's.
        self.state: State = "new"
        self.dependants: Chain[Any] = None  # who waits for it, while it is open
        self.substitutes: dict[str, Any] | None = None  # by argument: defaults in the place of what has failed

    @property
    def required(self) -> bool | None:
        return self.terms[0]

    @property
    def defaults(self) -> Mapping[str, Any]:
        """By argument: what stands in where the value of a need has not come."""
        return self.terms[1]

    def grounds(self, because: Node | None = None) -> dict[str, Any]:
        """What ``cascade`` was told about a call that has missed a value, for the trace: it can be judged again."""
        said = {"required": self.required, "defaults": sorted(self.defaults)}
        return said if because is None else {**said, "arguments": sorted(self.fills.get(because.id, ()))}


C = TypeVar("C", bound=Node)
Chain = tuple[C, "Chain[C]"] | None  # the newest first: a link is made and dropped in one step, and most have few


class _About(Generic[C]):
    __slots__: tuple[str, ...] = ("call",)
    __match_args__: tuple[str, ...] = ("call",)

    def __init__(self, call: C) -> None:
        self.call = call


class Start(_About[C]):
    """Run the call; each argument in its ``substitutes`` is replaced by the default in it."""

    __slots__ = ()


class Skip(_About[C]):
    """Record the call as skipped. ``because`` is the dependency at fault, ``root`` where it began.

    Both are None when the turn's time was up before the call came.
    """

    __slots__ = ("because", "escalate", "root")
    __match_args__ = ("call", "root", "because", "escalate")

    def __init__(self, call: C, root: C | None, because: C | None, *, escalate: bool) -> None:
        self.call = call
        self.root = root
        self.because = because
        self.escalate = escalate


class Abandon(_About[C]):
    """Record the running call as timed out, and wait for it no longer."""

    __slots__ = ()


class Cancel(_About[C]):
    """Record the call as cancelled, and stop it if it has started."""

    __slots__ = ("started",)
    __match_args__ = ("call", "started")

    def __init__(self, call: C, *, started: bool) -> None:
        self.call = call
        self.started = started


class RecordLate(_About[C]):
    """Note that a call that was left or cancelled has ended after all; its outcome stands."""

    __slots__ = ()


Command = Start[C] | Skip[C] | Abandon[C] | Cancel[C] | RecordLate[C]
_Miss = tuple[C, C]  # a call, and the dependency that brings it no value


class TurnMachine(Generic[C]):
    """The state of one turn. Every method takes an event and returns what is to be done about it."""

    __slots__ = ("_calls", "_late", "_over", "_roots", "calls", "no_failure_yet")

    def __init__(self) -> None:
        self._calls: dict[str, C] = {}
        self.calls: Mapping[str, C] = MappingProxyType(self._calls)  # all, in the order of submission
        self._roots: dict[C, C] = {}  # of calls that were skipped for a dependency
        self._late: set[C] = set()  # ended from outside while they ran: each may still report once
        self._over: Literal["expired", "cancelled"] | None = None
        self.no_failure_yet = (
            True  # nothing has failed and nothing is over: there is nothing to say at once about a new call
        )

    def add(self, call: C) -> Sequence[Command[C]]:
        """Take one call; what it needs has been added before."""
        calls = self._calls
        if self._over or call.id in calls:
            return self.add_all((call,))
        try:
            failed = self.activate(call)
        except KeyError:
            self._withdraw(call)
            return self.add_all((call,))  # which says what is wrong
        calls[call.id] = call
        if call.state == "running":
            return (Start(call),)
        return self._judge(failed) if failed else ()

    def enqueue(self, call: C) -> None:
        """Note a call that is to be entered in its turn, while all goes well; what it needs has been added before."""
        id = call.id
        if id in self._calls:
            self.refuse_nonsense((call,))
        self._calls[id] = call

    def add_all(self, calls: Sequence[C]) -> Sequence[Command[C]]:
        """Take several calls at once; they may need each other in any order."""
        if self._over == "cancelled":
            raise TurnError("the turn has been cancelled: it takes no more calls")
        self.refuse_nonsense(calls)
        self._calls.update((call.id, call) for call in calls)
        if self._over == "expired":
            for call in calls:
                call.state = "skipped"
            return [Skip(call, None, None, escalate=False) for call in calls]
        return self._enter_all(calls)

    def succeed(self, call: C) -> Sequence[C]:
        """A running call has brought its value. Nothing but starts can follow: these are the calls."""
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
            if dependant.missing > 1:  # also if it was skipped: what it was skipped for is still missing
                dependant.missing -= 1
            else:
                dependant.state = "running"
                ready.append(dependant)
        ready.reverse()
        return ready

    def finish(self, call: C, status: Status) -> Sequence[Command[C]]:
        """A call has ended. The first that fails enters whatever was only taken: the driver forgets what it has of these."""
        if call in self._late:
            self._late.remove(call)
            return () if status == "cancelled" else (RecordLate(call),)
        if status == "succeeded":
            return [Start(ready) for ready in self.succeed(call)]
        if call.state != "running":
            _refuse_end(call)
        call.state = status
        commands = self._judge(_misses(call))
        if self.no_failure_yet:
            self.no_failure_yet = False
            commands += self._enter_all(self._in_state("new"))  # whoever needs this call knows at once
        return commands

    def expire(self) -> Sequence[Command[C]]:
        """The turn's deadline has come."""
        if self._over:
            return ()
        self._enter_all(self._in_state("new"))  # nothing has failed before them: they run or wait
        self._over, self.no_failure_yet = "expired", False
        commands: list[Command[C]] = []
        for call in self._in_state("running"):
            call.state = "timed_out"
            self._late.add(call)
            commands += [Abandon(call), *self._judge(_misses(call))]
        return commands  # nobody waits any more: whoever did, waited for one that ran

    def cancel(self) -> Sequence[Command[C]]:
        """The turn's owner has left."""
        self._over, self.no_failure_yet = "cancelled", False
        running, waiting = self._in_state("running"), self._in_state("waiting", "new")
        self._late.update(running)
        for call in running + waiting:
            call.state = "cancelled"
        return [Cancel(call, started=True) for call in running] + [Cancel(call, started=False) for call in waiting]

    def is_quiet(self) -> bool:
        """Has every call that was ended from outside reported since?"""
        return not self._late

    def activate(self, call: C) -> Sequence[_Miss[C]]:
        """From now on a call runs or waits. Returned is which of its needs have failed already: none while all goes well."""
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
            else:
                failed += ((call, other),)
        if missing:
            call.missing, call.state = missing, "waiting"
        else:
            call.state = "running"
        return failed

    def refuse_nonsense(self, calls: Sequence[C]) -> None:
        """Raise for ids that are taken, needs that do not exist, and cycles."""
        _refuse_nonsense(calls, self._calls)

    def _in_state(self, *states: State) -> list[C]:
        return [call for call in self._calls.values() if call.state in states]

    def _withdraw(self, call: C) -> None:
        """Undo what ``enter`` has done before it found that one of the needs does not exist."""
        for need in call.needs:
            other = self._calls.get(need)
            while other is not None and other.dependants is not None and other.dependants[0] is call:
                other.dependants = other.dependants[1]

    def _enter_all(self, calls: Sequence[C]) -> list[Command[C]]:
        failed = [miss for call in calls for miss in self.activate(call)]
        starts: list[Command[C]] = [Start(call) for call in calls if call.state == "running"]
        return starts + self._judge(failed)  # only now: a skip must find all who wait for it

    def _judge(self, failed: Iterable[_Miss[C]]) -> list[Command[C]]:
        """Say what becomes of calls that miss a value, and of all who need those that are skipped for it."""
        commands: list[Command[C]] = []
        misses = [*failed]
        for call, need in misses:  # grows while it is read
            if call.state != "waiting":
                continue  # skipped before, for another dependency
            arguments = call.fills.get(need.id, ())
            verdict = "skip" if self._over else cascade(call.required, call.defaults, arguments)
            if verdict == "substitute":
                fill = {argument: call.defaults[argument] for argument in arguments}
                call.substitutes = fill if call.substitutes is None else call.substitutes | fill
                call.missing -= 1
                if not call.missing:
                    call.state = "running"
                    commands.append(Start(call))
                continue
            call.state = "skipped"
            root = self._roots[call] = self._roots.get(need, need)
            commands.append(Skip(call, root, need, escalate=verdict == "escalate"))
            misses += _misses(call)
        return commands


def _misses(call: C) -> list[_Miss[C]]:
    """Those who wait for a call that has brought no value."""
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


def _refuse_nonsense(calls: Sequence[Node], known: Mapping[str, Node]) -> None:
    """Raise for ids that are taken, dependencies that do not exist, and cycles."""
    new = {call.id for call in calls}
    seen: set[str] = set()
    problems: list[str] = []
    ahead = False  # somebody names himself or a later call, else there is no cycle
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
        raise TurnError("\n".join(f"calls depend on each other in a circle: {say_cycle(path)}" for path in cycles))
