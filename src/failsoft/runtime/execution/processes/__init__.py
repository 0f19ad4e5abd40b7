"""Tools that are really stopped: worker processes and commands (R8).

``workers.Workers`` runs attempts, each as one ``reply.Reply``, on an event loop or blocking; ``target.target_of`` names
the function. ``supervisor`` and ``worker`` run in processes of their own, ``process`` is our side of them, ``call`` and
``command`` are one attempt each. Nothing is imported here: most runtimes never start a process.
"""
