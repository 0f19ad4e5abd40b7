from __future__ import annotations

import itertools

from hypothesis import given
from hypothesis import strategies as st

from failsoft.core.turn.cycles import find_cycles, format_cycle

NAMES = st.sampled_from("abcdef")


def test_a_cycle_comes_with_its_path():
    assert find_cycles({"x": ["a"], "a": ["b"], "b": ["c"], "c": ["a"]}) == [("a", "b", "c", "a")]
    assert format_cycle(("a", "b", "a")) == "a → b → a"


def test_a_long_cycle_is_shortened_to_a_line():
    assert format_cycle([*"abcdefghi", "a"]) == "a → b → c → d → e → f → g → h → i → a"
    assert format_cycle([*map(str, range(100)), "0"]) == "0 → 1 → 2 → 3 → 4 → 5 → 6 → 7 → … 91 more … → 99 → 0"


def test_a_name_that_refers_to_itself():
    assert find_cycles({"a": ["a"]}) == [("a", "a")]


def test_separate_cycles_are_all_found():
    assert find_cycles({"a": ["b"], "b": ["a"], "c": ["d"], "d": ["c"]}) == [("a", "b", "a"), ("c", "d", "c")]


def test_shared_and_unknown_names_are_no_cycle():
    assert find_cycles({"a": ["b", "c"], "b": ["d"], "c": ["d"], "d": ["nowhere"]}) == []


def test_a_long_chain_does_not_hit_the_recursion_limit():
    chain = {str(n): [str(n + 1)] for n in range(20_000)}
    assert find_cycles(chain) == []
    assert len(find_cycles({**chain, "20000": ["0"]})[0]) == 20_002


def reachable(edges, start):
    seen, todo = set(), list(edges.get(start, ()))
    while todo:
        name = todo.pop()
        if name not in seen:
            seen.add(name)
            todo += edges.get(name, ())
    return seen


@given(st.dictionaries(NAMES, st.lists(NAMES, max_size=3)))
def test_found_exactly_when_something_reaches_itself(edges):
    cycles = find_cycles(edges)
    assert bool(cycles) == any(name in reachable(edges, name) for name in edges)
    for cycle in cycles:
        assert cycle[0] == cycle[-1]
        assert all(after in edges[before] for before, after in itertools.pairwise(cycle))
