"""Evidence against "nothing happened"."""

from __future__ import annotations

from typing import Any

import pytest

from failsoft import classify


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
