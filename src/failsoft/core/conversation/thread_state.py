"""Thread state: what one conversation remembers about its tools.

It remembers missing tools, tools with a broken setup, calls that fail in a loop, offers to retry, and dangling calls.

Rules
-----
- A tool that the registry reports as missing (``tool_unavailable``) is missing for the deployment. A tool that only an
  error's text or a remote code reports as missing is missing in this thread for ``ABSENT_FOR`` seconds. Then one probe
  runs, and its result decides. A failure of an inner call marks the inner tool, not the tools around it.
- If a tool's setup is broken whatever the arguments (credentials, quota, billing), the tool runs at most once in
  ``ABSENT_FOR`` seconds. Other calls get the same answer until the tool is registered again or reset. After other setup
  faults (permissions, an address, a model name) only the same call gets the same answer, after one failure.
- If the same call (tool and arguments) failed permanently ``LOOP_AFTER`` times within ``LOOP_WINDOW`` seconds, without
  a successful call in between, it gets the same explanation without running. Such an answer does not count as a
  failure, so the tool runs again once the window has passed.
- A transient failure that exhausted its retries leaves one offer per tool, for ``OFFER_LASTS`` seconds. Taking the offer
  uses it up, the offered retry leaves no new offer, and a failure of a hard category clears the offer.
- A call that ended only because its turn ended dangles until it is closed. If the call must not be made twice, the same
  call is refused until then, for at most ``DANGLES_FOR`` seconds.

Marks that come from error texts stay in their thread; otherwise one hostile text could disable a tool for everyone.
Loops are detected only if the arguments can be written as JSON, as a model's always can; others cannot be compared.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Literal

from failsoft.core.model import builtin_faults
from failsoft.core.model.fault import Code, Fault
from failsoft.core.model.json_values import plain
from failsoft.core.startup.named_tuple import NamedTuple

if TYPE_CHECKING:
    from failsoft.core.model.decision import Decision
    from failsoft.core.model.explanation import Explanation
    from failsoft.core.model.options import RetryOptions

ABSENT_FOR = 600.0  # seconds
OFFER_LASTS = 1800.0
MOST_PARTS = 100_000  # lists and mappings in the arguments of a call that gets a fingerprint
_EXACT = 2.0**53  # up to here a float is the exact whole number
DANGLES_FOR = 86_400.0  # a conversation may be resumed the next day
LOOP_WINDOW = 60.0
LOOP_AFTER = 2  # the third identical call is answered without running
HARD = frozenset({"tool_unavailable", "tool_misconfigured", "internal_contract_bug"})  # these clear offers
MOST_FAILURES = 64  # different failed calls tracked per thread
MOST_DANGLING = 1000

_REGISTRY = frozenset(
    {builtin_faults.UNKNOWN_TOOL, builtin_faults.TOOL_MARKED_UNAVAILABLE, "worker_import", "command_start"}
)


def find_reach(fault: Fault) -> Literal["deployment", "thread"] | None:
    """Return whether the fault makes the tool missing for the deployment or for the thread; None if for neither."""
    if fault.category != "tool_unavailable" or fault.rule.startswith(builtin_faults.NESTED):
        return None
    return "deployment" if fault.rule in _REGISTRY else "thread"


def blames_setup(fault: Fault) -> bool:
    """True if the tool's setup is broken whatever the arguments: credentials, quota, base URL, but not a full disk."""
    if fault.category != "tool_misconfigured" or fault.rule.startswith(builtin_faults.NESTED):
        return False
    if fault.code is Code.RESOURCE_EXHAUSTED:
        return not fault.rule.startswith(("errno", "phrase: storage"))
    return fault.code is Code.UNAUTHENTICATED or fault.rule == "phrase: base url"


def call_fingerprint(tool: str, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> str | None:
    """Return a fingerprint that identical calls share; None if the arguments cannot be compared."""
    import hashlib  # lazy: only failures in a thread need it
    import json

    if not _is_bounded((args, kwargs)):
        return None
    try:
        written = json.dumps([tool, args, kwargs], sort_keys=True)
    except (TypeError, ValueError, RecursionError):
        return None
    return hashlib.sha256(written.encode("utf-8", "surrogatepass")).hexdigest()


def _is_bounded(value: Any) -> bool:
    """False if the value nests too deeply or contains itself."""
    todo, parts = [value], 0
    while todo:
        one = todo.pop()
        if isinstance(one, Mapping | list | tuple):
            parts += 1
            if parts > MOST_PARTS:
                return False
            todo.extend(one.values() if isinstance(one, Mapping) else one)
    return True


def mark(tool: str, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> str:
    """Return what distinguishes calls with the same id; empty if the arguments are not JSON, so only the id counts.

    ``4`` and ``4.0`` are the same argument: some providers and histories write one for the other.
    """
    if not _is_bounded((args, kwargs)):
        return ""
    try:
        positional, named = _with_whole_numbers([args, dict(kwargs)])
    except RecursionError:  # too deep to be compared
        return ""
    return call_fingerprint(tool, positional, named) or ""


def _with_whole_numbers(value: Any) -> Any:
    """Return JSON data with whole numbers as ``int``."""
    if type(value) is float and value.is_integer() and abs(value) <= _EXACT:
        return int(value)
    if type(value) is dict:
        return {key: _with_whole_numbers(item) for key, item in value.items()}
    return [_with_whole_numbers(item) for item in value] if type(value) in (list, tuple) else value


def remaining_time(when: float, wall: float) -> float:
    """Return for how many seconds an offer made at ``when`` is still valid; 0 if it has expired.

    Both are wall-clock times. A clock that is set back at most doubles the time; an offer from further ahead is expired.
    """
    age = wall - when
    return OFFER_LASTS - max(age, 0.0) if -OFFER_LASTS < age < OFFER_LASTS else 0.0


class Offer(NamedTuple):
    """A failed call that the user may ask to retry."""

    tool: str  # the id of the tool that failed
    arguments: Mapping[str, Any]  # keyword arguments of the failed call
    explanation: Explanation  # explanation of the failure
    when: float  # time of the failure, in seconds since 1970
    expires: float  # by the runtime's clock, in seconds
    args: tuple[Any, ...] = ()  # positional arguments
    timeout: float | None = None
    retry: RetryOptions | None = None
    key: str | None = None  # idempotency key, sent again so that a call that went through is not done twice
    same: str | None = None  # the call's fingerprint
    by_agent: bool = False  # a model made the call: an unknown tool then counts as a write

    def to_dict(self) -> dict[str, Any]:
        """Return the offer as plain data."""
        return {
            "tool": self.tool,
            "arguments": plain(self.arguments),
            "explanation": self.explanation.to_dict(),
            "when": self.when,
        }


class Dangling(NamedTuple):
    """A call whose result was never reported to the model."""

    call_id: str  # the model's id if the adapter passed it on
    tool: str  # the id of the tool
    text: str  # the result to report to the model
    turn_id: str = ""  # the turn of the call
    same: str | None = None  # fingerprint if the call must not be made twice; empty if it has none
    told: bool = False  # the same call was refused since, so the model knows the text
    expires: float | None = None  # by the runtime's clock, in seconds; afterwards the call may be made again

    def to_dict(self) -> dict[str, Any]:
        """Return the call as plain data."""
        return {"call_id": self.call_id, "tool": self.tool, "text": self.text, "turn_id": self.turn_id}


class Failure(NamedTuple):
    """A call that failed permanently, and the answer that was given."""

    tool: str
    times: tuple[float, ...]  # of the most recent failures
    fault: Fault
    explanation: Explanation
    decision: Decision | None
    escalated: bool
    told: str | None = None  # the text that a policy gave the user


class Broken(NamedTuple):
    """A tool with a broken setup."""

    until: float
    fault: Fault
    met_by: object  # the call that found it, whose own retries continue


class Absence(NamedTuple):
    """A tool that is reported as missing."""

    until: float
    why: str


class ThreadState:
    """The memory of one thread. Times are the runtime's monotonic times."""

    __slots__ = ("__weakref__", "absent", "broken", "dangling", "failures", "has_notes", "offers")

    def __init__(self) -> None:
        self.absent: dict[str, Absence] = {}
        self.broken: dict[str, Broken] = {}
        self.failures: dict[str, Failure] = {}
        self.offers: dict[str, Offer] = {}
        self.dangling: dict[tuple[str, str], Dangling] = {}  # by turn id and call id
        self.has_notes = False  # True if anything is remembered: calls must then consult and update this state

    # -- availability ------------------------------------------------------------------------------------------------

    def is_unavailable(self, tool: str, now: float) -> bool:
        """True if a call would be refused."""
        mark = self.absent.get(tool) or self.broken.get(tool)
        return mark is not None and now < mark.until

    def admit(self, tool: str, now: float, *, lease: float, call: object = None) -> Fault | None:
        """Refuse or admit a call. After a mark expires, one probe is admitted, and no other for ``lease`` seconds."""
        broken = self.broken.get(tool)
        if broken is not None and broken.met_by != call:
            if now < broken.until:
                return builtin_faults.still_misconfigured(broken.fault)
            self.broken[tool] = broken._replace(until=now + lease, met_by=call)
        absence = self.absent.get(tool)
        if absence is None:
            return None
        if now < absence.until:
            return builtin_faults.tool_marked_unavailable(tool, absence.why, retry_after=absence.until - now)
        self.absent[tool] = absence._replace(until=now + lease)
        return None

    def note_attempt(self, tool: str, fault: Fault | None, now: float, *, call: object = None) -> None:
        """Record an attempt: it shows that the tool works, is missing, or has a broken setup."""
        if fault is not None and blames_setup(fault):
            self.broken[tool] = Broken(now + ABSENT_FOR, fault._replace(cause=None), call)
        else:
            self.broken.pop(tool, None)
        if fault is not None and find_reach(fault) == "thread":
            self.absent[tool] = Absence(now + ABSENT_FOR, fault.message)
        else:
            self.absent.pop(tool, None)
        self._update_wary()

    def restore_absence(self, tool: str, absence: Absence) -> None:
        """Restore a mark of an earlier process."""
        self.absent[tool] = absence
        self._update_wary()

    # -- loops -------------------------------------------------------------------------------------------------------

    def find_loop(self, same: str | None, now: float) -> Failure | None:
        """Return the failure that this same call has just had too often; None if there is none."""
        failure = self.failures.get(same) if same is not None else None
        if failure is None:
            return None
        setup = failure.fault.category == "tool_misconfigured"
        window, enough = (ABSENT_FOR, 1) if setup else (LOOP_WINDOW, LOOP_AFTER)
        recent = tuple(time for time in failure.times if now - time <= window)
        if not recent:
            del self.failures[str(same)]
            self._update_wary()
        return failure if len(recent) >= enough else None

    def note_failure(self, same: str, failure: Failure) -> None:
        """Record a permanent failure."""
        before = self.failures.pop(same, None)
        if before is not None:
            failure = failure._replace(times=(*before.times, *failure.times)[-LOOP_AFTER:])
        self.failures[same] = failure
        if len(self.failures) > MOST_FAILURES:
            del self.failures[next(iter(self.failures))]
        self._update_wary()

    def note_success(self, tool: str, same: str | None) -> bool:
        """Record a success and forget failures that it may have cured. True if it fulfilled an offer."""
        self.failures = {
            same: failure
            for same, failure in self.failures.items()
            if failure.tool != tool and failure.fault.category == "tool_misconfigured"
        }
        offer = self.offers.get(tool)
        done = offer is not None and offer.same == same
        if done:
            del self.offers[tool]
        self._update_wary()
        return done

    # -- offers ------------------------------------------------------------------------------------------------------

    def make_offer(self, offer: Offer) -> None:
        self.offers[offer.tool] = offer
        self._update_wary()

    def list_offers(self, now: float) -> list[Offer]:
        """Return the open offers, oldest first."""
        for tool in [tool for tool, offer in self.offers.items() if now >= offer.expires]:
            del self.offers[tool]
        self._update_wary()
        return list(self.offers.values())

    def take_offer(self, offer: Offer) -> bool:
        """Use up an offer; False if it is gone or was replaced by a newer one."""
        mine = self.offers.get(offer.tool)
        if mine is None or mine.when != offer.when:
            return False
        del self.offers[offer.tool]
        self._update_wary()
        return True

    def clear_offer(self, tool: str) -> bool:
        """Drop the offer of a tool after a hard failure. True if there was one."""
        cleared = self.offers.pop(tool, None) is not None
        self._update_wary()
        return cleared

    def note_registered(self, tool: str) -> None:
        """Forget absence and failures of a tool that was registered again."""
        self.absent.pop(tool, None)
        self.broken.pop(tool, None)
        self.failures = {same: failure for same, failure in self.failures.items() if failure.tool != tool}
        self._update_wary()

    # -- forgetting --------------------------------------------------------------------------------------------------

    def forget(self, tool: str | None = None) -> None:
        """Forget everything about a tool, or about all tools."""
        if tool is None:
            self.absent, self.broken, self.offers, self.failures = {}, {}, {}, {}
        else:
            self.offers.pop(tool, None)
            self.note_registered(tool)
        self._update_wary()

    # -- dangling calls ----------------------------------------------------------------------------------------------

    def add_unanswered(self, call: Dangling) -> None:
        self.dangling[call.turn_id, call.call_id] = call
        if len(self.dangling) > MOST_DANGLING:
            del self.dangling[next(iter(self.dangling))]
        self._update_wary()

    def find_unanswered(self, id: str, tool: str, same: str | None, now: float) -> Dangling | None:
        """Return the dangling call that this call would repeat. The id alone is not enough: some models reuse ids."""
        for call in self.dangling.values():
            if call.expires is not None and now >= call.expires:
                continue
            if (call.call_id, call.tool) == (id, tool) and call.same is not None and call.same in (same, ""):
                return call
        return None

    def close_dangling(self, call: Dangling) -> None:
        """Forget a dangling call whose result was reported to the model."""
        self.dangling.pop((call.turn_id, call.call_id), None)
        self._update_wary()

    def _update_wary(self) -> None:
        must_not_repeat = any(call.same is not None for call in self.dangling.values())
        self.has_notes = bool(self.absent or self.broken or self.failures or self.offers or must_not_repeat)
