from __future__ import annotations

import time

import pytest

from failsoft.core.model.fault import Code, Fault
from failsoft.core.resilience.error_family import LENGTH, fingerprint

FAULT = Fault(Code.UNAVAILABLE, "transient", "tool_transient", "none", "", "", "test")


def family(message: str, code: Code = Code.UNAVAILABLE) -> str:
    return fingerprint(FAULT._replace(message=message, code=code))


@pytest.mark.parametrize(
    ("message", "text"),
    [
        ("Service unavailable (503)", "Service unavailable (<n>)"),
        ("Connection timeout after 30s", "Connection timeout after <n>"),
        ("retry in 1.5 s, attempt -3", "retry in <n> s, attempt <n>"),
        ("request req_8f3k2 failed", "request <n> failed"),
        ("object 6f1ed002-ab59-4a2f-8d10-2f9b1f3f6f2c is gone", "object <n> is gone"),
        ("commit deadbeef not found", "commit <n> not found"),
        ("token abcdefghij7klmnopqrstuvwxyzabcdef expired", "token <n> expired"),
        ("cannot read /var/lib/app/data.db", "cannot read <path>"),
        (r"cannot read C:\Users\anna\x.txt", "cannot read <path>"),
        ("no file ./notes/today.md", "no file <path>"),
        ("db-7.eu.example.com:5432 refused the connection", "<host> refused the connection"),
        ("dial tcp 10.1.2.3:443: connection refused", "dial tcp <host>: connection refused"),
        ("GET https://api.example.com/v1/x?id=4 failed", "GET <url> failed"),
        ("mail to anna.b@example.com bounced", "mail to <mail> bounced"),
        ("no column \"price\" in 'orders'", "no column <value> in <value>"),
        ("unknown airport `XYZ`", "unknown airport <value>"),
        ("shards 1, 2, 17 are down", "shards <n> are down"),
        ("can't open it, won't try", "can't open it, won't try"),  # apostrophes are no quotes
        ("java.lang.NullPointerException", "java.lang.NullPointerException"),
        ("ProvisionedThroughputExceededException", "ProvisionedThroughputExceededException"),
        ("is api.example.com. up?", "is <host>. up?"),
        ("too   many\n spaces", "too many spaces"),
    ],
)
def test_variable_parts_of_a_message_are_masked(message, text):
    assert family(message) == f"UNAVAILABLE: {text}"


def test_two_reports_of_one_cause_are_one_family():
    assert family("shard 17 at db-7.example.com is down") == family("shard 4 at db-12.example.org is down")


def test_other_words_or_another_code_are_another_family():
    assert family("shard 17 is down") != family("shard 17 is slow")
    assert family("shard 17 is down") != family("shard 17 is down", Code.INTERNAL)


def test_a_familys_name_is_bounded_and_computed_quickly_for_hostile_text():
    hostile = ["a" * 8000, "a." * 4000, "/a" * 4000, "'" * 8000, "1," * 4000, "a@" * 4000, "-" * 8000, "a-1." * 2000]
    started = time.perf_counter()
    for message in hostile:
        assert len(family(message)) < 3 * LENGTH
    assert time.perf_counter() - started < 0.5
