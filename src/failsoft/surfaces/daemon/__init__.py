"""The Error Handler daemon, ``failsoft serve``: an HTTP API to decide about errors, and to see and steer tools.

``routes`` is the table of all routes, and one module per resource has their handlers. ``app`` puts the protections of
``access`` and ``limits`` around them, ``openapi`` describes them, and ``server`` runs them. ``protocol`` is the HTTP of one
connection, ``http_request`` that of one request. ``reported_errors`` decides about errors that executors elsewhere report;
the decisions themselves are those of ``core``. ``feed`` streams events, ``commits`` makes answers wait until the store has
what they acknowledge. May import everything below ``surfaces``, starlette, uvicorn, httptools and uvloop; nothing but the
command ``serve`` imports it. Tested in ``tests/surfaces/daemon``.
"""
