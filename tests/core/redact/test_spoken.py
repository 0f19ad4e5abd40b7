"""Which words in a sentence are passwords."""

from __future__ import annotations

import pytest

from failsoft.core.redact.spoken import find_in_sentences, find_near_topics, stands_out


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


@pytest.mark.parametrize(
    "text",
    [
        "login failed: DB_HOST=db DB_PORT=5432 TZ=Europe/Berlin",
        "auth error: x-request-id=req_8Fa3kQ29xY path=/v1/users/42?expand=all&page=2",
        "Access denied for user 'app'@'172.17.0.1' (using password: YES)",
        "password hash mismatch: argon2id v=19, m=65536,t=3,p=4",
        "contraseña incorrecta para 'usuario@ejemplo.es' (código=401)",
        "Set the `GOOGLE_API_KEY`/`GEMINI_API_KEY` environment variable to use secret storage",
        "GitHub's login page changed: FastMCP's auth does not know it",
        "INSERT INTO users (name, password) VALUES ($1, $2, $3) RETURNING id",
    ],
)
def test_ordinary_words_near_a_secret_are_kept(text: str) -> None:
    assert find_near_topics(text, []) == []


def test_a_generated_value_near_a_word_about_secrets_is_found() -> None:
    text = "login('application.user@example.com','kX9m;&pQ<2z')"
    assert [text[start:end] for start, end in find_near_topics(text, [])] == ["kX9m;&pQ<2z"]


def test_a_name_whose_value_was_found_stays_readable() -> None:
    text = "connect(password='kX9m;&pQ<2z')"
    assert find_near_topics(text, [(18, 29)]) == []


def test_a_value_far_from_a_word_about_secrets_is_kept() -> None:
    assert find_near_topics(f"login {'word ' * 100} kX9m;&pQ<2z", []) == []
