"""What users write about tools: manifests, options in code, and how they are merged.

pydantic and PyYAML are imported here and in the checks of a tool's types only. Mirrored by ``tests/config``.
"""
