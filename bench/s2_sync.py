"""S2: a blocking call that succeeds at once, without a deadline (``timeout=None`` runs it inline). Ratio to the bare call."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from bench import stacks
from bench.harness import Peer, Plan, Table, add_instructions, compare


def tool(x: Any) -> Any:
    return x


def guarded() -> Callable[..., Any]:
    from failsoft import Runtime

    return Runtime().tool(timeout=None)(tool)


AWAITS = False
COUNTS = (500, 4600)  # four batches of events are drained in between
PEERS = [
    Peer("bare", lambda: tool, counted=True),
    Peer("failsoft guarded", guarded, counted=True),
    Peer("only circuitbreaker", partial(stacks.circuitbreaker, tool)),
    Peer("only backoff", partial(stacks.backoff_retry, tool)),
    Peer("only tenacity", partial(stacks.tenacity_retry, tool)),
    Peer("only stamina", partial(stacks.stamina_retry, tool)),
    Peer("only pybreaker", partial(stacks.pybreaker, tool)),
    Peer("only purgatory", partial(stacks.purgatory_sync, tool)),
    *(
        Peer(f"stack {name}", partial(make, tool), counted="cheapest" in name)
        for name, make in stacks.SYNC_STACKS.items()
    ),
]


def run(plan: Plan) -> list[Table]:
    rows, skipped = compare(PEERS, plan, awaits=AWAITS)
    if plan.instr:
        add_instructions(rows, __name__, PEERS)
    title = "A blocking call that succeeds at once, without a deadline, × the bare call"
    return [Table("S2", title, ["peer", "ns", "ratio", "best", "instr", "instr_ratio"], rows, skipped)]
