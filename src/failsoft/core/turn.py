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
entries each. Why a status and not an outcome: the machine never looks at values, so its driver keeps them.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, Literal, NamedTuple

from failsoft.core.cascade import cascade
from failsoft.core.cycles import find_cycles, say_cycle
from failsoft.core.outcome import Status
from failsoft.core.own_faults import did_you_mean
from failsoft.errors import TurnError

State = Status | Literal["waiting", "running"]
Needs = Mapping[str, Collection[str]]  # call id -> the top-level arguments that its value fills; none: a plain order

_Miss = tuple[str, str]  # a call, and the dependency that brings it no value
_NOTHING: Mapping[str, Any] = MappingProxyType({})


@dataclass(slots=True)  # commands are made for every call; frozen they would cost three times as much
class Start:
    """Run the call; each argument in ``substitutes`` is replaced by the default in it."""

    call_id: str
    substitutes: Mapping[str, Any]


@dataclass(slots=True)
class Skip:
    """Record the call as skipped. ``because`` is the dependency at fault, ``root`` where it began.

    Both are None when the turn's time was up before the call came.
    """

    call_id: str
    root: str | None
    because: str | None
    escalate: bool


@dataclass(slots=True)
class Leave:
    """Record the running call as timed out, and wait for it no longer."""

    call_id: str


@dataclass(slots=True)
class Cancel:
    """Record the call as cancelled, and stop it if it has started."""

    call_id: str
    started: bool


@dataclass(slots=True)
class RecordLate:
    """Note that a call that was left or cancelled has ended after all; its outcome stands."""

    call_id: str


Command = Start | Skip | Leave | Cancel | RecordLate


class Call(NamedTuple):
    """A call as the machine sees it."""

    id: str
    needs: Needs = _NOTHING
    required: bool | None = None
    defaults: Mapping[str, Any] = _NOTHING


class TurnMachine:
    """The state of one turn. Every method takes an event and returns what is to be done about it."""

    __slots__ = ("_calls", "_dependants", "_late", "_left", "_over", "_roots", "_statuses", "_substitutes")

    def __init__(self) -> None:
        self._statuses: dict[str, State] = {}  # of all calls, in the order of submission
        self._left: dict[str, int] = {}  # of calls that wait: for how many others
        self._calls: dict[str, tuple[Needs, bool | None, Mapping[str, Any]]] = {}  # of calls that have waited
        self._dependants: dict[str, list[str]] = {}  # of calls that are open: who has waited for them
        self._substitutes: dict[str, dict[str, Any]] = {}  # of calls that miss a value but may run
        self._roots: dict[str, str] = {}  # of calls that were skipped for a dependency
        self._late: set[str] = set()  # ended from outside while they ran: each may still report once
        self._over: Literal["expired", "cancelled"] | None = None

    @property
    def statuses(self) -> Mapping[str, State]:
        """Every call and where it stands, in the order of submission."""
        return MappingProxyType(self._statuses)

    def grounds(self, id: str, because: str | None = None) -> dict[str, Any]:
        """What ``cascade`` was told about a call that has missed a value, for the trace: it can be judged again."""
        if id not in self._calls:
            return {}
        needs, required, defaults = self._calls[id]
        said = {"required": required, "defaults": sorted(defaults)}
        return said if because is None else {**said, "arguments": sorted(needs[because])}

    def add(
        self,
        id: str,
        needs: Needs = _NOTHING,
        required: bool | None = None,
        defaults: Mapping[str, Any] = _NOTHING,
    ) -> Sequence[Command]:
        """Take one call; what it needs has been added before."""
        statuses = self._statuses
        if self._over or id in statuses:
            return self.add_all((Call(id, needs, required, defaults),))
        if not needs:
            statuses[id] = "running"
            return (Start(id, _NOTHING),)
        for need in needs:
            if need not in statuses:
                return self.add_all((Call(id, needs, required, defaults),))
        commands: list[Command] = []
        failed = self._enter(id, needs, required, defaults, commands)
        if failed:
            self._spread(failed, commands)
        return commands

    def add_all(self, calls: Sequence[Call]) -> Sequence[Command]:
        """Take several calls at once; they may need each other in any order."""
        if self._over == "cancelled":
            raise TurnError("the turn has been cancelled: it takes no more calls")
        _refuse_nonsense(calls, self._statuses)
        if self._over == "expired":
            self._statuses.update((call.id, "skipped") for call in calls)
            return [Skip(call.id, None, None, escalate=False) for call in calls]
        for call in calls:
            self._statuses[call.id] = "waiting"
        commands: list[Command] = []
        failed: list[_Miss] = []
        for id, needs, required, defaults in calls:
            failed += self._enter(id, needs, required, defaults, commands)
        self._spread(failed, commands)  # only now: a skip must find all who wait for it
        return commands

    def finish(self, id: str, status: Status) -> Sequence[Command]:
        """A running call has ended."""
        if self._statuses.get(id) != "running":
            return self._finish_late(id, status)
        self._statuses[id] = status
        dependants = self._dependants.pop(id, None)
        if dependants is None:
            return ()
        commands: list[Command] = []
        if status == "succeeded":
            self._release(dependants, commands)
        else:
            self._spread([(dependant, id) for dependant in dependants], commands)
        return commands

    def expire(self) -> Sequence[Command]:
        """The turn's deadline has come."""
        if self._over:
            return ()
        self._over = "expired"
        commands: list[Command] = []
        for id in self._in_state("running"):
            self._statuses[id] = "timed_out"
            self._late.add(id)
            commands.append(Leave(id))
            self._spread([(dependant, id) for dependant in self._dependants.pop(id, ())], commands)
        return commands  # nobody waits any more: whoever did, waited for one that ran

    def cancel(self) -> Sequence[Command]:
        """The turn's owner has left."""
        self._over = "cancelled"
        running, waiting = self._in_state("running"), self._in_state("waiting")
        self._late.update(running)
        self._statuses.update((id, "cancelled") for id in running + waiting)
        return [Cancel(id, started=True) for id in running] + [Cancel(id, started=False) for id in waiting]

    def _in_state(self, state: State) -> list[str]:
        return [id for id, each in self._statuses.items() if each == state]

    def _enter(
        self, id: str, needs: Needs, required: bool | None, defaults: Mapping[str, Any], commands: list[Command]
    ) -> list[_Miss]:
        """Start a new call or let it wait; returns which of its needs have failed already."""
        statuses = self._statuses
        dependants = self._dependants
        failed: list[_Miss] = []
        left = 0
        for need in needs:
            state = statuses[need]
            if state in ("running", "waiting"):
                left += 1
                if need in dependants:
                    dependants[need].append(id)
                else:
                    dependants[need] = [id]
            elif state != "succeeded":
                left += 1
                failed.append((id, need))
        if left:
            statuses[id] = "waiting"
            self._left[id] = left
            self._calls[id] = (needs, required, defaults)
        else:
            statuses[id] = "running"
            commands.append(Start(id, _NOTHING))
        return failed

    def _release(self, ids: Iterable[str], commands: list[Command]) -> None:
        """Waiting calls have one dependency less to wait for."""
        waiting = self._left
        for id in ids:
            left = waiting.get(id)
            if left == 1:
                del waiting[id]
                self._statuses[id] = "running"
                commands.append(Start(id, self._substitutes.get(id, _NOTHING)))
            elif left:  # None: skipped before, for another dependency
                waiting[id] = left - 1

    def _spread(self, misses: list[_Miss], commands: list[Command]) -> None:
        """Judge every call that misses a value, and all who need those that are skipped for it."""
        for id, need in misses:  # grows while it is read
            if id not in self._left:
                continue  # skipped before, for another dependency
            needs, required, defaults = self._calls[id]
            arguments = needs[need]
            verdict = "skip" if self._over else cascade(required, defaults, arguments)
            if verdict == "substitute":
                fill = self._substitutes.setdefault(id, {})
                fill.update((argument, defaults[argument]) for argument in arguments)
                self._release((id,), commands)
                continue
            del self._left[id]
            self._statuses[id] = "skipped"
            root = self._roots[id] = self._roots.get(need, need)
            commands.append(Skip(id, root, need, escalate=verdict == "escalate"))
            misses += [(dependant, id) for dependant in self._dependants.pop(id, ())]

    def _finish_late(self, id: str, status: Status) -> Sequence[Command]:
        if id not in self._late:
            raise TurnError(f"call {id!r} cannot finish: it is {self._statuses.get(id, 'not in this turn')}")
        self._late.remove(id)
        return () if status == "cancelled" else (RecordLate(id),)


def _refuse_nonsense(calls: Sequence[Call], known: Mapping[str, State]) -> None:
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
