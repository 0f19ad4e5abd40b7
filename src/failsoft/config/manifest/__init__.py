"""Manifests, plans and options written as mappings: one strict reader, one set of names, one form of error.

``reading`` parses text into values with positions. ``block``, ``protection_blocks``, ``tool_blocks`` and
``file_blocks`` define what may be written. ``validate`` words the errors, ``detect`` tells manifests from plans,
``load`` and ``plan`` build the values that the rest of failsoft uses, ``lint`` finds what is legal but probably a
mistake, ``schema`` describes the format to editors. May import ``core`` and ``config``. Imports pydantic and PyYAML, so
it is itself imported only when a manifest is read. Mirrored by ``tests/config/manifest``.
"""

from __future__ import annotations

from failsoft.config.manifest.detect import find_kind
from failsoft.config.manifest.lint import check, find_odd_arguments
from failsoft.config.manifest.load import (
    Manifest,
    ManifestTool,
    load,
    parse_option,
    parse_options,
    parse_policies,
    parse_tool,
)
from failsoft.config.manifest.plan import Plan, PlannedCall, Ref, load_plan
from failsoft.config.manifest.problem import Problem
from failsoft.config.manifest.schema import schema

__all__ = [
    "Manifest",
    "ManifestTool",
    "Plan",
    "PlannedCall",
    "Problem",
    "Ref",
    "check",
    "find_kind",
    "find_odd_arguments",
    "load",
    "load_plan",
    "parse_option",
    "parse_options",
    "parse_policies",
    "parse_tool",
    "schema",
]
