"""S1b: an async call that yields to the event loop once. Ratio to the bare await."""

from __future__ import annotations

from bench.harness import Plan, Table
from bench.s1_async import peers, suspending, table

PEERS = [peer for peer in peers(suspending) if not peer.name.startswith("only")]


def run(plan: Plan) -> list[Table]:
    return [table("S1b", "The same, and the tool yields to the event loop once", __name__, PEERS, plan)]
