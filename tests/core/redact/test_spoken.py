"""Which words in a sentence are passwords."""

from __future__ import annotations

import pytest

from failsoft.core.redact.spoken import find_in_sentences, stands_out


@pytest.mark.parametrize(
    "value", ["kX9m;&p'Q<2z", "(kX9m!pQ2zz)", '"R7%tt#Lm0"', "Passw0rd!", "a%b$c^d&e*f", "zoS-fOM9xkOVcb"]
)
def test_a_generated_password_stands_out(value: str) -> None:
    assert stands_out(value)


@pytest.mark.parametrize(
    "value",
    [
        "authentication",
        "SCRAM-SHA-256",
        "OAuth2.0/PKCE-S256",
        "HTTPStatusError('401",
        "error_code=INVALID_GRANT,status=401",
        '{"error":"invalid_grant"}',
        "2024-05-01T12:00:00.123Z",
        "jane.Doe@Example.com",
        "https://login.example.com/OAuth2/Token?tenant=Acme1",
        "/home/jane/Docs/Passwords2.txt",
        "a-z,A-Z,0-9",
        "!@#$%^&*()",
        "code=0x80070005",
        "given</message></error>",
        "aB3$",
    ],
)
def test_words_names_dates_addresses_and_paths_do_not_stand_out(value: str) -> None:
    assert not stands_out(value)


def test_quotes_around_a_value_are_kept() -> None:
    text = "password mismatch: expected 'kX9m;&pQ<2z', got 'x'"
    assert [text[start:end] for start, end in find_in_sentences(text)] == ["kX9m;&pQ<2z"]


def test_a_long_value_is_found_to_its_end() -> None:
    text = f"login failed with {'kX9m;&pQ<2z' * 40} at noon"
    assert find_in_sentences(text) == [(18, 18 + 11 * 40)]
