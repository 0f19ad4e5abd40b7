"""``Verified``: the answer of a ``verify`` function, which finds out what became of a write whose answer was lost."""

from __future__ import annotations

from typing import Any, Final, Literal

from failsoft.core.startup.named_tuple import NamedTuple

VerifyAnswer = Literal["happened", "none", "unknown"]


class _NoValue:
    """Marks a value that is not known. None could be one."""

    def __repr__(self) -> str:
        return "NO_VALUE"


NO_VALUE: Final = _NoValue()


class Verified(NamedTuple):
    """The answer about a write. Make it with ``happened``, ``none`` or ``unknown``."""

    answer: VerifyAnswer
    value: Any = NO_VALUE  # the value that the tool would have returned, after "happened"
    reason: str = ""  # why the answer is "unknown"

    @classmethod
    def happened(cls, value: Any = NO_VALUE) -> Verified:
        """The write took effect. ``value`` is what its tool would have returned; leave it out if it is not known."""
        return cls("happened", value)

    @classmethod
    def none(cls) -> Verified:
        """The write was not done, and the lost request can no longer do it. It may be done again."""
        return cls("none")

    @classmethod
    def unknown(cls, reason: str = "") -> Verified:
        """It could not be found out. The write is not repeated."""
        return cls("unknown", NO_VALUE, reason)

    @property
    def value_known(self) -> bool:
        """True if ``happened`` was given a value."""
        return self.value is not NO_VALUE
