from __future__ import annotations

from failsoft.core.model.partial import Partial, better, partial


def test_a_partial_value_says_what_is_missing():
    assert partial([1], missing=["page 2"]) == Partial([1], ["page 2"])


def test_the_first_is_better_than_none():
    part = Partial([1], ["page 2"])
    assert better(None, part) is better(part, None) is part
    assert better(None, None) is None


def test_the_one_that_lacks_less_is_kept():
    less, more = Partial([1, 2], ["page 3"]), Partial([1], ["page 2", "page 3"])
    assert better(less, more) is less
    assert better(more, less) is less


def test_of_equals_the_later_one_is_kept():
    one, other = Partial([1], ["a"]), Partial([2], ["b"])
    assert better(one, other) is other
    one, other = Partial([1], 5), Partial([2], None)  # nothing to count
    assert better(one, other) is other
