from __future__ import annotations

from itertools import pairwise

from failsoft.stores.ports import key_of


def test_different_parts_give_different_keys():
    parts = [("a", "b"), ("a/b",), ("a", None), ("a", "%"), ("a", "None"), (None,), ("", "")]
    keys = [key_of(*each) for each in parts]
    assert len(set(keys)) == len(keys)


def test_a_scope_is_the_first_parts():
    assert key_of("acme", "chat 1", "search").startswith(key_of("acme", "chat 1") + "/")
    assert not key_of("acme2", "x").startswith(key_of("acme") + "/")
    assert all(one != other for one, other in pairwise([key_of("ü"), key_of("u"), key_of("Ü")]))
