"""Exceptions that cross a process boundary.

Rules
-----
- The exception itself is sent if that is safe: it survives pickling in the worker, its class is already loaded in the
  application (an error never imports anything), and it is an ``Exception``. A tool that exits or interrupts its worker
  must not exit or interrupt the application.
- Any other exception becomes a ``RemoteError`` with the name of its class, its text, the plain data among its attributes,
  and ``remote_types``: the qualified names of its class and all bases.
- An exception is classified in the worker, where it is complete. The result is its attribute ``remote_fault``.
- Causes, contexts and groups are sent too. The traceback is sent as text, in a note of the exception.
- Describing an error never fails, whatever its attributes do when they are read.
"""

from __future__ import annotations

import contextlib
import datetime as dt
import enum
import io
import pickle
import sys
import traceback
from collections.abc import Mapping
from types import SimpleNamespace
from typing import Any, Final, NamedTuple

from failsoft.core.classify import classify_failure
from failsoft.core.classify.nested import adopt_fault
from failsoft.core.classify.request_method import METHOD, method_of
from failsoft.core.model.fault import Fault
from failsoft.runtime.execution.clock import SYSTEM
from failsoft.runtime.execution.processes import wire

_DEPTH: Final = 8  # causes of causes
_TEXT: Final = 64_000  # characters of one text
_ITEMS: Final = 64  # of one list or mapping
_PICKLE: Final = 256_000  # bytes of one pickled exception

# Attributes of errors that are not in the instance dictionary: properties, class attributes and methods
_ATTRIBUTES: Final = (
    "status_code", "status", "http_status", "code", "errno", "winerror", "strerror", "filename", "sqlstate", "pgcode",
    "retry_after", "headers", "reason", "body", "response", "details", "type", "param", "message", "error",
)  # fmt: skip
_OF_A_RESPONSE: Final = ("status_code", "status", "headers", "reason", "reason_phrase", "text")


class RemoteError(Exception):
    """An exception of another process that cannot be rebuilt in this one."""

    remote_types: tuple[str, ...] = ()  # qualified names, the class itself first, ``builtins.object`` left out

    def __reduce__(self) -> tuple[Any, ...]:
        return _remote, (self.remote_types, str(self), dict(vars(self)))


class Described(NamedTuple):
    """An exception as plain data."""

    types: tuple[str, ...]
    text: str
    attributes: dict[str, Any]
    traceback: str
    fault: Fault | None
    pickled: bytes | None
    cause: Described | None
    context: Described | None
    suppress_context: bool
    leaves: tuple[Described, ...]


def describe(error: BaseException, depth: int = _DEPTH) -> Described:
    """Return everything about an exception that can be sent."""
    cause, context = error.__cause__, error.__context__
    # groups may contain each other many times: fewer members are sent at each depth
    most = max(_ITEMS >> 3 * (_DEPTH - depth), 1)
    leaves = error.exceptions[:most] if isinstance(error, BaseExceptionGroup) else ()
    return Described(
        types=_types(error),
        text=error.message[:_TEXT] if isinstance(error, BaseExceptionGroup) else _text(error),
        attributes=_attributes(error),
        traceback=_traceback(error) if depth == _DEPTH else "",
        fault=_fault(error) if depth == _DEPTH else None,
        pickled=_pickle(error),
        cause=describe(cause, depth - 1) if cause is not None and depth else None,
        context=describe(context, depth - 1) if context is not None and context is not cause and depth else None,
        suppress_context=error.__suppress_context__,
        leaves=tuple(describe(leaf, depth - 1) for leaf in leaves) if depth else (),
    )


def _types(error: BaseException) -> tuple[str, ...]:
    if isinstance(error, RemoteError):  # it comes from another process already
        return error.remote_types
    return tuple(f"{cls.__module__}.{cls.__qualname__}" for cls in type(error).__mro__[:-1])


def rebuild(described: Described, pid: int | None = None) -> Exception:
    """Rebuild the exception, or make a ``RemoteError`` in its place."""
    error = _rebuild(described)
    with contextlib.suppress(AttributeError):  # a class with slots
        error.remote_fault = described.fault  # type: ignore[attr-defined]  # it stays with the error, whatever it is
    if described.traceback:
        error.add_note(f"Traceback in the worker process{'' if pid is None else f' {pid}'}:\n{described.traceback}")
    return error


def _rebuild(described: Described) -> Exception:
    error: Exception | None
    if described.leaves:
        error = ExceptionGroup(described.text, [_rebuild(leaf) for leaf in described.leaves])
    else:
        error = _unpickle(described.pickled) or _remote(described.types, described.text, described.attributes)
    error.__cause__ = None if described.cause is None else _rebuild(described.cause)
    error.__context__ = None if described.context is None else _rebuild(described.context)
    error.__suppress_context__ = described.suppress_context
    return error


_classes: dict[tuple[str, ...], type[RemoteError]] = {}


def _remote(types: tuple[str, ...], text: str, attributes: dict[str, Any]) -> RemoteError:
    """Make a ``RemoteError`` with the name of the original class, by which people search a log."""
    cls = _classes.get(types)
    if cls is None:
        module, _, name = (types[0] if types else "builtins.Exception").rpartition(".")
        cls = type(name, (RemoteError,), {"__module__": module, "remote_types": types})
        if len(_classes) < 1000:  # tools that make classes dynamically must not fill the memory
            _classes[types] = cls
    error = cls(text)
    vars(error).update(attributes)
    return error


def _text(error: BaseException) -> str:
    try:
        return str(error)[:_TEXT]
    except Exception:
        return f"<{type(error).__qualname__} that cannot be shown>"


def _fault(error: BaseException) -> Fault | None:
    try:
        return adopt_fault(classify_failure(error, now=SYSTEM.wall()), error)
    except Exception:
        return None


def _traceback(error: BaseException) -> str:
    try:
        return "".join(traceback.format_tb(error.__traceback__))[-_TEXT:]
    except Exception:
        return ""


def _attributes(error: BaseException) -> dict[str, Any]:
    own = getattr(error, "__dict__", {})
    found = {}
    for name in (*[name for name in own if isinstance(name, str)][:_ITEMS], *_ATTRIBUTES):
        if name not in found and not name.startswith("__"):
            plain = _read(error, name)
            if plain is not None:
                found[name] = plain
    if (method := method_of(error)) is not None:
        found[METHOD] = method
    return found


def _read(holder: object, name: str, depth: int = 3) -> Any:
    try:
        value = getattr(holder, name, None)
        if callable(value) and name in ("code", "details"):  # gRPC has methods where others have data
            value = value()
        return _plain(value, depth)
    except Exception:
        return None


def _plain(value: Any, depth: int) -> Any:
    """Return the value as plain data, or None if it is not."""
    if value is None or isinstance(value, bool | float | dt.datetime | dt.timedelta):
        return value
    if isinstance(value, str):
        return str.__str__(value)[:_TEXT]
    if isinstance(value, int):
        return int(value)
    if isinstance(value, bytes):
        return bytes(value[:_TEXT])
    if isinstance(value, enum.Enum):
        return value.name
    if not depth:
        return None
    if isinstance(value, Mapping):
        return {str(key): _plain(value[key], depth - 1) for key in list(value)[:_ITEMS]}
    if isinstance(value, list | tuple):
        return [_plain(item, depth - 1) for item in value[:_ITEMS]]
    response = {name: plain for name in _OF_A_RESPONSE if (plain := _read(value, name, depth - 1)) is not None}
    return SimpleNamespace(**response) if response else None


def _pickle(error: BaseException) -> bytes | None:
    """Pickle the exception; None unless the pickle loads as the same class with the same text."""
    if not isinstance(error, Exception) or isinstance(error, BaseExceptionGroup | RemoteError):
        return None
    try:
        pickled = pickle.dumps(error, 5)
        same = len(pickled) <= _PICKLE and pickle.loads(pickled)  # noqa: S301 - made one line above
        return pickled if type(same) is type(error) and str(same) == str(error) else None
    except Exception:
        return None


class _Loaded(pickle.Unpickler):
    """Finds classes only in modules that are loaded here: an error must not import a library in the event loop."""

    def find_class(self, module: str, name: str) -> Any:
        if module not in sys.modules:
            raise pickle.UnpicklingError(f"{module} is not loaded here")
        return super().find_class(module, name)


def _unpickle(pickled: bytes | None) -> Exception | None:
    if pickled is None:
        return None
    try:
        error = wire.unpickle(pickled, lambda content: _Loaded(io.BytesIO(content)).load())
    except wire.Unloadable:
        return None
    return error if isinstance(error, Exception) else None
