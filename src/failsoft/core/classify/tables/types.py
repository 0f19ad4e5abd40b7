"""Exception types -> kind: ``package.Class``, looked up over the MRO. A missing row is no loss: a class's own name is
read as words as well (``tables.phrases``).

Rows of ``WEAK`` say little: a better word anywhere in the chain beats them.
"""

from __future__ import annotations

from failsoft.core.classify.tables import Group, merge

STRONG_GROUPS: tuple[Group[str], ...] = (
    Group(
        "Python: programming errors (R12)",
        {
            "builtins.TypeError": "bug",
            "builtins.AttributeError": "bug",
            "builtins.NameError": "bug",
            "builtins.AssertionError": "bug",
            "builtins.RecursionError": "bug",
            "builtins.SyntaxError": "bug",
            "builtins.NotImplementedError": "unsupported",
            "builtins.ModuleNotFoundError": "no_such_tool",
            "builtins.ImportError": "no_such_tool",
        },
    ),
    Group(
        "Python: the network and the file system",
        {
            "builtins.ConnectionRefusedError": "refused",
            "builtins.ConnectionResetError": "disconnected",
            "builtins.ConnectionAbortedError": "disconnected",
            "builtins.BrokenPipeError": "disconnected",
            "builtins.FileNotFoundError": "not_found",
            "builtins.PermissionError": "forbidden",
            "builtins.FileExistsError": "exists",
            "builtins.IsADirectoryError": "invalid",
            "builtins.NotADirectoryError": "invalid",
            "builtins.BlockingIOError": "busy",
            "ssl.SSLCertVerificationError": "certificate",
        },
    ),
    Group(
        "Python: cancellation and the end of the program",
        {
            "asyncio.CancelledError": "cancelled",
            "concurrent.CancelledError": "cancelled",
            "builtins.KeyboardInterrupt": "cancelled",
            "builtins.SystemExit": "cancelled",
            "builtins.GeneratorExit": "cancelled",
        },
    ),
)

WEAK_GROUPS: tuple[Group[str], ...] = (
    Group(
        "Python: says the subject, not the case",
        {
            "builtins.TimeoutError": "timeout",
            "asyncio.TimeoutError": "timeout",
            "concurrent.TimeoutError": "timeout",
            "builtins.ConnectionError": "disconnected",
            "builtins.EOFError": "garbled",
            "builtins.MemoryError": "local_limit",
        },
    ),
    Group(
        "Python: bad input (R29), and look-ups that failed (R12)",
        {
            "builtins.ValueError": "invalid",
            "builtins.ArithmeticError": "bug",
            "builtins.LookupError": "bug",
            "builtins.StopIteration": "bug",
            "builtins.StopAsyncIteration": "bug",
            "builtins.BufferError": "bug",
        },
    ),
)

STRONG = merge(STRONG_GROUPS)
WEAK = merge(WEAK_GROUPS)
