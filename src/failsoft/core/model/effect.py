"""Effects and the evidence for them, in order; and ``NothingDone``, by which a tool says that it has not acted.

``core.classify`` reads both from errors, ``core.effects.call_effect`` decides about a call.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final

from failsoft.core.model.fault import Code, Effect, Source
from failsoft.core.model.validation import read_code

_BADNESS: Final[tuple[Effect, ...]] = ("none", "unknown", "happened")
_WEAKNESS: Final[tuple[Source, ...]] = ("stated", "remote", "words", "local", "disputed")
BELIEVED: Final = frozenset({"stated", "remote"})


class NothingDone(Exception):
    """Raised by a tool that knows it has not acted: the call's effect is ``none``, on the author's word.

    ``code`` says what went wrong and so whether a retry can help. Without it the message and the exception's causes are
    classified as usual.
    """

    def __init__(self, message: str = "", code: Code | str | None = None) -> None:
        super().__init__(message)
        self.code = None if code is None else read_code(code)

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.args[0] if self.args else "", self.code), self.__dict__


def worst_effect(effects: Iterable[Effect]) -> Effect:
    """Return the effect that claims the most: happened, then unknown, then none."""
    return max(effects, key=_BADNESS.index)


def weakest_effect(sources: Iterable[Source]) -> Source:
    """Return the least reliable source."""
    return max(sources, key=_WEAKNESS.index)
