from __future__ import annotations

import json
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from failsoft.config.manifest.reading import LARGEST, read


def problems(source):
    return [str(problem) for problem in read(source, name="f.yaml").problems]


def only(source):
    (problem,) = problems(source)
    return problem


def test_values_are_read_with_their_line_and_column():
    document = read("version: 1\ntools:\n  search:\n    tags: [a, 'no']\n", name="f.yaml")
    assert document.value == {"version": 1, "tools": {"search": {"tags": ["a", "no"]}}}
    assert not document.problems
    assert str(document.problem(("tools", "search", "tags", 1), "x")) == "f.yaml:4:15: tools.search.tags[1]: x"
    assert document.place(("tools", "search")) == "f.yaml:3:3"
    assert document.problem(("tools", "search", "nowhere"), "x").place == "f.yaml:4:5"


@pytest.mark.parametrize(
    ("source", "said"),
    [
        ("a: 1\nb: 2\na: 3\n", "f.yaml:3:1: a: is there twice, first in line 1: keep one"),
        ("x: {a: 1, a: {b: 2}}", "f.yaml:1:11: x.a: is there twice, first in line 1: keep one"),
        ('{"a": 1, "a": 2}', "f.yaml:1:10: a: is there twice, first in line 1: keep one"),
        (
            "a: 1:30",
            'f.yaml:1:4: a: 1:30 is a number to some readers: write "1m30s" for a duration, "1:30" for the text',
        ),
        ("a: no", 'f.yaml:1:4: a: no is true or false to some readers: write true or false, or "no" for the text'),
        ("a:", "f.yaml:1:3: a: has no value: write one, or null, {} or [] if nothing is meant"),
        ("a: &x 1", "f.yaml:1:4: a: anchors and aliases are not supported: drop it"),
        ("a: *x", "f.yaml:1:4: a: aliases are not supported: write the value out"),
        ("a: [1, *x]", "f.yaml:1:8: a[1]: aliases are not supported: write the value out"),
        ("a: !!str 3", "f.yaml:1:4: a: a tag is not needed: drop it, and quote texts"),
        ("a: !python/object:os.system {}", "f.yaml:1:4: a: a tag is not needed: drop it, and quote texts"),
        ("&x a: 1", "f.yaml:1:1: a: anchors and aliases are not supported: drop it"),
        ("<<: {a: 1}", "f.yaml:1:1: <<: << merges another mapping: write its keys out"),
        ("? [a]\n: 1", "f.yaml:1:3: a key must be a text, not a mapping, a list or an alias"),
        ("{*x : 1}", "f.yaml:1:2: a key must be a text, not a mapping, a list or an alias"),
        ("a: 1\n---\nb: 2", "f.yaml:2:1: a second document begins here: keep one to a file"),
        ("", "f.yaml:1:1: it is empty: a manifest has tools, a plan has calls"),
        ("# only a comment", "f.yaml:1:17: it is empty: a manifest has tools, a plan has calls"),
        ("a:\n\t- b", "f.yaml:2:1: a tab cannot be here: use spaces"),
        ("a: b: c", "f.yaml:1:5: no key can be here: put a text with a colon in quotes, or look at the indentation"),
        (
            "a: b\n  c: d",
            "f.yaml:2:4: no key can be here: put a text with a colon in quotes, or look at the indentation",
        ),
        ("a: [", "f.yaml:1:5: the file ends where a value should be: is something above not closed?"),
        ("a: [b\nc: d", "f.yaml:2:2: the bracket of line 1, column 4 is not closed, or a comma is missing before this"),
        ("a:\n  {b: c", "f.yaml:2:8: the brace of line 2, column 3 is not closed, or a comma is missing before this"),
        ('a: "b', "f.yaml:1:6: the quote of line 1, column 4 is not closed"),
        ("a: ]", "f.yaml:1:4: a value should be here, not ']'"),
        ("a: @b", "f.yaml:1:4: '@' cannot begin a value: put it in quotes"),
        ("a:\n  b: 1\n c: 2", "f.yaml:3:2: this line does not fit those above it: look at its indentation"),
        ("- a\nb: c", "f.yaml:2:1: this line does not fit those above it: look at its indentation"),
        (b"a: \xff", "f.yaml:1:4: is not UTF-8 from here on: save it as UTF-8"),
        ("a: 1\n".encode("utf-16"), "f.yaml:1:1: is not UTF-8 from here on: save it as UTF-8"),
        (b"a: 1\nb: \x00", r"f.yaml:2:4: the character '\x00' cannot be here"),
        ('a: "\u2028"', r"f.yaml:1:5: the character '\u2028' cannot be here: write it as an escape, in double quotes"),
        ("a: \ud800", "f.yaml:1:4: half of a surrogate pair cannot be here"),
        (r'a: "\ud800"', r"f.yaml:1:4: a: '\ud800' has half of a surrogate pair: write the whole character"),
        (r'a: "\UFFFFFFFF"', "f.yaml:1:2: cannot be read from here on"),
        ("a" * (LARGEST + 1), "f.yaml:1:1: is larger than 256 kB: split it up"),
        ("é" * (LARGEST // 2 + 1), "f.yaml:1:1: is larger than 256 kB: split it up"),
    ],
)
def test_problems_are_reported_with_their_line_and_column(source, said):
    assert only(source) == said


def test_all_recoverable_problems_are_reported_at_once():
    source = "a: no\nb: [1:30, *x]\na: 2\nc: .nan\n"
    assert [line.split(": ")[0] for line in problems(source)] == [
        "f.yaml:1:4",
        "f.yaml:2:5",
        "f.yaml:2:11",
        "f.yaml:3:1",
        "f.yaml:4:4",
    ]


def test_32_levels_are_deep_enough():
    assert not problems("[" * 32 + "]" * 32)
    assert only("[" * 33 + "]" * 33) == "f.yaml:1:33: this is nested more than 32 deep: use fewer levels"


@pytest.mark.parametrize("unit", ["[", "{a: ", "- ", "? ", '{"a":'])
def test_20_000_levels_are_refused_at_once(unit):
    began = time.perf_counter()
    said = only(unit * 20_000)
    assert "nested more than 32 deep" in said or "a key must be a text" in said
    assert time.perf_counter() - began < 10  # it is a tenth of a second on an idle machine


def test_a_bomb_of_aliases_is_refused_and_not_followed():
    lines = ["a0: &a0 [x, x, x, x, x, x, x, x, x]"]
    lines += [f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 9)}]" for n in range(1, 10)]
    assert len(problems("\n".join(lines))) == 10 + 9 * 9


def test_an_invalid_value_invalidates_only_its_own_children():
    document = read("a: no\nb: 1\n", name="f.yaml")
    assert document.has_problem(("a",))
    assert document.has_problem(("a", "below"))
    assert not document.has_problem(("b",))


def test_a_byte_order_mark_is_ignored():
    document = read(b"\xef\xbb\xbfa: 1", name="f.yaml")
    assert document.value == {"a": 1}
    assert document.place(("a",)) == "f.yaml:1:1"


def test_json_indented_with_tabs():
    written = json.dumps({"a": {"b": ["x\ty", 1e3, "😀"]}}, indent="\t")
    document = read(written, name="f.json")
    assert not document.problems
    assert document.value == {"a": {"b": ["x\ty", 1000.0, "😀"]}}


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=5,
)


@given(st.dictionaries(st.text(max_size=20), JSON, max_size=3), st.sampled_from([None, 2, "\t"]), st.booleans())
def test_json_is_read_as_a_json_parser_reads_it(value, indent, is_ascii):
    document = read(json.dumps(value, indent=indent, ensure_ascii=is_ascii), name="f.json")
    if any("cannot be here" in str(problem) for problem in document.problems):
        return  # characters that YAML does not have, or reads differently: refused, not misread
    assert not document.problems
    assert document.value == value


@given(st.binary())
def test_any_bytes_are_read_or_refused(source):
    document = read(source, name="f")
    assert document.problems or document.is_whole


@given(st.text("{}[]&*!|>'\"%@`#,?:-<~=\t\n \\abcnoy019.e_ux"))
def test_any_text_that_looks_like_yaml_is_read_or_refused(source):
    document = read(source, name="f")
    assert document.problems or document.is_whole
