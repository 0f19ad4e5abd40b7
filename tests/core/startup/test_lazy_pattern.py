"""A lazy pattern does what the compiled one does."""

from __future__ import annotations

import re

import pytest

from failsoft.core.startup.lazy_pattern import lazy_pattern

TEXT = "a1 B2"


@pytest.mark.parametrize("flags", [0, re.IGNORECASE])
def test_it_has_the_methods_and_attributes_of_the_pattern(flags):
    lazy, real = lazy_pattern(r"([a-z])(\d)", flags), re.compile(r"([a-z])(\d)", flags)
    for _ in range(2):
        assert lazy.findall(TEXT) == real.findall(TEXT)
        assert lazy.sub("-", TEXT) == real.sub("-", TEXT)
        assert [found.span() for found in lazy.finditer(TEXT)] == [found.span() for found in real.finditer(TEXT)]
        assert (lazy.pattern, lazy.flags, lazy.groups) == (real.pattern, real.flags, real.groups)


def test_it_is_compiled_on_first_use(monkeypatch):
    compiled = []
    real = re.compile
    monkeypatch.setattr(re, "compile", lambda *args: compiled.append(args[0]) or real(*args))
    pattern = lazy_pattern("b+")
    assert compiled == []
    assert pattern.search("abb")
    assert pattern.search("abb")
    assert compiled == ["b+"]
