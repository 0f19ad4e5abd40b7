"""The embedded store: records and events in one SQLite file.

May import ``stores`` and ``observe``. Guarded by ``tests/stores/sqlite`` and ``check_store``.
"""

from failsoft.stores.sqlite.store import SqliteStore as SqliteStore
