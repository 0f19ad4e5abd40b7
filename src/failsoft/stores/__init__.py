"""Stores: small records under a key, and the event stream, kept beyond the process.

``ports`` is the protocol, ``url`` opens a store by its address, ``failsafe`` keeps a store's failures away from calls.
May import ``observe`` and ``core``. Every store passes ``failsoft.testing.check_store``; mirrored by ``tests/stores``.
"""
