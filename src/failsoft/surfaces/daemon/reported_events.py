"""Events of remote runtimes: checked, sanitised, assigned to their tenant, and stored.

Rules
-----
- An event keeps its fields; ``runtime`` names the runtime that sent it. Ids of turns and calls get the tenant's prefix.
- Texts pass the sanitiser, even if the sender has sanitised them.
- Only the daemon itself writes the audit: remote runtimes cannot add to it.
- A batch with one bad event is refused as a whole: nothing of it is stored.
- A runtime numbers its events. Events that it sends again, because an answer was lost, are stored once. After a
  restart, the daemon still recognises the latest ones.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from functools import lru_cache
from typing import Any, Final

from failsoft.analysis.record_check import find_mistake
from failsoft.core.redact.sanitise import sanitise
from failsoft.observe import events
from failsoft.observe.metrics import Metrics
from failsoft.stores.ports import Store
from failsoft.surfaces.daemon.escalations import Escalations
from failsoft.surfaces.daemon.messages import EventBatch
from failsoft.surfaces.daemon.problems import Problem
from failsoft.surfaces.daemon.scoping import scoped, tenant_for
from failsoft.surfaces.daemon.tokens import Grant

MOST_RUNTIMES: Final = 1_000
MOST_TOOLS: Final = 1_000  # of one runtime
_IDS: Final = ("turn_id", "call_id", "parent_id", "inner_call_id")

_SHORT: Final = 300  # characters of a text whose sanitised form is kept

_clean_short = lru_cache(4_096)(sanitise)  # events repeat the same few texts


def _clean(text: str) -> str:
    return _clean_short(text) if len(text) <= _SHORT else sanitise(text)


class RemoteRuntime:
    """A remote runtime, as its events show it."""

    __slots__ = ("dropped", "events", "last", "metrics", "name", "seen", "tenant")

    def __init__(self, name: str, tenant: str | None) -> None:
        self.name = name
        self.tenant = tenant
        self.seen = 0.0  # wall-clock time of its latest batch
        self.events = 0
        self.dropped = 0
        self.last = 0  # number of its latest event in its own stream
        self.metrics: dict[str, Metrics] = {}  # by tool id

    def count(self, event: dict[str, Any]) -> None:
        """Count an event for the metrics of its tool."""
        tool = event.get("tool_id")
        if not isinstance(tool, str) or (tool not in self.metrics and len(self.metrics) >= MOST_TOOLS):
            return
        try:
            self.metrics.setdefault(tool, Metrics()).count(event["event_type"], event)
        except (KeyError, TypeError):  # an event of another version lacks a field that is counted
            return

    def to_dict(self) -> dict[str, Any]:
        return {
            "name": self.name,
            "tenant": self.tenant,
            "seen": self.seen,
            "events": self.events,
            "dropped": self.dropped,
            "tools": {tool: metrics.as_dict() for tool, metrics in self.metrics.items()},
        }


class Inbox:
    """Takes the batches of remote runtimes."""

    def __init__(self, store: Store, wall: Callable[[], float], escalations: Escalations) -> None:
        self._store = store
        self._escalations = escalations
        self._wall = wall
        self._runtimes: dict[tuple[str | None, str], RemoteRuntime] = {}
        self._stored: set[tuple[Any, ...]] = set()  # identities of events stored before a restart

    def remember(self, rows: Iterable[tuple[int, Mapping[str, Any]]]) -> None:
        """Recognise stored events of remote runtimes if they are sent again."""
        self._stored = {_identity(event) for _, event in rows if "runtime" in event}

    def accept(self, batch: EventBatch, grant: Grant) -> int:
        """Store a batch; return how many events it had. The caller waits until they are durable, or calls ``reject``."""
        source = _clean(batch.source)
        made = [self._prepare(event, source, grant, number) for number, event in enumerate(batch.events)]
        sender = self._runtime(grant.tenant, source)
        new = [event for event in made if event["seq"] > sender.last and _identity(event) not in self._stored]
        for event in new:
            self._runtime(event.get("tenant"), source).count(event)
            if event["event_type"] == events.ESCALATED:
                self._escalations.note(event.get("tenant"), str(event.get("tool_id")), event, source)
        if new:
            self._store.append(new)
            sender.last = max(event["seq"] for event in new)
        sender.seen = self._wall()
        sender.events += len(new)
        sender.dropped += batch.dropped
        return len(made)

    def reject(self, batch: EventBatch, grant: Grant) -> None:
        """Forget a batch, so that it is accepted again: the store may have lost it."""
        self._runtime(grant.tenant, _clean(batch.source)).last = 0

    def runtimes(self, grant: Grant) -> list[dict[str, Any]]:
        """The runtimes that have sent events, as plain data."""
        return [
            each.to_dict() for each in self._runtimes.values() if grant.tenant is None or each.tenant == grant.tenant
        ]

    def _runtime(self, tenant: str | None, name: str) -> RemoteRuntime:
        found = self._runtimes.get((tenant, name))
        if found is None:
            if len(self._runtimes) >= MOST_RUNTIMES:
                del self._runtimes[min(self._runtimes, key=lambda key: self._runtimes[key].seen)]
            found = self._runtimes[tenant, name] = RemoteRuntime(name, tenant)
        return found

    def _prepare(self, event: dict[str, Any], source: str, grant: Grant, number: int) -> dict[str, Any]:
        made: dict[str, Any] = _sanitised(event)  # first: sanitising can make names of fields equal
        mistake = find_mistake(made) or _find_pretence(made)
        if mistake:
            raise Problem(
                422,
                f"events/{number} is not an event",
                errors=[{"pointer": f"/events/{number}", "detail": _clean(mistake)}],
            )
        named = made.get("tenant")
        if named is not None and (not isinstance(named, str) or not named):
            raise Problem(422, f"events/{number}: tenant is not a text")
        tenant = tenant_for(grant, named)
        if tenant is not None:
            made["tenant"] = tenant
        for name in _IDS:
            id = made.get(name)
            if id is None:
                continue
            if not isinstance(id, str) or id.startswith("@"):
                raise Problem(422, f"events/{number}: {name} is not an id")
            made[name] = scoped(tenant, id)
        made["runtime"] = source
        return made


def _identity(event: Mapping[str, Any]) -> tuple[Any, ...]:
    return tuple(event.get(name) for name in ("tenant", "runtime", "seq", "timestamp", "event_type"))


def _find_pretence(event: dict[str, Any]) -> str:
    """Return the reason why an event cannot come from a remote runtime; empty if it can."""
    if event.get("seq") is None:
        return "it has no seq"
    if event["event_type"] == events.OPERATOR_ACTED:
        return "only the daemon itself records what operators do"
    return ""


def _sanitised(value: Any) -> Any:
    if isinstance(value, str):
        return _clean(value)
    if isinstance(value, dict):
        return {_clean(key): _sanitised(each) for key, each in value.items()}
    if isinstance(value, list):
        return [_sanitised(each) for each in value]
    return value
