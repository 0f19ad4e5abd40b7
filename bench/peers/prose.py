"""Hand-written text of the page. Review it when a case or a version changes."""

from __future__ import annotations

HEAD = """\
# failsoft beside its peers

<!-- written by `make comparison`: do not edit -->

Each row is a fault that was really seen in some library that does a part of this job ([the list](torture.md)). Each
cell was found by running a small script against the library as it is installed from its index, and looking at what it
does. No verdict is written down anywhere in the scripts.

| | |
|---|---|
| ✓ | the fault was looked for and not seen |
| ◐ | it was seen, and is gone with a documented setting: the number leads to it |
| ✗ | it was seen |
| · | the library has no such part, and so it cannot have the fault |
"""

FAIR = """\
## How to read it

- **It is not a ranking.** The list was made by looking for faults of this kind, failsoft was built with the list at
  hand, and so its column is what one would expect. A library that does one thing has few rows, and that is no merit and
  no blame. Most of what these libraries are good at is not in this table at all: see
  [library by library](#library-by-library).
- **Each library is used as its own documentation says**: its quick start, its decorators, its defaults where a case does
  not need a number. [bench/peers/libraries/](../bench/peers/libraries) has one file for each, with the feature that is
  used. failsoft goes through the same scripts.
- **Where a documented setting may avoid a fault**, the script is run again with it, and the note says what was seen then.
  failsoft needs such a setting in two rows itself: T5 and T6 left.
- **Some of these are choices, not mistakes.** A hook that is called in line can hold up a call, and is simpler for it. A
  breaker that counts every exception leaves it to you to say which do not count.
- Something here is wrong, unfair or out of date? The scripts are short. Please mend them and send the change.

`make comparison` installs the peers, runs everything again and writes this page. `python -m bench.peers T3 T7
--only stamina` runs a part of it.
"""

NOT_RUN = """\
## What was not run

- **T12**, a shared store that is down: failsoft keeps no state in Redis yet. pybreaker, aiobreaker, purgatory,
  interlock-cb and chuk-tool-processor do.
- **T26**, traps of YAML: no peer reads its settings from such a file.
- T1 and T2 over several processes, for the same reason as T12.
- Exception groups (T14), the 50 formats of secrets (T17), wrappers within wrappers (T18): tests of failsoft alone, in
  [tests/torture](../tests/torture).
"""

# strengths of each library, compared with failsoft
PEERS: dict[str, str] = {
    "tenacity": (
        "Retries, and nothing beside. It has more ways to say when to stop, how long to wait and what to repeat than "
        "failsoft has, repeats blocks of code as well as functions, and works on Trio. failsoft is for asyncio and "
        "threads only."
    ),
    "stamina": (
        "Retries on top of tenacity with careful defaults: it asks which errors are meant, limits attempts and time, "
        "and always jitters. It works on Trio, is instrumented for Prometheus and structlog, and can be switched off "
        "in tests with one call. It repeats generators too, which failsoft does before the first item only."
    ),
    "pybreaker": (
        "A breaker of long standing for blocking code and Tornado: listeners, exclusion by predicate, state in Redis. As a "
        "decorator it lets one call through at a time, which is why half-open is exact and calls in threads queue."
    ),
    "aiobreaker": "pybreaker for asyncio, with state in Redis. Cancellation says nothing about a tool, as it should be.",
    "purgatory": (
        "Breakers for blocking code and asyncio with state in Redis and events for monitoring. Late results of calls "
        "from before the trip change nothing."
    ),
    "circuitbreaker": (
        "One file, no dependencies, and of the breakers alone the cheapest that we measured ([performance](performance.md)). "
        "It goes by the monotonic clock and guards generators."
    ),
    "hyx": (
        "Retry, breaker, timeout, fallback, bulkhead and rate limiter for asyncio in few lines. It has "
        "more kinds of backoff than failsoft, which has one, and no rate limiter."
    ),
    "pyresilience": (
        "Seven patterns in one decorator, among them a rate limiter and a cache, which failsoft does not have. A retry "
        "budget, `Retry-After` for any HTTP client, doors for FastAPI, Django and Flask. Listeners that raise are "
        "caught."
    ),
    "interlock-cb": (
        "A careful breaker that shows none of T1 to T4, with more to it than failsoft's: failure rates over sliding "
        "windows, slow calls, a shadow mode, state in Redis with budgeted probes, transports for HTTP clients. failsoft counts "
        "failures in a row, in one process."
    ),
    "redress": (
        "Like failsoft it classifies an error first and then decides; it has a strategy for each class, budgets that "
        "several policies share, and classifiers for the SDKs of OpenAI and Anthropic and for many clients. Cancellation "
        "is neutral, one probe is let in."
    ),
    "chuk-tool-processor": (
        "The nearest in purpose: it runs the tool calls of models. It reads the formats of several providers, connects "
        "to MCP servers, and has a cache, rate limits, many guards for arguments and results, search over large sets of "
        "tools, and sandboxes for code. failsoft reads one format and has no MCP client, cache, rate limit or sandbox."
    ),
}
