"""What one conversation remembers about its tools: which are missing, which calls go round in circles, what may be retried.

Rules
-----
- A missing tool (``tool_unavailable``) that the registry knows of is missing for the deployment. One that only an
  error's text or a remote code speaks of is missing in this thread for ``ABSENT_FOR`` seconds; then one probe goes
  through, and what it meets decides. A failure further in marks the tool that failed there, not those around it.
- A tool whose setup is at fault in a way that cannot depend on the arguments (credentials, quota, billing) is run at most
  once in ``ABSENT_FOR`` seconds: other calls get the same answer, until it is registered anew or reset. After any other
  fault of the setup (permissions, an address, a model's name) only the same call is answered so, after one failure.
- The same call (tool and arguments) that has failed permanently ``LOOP_AFTER`` times within ``LOOP_WINDOW`` seconds,
  with no successful call in between, is answered with the same explanation. Being answered is not another failure, so
  a loop runs into the tool again once the window has moved on.
- A transient failure that is exhausted leaves one offer per tool, for ``OFFER_LASTS`` seconds (R10). Taking it uses it
  up, a retry that was asked for leaves no other one, and a failure of a hard category clears it (S-norm).
- A call that ended with its turn, and not by itself, dangles until it is closed. If it must not be made twice, the same
  call is turned away until then, however often it is made, for ``DANGLES_FOR`` seconds at most.

Why marks from texts stay in their thread: else one hostile error text would switch a tool off for everybody.
Why a loop needs arguments that JSON can write: a model's always are, and whether others are the same nobody can say.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

from failsoft.core.model import builtin_faults
from failsoft.core.model.fault import Code, Fault
from failsoft.core.model.json_values import plain

if TYPE_CHECKING:
    from failsoft.core.model.explanation import Explanation
    from failsoft.core.model.options import RetryOptions
    from failsoft.core.model.outcome import Decision

ABSENT_FOR = 600.0  # seconds
OFFER_LASTS = 1800.0
MOST_PARTS = 100_000  # lists and mappings in the arguments of a call that is known again
DANGLES_FOR = 86_400.0  # a conversation may be taken up the next day
LOOP_WINDOW = 60.0
LOOP_AFTER = 2  # the third is answered
HARD = frozenset({"tool_unavailable", "tool_misconfigured", "internal_contract_bug"})  # S-norm: these clear offers
MOST_FAILURES = 64  # different calls of one thread that are watched at a time
MOST_DANGLING = 1000

_REGISTRY = frozenset(
    {builtin_faults.UNKNOWN_TOOL, builtin_faults.TOOL_MARKED_UNAVAILABLE, "worker_import", "command_start"}
)


def find_reach(fault: Fault) -> Literal["deployment", "thread"] | None:
    """For whom a tool is missing after this fault; None: it is not."""
    if fault.category != "tool_unavailable" or fault.rule.startswith(builtin_faults.NESTED):
        return None
    return "deployment" if fault.rule in _REGISTRY else "thread"


def blames_setup(fault: Fault) -> bool:
    """Whether the tool's setup is at fault whatever the arguments: credentials, quota, base URL, but no full disk."""
    if fault.category != "tool_misconfigured" or fault.rule.startswith(builtin_faults.NESTED):
        return False
    if fault.code is Code.RESOURCE_EXHAUSTED:
        return not fault.rule.startswith(("errno", "phrase: storage"))
    return fault.code is Code.UNAUTHENTICATED or fault.rule == "phrase: base url"


def call_fingerprint(tool: str, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> str | None:
    """What identical calls have in common; None if nobody can say whether they are identical."""
    import hashlib  # only failures in a thread pay for it
    import json

    if not _is_bounded((args, kwargs)):
        return None
    try:
        written = json.dumps([tool, args, kwargs], sort_keys=True)
    except (TypeError, ValueError, RecursionError):
        return None
    return hashlib.sha256(written.encode("utf-8", "surrogatepass")).hexdigest()


def _is_bounded(value: Any) -> bool:
    """False if written out it has no end, or none in sight: lists that hold each other."""
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
    """What tells a call from others of the same id; empty where the arguments are no JSON: then the id must do."""
    return call_fingerprint(tool, args, kwargs) or ""


def time_left(when: float, wall: float) -> float:
    """Seconds for which an offer made at ``when`` still holds, by a wall clock that may have been set; 0 if none.

    A clock that was set back gives an offer twice its time at most. One from further in the future is over.
    """
    age = wall - when
    return OFFER_LASTS - max(age, 0.0) if -OFFER_LASTS < age < OFFER_LASTS else 0.0


class Offer(NamedTuple):
    """A call that may be made once more if the user asks for it."""

    tool: str  # the id of the tool that failed
    arguments: Mapping[str, Any]  # of the call that failed
    explanation: Explanation  # of the failure
    when: float  # it failed, in seconds since 1970
    expires: float  # by the runtime's clock, in seconds
    args: tuple[Any, ...] = ()  # those that were given by position
    timeout: float | None = None
    retry: RetryOptions | None = None
    key: str | None = None  # idempotency key: the same one again, so that what went through is not done twice
    same: str | None = None  # fingerprint
    by_agent: bool = False  # a model had asked for the call: a tool of which nothing is known counts as a write

    def to_dict(self) -> dict[str, Any]:
        """The offer as plain data."""
        return {
            "tool": self.tool,
            "arguments": plain(self.arguments),
            "explanation": self.explanation.to_dict(),
            "when": self.when,
        }


class Dangling(NamedTuple):
    """A call whose end nobody has told the model."""

    call_id: str  # as the model knows it, where the adapter has passed it on
    tool: str  # the id of the tool
    text: str  # what to tell the model as the result of the call
    turn_id: str = ""  # the turn that it belonged to
    same: str | None = None  # if it must not be made twice: its fingerprint; empty where it has none
    told: bool = False  # the same call was turned away, so the model knows
    expires: float | None = None  # by the runtime's clock, in seconds: then it may be made again

    def to_dict(self) -> dict[str, Any]:
        """The call as plain data."""
        return {"call_id": self.call_id, "tool": self.tool, "text": self.text, "turn_id": self.turn_id}


class Failure(NamedTuple):
    """A call that has failed permanently, and what was said about it."""

    tool: str
    times: tuple[float, ...]  # the last few
    fault: Fault
    explanation: Explanation
    decision: Decision | None
    escalated: bool
    told: str | None = None  # a policy's words for the user


class Broken(NamedTuple):
    """A tool whose setup has failed."""

    until: float
    fault: Fault
    met_by: object  # the call that met it, whose own retries go on


class Absence(NamedTuple):
    """A tool that something has said is missing."""

    until: float
    why: str


class ThreadState:
    """What one thread remembers. Times are the runtime's monotonic ones."""

    __slots__ = ("__weakref__", "absent", "broken", "dangling", "failures", "offers", "wary")

    def __init__(self) -> None:
        self.absent: dict[str, Absence] = {}
        self.broken: dict[str, Broken] = {}
        self.failures: dict[str, Failure] = {}
        self.offers: dict[str, Offer] = {}
        self.dangling: dict[tuple[str, str], Dangling] = {}  # by turn and call
        self.wary = False  # something is remembered: calls have to ask, and to tell

    # -- availability ------------------------------------------------------------------------------------------------

    def is_absent(self, tool: str, now: float) -> bool:
        """Would a call be turned away?"""
        mark = self.absent.get(tool) or self.broken.get(tool)
        return mark is not None and now < mark.until

    def admit(self, tool: str, now: float, *, lease: float, call: object = None) -> Fault | None:
        """Turn a call away, or let it through: a probe, if its time has come, and no other for ``lease`` seconds."""
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
        """An attempt has run: the tool is there, or something says that it is not, or that its setup is at fault."""
        if fault is not None and blames_setup(fault):
            self.broken[tool] = Broken(now + ABSENT_FOR, fault._replace(cause=None), call)
        else:
            self.broken.pop(tool, None)
        if fault is not None and find_reach(fault) == "thread":
            self.absent[tool] = Absence(now + ABSENT_FOR, fault.message)
        else:
            self.absent.pop(tool, None)
        self._look()

    def restore_absence(self, tool: str, absence: Absence) -> None:
        """What an earlier process has left."""
        self.absent[tool] = absence
        self._look()

    # -- loops -------------------------------------------------------------------------------------------------------

    def find_loop(self, same: str | None, now: float) -> Failure | None:
        """The failure that this very call has just had too often, if it has."""
        failure = self.failures.get(same) if same is not None else None
        if failure is None:
            return None
        setup = failure.fault.category == "tool_misconfigured"
        window, enough = (ABSENT_FOR, 1) if setup else (LOOP_WINDOW, LOOP_AFTER)
        recent = tuple(time for time in failure.times if now - time <= window)
        if not recent:
            del self.failures[str(same)]
            self._look()
        return failure if len(recent) >= enough else None

    def note_failure(self, same: str, failure: Failure) -> None:
        """A call has failed permanently."""
        before = self.failures.pop(same, None)
        if before is not None:
            failure = failure._replace(times=(*before.times, *failure.times)[-LOOP_AFTER:])
        self.failures[same] = failure
        if len(self.failures) > MOST_FAILURES:
            del self.failures[next(iter(self.failures))]
        self._look()

    def note_success(self, tool: str, same: str | None) -> bool:
        """A call has succeeded: what failed before may now work. True if it had been offered, and is not any more."""
        self.failures = {
            same: failure
            for same, failure in self.failures.items()
            if failure.tool != tool and failure.fault.category == "tool_misconfigured"
        }
        offer = self.offers.get(tool)
        done = offer is not None and offer.same == same
        if done:
            del self.offers[tool]
        self._look()
        return done

    # -- offers ------------------------------------------------------------------------------------------------------

    def make_offer(self, offer: Offer) -> None:
        self.offers[offer.tool] = offer
        self._look()

    def list_offers(self, now: float) -> list[Offer]:
        """What may be retried, the oldest first."""
        for tool in [tool for tool, offer in self.offers.items() if now >= offer.expires]:
            del self.offers[tool]
        self._look()
        return list(self.offers.values())

    def take_offer(self, offer: Offer) -> bool:
        """Use an offer up; False if it is gone, or a newer one is in its place."""
        mine = self.offers.get(offer.tool)
        if mine is None or mine.when != offer.when:
            return False
        del self.offers[offer.tool]
        self._look()
        return True

    def clear_offer(self, tool: str) -> bool:
        """A hard failure: nothing is left to retry. True if something was."""
        cleared = self.offers.pop(tool, None) is not None
        self._look()
        return cleared

    def note_registered(self, tool: str) -> None:
        """The tool has been registered anew: what is known of its absence and its failures is out of date."""
        self.absent.pop(tool, None)
        self.broken.pop(tool, None)
        self.failures = {same: failure for same, failure in self.failures.items() if failure.tool != tool}
        self._look()

    # -- the rest ----------------------------------------------------------------------------------------------------

    def forget(self, tool: str | None = None) -> None:
        """Forget what is remembered about a tool, or about all of them."""
        if tool is None:
            self.absent, self.broken, self.offers, self.failures = {}, {}, {}, {}
        else:
            self.offers.pop(tool, None)
            self.note_registered(tool)
        self._look()

    # -- dangling calls ----------------------------------------------------------------------------------------------

    def leave_dangling(self, call: Dangling) -> None:
        self.dangling[call.turn_id, call.call_id] = call
        if len(self.dangling) > MOST_DANGLING:
            del self.dangling[next(iter(self.dangling))]
        self._look()

    def find_dangling(self, id: str, tool: str, same: str | None, now: float) -> Dangling | None:
        """The call that is made once more, and must not be. Its id alone does not tell: some models count anew."""
        for call in self.dangling.values():
            if call.expires is not None and now >= call.expires:
                continue
            if (call.call_id, call.tool) == (id, tool) and call.same is not None and call.same in (same, ""):
                return call
        return None

    def close_dangling(self, call: Dangling) -> None:
        """The model is told."""
        self.dangling.pop((call.turn_id, call.call_id), None)
        self._look()

    def _look(self) -> None:
        left = any(call.same is not None for call in self.dangling.values())
        self.wary = bool(self.absent or self.broken or self.failures or self.offers or left)
