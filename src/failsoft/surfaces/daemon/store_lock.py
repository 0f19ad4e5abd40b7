"""One daemon per store: what a daemon knows of open calls, circuits and escalations is in its memory.

Rules
-----
- The lock is on a file beside the database. It ends with the process, however that ends, and no child inherits it.
- A daemon that starts waits ``PATIENCE`` seconds for the lock: the one that it replaces may be ending.
- Stores that are not files, and file systems without locks, are not protected.
"""

from __future__ import annotations

import errno
import os
import time
from pathlib import Path
from typing import Final

from failsoft.errors import FailsoftError

PATIENCE: Final = 2.5  # seconds
_TAKEN: Final = (errno.EACCES, errno.EAGAIN)


def lock_store(database: Path) -> int | None:
    """Lock a database until the returned descriptor is closed or the process ends; None if locks are not supported."""
    try:
        import fcntl
    except ImportError:  # Windows
        return None
    path = database.with_name(f"{database.name}.lock")
    try:
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    except OSError:  # the store will say why it cannot be written
        return None
    deadline = time.monotonic() + PATIENCE
    while True:
        try:
            fcntl.lockf(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            if error.errno not in _TAKEN:
                os.close(descriptor)
                return None
        else:
            os.ftruncate(descriptor, 0)
            os.write(descriptor, b"%d\n" % os.getpid())
            return descriptor
        if time.monotonic() >= deadline:
            holder = os.read(descriptor, 20).decode("ascii", "replace").strip()
            os.close(descriptor)
            raise FailsoftError(
                f"{database}: another daemon uses this store (process {holder or 'unknown'}): stop it, or give --store another file"
            )
        time.sleep(0.05)
