"""Effects and their evidence, in order."""

from __future__ import annotations

from typing import get_args

from failsoft.core.model.effect import weakest_effect, worst_effect
from failsoft.core.model.fault import Effect, Source


def test_the_worst_effect_and_the_weakest_source_win() -> None:
    assert worst_effect(("none", "happened", "unknown")) == "happened"
    assert weakest_effect(("stated", "remote")) == "remote"
    assert weakest_effect(("remote", "local", "words")) == "local"
    assert weakest_effect(("local", "disputed")) == "disputed"


def test_every_effect_and_every_source_has_its_place_in_the_order() -> None:
    assert worst_effect(get_args(Effect)) == "happened"
    assert weakest_effect(get_args(Source)) == "disputed"
