"""Private names of the OpenTelemetry SDK, all in one place. They tell whether starting or ending a span may block.

A test pins each name. Without them, or with classes that are not known here, spans start and end on threads of their own.
"""

from __future__ import annotations

from typing import Any, Final, NamedTuple

_SDK: Final = "opentelemetry.sdk.trace"
_BATCH: Final = (_SDK + ".export", "BatchSpanProcessor")  # puts a span into a queue
_SIMPLE: Final = (_SDK + ".export", "SimpleSpanProcessor")  # exports a span when it ends
_IN_MEMORY: Final = (_SDK + ".export.in_memory_span_exporter", "InMemorySpanExporter")


class Pace(NamedTuple):
    """How spans start and end: in place if nothing that runs then can block."""

    starts_in_place: bool
    ends_in_place: bool


IN_PLACE: Final = Pace(True, True)
ELSEWHERE: Final = Pace(False, False)


def find_pace(provider: Any) -> tuple[Any, Pace]:
    """Return the processors of a provider, and how its spans start and end while it has these processors."""
    module = type(provider).__module__
    if module.startswith("opentelemetry.trace"):  # the API alone: its spans do nothing
        return None, IN_PLACE
    processors = getattr(getattr(provider, "_active_span_processor", None), "_span_processors", None)
    if not isinstance(processors, tuple) or type(provider).__module__ != _SDK or not _samples_in_place(provider):
        return processors, ELSEWHERE
    return processors, Pace(all(map(_starts_in_place, processors)), all(map(_ends_in_place, processors)))


def processors_of(provider: Any) -> Any:
    """The processors of a provider: an object that is replaced when one is added."""
    return getattr(getattr(provider, "_active_span_processor", None), "_span_processors", None)


def _samples_in_place(provider: Any) -> bool:
    return _is_known(getattr(provider, "sampler", None)) and _is_known(getattr(provider, "id_generator", None))


def _is_known(part: Any) -> bool:
    """True for a sampler or an id generator of the SDK, and for a sampler that asks only such samplers."""
    asked = [one for one in getattr(part, "__dict__", {}).values() if hasattr(one, "should_sample")]
    return type(part).__module__.startswith(_SDK + ".") and all(map(_is_known, asked))


def _starts_in_place(processor: object) -> bool:
    return _class_of(processor) in (_BATCH, _SIMPLE)


def _ends_in_place(processor: object) -> bool:
    if _class_of(processor) == _SIMPLE:
        return _class_of(getattr(processor, "span_exporter", None)) == _IN_MEMORY
    return _class_of(processor) == _BATCH


def _class_of(value: object) -> tuple[str, str]:
    return type(value).__module__, type(value).__qualname__
