"""For each torture test the one patch that takes its protection out: ``make torture-check`` wants it red then.

A patch is a source edit, so that it reaches worker processes as well. ``test_protections.py`` keeps every ``old`` true.
"""

from __future__ import annotations

from typing import NamedTuple


class Protection(NamedTuple):
    """A protection, and the patch that removes it."""

    what: str
    file: str  # below src/failsoft
    old: str  # there exactly once
    new: str


PROTECTIONS: dict[int, Protection] = {
    1: Protection(
        "half-open has one slot",
        "core/resilience/circuit_breaker.py",
        'state="half_open", since=now, probe=state.probe + 1, lease=lease)',
        'state="half_open", since=now, probe=state.probe + 1, lease=None)',
    ),
    2: Protection(
        "a probe that is cancelled says nothing about the tool",
        "runtime/call/pipeline.py",
        'candidate.take_ticket(), "neutral", effect="unknown")\n',
        'candidate.take_ticket(), "success", effect="unknown")\n',
    ),
    3: Protection(
        "a cancelled call says nothing about the tool",
        "runtime/call/pipeline.py",
        'candidate.take_ticket(), "neutral", effect="unknown")\n',
        'candidate.take_ticket(), "failure", effect="unknown")\n',
    ),
    4: Protection(
        "results of an older generation are ignored",
        "core/resilience/circuit_breaker.py",
        "    if ticket.generation != state.generation:\n",
        "    if ticket.generation > state.generation:\n",
    ),
    5: Protection(
        "an unknown effect of what is not idempotent is not repeated",
        "core/resilience/retry.py",
        "        if safe is False:\n",
        "        if False:\n",
    ),
    6: Protection(
        "a blocking tool runs in a thread that can be left",
        "runtime/call/attempt_on_loop.py",
        "        return await _await_value(rt, call, invoke, await _run_in_thread(rt, call, invoke))\n",
        "        return run_inline(rt, call, tool)\n",
    ),
    7: Protection(
        "the caller goes at the deadline, whatever the tool does about its cancellation",
        "runtime/execution/deadline.py",
        "        if stepper not in self.hits:\n            return stepper.throw(error)\n",
        "        if True:\n            return stepper.throw(error)\n",
    ),
    8: Protection(
        "a value that came after the deadline is a timeout",
        "runtime/call/first_attempt.py",
        "    if ended - started > call.tool.timeout:\n",
        "    if False:\n",
    ),
    9: Protection(
        "only transient failures of attempts that ran are counted",
        "runtime/call/candidate.py",
        '    return "failure" if fault.retryable and entered and not is_limit(fault) else "neutral"\n',
        '    return "failure"\n',
    ),
    10: Protection(
        "when a call suspends, another lane takes over what is ready",
        "runtime/turn/scheduler.py",
        "        self.awake -= 1\n        self._open()\n",
        "        self.awake -= 1\n",
    ),
    11: Protection(
        "a crash costs one worker",
        "runtime/execution/processes/worker_attempt.py",
        '    workers.drop(process, "crashed")\n',
        '    workers.drop(process, "crashed")\n    workers.close()\n',
    ),
    13: Protection(
        "durations are measured by the monotonic clock",
        "runtime/execution/time_source.py",
        "        self.now = clock.monotonic\n",
        "        self.now = clock.wall\n",
    ),
    14: Protection(
        "what is no Exception is nobody's failure",
        "runtime/call/attempt_on_loop.py",
        "    except Exception as error:\n        return make_result((started, rt.time.now(), None, error, None, True, NO_NOTES, False))\n    ended = rt.time.now()\n",
        "    except BaseException as error:\n        return make_result((started, rt.time.now(), None, error, None, True, NO_NOTES, False))\n    ended = rt.time.now()\n",
    ),
    15: Protection(
        "async generators are recognised",
        "runtime/tools/function_kind.py",
        "    if inspect.isasyncgenfunction(target):\n",
        "    if False:\n",
    ),
    16: Protection(
        "texts are cut before any pattern runs",
        "core/redact/sanitise.py",
        "    cut = len(text) > limit\n",
        "    cut = False\n",
    ),
    17: Protection(
        "secrets are masked where texts come in",
        "core/redact/sanitise.py",
        "        masked = _fit(_mask(text) if _is_suspect(text) else text, limit, cut=cut)\n",
        "        masked = _fit(text, limit, cut=cut)\n",
    ),
    18: Protection(
        "retries are paid for",
        "core/resilience/retry_budget.py",
        "    if tokens < _ENOUGH:\n",
        "    if False:\n",
    ),
    19: Protection(
        "growth beyond all numbers is clamped",
        "core/resilience/backoff.py",
        "    except OverflowError:\n",
        "    except ZeroDivisionError:\n",
    ),
    20: Protection(
        "the longer of backoff and hint counts",
        "core/resilience/backoff.py",
        "    if hint is not None and hint > wait:",
        "    if hint is not None and hint > wait and jitter > 0.5:",
    ),
    21: Protection(
        "a failed call ends alone",
        "runtime/turn/scheduler.py",
        "        commands = turn.machine.finish(handle, outcome.status, value_known=outcome.value_known)\n",
        "        commands = turn.machine.finish(handle, outcome.status, value_known=outcome.value_known)\n"
        '        if outcome.status == "failed":\n'
        "            commands = turn.machine.cancel()\n",
    ),
    22: Protection(
        "calls that cannot work are refused",
        "core/turn/machine.py",
        "        _refuse_invalid_graph(calls, self._calls)\n",
        "",
    ),
    23: Protection(
        "the ring drops what is old",
        "observe/recorder.py",
        "            self._ring.popleft()\n",
        "            break\n",
    ),
    24: Protection(
        "a forked child gets locks of its own",
        "runtime/lifecycle.py",
        "    rt.toolbox.renew_lock()\n",
        "",
    ),
    25: Protection(
        "acknowledged means written",
        "stores/sqlite/writer.py",
        "            return waiter.acquire(timeout=wait) or self._finished >= goal\n",
        "            return True\n",
    ),
    26: Protection(
        "a key that is there twice is noticed",
        "config/manifest/reading.py",
        "        if frame.is_repeated:\n            self._note(",
        "        if False:\n            self._note(",
    ),
    27: Protection(
        "a consumer that hangs is not waited for",
        "observe/delivery.py",
        "if self._is_taken(patience):\n",
        "if self._is_taken(3.0):\n",
    ),
    28: Protection(
        "outcomes are kept in submission order",
        "runtime/turn/turn.py",
        "        calls = self.machine.calls\n        results, needs",
        "        calls = {handle.id: handle for handle in self.arrived}\n        results, needs",
    ),
    29: Protection(
        "an answer must have the number of its call",
        "runtime/execution/processes/worker_attempt.py",
        '    if frame.number != number:\n        raise OutOfStep("it answered',
        '    if False:\n        raise OutOfStep("it answered',
    ),
    30: Protection(
        "a run of backslashes is tried once, from its beginning",
        "core/redact/escapes.py",
        "(?<!\\\\) \\\\++ (?:",
        "\\\\ \\\\* (?:",
    ),
    31: Protection(
        "a local exception of a tool that was entered leaves the effect open",
        "core/effects/call_effect.py",
        '    return "none" if fault.source in BELIEVED else "unknown"\n',
        '    return "none"\n',
    ),
    32: Protection(
        "all parts of an error are asked about the effect",
        "core/classify/__init__.py",
        "    if _claims_nothing(fault) and _is_doubted(error, finding, now, parts):\n",
        "    if False:\n",
    ),
    33: Protection(
        "what an inner call did is told to the call around it",
        "runtime/call/model.py",
        '        if effect == "none":\n            return\n',
        "        return\n",
    ),
    34: Protection(
        "a call that waits for a thread is withdrawn before its outcome is settled",
        "runtime/turn/commands.py",
        "    call.stop_waiting()\n",
        "",
    ),
    35: Protection(
        "a write waits until its record is durable",
        "runtime/persistence/effect_ledger.py",
        '        taken = self._store.claim("pending", values, ttl=KEPT_FOR, timeout=PATIENCE)\n',
        "        taken = {}\n"
        "        for place, value in values.items():\n"
        '            self._store.put("pending", place, value, ttl=KEPT_FOR)\n',
    ),
    36: Protection(
        "a start that finds the record of another one is not run",
        "runtime/call/write_steps.py",
        '    if answer == "begun":\n',
        '    if answer == "":\n',
    ),
    37: Protection(
        "an offer is read and deleted in one step",
        "runtime/conversation/thread_store.py",
        '        record = self._records.take("pending", place)\n',
        '        record = self._records.get("pending", place)\n        self._records.delete("pending", place)\n',
    ),
    38: Protection(
        "a lock is entered where no signal is handled",
        "runtime/fastpath/retry.py",
        "    with rt.toolbox.lock:\n        counted = health.count_failure(ticket, now, successes)\n",
        "    rt.toolbox.lock.acquire()\n    with rt.toolbox.lock:\n        rt.toolbox.lock.release()\n"
        "        counted = health.count_failure(ticket, now, successes)\n",
    ),
    39: Protection(
        "a sign ends a bare value only where the text clearly goes on",
        "core/redact/secret_names.py",
        """[&;,] (?! {_FIELD}""",
        """(?!) (?! {_FIELD}""",
    ),
    40: Protection(
        "a time that was only read in words holds back one thread",
        "core/classify/__init__.py",
        """for text in texts]))), "words\"""",
        """for text in texts]))), "remote\"""",
    ),
    41: Protection(
        "a turn ends although no thread can be had",
        "runtime/persistence/event_writer.py",
        "        except RuntimeError:  # no thread: the interpreter ends",
        "        except ZeroDivisionError:  # no thread: the interpreter ends",
    ),
    42: Protection(
        "what a trace file may hold ends no command in a traceback",
        "surfaces/cli/sources.py",
        '            raise unreadable(trace or store or "the store", error) from None\n',
        "            raise\n",
    ),
    43: Protection(
        "no guard outside a durable engine's retries",
        "adapters/pydantic_ai/engines.py",
        "            if retries_steps(one):\n",
        "            if False:\n",
    ),
    44: Protection(
        "a tool is read whenever it is used, not copied",
        "adapters/pydantic_ai/agent.py",
        "    return _GracefulTool(tool)\n",
        '    made = __import__("copy").copy(tool)\n'
        "    made.function_schema = replace(tool.function_schema, function=make_graceful(tool.function))\n"
        "    return made\n",
    ),
    45: Protection(
        "a tool that is recognised as a write is not repeated",
        "core/effects/tool_effect.py",
        '    if undeclared == "never_repeat" or effect == "write" or (foreign and effect == "neither"):\n',
        '    if undeclared == "never_repeat" or (foreign and effect == "neither"):\n',
    ),
    47: Protection(
        "blocking tools run in threads that nobody joins",
        "adapters/pydantic_ai/capability.py",
        "        use_daemon_threads(self.runtime)\n        return nullcontext() if has_executor() else",
        "        return nullcontext() if True else",
    ),
    48: Protection(
        "a write is not verified while the process that began it still runs",
        "runtime/persistence/process_identity.py",
        "        return STILL_RUNS if _is_alive(int(pid), start) else None\n",
        "        return None\n",
    ),
}
