"""The protocol between this process, its supervisor and its workers: frames on a stream socket.

Rules
-----
- A frame is a length, a kind, a number, the pid of its sender, and content. An answer repeats the number of its request.
  Numbers cannot be guessed, so nothing that was written before a request can pass as its answer.
- Pickles come only from processes of this application, and are as trusted as the tool itself. Workers of tools with
  ``values: json`` send JSON instead (``encoding``).
- Nothing larger than the limit is sent. The error for something that cannot be sent names the argument and its type.
- The supervisor says how a process died in a last frame. It may follow half a frame of the process itself, so
  it is read from the end of the stream (``death_of``).
"""

from __future__ import annotations

import os
import pickle
import struct
import time
from collections.abc import Callable, Mapping
from typing import Any, Final, NamedTuple

LIMIT: Final = 64_000_000  # bytes of one pickled call or result
CHUNK: Final = 1 << 14  # bytes of one read; a larger buffer costs time for small answers too
LARGE: Final = 1 << 20  # bytes of one read within a large frame
HEADER: Final = struct.Struct("<IBQI")  # length of the content, kind, number, pid
_DEATH: Final = struct.Struct("<IBQIi")
LAST_SIZE: Final = _DEATH.size  # bytes of the last frame of a stream
_TIME: Final = struct.Struct("<d")

# to a worker
LOAD: Final = 1  # import a module before the call
CALL: Final = 2
# from a worker, or from a command before it becomes one
READY: Final = 3
GO: Final = b"!"  # lets a process execute its program
VALUE: Final = 4
ERROR: Final = 5
UNSENDABLE: Final = 6
MISSING: Final = 7
LOG: Final = 8
PROGRESS: Final = 10  # of the call with this number; when it was made, and the message
# from the supervisor
DEATH: Final = 9


class Unsendable(Exception):
    """An argument or a result cannot leave its process; the text says which and why."""


class Unloadable(Exception):
    """Something that a worker sent cannot be loaded here; the text says why."""


class Frame(NamedTuple):
    """One frame, as it was read."""

    kind: int
    content: bytes
    number: int
    pid: int


def frame(kind: int, data: bytes = b"", number: int = 0) -> bytes:
    return HEADER.pack(len(data), kind, number, os.getpid()) + data


def pack(kind: int, content: Any, number: int = 0) -> bytes:
    return frame(kind, pickle.dumps(content, 5), number)


def progress(message: str, made: float, number: int) -> bytes:
    """Pack progress of a call that was made at this monotonic time, which is the same in all processes."""
    return frame(PROGRESS, _TIME.pack(made) + message.encode(errors="replace"), number)


def read_progress(content: bytes) -> tuple[float, str | None]:
    """Return when progress was made, at the latest now, and its message."""
    now = time.monotonic()
    if len(content) < _TIME.size:
        return now, None
    made = _TIME.unpack_from(content)[0]
    return min(made, now) if made == made else now, content[_TIME.size :].decode(errors="replace") or None  # noqa: PLR0124 - NaN


def new_number() -> int:
    """Return a random number for a request."""
    return int.from_bytes(os.urandom(8), "little")


def unpickle(content: bytes, load: Callable[[bytes], Any] = pickle.loads) -> Any:
    """Load a pickle. Whatever its content raises, an exit or an interrupt included, becomes ``Unloadable``."""
    try:
        return load(content)
    except KeyboardInterrupt:
        try:
            load(content)  # raises again if the content raised it, but not for Ctrl-C
        except BaseException as error:
            raise Unloadable(name_of(error)) from None
        raise
    except BaseException as error:
        raise Unloadable(name_of(error)) from None


def name_of(error: BaseException) -> str:
    """Return an exception's type and text; the type alone if the text is empty or cannot be read."""
    name = type(error).__name__
    try:
        text = str(error)
    except BaseException:
        return name
    return f"{name}: {text}" if text else name


def death(status: int) -> bytes:
    """Pack the last frame of a stream: the exit status, or the negative number of the signal."""
    return _DEATH.pack(4, DEATH, 0, os.getpid(), status)


def death_of(rest: bytes | bytearray) -> int | None:
    """Return the status at the end of a stream; None if the supervisor is gone as well."""
    if len(rest) < _DEATH.size:
        return None
    length, kind, _, _, status = _DEATH.unpack_from(rest, len(rest) - _DEATH.size)
    return int(status) if (length, kind) == (4, DEATH) else None


def pack_call(
    head: tuple[Any, ...], args: tuple[Any, ...], kwargs: Mapping[str, Any], names: tuple[str, ...], number: int = 0
) -> bytes:
    """Pack a call as one frame. Raises ``Unsendable`` with the name of the argument that cannot be sent."""
    try:
        request = pack(CALL, (*head, args, kwargs), number)
    except Exception as error:
        raise Unsendable(_blame(args, kwargs, names) or f"the call cannot be pickled: {error}") from error
    if len(request) > LIMIT:
        raise Unsendable(f"{_largest(args, kwargs, names)}, more than the {megabytes(LIMIT)} that can be sent")
    return request


def _named(args: tuple[Any, ...], kwargs: Mapping[str, Any], names: tuple[str, ...]) -> list[tuple[str, Any]]:
    given = [(names[i] if i < len(names) else f"number {i + 1}", value) for i, value in enumerate(args)]
    return given + list(kwargs.items())


def _blame(args: tuple[Any, ...], kwargs: Mapping[str, Any], names: tuple[str, ...]) -> str | None:
    for name, value in _named(args, kwargs, names):
        try:
            pickle.dumps(value, 5)
        except Exception as error:
            return f"argument {name} ({type(value).__qualname__}) cannot be pickled: {error}"
    return None


def _largest(args: tuple[Any, ...], kwargs: Mapping[str, Any], names: tuple[str, ...]) -> str:
    size, name = max((len(pickle.dumps(value, 5)), name) for name, value in _named(args, kwargs, names))
    return f"argument {name} has {megabytes(size)}"


def megabytes(size: int) -> str:
    return f"{size / 1e6:.0f} MB"
