"""The records of the effect ledger in a store: writes that were begun, and cases.

Rules
-----
- A write that was begun has a record under tenant, thread, tool, id and fingerprint: its *place*. Calls with the same
  place are the same write.
- A write that ended with an unknown effect has a *case*, and so has every write that was resolved. A case has the id of
  its entry as the last part of its key.
- The id of an entry is made from the record, so that it stays the same when the record becomes a case.
- A case is resolved in one atomic change of place and case. The second attempt to resolve it gets an error. The place keeps
  the verdict: a call that finds ``happened`` there returns the value, and one that finds ``none`` runs, as a replay.
- A write that is known to run in another process is not resolved: it may be another start than the operator has seen.
- A replay that ran and may have acted leaves ``happened`` in its place, without a value.
- Everything is kept for ``KEPT_FOR`` seconds. Before that, no open case disappears unless it is resolved.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol, get_args
from urllib.parse import unquote

from failsoft.core.conversation.thread_state import DANGLES_FOR, mark
from failsoft.core.model.errors import LedgerError
from failsoft.core.model.json_values import plain
from failsoft.core.model.ledger_entry import EFFECT_STATES, EffectState, LedgerEntry, Recalled, Verdict
from failsoft.core.redact.sanitise import mask_id, sanitise
from failsoft.observe.success_runs import iso
from failsoft.runtime.persistence.process_identity import may_still_run, runs_in_process
from failsoft.runtime.persistence.write_answers import is_freed, make_answer, read_answer
from failsoft.stores.ports import key_of

if TYPE_CHECKING:
    from failsoft.core.model.fault import Fault
    from failsoft.stores.ports import Kind, Records

KEPT_FOR = 30 * 86_400.0  # seconds for which entries are kept
PATIENCE = 5.0  # seconds for which an operator waits for the store

_NOBODY = key_of(None)
_PARTS = len(("tenant", "thread", "begun", "tool", "call id", "fingerprint"))  # of the key of a begun write

Running = Callable[[str, Mapping[str, Any]], bool]  # is the call of this place and record running here?
FindRecords = Callable[["Kind", str], list[tuple[str, Any]]]  # ``Records.find``


class RecordedTool(Protocol):
    """A tool, by its id."""

    id: str


class RecordedTurn(Protocol):
    """A turn, by its id."""

    id: str


class RecordedCall(Protocol):
    """The parts of a call by which it is recorded and recognised."""

    caller_id: str | None
    thread: str | None
    tenant: str | None
    args: tuple[Any, ...]
    kwargs: dict[str, Any]

    @property
    def id(self) -> str: ...
    @property
    def tool(self) -> RecordedTool: ...
    @property
    def turn(self) -> RecordedTurn | None: ...


class Place(NamedTuple):
    """The key of a begun write, taken apart."""

    tenant: str | None
    thread: str | None
    tool: str
    call_id: str
    same: str


def place_of(call: RecordedCall, run: str, *, alone: bool = False) -> str:
    """Return the key of a write's record. Calls with the same key are the same write; ``alone`` makes it unique."""
    if call.caller_id is None or alone:
        id, same = call.id, f"{run}.{'' if call.turn is None else call.turn.id}"
    else:
        id, same = call.caller_id, mark(call.tool.id, call.args, call.kwargs)
    return key_of(call.tenant, call.thread, "begun", call.tool.id, id, same)


def read_place(key: str) -> Place:
    """Take the key of a begun write apart."""
    tenant, thread, _, tool, call_id, same = key.split("/")
    return Place(_read(tenant), _read(thread), _read(tool) or "", _read(call_id) or "", _read(same) or "")


def entry_id(place: str, record: Mapping[str, Any]) -> str:
    """Return the id of the entry for a record of a begun write."""
    from hashlib import sha256  # lazy: only open cases have ids

    made = f"{place}\0{record.get('run')}\0{record.get('at')}\0{record.get('n')}"
    return sha256(made.encode("utf-8", "surrogatepass")).hexdigest()[:12]


def case_key(place: str, id: str) -> str:
    """Return the key of the case of a write."""
    tenant, thread, *_ = place.split("/")
    return f"{tenant}/{thread}/{key_of('case', id)}"


def make_case(
    place: str, record: Mapping[str, Any], *, fault: Fault | None = None, ended: float | None = None, same: str = ""
) -> dict[str, Any]:
    """Make the open case of a write from its record."""
    kept = {
        name: record[name]
        for name in ("run", "turn", "at", "n", "key", "args", "masked", "process", "runs_on")
        if name in record
    }
    found = {} if fault is None else {"code": fault.code.value, "error": sanitise(fault.message)}
    return {
        "place": place,
        "state": "begun" if ended is None else "unknown",
        "same": same,
        "ended": ended,
        **kept,
        **found,
    }


def describe_write(
    call: RecordedCall, run: str, at: float, number: int, key: str | None, *, keeps_arguments: bool
) -> dict[str, Any]:
    """Make the record of a call that begins."""
    made: dict[str, Any] = {"run": run, "turn": "" if call.turn is None else call.turn.id, "at": at, "n": number}
    if key is not None:
        made["key"] = mask_id(key)
    if keeps_arguments and not call.args:
        made["args"], masked = mask_arguments(call.kwargs)
        made["masked"] = masked or made.get("key") != key
    return made


def mask_arguments(arguments: Mapping[str, Any]) -> tuple[dict[str, Any], bool]:
    """Return arguments as plain data without secrets, and whether something was masked or changed."""
    kept: dict[str, Any] = {str(name): _mask(str(name), plain(value)) for name, value in arguments.items()}
    return kept, kept != arguments


def _mask(name: str, value: Any) -> Any:
    if isinstance(value, Mapping):
        return {sanitise(key): _mask(key, item) for key, item in value.items()}
    if isinstance(value, list):
        return [_mask(name, item) for item in value]
    if isinstance(value, str):
        return value if value in sanitise(f'{name}="{value}"', limit=len(value) + 1000) else "***"
    return value if str(value) in sanitise(f"{name}={value}") else "***"


def is_stale(record: Mapping[str, Any], now: float) -> bool:
    """True if a write was begun so long ago that it no longer prevents another one. It stays an open case."""
    at = record.get("at")
    return isinstance(at, int | float) and now >= at + DANGLES_FOR


class LedgerRecords:
    """The ledger's records in one store."""

    def __init__(
        self, store: Records, wall: Callable[[], float], find: FindRecords | None = None, run: str = ""
    ) -> None:
        self.store = store
        self.wall = wall
        self._find_or_raise = find or store.find
        self._run = run  # identifies the runtime that uses the records

    # -- reading -----------------------------------------------------------------------------------------------------

    def entries(
        self, thread: str | None = None, tenant: str | None = None, running: Running | None = None
    ) -> list[LedgerEntry]:
        """List all entries, the oldest first. Reads the store, so it may block.

        ``thread`` and ``tenant``: None means of every one, an empty text of none, as in a call.
        """
        found: dict[str, tuple[tuple[float, int], LedgerEntry]] = {}
        scope = "" if not tenant else key_of(tenant) if not thread else key_of(tenant, thread)
        for key, record in self._find_all(scope):
            entry = _read_entry(key, record, running)
            if entry is None or thread not in (None, entry.thread or "") or tenant not in (None, entry.tenant or ""):
                continue
            other = found.get(entry.id)
            if other is None or other[1].state == "begun":  # a case says more than the record of the same write
                found[entry.id] = (_order(record), entry)
        return [entry for _, entry in sorted(found.values(), key=lambda each: each[0])]

    def _find_all(self, scope: str) -> list[tuple[str, Any]]:
        """Read the records of a scope. Raise if the store fails: an empty list would say that no case is open."""
        try:
            return self._find_or_raise("pending", scope)
        except Exception as error:
            raise LedgerError("the store does not answer: look at the ledger again later", "store") from error

    def find(
        self, id: str, thread: str | None = None, tenant: str | None = None, running: Running | None = None
    ) -> LedgerEntry:
        """Return the entry with this id, or the latest open one of the call with this id. Raise if there is none."""
        entries = self.entries(thread, tenant, running)
        for entry in entries:
            if entry.id == id:
                return entry
        named = [entry for entry in entries if entry.call_id == id]
        named = [entry for entry in named if entry.state in ("begun", "unknown")] or named[-1:]
        if not named:
            raise LedgerError(f"the ledger has no entry {shorten(id)}", "unknown_id")
        if len({(entry.tenant, entry.thread, entry.tool, entry.fingerprint) for entry in named}) > 1:
            ids = ", ".join(f"{entry.id} ({entry.tool}, thread {entry.thread})" for entry in named[:5])
            raise LedgerError(
                f"{len(named)} entries are of calls with the id {shorten(id)}: name one: {ids}", "ambiguous"
            )
        return named[-1]

    def recall(self, place: str) -> Recalled:
        """Return what is known of a write that is not going to run now. Reads the store, so it may block."""
        found = self.store.get("pending", place)
        if found is not None:
            if is_freed(found):
                return "free"
            return read_answer(found) or (None if is_stale(found, self.wall()) else "begun")
        owner = read_place(place)
        cases = self.store.find("pending", key_of(owner.tenant, owner.thread, "case"))
        same = [record for _, record in cases if isinstance(record, dict) and record.get("place") == place]
        return "free" if same and max(same, key=_order).get("state") == "none" else None

    def why_may_act(self, entry: LedgerEntry, longest: float) -> str:
        """Return why an attempt of an open case may still act; empty if none can.

        ``longest``: seconds that a call takes.
        """
        place, case = self._find_records(entry)
        record = self.store.get("pending", place) if case is None else case
        ended = case is not None and case["state"] == "unknown" and not case.get("runs_on")
        return (
            ""
            if ended or not isinstance(record, dict)
            else may_still_run(record, self._run, self.wall(), longest) or ""
        )

    # -- changing ----------------------------------------------------------------------------------------------------

    def keep_case(self, place: str, case: Mapping[str, Any]) -> None:
        """Keep an open case; the store is not waited for."""
        self.store.put("pending", case_key(place, entry_id(place, case)), case, ttl=KEPT_FOR)

    def resolve(self, entry: LedgerEntry, verdict: Verdict, value: Any, by: str, *, value_known: bool) -> LedgerEntry:
        """Close an open case, in one atomic change. Raise if it is not open any more."""
        place, case = self._find_records(entry)
        found = self.store.get("pending", place)
        mine = found is not None and entry_id(place, found) == entry.id
        if mine and found is not None and "resolved" in found:
            raise already(entry)
        if case is None and not mine:
            raise LedgerError(f"{entry.id} is not open any more: its call has ended since", "closed")
        if case is None and (process := runs_in_process(found or {})) is not None:
            raise LedgerError(f"{entry.id} is running in process {process}: wait until it ends, or end it", "running")
        at = self.wall()
        opened = make_case(place, found or {}) if case is None else case
        closed: dict[str, Any] = {
            **opened,
            "state": verdict, "value": value, "value_known": value_known, "resolved": at, "by": by,
        }  # fmt: skip
        answer = make_answer(closed, verdict, value, value_known=value_known)
        changes: dict[str, tuple[Any, Any]] = {case_key(place, entry.id): (case, closed)}
        if mine or found is None:  # else the same call was made again, and the record is of that call
            changes[place] = (found, answer if mine or verdict == "happened" else None)
        self._swap(entry, changes)
        made = _read_entry(case_key(place, entry.id), closed, None)
        assert made is not None
        return made

    def _find_records(self, entry: LedgerEntry) -> tuple[str, dict[str, Any] | None]:
        """Return the place of an entry, and its case if it has one."""
        key = key_of(entry.tenant, entry.thread, "case", entry.id)
        case = self.store.get("pending", key)
        if case is not None:
            if case["state"] in ("happened", "none"):
                raise already(_read_entry(key, case, None) or entry)
            return case["place"], case
        for place, record in self.store.find("pending", key_of(entry.tenant, entry.thread, "begun")):
            if entry_id(place, record) == entry.id:
                return place, None
        raise LedgerError(f"{entry.id} is not open any more: its call has ended since", "closed")

    def _swap(self, entry: LedgerEntry, changes: Mapping[str, tuple[Any, Any]]) -> None:
        try:
            swapped = self.store.swap("pending", changes, ttl=KEPT_FOR, timeout=PATIENCE)
        except TimeoutError as error:
            raise LedgerError(
                f"{entry.id}: the store does not answer: look at the case again later", "store"
            ) from error
        if not swapped:
            raise LedgerError(f"{entry.id} has been changed at the same time: look at it again", "closed")


def already(entry: LedgerEntry) -> LedgerError:
    """Make the error for a case that is closed."""
    by = "" if entry.resolved_by is None else f" by {entry.resolved_by}"
    return LedgerError(f"{entry.id} was resolved before{by}: {entry.state}", "resolved")


def is_json(value: Any) -> bool:
    """True if a store can keep the value as it is."""
    try:
        return bool(json.loads(json.dumps(value)) == value)
    except (TypeError, ValueError, RecursionError):
        return False


def require_json(value: Any) -> None:
    """Refuse a value that a store cannot keep."""
    if not is_json(value):
        raise LedgerError(f"resolve: value: expected JSON data, got {type(value).__name__}", "value")


def shorten(id: object) -> str:
    """Quote an id from outside in an error."""
    return repr(mask_id(str(id))[:80])


def _read(part: str) -> str | None:
    return None if part == _NOBODY else unquote(part, errors="surrogatepass")


def _read_entry(key: str, record: Any, running: Running | None) -> LedgerEntry | None:
    """Make an entry from a record; None if the record is something else, or damaged."""
    parts = key.split("/")
    if not isinstance(record, dict) or len(parts) < 4 or parts[2] not in ("begun", "case"):
        return None
    is_case = parts[2] == "case"
    place = record.get("place") if is_case else key
    if not isinstance(place, str) or place.count("/") != _PARTS - 1:
        return None
    if is_case and record.get("state") not in get_args(EffectState):
        return None
    owner = read_place(place)
    resolved = record.get("resolved")
    if not is_case and resolved is not None:
        return None  # its case has the verdict
    arguments = record.get("args")
    return LedgerEntry(
        id=entry_id(place, record),
        tool=owner.tool,
        call_id=owner.call_id,
        state=EFFECT_STATES[record["state"] if is_case else "begun"],
        thread=owner.thread,
        tenant=owner.tenant,
        turn_id=_text(record.get("turn")),
        begun=_time(record.get("at")),
        ended=_time(record.get("ended")) if is_case else None,
        fingerprint=_text(record.get("same")) or ("" if "." in owner.same else owner.same),
        idempotency_key=_text(record.get("key")),
        code=_text(record.get("code")),
        error=_text(record.get("error")),
        arguments=arguments if isinstance(arguments, dict) else None,
        arguments_masked=bool(record.get("masked")),
        value=record.get("value"),
        value_known=bool(record.get("value_known")),
        resolved=_time(resolved),
        resolved_by=_text(record.get("by")),
        running=not is_case and running is not None and running(place, record),
    )


def _text(value: Any) -> str | None:
    return value if isinstance(value, str) and value else None


def _order(record: Mapping[str, Any]) -> tuple[float, int]:
    at, number = record.get("at"), record.get("n")
    return at if isinstance(at, int | float) else 0.0, number if isinstance(number, int) else 0


def _time(at: Any) -> str | None:
    if not isinstance(at, int | float) or isinstance(at, bool):
        return None
    try:
        return iso(at)
    except (ValueError, OverflowError, OSError):  # not a date
        return None
