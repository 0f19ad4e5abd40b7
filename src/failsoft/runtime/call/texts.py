"""Texts for people: explanations of outcomes, and the message of a turn."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from failsoft.core.effects.tool_effect import UNKNOWN, KnownEffect
from failsoft.runtime.call.user_text import Catalogue

if TYPE_CHECKING:
    from failsoft.analysis.turn_report import TurnReport
    from failsoft.core.model.explanation import Explanation
    from failsoft.core.model.outcome import Outcome
    from failsoft.runtime.call.model import Phraser
    from failsoft.runtime.tools.tool import Tool


class Explainer:
    """Makes the texts of outcomes and turns, from the catalogue and the tools' options."""

    def __init__(self, tools: Mapping[str, Tool], phraser: Phraser | None, catalogue: Catalogue) -> None:
        self.phraser = phraser
        self._tools = tools
        self._catalogue = catalogue

    def explain(
        self, outcome: Outcome[Any], language: str | None = None, known: KnownEffect | None = None
    ) -> Explanation:
        """Explain an outcome in three texts.

        ``known``: the effect of its tool, if it differs from the registered tool's.
        """
        from failsoft.core.explain.explanation import explain  # most outcomes are never explained

        if known is None:
            tool = self._tools.get(outcome.tool)
            known = UNKNOWN if tool is None else tool.known_effect
        return explain(outcome, self._catalogue.texts(language), known=known)

    def compose_turn_message(self, report: TurnReport) -> str:
        """Describe a turn in a few sentences, for the user."""
        from failsoft.core.explain.turn_message import compose  # few messages of turns are read

        writes = {tool.id for tool in self._tools.values() if tool.known_effect.warns_user}
        return compose(report.outcomes, self._catalogue.texts(), writes=writes)
