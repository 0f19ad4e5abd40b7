"""What all tests share: property tests that give the same verdict on every run.

`pytest --hypothesis-profile=explore` looks for new examples instead.
"""

from __future__ import annotations

import logging

from hypothesis import HealthCheck, settings

from failsoft.observe.sinks import log as failsoft_log

failsoft_log.WINDOW = 3_600.0  # no test is told of the failures of another a minute later
logging.getLogger("failsoft").addHandler(logging.NullHandler())  # failures that tests cause are not news at their end

settings.register_profile(
    "steady",
    derandomize=True,
    deadline=None,  # a busy machine is not a defect
    database=None,
    suppress_health_check=[HealthCheck.too_slow],
)
settings.register_profile("explore", deadline=None, max_examples=2_000, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("steady")
