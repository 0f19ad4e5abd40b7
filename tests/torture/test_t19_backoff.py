"""T19: ``multiplier ** n`` overflowed at attempt 1,025; NaN, infinity and negative delays were taken. Here neither."""

from __future__ import annotations

import math
import random
from pathlib import Path

import pytest

from failsoft import ManifestError, Runtime
from failsoft.core.model.options import RetryOptions
from failsoft.core.resilience.backoff import delay

RETRIES = (*range(1, 2_000), 10_000, 10**9, 10**400)


@pytest.mark.parametrize("multiplier", [1.0, 1.5, 2.0, 10.0, 1000.0])
def test_t19_no_retry_is_too_many(multiplier: float) -> None:
    options = RetryOptions(multiplier=multiplier, jitter_percent=15)
    source = random.Random(19)
    for retry in RETRIES:
        wait = delay(options, retry, jitter=source.random())
        assert 0 <= wait <= options.max_delay * 1.15


@pytest.mark.parametrize("hint", [math.nan, math.inf, -math.inf, -1.0, 1e308])
def test_t19_no_hint_breaks_it(hint: float) -> None:
    assert math.isfinite(delay(RetryOptions(), 1, jitter=0.5, hint=hint))
    assert delay(RetryOptions(), 1, jitter=0.5, hint=hint) > 0


WRONG = {
    "initial_delay": ['"-1s"', '"nans"', '"infs"', ".nan", ".inf", "-.inf", "-1", '""', "1e999", "true"],
    "max_delay": ['"-1s"', ".nan", '"inf"'],
    "initial_delay_ms": ["-5", ".nan", ".inf", "1e999"],
    "multiplier": [".nan", ".inf", "-2", "0", '"2"'],
    "jitter_percent": ["-1", "101", ".nan"],
    "max_attempts": ["0", "-1", ".inf", "2.5"],
    "max_total_time": ['"-1s"', ".nan"],
}


@pytest.mark.parametrize(("field", "value"), [(field, value) for field in WRONG for value in WRONG[field]])
def test_t19_nonsense_is_refused_at_load_with_its_place(field: str, value: str, tmp_path: Path) -> None:
    path = tmp_path / "failsoft.yaml"
    path.write_text(f"version: 1\ntools:\n  search:\n    retry:\n      {field}: {value}\n")
    with pytest.raises(ManifestError) as refused:
        Runtime(manifest=path)
    assert f"{path.name}:5:" in str(refused.value)
    assert field in str(refused.value)


@pytest.mark.parametrize("wrong", [math.nan, math.inf, -1.0])
@pytest.mark.parametrize("field", ["initial_delay", "max_delay", "multiplier", "max_total_time"])
def test_t19_nonsense_is_rejected_in_code(field: str, wrong: float) -> None:
    async def search() -> None: ...

    with pytest.raises(ManifestError, match=field):
        Runtime().add(search, retry={field: wrong})
