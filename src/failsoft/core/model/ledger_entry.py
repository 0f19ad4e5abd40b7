"""An entry of the effect ledger: a write that was begun, and what is known of its effect."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar, Literal, get_args

from failsoft.core.model.compared import Shown
from failsoft.core.model.json_values import plain
from failsoft.core.startup.named_tuple import NamedTuple

EffectState = Literal["begun", "unknown", "happened", "none"]
Verdict = Literal["happened", "none"]  # an operator's answer to an open case


class ShownEffectState(Shown):
    """The state of a write in the ledger, as users see it."""

    __slots__ = ()

    name = "entry.state"
    known = get_args(EffectState)
    synonyms: ClassVar[Mapping[str, str]] = {
        **dict.fromkeys(("started", "running", "pending"), "begun"),
        **dict.fromkeys(("done", "succeeded", "committed"), "happened"),
    }
    closed = True


EFFECT_STATES = ShownEffectState.every()


class LedgerAnswer(NamedTuple):
    """The value of a write that was resolved as happened, or that a replay has made."""

    value: Any
    value_known: bool
    by_replay: bool = False


Recalled = LedgerAnswer | Literal["begun", "free"] | None  # state of a write; "free": resolved as none; None: not known


class LedgerEntry(NamedTuple):
    """A write in the effect ledger. It is an open case while its state is ``begun`` or ``unknown``."""

    id: str  # of the entry; ``rt.ledger.resolve`` takes it
    tool: str  # the id of the tool
    call_id: str  # as in ``Outcome.id``
    state: EffectState  # begun (not ended), unknown (ended with an unknown effect), happened or none (resolved)
    thread: str | None  # the conversation
    tenant: str | None  # the customer
    turn_id: str | None  # the turn of the call
    begun: str | None  # ISO time; None: recorded by an older failsoft
    ended: str | None = None  # ISO time at which the call ended with an unknown effect
    fingerprint: str = ""  # of tool and arguments; empty if they are not JSON
    idempotency_key: str | None = None  # the key that the tool was sent
    code: str | None = None  # of the error
    error: str | None = None  # its sanitised message
    arguments: dict[str, Any] | None = None  # only with ``Runtime(record_arguments=True)``; secrets are masked
    arguments_masked: bool = False  # a secret was masked in the arguments: they cannot be used to verify
    value: Any = None  # given when the case was resolved as happened
    value_known: bool = False  # whether a value was given
    resolved: str | None = None  # ISO time
    resolved_by: str | None = None  # who resolved the case
    running: bool = False  # its call is running in this process

    @property
    def is_open(self) -> bool:
        """True if the effect is not known and the call is not running in this process."""
        return self.state in ("begun", "unknown") and not self.running

    def to_dict(self) -> dict[str, Any]:
        """Return the entry as data that ``json.dumps`` accepts."""
        return {name: plain(value) for name, value in self._asdict().items()}
