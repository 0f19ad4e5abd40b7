"""The embedded store: records and events in one SQLite file."""

from failsoft.stores.sqlite.store import SqliteStore as SqliteStore
