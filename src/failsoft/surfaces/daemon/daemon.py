"""The daemon's state: its runtime, its store, and what has been reported to it."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from time import monotonic
from typing import TYPE_CHECKING, Any

from failsoft.prometheus import exposition
from failsoft.runtime.runtime import Runtime
from failsoft.stores.memory import MemoryStore
from failsoft.stores.ports import key_of
from failsoft.stores.url import open_store
from failsoft.surfaces.daemon.audit import Audit
from failsoft.surfaces.daemon.commits import Commits
from failsoft.surfaces.daemon.escalations import Escalations
from failsoft.surfaces.daemon.feed import Feed, find_latest
from failsoft.surfaces.daemon.jobs import Jobs
from failsoft.surfaces.daemon.problems import Problem
from failsoft.surfaces.daemon.reported_errors import ErrorDesk
from failsoft.surfaces.daemon.reported_events import Inbox
from failsoft.surfaces.daemon.reported_tools import ReportBook, ReportedTool
from failsoft.surfaces.daemon.routes import RouteSpec
from failsoft.surfaces.daemon.used_ids import UsedIds

if TYPE_CHECKING:
    from failsoft.stores.ports import Store

REMEMBERED = 5_000  # remote events that are recognised after a restart if they are sent again
JOBS_SECONDS = 0.3  # seconds for cancelled calls and turns to end


class Daemon:
    """Everything that the routes share.

    ``manifest`` has the tools; there is no other way to add one. ``store`` is an address as in ``Runtime``; with ``memory:``
    everything is lost with the process.
    """

    def __init__(
        self, manifest: str | Path | Mapping[str, Any] | None = None, *, store: str | Store = "memory:", **options: Any
    ) -> None:
        opened = open_store(store, wall=time.time) or MemoryStore() if isinstance(store, str) else store
        self.store = opened
        self._owns_store = isinstance(store, str)
        self.rt = rt = Runtime(manifest, store=opened, **options)
        self.services = services = rt._engine
        settings = rt._settings
        for id, tool in settings.tools.items():
            if tool.entrypoint is None:
                rt.declare(id)
        assert services.books.writer is not None
        self._writer = services.books.writer
        self.book = ReportBook(services, settings)
        self.escalations = Escalations(opened, services.time.wall)
        self.desk = ErrorDesk(services, self.book, self.escalations)
        self.inbox = Inbox(self.store, services.time.wall, self.escalations)
        self.inbox.remember(opened.read(after=max(0, find_latest(opened) - REMEMBERED), limit=REMEMBERED))
        self.commits = Commits(self._commit)
        self.audit = Audit(services.log)
        self.feed = Feed(opened)
        self.jobs = Jobs()
        self.used_ids = UsedIds(opened, rt.ledger)
        for _, kept in opened.find("disabled"):
            if kept.get("reported") and kept["tool"] not in rt.tools:
                self.book.tool(kept["tenant"], kept["tool"]).disabled = kept["reason"]
            elif kept.get("tenant") is None:
                rt.disable(kept["tool"], kept["reason"])
        exposition(rt)  # the exporter counts events from its first use on
        self.started = monotonic()
        self.routes: Sequence[RouteSpec] = ()  # set by ``app``
        self.stopping = False

    def disable(self, tool: str, reason: str) -> None:
        """Refuse calls of a tool, also after a restart."""
        self.store.put("disabled", key_of(tool), {"tool": tool, "reason": reason})
        self.rt.disable(tool, reason)

    def enable(self, tool: str) -> None:
        """Accept calls of a tool again."""
        self.store.delete("disabled", key_of(tool))
        self.rt.enable(tool)

    def disable_reported(self, tool: ReportedTool, reason: str) -> None:
        """Advise one tenant's executors against one of their tools, also after a restart."""
        kept = {"tool": tool.id, "reason": reason, "tenant": tool.tenant, "reported": True}
        self.store.put("disabled", key_of("reported", tool.tenant, tool.id), kept)
        tool.disabled = reason

    def enable_reported(self, tool: ReportedTool) -> None:
        """Allow a tool again that only remote executors have."""
        self.store.delete("disabled", key_of("reported", tool.tenant, tool.id))
        tool.disabled = None

    def _commit(self, deadline: float) -> bool:
        """Wait until everything reported so far is durable."""
        self.rt.memory.save()
        self.escalations.save()
        circuits = self.services.toolbox.circuits
        kept = circuits is None or circuits.flush(deadline)
        return self._writer.commit(deadline) and kept

    async def confirm(self) -> None:
        """Wait until everything so far is durable; raise if it may be lost."""
        if not await self.commits.wait():
            raise Problem(
                503, "the store did not confirm in time: send the request again", headers={"retry-after": "1"}
            )

    def stop(self) -> None:
        """Take no more requests, cancel calls and turns, and end the streams."""
        self.stopping = True
        self.jobs.cancel_all()
        self.feed.close()

    async def close(self) -> None:
        """End calls and turns, and write everything to the store."""
        self.stop()
        await self.jobs.close(JOBS_SECONDS)
        self.escalations.save(everything=True)
        await self.rt.close()
        if self._owns_store:
            await asyncio.to_thread(self.store.close)
        self.commits.close()
