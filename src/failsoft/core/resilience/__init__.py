"""The resilience patterns: retry, backoff, retry budget, circuit breaker, rate hold, fallback, and the Error Handler.

Each module is one pattern as a pure state transition; the runtime holds the state. Imports ``core.effects``
and ``core.model``. Mirrored by ``tests/core/resilience``; ``tests/properties`` compares the breaker with a
model.
"""
