"""Write the golden event streams anew: ``make golden``."""

from __future__ import annotations

import logging

from tests.golden.streams import GROUPS, PLACE, write_all

logging.getLogger("failsoft").addHandler(logging.NullHandler())  # the failures of the scenarios are not news
write_all()
size = sum(path.stat().st_size for path in PLACE.glob("*.jsonl"))
print(f"{len(GROUPS)} files, {size / 1e6:.2f} MB in {PLACE.name}/")
