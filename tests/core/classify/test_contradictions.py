"""Evidence against "nothing happened"."""

from __future__ import annotations

import re
from typing import Any

import pytest

from failsoft import classify
from failsoft.core.classify.contradictions import doubts_text, says_done_elsewhere
from failsoft.core.classify.tables.acted import _LANGUAGES, ELSEWHERE_HINTS


class Answered(Exception):
    """A service has answered with a status and a body."""

    def __init__(self, status: int, body: Any) -> None:
        super().__init__("no")
        self.status_code = status
        self.body = body


@pytest.mark.parametrize("state", ["succeeded", "Captured", "COMPLETED", "paid", "success"])
@pytest.mark.parametrize("status", [400, 402, 409, 429])
def test_a_success_in_the_body_contradicts_a_refusal(status: int, state: str) -> None:
    fault = classify(Answered(status, {"status": state}))
    assert (fault.effect, fault.source) == ("none", "disputed")


@pytest.mark.parametrize("state", ["failed", "requires_payment_method", "deleted", "error", "pending"])
def test_other_statuses_in_the_body_do_not_contradict_a_refusal(state: str) -> None:
    assert classify(Answered(400, {"status": state})).source == "remote"


@pytest.mark.parametrize(("status", "source"), [(507, "disputed"), (522, "disputed"), (503, "remote"), (521, "remote")])
def test_a_status_that_can_come_after_the_request_was_sent_on_is_not_believed(status: int, source: str) -> None:
    assert classify(Answered(status, {})).source == source


def test_a_pattern_of_another_language_needs_one_of_the_hints() -> None:
    words = [word for *_, but in _LANGUAGES for word in re.findall(r"\w{2,}", but.replace(r"\b", " "))]
    assert [word for word in words if word.isascii() and word not in ELSEWHERE_HINTS] == []
    assert says_done_elsewhere("abgebucht, aber der beleg fehlt")
    assert doubts_text("abgebucht, aber der beleg fehlt", "refused")
    assert doubts_text("pagamento effettuato, però 401", "refused")
