"""The parts of a call and of the runtime that the conversation log needs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from failsoft.core.conversation.thread_state import Offer
    from failsoft.core.model.explanation import Explanation
    from failsoft.core.model.options import RetryOptions
    from failsoft.core.model.outcome import Outcome
    from failsoft.runtime.persistence.effect_ledger import EffectLedger
    from failsoft.runtime.ports import Time
    from failsoft.runtime.tools.tool import Tool
    from failsoft.stores.ports import Store


class NamedTurn(Protocol):
    """A turn, by its id."""

    id: str


class NamedCall(Protocol):
    """The id of a call."""

    tool: Tool
    args: tuple[Any, ...]
    kwargs: dict[str, Any]
    started: float
    caller_id: str | None

    @property
    def id(self) -> str: ...
    @property
    def turn(self) -> NamedTurn | None: ...


class ThreadCall(NamedCall, Protocol):
    """The parts of a call that its thread's notes need."""

    thread: str | None
    tenant: str | None
    abandoned: bool

    @property
    def is_inner(self) -> bool: ...
    @property
    def may_have_acted_now(self) -> bool: ...


class OfferedCall(ThreadCall, Protocol):
    """The parts of a call that a retry offer needs."""

    offer: Offer | None
    offer_taken: bool
    timeout: float | None
    retry: RetryOptions | None
    key: str | None
    by_agent: bool


class CallEmitter(Protocol):
    """Recording of a call's events."""

    def emit(self, event_type: str, tool: Tool | None, call: Any, fields: dict[str, Any]) -> None: ...


class Explains(Protocol):
    """Explanations of outcomes."""

    def explain(self, outcome: Outcome[Any], /) -> Explanation: ...


class ConversationServices(Protocol):
    """Services for the conversation log."""

    @property
    def time(self) -> Time: ...
    @property
    def log(self) -> CallEmitter: ...
    @property
    def texts(self) -> Explains: ...
    @property
    def store(self) -> Store | None: ...
    @property
    def ledger(self) -> EffectLedger | None: ...
