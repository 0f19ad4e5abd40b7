"""The base of everything that failsoft raises, and the errors that are the caller's to mend.

A failed call's exceptions (``CallFailed`` and kin) carry an ``Outcome`` and are defined beside it in
``core.model.outcome``. Users import all of them from ``failsoft.errors``, which is the module that pickles and
tracebacks name.
"""

from __future__ import annotations


class FailsoftError(Exception):
    """Everything that failsoft raises of its own accord: ``except FailsoftError`` catches it all."""

    __module__ = "failsoft.errors"


class ManifestError(FailsoftError):
    """A manifest, a plan or an option is wrong. ``problems`` has them all, each ``place: field: what, what instead``."""

    __module__ = "failsoft.errors"

    def __init__(self, *problems: str) -> None:
        super().__init__("\n".join(problems))
        self.problems = problems


class TurnError(FailsoftError):
    """A turn was used in a way that cannot work: after its end, from another event loop, with a cycle in it."""

    __module__ = "failsoft.errors"
