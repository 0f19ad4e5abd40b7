"""The books of a runtime: the conversation log and the effect ledger, which outlive a call."""

from __future__ import annotations

from typing import TYPE_CHECKING

from failsoft.runtime.conversation.conversation_log import ConversationLog
from failsoft.runtime.persistence.cases import Cases

if TYPE_CHECKING:
    from failsoft.runtime.conversation.ports import CallEmitter, Explains
    from failsoft.runtime.execution.time_source import TimeSource
    from failsoft.runtime.persistence.effect_ledger import EffectLedger
    from failsoft.runtime.persistence.event_writer import StoreWriter
    from failsoft.stores.ports import Store


class Books:
    """Opens the books, in the store if there is one."""

    def __init__(
        self,
        time: TimeSource,
        log: CallEmitter,
        texts: Explains,
        store: Store | None,
        *,
        store_required: bool,
        record_arguments: bool = False,
    ) -> None:
        self.time = time
        self.log = log
        self.texts = texts
        self.store = store  # None: nothing outlives the process
        self.store_required = store_required
        self.writer: StoreWriter | None = None  # of events; None: there is no store
        self.ledger: EffectLedger | None = None  # of writes; None: there is no store
        self.conversations = ConversationLog(self)
        if store is not None and self.conversations.pending is not None:
            from failsoft.runtime.persistence.effect_ledger import EffectLedger  # only with a store

            run = self.conversations.pending.run
            self.ledger = EffectLedger(store, run, time.wall, time.new_key, keeps_arguments=record_arguments)
        self.cases = Cases(time, self.ledger, record_arguments=record_arguments)
