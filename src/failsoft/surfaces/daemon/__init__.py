"""The Error Handler daemon, ``failsoft serve``: an HTTP API to decide about errors, and to see and steer tools.

``routes`` is the table of all routes, and one module per resource has their handlers. ``app`` puts the protections of
``access`` and ``limits`` around them, ``openapi`` describes them, ``server`` runs them, and ``protocol`` is the HTTP of one
connection. ``reported_errors`` decides about errors that executors elsewhere report; the decisions themselves are those of
``core``. ``feed`` streams events, ``commits`` makes answers wait until the store has what they acknowledge. May import
everything below ``surfaces``, starlette, uvicorn, httptools, uvloop and sse-starlette; nothing but the command ``serve``
imports it. Tested in ``tests/surfaces/daemon``.
"""
