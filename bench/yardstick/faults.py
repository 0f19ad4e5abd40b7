"""The faults: what goes wrong, for how many attempts, and whether the tool acted before.

A timeout before the effect and an answer lost after it raise the same error: an executor cannot tell them apart by
looking at it.
"""

from __future__ import annotations

import errno
from collections.abc import Callable, Mapping
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass
from typing import Any

from failsoft.testing import HttpError

LATENCY = 0.1  # virtual seconds of every attempt
TIMEOUT = 5.0  # until the tool's own client gives up on an answer
HANG = 600.0  # until a hanging connection is reset
RETRY_AFTER = 2.0


@dataclass(frozen=True)
class FaultKind:
    """One kind of fault, as it meets one call."""

    name: str
    words: str
    attempts: int | None  # so many attempts meet it; None: all
    error: Callable[[], BaseException] | None  # None: the answer arrives, but damaged
    acts: bool = False  # the tool acts before the error
    says_nothing: bool = False  # the error does not tell whether the tool acted
    seconds: float = LATENCY

    @property
    def needs_repeat_or_verify(self) -> bool:
        """True if a write that meets it stays undone unless it is repeated on suspicion or verified."""
        return self.says_nothing and not self.acts


def _timed_out() -> TimeoutError:
    return TimeoutError("The read operation timed out")


def _refused() -> ConnectionRefusedError:
    return ConnectionRefusedError(errno.ECONNREFUSED, "Connection refused")


def _reset() -> ConnectionResetError:
    return ConnectionResetError(errno.ECONNRESET, "Connection reset by peer")


def _crashed() -> BrokenProcessPool:
    return BrokenProcessPool("A process in the process pool was terminated abruptly while the future was running.")


FAULTS: dict[str, FaultKind] = {
    kind.name: kind
    for kind in (
        FaultKind("503", "503 Service Unavailable, once", 1, lambda: HttpError(503)),
        FaultKind("503x2", "503 Service Unavailable, twice", 2, lambda: HttpError(503)),
        FaultKind("429", "429 Too Many Requests with Retry-After: 2, once", 1, lambda: HttpError(429, RETRY_AFTER)),
        FaultKind("refused", "connection refused, once", 1, _refused),
        FaultKind("timeout", "timeout before the effect, once", 1, _timed_out, says_nothing=True, seconds=TIMEOUT),
        FaultKind("lost", "the tool acts, its answer is lost, once", 1, _timed_out, acts=True, says_nothing=True, seconds=TIMEOUT),
        FaultKind("hang", "no answer and no effect for ten minutes, once", 1, _reset, says_nothing=True, seconds=HANG),
        FaultKind("crash-before", "the tool's process dies before the effect, once", 1, _crashed, says_nothing=True),
        FaultKind("crash-after", "the tool's process dies after the effect, once", 1, _crashed, acts=True, says_nothing=True),
        FaultKind("corrupted", "a damaged value arrives, without an error, once", 1, None, acts=True),
        FaultKind("permanent", "403 Forbidden, always", None, lambda: HttpError(403)),
    )
}  # fmt: skip

MARKED = dict.fromkeys(("503", "503x2", "429", "refused", "timeout", "lost"), 1.0)  # in equal shares
OTHERS: dict[str, dict[str, float]] = {
    "hang": {"hang": 1.0},
    "process crash": {"crash-before": 1.0, "crash-after": 1.0},
    "corrupted value": {"corrupted": 1.0},
    "permanent": {"permanent": 1.0},
}


def read_mix(text: str) -> dict[str, float]:
    """Read ``503=2,lost=1``; a name alone counts once."""
    mix: dict[str, float] = {}
    for part in filter(None, (part.strip() for part in text.split(","))):
        name, _, weight = part.partition("=")
        if name not in FAULTS:
            raise ValueError(f"there is no fault {name!r}: name some of {', '.join(FAULTS)}")
        try:
            share = float(weight or 1)
        except ValueError:
            raise ValueError(f"{name}: {weight!r} is not a weight: write {name}=2") from None
        if not 0 <= share < float("inf"):
            raise ValueError(f"{name}: {weight!r} is not a weight: write {name}=2")
        mix[name] = share
    if not sum(mix.values()) > 0:
        raise ValueError("a mix needs at least one fault with a weight, like 503=1,lost=1")
    return mix


def damage(value: Any) -> Any:
    """Return a damaged form of an answer: half of a text, numbers that are off, the first of several fields lost."""
    if isinstance(value, str):
        return value[: len(value) // 2] + "\ufffd"
    if isinstance(value, bool) or value is None:
        return "\ufffd"
    if isinstance(value, int | float):
        return value * 10 + 1
    if isinstance(value, Mapping):
        return {key: damage(item) for key, item in value.items()} or {"\ufffd": None}
    if isinstance(value, list | tuple):
        return [damage(item) for item in value] or ["\ufffd"]
    return "\ufffd"
