"""Tools that are really stopped: worker processes and commands (R8).

``Workers`` runs attempts, each as one ``Reply``, on an event loop or blocking. The parts: ``supervisor`` and ``worker``
run in processes of their own, ``process`` is our side of them, ``call`` and ``command`` are one attempt each.
"""

from failsoft.runtime.isolation.remote import RemoteError
from failsoft.runtime.isolation.reply import CommandError, Reply, WorkerError
from failsoft.runtime.isolation.target import GUARD, Target, parse, target_of
from failsoft.runtime.isolation.workers import Counts, Workers

__all__ = [
    "GUARD",
    "CommandError",
    "Counts",
    "RemoteError",
    "Reply",
    "Target",
    "WorkerError",
    "Workers",
    "parse",
    "target_of",
]
