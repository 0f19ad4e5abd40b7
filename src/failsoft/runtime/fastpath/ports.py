"""The services that the fast path needs: to run an attempt, to retry, and to hand the rest over to the pipeline."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from failsoft.runtime.call.in_flight import InFlight
    from failsoft.runtime.call.ports import (
        CallBooks,
        CallEvents,
        CallObservers,
        CallPlaces,
        Judgement,
        Runner,
        Texts,
        Tools,
    )
    from failsoft.runtime.ports import Time


class FastServices(Protocol):
    """Services for guarded functions, for calls by name and for the fast retry loop."""

    @property
    def time(self) -> Time: ...
    @property
    def log(self) -> CallEvents: ...
    @property
    def toolbox(self) -> Tools: ...
    @property
    def texts(self) -> Texts: ...
    @property
    def judgement(self) -> Judgement: ...
    @property
    def places(self) -> CallPlaces: ...
    @property
    def in_flight(self) -> InFlight: ...
    @property
    def runner(self) -> Runner: ...


class AwaitedCallServices(Protocol):
    """Services for an opened call that is awaited on the fast path."""

    @property
    def time(self) -> Time: ...
    @property
    def log(self) -> CallObservers: ...
    @property
    def books(self) -> CallBooks: ...
    @property
    def places(self) -> CallPlaces: ...
    @property
    def runner(self) -> Runner: ...


class FastCallServices(AwaitedCallServices, Protocol):
    """Services for an opened call that may take the fast path."""

    @property
    def in_flight(self) -> InFlight: ...
