"""The errors that failsoft raises have one home for users, wherever they are defined."""

from __future__ import annotations

import pickle
from typing import Any

import pytest

import failsoft
from failsoft import Outcome, errors


@pytest.mark.parametrize("name", errors.__all__)
def test_users_meet_one_class_under_the_name_of_the_public_module(name: str) -> None:
    kind = getattr(errors, name)
    assert kind is getattr(failsoft, name)
    assert (kind.__module__, kind.__qualname__) == ("failsoft.errors", name)
    assert issubclass(kind, errors.FailsoftError)
    assert pickle.loads(pickle.dumps(kind)) is kind


def test_an_error_in_a_pickle_comes_back_with_what_it_carries() -> None:
    outcome: Outcome[Any] = Outcome("a", "pay", "failed")
    failed = pickle.loads(pickle.dumps(errors.CircuitOpen(outcome)))
    assert (type(failed), failed.outcome) == (errors.CircuitOpen, outcome)
    assert pickle.loads(pickle.dumps(errors.ManifestError("a: b", "c: d"))).problems == ("a: b", "c: d")
