"""Configuration: manifests, options given in code, and how the two are merged.

May import ``core``. Outside of adapters, pydantic and PyYAML are imported here and in the checks of a tool's types only.
Mirrored by ``tests/config``.
"""
