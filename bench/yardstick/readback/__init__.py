"""Read-back: find out by a benchmark's own read tools whether a write took effect. Rules are by tool.

A rule answers True (it did), False (it did not) or None (the reads do not show it). Rules know the arguments of the write
and nothing of the injector. Tools without a rule have no read that would show their effect.
"""

from __future__ import annotations

from bench.yardstick.readback import agentdojo, bfcl, fake
from bench.yardstick.readback.rule import Rule

RULES: dict[str, Rule] = {**bfcl.RULES, **agentdojo.RULES, **fake.RULES}
