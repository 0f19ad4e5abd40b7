"""A library that only a tool imports, inside its worker."""

from __future__ import annotations


class LibraryError(Exception):
    """Survives pickling, but is not known where it arrives."""

    status_code = 429
