"""Rates as users write them."""

from __future__ import annotations

import pickle

import pytest

from failsoft import ManifestError, Runtime
from failsoft.core.model.rates import read_rate


@pytest.mark.parametrize(
    ("written", "calls", "seconds"), [("100/1m", 100, 60.0), ("1/500ms", 1, 0.5), ("5/1m30s", 5, 90.0)]
)
def test_a_rate_has_calls_and_a_time(written: str, calls: int, seconds: float) -> None:
    rate = pickle.loads(pickle.dumps(read_rate(written)))
    assert (rate, rate.calls, rate.seconds) == (written, calls, seconds)
    assert read_rate(rate) is rate


@pytest.mark.parametrize(
    ("wrong", "text"),
    [
        ("100", "rate: '100' has no time: write \"100/1m\""),
        (100, 'rate: 100 has no time: write "100/1m"'),
        ("100/0s", "rate: '100/0s' is not a rate: '0s' is not longer than zero"),
        ("100/1", "rate: '100/1' is not a rate: '1' has no unit"),
        ("0/1s", "rate: '0/1s' would allow no call at all"),
        ("fast", "rate: 'fast' is not a rate: write calls and a time, like \"100/1m\""),
        ("-1/1s", "rate: '-1/1s' is not a rate"),
        ("1.5/1s", "rate: '1.5/1s' is not a rate"),
        (True, "rate: True is not a rate"),
        (["5/1s"], "rate: ['5/1s'] is not a rate"),
    ],
)
def test_a_wrong_rate_says_what_would_be_right(wrong: object, text: str) -> None:
    async def search() -> None: ...

    with pytest.raises(ManifestError) as told:
        Runtime().add(search, rate=wrong)  # type: ignore[arg-type]
    assert text in str(told.value)
    with pytest.raises(ManifestError, match="rate"):
        Runtime({"tools": {"search": {"rate": wrong}}})
