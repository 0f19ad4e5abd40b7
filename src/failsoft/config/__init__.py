"""Configuration: manifests, options given in code, and how the two are merged.

May import ``core``. Except for adapters, only this package and the checks of a tool's types import pydantic and PyYAML.
Mirrored by ``tests/config``.
"""
