"""Client of the Error Handler daemon (``failsoft serve``): ask it for decisions, send it events, control its tools.

``Client`` and ``AsyncClient`` have one method per route. ``RemoteHandler`` and ``EventReporter`` connect a runtime to
the daemon: ``Runtime(error_handler="https://…", report_to="https://…")`` makes them. Needs the extra ``client``
(httpx), which is imported with the first connection. May import ``observe``, ``errors`` and ``core``. Tested in
``tests/client``, also against a real daemon.
"""

from failsoft.client.async_client import AsyncClient
from failsoft.client.client import Client
from failsoft.client.connection import DaemonError, DaemonUnavailable
from failsoft.client.event_reporter import EventReporter
from failsoft.client.remote_handler import RemoteHandler
from failsoft.client.requests import Advice

__all__ = ["Advice", "AsyncClient", "Client", "DaemonError", "DaemonUnavailable", "EventReporter", "RemoteHandler"]
