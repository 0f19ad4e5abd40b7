from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from failsoft.config.manifest.scalars import join_surrogates, resolve, resolve_key


@pytest.mark.parametrize(
    ("written", "value"),
    [
        ("0", 0),
        ("-3", -3),
        ("+3", 3),
        ("2.0", 2.0),
        ("2.", 2.0),
        (".5", 0.5),
        ("1e3", 1000.0),
        ("1.5E-3", 0.0015),
        ("true", True),
        ("False", False),
        ("null", None),
        ("~", None),
        ("30s", "30s"),
        ("y", "y"),
        ("n", "n"),
        ("nothing", "nothing"),
        ("ErrorStatusCode.Unavailable", "ErrorStatusCode.Unavailable"),
        ("a:b", "a:b"),
        ("1.2.3", "1.2.3"),
        ("-", "-"),
    ],
)
def test_a_word_means_what_json_and_yaml_agree_on(written, value):
    read = resolve(written)
    assert read == value
    assert type(read) is type(value)


@pytest.mark.parametrize(
    ("written", "advice"),
    [
        ("no", 'write true or false, or "no" for the text'),
        ("Yes", 'write true or false, or "Yes" for the text'),
        ("ON", "write true or false"),
        ("off", "write true or false"),
        ("1:30", 'write "1m30s" for a duration, "1:30" for the text'),
        ("1:30:00.5", 'write "1m30s" for a duration'),
        ("010", "write a decimal number"),
        ("0o17", "write a decimal number"),
        ("0x1F", "write a decimal number"),
        ("0b101", "write a decimal number"),
        ("1_000", "write a decimal number"),
        ("2025-11-05", 'a date to some readers: write "2025-11-05"'),
        ("2025-11-05 10:30:45", "a date to some readers"),
        (".nan", "not a finite number"),
        ("NaN", "not a finite number"),
        ("-.INF", "not a finite number"),
        ("Infinity", "not a finite number"),
        ("1e999", "not a finite number"),
        ("", "has no value: write one"),
        ("=", 'write "="'),
        ("9" * 301, "too long for a number: put it in quotes"),
    ],
)
def test_ambiguous_scalars_are_rejected_with_advice(written, advice):
    with pytest.raises(ValueError, match=advice):
        resolve(written)


def test_keys_are_text():
    assert resolve_key("timeout") == "timeout"
    assert resolve_key("75") == "75"
    for written, advice in (
        ("true", 'put the key in quotes, "true"'),
        ("null", "put the key in quotes"),
        ("on", 'or "on" for the text'),
        ("<<", "write its keys out"),
        ("", "a key is missing"),
        ("1:30", "for the text"),
    ):
        with pytest.raises(ValueError, match=advice):
            resolve_key(written)


def test_json_writes_large_characters_in_halves():
    assert join_surrogates("\ud83d\ude00!") == "😀!"
    with pytest.raises(ValueError, match="half of a surrogate pair"):
        join_surrogates("\ud83d!")


@given(st.integers() | st.floats(allow_nan=False, allow_infinity=False))
def test_every_number_as_json_writes_it(number):
    read = resolve(repr(number))
    assert read == number
    assert type(read) is type(number)


@given(st.text(max_size=12))
def test_any_scalar_is_read_or_rejected(word):
    try:
        read = resolve(word)
    except ValueError:
        return
    assert not (isinstance(read, float) and not math.isfinite(read))
    assert read is None or isinstance(read, str | int | float)
