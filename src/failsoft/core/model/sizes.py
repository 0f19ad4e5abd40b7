"""Read sizes in bytes: a text with a unit (``"512MB"``, ``"64KiB"``) or a whole number of bytes.

``kB MB GB`` are powers of 1000, ``KiB MiB GiB`` powers of 1024. A small bare number is most likely a forgotten unit
(``max_memory: 512``); the caller's ``least`` refuses it.
"""

from __future__ import annotations

from reprlib import repr as brief

from failsoft.core.startup.lazy_pattern import lazy_pattern

PATTERN = r"[0-9]+(\.[0-9]+)?(B|kB|KB|MB|GB|KiB|MiB|GiB)"  # matches the whole text; also used in the manifest's schema

_UNITS = {
    "B": 1,
    "kB": 1000,
    "KB": 1000,
    "MB": 1000**2,
    "GB": 1000**3,
    "KiB": 1024,
    "MiB": 1024**2,
    "GiB": 1024**3,
}
_WHOLE = lazy_pattern(r"([0-9]{1,12}(?:\.[0-9]{1,12})?)(B|[kKMG]B|[KMG]iB)")


def size(value: object, *, least: int = 1) -> int:
    """Read a size of at least ``least`` bytes."""
    if isinstance(value, str) and (match := _WHOLE.fullmatch(value)):
        read = round(float(match[1]) * _UNITS[match[2]])
    elif isinstance(value, int) and not isinstance(value, bool):
        read = value
    else:
        raise ValueError(f'{brief(value)} is not a size: write a number and a unit, like "512MB" or "64kB"')
    if read < least:
        raise ValueError(f'{brief(value)} is too small: write at least {least} bytes, and with a unit, like "512MB"')
    return read
