"""Stores: small records under a key, and the event stream, kept beyond a call.

``ports`` is the protocol, ``failsafe`` keeps a store's failures away from calls. May import ``observe`` and ``core``.
Every store passes ``failsoft.testing.check_store``.
"""
