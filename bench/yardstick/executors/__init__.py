"""The executors by a short name, in the order of the tables."""

from __future__ import annotations

from bench.yardstick.executors.frameworks import AgentsSdk, LangChainToolRetry, PydanticAi
from bench.yardstick.executors.guarded import (
    Declared,
    Undeclared,
    UndeclaredToolCalls,
    VerifiedByOracle,
    VerifiedByReadBack,
)
from bench.yardstick.executors.unprotected import NaiveRetry, Sequential, Tenacity
from bench.yardstick.replay import Executor

EXECUTORS: dict[str, Executor] = {
    "none": Sequential(),
    "naive": NaiveRetry(),
    "tenacity": Tenacity(),
    "langchain": LangChainToolRetry(),
    "pydantic-ai": PydanticAi(),
    "agents-sdk": AgentsSdk(),
    "undeclared": Undeclared(),
    "undeclared-tool-calls": UndeclaredToolCalls(),
    "declared": Declared(),
    "verify-oracle": VerifiedByOracle(),
    "verify-read-back": VerifiedByReadBack(),
}
UNMARKED = (
    tuple(  # in the tables without marks: no frameworks, which are slow, and one of the two that repeat everything
        name for name in EXECUTORS if name not in ("tenacity", "langchain", "pydantic-ai", "agents-sdk")
    )
)
