"""Worker processes and commands: the only tools that can be killed.

``pool`` runs attempts on an event loop or blocking, each with one ``reply``. ``worker_attempt`` and ``command_attempt``
are one attempt each, ``target`` names the function, ``process_handle`` is the parent's side. ``supervisor`` and
``worker`` run in processes of their own. Imported only when the first process is needed. May import
``runtime.execution`` and ``core``. Tested in ``tests/runtime/execution/processes``.
"""
