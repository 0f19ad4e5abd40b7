"""T30: 8 kB of backslashes after a colon stalled the loop for 9 to 17 s. Here every pattern takes linear time."""

from __future__ import annotations

import random
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import pytest
from tests.patterns import Found, attacks, collect, grown, unbounded
from tests.steps import Counter, TooMany
from tests.torture.scale import FULL, times

from failsoft import classify
from failsoft.core.classify import cache
from failsoft.core.redact import sanitise as redact
from failsoft.core.redact import secret_names
from failsoft.core.redact.sanitise import sanitise
from failsoft.core.resilience.error_family import fingerprint

GROWTH = 3
SHORT = 4096
LONG = 8192
WORST = 0.1  # seconds of this thread's own time: five times what the slowest text takes
NOISE = 0.002  # seconds: less than this cannot be compared

PATTERNS = [found for found in collect() if ".manifest." not in found.where]  # which read what the user has written


@contextmanager
def deep() -> Iterator[None]:
    before = sys.getrecursionlimit()
    sys.setrecursionlimit(20_000)
    try:
        yield
    finally:
        sys.setrecursionlimit(before)


def growth(found: Found, attack: tuple[str, str, str]) -> float:
    """By how much the steps grow when the text is twice as long."""
    counter = Counter(found)
    length = max(64, 2 * len(attack[0]) + 4 * len(attack[1]))
    try:
        short, long = (counter.count(grown(attack, size)) for size in (length, 2 * length))
    except TooMany:
        return float("inf")
    return long / max(short, length)


def test_t30_every_pattern_is_found() -> None:
    places = {found.where for found in PATTERNS}
    assert len(PATTERNS) > 1000
    for place in (
        "core.redact.escapes._ESCAPE",
        "core.redact.secret_names.find_named",
        "core.classify.phrase_match._Row.fits",
    ):
        assert f"failsoft.{place}" in places


def test_t30_the_counter_knows_a_pattern_that_backtracks() -> None:
    slow = [Found("", pattern, 0) for pattern in (r"\\ \\*x".replace(" ", ""), r"(a+)+b", r"\w+:", r"a.*b.*c")]
    assert all(max(growth(found, attack) for attack in attacks(found)) > GROWTH for found in slow)


def test_t30_the_steps_of_every_pattern_grow_with_the_text_and_no_faster() -> None:
    worst: dict[str, float] = {}
    with deep():
        for found in PATTERNS:
            if not unbounded(found):
                continue  # what it does at one place is bounded, however long the text is
            tried = attacks(found)
            for attack in tried[:: max(1, len(tried) // times(len(tried), 5))]:
                grew = growth(found, attack)
                if grew > GROWTH:
                    worst[f"{found.where}: {found.pattern[:60]} on {attack}"] = grew
    assert worst == {}


def classified(text: str) -> None:
    fingerprint(classify(text))


PIPELINES: dict[str, Callable[[str], object]] = {"sanitise": sanitise, "classify": classified}
HOSTILE = {
    "backslashes after a colon": (": ", "\\", ""),
    "quoted backslashes": ('password: "', "\\", ""),
    "escaped line ends": ("", "\\r\\", ""),
    "percent signs": ("", "%25", ""),
    "ampersands": ("", "&amp;", ""),
    "names": ("", "passwd:a,", ""),
    "short names": ("", "pwd:a,", ""),
    "names on lines": ("", "\rpwd:", ":^X.%"),
    "names and signs": ("", "key=&", ""),
    "opened quotes": ("", "“ ", ""),
    "opened brackets": ("", "password=({[", ""),
    "addresses": ("", "://a:", ""),
    "methods": ("", "method--------------------", ""),
    "tools": ("", "tool.", ""),
    "paths": ("", "/a.", ""),
    "base64": ("", "MIIEvQIBADANBgkqhkiG9w0BAQ ", "-----END PRIVATE KEY"),
    "blanks": ("x", " ", "x"),
    "fields": ("", "authorization:\\a,uthorizatihook.zapier.com/AAAAAAAAAAAA/_on:\\AKIA/", ""),
    "names in values": ("", "key=token:>_token':<pass\\word+>_", ""),
    "names beyond ASCII": ("", "_accessß key ", ""),
    "sentences beyond ASCII": ("", "AUTH aßzxf", ""),
    "letters that grow when they are lowered": ("", "password İx9: ", ""),
    "words about secrets": ("", "pwd ", ""),
    "words about secrets, and values": ("", "login('kX9m!pQ','kX9m;&pQ<2z') ", ""),
    "a word about a secret, and one long value": ("password ", "kX9m;&pQ<2z','", ""),
    "elements": ("", "<password>" + "\t" * 20 + "x<password>" + " \n\t" * 30, ""),
}


@pytest.mark.parametrize("pipeline", PIPELINES)
@pytest.mark.parametrize("attack", HOSTILE.values(), ids=HOSTILE.keys())
def test_t30_no_hostile_text_stalls(pipeline: str, attack: tuple[str, str, str]) -> None:
    assert min(spent(PIPELINES[pipeline], grown(attack, LONG)) for _ in range(3)) < WORST


@pytest.mark.parametrize("name", ["names", "fields", "names in values", "elements"])
def test_t30_masking_is_not_repeated_for_each_name(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    rounds = []
    mask = redact._mask
    monkeypatch.setattr(redact, "_mask", lambda text: rounds.append(text) or mask(text))
    sanitise(grown(HOSTILE[name], LONG - 100))
    assert len(rounds) <= 2


def test_t30_names_beyond_any_message_are_not_judged(monkeypatch: pytest.MonkeyPatch) -> None:
    judged = []
    find = secret_names._find_secret
    monkeypatch.setattr(secret_names, "_find_secret", lambda *args: judged.append(args) or find(*args))
    text = "pwd:" + "a,pwd:" * 1_360
    assert secret_names.find_named(text)[-1][1] == len(text)
    assert len(judged) <= 100


@pytest.mark.parametrize("piece", ["é passwd:a,", "clé=é;", "mot de passe é: password=é1x "])
def test_t30_text_beyond_ascii_is_masked_no_more_often(piece: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Characters of two bytes pass the limit in bytes at half its length; they are cut before the first pattern runs."""
    sizes = []
    mask = redact._mask
    monkeypatch.setattr(redact, "_mask", lambda text: sizes.append(len(text.encode())) or mask(text))
    sanitise(grown(("", piece, ""), LONG))
    assert len(sizes) <= 2
    assert max(sizes) <= LONG


def spent(run: Callable[[str], object], text: str) -> float:
    started = time.thread_time()
    run(text)
    return time.thread_time() - started


def ratio(run: Callable[[str], object], attack: tuple[str, str, str]) -> tuple[float, float, float]:
    """Growth, and the seconds at 4 and 8 kB; the best of three where it looks bad. No text is read twice: reading is cached."""
    short = long = float("inf")
    for number in range(3):
        short = min(short, spent(run, f"{grown(attack, SHORT - 1)}{number}"))
        long = min(long, spent(run, f"{grown(attack, LONG - 1)}{number}"))
        if long < NOISE or long / short <= GROWTH:
            return 0.0, short, long
    return long / short, short, long


@pytest.mark.skipif(not FULL, reason="measures time: with the full counts only")
def test_t30_the_time_of_every_pattern_grows_with_the_text(capsys: pytest.CaptureFixture[str]) -> None:
    table: list[tuple[float, float, str]] = []
    bad = {}
    for found in PATTERNS:
        best = (0.0, 0.0)
        for attack in attacks(found):
            grew, short, long = ratio(found.run, attack)
            best = max(best, (long, short))
            if grew:
                bad[f"{found.where} on {attack}"] = (grew, short, long)
        table.append((*best, f"{found.where}: {found.pattern[:50]!r}"))
    with capsys.disabled():
        print()
        for long, short, where in sorted(table, reverse=True)[:10]:
            print(f"{short * 1e3:8.1f} ms at 4 kB {long * 1e3:8.1f} ms at 8 kB  {where}")
    assert bad == {}


@pytest.mark.skipif(not FULL, reason="measures time: with the full counts only")
def test_t30_the_time_of_10_000_generated_texts_grows_with_them(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cache, "LENGTH", -1)  # texts of 4 kB are cached, longer ones are not
    made = random.Random(20261117)
    pieces = [piece for found in PATTERNS for attack in attacks(found) for piece in attack if piece]
    bad: dict[str, tuple[float, float, float]] = {}
    worst: dict[str, tuple[float, float, str]] = {}
    for _ in range(10_000):
        attack = (
            made.choice(pieces),
            "".join(made.choices(pieces, k=made.randint(1, 4)))[:400],
            made.choice(pieces)[:50],
        )
        for name, run in PIPELINES.items():
            grew, short, long = ratio(run, attack)
            worst[name] = max(worst.get(name, (0.0, 0.0, "")), (long, short, str(attack)))
            if grew:
                bad[f"{name} on {attack}"] = (grew, short, long)
    with capsys.disabled():
        print()
        for name, (long, short, text) in worst.items():
            print(f"{short * 1e3:8.1f} ms at 4 kB {long * 1e3:8.1f} ms at 8 kB  {name}: {text[:80]}")
    assert bad == {}
