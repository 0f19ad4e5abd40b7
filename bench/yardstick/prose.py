"""Hand-written text of the page. Review it when an executor, a benchmark or a fault changes."""

from __future__ import annotations

HEAD = """\
# Public benchmarks under faults

<!-- written by `make yardstick`: do not edit -->

How many tasks does an agent finish when its tools fail, and how often does it pay twice on the way? This page measures it
on tasks that other people wrote. Public benchmarks are replayed by their own gold calls, faults are injected between the
executor and the tools, and each run is judged by the benchmark's own check. `make yardstick` repeats all of it on your
machine, without a network and without a model, and fails if failsoft misses one of the [marks](#marks).
"""

METHOD = """\
## Method

**One run** is one task with one seed. The executor makes the gold calls of the task, one after the other. The benchmark's
tools run for real on the benchmark's own state; only the wire between them is bad. All waiting is in virtual time.

**Writes.** A tool counts as a write if one of its gold calls changes the state in a run without faults. The logs and caches
that reads keep about themselves are not counted as state: the flight prices that BFCL's travel service remembers, and the
list of visited pages in AgentDojo. `contact_customer_support` of BFCL counts as a write although
no state shows it. A task is left out if a read gives another answer when it is repeated.

**Goal.** BFCL compares the state with that of a gold run after each turn, and looks for the gold answers. A read's answer
must have arrived. A write's answer counts if the service gave it or the write was reported as done: the state shows whether
that is true. AgentDojo checks the state and the agent's final text.
The text is the gold one if every read's answer arrived whole, and empty otherwise.

**Faults.** A call meets a fault or not by its id and the seed, so every executor meets the same faults. Each kind has an
equal share. A timeout before the effect and a lost answer raise the same error.
"""

COLUMNS = """\
| column | meaning, in % of runs unless it says otherwise |
|---|---|
| goal | the benchmark's own check passes |
| ceiling | no write met a fault before its effect that only a repeat on suspicion or a `verify` can mend. It depends on the injector alone. An executor that never repeats a write on suspicion cannot do better, except where the check does not notice |
| twice | at least one write ran more than once |
| silent | the goal was missed, and every call was reported as a success |
| false unknown | the goal was reached, and a call was reported as unknown or failed |
| attempts | per call |
| seconds | virtual seconds per run |

Figures are means over the seeds, with 95 % intervals (Student's t).
"""

EXECUTORS = """\
## Executors

- **none** stops at the first failure. **naive retry** repeats at once, whatever the error. **tenacity** waits exponentially
  with jitter. All three end the run when a call fails in the end.
- **LangChain** runs an agent with `ToolRetryMiddleware()`, **pydantic-ai** and the **OpenAI Agents SDK** run their agents,
  all with their defaults. Their models are scripted to ask for the gold calls. A real model may react to an error, for
  better or worse.
- **failsoft** runs with its default options. *Nothing declared* means that it sees the names and descriptions of the tools
  only: once through `rt.call`, once through `run_tool_calls`. *Declared* means `read_only=True` or `idempotent=False` for
  every tool. It goes on with the next call after a failure.
"""

VERIFY = """\
- **verify, oracle** is declared, and its `verify` asks the injector whether the tool acted. No real service knows that
  so well: the row is an **upper bound** for what `verify` can add.
- **verify, read-back** is declared, and its `verify` uses the benchmark's own read tools. It knows nothing of the injector,
  and its reads meet faults as well. It says "unknown" where the benchmark has no read that would show the effect, or where
  the state looked the same before.
"""

LIMITS = """\
## What the figures do not show

- **No model takes part.** A model that reads "unknown" may look the effect up and go on, and one that reads an error may
  repeat a write by itself. Neither is in the figures.
- **The faults are drawn, not observed.** Real outages come in bursts, and real mixes differ. `--mix`, `--level` and
  `--seeds` of `python -m bench.yardstick` change them.
- **Each run has a new `Runtime`**, so nothing is learned from one task to the next, and no circuit stays open.
- **Repeating a write can be harmless.** A door that is locked twice is locked. That is why executors that repeat writes
  reach more goals than the ceiling allows, and why "twice" has its own column.
- **Labels are ours** where a benchmark has none. They are in the JSON output, tool by tool.
- **The gold calls are made in sequence**, with the same arguments in every run. The value of turns that run side by side is
  in the [grid](#turns-under-faults) only.
"""

GRID = """\
## Turns under faults

A grid in the manner of ToolMaze: the shape of the turn, whether the fault is *explicit* (an error is raised) or *implicit*
(a value comes back that says it failed), and whether it is *transient* (once) or *permanent* (always). Each turn has seven
reads, and one of them meets the fault: each in its turn. A cell shows three figures in %: turns in which every call has the
right value / calls with the right value / turns with a wrong value in which no call is reported as failed. An implicit
fault is a value like any other until [`failed_if`](how-to/tools.md#failures-that-are-returned) says that it is a failure. The
fallback of a tool gives the same answer.
"""
