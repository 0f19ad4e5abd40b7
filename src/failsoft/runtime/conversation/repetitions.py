"""The latest successful calls of all threads, to notice that a thread makes no progress.

Only calls in a thread come here. ``core.conversation.repetition`` decides.

Rules
-----
- Only fingerprints and times are kept, no values. At most ``MOST_CALLS`` calls of all threads are remembered; the
  oldest is forgotten first.
- Tools marked ``polling`` are not counted, nor are calls inside other calls.
- There is no lock: each step is one operation on a dict. Calls that end at the same time may be counted as one.
"""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING, Any

from failsoft.core.conversation.repetition import (
    NO_PROGRESS_AFTER,
    Repeats,
    count_repeats,
    fingerprint,
    is_refused,
    note_result,
)

if TYPE_CHECKING:
    from failsoft.runtime.conversation.ports import NamedCall
    from failsoft.runtime.conversation.thread_store import Key

MOST_CALLS = 4096

_Call = tuple[str | None, str, str, int]  # tenant, thread, tool, fingerprint of the arguments


class Repetitions:
    """The latest successes, by call."""

    def __init__(self) -> None:
        self._calls: dict[_Call, Repeats] = {}

    def note(self, key: Key, made: NamedCall, value: Any, now: float) -> tuple[int, bool]:
        """Note a success.

        Return how often the result has been the same if that is no progress, and whether to report it.
        """
        options = made.tool.options
        call = None if options.polling else _identify(key, made)
        if call is None:
            return 0, False
        most = NO_PROGRESS_AFTER if options.max_repeats is None else options.max_repeats
        repeats = note_result(self._calls.pop(call, None), fingerprint(made.tool.own_value(value)), now, most)
        if repeats is None:
            return 0, False
        count = len(repeats.times)
        news = count >= NO_PROGRESS_AFTER and not repeats.reported
        self._calls[call] = repeats._replace(reported=True) if news else repeats
        if len(self._calls) > MOST_CALLS:
            with suppress(StopIteration, RuntimeError):  # another OS thread has changed it
                self._calls.pop(next(iter(self._calls)), None)
        return (count if count >= NO_PROGRESS_AFTER else 0), news

    def count_if_refused(self, key: Key, made: NamedCall, now: float) -> int:
        """Return how often this call has had the same result if ``max_repeats`` refuses it now, else 0."""
        most = made.tool.options.max_repeats
        call = None if most is None or not self._calls else _identify(key, made)
        repeats = None if call is None else self._calls.get(call)
        return count_repeats(repeats, now) if is_refused(repeats, most, now) else 0

    def forget(self, key: Key | None = None, tool: str | None = None) -> None:
        """Forget the calls of a thread, of a tool, or of a tool in a thread."""
        for call in list(self._calls):
            if (key is None or call[:2] == key) and (tool is None or call[2] == tool):
                self._calls.pop(call, None)


def _identify(key: Key, made: NamedCall) -> _Call | None:
    kwargs = made.kwargs if type(made.kwargs) is dict else dict(made.kwargs)
    same = fingerprint((made.args, kwargs) if made.args else kwargs)
    return None if same is None else (*key, made.tool.id, same)
