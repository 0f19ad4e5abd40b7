"""T5: a tool that "timed out" went on and was repeated: one charge became three POSTs. Here at most one, and it is said."""

from __future__ import annotations

import asyncio
import random
from contextlib import suppress
from typing import Any

from tests.fakes import OFTEN, virtual

from failsoft import Runtime

RUNS = 1_000
REFUSED = ConnectionRefusedError(111, "Connection refused")


class Till:
    """A payment service that loses answers in every way there is."""

    def __init__(self) -> None:
        self.charges: dict[int, int] = {}
        self.random = random.Random(5)

    def _charge(self, order: int) -> None:
        self.charges[order] = self.charges.get(order, 0) + 1

    async def pay(self, order: int) -> str:
        mishap = self.random.choice(
            ("slow answer", "slow charge", "stubborn", "late answer", "reset", "garbled", "502", "refused", "none")
        )
        if mishap == "refused":
            raise REFUSED  # the only one that surely charged nothing
        if mishap == "slow charge":
            await asyncio.sleep(60)
        if mishap == "stubborn":
            with suppress(asyncio.CancelledError):
                await asyncio.sleep(60)
            await asyncio.sleep(60)
        self._charge(order)
        if mishap == "late answer":
            with suppress(asyncio.CancelledError):
                await asyncio.sleep(60)
        if mishap == "slow answer":
            await asyncio.sleep(60)
        if mishap == "reset":
            raise ConnectionResetError(104, "Connection reset by peer")
        if mishap == "garbled":
            raise EOFError("the answer ended in the middle")
        if mishap == "502":
            raise RuntimeError("Bad gateway (502)")
        return "paid"


@virtual
async def test_t05_an_effect_happens_at_most_once_in_1000_runs() -> None:
    rt = Runtime()
    till, other = Till(), Till()
    retry: Any = {"max_attempts": 5, "budget": False}
    rt.add(other.pay, id="pay_elsewhere", timeout="10s", idempotent=False, breaker=OFTEN, retry=retry)
    rt.add(
        till.pay, id="pay", timeout="10s", idempotent=False, breaker=OFTEN, retry=retry, fallbacks=["pay_elsewhere"]
    )  # fmt: skip
    outcomes = await asyncio.gather(*(rt.call("pay", {"order": order}) for order in range(RUNS)))
    await asyncio.sleep(300)  # every abandoned attempt has ended
    charged = {order: till.charges.get(order, 0) + other.charges.get(order, 0) for order in range(RUNS)}
    assert max(charged.values()) == 1
    lost = [order for order, outcome in enumerate(outcomes) if outcome.status == "failed" and charged[order]]
    assert len(lost) > RUNS / 4
    for order in lost:
        outcome = outcomes[order]
        assert outcome.fault is not None
        assert outcome.fault.effect in ("unknown", "happened")
        assert "taken effect" in outcome.explanation.model
    assert all(charged[order] for order, outcome in enumerate(outcomes) if outcome.status == "succeeded")
    assert any(outcome.attempts > 1 for outcome in outcomes)  # what surely did not happen is repeated
