"""Write the event stream to a file as JSON lines.

Rules
-----
- A separate thread appends events in batches: within about a second, on ``flush``, and when the program ends
  (``observe.subscriptions``).
- The file is opened for every batch. If it was moved away, the next batch creates a new one.
- A file that has other content than events is left as it is.
- A problem is logged once, in one line, when the runtime is made or when it occurs. Calls continue.
"""

from __future__ import annotations

import errno
import logging
import os
import stat
from collections.abc import Iterator, Sequence
from functools import partial
from itertools import count
from json import JSONEncoder
from json.encoder import encode_basestring as quote
from pathlib import Path

from failsoft.observe.events import Event
from failsoft.observe.exception_text import exception_text
from failsoft.observe.recorder import Recorder
from failsoft.observe.subscriptions import add_sink, flat_records
from failsoft.observe.success_runs import Run, iso, name_call

log = logging.getLogger("failsoft")
FOREIGN = "it has other content than events and is left as it is: name another file"
_encode = JSONEncoder(ensure_ascii=False, check_circular=False).encode


def holds_other_data(path: Path) -> bool:
    """True for a file whose first line is not an event: appending events would spoil it."""
    try:
        if not stat.S_ISREG(path.stat().st_mode):
            return False
        with path.open("rb") as file:
            lines = iter(partial(file.readline, 1_000_000), b"")
            first = next((line for line in lines if line.strip()), b"")  # "echo > file" leaves only a line end
    except OSError:
        return False  # there is none yet, or it cannot be read
    return bool(first) and b'"event_type"' not in first


class TraceFile:
    """Appends every event as one line."""

    def __init__(self, path: str | Path) -> None:
        self._name = path
        self._path = Path(path).absolute()  # the program may change its working directory
        self._complained = False
        self._foreign = holds_other_data(self._path)
        if self._foreign:
            self.complain(FOREIGN)
            return
        try:
            os.close(os.open(self._path, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_NONBLOCK, 0o666))
        except OSError as error:
            if error.errno != errno.ENXIO:  # a named pipe without a reader yet
                self.complain(error)

    def write(self, batch: Sequence[Event], /) -> None:
        """Append a batch."""
        if self._foreign:
            return
        lines: list[str] = []
        for stretch in flat_records(batch):
            if isinstance(stretch, Run):
                lines += _lines(stretch)
            else:
                lines += [f"{_encode(record)}\n" for record in stretch]
        # backslashreplace writes a lone surrogate as a JSON escape.
        with self._path.open("a", encoding="utf-8", errors="backslashreplace") as file:
            file.write("".join(lines))

    def close(self) -> None:
        """Do nothing: no file is open between batches."""

    def complain(self, error: BaseException | str) -> None:
        """Log the first problem."""
        if self._complained:
            return
        self._complained = True
        if isinstance(error, str):
            why = error
        else:
            why = self._explain(error) if isinstance(error, OSError) else exception_text(error)
        log.warning("trace: %s cannot be written (%s); calls go on without it", self._name, why)

    def _explain(self, error: OSError) -> str:
        if isinstance(error, IsADirectoryError):
            return "it is a directory: name a file in it"
        if isinstance(error, FileNotFoundError | NotADirectoryError):
            return f"there is no directory {self._path.parent}: make it, or name another place"
        if isinstance(error, PermissionError):
            return "your user may not write there: change that, or name another place"
        return error.strerror or str(error)


def write_to(trace: Recorder, path: str | Path) -> None:
    """Append the stream to a file."""
    file = TraceFile(path)
    add_sink(trace, file, name=f"trace file {os.fspath(path)!r}", complain=file.complain)


def _lines(run: Run) -> Iterator[str]:
    """Format a run of plain successes; its lines differ in few places."""
    turn = "null" if run.turn_id is None else quote(run.turn_id)
    second, stamp = -1, ""
    for seq, tool, call, began, ended in zip(
        count(run.first), run.tools, run.calls, run.began, run.ended, strict=False
    ):
        at, micro = divmod(round((ended + run.offset) * 1_000_000), 1_000_000)
        if at != second:
            second, stamp = at, iso(at)[:-4]
        name, taken = quote(tool), round((ended - began) * 1000, 3)
        yield (
            f'{{"seq": {seq}, "event_type": "CallSucceeded", "turn_id": {turn}, '
            f'"call_id": {quote(name_call(tool, call, seq))}, "tool_id": {name}, '
            f'"timestamp": "{stamp}{micro // 1000:03}Z", '
            f'"duration_ms": {taken}, "attempts": 1, "total_ms": {taken}, "primary": {name}}}\n'
        )
