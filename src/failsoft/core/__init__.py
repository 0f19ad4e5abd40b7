"""Decisions as pure functions: no clock, no randomness, no I/O, no third-party module.

All decisions of failsoft are here, and can be tested without running a tool. Imports nothing else of failsoft. Import
contracts in pyproject.toml keep it pure and its packages in layers; ``tests/core`` mirrors it.

Rules
-----
- This file joins two layers: an ``Outcome`` (``model``) that was made without an explanation gets it from ``explain``,
  which is above it. Python runs this file before any module of the package, so this works for every outcome, even one
  from a pickle.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from failsoft.core.model.outcome import Outcome

if TYPE_CHECKING:
    from failsoft.core.model.explanation import Explanation


def _explain(outcome: Outcome[Any]) -> Explanation:
    from failsoft.core.explain.explanation import explain  # start-up: most outcomes are never explained

    return explain(outcome)


Outcome._explain_bare = staticmethod(_explain)
