"""The demo: six ways to fail, the same every time."""

from __future__ import annotations

import json
import re
import subprocess
import sys
import time
from pathlib import Path

import pytest
from click.testing import CliRunner
from inline_snapshot import snapshot

from failsoft.surfaces.cli import cli
from failsoft.testing import virtual_time

ROOT = Path(__file__).parents[2]


def demo(*args: str) -> str:
    with virtual_time():
        result = CliRunner().invoke(cli, ["demo", *args])
    assert result.exit_code == 0, result.output
    return "\n".join(line.rstrip() for line in result.stdout.splitlines())


def test_the_picture() -> None:
    shown = demo()
    picture = shown[shown.index("                0 s") : shown.index("What the user")]
    assert picture == snapshot("""\
                0 s       1 s       2 s       3 s    4 s
┃ flight search  flights       ▒▒▒▒✗╱╱███████                            ok, 2 attempts
  hotel search  hotels         ▒▒▒!╱▒▒▒!╱╱╱▒▒▒!◆                         3 timeouts, circuit opened
  exchange rates  rates        ▒▒▒✗▆▆▆▆▆                                 ok by ecb_rates
  train search  trains         ▒▒▒▒▒▒✗                                   UNAUTHENTICATED
  price comparison  prices            ○                                  skipped: trains failed
  itinerary                           ○                                  skipped: trains failed
  table booking  table                       ▒▒▒▒▒▒▒!                    timed out, may have acted
┃ activity search  activities                ▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▶  left at the deadline
  hotel search  hotels again                   ╳                         refused: circuit open

  █ worked   ▒✗ failed   ▒! timed out   ╱╱ waiting   ▆ worked, by another tool   ◆ circuit opened
  ╳ refused   ○ skipped   ▓▶ left unfinished   ┃ what the end waited for

Where the time went
  4.0 s: 0.5 s in 1 failed attempt of flight search, 0.3 s waiting to try again, 2.5 s unfinished
  (activity search), 0.7 s useful (flight search).

  failed attempts      0.5 s   12%  ▒▒▒▒▒
  waiting to retry     0.3 s    7%  ╱╱╱
  unfinished           2.5 s   63%  ▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓
  useful               0.7 s   18%  ███████

  All calls together took 8.0 s: 3.6 s in 7 failed attempts, 0.7 s waiting to try again, 2.5 s
  unfinished, 1.2 s useful. Most was lost to hotel search: 1.6 s in 3 failed attempts and the
  waits between them.

""")


def test_the_demo_reports_its_progress() -> None:
    shown = demo()
    lines = shown[shown.index("   0.40 s") : shown.index("                0 s")]
    assert lines == snapshot("""\
   0.40 s  rates: bank_rates failed: 502 Bad Gateway
   0.40 s  rates: bank_rates falls back to ecb_rates
   0.40 s  hotels: hotel_search failed: Tool timeout after 400ms; trying again in 0.1 s
   0.50 s  flights: flight_search failed: 503 Service Unavailable; trying again in 0.3 s
   0.70 s  trains: train_search failed: 401 Unauthorized: the API key has expired
   0.70 s  trains: failed with UNAUTHENTICATED
   0.70 s  prices: skipped: trains failed
   0.70 s  itinerary: skipped: trains failed
   0.90 s  rates: ok after 2 attempts, by ecb_rates
   0.95 s  hotels: hotel_search failed: Tool timeout after 400ms; trying again in 0.3 s
   1.48 s  flights: ok after 2 attempts
   1.64 s  hotels: Circuit breaker opened for hotel_search
   1.64 s  hotels: hotel_search failed: Tool timeout after 400ms
   1.64 s  hotels: failed with DEADLINE_EXCEEDED
   1.64 s  hotels again: refused: Circuit breaker open for hotel_search after DEADLINE_EXCEEDED
   2.28 s  table: book_table failed: Tool timeout after 800ms
   2.28 s  table: failed with DEADLINE_EXCEEDED; it may have taken effect, so look before repeating it
   4.00 s  the turn's 4.0 s are up
   4.00 s  activities: still running at the turn's deadline: abandoned

               \
""")


def test_the_demo_ends_with_the_texts_for_users_and_models_and_next_steps() -> None:
    shown = " ".join(demo().split())
    assert "What the user would be told Completed flight search and exchange rates, but activity search" in shown
    assert "about the booking book_table failed: DEADLINE_EXCEEDED" in shown
    assert "It may already have taken effect: check before calling again." in shown
    for command in re.findall(r"failsoft (\w+)", shown.partition("What next")[2]):
        assert CliRunner().invoke(cli, [command, "--help"]).exit_code == 0


@pytest.mark.parametrize("columns", ["60", "80", "100", "200"])
def test_the_demo_fits_the_width_of_the_terminal(columns: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", columns)
    shown = demo()
    pictured = shown[shown.index("┃ flight search") :]
    assert max(len(line) for line in pictured.splitlines()) <= int(columns)
    assert "refused: circuit open" in shown


def test_as_json_it_shows_all_six() -> None:
    report = json.loads(demo("--json"))
    rows = {row["id"]: row for row in report["waterfall"]["rows"]}
    kinds = {id: [segment["kind"] for segment in row["segments"]] for id, row in rows.items()}
    assert kinds["flights"] == ["failed", "waiting", "ok"]
    assert rows["hotels"]["ticks"][0]["kind"] == "opened"
    assert rows["hotels again"]["ticks"][0]["kind"] == "refused"
    assert rows["rates"]["via"] == "ecb_rates"
    assert [rows[id]["root"] for id in ("prices", "itinerary")] == ["trains", "trains"]
    assert (kinds["table"], rows["table"]["may_have_acted"]) == (["timeout"], True)
    assert (rows["activities"]["status"], report["timed_out"]) == ("timed_out", True)


def test_the_demo_is_deterministic() -> None:
    assert demo() == demo()


def test_the_picture_in_the_readme_is_of_this_demo(tmp_path: Path) -> None:
    demo("--svg", str(tmp_path / "demo.svg"))
    kept = (ROOT / "docs" / "assets" / "demo.svg").read_text()
    words = [re.findall(r">([^<>]+)</text>", svg) for svg in ((tmp_path / "demo.svg").read_text(), kept)]
    assert words[0] == words[1], "make demo-picture"
    assert "@font-face" not in kept  # it fetches nothing


@pytest.mark.slow
def test_in_real_time_it_takes_less_than_ten_seconds() -> None:
    began = time.monotonic()
    ended = subprocess.run(
        [sys.executable, "-W", "error", "-m", "failsoft", "demo"], capture_output=True, text=True, check=False
    )
    assert (ended.returncode, ended.stderr) == (0, "")
    assert time.monotonic() - began < 10
    assert "hotels again" in ended.stdout


@pytest.mark.parametrize(
    ("on_path", "started", "typed"),
    [
        ("/usr/bin/failsoft", ".venv/bin/failsoft", "failsoft"),
        (None, ".venv/bin/failsoft", ".venv/bin/failsoft"),
        (None, "failsoft/__main__.py", "python -m failsoft"),
    ],
    ids=["installed", "not active", "module"],
)
def test_the_suggested_command_can_be_typed_as_shown(
    on_path: str | None, started: str, typed: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("failsoft.surfaces.cli.demo.which", lambda _: on_path)
    monkeypatch.setattr(sys, "argv", [started])
    assert f"\n  {typed} init " in demo()
