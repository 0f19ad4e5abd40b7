"""The runtime's side of a store: events, circuits, the effect ledger, the recovery memory.

Writes happen on a thread of their own; a store that fails never fails a call. May import
``runtime.execution``, ``stores`` and what is below them. Tested in ``tests/runtime/persistence``.
"""
