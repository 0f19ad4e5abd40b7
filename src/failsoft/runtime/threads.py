"""Conversations as users see them: ``rt.threads``. Their state is in ``conversation.conversation_log``."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from failsoft.config.settings import require_text_names
from failsoft.core.conversation.thread_state import Dangling, Offer
from failsoft.core.model import builtin_faults
from failsoft.core.model.decision import Decision
from failsoft.core.model.outcome import Outcome
from failsoft.core.redact.printable import quote
from failsoft.core.resilience.error_handler import ErrorReport, decision_fields
from failsoft.errors import ManifestError
from failsoft.observe import events
from failsoft.runtime.call.in_place import can_be_replaced
from failsoft.runtime.call.user_text import phrase
from failsoft.runtime.conversation.thread_store import Key
from failsoft.runtime.tools.counted_as_write import count_as_write

if TYPE_CHECKING:
    from failsoft.runtime.services import Services
    from failsoft.runtime.tools.tool import Tool


class Threads:
    """``rt.threads["chat-42"]``; with a tenant ``rt.threads("chat-42", tenant="acme")``."""

    def __init__(self, rt: Services) -> None:
        self._rt = rt

    def __getitem__(self, thread: str) -> Thread:
        return Thread(self._rt, thread, None)

    def __call__(self, thread: str, *, tenant: str | None = None) -> Thread:
        return Thread(self._rt, thread, tenant)


class Thread:
    """One conversation: its retry offers, missing tools and unanswered calls."""

    __slots__ = ("_key", "_rt")

    def __init__(self, rt: Services, thread: str, tenant: str | None) -> None:
        require_text_names("threads", thread=thread, tenant=tenant)
        self._rt = rt
        self._key: Key = (tenant, thread)

    @property
    def _conversation(self) -> Key:
        """The key of the conversation. Calls without a thread belong to no conversation."""
        if not self._key[1]:
            raise ManifestError(
                "threads: '' is no conversation: name the one that the calls were made with, as in rt.call(…, thread=\"chat-42\")"
            )
        return self._key

    @property
    def offers(self) -> list[Offer]:
        """The calls that may be retried if the user asks, the oldest first. Reads the store, so it may block."""
        return self._rt.books.conversations.list_offers(self._conversation)

    async def retry(self, tool: str | Callable[..., Any]) -> Outcome[Any]:
        """Repeat the offered call, because the user asked for it. Without an offer the outcome says so.

        The offer is used up when the retry runs. If an open circuit, a rate limit or a full queue refuses the retry, the
        offer stays.
        """
        rt, key = self._rt, self._conversation
        rt.runner.refuse_if_closed()
        found = rt.toolbox.find(tool)
        offer = await rt.books.conversations.find_offer(key, found.id) if found.is_known else None
        if offer is None:
            return await self._nothing(found)
        call = rt.runner.open_call(found, offer.args, dict(offer.arguments))
        call.tenant, call.thread = self._key
        call.timeout, call.retry, call.key, call.offer = offer.timeout, offer.retry, offer.key, offer
        if offer.by_agent:
            call.tool, call.by_agent = count_as_write(found), True
        return await rt.runner.run(call)

    async def _nothing(self, tool: Tool) -> Outcome[Any]:
        """Return the outcome of a retry that was not offered."""
        rt = self._rt
        fault = builtin_faults.no_offer(tool.id, () if tool.is_known else rt.toolbox.tools)
        shown = quote(tool.id)
        outcome: Outcome[Any] = Outcome(
            rt.log.trace.number(),
            shown,
            "failed",
            fault=fault,
            decision=Decision("fail_gracefully", fault.reason),
            label=tool.label,
            explanation=rt.texts.explain,
        )
        tenant, thread = self._key
        report = ErrorReport(
            fault, shown, outcome.id, 0, 0, "closed", None, fault.reason, (), thread=thread, tenant=tenant
        )
        assert outcome.decision is not None
        known = tool if tool.is_known else None
        rt.log.record_event(events.CALL_REFUSED, known, outcome.id, None, decision_fields(report, outcome.decision))
        rt.log.drain_if_due()
        if rt.texts.phraser is not None:
            await phrase(rt, None, outcome)
        return outcome

    def clear(self, tool: str | Callable[..., Any] | None = None) -> None:
        """Forget offers, loops and missing tools of this thread: of one tool, or of all."""
        self._rt.books.conversations.forget(self._conversation, None if tool is None else self._id_of(tool))

    def available(self, tool: str | Callable[..., Any]) -> bool:
        """True unless the tool and all its fallbacks are known to be unavailable here.

        Adapters offer models only such tools.
        """
        id = self._id_of(tool)
        return id in self._rt.toolbox.tools and id not in self.unavailable

    def _id_of(self, tool: str | Callable[..., Any]) -> str:
        found = self._rt.toolbox.find(tool)
        if not found.is_known:
            self._rt.toolbox.warn_of_typo(found.id)
        return found.id

    @property
    def unavailable(self) -> tuple[str, ...]:
        """The tools that are disabled, registered or not, and those that cannot be used here and have no fallback."""
        rt, (tenant, thread) = self._rt, self._key
        absent = rt.books.conversations.list_unavailable(self._key)
        missing = [
            tool for id, tool in list(rt.toolbox.tools.items()) if tool.unavailable_fault is not None or id in absent
        ]
        known = [tool.id for tool in missing if tool.disabled or not can_be_replaced(rt, tool, thread, tenant)]
        return (
            *known,
            *[id for id, why in rt.toolbox.disabled.items() if why is not None and id not in rt.toolbox.tools],
        )

    @property
    def dangling(self) -> list[Dangling]:
        """The calls of turns that were cancelled or crashed: the model does not know their results.

        Reads the store, so it may block.
        """
        return self._rt.books.conversations.list_unanswered(self._conversation)

    def close_dangling(self) -> list[Dangling]:
        """Return ``dangling`` and forget these calls. Give the model each text as the result of its call.

        Calls that were refused because an earlier start of them was unanswered may then be made again.
        """
        return self._rt.books.conversations.close_dangling(self._conversation)

    def __repr__(self) -> str:
        tenant, thread = self._key
        return f"<Thread {thread!r}{'' if tenant is None else f' of {tenant!r}'}>"
