"""The base class of failsoft's errors, and the errors that a caller must fix.

The exceptions of a failed call (``CallFailed`` and its subclasses) carry an ``Outcome`` and are defined beside it in
``core.model.outcome``. Users import all of them from ``failsoft.errors``; pickles and tracebacks name that module.
"""

from __future__ import annotations


class FailsoftError(Exception):
    """The base class of all errors that failsoft itself raises."""

    __module__ = "failsoft.errors"


class ManifestError(FailsoftError):
    """A manifest, a plan or an option is wrong. ``problems`` lists them, each as ``place: field: message``."""

    __module__ = "failsoft.errors"

    def __init__(self, *problems: str) -> None:
        super().__init__("\n".join(problems))
        self.problems = problems


class LedgerError(FailsoftError):
    """An entry of the effect ledger cannot be used in this way. ``problem`` is the reason in one word, for programs."""

    __module__ = "failsoft.errors"

    def __init__(self, message: str, problem: str = "") -> None:
        super().__init__(message, problem)
        self.problem = problem

    def __str__(self) -> str:
        return str(self.args[0])


class TurnError(FailsoftError):
    """A turn was used wrongly: after its end, from another event loop, or with a cycle."""

    __module__ = "failsoft.errors"
