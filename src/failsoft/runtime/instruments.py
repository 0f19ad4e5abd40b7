"""The instruments of a runtime: added and removed. Tools leave the fast path while there is one."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable
from reprlib import repr as brief
from typing import TYPE_CHECKING

from failsoft.errors import ManifestError
from failsoft.observe import subscriptions
from failsoft.observe.instrument import Instrument, Instruments

log = logging.getLogger("failsoft")

if TYPE_CHECKING:
    from failsoft.runtime.services import Services


def add_instruments(services: Services, instruments: Iterable[Instrument]) -> None:
    """Add the instruments that a runtime is made with."""
    if isinstance(instruments, Instrument) or not isinstance(instruments, Iterable):
        raise ManifestError(f"instruments: {brief(instruments)} is not a list: put it in brackets")
    given = [*instruments]
    for place, instrument in enumerate(given):
        if any(instrument is other for other in given[:place]):
            raise ManifestError(f"instruments: {brief(instrument)} is in the list twice: keep one")
        add_instrument(services, instrument)


def add_instrument(services: Services, instrument: Instrument) -> Callable[[], None]:
    """Surround turns, calls and attempts from now on. Return a function that removes the instrument."""
    if not isinstance(instrument, Instrument):
        if isinstance(instrument, type) and issubclass(instrument, Instrument):
            name = instrument.__name__
            raise ManifestError(f"instrument: {name} is a class: give an instance of it, {name}()")
        raise ManifestError(
            f"instrument: {brief(instrument)} is not an Instrument: give an instance of a subclass of failsoft.Instrument"
        )
    if services.log.instruments is not None and any(
        _is_same(instrument, other) for other in services.log.instruments.each
    ):
        log.warning("instruments: %s is there twice, and records everything twice: keep one", type(instrument).__name__)
    with services.toolbox.lock:
        before = services.log.instruments or Instruments(())
        services.log.instruments = before.replaced((*before.each, instrument))
        for tool in services.toolbox.tools.values():
            services.toolbox.slow_down(tool)
    stop = _add_sink(services, instrument)

    def remove() -> None:
        stop()
        with services.toolbox.lock:
            now = services.log.instruments
            if now is None:
                return
            services.log.instruments = now.replaced(tuple(each for each in now.each if each is not instrument))
            if services.log.instruments is None and not services.runner.closed:
                services.toolbox.speed_up()

    return remove


def _is_same(one: Instrument, other: Instrument) -> bool:
    """True if both record the same to the same place."""
    return type(one) is type(other) and one._destination is not None and one._destination == other._destination


def _add_sink(services: Services, instrument: Instrument) -> Callable[[], None]:
    """Deliver all events to the instrument's sink, if it has one."""
    if type(instrument).sink is Instrument.sink:
        return lambda: None
    from failsoft.runtime.samples import SampleReader

    sink = instrument.sink(SampleReader(services))
    if sink is None:
        return lambda: None
    name = f"instrument {type(instrument).__qualname__}"
    return subscriptions.add_sink(services.log.trace, sink, name=name)
