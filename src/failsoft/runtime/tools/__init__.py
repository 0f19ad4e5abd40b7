"""A registered tool while the program runs: its function, its health, checks of arguments and output.

``function_kind`` says what calling a function returns, ``framework_tool`` is a tool that an agent framework runs,
``health`` holds breaker, retry budget and rate hold, ``tool_info`` is what ``rt.tools`` shows. May import
``runtime.persistence`` and what is below it. Tested in ``tests/runtime/tools``.
"""
