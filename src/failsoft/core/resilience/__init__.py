"""The resilience patterns: retry, backoff, retry budget, circuit breaker, rate hold, fallback, and the Error Handler.

Each module is one pattern as a pure state transition; the runtime holds the state. Mirrored by
``tests/core/resilience``; ``tests/properties`` checks breaker and turn machine against models.
"""
