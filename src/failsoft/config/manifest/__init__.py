"""Manifests, plans and options written as mappings: one strict reader, one set of names, one form of error.

``reading`` turns text into plain values with positions, ``block``, ``models`` and ``file`` say what may be written and
what it comes to, ``parse`` puts what is wrong into words, ``kind`` tells manifests from plans, ``load`` and ``plan`` make the values that the rest of
failsoft uses, ``check`` finds what is legal but hardly meant, ``schema`` describes it all to editors.

pydantic and yaml are imported here and nowhere else, so whoever uses this package imports it when it is needed.
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
