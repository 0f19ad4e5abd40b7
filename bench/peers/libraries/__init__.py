"""The libraries by name, failsoft first. A library is imported when one of its parts is made, not before."""

from __future__ import annotations

from bench.peers.libraries.aiobreaker import Aiobreaker
from bench.peers.libraries.chuk_tool_processor import ChukToolProcessor
from bench.peers.libraries.circuitbreaker import Circuitbreaker
from bench.peers.libraries.failsoft import Failsoft
from bench.peers.libraries.hyx import Hyx
from bench.peers.libraries.interlock import Interlock
from bench.peers.libraries.purgatory import Purgatory
from bench.peers.libraries.pybreaker import Pybreaker
from bench.peers.libraries.pyresilience import Pyresilience
from bench.peers.libraries.redress import Redress
from bench.peers.libraries.stamina import Stamina
from bench.peers.libraries.tenacity import Tenacity
from bench.peers.library import Library

LIBRARIES: dict[str, type[Library]] = {
    one.name: one
    for one in (
        Failsoft, Tenacity, Stamina, Pybreaker, Aiobreaker, Purgatory, Circuitbreaker, Hyx, Pyresilience, Interlock,
        Redress, ChukToolProcessor,
    )
}  # fmt: skip
