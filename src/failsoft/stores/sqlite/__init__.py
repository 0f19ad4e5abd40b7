"""The embedded store: records and events in one SQLite file.

``store`` has the methods of a store, ``writer`` writes on an OS thread, ``reader`` reads, ``database`` has the
schema. May import ``stores`` and ``observe``. Guarded by ``tests/stores/sqlite`` and ``check_store``.
"""

from failsoft.stores.sqlite.store import SqliteStore as SqliteStore
