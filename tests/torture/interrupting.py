"""Interrupts at chosen moments."""

from __future__ import annotations

import dis
import itertools
import sys
from pathlib import Path
from types import FrameType
from typing import Any

import failsoft

SOURCES = str(Path(failsoft.__file__).parent)

# Where CPython looks whether a signal has come: after these
_LOOKS = {"CALL", "CALL_FUNCTION_EX", "CALL_KW", "RESUME"}


_moments_of: dict[Any, set[int]] = {}


class At:
    """Interrupts the n-th moment at which a signal can be handled, in code of files whose names have one of the parts."""

    def __init__(self, number: int, *parts: str) -> None:
        self.left = number
        self.parts = parts or (SOURCES, "/threading.py")
        self.where = ""

    def __call__(self, frame: FrameType, event: str, arg: Any) -> Any:
        if not any(part in frame.f_code.co_filename for part in self.parts):
            return None
        frame.f_trace_opcodes = True
        frame.f_trace_lines = False
        if event == "opcode" and frame.f_lasti in self._moments(frame.f_code):
            self.left -= 1
            if self.left == 0:
                self.where = f"{frame.f_code.co_filename}:{frame.f_lineno}"
                raise KeyboardInterrupt
        return self

    def rest(self) -> At | None:
        """A tracer of the same code that interrupts nothing, to be set between two interrupts.

        On Python 3.13 the first run that is traced after one that was not skips moments. Python 3.12.1 crashes if one tracer
        of opcodes follows another, and skips none.
        """
        return None if sys.version_info[:2] == (3, 12) else At(0, *self.parts)

    def _moments(self, code: Any) -> set[int]:
        found = _moments_of.get(code)
        if found is None:
            instructions = [*dis.get_instructions(code)]
            pairs = [*itertools.pairwise(instructions)]
            jumps = {one.argval for one in instructions if one.opname == "JUMP_BACKWARD"}
            caught = [range(entry.start, entry.end) for entry in dis._parse_exception_table(code)]  # type: ignore[attr-defined]
            found = {
                after.offset
                for one, after in pairs
                if (one.opname in _LOOKS or after.offset in jumps)
                # what is raised after one is caught as if it were raised by it
                and [one.offset in block for block in caught] == [after.offset in block for block in caught]
            }
            _moments_of[code] = found
        return found


def is_in_finaliser(frame: FrameType | None) -> bool:
    """True in ``__del__``, in callbacks of weak references and where CPython reports their errors: it goes on from there."""
    while frame is not None:
        if frame.f_code.co_name in ("__del__", "_remove", "unraisable_hook"):
            return True
        frame = frame.f_back
    return False


def is_lost_by_with(frame: FrameType | None) -> bool:
    """True where Python 3.14 leaves what ``with`` has just entered (github.com/python/cpython/issues/148874)."""
    if sys.version_info[:2] != (3, 14) or frame is None:
        return False
    return dis.opname[frame.f_code.co_code[frame.f_lasti - 2]] == "LOAD_SPECIAL"
