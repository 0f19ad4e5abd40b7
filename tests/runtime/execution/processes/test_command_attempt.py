"""Programs as tools: JSON in, JSON out, and no way to outlive their deadline."""

from __future__ import annotations

import asyncio
import json
import os
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tests.runtime.execution.processes import fake_tools
from tests.runtime.execution.processes.conftest import Bench, eventually, family, has_grown, holdings, is_running

from failsoft.core.model.entrypoint import Command
from failsoft.core.model.fault import Code
from failsoft.runtime.execution.processes import command_attempt as commands
from failsoft.runtime.execution.processes.reply import CommandError, Reply, WorkerError

Make = Callable[..., Bench]


def program(code: str, **options: Any) -> Command:
    return Command(argv=[sys.executable, "-c", code], **options)


def shell(script: str, **options: Any) -> Command:
    return Command(argv=["sh", "-c", script], **options)


def run(bench: Bench, command: Command, args: dict[str, Any] | None = None, timeout: float | None = 20) -> Reply:
    return bench.workers.run_command_blocking(command, args or {}, timeout=timeout)


def fault_of(reply: Reply) -> Any:
    assert isinstance(reply.error, WorkerError)
    return reply.error.fault


# --- in and out ------------------------------------------------------------------------------------------------------


def test_arguments_are_json_on_stdin_and_the_value_is_json_on_stdout(bench: Bench) -> None:
    args = {"to": "PAR", "days": [1, 2], "name": "é\u2028"}
    reply = run(bench, Command(argv=["cat"]), args)
    assert (reply.kind, reply.value) == ("value", args)
    assert reply.pid is not None
    assert reply.started is not None
    assert not reply.killed


def test_no_output_is_none(bench: Bench) -> None:
    assert run(bench, Command(argv=["true"]))[:2] == ("value", None)
    assert run(bench, shell("echo; echo"))[:2] == ("value", None)


def test_commands_run_without_a_shell(bench: Bench) -> None:
    code = "import json, sys; print(json.dumps(sys.argv[1:]))"
    command = Command(argv=[sys.executable, "-c", code, "$HOME; echo *", "`id`"])
    assert run(bench, command).value == ["$HOME; echo *", "`id`"]


def test_large_arguments_and_results_pass(bench: Bench) -> None:
    args = {"text": "x" * 3_000_000}
    assert run(bench, Command(argv=["cat"]), args).value == args


def test_a_program_need_not_read_its_arguments(bench: Bench) -> None:
    assert run(bench, shell("exec <&-; echo 1"), {"text": "x" * 1_000_000}).value == 1


def test_output_that_is_not_json_is_a_fault(bench: Bench) -> None:
    for script in ("echo hello", "printf '\\377'", "echo '{'"):
        reply = run(bench, shell(script))
        assert reply.kind == "error"
        assert isinstance(reply.error, CommandError)
        fault = fault_of(reply)
        assert "sh did not write JSON to its standard output" in fault.message
        assert (fault.code, fault.classification, fault.effect) == (Code.DATA_LOSS, "permanent", "happened")


def test_json_that_is_too_deep_is_a_fault(bench: Bench) -> None:
    reply = run(bench, program("print('[' * 200_000)"))
    assert fault_of(reply).code is Code.DATA_LOSS


def test_an_argument_that_is_not_json_is_named(bench: Bench) -> None:
    reply = run(bench, Command(argv=["cat"]), {"when": "now", "lock": threading.Lock()})
    assert reply.kind == "unsendable"
    assert "cat: argument lock (lock) cannot be written as JSON" in fault_of(reply).message
    assert fault_of(reply).effect == "none"


def test_on_an_event_loop_it_is_the_same(bench: Bench) -> None:
    async def main() -> list[Reply]:
        command = bench.workers.run_command
        return [
            await command(Command(argv=["cat"]), {"text": "x" * 1_000_000}, timeout=20),
            await command(shell("exit 75"), {}, timeout=20),
            await command(Command(argv=["sleep", "30"]), {}, timeout=0.1),
            await command(Command(argv=["no-such-program"]), {}, timeout=20),
        ]

    replies = asyncio.run(main())
    assert [reply.kind for reply in replies] == ["value", "error", "timeout", "missing"]
    assert replies[0].value == {"text": "x" * 1_000_000}


def test_programs_run_side_by_side(bench: Bench) -> None:
    async def main() -> float:
        start = time.monotonic()
        await asyncio.gather(*(bench.workers.run_command(shell("sleep 0.5"), {}, timeout=20) for _ in range(8)))
        return time.monotonic() - start

    assert asyncio.run(main()) < 3


# --- surroundings ----------------------------------------------------------------------------------------------------


def test_only_listed_variables_are_passed_on(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("API_TOKEN", "secret")
    monkeypatch.setenv("REGION", "eu")
    code = "import json, os; print(json.dumps(dict(os.environ)))"
    found = run(bench, program(code, env=["REGION", "NOT_SET"])).value
    assert found["REGION"] == "eu"
    assert found["PATH"] == os.environ["PATH"]
    assert set(found) <= {*commands.ENVIRONMENT, "REGION", "LC_CTYPE"}  # Python sets LC_CTYPE itself


def test_a_program_runs_in_the_applications_directory(
    bench: Bench, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert run(bench, program("import json, os; print(json.dumps(os.getcwd()))")).value == str(tmp_path)


def test_a_program_inherits_no_signal_handlers_or_descriptors(bench: Bench) -> None:
    code = (
        "import json, os, signal\n"
        "ignored = [n for n in range(1, 65) if n not in (9, 19, 32, 33) and signal.getsignal(n) == signal.SIG_IGN]\n"
        "fds = sorted(map(int, os.listdir('/proc/self/fd')))\n"
        "print(json.dumps([ignored, len(fds), os.getsid(0) == os.getpid()]))"
    )
    ignored, fds, leads = run(bench, program(code)).value
    assert set(ignored) <= {13, 25}  # which Python itself ignores
    assert fds <= 4
    assert leads


# --- exit statuses ---------------------------------------------------------------------------------------------------


def test_a_failing_program_is_judged_by_its_exit_status(bench: Bench) -> None:
    reply = run(bench, shell("echo 'cannot reach the desk' >&2; echo '{}'; exit 75"))
    assert (reply.kind, reply.value) == ("error", None)
    fault = fault_of(reply)
    assert fault.message == "sh ended with exit status 75 (EX_TEMPFAIL): cannot reach the desk"
    assert (fault.code, fault.classification, fault.effect) == (Code.UNAVAILABLE, "transient", "none")


def test_the_manifest_can_say_what_a_status_means(bench: Bench) -> None:
    reply = run(bench, shell("exit 3", exit_codes={3: "NOT_FOUND"}))
    assert fault_of(reply).code is Code.NOT_FOUND


def test_a_signal_that_killed_the_program_is_named(bench: Bench) -> None:
    assert fault_of(run(bench, shell("kill -SEGV $$"))).message == "sh was killed by SIGSEGV"


def test_only_the_end_of_stderr_is_kept_and_no_half_word(bench: Bench) -> None:
    reply = run(bench, program("import sys; sys.stderr.write('secret' * 500_000 + ' the end'); sys.exit(1)"))
    assert fault_of(reply).message.endswith("…the end")
    assert len(fault_of(reply).message) < 2_000
    assert "secret" not in fault_of(reply).message


def test_secrets_on_stderr_are_masked(bench: Bench) -> None:
    reply = run(bench, shell("echo 'api_key=sk-abcdefghijklmnopqrstuvwxyz012345 refused' >&2; exit 1"))
    assert "sk-abcdef" not in fault_of(reply).message
    assert "refused" in fault_of(reply).message


def test_a_program_that_is_not_there_is_unavailable(bench: Bench) -> None:
    reply = run(bench, Command(argv=["no-such-program"]))
    assert reply.kind == "missing"
    fault = fault_of(reply)
    assert fault.message == "no-such-program cannot be started: No such file or directory"
    assert (fault.code, fault.category, fault.effect) == (Code.NOT_FOUND, "tool_unavailable", "none")


def test_a_program_that_may_not_be_run_is_misconfigured(bench: Bench, tmp_path: Path) -> None:
    plain = tmp_path / "plain"
    plain.write_text("#!/bin/sh\n")
    fault = fault_of(run(bench, Command(argv=[str(plain)])))
    assert (fault.category, fault.effect) == ("tool_misconfigured", "none")
    assert "Permission denied" in fault.message
    plain.write_bytes(b"\x7fnot a program")
    plain.chmod(0o755)
    assert fault_of(run(bench, Command(argv=[str(plain)]))).category == "tool_misconfigured"


# --- the end ---------------------------------------------------------------------------------------------------------


def test_at_the_deadline_the_caller_is_answered_and_the_group_is_ended(bench: Bench, tmp_path: Path) -> None:
    """SIGTERM comes first, so that a program can clean up. A program that ignores it is killed a moment later."""
    mark = tmp_path / "mark"
    stubborn = f"trap 'echo asked >> {mark}' TERM; echo $$ >> {mark}; sleep 30 & while :; do sleep 0.05; done"
    start = time.monotonic()
    reply = run(bench, shell(stubborn), timeout=0.3)
    assert time.monotonic() - start < 0.8
    assert (reply.kind, reply.killed, reply.value) == ("timeout", True, None)
    assert 0.3 <= reply.duration < 0.8
    assert eventually(lambda: "asked" in mark.read_text(), 0.9)
    assert is_running(reply.pid or 0)
    assert eventually(lambda: not is_running(reply.pid or 0), 10)
    assert eventually(lambda: not [p for p in family(bench.workers) if "sleep\0" in cmdline(p)], 10)


def cmdline(pid: int) -> str:
    try:
        return Path(f"/proc/{pid}/cmdline").read_text()
    except OSError:
        return ""


def test_processes_started_by_a_program_do_not_outlive_it(bench: Bench, tmp_path: Path) -> None:
    """Not even a daemon that holds its standard output open."""
    mark = tmp_path / "mark"
    code = (
        "import os, sys, time\n"
        "if os.fork() == 0:\n"
        "    os.setsid()\n"
        "    if os.fork() == 0:\n"
        f"        open({str(mark)!r}, 'w').write(str(os.getpid())); time.sleep(60)\n"
        "    os._exit(0)\n"
        "os.wait()\n"
        f"while not os.path.exists({str(mark)!r}) or not open({str(mark)!r}).read(): time.sleep(0.01)\n"
        "print(1)"
    )
    start = time.monotonic()
    assert run(bench, program(code)).value == 1
    assert time.monotonic() - start < 10
    assert eventually(lambda: not is_running(int(mark.read_text())), 1)


def test_too_much_output_ends_it(bench: Bench) -> None:
    start = time.monotonic()
    reply = run(bench, Command(argv=["yes"], max_output="100kB"))
    assert time.monotonic() - start < 2
    assert (reply.kind, reply.killed) == ("error", True)
    fault = fault_of(reply)
    assert fault.message == "yes wrote more than 100000 bytes to its standard output"
    assert (fault.code, fault.classification) == (Code.RESOURCE_EXHAUSTED, "permanent")
    short = program("print('\"' + 'x' * 2000 + '\"')", max_output=1500)
    assert fault_of(run(bench, short)).code is Code.RESOURCE_EXHAUSTED
    assert run(bench, program("print('\"' + 'x' * 1000 + '\"')", max_output=1500)).value == "x" * 1000


def test_endless_stderr_does_not_fill_the_memory(bench: Bench) -> None:
    reply = run(bench, shell("yes >&2"), timeout=0.3)
    assert reply.kind == "timeout"


def test_cancelling_ends_it(bench: Bench, tmp_path: Path) -> None:
    mark = tmp_path / "mark"

    async def main() -> None:
        running = asyncio.ensure_future(
            bench.workers.run_command(shell(f"echo $$ > {mark}; exec sleep 30"), {}, timeout=None)
        )
        await asyncio.to_thread(eventually, lambda: mark.exists() and mark.read_text())
        running.cancel()
        with pytest.raises(asyncio.CancelledError):
            await running

    asyncio.run(main())
    assert eventually(lambda: not is_running(int(mark.read_text())), 2)


def test_close_ends_it_at_once(fresh: Make) -> None:
    made = fresh()
    made.run(fake_tools.echo, 1)
    timer = threading.Timer(0.3, made.workers.close)
    timer.start()
    start = time.monotonic()
    reply = run(made, shell("trap '' TERM; sleep 30 & wait; sleep 30"))
    timer.join()
    assert time.monotonic() - start < 15
    assert (reply.kind, reply.killed) == ("cancelled", True)
    assert not is_running(reply.pid or 0)


def test_programs_leak_no_processes_or_descriptors(bench: Bench) -> None:
    run(bench, Command(argv=["true"]))
    held = holdings()
    for command in (["cat"], ["sh", "-c", "exit 3"], ["no-such-program"], ["sh", "-c", "echo x"]):
        for _ in range(5):
            run(bench, Command(argv=command), {"a": 1})
    for _ in range(5):
        run(bench, Command(argv=["sleep", "30"]), timeout=0.02)
    assert not has_grown(held)
    assert eventually(lambda: len(family(bench.workers)) == 1, 3)  # the supervisor; no tool has needed a worker


def test_json_is_what_the_program_gets() -> None:
    assert json.loads(commands._encode({"a": {"b": None}})) == {"a": {"b": None}}
