from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from failsoft.core.redact.escapes import unescape


@pytest.mark.parametrize(
    ("text", "plain"),
    [
        ("a%3Db%26c", "a=b&c"),
        ("a%253Db%252526c", "a=b&c"),
        (r"a\u003db\x26c", "a=b&c"),
        (r"{\"a\": \\\"b\\\"}", '{"a": "b"}'),
        (r"https:\/\/h", "https://h"),
        (r"a\nb\r\nc\td", "a\nb\nc d"),
        ("%0D%0A%09x", " \n x"),
        ("&quot;a&#39;&#x3D;&amp;lt;&amp;", "\"a'=<&"),
        (r"\x1b[31mred\u001b[0m", " red "),
        (r"caf\u00e9 caf\xc3\xa9 \u200b", None),
        ("100% of R&D; [31m", None),
        ("/search?q=paris%20fr", None),
        ("q=a%20abcdefghijklm%20%22", 'q=a abcdefghijklm "'),
        ("plain", None),
    ],
)
def test_escapes_are_decoded(text: str, plain: str | None) -> None:
    read = unescape(text)
    assert (read and read.text) == plain


@given(
    st.lists(st.sampled_from(["a", "%3D", "%2526", "\\", "\\n", "\\u0026", "&amp;", "&quot;", "é", "%", "&"])).map(
        "".join
    )
)
def test_every_character_knows_its_place(text: str) -> None:
    read = unescape(text)
    if read is None:
        return
    assert len(read.places) == len(read.text) + 1
    assert read.places == sorted(set(read.places))
    assert read.places[-1] == len(text)
    for place, char in zip(read.places, read.text, strict=False):
        assert text[place] == char or text[place] in "%\\&"
