from __future__ import annotations

from failsoft.core.model.partial import Partial, more_complete, partial


def test_a_partial_value_says_what_is_missing():
    assert partial([1], missing=["page 2"]) == Partial([1], ["page 2"])


def test_a_partial_result_is_better_than_none():
    part = Partial([1], ["page 2"])
    assert more_complete(None, part) is more_complete(part, None) is part
    assert more_complete(None, None) is None


def test_the_one_that_lacks_less_is_kept():
    less, more = Partial([1, 2], ["page 3"]), Partial([1], ["page 2", "page 3"])
    assert more_complete(less, more) is less
    assert more_complete(more, less) is less


def test_the_later_of_two_equally_complete_parts_is_kept():
    one, other = Partial([1], ["a"]), Partial([2], ["b"])
    assert more_complete(one, other) is other
    one, other = Partial([1], 5), Partial([2], None)  # nothing to count
    assert more_complete(one, other) is other
