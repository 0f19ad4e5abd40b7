"""The assembly of a runtime: its settings, its store, its memory, and the tools that its manifest names."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from failsoft.config.settings import Settings, read_manifest, read_mode, read_undeclared
from failsoft.core.model.options import TurnOptions
from failsoft.errors import ManifestError
from failsoft.runtime.persistence.recovery_memory import RecoveryMemory
from failsoft.runtime.registry import register

if TYPE_CHECKING:
    from pathlib import Path

    from failsoft.client.event_reporter import EventReporter
    from failsoft.client.remote_handler import RemoteHandler
    from failsoft.core.effects.tool_effect import Undeclared
    from failsoft.core.model.durations import Duration
    from failsoft.core.model.options import OnTimeout
    from failsoft.core.resilience.recovery_memory import Mode
    from failsoft.runtime.execution.clock import Clock
    from failsoft.runtime.services import Services
    from failsoft.stores.ports import BreakerStore, Store


def read_settings(
    manifest: str | Path | Mapping[str, Any] | None, undeclared: Undeclared | None, check_types: bool | None
) -> Settings:
    """The settings in a manifest, with the options that override it."""
    settings = Settings() if manifest is None else read_manifest(manifest)
    if undeclared is not None:
        settings = settings._replace(undeclared=read_undeclared(undeclared))
    if check_types is not None:
        settings = settings.with_default("check_types", check_types)
    return settings


def turn_options(
    defaults: TurnOptions,
    timeout: Duration | None,
    on_timeout: OnTimeout | None,
    max_calls: int | None = None,
    max_calls_per_tool: int | None = None,
) -> TurnOptions:
    """The options of a turn: those of the settings, unless the caller gives others."""
    if timeout is None and on_timeout is None and max_calls is None and max_calls_per_tool is None:
        return defaults
    try:
        return TurnOptions(
            timeout=defaults.timeout if timeout is None else timeout,  # type: ignore[arg-type]  # Seconds
            on_timeout=on_timeout or defaults.on_timeout,
            max_calls=defaults.max_calls if max_calls is None else max_calls,
            max_calls_per_tool=defaults.max_calls_per_tool if max_calls_per_tool is None else max_calls_per_tool,
        )
    except ValueError as error:
        raise ManifestError(f"turn: {error}") from None


def connect_handler(url: str) -> RemoteHandler:
    """Connect to the daemon at this address as Error Handler."""
    from failsoft.client.remote_handler import RemoteHandler

    return RemoteHandler(url)


def connect_reporter(url: str) -> EventReporter:
    """Connect to the daemon at this address as a sink of events."""
    from failsoft.client.event_reporter import EventReporter

    return EventReporter(url)


def open_store(store: str | Store, clock: Clock, *, required: bool) -> Store | None:
    """Open the store in a wrapper that keeps its failures away from calls; None if everything stays in the process."""
    if store == "memory:":
        if required:
            raise ManifestError('store_required: there is no store: give one, like store="sqlite:///failsoft.db"')
        return None
    from failsoft.stores.failsafe import open_failsafe

    return open_failsafe(store, wall=clock.wall)


def add_memory(services: Services, mode: Mode) -> RecoveryMemory:
    """Add the recovery memory, kept in the store if there is one. With mode "off" it exists but is not used."""
    metrics, read = services.log.trace.metrics, read_mode(mode)
    memory = RecoveryMemory(read, services.time.wall, lambda tool: metrics(tool).successes, services.books.store)
    services.judgement.memory = None if read == "off" else memory
    return memory


def connect_store(services: Services, breakers: str | BreakerStore | None) -> None:
    """Write events to the store, and share circuits through it or through the given breaker store."""
    store, clock, toolbox = services.books.store, services.time.clock, services.toolbox
    if store is not None:
        from failsoft.runtime.persistence.event_writer import StoreWriter

        services.books.writer = StoreWriter(store, services.log.trace, clock)
        services.books.writer.ledger = services.books.ledger
    if store is not None or breakers is not None:
        from failsoft.runtime.persistence.circuits import open_circuits

        toolbox.circuits = open_circuits(breakers, store, clock, lambda: toolbox.lock)


def load_tools(services: Services, settings: Settings) -> None:
    """Register the tools whose entrypoints the manifest names, and disable those that are not enabled."""
    for id, tool in settings.tools.items():
        if not tool.options.enabled:
            services.toolbox.disabled[id] = "enabled: false"
        if tool.entrypoint is not None:
            from failsoft.runtime.tools.entrypoint import load_entrypoint

            register(services, settings, load_entrypoint(tool, settings.defaults))
