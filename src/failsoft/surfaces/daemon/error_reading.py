"""Classify the errors that remote executors report.

Only the sanitised text of an error is kept.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable
from typing import Final

from failsoft.core.classify import classify_failure
from failsoft.core.effects.call_effect import effect_of_call
from failsoft.core.model.fault import Fault
from failsoft.core.model.options import ToolOptions
from failsoft.surfaces.daemon.messages import ErrorDetails, ReportedError

MOST_KNOWN: Final = 512  # classified errors that are remembered
LONGEST_KNOWN: Final = 1_000  # characters of one of them

_Key = tuple[str, str | None, int | None, str | int | None]


class RemoteError(Exception):
    """An error of a remote executor, with the attributes that ``classify`` reads."""


def read_error(error: str | ErrorDetails) -> BaseException | str:
    """Return a reported error in the form that ``classify`` takes."""
    if isinstance(error, str):
        return error
    made = RemoteError(error.message if error.type is None else f"{error.type}: {error.message}")
    if error.status is not None:
        made.status_code = error.status  # type: ignore[attr-defined]
    if error.code is not None:
        made.code = error.code  # type: ignore[attr-defined]
    if error.headers:
        made.headers = error.headers  # type: ignore[attr-defined]
    if error.body is not None:
        made.body = error.body  # type: ignore[attr-defined]
    if error.retry_after is not None:
        made.retry_after = error.retry_after  # type: ignore[attr-defined]
    return made


def _key(error: str | ErrorDetails) -> _Key | None:
    """Return the values that the classification of an error depends on; None if they are too many or too long."""
    if isinstance(error, str) or error.headers or error.body is not None or error.retry_after is not None:
        return None
    if len(error.message) + len(error.type or "") + len(str(error.code)) > LONGEST_KNOWN:
        return None
    return error.message, error.type, error.status, error.code


class ErrorReader:
    """Classifies reported errors. Caches recent results, because a tool that is down repeats the same error."""

    def __init__(self, wall: Callable[[], float]) -> None:
        self._wall = wall
        self._known: OrderedDict[_Key, Fault] = OrderedDict()

    def classify(self, said: ReportedError, options: ToolOptions) -> Fault:
        """Return the fault of a reported error, with the effect that the call had."""
        key = None if options.classification else _key(said.error)
        fault = None if key is None else self._known.get(key)
        if key is not None and fault is not None:
            self._known.move_to_end(key)
        else:
            error = read_error(said.error)
            fault = classify_failure(error, overrides=options.classification, now=self._wall())
            if key is not None and fault.retry_after is None and fault.message == str(error):  # nothing was masked
                self._known[key] = fault._replace(cause=None)
                if len(self._known) > MOST_KNOWN:
                    self._known.popitem(last=False)
        many = options.requests == "many"
        effect = effect_of_call(fault, entered=said.entered, acted_inside=said.still_running, many=many)
        return fault._replace(effect=effect, cause=None)
