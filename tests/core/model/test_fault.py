"""The repr and the pickle of a fault."""

from __future__ import annotations

import pickle

from failsoft import Code, classify
from failsoft.core.model.builtin_faults import circuit_open

SECRET = "sk-abcdefghijklmnopqrstuvwx1234"


def test_a_fault_shows_what_it_knows_but_not_the_words_of_its_cause() -> None:
    fault = classify(ConnectionError(f"api_key={SECRET} was refused"))
    assert isinstance(fault.cause, ConnectionError)
    for shown in (repr(fault), str(fault), f"{fault}", str(fault.to_dict())):
        assert SECRET not in shown
        assert "ConnectionError" in shown
        assert fault.rule in shown
    assert repr(circuit_open("search")).endswith("cause=None)")


def test_a_fault_is_pickled_without_its_cause() -> None:
    fault = classify(ConnectionError("refused"))
    copy = pickle.loads(pickle.dumps(fault))
    assert copy == fault._replace(cause=None)
    assert copy.code is Code.UNAVAILABLE
